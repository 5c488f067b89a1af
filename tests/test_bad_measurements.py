"""Measurements that cannot be right are refused at every door, before anything runs."""

import dataclasses

import numpy as np
import pytest

from pmsr.estimator import BayesianSymbolicRegressor
from pmsr.evidence.evidence import compute_evidence
from pmsr.result.comparison import compare
from pmsr.settings import QUICK, Settings

N = 8
x = np.linspace(1.0, 2.0, N)
GOOD = 2.0 + np.arange(N)


def fit(y, noise, **measured):
    def never(told):
        raise AssertionError("the search has begun")

    regressor = BayesianSymbolicRegressor(noise=noise, callbacks=[never], verbose=never)
    return regressor.fit(x[:, None], y, **measured)


def compare_laws(y, noise, **measured):
    settings = dataclasses.replace(QUICK, noise=noise)
    return compare(["c0*x0"], x[:, None], y, settings=settings, **measured)


def evidence(y, noise, **measured):
    return compute_evidence("c0*x0", x[:, None], y, settings=Settings(noise=noise), **measured)


def with_value(value, values=GOOD):
    values = np.array(values, dtype=float)
    values[3] = value
    return values


@pytest.mark.parametrize("door", [fit, compare_laws, evidence])
@pytest.mark.parametrize(
    ("y", "noise", "measured", "words"),
    [
        (
            GOOD,
            "gaussian",
            {"y_err": with_value(-0.5)},
            r"y_err must be positive, got -0.5",
        ),
        (GOOD, "gaussian", {"y_err": with_value(0.0)}, r"y_err must be positive, got 0 in row 3"),
        (GOOD, "gaussian", {"y_err": with_value(np.nan)}, r"y_err: missing value \(NaN\) in row 3"),
        (GOOD, "gaussian", {"y_err": GOOD[:-1]}, r"y_err and y must have the same number of rows"),
        (GOOD, "gaussian", {"sample_weight": np.zeros(N)}, r"sample_weight"),
        (GOOD, "gaussian", {"sample_weight": with_value(-1.0)}, r"sample_weight must not be neg"),
        (GOOD, "student", {"y_err": np.ones(N)}, r'y_err goes with noise="gaussian"'),
        (with_value(0.0), "proportional", {}, r"never 0, got 'y' = 0 in row 3"),
        (with_value(0.0), "lognormal", {}, r"positive target, got 'y' = 0 in row 3"),
        (with_value(-2.0), "lognormal", {}, r"positive target, got 'y' = -2 in row 3"),
        (with_value(1.5), "poisson", {}, r"needs counts, 0, 1, 2, ..., got 'y' = 1.5 in row 3"),
        (with_value(-1.0), "poisson", {}, r"needs counts, 0, 1, 2, ..., got 'y' = -1 in row 3"),
        (GOOD, "cauchy", {}, r"Unknown noise 'cauchy'. Available: gaussian, student"),
    ],
)
def test_what_cannot_have_been_measured_is_refused(door, y, noise, measured, words):
    with pytest.raises(ValueError, match=words):
        door(y, noise, **measured)
