r"""Compiled least squares for a whole batch of equations: what a search screens its laws with.

Levenberg-Marquardt over the curved parameters, the affine ones following exactly (variable
projection) with Kaufman's Jacobian, from several starts. Nothing is allocated for an equation, and
its numbers depend on nothing but itself: not on its place in the batch.

References
----------
Kaufman (1975), doi:10.1007/BF01932995.
"""

import math
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np
from numba import cfunc, njit, types
from numpy.typing import NDArray

from pmsr.equation import kernels, structure
from pmsr.equation.linking import LINKED, follow_table
from pmsr.equation.operators import LITERAL, PARAMETER
from pmsr.magnitude import LONG, SHORT
from pmsr.threads import ONE_AT_A_TIME

Floats = NDArray[np.float64]

FITTED, NEVER_FINITE, FORBIDDEN = range(3)  # what became of an equation

FIRST_DAMPING = 1e-2  # of a diagonal of ones: a start is seldom where f is linear
LARGEST_DAMPING = 1e12  # beyond, no step is left that could help
# Share of the squared error below which a promised gain is lost in the rounding of the sum.
ROUNDING = 1e-15
TO_NORMAL = math.sqrt(3.0) / math.pi  # from a logistic variable to one of deviation 1
UNWANTED = 1e30  # added to the error where the rules are broken


# Arrays of one shape are kept together: Numba passes each as a dozen numbers, and a function with
# forty of them takes seconds to compile.
BASIS, COLUMNS = range(2)  # rows
UPPER, GRAM, NEW_GRAM, ROOT = range(4)  # squares
RIGHT, LENGTH, NEW_RIGHT, NEW_LENGTH, STEP, SCALES = range(6)  # vectors
NOW, TRIAL = range(2)  # points
SIZES, WANTED = range(2)  # sizes
ONCE, MORE, WATCHED = range(3)  # sets
PARTNERS, EXPONENT, NEW_EXPONENT, PLACE = range(4)  # integers
KEPT, IS_AFFINE, IS_CURVED, IS_FREE = range(4)  # flags
ACTIVE, INACTIVE, BY_AFFINE, BY_CURVED = range(4)  # masks


class Work(NamedTuple):
    """Arrays that serve one equation after the other; the names of their parts are above.

    Parameters
    ----------
    table, adjoint
        Values of the nodes, and derivatives by them, of shape (n_nodes, N).
    rows
        Of shape (2, p, N): an orthonormal basis of the derivatives by the affine parameters, and
        the derivatives by the curved ones, less what the affine ones would make up for.
    residual
        Of shape (N,), in units of the target's standard deviation.
    squares, vectors, points
        Of shapes (4, p, p), (6, p) and (2, 1, p): normal equations, steps, and theta.
    sizes, sets, masks
        Of shapes (2, n_nodes), (3, n_nodes) and (4, n_nodes): what is known of the nodes.
    integers, flags
        Of shape (4, p): what is known of the parameters.
    starts, errors
        Of shapes (n_starts, p) and (n_starts,).
    state
        Of the generator of random numbers.
    """

    table: Floats
    adjoint: Floats
    rows: Floats
    residual: Floats
    squares: Floats
    vectors: Floats
    points: Floats
    sizes: Floats
    sets: NDArray[np.int64]
    integers: NDArray[np.int64]
    flags: NDArray[np.bool_]
    masks: NDArray[np.bool_]
    starts: Floats
    errors: Floats
    state: NDArray[np.uint64]


def make_work(n_nodes: int, n_points: int, p: int, n_starts: int) -> Work:
    """Allocate for equations of at most so many nodes, points and parameters."""
    return Work(
        table=np.zeros((n_nodes, n_points)),
        adjoint=np.zeros((n_nodes, n_points)),
        rows=np.zeros((2, p, n_points)),
        residual=np.zeros(n_points),
        squares=np.zeros((4, p, p)),
        vectors=np.zeros((6, p)),
        points=np.zeros((2, 1, p)),
        sizes=np.zeros((2, n_nodes)),
        sets=np.zeros((3, n_nodes), dtype=np.int64),
        integers=np.zeros((4, p), dtype=np.int64),
        flags=np.zeros((4, p), dtype=np.bool_),
        masks=np.zeros((4, n_nodes), dtype=np.bool_),
        starts=np.zeros((n_starts, p)),
        errors=np.zeros(n_starts),
        state=np.zeros(1, dtype=np.uint64),
    )


