import arviz as az
import numpy as np
import pandas as pd
import pytest
from scipy.optimize import brentq
from scipy.stats import norm

import pmsr.evidence.prediction
from pmsr.data import load_galileo
from pmsr.equation.expression import Equation
from pmsr.evidence.mixture import mixture_quantile
from pmsr.evidence.posterior import sample_posterior
from pmsr.evidence.prediction import (
    Component,
    predict,
    predict_mixture,
    read_draws,
    summarise,
    weighted_quantile,
)
from pmsr.settings import Settings

SHELF = load_galileo("shelf")
COLUMNS = [
    "mean",
    "std",
    "map",
    "credible_low",
    "credible_high",
    "prediction_low",
    "prediction_high",
]


@pytest.fixture(scope="module")
def line():
    return sample_posterior("c0 + c1*H", *SHELF, random_seed=1)


@pytest.fixture(scope="module")
def root_of_a_line():
    # Undefined left of the zero of the line.
    return sample_posterior("sqrt(c0*H + c1)", *SHELF, random_seed=1)


@pytest.mark.parametrize("level", [0.5, 0.95, 0.99])
def test_intervals_of_a_linear_model_are_exact(line, level):
    H, D = SHELF[0]["H"].to_numpy(), SHELF[1].to_numpy()
    design = np.column_stack([np.ones(5), H])
    theta, [sse], *_ = np.linalg.lstsq(design, D, rcond=None)
    # Sigma's posterior on a grid: sigma^(p + 1 - N) exp(-SSE / 2 sigma^2) in log sigma.
    u = np.linspace(*np.log(Settings().sigma_bounds(D)), 4001)
    log_density = -2 * u - sse / 2 * np.exp(-2 * u)
    weights = np.exp(log_density - log_density.max())
    weights /= weights.sum()
    sigma = np.exp(u)
    x = np.array([1.0, 450.0])
    leverage = x @ np.linalg.inv(design.T @ design) @ x
    row = predict(line, [450.0], level=level).iloc[0]
    _, _, draws, draws_sigma = read_draws(line)
    mu, n = draws @ x, len(draws)

    def distribution(t, factor):
        z = (t - x @ theta) / (sigma * np.sqrt(factor))
        return weights @ norm.cdf(z), weights @ (norm.pdf(z) / (sigma * np.sqrt(factor)))

    for side, p in (("low", (1 - level) / 2), ("high", (1 + level) / 2)):
        for kind, factor, terms in (
            ("credible", leverage, lambda t: mu <= t),
            ("prediction", 1 + leverage, lambda t: norm.cdf((t - mu) / draws_sigma)),
        ):
            exact = brentq(lambda t, f=factor, p=p: distribution(t, f)[0] - p, -1e4, 1e4)
            # An estimate of F(t) is a mean over n independent draws; the quantile's error is its
            # error divided by the density. Four standard errors.
            error = np.std(terms(exact)) / np.sqrt(n) / distribution(exact, factor)[1]
            assert abs(row[f"{kind}_{side}"] - exact) < 4 * error
    assert abs(row["mean"] - x @ theta) < 4 * mu.std() / np.sqrt(n)
    assert row["map"] == pytest.approx(x @ theta)


def test_the_table_has_the_index_of_the_table_it_was_asked_for(line):
    X_new = pd.DataFrame({"H": [400.0, 500.0]}, index=["first", "second"])
    table = predict(line, X_new, level=0.9)
    assert list(table.columns) == COLUMNS
    assert list(table.index) == ["first", "second"]
    assert table.attrs["level"] == 0.9
    np.testing.assert_array_equal(table, predict(line, np.array([[400.0], [500.0]]), level=0.9))
    np.testing.assert_array_equal(table, predict(line, X_new["H"], level=0.9))


def test_intervals_are_nested_and_grow_with_the_level(line):
    grid = np.linspace(0, 2000, 50)
    wide, narrow = predict(line, grid, level=0.95), predict(line, grid, level=0.5)
    for table in (wide, narrow):
        assert (table["prediction_low"] < table["credible_low"]).all()
        assert (table["credible_high"] < table["prediction_high"]).all()
    assert (wide["credible_low"] < narrow["credible_low"]).all()
    assert (narrow["prediction_high"] < wide["prediction_high"]).all()


@pytest.mark.parametrize("equation", ["c0*sqrt(H)", Equation("c0*sqrt(H)", ["H"])])
def test_an_equation_with_data_is_sampled_first(equation):
    X, y = SHELF
    table = predict(equation, [400.0], X=X, y=y, random_seed=4)
    posterior = sample_posterior("c0*sqrt(H)", X, y, random_seed=4)
    pd.testing.assert_frame_equal(table, predict(posterior, [400.0]))


