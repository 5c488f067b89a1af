"""The evidence q(gamma) of one equation, Eq. (5); the one place where a failure becomes a value."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from hashlib import blake2b
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pmsr.equation.expression import Equation
from pmsr.equation.program import Program, evaluate
from pmsr.evidence.atlas import SurfaceTarget
from pmsr.evidence.compromise import fit_between
from pmsr.evidence.multistart import Fit, FitError, add_images, fit, fit_once
from pmsr.evidence.noise import LOG_2_PI
from pmsr.evidence.problem import Problem, read_problem, refuse_groups
from pmsr.evidence.proposal import NEGLIGIBLE, Target, log_sum_exp
from pmsr.evidence.scale import log_simpson
from pmsr.evidence.shared import Joint, integrate, linear_shared_log_q
from pmsr.evidence.smc import (
    FractionalKernel,
    effective_sample_size,
    keep_families,
    run_kernel,
    systematic_indexes,
)
from pmsr.evidence.surface import Surface
from pmsr.evidence.trust import UNKNOWN_SE, Trust, trust_of
from pmsr.settings import RandomSeed, Settings
from pmsr.threads import one_blas_thread

Floats = NDArray[np.float64]

DRAWS, CHAINS = 1000, 4  # of a posterior, unless somebody asks for others
N_TUNED = 8  # fits whose weights follow from the residuals of the one before
SAME_WEIGHTS = 0.01  # relative change of weights that no proposal notices
N_SIGMA = 4001  # grid points of log sigma, where noise is not normal
GROUP = 2**32 - 2  # place of the groups' seeds, each of which is named by its label
MIN_SHARED = 1000  # draws of each group, of a repetition, where sigma is shared
KEPT = 2**32 - 1  # place among a seed's children of that which resamples: no other comes so far


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
        The fraction; where groups have sigmas of their own, each has its own, and this is that of
        all rows together.
    sigma_bounds
        Bounds of sigma; of groups with their own the least and the largest.
    n_parameters
        p, the number of parameters as written.
    rank
        How many of them the data determine.
    theta
        The best minimum, in the order of the equation's parameters; with groups one row for each,
        in the order of their labels. ``rank`` is then the sum over all.
    rmse
        Root mean squared error there.
    prior_sensitivity
        By how many nats log q would change if the largest sigma were halved (and, with flat
        parameters, their region). Differences in log q that are smaller are not evidence.
    failure
        None, or why there is no evidence.
    pareto_k
        Tail index of the importance weights, the worse of both ends; above 0.7, or with a
        standard error above 0.5, mistrust ``log_q``.
    log_q_linear
        Log q that an equation with the same rank and squared error would have if it were linear
        in its parameters: a closed form, for most laws within a few tenths of a nat.
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
    log_q_linear: float = np.nan


class Chain(NamedTuple):
    """Draws from the posterior: theta (draws, p) and sigma (draws,), and the stages on the way."""

    theta: Floats
    sigma: Floats
    stages: list[dict[str, float]]
    log_z_gamma: float
    log_z: float


@dataclass(frozen=True, eq=False)
class Weighed:
    """What weighing an equation leaves: nobody fits again what is fitted.

    Parameters
    ----------
    evidence
        How well the data support it.
    fit
        The region that log q came from, without Jacobians; None after a failure, or if nobody
        asked for it.
    chains
        Draws from the posterior, resampled from the very particles that gave log q; none where
        these are too few.
    parts
        The same of each group, if there are several. Where sigma is shared, log q does not divide
        among them: theirs is NaN.
    """

    evidence: Evidence
    fit: Fit | None = None
    chains: tuple[Chain, ...] = ()
    parts: tuple["Weighed", ...] = ()

    def target(self, problem: Problem) -> Target:
        """Return the density over the region that log q came from."""
        if self.fit is None:
            raise FitError("nothing was kept of its fit")
        return _target_of(self.fit.with_jacobians(problem), problem)


def compute_evidence(
    equation: Equation | str,
    X: ArrayLike,
    y: ArrayLike,
    *,
    y_err: ArrayLike | None = None,
    X_err: ArrayLike | None = None,
    groups: Any = None,
    sample_weight: ArrayLike | None = None,
    constants: Mapping[str, Any] | None = None,
    priors: Mapping[str, Any] | None = None,
    settings: Settings | None = None,
    random_seed: RandomSeed = None,
    **options: Any,
) -> Evidence:
    """Weigh one equation against data.

    Parameters
    ----------
    equation
        An equation, or its text with the columns of X as variables.
    X, y
        The data.
    y_err, X_err, sample_weight
        Known errors of the target, standard deviations in its units, and of the variables, of the
        shape of X or a table of those columns that have errors; and how often each row was
        observed: 2 is the same as the row twice. Precisions belong in ``y_err``.
    groups
        The experiment to which each row belongs: the same law with constants of its own for each.
        Log q adds up, unless all have noise of one size (``shared_sigma=True``).
    constants
        Known constants by name, which equations may use as they use columns: a number, a value
        with its standard error, or a PyMC distribution. One that is not exact is a parameter with
        that prior.
    priors
        Proper priors of parameters by name: a PyMC distribution of one number without a name, such
        as ``{"c1": pm.HalfNormal.dist(2)}``, or a value and its standard error. They enter
        Z(gamma) and Z(1) alike; the others are flat on the surface of predictions, given these.
    settings
        Fraction, priors and sizes; ``pmsr.settings.FINALIST`` is four times as precise.
    random_seed
        Seed or generator. The same seed gives the same evidence to the last bit, whatever was
        computed before.
    options
        Single options of :class:`pmsr.Settings`, which are changed in ``settings``:
        ``noise="student"``, ``extra_noise=True``.

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
    equation, problem, settings = read_problem(
        equation,
        X,
        y,
        settings,
        options,
        constants=constants,
        priors=priors,
        y_err=y_err,
        X_err=X_err,
        groups=groups,
        sample_weight=sample_weight,
    )
    return weigh(equation.program, problem, settings, seed_for(equation.key, random_seed)).evidence


