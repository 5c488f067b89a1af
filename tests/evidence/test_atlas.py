from dataclasses import replace

import numpy as np
import pymc as pm
import pytest
from quadrature import CHARTS, Chart, surface_log_q
from scipy.stats import norm

from pmsr.data import load_galileo, make_data
from pmsr.equation.expression import Equation
from pmsr.equation.kernels import kernel_sums
from pmsr.evidence.atlas import Atlas, find_factors
from pmsr.evidence.evidence import compute_evidence, fit_equation, make_target
from pmsr.evidence.problem import Problem
from pmsr.evidence.scale import ScaleLaw
from pmsr.settings import FINALIST, Settings

INVARIANT = Settings(parameter_prior="invariant")
FINAL = replace(FINALIST, parameter_prior="invariant")
NO_SHELF = load_galileo("no_shelf")
X = np.linspace(0.2, 5.0, 20)
ENZYME = make_data(X, 3.0 * X / (1.0 + X) + 0.1 * np.random.default_rng(5).standard_normal(20))


def target(text, data=ENZYME, settings=INVARIANT):
    law = Equation(text, data.names)
    problem = Problem.of(data, settings)
    return make_target(law.program, problem, 8, rng=np.random.default_rng(0))


@pytest.mark.parametrize(("a", "log_b"), [(-3.5, 1.0), (-40.0, -6.0), (0.7, 0.0)])
def test_the_law_of_sigma_is_a_density_and_is_what_is_drawn(a, log_b):
    bounds = np.log([1e-3, 2.0])
    law = ScaleLaw(a, (-20.0, 5.0), bounds)
    u = np.linspace(*bounds, 200_001)
    density = np.exp(law.log_pdf(u, np.full(len(u), log_b)))
    assert np.trapezoid(density, u) == pytest.approx(1.0, abs=1e-3)
    exact = a * u - np.exp(log_b - 2.0 * u)
    exact = np.exp(exact - exact.max())
    exact /= np.trapezoid(exact, u)
    assert np.trapezoid(np.abs(density - exact), u) < 0.01
    drawn = law.draw(np.full(20_000, log_b), np.random.default_rng(1))
    sd = np.sqrt(np.trapezoid(density * u**2, u) - np.trapezoid(density * u, u) ** 2)
    mean = np.trapezoid(density * u, u)
    assert abs(drawn.mean() - mean) < 4.0 * sd / np.sqrt(len(drawn))


def test_the_density_of_an_atlas_is_that_of_its_draws():
    # Importance weights of one atlas by another have a mean of one.
    wide = Atlas.around(target("c0*x0/(c1 + x0)"), (0.3, 1.0))
    draws = wide.draw(20_000, rng=np.random.default_rng(0))
    other = wide.at(1.0)
    ratio = np.exp(other.log_pdf(draws.theta, draws.log_sigma, draws.look) - draws.log_density)
    se = ratio.std() / np.sqrt(len(ratio))
    assert se < 0.05 and abs(ratio.mean() - 1.0) < 4.0 * se


def test_the_region_is_where_predictions_are_near_and_no_pole_is_between_rows():
    law = target("c0*x0/(c1 + x0)")
    best = law.fit.minima[0].theta
    theta = np.array([best, 1e3 * best, [best[0], -1.0]])  # near, far, a pole at x0 = 1
    np.testing.assert_array_equal(law.inside(theta), [True, False, False])
    log_prior = law.log_prior(theta, np.full(3, np.log(0.1)))
    chi = np.column_stack([X / (best[1] + X), -best[0] * X / (best[1] + X) ** 2])
    volume = 0.5 * np.linalg.slogdet(chi.T @ chi)[1]
    assert log_prior[0] == pytest.approx(np.log(0.1) + volume)
    assert np.all(np.isneginf(log_prior[1:]))


SPELLINGS = [
    ("k1*D**2/(1 + k2*D)", "D**2/(c0 + c1*D)", "D/(c0/D + c1)"),
    ("c0*D**c1", "exp(c0)*D**c1", "c0*exp(c1*log(D))"),
]