def test_an_equation_without_parameters_predicts_its_value_and_the_noise():
    X, y = SHELF
    row = predict("47*sqrt(H)", [400.0], X=X, y=y, random_seed=4).iloc[0]
    assert row["mean"] == row["map"] == row["credible_low"] == row["credible_high"] == 940.0
    assert row["prediction_low"] < 940.0 < row["prediction_high"]


def test_predictions_survive_netcdf(line, tmp_path):
    line.to_netcdf(tmp_path / "line.nc")
    loaded = az.from_netcdf(tmp_path / "line.nc")
    pd.testing.assert_frame_equal(predict(loaded, [400.0, 900.0]), predict(line, [400.0, 900.0]))


def test_predictions_do_not_depend_on_the_size_of_a_chunk(line, monkeypatch):
    grid = np.linspace(0, 2000, 7)
    whole = predict(line, grid)
    monkeypatch.setattr(pmsr.evidence.prediction, "CHUNK", 8000)  # two points at a time
    pd.testing.assert_frame_equal(predict(line, grid), whole, rtol=1e-12)


def test_draws_that_are_not_finite_are_left_out_with_a_warning(root_of_a_line):
    _, _, theta, _ = read_draws(root_of_a_line)
    inside = theta @ [30.0, 1.0]
    defined = np.sqrt(inside[inside > 0])
    assert 0.5 < len(defined) / len(inside) < 0.9
    with pytest.warns(UserWarning, match=r"in 2 of 3 rows .* row 2 .* with \d+\.\d% .* \(1 rows\)"):
        table = predict(root_of_a_line, [[800.0], [30.0], [-100.0]])
    np.testing.assert_allclose(table.loc[1, "mean"], defined.mean())
    np.testing.assert_allclose(
        table.loc[1, ["credible_low", "credible_high"]].to_list(),
        np.quantile(defined, [0.025, 0.975]),
    )
    assert table.loc[0].notna().all()
    assert table.loc[2].isna().all()


@pytest.mark.parametrize("level", [0, 1, -0.1, 95, np.nan, True, "0.95", None])
def test_a_level_outside_the_unit_interval_is_refused(line, level):
    with pytest.raises(ValueError, match=r"level must be in \(0, 1\), got .*Use 0.95 for 95 %"):
        predict(line, [400.0], level=level)


def test_an_equation_without_data_is_refused():
    with pytest.raises(ValueError, match=r"'c0\*H' needs data to be sampled. Pass X= and y="):
        predict("c0*H", [400.0], X=SHELF[0])


def test_a_posterior_with_data_is_refused(line):
    with pytest.raises(ValueError, match="go with an equation, got them with a posterior"):
        predict(line, [400.0], X=SHELF[0], y=SHELF[1])


@pytest.mark.parametrize("thing", [None, 3, np.zeros(3)])
def test_what_is_no_posterior_is_refused(thing):
    with pytest.raises(ValueError, match=f"result of sample_posterior.*got {type(thing).__name__}"):
        predict(thing, [400.0])


def test_new_data_without_the_variable_are_refused(line):
    with pytest.raises(ValueError, match="X lacks the column 'H'"):
        predict(line, pd.DataFrame({"h": [400.0]}))


@pytest.mark.parametrize("probability", [1e-6, 0.025, 0.5, 0.999])
def test_the_quantile_of_one_component_is_the_normal_one(probability):
    for scale in (1e-30, 1.0, 1e30):
        [value] = mixture_quantile(probability, np.array([[3 * scale]]), np.array([2 * scale]))
        assert value == pytest.approx(norm.ppf(probability, 3 * scale, 2 * scale), rel=1e-12)


@pytest.mark.parametrize("probability", [0.01, 0.3, 0.975])
@pytest.mark.parametrize("spread", [0.0, 1.0, 1e3, 1e9])
def test_the_quantile_of_a_mixture_solves_its_equation(probability, spread):
    rng = np.random.default_rng(3)
    mu = spread * rng.standard_cauchy((501, 4))
    sigma = rng.exponential(size=501) + 1e-3
    values = mixture_quantile(probability, mu, sigma)
    for column, value in zip(mu.T, values, strict=True):
        exact = brentq(
            lambda t, mu=column: np.mean(norm.cdf((t - mu) / sigma)) - probability,
            column.min() - 50,
            column.max() + 50,
            xtol=1e-12,
            rtol=1e-14,
        )
        assert value == pytest.approx(exact, rel=1e-9, abs=1e-9)


def test_a_summary_is_nan_where_fewer_than_half_of_the_draws_are_finite():
    mu = np.array(
        [[1.0, np.nan, np.nan], [2.0, np.inf, -np.inf], [3.0, 5.0, 1.0], [4.0, 5.0, np.nan]]
    )
    summary = summarise(mu, np.ones(4), 0.95)
    assert np.isfinite(summary[:, :2]).all()
    assert np.isnan(summary[:, 2]).all()
    np.testing.assert_allclose(summary[[0, 2, 3], 1], 5.0)


