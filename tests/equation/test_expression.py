import copy
import dataclasses
import pickle

import numpy as np
import pytest
import sympy
from hypothesis import given, settings
from strategies import equation_texts

import pmsr
from pmsr.equation.expression import MAX_LENGTH, Equation
from pmsr.equation.operators import operator_code


def test_an_equation_says_what_it_is():
    equation = pmsr.Equation("c0*sqrt(H)", variables=["H"])
    assert equation.text == "c0*sqrt(H)"
    assert str(equation) == "c0*sqrt(H)"
    assert equation.variables == ("H",)
    assert equation.parameters == ("c0",)
    assert equation.complexity == 4
    assert equation.latex() == r"c_{0} \sqrt{H}"
    assert equation.key == "c0*sqrt(`H`)"
    assert repr(equation) == "Equation('c0*sqrt(H)', variables=['H'])"
    assert equation._repr_latex_() == f"${equation.latex()}$"
    H, c0 = sympy.symbols("H c0", real=True)
    assert equation.expression == equation.canonical == c0 * sympy.sqrt(H)


def test_text_is_kept_as_it_was_written():
    assert Equation(" 2*x^2 ", ["x"]).text == " 2*x^2 "


@pytest.mark.parametrize("text", ["3", "c0", "x", "c0 + c1", "0*x"])
def test_constants_and_single_names_are_equations(text):
    equation = Equation(text, ["x"])
    assert equation.complexity >= 1
    assert Equation(str(equation), ["x"]) == equation


def test_an_equation_needs_no_variables():
    assert Equation("c0", []).complexity == 1


@pytest.mark.parametrize(
    ("text", "parameters"),
    [
        ("c10 + c9*x + c0", ("c0", "c9", "c10")),
        ("theta_2*x + theta_1", ("theta_1", "theta_2")),
        ("k1*x + b7 + α3", ("b7", "k1", "α3")),
        ("k_off2*x", ("k_off2",)),
        ("c0*x/c0", ()),
        ("c0 - c0 + x", ()),
        ("E1*x", ("E1",)),
    ],
)
def test_parameters_are_words_with_digits_in_natural_order(text, parameters):
    assert Equation(text, ["x"]).parameters == parameters


def test_listed_parameters_keep_their_order():
    equation = Equation("g*x + a + c1 + c0", ["x"], parameters=["g", "unused", "a"])
    assert equation.parameters == ("g", "a", "c0", "c1")
    assert Equation("c0 + c1*x", ["x"], ["c1", "c0"]).parameters == ("c1", "c0")


@pytest.mark.parametrize(
    ("text", "variables", "parameters", "found"),
    [
        ("c0*c1", ["c0"], (), ("c1",)),  # a column named like a parameter
        ("c0*x0 + c1", ["x0", "c0"], (), ("c1",)),
        ("log*c0 + log(log)", ["log"], (), ("c0",)),  # a column named like a function
        ("exp*(1 + exp(sin))", ["exp", "sin"], (), ()),
        ("pi*c0", ["pi"], (), ("c0",)),
        ("2*pi*x", ["x"], (), ()),
        ("E*I*N*S*Q*beta*lambda*zeta", [*"EINSQ", "beta", "lambda", "zeta"], (), ()),
        ("`m1`*c0", ["m1", "m2"], (), ("c0",)),
        ("x*x0", ["x"], ["x0"], ("x0",)),  # listed, so no misspelt x
        ("`sin`", ["sin"], (), ()),
    ],
)  # fmt: skip
def test_names_resolve(text, variables, parameters, found):
    equation = Equation(text, variables, parameters)
    assert equation.parameters == found
    names = {symbol.name for symbol in equation.expression.free_symbols}
    assert names == set(found) | (names & set(variables))
    assert Equation(str(equation), variables, parameters) == equation


def test_pi_is_a_number_unless_a_variable_has_the_name():
    assert Equation("pi*x", ["x"]).expression.has(sympy.pi)
    assert not Equation("pi*x", ["x", "pi"]).expression.has(sympy.pi)


def test_sympys_own_names_are_plain_symbols():
    equation = Equation("E + I*N", ["E", "I", "N"])
    assert equation.expression.is_real
    assert equation.expression == sum(
        [sympy.Symbol("E", real=True), sympy.Symbol("I", real=True) * sympy.Symbol("N", real=True)]
    )


