import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import least_squares

from pmsr.equation.algebra import TooLarge
from pmsr.equation.expression import Equation
from pmsr.equation.operators import LITERAL, OPERATORS, PARAMETER, POWER, VARIABLE, operator_code
from pmsr.equation.program import Program, evaluate
from pmsr.search.folding import REFUSALS, Rules, fold, fold_genomes
from pmsr.search.genome import Genome, Primitives, equation_genome, random_genome
from pmsr.settings import Search

ALL = ("+", "-", "*", "/", "pow", "sqrt", "exp", "log", "sin", "cos", "tan", "tanh", "abs")
SETS = [
    Primitives(("+", "-", "*"), ("x",), size=16),
    Primitives(("+", "-", "*", "/", "sqrt"), ("x", "y"), size=16),
    Primitives(ALL, ("x", "y"), size=16),
]
EXACT = Rules(absorb=False, sharing="keep", variable_exponents=True, nested_functions=True)
FREE = Rules(sharing="keep", variable_exponents=True, nested_functions=True)
primitive_sets = st.sampled_from(SETS)
seeds = st.integers(0, 2**32)


def graph(primitives, seed, p_literal=0.2):
    """A random graph some of whose leaves are small numbers."""
    rng = np.random.default_rng(seed)
    genome = random_genome(primitives, rng=rng)
    rows = genome.rows.copy()
    for row in rows:
        if row[0] == PARAMETER and rng.random() < p_literal:
            row[:] = LITERAL, rng.integers(4), 0
    return Genome(rows, (1.0, 2.0, -1.0, 0.5))


def original(genome):
    """The graph as it stands, as a program."""
    rows = genome.rows.copy()
    places = np.flatnonzero(rows[:, 0] == PARAMETER)
    rows[places, 1] = np.arange(len(places))
    return Program(rows, np.array(genome.literals), len(places))


def law(text, names=("x", "y", "z"), **options):
    """Fold an equation that a user wrote; return its program."""
    rules = Rules(**{"sharing": "keep", "variable_exponents": True, **options})
    equation = Equation(text, names)
    program = equation.program
    columns = [names.index(name) for name in equation.variables]
    nodes = program.nodes.copy()
    variables = nodes[:, 0] == VARIABLE
    nodes[variables, 1] = np.array(columns, int)[nodes[variables, 1]]
    return fold(nodes[None], program.literals[None], rules=rules)


def rows_of(*rows, rules=None, literals=()):
    table = np.array([rows], dtype=np.int32)
    return fold(table, np.array([literals], dtype=float), rules=rules or Rules(sharing="keep"))


def written(program):
    """The program as a text."""
    names, texts = list(OPERATORS), []
    for code, a, b in program.nodes.tolist():
        if code == VARIABLE:
            texts.append("xyz"[a])
        elif code == PARAMETER:
            texts.append(f"c{a}")
        elif code == LITERAL:
            texts.append(f"{program.literals[a]:g}")
        elif code == POWER:
            texts.append(f"{texts[a]}**{b}")
        elif names[code - 4].isidentifier() and names[code - 4] != "pow":
            texts.append(f"{names[code - 4]}({texts[a]})")
        else:
            texts.append(f"({texts[a]} {names[code - 4]} {texts[b]})")
    return texts[-1]


def by_tree(program):
    """Nodes of the tree, one by one."""
    sizes = []
    for code, a, b in program.nodes.tolist():
        if code < POWER:
            sizes.append(1)
        elif code == POWER:
            sizes.append(sizes[a] + 2)
        else:
            arity = list(OPERATORS.values())[code - 4].arity
            sizes.append(1 + sizes[a] + (sizes[b] if arity == 2 else 0))
    return sizes[-1]


@settings(max_examples=300, deadline=None)
@given(primitive_sets, seeds)
def test_values_stay_the_same_without_absorption(primitives, seed):
    genome = graph(primitives, seed)
    folded = fold_genomes([genome], EXACT)
    if folded.refusal[0]:
        return
    rng = np.random.default_rng(seed)
    X = rng.uniform(0.3, 2.0, (20, len(primitives.variables)))
    before = original(genome)
    theta = rng.uniform(0.3, 2.0, before.n_parameters)
    after = folded.program(0)
    # The parameters of the folded program stand in another order: all that fit are tried.
    assert after.n_parameters <= before.n_parameters
    expected = evaluate(before, theta[None], X)[0]
    tags = parameter_places(genome, folded)
    value = evaluate(after, theta[tags][None], X)[0]
    defined = np.isfinite(expected) & (np.abs(expected) < 1e8)
    scale = np.maximum(1.0, largest_inside(before, theta, X))
    assert np.all(np.abs(value - expected)[defined] <= 1e-9 * scale[defined] ** 2)


def parameter_places(genome, folded):
    """Which parameter of the graph each of the folded program is: by turning them to numbers."""
    before = original(genome)
    marks = 10.0 ** -np.arange(1, before.n_parameters + 1) * np.pi
    places = []
    for k in range(folded.n_parameters[0]):
        found = [
            j
            for j in range(before.n_parameters)
            if np.allclose(*(slopes(p, c, marks) for p, c in ((before, j), (folded.program(0), k))))
        ]
        places.append(found)
    return places