@pytest.mark.parametrize("spellings", SPELLINGS, ids=lambda texts: texts[0])
def test_log_q_belongs_to_the_law_and_not_to_its_spelling(spellings):
    found = [compute_evidence(s, *NO_SHELF, settings=FINAL, random_seed=1) for s in spellings]
    assert all(one.log_q_se < 0.05 for one in found)
    for one in found[1:]:
        se = np.hypot(one.log_q_se, found[0].log_q_se)
        assert abs(one.log_q - found[0].log_q) < 4.0 * se


def test_log_q_does_not_depend_on_the_unit_of_a_variable():
    found = [
        compute_evidence("c0*D**c1", NO_SHELF[0] * s, NO_SHELF[1], settings=FINAL, random_seed=1)
        for s in (1.0, 1e-6, 1e6)
    ]
    for one in found[1:]:
        se = np.hypot(one.log_q_se, found[0].log_q_se)
        assert abs(one.log_q - found[0].log_q) < 4.0 * se


@pytest.mark.parametrize("noise", ["proportional", "lognormal", "poisson"])
def test_log_q_does_not_depend_on_the_unit_of_a_variable_where_noise_multiplies(noise):
    # In log c0 the law is straight; c0 itself goes with a power of the unit.
    rng = np.random.default_rng(20)
    x, law = np.linspace(0.5, 4.0, 14), Equation("c0*x**c1", ["x"])
    f = 4.0 * np.sqrt(x)
    y = rng.poisson(4.0 * f) if noise == "poisson" else f * np.exp(0.08 * rng.standard_normal(14))
    own, other = (
        compute_evidence(law, unit * x, y, noise=noise, settings=FINALIST, random_seed=1)
        for unit in (1.0, 1e6)
    )
    assert other.log_q_se < 0.03
    assert abs(own.log_q - other.log_q) < 3 * np.hypot(own.log_q_se, other.log_q_se)


def test_a_target_below_zero_has_the_log_q_of_its_mirror_image():
    x = np.linspace(0.5, 4.0, 14)
    y = 4.0 * np.sqrt(x) * np.exp(0.08 * np.random.default_rng(20).standard_normal(14))
    above, below = (
        compute_evidence("c0*x0**c1", 1e3 * x, sign * y, noise="proportional", random_seed=1)
        for sign in (1.0, -1.0)
    )
    assert below.log_q == pytest.approx(above.log_q, abs=1e-6)


@pytest.mark.parametrize(
    ("text", "places"),
    [
        ("c0*x**c1", [0]),
        ("x/(c0*exp(c1*x))", [0]),
        ("c1*exp(c0/x)*x**3", [1]),
        ("c0*(c1 + x)", []),  # c0 < 0 where c1 is below all x
        ("c0*(c1 + x)**2", [0]),
        ("c0*(c1 + x)**3", []),
        ("c0*x**c0", []),
        ("c0*x*exp(c0*x)", []),
        ("c0*c1*x", []),
        ("c0 + c1*x", []),
    ],
)
def test_a_factor_is_what_multiplies_a_law_that_else_keeps_its_sign(text, places):
    assert find_factors(Equation(text, ["x"]).program) == places


def test_a_law_that_is_linear_has_the_flat_priors_log_q():
    for text in ("c0 + c1*D", "c0*sqrt(D)"):
        flat, invariant = (
            compute_evidence(text, *NO_SHELF, settings=s, random_seed=1)
            for s in (replace(FINAL, parameter_prior="flat"), FINAL)
        )
        assert flat.log_q == invariant.log_q


def noisy(low, high, n, law, sigma):
    rng = np.random.default_rng(3)
    x = np.sort(rng.uniform(low, high, n))
    return x, law(x) + sigma * rng.standard_normal(n)


def test_the_sum_over_charts_is_compiled_once_for_any_number_of_parameters():
    x, y = noisy(0.5, 3.0, 12, lambda x: 2.0 * np.exp(-0.7 * x) + 0.3 * x, 0.1)
    for text in ("c0*exp(c1*x0)", "c0*x0/(c1 + x0**c2)", "exp(c0*x0)/(c1 + x0**c2)"):
        assert compute_evidence(text, x, y, random_seed=1).failure is None
    assert len(kernel_sums.signatures) == 1