def test_names_that_are_no_identifiers_stand_in_backquotes():
    names = ["drop height [mm]", "m/s^2", "tick`", "2nd", "größe"]
    text = "c0*`drop height [mm]` + `m/s^2`*`tick``` - `2nd`*größe"
    equation = Equation(text, names)
    assert {s.name for s in equation.expression.free_symbols} == {*names, "c0"}
    assert Equation(str(equation), names) == equation
    assert Equation(equation.key, names).key == equation.key


@pytest.mark.parametrize(
    ("text", "variables", "message"),
    [
        ("c0*heigth", ["height"], "Unknown name 'heigth'. Did you mean 'height'"),
        ("c0*h", ["H", "D"], "Unknown name 'h'. Did you mean 'H'"),
        ("c0/T", ["T [K]", "time"], r"Unknown name 'T'. Did you mean `T \[K\]`"),
        ("c0*q", ["x"], "Unknown name 'q'. Variables: x. A parameter is a word plus digits"),
        ("c*x", ["x"], "Unknown name 'c'"),
        ("x*_1", ["x"], "Unknown name '_1'"),
        ("x²", ["x"], "Unknown name 'x²'. Did you mean 'x'"),
        ("E**x", ["x"], "Unknown name 'E'. Write e for Euler's number"),
        ("a*x", ["x"], r"Unknown name 'a'. Variables: x.*parameters=\['a'\].*--parameters a;"),
        ("sin*x", ["x"], "'sin' is a function: write sin\\(...\\)"),
        ("c0*x0", ["x"], "'x0' is not a variable, but looks like one. Did you mean 'x'"),
        ("c0*H_1", ["H"], "'H_1' is not a variable, but looks like one"),
        ("c0*x1", ["x0"], "'x1' is not a variable, but looks like one. Did you mean 'x0'"),
        ("c0*m3", ["m1", "m2"], "'m3' is not a variable.*list it in parameters="),
        ("c0*`z`", ["x"], "Unknown variable 'z'. Variables: x"),
        ("`c0`*x", ["x"], "Unknown variable 'c0'"),
        ("q", [], "Variables: none"),
        ("c0*sqrt(L)", ["length [m]"], r"Unknown name 'L'. Variables: `length \[m\]`\."),
    ],
)  # fmt: skip
def test_unknown_names_are_never_new_parameters(text, variables, message):
    with pytest.raises(ValueError, match=message):
        Equation(text, variables)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("", ["x"]), "must not be empty"),
        ((" \n", ["x"]), "must not be empty"),
        ((3, ["x"]), "written as a string, got 3"),
        ((None, ["x"]), "written as a string, got None"),
        ((b"x", ["x"]), "written as a string"),
        (("x" + "+x" * MAX_LENGTH, ["x"]), "may have 10,000 characters, got 20,001"),
        (("x", "x"), "variables must be a sequence of names, got 'x'. Use \\['x'\\]"),
        (("x", ["x", "x"]), "variables must be distinct"),
        (("x", ["x", 3]), "variables must be non-empty strings, got 3"),
        (("x", ["x", ""]), "variables must be non-empty strings, got ''"),
        (("x", ["x"], "c"), "parameters must be a sequence of names"),
        (("x", ["x"], ["a", "a"]), "parameters must be distinct"),
        (("x", ["x"], ["a b"]), "A parameter's name must be an identifier, got 'a b'"),
        (("x", ["x", "a"], ["a"]), "'a' is listed both in variables and in parameters"),
        (("x +", ["x"]), "Expected a number"),
        (("(" * 2000 + "x" + ")" * 2000, ["x"]), "may be nested 100 deep"),
        (("x/(x - x)", ["x"]), "infinite, like 1/0"),
        (("sqrt(-x**2)", ["x"]), "real and finite, got I\\*Abs\\(x\\)"),
        (("(x - x)**x", ["x"]), "zero base"),
    ],
)
def test_mistakes_are_explained(arguments, message):
    with pytest.raises(ValueError, match=message):
        Equation(*arguments)


