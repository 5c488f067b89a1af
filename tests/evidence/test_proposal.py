import mpmath
import numpy as np
import pytest
from scipy.integrate import quad, simpson

from pmsr.data import load_galileo, make_data, make_sine
from pmsr.equation.expression import Equation
from pmsr.evidence.evidence import make_target
from pmsr.evidence.problem import Problem
from pmsr.evidence.proposal import Proposal, log_sum_exp
from pmsr.evidence.scale import LogSigma
from pmsr.settings import Settings


def target_of(text, X, y, **options):
    data = make_data(X, y)
    rng = np.random.default_rng(0)
    problem = Problem.of(data, Settings(parameter_prior="flat", **options))
    return make_target(Equation(text, data.names).program, problem, 8, rng=rng)


GALILEO = ("k1*D**2/(1 + k2*D)", *load_galileo("no_shelf"))


def test_a_chart_whitens_the_jacobian():
    target = target_of(*GALILEO)
    chart, minimum = target.charts[0], target.fit.minima[0]
    np.testing.assert_allclose(chart.B @ chart.whiten, np.eye(2), atol=1e-9)
    gram = minimum.jacobian.T @ minimum.jacobian
    np.testing.assert_allclose(chart.whiten.T @ chart.whiten, gram, rtol=1e-9)
    assert chart.log_det == pytest.approx(-0.5 * np.linalg.slogdet(gram)[1])


def test_the_region_is_where_linearised_predictions_stay_within_reach():
    target = target_of(*GALILEO)
    sigma_max = target.sigma_bounds[1]
    assert target.region.radius == pytest.approx(sigma_max * (np.sqrt(2) + 4) / target.gamma**0.5)
    rng = np.random.default_rng(0)
    theta = target.fit.theta + rng.normal(size=(500, 2)) * np.abs(target.fit.theta) * 3
    distance = np.linalg.norm((theta - target.fit.theta) @ target.fit.minima[0].jacobian.T, axis=1)
    np.testing.assert_array_equal(target.inside(theta), distance <= target.region.radius)
    np.testing.assert_array_equal(target.inside(theta, 0.5), distance <= target.region.radius / 2)


@pytest.mark.parametrize(
    ("a", "b"), [(-20.0, 10.0), (3.0, 5.0), (-2.0, 1e-30), (0.0, 1.0), (-5.0, 1e12), (-1e5, 7e4)]
)
def test_the_histogram_of_log_sigma_follows_its_density(a, b):
    bounds = np.log([1e-6, 2.0])
    histogram = LogSigma.of(a, b, bounds)
    width = np.diff(histogram.edges)
    # A narrow histogram's edges are rounded: relative to its cells by eps |u| / width.
    rounding = 2.0**-52 * np.abs(bounds).max() / width.mean()
    total = np.sum(np.exp(histogram.log_density) * width)
    assert total == pytest.approx(1.0, abs=1e-9 + rounding)
    assert histogram.edges[0] >= bounds[0] - 1e-12 and histogram.edges[-1] <= bounds[1] + 1e-12
    # Its mass is an incomplete gamma function of t = b exp(-2u).
    with mpmath.workdps(40):
        t_high, t_low = (b * mpmath.exp(-2 * bound) for bound in bounds)
        integral = mpmath.gammainc(mpmath.mpf(-a) / 2, t_low, t_high) / 2
        exact = float(mpmath.log(integral) + mpmath.mpf(a) / 2 * mpmath.log(b))
    assert histogram.log_mass == pytest.approx(exact, abs=2e-3)
    draws = histogram.draw(4000, np.random.default_rng(0))
    below = np.mean(draws[:, None] <= np.quantile(draws, [0.1, 0.5, 0.9]), axis=0)
    np.testing.assert_allclose(
        np.interp(np.quantile(draws, [0.1, 0.5, 0.9]), histogram.edges, histogram.cumulative),
        below,
        atol=2 / 4000,
    )


def test_the_density_of_the_mixture_integrates_to_one():
    # One parameter and log sigma, by quadrature on a grid that follows both scales.
    target = target_of("c0**sqrt(D)", *load_galileo("no_shelf"))
    proposal = Proposal(target, (target.gamma, 1.0))
    radius, chart = target.region.radius, target.charts[0]
    rho = np.exp(np.linspace(np.log(radius) - 16, np.log(radius), 4001))
    u = np.linspace(*np.log(target.sigma_bounds), 3001)
    total = 0.0
    for sign in (-1.0, 1.0):
        theta = chart.theta + sign * rho[:, None] * chart.B[0]
        inner = [
            simpson(np.exp(proposal.log_pdf(np.repeat(t[None], len(u), 0), u)), x=u) for t in theta
        ]
        total += simpson(np.array(inner) * rho, x=np.log(rho)) * abs(chart.B[0, 0])
    # What is missing lies outside the region: the normal part's tail.
    assert 0.98 < total < 1.002


@pytest.mark.parametrize("text", ["k1*D**2/(1 + k2*D)", "c0*D**c1", "D**2/(c0 + c1*D)"])
def test_importance_sampling_between_two_mixtures_is_consistent(text):
    # E_g[h / g] = 1 for any density h whose support g covers: draws and density belong together.
    target = target_of(text, *load_galileo("no_shelf"))
    rng = np.random.default_rng(1)
    wide = Proposal(target, (target.gamma, 1.0))
    narrow = Proposal(target, (0.5, 0.5))
    n = 40_000
    draws = wide.draw(n, rng=rng)
    alive = np.isfinite(draws.theta).all(axis=1)
    ratio = np.zeros(n)
    ratio[alive] = np.exp(
        narrow.log_pdf(draws.theta[alive], draws.log_sigma[alive]) - draws.log_density[alive]
    )
    # A draw whose conditional normal does not exist (c1 so large that D**c1 overflows) is lost.
    lost = np.mean(~np.isfinite(narrow.draw(n, rng=rng).theta).all(axis=1))
    error = np.sqrt((ratio.var() + lost * (1 - lost)) / n)
    assert abs(ratio.mean() - (1.0 - lost)) < 4 * error


def test_for_a_linear_equation_the_weights_are_bounded():
    X, y = make_sine(n_points=20, sigma=0.3, random_seed=0)
    target = target_of("c0 + c1*x0 + c2*x0**2 + c3*x0**3", X, y)
    proposal = Proposal(target, (target.gamma, 1.0))
    draws = proposal.draw(2000, rng=np.random.default_rng(0))
    A = target.data.X ** np.arange(4)
    residual = target.data.y - draws.theta @ A.T
    sigma = np.exp(draws.log_sigma)
    log_likelihood = -20 * np.log(sigma) - 0.5 * np.sum(residual**2, axis=1) / sigma**2
    for phi in (target.gamma, 1.0):
        log_weight = phi * log_likelihood + draws.log_sigma - draws.log_density
        weight = np.exp(log_weight - log_sum_exp(log_weight)) * len(sigma)
        assert weight.max() < 2.1


def test_log_sum_exp_is_stable():
    assert log_sum_exp(np.array([1e4, 1e4])) == pytest.approx(1e4 + np.log(2))
    value, _ = quad(lambda t: np.exp(-t), 0, 1)
    assert log_sum_exp(np.log([value, 1 - value])) == pytest.approx(0.0, abs=1e-12)