def fit_equation(
    equation: Equation | str,
    X: ArrayLike,
    y: ArrayLike,
    *,
    y_err: ArrayLike | None = None,
    X_err: ArrayLike | None = None,
    groups: Any = None,
    sample_weight: ArrayLike | None = None,
    constants: Mapping[str, Any] | None = None,
    priors: Mapping[str, Any] | None = None,
    settings: Settings | None = None,
    random_seed: RandomSeed = None,
    **options: Any,
) -> Target:
    """Fit an equation and describe the density that its evidence integrates.

    Parameters
    ----------
    equation, X, y, y_err, X_err, sample_weight, constants, priors
        As in `compute_evidence`.
    settings, random_seed, options
        As there.
    groups
        Refused: the density is that of one group.

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
    equation, problem, settings = read_problem(
        equation,
        X,
        y,
        settings,
        options,
        constants=constants,
        priors=priors,
        y_err=y_err,
        X_err=X_err,
        groups=groups,
        sample_weight=sample_weight,
    )
    if not equation.parameters:
        raise ValueError(f"{equation.text!r} has no parameters to fit.")
    refuse_groups(problem, "A density over the parameters of one equation is fitted to")
    rng = np.random.Generator(np.random.PCG64(seed_for(equation.key, random_seed)))
    try:
        with one_blas_thread():
            return make_target(equation.program, problem, settings.n_multistarts, rng=rng)
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
    problem: Problem,
    settings: Settings,
    seed: np.random.SeedSequence,
    *,
    floor: float = -np.inf,
    keep: bool = False,
) -> Weighed:
    """Compute the evidence of a program: what the search calls, thousands of times.

    With `keep`, for equations that are shown, fit and particles stay with the evidence.
    Of the settings, only the sizes of samples and the row of `trust` matter: what is integrated is
    the problem's. Where `linear_log_q` is below the floor, or hopeless, a search is content with
    it; its standard error is then 1. Uncertain constants are weighed as parameters, after the
    others.
    """
    if problem.priors:
        program, problem = problem.release(program)
    p = program.n_parameters
    gamma, bounds, nothing = problem.gamma, problem.sigma_bounds, np.full(p, np.nan)
    failed = Evidence(-np.inf, 0.0, np.nan, np.nan, gamma, bounds, p, 0, nothing, np.inf, 0.0)
    if problem.parts and not (problem.shared_sigma and p == 0):
        failed = replace(failed, theta=np.full((len(problem.parts), p), np.nan))
        if not problem.shared_sigma:
            return _weigh_groups(program, problem, settings, seed, failed, keep)
    with one_blas_thread(), np.errstate(all="ignore"):
        if p == 0:
            evidence = _weigh_constant(program, problem, failed)
            nothing = np.empty((len(problem.parts), 0)) if problem.parts else evidence.theta
            return Weighed(replace(evidence, theta=nothing))
        try:
            if problem.parts:
                return _weigh_shared(program, problem, settings, seed, failed, floor, keep)
            return _weigh_fitted(program, problem, settings, seed, failed, floor, keep)
        except (FitError, FloatingPointError) as error:
            return Weighed(replace(failed, failure=str(error)))
        except np.linalg.LinAlgError:
            return Weighed(replace(failed, failure="singular covariance"))


def fit_rmse(
    program: Program, problem: Problem, settings: Settings, seed: np.random.SeedSequence
) -> Evidence:
    """Fit a program without weighing it: the conventional search's half of `weigh`.

    Returns
    -------
    Evidence
        Only ``theta``, ``rmse`` and ``failure`` mean anything; ``log_q`` is NaN.
    """
    p, data = program.n_parameters, problem.data
    if problem.parts:
        return _fit_groups(program, problem, settings, seed)
    gamma, bounds = np.nan, problem.sigma_bounds
    failed = Evidence(
        np.nan, 0.0, np.nan, np.nan, gamma, bounds, p, 0, np.full(p, np.nan), np.inf, 0.0
    )
    with one_blas_thread(), np.errstate(all="ignore"):
        if p == 0:
            values = evaluate(program, np.empty((1, 0)), data.X)[0]
            rmse = problem.rmse(program, np.empty(0), float(np.sum((data.y - values) ** 2)))
            if not np.isfinite(rmse):
                return replace(failed, failure=_without_error(values))
            return replace(failed, rmse=rmse, theta=np.empty(0))
        try:
            rng = np.random.Generator(np.random.PCG64(seed))
            if trust_of(settings).fits_once and not len(problem.given):
                best = fit_once(program, problem, settings.n_multistarts, rng=rng)
                theta, sse = best.theta, best.sse
            else:
                find = _fit_given if len(problem.given) else fit
                found = find(program, problem, settings.n_multistarts, rng=rng)
                theta, sse = found.theta, found.minima[0].sse
        except FitError as error:
            return replace(failed, failure=str(error))
        except np.linalg.LinAlgError:
            return replace(failed, failure="singular covariance")
    return replace(failed, rmse=problem.rmse(program, theta, sse), theta=theta)


def make_target(
    program: Program, problem: Problem, n_multistarts: int, *, rng: np.random.Generator
) -> Target:
    """Fit an equation, to one group, and set up the density to integrate."""
    find = _find_fit(program, problem)
    found = find(program, problem, n_multistarts, rng=rng)
    for _ in range(N_TUNED if problem.noise.needs_tuning else 0):
        before, problem = problem, problem.tuned(found.program, found.minima[0].theta)
        if before.tuning is not None and problem.tuning is not None:
            change = problem.tuning.weights / before.tuning.weights - 1.0
            if np.max(np.abs(change)) < SAME_WEIGHTS:
                break
        found = find(program, problem, n_multistarts, rng=rng)
    if problem.noise.uses_slopes and problem.tuning is None:
        raise FitError("its slope is not finite where a variable has an error")
    # It may be linear in what the data determine.
    target = _target_of(found, problem)
    target.check_range()
    return target


def is_flat(program: Program, problem: Problem) -> bool:
    """Tell whether theta is flat: where f is linear, the surface's volume is the same all over."""
    if len(problem.given):
        return False
    if problem.parameter_prior == "flat":
        return True
    return problem.noise.link is None and len(program.affine) == program.n_parameters