def test_nothing_is_executed(tmp_path):
    target = tmp_path / "written"
    for text in [
        f"__import__('pathlib').Path('{target}').touch()",
        f"open('{target}', 'w')",
        "x.__class__",
        "(lambda: 0)()",
        "[x for x in ()]",
        "x if x else x",
        "exec(x)",
    ]:
        with pytest.raises(ValueError):
            Equation(text, ["x"])
    assert not target.exists()


def test_equations_compare_by_expression_variables_and_parameters():
    assert Equation("c0*x + 1", ["x"]) == Equation("1 + x*c0", ["x"])
    assert hash(Equation("c0*x + 1", ["x"])) == hash(Equation("1 + x*c0", ["x"]))
    assert Equation("c0*x", ["x"]) != Equation("c1*x", ["x"])
    assert Equation("c0*x", ["x"]) != Equation("c0*x", ["x", "y"])
    assert Equation("c0*x", ["x"]) != "c0*x"


def test_equations_are_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        Equation("x", ["x"]).variables = ("y",)


@pytest.mark.parametrize("text", ["c0*x + k", "k*x/k"])
def test_equations_are_pickled_and_copied(text):
    equation = Equation(text, ["x"], ["k"])
    assert equation.key and equation.latex() and equation.complexity
    for twin in (
        pickle.loads(pickle.dumps(equation)),
        copy.copy(equation),
        copy.deepcopy(equation),
    ):
        assert twin == equation
        assert twin.text == text
        assert twin.key == equation.key
        assert twin.program.nodes.tolist() == equation.program.nodes.tolist()


@pytest.mark.parametrize(
    "equation",
    [
        Equation("c0*x", ["x"]),
        Equation("a*x + c0", ["x"], ["a"]),
        Equation("c0 + c1*x", ["x"], ["c1", "c0"]),
        Equation("x*x0", ["x"], ["x0"]),
        Equation("`a b`*c0", ["a b"]),
    ],
)
def test_the_repr_makes_the_equation_again(equation):
    assert eval(repr(equation)) == equation


def test_sympy_expressions_become_equations():
    x, c0 = sympy.symbols("x c0")  # neither is declared real
    equation = Equation.from_sympy(c0 * sympy.sqrt(x**2) + sympy.cot(x), ["x"])
    assert equation == Equation("c0*abs(x) + 1/tan(x)", ["x"])
    assert equation.text == "1/tan(x) + c0*abs(x)"


def test_sympy_expressions_are_checked_like_texts():
    x, q = sympy.symbols("x q", real=True)
    with pytest.raises(ValueError, match="Unknown name 'q'"):
        Equation.from_sympy(q * x, ["x"])
    with pytest.raises(ValueError, match="No operator for SymPy's Max"):
        Equation.from_sympy(sympy.Max(x, 1), ["x"])
    with pytest.raises(ValueError, match="Expected a SymPy expression, got 'x'"):
        Equation.from_sympy("x", ["x"])
    assert Equation.from_sympy(q * x, ["x"], ["q"]).parameters == ("q",)


@settings(deadline=None, derandomize=True, max_examples=200)
@given(equation_texts())
def test_sympy_expressions_come_back_as_they_are(text):
    equation = Equation(text, ["x", "y"])
    again = Equation.from_sympy(equation.expression, ["x", "y"])
    assert again == equation
    assert Equation(again.text, ["x", "y"]) == equation


def test_columns_may_be_called_like_parameters_of_the_canonical_form():
    equation = Equation("a1*c0 + a2", ["c0"])
    symbols = {symbol.name for symbol in equation.canonical.free_symbols}
    assert symbols == {"c0", "cc0", "cc1"}


