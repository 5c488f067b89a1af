"""Errors of the variables, against quadrature that shares no code with the sampler."""

import dataclasses

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import pmsr
from pmsr.data import make_data
from pmsr.equation.expression import Equation
from pmsr.evidence.evidence import make_target, weigh
from pmsr.evidence.model import make_model
from pmsr.evidence.noise import NOISES
from pmsr.evidence.problem import Problem
from pmsr.search.screening import Batch, screen
from pmsr.settings import Settings

N = 14
x = np.linspace(0.5, 4.0, N)
SETTINGS = Settings(n_replicates=4)


def line(c0):
    """f, df/dx, and df/dtheta of c0*x, of shapes (n, N), (n, N) and (n, 1, N)."""
    ones = np.ones((len(c0), N))
    return c0[:, None] * x, c0[:, None] * ones, x * ones[:, None, :]


def power(c0):
    """The same of x**c0."""
    f = x ** c0[:, None]
    return f, c0[:, None] * f / x, (f * np.log(x))[:, None, :]


def decay(c0, c1):
    """The same of c0*exp(c1*x)."""
    e = np.exp(c1[:, None] * x)
    f = c0[:, None] * e
    return f, c1[:, None] * f, np.stack([e, x * f], axis=1)


LAWS = {
    "c0*x": (line, (1.3,), [(1.3, 0.02, 4.0)], 20_001),
    "x**c0": (power, (0.8,), [(0.8, 0.01, 3.0)], 20_001),
    "c0*exp(c1*x)": (decay, (3.0, -0.4), [(3.0, 0.2, 60.0), (-0.4, 0.05, 12.0)], 301),
}


def measure(text, X_err, y_err, rng):
    """Measurements at places that are not quite where they were meant to be."""
    curve, theta, *_ = LAWS[text]
    f, slope, _ = curve(*(np.array([value]) for value in theta))
    return f[0] + np.hypot(y_err, slope[0] * X_err) * rng.standard_normal(N)


def log_q_by_quadrature(text, y, X_err, y_err, bounds, best):
    """Sum over a grid of theta and of log sigma; the volume has the weights of the best fit."""
    curve, _, spans, n = LAWS[text]
    axes, cells = [], []
    for centre, width, far in spans:
        t = np.linspace(-np.arcsinh(far / width), np.arcsinh(far / width), n)
        axes.append(centre + width * np.sinh(t))
        cells.append(width * np.cosh(t))
    theta = [a.ravel() for a in np.meshgrid(*axes, indexing="ij")]
    weight = np.prod([c.ravel() for c in np.meshgrid(*cells, indexing="ij")], axis=0)
    gamma = 1.0 / np.sqrt(N)
    with np.errstate(all="ignore"):
        f, slope, chi = curve(*theta)
        at_best = curve(*(np.array([value]) for value in best))
        variance = y_err**2 + (slope * X_err) ** 2
        extra = 0.0 if bounds is None else np.mean((y - at_best[0][0]) ** 2)
        w = (y_err**2 + (at_best[1][0] * X_err) ** 2 + extra) ** -0.5
        weighed = chi * w
        volume = 0.5 * np.linalg.slogdet(weighed @ weighed.transpose(0, 2, 1))[1]
        us = np.linspace(*np.log(bounds), 400) if bounds else np.array([-np.inf])
        terms = {1.0: [], gamma: []}
        for u in us:
            log_l = stats.norm.logpdf(y, f, np.sqrt(variance + np.exp(2.0 * u))).sum(axis=1)
            ok = np.isfinite(log_l) & np.isfinite(volume)
            for phi, parts in terms.items():
                total = np.logaddexp.reduce((phi * log_l + volume + np.log(weight))[ok])
                parts.append(total + (u if bounds else 0.0))
    total = {phi: np.logaddexp.reduce(parts) for phi, parts in terms.items()}
    return total[1.0] - total[gamma]


@pytest.mark.parametrize("text", list(LAWS))
@pytest.mark.parametrize("kind", ["known", "free", "extra"])
def test_log_q_agrees_with_quadrature(text, kind):
    rng = np.random.default_rng(21)
    X_err, y_err = 0.08 * rng.uniform(0.5, 1.5, N), 0.08 * rng.uniform(0.7, 1.3, N)
    X_err[::5] = 0.0  # some are exact
    y = measure(text, X_err, y_err, rng)
    settings = dataclasses.replace(SETTINGS, extra_noise=kind == "extra")
    known = {} if kind == "free" else {"y_err": y_err}
    data = make_data(x, y, names=["x"], X_err=X_err, **known)
    problem = Problem.of(data, settings)
    assert problem.noise.has_sigma == (kind != "known")
    found = weigh(
        Equation(text, ["x"]).program, problem, settings, np.random.SeedSequence(1)
    ).evidence
    bounds = None if kind == "known" else problem.sigma_bounds
    errors = np.zeros(N) if kind == "free" else y_err
    expected = log_q_by_quadrature(text, y, X_err, errors, bounds, found.theta)
    assert found.failure is None
    # Of the grid and of the region. The volume's weights are those of the best fit, with a sigma
    # that is only about the one of the expected value.
    assert abs(found.log_q - expected) < 0.03 + 3 * found.log_q_se
    assert found.log_q_se < 0.1


