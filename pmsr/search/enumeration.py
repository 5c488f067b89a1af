"""All laws of up to so many nodes, level by level, as folded programs, each once.

A level holds the laws whose tree, in its folded spelling, has so many nodes; an integer power
counts as one operator and one integer. It is made from the levels below: every function of a law
that is a node smaller, every integer power of one that is two nodes smaller, every operator
between two laws that are together a node smaller. What folds to something seen before is left out.

Leaves are the variables, a parameter (in no two places the same one) and the numbers 1 and 2;
with a minus sign too if there is subtraction, and with their reciprocals if there is division.
Exponents are at most 4, negative too if there is division. Other numbers that folding makes, such
as those of x + x + x and of x**3*x**4, are left out.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numba import njit
from numpy.typing import NDArray

from pmsr.equation.operators import (
    FIRST_OPERATOR,
    LITERAL,
    OPERATORS,
    PARAMETER,
    POWER,
    VARIABLE,
    operator_code,
)
from pmsr.search.folding import ACCEPTED, Folded, Rules, fold
from pmsr.search.restrictions import KEPT, Restrictions

_COMMUTATIVE = (operator_code("+"), operator_code("*"))
_CHUNK = 1 << 15  # graphs that are folded together
_PROBE = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True, eq=False)
class Level:
    """The laws of one size.

    Parameters
    ----------
    size
        Nodes of the tree of each.
    laws
        Their folded programs, in an order that depends on the operators and variables only.
    n_folded
        How many graphs were folded to find them.
    """

    size: int
    laws: Folded
    n_folded: int


def enumerate_laws(
    operators: Sequence[str],
    n_variables: int,
    *,
    parameters: bool = True,
    numbers: Sequence[float] = (1.0, 2.0),
    largest_power: int = 4,
    max_laws: int = 100_000,
    max_size: int = 30,
    rules: Rules | None = None,
) -> Iterator[Level]:
    """Yield complete levels, smallest first, while all laws together are at most `max_laws`.

    Parameters
    ----------
    operators
        Names of the operators that laws may use.
    n_variables
        Number of columns of X.
    parameters
        Whether laws may have parameters.
    numbers
        The positive numbers that laws may contain.
    largest_power
        The largest exponent of an integer power.
    max_laws
        Ends the enumeration before the level that would exceed it; never the clock.
    max_size
        The last level, at most.
    rules
        What is refused; by default, only what the operators do not allow.

    Examples
    --------
    >>> levels = list(enumerate_laws(["+", "*"], 1, max_laws=40))
    >>> [(level.size, len(level.laws)) for level in levels]
    [(1, 4), (3, 8)]
    """
    rules = rules or Rules(operators=tuple(operators))
    whole = rules.restrictions
    if whole is not None:
        # A law that depends on a column has parts that do not.
        rules = replace(rules, restrictions=whole.for_parts())
    codes = [operator_code(name) for name in operators]
    leaves = _numbers_for(operators, numbers)
    seen = np.zeros(1 << int(4 * max_laws + 64).bit_length(), np.uint64)
    levels: dict[int, Folded] = {}
    n_laws = 0
    for size in range(1, max_size + 1):
        found: list[Folded] = []
        n_folded = 0
        batches = _graphs(size, levels, codes, largest_power)
        if size == 1:
            batches = iter([_leaves(n_variables, parameters, leaves)])
        for graphs, literals, lengths in batches:
            folded = fold(graphs, literals, lengths, _rules_for(size, rules))
            n_folded += len(graphs)
            new = _is_wanted(folded, size, leaves, largest_power)
            _insert(seen, folded.key, new)
            found.append(_trimmed(folded.take(new), size))
            n_laws += len(found[-1])
            if n_laws > max_laws:
                return
        if found:
            levels[size] = _joined(found)
            if len(levels[size]):
                yield Level(size, _keeping(levels[size], whole), n_folded)


def _keeping(laws: Folded, restrictions: Restrictions | None) -> Folded:
    if restrictions is None:
        return laws
    return laws.take(restrictions.find_broken(laws.nodes, laws.n_nodes)[:, 0] == KEPT)


def _rules_for(size: int, rules: Rules) -> Rules:
    return Rules(**{**rules.__dict__, "max_complexity": min(size, rules.max_complexity)})


def _numbers_for(operators: Sequence[str], numbers: Sequence[float]) -> list[float]:
    """List the numbers, with what subtraction and division make of each."""
    found = [float(number) for number in numbers]
    if "/" in operators:
        found += [1.0 / number for number in found if 1.0 / number not in found]
    if "-" in operators:
        found += [-number for number in found]
    return found


def _is_wanted(
    folded: Folded, size: int, numbers: Sequence[float], largest_power: int
) -> NDArray[np.bool_]:
    """Tell which programs are accepted, of this size, with these numbers and exponents only."""
    width = folded.nodes.shape[1]
    place = np.arange(width)
    powers = (place < folded.n_nodes[:, None]) & (folded.nodes[:, :, 0] == POWER)
    large = np.any(powers & (np.abs(folded.nodes[:, :, 2]) > largest_power), axis=1)
    small = np.isin(folded.literals, numbers)
    strange = np.any((place < folded.n_literals[:, None]) & ~small, axis=1)
    return (folded.refusal == ACCEPTED) & (folded.size == size) & ~large & ~strange


Batch = tuple[NDArray[np.int32], NDArray[np.float64], NDArray[np.int32]]


def _leaves(n_variables: int, parameters: bool, numbers: Sequence[float]) -> Batch:
    rows = [(VARIABLE, k, 0) for k in range(n_variables)] + [(PARAMETER, 0, 0)] * parameters
    rows += [(LITERAL, k, 0) for k in range(len(numbers))]
    literals = np.tile(np.array(numbers, np.float64), (len(rows), 1))
    return np.array(rows, np.int32)[:, None], literals, np.ones(len(rows), np.int32)


def _graphs(
    size: int, levels: dict[int, Folded], codes: Sequence[int], largest_power: int
) -> Iterator[Batch]:
    """Yield the graphs that may have the size: their rows, numbers and lengths."""
    arities = [row.arity for row in OPERATORS.values()]
    for code in codes:
        if arities[code - FIRST_OPERATOR] == 1:
            yield from _unary(levels.get(size - 1), code, 0)
    if operator_code("*") in codes:
        for power in range(2, largest_power + 1):
            yield from _unary(levels.get(size - 2), POWER, power)
            if operator_code("/") in codes:
                yield from _unary(levels.get(size - 2), POWER, -power)
    for code in codes:
        if arities[code - FIRST_OPERATOR] == 2:
            for left in range(1, size - 1):
                right = size - 1 - left
                if code in _COMMUTATIVE and left > right:
                    break
                yield from _binary(levels.get(left), levels.get(right), code, left == right)


def _unary(laws: Folded | None, code: int, power: int) -> Iterator[Batch]:
    if laws is None:
        return
    for start in range(0, len(laws), _CHUNK):
        which = np.arange(start, min(len(laws), start + _CHUNK))
        yield _combined(laws, which, laws, which, code, power)


def _binary(
    left: Folded | None, right: Folded | None, code: int, same_level: bool
) -> Iterator[Batch]:
    if left is None or right is None:
        return
    n = len(right)
    for start in range(0, len(left) * n, _CHUNK):
        pair = np.arange(start, min(len(left) * n, start + _CHUNK))
        i, j = pair // n, pair % n
        if code in _COMMUTATIVE and same_level:
            i, j = i[i <= j], j[i <= j]
        yield _combined(left, i, right, j, code, 0)


def _combined(
    left: Folded, i: NDArray[np.intp], right: Folded, j: NDArray[np.intp], code: int, power: int
) -> Batch:
    width = left.nodes.shape[1] + right.nodes.shape[1]
    rows = np.empty((len(i), width + 1, 3), np.int32)
    numbers = np.empty((len(i), width))
    lengths = np.empty(len(i), np.int32)
    is_binary = code != POWER and list(OPERATORS.values())[code - FIRST_OPERATOR].arity == 2
    parts = [
        part
        for laws, which in ((left, i), (right, j))
        for part in (laws.nodes, laws.literals, laws.n_nodes, laws.n_literals, which)
    ]
    _combine(*parts, code, power, is_binary, rows, numbers, lengths)
    return rows, numbers, lengths


def _trimmed(folded: Folded, width: int) -> Folded:
    fields = {name: getattr(folded, name) for name in folded.__dataclass_fields__}
    fields["nodes"] = np.ascontiguousarray(folded.nodes[:, :width])
    fields["literals"] = np.ascontiguousarray(folded.literals[:, :width])
    return Folded(**fields)


def _joined(parts: Sequence[Folded]) -> Folded:
    names = Folded.__dataclass_fields__
    return Folded(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))


@njit(error_model="numpy", nogil=True, cache=True)
def _combine(  # type: ignore[no-untyped-def]
    nodes,
    literals,
    n_nodes,
    n_literals,
    which,
    more_nodes,
    more_literals,
    n_more_nodes,
    n_more_literals,
    more_which,
    code,
    power,
    is_binary,
    rows,
    numbers,
    lengths,
):
    """Write graphs that apply an operator to laws: a power if it is one, else one or two laws."""
    for k in range(len(which)):
        one = which[k]
        n, n_numbers = n_nodes[one], n_literals[one]
        # Entry by entry: for slices Numba compiles the text of an error, for seconds.
        for row in range(n):
            for column in range(3):
                rows[k, row, column] = nodes[one, row, column]
        for number in range(n_numbers):
            numbers[k, number] = literals[one, number]
        a, b = n - 1, n - 1
        if code == POWER:
            b = power
        elif is_binary:
            other = more_which[k]
            for row in range(n_more_nodes[other]):
                kind, first, second = more_nodes[other, row]
                if kind == LITERAL:
                    first += n_numbers
                elif kind == POWER:
                    first += n
                elif kind >= FIRST_OPERATOR:
                    first += n
                    second += n
                rows[k, n + row, 0] = kind
                rows[k, n + row, 1], rows[k, n + row, 2] = first, second
            for number in range(n_more_literals[other]):
                numbers[k, n_numbers + number] = more_literals[other, number]
            n += n_more_nodes[other]
            b = n - 1
        rows[k, n, 0], rows[k, n, 1], rows[k, n, 2] = code, a, b
        lengths[k] = n + 1


@njit(error_model="numpy", nogil=True, cache=True)
def _insert(seen, keys, new):  # type: ignore[no-untyped-def]
    """Add the keys for which `new` holds to a table of those seen; it holds no more if one was."""
    mask = np.uint64(len(seen) - 1)
    one, none = np.uint64(1), np.uint64(0)
    for k in range(len(keys)):
        if not new[k]:
            continue
        place = (keys[k] * _PROBE) & mask
        while seen[place] != none and seen[place] != keys[k]:
            place = (place + one) & mask
        new[k] = seen[place] == none
        seen[place] = keys[k]