DECAY = noisy(0.5, 3.0, 8, lambda x: 2.0 * np.exp(-0.7 * x), 0.1)
OFFSET = noisy(0.5, 4.0, 20, lambda x: 1.0 + 2.0 * np.exp(-1.1 * x), 0.1)
WAVE = noisy(0.5, 4.0, 10, lambda x: 2.0 * np.sin(1.3 * x), 0.2)
NEGATIVE = noisy(0.5, 4.0, 12, lambda x: 2.0 * x - 1.5, 0.5)
RATIO = noisy(0.2, 5.0, 10, lambda x: (1.0 + 3.0 * x) / (1.0 + x), 0.05)


@pytest.mark.parametrize(
    ("text", "chart", "data"),
    [
        ("c0*exp(c1*x0)", "c0*exp(c1*x)", DECAY),
        ("exp(c0*x0)", "exp(c0*x)", DECAY),
        # Aliases: without a rule these differ by nats, and neither is right.
        ("c0*sin(c1*x0)", "c0*sin(c1*x)", WAVE),
        ("c0*sin(x0/c1)", "c0*sin(c1*x)", WAVE),
        # The fit is singular, the law is not.
        ("c0**2 + c1*x0", "c0**2 + c1*x", NEGATIVE),
        # Poles between the rows would have most of Z(gamma).
        ("(c0 + c1*x0)/(c2 + x0)", "(c0 + c1*x)/(c2 + x)", RATIO),
        # The end of a ridge that is straight in 1/c2, or in log c1.
        ("c0 + exp(c1*x0)/c2", "c0*exp(c1*x) + c2", OFFSET),
        ("c0*c1**x0 + c2", "c0*exp(c1*x) + c2", OFFSET),
    ],
)
def test_log_q_is_that_of_brute_force(text, chart, data):
    exact = surface_log_q(CHARTS[chart], *data, tolerance=2e-3)
    found = [compute_evidence(text, *data, settings=FINAL, random_seed=k) for k in range(2)]
    assert all(one.failure is None and one.log_q_se <= 0.05 for one in found)
    se = np.sqrt(np.sum([one.log_q_se**2 for one in found])) / 2.0
    # Brute force is good to its tolerance at both temperatures.
    assert abs(np.mean([one.log_q for one in found]) - exact) <= 4.0 * se + 4e-3


def test_a_law_that_covers_half_of_a_surface_gains_what_brute_force_says():
    names = ("exp(c0 + c1*x) + c2", "c0*exp(c1*x) + c2")
    half, whole = (
        compute_evidence(name.replace("x)", "x0)"), *OFFSET, settings=FINAL, random_seed=0)
        for name in names
    )
    exact = [surface_log_q(CHARTS[name], *OFFSET, tolerance=2e-3) for name in names]
    se = np.hypot(half.log_q_se, whole.log_q_se)
    assert exact[0] - exact[1] > 0.05
    assert abs(half.log_q - whole.log_q - (exact[0] - exact[1])) <= 4.0 * se + 8e-3


def test_the_roots_of_a_cubic_need_no_more_than_two_starts():
    x = np.linspace(-2.0, 2.0, 15)
    y = 0.8 * (x - 1.2) * (x + 0.3) * (x + 1.5) + 0.2 * np.random.default_rng(1).standard_normal(15)
    text = "c0*(c1 + x0)*(c2 + x0)*(c3 + x0)"
    few, many = (
        compute_evidence(text, x, y, settings=replace(FINAL, n_multistarts=n), random_seed=1)
        for n in (2, 16)
    )
    se = np.hypot(few.log_q_se, many.log_q_se)
    assert max(few.log_q_se, many.log_q_se) <= 0.05 and abs(few.log_q - many.log_q) <= 4.0 * se
    copies = target(text, make_data(x, y), replace(INVARIANT, n_multistarts=2)).fit.minima
    assert sum(np.isclose(one.sse, copies[0].sse) for one in copies) == 6


