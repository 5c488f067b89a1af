"""From the normal form back to the rows of a program: short, ordered, each row once."""

import numpy as np
from numpy.typing import NDArray

from pmsr.equation.operators import LITERAL, PARAMETER, POWER, VARIABLE
from pmsr.search.absorption import count_uses, is_free
from pmsr.search.normal_form import (
    DIVIDE,
    FINE,
    MINUS,
    ONE,
    PRODUCT,
    SQRT,
    SUM,
    TOO_LARGE,
    compiled,
)

# A graph of 64 rows may have 2**63 nodes where each is written wherever it is used.
LARGEST_SIZE = 2**30


# A draft is rows in the making, in no order yet; the first record also has the state of all.
DRAFT = np.dtype(
    [
        ("code", "i8"),
        ("a", "i8"),
        ("b", "i8"),
        ("place", "i8"),  # in the finished table, or -1
        ("size", "i8"),  # nodes of the tree below
        ("literal", "f8"),  # the numbers that rows refer to
        ("varies", "i8"),  # with a parameter
        ("stack", "i8"),  # of a walk: rows,
        ("stage", "i8"),  # how many of their arguments are done,
        ("left", "i8"),  # and where the first is
        ("n_rows", "i8"),
        ("n_literals", "i8"),
        ("n_parameters", "i8"),
        ("n_copies", "i8"),
    ],
    align=True,
)
Draft = NDArray[np.void]


@compiled
def new_draft(n_rows):  # type: ignore[no-untyped-def]
    """Return room for the spelling of graphs of so many rows."""
    return np.zeros(4 * n_rows + 16, DRAFT)


@compiled
def _row(pool, draft, code, a, b):  # type: ignore[no-untyped-def]
    """Return the place of a row: of one that is there already, or of a new one."""
    n = draft[0].n_rows
    for k in range(n):
        if draft[k].code == code and draft[k].a == a and draft[k].b == b:
            return k
    if n == len(draft):
        pool[0].trouble = TOO_LARGE
        return 0
    draft[n].code, draft[n].a, draft[n].b = code, a, b
    draft[0].n_rows = n + 1
    return n


@compiled
def _literal(pool, draft, value):  # type: ignore[no-untyped-def]
    n = draft[0].n_literals
    for k in range(n):
        if draft[k].literal == value:
            return _row(pool, draft, LITERAL, k, 0)
    if n == len(draft):
        pool[0].trouble = TOO_LARGE
        return 0
    draft[n].literal = value
    draft[0].n_literals = n + 1
    return _row(pool, draft, LITERAL, n, 0)


@compiled
def _can_be_turned(pool, node):  # type: ignore[no-untyped-def]
    """Tell whether a minus sign can go into a sum: -(x - y) is y - x, and -(c0 + x) is c0 - x."""
    if pool[node].kind == SUM:
        for k in range(pool[node].first, pool[node].first + pool[node].count):
            if pool[k].value < 0.0 or is_free(pool, pool[k].child):
                return True
    return False


@compiled
def _signed_value(pool, sign, k):  # type: ignore[no-untyped-def]
    """Return the coefficient of a term in a sum, or in a turned one."""
    return pool[k].value if is_free(pool, pool[k].child) else sign * pool[k].value


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
    if pool[node].kind == PRODUCT:
        return _spell_product(pool, draft, coefficient, node, -1, -1)
    return _times(pool, draft, coefficient, pool[node].row)


@compiled
def _spell(pool, draft, coefficient, node):  # type: ignore[no-untyped-def]
    """Like `_spell_term`, but a sum, or one that is a factor, may be turned for a minus sign."""
    if coefficient < 0.0 and _can_be_turned(pool, node):
        return _times(pool, draft, -coefficient, _spell_sum(pool, draft, -1.0, node))
    if coefficient < 0.0 and pool[node].kind == PRODUCT:
        for k in range(pool[node].first, pool[node].first + pool[node].count):
            if pool[k].value % 4.0 == 2.0 and _can_be_turned(pool, pool[k].child):
                row = _spell_sum(pool, draft, -1.0, pool[k].child)
                return _spell_product(pool, draft, -coefficient, node, k, row)
    return _spell_term(pool, draft, coefficient, node)


@compiled
def _spell_sum(pool, draft, sign, node):  # type: ignore[no-untyped-def]
    """Return the row of a sum, or of its negative: first what is added, then what is taken."""
    start, stop = pool[node].first, pool[node].first + pool[node].count
    total = -1
    for k in range(start, stop):
        value = _signed_value(pool, sign, k)
        if value > 0.0:
            term = _spell_term(pool, draft, value, pool[k].child)
            total = term if total < 0 else _row(pool, draft, SUM, total, term)
    for k in range(start, stop):
        value = _signed_value(pool, sign, k)
        if value < 0.0:
            term = _spell_term(pool, draft, -value, pool[k].child)
            total = _row(pool, draft, MINUS, total, term)
    return total


@compiled
def _spell_power(pool, draft, row, twice):  # type: ignore[no-untyped-def]
    """Return the row of a power of a row, given twice the exponent."""
    if twice % 2.0 != 0.0:
        row, twice = _row(pool, draft, SQRT, row, row), 2.0 * twice
    return row if twice == 2.0 else _row(pool, draft, POWER, row, np.int64(0.5 * twice))


