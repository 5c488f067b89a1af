from itertools import permutations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.optimize import least_squares

from pmsr.equation.expression import Equation
from pmsr.equation.operators import (
    LITERAL,
    OPERATORS,
    PARAMETER,
    POWER,
    VARIABLE,
    Operator,
    add_operator,
    operator_code,
)
from pmsr.equation.program import (
    Program,
    evaluate,
    evaluate_jacobian,
    parameter_free_values,
)
from pmsr.search.constraints import (
    _foreign_function,
    _has_nested_waves,
    _has_shared_parameter,
    _has_variable_exponent,
)
from pmsr.search.folding import REFUSALS, Rules, fold, fold_genomes
from pmsr.search.genome import Genome, Primitives, random_genome
from pmsr.settings import Search

ALL = ("+", "-", "*", "/", "pow", "sqrt", "exp", "log", "sin", "cos", "tan", "tanh", "abs")
SETS = [
    Primitives(("+", "-", "*"), ("x",), size=12),
    Primitives(("+", "-", "*", "/", "sqrt"), ("x", "y"), size=12),
    Primitives(ALL, ("x", "y"), size=10),
]
ANYTHING = {"sharing": "keep", "variable_exponents": True, "nested_functions": True}
EXACT = Rules(absorb=False, **ANYTHING)
FREE = Rules(**ANYTHING)
# With parameters in several places, equal looks leave the order of terms open.
ONE_PLACE = [Rules(absorb=absorb, sharing="split") for absorb in (True, False)]
NUMBERS = (1.0, 2.0, -1.0, 0.5)
primitive_sets = st.sampled_from(SETS)
seeds = st.integers(0, 2**32)


def graph(primitives, seed):
    """A random graph some of whose leaves are small numbers."""
    rng = np.random.default_rng(seed)
    rows = random_genome(primitives, rng=rng).rows.copy()
    for row in rows:
        if row[0] == PARAMETER and rng.random() < 0.3:
            row[:] = LITERAL, rng.integers(len(NUMBERS)), 0
    return Genome(rows, NUMBERS)


def as_it_stands(genome):
    """The program of a graph, with all its rows."""
    rows = genome.rows.copy()
    places = np.flatnonzero(rows[:, 0] == PARAMETER)
    rows[places, 1] = np.arange(len(places))
    return Program(rows, np.array(genome.literals), len(places))


def fold_text(text, **options):
    """Fold what a user wrote in x, y and z; parameters are c0, c1, ..."""
    equation = Equation(text, ("x", "y", "z"))
    nodes = equation.program.nodes
    literals = equation.program.literals
    return fold(nodes[None], literals[None], rules=Rules(**{**ANYTHING, **options}))


def fold_rows(*rows, literals=(), **options):
    rules = Rules(**{**ANYTHING, **options})
    return fold(np.array([rows], np.int32), np.array([literals], float), rules=rules)


def written(program):
    names, texts = list(OPERATORS), []
    for code, a, b in program.nodes.tolist():
        name = names[code - 4] if code >= 4 else ""
        if code == VARIABLE:
            texts.append("xyz"[a])
        elif code == PARAMETER:
            texts.append(f"c{a}")
        elif code == LITERAL:
            texts.append(f"{program.literals[a]:g}")
        elif code == POWER:
            texts.append(f"{texts[a]}**{b}")
        elif name.isidentifier() and name != "pow":
            texts.append(f"{name}({texts[a]})")
        else:
            texts.append(f"({texts[a]} {name} {texts[b]})")
    return texts[-1]


def tree_size(program):
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


def rounding(program, theta, X):
    """Values, and how much they move if all that goes in moves by a trillionth."""
    rng = np.random.default_rng(0)
    exact = evaluate(program, theta, X)
    moved = np.zeros_like(exact)
    with np.errstate(all="ignore"):
        for _ in range(8):
            shaken = [a * (1 + 1e-12 * rng.uniform(-1, 1, a.shape)) for a in (theta, X)]
            moved = np.maximum(moved, np.abs(evaluate(program, *shaken) - exact))
        return exact, 1e-12 * (1 + np.abs(exact)) + 10 * moved


