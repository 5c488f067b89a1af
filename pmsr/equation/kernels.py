"""Compiled loops over the integer table of an equation: value, Jacobian, descent.

Everything that is called thousands of times a second. Kernels that apply operators return the
fingerprint of the built-in rows that they were compiled for; those of users are linked when a
kernel is called.
"""

import math
from typing import Any

import numpy as np
from numba import njit
from numba.core.compiler_lock import global_compiler_lock

from pmsr.equation.linking import LINKED, compile_derivatives, compile_values, follow_table
from pmsr.equation.operators import (
    FIRST_OPERATOR,
    LITERAL,
    PARAMETER,
    POWER,
    VARIABLE,
)
from pmsr.magnitude import LONG, SHORT
from pmsr.threads import ONE_AT_A_TIME

LOG_2 = math.log(2.0)
BLOCK = 512  # values of a node that are computed together: few dispatches, and all stays in cache


def run_compiled(name: str, *arguments: Any) -> None:
    """Call a compiled kernel; compile all anew if it was made for other built-in rows."""
    follow_table()
    if globals()[name](*arguments) != LINKED:
        with ONE_AT_A_TIME:
            # Another thread may have compiled meanwhile.
            if globals()[name](*arguments) != LINKED:
                _compile_anew()
                globals()[name](*arguments)


def _compile_anew() -> None:
    """Make new kernels, which forget what is on disk.

    Another thread may be in the middle of an old one. Until all are in place nobody compiles, or an
    old kernel could be linked with some of the new.
    """
    with global_compiler_lock:
        for name in _LINKED_KERNELS:
            jit = njit(error_model="numpy", nogil=True, cache=True)
            kernel = jit(globals()[name].py_func)
            kernel.recompile()  # nothing yet
            globals()[name] = kernel


# Dependencies first.
_LINKED_KERNELS = (
    "_sweep",
    "_backward",
    "_values",
    "_jacobian",
    "_slopes",
    "_slopes_of_many",
    "_moments",
    "_project",
    "_descend",
)

_apply, _push, _linked = compile_values(), compile_derivatives(), LINKED

# Compiling takes seconds, so the result is kept on disk. Numba looks only at the date of this
# file: hence the fingerprint that each kernel returns, a constant since it was compiled.


@njit(error_model="numpy", nogil=True, cache=True)
def find_active(nodes):  # type: ignore[no-untyped-def]
    """Tell which nodes depend on a parameter: the others are the same for the whole batch."""
    active = np.zeros(len(nodes), dtype=np.bool_)
    for node in range(len(nodes)):
        code, a, b = nodes[node]
        if code == PARAMETER:
            active[node] = True
        elif code == POWER:
            active[node] = active[a]
        elif code >= FIRST_OPERATOR:
            active[node] = active[a] or active[b]
    return active


@njit(error_model="numpy", nogil=True, cache=True)
def find_varying(nodes):  # type: ignore[no-untyped-def]
    """Tell which nodes depend on a parameter or on a variable: the others are numbers."""
    varying = np.zeros(len(nodes), dtype=np.bool_)
    for node in range(len(nodes)):
        code, a, b = nodes[node]
        if code == PARAMETER or code == VARIABLE:
            varying[node] = True
        elif code == POWER:
            varying[node] = varying[a]
        elif code >= FIRST_OPERATOR:
            varying[node] = varying[a] or varying[b]
    return varying


@njit(error_model="numpy", nogil=True, cache=True)
def copy_into(row, source, n):  # type: ignore[no-untyped-def]
    """Copy the first n entries; for slices Numba compiles the text of an error, for seconds."""
    for i in range(n):
        row[i] = source[i]


@njit(error_model="numpy", nogil=True, cache=True)
def integer_power(base, exponent):  # type: ignore[no-untyped-def]
    """Power of a float by repeated squaring; infinite for zero to a negative one.

    Numba's own raises an error there whatever the error model, and so ends the whole sweep.
    """
    value, left = 1.0, abs(exponent)
    while left != 0:
        if left & 1:
            value *= base
        left >>= 1
        base *= base
    return value if exponent >= 0 else 1.0 / value


