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


def test_numbers_are_what_they_are_but_for_rounding():
    root, times, plus, over = map(operator_code, ("sqrt", "*", "+", "/"))
    x, two = (VARIABLE, 0, 0), (LITERAL, 0, 0)
    rooted = (two, (root, 0, 0), (times, 1, 1), x, (plus, 2, 3))  # sqrt(2)*sqrt(2) + x
    folded = fold_rows(*rooted, literals=(2.0,))
    assert 2.0**0.5 * 2.0**0.5 != 2.0 and folded.literals.tolist() == [2.0]
    # 1/49 of 49, which is not one in floating-point numbers: x over it is x.
    shared = (two, (LITERAL, 1, 0), (over, 1, 0), (times, 2, 0), x, (times, 3, 4))
    folded = fold_rows(*shared, literals=(49.0, 1.0))
    assert 1.0 / 49.0 * 49.0 != 1.0 and folded.nodes[:, 0].tolist() == [VARIABLE]
    # A number of one's own, as near to a whole one as measurements are, stays.
    kept = fold_rows(x, two, (times, 0, 1), literals=(1.0000001,))
    assert kept.literals.tolist() == [1.0000001]
