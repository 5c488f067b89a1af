import json
import warnings

import arviz as az
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from scipy.integrate import simpson
from scipy.special import ndtr
from scipy.stats import kstest, norm, t

from pmsr.data import load_galileo, make_sine
from pmsr.equation.expression import Equation
from pmsr.evidence.evidence import compute_evidence
from pmsr.evidence.posterior import sample_posterior
from pmsr.settings import FINALIST, Settings

SHELF = load_galileo("shelf")
SINE = make_sine(n_points=20, sigma=0.3, random_seed=7)
POLYNOMIALS = ["c0", "c0 + c1*x0", "c0 + c1*x0 + c2*x0**2"]
GROUPS = [
    "posterior",
    "posterior_predictive",
    "log_likelihood",
    "observed_data",
    "constant_data",
    "sample_stats",
]


class ExactLinear:
    """Posterior of a polynomial: given sigma a normal distribution, and sigma on a fine grid."""

    def __init__(self, order, settings):
        x, y = SINE[0]["x0"].to_numpy(), SINE[1].to_numpy()
        design = np.vander(x, order + 1, increasing=True)
        self.theta, [sse], *_ = np.linalg.lstsq(design, y, rcond=None)
        self.cov = np.linalg.inv(design.T @ design)
        self.log_sigma = np.linspace(*np.log(settings.sigma_bounds(y)), 200_001)
        power = order + 1 - len(y) - settings.sigma_power + 1  # d sigma = sigma d log sigma
        log_density = power * self.log_sigma - sse / 2 * np.exp(-2 * self.log_sigma)
        density = np.exp(log_density - log_density.max())
        self.density = density / simpson(density, x=self.log_sigma)

    def expect(self, values):
        return simpson(self.density * values, x=self.log_sigma)

    def theta_cdf(self, values, place):
        scale = np.exp(self.log_sigma[::100]) * np.sqrt(self.cov[place, place])
        weights = self.density[::100] / self.density[::100].sum()
        return ndtr((np.asarray(values)[:, None] - self.theta[place]) / scale) @ weights

    def sigma_cdf(self, sigma):
        step = self.log_sigma[1] - self.log_sigma[0]
        cumulative = np.cumsum(self.density) * step
        return np.interp(np.log(sigma), self.log_sigma, cumulative)


def draws_of(idata, name):
    return idata.posterior[name].to_numpy()


def tree_value(result, name):
    # ArviZ 0.23 returns a Dataset, ArviZ 1.x a DataTree or a Dataset.
    return float(result[name].to_numpy())


@pytest.mark.parametrize("prior", ["flat", "log-flat"])
@pytest.mark.parametrize("order", [0, 1, 2])
def test_mean_and_deviation_of_a_linear_model_are_exact(order, prior):
    settings = Settings(sigma_prior=prior)
    exact = ExactLinear(order, settings)
    idata = sample_posterior(POLYNOMIALS[order], *SINE, settings=settings, random_seed=3)
    variance = exact.expect(np.exp(2 * exact.log_sigma))
    fourth = exact.expect(np.exp(4 * exact.log_sigma))
    for place, mean in enumerate(exact.theta):
        draws = draws_of(idata, f"c{place}").ravel()
        deviation = np.sqrt(variance * exact.cov[place, place])
        # The draws are as good as independent (next test); the error of a sample deviation
        # follows from the kurtosis, 3 E(sigma^4) / E(sigma^2)^2. Four standard errors: 1 in 16000.
        kurtosis = 3 * fourth / variance**2
        n = len(draws)
        assert abs(draws.mean() - mean) < 4 * deviation / np.sqrt(n)
        assert abs(draws.std() / deviation - 1) < 4 * np.sqrt((kurtosis - 1) / (4 * n))
        assert kstest(draws, exact.theta_cdf, args=(place,)).pvalue > 1e-3
    assert kstest(draws_of(idata, "sigma").ravel(), exact.sigma_cdf).pvalue > 1e-3


@pytest.mark.parametrize("equation", POLYNOMIALS)
def test_chains_of_a_linear_model_agree_and_their_draws_are_independent(equation):
    idata = sample_posterior(equation, *SINE, random_seed=3)
    rhat, ess = az.rhat(idata), az.ess(idata)
    for name in idata.posterior.data_vars:
        assert tree_value(rhat, name) < 1.01
        assert tree_value(ess, name) > 0.8 * 4000


def test_a_posterior_that_bends_is_reached_by_all_chains():
    idata = sample_posterior("c0*H**c1", *SHELF, random_seed=3)
    for name in ("c0", "c1", "sigma"):
        assert tree_value(az.rhat(idata), name) < 1.01
        assert tree_value(az.ess(idata), name) > 0.5 * 4000


