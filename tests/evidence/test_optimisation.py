import numpy as np
import pytest

from pmsr.data import make_data
from pmsr.equation.expression import Equation
from pmsr.equation.program import evaluate
from pmsr.evidence.optimisation import bfgs, levenberg_marquardt

LAWS = [("c0*exp(c1*x0)", (2.0, -0.7)), ("c0*x0/(c1 + x0)", (3.0, 1.5)), ("c0*x0**c1", (2.0, 1.7))]


@pytest.mark.parametrize(("text", "truth"), LAWS)
def test_both_optimisers_end_where_data_without_noise_came_from(text, truth):
    program, x = Equation(text, ["x0"]).program, np.linspace(0.3, 4.0, 15)
    data = make_data(x, evaluate(program, np.array([truth]), x[:, None])[0])
    start = np.array(truth) * [1.3, 0.7]
    theta, converged = levenberg_marquardt(program, data, start, retry=True)
    assert converged
    # Where the squared error is flat, its minimum is known to the root of the rounding error.
    np.testing.assert_allclose(theta, truth, rtol=1e-7)
    theta, _ = bfgs(program, data, start, np.abs(start))
    np.testing.assert_allclose(theta, truth, rtol=1e-4)
