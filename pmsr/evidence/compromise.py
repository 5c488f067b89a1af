"""Fits of an equation some of whose parameters have priors: between the data and these priors."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from itertools import product
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import leastsq

from pmsr.equation.program import Program, evaluate, evaluate_jacobian
from pmsr.evidence.multistart import Fit, FitError, Minimum, describe_minimum
from pmsr.evidence.priors import Given
from pmsr.evidence.problem import Problem
from pmsr.evidence.surface import Surface
from pmsr.limits import check_time

Floats = NDArray[np.float64]
Find: TypeAlias = Callable[..., Fit]
"""Finds the minima of an equation without priors: `pmsr.evidence.evidence` has it."""

PLACES = (0.0, -1.5, 1.5)  # in units of a prior's normal coordinate, at which it is held
FAR = 100.0  # in the same: a free fit beyond says nothing of what prior and data agree on
MAX_MINIMA = 32  # that are kept: each is a part of the proposal
MAX_EVALUATIONS = 100  # of one local optimisation
SAME = 1e-6  # relative difference of parameters of one place


def fit_between(
    program: Program,
    problem: Problem,
    n_multistarts: int,
    find: Find,
    *,
    rng: np.random.Generator,
) -> Fit:
    """Find where an equation fits while its priors allow it.

    Parameters with priors are held at some of their quantiles while the others are fitted; then
    they are fitted too, without and with their priors, at either temperature. The first minimum
    is the most probable place.

    Parameters
    ----------
    program, problem, n_multistarts, rng
        As in `pmsr.evidence.multistart.fit`; the problem says which parameters have priors.
    find
        Fits what has no priors.

    Raises
    ------
    FitError
        If the equation cannot be fitted where its priors have their mass.
    """
    given, plain = problem.given, replace(problem, given=Given())
    others = [k for k in range(program.n_parameters) if k not in given.places]
    found: list[Floats] = []
    held: dict[int, float] | None = None
    reasons: list[FitError] = []
    for z in _places(len(given)):
        values = given.from_z(z[None, :])[0]
        part = program.freeze(dict(zip(given.places, values.tolist(), strict=True)))
        theta = np.empty((1, program.n_parameters))
        theta[:, list(given.places)] = values
        own_held: dict[int, float] = {}
        if others:
            try:
                fitted = find(part, plain, n_multistarts, rng=rng)
            except FitError as error:
                reasons.append(error)
                continue
            minima = (*fitted.minima, *fitted.images)
            theta = np.repeat(theta, len(minima), axis=0)
            theta[:, others] = fitted.full_theta(np.array([one.theta for one in minima]))
            own_held = {
                place: float(fitted.theta[k])
                for k, place in enumerate(others)
                if k not in fitted.free
            }
        # Where more is determined, the law is: at k = 0 what it multiplies is not.
        if held is None or len(own_held) < len(held):
            found, held = [], own_held
        if own_held.keys() == held.keys():
            found += list(theta)
    if held is None:
        raise reasons[0]
    return _polish(program, problem, find, found, held, n_multistarts, rng)


def _places(n: int) -> list[Floats]:
    """Return normal coordinates: the middle first, then each prior's others by themselves."""
    shifted = [step * np.eye(n)[k] for k, step in product(range(n), PLACES[1:])]
    return [np.zeros(n), *shifted]


