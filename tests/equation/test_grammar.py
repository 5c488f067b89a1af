import time

import pytest
import sympy
from hypothesis import given, settings
from strategies import equation_texts

from pmsr.equation.algebra import TooLarge, real_symbol
from pmsr.equation.expression import Equation
from pmsr.equation.grammar import has_repeats, parse, quoted, write

x, y, z = map(real_symbol, "xyz")
NAMES = {x: "x", y: "y", z: "z"}


def resolve(name, is_quoted):
    if name.startswith("unknown"):
        raise ValueError(f"Who is {name}?")
    return real_symbol(name)


def read(text, **options):
    return parse(text, resolve, **options)


@pytest.mark.parametrize(
    ("text", "expression"),
    [
        ("x + y - z", x + y - z),
        ("x - (y - z)", x - y + z),
        ("x/y/z", x / y / z),
        ("x/y*z", x * z / y),
        ("x/(y*z)", x / (y * z)),
        ("-x**2", -(x**2)),
        ("(-x)**2", x**2),
        ("2^3^2*x", 512 * x),
        ("x**y**z", x ** (y**z)),
        ("x**-y**2", x ** (-(y**2))),
        ("x**-2", x**-2),
        ("x*-y", -x * y),
        ("--+-x", -x),
        ("x^2", x**2),
        ("pow(x, 2)", x**2),
        ("x**0.5", sympy.sqrt(x)),
        ("sqrt(x) + exp(x)", sympy.sqrt(x) + sympy.exp(x)),
        ("abs(x)*log( y )", sympy.Abs(x) * sympy.log(y)),
        ("  x\n + \ty ", x + y),
        ("`x`*`a b`", x * real_symbol("a b")),
        ("`tick``ed`", real_symbol("tick`ed")),
        ("θ*µ_1", real_symbol("θ") * real_symbol("µ_1")),
        ("1/3", sympy.Rational(1, 3)),
        ("1e-3*x + 2.E1", sympy.Float(1e-3) * x + 20),
        ("3", sympy.Integer(3)),
    ],
)
def test_texts_are_read_as_python_would(text, expression):
    assert read(text) == expression


def test_sums_and_products_do_not_depend_on_the_order_of_writing():
    assert read("2*(x + 1)*y") == read("y*2*(x + 1)") == read("(x + 1)*y*2")


@pytest.mark.parametrize(
    ("text", "message", "caret"),
    [
        ("x +", "Expected a number, a name, a function or", 3),
        ("x * * y", "Expected a number, a name, a function or", 4),
        ("(x + y", 'Expected "\\)" or an operator', 6),
        ("x + y)", 'Unmatched "\\)"', 5),
        ("2x", "Expected an operator", 1),
        ("x y", "Expected an operator", 2),
        ("sin(x", 'Expected "\\)"', 5),
        ("sin()", "Expected a number", 4),
        ("sin(x, y)", "sin takes 1 argument.*got 2", 0),
        ("1 + pow(x)", "pow takes 2 argument.*got 1", 4),
        ("y = x", "Unexpected character '='. Give the right-hand side only", 2),
        ("x < y", "Unexpected character '<'", 2),
        ("x.real", "Unexpected character '.'", 1),
        ("x + `y", "Unexpected character '`'. A backquote is not closed", 4),
        ("x + ``", "Unexpected character '`'", 4),
        ("x; y", "Unexpected character ';'", 1),
        ('__import__("os")', "Unknown function '__import__'", None),
        ("ln(x)", "Unknown function 'ln'. Did you mean 'log'\\? Available: pow, sqrt, exp", 0),
        ("x + sinn(x)", "Unknown function 'sinn'. Did you mean 'sin'", 4),
        ("x(y + 1)", "Unknown function 'x'.*product of a name and a bracket", 0),
        ("x*unknown + y", "Who is unknown", 2),
        ("x + 1/0", "infinite, like 1/0", 6),
        ("x*log(0)", "infinite", 2),
        ("x*(y - y)/(x - x)", "infinite", 10),
        ("tan(pi0)*sqrt(-1)", "not real, like sqrt", 9),
        ("x*(-8)**(1/3)", "not real", 2),
        ("1e999", "beyond the range of floats", 0),
        ("x*9**9**4", "beyond the range of floats", 2),
    ],
)
def test_errors_point_at_the_place(text, message, caret):
    with pytest.raises(ValueError, match=message) as error:
        read(text)
    lines = str(error.value).split("\n")
    assert lines[-2] == "    " + text
    if caret is not None:
        assert lines[-1] == "    " + " " * caret + "^"


def test_errors_in_long_texts_show_the_neighbourhood():
    with pytest.raises(ValueError) as error:
        read("+".join(["x"] * 1000) + "+?" + "+x" * 1000)
    line, caret = str(error.value).split("\n")[-2:]
    assert len(line) < 110
    assert line[caret.index("^")] == "?"


@pytest.mark.parametrize(
    "text",
    [
        "9**9**4",
        "(2*x)**10000",
        "((((2*x)**64)**64)**64)**64",
        "((((x/2)**64)**64)**64)**64",
        "(1 + 1/3)**64**2",
        "exp(exp(exp(700)))",
        "sin(exp(exp(700)))",
        "1e300**2",
    ],
)
def test_numbers_beyond_floats_are_refused_at_once(text):
    start = time.perf_counter()
    with pytest.raises(ValueError, match=r"beyond the range of floats|not real"):
        read(text)
    assert time.perf_counter() - start < 2