def problem_of(text, settings=SETTINGS, *, noise_seed=22, scale=1.0, **known):
    rng = np.random.default_rng(noise_seed)
    y = measure(text, 0.08, 0.08, rng)
    known = {"X_err": 0.08 * scale, "y_err": 0.08, **known}
    data = make_data(scale * x, y, names=["x"], **known)
    return Problem.of(data, settings)


@pytest.mark.parametrize("kind", ["known", "free", "extra"])
def test_the_density_of_the_model_is_that_of_the_sampler(kind):
    settings = dataclasses.replace(SETTINGS, extra_noise=kind == "extra", parameter_prior="flat")
    known = {"y_err": None} if kind == "free" else {}
    errors = np.where(np.arange(N) % 3 == 0, 0.0, 0.08)
    problem = problem_of("c0*exp(c1*x)", settings, X_err=errors, **known)
    law = Equation("c0*exp(c1*x)", ["x"])
    model = make_model(law, problem)
    density = model.compile_fn(model.datalogp, point_fn=True, mode="FAST_COMPILE")
    slope = model.compile_dlogp(mode="FAST_COMPILE")
    for c0, c1, sigma in ((3.0, -0.4, 0.1), (2.0, 0.3, 0.5)):
        point = {"c0": np.array(c0), "c1": np.array(c1)}
        sizes = np.hypot(0.0 if kind == "free" else 0.08, c0 * c1 * np.exp(c1 * x) * errors)
        if kind != "known":
            low, high = problem.sigma_bounds
            point["sigma_interval__"] = np.array(np.log((sigma - low) / (high - sigma)))
            sizes = np.hypot(sizes, sigma)
        expected = stats.norm.logpdf(problem.data.y, c0 * np.exp(c1 * x), sizes).sum()
        size = np.array([1.0 if kind == "known" else sigma])
        exact = problem.exact_log_likelihood(law.program, np.array([[c0, c1]]), np.log(size))
        assert exact[0] == pytest.approx(expected, rel=1e-10)
        assert float(density(point)) == pytest.approx(expected, rel=1e-9)
        assert np.isfinite(slope(point)).all()


def test_log_q_belongs_to_the_law_and_not_to_its_spelling_or_units():
    found = [
        weigh(Equation(text, ["x"]).program, problem, SETTINGS, np.random.SeedSequence(3)).evidence
        for text, problem in (
            ("c0*exp(c1*x)", problem_of("c0*exp(c1*x)")),
            ("c0*exp(x/c1)", problem_of("c0*exp(c1*x)")),
            ("c0*exp(c1*x)", problem_of("c0*exp(c1*x)", scale=1000.0)),
        )
    ]
    for other in found[1:]:
        error = np.hypot(found[0].log_q_se, other.log_q_se)
        assert abs(other.log_q - found[0].log_q) < 3 * error + 0.02


def test_errors_of_nothing_change_nothing():
    y = measure("c0*x", 0.08, 0.08, np.random.default_rng(4))
    for known in ({}, {"y_err": 0.08}):
        plain = Problem.of(make_data(x, y, **known), SETTINGS)
        exact = Problem.of(make_data(x, y, X_err=0.0, **known), SETTINGS)
        assert exact.noise is plain.noise
    # A law that does not depend on the variable with errors.
    X = np.column_stack([x, np.cos(7.0 * x)])
    errors = np.column_stack([np.zeros(N), np.full(N, 0.3)])
    law = Equation("c0*x0", ["x0", "x1"]).program
    first, second = (
        weigh(law, Problem.of(data, SETTINGS), SETTINGS, np.random.SeedSequence(5)).evidence
        for data in (make_data(X, y, y_err=0.08), make_data(X, y, y_err=0.08, X_err=errors))
    )
    assert abs(first.log_q - second.log_q) < 0.01 + 3 * np.hypot(first.log_q_se, second.log_q_se)


