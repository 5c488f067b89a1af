"""Every noise model against brute-force quadrature that shares no code with the sampler."""

import dataclasses

import numpy as np
import pymc as pm
import pytest
from noise_quadrature import DENSITIES, N, decay, draw, grid, line, log_q_by_quadrature, x
from scipy import stats

from pmsr.data import make_data
from pmsr.equation.expression import Equation
from pmsr.evidence.evidence import make_target, seed_for, weigh
from pmsr.evidence.model import make_model, make_template
from pmsr.evidence.noise import NOISES, of_counts
from pmsr.evidence.posterior import draw_posterior, to_arviz
from pmsr.evidence.prediction import predict
from pmsr.evidence.problem import Problem
from pmsr.settings import Settings


def problem_of(noise, y, settings, **known):
    data = dataclasses.replace(make_data(x, y, names=["x"]), **known)
    return Problem.of(data, dataclasses.replace(settings, noise=noise))


SETTINGS = Settings(n_replicates=4)


@pytest.mark.parametrize("noise", list(DENSITIES))
def test_log_q_in_one_parameter_agrees_with_quadrature(noise):
    rng = np.random.default_rng(11)
    y = draw(noise, 1.3 * x, rng)
    problem = problem_of(noise, y, SETTINGS)
    found = weigh(
        Equation("c0*x", ["x"]).program, problem, SETTINGS, np.random.SeedSequence(1)
    ).evidence
    size = 12.0 if noise == "poisson" else 1.0
    points, weight = grid([(1.3 * size, 0.02 * size, 40.0 * size)], 20_001)
    bounds = problem.sigma_bounds if problem.noise.has_sigma else None
    expected = log_q_by_quadrature(noise, y, points, weight, line, bounds)
    assert found.failure is None
    # The grid, and the region beyond which the sampler does not look, are good to 0.01.
    assert abs(found.log_q - expected) < 0.01 + 3 * found.log_q_se
    assert found.log_q_se < 0.05


@pytest.mark.parametrize("noise", list(DENSITIES))
def test_log_q_in_two_parameters_agrees_with_quadrature(noise):
    rng = np.random.default_rng(12)
    y = draw(noise, 3.0 * np.exp(-0.4 * x), rng)
    problem = problem_of(noise, y, SETTINGS)
    found = weigh(
        Equation("c0*exp(c1*x)", ["x"]).program, problem, SETTINGS, np.random.SeedSequence(1)
    ).evidence
    size = 12.0 if noise == "poisson" else 1.0
    spans = [(3.0 * size, 0.2 * size, 60.0 * size), (-0.4, 0.05, 12.0)]
    points, weight = grid(spans, 301)
    bounds = problem.sigma_bounds if problem.noise.has_sigma else None
    expected = log_q_by_quadrature(noise, y, points, weight, decay, bounds)
    assert found.failure is None
    assert abs(found.log_q - expected) < 0.03 + 3 * found.log_q_se
    assert found.log_q_se < 0.1


@pytest.mark.parametrize("size", [0.05, 0.2])
def test_extra_noise_agrees_with_quadrature(size):
    rng = np.random.default_rng(13)
    errors = size * rng.uniform(0.7, 1.5, N)
    y = 1.3 * x + np.hypot(errors, 0.1) * rng.standard_normal(N)
    settings = dataclasses.replace(SETTINGS, extra_noise=True)
    problem = problem_of("gaussian", y, settings, y_err=errors)
    found = weigh(
        Equation("c0*x", ["x"]).program, problem, settings, np.random.SeedSequence(1)
    ).evidence
    points, weight = grid([(1.3, 0.02, 40.0)], 20_001)
    expected = log_q_by_quadrature(
        "extra",
        y,
        points,
        weight,
        line,
        problem.sigma_bounds,
        density=lambda y, f, s: stats.norm.logpdf(y, f, np.hypot(s, errors)),
        weigh_rows=lambda f: np.ones_like(f),  # of one parameter, linear: any constant
    )
    assert abs(found.log_q - expected) < 0.01 + 3 * found.log_q_se


