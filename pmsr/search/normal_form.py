"""The normal form of a graph, on integers: sums and products of any length, each part once.

A value is a number times a node. A node is the number one, a variable, a parameter, a sum of
values, a product of powers of nodes, or a function of values. Equal nodes are one node, terms and
factors are collected and have an order of their own, so that x*(y*x) and x**2*y are one thing.

Everything here is compiled, and works on arrays that the caller provides.
"""

import math
from typing import Any

import numpy as np
from numba.extending import register_jitable
from numpy.typing import NDArray

from pmsr.equation.algebra import LARGEST_EXPONENT
from pmsr.equation.operators import LITERAL, PARAMETER, POWER, VARIABLE, operator_code

SUM, MINUS, PRODUCT, DIVIDE, POW = (operator_code(name) for name in ("+", "-", "*", "/", "pow"))
SQRT, EXP, LOG, ABS = (operator_code(name) for name in ("sqrt", "exp", "log", "abs"))
SIN, COS, TAN, TANH = (operator_code(name) for name in ("sin", "cos", "tan", "tanh"))
LAST_BUILT_IN = max(ABS, TANH)

ONE = 0  # the node of the number one, in every pool
FINE, TOO_LARGE, NOT_FINITE = range(3)  # what `trouble` can be
ROUNDING = 8.0 * float(np.finfo(np.float64).eps)  # of a number that a few operations have made


# One record serves as a node, as an entry and, the first, as the state of the whole: compiled
# code is handed one array, for which Numba compiles ten times faster than for a tuple of many.
#
# A pool holds the nodes of one graph, arguments first. The entries of a node are the records from
# `first` on, `count` of them, each with a child and a number: the coefficient of a term or of a
# function's argument; of a factor, *twice* the exponent, so that sqrt(x) is the factor x with the
# number 1. A variable or parameter has its index as `first`. Behind the entries there is room for
# the sum and for the product in the making.
_FIELDS = {
    # of a node
    "kind": "i8",  # code of a leaf or an operator
    "first": "i8",
    "count": "i8",
    "mark": "u8",  # of the content: finds equal nodes
    "look": "u8",  # the same for all parameters: orders terms and factors
    "uses": "i8",  # entries that refer to it; 0 if the result does not need it
    "private": "i8",  # the parameter node that it amounts to, or -1
    "scale": "i8",  # by what it can be multiplied
    "sign": "f8",  # what it is multiplied with from now on
    "next_coefficient": "f8",  # what it is in the pool that comes next
    "next_node": "i8",
    "row": "i8",  # where it is spelled
    # of an entry
    "child": "i8",
    "value": "f8",
    "bits": "u8",  # of the value
    "next_value": "f8",  # from now on; 0 if it goes
    # of all
    "n_nodes": "i8",
    "n_entries": "i8",
    "most_nodes": "i8",
    "terms": "i8",  # where the sum in the making begins
    "factors": "i8",  # and the product
    "trouble": "i8",
}


def _record() -> np.dtype[np.void]:
    offsets, end = [], 0
    for name in _FIELDS:
        offsets.append(end - 8 if name == "bits" else end)
        end += 0 if name == "bits" else 8
    # Any: NumPy's annotations do not know that a layout may have a size of its own.
    layout: Any = {"names": list(_FIELDS), "formats": list(_FIELDS.values()), "offsets": offsets}
    layout["itemsize"] = end
    return np.dtype(layout, align=True)


POOL = _record()
Pool = NDArray[np.void]


# Any: what Numba compiles has no annotations; types are inferred from the arrays of the pool.
def compiled(function: Any) -> Any:
    """Compile for callers that are compiled too, once for all of them.

    Whatever constants they pass: an ordinary function of Numba's is compiled anew for each value of
    one. For the same reason all integers here have 64 bits.

    No two of these functions may call each other: what Numba compiles of a recursion cannot be
    kept on disk, and crashes when it is read back.
    """
    return register_jitable(
        error_model="numpy", nogil=True, no_cpython_wrapper=True, no_cfunc_wrapper=True
    )(function)


