import numpy as np
import pytest

from benchmarks.laws_of_science import LAWS
from pmsr.equation.expression import Equation
from pmsr.laws import units as module
from pmsr.laws.units import is_possible, parameter_units, read_units, units_in_names

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
    ("c0 + x", {"x": "?", "y": "?"}, False, None),
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


def test_units_in_names_are_found():
    names = ["T [K]", "k (1/s)", "v0 (µM/s)", "n", "f(x) [mm]", "share []"]
    found = units_in_names(names)
    assert list(found.values()) == ["K", "1/s", "µM/s", "?", "mm", ""]
    units = read_units(found, names[:-1], names[-1])
    assert set(units.bases) == {
        "[temperature]",
        "[time]",
        "[substance]",
        "[length]",
        "unit of n",
    }


def test_contradictory_units_are_refused():
    with pytest.raises(ValueError, match=r"'T \[K\]' is in 'K' by its name, but units says 's'"):
        units_in_names(["T [K]"], {"T [K]": "s"})
    assert units_in_names(["t [s]", "n"], {"t [s]": "second", "n": "1"}) == {
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


def test_every_law_of_science_is_possible_in_its_units():
    for one in LAWS:
        units = read_units(one.units, list(one.columns), one.target[0])
        assert is_possible(one.equation.program, units), one.name
