"""What the integer table of an equation tells before it is fitted, found by compiled loops.

Which parameters it is affine in, how large they may be, and which nodes the rules of the surface
of predictions watch: the same as `Program.affine`, `natural_scales` and
`Surface.watched`, for thousands of equations a second.
"""

import numpy as np
from numba import njit

from pmsr.equation.operators import (
    LITERAL,
    PARAMETER,
    POWER,
    VARIABLE,
    operator_code,
)

PLUS, MINUS, TIMES, OVER = (operator_code(name) for name in ("+", "-", "*", "/"))
SQRT, ABS, SIN, COS, TAN = (operator_code(name) for name in ("sqrt", "abs", "sin", "cos", "tan"))

MAX_PARAMETERS = 63  # sets of parameters are the bits of an integer

# What the rules ask of a node, bits that may come together.
BELOW, WAVE, TANGENT = 1, 2, 4


@njit(error_model="numpy", nogil=True, cache=True)
def find_affine(nodes, n_parameters, once, more, partners, is_affine):  # type: ignore[no-untyped-def]
    """Fill is_affine: the parameters in which the equation is jointly affine, a greedy choice.

    Sets of parameters, as scratch: once and more, for each node those that it is affine in and
    those that it depends on otherwise; partners, for each parameter those that multiply it.
    """
    one = np.int64(1)
    partners[:n_parameters] = 0
    for node in range(len(nodes)):
        code, a, b = nodes[node]
        once[node], more[node] = 0, 0
        if code == PARAMETER:
            once[node] = one << a
            continue
        if code == VARIABLE or code == LITERAL:
            continue
        if code == POWER:
            more[node] = once[a] | more[a]
            continue
        left, right = once[a] | more[a], once[b] | more[b]
        if code == PLUS or code == MINUS:
            more[node] = more[a] | more[b]
        elif code == TIMES or code == OVER:
            for k in range(n_parameters):
                if left >> k & one:
                    partners[k] |= right
                if right >> k & one:
                    partners[k] |= left
            more[node] = more[a] | more[b] | (left & right if code == TIMES else right)
        else:
            more[node] = left | right
        once[node] = (left | right) & ~more[node]
    chosen = np.int64(0)
    is_affine[:n_parameters] = False
    # Few partners first: of c0*(c1 + c2*x), c1 and c2 rather than c0.
    for n_partners in range(n_parameters + 1):
        for k in range(n_parameters):
            if more[len(nodes) - 1] >> k & one or _n_bits(partners[k]) != n_partners:
                continue
            if not partners[k] & chosen:
                chosen |= one << k
                is_affine[k] = True


@njit(error_model="numpy", nogil=True, cache=True)
def _n_bits(number):  # type: ignore[no-untyped-def]
    count = 0
    while number:
        number &= number - 1
        count += 1
    return count


@njit(error_model="numpy", nogil=True, cache=True)
def find_dependent(nodes, chosen, dependent):  # type: ignore[no-untyped-def]
    """Fill dependent: which nodes depend on one of the chosen parameters."""
    for node in range(len(nodes)):
        code, a, b = nodes[node]
        if code == PARAMETER:
            dependent[node] = chosen[a]
        elif code == POWER:
            dependent[node] = dependent[a]
        elif code == VARIABLE or code == LITERAL:
            dependent[node] = False
        else:
            dependent[node] = dependent[a] or dependent[b]


@njit(error_model="numpy", nogil=True, cache=True)
def find_watched(nodes, active, watched):  # type: ignore[no-untyped-def]
    """Fill watched with `BELOW`, `WAVE` and `TANGENT`, 0 where no rule looks; tell if any does.

    A denominator that is a product, a power, a root or a quotient is watched in its factors: it
    changes no sign if it is a square.
    """
    watched[: len(nodes)] = 0
    for node in range(len(nodes) - 1, -1, -1):
        code, a, b = nodes[node]
        is_factor = watched[node] & BELOW and (
            code == POWER or code == TIMES or code == OVER or code == SQRT or code == ABS
        )
        if is_factor:
            watched[node] &= ~BELOW
            watched[a] |= BELOW
            if code == TIMES:
                watched[b] |= BELOW
        if code == POWER and b < 0:
            watched[a] |= BELOW
        elif code == OVER:
            watched[b] |= BELOW
        elif code == SIN or code == COS:
            watched[a] |= WAVE
        elif code == TAN:
            watched[a] |= WAVE | TANGENT
    found = False
    for node in range(len(nodes)):
        if not active[node]:
            watched[node] = 0
        found = found or watched[node] != 0
    return found


