import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pmsr.equation.algebra import TooLarge
from pmsr.equation.expression import Equation
from pmsr.equation.operators import LITERAL, OPERATORS, PARAMETER, POWER, VARIABLE, operator_code
from pmsr.search.constraints import read_graph
from pmsr.search.genome import (
    MUTATIONS,
    Genome,
    Primitives,
    crossover,
    distance,
    equation_genome,
    mutate,
    neighbours,
    random_genome,
)
from pmsr.settings import Search

SETS = [
    Primitives(("+", "-", "*"), ("x0",)),
    Primitives(("+", "*", "/", "pow", "sqrt", "sin"), ("x", "y", "z"), size=20),
    Primitives(("+",), ("x",), size=3),
    Primitives(("exp", "log"), ("x", "y"), size=8),
]
primitive_sets = st.sampled_from(SETS)
seeds = st.integers(0, 2**32)


def check(genome, primitives):
    """The laws: size, acyclic, valid codes and columns."""
    assert genome.rows.shape == (primitives.size, 3)
    assert genome.rows.dtype == np.int32
    for index, (code, a, b) in enumerate(genome.rows.tolist()):
        if code == VARIABLE:
            assert 0 <= a < len(primitives.variables)
        elif code == LITERAL:
            assert 0 <= a < len(genome.literals)
        elif code not in (PARAMETER, POWER):
            assert code in primitives.codes
            arity = list(OPERATORS.values())[code - 4].arity
            assert all(0 <= child < index for child in (a, b)[:arity])
    used = genome.used
    assert used[-1] == primitives.size - 1
    assert genome.complexity == len(used) <= primitives.size


@given(primitive_sets, seeds)
def test_random_graphs_keep_the_laws(primitives, seed):
    check(random_genome(primitives, rng=np.random.default_rng(seed)), primitives)


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.__name__)
@given(primitive_sets, seeds)
def test_every_mutation_keeps_the_laws(mutation, primitives, seed):
    rng = np.random.default_rng(seed)
    genome = random_genome(primitives, rng=rng)
    before = genome.rows.copy()
    for _ in range(5):
        mutated = mutation(genome, primitives, rng=rng)
        check(mutated, primitives)
    np.testing.assert_array_equal(genome.rows, before)  # the parent is left alone


@given(primitive_sets, seeds)
@settings(max_examples=50, deadline=None)
def test_many_mutations_and_crossings_keep_the_laws(primitives, seed):
    rng = np.random.default_rng(seed)
    first, second = (random_genome(primitives, rng=rng) for _ in range(2))
    for _ in range(60):
        first = mutate(first, primitives, rng=rng)
        first, second = crossover(first, second, rng=rng)
        check(first, primitives)
        first.raw_key()


@given(primitive_sets, seeds)
def test_crossover_keeps_the_laws_and_the_material(primitives, seed):
    rng = np.random.default_rng(seed)
    parents = [random_genome(primitives, rng=rng) for _ in range(2)]
    children = crossover(*parents, rng=rng)
    for child in children:
        check(child, primitives)
    for row in range(primitives.size):
        before = sorted(parent.rows[row].tolist() for parent in parents)
        assert sorted(child.rows[row].tolist() for child in children) == before


def test_crossover_takes_literals_along():
    primitives = SETS[0]
    rng = np.random.default_rng(0)
    parents = [
        equation_genome(Equation(text, ["x0"]), primitives, rng=rng)
        for text in ("c0*x0 + 2.75", "x0*7.5 - c0")
    ]
    for seed in range(50):
        for child in crossover(*parents, rng=np.random.default_rng(seed)):
            check(child, primitives)
            assert {child.literals[row[1]] for row in child.rows if row[0] == LITERAL} <= {
                2.75,
                7.5,
            }


@given(primitive_sets, seeds)
@settings(max_examples=60, deadline=None)
def test_the_raw_key_tells_graphs_apart_only_by_what_they_use(primitives, seed):
    rng = np.random.default_rng(seed)
    genome = random_genome(primitives, rng=rng)
    rows = genome.rows.copy()
    unused = sorted(set(range(primitives.size)) - set(genome.used))
    for index in unused:
        rows[index] = (PARAMETER, 0, 0)
    other = Genome(rows)
    assert other.raw_key() == genome.raw_key()
    try:
        equation = genome.equation(primitives.variables)
    except ValueError:
        return
    assert other.equation(primitives.variables).key == equation.key


