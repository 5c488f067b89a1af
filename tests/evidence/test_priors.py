"""Priors of parameters, against brute force on grids."""

from dataclasses import replace

import numpy as np
import pymc as pm
import pytest
from scipy import stats
from scipy.integrate import trapezoid
from scipy.special import logsumexp

import pmsr
from pmsr.evidence.priors import Given, Normal
from pmsr.settings import FINALIST, Settings

N_ERRORS = 4.0  # of 20 comparisons, one in a thousand is beyond


def _decay(seed, n=15):
    rng = np.random.default_rng(seed)
    x = np.linspace(0.2, 3.0, n)
    return x, 3.0 * np.exp(-0.8 * x) + 0.1 * rng.standard_normal(n)


def _grid_decay(x, y, prior, sigma_max, errors=None, scaled=True):
    """Log q of c0*exp(-k*x), or of exp(-k*x), and moments of k, on a grid of k and sigma."""
    n = len(y)
    # From end to end of the prior: a grid would miss an edge by half of its step.
    k = np.linspace(prior.ppf(1e-15), prior.ppf(1.0 - 1e-12), 40_001)
    shape = np.exp(-k[:, None] * x)
    std = np.std(y)
    log_sigma = np.linspace(np.log(1e-6 * std), np.log(sigma_max * std), 1501)
    w = 1.0 if errors is None else 1.0 / errors
    a, b = shape * w, y * w
    amplitude = (a @ b) / np.sum(a * a, axis=1) if scaled else np.ones(len(k))
    sse = np.sum((b - amplitude[:, None] * a) ** 2, axis=1)
    log_prior = prior.logpdf(k)
    gamma, logs = 1.0 / np.sqrt(n), []
    for phi in (gamma, 1.0):
        # Given k, the volume of c0 cancels what its normal integral leaves.
        constant = -0.5 * phi * n * np.log(2.0 * np.pi)
        constant += 0.5 * np.log(2.0 * np.pi / phi) * scaled
        if errors is None:
            u = log_sigma
            over = (1.0 + scaled - phi * n) * u - 0.5 * phi * sse[:, None] * np.exp(-2.0 * u)
            top = over.max(axis=1)
            inner = top + np.log(trapezoid(np.exp(over - top[:, None]), u, axis=1))
        else:
            inner = -0.5 * phi * sse - phi * np.sum(np.log(errors))
        logs.append(constant + inner + log_prior)
    tops = [one.max() for one in logs]
    log_z = [
        top + np.log(trapezoid(np.exp(one - top), k)) for one, top in zip(logs, tops, strict=True)
    ]
    weight = np.exp(logs[1] - logsumexp(logs[1]))
    mean = weight @ k
    return log_z[1] - log_z[0], mean, np.sqrt(weight @ (k - mean) ** 2)


@pytest.mark.parametrize(
    ("prior", "same"),
    [
        (lambda: pm.Gamma.dist(alpha=4.0, beta=4.0), stats.gamma(4.0, scale=0.25)),
        (lambda: pm.HalfNormal.dist(sigma=0.3), stats.halfnorm(0.0, 0.3)),
        (lambda: pm.Uniform.dist(0.9, 2.0), stats.uniform(0.9, 1.1)),
    ],
    ids=["gamma", "half-normal", "uniform"],
)
@pytest.mark.parametrize("is_known", [False, True], ids=["sigma free", "errors known"])
def test_a_curved_parameter_with_a_prior_matches_quadrature(prior, same, is_known):
    x, y = _decay(6)
    errors = np.full(len(y), 0.1) if is_known else None
    for law, scaled in (("c0*exp(-c1*x0)", True), ("3*exp(-c1*x0)", False)):
        found = pmsr.compute_evidence(
            law, x, y, y_err=errors, priors={"c1": prior()}, settings=FINALIST, random_seed=2
        )
        own = y if scaled else y / 3.0
        own_errors = errors if errors is None or scaled else errors / 3.0
        exact = _grid_decay(x, own, same, Settings().sigma_max, own_errors, scaled)[0]
        # y/3 is in other units: log q changes by -(1 - gamma) N log 3.
        exact -= 0.0 if scaled else (1.0 - len(y) ** -0.5) * len(y) * np.log(3.0)
        assert found.log_q_se < 0.05
        assert found.log_q == pytest.approx(exact, abs=N_ERRORS * found.log_q_se + 2e-3), law


def test_two_curved_parameters_match_quadrature_on_the_surface_of_the_one_without_a_prior():
    rng = np.random.default_rng(8)
    x = np.linspace(1.2, 4.0, 12)
    y = 2.0 * x**1.5 + 0.3 * rng.standard_normal(12)
    found = pmsr.compute_evidence(
        "c0*x0**c1", x, y, priors={"c0": pm.Gamma.dist(alpha=9, beta=4)}, settings=FINALIST,
        random_seed=3,
    )  # fmt: skip
    n, std = len(y), np.std(y)
    c0 = np.linspace(0.02, 12.0, 600)[:, None]
    c1 = np.linspace(-12.0, 12.0, 4001)[None, :]
    shape = np.exp(c1[..., None] * np.log(x))
    s2, sy, log_volume = np.sum(shape**2, -1), shape @ y, None
    sse = y @ y - 2.0 * c0 * sy + c0**2 * s2
    log_volume = np.log(c0) + 0.5 * np.log(np.sum((shape * np.log(x)) ** 2, -1))
    sse = np.clip(sse, 1e-12, None)
    u = np.linspace(np.log(1e-6 * std), np.log(Settings().sigma_max * std), 2001)
    knots = np.linspace(np.log(sse.min()) - 0.1, np.log(sse.max()) + 0.1, 3001)
    logs = []
    for phi in (n**-0.5, 1.0):
        over = (1.0 - phi * n) * u - 0.5 * phi * np.exp(knots[:, None] - 2.0 * u)
        top = over.max(axis=1)
        table = top + np.log(trapezoid(np.exp(over - top[:, None]), u, axis=1))
        inner = np.interp(np.log(sse), knots, table) + log_volume
        inner = inner + stats.gamma(9, scale=0.25).logpdf(c0)
        top = inner.max()
        total = trapezoid(trapezoid(np.exp(inner - top), c1[0], axis=1), c0[:, 0])
        logs.append(top + np.log(total) - 0.5 * phi * n * np.log(2.0 * np.pi))
    assert found.log_q == pytest.approx(logs[1] - logs[0], abs=N_ERRORS * found.log_q_se + 5e-3)


