import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
import sympy

from pmsr.data import make_data
from pmsr.equation.expression import Equation
from pmsr.equation.operators import OPERATORS, add_operator
from pmsr.equation.rules import arguments, denominators
from pmsr.evidence.model import _SymbolPrinter
from pmsr.evidence.surface import Surface
from pmsr.evidence.volume import log_no_alias, log_no_pole, log_volume

X = np.linspace(0.5, 4.0, 12)
DATA = make_data(X, X + 0.1 * np.sin(40.0 * X))


def compiled(text, make):
    """A function of theta, compiled from the predictions' graph."""
    law = Equation(text, ["x0"])
    theta = [pt.dscalar(name) for name in law.parameters]
    tensors = {"x0": pt.constant(X)} | dict(zip(law.parameters, theta, strict=True))
    mu = pt.broadcast_to(_SymbolPrinter(tensors).doprint(law.expression), (len(X),))
    return law, pytensor.function(theta, make(law, tensors, mu, theta), on_unused_input="ignore")


@pytest.mark.parametrize(
    "text", ["c0*x0/(c1 + x0)", "c0*exp(-c1*x0) + c2*abs(x0 - c3)", "c0*x0**c1 + tanh(c2*x0)"]
)
def test_the_volume_is_that_of_the_compiled_sums(text):
    law, volume = compiled(text, lambda law, tensors, mu, theta: log_volume(mu, theta))
    rng = np.random.default_rng(0)
    theta = rng.uniform(0.3, 1.5, (5, len(law.parameters)))
    look = Surface.of(law.program, DATA).look(theta)
    assert [float(volume(*row)) for row in theta] == pytest.approx(look.log_volume, abs=1e-8)


def test_the_volume_is_differentiable():
    def gradient(law, tensors, mu, theta):
        return pt.grad(log_volume(mu, theta), theta[1])

    _, slope = compiled("c0*exp(c1*x0)", gradient)
    _, volume = compiled("c0*exp(c1*x0)", lambda law, tensors, mu, theta: log_volume(mu, theta))
    step = 1e-5
    difference = (volume(2.0, 0.3 + step) - volume(2.0, 0.3 - step)) / (2.0 * step)
    assert float(slope(2.0, 0.3)) == pytest.approx(float(difference), rel=1e-6)


@pytest.mark.parametrize(
    "text", ["c0*x0/(c1 + x0)", "c0/(c1 + x0)**2", "c0*sin(c1*x0)", "c0*tan(x0/c1)", "c0/x0 + c1"]
)
def test_the_rules_are_those_of_the_compiled_sums(text):
    assert_rules_agree(text)


@pytest.mark.parametrize(
    ("form", "text"),
    [
        (lambda x: sympy.sin(x) / x, "c0*own(c1*x0)"),
        (lambda x: sympy.tan(x / 3 + 1), "c0*own(c1*x0)"),
        (lambda x: 1 / (x**2 - 4), "c0*own(c1*x0)"),
        (lambda x, y: sympy.cos(y) / (x + y), "own(c0*x0, c1 - x0)"),
    ],
)
def test_the_rules_see_what_stands_inside_an_operator_of_ones_own(form, text):
    add_operator("own", form)
    try:
        assert_rules_agree(text)
    finally:
        del OPERATORS["own"]


def assert_rules_agree(text):
    def rules(law, tensors, mu, theta):
        symbols = [s for s in law.expression.free_symbols if s.name in law.parameters]
        printer = _SymbolPrinter(tensors)
        log = pt.constant(0.0)
        for below in denominators(law.expression, symbols):
            log = log + log_no_pole(printer.doprint(below))
        for name, argument, _ in arguments(law.expression, symbols):
            log = log + log_no_alias(name, printer.doprint(argument), None, len(DATA.y))
        return log

    law, log = compiled(text, rules)
    theta = np.random.default_rng(0).normal(0.0, 4.0, (200, 2))
    expected = Surface.of(law.program, DATA).obeys(theta)
    assert [bool(log(*row) == 0.0) for row in theta] == expected.tolist()
    assert not expected.all() or text == "c0/x0 + c1"