def test_mutations_do_what_they_are_called():
    primitives = Primitives(("+", "-", "*", "sqrt"), ("x", "y"))
    genome = equation_genome(
        Equation("c0*sqrt(x) + y", ["x", "y"]), primitives, rng=np.random.default_rng(0)
    )
    sizes = {
        mutation.__name__: [
            mutation(genome, primitives, rng=np.random.default_rng(seed)).complexity
            for seed in range(200)
        ]
        for mutation in MUTATIONS
    }
    assert max(sizes["prune"]) < genome.complexity
    assert min(sizes["branch"]) > genome.complexity
    names = {mutate(genome, primitives, rng=np.random.default_rng(s)).raw_key() for s in range(300)}
    assert len(names) > 30


def test_branching_without_room_changes_nothing():
    tiny = Primitives(("+",), ("x",), size=3)
    genome = equation_genome(Equation("c0 + x", ["x"]), tiny, rng=np.random.default_rng(0))
    branch = MUTATIONS[-1]
    assert branch(genome, tiny, rng=np.random.default_rng(0)) is genome


@pytest.mark.parametrize(
    "text",
    [
        "c0*sqrt(H)",
        "k1*H**2/(1 + k2*H)",
        "c0 + c1*(c2 - H)*c1",
        "H**3 - 2.5*H",
        "c0",
        "c0*H**c1",
        "sqrt(c0**2 + H)",
    ],
)
def test_an_equation_becomes_a_graph_and_back(text):
    primitives = Primitives(("+", "-", "*", "/", "pow", "sqrt"), ("H",))
    equation = Equation(text, ["H"])
    genome = equation_genome(equation, primitives, rng=np.random.default_rng(0))
    check(genome, primitives)
    assert genome.equation(["H"]).key == equation.key


def test_a_guess_that_does_not_fit_is_refused_with_the_reason():
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match="needs the operator 'sin', which is not among"):
        equation_genome(Equation("sin(x)", ["x"]), Primitives(("+",), ("x",)), rng=rng)
    with pytest.raises(ValueError, match="needs 8 nodes, more than max_complexity = 4"):
        small = Primitives(("+", "*"), ("x",), size=4)
        equation_genome(Equation("c0 + c1*x + c2*x", ["x"]), small, rng=rng)
    with pytest.raises(ValueError, match="neither '\\*' nor 'pow'"):
        equation_genome(Equation("x**2", ["x"]), Primitives(("+",), ("x",)), rng=rng)


def test_shared_parameters_stay_shared():
    rows = np.array([[1, 0, 0], [0, 0, 0], [6, 0, 1], [4, 2, 0]], dtype=np.int32)
    assert Genome(rows).equation(["x"]).key == Equation("c0*x + c0", ["x"]).key


def test_a_graph_that_is_nowhere_finite_is_refused():
    rows = np.array([[0, 0, 0], [5, 0, 0], [7, 0, 1]], dtype=np.int32)  # x / (x - x)
    with pytest.raises(ValueError):
        Genome(rows).equation(["x"])


def test_a_graph_whose_tree_is_long_is_refused_by_its_rows():
    # The product of a row and its sine, over and over.
    rows = [[VARIABLE, 0, 0]]
    while len(rows) < 80:
        rows += [
            [operator_code("sin"), len(rows) - 1, 0],
            [operator_code("*"), len(rows), len(rows) - 1],
        ]
    genome = Genome(np.array(rows, dtype=np.int32))
    with pytest.raises(TooLarge, match="may have 10,000 characters, and this graph has"):
        genome.equation(["x"])
    assert read_graph(genome, ("x",), Search()).refusal == "too complex"


