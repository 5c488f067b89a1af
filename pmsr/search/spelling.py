"""From the normal form back to the rows of a program: short, ordered, each row once."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pmsr.equation.operators import LITERAL, PARAMETER, POWER, VARIABLE
from pmsr.search.absorption import count_uses
from pmsr.search.normal_form import (
    DIVIDE,
    FINE,
    MINUS,
    NODES,
    ONE,
    PRODUCT,
    SQRT,
    SUM,
    TOO_LARGE,
    TROUBLE,
    compiled,
)

# A graph of 64 rows may have 2**63 nodes where each is written wherever it is used.
LARGEST_SIZE = 2**30


class Draft(NamedTuple):
    """Rows in the making, in no order yet, and the numbers that they refer to."""

    rows: NDArray[np.int32]
    literals: NDArray[np.float64]
    size: NDArray[np.int64]  # nodes of the tree below a row
    place: NDArray[np.int32]  # in the finished table, or -1
    varies: NDArray[np.bool_]  # with a parameter
    stack: NDArray[np.int32]  # of a walk: rows,
    stage: NDArray[np.int8]  # how many of their arguments are done,
    left: NDArray[np.int32]  # and where the first is
    row: NDArray[np.int32]  # of a node of the pool
    state: NDArray[np.int64]


ROWS, LITERALS, PARAMETERS, COPIES = range(4)  # of Draft.state: how many there are


def new_draft(n_nodes: int, n_rows: int) -> Draft:
    """Return room for the spelling of a pool with so many nodes, in so many rows at most."""
    most = 4 * n_rows + 16
    return Draft(
        np.empty((most, 3), np.int32),
        np.empty(most),
        np.empty(most, np.int64),
        np.empty(most, np.int32),
        np.empty(most, np.bool_),
        np.empty(most, np.int32),
        np.empty(most, np.int8),
        np.empty(most, np.int32),
        np.empty(n_nodes, np.int32),
        np.zeros(4, np.int64),
    )


@compiled
def _row(pool, draft, code, a, b):  # type: ignore[no-untyped-def]
    """Return the place of a row: of one that is there already, or of a new one."""
    n = draft.state[ROWS]
    for k in range(n):
        if draft.rows[k, 0] == code and draft.rows[k, 1] == a and draft.rows[k, 2] == b:
            return k
    if n == len(draft.rows):
        pool.state[TROUBLE] = TOO_LARGE
        return 0
    draft.rows[n, 0], draft.rows[n, 1], draft.rows[n, 2] = code, a, b
    draft.state[ROWS] = n + 1
    return n


@compiled
def _literal(pool, draft, value):  # type: ignore[no-untyped-def]
    n = draft.state[LITERALS]
    for k in range(n):
        if draft.literals[k] == value:
            return _row(pool, draft, LITERAL, k, 0)
    if n == len(draft.literals):
        pool.state[TROUBLE] = TOO_LARGE
        return 0
    draft.literals[n] = value
    draft.state[LITERALS] = n + 1
    return _row(pool, draft, LITERAL, n, 0)


@compiled
def _can_be_turned(pool, node):  # type: ignore[no-untyped-def]
    """Tell whether a node is a sum with a negative term: -(x - y) is y - x."""
    if pool.kind[node] == SUM:
        for k in range(pool.first[node], pool.first[node] + pool.count[node]):
            if pool.value[k] < 0.0:
                return True
    return False


@compiled
def _times(pool, draft, coefficient, row):  # type: ignore[no-untyped-def]
    """Return the row of a number times a row: x/2 rather than 0.5*x."""
    if coefficient == 1.0:
        return row
    inverse = 1.0 / coefficient
    if inverse == np.floor(inverse) and abs(inverse) > 1.0:
        return _row(pool, draft, DIVIDE, row, _literal(pool, draft, inverse))
    return _row(pool, draft, PRODUCT, _literal(pool, draft, coefficient), row)


@compiled
def _spell_term(pool, draft, coefficient, node):  # type: ignore[no-untyped-def]
    """Return the row of a number times a node, whose parts have rows."""
    if node == ONE:
        return _literal(pool, draft, coefficient)
    if pool.kind[node] == PRODUCT:
        return _spell_product(pool, draft, coefficient, node)
    return _times(pool, draft, coefficient, draft.row[node])


@compiled
def _spell(pool, draft, coefficient, node):  # type: ignore[no-untyped-def]
    """Like `_spell_term`, but a sum, which no term is, may be turned around."""
    if coefficient < 0.0 and _can_be_turned(pool, node):
        return _times(pool, draft, -coefficient, _spell_sum(pool, draft, -1.0, node))
    return _spell_term(pool, draft, coefficient, node)


@compiled
def _spell_sum(pool, draft, sign, node):  # type: ignore[no-untyped-def]
    """Return the row of a sum, or of its negative: first what is added, then what is taken."""
    start, stop = pool.first[node], pool.first[node] + pool.count[node]
    total = -1
    for k in range(start, stop):
        value = sign * pool.value[k]
        if value > 0.0:
            term = _spell_term(pool, draft, value, pool.child[k])
            total = term if total < 0 else _row(pool, draft, SUM, total, term)
    for k in range(start, stop):
        value = sign * pool.value[k]
        if value < 0.0:
            term = _spell_term(pool, draft, -value, pool.child[k])
            total = _row(pool, draft, MINUS, total, term)
    return total


@compiled
def _spell_power(pool, draft, row, twice):  # type: ignore[no-untyped-def]
    """Return the row of a power of a row, given twice the exponent."""
    if twice % 2.0 != 0.0:
        row, twice = _row(pool, draft, SQRT, row, row), 2.0 * twice
    return row if twice == 2.0 else _row(pool, draft, POWER, row, np.int64(0.5 * twice))


@compiled
def _spell_product(pool, draft, coefficient, node):  # type: ignore[no-untyped-def]
    """Return the row of a number times a product: a quotient, if an exponent is negative."""
    start, stop = pool.first[node], pool.first[node] + pool.count[node]
    turned = -1
    if coefficient < 0.0:
        for k in range(start, stop):
            if pool.value[k] % 4.0 == 2.0 and _can_be_turned(pool, pool.child[k]):
                turned, coefficient = k, -coefficient
                break
    n_above = 0
    for k in range(start, stop):
        n_above += pool.value[k] > 0.0
    above, below = -1, -1
    if coefficient != 1.0:
        inverse = 1.0 / coefficient
        if n_above and inverse == np.floor(inverse) and abs(inverse) > 1.0:
            below = _literal(pool, draft, inverse)
        else:
            above = _literal(pool, draft, coefficient)
    elif n_above == 0 and stop - start == 1 and pool.value[start] < -2.0:
        # x**-2 is shorter than 1/x**2.
        base = draft.row[pool.child[start]]
        return _spell_power(pool, draft, base, pool.value[start])
    elif n_above == 0:
        above = _literal(pool, draft, 1.0)
    for k in range(start, stop):
        base = draft.row[pool.child[k]]
        if k == turned:
            base = _spell_sum(pool, draft, -1.0, pool.child[k])
        factor = _spell_power(pool, draft, base, abs(pool.value[k]))
        if pool.value[k] > 0.0:
            above = factor if above < 0 else _row(pool, draft, PRODUCT, above, factor)
        else:
            below = factor if below < 0 else _row(pool, draft, PRODUCT, below, factor)
    return above if below < 0 else _row(pool, draft, DIVIDE, above, below)


@compiled
def spell(pool, coefficient, root, census, arity, split, draft, rows, literals):  # type: ignore[no-untyped-def]
    """Write a pool as the rows of a program; return their number, and that of the tree's nodes.

    With `split`, a row that depends on a parameter is written again, with parameters of its own,
    wherever it is used.

    Rows follow their arguments, in the order in which a walk from the result meets them, and
    parameters and literals are numbered in that order; so the table depends on the law alone.
    """
    draft.state[:] = 0
    count_uses(pool, root, census)
    for node in range(pool.state[NODES]):
        if census.uses[node] == 0 or node == ONE:
            continue
        kind, start = pool.kind[node], pool.first[node]
        if kind == VARIABLE or kind == PARAMETER:
            draft.row[node] = _row(pool, draft, kind, start, 0)
        elif kind == SUM:
            draft.row[node] = _spell_sum(pool, draft, 1.0, node)
        elif kind == PRODUCT:
            draft.row[node] = _spell_product(pool, draft, 1.0, node)
        else:
            a = _spell(pool, draft, pool.value[start], pool.child[start])
            b = a
            if arity[kind] == 2:
                b = _spell(pool, draft, pool.value[start + 1], pool.child[start + 1])
            draft.row[node] = _row(pool, draft, kind, a, b)
        if pool.state[TROUBLE] != FINE:
            return 0, 0
    last = _spell(pool, draft, coefficient, root)
    if pool.state[TROUBLE] != FINE:
        return 0, 0
    return _walk(pool, draft, last, arity, split, rows, literals)


@compiled
def _walk(pool, draft, last, arity, split, rows, literals):  # type: ignore[no-untyped-def]
    """Copy the rows that the last one needs to the table, and number what they refer to."""
    place, size, stack, stage, left = draft.place, draft.size, draft.stack, draft.stage, draft.left
    place[: draft.state[ROWS]] = -1
    n_rows = n_literals = n_parameters = n_copies = 0
    stack[0], stage[0], depth, found = last, 0, 1, -1
    while depth > 0:
        top = depth - 1
        row = stack[top]
        code, a, b = draft.rows[row]
        if stage[top] == 0:
            if place[row] >= 0 and not (split and draft.varies[row]):
                found, depth = place[row], top
                continue
            if arity[code] > 0:
                stage[top], stack[depth], stage[depth] = 1, a, 0
                depth += 1
                continue
        elif stage[top] == 1:
            left[top] = found
            if arity[code] > 1:
                stage[top], stack[depth], stage[depth] = 2, b, 0
                depth += 1
                continue
        if n_rows == len(rows):
            pool.state[TROUBLE] = TOO_LARGE
            return 0, 0
        size[row], draft.varies[row] = 1, code == PARAMETER
        first, second = a, b
        if code == PARAMETER:
            n_copies += place[row] >= 0
            first, n_parameters = n_parameters, n_parameters + 1
        elif code == LITERAL:
            literals[n_literals] = draft.literals[a]
            first, n_literals = n_literals, n_literals + 1
        elif code == POWER:
            size[row], draft.varies[row] = 2 + size[a], draft.varies[a]
            first = left[top]
        elif code != VARIABLE:
            size[row] = 1 + size[a] + (size[b] if arity[code] > 1 else 0)
            draft.varies[row] = draft.varies[a] or draft.varies[b]
            first, second = left[top], found
        size[row] = min(LARGEST_SIZE, size[row])
        rows[n_rows, 0], rows[n_rows, 1], rows[n_rows, 2] = code, first, second
        place[row], found, depth = n_rows, n_rows, top
        n_rows += 1
    draft.state[LITERALS], draft.state[PARAMETERS] = n_literals, n_parameters
    draft.state[COPIES] = n_copies
    return n_rows, size[last]
