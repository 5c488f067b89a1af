"""Parameters that others make idle, found on the normal form of a graph.

What remains takes all the values that the graph took: c0*(c1*x) is c0*x, (c0 + x) + c1 is c0 + x,
exp(c0)*x is c0*x. A parameter absorbs only if nothing else refers to it, and a part of the graph
only if one other part refers to it. The same law may keep several spellings, because only
neighbours are compared: it is the fitted curve that tells them apart.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pmsr.equation.operators import PARAMETER
from pmsr.search.normal_form import (
    ABS,
    ENTRIES,
    EXP,
    FINE,
    NODES,
    ONE,
    PRODUCT,
    SQRT,
    SUM,
    TROUBLE,
    Pool,
    add_factor,
    add_term,
    clear,
    compiled,
    finish_product,
    finish_sum,
    function,
    integer_power,
    leaf,
    operation,
    square_root,
)

# By what a node can be multiplied if only its own parameters change.
NOTHING, POSITIVE, ANYTHING = range(3)


class Census(NamedTuple):
    """Facts about the nodes of a pool, and what is to become of their entries."""

    uses: NDArray[np.int32]  # entries that refer to a node; 0 if the result does not need it
    private: NDArray[np.int32]  # the parameter node that a node amounts to, or -1
    scale: NDArray[np.int8]
    value: NDArray[np.float64]  # the number of an entry from now on; 0 if it goes
    coefficient: NDArray[np.float64]  # what a node is in the next pool
    node: NDArray[np.int32]


def new_census(pool: Pool) -> Census:
    """Return room for the facts about a pool."""
    n_nodes, n_entries = len(pool.kind), len(pool.child)
    return Census(
        np.empty(n_nodes, np.int32),
        np.empty(n_nodes, np.int32),
        np.empty(n_nodes, np.int8),
        np.empty(n_entries),
        np.empty(n_nodes),
        np.empty(n_nodes, np.int32),
    )


@compiled
def count_uses(pool, root, census):  # type: ignore[no-untyped-def]
    """Fill `census.uses`; what the result does not need has none."""
    uses = census.uses
    uses[: pool.state[NODES]] = 0
    uses[root] = 1
    for node in range(pool.state[NODES] - 1, -1, -1):
        if uses[node] > 0 and pool.count[node] > 0:
            for k in range(pool.first[node], pool.first[node] + pool.count[node]):
                uses[pool.child[k]] += 1


@compiled
def find_idle(pool, coefficient, root, census):  # type: ignore[no-untyped-def]
    """Fill the census; return the coefficient of the result, and whether anything is idle."""
    count_uses(pool, root, census)
    n_entries = pool.state[ENTRIES]
    census.value[:n_entries] = pool.value[:n_entries]
    changed = False
    for node in range(pool.state[NODES]):
        census.private[node], census.scale[node] = -1, NOTHING
        if census.uses[node] == 0:
            continue
        kind = pool.kind[node]
        if kind == PARAMETER:
            census.private[node], census.scale[node] = node, ANYTHING
        elif kind == SUM:
            changed |= _look_at_sum(pool, node, census)
        elif kind == PRODUCT:
            changed |= _look_at_product(pool, node, census)
        elif pool.count[node] > 0:
            changed |= _look_at_function(pool, node, census)
    scaled = _scaled(coefficient, census.scale[root])
    return scaled, changed or scaled != coefficient


@compiled
def _scaled(coefficient, scale):  # type: ignore[no-untyped-def]
    if scale == NOTHING or coefficient == 0.0:
        return coefficient
    return 1.0 if scale == ANYTHING or coefficient > 0.0 else -1.0


@compiled
def _is_lone(census, node):  # type: ignore[no-untyped-def]
    """Tell whether a node amounts to a parameter that only the node above refers to."""
    return census.private[node] >= 0 and census.uses[node] == 1


@compiled
def _scale_of(census, node):  # type: ignore[no-untyped-def]
    return census.scale[node] if census.uses[node] == 1 else NOTHING


@compiled
def _rescale_entry(pool, census, k):  # type: ignore[no-untyped-def]
    scaled = _scaled(census.value[k], _scale_of(census, pool.child[k]))
    changed = scaled != census.value[k]
    census.value[k] = scaled
    return changed


@compiled
def _look_at_sum(pool, node, census):  # type: ignore[no-untyped-def]
    start, stop = pool.first[node], pool.first[node] + pool.count[node]
    changed, absorber, n_varying = False, -1, 0
    for k in range(start, stop):
        if _is_lone(census, pool.child[k]):
            absorber = k if absorber < 0 else absorber
        elif pool.child[k] != ONE:
            n_varying += 1
    for k in range(start, stop):
        changed |= _rescale_entry(pool, census, k)
    if absorber >= 0:
        changed |= _drop_constants(pool, node, census, absorber)
        if n_varying == 0:
            census.private[node] = census.private[pool.child[absorber]]
            census.scale[node] = ANYTHING
            return True
        for k in range(start, stop):
            changed |= _drop_shift(pool, pool.child[k], census)
    for k in range(start, stop):
        if census.value[k] != 0.0:
            changed |= _drop_alike(pool, start, stop, k, census)
    scale = ANYTHING
    for k in range(start, stop):
        if census.value[k] != 0.0:
            scale = min(scale, _scale_of(census, pool.child[k]))
    census.scale[node] = scale
    return changed


@compiled
def _drop_constants(pool, total, census, absorber):  # type: ignore[no-untyped-def]
    """Drop from a sum its numbers and lone parameters, but for one entry."""
    changed = False
    for k in range(pool.first[total], pool.first[total] + pool.count[total]):
        is_constant = pool.child[k] == ONE or _is_lone(census, pool.child[k])
        if is_constant and k != absorber and census.value[k] != 0.0:
            census.value[k] = 0.0
            changed = True
    return changed


@compiled
def _drop_shift(pool, product, census):  # type: ignore[no-untyped-def]
    """Drop c2 from c1*(c2 + x), a term next to c0."""
    if pool.kind[product] != PRODUCT or census.uses[product] != 1:
        return False
    inner = -1
    for k in range(pool.first[product], pool.first[product] + pool.count[product]):
        child = pool.child[k]
        if _is_lone(census, child):
            continue
        is_plain = pool.kind[child] == SUM and pool.value[k] == 2.0 and census.uses[child] == 1
        if inner >= 0 or not is_plain:
            return False
        inner = child
    return inner >= 0 and _drop_constants(pool, inner, census, -1)


@compiled
def _free_coefficient(pool, node, census):  # type: ignore[no-untyped-def]
    """Return the entry that is a lone parameter and factor of a node that is used once, or -1."""
    if pool.kind[node] == PRODUCT and census.uses[node] == 1:
        for k in range(pool.first[node], pool.first[node] + pool.count[node]):
            if _is_lone(census, pool.child[k]) and census.value[k] != 0.0:
                return k
    return -1


@compiled
def _drop_alike(pool, start, stop, k, census):  # type: ignore[no-untyped-def]
    """Drop the terms that differ from c0*f, entry k of a sum, in their coefficients only."""
    term = pool.child[k]
    own = _free_coefficient(pool, term, census)
    if own < 0:
        return False
    changed = False
    for j in range(start, stop):
        other = pool.child[j]
        if j == k or census.value[j] == 0.0:
            continue
        theirs = _free_coefficient(pool, other, census)
        if _differ_in_entries(pool, term, own, other, theirs):
            continue
        census.value[j] = 0.0
        changed = True
    return changed


@compiled
def _differ_in_entries(pool, one, own, other, theirs):  # type: ignore[no-untyped-def]
    """Compare two products, without the entries `own` and, unless negative, `theirs`."""
    k, stop = pool.first[one], pool.first[one] + pool.count[one]
    if pool.kind[other] != PRODUCT:
        if pool.count[one] != 2:
            return True
        k = k if k != own else k + 1
        return not (pool.child[k] == other and pool.value[k] == 2.0)
    j, end = pool.first[other], pool.first[other] + pool.count[other]
    while True:
        k = k + 1 if k == own else k
        j = j + 1 if j == theirs else j
        if k >= stop or j >= end:
            return k < stop or j < end
        if pool.child[k] != pool.child[j] or pool.value[k] != pool.value[j]:
            return True
        k, j = k + 1, j + 1


@compiled
def _look_at_product(pool, node, census):  # type: ignore[no-untyped-def]
    start, stop = pool.first[node], pool.first[node] + pool.count[node]
    changed, absorber, is_absorbed, n_varying, scale = False, -1, False, 0, NOTHING
    for k in range(start, stop):
        child = pool.child[k]
        if _is_lone(census, child):
            absorber = k if absorber < 0 else absorber
            continue
        n_varying += 1
        below = _scale_of(census, child)
        # A sum such as c1 + c2*x takes any factor, and so does its reciprocal.
        if pool.value[k] % 4.0 == 2.0 and below == ANYTHING:
            is_absorbed = True
        if below != NOTHING:
            scale = POSITIVE
    for k in range(start, stop):
        if not _is_lone(census, pool.child[k]):
            continue
        value = 2.0 if k == absorber and not is_absorbed else 0.0
        changed |= census.value[k] != value
        census.value[k] = value
    if n_varying == 0:
        census.private[node] = census.private[pool.child[absorber]]
        census.scale[node] = ANYTHING
        return True
    if absorber >= 0 or is_absorbed:
        scale = ANYTHING
        for k in range(start, stop):
            changed |= _drop_from_exponential(pool, pool.child[k], census)
    census.scale[node] = scale
    return changed


@compiled
def _drop_from_exponential(pool, node, census):  # type: ignore[no-untyped-def]
    """Drop c1 from exp(c1 + x), a factor next to c0."""
    if pool.kind[node] != EXP or census.uses[node] != 1:
        return False
    argument = pool.child[pool.first[node]]
    if pool.kind[argument] != SUM or census.uses[argument] != 1:
        return False
    return _drop_constants(pool, argument, census, -1)


@compiled
def _look_at_function(pool, node, census):  # type: ignore[no-untyped-def]
    start, stop = pool.first[node], pool.first[node] + pool.count[node]
    changed, absorber, n_varying = False, -1, 0
    for k in range(start, stop):
        child = pool.child[k]
        changed |= _rescale_entry(pool, census, k)
        if _is_lone(census, child):
            absorber = k if absorber < 0 else absorber
        elif child != ONE:
            n_varying += 1
    if absorber >= 0 and n_varying == 0:
        census.private[node] = census.private[pool.child[absorber]]
        census.scale[node] = ANYTHING
        return True
    argument = pool.child[start]
    if pool.kind[node] == ABS or pool.kind[node] == SQRT:
        census.scale[node] = min(POSITIVE, _scale_of(census, argument))
    elif pool.kind[node] == EXP and pool.kind[argument] == SUM and census.uses[argument] == 1:
        for k in range(pool.first[argument], pool.first[argument] + pool.count[argument]):
            if _is_lone(census, pool.child[k]) and census.value[k] != 0.0:
                census.scale[node] = POSITIVE
    return changed


@compiled
def rebuild(pool, root, census, arity, fresh):  # type: ignore[no-untyped-def]
    """Fill another pool with what the census leaves; return the result as a number and a node."""
    clear(fresh)
    for node in range(pool.state[NODES]):
        if census.uses[node] == 0:
            continue
        if census.private[node] >= 0:
            index = pool.first[census.private[node]]
            census.coefficient[node], census.node[node] = 1.0, leaf(fresh, PARAMETER, index)
        elif node == ONE or pool.count[node] == 0:
            census.coefficient[node] = 1.0
            census.node[node] = leaf(fresh, pool.kind[node], pool.first[node])
        else:
            value = _rebuild_node(pool, node, census, arity, fresh)
            census.coefficient[node], census.node[node] = value
        if fresh.state[TROUBLE] != FINE:
            break
    return census.coefficient[root], census.node[root]


@compiled
def _rebuild_node(pool, node, census, arity, fresh):  # type: ignore[no-untyped-def]
    kind, start = pool.kind[node], pool.first[node]
    stop = start + pool.count[node]
    n, number = 0, 1.0
    if kind == SUM:
        for k in range(start, stop):
            child = pool.child[k]
            value = census.value[k] * census.coefficient[child]
            n = add_term(fresh, n, value, census.node[child])
        return finish_sum(fresh, n)
    if kind == PRODUCT:
        # Roots first: each is made as a product of its own.
        root = ONE
        for k in range(start, stop):
            child, value = pool.child[k], census.value[k]
            if value % 2.0 != 0.0:
                times, base = square_root(fresh, census.coefficient[child], census.node[child])
                times, base = integer_power(fresh, times, base, value)
                number, root = operation(fresh, PRODUCT, number, root, times, base)
        n = add_factor(fresh, n, root, 1.0)
        for k in range(start, stop):
            child, value = pool.child[k], census.value[k]
            if value % 2.0 == 0.0:
                number *= census.coefficient[child] ** (0.5 * value)
                n = add_factor(fresh, n, census.node[child], 0.5 * value)
        return finish_product(fresh, number, n)
    child = pool.child[start]
    times = census.value[start] * census.coefficient[child]
    if arity[kind] == 1:
        return function(fresh, kind, times, census.node[child])
    other = pool.child[start + 1]
    also = census.value[start + 1] * census.coefficient[other]
    return operation(fresh, kind, times, census.node[child], also, census.node[other])
