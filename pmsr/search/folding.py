"""From graphs to folded programs, on integers and in batches: no SymPy, no object for each node.

Unused rows are dropped, numbers computed, equal parts shared, terms and factors collected and
ordered (`normal_form`), idle parameters absorbed (`absorption`), and the result is written as the
rows of a `Program` (`drafting`). Two graphs with one key have one folded program; one law may
still have several, and only its fitted curve tells.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from pmsr.equation.expression import MAX_LENGTH
from pmsr.equation.operators import (
    FIRST_OPERATOR,
    OPERATORS,
    PARAMETER,
    POWER,
    VARIABLE,
)
from pmsr.equation.program import Program
from pmsr.search import absorption, drafting, normal_form
from pmsr.search.absorption import find_idle, forget_idle, rebuild
from pmsr.search.drafting import Draft, new_draft, spell
from pmsr.search.genome import Genome
from pmsr.search.normal_form import (
    COS,
    FINE,
    NOT_FINITE,
    POW,
    SIN,
    TAN,
    TANH,
    Pool,
    compiled,
    mix,
    new_pool,
    read_rows,
)
from pmsr.search.restrictions import KEPT, Restrictions
from pmsr.settings import Search

# What `Folded.refusal` means: the constraints of a search, in the order in which they are checked.
REFUSALS = (
    "",
    "not finite",
    "too complex",
    "too many parameters",
    "variable exponent",
    "nested functions",
    "foreign function",
    "shared parameter",
    "broken rule",
)
(
    ACCEPTED,
    IS_NOT_FINITE,
    TOO_COMPLEX,
    TOO_MANY_PARAMETERS,
    VARIABLE_EXPONENT,
    NESTED_FUNCTIONS,
    FOREIGN_FUNCTION,
    SHARED_PARAMETER,
    BROKEN_RULE,
) = range(len(REFUSALS))

KEEP, SPLIT, REFUSE = range(3)
_SHARING = {"keep": KEEP, "split": SPLIT, "refuse": REFUSE}
_NO_KEY = np.uint64(0)
_HIGH, _MIDDLE, _LOW = np.uint64(48), np.uint64(24), np.uint64(0xFFFFFF)


def _digest_sources() -> int:
    """Digest the compiled modules: Numba's cache on disk looks at the date of this file only."""
    digest = blake2b(digest_size=7)
    for module in (normal_form, absorption, drafting):
        digest.update(Path(str(module.__file__)).read_bytes())
    return int.from_bytes(digest.digest(), "big")


_SOURCES = _digest_sources()


@dataclass(frozen=True)
class Rules:
    """How graphs are folded, and which are refused.

    Parameters
    ----------
    absorb
        Whether parameters absorb numbers and other parameters; without, values stay the same for
        the same parameters.
    sharing
        What becomes of a parameter in several places: ``"keep"``; ``"split"``, each place gets a
        parameter of its own; ``"refuse"``: as in the search, a parameter row that several rows use
        is split, and a graph is refused if a larger part with a parameter is used twice.
    operators
        Names of the allowed operators; None for all.
    max_complexity, max_parameters, variable_exponents, nested_functions
        As in `Search`; the complexity is the number of rows.
    restrictions
        What the user rules out, or None.
    """

    absorb: bool = True
    sharing: Literal["keep", "split", "refuse"] = "refuse"
    operators: tuple[str, ...] | None = None
    max_complexity: int = 64
    max_parameters: int | None = None
    variable_exponents: bool = False
    nested_functions: bool = False
    restrictions: Restrictions | None = None

    @classmethod
    def of(cls, search: Search) -> "Rules":
        """Return the rules of a search."""
        return cls(
            sharing="keep" if search.share_parameters else "refuse",
            operators=search.operators,
            max_complexity=search.max_complexity,
            max_parameters=search.max_parameters,
            variable_exponents=search.variable_exponents,
            nested_functions=search.nested_functions,
        )


