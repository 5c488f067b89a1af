import numpy as np
import pytest

from pmsr.equation.expression import Equation
from pmsr.equation.operators import operator_code
from pmsr.search.constraints import read_graph
from pmsr.search.genome import Genome, Primitives, equation_genome
from pmsr.settings import Search


@pytest.mark.parametrize(
    ("option", "text", "reason"),
    [
        (dict(max_parameters=1), "c0 + c1*H", "too many parameters"),
        (dict(max_complexity=5), "c0*H + c1*H*H", "too complex"),
        (dict(variable_exponents=False), "c0**H", "variable exponent"),
        (dict(variable_exponents=False), "c0**sqrt(H)", "variable exponent"),
        (dict(nested_functions=False), "c0 + sin(H*cos(H))", "nested functions"),
        (dict(nested_functions=True), "c0 + sin(H*cos(H))", None),
        (dict(nested_functions=False), "sin(H) + cos(sqrt(c0*H))", None),
        (dict(share_parameters=False), "c0*(c0 + sin(H))", "shared parameter"),
        (dict(share_parameters=False), "sin(c0 + H)*(c0 + H)", None),
        (dict(share_parameters=True), "c0*(c0 + sin(H))", None),
        (dict(operators=("+", "*", "sqrt", "abs")), "c0 + abs(H)", None),
    ],
)
def test_constraints_refuse(option, text, reason):
    operators = ("+", "*", "pow", "sqrt", "sin", "cos")
    search = Search(**{"operators": operators, **option})
    operators = search.operators
    genome = equation_genome(
        Equation(text, ["H"]), Primitives(operators, ("H",)), rng=np.random.default_rng(0)
    )
    reading = read_graph(genome, ("H",), search)
    assert (reading.program is None) == (reason is not None) and reading.refusal == reason


def test_functions_that_algebra_brings_in_are_refused():
    rows = np.array([[0, 0, 0], [6, 0, 0], [operator_code("sqrt"), 1, 1]], dtype=np.int32)
    reading = read_graph(Genome(rows), ("H",), Search(operators=("*", "sqrt")))
    assert reading.refusal == "operator abs"


def test_exponents_without_variables_are_allowed():
    operators = ("+", "*", "pow", "sqrt")
    genome = equation_genome(
        Equation("c0*H**c1", ["H"]), Primitives(operators, ("H",)), rng=np.random.default_rng(0)
    )
    assert read_graph(genome, ("H",), Search(operators=operators)).refusal is None


def test_graphs_that_are_no_equation_are_refused_with_a_key_that_says_why():
    rows = np.array([[0, 0, 0], [operator_code("-"), 0, 0], [operator_code("/"), 0, 1]])
    reading = read_graph(Genome(rows.astype(np.int32)), ("H",), Search(operators=("-", "/")))
    assert reading.key.startswith("! ") and reading.program is None
    assert reading.refusal == "not a real, finite expression"


@pytest.mark.parametrize(("fitness", "n_parameters"), [("evidence", 1), ("rmse", 2)])
def test_only_the_bayesian_search_does_algebra(fitness, n_parameters):
    search = Search(operators=("*",), fitness=fitness)
    genome = equation_genome(
        Equation("c0*c1*H", ["H"]), Primitives(("*",), ("H",)), rng=np.random.default_rng(0)
    )
    assert read_graph(genome, ("H",), search).program.n_parameters == n_parameters
