"""Random and hostile graphs: what a search meets, and what it could meet, read in bounded time."""

from dataclasses import replace

import numpy as np

from fuzz.strings import check_equation
from fuzz.tally import MAX_SECONDS, Tally, generator, share
from pmsr.equation.expression import Equation
from pmsr.equation.operators import FIRST_OPERATOR, LITERAL, OPERATORS, PARAMETER, POWER, VARIABLE
from pmsr.search.constraints import read_graph
from pmsr.search.genome import Genome, Primitives, crossover, mutate, random_genome
from pmsr.settings import Search

VARIABLES = ("x", "y", "drop height [mm]")
OPERATOR_SETS = (
    tuple(OPERATORS),
    ("+", "-", "*", "/"),
    ("+", "*", "pow", "sqrt"),
    ("+", "-", "*", "exp", "log"),
    ("*", "pow", "abs", "tan"),
    ("+", "*"),
)
LITERALS = (0.0, 1.0, -1.0, 2.0, 3.0, 0.5, 1 / 3, 0.375, 10.0, 64.0, 1000.0, 9999.5, 1e9, 2.0**34)
LITERALS += (1e18, 2.0**63, 1e154, 1e300, -1e300, 1e-300, 5e-324, np.pi, 0.1, 45761239297.0)
EXPONENTS = (-1, 0, 1, 2, 3, -2, 7, 64, 65, 1000, 10_000, 10_001, 2**31 - 1, -(2**31))


def attack(n: int, seed: int) -> Tally:
    """Read n graphs as a search would, and check the equations of those that are accepted."""
    return share("graphs", _attempt, n, seed)


def _attempt(tally: Tally, seed: int, place: int) -> None:
    rng = generator(seed, place)
    genome, operators = make_graph(rng, place)
    search = Search(
        operators=operators,
        max_complexity=len(genome.rows),
        share_parameters=genome.shared,
        fitness="rmse" if place % 5 == 4 else "evidence",
        nested_functions=bool(rng.random() < 0.5),
        variable_exponents=bool(rng.random() < 0.5),
    )
    about = f"{genome.normal_rows} {genome.literals} ({place})"
    tally.attempt(about, lambda: read(genome, search), seconds=MAX_SECONDS)


def read(genome: Genome, search: Search) -> str:
    """Read one graph: first as the search does, then as an equation by itself."""
    reading = read_graph(genome, VARIABLES, search)
    if reading.program is not None and Equation(reading.key, VARIABLES).program is None:
        raise AssertionError("no program")
    try:
        equation = genome.equation(VARIABLES)
    except ValueError:
        if reading.refusal is None:
            raise AssertionError(f"refused after it was read: {reading.key[:200]}") from None
        return reading.refusal
    check_equation(equation)
    return reading.refusal or "accepted"


def make_graph(rng: np.random.Generator, place: int) -> tuple[Genome, tuple[str, ...]]:
    """Draw a graph of the kind that is next in turn, and name the operators it may use."""
    kinds = (_evolved, _evolved, _evolved, _with_numbers, _shared, _powers, _any_rows)
    operators = OPERATOR_SETS[int(rng.integers(len(OPERATOR_SETS)))]
    size = int(rng.choice([3, 8, 16, 32, 64, 64, 128]))
    primitives = Primitives(operators, VARIABLES, size=size, shared=bool(rng.random() < 0.5))
    return kinds[place % len(kinds)](primitives, rng), operators


def _evolved(primitives: Primitives, rng: np.random.Generator) -> Genome:
    genome = random_genome(primitives, rng=rng)
    for _ in range(int(rng.integers(20))):
        if rng.random() < 0.3:
            genome = crossover(genome, random_genome(primitives, rng=rng), rng=rng)[0]
        else:
            genome = mutate(genome, primitives, rng=rng)
    return genome


def _with_numbers(primitives: Primitives, rng: np.random.Generator) -> Genome:
    """Turn some rows of a random graph into large numbers and integer powers."""
    genome = random_genome(primitives, rng=rng)
    rows = genome.rows.copy()
    for index in range(1, len(rows) - 1):
        if rng.random() < 0.25:
            rows[index] = LITERAL, rng.integers(len(LITERALS)), 0
        elif rng.random() < 0.15:
            rows[index] = POWER, rng.integers(index), rng.choice(EXPONENTS)
    return replace(genome, rows=rows, literals=LITERALS)


def _shared(primitives: Primitives, rng: np.random.Generator) -> Genome:
    """Let every row use the one before twice, or the two before: trees that double."""
    rows = np.empty((primitives.size, 3), dtype=np.int32)
    for index in range(len(rows)):
        if index < 2 or (index < len(rows) - 1 and rng.random() < 0.1):
            leaves = (VARIABLE, 0, 0), (VARIABLE, 1, 0), (PARAMETER, 0, 0), (LITERAL, 5, 0)
            rows[index] = leaves[int(rng.integers(len(leaves)))]
        else:
            code = primitives.codes[int(rng.integers(len(primitives.codes)))]
            arity = list(OPERATORS.values())[code - FIRST_OPERATOR].arity
            a = index - 1
            b = max(0, index - int(rng.integers(1, 4)))
            rows[index] = code, a, b if arity == 2 else a
    return Genome(rows, literals=LITERALS, shared=primitives.shared)


def _powers(primitives: Primitives, rng: np.random.Generator) -> Genome:
    """Pile powers upon powers, with sums and functions in between."""
    size = int(rng.integers(3, 40))
    rows = np.empty((size, 3), dtype=np.int32)
    for index in range(size):
        kind = rng.random()
        if index < 2 or (kind < 0.15 and index < size - 1):
            number = LITERAL, int(rng.integers(len(LITERALS))), 0
            rows[index] = number if rng.random() < 0.5 else (VARIABLE, index % 2, 0)
        elif kind < 0.6:
            rows[index] = POWER, index - 1, rng.choice(EXPONENTS)
        else:
            code = FIRST_OPERATOR + int(rng.integers(len(OPERATORS)))
            arity = list(OPERATORS.values())[code - FIRST_OPERATOR].arity
            rows[index] = code, index - 1, rng.integers(index) if arity == 2 else index - 1
    return Genome(rows, literals=LITERALS, shared=primitives.shared)


def _any_rows(primitives: Primitives, rng: np.random.Generator) -> Genome:
    """Draw any valid rows, all operators and numbers among them."""
    rows = np.empty((primitives.size, 3), dtype=np.int32)
    for index in range(len(rows)):
        code = int(rng.integers(FIRST_OPERATOR + len(OPERATORS))) if index else VARIABLE
        if code == VARIABLE:
            rows[index] = code, rng.integers(len(VARIABLES)), 0
        elif code == PARAMETER:
            rows[index] = code, 0, 0
        elif code == LITERAL:
            rows[index] = code, rng.integers(len(LITERALS)), 0
        elif code == POWER:
            rows[index] = code, rng.integers(index), rng.choice(EXPONENTS)
        else:
            rows[index] = code, *rng.integers(max(0, index - 8), index, size=2)
    return Genome(rows, literals=LITERALS, shared=primitives.shared)