@dataclass(frozen=True, eq=False)
class Folded:
    """Folded programs, in arrays with room for the largest.

    Parameters
    ----------
    nodes
        Rows of the programs, of shape (n, width, 3); those beyond ``n_nodes`` mean nothing.
    literals
        Their numbers, of shape (n, width); those beyond ``n_literals`` mean nothing.
    n_nodes, n_literals, n_parameters
        Of each program.
    size
        Nodes of its tree, in which each part counts wherever it is used; an integer power counts
        as one operator and one integer.
    refusal
        0, or the place in `REFUSALS` of the reason why the graph is refused.
    key
        64 bits, the same for equal programs; 0 if there is none to refuse.
    """

    nodes: NDArray[np.int32]
    literals: NDArray[np.float64]
    n_nodes: NDArray[np.int32]
    n_literals: NDArray[np.int32]
    n_parameters: NDArray[np.int32]
    size: NDArray[np.int32]
    refusal: NDArray[np.int8]
    key: NDArray[np.uint64]

    def __len__(self) -> int:
        return len(self.key)

    def program(self, index: int) -> Program:
        """Return one program."""
        return Program(
            self.nodes[index, : self.n_nodes[index]].copy(),
            self.literals[index, : self.n_literals[index]].copy(),
            int(self.n_parameters[index]),
        )

    def take(self, places: Any) -> "Folded":
        """Return those at some places, or where a mask holds."""
        return Folded(*(getattr(self, name)[places] for name in self.__dataclass_fields__))


class Room(NamedTuple):
    """What the folding of one graph needs, and the next uses again."""

    pool: Pool
    other: Pool
    draft: Draft
    needed: NDArray[np.bool_]
    waves: NDArray[np.bool_]
    free: NDArray[np.bool_]
    is_used: NDArray[np.bool_]
    coefficient: NDArray[np.float64]
    node: NDArray[np.int64]


class Table(NamedTuple):
    """The rules, as compiled code reads them."""

    arity: NDArray[np.int8]  # by code
    foreign: NDArray[np.bool_]  # by code
    # absorb, sharing, max_complexity, max_parameters, variable_exponents, nested_functions
    options: NDArray[np.int64]


@compiled
def new_room(n_rows):  # type: ignore[no-untyped-def]
    """Return room for graphs of so many rows."""
    return Room(
        new_pool(n_rows),
        new_pool(n_rows),
        new_draft(n_rows),
        np.empty(n_rows, np.bool_),
        np.empty(n_rows, np.bool_),
        np.empty(n_rows, np.bool_),
        np.empty(n_rows, np.bool_),
        np.empty(n_rows),
        np.empty(n_rows, np.int64),
    )


def rules_table(rules: Rules) -> Table:
    """Return the rules as arrays, for the operators of now."""
    names = list(OPERATORS)
    allowed = names if rules.operators is None else [*rules.operators, "pow", "sqrt"]
    if rules.variable_exponents:
        allowed = [*allowed, "exp"]
    return Table(
        np.array([0, 0, 0, 1, *(row.arity for row in OPERATORS.values())], np.int8),
        np.array(
            [False] * FIRST_OPERATOR
            + [name.isidentifier() and name not in allowed for name in names]
        ),
        np.array(
            [
                rules.absorb,
                _SHARING[rules.sharing],
                rules.max_complexity,
                np.iinfo(np.int32).max if rules.max_parameters is None else rules.max_parameters,
                rules.variable_exponents,
                rules.nested_functions,
            ],
            np.int64,
        ),
    )