@settings(max_examples=400, deadline=None)
@given(primitive_sets, seeds)
def test_values_stay_the_same_without_absorption(primitives, seed):
    genome = graph(primitives, seed)
    # Parameters as further variables: their order is then known.
    rows = genome.rows.copy()
    places = np.flatnonzero(rows[:, 0] == PARAMETER)
    for k, place in enumerate(places):
        rows[place] = VARIABLE, len(primitives.variables) + k, 0
    before = Program(rows, np.array(genome.literals), 0)
    folded = fold(rows[None], np.array([genome.literals]), rules=EXACT)
    X = np.random.default_rng(seed).uniform(-1.5, 2.5, (40, len(primitives.variables) + len(rows)))
    expected, tolerance = rounding(before, np.empty((1, 0)), X)
    if folded.refusal[0]:
        # Somewhere on the way: for floats y/(x/0) is 0.
        nodes = parameter_free_values(before, X).values()
        assert not all(np.isfinite(values).all() for values in nodes)
        return
    value = evaluate(folded.program(0), np.empty((1, 0)), X)
    defined = np.isfinite(expected) & np.isfinite(tolerance)
    assert np.all(np.abs(value[defined] - expected[defined]) <= tolerance[defined])


@settings(max_examples=200, deadline=None)
@given(primitive_sets, seeds)
def test_parameters_keep_their_places_without_absorption(primitives, seed):
    genome = graph(primitives, seed)
    folded = fold_genomes([genome], EXACT)
    before = as_it_stands(genome)
    assume(not folded.refusal[0] and before.n_parameters <= 5)
    rng = np.random.default_rng(seed)
    X = rng.uniform(0.3, 2.0, (20, len(primitives.variables)))
    theta = rng.uniform(0.3, 2.0, (1, before.n_parameters))
    expected, tolerance = rounding(before, theta, X)
    assume(np.isfinite(expected).all() and np.isfinite(tolerance).all())
    after = folded.program(0)
    assert any(
        np.all(np.abs(evaluate(after, theta[:, list(order)], X) - expected) <= tolerance)
        for order in permutations(range(before.n_parameters), after.n_parameters)
    )


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.sampled_from(SETS[:2]), seeds)
def test_a_folded_law_takes_all_the_values_of_its_graph(primitives, seed):
    genome = graph(primitives, seed)
    before = as_it_stands(genome)
    folded = fold_genomes([genome], FREE)
    after = folded.program(0)
    assume(not folded.refusal[0] and after.n_parameters <= 3)
    rng = np.random.default_rng(seed)
    X = rng.uniform(0.3, 2.0, (12, len(primitives.variables)))
    theta = rng.uniform(0.3, 2.0, (1, before.n_parameters))
    expected, _ = rounding(before, theta, X)
    assume(np.isfinite(expected).all() and np.abs(expected).max() < 1e4)
    assert misfit(after, X, expected[0], rng) <= 1e-6 * (1 + np.abs(expected).max())


def misfit(program, X, y, rng):
    """The least largest residual of fits from many starts."""
    if program.n_parameters == 0:
        return np.abs(evaluate(program, np.empty((1, 0)), X)[0] - y).max()

    def residual(theta):
        return np.nan_to_num(
            evaluate(program, theta[None], X)[0] - y, nan=1e6, posinf=1e6, neginf=-1e6
        )

    def slope(theta):
        return np.nan_to_num(evaluate_jacobian(program, theta[None], X)[1][0].T)

    best = np.inf
    for _ in range(60):
        size = np.exp(rng.normal(0.0, 1.5, program.n_parameters))
        start = size * rng.choice([-1.0, 1.0], program.n_parameters)
        fit = least_squares(
            residual, start, slope, method="lm", max_nfev=400, xtol=1e-14, ftol=1e-14
        )
        best = min(best, np.abs(fit.fun).max())
        if best < 1e-9 * (1 + np.abs(y).max()):
            break
    return best


@settings(max_examples=200, deadline=None)
@given(primitive_sets, seeds, st.sampled_from(ONE_PLACE))
def test_folding_a_second_time_changes_nothing(primitives, seed, rules):
    once = fold_genomes([graph(primitives, seed)], rules)
    assume(once.n_nodes[0] > 0)
    program = once.program(0)
    twice = fold(program.nodes[None], program.literals[None], rules=rules)
    assert written(twice.program(0)) == written(program)
    assert twice.key[0] == once.key[0]
    assert twice.size[0] == once.size[0] == tree_size(program)


@settings(max_examples=200, deadline=None)
@given(primitive_sets, seeds)
def test_the_order_of_operands_and_of_rows_does_not_matter(primitives, seed):
    genome = graph(primitives, seed)
    rows = genome.rows.copy()
    swapped = np.isin(rows[:, 0], [operator_code("+"), operator_code("*")])
    rows[swapped] = rows[swapped][:, [0, 2, 1]]
    rules = Rules(sharing="split")
    one, other = fold_genomes([genome, Genome(rows, genome.literals)], rules).key
    assert one == other


