"""Parameters that others make idle, found on the normal form of a graph.

What remains takes all the values that the graph took: c0*(c1*x) is c0*x, (c0 + x) + c1 is c0 + x,
exp(c0)*x is c0*x. A parameter absorbs only if nothing else refers to it, and a part of the graph
only if one other part refers to it. The same law may keep several spellings, because only
neighbours are compared: it is the fitted curve that tells them apart.
"""

from pmsr.equation.operators import PARAMETER
from pmsr.search.normal_form import (
    ABS,
    EXP,
    FINE,
    ONE,
    PRODUCT,
    SQRT,
    SUM,
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


@compiled
def count_uses(pool, root):  # type: ignore[no-untyped-def]
    """Count the entries that refer to each node that the result needs."""
    for node in range(pool[0].n_nodes):
        pool[node].uses = 0
    pool[root].uses = 1
    for node in range(pool[0].n_nodes - 1, -1, -1):
        if pool[node].uses > 0 and pool[node].count > 0:
            for k in range(pool[node].first, pool[node].first + pool[node].count):
                pool[pool[k].child].uses += 1


@compiled
def find_idle(pool, coefficient, root):  # type: ignore[no-untyped-def]
    """Mark what goes; return the coefficient of the result, and whether anything goes."""
    count_uses(pool, root)
    for k in range(pool[0].n_entries):
        pool[k].next_value = pool[k].value
    changed = False
    for node in range(pool[0].n_nodes):
        pool[node].private, pool[node].scale, pool[node].sign = -1, NOTHING, 1.0
        if pool[node].uses == 0:
            continue
        kind = pool[node].kind
        if kind == PARAMETER:
            pool[node].private, pool[node].scale = node, ANYTHING
        elif kind == SUM:
            changed |= _look_at_sum(pool, node)
        elif kind == PRODUCT:
            changed |= _look_at_product(pool, node)
        elif pool[node].count > 0:
            changed |= _look_at_function(pool, node)
    scaled = _scaled(coefficient, pool[root].scale)
    return scaled, changed or scaled != coefficient


@compiled
def _scaled(coefficient, scale):  # type: ignore[no-untyped-def]
    if scale == NOTHING or coefficient == 0.0:
        return coefficient
    return 1.0 if scale == ANYTHING or coefficient > 0.0 else -1.0


@compiled
def _is_lone(pool, node):  # type: ignore[no-untyped-def]
    """Tell whether a node amounts to a parameter that only the node above refers to."""
    return pool[node].private >= 0 and pool[node].uses == 1


@compiled
def _scale_of(pool, node):  # type: ignore[no-untyped-def]
    return pool[node].scale if pool[node].uses == 1 else NOTHING


@compiled
def _rescale_entry(pool, k):  # type: ignore[no-untyped-def]
    scaled = _scaled(pool[k].next_value, _scale_of(pool, pool[k].child))
    changed = scaled != pool[k].next_value
    pool[k].next_value = scaled
    return changed


@compiled
def _look_at_sum(pool, node):  # type: ignore[no-untyped-def]
    start, stop = pool[node].first, pool[node].first + pool[node].count
    changed, absorber, n_varying = False, -1, 0
    for k in range(start, stop):
        if _is_lone(pool, pool[k].child):
            absorber = k if absorber < 0 else absorber
        elif pool[k].child != ONE:
            n_varying += 1
    for k in range(start, stop):
        changed |= _rescale_entry(pool, k)
    if absorber >= 0:
        changed |= _drop_constants(pool, node, absorber)
        if n_varying == 0:
            pool[node].private = pool[pool[absorber].child].private
            pool[node].scale = ANYTHING
            return True
        for k in range(start, stop):
            changed |= _drop_shift(pool, pool[k].child)
    for k in range(start, stop):
        if pool[k].next_value != 0.0:
            changed |= _drop_alike(pool, start, stop, k)
    scale, fixed, is_free = ANYTHING, 0.0, False
    for k in range(start, stop):
        if pool[k].next_value != 0.0:
            below = _scale_of(pool, pool[k].child)
            scale = min(scale, below)
            is_free |= below == ANYTHING
            if below != ANYTHING and fixed == 0.0:
                fixed = pool[k].next_value
    pool[node].scale = scale
    if is_free and fixed < 0.0:
        # c0 - x is -1 times c0 + x, as x - c0 is c0 + x.
        pool[node].sign = -1.0
        for k in range(start, stop):
            if _scale_of(pool, pool[k].child) != ANYTHING:
                pool[k].next_value = -pool[k].next_value
        return True
    return changed


@compiled
def forget_idle(pool):  # type: ignore[no-untyped-def]
    """Take it that no parameter absorbs anything."""
    for node in range(pool[0].n_nodes):
        pool[node].scale = NOTHING


@compiled
def is_free(pool, node):  # type: ignore[no-untyped-def]
    """Tell whether a node, if only its own parameters change, takes any factor."""
    return pool[node].uses == 1 and pool[node].scale == ANYTHING


@compiled
def _drop_constants(pool, total, absorber):  # type: ignore[no-untyped-def]
    """Drop from a sum its numbers and lone parameters, but for one entry."""
    changed = False
    for k in range(pool[total].first, pool[total].first + pool[total].count):
        is_constant = pool[k].child == ONE or _is_lone(pool, pool[k].child)
        if is_constant and k != absorber and pool[k].next_value != 0.0:
            pool[k].next_value = 0.0
            changed = True
    return changed


@compiled
def _drop_shift(pool, product):  # type: ignore[no-untyped-def]
    """Drop c2 from c1*(c2 + x), a term next to c0."""
    if pool[product].kind != PRODUCT or pool[product].uses != 1:
        return False
    inner = -1
    for k in range(pool[product].first, pool[product].first + pool[product].count):
        child = pool[k].child
        if _is_lone(pool, child):
            continue
        is_plain = pool[child].kind == SUM and pool[k].value == 2.0 and pool[child].uses == 1
        if inner >= 0 or not is_plain:
            return False
        inner = child
    return inner >= 0 and _drop_constants(pool, inner, -1)


@compiled
def _free_coefficient(pool, node):  # type: ignore[no-untyped-def]
    """Return the entry that is a lone parameter and factor of a node that is used once, or -1."""
    if pool[node].kind == PRODUCT and pool[node].uses == 1:
        for k in range(pool[node].first, pool[node].first + pool[node].count):
            if _is_lone(pool, pool[k].child) and pool[k].next_value != 0.0:
                return k
    return -1


@compiled
def _drop_alike(pool, start, stop, k):  # type: ignore[no-untyped-def]
    """Drop the terms that differ from c0*f, entry k of a sum, in their coefficients only."""
    term = pool[k].child
    own = _free_coefficient(pool, term)
    if own < 0:
        return False
    changed = False
    for j in range(start, stop):
        other = pool[j].child
        if j == k or pool[j].next_value == 0.0:
            continue
        theirs = _free_coefficient(pool, other)
        if _differ_in_entries(pool, term, own, other, theirs):
            continue
        pool[j].next_value = 0.0
        changed = True
    return changed


@compiled
def _differ_in_entries(pool, one, own, other, theirs):  # type: ignore[no-untyped-def]
    """Compare two products, without the entries `own` and, unless negative, `theirs`."""
    k, stop = pool[one].first, pool[one].first + pool[one].count
    if pool[other].kind != PRODUCT:
        if pool[one].count != 2:
            return True
        k = k if k != own else k + 1
        return not (pool[k].child == other and pool[k].value == 2.0)
    j, end = pool[other].first, pool[other].first + pool[other].count
    while True:
        k = k + 1 if k == own else k
        j = j + 1 if j == theirs else j
        if k >= stop or j >= end:
            return k < stop or j < end
        if pool[k].child != pool[j].child or pool[k].value != pool[j].value:
            return True
        k, j = k + 1, j + 1


@compiled
def _look_at_product(pool, node):  # type: ignore[no-untyped-def]
    start, stop = pool[node].first, pool[node].first + pool[node].count
    changed, absorber, is_absorbed, n_varying, scale = False, -1, False, 0, NOTHING
    for k in range(start, stop):
        child = pool[k].child
        if _is_lone(pool, child):
            absorber = k if absorber < 0 else absorber
            continue
        n_varying += 1
        below = _scale_of(pool, child)
        # A sum such as c1 + c2*x takes any factor, and so does its reciprocal.
        if pool[k].value % 4.0 == 2.0 and below == ANYTHING:
            is_absorbed = True
        if below != NOTHING:
            scale = POSITIVE
    for k in range(start, stop):
        if not _is_lone(pool, pool[k].child):
            continue
        value = 2.0 if k == absorber and not is_absorbed else 0.0
        changed |= pool[k].next_value != value
        pool[k].next_value = value
    if n_varying == 0:
        pool[node].private = pool[pool[absorber].child].private
        pool[node].scale = ANYTHING
        return True
    if absorber >= 0 or is_absorbed:
        scale = ANYTHING
        for k in range(start, stop):
            changed |= _drop_from_exponential(pool, pool[k].child)
    pool[node].scale = scale
    return changed


@compiled
def _drop_from_exponential(pool, node):  # type: ignore[no-untyped-def]
    """Drop c1 from exp(c1 + x), a factor next to c0."""
    if pool[node].kind != EXP or pool[node].uses != 1:
        return False
    argument = pool[pool[node].first].child
    if pool[argument].kind != SUM or pool[argument].uses != 1:
        return False
    return _drop_constants(pool, argument, -1)


@compiled
def _look_at_function(pool, node):  # type: ignore[no-untyped-def]
    start, stop = pool[node].first, pool[node].first + pool[node].count
    changed, absorber, n_varying = False, -1, 0
    for k in range(start, stop):
        child = pool[k].child
        changed |= _rescale_entry(pool, k)
        if _is_lone(pool, child):
            absorber = k if absorber < 0 else absorber
        elif child != ONE:
            n_varying += 1
    if absorber >= 0 and n_varying == 0:
        pool[node].private = pool[pool[absorber].child].private
        pool[node].scale = ANYTHING
        return True
    argument = pool[start].child
    if pool[node].kind == ABS or pool[node].kind == SQRT:
        pool[node].scale = min(POSITIVE, _scale_of(pool, argument))
    elif pool[node].kind == EXP and pool[argument].kind == SUM and pool[argument].uses == 1:
        for k in range(pool[argument].first, pool[argument].first + pool[argument].count):
            if _is_lone(pool, pool[k].child) and pool[k].next_value != 0.0:
                pool[node].scale = POSITIVE
    return changed


@compiled
def rebuild(pool, root, arity, fresh):  # type: ignore[no-untyped-def]
    """Fill another pool with what stays; return the result as a number and a node."""
    clear(fresh)
    for node in range(pool[0].n_nodes):
        if pool[node].uses == 0:
            continue
        if pool[node].private >= 0:
            index = pool[pool[node].private].first
            pool[node].next_coefficient, pool[node].next_node = 1.0, leaf(fresh, PARAMETER, index)
        elif node == ONE or pool[node].count == 0:
            pool[node].next_coefficient = 1.0
            pool[node].next_node = leaf(fresh, pool[node].kind, pool[node].first)
        else:
            times, other = _rebuild_node(pool, node, arity, fresh)
            pool[node].next_coefficient, pool[node].next_node = pool[node].sign * times, other
        if fresh[0].trouble != FINE:
            break
    return pool[root].next_coefficient, pool[root].next_node


@compiled
def _rebuild_node(pool, node, arity, fresh):  # type: ignore[no-untyped-def]
    kind, start = pool[node].kind, pool[node].first
    stop = start + pool[node].count
    n, number = 0, 1.0
    if kind == SUM:
        for k in range(start, stop):
            child = pool[k].child
            value = pool[k].next_value * pool[child].next_coefficient
            n = add_term(fresh, n, value, pool[child].next_node)
        return finish_sum(fresh, n)
    if kind == PRODUCT:
        # Roots first: each is made as a product of its own.
        root = ONE
        for k in range(start, stop):
            child, value = pool[k].child, pool[k].next_value
            if value % 2.0 != 0.0:
                times, base = square_root(
                    fresh, pool[child].next_coefficient, pool[child].next_node
                )
                times, base = integer_power(fresh, times, base, value)
                number, root = operation(fresh, PRODUCT, number, root, times, base)
        n = add_factor(fresh, n, root, 1.0)
        for k in range(start, stop):
            child, value = pool[k].child, pool[k].next_value
            if value % 2.0 == 0.0:
                number *= pool[child].next_coefficient ** (0.5 * value)
                n = add_factor(fresh, n, pool[child].next_node, 0.5 * value)
        return finish_product(fresh, number, n)
    child = pool[start].child
    times = pool[start].next_value * pool[child].next_coefficient
    if arity[kind] == 1:
        return function(fresh, kind, times, pool[child].next_node)
    other = pool[start + 1].child
    also = pool[start + 1].next_value * pool[other].next_coefficient
    return operation(fresh, kind, times, pool[child].next_node, also, pool[other].next_node)
