import subprocess
import sys

import numpy as np
import pytest

from pmsr.data import make_data
from pmsr.equation.descent import FITTED, FORBIDDEN, NEVER_FINITE, law_keys
from pmsr.equation.expression import Equation
from pmsr.equation.program import Program, evaluate
from pmsr.evidence.problem import Problem
from pmsr.search.screening import Batch, screen
from pmsr.settings import Settings

x = np.linspace(0.5, 4.0, 20)
NOISE = np.random.default_rng(0).standard_normal(20)


def screened(texts, y, X=x, seed=0):
    programs = [Equation(text, ["x"]).program for text in texts]
    return screen(
        Batch.of(programs), Problem.of(make_data(X[:, None], y), Settings()), seed
    ), programs


def test_a_line_is_solved_exactly():
    y = 2.0 - 3.0 * x + NOISE
    found, _ = screened(["c0 + c1*x"], y)
    slope, intercept = np.polyfit(x, y, 1)
    np.testing.assert_allclose(found.theta[0], [intercept, slope], rtol=1e-12)
    assert found.n_evaluations[0] == 1


@pytest.mark.parametrize(
    "text, truth",
    [
        ("c0*exp(-c1*x)", (3.0, 0.7)),
        ("c0*x/(c1 + x)", (5.0, 1.3)),
        ("c0*sin(c1*x) + c2", (2.0, 2.5, 1.0)),
        ("c0*x**c1", (2.0, 1.7)),
        ("c0*exp(-c1*x) + c2", (4.0, 0.9, 0.5)),
    ],
)
def test_curved_laws_without_noise_are_recovered(text, truth):
    program = Equation(text, ["x"]).program
    y = evaluate(program, np.array([truth]), x[:, None])[0]
    found, _ = screened([text], y)
    assert found.outcome[0] == FITTED and found.sse[0] < 1e-16 * np.var(y)
    assert found.rank[0] == len(truth)


def test_squared_error_is_that_of_theta():
    y = 3.0 * np.exp(-x) + 0.1 * NOISE
    found, programs = screened(["c0*exp(c1*x)", "c0*x/(c1 + x)", "c0/(c1 + x)**2"], y)
    for program, theta, sse, curve in zip(
        programs, found.theta, found.sse, found.curves, strict=True
    ):
        values = evaluate(program, theta[None, :2], x[:, None])[0]
        assert sse == pytest.approx(np.sum((y - values) ** 2), rel=1e-12)
        np.testing.assert_array_equal(curve[:20], values)


def test_laws_without_parameters_have_an_error_and_no_rank():
    y = x**2 + NOISE
    found, _ = screened(["x**2", "sqrt(-x)"], y)
    assert found.sse[0] == pytest.approx(np.sum(NOISE**2))
    assert found.rank.tolist() == [0, 0]
    assert found.outcome.tolist() == [FITTED, NEVER_FINITE]
    assert found.sse[1] == np.inf and found.log_q[1] == -np.inf


def test_a_pole_between_rows_is_no_fit():
    X = np.linspace(-1.0, 1.0, 20)
    found, _ = screened(["c0/(c1 + x)"], 1.0 / (X - 0.05), X)
    assert abs(found.theta[0, 1]) > 1.0  # the pole is outside
    assert found.outcome[0] == FITTED


def test_a_law_that_breaks_the_rules_everywhere_is_forbidden():
    X = np.linspace(-1.0, 1.0, 20)
    found, _ = screened(["c0/(x + c1**2*x)"], X, X)  # changes sign whatever c1
    assert found.outcome[0] == FORBIDDEN and found.sse[0] == np.inf


def test_rank_is_that_of_the_law_and_not_of_its_fit():
    y = 3.0 * x - 5.0 + 0.1 * NOISE  # c0**2 would have to be negative
    found, _ = screened(["c0**2 + c1*x", "c0*exp(c1 + c2*x)", "c0 + x*0*c1"], y)
    assert found.rank.tolist() == [2, 2, 1]