def test_posterior_draws_of_a_parameter_with_a_prior_match_quadrature():
    x, y = _decay(9)
    prior, same = pm.Gamma.dist(alpha=40.0, beta=40.0), stats.gamma(40.0, scale=1 / 40.0)
    idata = pmsr.sample_posterior(
        "c0*exp(-c1*x0)", x, y, priors={"c1": prior}, random_seed=1, draws=2000
    )
    _, mean, deviation = _grid_decay(x, y, same, Settings().sigma_max)
    draws = np.asarray(idata.posterior["c1"]).ravel()
    n = 2000.0  # effective, at the very least
    assert draws.mean() == pytest.approx(mean, abs=N_ERRORS * deviation / np.sqrt(n))
    assert draws.std() == pytest.approx(deviation, rel=N_ERRORS / np.sqrt(2.0 * n))


def test_the_prior_belongs_to_the_parameter_and_not_to_the_spelling():
    x, y = _decay(10)
    priors = {"k": (0.7, 0.05)}
    logs = [
        pmsr.compute_evidence(
            pmsr.Equation(text, ["x0"], ["k"]), x, y, priors=priors, settings=FINALIST,
            random_seed=4,
        )
        for text in ("c0*exp(-k*x0)", "c0/exp(k*x0)", "exp(-k*x0)/c5")
    ]  # fmt: skip
    for other in logs[1:]:
        error = np.hypot(logs[0].log_q_se, other.log_q_se)
        assert other.log_q == pytest.approx(logs[0].log_q, abs=N_ERRORS * error + 1e-3)


def test_parameters_with_priors_are_found_by_name():
    given = Given.of(("a", "b", "c"), {"c": Normal(0.0, 1.0), "a": Normal(2.0, 1.0)})
    assert given.places == (0, 2)
    assert given.among((0, 2)).places == (0, 1)


def _orthant(mean, covariance):
    """Probability that two normal numbers are positive, by a grid of the first."""
    deviation = np.sqrt(covariance[0, 0])
    first = mean[0] + deviation * np.linspace(-12.0, 12.0, 200_001)
    slope = covariance[0, 1] / covariance[0, 0]
    rest = np.sqrt(covariance[1, 1] - slope * covariance[0, 1])
    inside = stats.norm.sf(-(mean[1] + slope * (first - mean[0])) / rest)
    density = stats.norm.pdf(first, mean[0], deviation) * inside * (first > 0.0)
    return trapezoid(density, first)


@pytest.mark.parametrize("x_mean", [0.0, 2.0])
def test_parameters_that_keep_their_signs_have_half_of_each_direction(x_mean):
    rng = np.random.default_rng(12)
    x, errors = x_mean + np.linspace(-1.0, 1.0, 12), np.full(12, 0.5)
    y = 0.3 - 0.4 * x + errors * rng.standard_normal(12)
    found, whole = (
        pmsr.compute_evidence(
            "c0 + c1*x0", x, y, y_err=errors, random_seed=1,
            settings=replace(FINALIST, positive=positive),
        )
        for positive in (True, False)
    )  # fmt: skip
    design = np.column_stack([np.ones(12), x]) / errors[:, None]
    covariance = np.linalg.inv(design.T @ design)
    mean = covariance @ design.T @ (y / errors)
    signs = np.sign(mean)
    flipped = covariance * np.outer(signs, signs)
    exact = np.log(_orthant(np.abs(mean), flipped))
    exact -= np.log(_orthant(np.abs(mean), flipped * np.sqrt(12.0)))
    error = np.hypot(found.log_q_se, whole.log_q_se)
    assert found.log_q - whole.log_q == pytest.approx(exact, abs=N_ERRORS * error + 1e-3)


def test_draws_keep_the_signs_of_the_best_fit():
    x, y = _decay(13)
    settings = Settings(positive=True)
    idata = pmsr.sample_posterior("c0*exp(c1*x0)", x, y, settings=settings, random_seed=1)
    assert np.all(np.asarray(idata.posterior["c0"]) > 0.0)
    assert np.all(np.asarray(idata.posterior["c1"]) < 0.0)
    target = pmsr.fit_equation("c0*exp(c1*x0)", x, y, settings=settings, random_seed=1)
    model = pmsr.build_model("c0*exp(c1*x0)", x, y, settings=settings, region=target.region)
    log_density = model.compile_logp()
    point = model.initial_point()
    assert np.isfinite(log_density(point))
    assert log_density({**point, "c1": np.array(0.1)}) == -np.inf