def test_a_law_whose_best_fit_is_at_infinity_is_weighed():
    x = np.linspace(1.0, 2.0, 8)
    y = 3.0 + x + 0.3 * np.random.default_rng(1).standard_normal(8)
    found = compute_evidence("tanh(c0)", x, y, settings=FINAL, random_seed=0)
    exact = surface_log_q(Chart(lambda t, x: t + 0.0 * x, "none"), x, y)
    assert found.failure is None
    assert abs(found.log_q - exact) <= 4.0 * found.log_q_se + 2e-3


def test_redundant_parameters_are_held_where_the_others_have_an_effect():
    data = load_galileo("shelf")
    for seed in range(3):
        found = compute_evidence(
            "sqrt(c0*H + c1**(c2**c3))", *data, settings=INVARIANT, random_seed=seed
        )
        assert found.failure is None and found.rank == 2


def test_a_sampled_inverse_is_reported_as_the_parameter_itself():
    fitted = target("c0*sin(x0/c1) + c2")
    assert fitted.fit.inverted == (1,)
    theta = np.array([minimum.theta for minimum in fitted.fit.minima[:1]])
    assert fitted.fit.full_theta(theta)[0, 1] == pytest.approx(1.0 / theta[0, 1])
    assert fitted.fit.theta[1] == pytest.approx(1.0 / theta[0, 1])


def test_a_law_that_is_linear_once_redundant_parameters_are_held_is_that_linear_law():
    shelf = load_galileo("shelf")
    line = compute_evidence("c0*H", *shelf, settings=INVARIANT, random_seed=0)
    for text in ("c0*H/c1", "c0*tanh(c1)*H/c2"):
        found = compute_evidence(text, *shelf, settings=INVARIANT, random_seed=0)
        se = np.hypot(found.log_q_se, line.log_q_se)
        assert found.failure is None and abs(found.log_q - line.log_q) <= 4.0 * se


def test_a_flat_parameter_next_to_one_with_a_prior_has_limits():
    # All rates of a decay above some predict the same: flat, they have infinite mass.
    x = np.linspace(0.4, 4.0, 10)
    noise = np.array([0.1, -0.2, 0.05, 0.15, -0.1, -0.05, 0.2, -0.15, 0.1, -0.1])
    y, options = 3.0 * np.exp(-0.7 * x) + noise, {"priors": {"c0": pm.Normal.dist(3, 1)}}
    settings = replace(FINALIST, parameter_prior="flat")
    fitted = fit_equation("c0*exp(-c1*x0)", x, y, settings=settings, random_seed=1, **options)
    found = compute_evidence("c0*exp(-c1*x0)", x, y, settings=settings, random_seed=1, **options)
    region = fitted.region
    c0, c1 = np.linspace(-3.0, 9.0, 241), np.linspace(-8.0, 12.0, 2001)
    theta = np.stack([one.ravel() for one in np.meshgrid(c0, c1, indexing="ij")], axis=1)
    theta = theta[np.min(region.squares(theta), axis=0) <= region.radius**2]
    assert -7.9 < theta[:, 1].min() and theta[:, 1].max() < 11.9
    sse = np.sum((theta[:, :1] * np.exp(-theta[:, 1:] * x) - y) ** 2, axis=1)
    high = np.log(settings.sigma_bounds(y)[1])
    u = np.linspace(high - 6.0, high, 400)
    edges = np.where((u == u[0]) | (u == u[-1]), np.log(0.5), 0.0)
    log_z = [
        np.logaddexp.reduce([
            np.logaddexp.reduce(
                norm.logpdf(theta[:, 0], 3.0, 1.0)
                + phi * (-5.0 * np.log(2.0 * np.pi) - 10.0 * v - 0.5 * sse * np.exp(-2.0 * v))
            ) + v + edge
            for v, edge in zip(u, edges, strict=True)
        ])
        for phi in (1.0, 10.0**-0.5)
    ]  # fmt: skip
    assert found.log_q == pytest.approx(log_z[0] - log_z[1], abs=0.03)