@compiled
def new_pool(n_rows):  # type: ignore[no-untyped-def]
    """Return a pool for graphs of so many rows; what needs more is `TOO_LARGE`."""
    n_nodes, n_entries = 4 * n_rows + 16, 24 * n_rows + 64
    pool = np.zeros(n_entries + 2 * n_nodes, POOL)
    pool[0].most_nodes = n_nodes
    pool[0].terms, pool[0].factors = n_entries, n_entries + n_nodes
    return pool


_START = np.uint64(0x9E3779B97F4A7C15)
_FACTOR = np.uint64(0xBF58476D1CE4E5B9)
_FACTOR_2 = np.uint64(0x94D049BB133111EB)
_FOUR, _29, _32, _CLASS_SHIFT = np.uint64(4), np.uint64(29), np.uint64(32), np.uint64(60)


@compiled
def mix(digest, word):  # type: ignore[no-untyped-def]
    """Stir 64 more bits into a digest."""
    digest = (digest ^ word) * _FACTOR
    digest = (digest ^ (digest >> _32)) * _FACTOR_2
    return (digest ^ (digest >> _29)) + _START


@compiled
def clear(pool):  # type: ignore[no-untyped-def]
    """Empty a pool, but for the number one."""
    pool[0].n_nodes, pool[0].n_entries, pool[0].trouble = 0, 0, FINE
    leaf(pool, LITERAL, 0)


@compiled
def _rank(kind):  # type: ignore[no-untyped-def]
    """Place of a kind in a sum or product: c0*x*sqrt(y), c0 + x + c1*y + 1."""
    if kind == PARAMETER:
        return 1
    if kind == VARIABLE:
        return 2
    if kind == PRODUCT:
        return 3
    if kind == SUM:
        return 5
    return 6 if kind == LITERAL else 4


@compiled
def leaf(pool, kind, index):  # type: ignore[no-untyped-def]
    """Return the node of a variable, a parameter or the number one."""
    n = pool[0].n_nodes
    for node in range(n):
        if pool[node].kind == kind and pool[node].first == index:
            return node
    if n == pool[0].most_nodes:
        pool[0].trouble = TOO_LARGE
        return ONE
    pool[n].kind, pool[n].first, pool[n].count = kind, index, 0
    seen = np.uint64(index) if kind == VARIABLE else np.uint64(0)
    pool[n].look = (np.uint64(_rank(kind)) << _CLASS_SHIFT) | seen
    pool[n].mark = np.uint64(0)  # no inner node's
    pool[0].n_nodes = n + 1
    return n


@compiled
def _intern(pool, kind, entries, n):  # type: ignore[no-untyped-def]
    """Return the node with these entries: the one that is there already, or a new one."""
    node, start = pool[0].n_nodes, pool[0].n_entries
    if node == pool[0].most_nodes or start + n > pool[0].terms:
        pool[0].trouble = TOO_LARGE
        return ONE
    mark = look = mix(_START, np.uint64(kind))
    for k in range(n):
        child = pool[entries + k].child
        pool[start + k].child, pool[start + k].value = child, pool[entries + k].value
        bits = pool[start + k].bits
        mark = mix(mix(mark, np.uint64(child)), bits)
        look = mix(mix(look, pool[child].look), bits)
    mark |= np.uint64(1)
    for other in range(node):
        if pool[other].mark == mark:
            return other
    pool[node].kind, pool[node].first, pool[node].count = kind, start, n
    pool[node].mark = mark
    pool[node].look = (np.uint64(_rank(kind)) << _CLASS_SHIFT) | (look >> _FOUR)
    pool[0].n_nodes, pool[0].n_entries = node + 1, start + n
    return node


@compiled
def _sort(pool, entries, n):  # type: ignore[no-untyped-def]
    for i in range(1, n):
        child, value = pool[entries + i].child, pool[entries + i].value
        look = pool[child].look
        k = entries + i
        while k > entries:
            other = pool[k - 1].child
            if pool[other].look < look or (pool[other].look == look and other < child):
                break
            pool[k].child, pool[k].value = other, pool[k - 1].value
            k -= 1
        pool[k].child, pool[k].value = child, value


