"""Multistart local optimisation (Section 2.2): the local minima of an equation's squared error."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import permutations, product
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import qr

from pmsr.data import Data
from pmsr.equation.kernels import run_compiled
from pmsr.equation.operators import FIRST_OPERATOR, OPERATORS, PARAMETER, POWER
from pmsr.equation.program import Program, evaluate, evaluate_jacobian
from pmsr.evidence.natural_scales import natural_scales
from pmsr.evidence.optimisation import bfgs, levenberg_marquardt
from pmsr.evidence.problem import Problem
from pmsr.magnitude import column_lengths, length

Floats = NDArray[np.float64]

N_SCREENED = 8  # random points that compete for each start
N_STEPS = 8  # of their descent
DESCENT_TOLERANCE = 1e-12  # least share of the squared error that a step must gain
N_THIN = 1000  # observations that the descent looks at
MAX_START_ERROR = 100.0  # times the best start's: one with more is not worth an optimisation
RANK_TOLERANCE = 1e-11  # of what a column of the Jacobian, of unit length, adds to the others
# The same where f is not linear. At k1 = k2, (1 + k1*x)/(1 + k2*x) is 1 and only their difference
# matters, but an optimisation ends next to it, at the root of the rounding error: by the first
# tolerance the rank, and with it log q by eleven nats, was a matter of chance.
CURVED_TOLERANCE = 1e-8
# A lesser minimum this many times farther out, or in, than the best and the natural scale is no
# minimum: the search ran along a valley that ends at infinity, where all volumes are infinite.
RUNAWAY = 1e3
N_AROUND = 4  # places at which the generic rank is looked for
MAX_PERMUTED = 4  # curved parameters of which all orders and signs are tried: 384
SAME_ERROR = 1e-8  # relative difference of squared errors between images of one minimum
MAX_COPIES = 64  # minima, with those that mirror them: each has charts, which take time
MAX_IMAGES = 8  # places of the other kind: a branch beyond infinity gives a law one or two
SPREAD = 1.5  # standard deviation of the logarithm of a random start, around its natural scale


@dataclass(frozen=True, eq=False)
class Minimum:
    r"""A local minimum of the sum of squared errors.

    Parameters
    ----------
    theta
        Where it is, :math:`\theta^*`, of shape (p,).
    sse
        Sum of squares of the weighed residuals there.
    jacobian
        :math:`\chi` of Eq. (8) there, weighed too, of shape (N, p).
    converged
        Whether the optimisation ended by itself; if not, this is a place on the way.
    """

    theta: Floats
    sse: float
    jacobian: Floats
    converged: bool


@dataclass(frozen=True, eq=False)
class Fit:
    """All minima of one equation, after freezing what the data cannot determine.

    Parameters
    ----------
    program
        The equation with ``frozen`` parameters as literals: its Jacobian has full rank.
    minima
        Distinct minima of ``program``, best first.
    free
        Places in the original theta of the parameters that remain.
    theta
        The best minimum in the original parameters, of shape (p,).
    images
        Places that mirror a minimum without being one, but fit well enough to matter: a branch
        that the minimum's own neighbourhood reaches only through infinity.
    inverted
        Parameters of ``program`` that are one over the equation's own.
    """

    program: Program
    minima: tuple[Minimum, ...]
    free: tuple[int, ...]
    theta: Floats
    images: tuple[Minimum, ...] = ()
    inverted: tuple[int, ...] = ()

    def without_jacobians(self) -> "Fit":
        """Return what can be kept, and sent to other processes, for any number of rows."""
        return self._with(lambda minimum: np.empty((0, len(minimum.theta))))

    def with_jacobians(self, problem: Problem) -> "Fit":
        """Return a fit that was kept as it was when it was found."""
        program, X = problem.whiten(self.program), problem.white.X

        def jacobian(minimum: Minimum) -> Floats:
            values = evaluate_jacobian(program, minimum.theta[None, :], X)[1]
            return np.ascontiguousarray(values[0].T)

        return self._with(jacobian)

    def under(self, problem: Problem) -> "Fit":
        """Return the fit with the squared errors and Jacobians of other weights, best first."""
        program, white = problem.whiten(self.program), problem.white

        def squared(minimum: Minimum) -> Minimum:
            values = evaluate(program, minimum.theta[None, :], white.X)[0]
            return replace(minimum, sse=float(np.sum((white.y - values) ** 2)))

        minima = tuple(map(squared, self.minima))
        best = minima[0]
        minima = (best, *sorted((m for m in minima[1:] if m.sse >= best.sse), key=lambda m: m.sse))
        images = tuple(map(squared, self.images))
        return replace(self, minima=minima, images=images).with_jacobians(problem)

    def _with(self, jacobian: Callable[[Minimum], Floats]) -> "Fit":
        minima, images = (
            tuple(replace(one, jacobian=jacobian(one)) for one in some)
            for some in (self.minima, self.images)
        )
        return replace(self, minima=minima, images=images)

    def full_theta(self, theta: Floats) -> Floats:
        """Put the frozen parameters back: from shape (n, rank) to (n, p)."""
        full = np.repeat(self.theta[None, :], len(theta), axis=0)
        full[:, list(self.free)] = invert(theta, self.inverted)
        return full


@dataclass(frozen=True, eq=False)
class Region:
    r"""Where theta is flat: the union of :math:`\|\chi (\theta - \theta^*)\| \le R` over minima.

    Parameters
    ----------
    centres
        The minima, each of shape (p,).
    whitens
        For each, a square matrix W with :math:`\|W v\| = \|\chi v\|`.
    radius
        R.
    free
        Places in the equation's parameters of those that the data determine; the centres have
        only these. None for all.
    theta
        The best minimum in all parameters: the others are held at its values.
    """

    centres: tuple[Floats, ...]
    whitens: tuple[Floats, ...]
    radius: float
    free: tuple[int, ...] | None = None
    theta: Floats | None = None

    def starts(self) -> Floats:
        """Return the best values of the others."""
        return self.centres[0]

    def held(self) -> dict[int, float]:
        """Return the parameters that are held, by place, with their values."""
        if self.free is None or self.theta is None:
            return {}
        return {k: float(one) for k, one in enumerate(self.theta) if k not in self.free}

    def squares(self, theta: Floats) -> list[Floats]:
        r"""Return :math:`\|\chi (\theta - \theta^*)\|^2` for a batch, from each minimum."""
        steps = [(theta - c) @ W.T for c, W in zip(self.centres, self.whitens, strict=True)]
        return [np.einsum("ij,ij->i", step, step) for step in steps]


class FitError(Exception):
    """The equation cannot be fitted; the message says why. Becomes a value in `evidence`."""


Rule: TypeAlias = Callable[[Floats], NDArray[np.bool_]]
"""Tells which of a batch of parameter vectors a prior allows at all."""


def fit(
    program: Program,
    problem: Problem,
    n_multistarts: int,
    *,
    rng: np.random.Generator,
    generic: bool = False,
    rule: Callable[[Program], Rule] | None = None,
) -> Fit:
    """Find the local minima of an equation.

    Parameters
    ----------
    program
        An equation with at least one parameter.
    problem
        The observations, and how their residuals are weighed.
    n_multistarts
        Number of local optimisations.
    rng
        Source of the random starts.
    generic
        Whether the minima are those of the law: its rank is that next to the best minimum, and not
        at it (where ``c0**2`` fits a negative number the fit is singular and the law is not), and
        its parameters may be those of another spelling (see `straighten`).
    rule
        What the prior allows, for a weighed program; minima that break it are left out.

    Raises
    ------
    FitError
        If the equation is nowhere finite, or no parameter changes its value.

    Notes
    -----
    Where the Jacobian at the best minimum has rank r < p, p - r parameters are frozen there
    (pivoted QR that keeps those in which f is affine) and the rest is fitted again.
    """

    def keep_full_rank(one: Program, minima: tuple[Minimum, ...]) -> tuple[Minimum, ...]:
        if generic:
            return minima
        return tuple(m for m in minima if len(_identifiable(one, m.jacobian)) == len(free))

    program, inverted = straighten(program) if generic else (program, ())
    data, white = problem.white, problem.whiten(program)
    with np.errstate(all="ignore"):
        allowed = None if rule is None else rule(white)
        minima = _find_minima(white, data, n_multistarts, rng=rng, rule=allowed)
        theta = minima[0].theta
        free = _identifiable(white, minima[0].jacobian)
        held = theta
        if generic and len(free) < program.n_parameters:
            around = _identifiable_around(white, data, theta, rng=rng)
            free, held = max([(free, theta), *around], key=lambda one: len(one[0]))
        if len(free) == 0:
            raise FitError("no identifiable direction: no parameter changes the predictions")
        if len(free) == program.n_parameters:
            minima = keep_full_rank(white, minima)
            theta = invert(theta, inverted)
            return Fit(program, minima, free, theta, inverted=inverted)
        # Where the others have an effect: in c0*x + c1**(c2**c3) an exponent of 0 leaves c1 none.
        frozen = {k: float(held[k]) for k in range(len(theta)) if k not in free}
        reduced = program.freeze(frozen)
        white = problem.whiten(reduced)
        starts = np.array([minimum.theta[list(free)] for minimum in minima])
        allowed = None if rule is None else rule(white)
        minima = _find_minima(
            white, data, n_multistarts, rng=rng, extra_starts=starts, rule=allowed
        )
        minima = keep_full_rank(white, minima)
        if not minima:
            raise FitError("no identifiable direction: the rank changes from place to place")
        best = held.copy()
        best[list(free)] = minima[0].theta
        left = tuple(place for place, k in enumerate(free) if k in inverted)
        return Fit(reduced, minima, free, invert(best, inverted), inverted=left)


def straighten(program: Program) -> tuple[Program, tuple[int, ...]]:
    """Spell a law with c0 where it has nothing but 1/c0, if it is linear in that.

    Or if c0 is the only parameter in which it is not: both ends are then within reach.

    Returns
    -------
    tuple
        The program and which of its parameters are one over the given program's. Those of a law
        that would become linear altogether are left alone: there is nothing to be gained.

    Examples
    --------
    >>> from pmsr.equation.expression import Equation
    >>> law = Equation("1/(c0*(c1 + x)**2)", ["x"]).program
    >>> law.affine, straighten(law)[0].affine
    ((), (0,))
    >>> straighten(Equation("c0*sin(x/c1)", ["x"]).program)[1]
    (1,)
    """
    nodes = program.nodes.tolist()
    names = list(OPERATORS)
    times, over = (FIRST_OPERATOR + names.index(name) for name in ("*", "/"))
    uses = [0] * len(nodes)
    for code, a, b in nodes:
        if code >= FIRST_OPERATOR:
            arity = OPERATORS[names[code - FIRST_OPERATOR]].arity
            for child in (a, b)[:arity]:
                uses[child] += 1
        elif code == POWER:
            uses[a] += 1

    def is_alone(node: int) -> bool:
        """Whether this is a parameter that occurs nowhere else."""
        code, k, _ = nodes[node]
        n_leaves = sum(row[0] == PARAMETER and row[1] == k for row in nodes)
        return code == PARAMETER and uses[node] == 1 and n_leaves == 1

    inverted: list[int] = []
    for place, (code, a, b) in enumerate(nodes):
        if code != over:
            continue
        below, c, d = nodes[b]
        if is_alone(b):
            changed, turned = {place: [times, a, b]}, c
        elif below == times and uses[b] == 1 and (is_alone(c) or is_alone(d)):
            c, d = (c, d) if is_alone(c) else (d, c)
            changed, turned = {b: [over, c, d], place: [times, a, b]}, nodes[c][1]
        else:
            continue
        rows = [changed.get(k, row) for k, row in enumerate(nodes)]
        affine = Program.of(rows, program.literals.tolist(), program.n_parameters).affine
        # Among several curved ones, c0 = 1e9 is on the way to infinity and 1/c0 next to nothing.
        if turned in affine or len(affine) == program.n_parameters - 1:
            nodes = rows
            inverted.append(turned)
    straight = Program.of(nodes, program.literals.tolist(), program.n_parameters)
    if not inverted or len(straight.affine) == program.n_parameters:
        return program, ()
    return straight, tuple(sorted(inverted))


def invert(theta: Floats, which: tuple[int, ...]) -> Floats:
    """Return parameters with one over some of them."""
    theta = theta.copy()
    with np.errstate(divide="ignore"):
        theta[..., list(which)] = 1.0 / theta[..., list(which)]
    return theta


def fit_once(
    program: Program, problem: Problem, n_multistarts: int, *, rng: np.random.Generator
) -> Minimum:
    """Find the least error of an equation, as a conventional search does: no more than that.

    Other minima, redundant parameters and valleys in which a first optimisation gets stuck matter
    to the evidence only; leaving them alone takes a third of the time of `fit`.
    """
    white = problem.whiten(program)
    with np.errstate(all="ignore"):
        return _find_minima(white, problem.white, n_multistarts, rng=rng, only_best=True)[0]


def _find_minima(
    program: Program,
    data: Data,
    n_multistarts: int,
    *,
    rng: np.random.Generator,
    extra_starts: Floats | None = None,
    only_best: bool = False,
    rule: Rule | None = None,
) -> tuple[Minimum, ...]:
    """Let random points descend together, optimise from the best distinct ones, keep minima."""
    affine = list(program.affine)
    curved = [k for k in range(program.n_parameters) if k not in affine]
    scales = np.ones(program.n_parameters)
    if curved or len(data.y) < program.n_parameters:
        scales = natural_scales(program, data)
    if curved:
        shape = (N_SCREENED * n_multistarts, len(curved))
        starts = np.zeros((shape[0], program.n_parameters))
        sizes = scales[curved] * np.exp(SPREAD * rng.standard_normal(shape))
        starts[:, curved] = sizes * rng.choice([-1.0, 1.0], size=shape)
    else:
        starts = np.zeros((1, program.n_parameters))
    if extra_starts is not None:
        starts = np.concatenate([extra_starts, starts])
    starts, errors = _descend(program, _thin(data), starts, affine)
    if not len(starts):
        raise FitError("never finite: no start gives finite predictions and derivatives")
    if not only_best:
        # Equations such as c0**2 and c0*sin(c1*x) have mirror minima; asking for them is cheaper
        # than hoping that the random starts hit them all.
        mirrored = np.repeat(starts[:1], len(curved), axis=0)
        mirrored[range(len(curved)), curved] *= -1.0
        mirrored, mirror_errors = _descend(program, _thin(data), mirrored, affine)
        starts = np.concatenate([starts, mirrored])
        errors = np.concatenate([errors, mirror_errors])
    if rule is not None:
        obeys = rule(starts)
        if not obeys.any():
            raise FitError("no fit: a pole between the rows, or an alias, wherever it fits")
        starts, errors = starts[obeys], errors[obeys]
    minima: list[Minimum] = []
    for k in _distinct_starts(starts, errors, scales, n_multistarts):
        found = _optimise(program, data, starts[k], scales, retry=not only_best)
        if rule is not None and (found is None or not rule(found.theta[None, :])[0]):
            # The least error lies beyond what is allowed: the start is as near as we know.
            found = _minimum_at(program, data, starts[k], converged=False)
        _add_distinct(minima, found)
    if not minima:
        raise FitError("no fit: every local optimisation failed")
    minima.sort(key=lambda minimum: minimum.sse)
    largest = RUNAWAY * np.maximum(np.abs(minima[0].theta), scales)[curved]
    smallest = np.minimum(np.abs(minima[0].theta), scales)[curved] / RUNAWAY

    def in_reach(sizes: Floats) -> bool:
        return bool(np.all((smallest <= sizes) & (sizes <= largest)))

    return tuple(
        minimum
        for rank, minimum in enumerate(minima)
        if rank == 0 or (minimum.converged and in_reach(np.abs(minimum.theta[curved])))
    )


def _thin(data: Data) -> Data:
    """Every k-th observation, at most `N_THIN`: enough to tell good starts from bad."""
    stride = -(-len(data.y) // N_THIN)
    if stride == 1:
        return data
    return replace(data, X=np.ascontiguousarray(data.X[::stride]), y=data.y[::stride].copy())


def _descend(
    program: Program, data: Data, starts: Floats, affine: list[int], n_steps: int = N_STEPS
) -> tuple[Floats, Floats]:
    """Take a few damped Gauss-Newton steps from each start; those that are finite, best first.

    Compiled, so that all of them cost less than one optimisation by SciPy, which gets only the
    best. After each step the affine parameters are solved for exactly.
    """
    theta, errors = np.empty_like(starts), np.empty(len(starts))
    run_compiled(
        "_descend",
        program.nodes,
        program.literals,
        starts,
        data.X,
        data.y,
        1.0 / data.spread,
        np.array(affine, dtype=np.int64),
        n_steps if len(affine) < program.n_parameters else 0,
        DESCENT_TOLERANCE,
        theta,
        errors,
    )
    order = [k for k in np.argsort(errors, kind="stable") if np.isfinite(errors[k])]
    return theta[order], errors[order]


def _distinct_starts(
    starts: Floats, errors: Floats, scales: Floats, n_multistarts: int
) -> list[int]:
    """Choose the best starts that differ from each other by more than a few per cent."""
    chosen: list[int] = []
    for k in np.argsort(errors, kind="stable").tolist():
        if chosen and errors[k] > MAX_START_ERROR * errors[chosen[0]] + 1e-12:
            break
        others = starts[chosen]
        size = np.abs(others) + np.abs(starts[k]) + 1e-6 * scales
        if not np.any(np.all(np.abs(others - starts[k]) < 0.05 * size, axis=1)):
            chosen.append(k)
        if len(chosen) == n_multistarts:
            break
    return chosen


def _optimise(
    program: Program, data: Data, start: Floats, scales: Floats, *, retry: bool
) -> Minimum | None:
    """Run one local optimisation; None if it ends nowhere."""
    if len(data.y) >= program.n_parameters:
        theta, converged = levenberg_marquardt(program, data, start, retry=retry)
    else:
        theta, converged = bfgs(program, data, start, scales)
    return _minimum_at(program, data, theta, converged)


def describe_minimum(program: Program, data: Data, theta: Floats) -> Minimum | None:
    """Describe a place that somebody else has found; None if it is not finite there."""
    with np.errstate(all="ignore"):
        return _minimum_at(program, data, theta, True)


def _minimum_at(program: Program, data: Data, theta: Floats, converged: bool) -> Minimum | None:
    """Describe a place; None if it is not finite there."""
    values, jacobian = evaluate_jacobian(program, theta[None, :], data.X)
    sse = float(np.sum((data.y - values[0]) ** 2))
    lengths = column_lengths(jacobian[0].T)
    if not (np.isfinite(sse) and np.isfinite(lengths).all() and np.isfinite(theta).all()):
        return None
    return Minimum(theta, sse, np.ascontiguousarray(jacobian[0].T), converged)


def _add_distinct(minima: list[Minimum], candidate: Minimum | None) -> None:
    """Append the candidate unless its predictions, to first order, are those of another."""
    if candidate is None:
        return
    for place, other in enumerate(minima):
        noise = np.sqrt(max(other.sse, candidate.sse))
        step = candidate.theta - other.theta
        same = all(
            length(jacobian @ step) <= 1e-2 * noise + 1e-9 * length(jacobian @ other.theta)
            for jacobian in (other.jacobian, candidate.jacobian)
        )
        if same:
            if candidate.sse < other.sse:
                minima[place] = candidate
            return
    minima.append(candidate)


def _identifiable(program: Program, jacobian: Floats) -> tuple[int, ...]:
    """Choose parameters whose columns of the Jacobian span its range, affine ones first."""
    lengths = column_lengths(jacobian)
    movable = np.flatnonzero(lengths > 0.0)
    affine = [k for k in movable if k in program.affine]
    curved = [k for k in movable if k not in program.affine]
    kept: list[int] = []
    basis = np.zeros((len(jacobian), 0))
    for group, tolerance in ((affine, RANK_TOLERANCE), (curved, CURVED_TOLERANCE)):
        if not group:
            continue
        rest = jacobian[:, group] / lengths[group]
        rest = rest - basis @ (basis.T @ rest)
        q, r, order = qr(rest, mode="economic", pivoting=True)
        n_new = int(np.sum(np.abs(np.diag(r)) > np.sqrt(len(movable)) * tolerance))
        kept += [int(group[k]) for k in order[:n_new]]
        basis = np.hstack([basis, q[:, :n_new]])
    return tuple(sorted(kept))


def _identifiable_around(
    program: Program, data: Data, theta: Floats, *, rng: np.random.Generator
) -> list[tuple[tuple[int, ...], Floats]]:
    """Choose identifiable parameters at other places, where the rank is the generic one.

    Some near theta, by steps that also move what was fitted to zero; and some of natural size, for
    an optimisation that ran off to infinity, where nothing changes any more.
    """
    scales = natural_scales(program, data)
    steps = rng.standard_normal((N_AROUND, len(theta)))
    near = theta + 0.1 * steps * np.maximum(np.abs(theta), scales)
    signs = np.where(theta < 0.0, -1.0, 1.0)
    places = np.concatenate([near, signs * scales * np.exp(steps)])
    values, jacobian = evaluate_jacobian(program, places, data.X)
    return [
        (_identifiable(program, np.ascontiguousarray(one.T)), place)
        for one, row, place in zip(jacobian, values, places, strict=True)
        if np.isfinite(row).all() and np.isfinite(column_lengths(one.T)).all()
    ]


def add_images(
    found: Fit, problem: Problem, shifts: Sequence[Floats], rule: Rule, worst: float
) -> Fit:
    """Add to the minima those that the law's own symmetries make of them.

    Roots may change places, c0*sin(c1*x) may change two signs, and a phase may be shifted by half
    a period. All copies count, so that no temperature sees more of them than another. What is no
    exact copy but has a squared error of at most `worst` becomes an image.

    Parameters
    ----------
    found
        The minima.
    problem
        The observations, and how their residuals are weighed.
    shifts
        Steps that parameters may take, each of shape (p,): half periods of phases.
    rule
        What the prior allows.
    worst
        Largest squared error that matters.
    """
    data, program = problem.white, problem.whiten(found.program)
    affine = list(program.affine)
    curved = [k for k in range(program.n_parameters) if k not in affine]
    q = len(curved)
    if q == 0:
        return found
    orders = list(permutations(range(q))) if q <= MAX_PERMUTED else [tuple(range(q))]
    signs = np.array(list(product((1.0, -1.0), repeat=q)) if q <= MAX_PERMUTED else [(1.0,) * q])
    steps = np.array([[0.0] * q, *(m * s[curved] for s in shifts for m in (-2, -1, 1, 2))])
    unit = data.spread
    scales = natural_scales(program, data)[curved]
    copies, images = list(found.minima), list(found.images)
    for minimum in found.minima:
        eta = minimum.theta[curved]
        places = np.concatenate([eta[list(order)] * signs for order in orders])
        size = np.max(np.abs(eta) / scales)
        if size > RUNAWAY:
            # An optimisation that went to infinity has passed by where things still change.
            far = np.abs(eta) > RUNAWAY * scales
            inward = [np.where(far, eta * (k / size), eta) for k in (RUNAWAY, 100.0, 10.0)]
            places = np.concatenate([places, *(signs * one for one in inward)])
        starts = np.zeros((len(places) * len(steps), program.n_parameters))
        starts[:, curved] = (places[:, None] + steps).reshape(-1, q)
        theta, errors = _descend(program, data, starts, affine, 0)
        for place, sse in zip(theta, errors * unit**2, strict=True):
            is_copy = abs(sse - minimum.sse) <= SAME_ERROR * minimum.sse + 1e-12 * unit**2
            kept, most = (copies, MAX_COPIES) if is_copy else (images, MAX_IMAGES)
            if sse > worst or len(kept) >= most:
                continue
            size = 1e-6 * np.abs(place) + 1e-9
            if any(np.all(np.abs(other.theta - place) <= size) for other in (*copies, *images)):
                continue
            copy = _minimum_at(program, data, place, minimum.converged)
            if copy is not None and rule(place[None, :])[0]:
                kept.append(copy)
    return replace(found, minima=tuple(copies), images=tuple(images))
