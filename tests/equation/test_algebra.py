import math
import time

import pytest
import sympy
from sympy import Float, Integer, Rational

from pmsr.equation.algebra import (
    TooLarge,
    apply_operator,
    check_size,
    constant_value,
    describe_failure,
    power,
    read_number,
    real_symbol,
    settle,
    tidy,
    tidy_number,
    without_cot,
)
from pmsr.equation.grammar import parse
from pmsr.equation.operators import OPERATORS

x, y = real_symbol("x"), real_symbol("y")


def test_a_root_of_a_square_is_an_absolute_value():
    assert apply_operator("sqrt", x**2) == sympy.Abs(x)


@pytest.mark.parametrize("name", OPERATORS)
def test_every_operator_has_a_form_for_symbols(name):
    arguments = [x, y][: OPERATORS[name].arity]
    assert apply_operator(name, *arguments).free_symbols == set(arguments)


def test_absolute_values_stay_real():
    # SymPy's Abs answers exp(cos(atan2(0, x)/2)*sqrt(Abs(x))).
    assert apply_operator("abs", sympy.exp(sympy.sqrt(x))) == sympy.exp(sympy.sqrt(x))
    assert apply_operator("abs", y * sympy.exp(sympy.sqrt(x))).has(sympy.atan2) is False
    assert apply_operator("abs", -2 * sympy.sqrt(x)) == 2 * sympy.sqrt(x)
    assert apply_operator("abs", x * sympy.log(y)) == sympy.Abs(x) * sympy.Abs(sympy.log(y))
    assert apply_operator("abs", 1 / sympy.log(y)) == 1 / sympy.Abs(sympy.log(y))
    assert apply_operator("abs", (x + 1) / (x - y)) == sympy.Abs((x + 1) / (x - y))


def test_a_shifted_tangent_needs_no_cotangent():
    assert apply_operator("tan", x + sympy.pi / 2) == -1 / sympy.tan(x)
    assert without_cot(1 + sympy.cot(x)) == 1 + 1 / sympy.tan(x)


def test_towers_over_a_hyperbolic_tangent_are_built_at_once():
    start = time.process_time()
    tower = x**x
    for name in ("cos", "exp", "tan", "sqrt", "exp", "exp", "tan", "tanh", "abs", "tanh"):
        tower = apply_operator(name, tower)
    assert time.process_time() - start < 2


def test_towers_of_hyperbolic_tangents_of_real_numbers_are_built_at_once():
    start, tower = time.process_time(), x
    for _ in range(20):
        tower = power(x + apply_operator("tanh", tower), Integer(2))
    assert time.process_time() - start < 2
    assert tower.is_real and apply_operator("tanh", tower).is_finite


PRODUCT = "*".join(f"(x + sqrt(y + {i}))" for i in range(1, 13))


@pytest.mark.parametrize(
    "text",
    [
        "sqrt((x + " * 25 + "sqrt(x)" + ")**2)" * 25,
        "sqrt(1/(x + " * 8 + "x" + "))" * 8,
        "sqrt(pow(x/(1 + y/" * 15 + "x" + "), y))" * 15,
        "-(0.5**0.5**" * 35 + "x" + ")" * 35,
        "2**(x - pow(" * 15 + "x" + ", y))" * 15,
        f"sqrt(({PRODUCT})**y)",
        f"sqrt((1 + {PRODUCT})**2)",
    ],
)
def test_powers_about_which_sympy_would_think_for_ever_are_refused_or_read_at_once(text):
    start = time.process_time()
    try:
        parse(text, lambda name, is_quoted: real_symbol(name))
    except TooLarge as error:
        assert "nested too deeply" in str(error)
    assert time.process_time() - start < 2


@pytest.mark.parametrize(
    "text",
    [
        "sqrt(1 + " * 15 + "x" + ")" * 15,
        "1/(1 + x/" * 15 + "x" + ")" * 15,
        "sqrt(x*sin(exp(log(" * 4 + "x" + "))))" * 4,
        "sqrt(1/(x + " * 3 + "x" + "))" * 3,
        "x**" * 6 + "x",
        "sqrt(" + "*".join(f"(x + {i})" for i in range(100)) + ")",
        "sqrt((x + 1)**2 + (y + 1)**2)/sqrt(1 + 1/sqrt(x**2 + y**2))",
    ],
)
def test_what_people_write_is_not_too_deep(text):
    assert parse(text, lambda name, is_quoted: real_symbol(name)).has(x)


def test_the_root_of_a_float_times_a_root_is_found():
    # SymPy alone runs in a circle here.
    inner = x ** Rational(3, 2) * (sympy.sqrt(2) * x ** Rational(3, 2) + sympy.sqrt(2 * x))
    root = apply_operator("sqrt", Float(0.1) * Integer(2) ** Rational(1, 4) * sympy.sqrt(inner))
    assert root.as_coeff_Mul()[0] == pytest.approx(math.sqrt(0.1 * 2**0.25))