@compiled
def _collect(pool, entries, n, child, value):  # type: ignore[no-untyped-def]
    """Add to the number of a child in a list, which it joins if it is not there."""
    for k in range(entries, entries + n):
        if pool[k].child == child:
            pool[k].value += value
            return n
    pool[entries + n].child, pool[entries + n].value = child, value
    return n + 1


@compiled
def _without_zeros(pool, entries, n):  # type: ignore[no-untyped-def]
    kept = 0
    for k in range(entries, entries + n):
        if pool[k].value != 0.0:
            pool[entries + kept].child, pool[entries + kept].value = pool[k].child, pool[k].value
            kept += 1
    return kept


@compiled
def add_term(pool, n, coefficient, node):  # type: ignore[no-untyped-def]
    """Add a value to the sum in the making, which has n terms; return how many it has now."""
    if coefficient == 0.0:
        return n
    if pool[node].kind != SUM:
        return _collect(pool, pool[0].terms, n, node, coefficient)
    for k in range(pool[node].first, pool[node].first + pool[node].count):
        value = coefficient * pool[k].value
        n = _collect(pool, pool[0].terms, n, pool[k].child, value)
    return n


@compiled
def finish_sum(pool, n):  # type: ignore[no-untyped-def]
    """Return the sum in the making, as a number and a node.

    The number is what all terms have in common: 4*y - 2*x is -2 times x - 2*y.
    """
    terms = pool[0].terms
    n = _without_zeros(pool, pool[0].terms, n)
    if n == 0:
        return 0.0, ONE
    for k in range(n):
        if not np.isfinite(pool[terms + k].value):
            pool[0].trouble = NOT_FINITE
            return 1.0, ONE
    if n == 1:
        return pool[terms].value, pool[terms].child
    _sort(pool, pool[0].terms, n)
    common = abs(pool[terms].value)
    for k in range(1, n):
        if common == 1.0:
            break
        common = _common_factor(common, abs(pool[terms + k].value))
    if pool[terms].value < 0.0:
        common = -common
    if common != 1.0:
        for k in range(n):
            pool[terms + k].value /= common
    return common, _intern(pool, SUM, pool[0].terms, n)


@compiled
def _common_factor(a, b):  # type: ignore[no-untyped-def]
    """Greatest common divisor of integers; of other numbers, themselves if equal."""
    if a == b:
        return a
    if a != np.floor(a) or b != np.floor(b) or a > 2.0**53 or b > 2.0**53:
        return 1.0
    while b != 0.0:
        a, b = b, a % b
    return a


@compiled
def add_factor(pool, n, node, power):  # type: ignore[no-untyped-def]
    """Add an integer power of a node to the product in the making, which has n factors."""
    if node == ONE:
        return n
    if pool[node].kind != PRODUCT:
        return _collect(pool, pool[0].factors, n, node, 2.0 * power)
    for k in range(pool[node].first, pool[node].first + pool[node].count):
        n = _collect(pool, pool[0].factors, n, pool[k].child, pool[k].value * power)
    return n


@compiled
def _add_exponential(pool, n, coefficient, node):  # type: ignore[no-untyped-def]
    """Add the factor exp(coefficient*node); return the number of factors, and a number."""
    if node == ONE:
        return n, np.exp(coefficient)
    if pool[node].kind == LOG and 2.0 * coefficient == np.floor(2.0 * coefficient):
        inner = pool[node].first
        if pool[inner].value == 1.0:
            if coefficient == np.floor(coefficient):
                return add_factor(pool, n, pool[inner].child, coefficient), 1.0
            child, twice = pool[inner].child, 2.0 * coefficient
            return _collect(pool, pool[0].factors, n, child, twice), 1.0
    function = _function_node(pool, EXP, coefficient, node)
    return _collect(pool, pool[0].factors, n, function, 2.0), 1.0