@pytest.mark.parametrize(
    ("text", "variables", "latex"),
    [
        ("theta_2*x", ["x"], r"\theta_{2} x"),
        ("c0*lambda", ["lambda"], r"c_{0} \lambda"),
        ("drop_height", ["drop_height"], r"\mathrm{drop}_{\mathrm{height}}"),
        ("what", ["what"], r"\mathrm{what}"),  # not a w with a hat
        ("`drop height [mm]`", ["drop height [mm]"], r"\mathrm{drop\ height\ [mm]}"),
        ("`a_b%{c}`", ["a_b%{c}"], r"\mathrm{a\_b\%\{c\}}"),
        ("`m^2`", ["m^2"], r"\mathrm{m\wedge 2}"),
        ("x10**2", ["x10"], r"x_{10}^{2}"),
        ("H/c0", ["H"], r"\frac{H}{c_{0}}"),
        ("c0*σ", ["σ"], r"c_{0} \sigma"),
        ("µ_x + a__", ["µ_x", "a__"], r"a_{\_} + \mu_{x}"),
        ("`Δt [°]`", ["Δt [°]"], r"\mathrm{\Delta t\ [{}^{\circ}]}"),
        ("`area (m²)`**2", ["area (m²)"], r"\left(\mathrm{area\ (m{}^{2})}\right)^{2}"),
    ],
)
def test_latex_shows_names_as_one_would_set_them(text, variables, latex):
    assert Equation(text, variables).latex() == latex


def test_a_row_more_is_an_operator_more(with_softplus):
    equation = Equation("c0*softplus(2*c1*x)", ["x"])
    assert equation.program.nodes[-2].tolist()[0] == operator_code("softplus")
    assert equation.complexity == 8
    assert equation.key == "c0*softplus(c1*`x`)"
    assert Equation(str(equation), ["x"]) == equation
    with pytest.raises(ValueError, match="Did you mean 'softplus'"):
        Equation("softplu(x)", ["x"])


def test_names_may_come_from_pandas_and_numpy():
    pandas = pytest.importorskip("pandas")
    equation = Equation("c0*a + b", pandas.DataFrame({"a": [1.0], "b": [2.0]}).columns)
    assert equation == Equation("c0*a + b", np.array(["a", "b"]))
    assert repr(equation) == "Equation('c0*a + b', variables=['a', 'b'])"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("*".join(f"(x + c{i})" for i in range(300)), "may have 200 parameters, got 300"),
        (
            "*".join(f"(c{i} + c{(i + 1) % 30})" for i in range(30)),
            "at most 20 parameters may occur more than once, got 30",
        ),
    ],
)
def test_more_parameters_than_a_key_can_name_are_refused(text, message):
    with pytest.raises(ValueError, match=message):
        Equation(text, ["x"])


def test_a_number_that_is_a_tower_is_a_float_also_as_a_factor():
    E = sympy.E
    number = sympy.sqrt(sympy.sin(sympy.sin(sympy.sqrt(1 + E)) ** 2)) - E
    equation = Equation.from_sympy(sympy.Symbol("y") / number, ["y"])
    assert str(Equation(str(equation), ["y"])) == str(equation)


def test_a_factor_below_all_floats_is_refused_however_it_comes_about():
    with pytest.raises(ValueError, match="beyond the range of floats"):
        Equation("((((x/exp(1))**(1/3))**64)**64)**4", ["x"])


@given(equation_texts(max_depth=3))
@settings(max_examples=50, deadline=None)
def test_an_equation_is_read_back_from_its_text_and_its_key(text):
    equation = Equation(text, ["x", "y"])
    assert str(Equation(str(equation), ["x", "y"])) == str(equation)
    assert Equation(equation.key, ["x", "y"]).key == equation.key


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "+".join(f"x^{i}*y" for i in range(2, 1100)),
            "10,000 characters, got .* when written out",
        ),
        ("sin(" * 60 + "x" + ")**0.5" * 60, "nested 100 deep; this goes deeper when written out"),
    ],
)
def test_an_equation_whose_own_text_could_not_be_read_is_refused(text, message):
    with pytest.raises(ValueError, match=message):
        Equation(text, ["x", "y"])


@pytest.mark.parametrize("text", ["c0*sqrt(x)", "x**-3/(c0 + c1*y)", "3*x/2 + sin(c0*y)", "c0"])
def test_an_equation_is_made_of_its_program(text):
    law = Equation(text, ["x", "y"])
    again = Equation.from_program(law.program, ["x", "y"])
    assert again.key == law.key
    assert again.parameters == law.parameters


def test_a_program_that_is_no_number_makes_no_equation():
    from pmsr.equation.operators import VARIABLE, operator_code
    from pmsr.equation.program import Program

    rows = [(VARIABLE, 0, 0), (operator_code("-"), 0, 0), (operator_code("/"), 0, 1)]
    with pytest.raises(ValueError):
        Equation.from_program(Program.of(rows, [], 0), ["x"])
