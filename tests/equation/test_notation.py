import numpy as np
import pytest
import sympy
from matplotlib.mathtext import MathTextParser

from pmsr.equation.expression import Equation
from pmsr.equation.notation import (
    identifiers,
    latex_lines,
    latex_number,
    latex_with_numbers,
    plus_minus,
    python_source,
    to_plain,
    typeset,
)
from pmsr.equation.operators import OPERATORS, add_operator
from pmsr.equation.program import evaluate

STRANGE = ["height (cm)", "σ", "fall time [s]", "a_b%{c}$", "<b>&", "x`y", "Δt [°²]", "lambda", "#"]
EQUATIONS = [
    ("c0*x**(1/3) + 1/x + abs(x - 2)", ["c0"]),
    ("tanh(c0*x)*pi + 0.1*x**-2 + log(x)/exp(2) + x**c1", ["c0", "c1"]),
    ("c0*sin(x) - c1*cos(x)/tan(x)", ["c0", "c1"]),
    ("c0 + x*0 + 3", ["c0"]),
    ("sqrt(x)", []),
]


@pytest.mark.parametrize(
    ("mean", "deviation", "text"),
    [
        (47.0889, 0.4968, "47.09 ± 0.50"),
        (-3.0, 0.0, "-3"),
        (2e9, 3e7, "(2.000 ± 0.030)e9"),
        (0.0, 0.5, "0.00 ± 0.50"),
        (5.0, np.nan, "5"),
        (-np.inf, 0.0, "-inf"),
        (1.0, 1e-30, "1.000000000000 ± 0.000000000000"),
    ],
)
def test_numbers_have_the_digits_that_their_error_leaves(mean, deviation, text):
    assert plus_minus(mean, deviation) == text


def test_exponents_become_powers_of_ten():
    assert latex_number("2e+09 ± 3e-07") == r"2 \times 10^{9} \pm 3 \times 10^{-7}"
    assert latex_number("(2.00 ± 0.03)e9") == r"(2.00 \pm 0.03) \times 10^{9}"
    assert typeset("(-2.00 ± 0.03)e-12") == "(−2.00 ± 0.03) × 10⁻¹²"
    assert typeset("-inf") == "−∞"


def test_numbers_take_the_place_of_parameters():
    equation = Equation("c0*x**2 + c1", ["x"])
    assert latex_with_numbers(equation, np.array([2.34567, -1.0])) == "2.346 x^{2} - 1.0"


# Matplotlib's own LaTeX has no escaped &.
@pytest.mark.parametrize("name", [name for name in STRANGE if "&" not in name])
def test_latex_of_strange_names_can_be_set(name):
    equation = Equation(f"c0*`{name.replace('`', '``')}`**2/(1 + c1)", [name])
    parser = MathTextParser("agg")
    parser.parse(f"${equation.latex()}$")
    parser.parse(f"${latex_with_numbers(equation, np.array([1.5, -2e-12]))}$")
    lines = latex_lines(name, equation, {"c0": "1.5 ± 0.1", "c1": "-2e-12 ± 1e-13"})
    # Matplotlib sets no aligned lines: one at a time.
    body = lines.removeprefix(r"$\displaystyle \begin{aligned}").removesuffix(r"\end{aligned}$")
    assert len(body.split(r" \\ ")) == 3
    for line in body.split(r" \\ "):
        parser.parse(f"${line.replace('&=', '=')}$")


def test_identifiers_are_distinct_names_that_python_reads_as_they_are():
    found = identifiers([*STRANGE, "µ", "μ", "class", "_x", "x y", "x_y"], taken=["height_cm"])
    assert len(set(found)) == len(found)
    namespace: dict = {}
    exec("; ".join(f"{name} = {k}" for k, name in enumerate(found)), namespace)
    assert [namespace[name] for name in found] == list(range(len(found)))
    assert found[0] == "height_cm_2" and found[1] == "σ" and found[7] == "lambda_"


@pytest.mark.parametrize(("text", "parameters"), EQUATIONS)
def test_the_source_computes_what_the_equation_does(text, parameters):
    equation = Equation(text, ["x", "not used"])
    assert list(equation.parameters) == parameters
    theta = np.array([0.1, 1 / 3])[: len(parameters)]
    namespace: dict = {}
    exec(python_source(equation, theta, "the result"), namespace)
    x = np.array([1, 2, 5])
    X = np.column_stack([x, x]).astype(float)
    expected = evaluate(equation.program, theta[None, :], X)[0]
    np.testing.assert_allclose(namespace["the_result"](x, x), expected, rtol=1e-14)


def test_no_name_leaves_its_comment_in_the_source():
    nasty = 'a"""\n    raise SystemExit\n    #'
    equation = Equation("c0*`" + nasty + "`", [nasty])
    namespace: dict = {}
    exec(python_source(equation, np.array([2.0]), nasty + "b"), namespace)
    functions = [value for name, value in namespace.items() if callable(value)]
    assert functions[-1](3.0) == 6.0


def test_an_operator_that_numpy_lacks_is_refused(with_softplus):
    with pytest.raises(ValueError, match=r"NumPy does not have. Use to_callable\(\)"):
        python_source(Equation("c0*softplus(x)", ["x"]), np.array([1.0]), "y")


@pytest.mark.parametrize(
    ("form", "text"),
    [
        (lambda x: sympy.sin(x) / x, "c0*mine(c1*x)"),  # SymPy has a sinc of its own
        (lambda x: sympy.sin(x) / x, "mine(mine(c0*x))"),
        (lambda x: x / (1 + x**2), "c0*mine(c1*x)"),
        (sympy.erf, "c0*mine(c1*x)"),
        (lambda x: sympy.Min(1, sympy.Max(0, x)), "c0*mine(x) + c1"),
        (lambda x, y: sympy.Max(x, y), "mine(x, c0)"),
    ],
)
@pytest.mark.parametrize("name", ["own", "sinc", "sinh", "erf", "floor"])
def test_an_operator_of_ones_own_is_written_out(form, text, name):
    add_operator(name, form)
    try:
        equation = Equation(text.replace("mine", name), ["x"])
        theta = np.array([0.7, 1.3])[: len(equation.parameters)]
        namespace: dict = {}
        exec(python_source(equation, theta, "y"), namespace)
        x = np.array([-1.5, 0.0, 1e-9, 0.4, 2.5])
        expected = evaluate(equation.program, theta[None, :], x[:, None])[0]
        np.testing.assert_allclose(namespace["y"](x), expected, rtol=1e-14)
        plain = to_plain(equation, theta)
        assert float(plain.subs("x", 0.4)) == pytest.approx(expected[3], rel=1e-14)
    finally:
        del OPERATORS[name]