@pytest.mark.parametrize("text", ["(x + 1)**10000", "2**(x*1000000000)", "10**(5e9*x)"])
def test_large_exponents_are_fast(text):
    start = time.perf_counter()
    read(text)
    assert time.perf_counter() - start < 2


@pytest.mark.parametrize(
    "text",
    [
        "9**9**9**9",
        "3**(1000000000+1/3)",
        "x + (1/3)**(900000000+1/2)",
        "sqrt(3)**10000000019",
        "abs(x/3)**(10000000019/2)",
        "log(1 - (x+3/8)**45761239297)",
        "(x/exp(1))**3061950562*y",
        "(x**999999999999)**999999999999",
        "((x + 3/8)**5000)**5000",
        "((x*y**-5000)**z)**5000 + (x/y**5000)**5000",
        "((x + 3/8)**(y + 5000))**5000",
        "log(1 - (x + 3/8)**(10000000000 + y)/(x + 3/8)**y)",
        "x**5001*x**5001",
        "exp(10000000000*log(3))",
        "exp(x + 10000000000*log(x + 3/8))",
        "(x + 3/8)**(1e5*sqrt(2))",
    ],
)
def test_exponents_that_sympy_would_multiply_out_are_refused_at_once(text):
    start = time.perf_counter()
    with pytest.raises(TooLarge, match="number in an exponent may be at most 10,000, got "):
        read(text)
    assert time.perf_counter() - start < 2


@pytest.mark.parametrize("n", [300, 5000])
@pytest.mark.parametrize("pattern", ["(|)", "sin(|)", "x**|", "(x + |)**2", "2**(x - |)"])
def test_deep_nesting_is_refused(pattern, n):
    before, after = pattern.split("|")
    with pytest.raises(ValueError, match="may be nested 200 deep"):
        read(before * n + "x" + after * n)


def test_nesting_up_to_the_limit_is_read():
    assert read("(" * 99 + "x" + ")" * 99, max_depth=100) == x
    assert read("sin(" * 99 + "x" + ")" * 99, max_depth=100).count_ops() == 99


def test_many_signs_are_no_nesting():
    assert read("-" * 5001 + "x") == -x


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        (x / 3, "x/3"),
        (-2 * x / 3, "-2*x/3"),
        (x / (2 * y), "x/(2*y)"),
        (x / (y * z), "x/(y*z)"),
        (sympy.Mul(x, sympy.Rational(1, 2), 1 / (y + z)), "1/2*x/(y + z)"),
        (1 / sympy.sqrt(x), "1/sqrt(x)"),
        (x ** sympy.Rational(3, 2), "x**(3/2)"),
        (x ** (-y), "x**(-y)"),
        ((x**y) ** z, "(x**y)**z"),
        (x ** (y**z), "x**(y**z)"),
        (sympy.Pow(-2, x), "(-2)**x"),
        (sympy.Pow(sympy.Rational(2, 3), x), "(2/3)**x"),
        (1 - x, "1 - x"),
        (-x - y, "-x - y"),
        (sympy.Abs(x) * sympy.E, "exp(1)*abs(x)"),
        (sympy.Float(0.1) * x, "0.1*x"),
        (sympy.Float(-1e-19) + x, "x - 1e-19"),
        (sympy.pi * x, "pi*x"),
        (sympy.Integer(0), "0"),
        (sympy.Integer(-4), "-4"),
        (sympy.Rational(-1, 2), "-1/2"),
    ],
)
def test_expressions_are_written_as_text_that_reads_back(expression, text):
    assert write(expression, NAMES) == text
    names = {"x": x, "y": y, "z": z, "pi": sympy.pi}
    assert parse(text, lambda name, is_quoted: names[name]) == expression


def test_leading_symbols_come_first():
    assert write(x * y + y, NAMES, leading=[y]) == "y + y*x"


def test_pi_has_another_name_if_asked():
    assert write(sympy.pi * x, {x: "x", sympy.pi: "3.14"}) == "3.14*x"


@settings(deadline=None, derandomize=True, max_examples=300)
@given(equation_texts(max_depth=5))
def test_what_is_written_reads_back_as_the_same(text):
    equation = Equation(text, ["x", "y"])
    assert Equation(str(equation), ["x", "y"]) == equation


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (x * (y - z), -x * (z - y)),
        ((y - z) ** 2, (z - y) ** 2),
        (x / (y - z) ** 3, -x / (z - y) ** 3),
        (sympy.cos(x * (y - z)), sympy.cos(x * (z - y))),
    ],
)
def test_signs_can_be_written_in_one_way(one, other):
    assert write(one, NAMES, signless=[]) == write(other, NAMES, signless=[])
    assert write(one, NAMES, signless=[]) != write(-one + 1, NAMES, signless=[])


def test_signless_symbols_equal_their_negatives():
    one, other = sympy.sin(x * y - z), sympy.sin(-x * y - z)
    assert write(one, NAMES, signless=[x]) == write(other, NAMES, signless=[x])
    assert write(one, NAMES, signless=[]) != write(other, NAMES, signless=[])


def test_repeats_are_seen_through_their_signs():
    assert has_repeats((x - y) / (y - x), NAMES, signless=[])
    assert has_repeats(x * (x - y) + 2 * x * (y - x), NAMES, signless=[])
    assert not has_repeats((x - y) / (x + y), NAMES, signless=[])


def test_backquotes_in_names_are_doubled():
    assert quoted("a`b") == "`a``b`"
