import numpy as np
import pytest

from benchmarks.laws_of_science import LAWS
from pmsr.equation.expression import Equation
from pmsr.laws import units as module
from pmsr.laws.coincidences import (
    Coincidences,
    Generators,
    count_coincidences,
    describe_coincidences,
)
from pmsr.laws.units import (
    is_possible,
    parameter_units,
    read_unit_words,
    read_units,
    resolve_units,
    unit_html,
    unit_label,
    unit_latex,
    units_from_names,
)

pint = pytest.importorskip("pint")


def law(text, given, target="y"):
    columns = [name for name in given if name != target]
    return Equation(text, columns).program, read_units(given, columns, target)


# law, units, whether it is possible, units of its parameters
CASES = [
    ("c0*sqrt(H)", {"H": "mm", "y": "mm"}, True, ("mm**(1/2)",)),
    ("c0 + H", {"H": "mm", "y": "mm"}, True, ("mm",)),
    ("c0 + c1*H", {"H": "mm", "y": "cm"}, True, ("cm", "cm/mm")),
    ("c0 + H", {"H": "mm", "y": "cm"}, False, None),  # 1 mm and 1 cm are not 2 of anything
    ("c0 + H", {"H": "mm", "y": "s"}, False, None),
    ("u*f/(u - f)", {"u": "cm", "f": "cm", "y": "cm"}, True, ()),
    ("u*f/(u - f)", {"u": "cm", "f": "mm", "y": "cm"}, False, None),
    ("c0*sin(phi)", {"phi": "rad", "y": "m"}, True, ("m",)),
    ("c0*sin(phi)", {"phi": "deg", "y": "m"}, False, None),
    ("c0*sin(c1*phi)", {"phi": "deg", "y": "m"}, True, ("m", "1/deg")),
    ("c0*sin(t)", {"t": "s", "y": "m"}, False, None),
    ("c0*x/(c1 + x)", {"x": "µM", "y": "µM/s"}, True, ("µM/s", "µM")),
    ("c0*exp(-t/c1)", {"t": "min", "y": "K"}, True, ("K", "min")),
    ("m*a", {"m": "kg", "a": "m/s^2", "y": "N"}, True, ()),
    ("m*a", {"m": "kg", "a": "m/s^2", "y": "kN"}, False, None),
    ("v*t", {"v": "mm/min", "t": "min", "y": "mm"}, True, ()),
    ("c0 + c1*log(x)", {"x": "s", "y": "K"}, True, (None, "K")),
    ("c0*x**c1", {"x": "s", "y": "K"}, True, (None, "")),
    ("c0*c1*x", {"x": "s", "y": "K"}, True, (None, None)),
    ("c0*T", {"T": "degC", "y": "Pa"}, False, None),
    ("c0*(T + c1)", {"T": "degC", "y": "Pa"}, True, ("Pa/degC", "degC")),
    ("c0*(T - A)", {"T": "degC", "A": "degC", "y": "W"}, True, ("W/degC",)),
    ("c0*x + c1", {"x": "?", "y": "?"}, True, ("[y]/[x]", "[y]")),
    ("c0 + x", {"x": "?", "y": "?"}, True, (None,)),  # in the same unit, perhaps
    ("c0 + x", {"x": "?", "y": "m"}, True, (None,)),  # in metres, perhaps
    ("c0 + x + t", {"x": "?", "t": "s", "y": "m"}, False, None),
    ("c0*x + c1", {"x": "?", "y": "m"}, True, ("m/[x]", "m")),
    ("c0*sin(x)", {"x": "?", "y": "m"}, True, (None,)),
    ("x*c0", {"x": "1", "y": "-"}, True, ("",)),
    ("c0*d", {"d": "Mpc", "y": "km/s"}, True, ("km/(Mpc*s)",)),
    ("f*(1 + v/c0)", {"f": "Hz", "v": "m/s", "y": "Hz"}, True, ("m/s",)),
    (
        "c0*L*d*v**2/D",
        {"L": "m", "d": "kg/m^3", "v": "m/s", "D": "cm", "y": "kPa"},
        True,
        ("s**2*cm*kPa/kg",),
    ),
    ("(u + v)/(1 + u*v)", {"u": "1", "v": "1", "y": "1"}, True, ()),
]


@pytest.mark.parametrize(("text", "given", "possible", "parameters"), CASES)
def test_units_decide_what_is_possible_and_give_parameters_theirs(
    text, given, possible, parameters
):
    program, units = law(text, given)
    assert is_possible(program, units) is possible
    if possible:
        assert parameter_units(program, units) == parameters
    else:
        with pytest.raises(ValueError, match="does not survive a change of units"):
            parameter_units(program, units)


def test_units_from_names_are_found():
    names = ["T [K]", "k (1/s)", "v0 (µM/s)", "n", "f(x) [mm]", "share []"]
    found = units_from_names(names)
    assert list(found.values()) == ["K", "1/s", "µM/s", "?", "mm", ""]
    units = read_units(found, names[:-1], names[-1])
    assert set(units.bases) == {
        "[temperature]",
        "[time]",
        "[substance]",
        "[length]",
        "unit of n",
    }


