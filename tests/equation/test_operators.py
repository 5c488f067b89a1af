import math
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytensor.tensor as pt
import pytest
import sympy

import pmsr
from pmsr.equation.operators import (
    OPERATORS,
    Operator,
    add_operator,
    derive_operator,
    operator_code,
)

POINTS = {1: [(0.3,), (1.7,), (2.9,)], 2: [(0.3, 1.2), (1.7, 0.4), (2.9, -1.5)]}


@pytest.mark.parametrize("row", OPERATORS.values(), ids=lambda row: row.name)
def test_the_three_forms_of_every_row_agree(row):
    for arguments in POINTS[row.arity]:
        value = row.value(*arguments)
        symbolic = float(row.sympy(*map(sympy.Float, arguments)))
        tensor = float(row.pytensor(*(pt.as_tensor(a) for a in arguments)).eval())
        np.testing.assert_allclose([symbolic, tensor], value, rtol=1e-12)


@pytest.mark.parametrize("row", OPERATORS.values(), ids=lambda row: row.name)
def test_the_derivative_of_every_row_is_that_of_its_sympy_form(row):
    symbols = sympy.symbols("a b", real=True)[: row.arity]
    for arguments in POINTS[row.arity]:
        place = dict(zip(symbols, arguments, strict=True))
        exact = [float(sympy.diff(row.sympy(*symbols), s).subs(place)) for s in symbols]
        ours = np.atleast_1d(row.derivative(*arguments, row.value(*arguments)))
        np.testing.assert_allclose(ours, exact, rtol=1e-12)


def test_codes_are_places_in_the_table():
    codes = [operator_code(name) for name in OPERATORS]
    assert codes == list(range(codes[0], codes[0] + len(codes)))


@pytest.mark.parametrize(
    ("name", "arity", "match"),
    [
        ("sin", 1, "'sin' exists already"),
        ("a b", 1, "must be an identifier, got 'a b'"),
        ("third", 3, "arity must be 1 or 2, got 3"),
        ("f0", 1, "reads as a number or a parameter"),
        ("pi", 1, "reads as a number or a parameter"),
        ("e", 1, "reads as a number or a parameter"),
        ("lambda", 1, "must be an identifier, got 'lambda'"),
    ],
)
def test_a_row_that_cannot_work_is_refused(name, arity, match):
    with pytest.raises(ValueError, match=match):
        add_operator(Operator(name, arity, abs, abs, lambda a: a, lambda a, v: 1.0))


def test_a_row_that_numba_cannot_read_or_with_a_wrong_derivative_is_refused():
    with pytest.raises(ValueError, match="must be Python functions"):
        add_operator(Operator("sinh", 1, sympy.sinh, pt.sinh, math.sinh, math.cosh))
    with pytest.raises(ValueError, match="derivative of 'cosh' at"):
        add_operator(
            Operator("cosh", 1, sympy.cosh, pt.cosh, lambda a: np.cosh(a), lambda a, v: 5.0)
        )
    with pytest.raises(ValueError, match="must be an Operator, got 'sinh'"):
        add_operator("sinh")
    assert "sinh" not in OPERATORS and "cosh" not in OPERATORS


ADD_A_ROW = """
import numpy as np, pytensor.tensor as pt, sympy
import pmsr
from pmsr.equation.program import evaluate, evaluate_jacobian
X = np.linspace(0.1, 1.0, 8)[:, None]
old = pmsr.Equation("c0*sin(x)", ["x"])
before = evaluate(old.program, np.array([[2.0]]), X)
pmsr.add_operator(pmsr.Operator(
    "cube", 1, sympy.Function("cube", real=True), lambda a: a**3, lambda a: a * a * a,
    lambda a, v: 3.0 * a * a,
))
new = pmsr.Equation("c0*cube(c1*x)", ["x"])
values, jacobian = evaluate_jacobian(new.program, np.array([[2.0, 3.0]]), X)
np.testing.assert_allclose(values[0], 2 * 27 * X[:, 0]**3, rtol=1e-14)
np.testing.assert_allclose(jacobian[0, 1], 2 * 3 * 9 * X[:, 0]**3, rtol=1e-14)
assert np.array_equal(evaluate(old.program, np.array([[2.0]]), X), before)
y = 5 * X[:, 0]**3 + 0.01 * np.cos(40 * X[:, 0])
model = pmsr.build_model(pmsr.Equation("c0*cube(x)", ["x"]), X, y)
evidence = pmsr.compute_evidence(pmsr.Equation("c0*cube(x)", ["x"]), X, y, random_seed=0)
assert evidence.failure is None and abs(evidence.theta[0] - 5) < 0.1, evidence
print("a row is enough")
"""


