import numpy as np
import pymc as pm
import pytest
import xarray as xr
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from pytensor.compile.mode import Mode
from scipy.stats import norm
from strategies import equation_texts

from pmsr.data import load_galileo, make_data, make_sine
from pmsr.equation.expression import Equation
from pmsr.equation.program import evaluate
from pmsr.evidence.evidence import fit_equation, make_target
from pmsr.evidence.model import CHUNK, build_model, make_template
from pmsr.evidence.noise import NOISES
from pmsr.evidence.posterior import sample_posterior
from pmsr.evidence.problem import Problem
from pmsr.settings import Settings

NO_SHELF = load_galileo("no_shelf")
FLAT = Settings(parameter_prior="flat")


def hand_written(equation, data, theta, sigma):
    """The log likelihood of Eq. (2), spelled out."""
    with np.errstate(all="ignore"):
        mu = evaluate(equation.program, theta[None, :], data.X)[0]
        return float(np.sum(norm.logpdf(data.y, mu, sigma)))


@given(equation_texts(("x0",)), st.integers(0, 2**32))
@settings(max_examples=25, deadline=None)
def test_plain_model_template_and_formula_are_the_same_density(text, seed):
    equation = Equation(text, ["x0"])
    assume(equation.parameters)
    X, y = make_sine(n_points=12, sigma=0.3, random_seed=seed)
    data = make_data(X, y)
    rng = np.random.default_rng(seed)
    theta, sigma = rng.uniform(0.3, 1.5, size=len(equation.parameters)), 0.7
    expected = hand_written(equation, data, theta, sigma)
    assume(np.isfinite(expected) and abs(expected) < 1e12)

    template = make_template(len(theta))
    problem = Problem.of(data, Settings())
    compiled = template.log_likelihood(equation.program, problem, theta[None, :], np.array([sigma]))
    assert compiled[0] == pytest.approx(expected, rel=1e-9)

    model = build_model(equation, X, y, settings=FLAT)
    low, high = Settings().sigma_bounds(data.y)
    values = dict(zip(equation.parameters, theta, strict=True))
    values["sigma_interval__"] = np.log((sigma - low) / (high - sigma))
    density = model.compile_fn(model.datalogp, point_fn=True, mode="FAST_COMPILE")
    assert float(density(values)) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(("prior", "power"), [("flat", 0), ("log-flat", 1)])
def test_the_prior_of_sigma_is_the_chosen_one(prior, power):
    X, y = load_galileo("shelf")
    options = Settings(sigma_prior=prior)
    model = build_model(Equation("c0*sqrt(H)", ["H"]), X, y, settings=options)
    low, high = options.sigma_bounds(y.to_numpy())
    density = model.compile_logp(jacobian=False, mode="FAST_COMPILE")
    likelihood = model.compile_fn(model.datalogp, point_fn=True, mode="FAST_COMPILE")
    log_priors = []
    sigmas = np.array([20.0, 200.0])
    for sigma in sigmas:
        point = {"c0": 47.0, "sigma_interval__": np.log((sigma - low) / (high - sigma))}
        log_priors.append(float(density(point)) - float(likelihood(point)))
    expected = -power * np.log(sigmas) - np.log(np.log(high / low) if power else high - low)
    np.testing.assert_allclose(log_priors, expected, rtol=1e-9)


def test_the_region_enters_as_a_potential():
    X, y = load_galileo("no_shelf")
    law = Equation("k1*D**2/(1 + k2*D)", ["D"])
    rng = np.random.default_rng(0)
    target = make_target(law.program, Problem.of(make_data(X, y), FLAT), 8, rng=rng)
    model = build_model(law, X, y, settings=FLAT, region=target.region)
    density = model.compile_logp(mode="FAST_COMPILE")
    start = model.initial_point()
    np.testing.assert_allclose([start["k1"], start["k2"]], target.fit.theta)
    assert np.isfinite(density(start))
    chart = target.charts[0]
    for factor, finite in ((0.99, True), (1.01, False)):
        theta = chart.theta + factor * target.region.radius * chart.B[:, 0]
        assert target.inside(theta[None, :])[0] == finite
        away = dict(start, k1=theta[0], k2=theta[1])
        plain = build_model(law, X, y, settings=FLAT).compile_logp(mode="FAST_COMPILE")(away)
        assert np.isfinite(density(away)) == (finite and np.isfinite(plain))


def test_columns_are_found_by_name():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(8, 3)), rng.normal(size=8)
    equation = Equation("c0*x2 + x0", ["x0", "x1", "x2"])
    model = build_model(equation, X, y)
    density = model.compile_fn(model.datalogp, point_fn=True, mode="FAST_COMPILE")
    low, high = Settings().sigma_bounds(y)
    point = {"c0": 2.0, "sigma_interval__": np.log((1.0 - low) / (high - 1.0))}
    expected = norm.logpdf(y, 2 * X[:, 2] + X[:, 0], 1.0).sum()
    assert float(density(point)) == pytest.approx(expected)