@compiled
def finish_product(pool, coefficient, n):  # type: ignore[no-untyped-def]
    """Return the product in the making times a number, as a number and a node."""
    factors = pool[0].factors
    settled = False
    while not settled:
        settled = True
        n_exp, is_exp_plain = 0, True
        for k in range(n):
            base, twice = pool[factors + k].child, pool[factors + k].value
            if twice == 0.0:
                continue
            if abs(twice) > 2 * LARGEST_EXPONENT:
                pool[0].trouble = TOO_LARGE
                return 1.0, ONE
            kind = pool[base].kind
            if kind == EXP:
                n_exp += 1
                is_exp_plain = is_exp_plain and twice == 2.0
            elif kind == PRODUCT and twice % 2.0 == 0.0:
                # sqrt(x*y)**2
                pool[factors + k].value = 0.0
                n = add_factor(pool, n, base, 0.5 * twice)
                settled = False
            elif kind == ABS and twice % 4.0 == 0.0:
                pool[factors + k].value = 0.0
                n = add_factor(pool, n, pool[pool[base].first].child, 0.5 * twice)
                settled = False
            elif kind == SQRT and twice % 4.0 == 0.0:
                # sqrt(-x)**2
                pool[factors + k].value = 0.0
                coefficient *= pool[pool[base].first].value ** (0.25 * twice)
                n = add_factor(pool, n, pool[pool[base].first].child, 0.25 * twice)
                settled = False
        if n_exp > 1 or not is_exp_plain:
            # exp(x)*exp(y), exp(x)**2
            n_terms = 0
            for k in range(n):
                base, half = pool[factors + k].child, 0.5 * pool[factors + k].value
                if half != 0.0 and pool[base].kind == EXP:
                    inner = pool[base].first
                    times = half * pool[inner].value
                    n_terms = add_term(pool, n_terms, times, pool[inner].child)
                    pool[factors + k].value = 0.0
            times, node = finish_sum(pool, n_terms)
            n = _without_zeros(pool, pool[0].factors, n)
            n, number = _add_exponential(pool, n, times, node)
            coefficient *= number
            settled = False
        if pool[0].trouble != FINE:
            return 1.0, ONE
    if coefficient == 0.0 or not np.isfinite(coefficient):
        pool[0].trouble = pool[0].trouble if coefficient == 0.0 else NOT_FINITE
        return 0.0, ONE
    n = _without_zeros(pool, pool[0].factors, n)
    if n == 0:
        return coefficient, ONE
    if n == 1 and pool[factors].value == 2.0:
        return coefficient, pool[factors].child
    _sort(pool, pool[0].factors, n)
    return coefficient, _intern(pool, PRODUCT, pool[0].factors, n)


@compiled
def _function_node(pool, code, coefficient, node):  # type: ignore[no-untyped-def]
    terms = pool[0].terms
    pool[terms].child, pool[terms].value = node, coefficient
    return _intern(pool, code, pool[0].terms, 1)


@compiled
def integer_power(pool, coefficient, node, power):  # type: ignore[no-untyped-def]
    """Return an integer power of a value."""
    if power == 0.0:
        return 1.0, ONE
    if abs(power) > LARGEST_EXPONENT:
        pool[0].trouble = TOO_LARGE
        return 1.0, ONE
    return finish_product(pool, coefficient**power, add_factor(pool, 0, node, power))


@compiled
def _is_never_negative(pool, node):  # type: ignore[no-untyped-def]
    """Tell whether a node is zero or more wherever it is defined, by its kind alone."""
    kind = pool[node].kind
    if kind != PRODUCT:
        return kind == EXP or kind == ABS or kind == SQRT
    for k in range(pool[node].first, pool[node].first + pool[node].count):
        kind = pool[pool[k].child].kind
        is_even = pool[k].value % 4.0 != 2.0
        if not (is_even or kind == EXP or kind == ABS or kind == SQRT):
            return False
    return True


@compiled
def _absolute(pool, node):  # type: ignore[no-untyped-def]
    if _is_never_negative(pool, node):
        return node
    return _function_node(pool, ABS, 1.0, node)