@njit(error_model="numpy", nogil=True, cache=True)
def obeys(watched, table, n_points):  # type: ignore[no-untyped-def]
    """Tell whether no denominator changes sign between the rows, and no wave is an alias."""
    for node in range(len(table)):
        if watched[node] == 0:
            continue
        low, high = np.inf, -np.inf
        for i in range(n_points):
            low, high = min(low, table[node, i]), max(high, table[node, i])
        if watched[node] & BELOW and not (low > 0.0 or high < 0.0):
            return False
        if watched[node] & WAVE and not high - low <= np.pi * (n_points - 1):
            return False
        if watched[node] & TANGENT and np.floor(low / np.pi + 0.5) != np.floor(high / np.pi + 0.5):
            return False
    return True


@njit(error_model="numpy", nogil=True, cache=True)
def find_scales(nodes, active, table, n_points, size, sizes, wanted, scales):  # type: ignore[no-untyped-def]
    """Fill scales with the typical size of each parameter, if the result has the given size.

    The table holds the values of the nodes without parameters; sizes and wanted are scratch.
    """
    last = len(nodes) - 1
    for node in range(len(nodes)):
        # 0 is a size that nothing has: not known, or not wanted yet.
        sizes[node] = 0.0 if active[node] else find_size(table[node, :n_points])
        wanted[node] = 0.0
    wanted[last] = size
    for node in range(last, -1, -1):
        code, a, b = nodes[node]
        if not active[node]:
            continue
        here = wanted[node] if wanted[node] > 0.0 else 1.0
        if code == PARAMETER:
            scales[a] = here
            continue
        for_a, for_b = 1.0, 1.0
        if code == PLUS or code == MINUS:
            for_a, for_b = max(here, sizes[b]), max(here, sizes[a])
        elif code == TIMES:
            # One factor makes the size, the other is near 1: a lone parameter, or the first.
            b_is_first = nodes[b, 0] == PARAMETER
            known = sizes[a] if b_is_first else sizes[b]
            other = sizes[b] if b_is_first else sizes[a]
            known = known if known > 0.0 else (other if other > 0.0 else 1.0)
            if b_is_first or not active[a]:
                for_b = here / known
            else:
                for_a = here / known
        elif code == OVER:
            below = sizes[b]
            if below == 0.0:
                below = 1.0
                inner, c, d = nodes[b]
                if (inner == PLUS or inner == MINUS) and max(sizes[c], sizes[d]) > 0.0:
                    below = max(sizes[c], sizes[d])
            for_a, for_b = here * below, (below if active[a] else sizes[a] / here)
        elif code == POWER:
            for_a = here ** (1.0 / b)
        elif code == SQRT:
            for_a = here * here
        elif code == ABS:
            for_a = here
        if 0.0 < for_a < np.inf and wanted[a] == 0.0:
            wanted[a] = for_a
        if code != POWER and 0.0 < for_b < np.inf and wanted[b] == 0.0:
            wanted[b] = for_b


@njit(error_model="numpy", nogil=True, cache=True)
def find_size(values):  # type: ignore[no-untyped-def]
    """Root mean square of the finite values, whatever their size; 1 if all are zero."""
    largest, total, count = 0.0, 0.0, 0
    for i in range(values.size):
        if np.isfinite(values[i]):
            largest = max(largest, abs(values[i]))
            count += 1
    if largest == 0.0:
        return 1.0
    for i in range(values.size):
        if np.isfinite(values[i]):
            total += (values[i] / largest) ** 2
    size = np.sqrt(total / count) * largest
    return size if size > 0.0 else 1.0
