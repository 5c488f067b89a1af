import numpy as np
import pytest

from pmsr.equation.expression import Equation
from pmsr.equation.program import evaluate
from pmsr.search.folding import Rules, fold

EXACT = Rules(absorb=False, variable_exponents=True, nested_functions=True)
X = np.random.default_rng(0).uniform(0.5, 2.0, (20, 2))


@pytest.mark.parametrize(
    ("text", "size"), [("x - y", 3), ("x/y", 3), ("x**3", 3), ("sqrt(x) - 2*y", 6), ("1/(x*y)", 5)]
)
def test_a_normal_form_is_spelled_with_few_nodes_and_the_same_values(text, size):
    program = Equation(text, ("x", "y")).program
    folded = fold(program.nodes[None], program.literals[None], rules=EXACT)
    assert folded.size[0] == size
    nothing = np.empty((1, 0))
    np.testing.assert_allclose(
        evaluate(folded.program(0), nothing, X), evaluate(program, nothing, X), rtol=1e-12
    )