def test_an_equation_without_parameters_or_variables_is_a_model_too():
    X, y = load_galileo("shelf")
    for text, free in (("47*sqrt(H)", ["sigma"]), ("c0", ["c0", "sigma"]), ("3", ["sigma"])):
        model = build_model(Equation(text, ["H"]), X, y)
        assert [variable.name for variable in model.free_RVs] == free
        assert np.isfinite(model.compile_logp(mode="FAST_COMPILE")(model.initial_point()))


def test_huge_integers_become_floats():
    X, y = load_galileo("shelf")
    model = build_model(Equation("c0*H + 10**30", ["H"]), X, y)
    assert np.isfinite(model.compile_logp(mode="FAST_COMPILE")(model.initial_point()))


def test_a_parameter_must_not_take_a_name_of_the_model():
    X, y = load_galileo("shelf")
    with pytest.raises(ValueError, match="must not be called 'sigma'"):
        build_model(Equation("sigma*H", ["H"], ["sigma"]), X, y)


def test_where_the_equation_is_not_finite_the_likelihood_is_zero():
    data = make_data(*load_galileo("shelf"))
    root = Equation("sqrt(c0*H)", ["H"])
    values = make_template(1).log_likelihood(
        root.program, Problem.of(data, Settings()), np.array([[-1.0], [1.0]]), np.ones(2)
    )
    assert values[0] == -np.inf and np.isfinite(values[1])


def test_chunks_of_particles_do_not_show():
    n_points = CHUNK // 3
    X = np.linspace(0, 1, n_points)[:, None]
    data = make_data(X, np.sin(7 * X[:, 0]))
    line = Equation("c0 + c1*x0", ["x0"])
    theta, sigma = np.random.default_rng(0).normal(size=(7, 2)), np.ones(7)
    problem = Problem.of(data, Settings())
    together = make_template(2).log_likelihood(line.program, problem, theta, sigma)
    alone = [hand_written(line, data, row, 1.0) for row in theta]
    np.testing.assert_allclose(together, alone, rtol=1e-10)


def test_a_template_is_compiled_once():
    assert make_template(2) is make_template(2)


@pytest.mark.parametrize("text", ["k1*D**2/(1 + k2*D)", "c0*sin(c1*D/100 + c2)", "c0*D**c1"])
def test_the_density_of_the_model_is_the_one_that_the_kernel_integrates(text):
    # Up to a constant: PyMC normalises the prior of sigma.
    target = fit_equation(text, *NO_SHELF, random_seed=0)
    model = build_model(text, *NO_SHELF, region=target.region)
    draws = target.propose(500, rng=np.random.default_rng(0)).draw(
        200, rng=np.random.default_rng(1)
    )
    log_prior, log_likelihood = target.densities(draws.theta, draws.log_sigma, None, draws.look)
    kept = np.flatnonzero(np.isfinite(log_prior))[:20]
    assert len(kept) == 20
    logp = model.compile_logp(jacobian=False)
    names = [variable.name for variable in model.value_vars]
    sigma = model.rvs_to_values[model["sigma"]]
    transform = model.rvs_to_transforms[model["sigma"]]
    differences = []
    for k in kept:
        theta = target.fit.full_theta(draws.theta[[k]])[0]
        value = np.exp(draws.log_sigma[k])
        point = dict(zip(names, theta, strict=False))
        point[sigma.name] = transform.forward(value, *model["sigma"].owner.inputs).eval()
        # The kernel's density is in log sigma; a parameter that it inverts has its own volume.
        expected = log_prior[k] + log_likelihood[k] - draws.log_sigma[k]
        expected += sum(2 * np.log(abs(draws.theta[k, place])) for place in target.fit.inverted)
        differences.append(float(logp(point)) - expected)
    assert np.ptp(differences) < 1e-6


def test_nuts_runs_on_the_invariant_prior_and_agrees():
    law, x = "c0*x0/(c1 + x0)", np.linspace(0.2, 5.0, 20)
    y = 3.0 * x / (1.0 + x) + 0.1 * np.random.default_rng(5).standard_normal(20)
    target = fit_equation(law, x, y, random_seed=0)
    with build_model(law, x, y, region=target.region):
        idata = pm.sample(500, tune=500, chains=2, cores=1, random_seed=1, progressbar=False)
    own = sample_posterior(law, x, y, random_seed=1, pointwise=False)
    for name in ("c0", "c1", "sigma"):
        one, other = (np.asarray(i.posterior[name]).ravel() for i in (own, idata))
        # NUTS' draws are correlated: an effective size of a hundred is modest for a thousand.
        assert abs(one.mean() - other.mean()) < 4 * one.std() / np.sqrt(100)


NOISES_OF_MODELS = {
    "gaussian": {},
    "student": {},
    "proportional": {},
    "lognormal": {},
    "poisson": {},
    "known": {"y_err": 0.1},
    "extra": {"y_err": 0.1},
    "known_inputs": {"y_err": 0.1, "X_err": 0.05},
    "inputs": {"X_err": 0.05},
    "counts": {"sample_weight": np.repeat([1, 2], 7)},
}