def test_a_new_observation_varies_with_theta_and_sigma(line):
    row = predict(line, [450.0]).iloc[0]
    _, _, theta, sigma = read_draws(line)
    mu = theta @ [1.0, 450.0]
    assert row["std"] == pytest.approx(np.sqrt(mu.var() + np.mean(sigma**2)))
    noise = np.random.default_rng(0).standard_normal((len(mu), 100))
    new = mu[:, None] + sigma[:, None] * noise
    # Its own error: the draws of sigma have heavy tails.
    assert row["std"] == pytest.approx(new.std(), rel=0.02)


def two_components(line, root_of_a_line, points, shares):
    parts = []
    for posterior, share in zip((line, root_of_a_line), shares, strict=True):
        equation, _, theta, sigma = read_draws(posterior)
        parts.append(Component(equation.program, theta, sigma, points, share))
    return parts


@pytest.mark.parametrize("level", [0.5, 0.95])
@pytest.mark.parametrize("H", [450.0, 1200.0])
def test_intervals_of_a_mixture_are_those_of_its_distribution(line, root_of_a_line, level, H):
    parts = two_components(line, root_of_a_line, np.array([[H]]), (0.3, 0.1))
    summary, undefined = predict_mixture(parts, level)
    assert not undefined.any()
    mu = [parts[0].theta @ [1.0, H], np.sqrt(parts[1].theta @ [H, 1.0])]
    sigma = [part.sigma for part in parts]
    assert summary[0, 0] == pytest.approx(0.75 * mu[0].mean() + 0.25 * mu[1].mean())

    def prediction(t):
        first, second = (norm.cdf((t - m) / s).mean() for m, s in zip(mu, sigma, strict=True))
        return 0.75 * first + 0.25 * second

    def credible(t):
        return 0.75 * np.mean(mu[0] <= t) + 0.25 * np.mean(mu[1] <= t)

    for row, p in ((4, (1 - level) / 2), (5, (1 + level) / 2)):
        exact = brentq(lambda t, p=p: prediction(t) - p, -1e5, 1e5, xtol=1e-9)
        assert summary[row, 0] == pytest.approx(exact, abs=1e-6)
        # The distribution of theta alone is a staircase with 4000 steps for each equation.
        assert credible(summary[row - 2, 0]) == pytest.approx(p, abs=1 / 4000)


def test_a_mixture_of_one_equation_with_itself_is_that_equation(line):
    points = np.array([[300.0], [450.0]])
    both = two_components(line, line, points, (0.9, 0.1))
    alone, _ = predict_mixture(both[:1], 0.9)
    np.testing.assert_allclose(predict_mixture(both, 0.9)[0], alone, rtol=1e-4)
    np.testing.assert_allclose(
        predict_mixture([part._replace(probability=1.0) for part in both], 0.9)[0][[0, 1, 4, 5]],
        alone[[0, 1, 4, 5]],
        rtol=1e-12,
    )


def test_a_mixture_leaves_out_what_is_not_finite(line, root_of_a_line):
    points = np.array([[-5000.0]])
    parts = two_components(line, root_of_a_line, points, (0.6, 0.4))
    summary, undefined = predict_mixture(parts, 0.9)
    lost = np.mean(parts[1].theta @ [-5000.0, 1.0] < 0)
    assert lost > 0.9
    np.testing.assert_allclose(undefined, 0.4 * lost)
    if lost == 1.0:
        np.testing.assert_allclose(
            summary[[0, 1, 4, 5]], predict_mixture(parts[:1], 0.9)[0][[0, 1, 4, 5]], rtol=1e-9
        )
    parts = [part._replace(probability=p) for part, p in zip(parts, (0.1, 0.9), strict=True)]
    assert np.isnan(predict_mixture(parts, 0.9)[0]).all()


def test_equal_weights_give_the_quantiles_of_numpy():
    values = np.random.default_rng(0).standard_normal(101)
    tails = (0.0, 0.025, 0.5, 0.9, 1.0)
    weighted = weighted_quantile(tails, values, np.full(101, 1 / 101))
    np.testing.assert_allclose(weighted, np.quantile(values, tails), atol=1e-12)


def test_a_weight_counts_like_that_many_values():
    values, weights = np.array([1.0, 2.0, 5.0]), np.array([1.0, 6.0, 1.0])
    repeated = np.repeat(values, (1000 * weights).astype(int))
    tails = (0.05, 0.5, 0.6)
    # Linear between the middles of the weights instead of a staircase: the same where it is flat.
    assert weighted_quantile((0.5,), values, weights) == pytest.approx(np.quantile(repeated, 0.5))
    weighted = weighted_quantile(tails, values, weights)
    assert np.all(np.diff(weighted) >= 0) and weighted[0] < 2.0
    assert weighted_quantile((0.3, 0.8), np.array([4.0]), np.ones(1)).tolist() == [4.0, 4.0]