def test_the_same_seed_gives_the_same_draws_and_another_does_not():
    def draw(seed):
        return draws_of(sample_posterior("c0*sqrt(H)", *SHELF, random_seed=seed), "c0")

    first = draw(5)
    np.testing.assert_array_equal(first, draw(5))
    assert not np.array_equal(first, draw(6))
    np.testing.assert_array_equal(draw(np.random.default_rng(1)), draw(np.random.default_rng(1)))
    assert len(np.unique(first[:, 0])) == 4


def test_a_change_of_units_changes_only_the_units():
    X, y = SHELF
    idata = sample_posterior("c0 + c1*H", X, y, random_seed=1)
    tiny = sample_posterior("c0 + c1*H", X, y * 1e-30, random_seed=1)
    for name in ("c0", "c1", "sigma"):
        np.testing.assert_allclose(draws_of(tiny, name), 1e-30 * draws_of(idata, name), rtol=1e-6)


def test_everything_arviz_asks_for_is_there():
    idata = sample_posterior("c0 + c1*H", *SHELF, random_seed=1, draws=200, chains=3)
    for group in GROUPS:
        assert hasattr(idata, group)
    assert list(idata.posterior.data_vars) == ["c0", "c1", "sigma"]
    assert idata.posterior["c0"].shape == (3, 200)
    assert idata.log_likelihood["y"].shape == (3, 200, 5)
    np.testing.assert_array_equal(idata.observed_data["y"], SHELF[1])
    np.testing.assert_array_equal(idata.constant_data["X"], SHELF[0])
    assert idata.constant_data["column"].to_numpy().tolist() == ["H"]


def test_the_log_likelihood_is_that_of_each_point():
    idata = sample_posterior("c0 + c1*H", *SHELF, random_seed=1, draws=100, chains=2)
    c0, c1, sigma = (draws_of(idata, name)[..., None] for name in ("c0", "c1", "sigma"))
    expected = norm.logpdf(SHELF[1].to_numpy(), c0 + c1 * SHELF[0]["H"].to_numpy(), sigma)
    np.testing.assert_allclose(idata.log_likelihood["y"], expected, rtol=1e-10)


def test_the_posterior_predictive_adds_the_noise_of_each_draw():
    idata = sample_posterior("c0 + c1*H", *SHELF, random_seed=1)
    c0, c1, sigma = (draws_of(idata, name)[..., None] for name in ("c0", "c1", "sigma"))
    noise = (
        idata.posterior_predictive["y"].to_numpy() - c0 - c1 * SHELF[0]["H"].to_numpy()
    ) / sigma
    assert kstest(noise.ravel(), "norm").pvalue > 1e-3


def test_the_pointwise_groups_can_be_left_out():
    idata = sample_posterior("c0*H", *SHELF, random_seed=1, draws=100, pointwise=False)
    assert not hasattr(idata, "log_likelihood")
    assert not hasattr(idata, "posterior_predictive")


def test_the_stages_hold_the_evidence():
    idata = sample_posterior("c0*sqrt(H)", *SHELF, random_seed=1)
    stats, gamma = idata.sample_stats, 1 / np.sqrt(5)
    evidence = compute_evidence("c0*sqrt(H)", *SHELF, settings=FINALIST, random_seed=9)
    log_q = stats["log_q"].to_numpy()
    # The four chains tell their own error.
    error = np.hypot(evidence.log_q_se, log_q.std(ddof=1) / 2)
    assert abs(log_q.mean() - evidence.log_q) < 4 * error
    for chain in range(4):
        beta = stats["beta"].to_numpy()[chain]
        log_z = stats["log_marginal_likelihood"].to_numpy()[chain]
        assert log_z[np.flatnonzero(beta == gamma)[0]] == stats["log_z_gamma"].to_numpy()[chain]
        assert log_z[np.flatnonzero(beta == 1.0)[0]] == stats["log_z"].to_numpy()[chain]
    assert all(stats[name].dtype == np.float64 for name in stats.data_vars)


def test_chains_with_fewer_stages_are_padded():
    # With so few points from the proposal, some chains need intermediate stages and some do not.
    settings = Settings(n_draws=100, n_particles=100)
    equation = "c0*sin(c1*x0 + c2) + c3"
    idata = sample_posterior(equation, *SINE, settings=settings, random_seed=3, draws=100)
    beta = idata.sample_stats["beta"].to_numpy()
    n_stages = np.sum(np.isfinite(beta), axis=1)
    assert len(set(n_stages)) > 1
    for row, n in zip(beta, n_stages, strict=True):
        assert np.all(np.diff(row[:n]) > 0)
        assert row[n - 1] == 1.0
        assert np.isnan(row[n:]).all()


