import json

import numpy as np
import pytest

from pmsr.data import load_galileo
from pmsr.evidence.diagnostics import normality, summarise_parameters
from pmsr.evidence.posterior import sample_posterior

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