@compiled
def square_root(pool, coefficient, node):  # type: ignore[no-untyped-def]
    """Return the square root of a value: sqrt(4*x) is 2*sqrt(x), sqrt(x**2*y) abs(x)*sqrt(y)."""
    if node == ONE:
        return _number(pool, np.sqrt(coefficient))
    if coefficient < 0.0:
        return np.sqrt(-coefficient), _function_node(pool, SQRT, -1.0, node)
    root = np.sqrt(coefficient)
    kind = pool[node].kind
    if kind == EXP:
        inner = pool[node].first
        half = 0.5 * pool[inner].value
        n, number = _add_exponential(pool, 0, half, pool[inner].child)
        return finish_product(pool, root * number, n)
    if kind != PRODUCT:
        n = _collect(pool, pool[0].factors, 0, node, 1.0)
        return finish_product(pool, root, n)
    start, stop = pool[node].first, pool[node].first + pool[node].count
    n = 0
    for k in range(start, stop):
        if pool[k].value % 4.0 != 0.0:
            n = _collect(pool, pool[0].factors, n, pool[k].child, pool[k].value)
    _, rest = finish_product(pool, 1.0, n)
    n = 0
    if rest != ONE:
        inner = pool[rest].first
        if pool[rest].kind == PRODUCT and pool[rest].count == 1 and pool[inner].value % 2.0 == 0.0:
            twice = 0.5 * pool[inner].value
            n = _collect(pool, pool[0].factors, n, pool[inner].child, twice)
        else:
            n = _collect(pool, pool[0].factors, n, rest, 1.0)
    for k in range(start, stop):
        if pool[k].value % 4.0 == 0.0:
            positive, twice = _absolute(pool, pool[k].child), 0.5 * pool[k].value
            n = _collect(pool, pool[0].factors, n, positive, twice)
    return finish_product(pool, root, n)


@compiled
def _number(pool, value):  # type: ignore[no-untyped-def]
    if not np.isfinite(value):
        pool[0].trouble = NOT_FINITE
        return 1.0, ONE
    return value, ONE


@compiled
def function(pool, code, coefficient, node):  # type: ignore[no-untyped-def]
    """Return a function of a value, as a number and a node."""
    if coefficient == 0.0:
        node = ONE
    if code == SQRT:
        return square_root(pool, coefficient, node)
    if code > LAST_BUILT_IN:
        return 1.0, _function_node(pool, code, coefficient, node)
    if node == ONE:
        return _number(pool, _function_of_number(code, coefficient))
    inner = pool[node].first
    if code == EXP:
        n, number = _add_exponential(pool, 0, coefficient, node)
        return finish_product(pool, number, n)
    if code == ABS:
        return abs(coefficient), _absolute(pool, node)
    if code == LOG:
        if coefficient == 1.0 and pool[node].kind == EXP:
            return pool[inner].value, pool[inner].child
        if (
            coefficient == 1.0
            and pool[node].kind == PRODUCT
            and pool[node].count == 1
            and pool[inner].value % 4.0 != 0.0
        ):
            # log(x**3), log(sqrt(x)); log(x**2) is defined where log(x) is not
            return 0.5 * pool[inner].value, _function_node(pool, LOG, 1.0, pool[inner].child)
        return 1.0, _function_node(pool, LOG, coefficient, node)
    sign = -1.0 if coefficient < 0.0 and code != COS else 1.0
    return sign, _function_node(pool, code, abs(coefficient), node)


@compiled
def _function_of_number(code, value):  # type: ignore[no-untyped-def]
    if code == EXP:
        return np.exp(value)
    if code == LOG:
        return np.log(value)
    if code == SIN:
        return np.sin(value)
    if code == COS:
        return np.cos(value)
    if code == TAN:
        return np.tan(value)
    if code == TANH:
        return np.tanh(value)
    return abs(value)


@compiled
def operation(pool, code, k_a, a, k_b, b):  # type: ignore[no-untyped-def]
    """Return an operator of two values, as a number and a node."""
    if code == SUM or code == MINUS:
        n = add_term(pool, 0, k_a, a)
        n = add_term(pool, n, k_b if code == SUM else -k_b, b)
        return finish_sum(pool, n)
    if code == PRODUCT:
        n = add_factor(pool, add_factor(pool, 0, a, 1.0), b, 1.0)
        return finish_product(pool, k_a * k_b, n)
    if code == DIVIDE:
        n = add_factor(pool, add_factor(pool, 0, a, 1.0), b, -1.0)
        # 0/x is 0, but 0/0 and x/0 are nothing.
        return finish_product(pool, k_a / k_b, n) if k_b != 0.0 else _number(pool, math.inf)
    if code == POW:
        return _power(pool, k_a, a, k_b, b)
    return _binary_node(pool, code, k_a, a, k_b, b)


