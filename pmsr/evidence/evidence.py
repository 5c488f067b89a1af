"""The evidence q(gamma) of one equation, Eq. (5); the one place where a failure becomes a value."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from hashlib import blake2b

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.integrate import simpson

from pmsr.data import Data
from pmsr.equation.expression import Equation, read_problem
from pmsr.equation.program import Program, evaluate
from pmsr.evidence.atlas import SurfaceTarget
from pmsr.evidence.multistart import Fit, FitError, add_images, fit, fit_once
from pmsr.evidence.proposal import NEGLIGIBLE, Target, log_kernel, log_sum_exp, narrow
from pmsr.evidence.smc import MIN_ESS, FractionalKernel, run_kernel
from pmsr.evidence.surface import Surface
from pmsr.settings import RandomSeed, Settings
from pmsr.threads import one_blas_thread

Floats = NDArray[np.float64]

# A search does not sample equations that are this many nats worse than a constant.
HOPELESS = 10.0
N_REPEATS = 3  # runs that are added where one run cannot tell its own error
UNCOVERED_SE = 0.3  # least standard error where the proposal does not cover the target
# In a search, which neither bridges nor repeats, weights worse than these may be off by nats; the
# best of thousands would be those that are.
WILD_PARETO_K, WILD_ESS = 1.0, 30.0
SAME_ERROR = 1e-3  # relative difference of squared errors up to which two fits found one minimum
ROUNDING = 1e-24  # of the squared target, below which all errors are alike
MAX_SE = 1.0  # beyond, a number would mislead: it is a failure with its reason


@dataclass(frozen=True, eq=False)
class Evidence:
    r"""How well the data support one equation.

    Parameters
    ----------
    log_q
        Log normalized marginal likelihood :math:`\log q(\gamma) = \log Z(1) - \log Z(\gamma)`,
        Eq. (5); -inf after a failure. Only differences between equations on the same data, with
        the same gamma and bounds, mean anything.
    log_q_se
        Its Monte-Carlo standard error.
    log_z_gamma, log_z
        :math:`\log Z(\gamma)` and :math:`\log Z(1)`; never comparable between equations.
    gamma
        The fraction.
    sigma_bounds
        Bounds of sigma.
    n_parameters
        p, the number of parameters as written.
    rank
        How many of them the data determine.
    theta
        The best minimum, in the order of the equation's parameters.
    rmse
        Root mean squared error there.
    prior_sensitivity
        By how many nats log q would change if the bounds of theta's region and of sigma were
        halved. Differences in log q that are smaller are not evidence.
    failure
        None, or why there is no evidence.
    pareto_k
        Tail index of the importance weights, the worse of both ends; above 0.7, or with a
        standard error above 0.5, mistrust ``log_q``.
    """

    log_q: float
    log_q_se: float
    log_z_gamma: float
    log_z: float
    gamma: float
    sigma_bounds: tuple[float, float]
    n_parameters: int
    rank: int
    theta: Floats
    rmse: float
    prior_sensitivity: float
    failure: str | None = None
    pareto_k: float = -np.inf


def compute_evidence(
    equation: Equation | str,
    X: ArrayLike,
    y: ArrayLike,
    *,
    settings: Settings | None = None,
    random_seed: RandomSeed = None,
) -> Evidence:
    """Weigh one equation against data.

    Parameters
    ----------
    equation
        An equation, or its text with the columns of X as variables.
    X, y
        The data.
    settings
        Fraction, priors and sizes; ``pmsr.settings.FINALIST`` is four times as precise.
    random_seed
        Seed or generator. The same seed gives the same evidence to the last bit, whatever was
        computed before.

    Returns
    -------
    Evidence
        With ``failure`` set if the equation cannot be weighed.

    Examples
    --------
    >>> from pmsr.data import load_galileo
    >>> X, y = load_galileo("shelf")
    >>> evidence = compute_evidence("c0*sqrt(H)", X, y, random_seed=0)
    >>> evidence.theta.round(2), round(evidence.rmse, 1)
    (array([47.09]), 13.8)
    """
    equation, data, settings = read_problem(equation, X, y, settings)
    return weigh(equation.program, data, settings, seed_for(equation.key, random_seed))


def fit_equation(
    equation: Equation | str,
    X: ArrayLike,
    y: ArrayLike,
    *,
    settings: Settings | None = None,
    random_seed: RandomSeed = None,
) -> Target:
    """Fit an equation and describe the density that its evidence integrates.

    Parameters
    ----------
    equation, X, y, settings, random_seed
        As in `compute_evidence`.

    Returns
    -------
    Target
        Its ``region`` goes into ``pmsr.build_model(..., region=...)``; the whole goes into
        ``pm.sample_smc(kernel=pmsr.evidence.smc.FractionalKernel, target=...)``.

    Examples
    --------
    >>> from pmsr.data import load_galileo
    >>> fit_equation("c0*sqrt(H)", *load_galileo("shelf"), random_seed=0).fit.theta.round(2)
    array([47.09])
    """
    equation, data, settings = read_problem(equation, X, y, settings)
    if not equation.parameters:
        raise ValueError(f"{equation.text!r} has no parameters to fit.")
    rng = np.random.Generator(np.random.PCG64(seed_for(equation.key, random_seed)))
    try:
        with one_blas_thread():
            return make_target(equation.program, data, settings, rng=rng)
    except FitError as error:
        raise ValueError(f"{equation.text!r} cannot be fitted: {error}.") from error


def seed_for(key: str, random_seed: RandomSeed) -> np.random.SeedSequence:
    """Derive the seed of one equation from the seed of the run and the equation's key.

    Evidence then depends neither on the order of evaluation nor on the number of workers.

    Examples
    --------
    >>> seed_for("c0*x", 1).generate_state(1) == seed_for("c0*x", 1).generate_state(1)
    array([ True])
    """
    if random_seed is None:
        return np.random.SeedSequence()
    if isinstance(random_seed, np.random.Generator):
        random_seed = int(random_seed.integers(2**63))
    if not isinstance(random_seed, int | np.integer) or random_seed < 0:
        raise ValueError(
            f"random_seed must be a non-negative integer, a numpy Generator or None, "
            f"got {random_seed!r}."
        )
    digest = blake2b(key.encode(), digest_size=16).digest()
    return np.random.SeedSequence([int(random_seed), int.from_bytes(digest, "big")])


def weigh(
    program: Program,
    data: Data,
    settings: Settings,
    seed: np.random.SeedSequence,
    *,
    floor: float = -np.inf,
) -> Evidence:
    """Compute the evidence of a program: what the search calls, thousands of times.

    Where `linear_log_q` is below the floor, or hopeless, a search is content with it; its standard
    error is then 1.
    """
    p = program.n_parameters
    bounds = settings.sigma_bounds(data.y)
    gamma = settings.resolve_gamma(len(data.y), p)
    nothing = np.full(p, np.nan)
    failed = Evidence(-np.inf, 0.0, np.nan, np.nan, gamma, bounds, p, 0, nothing, np.inf, 0.0)
    with one_blas_thread(), np.errstate(all="ignore"):
        if p == 0:
            return _weigh_constant(program, data, settings, failed)
        try:
            return _weigh_fitted(program, data, settings, seed, failed, floor)
        except (FitError, FloatingPointError) as error:
            return replace(failed, failure=str(error))
        except np.linalg.LinAlgError:
            return replace(failed, failure="singular covariance")


def fit_rmse(
    program: Program, data: Data, settings: Settings, seed: np.random.SeedSequence
) -> Evidence:
    """Fit a program without weighing it: the conventional search's half of `weigh`.

    Returns
    -------
    Evidence
        Only ``theta``, ``rmse`` and ``failure`` mean anything; ``log_q`` is NaN.
    """
    p = program.n_parameters
    gamma, bounds = np.nan, settings.sigma_bounds(data.y)
    failed = Evidence(
        np.nan, 0.0, np.nan, np.nan, gamma, bounds, p, 0, np.full(p, np.nan), np.inf, 0.0
    )
    with one_blas_thread(), np.errstate(all="ignore"):
        if p == 0:
            values = evaluate(program, np.empty((1, 0)), data.X)[0]
            rmse = float(np.sqrt(np.mean((data.y - values) ** 2)))
            if not np.isfinite(rmse):
                return replace(failed, failure=_without_error(values))
            return replace(failed, rmse=rmse, theta=np.empty(0))
        try:
            rng = np.random.Generator(np.random.PCG64(seed))
            if settings.thorough:
                found = fit(program, data, settings.n_multistarts, rng=rng)
                theta, sse = found.theta, found.minima[0].sse
            else:
                best = fit_once(program, data, settings.n_multistarts, rng=rng)
                theta, sse = best.theta, best.sse
        except FitError as error:
            return replace(failed, failure=str(error))
        except np.linalg.LinAlgError:
            return replace(failed, failure="singular covariance")
    return replace(failed, rmse=float(np.sqrt(sse / len(data.y))), theta=theta)


def make_target(
    program: Program, data: Data, settings: Settings, *, rng: np.random.Generator
) -> Target:
    """Fit an equation and set up the density to integrate."""
    gamma = settings.resolve_gamma(len(data.y), program.n_parameters)
    common = (data, gamma, settings.sigma_bounds(data.y), settings.sigma_power)
    if settings.parameter_prior == "flat" or _is_linear(program):
        target = Target(fit(program, data, settings.n_multistarts, rng=rng), *common)
    else:
        found = _fit_surface(program, data, settings, gamma, rng=rng)
        # Where f is linear in what the data determine, the volume is the same everywhere.
        kind = Target if _is_linear(found.program) else SurfaceTarget
        target = kind(found, *common)
    target.check_range()
    return target


def _is_linear(program: Program) -> bool:
    return len(program.affine) == program.n_parameters


def _fit_surface(
    program: Program, data: Data, settings: Settings, gamma: float, *, rng: np.random.Generator
) -> Fit:
    """Find the minima on the surface of predictions, with all their images."""
    found = fit(
        program,
        data,
        settings.n_multistarts,
        rng=rng,
        generic=True,
        rule=lambda one: Surface.of(one, data).obeys,
    )
    if _is_linear(found.program):
        return found
    surface = Surface.of(found.program, data)
    best = replace(found.minima[0], theta=surface.wrap(found.minima[0].theta))
    floor = len(data.y) * settings.sigma_bounds(data.y)[0] ** 2
    worst = (best.sse + floor) * np.exp(2.0 * NEGLIGIBLE / (gamma * len(data.y)))
    surface = surface.around([best])
    others = [m for m in found.minima[1:] if m.sse <= worst and surface.obeys(m.theta[None, :])[0]]
    shifts = [shift for watched in surface.watched for shift in watched.shifts]
    found = replace(found, minima=(best, *others))
    return add_images(found, data, shifts, surface.obeys, float(worst))


def _weigh_fitted(
    program: Program,
    data: Data,
    settings: Settings,
    seed: np.random.SeedSequence,
    failed: Evidence,
    floor: float,
) -> Evidence:
    rng_fit, *rngs = (
        np.random.Generator(np.random.PCG64(s)) for s in seed.spawn(1 + settings.n_replicates)
    )
    target = make_target(program, data, settings, rng=rng_fit)
    fitted = _with_fit(failed, target)
    if not settings.thorough:
        log_q = linear_log_q(target)
        if log_q < max(floor, constant_log_q(data.y.tobytes(), settings) - HOPELESS):
            sensitivity = linear_log_q(target.halved) - log_q
            return replace(fitted, log_q=log_q, log_q_se=1.0, prior_sensitivity=sensitivity)

    def sample(target: Target, rng: np.random.Generator) -> FractionalKernel:
        return run_kernel(
            target,
            n_draws=settings.n_draws,
            n_particles=settings.n_particles,
            rng=rng,
            to_posterior=False,
            thorough=settings.thorough,
        )

    # A repetition has starts of its own, because the region depends on the minima that were found:
    # where that is a matter of luck, the standard error must say so.
    targets = [target]
    if len(program.affine) < program.n_parameters:
        for rng in rngs[1:]:
            with suppress(FitError, np.linalg.LinAlgError):
                targets.append(make_target(program, data, settings, rng=rng))
        target = min(targets, key=_least_error)
        fitted = _with_fit(failed, target)
    # Starts that missed the best minimum were too few, and say nothing of the others' region.
    most = (1.0 + SAME_ERROR) * _least_error(target) + ROUNDING * float(np.sum(data.y**2))
    found_by = [one for one in targets if _least_error(one) <= most]
    is_lucky = len(found_by) == 1 < len(targets)
    by_region: list[list[FractionalKernel]] = [[] for _ in found_by]
    for k, rng in enumerate(rngs):
        by_region[k % len(found_by)].append(sample(found_by[k % len(found_by)], rng))
    if settings.thorough and not all(run.covered for runs in by_region for run in runs):
        # The error of a run with a bridge is known only by repeating it.
        for k, s in enumerate(seed.spawn(N_REPEATS)):
            rng = np.random.Generator(np.random.PCG64(s))
            by_region[k % len(found_by)].append(sample(found_by[k % len(found_by)], rng))
    runs = [run for runs in by_region for run in runs]
    if not settings.thorough and any(
        not run.covered and (run.pareto_k > WILD_PARETO_K or run.ess < WILD_ESS) for run in runs
    ):
        return replace(fitted, failure="unreliable: too few draws reach the posterior")
    log_z_gamma, log_z, log_q, log_q_se = _pool(by_region)
    if is_lucky or not all(run.covered for run in runs):
        log_q_se = max(log_q_se, UNCOVERED_SE)
    if settings.thorough and log_q_se > MAX_SE:
        reason = f"unreliable: log q = {log_q:.4g} with standard error {log_q_se:.2g}"
        return replace(fitted, failure=reason)
    if sum(run.half_ess for run in runs) >= MIN_ESS:
        shares = [np.mean([run.half_shares[phi] for run in runs]) for phi in (1.0, target.gamma)]
        sensitivity = float(np.log(shares[0]) - np.log(shares[1]))
    else:
        rng = np.random.Generator(np.random.PCG64(seed.spawn(1)[0]))
        here = _pool([by_region[found_by.index(target)]])[2]
        sensitivity = _sample_sensitivity(target, here, partial(sample, rng=rng), settings)
    return replace(
        fitted,
        log_q=log_q,
        log_q_se=log_q_se,
        log_z_gamma=log_z_gamma,
        log_z=log_z,
        prior_sensitivity=sensitivity,
        pareto_k=float(max(run.pareto_k for run in runs)),
    )


def _sample_sensitivity(
    target: Target,
    log_q: float,
    sample: Callable[[Target], FractionalKernel],
    settings: Settings,
) -> float:
    """Weigh with halved bounds, where too few draws between the full ones tell what would change.

    That is so where the bounds matter most: all of the posterior is at the upper end of sigma. A
    search is content with what a linear equation would do, and so are we if sampling fails.
    """
    if settings.thorough:
        with suppress(FloatingPointError, np.linalg.LinAlgError):
            run = sample(target.halved)
            if run.log_q_variance <= MAX_SE**2:
                return float(run.log_marginal_likelihood - run.log_z_gamma - log_q)
    return linear_log_q(target.halved) - linear_log_q(target)


def _least_error(target: Target) -> float:
    return target.fit.minima[0].sse


def _with_fit(evidence: Evidence, target: Target) -> Evidence:
    """Add what the best fit says."""
    return replace(
        evidence,
        rank=len(target.fit.free),
        theta=target.fit.theta,
        rmse=float(np.sqrt(_least_error(target) / len(target.data.y))),
    )


def linear_log_q(target: Target) -> float:
    r"""Log q that a linear equation with the same rank and squared error would have.

    Its integral over theta is known, so that only that over log sigma remains; for most equations
    of a search it is within a nat of the truth.
    """
    n, chart, gamma = len(target.data.y), target.charts[0], target.gamma
    masses = [target.log_sigma(chart, phi).log_mass for phi in (1.0, gamma)]
    return float(
        masses[0]
        - masses[1]
        + 0.5 * len(chart.theta) * np.log(gamma)
        - 0.5 * (1.0 - gamma) * n * np.log(2.0 * np.pi)
    )


@lru_cache(maxsize=8)
def constant_log_q(y_bytes: bytes, settings: Settings) -> float:
    """Return `linear_log_q` of the equation c0, exact; the same for all equations of a search."""
    y = np.frombuffer(y_bytes)
    n, gamma = len(y), settings.resolve_gamma(len(y), 1)
    sse = float(np.var(y) * n)
    low, high = np.log(settings.sigma_bounds(y))
    integrals = [
        log_sigma_integral(2 - settings.sigma_power - phi * n, phi * sse / 2.0, low, high)
        for phi in (1.0, gamma)
    ]
    constant = 0.5 * np.log(gamma) - 0.5 * (1.0 - gamma) * n * np.log(2.0 * np.pi)
    return float(integrals[0] - integrals[1] + constant)


def _pool(by_region: Sequence[Sequence[FractionalKernel]]) -> tuple[float, float, float, float]:
    """Average independent runs: log Z(gamma), log Z(1), log q and its standard error.

    The integrals over one region are averaged themselves. Regions of separate fits may differ, by
    the values at which redundant parameters are held, so that only log q can be averaged; log
    Z(gamma) is then that of the first. The error is the larger of what the runs claim and of what
    they, or the regions, show.
    """
    integrals = [
        np.array([(run.log_z_gamma, run.log_marginal_likelihood) for run in runs])
        for runs in by_region
    ]
    logs = np.array([log_sum_exp(pairs) - np.log(len(pairs)) for pairs in integrals])
    log_z_gamma = float(logs[0, 0])
    log_q = float(np.mean(logs[:, 1] - logs[:, 0]))
    every = [run for runs in by_region for run in runs]
    variance = float(np.mean([run.log_q_variance for run in every])) / len(every)
    # Runs over one region share its luck: they are independent only given the region.
    shown = logs if len(logs) > 1 else integrals[0]
    if len(shown) > 1:
        variance = max(variance, float(np.var(shown[:, 1] - shown[:, 0], ddof=1)) / len(shown))
    return log_z_gamma, log_z_gamma + log_q, log_q, float(np.sqrt(variance))


def _weigh_constant(program: Program, data: Data, settings: Settings, failed: Evidence) -> Evidence:
    """Integrate over sigma alone: an equation without parameters."""
    values = evaluate(program, np.empty((1, 0)), data.X)[0]
    sse = float(np.sum((data.y - values) ** 2))
    n, k, gamma = len(data.y), settings.sigma_power, failed.gamma
    low, high = np.log(failed.sigma_bounds)
    half = high - np.log(2.0)
    half = half if half > low else high  # as in `Target.halved`
    if not np.isfinite(sse * np.exp(-2.0 * half)):
        return replace(failed, failure=_without_error(values))

    def log_z(phi: float, high: float) -> float:
        return log_sigma_integral(1 - k - phi * n, phi * sse / 2.0, low, high) - (
            phi * n / 2.0
        ) * np.log(2.0 * np.pi)

    log_q = log_z(1.0, high) - log_z(gamma, high)
    return replace(
        failed,
        log_q=log_q,
        log_z_gamma=log_z(gamma, high),
        log_z=log_z(1.0, high),
        theta=np.empty(0),
        rmse=float(np.sqrt(sse / n)),
        prior_sensitivity=log_z(1.0, half) - log_z(gamma, half) - log_q,
    )


def _without_error(values: Floats) -> str:
    """Say why an equation without parameters has no squared error that could be weighed."""
    if np.isfinite(values).all():
        return "too far from the data: its log likelihood is beyond all numbers"
    return "never finite: the equation is not finite on the data"


def log_sigma_integral(a: float, b: float, low: float, high: float) -> float:
    r"""Return :math:`\log \int e^{a u - b e^{-2u}} du` between two bounds, by Simpson's rule.

    Examples
    --------
    >>> round(log_sigma_integral(1.0, 0.0, -1.0, 1.0), 8) == round(float(np.log(2 * np.sinh(1))), 8)
    True
    """
    low, mode, high = narrow(a, b, np.array([low, high]))
    top = float(log_kernel(a, b, np.array(mode)))
    pieces = [np.linspace(low, mode, 2001), np.linspace(mode, high, 2001)]
    integrals = [simpson(np.exp(log_kernel(a, b, u) - top), x=u) for u in pieces if u[-1] > u[0]]
    return top + float(np.log(sum(integrals)))
