import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from pmsr.equation.expression import Equation
from pmsr.equation.operators import BUILT_IN_ROWS, OPERATORS, Operator, add_operator
from pmsr.equation.program import evaluate, evaluate_jacobian

X = np.linspace(0.2, 2.0, 9)[:, None]

ADD_IN_A_WARM_PROCESS = """
import sys
import numpy as np, sympy
import pmsr
from pmsr.equation import descent, kernels
from pmsr.equation.program import evaluate, evaluate_jacobian
if sys.argv[1] == "added":
    pmsr.add_operator("wave", lambda x: sympy.sin(x) / x)
    pmsr.add_operator("hill", lambda x, k: x**2 / (k**2 + x**2))
X = np.linspace(-2.0, 2.0, 9)[:, None]
names = "wave(c0*x)*hill(x, c1)" if sys.argv[1] == "added" else "sin(c0*x)/(c1 + x)"
law = pmsr.Equation(names, ["x"])
values, jacobian = evaluate_jacobian(law.program, np.array([[2.0, 3.0]]), X)
if sys.argv[1] == "added":
    x = X[:, 0]
    np.testing.assert_allclose(values[0], np.sinc(2 * x / np.pi) * x**2 / (9 + x**2), atol=1e-14)
    np.testing.assert_allclose(
        jacobian[0, 1], np.sinc(2 * x / np.pi) * -6 * x**2 / (9 + x**2) ** 2, atol=1e-14
    )
for kernel in (kernels._jacobian, kernels._sweep, kernels._backward):
    print(sum(kernel.stats.cache_misses.values()))
"""


def test_an_operator_of_ones_own_leaves_the_loops_of_the_others_compiled(tmp_path):
    environment = dict(os.environ, NUMBA_CACHE_DIR=str(tmp_path))
    missed = {}
    for which in ("first", "added"):
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", ADD_IN_A_WARM_PROCESS, which],
            capture_output=True,
            text=True,
            env=environment,
            cwd=Path(__file__).parent,
        )
        assert done.returncode == 0, done.stderr
        missed[which] = sum(map(int, done.stdout.split()))
    assert missed["first"] > 0 and missed["added"] == 0


@pytest.mark.parametrize("row", BUILT_IN_ROWS, ids=lambda row: row.name)
def test_loops_compute_what_the_rows_of_the_table_say(row):
    law = row.name
    text = f"{law}(c0*x)" if row.arity == 1 else {"pow": "x**c0"}.get(law, f"x {law} c0")
    theta = np.array([[0.7]])
    values, jacobian = evaluate_jacobian(Equation(text, ["x"]).program, theta, X)
    a, b = (0.7 * X[:, 0], None) if row.arity == 1 else (X[:, 0], np.full(len(X), 0.7))
    arguments = [a] if row.arity == 1 else [a, b]
    exact = np.array([row.value(*one) for one in zip(*arguments, strict=True)])
    # Canonical forms may round otherwise: x - c0 is x + (-1)*c0.
    np.testing.assert_allclose(values[0], exact, rtol=1e-13, atol=1e-15)
    step = 1e-6
    ends = [
        evaluate(Equation(text, ["x"]).program, theta + sign * step, X)[0] for sign in (1.0, -1.0)
    ]
    # The error of central differences is of order step^2 and of rounding / step.
    np.testing.assert_allclose(jacobian[0, 0], (ends[0] - ends[1]) / (2 * step), atol=1e-7)


def test_a_row_that_raises_gives_no_number_instead_of_an_error():
    def value(a):
        if a > 1.0:
            raise ValueError("too large")
        return a

    add_operator(Operator("brittle", 1, None, None, value, lambda a, v: 1.0))
    try:
        nodes = Equation("abs(c0*x)", ["x"]).program
        code = list(OPERATORS).index("brittle") - list(OPERATORS).index("abs")
        changed = nodes.nodes.copy()
        changed[-1, 0] += code
        law = type(nodes).of(list(map(tuple, changed.tolist())), nodes.literals.tolist(), 1)
        values = evaluate(law, np.array([[1.0]]), X)[0]
    finally:
        del OPERATORS["brittle"]
    np.testing.assert_array_equal(np.isnan(values), X[:, 0] > 1.0)
    np.testing.assert_array_equal(values[X[:, 0] <= 1.0], X[X[:, 0] <= 1.0, 0])


def test_a_built_in_row_cannot_be_replaced():
    kept = OPERATORS["sin"]
    add_operator(Operator("half", 1, None, None, lambda a: 0.5 * a, lambda a, v: 0.5))
    try:
        OPERATORS["sin"] = Operator("sin", 1, None, None, lambda a: a, lambda a, v: 1.0)
        with pytest.raises(ValueError, match="built-in operator was taken out of the table or"):
            evaluate(Equation("c0*x", ["x"]).program, np.array([[1.0]]), X)
    finally:
        OPERATORS["sin"] = kept
        del OPERATORS["half"]
    assert evaluate(Equation("c0*x", ["x"]).program, np.array([[1.0]]), X).shape == (1, len(X))