def _polish(
    program: Program,
    problem: Problem,
    find: Find,
    found: list[Floats],
    held: dict[int, float],
    n_multistarts: int,
    rng: np.random.Generator,
) -> Fit:
    """Add free fits and compromises, and describe all of them."""
    free = tuple(k for k in range(program.n_parameters) if k not in held)
    reduced = program.freeze(held)
    given = problem.given.among(free)
    white, data = problem.whiten(reduced), problem.white
    surface = Surface.of(white, data, given.places)
    starts = [theta[list(free)] for theta in found]
    with suppress(FitError):
        plain = replace(problem, given=Given())
        fitted = find(reduced, plain, n_multistarts, rng=rng)
        if len(fitted.free) == len(free):
            starts += list(fitted.full_theta(np.array([one.theta for one in fitted.minima])))
    minima = _describe(white, problem, given, surface, starts)
    if not minima:
        raise FitError("its priors have no mass where it is finite and has no pole between rows")
    n_flat = len(free) - len(given)
    low, high = np.exp(problem.scale.log_size(np.log(problem.sigma_bounds)))
    spare = max(1.0, problem.n - n_flat)
    sizes = {float(np.clip(np.sqrt(one.sse / spare), low, high)) for one in minima[:2]}
    sizes |= {float(np.clip(np.sqrt(min(one.sse for one in minima) / spare), low, high))}
    firsts = [one.theta for one in minima[:2]]
    firsts += [min(minima, key=lambda one: one.sse).theta]
    for size, phi in product(sorted(sizes), (1.0, problem.gamma)):
        for start in firsts:
            starts.append(_compromise(white, problem, given, start, np.sqrt(phi) / size))
    minima = _describe(white, problem, given, surface, starts)

    def log_posterior(one: Minimum) -> float:
        z = given.to_z(one.theta[None, :])[0]
        size = float(np.clip(np.sqrt(one.sse / spare), low, high))
        return -0.5 * one.sse / size**2 - spare * float(np.log(size)) - 0.5 * float(np.sum(z**2))

    order = sorted(minima, key=log_posterior, reverse=True)
    theta = np.empty(program.n_parameters)
    theta[list(free)] = order[0].theta
    theta[list(held)] = list(held.values())
    return Fit(reduced, tuple(order[:MAX_MINIMA]), free, theta)


def _describe(
    white: Program, problem: Problem, given: Given, surface: Surface, starts: list[Floats]
) -> list[Minimum]:
    """Describe distinct places that the priors and the rules of the surface allow."""
    minima: list[Minimum] = []
    for theta in starts:
        with np.errstate(all="ignore"):
            z = given.to_z(theta[None, :])[0]
            is_allowed = bool(np.all(np.abs(z) <= FAR))
            is_allowed &= bool(np.isfinite(given.log_density(theta[None, :]))[0])
        if not is_allowed or not surface.obeys(theta[None, :])[0]:
            continue
        size = SAME * np.abs(theta) + 1e-12
        if any(np.all(np.abs(one.theta - theta) <= size) for one in minima):
            if len(given) == 0 or any(np.all(one.theta == theta) for one in minima):
                continue
            near = [one for one in minima if np.all(np.abs(one.theta - theta) <= size)]
            steps = [given.to_z(one.theta[None, :])[0] - z for one in near]
            if any(np.all(np.abs(step) <= 0.01) for step in steps):
                continue
        one = describe_minimum(white, problem.white, theta)
        if one is not None:
            minima.append(one)
    return minima


def _compromise(
    white: Program, problem: Problem, given: Given, start: Floats, precision: float
) -> Floats:
    """Minimise squared residuals and squares of the priors' normal coordinates together."""
    data, places = problem.white, list(given.places)
    if len(data.y) + len(given) < len(start):
        return start

    def theta_of(x: Floats) -> Floats:
        theta = x.copy()
        theta[places] = given.from_z(x[None, places])[0]
        return theta

    def residuals(x: Floats) -> Floats:
        check_time()
        values = evaluate(white, theta_of(x)[None, :], data.X)[0]
        return np.concatenate([precision * (values - data.y), x[places]])

    def jacobian(x: Floats) -> Floats:
        theta = theta_of(x)
        derivatives = precision * evaluate_jacobian(white, theta[None, :], data.X)[1][0]
        derivatives[places] *= given.to_z(theta[None, :])[1][0][:, None]
        own = np.zeros((len(x), len(places)))
        own[places, np.arange(len(places))] = 1.0
        return np.hstack([derivatives, own])

    first = start.copy()
    first[places] = given.to_z(start[None, :])[0][0]
    with np.errstate(all="ignore"):
        # Any: SciPy's, whose type depends on an argument.
        best: Any = leastsq(
            residuals,
            first,
            Dfun=jacobian,
            col_deriv=True,
            full_output=True,
            ftol=1e-10,
            xtol=1e-10,
            maxfev=MAX_EVALUATIONS,
        )[0]
        theta = theta_of(best)
    return theta if np.isfinite(theta).all() else start