@pytest.mark.parametrize("text", ["c0*x", "c0*exp(c1*x)"])
def test_counts_are_rows_that_were_seen_as_often(text):
    rng = np.random.default_rng(14)
    y = draw("gaussian", 3.0 * np.exp(-0.4 * x), rng)
    counts = rng.integers(1, 4, N)
    program = Equation(text, ["x"]).program
    often = make_data(np.repeat(x, counts), np.repeat(y, counts), names=["x"])
    once = dataclasses.replace(make_data(x, y, names=["x"]), counts=counts.astype(float))
    # The bounds of sigma are multiples of the deviation of the target, which counts change.
    problems = [Problem.of(often, SETTINGS), Problem.of(once, SETTINGS)]
    assert problems[0].gamma == pytest.approx(problems[1].gamma)
    problems[1] = dataclasses.replace(problems[1], sigma_bounds=problems[0].sigma_bounds)
    first, second = (
        weigh(program, one, SETTINGS, np.random.SeedSequence(1)).evidence for one in problems
    )
    error = np.hypot(first.log_q_se, second.log_q_se)
    assert abs(first.log_q - second.log_q) < 3 * error + 0.005
    np.testing.assert_allclose(first.theta, second.theta, rtol=1e-5)
    assert first.rmse == pytest.approx(second.rmse, rel=1e-6)


@pytest.mark.parametrize("noise", list(DENSITIES))
def test_the_density_is_that_of_scipy_and_of_pymc(noise):
    rng = np.random.default_rng(15)
    y = draw(noise, 1.3 * x, rng)
    problem = problem_of(noise, y, SETTINGS)
    law = Equation("c0*x", ["x"])
    scale = 12.0 if noise == "poisson" else 1.0
    model = make_model(law, problem)
    density = model.compile_fn(model.datalogp, point_fn=True, mode="FAST_COMPILE")
    for c0, sigma in ((1.2 * scale, 0.2), (1.5 * scale, 0.7)):
        point = {"c0": np.array(c0)}
        if problem.noise.has_sigma:
            name = next(v.name for v in model.value_vars if v.name.startswith("sigma"))
            low, high = problem.sigma_bounds
            point[name] = np.array(np.log((sigma - low) / (high - sigma)))
        expected = DENSITIES[noise](y, c0 * x, sigma).sum()
        exact = problem.exact_log_likelihood(
            law.program, np.array([[c0]]), np.log(np.array([sigma]))
        )
        assert exact[0] == pytest.approx(expected, rel=1e-10)
        flat = dataclasses.replace(problem, parameter_prior="flat")
        model = make_model(law, flat)
        density = model.compile_fn(model.datalogp, point_fn=True, mode="FAST_COMPILE")
        assert float(density(point)) == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize("noise", list(DENSITIES))
def test_intervals_are_those_of_the_posterior_predictive(noise):
    rng = np.random.default_rng(16)
    y = draw(noise, 1.3 * x, rng)
    problem = problem_of(noise, y, SETTINGS)
    law = Equation("c0*x", ["x"])
    sample = draw_posterior(law, problem, SETTINGS, seed_for(law.key, 1))
    posterior = to_arviz(law, problem, sample, np.random.SeedSequence(0))
    table = predict(posterior, x[:, None], level=0.8)
    new = np.asarray(posterior.posterior_predictive["y"]).reshape(-1, N)
    inside = (new >= table["prediction_low"].to_numpy()) & (
        new <= table["prediction_high"].to_numpy()
    )
    # 4000 draws: a standard error of 0.006; counts are discrete, and cover more.
    share = inside.mean(axis=0)
    assert np.all(share > 0.8 - 0.03)
    assert np.all(share < 0.8 + (0.2 if noise == "poisson" else 0.03))


def test_a_law_is_not_dragged_by_outliers_under_student_noise():
    rng = np.random.default_rng(17)
    y = 1.0 + 2.0 * x + 0.05 * rng.standard_normal(N)
    y[[2, 9]] += 4.0
    law = Equation("c0 + c1*x", ["x"]).program
    problem = problem_of("student", y, SETTINGS)
    found = weigh(law, problem, SETTINGS, np.random.SeedSequence(1)).evidence
    np.testing.assert_allclose(found.theta, [1.0, 2.0], atol=0.1)
    plain = problem_of("gaussian", y, SETTINGS)
    assert found.log_q > weigh(law, plain, SETTINGS, np.random.SeedSequence(1)).evidence.log_q


@pytest.mark.parametrize(
    ("noise", "y", "words"),
    [
        ("proportional", 0.0, r"never 0, got 'y' = 0 in row 3"),
        ("lognormal", -1.0, r"positive target, got 'y' = -1 in row 3"),
        ("poisson", 1.5, r"needs counts, 0, 1, 2, ..., got 'y' = 1.5 in row 3"),
    ],
)
def test_measurements_that_a_noise_cannot_have_made_are_refused(noise, y, words):
    values = np.arange(1.0, N + 1.0)
    values[3] = y
    with pytest.raises(ValueError, match=words):
        problem_of(noise, values, SETTINGS)