def test_a_row_is_derived_from_its_sympy_form():
    row = derive_operator("sinc", lambda x: sympy.sin(x) / x)
    assert row.arity == 1 and row.value(2.0) == math.sin(2.0) / 2.0
    assert row.pytensor(pt.constant(2.0)).eval() == pytest.approx(row.value(2.0))
    row = derive_operator("hill", lambda x, k: x**2 / (k**2 + x**2))
    value = row.value(3.0, 2.0)
    assert row.derivative(3.0, 2.0, value) == pytest.approx((24 / 169, -36 / 169))


@pytest.mark.parametrize(
    ("form", "message"),
    [
        (lambda x: math.sin(x), "must be made of SymPy functions"),
        (lambda x: x + 1 / 0, "must be made of SymPy functions.*division by zero"),
        (lambda x: sympy.Integer(3), "must be a SymPy expression in its arguments, got 3"),
        (lambda x, y, z: x, "must have 1 or 2 arguments, got x, y, z"),
        (sympy.Max, "must have 1 or 2 arguments, got .args"),
        (lambda x: sympy.I * x, "is not real: I.a"),
        (lambda x: sympy.sqrt(-1 - x**2), "is not real"),
        (
            lambda x: sympy.Mod(x, 1),
            "Derivative.Mod.a, 1., a., a part of the form of 'mine', has no",
        ),
        (lambda x: sympy.zeta(x), "no counterpart in Python's math"),
    ],
)
def test_a_form_that_cannot_be_derived_is_refused(form, message):
    with pytest.raises(ValueError, match=message):
        add_operator("mine", form)
    assert "mine" not in OPERATORS


@pytest.mark.parametrize(
    ("form", "place", "value", "slope"),
    [
        (lambda x: sympy.sin(x) / x, 0.0, 1.0, 0.0),
        (lambda x: (sympy.exp(x) - 1) / x, 0.0, 1.0, 0.5),
        (lambda x: sympy.log(x) / (x - 1), 1.0, 1.0, -0.5),
        (lambda x: x / sympy.tanh(x), 0.0, 1.0, 0.0),
        (sympy.sinc, 0.0, 1.0, 0.0),
        (lambda x: sympy.sin(sympy.pi * x) / (sympy.pi * x), 0.0, 1.0, 0.0),
    ],
)
def test_where_a_form_is_0_over_0_it_has_its_limit(form, place, value, slope):
    row = derive_operator("mine", form)
    assert row.value(place) == pytest.approx(value, rel=1e-14)
    assert row.derivative(place, value) == pytest.approx(slope, rel=1e-14, abs=1e-15)
    a = pt.dscalar()
    tensor = row.pytensor(a)
    at = tensor.eval({a: place}), pt.grad(tensor, a).eval({a: place})
    np.testing.assert_allclose(at, [value, slope], rtol=1e-14, atol=1e-15)
    # Next to the gap, against 50 digits.
    x = sympy.Symbol("x", real=True)
    for distance in (1e-12, 1e-7, 1e-3, 0.0299, 0.0301, 0.3):
        near = place + distance
        exact = [float(one.evalf(50, subs={x: near})) for one in (form(x), form(x).diff(x))]
        ours = row.value(near), row.derivative(near, row.value(near))
        np.testing.assert_allclose(ours, exact, rtol=1e-11, atol=1e-11)


def test_a_pole_stays_one():
    row = derive_operator("mine", lambda x: sympy.cos(x) / x)
    with pytest.raises(ZeroDivisionError):
        row.value(0.0)


@pytest.mark.parametrize(
    "form",
    [
        lambda x: sympy.Max(x, 0),
        lambda x: sympy.Piecewise((0, x < 0), (x, True)),
        lambda x: sympy.Piecewise((x, (x >= 0) & (x < 9)), (0, (x < 0) | (x > 20)), (9, True)),
    ],
)
def test_a_form_in_pieces_is_each_of_them(form):
    row = derive_operator("ramp", form)
    a = pt.dscalar()
    tensor = row.pytensor(a)
    for x, value, slope in ((-1.5, 0.0, 0.0), (2.5, 2.5, 1.0)):
        assert (row.value(x), row.derivative(x, value)) == (value, slope)
        assert (tensor.eval({a: x}), pt.grad(tensor, a).eval({a: x})) == (value, slope)