def model_of(kind):
    x = np.linspace(0.5, 4.0, 14)
    noise = kind if kind in NOISES else "gaussian"
    y = np.round(30.0 * np.exp(-0.4 * x))
    options = Settings(noise=noise, extra_noise=kind == "extra")
    return build_model("c0*exp(c1*x0)", x, y, settings=options, **NOISES_OF_MODELS[kind])


@pytest.mark.parametrize("kind", list(NOISES_OF_MODELS))
@pytest.mark.filterwarnings("ignore:The effect of Potentials")
def test_new_rows_are_predicted_once_their_x_is_set(kind):
    model, new = model_of(kind), np.array([1.0, 2.0, 3.0])
    assert model.named_vars_to_dims["X"] == ("observation", "column")
    assert model.named_vars_to_dims["mu"] == model.named_vars_to_dims["y"] == ("observation",)
    assert model.coords["column"] == ("x0",)
    n_draws = 2000
    draws = {"c0": np.full((1, n_draws), 30.0), "c1": np.full((1, n_draws), -0.4)}
    if "sigma" in model.named_vars:
        draws["sigma"] = np.full((1, n_draws), 0.05)
    posterior = xr.Dataset({name: (("chain", "draw"), values) for name, values in draws.items()})
    replaced = {"X": new[:, None]}
    known = NOISES_OF_MODELS[kind]
    replaced |= {"y_err": np.full(3, 0.1)} if "y_err" in known else {}
    replaced |= {"X_err": np.full((3, 1), 0.05)} if "X_err" in known else {}
    with model:
        pm.set_data(replaced)
        found = pm.sample_posterior_predictive(
            posterior, predictions=True, progressbar=False, random_seed=1
        )
    y = np.asarray(found.predictions["y"])[0]
    expected = 30.0 * np.exp(-0.4 * new)
    assert y.shape == (n_draws, 3)
    assert np.all(np.abs(y.mean(axis=0) - expected) < 5 * y.std(axis=0) / np.sqrt(n_draws) + 0.02)


@pytest.mark.parametrize("kind", list(NOISES_OF_MODELS))
@pytest.mark.filterwarnings("ignore:invalid value encountered in det")
def test_a_model_can_be_drawn(kind):
    drawn = pm.model_to_mermaid(model_of(kind))
    for words in ("c0([c0 ~ Flat])", "observation (14) x column (1)", "X --> mu", "c1 --> mu"):
        assert words in drawn


def test_what_is_improper_has_no_draws():
    draws = pm.draw(model_of("gaussian")["c0"], draws=3, mode=Mode(linker="py"))
    assert np.isnan(draws).all()


def test_where_counts_have_no_mean_the_other_draws_are_none_the_worse():
    X, priors = np.array([1.0, 2.0]), {"c0": (50.0, 0.1), "c1": (0.0, 50.0)}
    with build_model("c0 + c1*x0", X, [50.0, 51.0], noise="poisson", priors=priors) as model:
        mode = {"mode": Mode(linker="py")}
        found = pm.sample_prior_predictive(400, random_seed=1, compile_kwargs=mode)
    assert not model.potentials
    drawn = found.prior["mu"], found.prior_predictive["y"]
    mu, y = (np.asarray(part).reshape(-1, 2) for part in drawn)
    assert (mu < 0.0).any() and np.array_equal(y == -1, mu < 0.0)
    known = mu >= 0.0
    z = (y[known] - mu[known]) / np.sqrt(np.maximum(mu[known], 1.0))
    assert abs(z.mean()) < 4.0 / np.sqrt(known.sum())


@pytest.mark.parametrize(
    ("noise", "sign"), [("proportional", 1), ("proportional", -1), ("lognormal", 1), ("poisson", 1)]
)
@pytest.mark.parametrize("limited", [True, False])
def test_predictions_of_the_wrong_sign_have_no_density_where_the_noise_needs_one(
    noise, sign, limited
):
    x = np.linspace(0.5, 4.0, 14)
    y, law = sign * np.round(30.0 * np.exp(-0.4 * x)), "c0*exp(c1*x0)"
    region = fit_equation(law, x, y, noise=noise, random_seed=1).region if limited else None
    model = build_model(law, x, y, noise=noise, region=region)
    logp, start = model.compile_logp(), model.initial_point()
    start |= {"c0": np.array(30.0 * sign), "c1": np.array(-0.4)}
    assert np.isfinite(logp(start))
    assert logp(start | {"c0": -start["c0"]}) == -np.inf


def test_where_a_factor_has_no_median_nothing_is_drawn():
    priors = {"c0": (0.0, 1.0), "c1": (0.0, 0.1)}
    X, y = np.array([1.0, 2.0]), [1.0, 2.0]
    with build_model("c0 + c1*x0", X, y, noise="lognormal", priors=priors):
        mode = {"mode": Mode(linker="py")}
        found = pm.sample_prior_predictive(100, random_seed=1, compile_kwargs=mode)
    mu, drawn = np.asarray(found.prior["mu"]), np.asarray(found.prior_predictive["y"])
    assert (mu <= 0.0).any() and np.array_equal(np.isnan(drawn), mu <= 0.0)