def test_the_attributes_describe_the_model():
    settings = Settings(gamma=0.3, sigma_prior="log-flat")
    equation = Equation("k1*sqrt(H)", ["H"])
    idata = sample_posterior(equation, *SHELF, settings=settings, random_seed=1, draws=100)
    attrs = idata.posterior.attrs
    assert attrs["equation"] == "k1*sqrt(H)"
    assert json.loads(attrs["variables"]) == ["H"]
    assert json.loads(attrs["parameters"]) == ["k1"]
    assert (attrs["gamma"], attrs["sigma_prior"], attrs["target"]) == (0.3, "log-flat", "D")
    assert tuple(attrs["sigma_bounds"]) == settings.sigma_bounds(SHELF[1].to_numpy())
    H, D = SHELF[0]["H"].to_numpy(), SHELF[1].to_numpy()
    least_squares = np.sqrt(H) @ D / H.sum()
    assert json.loads(attrs["theta_map"]) == pytest.approx([least_squares])


def test_parameters_that_cannot_be_told_apart_are_named_and_held():
    with pytest.warns(UserWarning, match=r"c0 and c1 cannot be told apart by the data; c\d is"):
        idata = sample_posterior("c0*c1*sqrt(H)", *SHELF, random_seed=1)
    held = json.loads(idata.posterior.attrs["held"])
    [(name, value)] = held.items()
    assert np.all(draws_of(idata, name) == value)
    product = draws_of(idata, "c0") * draws_of(idata, "c1")
    alone = draws_of(sample_posterior("c0*sqrt(H)", *SHELF, random_seed=2), "c0")
    # Two samples of the same distribution: means differ by root 2 standard errors.
    assert abs(product.mean() - alone.mean()) < 4 * alone.std() * np.sqrt(2 / alone.size)


def test_a_parameter_that_changes_nothing_is_named_and_held():
    X = pd.DataFrame({"H": SHELF[0]["H"], "nothing": 0.0})
    with pytest.warns(UserWarning, match=r"c1 is not determined by the data; it is held at"):
        idata = sample_posterior("c0*H + c1*nothing", X, SHELF[1], random_seed=1, draws=100)
    assert list(json.loads(idata.posterior.attrs["held"])) == ["c1"]


def test_an_equation_without_parameters_has_a_posterior_of_sigma():
    equation, residuals = "47*sqrt(H)", SHELF[1] - 47 * np.sqrt(SHELF[0]["H"])
    idata = sample_posterior(equation, *SHELF, random_seed=1)
    assert list(idata.posterior.data_vars) == ["sigma"]
    u = np.linspace(*np.log(Settings().sigma_bounds(SHELF[1].to_numpy())), 400_001)
    density = np.exp(-4 * u - np.sum(residuals**2) / 2 * np.exp(-2 * u) + 14)
    density /= density.sum()
    sigma = draws_of(idata, "sigma").ravel()
    assert kstest(sigma, lambda s: np.interp(np.log(s), u, np.cumsum(density))).pvalue > 1e-3
    evidence = compute_evidence(equation, *SHELF)
    np.testing.assert_allclose(idata.sample_stats["log_q"], evidence.log_q)


@pytest.mark.parametrize("equation", ["c0*log(H - 2000)", "log(H - 2000)"])
def test_an_equation_without_posterior_is_an_error_with_the_reason(equation):
    with pytest.raises(ValueError, match=r"has no posterior on these data: never finite"):
        sample_posterior(equation, *SHELF, random_seed=1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"draws": 99}, "draws must be an integer of at least 100, got 99"),
        ({"draws": 1e3}, "draws must be an integer of at least 100, got 1000.0"),
        ({"chains": 0}, "chains must be an integer of at least 1, got 0"),
        ({"chains": True}, "chains must be an integer of at least 1, got True"),
        ({"draws": 10_000_000}, r"would have 200,000,000 values each.*pointwise=False"),
    ],
)
def test_a_wrong_size_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        sample_posterior("c0*H", *SHELF, **options)


@pytest.mark.parametrize("name", ["sigma", "chain", "draw"])
def test_a_parameter_must_not_take_a_name_of_the_posterior(name):
    equation = Equation(f"{name}*H", ["H"], [name])
    with pytest.raises(ValueError, match=f"A parameter must not be called '{name}'.*Rename it"):
        sample_posterior(equation, *SHELF)


