import time
from dataclasses import replace

import numpy as np
import pytest

from pmsr.data import load_galileo, make_data
from pmsr.equation.expression import Equation
from pmsr.evidence.problem import Problem
from pmsr.limits import time_limit
from pmsr.search.pilot import choose_noise, find_tuning, make_bench
from pmsr.search.screening import Batch, screen
from pmsr.settings import QUICK, Search

x = np.linspace(0.5, 4.0, 24)
SEARCH = Search(operators=("+", "*", "/", "exp"), n_enumerated=500)


def outliers(seed=0):
    rng = np.random.default_rng(seed)
    y = 1.0 + 2.0 * x + 0.1 * rng.standard_normal(24)
    y[[3, 15]] += np.array([3.0, -4.0])
    return make_data(x, y, names=["x"])


def test_rows_that_are_outliers_count_less_when_laws_are_screened():
    problem = Problem.of(outliers(), replace(QUICK, noise="student"))
    bench = make_bench(problem, SEARCH, QUICK, 1)
    weights = bench.screening.weights
    assert set(np.argsort(weights)[:2]) == {3, 15}
    law = Equation("c0 + c1*x", ["x"])
    found = screen(Batch.of([law.program]), bench.screening, 0)
    np.testing.assert_allclose(found.theta[0], [1.0, 2.0], atol=0.2)
    plain = Problem.of(outliers(), QUICK)
    assert found.log_q[0] > screen(Batch.of([law.program]), plain, 0).log_q[0]


@pytest.mark.parametrize("noise", ["gaussian", "student"])
def test_what_laws_are_judged_by_does_not_depend_on_the_time_left(noise):
    data = outliers()
    if noise == "gaussian":
        data = replace(data, y_err=np.full(24, 0.1), X_err=np.full((24, 1), 0.05))
    problem = Problem.of(data, replace(QUICK, noise=noise))
    with time_limit(time.monotonic() - 1.0):
        hurried = make_bench(problem, SEARCH, QUICK, 1)
    assert hurried.tuning is not None
    calm = make_bench(problem, SEARCH, QUICK, 1)
    np.testing.assert_array_equal(hurried.screening.weights, calm.screening.weights)


def test_weights_that_are_known_need_no_tuning():
    bench = make_bench(Problem.of(outliers(), QUICK), SEARCH, QUICK, 1)
    assert find_tuning(bench) is None is bench.tuning


@pytest.mark.parametrize(
    ("noise", "make"),
    [
        ("student", lambda rng: outliers().y),
        ("poisson", lambda rng: rng.poisson(400.0 * np.exp(-1.2 * x)).astype(float)),
    ],
)
def test_the_noise_that_made_the_data_is_chosen(noise, make):
    data = make_data(x, make(np.random.default_rng(5)), names=["x"])
    known = [Equation(text, ["x"]).program for text in ("c0 + c1*x", "c0*exp(c1*x)")]
    chosen, table = choose_noise(data, SEARCH, QUICK, 1, known)
    assert chosen == noise == table[0].noise
    scores = [row.score for row in table]
    assert scores == sorted(scores, reverse=True)
    # Rows of the table are noises that the data admit, each once.
    assert len({row.noise for row in table}) == len(table) >= 2


def test_known_errors_leave_no_choice():
    data = replace(outliers(), y_err=np.ones(24))
    assert choose_noise(data, SEARCH, QUICK, 1) == ("gaussian", ())


def test_lengths_that_were_rounded_are_no_counts():
    chosen, table = choose_noise(
        make_data(*load_galileo("no_shelf")),
        SEARCH,
        QUICK,
        1,
        [Equation("D**2/(c0 + c1*D)", ["D"]).program],
    )
    assert chosen != "poisson" and "poisson" in [row.noise for row in table]