class Plan(NamedTuple):
    """How hard to try.

    Parameters
    ----------
    n_points
        Random points whose errors are looked at; with none, the one start is what theta holds.
    n_starts
        How many of them, the best ones, descend.
    n_steps
        Steps of each descent.
    n_finishers
        How many of the descents, the best ones that differ, go on.
    n_more
        Steps that each of these may take.
    spread
        Standard deviation of the logarithm of a random point, around its natural scale; logistic,
        so that some are far out.
    affine_tolerance, curved_tolerance
        Share of its length that a column of the Jacobian must add to the others.
    n_around
        Places at which the generic rank is looked for.
    """

    n_points: int
    n_starts: int
    n_steps: int
    n_finishers: int
    n_more: int
    spread: float
    affine_tolerance: float
    curved_tolerance: float
    n_around: int


@njit(error_model="numpy", nogil=True, cache=True)
def law_keys(nodes, lengths, literals, n_parameters, keys):  # type: ignore[no-untyped-def]
    """Fill keys with a digest of each table; literals count by value."""
    bits = literals.view(np.uint64)
    for law in range(len(nodes)):
        key = np.uint64(n_parameters[law])
        for node in range(lengths[law]):
            code, a, b = nodes[law, node]
            key = _mixed(key + np.uint64(code))
            key = _mixed(key + (bits[law, a] if code == LITERAL else np.uint64(a)))
            key = _mixed(key + np.uint64(b))
        keys[law] = key