def test_netcdf_gives_back_what_was_saved(tmp_path):
    X = SHELF[0].rename(columns={"H": "ramp height / punti (η)"})
    equation = "θ_0*sqrt(`ramp height / punti (η)`)"
    idata = sample_posterior(equation, X, SHELF[1], random_seed=1, draws=100)
    idata.to_netcdf(tmp_path / "posterior.nc")
    loaded = az.from_netcdf(tmp_path / "posterior.nc")
    for group in GROUPS:
        before, after = getattr(idata, group), getattr(loaded, group)
        assert list(before.data_vars) == list(after.data_vars)
        for name in before.data_vars:
            np.testing.assert_array_equal(before[name], after[name])
        for name, value in before.attrs.items():
            np.testing.assert_array_equal(after.attrs[name], value)
    assert loaded.constant_data["column"].to_numpy().tolist() == list(X.columns)


# ArviZ 0.23 sorts its table in a way that pandas 3 deprecates.
@pytest.mark.filterwarnings("ignore:The inplace keyword in DataFrame.sort_values")
def test_arviz_works_on_it_as_it_is():
    models = {
        name: sample_posterior(equation, *SINE, random_seed=1)
        for name, equation in {"constant": "c0", "sine": "c0 + c1*sin(x0)"}.items()
    }
    assert list(az.summary(models["sine"]).index) == ["c0", "c1", "sigma"]
    assert az.compare(models).index[0] == "sine"
    elpd = az.loo(models["sine"])
    assert np.isfinite(elpd.elpd if hasattr(elpd, "elpd") else elpd.elpd_loo)


@pytest.mark.parametrize("kind", ["posterior", "pair", "trace"])
def test_arviz_draws_it_as_it_is(kind):
    idata = sample_posterior("c0 + c1*H", *SHELF, random_seed=1, draws=100)
    name = "plot_dist" if kind == "posterior" and az.__version__[0] != "0" else f"plot_{kind}"
    with warnings.catch_warnings():
        # ArviZ's own doing: layouts, and the future names of its arguments.
        warnings.simplefilter("ignore")
        getattr(az, name)(idata)
    plt.close("all")


@pytest.mark.parametrize("text", ["k1*D**2/(1 + k2*D)", "c0*c1*D**c2", "c0 + c1*D"])
def test_pymcs_own_driver_samples_the_same_posterior_on_the_model_that_users_get(text):
    data = load_galileo("no_shelf")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # one parameter is held
        own, theirs = (
            sample_posterior(text, *data, random_seed=1, chains=2, pointwise=False, sampler=sampler)
            for sampler in ("kernel", "pymc")
        )
    assert list(own.posterior.data_vars) == list(theirs.posterior.data_vars)
    for name in own.posterior.data_vars:
        one, other = (np.asarray(idata.posterior[name]).ravel() for idata in (own, theirs))
        # Of 2000 draws each at least a quarter are independent; means of c0 do not exist.
        for p in (0.1, 0.5, 0.9):
            error = np.sqrt(p * (1 - p) * 2 * 4 / one.size)
            is_held = np.ptp(one) == 0.0
            assert is_held or abs(np.mean(other < np.quantile(one, p)) - p) <= 4 * error
    log_q = [np.asarray(idata.sample_stats["log_q"]) for idata in (own, theirs)]
    assert abs(log_q[0].mean() - log_q[1].mean()) < 0.15
    with pytest.raises(ValueError, match=r"Unknown sampler 'nuts'\. Available: kernel, pymc"):
        sample_posterior(text, *data, sampler="nuts")


@pytest.mark.parametrize("noise", ["student", "proportional"])
def test_the_noise_of_a_law_without_parameters_is_that_of_its_exact_density(noise):
    x = np.linspace(0.4, 4.0, 10)
    y = 2.0 * x * np.array([1.9, 0.6, 1.4, 0.3, 1.1, 0.8, 1.7, 0.5, 1.2, 0.9])
    settings = Settings(noise=noise)
    idata = sample_posterior("2*x0", x, y, settings=settings, random_seed=1)
    bounds = settings.sigma_bounds(np.log(y) if noise == "proportional" else y)
    u = np.linspace(*np.log(bounds), 4001)
    size = np.exp(u)[:, None]
    if noise == "student":
        log_l = t.logpdf(y, 4, loc=2.0 * x, scale=size)
    else:
        log_l = norm.logpdf(y, loc=2.0 * x, scale=size * 2.0 * x)
    log_density = log_l.sum(axis=1) + u
    density = np.exp(log_density - log_density.max())
    mean, square = (simpson(density * np.exp(k * u), x=u) / simpson(density, x=u) for k in (1, 2))
    sigma = idata.posterior["sigma"].to_numpy()
    # Draws are stratified: they know the moments far better than independent ones.
    assert sigma.mean() == pytest.approx(mean, rel=0.005)
    assert sigma.std() == pytest.approx(np.sqrt(square - mean**2), rel=0.03)