def _find_fit(program: Program, problem: Problem) -> Callable[..., Fit]:
    """Return what finds the minima of an equation."""
    if len(problem.given):
        return _fit_given
    return fit if is_flat(program, problem) else _fit_surface


def _fit_given(
    program: Program, problem: Problem, n_multistarts: int, *, rng: np.random.Generator
) -> Fit:
    """Find where an equation fits while the priors of its parameters allow it."""

    def find(part: Program, plain: Problem, n_multistarts: int, *, rng: np.random.Generator) -> Fit:
        return _find_fit(part, plain)(part, plain, n_multistarts, rng=rng)

    return fit_between(program, problem, n_multistarts, find, rng=rng)


def _target_of(found: Fit, problem: Problem) -> Target:
    """Set up the density over the region of a fit."""
    if problem.noise.needs_tuning:
        problem = problem.tuned(found.program, found.minima[0].theta)
        found = found.under(problem)
    is_surface = bool(found.images) or not is_flat(found.program, problem)
    return SurfaceTarget(found, problem) if is_surface else Target(found, problem)


def _fit_surface(
    program: Program, problem: Problem, n_multistarts: int, *, rng: np.random.Generator
) -> Fit:
    """Find the minima on the surface of predictions, with all their images."""
    white = problem.white
    found = fit(
        program,
        problem,
        n_multistarts,
        rng=rng,
        generic=True,
        rule=lambda one: Surface.of(one, white).obeys,
    )
    if is_flat(found.program, problem):
        return found
    surface = Surface.of(problem.whiten(found.program), white)
    best = replace(found.minima[0], theta=surface.wrap(found.minima[0].theta))
    worst = problem.scale.largest_square(problem.n, best.sse, NEGLIGIBLE / problem.gamma)
    surface = surface.around([best])
    others = [m for m in found.minima[1:] if m.sse <= worst and surface.obeys(m.theta[None, :])[0]]
    shifts = [shift for watched in surface.watched for shift in watched.shifts]
    found = replace(found, minima=(best, *others))
    return add_images(found, problem, shifts, surface.obeys, worst)