@pytest.mark.parametrize("size", [1e-90, 1e90])
def test_units_do_not_matter_however_large(size):
    y = 3.0 * np.exp(-x) + 0.1 * NOISE
    texts = ["c0*exp(c1*x) + c2", "c0*x/(c1 + x)", "c0 + c1*x + c2*x**2"]
    here, _ = screened(texts, y)
    there, _ = screened(texts, size * y)
    np.testing.assert_allclose(there.sse / size / size, here.sse, rtol=1e-6)
    assert there.rank.tolist() == here.rank.tolist()


def test_values_out_of_range_are_failures_and_not_numbers():
    found, _ = screened(["exp(exp(1000*x))", "c0*exp(exp(1000*x))"], x)
    assert found.outcome.tolist() == [NEVER_FINITE] * 2


def test_keys_know_the_value_of_a_literal_and_not_its_place():
    programs = [
        Equation(text, ["x"]).program for text in ("c0*x + 2.5", "c0*x + 3.5", "c0*x + 2.5")
    ]
    batch = Batch.of(programs)
    moved = np.column_stack([np.full(3, 7.0), batch.literals])
    nodes = batch.nodes.copy()
    nodes[2][nodes[2, :, 0] == 2, 1] += 1
    keys = np.empty(3, dtype=np.uint64)
    moved[:2, 0] = batch.literals[:2, 0]
    law_keys(nodes, batch.lengths, moved, batch.n_parameters, keys)
    assert keys[0] == keys[2] != keys[1]


SCRIPT = """
import math
import numpy as np, pytensor.tensor as pt, sympy
import pmsr
from pmsr.data import make_data
from pmsr.equation.expression import Equation
from pmsr.evidence.problem import Problem
from pmsr.search.screening import Batch, screen
from pmsr.settings import Settings

x = np.linspace(0.1, 2.0, 12)
data = make_data(x[:, None], 3.0*np.sinh(0.7*x))
def least(text):
    return screen(Batch.of([Equation(text, ["x"]).program]), Problem.of(data, Settings()), 0).sse[0]
before = least("c0*x")
pmsr.add_operator(pmsr.Operator(
    "sinh", 1, sympy.sinh, pt.sinh, lambda a: math.sinh(a), lambda a, v: math.cosh(a)))
assert least("c0*sinh(c1*x)") < 1e-20
assert least("c0*x") == before
"""


@pytest.mark.slow
def test_screening_knows_an_operator_that_a_user_added():
    subprocess.run([sys.executable, "-W", "ignore", "-c", SCRIPT], check=True)


def test_a_law_with_a_pole_at_a_row_is_not_fitted():
    y = np.exp(np.linspace(0.0, 1.0, 9))
    program = Program.of([(0, 0, 0), (3, 0, -2), (1, 0, 0), (6, 2, 1)], [], 1)  # c0*x**-2
    data = make_data(np.linspace(0.0, 1.0, 9)[:, None], y)
    found = screen(Batch.of([program]), Problem.of(data, Settings()), 0)
    assert found.outcome[0] != FITTED and found.log_q[0] == -np.inf


def test_a_row_of_a_user_that_raises_an_error_makes_a_law_not_a_number():
    # In a process of its own: the table of operators is everybody's.
    code = """
import numpy as np
from pmsr.data import make_data
from pmsr.equation.operators import Operator, add_operator, operator_code
from pmsr.equation.program import Program
from pmsr.evidence.problem import Problem
from pmsr.search.screening import Batch, screen
from pmsr.settings import Settings

def square(a):
    return a**-2

add_operator(Operator("invsq", 1, square, square, square, lambda a, v: -2.0 * a**-3))
code = operator_code("invsq")
line = Program.of([(0, 0, 0), (1, 0, 0), (6, 1, 0)], [], 1)
pole = Program.of([(0, 0, 0), (code, 0, 0), (1, 0, 0), (6, 2, 1)], [], 1)
x = np.linspace(0.0, 1.0, 9)[:, None]
found = screen(Batch.of([line, pole]), Problem.of(make_data(x, np.exp(x[:, 0])), Settings()), 0)
print(found.outcome.tolist(), np.isfinite(found.log_q).tolist())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == f"[{FITTED}, {NEVER_FINITE}] [True, False]"
    assert not done.stderr
