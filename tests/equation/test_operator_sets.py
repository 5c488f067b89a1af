import numpy as np
import pytest

from pmsr.data import make_data
from pmsr.equation.operator_sets import (
    _KNOWN_AS,
    _OTHERS,
    ALL,
    ARITHMETIC,
    SETS,
    describe_unknown,
    read_operators,
    usual_operators,
)
from pmsr.equation.operators import OPERATORS

X = np.array([1.0, 2.0, 3.0])


def test_sets_hold_operators_and_are_called_like_none():
    for name, members in SETS.items():
        assert name not in OPERATORS and set(members) <= set(OPERATORS)
        assert set(ARITHMETIC) <= set(members)
    assert set(read_operators([ALL])) == set(OPERATORS)


def test_operators_are_words_or_one_text():
    for words in (["+", "-", "*"], ["+ - *"], ["+,-,*"], ["+ -", "*", "+"]):
        assert read_operators(words) == ("+", "-", "*")
    assert read_operators(["trig", "exp"]) == (*SETS["trig"], "exp")


@pytest.mark.parametrize(
    ("x", "y", "left_out"),
    [
        (X, X, set()),
        (X, -X, set()),
        (X - 1.0, -X, {"log"}),  # zero: sqrt is defined there, log is not
        (-X, X, {"log"}),
        (-X, -X, {"log", "sqrt"}),
        (np.column_stack([-X, X]), -X, set()),
        (np.column_stack([-X, np.ones(3)]), -X, {"log", "sqrt"}),  # the positive one is constant
    ],
)
def test_the_usual_operators_are_those_that_the_data_allow(x, y, left_out):
    found = usual_operators(make_data(x, y))
    assert found == tuple(name for name in SETS["common"] if name not in left_out)


def test_what_is_no_operator_has_a_way_out():
    for name in (*_KNOWN_AS, "expp", "sine", "Sqrt", "comon"):
        if name not in OPERATORS:
            text = describe_unknown(name)
            assert "did you mean" in text or "integer powers come by themselves" in text
    for name in (*_OTHERS, "qqq"):
        assert "Available: *, +, -" in describe_unknown(name)