def _weigh_fitted(
    program: Program,
    problem: Problem,
    settings: Settings,
    seed: np.random.SeedSequence,
    failed: Evidence,
    floor: float,
    keep: bool,
) -> Weighed:
    trust = trust_of(settings)
    rng_fit, *rngs = (
        np.random.Generator(np.random.PCG64(s)) for s in seed.spawn(1 + settings.n_replicates)
    )
    target = make_target(program, problem, settings.n_multistarts, rng=rng_fit)
    fitted = _with_fit(failed, target)
    if trust.takes_linear:
        log_q = fitted.log_q_linear
        if trust.is_hopeless(log_q, problem.constant_log_q, floor):
            sensitivity = linear_log_q(target.halved) - log_q
            found = replace(fitted, log_q=log_q, log_q_se=UNKNOWN_SE, prior_sensitivity=sensitivity)
            return Weighed(found, target.fit.without_jacobians() if keep else None)

    def sample(target: Target, rng: np.random.Generator) -> FractionalKernel:
        return run_kernel(
            target,
            n_draws=settings.n_draws,
            n_particles=settings.n_particles,
            rng=rng,
            to_posterior=False,
            trust=trust,
        )

    # A repetition has starts of its own, because the region depends on the minima that were found:
    # where that is a matter of luck, the standard error must say so.
    targets = [target]
    if len(program.affine) < program.n_parameters:
        for rng in rngs[1:]:
            with suppress(FitError, np.linalg.LinAlgError):
                targets.append(make_target(program, problem, settings.n_multistarts, rng=rng))
        target = min(targets, key=_least_error)
        fitted = _with_fit(failed, target)
    # Starts that missed the best minimum were too few, and say nothing of the others' region.
    most = trust.largest_error(_least_error(target), float(np.sum(target.problem.white.y**2)))
    found_by = [one for one in targets if _least_error(one) <= most]
    is_lucky = len(found_by) == 1 < len(targets)
    by_region: list[list[FractionalKernel]] = [[] for _ in found_by]
    for k, rng in enumerate(rngs):
        by_region[k % len(found_by)].append(sample(found_by[k % len(found_by)], rng))
    if not all(run.covered for runs in by_region for run in runs):
        # The error of a run with a bridge is known only by repeating it.
        for k, s in enumerate(seed.spawn(trust.n_repeats)):
            rng = np.random.Generator(np.random.PCG64(s))
            by_region[k % len(found_by)].append(sample(found_by[k % len(found_by)], rng))
    runs = [run for runs in by_region for run in runs]
    if any(not run.covered and trust.is_wild(run.ess, run.pareto_k) for run in runs):
        return Weighed(replace(fitted, failure="unreliable: too few draws reach the posterior"))
    log_z_gamma, log_z, log_q, log_q_se = _pool(by_region)
    if is_lucky or not all(run.covered for run in runs):
        log_q_se = max(log_q_se, trust.uncovered_se)
    if not trust.is_number(log_q_se):
        reason = f"unreliable: log q = {log_q:.4g} with standard error {log_q_se:.2g}"
        return Weighed(replace(fitted, failure=reason))
    if trust.has_enough(sum(run.half_ess for run in runs)):
        shares = [np.mean([run.half_shares[phi] for run in runs]) for phi in (1.0, target.gamma)]
        sensitivity = float(np.log(shares[0]) - np.log(shares[1]))
    else:
        rng = np.random.Generator(np.random.PCG64(seed.spawn(1)[0]))
        here = _pool([by_region[found_by.index(target)]])[2]
        sensitivity = _sample_sensitivity(target, here, partial(sample, rng=rng), trust)
    evidence = replace(
        fitted,
        log_q=log_q,
        log_q_se=log_q_se,
        log_z_gamma=log_z_gamma,
        log_z=log_z,
        prior_sensitivity=sensitivity,
        pareto_k=float(max(run.pareto_k for run in runs)),
    )
    if not keep:
        return Weighed(evidence)
    # Where parameters are held, each fit has values of its own for them.
    shared = all(len(one.fit.free) == program.n_parameters for one in found_by)
    used = runs if shared else by_region[found_by.index(target)]
    child = np.random.SeedSequence(seed.entropy, spawn_key=(*seed.spawn_key, KEPT))
    chains = _keep_particles(used, trust, rng=np.random.Generator(np.random.PCG64(child)))
    return Weighed(evidence, target.fit.without_jacobians(), chains)


