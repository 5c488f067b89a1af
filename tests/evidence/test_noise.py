"""Normal noise, of one size and with known errors."""

import dataclasses

import numpy as np
import pytest
from scipy.stats import kstest, norm

from pmsr.data import make_data
from pmsr.equation.expression import Equation
from pmsr.evidence.evidence import linear_log_q, make_target, seed_for, weigh
from pmsr.evidence.model import make_model, make_template
from pmsr.evidence.noise import GAUSSIAN, NOISES, find_noise
from pmsr.evidence.posterior import draw_posterior, to_arviz
from pmsr.evidence.prediction import predict
from pmsr.evidence.problem import Problem
from pmsr.result.loading import load_result
from pmsr.result.searched import from_evolution
from pmsr.search.evolution import run_evolution
from pmsr.settings import QUICK, Search, Settings

SETTINGS = Settings(n_replicates=4)


def make(n=30, seed=0, curve=lambda x: 1.0 + 2.0 * x):
    rng = np.random.default_rng(seed)
    x, errors = np.linspace(0.5, 4.0, n), rng.uniform(0.1, 1.0, n)
    data = make_data(x, curve(x) + errors * rng.standard_normal(n), names=["x"])
    return dataclasses.replace(data, y_err=errors)


def exact(data, design, gamma):
    """DESIGN section 8, and the posterior of theta: mean and covariance."""
    s, (n, p) = data.y_err, design.shape
    A, y = design / s[:, None], data.y / s
    theta = np.linalg.lstsq(A, y, rcond=None)[0]
    chi2 = float(np.sum((y - A @ theta) ** 2))
    log_l = -0.5 * n * np.log(2 * np.pi) - np.sum(np.log(s)) - 0.5 * chi2
    return (1 - gamma) * log_l + 0.5 * p * np.log(gamma), theta, np.linalg.inv(A.T @ A)


def test_the_table_has_the_normal_noise():
    assert find_noise("gaussian") is GAUSSIAN is NOISES[Settings().noise]


def test_the_density_of_the_table_is_that_of_pymc():
    problem = Problem.of(dataclasses.replace(make(), y_err=None), Settings())
    line = Equation("c0 + c1*x", ["x"])
    theta, sigma = np.array([[1.0, 2.0], [0.3, 1.0]]), np.array([0.5, 2.0])
    compiled = make_template(2).log_likelihood(line.program, problem, theta, sigma)
    mu = theta[:, :1] + theta[:, 1:] * problem.data.X[:, 0]
    density = GAUSSIAN.log_density(problem.data.y, mu, sigma[:, None], {})
    np.testing.assert_allclose(density.sum(axis=1), compiled, rtol=1e-12)
    square = np.sum((problem.data.y - mu) ** 2, axis=1)
    np.testing.assert_allclose(problem.log_likelihood(square, np.log(sigma)), compiled, rtol=1e-12)


@pytest.mark.parametrize("prior", ["flat", "invariant"])
@pytest.mark.parametrize(
    ("text", "powers"), [("c0*x", (1,)), ("c0 + c1*x", (0, 1)), ("c0 + c1*x + c2*x**2", (0, 1, 2))]
)
def test_log_q_with_known_errors_is_exact_for_a_linear_law(prior, text, powers):
    data = make()
    settings = dataclasses.replace(SETTINGS, parameter_prior=prior)
    problem = Problem.of(data, settings)
    log_q, theta, _ = exact(data, data.X ** np.array(powers), problem.gamma)
    program = Equation(text, ["x"]).program
    found = weigh(program, problem, settings, np.random.SeedSequence(1)).evidence
    assert found.failure is None
    assert abs(found.log_q - log_q) < max(0.02, 3 * found.log_q_se)
    np.testing.assert_allclose(found.theta, theta, rtol=1e-6)
    residuals = data.y - data.X ** np.array(powers) @ theta
    assert found.rmse == pytest.approx(np.sqrt(np.mean(residuals**2)))
    target = make_target(program, problem, 2, rng=np.random.default_rng(0))
    assert linear_log_q(target) == pytest.approx(log_q, abs=1e-9)


def test_log_q_without_parameters_and_of_a_constant_is_exact():
    data = make()
    problem = Problem.of(data, SETTINGS)
    found = weigh(
        Equation("1 + 2*x", ["x"]).program, problem, SETTINGS, np.random.SeedSequence(1)
    ).evidence
    log_l = norm.logpdf(data.y, 1.0 + 2.0 * data.X[:, 0], data.y_err).sum()
    assert found.log_q == pytest.approx((1 - problem.gamma) * log_l)
    assert found.prior_sensitivity == 0.0
    log_q, *_ = exact(data, np.ones((30, 1)), problem.gamma)
    assert problem.constant_log_q == pytest.approx(log_q)