@pytest.mark.parametrize(
    ("name", "unit"),
    [
        ("k (1/(m*s))", "1/(m*s)"),
        ("T [°C]", "°C"),
        ("a (m/s²)", "m/s²"),
        ("flow (a) [L/min]", "L/min"),
        ("time", "?"),
    ],
)
def test_units_in_all_sorts_of_brackets_are_found(name, unit):
    assert units_from_names([name]) == {name: unit}
    read_units({name: unit}, [], name)


def test_brackets_that_hold_no_unit_are_refused_unless_the_user_says_what_is_meant():
    names = ["width (left)", "y [m]"]
    with pytest.raises(ValueError, match=r"'left', the unit of 'width \(left\)', is not a unit"):
        read_units(units_from_names(names), names[:1], names[1])
    given = units_from_names(names, {"width (left)": "mm"})
    assert read_units(given, names[:1], names[1]).texts == ("mm", "m")


def test_without_units_every_column_has_one_of_its_own():
    units = read_units(None, ["t", "x"], "y", interval=["t"])
    wanted = Generators.of_columns(2, [0])
    assert not units.are_known
    assert units.generators.known is None
    np.testing.assert_array_equal(units.generators.scales, wanted.scales)
    np.testing.assert_array_equal(units.generators.shifts, wanted.shifts)
    with pytest.raises(ValueError, match="interval names 'z', which is not a column"):
        read_units(None, ["t", "x"], "y", interval=["z"])


def test_pure_numbers_may_be_added_and_taken_the_sine_of_without_a_charge():
    program, units = law("x + sin(z)", {"x": "1", "z": "rad", "y": "1"})
    assert count_coincidences(program, 2, generators=units.generators) == Coincidences()


def test_an_unknown_unit_is_charged_where_known_ones_are_not():
    given = {"u": "cm", "f": "cm", "n": "?", "y": "cm"}
    for text, wanted in (
        ("u*f/(u - f)", Coincidences()),
        ("c0*u*f*n", Coincidences()),
        ("u*f/(u - f) + n", Coincidences(shared=1)),
        ("u*sin(n)", Coincidences(pure=1)),
        ("u + f**2", Coincidences(broken=1)),
    ):
        program, units = law(text, given)
        assert count_coincidences(program, 3, generators=units.generators) == wanted, text


def test_an_arbitrary_zero_is_charged_also_where_units_are_known():
    units = read_units({"t": "day", "y": "m"}, ["t"], "y", interval=["t"])
    for text, wanted in (("c0*t", Coincidences(zeros=1)), ("c0*(t - c1)", Coincidences())):
        program = Equation(text, ["t"]).program
        assert count_coincidences(program, 1, generators=units.generators) == wanted


def test_a_constant_without_a_unit_has_the_one_that_fits():
    given = {"h": "m", "t": "s"}
    units = read_units(given, ["h", "g"], "t", constants=["g"])
    assert units.by_name == {"h": "m", "g": "?", "t": "s"}
    program = Equation("sqrt(2*h/g)", ["h", "g"]).program
    assert count_coincidences(program, 2, generators=units.generators) == Coincidences()
    with pytest.raises(ValueError, match="No unit for 'g'"):
        read_units(given, ["h", "g"], "t")


def test_a_zero_that_degrees_say_binds_a_law_also_where_it_is_said_again():
    for interval in ([], ["t"]):
        units = read_units({"t": "degC", "y": "m"}, ["t"], "y", interval=interval)
        for text, wanted in (("c0*t", False), ("c0*(t - c1)", True)):
            assert is_possible(Equation(text, ["t"]).program, units) == wanted, (text, interval)


def test_of_known_units_there_is_nothing_to_say():
    equation = Equation("u + f + sin(n)", ["u", "f", "n"])
    units = read_units({"u": "m", "f": "m", "n": "?", "y": "m"}, "ufn", "y")
    assert describe_coincidences(equation, "y", generators=units.generators) == [
        "takes the sine of n in its own unit"
    ]
    assert len(describe_coincidences(equation, "y")) > 1


@pytest.mark.parametrize(
    ("text", "latex"),
    [
        ("mm**(1/2)", r"\mathrm{mm}^{1/2}"),
        ("kg*m/s^2", r"\mathrm{kg}\,\mathrm{m}/\mathrm{s}^{2}"),
        ("kg m^-3", r"\mathrm{kg}\,\mathrm{m}^{-3}"),
        ("1/(Mpc*s)", r"1/(\mathrm{Mpc}\,\mathrm{s})"),
        ("[y]/[x]", r"[\mathrm{y}]/[\mathrm{x}]"),
        ("µM/s", r"\mathrm{\mu M}/\mathrm{s}"),
        ("ohm", r"\mathrm{\Omega }"),
        ("°C", r"\mathrm{{}^{\circ}C}"),
        ("%", r"\mathrm{\%}"),
        ("", ""),
    ],
)
def test_units_are_written_in_latex(text, latex):
    assert unit_latex(text) == latex


