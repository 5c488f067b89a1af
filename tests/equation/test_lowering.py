import mpmath
import numpy as np
import pytest
import sympy
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from strategies import equation_texts

from pmsr.equation.algebra import real_symbol
from pmsr.equation.expression import Equation
from pmsr.equation.operators import FIRST_OPERATOR, LITERAL, OPERATORS, PARAMETER, POWER, VARIABLE
from pmsr.equation.program import Program, evaluate

NAMES = ["leaf", "leaf", "literal", "power", *OPERATORS]


def table(text):
    """List the operators and literals of an equation in x, y."""
    program = Equation(text, ["x", "y"]).program
    names = []
    for code, a, b in program.nodes.tolist():
        if code == LITERAL:
            names.append(float(program.literals[a]))
        elif code == POWER:
            names.append(f"**{b}")
        elif code >= FIRST_OPERATOR:
            names.append(NAMES[code])
    return names


@pytest.mark.parametrize(
    ("text", "operators"),
    [
        ("x", []),
        ("3", [3.0]),
        ("-x", [-1.0, "*"]),
        ("x - y", ["-"]),
        ("y - x", ["-"]),
        ("c0 - x - y", ["-", "-"]),
        ("x - 3", [3.0, "-"]),
        ("3 - x", [3.0, "-"]),
        ("-x - 3", [-3.0, "-"]),
        ("-x - y", [-1.0, "*", "-"]),
        ("x - 2*y", [2.0, "*", "-"]),
        ("x/y", ["/"]),
        ("x/(c0*y)", ["*", "/"]),
        ("1/x", [1.0, "/"]),
        ("2/(3*x)", [2 / 3, "/"]),
        ("sqrt(x)", ["sqrt"]),
        ("1/sqrt(x)", [1.0, "sqrt", "/"]),
        ("y/sqrt(x)", ["sqrt", "/"]),
        ("x**2", ["**2"]),
        ("y/x**2", ["**2", "/"]),
        ("x**2.5", [2.5, "pow"]),
        ("x**c0", ["pow"]),
        ("2**x", [2.0, "pow"]),
        ("x**y", ["pow"]),
        ("exp(-x)", [-1.0, "*", "exp"]),
        ("x/3", [1 / 3, "*"]),
        ("sqrt(2)*pi*x", [np.sqrt(2) * np.pi, "*"]),
        ("x**10000", ["**10000"]),
        ("1e-19*x", [1e-19, "*"]),
        ("123456789012345678901*x", [123456789012345678901.0, "*"]),
        ("abs(x) + tanh(y)", ["abs", "tanh", "+"]),
    ],
)
def test_tables_have_the_operators_that_one_would_write(text, operators):
    assert sorted(table(text), key=str) == sorted(operators, key=str)


def test_common_parts_are_shared():
    # Figure 1 of the paper.
    assert Equation("x0 + x0*x1", ["x0", "x1"]).complexity == 4
    assert Equation("sin(x*y) + exp(x*y)", ["x", "y"]).complexity == 6
    assert Equation("c0*x + c0", ["x"]).complexity == 4


def test_a_unary_operator_repeats_its_argument():
    assert Equation("sin(x)", ["y", "x"]).program.nodes.tolist() == [
        [VARIABLE, 1, 0],
        [8 + 4, 0, 0],
    ]


def test_entries_of_leaves_are_places():
    program = Equation("b*y + a", ["x", "y"], parameters=["a", "b"]).program
    rows = program.nodes.tolist()
    assert [VARIABLE, 1, 0] in rows
    assert [PARAMETER, 0, 0] in rows and [PARAMETER, 1, 0] in rows
    assert program.n_parameters == 2
    values = evaluate(program, np.array([[10.0, 2.0]]), np.array([[0.0, 3.0]]))
    assert values.tolist() == [[16.0]]


@settings(deadline=None, derandomize=True, max_examples=300)
@given(equation_texts())
def test_tables_are_in_order_without_idle_or_double_nodes(text):
    rows = Equation(text, ["x", "y"]).program.nodes.tolist()
    used = {len(rows) - 1}
    for place, (code, a, b) in enumerate(rows):
        arguments = {a} if code == POWER else {a, b} if code >= FIRST_OPERATOR else set()
        assert all(argument < place for argument in arguments)
        used |= arguments
    assert used == set(range(len(rows)))
    assert len(set(map(tuple, rows))) == len(rows)


@settings(deadline=None, derandomize=True, max_examples=300)
@given(equation_texts(), st.integers(0, 2**32 - 1))
def test_programs_have_the_values_of_their_expressions(text, seed):
    rng = np.random.default_rng(seed)
    equation = Equation(text, ["x", "y"])
    program, theta = equation.program, rng.uniform(0.5, 2.0, (1, len(equation.parameters)))
    X = rng.uniform(0.5, 2.0, (3, 2))
    for n in range(len(program.nodes)):
        # Cancellation and sines of large numbers would leave no digits to compare.
        part = Program(program.nodes[: n + 1], program.literals, program.n_parameters)
        size = np.abs(evaluate(part, theta, X))
        assume(np.all(np.isfinite(size)) and np.all(size < 1e3) and np.all(size > 1e-3))
    symbols = [real_symbol(name) for name in ("x", "y", *equation.parameters)]
    function = sympy.lambdify(symbols, equation.expression, "mpmath")

    def exact(digits):
        with mpmath.workdps(digits):
            return [complex(function(*map(mpmath.mpf, (*row, *theta[0])))) for row in X]

    assume(np.allclose(exact(15), exact(40), rtol=1e-10, atol=0.0))
    np.testing.assert_allclose(evaluate(program, theta, X)[0], exact(40), rtol=1e-6)