@njit(error_model="numpy", nogil=True, cache=True)
def _sweep(nodes, literals, theta, X, n_points, table, which):  # type: ignore[no-untyped-def]
    """Compute the rows of the table for which `which` holds, for a block of theta times points."""
    n_block = len(theta) * n_points
    for node in range(len(nodes)):
        if not which[node]:
            continue
        code, a, b = nodes[node]
        row = table[node, :n_block]
        if code == VARIABLE:
            for batch in range(len(theta)):
                for i in range(n_points):
                    row[batch * n_points + i] = X[i, a]
        elif code == PARAMETER:
            for batch in range(len(theta)):
                for i in range(n_points):
                    row[batch * n_points + i] = theta[batch, a]
        elif code == LITERAL:
            row[:] = literals[a]
        elif code == POWER:
            base = table[a]
            if b == 2:
                for i in range(n_block):
                    row[i] = base[i] * base[i]
            elif b == 3:
                for i in range(n_block):
                    row[i] = base[i] * base[i] * base[i]
            else:
                for i in range(n_block):
                    row[i] = integer_power(base[i], b)
        else:
            _apply(code, table[a], table[b], row)
    return _linked


@njit(error_model="numpy", nogil=True, cache=True)
def _values(nodes, literals, theta, X, values):  # type: ignore[no-untyped-def]
    """Fill values, of shape (n_batch, N); return the fingerprint of the operators."""
    active = find_active(nodes)
    inactive = ~active
    most_points = min(BLOCK, len(X))
    most_theta = max(1, min(BLOCK // most_points, len(theta)))
    table = np.empty((len(nodes), most_theta * most_points))
    for start in range(0, len(X), most_points):
        points = X[start : start + most_points]
        n = len(points)
        _sweep(nodes, literals, theta[:most_theta], points, n, table, inactive)
        for batch in range(0, len(theta), most_theta):
            block = theta[batch : batch + most_theta]
            _sweep(nodes, literals, block, points, n, table, active)
            for k in range(len(block)):
                copy_into(values[batch + k, start:], table[-1, k * n :], n)
    return _linked


@njit(error_model="numpy", nogil=True, cache=True)
def _jacobian(nodes, literals, theta, X, values, jacobian):  # type: ignore[no-untyped-def]
    """Fill values and, by one backward sweep, jacobian of shape (n_batch, p, N)."""
    active = find_active(nodes)
    inactive = ~active
    most_points = min(BLOCK, len(X))
    most_theta = max(1, min(BLOCK // most_points, len(theta)))
    table = np.empty((len(nodes), most_theta * most_points))
    adjoint = np.empty_like(table)
    jacobian[:] = 0.0
    for start in range(0, len(X), most_points):
        points = X[start : start + most_points]
        n = len(points)
        _sweep(nodes, literals, theta[:most_theta], points, n, table, inactive)
        for batch in range(0, len(theta), most_theta):
            block = theta[batch : batch + most_theta]
            _sweep(nodes, literals, block, points, n, table, active)
            for k in range(len(block)):
                copy_into(values[batch + k, start:], table[-1, k * n :], n)
            if active[-1]:
                _backward(nodes, table, adjoint, len(block) * n, active)
                for node in range(len(nodes)):
                    if nodes[node, 0] == PARAMETER:
                        a = nodes[node, 1]
                        for k in range(len(block)):
                            for i in range(n):
                                jacobian[batch + k, a, start + i] += adjoint[node, k * n + i]
    return _linked


@njit(error_model="numpy", nogil=True, cache=True)
def _slopes(nodes, literals, theta, X, values, jacobian, slopes):  # type: ignore[no-untyped-def]
    """Fill values (n, N), jacobian (2, n, p, N) and slopes (2, n, d, N), those by x.

    The second half of each is what was added up without regard to sign: rounding errors are in
    proportion to it. For few points: all of them, for all theta, are one block.
    """
    varying = find_varying(nodes)
    everything = np.ones(len(nodes), dtype=np.bool_)
    n, n_block = len(X), len(X) * len(theta)
    table = np.empty((len(nodes), n_block))
    adjoint, gross = np.empty_like(table), np.zeros_like(table)
    part_a, part_b = np.empty(n_block), np.empty(n_block)
    jacobian[:], slopes[:] = 0.0, 0.0
    _sweep(nodes, literals, theta, X, n, table, everything)
    for k in range(len(theta)):
        copy_into(values[k], table[-1, k * n :], n)
    if not varying[-1]:
        return _linked
    _backward(nodes, table, adjoint, n_block, varying)
    gross[-1] = 1.0
    for node in range(len(nodes) - 1, -1, -1):
        code, a, b = nodes[node]
        if not varying[node]:
            continue
        if code == PARAMETER or code == VARIABLE:
            into = jacobian if code == PARAMETER else slopes
            for k in range(len(theta)):
                for i in range(n):
                    into[0, k, a, i] += adjoint[node, k * n + i]
                    into[1, k, a, i] += gross[node, k * n + i]
        elif code == POWER:
            for i in range(n_block):
                gross[a, i] += abs(gross[node, i] * b * integer_power(table[a, i], b - 1))
        else:
            part_a[:], part_b[:] = 0.0, 0.0
            _push(code, table[a], table[b], table[node], gross[node], part_a, part_b)
            for i in range(n_block):
                gross[a, i] += abs(part_a[i])
                # Of an operator with one argument, b is that argument and its part is 0.
                gross[b, i] += abs(part_b[i])
    return _linked


@njit(error_model="numpy", nogil=True, cache=True)
def _slopes_of_many(nodes, n_nodes, literals, theta, X, values, jacobian, slopes):  # type: ignore[no-untyped-def]
    """Do what `_slopes` does for padded tables, of laws that have as many parameters."""
    for law in range(len(n_nodes)):
        _slopes(
            nodes[law, : n_nodes[law]],
            literals[law],
            theta,
            X,
            values[law],
            jacobian[law],
            slopes[law],
        )
    return _linked


@njit(error_model="numpy", nogil=True, cache=True)
def _backward(nodes, table, adjoint, n_block, active):  # type: ignore[no-untyped-def]
    """Fill adjoint with the derivatives of the result by every active node."""
    adjoint[:, :n_block] = 0.0
    adjoint[-1, :n_block] = 1.0
    for node in range(len(nodes) - 1, -1, -1):
        code, a, b = nodes[node]
        if not active[node] or code < POWER:
            continue
        down = adjoint[node]
        if code == POWER:
            for i in range(n_block):
                adjoint[a, i] += down[i] * b * integer_power(table[a, i], b - 1)
        else:
            n_a = n_block if active[a] else 0
            n_b = n_block if active[b] else 0
            _push(code, table[a], table[b], table[node], down, adjoint[a, :n_a], adjoint[b, :n_b])


@njit(error_model="numpy", nogil=True, cache=True)
def _moments(  # type: ignore[no-untyped-def]
    nodes, literals, theta, X, y, centres, scales, watched, sums, slope, gram, distances, extremes
):
    """Fill sums over the points, for each theta; nothing of their number is kept.

    With chi the Jacobian, its columns multiplied by scales, and r the residual: sums r'r, slope
    chi'r of shape (n, p), gram chi'chi of shape (n, p, p), distances of the predictions from each
    centre, squared, of shape (n, n_centres), and extremes, the least, largest and first value of
    each watched node, of shape (n, n_watched, 3).
    """
    active = find_active(nodes)
    inactive = ~active
    p, n_centres, n_watched = theta.shape[1], len(centres), len(watched)
    most_points = min(BLOCK, len(X))
    most_theta = max(1, min(BLOCK // most_points, len(theta)))
    table = np.empty((len(nodes), most_theta * most_points))
    adjoint = np.empty_like(table)
    columns = np.empty((p, most_theta * most_points))
    residual = np.empty(most_points)
    sums[:], slope[:], gram[:], distances[:] = 0.0, 0.0, 0.0, 0.0
    extremes[:, :, 0], extremes[:, :, 1] = np.inf, -np.inf
    for start in range(0, len(X), most_points):
        points = X[start : start + most_points]
        n = len(points)
        _sweep(nodes, literals, theta[:most_theta], points, n, table, inactive)
        for batch in range(0, len(theta), most_theta):
            block = theta[batch : batch + most_theta]
            n_block = len(block) * n
            _sweep(nodes, literals, block, points, n, table, active)
            _backward(nodes, table, adjoint, n_block, active)
            columns[:, :n_block] = 0.0
            for node in range(len(nodes)):
                if nodes[node, 0] == PARAMETER:
                    a = nodes[node, 1]
                    for i in range(n_block):
                        columns[a, i] += adjoint[node, i] * scales[a]
            for k in range(len(block)):
                here, first = batch + k, k * n
                values = table[-1, first : first + n]
                for i in range(n):
                    residual[i] = y[start + i] - values[i]
                sums[here] += _dot(residual[:n], residual[:n])
                for a in range(p):
                    column = columns[a, first : first + n]
                    slope[here, a] += _dot(column, residual[:n])
                    for b in range(a + 1):
                        gram[here, a, b] += _dot(column, columns[b, first : first + n])
                for c in range(n_centres):
                    total = 0.0
                    for i in range(n):
                        step = values[i] - centres[c, start + i]
                        total += step * step
                    distances[here, c] += total
                for m in range(n_watched):
                    seen = table[watched[m], first : first + n]
                    if start == 0:
                        extremes[here, m, 2] = seen[0]
                    for i in range(n):
                        extremes[here, m, 0] = min(extremes[here, m, 0], seen[i])
                        extremes[here, m, 1] = max(extremes[here, m, 1], seen[i])
    return _linked


@njit(error_model="numpy", nogil=True, cache=True)
def factor_moments(gram, slope, order, least):  # type: ignore[no-untyped-def]
    """Decompose chi'chi for a batch, in an order of the parameters: affine ones first.

    Returns the lengths of the columns (n, p) in that order, the Cholesky factor of their
    correlations (n, p, p), and the residual's components along the orthogonalised columns (n, p).
    NaN where a column adds less than `least` of its length to those before it.
    """
    n, p = slope.shape
    lengths, whitened = np.empty((n, p)), np.empty((n, p))
    root = np.zeros((n, p, p))
    for one in range(n):
        for i in range(p):
            a = order[i]
            lengths[one, i] = np.sqrt(gram[one, a, a])
            total = slope[one, a] / lengths[one, i]
            diagonal = 1.0
            for j in range(i):
                b = order[j]
                entry = gram[one, max(a, b), min(a, b)] / (lengths[one, i] * lengths[one, j])
                for k in range(j):
                    entry -= root[one, i, k] * root[one, j, k]
                entry /= root[one, j, j]
                root[one, i, j] = entry
                diagonal -= entry * entry
                total -= entry * whitened[one, j]
            root[one, i, i] = np.sqrt(diagonal) if diagonal > least * least else np.nan
            whitened[one, i] = total / root[one, i, i]
    return lengths, root, whitened


@njit(error_model="numpy", nogil=True, cache=True)
def kernel_sums(points, centres, whitens, weights, group, power, nu, sums):  # type: ignore[no-untyped-def]
    """Add up Student densities, without their common constant, into one sum for each group.

    Parts have a centre (n_parts, q), an upper triangular matrix W (n_parts, q, q) such that
    |W (w - centre)| is the distance in units of their width, a weight that includes |W|, and a
    group. Each adds weight * (1 + distance^2 / nu)^-power to sums (n, n_groups).
    """
    n, q = points.shape
    sums[:] = 0.0
    step = np.empty(q)
    for one in range(n):
        for part in range(len(centres)):
            square = 0.0
            for i in range(q):
                step[i] = points[one, i] - centres[part, i]
            for i in range(q):
                along = 0.0
                for j in range(i, q):
                    along += whitens[part, i, j] * step[j]
                square += along * along
            base = 1.0 + square / nu
            value = base
            for _ in range(power - 1):
                value *= base
            sums[one, group[part]] += weights[part] / value


@njit(error_model="numpy", nogil=True, cache=True)
def affine_normal(design, residual, noise):  # type: ignore[no-untyped-def]
    """Solve the least-squares problem of the affine parameters for a whole batch.

    For each design A (n_c, N) and residual r: the step to the conditional mean plus noise
    coloured by the conditional covariance, the square of the step to the mean in units of
    predictions, and half the log determinant of A A'. NaN where the problem is singular.
    """
    n_batch, n_c = design.shape[:2]
    steps = np.empty((n_batch, n_c))
    squares = np.empty(n_batch)
    log_dets = np.empty(n_batch)
    root = np.zeros((n_c, n_c))
    length = np.empty(n_c)
    exponent = np.zeros(n_c, dtype=np.int64)
    right = np.empty(n_c)
    for batch in range(n_batch):
        A, r = design[batch], residual[batch]
        exponent[:] = 0
        for i in range(n_c):
            length[i] = np.sqrt(_dot(A[i], A[i]))
            if not SHORT < length[i] < LONG:
                if not exponent.any():
                    A = A.copy()
                exponent[i] = _take_out_exponent(A[i])
                length[i] = np.sqrt(_dot(A[i], A[i]))
        square, log_det = 0.0, 0.0
        for i in range(n_c):  # Cholesky factor of the correlations, and forward substitution
            for j in range(i):
                total = _dot(A[i], A[j]) / (length[i] * length[j])
                for k in range(j):
                    total -= root[i, k] * root[j, k]
                root[i, j] = total / root[j, j]
            total, diagonal = _dot(A[i], r) / length[i], 1.0 + 1e-12
            for k in range(i):
                diagonal -= root[i, k] * root[i, k]
                total -= root[i, k] * right[k]
            root[i, i] = np.sqrt(diagonal)
            right[i] = total / root[i, i]
            square += right[i] * right[i]
            log_det += np.log(root[i, i]) + np.log(length[i]) + exponent[i] * LOG_2
        squares[batch] = square
        log_dets[batch] = log_det
        for i in range(n_c - 1, -1, -1):
            total = right[i] + noise[batch, i]
            for k in range(i + 1, n_c):
                total -= root[k, i] * steps[batch, k]
            steps[batch, i] = total / root[i, i]
        for i in range(n_c):
            steps[batch, i] = math.ldexp(steps[batch, i] / length[i], -exponent[i])
    return steps, squares, log_dets


@njit(error_model="numpy", nogil=True, cache=True)
def _take_out_exponent(row):  # type: ignore[no-untyped-def]
    """Divide by the power of two that brings the largest entry near 1; return its exponent."""
    largest = 0.0
    for i in range(row.size):
        largest = max(largest, abs(row[i]))
    if not 0.0 < largest < np.inf:
        return 0
    exponent = math.frexp(largest)[1]
    for i in range(row.size):
        row[i] = math.ldexp(row[i], -exponent)
    return exponent


@njit(error_model="numpy", nogil=True, cache=True)
def _dot(a, b):  # type: ignore[no-untyped-def]
    total = 0.0
    for i in range(a.size):
        total += a[i] * b[i]
    return total


@njit(error_model="numpy", nogil=True, cache=True)
def _project(nodes, literals, theta, X, y, affine, values, jacobian):  # type: ignore[no-untyped-def]
    """Replace the affine entries of theta, of shape (1, p), by their least-squares values.

    Fills values and jacobian with those of the new theta.
    """
    n_c = len(affine)
    before = np.empty(n_c)
    for k in range(n_c):
        before[k] = theta[0, affine[k]]
        theta[0, affine[k]] = 0.0
    for turn in range(2 if n_c else 1):  # called at one place, the loops are compiled once
        _jacobian(nodes, literals, theta, X, values, jacobian)
        if n_c == 0 or turn == 1:
            break
        design = np.empty((1, n_c, len(X)))
        for k in range(n_c):
            copy_into(design[0, k], jacobian[0, affine[k]], len(X))
        best = affine_normal(design, y - values, np.zeros((1, n_c)))[0]
        for k in range(n_c):
            theta[0, affine[k]] = best[0, k] if np.isfinite(best[0, k]) else before[k]
    return _linked


@njit(error_model="numpy", nogil=True, cache=True)
def _descend(  # type: ignore[no-untyped-def]
    nodes, literals, starts, X, y, unit, affine, n_steps, tolerance, theta, errors
):
    """Take damped Gauss-Newton steps (Levenberg-Marquardt) from each start, one after the other.

    After each step the affine parameters are solved for. Fills theta, like starts, and errors, the
    sum of squares times the square of unit; infinite where a start is not finite. A descent ends
    when a step gains less than the tolerance, or none does.
    """
    n_theta, p = starts.shape
    n = len(X)
    values, jacobian = np.empty((1, n)), np.empty((1, p, n))
    new_values, new_jacobian = np.empty((1, n)), np.empty((1, p, n))
    now, trial = np.empty((1, p)), np.empty((1, p))
    root, length, step = np.empty((p, p)), np.empty(p), np.empty(p)
    gram, right, exponent = np.empty((p, p)), np.empty(p), np.zeros(p, dtype=np.int64)
    for start in range(n_theta):
        copy_into(now[0], starts[start], p)
        _project(nodes, literals, now, X, y, affine, values, jacobian)
        residual = (y - values[0]) * unit
        jacobian *= unit  # before anything is squared: the data may be of any size
        error = _dot(residual, residual)
        copy_into(theta[start], now[0], p)
        errors[start] = np.inf
        if not (np.isfinite(error) and np.isfinite(jacobian.sum())):
            continue
        damping, fresh = 1e-2, True
        for _ in range(n_steps):
            if fresh:
                for i in range(p):
                    length[i], exponent[i] = np.sqrt(_dot(jacobian[0, i], jacobian[0, i])), 0
                    if not SHORT < length[i] < LONG:
                        exponent[i] = _take_out_exponent(jacobian[0, i])
                        length[i] = np.sqrt(_dot(jacobian[0, i], jacobian[0, i]))
                    if length[i] == 0.0:
                        length[i] = 1.0
                    right[i] = _dot(jacobian[0, i], residual) / length[i]
                    for j in range(i + 1):
                        gram[i, j] = _dot(jacobian[0, i], jacobian[0, j]) / (length[i] * length[j])
                fresh = False
            solved = True
            for i in range(p):
                for j in range(i + 1):
                    total = gram[i, j] + (damping if i == j else 0.0)
                    for k in range(j):
                        total -= root[i, k] * root[j, k]
                    if i > j:
                        root[i, j] = total / root[j, j]
                    elif total > 0.0:
                        root[i, i] = np.sqrt(total)
                    else:
                        solved = False
                        root[i, i] = 1.0
            better = False
            if solved:
                for i in range(p):
                    total = right[i]
                    for k in range(i):
                        total -= root[i, k] * step[k]
                    step[i] = total / root[i, i]
                for i in range(p - 1, -1, -1):
                    total = step[i]
                    for k in range(i + 1, p):
                        total -= root[k, i] * step[k]
                    step[i] = total / root[i, i]
                for i in range(p):
                    trial[0, i] = now[0, i] + math.ldexp(step[i] / length[i], -exponent[i])
                _project(nodes, literals, trial, X, y, affine, new_values, new_jacobian)
                new_residual = (y - new_values[0]) * unit
                new_jacobian *= unit
                new_error = _dot(new_residual, new_residual)
                better = new_error < error and np.isfinite(new_jacobian.sum())
            if better:
                gain = error - new_error
                copy_into(now[0], trial[0], p)
                residual, error, fresh = new_residual, new_error, True
                jacobian, new_jacobian = new_jacobian, jacobian
                damping *= 0.2
                if gain <= tolerance * error:
                    break
            else:
                damping *= 5.0
                if damping > 1e8:
                    break
        copy_into(theta[start], now[0], p)
        errors[start] = error
    return _linked
