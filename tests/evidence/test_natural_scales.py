import numpy as np

from pmsr.data import load_galileo, make_data
from pmsr.equation.expression import Equation
from pmsr.evidence.natural_scales import natural_scales


def test_natural_scales_follow_the_units():
    data = make_data(*load_galileo("no_shelf"))
    law = Equation("k1*D**2/(1 + k2*D)", ["D"]).program
    other = make_data(data.X * 1e6, data.y * 1e-3, names=["D"])
    ratio = natural_scales(law, other) / natural_scales(law, data)
    np.testing.assert_allclose(ratio, [1e-15, 1e-6], rtol=1e-9)


def test_scales_that_overflow_are_not_used():
    data = make_data(np.linspace(1, 2, 9), 1e90 * np.linspace(1, 3, 9))
    program = Equation("sqrt(sqrt(sqrt(c0*x0))) + c1", ["x0"]).program
    with np.errstate(over="ignore"):
        assert np.isfinite(natural_scales(program, data)).all()