@settings(max_examples=200, deadline=None)
@given(primitive_sets, seeds, st.booleans(), st.booleans(), st.booleans())
def test_refusals_are_those_of_the_search(primitives, seed, share, nested, exponents):
    search = Search(
        operators=("+", "-", "*", "/", "sqrt", "sin", "log"),
        share_parameters=share,
        nested_functions=nested,
        variable_exponents=exponents,
        max_complexity=8,
        max_parameters=2,
    )
    folded = fold_genomes([graph(primitives, seed)], Rules.of(search))
    assume(folded.n_nodes[0] > 0)
    program = folded.program(0)
    expected = ""
    if len(program.nodes) > search.max_complexity:
        expected = "too complex"
    elif program.n_parameters > 2:
        expected = "too many parameters"
    elif not exponents and _has_variable_exponent(program):
        expected = "variable exponent"
    elif not nested and _has_nested_waves(program):
        expected = "nested functions"
    elif _foreign_function(program, search) is not None:
        expected = "foreign function"
    elif not share and _has_shared_parameter(program):
        expected = "shared parameter"
    refusal = REFUSALS[folded.refusal[0]]
    if not share and refusal == "shared parameter":
        # Here c0*x + exp(c0*x) counts too.
        assert expected in ("", "shared parameter")
    else:
        assert refusal == expected


@pytest.mark.parametrize(
    ("text", "law"),
    [
        ("x + y + x", "(y + (2 * x))"),
        ("x*(y*x)", "(x**2 * y)"),
        ("x/x**3", "x**-2"),
        ("c0*(c1*x)", "(c0 * x)"),
        ("(c0 + x) + c1", "(c0 + x)"),
        ("2*c0*x/c1", "(c0 * x)"),
        ("c0 - c1*x", "(c0 + (c1 * x))"),
        ("c0*x + c1*x + 3*x", "(c0 * x)"),
        ("c0 + c1*(c2 + x)", "(c0 + (c1 * x))"),
        ("c0*(c1 + c2*x)", "(c0 + (c1 * x))"),
        ("c0*exp(c1 + x)", "(c0 * exp(x))"),
        ("exp(c0) + sqrt(c1)*x", "(c0 + (c1 * x))"),
        ("c0*c1*x + c1", "(c0 + ((c1 * c0) * x))"),
        ("sqrt(x**3)*sqrt(x)", "x**2"),
        ("sqrt(x**2)", "abs(x)"),
        ("log(exp(x))*exp(log(y))", "(x * y)"),
        ("exp(x)*exp(y)/exp(x)", "exp(y)"),
        ("sin(-x) + cos(-y)", "(cos(y) - sin(x))"),
        ("x*(y - x)", "(x * (y - x))"),
        ("-c0*x**2/(c1 + x)", "((c0 * x**2) / (c1 + x))"),
    ],
)
def test_a_law_is_folded_to(text, law):
    assert sorted(written(fold_text(text).program(0))) == sorted(law)


def test_a_graph_that_is_nothing_is_refused():
    zero = (operator_code("-"), 0, 0)
    folded = fold_rows((VARIABLE, 0, 0), zero, (operator_code("/"), 0, 1))
    assert REFUSALS[folded.refusal[0]] == "not finite"


def test_shared_parts_are_kept_split_or_refused():
    times, plus = operator_code("*"), operator_code("+")
    exp = operator_code("exp")
    rows = [(PARAMETER, 0, 0), (VARIABLE, 0, 0), (times, 0, 1), (exp, 2, 2), (plus, 2, 3)]
    assert fold_rows(*rows, sharing="keep").n_parameters[0] == 1
    assert fold_rows(*rows, sharing="split").n_parameters[0] == 2
    assert REFUSALS[fold_rows(*rows, sharing="refuse").refusal[0]] == "shared parameter"


def test_a_tree_of_a_million_nodes_is_too_complex_rather_than_slow():
    rows = [(VARIABLE, 0, 0), (VARIABLE, 1, 0)]
    for k in range(1, 60):
        code = operator_code("sin") if k % 2 else operator_code("*")
        rows.append((code, k, k - 1))
    assert REFUSALS[fold_rows(*rows).refusal[0]] == "too complex"


def test_an_operator_of_the_user_is_left_alone():
    row = OPERATORS["sin"]
    add_operator(
        Operator("triple", 1, row.sympy, row.pytensor, lambda a: 3.0 * a, lambda a, v: 3.0)
    )
    try:
        code = operator_code("triple")
        folded = fold_rows((VARIABLE, 0, 0), (code, 0, 0), (operator_code("+"), 1, 1))
        assert written(folded.program(0)) == "(2 * triple(x))"
        assert folded.n_nodes[0] == 4
    finally:
        del OPERATORS["triple"]