@pytest.mark.parametrize("text", ["c0", "2*x", "7"])
def test_laws_without_slope_or_parameters_are_weighed(text):
    program = Equation(text, ["x"]).program
    for known in ({}, {"y_err": None}):
        problem = problem_of("c0*x", **known)
        found = weigh(program, problem, SETTINGS, np.random.SeedSequence(6)).evidence
        assert found.failure is None and np.isfinite(found.log_q)
    # Of normal noise with a sigma, once the slope is zero.
    plain = Problem.of(make_data(x, problem.data.y, names=["x"]), SETTINGS)
    other = weigh(program, plain, SETTINGS, np.random.SeedSequence(6)).evidence
    if text != "2*x":
        assert abs(found.log_q - other.log_q) < 0.01 + 3 * np.hypot(found.log_q_se, other.log_q_se)


def test_a_slope_that_is_not_finite_is_a_failure_of_the_law():
    places = np.linspace(0.0, 3.0, N)
    y = np.sqrt(places) + 0.05 * np.cos(9.0 * places)
    problem = Problem.of(make_data(places, y, names=["x"], X_err=0.1), SETTINGS)
    law = Equation("c0*sqrt(x)", ["x"]).program
    found = weigh(law, problem, SETTINGS, np.random.SeedSequence(7)).evidence
    assert found.log_q == -np.inf and "slope is not finite" in found.failure
    errors = np.full(N, 0.1)
    errors[0] = 0.0  # where the slope is infinite, x is exact
    problem = Problem.of(make_data(places, y, names=["x"], X_err=errors), SETTINGS)
    assert weigh(law, problem, SETTINGS, np.random.SeedSequence(7)).evidence.failure is None


@pytest.mark.parametrize("noise", [name for name in NOISES if name != "gaussian"])
def test_errors_of_variables_go_with_normal_noise(noise):
    data = make_data(x, np.round(10.0 * x), X_err=0.1)
    with pytest.raises(ValueError, match=f"X_err goes with noise=.*got noise='{noise}'"):
        Problem.of(data, dataclasses.replace(SETTINGS, noise=noise))


@pytest.mark.parametrize("known", [{}, {"y_err": None}])
def test_a_screened_law_has_about_the_log_q_that_it_has_when_it_is_weighed(known):
    problem = problem_of("c0*exp(c1*x)", **known)
    laws = [Equation(t, ["x"]).program for t in ("c0*exp(c1*x)", "c0/(c1 + x)", "c0 + c1*x", "c0")]
    rng = np.random.default_rng(8)
    tuning = make_target(laws[0], problem, 8, rng=rng).problem.tuning
    found = screen(Batch.of(laws), dataclasses.replace(problem, tuning=tuning), 0)
    for law, log_q in zip(laws, found.log_q, strict=True):
        exact = weigh(law, problem, SETTINGS, np.random.SeedSequence(9)).evidence
        # The margin of contenders is seven nats; laws that fit badly are far behind in any case.
        assert abs(log_q - exact.log_q) < 1.5 or exact.log_q < found.log_q.max() - 10.0


@pytest.mark.filterwarnings("ignore::pmsr.result.doubts.ResultWarning")
def test_a_search_with_errors_of_variables_finds_the_law_and_is_saved_with_them(tmp_path):
    rng = np.random.default_rng(10)
    places = np.linspace(0.5, 4.0, 30)
    truth = places + 0.1 * rng.standard_normal(30)
    y = 2.0 * truth**2 + 0.1 * rng.standard_normal(30)
    X = pd.DataFrame({"t": places, "u": rng.uniform(1.0, 2.0, 30)})
    errors = pd.DataFrame({"t": np.full(30, 0.1)})
    fitted = pmsr.BayesianSymbolicRegressor(
        operators=("+", "*"),
        max_time=None,
        generations=1,
        population_size=20,
        random_state=1,
        verbose=False,
        search=pmsr.Search(n_enumerated=300, n_islands=1, n_finalists=3),
    ).fit(X, y, X_err=errors, y_err=0.1)
    assert str(fitted.best_.equation) == "c0*t**2"
    # Where a constant noise would have: the fit weighs rows by the slope.
    slope = 4.0 * places
    w = 1.0 / (0.1**2 + (slope * 0.1) ** 2)
    expected = np.sum(w * places**2 * y) / np.sum(w * places**4)
    assert fitted.best_.theta[0] == pytest.approx(expected, rel=0.01)
    assert np.std(fitted.best_.normal_residuals) == pytest.approx(1.0, abs=0.5)
    fitted.save(tmp_path / "saved")
    again = pmsr.load(tmp_path / "saved")
    assert again.result_.data.X_err[:, 0].tolist() == [0.1] * 30
    assert not again.result_.data.X_err[:, 1].any()
    np.testing.assert_array_equal(again.predict(X), fitted.predict(X))
    assert again.result_.problem.noise.uses_slopes
