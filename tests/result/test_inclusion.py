import numpy as np
import pytest

from pmsr.data import load_galileo
from pmsr.equation.expression import Equation
from pmsr.result.comparison import weigh_equations
from pmsr.result.inclusion import operators_of, tabulate_inclusion
from pmsr.settings import QUICK


@pytest.mark.parametrize(
    ("text", "operators"),
    [
        ("c0", ""),
        ("c0*x", "*"),
        ("-x", ""),
        ("c0 - x", "+"),
        ("c0/x", "/"),
        ("1/x", "/"),
        ("c0*x/(c1 + x)", "* + /"),
        ("sqrt(x)", "sqrt"),
        ("c0/sqrt(x)", "/ sqrt"),
        ("x**2", "pow"),
        ("c0*x**(-3)", "/ pow"),
        ("c0**x", "pow"),
        ("exp(-x)", "exp"),
        ("sin(x) + c0*tanh(abs(x))", "sin + * tanh abs"),
    ],
)
def test_operators_are_those_of_the_law_and_not_of_its_spelling(text, operators):
    assert operators_of(Equation(text, ["x"])) == set(operators.split())


def test_what_is_in_every_law_is_certain_and_what_is_in_none_impossible():
    X, y = load_galileo("shelf")
    X = X.assign(T=[1.0, 2.0, 1.0, 3.0, 2.0])
    laws = ["c0*sqrt(H)", "c0 + c1*H", "c0*H**c1"]
    result = weigh_equations(laws, X, y, settings=QUICK, random_seed=1)
    table = result.inclusion
    assert table.index[:2].to_list() == ["H", "T"]
    assert table["kind"].to_list()[:2] == ["variable", "variable"]
    share = dict(zip(result.names, result.probabilities, strict=True))
    expected = {
        "H": 1.0,
        "T": 0.0,
        "*": 1.0,
        "sqrt": share["c0*sqrt(H)"],
        "pow": share["c0*H**c1"],
        "+": share["c0 + c1*H"],
    }
    assert table["probability"].to_dict() == pytest.approx(expected)


def test_what_was_only_screened_is_left_out():
    result = weigh_equations(["c0*H"], *load_galileo("shelf"), settings=QUICK, random_seed=1)
    table = tabulate_inclusion(result.equations, np.array([0.5]), ["H"])
    assert table["probability"].to_dict() == {"H": 1.0, "*": 1.0}
