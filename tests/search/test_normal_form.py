import numpy as np
import pytest

from pmsr.equation.expression import Equation
from pmsr.equation.operators import LITERAL, VARIABLE, operator_code
from pmsr.search.folding import Rules, fold

EXACT = Rules(absorb=False, variable_exponents=True, nested_functions=True)


def key(text):
    program = Equation(text, ("x", "y")).program
    return fold(program.nodes[None], program.literals[None], rules=EXACT).key[0]


@pytest.mark.parametrize(
    ("one", "other"), [("x*y + 2", "2 + y*x"), ("x/y", "x*y**-1"), ("x**2*x**3", "x**5")]
)
def test_equal_expressions_have_one_normal_form(one, other):
    assert key(one) == key(other) != key("x + y")


def fold_rows(*rows, literals=(1.0,)):
    return fold(np.array([rows], np.int32), np.array([literals]), rules=EXACT).program(0)


def test_what_cancels_is_a_number():
    x = (VARIABLE, 0, 0)
    for name, number in (("-", 0.0), ("/", 1.0)):
        folded = fold_rows(x, (operator_code(name), 0, 0))
        assert folded.nodes[:, 0].tolist() == [LITERAL] and folded.literals.tolist() == [number]
