"""The acyclic-graph array of Section 2.1: random, crossover, the five mutations, distance."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from pmsr.equation.algebra import (
    LARGEST_EXPONENT,
    TooLarge,
)
from pmsr.equation.expression import MAX_LENGTH, Equation
from pmsr.equation.operator_sets import describe_unknown
from pmsr.equation.operators import (
    FIRST_OPERATOR,
    LITERAL,
    OPERATORS,
    PARAMETER,
    POWER,
    VARIABLE,
    operator_code,
)
from pmsr.equation.program import Program

Rows = NDArray[np.int32]


@dataclass(frozen=True)
class Primitives:
    """What graphs are made of.

    Parameters
    ----------
    operators
        Names of the allowed operators.
    variables
        Names of the columns of X.
    size
        Number of rows of every graph, and so the largest complexity.
    p_parameter
        Probability that a random leaf is a parameter rather than a variable.
    shared
        Whether two rows that refer to one parameter mean the same parameter.
    excluded
        Names of the columns that no row may refer to.

    Examples
    --------
    >>> Primitives(("+", "plus"), ("x",))
    Traceback (most recent call last):
        ...
    ValueError: Unknown operator 'plus': did you mean '+'?
    """

    operators: tuple[str, ...]
    variables: tuple[str, ...]
    size: int = 64
    p_parameter: float = 0.4
    shared: bool = True
    excluded: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in self.operators:
            if name not in OPERATORS:
                raise ValueError(describe_unknown(name))
        if not self.operators:
            raise ValueError("At least one operator is needed, got none. Try ('+', '*').")
        if self.size < 3:
            raise ValueError(f"A graph needs at least 3 rows, got {self.size!r}.")

    @cached_property
    def columns(self) -> tuple[int, ...]:
        """Places of the variables that rows may refer to."""
        return tuple(
            place for place, name in enumerate(self.variables) if name not in self.excluded
        )

    @cached_property
    def codes(self) -> tuple[int, ...]:
        """Node codes of the allowed operators."""
        return tuple(operator_code(name) for name in self.operators)


@dataclass(frozen=True, eq=False)
class Genome:
    """An equation as evolution sees it: rows that refer to earlier rows; the last is the result.

    Parameters
    ----------
    rows
        Integers of shape (size, 3), in the code of `program.Program`, except that the entries of
        a ``PARAMETER`` mean nothing: every such row is a parameter of its own. Most rows are not
        used; they are material for mutations.
    literals
        Numbers that ``LITERAL`` rows refer to; they come from equations that users wrote.
    shared
        Whether a ``PARAMETER`` row that two rows refer to is one parameter or two.
    """

    rows: Rows
    literals: tuple[float, ...] = ()
    shared: bool = True

    @cached_property
    def used(self) -> list[int]:
        """Rows that the result depends on, itself included, in order.

        Examples
        --------
        >>> Genome(np.array([[0, 0, 0], [1, 0, 0], [4, 0, 0]], dtype=np.int32)).used
        [0, 2]
        """
        waiting = [len(self.rows) - 1]
        needed = set(waiting)
        while waiting:
            for child in _children(self.rows[waiting.pop()].tolist()):
                if child not in needed:
                    needed.add(child)
                    waiting.append(child)
        return sorted(needed)

    @property
    def complexity(self) -> int:
        """Number of used rows."""
        return len(self.used)

    @cached_property
    def normal_rows(self) -> list[tuple[int, int, int]]:
        """List the used rows in an order that forgets their places, without what is idle.

        Arguments of sums and products are ordered, equal rows without parameters are one row, and
        a sum, difference, product or quotient of two parameters that occur nowhere else is a
        parameter. What this cheap stand-in for algebra finds equal need not be built again.

        Examples
        --------
        >>> rows = [[1, 0, 0], [1, 0, 0], [6, 0, 1], [0, 0, 0], [4, 3, 2]]   # x + c0*c1
        >>> Genome(np.array(rows, dtype=np.int32)).normal_rows
        [(0, 0, 0), (1, 0, 0), (4, 0, 1)]
        """
        rows, used = self.rows.tolist(), self.used
        uses = [0] * len(rows)
        for index in used:
            for child in _children(rows[index]):
                uses[child] += self.shared or rows[child][0] != PARAMETER
        # A colour is the same for all rows with the same look; integers have a stable hash.
        colour = [0] * len(rows)
        constant = [True] * len(rows)  # whether no parameter is below
        for index in used:
            code, a, b = rows[index]
            if code == PARAMETER:
                constant[index] = False
            elif code == LITERAL:
                colour[index] = hash((code, hash(self.literals[a])))
            elif code == VARIABLE:
                colour[index] = hash((code, a))
            elif code == POWER:
                colour[index] = hash((code, colour[a], b))
                constant[index] = constant[a]
            elif _arity(code) == 1:
                colour[index] = hash((code, colour[a]))
                constant[index] = constant[a]
            elif (
                code in _FIELD
                and (a != b or not self.shared)
                and _is_lone(rows, uses, a)
                and _is_lone(rows, uses, b)
            ):
                rows[index] = [PARAMETER, 0, 0]
                constant[index] = False
            else:
                if code in _COMMUTATIVE and colour[b] < colour[a]:
                    rows[index] = [code, b, a]
                    a, b = b, a
                colour[index] = hash((code, colour[a], colour[b]))
                constant[index] = constant[a] and constant[b]
        return _renumbered(rows, constant, self.shared)

    def raw_key(self) -> bytes:
        """Bytes that graphs share if their normal rows are the same."""
        compact = self.normal_rows
        numbers = [self.literals[a] for code, a, _ in compact if code == LITERAL]
        return np.array(compact, dtype=np.int32).tobytes() + np.array(numbers).tobytes()

    def equation(self, variables: Sequence[str]) -> Equation:
        """Build the equation of the graph, in parameters c0, c1, ...

        Raises
        ------
        ValueError
            If it is not a real, finite expression, such as x/(x - x).
        TooLarge
            If it has more nodes, written as a tree, than an equation may have characters, or too
            large an exponent; both are known before there is any algebra.

        Examples
        --------
        >>> Genome(np.array([[0, 0, 0], [1, 0, 0], [6, 0, 1]], dtype=np.int32)).equation(["x"])
        Equation('c0*x', variables=['x'])
        """
        rows, n_parameters = [], 0
        for code, a, b in self.normal_rows:
            rows.append((code, n_parameters if code == PARAMETER else a, b))
            n_parameters += code == PARAMETER
        _check_extent(rows, self.literals)
        return Equation.from_program(Program.of(rows, list(self.literals), n_parameters), variables)


def _check_extent(rows: Sequence[tuple[int, int, int]], literals: Sequence[float]) -> None:
    """Refuse a graph whose tree or whose exponents are too large, by its rows alone.

    What several rows refer to is written once for each: 42 rows can be a text of megabytes.
    """
    sizes: list[int] = []
    degrees: list[float] = []  # by products and powers; `algebra.power` sees other exponents
    for code, a, b in rows:
        children = _children((code, a, b))
        sizes.append(1 + sum(sizes[child] for child in children))
        below = [degrees[child] for child in children]
        if code == POWER:
            degree = below[0] * abs(b)
        elif code in _PRODUCTS:
            degree = sum(below)
        elif code == _POW and rows[b][0] == LITERAL:
            degree = below[0] * abs(literals[rows[b][1]])
        else:
            degree = max(below, default=1.0)
        degrees.append(degree)
    if sizes[-1] > MAX_LENGTH:
        raise TooLarge(
            f"An equation may have {MAX_LENGTH:,} characters, and this graph has {sizes[-1]:,} "
            "nodes where each is written wherever it is used."
        )
    if (largest := max(degrees)) > LARGEST_EXPONENT:
        raise TooLarge(
            f"A number in an exponent may be at most {LARGEST_EXPONENT:,}, got {largest:.6g}."
        )


_COMMUTATIVE = (operator_code("+"), operator_code("*"))
_PRODUCTS = (operator_code("*"), operator_code("/"))
_POW = operator_code("pow")
_TIMES = operator_code("*")
_FIELD = (*_COMMUTATIVE, operator_code("-"), operator_code("/"))


def _is_lone(rows: list[list[int]], uses: list[int], index: int) -> bool:
    return rows[index][0] == PARAMETER and uses[index] <= 1


def _renumbered(
    rows: list[list[int]], constant: list[bool], shared: bool
) -> list[tuple[int, int, int]]:
    """List the rows below the last one, arguments first, each once; parameters if shared."""
    place: dict[int, int] = {}
    known: dict[tuple[int, int, int], int] = {}
    listed: list[tuple[int, int, int]] = []

    def argument(index: int) -> int:
        if shared or rows[index][0] != PARAMETER:
            return place[index]
        listed.append((PARAMETER, 0, 0))
        return len(listed) - 1

    stack = [len(rows) - 1]
    while stack:
        index = stack[-1]
        waiting = [
            child
            for child in _children(rows[index])
            if child not in place and (shared or rows[child][0] != PARAMETER)
        ]
        if waiting:
            stack.append(waiting[0])
            continue
        stack.pop()
        code, a, b = rows[index]
        arity = _arity(code)
        if code == PARAMETER:
            row = (code, 0, 0)
        elif arity == 2:
            row = (code, argument(a), argument(b))
        elif arity == 1:
            row = (code, argument(a), b if code == POWER else 0)
        else:
            row = (code, a, 0)
        if constant[index] and row in known:
            place[index] = known[row]
            continue
        place[index] = known[row] = len(listed)
        listed.append(row)
    return listed


def constant_equation(variables: Sequence[str]) -> Equation:
    """Return the law that always can be weighed: a constant, whatever the variables are called.

    Examples
    --------
    >>> constant_equation(["c", "c0"]).parameters
    ('cc0',)
    """
    return Genome(np.array([[PARAMETER, 0, 0]], dtype=np.int32)).equation(variables)


def equation_genome(
    equation: Equation, primitives: Primitives, *, rng: np.random.Generator
) -> Genome:
    """Turn an equation into a graph, so that a user's guess can seed a population.

    Parameters
    ----------
    equation
        Any equation in the variables of the primitives.
    primitives
        Its operators must suffice; integer powers become products if ``"*"`` is allowed.
    rng
        Fills the rows that the equation does not use.

    Raises
    ------
    ValueError
        If the equation needs an operator that is not allowed, or more rows.
    """
    _check_sharing(equation, primitives)
    columns = [primitives.variables.index(name) for name in equation.variables]
    return program_genome(equation.program, primitives, columns, rng=rng, name=equation.text)


def program_genome(
    program: Program,
    primitives: Primitives,
    columns: Sequence[int] | None = None,
    *,
    rng: np.random.Generator,
    name: str = "",
) -> Genome:
    """Turn a program into a graph; `columns` says which variable of the primitives each of its is.

    Raises
    ------
    ValueError
        As `equation_genome`, of an equation of that name.
    """
    if columns is None:
        columns = range(len(primitives.variables))
    rows: list[tuple[int, int, int]] = []
    place: list[int] = []
    names = list(OPERATORS)
    for code, a, b in program.nodes.tolist():
        if code == VARIABLE:
            rows.append((code, columns[a], 0))
        elif code == PARAMETER:
            rows.append((code, 0, 0))
        elif code == LITERAL:
            rows.append((code, a, 0))
        elif code == POWER:
            _spell_power(rows, place[a], b, primitives, name)
        else:
            operator = names[code - FIRST_OPERATOR]
            if operator not in primitives.operators:
                raise ValueError(
                    f"{name!r} needs the operator {operator!r}, which is not among "
                    f"{', '.join(primitives.operators)}. Allow it, or write the guess without it."
                )
            rows.append((code, place[a], place[b]))
        place.append(len(rows) - 1)
    if len(rows) > primitives.size:
        raise ValueError(
            f"{name!r} needs {len(rows)} nodes, more than max_complexity = "
            f"{primitives.size}. Raise it, or shorten the guess."
        )
    genome = random_genome(primitives, rng=rng)
    table = genome.rows.copy()
    shift = primitives.size - len(rows)
    for index, row in enumerate(rows):
        children = len(_children(row))
        moved = [
            row[1] + shift if children > 0 else row[1],
            row[2] + shift if children > 1 else row[2],
        ]
        table[shift + index] = (row[0], *moved)
    return replace(genome, rows=table, literals=tuple(program.literals.tolist()))


def _check_sharing(equation: Equation, primitives: Primitives) -> None:
    """Refuse an equation whose parameter would fall apart into two."""
    uses = [0] * len(equation.program.nodes)
    for row in equation.program.nodes.tolist():
        for child in _children(row):
            uses[child] += 1
    for row, n in zip(equation.program.nodes.tolist(), uses, strict=True):
        if row[0] == PARAMETER and n > 1 and not primitives.shared:
            raise ValueError(
                f"{equation.text!r} uses {equation.parameters[row[1]]} in {n} places. Allow it "
                "with share_parameters=True, or write a parameter for each place."
            )


def _spell_power(
    rows: list[tuple[int, int, int]],
    base: int,
    exponent: int,
    primitives: Primitives,
    name: str,
) -> None:
    """Append an integer power: as products where they are allowed, else as a power."""
    if "*" in primitives.operators and 2 <= exponent <= 8 and rows[base][0] != PARAMETER:
        times = operator_code("*")
        rows.append((times, base, base))
        for _ in range(exponent - 2):
            rows.append((times, len(rows) - 1, base))
    elif "pow" in primitives.operators or "*" in primitives.operators:
        rows.append((POWER, base, exponent))
    else:
        raise ValueError(
            f"{name!r} has the power {exponent}, but neither '*' nor 'pow' is among "
            f"{', '.join(primitives.operators)}."
        )


def random_genome(primitives: Primitives, *, rng: np.random.Generator) -> Genome:
    """Draw a graph: rows in sequence, each an operator on earlier rows or a leaf.

    The share of leaves is itself random, so that the graphs differ in size.
    """
    size, columns = primitives.size, np.array(primitives.columns, dtype=np.int64)
    is_leaf = rng.random(size) < rng.uniform(0.1, 0.7)
    is_leaf[0], is_leaf[-1] = True, False
    codes = np.array(primitives.codes)
    rows = np.empty((size, 3), dtype=np.int32)
    # Operators: each argument is an earlier row.
    rows[:, 0] = codes[rng.integers(len(codes), size=size)]
    rows[1:, 1:] = (rng.random((size - 1, 2)) * np.arange(1, size)[:, None]).astype(np.int32)
    is_unary = np.array([_arity(code) == 1 for code in primitives.codes])
    alone = np.isin(rows[:, 0], codes[is_unary])
    rows[alone, 2] = rows[alone, 1]
    # Leaves.
    is_parameter = is_leaf & ((rng.random(size) < primitives.p_parameter) | (len(columns) == 0))
    rows[is_leaf, 0] = VARIABLE
    drawn = rng.integers(max(1, len(columns)), size=int(is_leaf.sum()))
    rows[is_leaf, 1] = columns[drawn] if len(columns) else drawn
    rows[is_leaf, 2] = 0
    rows[is_parameter] = (PARAMETER, 0, 0)
    return Genome(rows, shared=primitives.shared)


def crossover(first: Genome, second: Genome, *, rng: np.random.Generator) -> tuple[Genome, Genome]:
    """Swap everything from one random row on: single-point crossover."""
    cut = int(rng.integers(1, len(first.rows)))
    children = []
    for head, tail in ((first, second), (second, first)):
        rows = np.concatenate([head.rows[:cut], tail.rows[cut:]])
        literals = head.literals
        if tail.literals:
            # Each number once: over thousands of crossings the list must not grow.
            literals = tuple(dict.fromkeys(literals + tail.literals))
            places = np.array([literals.index(number) for number in tail.literals], dtype=np.int32)
            is_number = np.arange(len(rows)) >= cut
            is_number &= rows[:, 0] == LITERAL
            rows[is_number, 1] = places[rows[is_number, 1]]
        children.append(replace(head, rows=rows, literals=literals))
    return children[0], children[1]


def mutate(genome: Genome, primitives: Primitives, *, rng: np.random.Generator) -> Genome:
    """Apply one of the five mutations of Section 2.1, each with the same probability."""
    return MUTATIONS[int(rng.integers(len(MUTATIONS)))](genome, primitives, rng=rng)


def mutate_node(genome: Genome, primitives: Primitives, *, rng: np.random.Generator) -> Genome:
    """Point mutation: another operator on the same arguments, or another leaf."""
    rows = genome.rows.copy()
    index = _choose(genome.used, rng)
    code = int(rows[index, 0])
    if _arity(code) == 0:
        rows[index] = _random_leaf(primitives, rng)
    else:
        rows[index, 0] = primitives.codes[int(rng.integers(len(primitives.codes)))]
        if _arity(code) == 1:  # its second entry meant nothing
            rows[index, 2] = rng.integers(index)
    return replace(genome, rows=rows)


def mutate_edge(genome: Genome, primitives: Primitives, *, rng: np.random.Generator) -> Genome:
    """Edge mutation: one argument of a used operator becomes another earlier row."""
    rows = genome.rows.copy()
    inner = [index for index in genome.used if _arity(int(rows[index, 0])) > 0]
    if not inner:
        return genome
    index = _choose(inner, rng)
    place = 1 + int(rng.integers(_arity(int(rows[index, 0]))))
    rows[index, place] = rng.integers(index)
    return replace(genome, rows=rows)


def mutate_node_and_edge(
    genome: Genome, primitives: Primitives, *, rng: np.random.Generator
) -> Genome:
    """Node and edge mutation: a used row becomes a random one."""
    rows = genome.rows.copy()
    index = _choose(genome.used, rng)
    if index == 0 or (index < len(rows) - 1 and rng.random() < 0.5):
        rows[index] = _random_leaf(primitives, rng)
    else:
        rows[index] = _random_operator(index, primitives, rng)
    return replace(genome, rows=rows)


def prune(genome: Genome, primitives: Primitives, *, rng: np.random.Generator) -> Genome:
    """Prune mutation: a used operator is bypassed; whoever used it uses one of its arguments."""
    inner = [index for index in genome.used if _arity(int(genome.rows[index, 0])) > 0]
    if not inner:
        return genome
    index = _choose(inner, rng)
    return _bypassed(genome, index, _choose(_children(genome.rows[index].tolist()), rng))


def _bypassed(genome: Genome, index: int, keep: int) -> Genome:
    """Let whoever used a row use an earlier one instead."""
    rows = genome.rows.copy()
    if index == len(rows) - 1:
        # The result itself: the other takes its place.
        rows[index] = rows[keep]
        return replace(genome, rows=rows)
    for later in genome.used:
        if later > index:
            for place in range(1, 1 + _arity(int(rows[later, 0]))):
                if rows[later, place] == index:
                    rows[later, place] = keep
    return replace(genome, rows=rows)


def branch(genome: Genome, primitives: Primitives, *, rng: np.random.Generator) -> Genome:
    """Branch mutation: a new operator on a used row and something else takes that row's place.

    Used rows move down to make room for the new rows, so that the size stays the same; without
    room, the graph stays as it is.
    """
    used = genome.used
    n_new = 2
    if len(used) + n_new > len(genome.rows):
        return genome
    compact = _compact(genome)
    target = int(rng.integers(len(compact)))
    leaf = _random_leaf(primitives, rng)
    code = primitives.codes[int(rng.integers(len(primitives.codes)))]
    other = int(rng.integers(target + 1)) if rng.random() < 0.5 else -1
    rows: list[tuple[int, int, int]] = []
    new_place: list[int] = []
    for index, row in enumerate(compact):
        arity = _arity(row[0])
        a = new_place[row[1]] if arity > 0 else row[1]
        b = new_place[row[2]] if arity > 1 else row[2]
        rows.append((row[0], a, b))
        here = len(rows) - 1
        if index == target:
            rows.append(leaf)
            partner = here + 1 if other < 0 else (here if other == target else new_place[other])
            arguments = (here, partner) if rng.random() < 0.5 else (partner, here)
            if _arity(code) == 1:
                arguments = (here, here)
            rows.append((code, *arguments))
            here = len(rows) - 1
        new_place.append(here)
    shift = len(genome.rows) - len(rows)
    table = genome.rows.copy()
    for index, row in enumerate(rows):
        arity = _arity(row[0])
        a = row[1] + shift if arity > 0 else row[1]
        b = row[2] + shift if arity > 1 else row[2]
        table[shift + index] = (row[0], a, b)
    return replace(genome, rows=table)


MUTATIONS = (mutate_node, mutate_edge, mutate_node_and_edge, prune, branch)


def neighbours(genome: Genome, primitives: Primitives) -> list[Genome]:
    """List all graphs of the same size or less that differ in one used row.

    A leaf becomes another leaf; an operator another of its arity, one of its arguments, or a leaf;
    the arguments of an operator change places.
    """
    leaves = [(PARAMETER, 0, 0)] + [(VARIABLE, k, 0) for k in primitives.columns]
    found = []
    for index in genome.used:
        row = tuple(genome.rows[index].tolist())
        arity = _arity(row[0])
        others: list[tuple[int, ...]] = [leaf for leaf in leaves if leaf[0] != row[0] or arity == 0]
        if arity > 0:
            others += [(code, *row[1:]) for code in primitives.codes if _arity(code) == arity]
            found += [_bypassed(genome, index, child) for child in _children(row)]
        if arity == 2 and row[0] not in _COMMUTATIVE:
            others.append((row[0], row[2], row[1]))
        for other in others:
            if other != row:
                rows = genome.rows.copy()
                rows[index] = other
                found.append(replace(genome, rows=rows))
    return found


def expansions(program: Program, primitives: Primitives) -> tuple[Rows, NDArray[np.int32]]:
    """List all graphs that have one operator more: on any part of a program, alone or with a leaf.

    Parameters
    ----------
    program
        What is expanded; its parts are used once more only as their own squares.
    primitives
        The operators and leaves.

    Returns
    -------
    tuple
        Rows of the graphs, of shape (n, n_rows, 3), and their lengths; the literals are those of
        the program.
    """
    leaves = [(PARAMETER, 0, 0)] + [(VARIABLE, k, 0) for k in primitives.columns]
    nodes = program.nodes
    graphs = []
    for part in range(len(nodes)):
        for new in _operations(part, leaves, primitives):
            later = nodes[part + 1 :].copy()
            arities = np.array([_arity(code) for code in later[:, 0].tolist()], dtype=np.int64)
            for place in (1, 2):
                # What used the part uses what was made of it; what came later moves.
                moves = (arities >= place) & (later[:, place] >= part)
                later[moves, place] += len(new)
            graphs.append(np.concatenate([nodes[: part + 1], np.array(new, np.int32), later]))
    lengths = np.array([len(graph) for graph in graphs], dtype=np.int32)
    rows = np.zeros((len(graphs), len(nodes) + 2, 3), dtype=np.int32)
    for place, graph in enumerate(graphs):
        rows[place, : len(graph)] = graph
    return rows, lengths


def _operations(
    part: int, leaves: Sequence[tuple[int, int, int]], primitives: Primitives
) -> list[list[tuple[int, int, int]]]:
    """List the rows that may follow a part: an operator on it, and before that its partner."""
    found: list[list[tuple[int, int, int]]] = []
    for code in primitives.codes:
        if _arity(code) == 1:
            found.append([(code, part, part)])
            continue
        if code == _TIMES:
            found.append([(code, part, part)])
        for leaf in leaves:
            found.append([leaf, (code, part, part + 1)])
            if code not in _COMMUTATIVE:
                found.append([leaf, (code, part + 1, part)])
    return found


def distance(first: Genome, second: Genome) -> int:
    """Count the entries in which two graphs differ: how crowding finds the most similar."""
    return int(np.count_nonzero(first.rows != second.rows))


def _compact(genome: Genome) -> list[tuple[int, int, int]]:
    """Return the used rows only, referring to each other."""
    place: dict[int, int] = {}
    compact = []
    for index in genome.used:
        code, a, b = genome.rows[index].tolist()
        arity = _arity(code)
        compact.append((code, place[a] if arity > 0 else a, place[b] if arity > 1 else b))
        place[index] = len(compact) - 1
    return compact


def _random_leaf(primitives: Primitives, rng: np.random.Generator) -> tuple[int, int, int]:
    columns = primitives.columns
    if not columns or rng.random() < primitives.p_parameter:
        return PARAMETER, 0, 0
    return VARIABLE, columns[int(rng.integers(len(columns)))], 0


def _random_operator(
    index: int, primitives: Primitives, rng: np.random.Generator
) -> tuple[int, int, int]:
    code = primitives.codes[int(rng.integers(len(primitives.codes)))]
    a, b = (int(k) for k in rng.integers(index, size=2))
    return code, a, b if _arity(code) == 2 else a


def _choose(places: Sequence[int], rng: np.random.Generator) -> int:
    return places[int(rng.integers(len(places)))]


def _arity(code: int) -> int:
    try:
        return _arities[code]
    except IndexError:  # at first, and after a user added a row
        _arities[:] = [0, 0, 0, 1, *(row.arity for row in OPERATORS.values())]
        return _arities[code]


_arities: list[int] = []


def _children(row: Sequence[int]) -> tuple[int, ...]:
    return (row[1], row[2])[: _arity(row[0])]