def fold(
    rows: NDArray[np.int32],
    literals: NDArray[np.float64] | None = None,
    lengths: NDArray[np.int32] | None = None,
    rules: Rules | None = None,
) -> Folded:
    """Fold a batch of graphs.

    Parameters
    ----------
    rows
        Graphs in the code of `Program`, of shape (n, n_rows, 3). Every ``PARAMETER`` row is a
        parameter of its own, whatever its entries.
    literals
        The numbers that their ``LITERAL`` rows refer to, of shape (n, n_literals).
    lengths
        How many rows each graph has, if not all; its last row is its result.
    rules
        How to fold, and what to refuse.

    Examples
    --------
    >>> rows = [[1, 0, 0], [1, 0, 0], [0, 0, 0], [6, 1, 2], [6, 0, 3]]   # c0*(c1*x)
    >>> folded = fold(np.array([rows], dtype=np.int32))
    >>> folded.program(0).nodes.tolist(), int(folded.size[0])
    ([[1, 0, 0], [0, 0, 0], [6, 0, 1]], 3)
    """
    rules = rules or Rules()
    n, n_rows = rows.shape[:2]
    width = max(n_rows, rules.max_complexity)
    if literals is None:
        literals = np.empty((n, 0))
    if lengths is None:
        lengths = np.full(n, n_rows, np.int32)
    folded = _empty(n, width)
    arguments = (
        _SOURCES,
        np.ascontiguousarray(rows, np.int32),
        np.ascontiguousarray(literals, np.float64),
        np.ascontiguousarray(lengths, np.int32),
        *rules_table(rules),
        *(getattr(folded, name) for name in folded.__dataclass_fields__),
    )
    if not _fold_batch(*arguments):
        _fold_batch.recompile()
        _fold_batch(*arguments)
    if rules.restrictions is not None:
        places = np.flatnonzero(folded.refusal == ACCEPTED)
        broken = rules.restrictions.find_broken(folded.nodes[places], folded.n_nodes[places])
        folded.refusal[places[broken[:, 0] != KEPT]] = BROKEN_RULE
    return folded


def fold_genomes(genomes: Sequence[Genome], rules: Rules) -> Folded:
    """Fold the graphs of a population, which have the same number of rows."""
    most = max((len(genome.literals) for genome in genomes), default=0)
    literals = np.zeros((len(genomes), most))
    for place, genome in enumerate(genomes):
        literals[place, : len(genome.literals)] = genome.literals
    rows = np.array([genome.rows for genome in genomes], np.int32)
    return fold(rows if genomes else np.empty((0, 1, 3), np.int32), literals, rules=rules)


def _empty(n: int, width: int) -> Folded:
    return Folded(
        nodes=np.zeros((n, width, 3), np.int32),
        literals=np.zeros((n, width)),
        n_nodes=np.zeros(n, np.int32),
        n_literals=np.zeros(n, np.int32),
        n_parameters=np.zeros(n, np.int32),
        size=np.zeros(n, np.int32),
        refusal=np.zeros(n, np.int8),
        key=np.zeros(n, np.uint64),
    )


@njit(error_model="numpy", nogil=True, cache=True)
def _fold_batch(  # type: ignore[no-untyped-def]
    sources,
    graphs,
    numbers,
    lengths,
    arity,
    foreign,
    options,
    nodes,
    literals,
    n_nodes,
    n_literals,
    n_parameters,
    size,
    refusal,
    key,
):
    """Fold graphs, unless this was compiled from other sources: then return False."""
    if sources != _SOURCES:
        return False
    table, room = Table(arity, foreign, options), new_room(nodes.shape[1])
    for k in range(len(graphs)):
        n_nodes[k], size[k], refusal[k], key[k] = fold_one(
            graphs[k], np.int64(lengths[k]), numbers[k], table, room, nodes[k], literals[k]
        )
        n_literals[k] = room.draft[0].n_literals
        n_parameters[k] = room.draft[0].n_parameters
    return True


@compiled
def fold_one(graph, n_rows, numbers, table, room, nodes, literals):  # type: ignore[no-untyped-def]
    """Fold one graph into `nodes` and `literals`.

    Returns the number of nodes, the size of the tree, the refusal and the key; the numbers of
    literals and parameters are in the first record of ``room.draft``.
    """
    sharing = table.options[1]
    copy, split = sharing == SPLIT, sharing != KEEP
    n_nodes, size = n_rows, 0
    for _ in range(2):
        n_nodes, size = _fold_rows(
            graph, n_nodes, numbers, table, room, copy, split, nodes, literals
        )
        if n_nodes == 0 or room.draft[0].n_copies == 0:
            break
        # Copies have parameters of their own, which may absorb more.
        graph, numbers, copy, split = nodes, literals, True, False
    if n_nodes == 0:
        room.draft[0].n_literals, room.draft[0].n_parameters = 0, 0
        trouble = room.draft[0].n_copies
        return 0, 0, IS_NOT_FINITE if trouble == NOT_FINITE else TOO_COMPLEX, _NO_KEY
    refusal = _find_refusal(nodes, n_nodes, size, table, room)
    return n_nodes, size, refusal, _find_key(nodes, n_nodes, literals, room.draft[0].n_literals)