def test_towers_of_numbers_become_floats():
    start, tower = time.process_time(), Integer(2)
    for _ in range(45):
        tower = check_size(power(Rational(1, 2), tower))
    assert time.process_time() - start < 2
    assert float(tower) == pytest.approx(0.641185744504986)  # the solution of x = 2**(-x)


def test_division_by_a_zero_that_is_a_float_is_refused():
    with pytest.raises(ValueError, match="infinite, like 1/0"):
        apply_operator("/", Float(2.5), Float(0.0))


def test_long_powers_of_numbers_become_floats():
    assert power(Integer(3), Integer(4)) == 81
    assert power(Integer(3), Integer(100)).is_Float
    assert power(2 * x, Integer(100)).as_coeff_Mul()[0].is_Float


def test_powers_of_reciprocals_are_written_in_one_way():
    assert power(Rational(1, 2), x) == power(Integer(2), -x)


def test_settling_reaches_sympys_own_fixed_point():
    root = sympy.sqrt(sympy.Abs(x**3))
    assert settle(root) == sympy.Abs(x) ** Rational(3, 2)
    assert settle(settle(root)) == settle(root)


def test_settling_replaces_symbols():
    assert settle(sympy.Symbol("x") ** 2 + 1, {sympy.Symbol("x"): x}) == x**2 + 1


@pytest.mark.parametrize(
    ("expression", "match"),
    [
        (x + sympy.oo, "real and finite"),
        (x * sympy.I, "not real"),
        (x / Integer(0), "infinite"),
        (sympy.nan, "undefined"),
        (x + Float(10) ** 400, "beyond the range of floats"),
        (x + Integer(10) ** 400, "beyond the range of floats"),
        (sympy.pi * Float(1e308) * x, "beyond the range of floats"),
        (sympy.log(sympy.exp(700)) * sympy.exp(1400) * x, "beyond the range of floats"),
        (Integer(0) ** x, "zero base"),
        (sympy.Max(x, y), "No operator for SymPy's Max. Available: "),
    ],
)
def test_what_is_not_real_finite_and_known_is_refused(expression, match):
    with pytest.raises(ValueError, match=match):
        tidy(expression)


def test_numbers_are_tidied_inside_an_expression():
    assert tidy(x ** Float(0.5)) == sympy.sqrt(x)
    assert tidy(Float(0.1) * 5 * x) == x / 2
    assert tidy(x + 2**64).args[0].is_Float


@pytest.mark.parametrize(
    ("token", "number"),
    [
        ("7", Integer(7)),
        ("007", Integer(7)),
        ("2.", Integer(2)),
        (".5", Rational(1, 2)),
        ("0.015625", Rational(1, 64)),
        ("1e3", Integer(1000)),
        ("9223372036854775807", Integer(2**63 - 1)),
        ("0.1", Float(0.1)),
        ("1e-19", Float(1e-19)),
        ("0.0078125", Float(1 / 128)),
        ("9223372036854775808", Float(2.0**63)),
        ("0e5", Integer(0)),
    ],
)
def test_numbers_are_exact_if_short(token, number):
    assert read_number(token) == number
    assert type(read_number(token)) is type(number)


@pytest.mark.parametrize("token", ["1e400", "1e-400", "9" * 400])
def test_numbers_that_no_float_holds_are_refused(token):
    with pytest.raises(ValueError, match="beyond the range of floats"):
        read_number(token)


def test_tidy_numbers_are_floats_of_the_machine():
    subnormal = Float(1) / Float(3) * Float(1e-318)
    assert tidy_number(subnormal) == Float(float(subnormal))


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        (sympy.sqrt(2) * sympy.pi, math.sqrt(2) * math.pi),
        (sympy.exp(Rational(1, 3)) - sympy.log(5), math.exp(1 / 3) - math.log(5)),
        (sympy.exp(sympy.exp(700)), math.inf),
        (sympy.sqrt(-1), math.nan),
        (sympy.log(-2), math.nan),
        (sympy.Pow(-8, Rational(1, 3)), math.nan),
        (Integer(10) ** 400, math.inf),
    ],
)
def test_constants_have_the_value_that_floats_give(expression, value):
    assert constant_value(expression) == pytest.approx(value, rel=1e-15, nan_ok=True)


def test_failures_are_named():
    assert "1/0" in describe_failure(sympy.zoo)
    assert "0/0" in describe_failure(sympy.nan)
    assert "sqrt(-1)" in describe_failure(sympy.I * sympy.sqrt(2))
    assert "1e308" in describe_failure(sympy.exp(1000))
