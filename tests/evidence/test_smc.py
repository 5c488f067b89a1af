from copy import copy
from dataclasses import replace

import numpy as np
import pymc as pm
import pytest
from exact import linear_log_q
from scipy.stats import kstest, t

from pmsr.data import load_galileo, make_data, make_sine
from pmsr.equation.expression import Equation
from pmsr.evidence import smc
from pmsr.evidence.evidence import make_target
from pmsr.evidence.model import build_model, make_template
from pmsr.evidence.problem import Problem
from pmsr.evidence.smc import (
    FractionalKernel,
    effective_sample_size,
    pareto_k,
    run_kernel,
    systematic_indexes,
)
from pmsr.evidence.trust import THOROUGH
from pmsr.experiments.exact import brute_force_log_q
from pmsr.settings import Settings

LAW = Equation("k1*D**2/(1 + k2*D)", ["D"])
NO_SHELF = load_galileo("no_shelf")


def target_of(equation, X, y, settings=None):
    rng = np.random.default_rng(0)
    problem = Problem.of(make_data(X, y), settings or Settings())
    return make_target(equation.program, problem, 8, rng=rng)


def cubic():
    X, y = make_sine(n_points=20, sigma=0.1, random_seed=1)
    return Equation("c0 + c1*x0 + c2*x0**2 + c3*x0**3", ["x0"]), X, y


def run_in_small_steps(target, seed, n_particles=300):
    """Force a bridge, many temperatures and moves by asking for nearly full effective size."""
    kernel = copy(smc._prototype(target))
    kernel.target, kernel.draws, kernel.n_draws, kernel.threshold = target, n_particles, 300, 0.7
    kernel.trust = replace(THOROUGH, min_ess=np.inf, max_growth=1)
    kernel.initialize(None, np.random.default_rng(seed))
    while kernel.beta < 1.0:
        kernel.update_beta_and_weights()
        kernel.step()
    return kernel


@pytest.mark.parametrize("case", ["linear", "curved"])
def test_many_small_steps_give_the_exact_evidence(case):
    if case == "linear":
        equation, X, y = cubic()
        target = target_of(equation, X, y)
        exact = linear_log_q(target.data.X ** np.arange(4), target.data.y, Settings())
    else:
        target = target_of(LAW, *NO_SHELF, Settings(parameter_prior="flat"))
        exact = brute_force_log_q(target)
    kernels = [run_in_small_steps(target, seed) for seed in range(16)]
    assert all(kernel.iteration > 3 for kernel in kernels)
    log_q = np.array([kernel.log_marginal_likelihood - kernel.log_z_gamma for kernel in kernels])
    assert abs(log_q.mean() - exact) < 3 * log_q.std(ddof=1) / 4 + log_q.var() / 2
    # The reported error is of the right size: within a factor of two and a bit.
    reported = np.sqrt(np.mean([kernel.log_q_variance for kernel in kernels]))
    assert 0.4 < reported / log_q.std(ddof=1) < 3.0


def test_moves_leave_the_posterior_invariant(monkeypatch):
    # Exact posterior of a linear model with flat sigma: Student's t with N - p - 1 degrees.
    monkeypatch.setattr(smc, "MAX_SWEEPS", 3)
    monkeypatch.setattr(smc, "MIN_MOVED", 2.0)  # never satisfied: random walks are done as well
    equation, X, y = cubic()
    target = target_of(equation, X, y, Settings(sigma_max=50.0))
    kernel = run_kernel(
        target, n_draws=20_000, n_particles=4000, rng=np.random.default_rng(0), to_posterior=True
    )
    for _ in range(3):
        kernel.mutate()
    design = target.data.X ** np.arange(4)
    degrees = 20 - 4 - 1
    sse = target.fit.minima[0].sse
    scale = np.sqrt(sse / degrees * np.diag(np.linalg.inv(design.T @ design)))
    for k in range(4):
        standardised = (kernel.theta[:, k] - target.fit.theta[k]) / scale[k]
        assert kstest(standardised, t(degrees).cdf).pvalue > 1e-3