@pytest.mark.parametrize(
    ("form", "values", "slopes"),
    [
        (lambda x: sympy.Min(1, sympy.Max(0, x)), (0.0, 0.25, 1.0), (0.0, 1.0, 0.0)),
        (lambda x: sympy.real_root(x, 3), (-(2 ** (1 / 3)), 0.25 ** (1 / 3), 4 ** (1 / 3)), None),
        (sympy.sign, (-1.0, 1.0, 1.0), (0.0, 0.0, 0.0)),
        (sympy.asinh, (math.asinh(-2.0), math.asinh(0.25), math.asinh(4.0)), None),
        (lambda x: sympy.pi * x**2, (4 * math.pi, math.pi / 16, 16 * math.pi), None),
        (lambda x, n=3: x**n, (-8.0, 1 / 64, 64.0), (12.0, 3 / 16, 48.0)),
    ],
)
def test_forms_may_hold_what_sympy_has(form, values, slopes):
    row = derive_operator("mine", form)
    a = pt.dscalar()
    tensor = row.pytensor(a)
    for k, x in enumerate((-2.0, 0.25, 4.0)):
        assert row.value(x) == pytest.approx(values[k], rel=1e-14)
        assert tensor.eval({a: x}) == pytest.approx(values[k], rel=1e-14)
        slope = row.derivative(x, row.value(x))
        assert pt.grad(tensor, a).eval({a: x}) == pytest.approx(slope, rel=1e-12)
        assert slopes is None or slope == slopes[k]


def test_a_form_of_two_arguments_is_written_for_pytensor():
    row = derive_operator("angle", sympy.atan2)
    a, b = pt.dscalars("a", "b")
    tensor = row.pytensor(a, b)
    assert tensor.eval({a: 1.0, b: -2.0}) == row.value(1.0, -2.0) == math.atan2(1.0, -2.0)


ADD_A_FORM = """
import numpy as np, sympy
import pmsr
pmsr.add_operator("logistic", lambda x: 1 / (1 + sympy.exp(-x)))
x = np.linspace(-2.0, 2.0, 30)
y = 3 / (1 + np.exp(-2 * x)) + 0.05 * np.cos(40 * x)
law = pmsr.Equation("c0*logistic(c1*x0)", ["x0"])
found = pmsr.weigh_equations([law], x[:, None], y, random_seed=0).best
np.testing.assert_allclose(found.theta, [3.0, 2.0], rtol=0.03)
model = found.to_pymc()
regressor = pmsr.BayesianSymbolicRegressor(
    ("*", "logistic"), population_size=12, generations=2, random_state=0, verbose=False, n_jobs=2,
    search=pmsr.Search(n_finalists=3, n_enumerated=100, n_islands=2, refresh=2),
).fit(x[:, None], y)
print("a form is enough:", regressor.best_.equation)
"""


@pytest.mark.slow
def test_one_form_is_enough_for_a_new_operator(tmp_path):
    environment = dict(os.environ, NUMBA_CACHE_DIR=str(tmp_path))
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", ADD_A_FORM],
        capture_output=True,
        text=True,
        env=environment,
        cwd=Path(__file__).parent,
    )
    assert "a form is enough: c0*logistic(c1*x0)" in done.stdout, done.stderr


@pytest.mark.slow
def test_one_new_row_is_enough_for_a_new_operator(tmp_path):
    # In a process with a cache of its own, because the loops are compiled anew for the table.
    environment = dict(os.environ, NUMBA_CACHE_DIR=str(tmp_path))
    done = subprocess.run(
        [sys.executable, "-c", ADD_A_ROW],
        capture_output=True,
        text=True,
        env=environment,
        cwd=Path(__file__).parent,
    )
    assert "a row is enough" in done.stdout, done.stderr


def test_what_was_saved_with_an_operator_that_is_not_there_says_what_to_add(tmp_path):
    add_operator("mine", lambda x: 1 / (1 + x**2))
    try:
        X = [[1.0], [2.0], [3.0], [4.0]]
        found = pmsr.weigh_equations(["c0*mine(x0)"], X, [0.5, 0.21, 0.1, 0.06], random_seed=0)
        found.save(tmp_path / "saved")
        assert str(pmsr.load(tmp_path / "saved").best.equation) == "c0*mine(x0)"
    finally:
        del OPERATORS["mine"]
    with pytest.raises(ValueError, match="saved with the operator 'mine', which is not there"):
        pmsr.load(tmp_path / "saved")