@njit(error_model="numpy", nogil=True, cache=True)
def _mixed(number):  # type: ignore[no-untyped-def]
    """Scatter 64 bits: a step of the generator splitmix64."""
    number = number + np.uint64(0x9E3779B97F4A7C15)
    number = (number ^ (number >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    number = (number ^ (number >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return number ^ (number >> np.uint64(31))


@njit(error_model="numpy", nogil=True, cache=True)
def _uniform(state):  # type: ignore[no-untyped-def]
    """Draw between 0 and 1, both excluded."""
    number = _mixed(state[0])
    state[0] += np.uint64(0x9E3779B97F4A7C15)
    return (float(number >> np.uint64(12)) + 0.5) * 2.0**-52


@njit(error_model="numpy", nogil=True, cache=True)
def _normal(state):  # type: ignore[no-untyped-def]
    radius = np.sqrt(-2.0 * np.log(_uniform(state)))
    return radius * np.cos(2.0 * np.pi * _uniform(state))


@njit(error_model="numpy", nogil=True, cache=True)
def _collect(nodes, adjoint, chosen, place, n, unit, rows):  # type: ignore[no-untyped-def]
    """Fill rows with the derivatives by the chosen parameters, in units of the target."""
    rows[:, :n] = 0.0
    for node in range(len(nodes)):
        if nodes[node, 0] == PARAMETER and chosen[nodes[node, 1]]:
            row, down = rows[place[nodes[node, 1]]], adjoint[node]
            for i in range(n):
                row[i] += down[i] * unit


@njit(error_model="numpy", nogil=True, cache=True)
def _dot(a, b, n):  # type: ignore[no-untyped-def]
    total = 0.0
    for i in range(n):
        total += a[i] * b[i]
    return total


@njit(error_model="numpy", nogil=True, cache=True)
def _measure(row, n):  # type: ignore[no-untyped-def]
    """Bring a row's length into a range that can be squared; return it and the exponent taken."""
    length = np.sqrt(_dot(row, row, n))
    if SHORT < length < LONG or length == 0.0:
        return length, 0
    exponent = kernels._take_out_exponent(row[:n])
    return np.sqrt(_dot(row, row, n)), exponent


@njit(error_model="numpy", nogil=True, cache=True)
def _remove(row, basis, kept, n_basis, n):  # type: ignore[no-untyped-def]
    """Make a row orthogonal to the basis: twice is enough."""
    for _ in range(2):
        for j in range(n_basis):
            if kept[j]:
                along = _dot(basis[j], row, n)
                for i in range(n):
                    row[i] -= along * basis[j, i]


@njit(error_model="numpy", nogil=True, cache=True)
def _settle(evaluate, nodes, literals, theta, p, X, y, unit, tolerance, work):  # type: ignore[no-untyped-def]
    """Replace the affine entries of theta, of shape (1, p), by their least-squares values.

    Fills the residual and the basis, and returns the sum of squares and whether the rules allow
    it; infinite where something is not finite.
    """
    n, n_nodes = len(y), len(nodes)
    table, adjoint = work.table[:n_nodes], work.adjoint[:n_nodes]
    residual, basis = work.residual, work.rows[BASIS]
    n_affine = 0
    for k in range(p):
        if work.flags[IS_AFFINE][k]:
            theta[0, k] = 0.0
            work.integers[PLACE][k] = n_affine
            n_affine += 1
    evaluate(
        nodes,
        literals,
        theta,
        X,
        n,
        table,
        adjoint,
        work.masks[ACTIVE][:n_nodes],
        work.masks[BY_AFFINE][:n_nodes],
        n_affine > 0,
    )
    allowed = structure.obeys(work.sets[WATCHED], table, n)
    for i in range(n):
        residual[i] = (y[i] - table[-1, i]) * unit
    if n_affine == 0:
        error = _dot(residual, residual, n)
        return (error if error < np.inf else np.inf), allowed
    _collect(nodes, adjoint, work.flags[IS_AFFINE], work.integers[PLACE], n, unit, basis[:n_affine])
    upper, kept, exponent, step = (
        work.squares[UPPER],
        work.flags[KEPT],
        work.integers[NEW_EXPONENT],
        work.vectors[STEP],
    )
    for k in range(n_affine):
        row = basis[k]
        length, exponent[k] = _measure(row, n)
        if not length < np.inf:
            return np.inf, False
        for j in range(k):
            upper[j, k] = 0.0
        for _ in range(2):
            for j in range(k):
                if kept[j]:
                    along = _dot(basis[j], row, n)
                    upper[j, k] += along
                    for i in range(n):
                        row[i] -= along * basis[j, i]
        rest = np.sqrt(_dot(row, row, n))
        kept[k] = rest > tolerance * length
        if kept[k]:
            upper[k, k] = rest
            for i in range(n):
                row[i] /= rest
            step[k] = _dot(row, residual, n)
            for i in range(n):
                residual[i] -= step[k] * row[i]
    for k in range(n_affine - 1, -1, -1):
        if kept[k]:
            step[k] /= upper[k, k]
            for j in range(k):
                step[j] -= upper[j, k] * step[k]
        else:
            step[k] = 0.0
    for k in range(p):
        if work.flags[IS_AFFINE][k]:
            theta[0, k] = math.ldexp(
                step[work.integers[PLACE][k]], -exponent[work.integers[PLACE][k]]
            )
            if not np.isfinite(theta[0, k]):
                return np.inf, False
    error = _dot(residual, residual, n)
    return (error if error < np.inf else np.inf), allowed


@njit(error_model="numpy", nogil=True, cache=True)
def _derive(evaluate, nodes, literals, theta, p, X, y, unit, tolerance, work):  # type: ignore[no-untyped-def]
    """Fill the new normal equations of the curved parameters, where `_settle` has just been.

    Returns whether all is finite.
    """
    n, n_nodes = len(y), len(nodes)
    table, adjoint, columns = work.table[:n_nodes], work.adjoint[:n_nodes], work.rows[COLUMNS]
    n_affine, q = 0, 0
    for k in range(p):
        if work.flags[IS_AFFINE][k]:
            n_affine += 1
        else:
            work.integers[PLACE][k] = q
            q += 1
    evaluate(
        nodes,
        literals,
        theta,
        X,
        n,
        table,
        adjoint,
        work.masks[BY_AFFINE][:n_nodes],
        work.masks[BY_CURVED][:n_nodes],
        True,
    )
    _collect(nodes, adjoint, work.flags[IS_CURVED], work.integers[PLACE], n, unit, columns[:q])
    for k in range(q):
        row = columns[k]
        before, work.integers[NEW_EXPONENT][k] = _measure(row, n)
        if not before < np.inf:
            return False
        _remove(row, work.rows[BASIS], work.flags[KEPT], n_affine, n)
        length = np.sqrt(_dot(row, row, n))
        if not length > tolerance * before:  # nothing that the affine ones cannot do
            row[:n] = 0.0
            length = 1.0
        work.vectors[NEW_LENGTH][k] = length
        work.vectors[NEW_RIGHT][k] = _dot(row, work.residual, n) / length
        for j in range(k + 1):
            work.squares[NEW_GRAM][k, j] = _dot(row, columns[j], n) / (
                length * work.vectors[NEW_LENGTH][j]
            )
    return True


@njit(error_model="numpy", nogil=True, cache=True)
def _solve(gram, right, damping, q, root, step):  # type: ignore[no-untyped-def]
    """Solve the damped normal equations by Cholesky; tell whether they are positive definite."""
    for i in range(q):
        for j in range(i + 1):
            total = gram[i, j] + (damping if i == j else 0.0)
            for k in range(j):
                total -= root[i, k] * root[j, k]
            if i > j:
                root[i, j] = total / root[j, j]
            elif total > 0.0:
                root[i, i] = np.sqrt(total)
            else:
                return False
    for i in range(q):
        total = right[i]
        for k in range(i):
            total -= root[i, k] * step[k]
        step[i] = total / root[i, i]
    for i in range(q - 1, -1, -1):
        total = step[i]
        for k in range(i + 1, q):
            total -= root[k, i] * step[k]
        step[i] = total / root[i, i]
    return True


@njit(error_model="numpy", nogil=True, inline="always")
def _go_down(evaluate, nodes, literals, start, X, y, unit, plan, n_steps, work):  # type: ignore[no-untyped-def]
    """Take Levenberg-Marquardt steps from a start, of shape (p,), which is replaced by the end.

    Once the rules allow a place, steps beyond them are refused like steps uphill. Returns the sum
    of squares, infinite where the start is not finite, whether the rules allow the end, and the
    number of evaluations.
    """
    p = len(start)
    now, trial = work.points[NOW], work.points[TRIAL]
    q = 0
    for k in range(p):
        trial[0, k] = start[k]
        if not work.flags[IS_AFFINE][k]:
            q += 1
    error, allowed, promised, n_evaluations = np.inf, False, 0.0, 0
    damping, growth = FIRST_DAMPING, 2.0
    # The start is looked at like any other place, so that all this is compiled once.
    for turn in range(n_steps + 1):
        if turn > 0:
            is_solved = False
            while not is_solved and damping < np.inf:
                is_solved = _solve(
                    work.squares[GRAM],
                    work.vectors[RIGHT],
                    damping,
                    q,
                    work.squares[ROOT],
                    work.vectors[STEP],
                )
                if not is_solved:
                    damping *= 10.0
            if not is_solved:
                break  # slopes that are no numbers, though the values are
            promised = 0.0
            for k in range(q):
                promised += work.vectors[STEP][k] * (
                    work.vectors[RIGHT][k] + damping * work.vectors[STEP][k]
                )
            if not promised > ROUNDING * error:
                break
            for k in range(p):
                trial[0, k] = now[0, k]
                if not work.flags[IS_AFFINE][k]:
                    i = work.integers[PLACE][k]
                    move = math.ldexp(
                        work.vectors[STEP][i] / work.vectors[LENGTH][i], -work.integers[EXPONENT][i]
                    )
                    trial[0, k] += move
        # The places in `work` are of the curved parameters until `_settle` fills in the others.
        new_error, new_allowed = _settle(
            evaluate, nodes, literals, trial, p, X, y, unit, plan.affine_tolerance, work
        )
        n_evaluations += 1
        better = new_error < error and (new_allowed or not allowed)
        if better:
            n_evaluations += 1
            better = _derive(
                evaluate, nodes, literals, trial, p, X, y, unit, plan.curved_tolerance, work
            )
        if better:
            if turn > 0:
                share = (error - new_error) / promised
                damping *= (
                    max(1.0 / 9.0, 1.0 - (2.0 * share - 1.0) ** 3) if share < 1.0 else 1.0 / 9.0
                )
            for i in range(q):  # the normal equations of the trial
                work.vectors[RIGHT][i] = work.vectors[NEW_RIGHT][i]
                work.vectors[LENGTH][i] = work.vectors[NEW_LENGTH][i]
                work.integers[EXPONENT][i] = work.integers[NEW_EXPONENT][i]
                kernels.copy_into(work.squares[GRAM, i], work.squares[NEW_GRAM, i], i + 1)
            kernels.copy_into(now[0], trial[0], p)
            error, allowed = new_error, new_allowed
            growth = 2.0
        elif turn == 0:
            return np.inf, False, n_evaluations
        else:
            if promised < 1e3 * ROUNDING * error and damping <= 1.0:  # refused by rounding alone
                break
            damping *= growth
            growth *= 2.0
            if damping > LARGEST_DAMPING:
                break
    for k in range(p):
        start[k] = now[0, k]
    return error, allowed, n_evaluations


@njit(error_model="numpy", nogil=True, cache=True)
def _rank(evaluate, nodes, literals, theta, p, X, n, unit, plan, work):  # type: ignore[no-untyped-def]
    """Count the columns of the Jacobian that span its range, affine ones first; -1 if not finite.

    Pivoting: the column that adds most comes first.
    """
    n_nodes = len(nodes)
    table, adjoint, columns = work.table[:n_nodes], work.adjoint[:n_nodes], work.rows[COLUMNS]
    evaluate(
        nodes,
        literals,
        theta,
        X,
        n,
        table,
        adjoint,
        work.masks[ACTIVE][:n_nodes],
        work.masks[ACTIVE][:n_nodes],
        True,
    )
    for k in range(p):
        work.integers[PLACE][k] = k
        work.flags[IS_FREE][k] = True
    for i in range(n):
        if not np.isfinite(table[-1, i]):
            return -1
    _collect(nodes, adjoint, work.flags[IS_FREE][:p], work.integers[PLACE], n, unit, columns[:p])
    movable = 0
    for k in range(p):
        length = _measure(columns[k], n)[0]
        if not length < np.inf:
            return -1
        work.flags[IS_FREE][k] = length > 0.0
        if length > 0.0:
            movable += 1
            for i in range(n):
                columns[k, i] /= length
    rank = 0
    for group in range(2):
        tolerance = plan.curved_tolerance if group else plan.affine_tolerance
        while rank < n:
            best, most = -1, np.sqrt(movable) * tolerance
            for k in range(p):
                if work.flags[IS_FREE][k] and work.flags[IS_AFFINE][k] == (group == 0):
                    length = np.sqrt(_dot(columns[k], columns[k], n))
                    if length > most:
                        best, most = k, length
            if best < 0:
                break
            work.flags[IS_FREE][best] = False
            rank += 1
            row = columns[best]
            for i in range(n):
                row[i] /= most
            for k in range(p):
                if work.flags[IS_FREE][k]:
                    for _ in range(2):
                        along = _dot(row, columns[k], n)
                        for i in range(n):
                            columns[k, i] -= along * row[i]
    return rank


@njit(error_model="numpy", nogil=True, inline="always")
def _generic_rank(evaluate, nodes, literals, theta, X, n, unit, plan, work):  # type: ignore[no-untyped-def]
    """Return the rank of the law: at its fit, or where it is largest next to it.

    At other places that are near, by steps that also move what was fitted to zero; and at some of
    natural size, for a descent that ran off to infinity, where nothing changes any more.
    """
    p = len(theta)
    there = work.points[TRIAL]
    rank = -1
    for around in range(-1, 2 * plan.n_around):
        if rank >= min(p, n):
            break
        for k in range(p):
            step = _normal(work.state) if around >= 0 else 0.0
            scale = work.vectors[SCALES][k]
            if around < plan.n_around:
                there[0, k] = theta[k] + 0.1 * step * max(abs(theta[k]), scale)
            else:
                there[0, k] = (-scale if theta[k] < 0.0 else scale) * np.exp(step)
        rank = max(rank, _rank(evaluate, nodes, literals, there, p, X, n, unit, plan, work))
    return rank


@njit(error_model="numpy", nogil=True, inline="always")
def _look_around(evaluate, nodes, literals, p, X, y, unit, plan, work):  # type: ignore[no-untyped-def]
    """Put the best of the random points first, those before all others that the rules allow.

    A Kronecker sequence with a random shift, so that no part of the range is left out by chance.
    """
    n_found, q, ratio = 0, 0, 2.0
    for k in range(p):
        if not work.flags[IS_AFFINE][k]:
            work.vectors[RIGHT][q] = _uniform(work.state)
            q += 1
    for _ in range(32):  # the root of ratio**(q + 1) = ratio + 1
        ratio = (1.0 + ratio) ** (1.0 / (q + 1))
    for point in range(plan.n_points):
        trial, share, i = work.points[TRIAL], 1.0, 0
        for k in range(p):
            if not work.flags[IS_AFFINE][k]:
                share /= ratio
                place = 2.0 * ((work.vectors[RIGHT][i] + point * share) % 1.0)
                sign = 1.0 if place < 1.0 else -1.0
                place = min(max(place % 1.0, 1e-9), 1.0 - 1e-9)
                size = np.exp(plan.spread * TO_NORMAL * np.log(place / (1.0 - place)))
                trial[0, k] = sign * work.vectors[SCALES][k] * size
                i += 1
        error, allowed = _settle(
            evaluate, nodes, literals, trial, p, X, y, unit, plan.affine_tolerance, work
        )
        if not error < np.inf:
            continue
        if not allowed:
            error += UNWANTED
        at = min(n_found, plan.n_starts)
        while at > 0 and error < work.errors[at - 1]:
            if at < plan.n_starts:
                work.errors[at] = work.errors[at - 1]
                kernels.copy_into(work.starts[at], work.starts[at - 1], p)
            at -= 1
        if at < plan.n_starts:
            work.errors[at] = error
            kernels.copy_into(work.starts[at], trial[0], p)
            n_found = min(n_found + 1, plan.n_starts)
    return n_found


@njit(error_model="numpy", nogil=True, inline="always")
def _fit(evaluate, nodes, literals, X, y, unit, plan, work, best):  # type: ignore[no-untyped-def]
    """Fill best, of shape (p,), with the least minimum; return its error and evaluations."""
    p = len(best)
    n_evaluations = plan.n_points
    least, best_allowed = np.inf, False
    n_found = _look_around(evaluate, nodes, literals, p, X, y, unit, plan, work)
    if plan.n_points == 0:
        kernels.copy_into(work.starts[0], best, p)
        work.errors[0], n_found = np.inf, 1
    for turn in range(n_found + min(plan.n_finishers, n_found)):
        first, n_steps = turn, plan.n_steps
        if turn >= n_found:  # all have come down a little, and the best go on
            n_steps, first = plan.n_more, 0
            for start in range(n_found):
                if work.errors[start] < work.errors[first]:
                    first = start
            if not work.errors[first] < np.inf:
                break
        reached = work.errors[first]
        theta = work.starts[first, :p]
        error, allowed, n = _go_down(
            evaluate, nodes, literals, theta, X, y, unit, plan, n_steps, work
        )
        n_evaluations += n
        work.errors[first] = error if allowed else error + UNWANTED
        if turn >= n_found:
            for start in range(n_found):  # those that were on the same way
                if abs(work.errors[start] - reached) <= 1e-3 * reached or (
                    abs(work.errors[start] - work.errors[first]) <= 1e-3 * work.errors[first]
                ):
                    work.errors[start] = np.inf
        if (allowed and not best_allowed) or (error < least and allowed == best_allowed):
            least, best_allowed = error, allowed
            kernels.copy_into(best, theta, p)
    return least, best_allowed, n_evaluations


@njit(error_model="numpy", nogil=True, cache=True)
def _screen(  # type: ignore[no-untyped-def]
    evaluate,
    nodes,
    lengths,
    literals,
    n_parameters,
    keys,
    seed,
    X,
    y,
    unit,
    probes,
    plan,
    work,
    theta,
    sse,
    rank,
    curves,
    outcome,
    n_evaluations,
):
    """Fit all equations of a batch; return the fingerprint of the operators.

    Fills theta of shape (n_laws, most parameters), sse, in units of the target's deviation, rank,
    curves of shape (n_laws, n_kept + n_probes), at the first so many rows and at the probes,
    outcome and n_evaluations.
    """
    n, n_probes = len(y), len(probes)
    n_kept = curves.shape[1] - n_probes
    size = structure.find_size(y)
    for law in range(len(nodes)):
        p = n_parameters[law]
        table = nodes[law, : lengths[law]]
        numbers = literals[law]
        n_nodes = len(table)
        if plan.n_points > 0:
            theta[law, :] = 0.0
        curves[law, :] = np.nan
        sse[law], rank[law], outcome[law], n_evaluations[law] = np.inf, 0, NEVER_FINITE, 1
        structure.find_affine(
            table,
            p,
            work.sets[ONCE],
            work.sets[MORE],
            work.integers[PARTNERS],
            work.flags[IS_AFFINE],
        )
        n_affine = 0
        for k in range(p):
            work.flags[IS_CURVED][k] = not work.flags[IS_AFFINE][k]
            work.flags[IS_FREE][k] = True
            n_affine += work.flags[IS_AFFINE][k]
        structure.find_dependent(table, work.flags[IS_FREE], work.masks[ACTIVE])
        structure.find_dependent(table, work.flags[IS_AFFINE], work.masks[BY_AFFINE])
        structure.find_dependent(table, work.flags[IS_CURVED], work.masks[BY_CURVED])
        for node in range(n_nodes):
            work.masks[INACTIVE][node] = not work.masks[ACTIVE][node]
        structure.find_watched(table, work.masks[ACTIVE], work.sets[WATCHED])
        best = theta[law, :p]
        one = work.points[NOW]
        one[0, :p] = 0.0
        values = work.table[:n_nodes]
        inactive = work.masks[INACTIVE][:n_nodes]
        adjoint = work.adjoint[:n_nodes]
        evaluate(table, numbers, one, X, n, values, adjoint, inactive, inactive, False)
        work.vectors[SCALES][:p] = 1.0
        if n_affine < p or n < p:
            structure.find_scales(
                table,
                work.masks[ACTIVE],
                values,
                n,
                size,
                work.sizes[SIZES],
                work.sizes[WANTED],
                work.vectors[SCALES],
            )
        work.state[0] = _mixed(_mixed(keys[law]) + seed)
        allowed = True
        if n_affine < p:
            error, allowed, n_evaluations[law] = _fit(
                evaluate, table, numbers, X, y, unit, plan, work, best
            )
        else:
            error, allowed = _settle(
                evaluate, table, numbers, one, p, X, y, unit, plan.affine_tolerance, work
            )
            kernels.copy_into(best, one[0], p)
        if not error < np.inf:
            continue
        if not allowed:
            outcome[law] = FORBIDDEN
            continue
        if p:
            rank[law] = _generic_rank(evaluate, table, numbers, best, X, n, unit, plan, work)
        kernels.copy_into(one[0], best, p)
        every = work.masks[ACTIVE][:n_nodes]
        evaluate(table, numbers, one, X, n, values, adjoint, every, every, False)
        total = 0.0
        kernels.copy_into(curves[law], values[-1], n_kept)
        for i in range(n):
            step = (y[i] - values[-1, i]) * unit
            total += step * step
        if not total < np.inf:
            continue
        sse[law], outcome[law] = total, FITTED
        every[:] = True
        evaluate(table, numbers, one, probes, n_probes, values, adjoint, every, every, False)
        for i in range(n_probes):
            curves[law, n_kept + i] = values[-1, i]
    return _SEAM


# The table of operators comes in as a pointer. Linked into each of the loops above, as in
# `kernels`, the operators would be optimised again in all of them: a minute instead of seconds.

_matrix = types.Array(types.float64, 2, "C")
_flags = types.Array(types.boolean, 1, "C")
_SIGNATURE = types.int64(
    types.Array(types.int32, 2, "C"),
    types.Array(types.float64, 1, "C"),
    _matrix,
    _matrix,
    types.int64,
    _matrix,
    _matrix,
    _flags,
    _flags,
    types.boolean,
)
_evaluators: list[Any] = []


def _evaluate(nodes, literals, theta, X, n, table, adjoint, forward, backward, goes_back):  # type: ignore[no-untyped-def]
    """Compute some nodes for one theta and, if it goes back, derivatives by others.

    An error cannot leave this function: then the law is not a number.
    """
    try:
        kernels._sweep(nodes, literals, theta, X, n, table, forward)
        if goes_back:
            kernels._backward(nodes, table, adjoint, n, backward)
    except Exception:
        for node in range(len(nodes)):
            for i in range(n):
                adjoint[node, i] = np.nan
                if forward[node]:
                    table[node, i] = np.nan
    return kernels._linked + _SEAM


@njit(error_model="numpy", nogil=True, cache=True)
def _ask(evaluate, nodes, literals, matrix, flags):  # type: ignore[no-untyped-def]
    """Return the fingerprint of an evaluator."""
    return evaluate(nodes, literals, matrix, matrix, 0, matrix, matrix, flags, flags, False)


def _evaluator() -> Any:
    """Return a pointer to `_evaluate`.

    The fingerprint tells whether what comes from the disk was made of the code of today.
    """
    follow_table()
    with ONE_AT_A_TIME:
        if not _evaluators:
            nodes, literals = np.zeros((1, 3), dtype=np.int32), np.zeros(1)
            matrix, flags = np.zeros((1, 1)), np.zeros(1, dtype=np.bool_)
            kernels.run_compiled("_sweep", nodes, literals, matrix, matrix, 0, matrix, flags)
            make = cfunc(_SIGNATURE, error_model="numpy", cache=True)
            made = make(_evaluate)
            if _ask(made, nodes, literals, matrix, flags) != LINKED + _SEAM:
                made._cache.flush()
                made = make(_evaluate)
            _evaluators.append(made)
        return _evaluators[0]


def run_screen(*arguments: Any) -> None:
    """Call `_screen` with today's operators; compile it anew if it has old code inside."""
    if _screen(_evaluator(), *arguments) != _SEAM:
        with ONE_AT_A_TIME:
            _screen.recompile()
            _screen(_evaluator(), *arguments)


def _code_digest(*modules: Any) -> int:
    """Digest of all compiled functions that modules define, whatever the table of operators.

    Numba would take a kernel from the disk though a function of another file, which it calls, has
    changed.
    """
    digest = blake2b(digest_size=7)
    for module in modules:
        for kernel in vars(module).values():
            function = getattr(kernel, "py_func", None)
            if function is not None and function.__module__ == module.__name__:
                code = function.__code__
                digest.update(code.co_code)
                digest.update(repr((code.co_consts, code.co_names)).encode())
    return int.from_bytes(digest.digest(), "big")


_SEAM = _code_digest(kernels, structure)