def test_errors_in_proportion_to_the_target_can_be_fitted():
    x = np.linspace(1.0, 4.0, 12)
    data = dataclasses.replace(make_data(x, 2.0 * x, names=["x"]), y_err=0.1 * x)
    assert np.std(data.y / data.y_err) < 1e-12
    problem = Problem.of(data, SETTINGS)
    found = weigh(
        Equation("c0*x", ["x"]).program, problem, SETTINGS, np.random.SeedSequence(1)
    ).evidence
    assert found.theta == pytest.approx([2.0])


@pytest.mark.parametrize("prior", ["flat", "invariant"])
def test_a_curved_law_with_known_errors_agrees_with_quadrature(prior):
    data = make(12, curve=lambda x: 3.0 * np.exp(-0.7 * x) + 1e-9)
    settings = dataclasses.replace(SETTINGS, parameter_prior=prior)
    problem = Problem.of(data, settings)
    found = weigh(
        Equation("exp(-c0*x)", ["x"]).program, problem, settings, np.random.SeedSequence(1)
    ).evidence
    theta = np.linspace(-3.0, 60.0, 2_000_001)
    x, s = data.X[:, 0], data.y_err
    log_l, volume = np.zeros_like(theta), np.zeros_like(theta)
    for x_i, y_i, s_i in zip(x, data.y, s, strict=True):
        f = np.exp(-theta * x_i)
        log_l += norm.logpdf(y_i, f, s_i)
        volume += (x_i * f / s_i) ** 2
    measure = np.sqrt(volume) if prior == "invariant" else np.ones_like(theta)
    inside = np.ones_like(theta, dtype=bool)
    if prior == "flat":
        target = make_target(
            Equation("exp(-c0*x)", ["x"]).program, problem, 8, rng=np.random.default_rng(0)
        )
        inside = target.inside(theta[:, None])
    top = log_l.max()
    values = [np.exp(phi * (log_l - top)) * measure * inside for phi in (1.0, problem.gamma)]
    log_z = [np.log(np.trapezoid(value, theta)) for value in values]
    expected = log_z[0] - log_z[1] + (1.0 - problem.gamma) * top
    assert abs(found.log_q - expected) < 0.02 + 3 * found.log_q_se


def test_posterior_predictions_and_model_have_known_errors_and_no_sigma():
    data = make()
    problem = Problem.of(data, SETTINGS)
    line = Equation("c0 + c1*x", ["x"])
    sample = draw_posterior(line, problem, SETTINGS, seed_for(line.key, 1))
    _, theta, covariance = exact(data, data.X ** np.arange(2), problem.gamma)
    for k in range(2):
        draws = sample.theta[:, ::4, k].ravel()
        assert kstest((draws - theta[k]) / np.sqrt(covariance[k, k]), "norm").pvalue > 1e-3
    posterior = to_arviz(line, problem, sample, np.random.SeedSequence(0))
    assert list(posterior.posterior.data_vars) == ["c0", "c1"]
    pulls = (np.asarray(posterior.posterior_predictive["y"]) - data.y) / data.y_err
    assert np.std(pulls) == pytest.approx(np.sqrt(2.0), rel=0.1)

    table = predict(posterior, [[2.0]], level=0.9)
    sd = np.sqrt(np.array([1, 2]) @ covariance @ np.array([1, 2]))
    new = np.sqrt(sd**2 + np.mean(data.y_err**2))
    assert table["std"].iloc[0] == pytest.approx(new, rel=0.05)
    assert table["prediction_high"].iloc[0] == pytest.approx(
        theta @ [1, 2] + norm.ppf(0.95) * new, rel=0.05
    )

    model = make_model(line, problem)
    assert [variable.name for variable in model.free_RVs] == ["c0", "c1"]
    density = model.compile_fn(model.datalogp, point_fn=True, mode="FAST_COMPILE")
    expected = norm.logpdf(data.y, 1.0 + 2.0 * data.X[:, 0], data.y_err).sum()
    assert float(density({"c0": 1.0, "c1": 2.0})) == pytest.approx(expected)


def test_a_search_with_known_errors_finds_the_law_and_its_result_is_saved(tmp_path):
    data = make(25, seed=3, curve=lambda x: 0.7 + 2.37 * x)
    search = Search(operators=("+", "*"), population_size=20, generations=3, max_complexity=9)
    settings = QUICK
    seeds = [Equation("c0 + c1*x", ["x"])]
    found = run_evolution(data, search=search, settings=settings, seeds=seeds, random_seed=1)
    result = from_evolution(found, data, search=search, settings=settings, random_seed=1)
    line = result["c0 + c1*x"]
    log_q, theta, _ = exact(data, data.X ** np.arange(2), 0.2)
    assert abs(line.evidence.log_q - log_q) < 0.02
    assert result.best.equation.key == line.equation.key
    assert list(line.estimates().index) == ["c0", "c1"]
    np.testing.assert_allclose(line.estimates()["best_fit"], theta, rtol=1e-6)
    mean, std = line.predict([2.0], return_std=True)
    result.save(tmp_path / "saved")
    again = load_result(tmp_path / "saved")["c0 + c1*x"].predict([2.0], return_std=True)
    np.testing.assert_array_equal(again, (mean, std))