def test_one_jump_is_enough_for_ordinary_equations():
    for equation, X, y in (cubic(), (LAW, *NO_SHELF)):
        kernel = run_kernel(
            target_of(equation, X, y),
            n_draws=2000,
            n_particles=400,
            rng=np.random.default_rng(0),
            to_posterior=False,
        )
        assert kernel.iteration == 2


@pytest.mark.parametrize("own_model", [True, False])
def test_the_kernel_runs_under_sample_smc(own_model):
    target = target_of(LAW, *NO_SHELF)
    model = build_model(LAW, *NO_SHELF) if own_model else make_template(2).model
    idata = pm.sample_smc(
        draws=500,
        kernel=FractionalKernel,
        model=model,
        target=target,
        chains=2,
        cores=1,
        random_seed=1,
        progressbar=False,
        compute_convergence_checks=False,
    )
    direct = run_kernel(
        target, n_draws=20_000, n_particles=4000, rng=np.random.default_rng(2), to_posterior=True
    )
    if own_model:
        k1 = idata.posterior["k1"].values
    else:
        k1 = idata.posterior["theta"].values[..., 0]
    assert k1.shape == (2, 500)
    # Means of 1000 and 4000 particles, of which at least a quarter are independent.
    error = direct.theta[:, 0].std() * np.sqrt(4 / 1000 + 4 / 4000)
    assert abs(k1.mean() - direct.theta[:, 0].mean()) < 4 * error
    sigma = idata.posterior["sigma"].values
    low, high = target.sigma_bounds
    assert np.all((sigma > low) & (sigma < high))
    betas = np.asarray(idata.sample_stats["beta"].values[0], dtype=float)
    assert target.gamma in betas and betas[-1] == 1.0
    log_z = np.asarray(idata.sample_stats["log_marginal_likelihood"].values[0], dtype=float)
    assert np.isfinite(log_z).all()


def test_particles_from_outside_are_refused():
    with pytest.raises(ValueError, match="start must be None"):
        FractionalKernel(start={"theta": 1}, model=make_template(1).model)


def test_a_kernel_without_a_target_says_what_it_needs():
    with pytest.raises(ValueError, match="needs target=, the fitted equation"):
        FractionalKernel(model=make_template(1).model)


def test_systematic_resampling_is_unbiased_and_keeps_its_promise():
    rng = np.random.default_rng(0)
    weights = rng.dirichlet(np.ones(20))
    counts = np.array(
        [np.bincount(systematic_indexes(weights, 50, rng), minlength=20) for _ in range(2000)]
    )
    # Each count is within one of n w, by construction, so the mean's error is below 1/sqrt(2000).
    assert np.all(np.abs(counts - 50 * weights) < 1)
    np.testing.assert_allclose(counts.mean(axis=0), 50 * weights, atol=4 / np.sqrt(2000))


def test_effective_sample_size_counts_equal_weights():
    log_weights = np.full(100, -np.inf)
    assert effective_sample_size(log_weights) == 0.0
    log_weights[:7] = -1e5
    assert effective_sample_size(log_weights) == pytest.approx(7.0)


@pytest.mark.parametrize("k", [0.2, 0.5, 0.9])
def test_the_tail_index_is_that_of_a_pareto_distribution(k):
    log_weights = k * np.random.default_rng(0).standard_exponential(100_000)
    # The tail has 3 sqrt(n) = 949 points; the error of k is (1 + k)/sqrt(949).
    assert abs(pareto_k(log_weights) - k) < 4 * (1 + k) / np.sqrt(949)


def test_bounded_weights_have_no_tail():
    rng = np.random.default_rng(0)
    assert pareto_k(np.log(rng.uniform(size=4000))) < 0.3
    assert pareto_k(np.zeros(4000)) == -np.inf


def test_bounded_weights_have_no_heavy_tail():
    # A flat top whose excesses, in themselves, are heavy-tailed, as of a linear equation.
    rng = np.random.default_rng(0)
    weights = 1.0 + 1e-6 * rng.pareto(0.8, size=8000)
    assert pareto_k(np.log(weights)) < 0.7
    assert pareto_k(np.log(1e-6 + rng.pareto(0.8, size=8000))) > 0.7