@compiled
def _fold_rows(graph, n_rows, numbers, table, room, copy, split, nodes, literals):  # type: ignore[no-untyped-def]
    """Fold rows; in case of trouble there are no nodes, and its code stands for the copies."""
    pool, other = room.pool, room.other
    coefficient, root = read_rows(
        pool,
        graph,
        n_rows,
        numbers,
        table.arity,
        split,
        room.needed,
        room.coefficient,
        room.node,
    )
    # Every pass leaves less than it found, and any number of passes leaves the same law.
    for _ in range(n_rows):
        if pool[0].trouble != FINE or not table.options[0]:
            break
        coefficient, changed = find_idle(pool, coefficient, root)
        if not changed:
            break
        times, root = rebuild(pool, root, table.arity, other)
        coefficient *= times
        pool, other = other, pool
    n_nodes, size = 0, 0
    if not table.options[0]:
        forget_idle(pool)
    if pool[0].trouble == FINE:
        n_nodes, size = spell(
            pool, coefficient, root, table.arity, copy, room.draft, nodes, literals
        )
    if pool[0].trouble != FINE:
        room.draft[0].n_copies = pool[0].trouble
        return 0, 0
    return n_nodes, size


@compiled
def _find_refusal(nodes, n_nodes, size, table, room):  # type: ignore[no-untyped-def]
    """Return which constraint a program breaks, if any: the first in the order of `REFUSALS`."""
    _, sharing, max_complexity, max_parameters, variable_exponents, nested = table.options
    if n_nodes > max_complexity or size > MAX_LENGTH:
        return TOO_COMPLEX
    if room.draft[0].n_parameters > max_parameters:
        return TOO_MANY_PARAMETERS
    varies, waves, free, is_used = room.needed, room.waves, room.free, room.is_used
    has_variable_exponent = has_nested_waves = has_foreign = has_shared = False
    for k in range(n_nodes):
        code, a, b = nodes[k]
        is_wave = code == SIN or code == COS or code == TAN or code == TANH
        varies[k], waves[k], is_used[k] = code == VARIABLE, is_wave, False
        free[k] = code == PARAMETER
        if code >= POWER:
            is_binary = table.arity[code] == 2
            b = b if is_binary else a
            # A part that depends on a parameter has it in two places if it is used twice.
            has_shared |= free[a] and (is_used[a] or (is_binary and a == b))
            has_shared |= is_binary and free[b] and is_used[b]
            is_used[a] = is_used[b] = True
            varies[k] = varies[a] or varies[b]
            free[k] = free[a] or free[b]
            waves[k] = is_wave or waves[a] or waves[b]
            has_nested_waves |= is_wave and waves[a]
            has_variable_exponent |= code == POW and varies[b]
            has_foreign |= table.foreign[code]
    if has_variable_exponent and not variable_exponents:
        return VARIABLE_EXPONENT
    if has_nested_waves and not nested:
        return NESTED_FUNCTIONS
    if has_foreign:
        return FOREIGN_FUNCTION
    return SHARED_PARAMETER if has_shared and sharing == REFUSE else ACCEPTED


@compiled
def _find_key(nodes, n_nodes, literals, n_literals):  # type: ignore[no-untyped-def]
    """Digest a program: its rows, then its numbers."""
    key = mix(np.uint64(n_nodes), np.uint64(n_literals))
    for k in range(n_nodes):
        row = (np.uint64(nodes[k, 0]) << _HIGH) ^ (np.uint64(nodes[k, 1]) << _MIDDLE)
        key = mix(key, row ^ (np.uint64(nodes[k, 2]) & _LOW))
    bits = literals.view(np.uint64)
    for k in range(n_literals):
        key = mix(key, bits[k])
    return key