@compiled
def _binary_node(pool, code, k_a, a, k_b, b):  # type: ignore[no-untyped-def]
    terms = pool[0].terms
    pool[terms].child, pool[terms].value = (ONE if k_a == 0.0 else a), k_a
    pool[terms + 1].child, pool[terms + 1].value = (ONE if k_b == 0.0 else b), k_b
    return 1.0, _intern(pool, code, pool[0].terms, 2)


@compiled
def _power(pool, k_a, a, k_b, b):  # type: ignore[no-untyped-def]
    if k_b == 0.0:
        return 1.0, ONE
    if b == ONE:
        if k_b == np.floor(k_b):
            return integer_power(pool, k_a, a, k_b)
        if a == ONE:
            return _number(pool, k_a**k_b)
        if 2.0 * k_b == np.floor(2.0 * k_b):
            k_a, a = square_root(pool, k_a, a)
            return integer_power(pool, k_a, a, 2.0 * k_b)
        if k_a > 0.0:
            _, node = _binary_node(pool, POW, 1.0, a, k_b, b)
            return _number(pool, k_a**k_b)[0], node
    if a == ONE and k_a == 1.0:
        return 1.0, ONE
    return _binary_node(pool, POW, k_a, a, k_b, b)


@compiled
def _without_rounding(value):  # type: ignore[no-untyped-def]
    """Return the whole number, or one over it, that a number is but for rounding.

    sqrt(2)*sqrt(2) is 2, and shown as 2; a few operations lose as many of the last digits.
    """
    if value == 0.0 or not np.isfinite(value):
        return value
    whole = np.round(value)
    if abs(value - whole) <= ROUNDING * abs(value):
        return whole
    below = np.round(1.0 / value)
    if below != 0.0 and abs(1.0 / value - below) <= ROUNDING * abs(1.0 / value):
        return 1.0 / below
    return value


@compiled
def read_rows(pool, rows, n_rows, literals, arity, split, needed, coefficient, node):  # type: ignore[no-untyped-def]
    """Fill a pool with a graph; return its result, as a number and a node.

    `needed`, `coefficient` and `node` are room for a number a row. Every parameter row is a
    parameter of its own, and with `split` so is every use of one.
    """
    clear(pool)
    needed[:n_rows] = False
    needed[n_rows - 1] = True
    for row in range(n_rows - 1, -1, -1):
        if needed[row] and rows[row, 0] >= POWER:
            needed[rows[row, 1]] = True
            if arity[rows[row, 0]] == 2:
                needed[rows[row, 2]] = True
    n_parameters = n_rows  # beyond the rows: the uses of parameters that are split
    for row in range(n_rows):
        if not needed[row]:
            continue
        code, a, b = np.int64(rows[row, 0]), np.int64(rows[row, 1]), np.int64(rows[row, 2])
        if code == LITERAL:
            coefficient[row], node[row] = _number(pool, literals[a])
        elif code < LITERAL:
            coefficient[row] = 1.0
            node[row] = leaf(pool, code, a if code == VARIABLE else row)
        else:
            left, right = node[a], node[b] if arity[code] == 2 else ONE
            if split and rows[a, 0] == PARAMETER:
                left = leaf(pool, PARAMETER, n_parameters)
                n_parameters += 1
            if split and arity[code] == 2 and rows[b, 0] == PARAMETER:
                right = leaf(pool, PARAMETER, n_parameters)
                n_parameters += 1
            if code == POWER:
                value = integer_power(pool, coefficient[a], left, np.float64(b))
            elif arity[code] == 1:
                value = function(pool, code, coefficient[a], left)
            else:
                value = operation(pool, code, coefficient[a], left, coefficient[b], right)
            coefficient[row], node[row] = _without_rounding(value[0]), value[1]
        if pool[0].trouble != FINE:
            break
    return coefficient[n_rows - 1], node[n_rows - 1]