def test_contradictory_units_are_refused():
    with pytest.raises(ValueError, match=r"'T \[K\]' is in 'K' by its name, but units says 's'"):
        units_from_names(["T [K]"], {"T [K]": "s"})
    assert units_from_names(["t [s]", "n"], {"t [s]": "second", "n": "1"}) == {
        "t [s]": "second",
        "n": "1",
    }


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"t": "foo", "y": "m"}, "'foo', the unit of 't', is not a unit that pint knows"),
        ({"t": "m/", "y": "m"}, "is not a unit"),
        ({"t": "3 m", "y": "m"}, "is not a unit"),
        ({"t": "m s-1", "y": "m"}, "is not a unit"),
        ({"t": 3, "y": "m"}, "The unit of 't' must be a text such as 'mm', got 3"),
        ({"t": ["s"], "y": "m"}, "The unit of 't' must be a text such as 'mm', got \\['s'\\]"),
        ({"t": "dB", "y": "m"}, "is logarithmic"),
        ({"t": "s"}, "No unit for 'y'"),
        ({"t": "s", "y": "m", "z": "m"}, "units names 'z', which is not in the data: t, y"),
        ([("t", "s")], "units must map names to units"),
    ],
)
def test_units_that_are_none_are_refused(given, message):
    with pytest.raises(ValueError, match=message):
        read_units(given, ["t"], "y")


def test_without_pint_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pint", None)
    module._registry.cache_clear()
    module._parse.cache_clear()
    with pytest.raises(ImportError, match="Units need the package pint: pip install pint"):
        read_units({"t": "s", "y": "m"}, ["t"], "y")
    monkeypatch.undo()
    module._registry.cache_clear()


def test_exponents_and_factors_are_those_of_the_units():
    units = read_units({"F": "kN", "y": "mm"}, ["F"], "y")
    assert units.bases == ("[length]", "[mass]", "[time]")
    np.testing.assert_allclose(units.exponents, [[1, 1], [1, 0], [-2, 0]])
    np.testing.assert_allclose(units.log_factors, np.log([1e3, 1e-3]))


@pytest.mark.parametrize("columns", [["x"], ["n", "x"], ["T", "t"], [], ["t", "n", "T", "x"]])
def test_units_of_some_columns_are_those_that_one_would_read_for_them(columns):
    given = {"T": "degC", "t": "s", "x": "m/s", "n": "?", "y": "kN"}
    units = read_units(given, ["T", "t", "x", "n"], "y", interval=["t"]).select(columns)
    interval = [name for name in columns if name == "t"]
    wanted = read_units({n: given[n] for n in (*columns, "y")}, columns, "y", interval=interval)
    for name in ("names", "texts", "bases", "interval"):
        assert getattr(units, name) == getattr(wanted, name)
    for name in ("exponents", "log_factors", "zeros"):
        np.testing.assert_array_equal(getattr(units, name), getattr(wanted, name))
    assert units.interval_names == tuple(interval)


@pytest.mark.parametrize(("text", "unit"), [("mm", "mm"), ("1", ""), ("?", "[y]")])
def test_the_unit_of_the_target_is_written_like_those_of_parameters(text, unit):
    assert read_units({"y": text}, [], "y").of_target == unit


def test_units_are_those_in_the_names_if_a_user_says_so():
    names = ["T [K]", "n", "k (1/s)"]
    assert resolve_units("auto", names) == {"T [K]": "K", "n": "?", "k (1/s)": "1/s"}
    assert resolve_units(None, names) is None
    assert resolve_units({"n": "1"}, names) == {"n": "1"}
    with pytest.raises(ValueError, match="or be \"auto\", got 'mm'"):
        resolve_units("mm", names)
    with pytest.raises(ValueError, match="No unit stands in the names x, y"):
        resolve_units("auto", ["x", "y"])


def test_words_of_a_shell_are_units():
    names = ["T [K]", "n", "a=b"]
    given = ["n=1", "a=b=mm", "T [K]=K"]
    assert read_unit_words(given, names) == {"n": "1", "a=b": "mm", "T [K]": "K"}
    assert read_unit_words(["auto", "n=1"], names) == {"T [K]": "K", "n": "1", "a=b": "?"}
    for words, message in (
        (["n"], "A unit is written COLUMN=UNIT, such as t=s, got 'n'"),
        (["n=1", "n=m"], "'n' has two units, '1' and 'm'"),
        (["auto", "m=1"], "units names 'm', which is not in the data"),
        (["auto", "T [K]=s"], "is in 'K' by its name, but units says 's'"),
    ):
        with pytest.raises(ValueError, match=message):
            read_unit_words(words, names)


def test_units_are_written_in_html_and_for_pictures():
    assert unit_html("<b>*m**(1/2)") == "&lt;b&gt;·m<sup>1/2</sup>"
    assert unit_label("kg m^-3") == "kg·m$^{-3}$"


def test_every_law_of_science_is_possible_in_its_units():
    for one in LAWS:
        units = read_units(one.units, list(one.columns), one.target[0])
        assert is_possible(one.equation.program, units), one.name