def group_seeds(seed: np.random.SeedSequence, problem: Problem) -> list[np.random.SeedSequence]:
    """Return a seed for each group, which depends on its label and not on its place."""
    return [
        np.random.SeedSequence(
            seed.entropy, spawn_key=(*seed.spawn_key, GROUP, crc32(label.encode()))
        )
        for label in problem.labels
    ]


def _weigh_groups(
    program: Program,
    problem: Problem,
    settings: Settings,
    seed: np.random.SeedSequence,
    failed: Evidence,
    keep: bool,
) -> Weighed:
    """Weigh each group by itself: with sigmas of their own, they are independent."""
    parts = []
    for label, part, own in zip(
        problem.labels, problem.parts, group_seeds(seed, problem), strict=True
    ):
        one = weigh(program, part, settings, own, keep=keep)
        if one.evidence.failure is not None:
            return Weighed(replace(failed, failure=f"group {label!r}: {one.evidence.failure}"))
        parts.append(one)
    all_of = [one.evidence for one in parts]
    counts = np.array([part.n for part in problem.parts])
    evidence = replace(
        failed,
        log_q=sum(one.log_q for one in all_of),
        log_q_se=float(np.sqrt(sum(one.log_q_se**2 for one in all_of))),
        log_z_gamma=sum(one.log_z_gamma for one in all_of),
        log_z=sum(one.log_z for one in all_of),
        rank=sum(one.rank for one in all_of),
        theta=np.array([one.theta for one in all_of]),
        rmse=_joint_rmse([one.rmse for one in all_of], counts),
        prior_sensitivity=sum(one.prior_sensitivity for one in all_of),
        pareto_k=max(one.pareto_k for one in all_of),
        log_q_linear=sum(one.log_q_linear for one in all_of),
    )
    return Weighed(evidence, parts=tuple(parts) if keep else ())