def test_errors_go_with_normal_noise_and_extra_noise_with_errors():
    values = np.arange(1.0, N + 1.0)
    with pytest.raises(ValueError, match=r"y_err goes with noise=\"gaussian\""):
        problem_of("student", values, SETTINGS, y_err=np.ones(N))
    with pytest.raises(ValueError, match="got no y_err"):
        problem_of("gaussian", values, dataclasses.replace(SETTINGS, extra_noise=True))


def test_rows_have_names_and_words_of_their_own():
    assert len({row.words for row in NOISES.values()}) == len(NOISES) == len(DENSITIES)
    assert [name for name, row in NOISES.items() if row.has_one_size] == ["gaussian"]
    assert [name for name, row in NOISES.items() if row.is_relative] == [
        "proportional",
        "lognormal",
    ]
    assert pm.Normal is NOISES["gaussian"].distribution(0.0, 1.0, {})[0]


CELLS = {
    "gaussian": lambda y, f, s: cell(stats.norm, y, f, s),
    "student": lambda y, f, s: cell(stats.t(4), y, f, s),
    "proportional": lambda y, f, s: cell(stats.norm, y, f, s * np.abs(f)),
    "lognormal": lambda y, f, s: np.log(
        stats.norm.cdf(np.log((y + 0.5) / f) / s) - stats.norm.cdf(np.log((y - 0.5) / f) / s)
    ),
}


def cell(law, y, f, s):
    """Log probability of the unit cell around y, on whichever side digits are kept."""
    low, high = (y - 0.5 - f) / s, (y + 0.5 - f) / s
    return np.log(
        np.where(low + high > 0.0, law.sf(low) - law.sf(high), law.cdf(high) - law.cdf(low))
    )


@pytest.mark.parametrize("noise", list(CELLS))
def test_densities_of_counts_are_probabilities_of_their_cells(noise):
    y = np.array([2.0, 5.0, 9.0, 30.0])
    f = np.array([[2.2, 4.0, 11.0, 27.0], [1.7, 5.6, 8.0, 31.0]])
    found = of_counts(NOISES[noise])
    assert (found.name, found.has_sigma, found.link) == (
        noise,
        NOISES[noise].has_sigma,
        NOISES[noise].link,
    )
    for s in (0.3, 0.7):
        np.testing.assert_allclose(
            found.log_density(y, f, np.array(s), {}), CELLS[noise](y, f, s), rtol=1e-9
        )
    # All cells together hold all probability.
    every = np.arange(1.0, 400.0)
    total = np.exp(found.log_density(every, np.array(20.0), np.array(0.1), {})).sum()
    assert total == pytest.approx(1.0, abs=1e-3)  # of the tails beyond
    # Of wide noise, and none that is narrower, the density is the probability.
    wide = [one.log_density(1e4 + y, 1e4 + f, np.array(50.0), {}) for one in (found, NOISES[noise])]
    if noise in ("gaussian", "student"):
        np.testing.assert_allclose(*wide, atol=2.0 / (24.0 * 50.0**2))


@pytest.mark.parametrize("noise", list(CELLS))
def test_log_q_of_rounded_measurements_agrees_with_quadrature(noise):
    rng = np.random.default_rng(18)
    y = np.round(2.0 * draw(noise, 1.3 * x, rng))  # noise of about a third of a unit
    problem = problem_of(noise, y, SETTINGS)
    problem = dataclasses.replace(problem, noise=of_counts(problem.noise))
    found = weigh(
        Equation("c0*x", ["x"]).program, problem, SETTINGS, np.random.SeedSequence(1)
    ).evidence
    points, weight = grid([(2.6, 0.07, 100.0)], 801)
    expected = log_q_by_quadrature(
        noise, y, points, weight, line, problem.sigma_bounds, density=CELLS[noise]
    )
    assert found.failure is None
    assert abs(found.log_q - expected) < 0.01 + 3 * found.log_q_se
    assert found.log_q_se < 0.1


@pytest.mark.parametrize("noise", list(CELLS))
def test_likelihoods_of_counts_are_those_of_their_cells_for_linear_laws_too(noise):
    rng = np.random.default_rng(19)
    y = np.round(2.0 * draw(noise, 1.3 * x, rng))
    problem = problem_of(noise, y, SETTINGS)
    problem = dataclasses.replace(problem, noise=of_counts(problem.noise))
    target = make_target(Equation("c0*x", ["x"]).program, problem, 8, rng=rng)
    theta, sigma = target.fit.minima[0].theta, 0.3
    _, found = target.densities(
        theta[None, :], np.array([np.log(sigma)]), make_template(1).log_likelihood
    )
    assert found[0] == pytest.approx(CELLS[noise](y, theta[0] * x, sigma).sum(), rel=1e-9)