@compiled
def _spell_product(pool, draft, coefficient, node, turned, turned_row):  # type: ignore[no-untyped-def]
    """Return the row of a number times a product: a quotient, if an exponent is negative.

    Entry `turned`, if any, has another row than its own: that of its negative.
    """
    start, stop = pool[node].first, pool[node].first + pool[node].count
    n_above = 0
    for k in range(start, stop):
        n_above += pool[k].value > 0.0
    above, below = -1, -1
    if coefficient != 1.0:
        inverse = 1.0 / coefficient
        if n_above and inverse == np.floor(inverse) and abs(inverse) > 1.0:
            below = _literal(pool, draft, inverse)
        else:
            above = _literal(pool, draft, coefficient)
    elif n_above == 0 and stop - start == 1 and pool[start].value < -2.0:
        # x**-2 is shorter than 1/x**2.
        base = turned_row if start == turned else pool[pool[start].child].row
        return _spell_power(pool, draft, base, pool[start].value)
    elif n_above == 0:
        above = _literal(pool, draft, 1.0)
    for k in range(start, stop):
        base = turned_row if k == turned else pool[pool[k].child].row
        factor = _spell_power(pool, draft, base, abs(pool[k].value))
        if pool[k].value > 0.0:
            above = factor if above < 0 else _row(pool, draft, PRODUCT, above, factor)
        else:
            below = factor if below < 0 else _row(pool, draft, PRODUCT, below, factor)
    return above if below < 0 else _row(pool, draft, DIVIDE, above, below)


@compiled
def spell(pool, coefficient, root, arity, split, draft, rows, literals):  # type: ignore[no-untyped-def]
    """Write a pool as the rows of a program; return their number, and that of the tree's nodes.

    With `split`, a row that depends on a parameter is written again, with parameters of its own,
    wherever it is used.

    Rows follow their arguments, in the order in which a walk from the result meets them, and
    parameters and literals are numbered in that order; so the table depends on the law alone.
    """
    draft[0].n_rows = draft[0].n_literals = 0
    count_uses(pool, root)
    for node in range(pool[0].n_nodes):
        if pool[node].uses == 0 or node == ONE:
            continue
        kind, start = pool[node].kind, pool[node].first
        if kind == VARIABLE or kind == PARAMETER:
            pool[node].row = _row(pool, draft, kind, start, 0)
        elif kind == SUM:
            pool[node].row = _spell_sum(pool, draft, 1.0, node)
        elif kind == PRODUCT:
            pool[node].row = _spell_product(pool, draft, 1.0, node, -1, -1)
        else:
            a = _spell(pool, draft, pool[start].value, pool[start].child)
            b = a
            if arity[kind] == 2:
                b = _spell(pool, draft, pool[start + 1].value, pool[start + 1].child)
            pool[node].row = _row(pool, draft, kind, a, b)
        if pool[0].trouble != FINE:
            return 0, 0
    last = _spell(pool, draft, coefficient, root)
    if pool[0].trouble != FINE:
        return 0, 0
    return _walk(pool, draft, last, arity, split, rows, literals)


@compiled
def _walk(pool, draft, last, arity, split, rows, literals):  # type: ignore[no-untyped-def]
    """Copy the rows that the last one needs to the table, and number what they refer to."""
    for row in range(draft[0].n_rows):
        draft[row].place = -1
    n_rows = n_literals = n_parameters = n_copies = 0
    draft[0].stack, draft[0].stage, depth, found = last, 0, 1, -1
    while depth > 0:
        top = depth - 1
        row = draft[top].stack
        code, a, b = draft[row].code, draft[row].a, draft[row].b
        if draft[top].stage == 0:
            if draft[row].place >= 0 and not (split and draft[row].varies):
                found, depth = draft[row].place, top
                continue
            if arity[code] > 0:
                draft[top].stage, draft[depth].stack, draft[depth].stage = 1, a, 0
                depth += 1
                continue
        elif draft[top].stage == 1:
            draft[top].left = found
            if arity[code] > 1:
                draft[top].stage, draft[depth].stack, draft[depth].stage = 2, b, 0
                depth += 1
                continue
        if n_rows == len(rows):
            pool[0].trouble = TOO_LARGE
            return 0, 0
        draft[row].size, draft[row].varies = 1, code == PARAMETER
        first, second = a, b
        if code == PARAMETER:
            n_copies += draft[row].place >= 0
            first, n_parameters = n_parameters, n_parameters + 1
        elif code == LITERAL:
            literals[n_literals] = draft[a].literal
            first, n_literals = n_literals, n_literals + 1
        elif code == POWER:
            draft[row].size, draft[row].varies = 2 + draft[a].size, draft[a].varies
            first = draft[top].left
        elif code != VARIABLE:
            draft[row].size = 1 + draft[a].size + (draft[b].size if arity[code] > 1 else 0)
            draft[row].varies = draft[a].varies or draft[b].varies
            first, second = draft[top].left, found
        draft[row].size = min(LARGEST_SIZE, draft[row].size)
        rows[n_rows, 0], rows[n_rows, 1], rows[n_rows, 2] = code, first, second
        draft[row].place, found, depth = n_rows, n_rows, top
        n_rows += 1
    draft[0].n_literals, draft[0].n_parameters = n_literals, n_parameters
    draft[0].n_copies = n_copies
    return n_rows, draft[last].size