@pytest.mark.parametrize("n", [1, 34])
def test_a_graph_with_a_large_exponent_is_refused_by_its_rows(n):
    rows = [[VARIABLE, 0, 0], [LITERAL, 0, 0], [operator_code("+"), 0, 1]]
    for _ in range(n):  # log(1 - (x + 1/2)**(2**34)), by one power or by many
        rows.append([POWER, len(rows) - 1, 2 ** (34 // n) if n > 1 else 2**30])
    rows += [[LITERAL, 1, 0], [operator_code("-"), len(rows), len(rows) - 1]]
    rows.append([operator_code("log"), len(rows) - 1, 0])
    genome = Genome(np.array(rows, dtype=np.int32), literals=(0.5, 1.0))
    with pytest.raises(TooLarge, match="exponent may be at most 10,000, got 1"):
        genome.equation(["x"])


def test_numbers_that_grow_from_row_to_row_are_refused():
    rows = [[LITERAL, 0, 0], *([POWER, k, 60] for k in range(2)), [VARIABLE, 0, 0]]
    rows.append([operator_code("+"), 2, 3])
    genome = Genome(np.array(rows, dtype=np.int32), literals=(3.0,))
    with pytest.raises(ValueError, match="beyond the range of floats"):
        genome.equation(["x"])


def test_distance_counts_differing_entries():
    rng = np.random.default_rng(0)
    genome = random_genome(SETS[0], rng=rng)
    rows = genome.rows.copy()
    rows[5] = rows[5] + 1
    assert distance(genome, genome) == 0
    assert distance(genome, Genome(rows)) == 3


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        (dict(operators=("plus",)), "Unknown operator 'plus'"),
        (dict(operators=()), "At least one operator"),
        (dict(operators=("+",), size=2), "at least 3 rows"),
    ],
)
def test_primitives_are_checked(arguments, match):
    with pytest.raises(ValueError, match=match):
        Primitives(variables=("x",), **arguments)


def test_codes_belong_to_names():
    assert Primitives(("*", "sin"), ("x",)).codes == (operator_code("*"), operator_code("sin"))


@given(primitive_sets, seeds)
@settings(max_examples=30, deadline=None)
def test_neighbours_keep_the_laws_and_are_never_larger(primitives, seed):
    genome = random_genome(primitives, rng=np.random.default_rng(seed))
    for other in neighbours(genome, primitives):
        check(other, primitives)
        assert other.complexity <= genome.complexity


def test_neighbours_include_every_way_to_leave_something_out():
    primitives = Primitives(("+", "*"), ("x",))
    genome = equation_genome(Equation("c0*x + c1", ["x"]), primitives, rng=np.random.default_rng(0))
    keys = {other.equation(["x"]).key for other in neighbours(genome, primitives)}
    expected = ("c0*x", "c0", "x + c0", "c0 + x*x", "c0*x + x")
    assert keys >= {Equation(text, ["x"]).key for text in expected}


def test_a_parameter_in_two_places_is_one_or_two():
    rows = [[1, 0, 0], [0, 0, 0], [4, 0, 1], [6, 0, 2]]  # c0*(c0 + x)
    genome = Genome(np.array(rows, dtype=np.int32))
    assert genome.equation(["x"]).key == Equation("c0*(c0 + x)", ["x"]).key
    apart = Genome(genome.rows, shared=False)
    assert apart.equation(["x"]).key == Equation("c0*(c1 + x)", ["x"]).key
    primitives = Primitives(("+", "*"), ("x",), shared=False)
    with pytest.raises(ValueError, match="uses c0 in 2 places"):
        equation_genome(Equation("c0*(c0 + x)", ["x"]), primitives, rng=np.random.default_rng(0))


def test_graphs_that_fold_to_the_same_rows_are_known():
    def rows_of(*rows):
        return Genome(np.array(rows, dtype=np.int32))

    # x + c0*c1 and c0 + x; x*x in two rows and in one.
    first = rows_of([1, 0, 0], [1, 0, 0], [6, 0, 1], [0, 0, 0], [4, 3, 2])
    assert first.raw_key() == rows_of([0, 0, 0], [1, 0, 0], [4, 0, 1]).raw_key()
    twice = rows_of([0, 0, 0], [6, 0, 0], [6, 0, 0], [4, 1, 2])
    assert twice.raw_key() == rows_of([0, 0, 0], [6, 0, 0], [4, 1, 1]).raw_key()
    # A parameter that is used again stays: c0*(c0*c1).
    again = rows_of([1, 0, 0], [1, 0, 0], [6, 0, 1], [6, 0, 2])
    assert again.raw_key() != rows_of([1, 0, 0], [1, 0, 0], [6, 0, 1]).raw_key()