def _joint_rmse(rmses: Sequence[float], counts: Floats) -> float:
    largest = max(rmses)
    if not 0.0 < largest < np.inf:
        return largest
    return float(largest * np.sqrt(counts @ (np.array(rmses) / largest) ** 2 / counts.sum()))


def _fit_groups(
    program: Program, problem: Problem, settings: Settings, seed: np.random.SeedSequence
) -> Evidence:
    """Fit each group by itself."""
    pairs = zip(problem.parts, group_seeds(seed, problem), strict=True)
    found = [fit_rmse(program, part, settings, own) for part, own in pairs]
    reasons = zip(problem.labels, (one.failure for one in found), strict=True)
    counts = np.array([part.n for part in problem.parts])
    return replace(
        found[0],
        sigma_bounds=problem.sigma_bounds,
        theta=np.array([one.theta for one in found]),
        rmse=_joint_rmse([one.rmse for one in found], counts),
        failure=next((f"group {label!r}: {why}" for label, why in reasons if why), None),
    )


def _weigh_shared(
    program: Program,
    problem: Problem,
    settings: Settings,
    seed: np.random.SeedSequence,
    failed: Evidence,
    floor: float,
    keep: bool,
) -> Weighed:
    """Weigh all groups together: they share sigma, see `pmsr.evidence.shared`."""
    trust = trust_of(settings)
    seeds = group_seeds(seed, problem)
    streams = [
        [np.random.Generator(np.random.PCG64(s)) for s in own.spawn(2 * settings.n_replicates)]
        for own in seeds
    ]

    def fit_all(k: int) -> list[Target]:
        targets = []
        for label, part, rngs in zip(problem.labels, problem.parts, streams, strict=True):
            try:
                target = make_target(program, part, settings.n_multistarts, rng=rngs[2 * k])
            except (FitError, FloatingPointError, np.linalg.LinAlgError) as error:
                is_singular = isinstance(error, np.linalg.LinAlgError)
                reason = "singular covariance" if is_singular else str(error)
                raise FitError(f"group {label!r}: {reason}") from None
            targets.append(target)
        return targets

    targets = fit_all(0)
    fitted = _with_fits(failed, targets, problem)
    if trust.takes_linear and trust.is_hopeless(fitted.log_q_linear, problem.constant_log_q, floor):
        return Weighed(replace(fitted, log_q=fitted.log_q_linear, log_q_se=UNKNOWN_SE))
    fits = [targets]
    if len(program.affine) < program.n_parameters:
        for k in range(1, settings.n_replicates):
            with suppress(FitError):
                fits.append(fit_all(k))
        # For each group the best that any repetition has found: minima are the group's own.
        best = [min((one[g] for one in fits), key=_least_error) for g in range(len(targets))]
        fitted = _with_fits(failed, best, problem)
        targets = best
    # Each draw knows log L at all sizes of noise: repetitions share what is drawn.
    n_draws = max(MIN_SHARED, settings.n_draws // settings.n_replicates)
    runs = [
        integrate(targets, n_draws, rngs=[rngs[2 * k + 1] for rngs in streams], trust=trust)
        for k in range(settings.n_replicates)
    ]
    log_qs = np.array([run.log_q for run in runs])
    variance = float(np.mean([run.log_q_variance for run in runs])) / len(runs)
    if len(runs) > 1:
        variance = max(variance, float(np.var(log_qs, ddof=1)) / len(runs))
    log_q, log_q_se = float(np.mean(log_qs)), float(np.sqrt(variance))
    is_covered = [trust.covers(run.ess, run.pareto_k, run.top_share) for run in runs]
    if not all(is_covered):
        if any(trust.is_wild(run.ess, run.pareto_k) for run in runs):
            return Weighed(replace(fitted, failure="unreliable: too few draws reach the posterior"))
        log_q_se = max(log_q_se, trust.uncovered_se)
    if not trust.is_number(log_q_se):
        reason = f"unreliable: log q = {log_q:.4g} with standard error {log_q_se:.2g}"
        return Weighed(replace(fitted, failure=reason))
    log_z_gamma = float(np.mean([run.ends[0].log_z for run in runs]))
    evidence = replace(
        fitted,
        log_q=log_q,
        log_q_se=log_q_se,
        log_z_gamma=log_z_gamma,
        log_z=log_z_gamma + log_q,
        prior_sensitivity=float(np.mean([run.sensitivity() for run in runs])),
        pareto_k=float(max(run.pareto_k for run in runs)),
    )
    if not keep:
        return Weighed(evidence)
    child = np.random.SeedSequence(seed.entropy, spawn_key=(*seed.spawn_key, KEPT))
    chains = _keep_joint(runs, evidence, np.random.Generator(np.random.PCG64(child)))
    parts = tuple(
        Weighed(
            replace(
                _with_fit(replace(failed, theta=np.full(program.n_parameters, np.nan)), target),
                log_q=np.nan,
                log_z=np.nan,
                log_z_gamma=np.nan,
                log_q_linear=np.nan,
            ),
            target.fit.without_jacobians(),
            tuple(chain[g] for chain in chains),
        )
        for g, target in enumerate(targets)
    )
    return Weighed(evidence, parts=parts)


def _with_fits(evidence: Evidence, targets: Sequence[Target], problem: Problem) -> Evidence:
    """Add what the best fits of all groups say."""
    found = [_with_fit(evidence, one) for one in targets]
    return replace(
        evidence,
        rank=sum(one.rank for one in found),
        theta=np.array([one.theta for one in found]),
        rmse=_joint_rmse([one.rmse for one in found], np.array([p.n for p in problem.parts])),
        log_q_linear=linear_shared_log_q(targets, problem),
        prior_sensitivity=linear_shared_log_q([one.halved for one in targets], problem)
        - linear_shared_log_q(targets, problem),
    )


def _keep_joint(
    runs: Sequence[Joint], evidence: Evidence, rng: np.random.Generator
) -> list[list[Chain]]:
    """Resample chains from the joint posterior: for each chain, one of every group."""
    n_parts = -(-CHAINS // len(runs))
    pieces = [(run, slice(part, None, n_parts)) for part in range(n_parts) for run in runs]
    stages = [
        {"beta": phi, "log_marginal_likelihood": log_z, "accept_rate": np.nan}
        for phi, log_z in ((evidence.gamma, evidence.log_z_gamma), (1.0, evidence.log_z))
    ]
    chains = []
    for run, piece in pieces[:CHAINS]:
        thetas, sigma = run.draw(DRAWS, piece, rng=rng)
        low, high = run.ends[0].log_z, run.ends[1].log_z
        chains.append([Chain(theta, sigma, stages, low, high) for theta in thetas])
    return chains


def _keep_particles(
    runs: Sequence[FractionalKernel], trust: Trust, *, rng: np.random.Generator
) -> tuple[Chain, ...]:
    """Resample chains from the particles of runs at temperature 1; none if these are too few.

    Every chain has particles of its own, so that they can be compared: with fewer runs than
    chains, the runs are divided.
    """
    n_parts = -(-CHAINS // len(runs))
    pieces = [
        (run, np.arange(part, len(run.theta), n_parts)) for part in range(n_parts) for run in runs
    ][:CHAINS]
    ess = [effective_sample_size(run.log_weights[places]) for run, places in pieces]
    if not (all(run.covered for run in runs) and trust.make_posterior(ess)):
        return ()
    chains = []
    for run, places in pieces:
        log_weights = run.log_weights[places]
        chosen = systematic_indexes(np.exp(log_weights - log_weights.max()), DRAWS, rng)
        order = keep_families(chosen, rng)
        kept = places[chosen[order]]
        theta, sigma = run.target.fit.full_theta(run.theta[kept]), np.exp(run.log_sigma[kept])
        chains.append(Chain(theta, sigma, run.stages, run.log_z_gamma, run.log_marginal_likelihood))
    return tuple(chains)


def _sample_sensitivity(
    target: Target,
    log_q: float,
    sample: Callable[[Target], FractionalKernel],
    trust: Trust,
) -> float:
    """Weigh with halved bounds, where too few draws between the full ones tell what would change.

    That is so where the bounds matter most: all of the posterior is at the upper end of sigma. A
    search is content with what a linear equation would do, and so are we if sampling fails.
    """
    if trust.samples_sensitivity:
        with suppress(FloatingPointError, np.linalg.LinAlgError):
            run = sample(target.halved)
            if trust.is_number(float(np.sqrt(run.log_q_variance))):
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
        rmse=target.problem.rmse(
            target.fit.program, target.fit.minima[0].theta, _least_error(target)
        ),
        log_q_linear=linear_log_q(target),
    )


def linear_log_q(target: Target) -> float:
    r"""Log q that a linear equation with the same rank and squared error would have.

    Its integral over theta is known, so that only that over log sigma remains; for most equations
    of a search it is within a nat of the truth.
    """
    problem, chart, gamma = target.problem, target.charts[0], target.gamma
    n = problem.n
    masses = [target.log_sigma(chart, phi).log_mass for phi in (1.0, gamma)]
    return float(
        masses[0]
        - masses[1]
        + 0.5 * target.n_flat * np.log(gamma)
        + target.log_learnt
        - 0.5 * (1.0 - gamma) * n * LOG_2_PI
        + (1.0 - gamma) * target.excess
    )


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


def _weigh_constant(program: Program, problem: Problem, failed: Evidence) -> Evidence:
    """Integrate over sigma alone: an equation without parameters."""
    if "y_err" in problem.columns or problem.noise.uses_slopes:
        problem = problem.tuned(program, np.empty(0))
    values = evaluate(problem.whiten(program), np.empty((1, 0)), problem.white.X)[0]
    square = float(np.sum((problem.white.y - values) ** 2))
    n, gamma, half = problem.n, problem.gamma, problem.halved
    if not np.isfinite(square * np.exp(-2.0 * np.log(half.sigma_bounds[1]))):
        return replace(failed, failure=_without_error(values))

    def log_z(phi: float, one: Problem) -> float:
        if not one.noise.is_exact:
            return _integrate_sigma(program, one, phi)
        integral = one.scale.log_integral(0, n, square, phi)
        return float(integral - (phi * n / 2.0) * LOG_2_PI + phi * one.log_weight)

    log_q = log_z(1.0, problem) - log_z(gamma, problem)
    return replace(
        failed,
        log_q=log_q,
        log_z_gamma=log_z(gamma, problem),
        log_z=log_z(1.0, problem),
        theta=np.empty(0),
        rmse=problem.rmse(program, np.empty(0), square),
        prior_sensitivity=log_z(1.0, half) - log_z(gamma, half) - log_q,
        log_q_linear=log_q,
    )


def _integrate_sigma(program: Program, problem: Problem, phi: float) -> float:
    """Return log Z of an equation without parameters, by Simpson's rule over log sigma."""
    if not problem.noise.has_sigma:
        u = np.zeros(1)
        return float(phi * problem.exact_log_likelihood(program, np.empty((1, 0)), u)[0])
    u, log_density = sigma_density(program, problem, phi)
    return log_simpson(log_density, u)


def sigma_density(program: Program, problem: Problem, phi: float) -> tuple[Floats, Floats]:
    """Return log sigma on a grid, and its log density at a temperature, without parameters."""
    low, high = np.log(problem.sigma_bounds)
    u = np.linspace(low, high, N_SIGMA)
    log_l = problem.exact_log_likelihood(program, np.empty((len(u), 0)), u)
    return u, phi * log_l + (1 - problem.sigma_power) * u


def _without_error(values: Floats) -> str:
    """Say why an equation without parameters has no squared error that could be weighed."""
    if np.isfinite(values).all():
        return "too far from the data: its log likelihood is beyond all numbers"
    return "never finite: the equation is not finite on the data"
