import pytest

from pmsr.equation.expression import Equation
from pmsr.search.folding import Rules, fold

FREE = {"variable_exponents": True, "nested_functions": True}


def n_parameters(text, **options):
    program = Equation(text, ("x", "y")).program
    folded = fold(program.nodes[None], program.literals[None], rules=Rules(**FREE, **options))
    return int(folded.n_parameters[0])


@pytest.mark.parametrize(
    ("text", "n"),
    [("c0*c1*x", 1), ("c0 + x + c1", 1), ("exp(c0)*x", 1), ("c0*x/c1", 1), ("c0*x + c1*y", 2)],
)
def test_a_parameter_that_another_makes_idle_goes(text, n):
    assert n_parameters(text) == n


def test_nothing_is_absorbed_unless_asked():
    assert n_parameters("c0*(c1 + x)*c2", absorb=False) == 3
    assert n_parameters("c0*(c1 + x)*c2") == 2
