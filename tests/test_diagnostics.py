import json
import re

import numpy as np
import pandas as pd
import pytest

from pmsr.data import load_galileo
from pmsr.diagnostics import describe_doubts, normality, summarise_parameters
from pmsr.posterior import sample_posterior

SHELF = load_galileo("shelf")


def test_normal_residuals_pass_and_exponential_ones_do_not():
    rng = np.random.default_rng(1)
    assert normality(rng.normal(size=200)) > 0.05
    assert normality(rng.exponential(size=200)) < 1e-6


def test_the_units_of_the_residuals_do_not_matter():
    residuals = np.random.default_rng(1).normal(size=20)
    assert normality(1e-30 * residuals) == pytest.approx(normality(residuals))


@pytest.mark.parametrize("residuals", [[], [1.0, 2.0], [3.0] * 9, [1.0, 2.0, np.nan]])
def test_where_there_is_no_test_there_is_no_number(residuals):
    assert normality(residuals) is None


def test_many_residuals_are_thinned():
    residuals = np.random.default_rng(1).normal(size=20_001)
    assert normality(residuals) == normality(residuals[::5])


def test_parameters_are_summarised_from_all_chains():
    posterior = sample_posterior("c0 + c1*sqrt(H)", *SHELF, draws=200, chains=2, random_seed=1)
    table = summarise_parameters(posterior, level=0.5)
    assert list(table.index) == ["c0", "c1", "sigma"]
    draws = np.asarray(posterior.posterior["c1"]).ravel()
    row = table.loc["c1"]
    np.testing.assert_allclose(
        row[["mean", "sd", "low", "high"]].astype(float),
        [draws.mean(), draws.std(), *np.quantile(draws, [0.25, 0.75])],
    )
    assert row["map"] == json.loads(posterior.posterior.attrs["theta_map"])[1]
    assert 50 < row["ess"] < 1000
    assert row["r_hat"] == pytest.approx(1.0, abs=0.1)
    assert np.isnan(table.at["sigma", "map"])
    assert not table["held"].any()


def test_a_parameter_that_is_held_is_named():
    with pytest.warns(UserWarning, match="cannot be told apart"):
        posterior = sample_posterior("c0*c1**2*H", *SHELF, draws=100, chains=1, random_seed=1)
    table = summarise_parameters(posterior)
    (held,) = table.index[table["held"]]
    assert np.isnan(table.at[held, "ess"])
    assert table.at[held, "sd"] == pytest.approx(0.0, abs=1e-12)
    columns = {"log_q": [-1.0], "log_q_se": [0.1], "prior_sensitivity": [0.0]}
    doubts = describe_doubts(pd.DataFrame(columns, index=["a"]), "a", parameters=table)
    assert any(f"do not determine {held} by itself" in doubt for doubt in doubts)


def make_table(*rows):
    columns = ["log_q", "log_q_se", "prior_sensitivity"]
    return pd.DataFrame(rows, index=list("abcdef"[: len(rows)]), columns=columns)


CLEAR = make_table((-10.0, 0.1, 0.1), (-14.0, 0.1, 0.1), (-np.inf, 0.0, 0.0))
SAMPLED = pd.DataFrame(
    {"mean": [1.0], "ess": [2000.0], "r_hat": [1.0], "held": [False]}, index=["c0"]
)


def test_a_clear_result_raises_no_doubt():
    doubts = describe_doubts(
        CLEAR, "a", parameters=SAMPLED, p_normal=0.4, n_candidates=900, n_failed=90
    )
    assert doubts == []


@pytest.mark.parametrize(
    ("table", "more", "words"),
    [
        (make_table((-10.0, 0.1, 0.1), (-10.5, 0.1, 0.1)), {}, "do not decide between .* and b:"),
        (make_table((-10.0, 0.7, 0.1)), {}, "Repeated runs disagree .* 0.7"),
        (make_table((-10.0, 0.1, 3.0), (-12.0, 0.1, 0.1)), {}, "by 3 nats, more than it is ahead"),
        (make_table((np.nan, np.nan, np.nan)), {}, "chosen by its error alone"),
        (CLEAR, {"parameters": SAMPLED.assign(ess=50.0)}, "effective sample size 50, wanted 400"),
        (CLEAR, {"parameters": SAMPLED.assign(r_hat=1.2)}, "chains disagree about c0 .*1.20"),
        (CLEAR, {"p_normal": 0.001}, "do not look normal .*p = 0.001"),
        (CLEAR, {"n_candidates": 100, "n_failed": 80}, "80% of the equations"),
    ],
)
def test_each_doubt_is_said_in_words(table, more, words):
    (doubt,) = describe_doubts(table, "a", **more)
    assert re.search(words, doubt)


def test_many_rivals_are_counted():
    table = make_table(*[(-10.0 - 0.1 * k, 0.1, 0.1) for k in range(6)])
    assert "b, c, d and 2 more" in describe_doubts(table, "a")[0]
