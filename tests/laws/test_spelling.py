import time

import numpy as np
import pytest

from pmsr.data import make_data
from pmsr.equation.expression import Equation
from pmsr.equation.program import evaluate
from pmsr.evidence.evidence import fit_rmse
from pmsr.evidence.problem import Problem
from pmsr.laws.prior import LawPrior
from pmsr.laws.spelling import best_spelling
from pmsr.result.scoring import find_log_prior
from pmsr.settings import Settings


@pytest.mark.parametrize(
    ("text", "columns", "best"),
    [
        ("c0*x + x*y", "xy", "x*(c0 + y)"),
        ("(c0*x + c1*x*y)/(x*y)", "xy", "c1 + c0/y"),
        ("c0*x/(c1 + x)", "x", "c0*x/(c1 + x)"),
        ("x*y + c0*x + c1*y", "xy", "x*y + c0*x + c1*y"),
        ("(x**2 - 1)/(x - 1)", "x", "1 + x"),
        ("c0*x**2 + 2*c0*x + c0", "x", "c0*(1 + x)**2"),
        ("-x**2/(c0 + x)", "x", "x**2/(c0 - x)"),
        ("c0*exp(-t/c1)", "t", "c0*exp(t/c1)"),
        ("2*c0*x - c1 + 3", "x", "c0 + c1*x"),
        ("c0*x/(1 + c1*x)", "x", "c0*x/(c1 + x)"),
        ("x/(c0 + c1*x)", "x", "x/(c0 + c1*x)"),
        ("c2 + c0*x/(1 + c1*x*y)", "xy", "c2 + c0*x/(c1 + x*y)"),
        ("c0*(1 + c1*x)", "x", "c0 + c1*x"),
        # A coefficient of one sign, one parameter for two of them, and a function of it.
        ("c0**2*x/(1 + c1*x)", "x", "c0**2*x/(1 + c1*x)"),
        ("c0*x/(1 + c0*x)", "x", "c0*x/(1 + c0*x)"),
        ("c0*x/(1 + exp(c0)*x)", "x", "c0*x/(1 + x*exp(c0))"),
    ],
)
def test_the_spelling_with_the_largest_prior_is_shown(text, columns, best):
    law = Equation(text, list(columns))
    shown = best_spelling(law)
    assert str(shown) == best
    assert LawPrior().log_p(shown.program) >= LawPrior().log_p(law.program)


def test_what_no_reader_reads_is_left_as_it_is():
    fractions = " + ".join(f"sin(c{k}*x**{k})/(c{k + 1} + x)" for k in range(2, 22, 2))
    start = time.process_time()
    for text in (fractions, "(c0 + c1*x + c2*sin(x))**1000", "x**9999 + c0"):
        law = Equation(text, ["x"])
        assert LawPrior().log_p(best_spelling(law).program) >= LawPrior().log_p(law.program)
    assert time.process_time() - start < 20.0


FRACTIONS = [
    "k1*x**2/(1 + k2*x)",
    "c0*x/(1 + c1*x)",
    "(c0 + c1*x)/(1 + c2*x)",
    "c0*(1 + c1*x)",
    "(c0 + x)/(c1*x)",
    "c2 + c0/(3 - c1*x)",
]


@pytest.mark.parametrize("text", FRACTIONS)
def test_another_spelling_of_a_fraction_has_the_same_curves(text):
    law = Equation(text, ["x"])
    rng = np.random.default_rng(1)
    x = np.linspace(0.3, 2.0, 15)[:, None]
    for nonzero in ((), ("x",)):
        shown = best_spelling(law, nonzero=nonzero)
        gain = LawPrior().log_p(shown.program) - LawPrior().log_p(law.program)
        assert gain > 0.0 or (gain == 0.0 and not nonzero)
        for one, other in ((law, shown), (shown, law)):
            # Both signs of every parameter; poles are where they may be.
            theta = rng.uniform(0.3, 2.0, (4, len(one.parameters)))
            theta *= rng.choice([-1.0, 1.0], theta.shape)
            for y in evaluate(one.program, theta, x):
                problem = Problem.of(make_data(x, y, names=["x"]), Settings())
                # Starts are drawn: a curve with a pole among the rows may need several.
                seeds = np.random.SeedSequence(0).spawn(8)
                errors = [fit_rmse(other.program, problem, Settings(), s).rmse for s in seeds]
                assert min(errors) < 1e-6 * np.std(y)


def test_a_fraction_is_divided_by_what_is_zero_nowhere_only():
    law = Equation("c0*x**2/(1 + c1*x)", ["x"])
    assert str(best_spelling(law)) == "c0*x**2/(c1 + x)"
    assert str(best_spelling(law, nonzero=["x"])) == "x/(c1 + c0/x)"
    zero, positive = ([0.0, 1.0, 2.0], [1.0, 2.0, 3.0])
    prices = [
        find_log_prior(law, make_data(x, [0.0, 1.0, 3.0], names=["x"]), "description")
        for x in (zero, positive)
    ]
    assert prices[0] < prices[1] == -10.5


def test_all_spellings_of_a_law_cost_the_same():
    data = make_data([1.0, 2.0, 3.0], [0.2, 1.0, 3.0], names=["x"])
    texts = ["k1*x**2/(1 + k2*x)", "x**2/(c0 + c1*x)", "c0*x**2/(c1 + x)", "x/(c0 + c1/x)"]
    costs = [find_log_prior(Equation(text, ["x"]), data, "description") for text in texts]
    assert costs == [-10.5] * 4
