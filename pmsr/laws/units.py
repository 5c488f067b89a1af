"""Units, where the user has them: which laws are possible, and the units of their parameters.

A change of a base unit rescales all columns that are measured with it. A law that its parameters
cannot carry through such a change holds in one system of units only, and is no law.
"""

import math
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property
from html import escape
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pmsr.data import Data
from pmsr.equation.expression import latex_upright
from pmsr.equation.program import Program, evaluate_slopes
from pmsr.laws.coincidences import (
    EPS,
    N_DRAWS,
    Generators,
    Rows,
    Signs,
    count_coincidences,
    interval_columns,
)
from pmsr.settings import Search

Floats = NDArray[np.float64]

UNKNOWN = "?"  # a unit of its own, as far as one knows
AUTO = "auto"  # what a user says who has written units into the names of columns
_PURE = ("", "-", "1", "none")
# At the end of a name; in round brackets there may be others: k (1/(m*s)).
_IN_BRACKETS = re.compile(r"(.*\S)\s*(?:\[([^\[\]]*)\]|\(((?:[^()]|\([^()]*\))*)\))\s*")
_TOKEN = re.compile(
    r"\[(?P<own>[^\[\]]*)\]|(?P<power>\*\*|\^)\s*(?:\((?P<inner>[^()]*)\)|(?P<plain>[+-]?[\d.]+))"
    r"|(?P<times>[*·⋅\s]+)|(?P<sign>[/()])|(?P<word>[^\s*·⋅/()^\[\]]+)"
)
_DEGREES = {"degC": "°C", "degF": "°F", "deg": "°", "degree": "°", "ohm": "Ω"}
_LARGEST_DENOMINATOR = 12  # of an exponent that is a fraction: c0*x**(3/4) and the like

# Any: pint is imported on first use, and its units are created by a registry.


@dataclass(frozen=True, eq=False)
class Units:
    """The units of a table, as exponents of base units.

    Parameters
    ----------
    names
        The columns, then the target.
    texts
        Their units, as they were written.
    bases
        Base dimensions, such as ``"[length]"``; each unknown unit is one of its own.
    exponents
        Of shape (n_bases, d + 1).
    log_factors
        Logarithms of the units in coherent base units, of shape (d + 1,): of mm, log 0.001.
    zeros
        Shifts of zero, of shape (n_zeros, d + 1): 1 for columns in degrees Celsius.
    interval
        Places of columns whose zero is arbitrary, beyond what their units say.
    constants
        Places of columns that are known constants.
    """

    names: tuple[str, ...]
    texts: tuple[str, ...]
    bases: tuple[str, ...]
    exponents: Floats
    log_factors: Floats
    zeros: Floats
    interval: tuple[int, ...] = ()
    constants: tuple[int, ...] = ()

    @property
    def are_known(self) -> bool:
        """Whether there is any unit, so that parameters may have one too."""
        return any(text != UNKNOWN for text in self.texts)

    @property
    def n_columns(self) -> int:
        """Number of columns of X."""
        return len(self.names) - 1

    @property
    def by_name(self) -> dict[str, str]:
        """The units as they were written; ``"?"`` for one that is not known."""
        return dict(zip(self.names, self.texts, strict=True))

    @property
    def interval_names(self) -> tuple[str, ...]:
        """Names of the columns whose zero is arbitrary, beyond what their units say."""
        return tuple(self.names[place] for place in self.interval)

    @property
    def of_target(self) -> str:
        """The unit of the target as `parameter_units` writes it."""
        text = self.texts[-1]
        if text == UNKNOWN:
            return f"[{self.names[-1]}]"
        return "" if _is_pure(text) else text

    def select(self, columns: Sequence[str]) -> "Units":
        """Return the units of some columns, in their order, and of the target.

        Examples
        --------
        >>> units = read_units({"t": "s", "H": "mm", "D": "cm"}, ["t", "H"], "D")
        >>> units.select(["H"]).by_name
        {'H': 'mm', 'D': 'cm'}
        """
        places = [*(self.names.index(name) for name in columns), self.n_columns]
        exponents, zeros = self.exponents[:, places], self.zeros[:, places]
        used = np.any(exponents != 0.0, axis=1)
        return Units(
            tuple(self.names[place] for place in places),
            tuple(self.texts[place] for place in places),
            tuple(base for base, is_used in zip(self.bases, used, strict=True) if is_used),
            exponents[used],
            self.log_factors[places],
            zeros[np.any(zeros != 0.0, axis=1)],
            tuple(new for new, old in enumerate(places[:-1]) if old in self.interval),
            tuple(new for new, old in enumerate(places[:-1]) if old in self.constants),
        )

    @cached_property
    def changes(self) -> Floats:
        """Changes of units as exponents of all names, of shape (n, d + 1).

        The last one leads from the units of the table to coherent ones: mm and cm are both lengths,
        but may not be added up.
        """
        return np.vstack([self.exponents, self.log_factors])

    @cached_property
    def generators(self) -> Generators:
        """The same as generators of `pmsr.laws.coincidences`.

        Changes of units that are known bind a law, those of others are coincidences as they would
        be without any units.
        """
        d = self.n_columns
        # A shift that a unit says binds a law, also where the user says it again.
        shifted = np.any(self.zeros != 0.0, axis=0)
        own = Generators.of_columns(d, [place for place in self.interval if not shifted[place]])
        is_known = np.array([text != UNKNOWN for text in self.texts])
        shared = [np.any(row[is_known] != 0.0) for row in self.changes]
        changes = self.changes[shared]
        rows = np.zeros((len(changes) + len(self.zeros), 2 * d + 2))
        n = len(changes)
        rows[:n, :d], rows[:n, 2 * d] = changes[:, :d], -changes[:, d]
        rows[n:, d : 2 * d], rows[n:, 2 * d + 1] = self.zeros[:, :d], -self.zeros[:, d]
        is_free = np.isin(np.arange(d + 1), self.constants) & ~is_known
        return Generators(
            own.scales[~is_known & ~is_free],
            own.shifts,
            rows if len(rows) else None,
            own.scales[is_free] if is_free.any() else None,
        )


def read_units(
    units: Mapping[str, str] | None,
    columns: Sequence[str],
    target: str,
    *,
    interval: Sequence[str] = (),
    constants: Collection[str] = (),
) -> Units:
    """Parse the units of all columns and the target.

    Parameters
    ----------
    units
        Units by name, such as ``{"H": "mm", "t": "s", "phi": "rad"}``. ``"1"`` is a pure number,
        ``"?"`` a unit that is not known: laws that need it to be a certain one are charged, not
        impossible. Without any, all are unknown.
    columns
        Names of the columns of X.
    target
        Name of y.
    interval
        Columns whose zero is arbitrary, such as a date; of degrees Celsius this is known.
    constants
        Columns that are known constants: with units that are not known, they have those that fit.

    Examples
    --------
    >>> read_units({"H": "mm", "D": "cm"}, ["H"], "D").exponents    # doctest: +SKIP
    array([[1., 1.]])
    """
    names = (*columns, target)
    if units is None:
        units = dict.fromkeys(names, UNKNOWN)
    if not isinstance(units, Mapping):
        raise ValueError(f'units must map names to units, such as {{"t": "s"}}, got {units!r}.')
    for name in units:
        if name not in names:
            raise ValueError(_not_in_data(name, names))
    # A known constant without a unit has the one that fits.
    units = {**{name: UNKNOWN for name in constants if name in names}, **units}
    missing = [name for name in names if name not in units]
    if missing:
        raise ValueError(
            f'No unit for {missing[0]!r}. Write "1" for a pure number, "?" if it is not known.'
        )
    dimensions: list[dict[str, float]] = []
    log_factors: list[float] = []
    in_degrees: dict[str, list[int]] = {}
    for place, name in enumerate(names):
        text = _as_text(units[name], name)
        if text.strip() == UNKNOWN:
            dimensions.append({f"unit of {name}": 1.0})
            log_factors.append(0.0)
            continue
        unit = _parse(text, name)
        dimensions.append({str(base): float(n) for base, n in unit.dimensionality.items()})
        zero, one = (float(_registry().Quantity(v, unit).to_base_units().m) for v in (0.0, 1.0))
        log_factors.append(math.log(one - zero))
        if zero:
            in_degrees.setdefault(str(unit), []).append(place)
    bases = tuple(sorted({base for each in dimensions for base in each}))
    exponents = [[each.get(base, 0.0) for each in dimensions] for base in bases]
    zeros = [[float(j in places) for j in range(len(names))] for places in in_degrees.values()]
    n = len(names)
    return Units(
        names,
        tuple(str(units[name]).strip() for name in names),
        bases,
        np.array(exponents).reshape(-1, n),
        np.array(log_factors),
        np.array(zeros).reshape(-1, n),
        interval_columns(columns, interval),
        tuple(place for place, name in enumerate(columns) if name in constants),
    )


def units_of(search: Search, data: Data) -> Units:
    """Return the units that a search was told of, or an error that says what is wrong."""
    return read_units(
        search.units,
        data.names,
        data.target,
        interval=search.interval,
        constants=data.constants,
    )


def units_from_names(
    names: Sequence[str], given: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Find units in names such as ``T [K]``, ``k (1/s)``; a name without has one that is not known.

    Parameters
    ----------
    names
        Of columns and target.
    given
        Units that a user gives as well; they must not contradict the names, but may say what is
        meant by brackets that hold no unit.

    Examples
    --------
    >>> units_from_names(["T [K]", "k (1/s)", "n"])
    {'T [K]': 'K', 'k (1/s)': '1/s', 'n': '?'}
    """
    found = {}
    for name in names:
        match = _IN_BRACKETS.fullmatch(name)
        found[name] = UNKNOWN if match is None else (match[2] if match[2] is not None else match[3])
    for name, text in (given or {}).items():
        written, text = found.get(name, UNKNOWN), _as_text(text, name)
        if _is_unit(written) and text != written and _parse(text, name) != _parse(written, name):
            raise ValueError(
                f"{name!r} is in {written!r} by its name, but units says {text!r}. Correct one."
            )
    return {**found, **(given or {})}


def resolve_units(
    units: Mapping[str, str] | str | None, names: Sequence[str]
) -> Mapping[str, str] | None:
    """Return the units that a user means, by name; None if there are none.

    Parameters
    ----------
    units
        By name; or ``"auto"``, those that stand in the names.
    names
        Of columns and target.

    Examples
    --------
    >>> resolve_units("auto", ["T [K]", "n"])
    {'T [K]': 'K', 'n': '?'}
    """
    if not isinstance(units, str):
        return units
    if units != AUTO:
        raise ValueError(
            f'units must map names to units, such as {{"t": "s"}}, or be "auto", got {units!r}.'
        )
    return _with_any(units_from_names(names))


def read_unit_words(words: Sequence[str], names: Sequence[str]) -> dict[str, str]:
    """Return the units that a user has written in a shell, by name.

    Parameters
    ----------
    words
        Such as ``H=mm``; with ``auto`` among them, names that are left out say their units
        themselves.
    names
        Of columns and target.

    Examples
    --------
    >>> read_unit_words(["auto", "n=1"], ["T [K]", "n"])
    {'T [K]': 'K', 'n': '1'}
    """
    given: dict[str, str] = {}
    for word in words:
        # A name may hold the sign, a unit does not.
        name, sign, text = word.rpartition("=")
        if word == AUTO:
            continue
        if not sign:
            raise ValueError(f"A unit is written COLUMN=UNIT, such as t=s, got {word!r}.")
        if given.setdefault(name, text) != text:
            raise ValueError(f"{name!r} has two units, {given[name]!r} and {text!r}. Leave one.")
    if AUTO not in words:
        return given
    unknown = [name for name in given if name not in names]
    if unknown:
        raise ValueError(_not_in_data(unknown[0], names))
    return _with_any(units_from_names(names, given))


def _with_any(units: dict[str, str]) -> dict[str, str]:
    """Refuse units none of which is known: who asks for them expects some."""
    if all(text == UNKNOWN for text in units.values()):
        raise ValueError(
            f"No unit stands in the names {', '.join(units)}. Write it in brackets behind a name, "
            "such as 'T [K]', or give units by name."
        )
    return units


def _not_in_data(name: object, names: Sequence[str]) -> str:
    return f"units names {name!r}, which is not in the data: {', '.join(names)}."


def _is_unit(text: str) -> bool:
    try:
        _parse(text, "")
    except ValueError:
        return False
    return True


def _as_text(text: object, name: str) -> str:
    if not isinstance(text, str):
        raise ValueError(f"The unit of {name!r} must be a text such as 'mm', got {text!r}.")
    return text


def _is_pure(text: str) -> bool:
    return text.strip().lower() in _PURE


@cache
def _registry() -> Any:
    try:
        import pint
    except ImportError as error:
        raise ImportError("Units need the package pint: pip install pint.") from error
    return pint.UnitRegistry()


@cache
def _parse(text: str, name: str) -> Any:
    """Return the pint unit of a text; the name is for the error."""
    registry = _registry()
    plain = text.strip()
    if _is_pure(plain):
        return registry.Unit("dimensionless")
    try:
        unit = registry.parse_units(plain)
        registry.Quantity(1.0, unit).to_base_units()
    except Exception as error:  # pint's parser raises whatever its tokens lead to, even assertions
        raise ValueError(
            f"{plain!r}, the unit of {name!r}, is not a unit that pint knows. Write it like "
            f"'mm', 'kg*m/s^2', '1/min', 'µM/s', 'degC'; '1' for a pure number, '?' if not known."
        ) from error
    # A unit is a scale, perhaps with another zero. Decibels are neither.
    low, middle, high = (registry.Quantity(v, unit).to_base_units().m for v in (0.0, 1.0, 2.0))
    if abs((high - middle) - (middle - low)) > 1e-9 * abs(high):
        raise ValueError(
            f"{plain!r}, the unit of {name!r}, is logarithmic. Give the quantity itself a unit, or "
            "write '1'."
        )
    return unit


def is_possible(
    program: Program, units: Units, *, signs: Signs | None = None, rows: Rows | None = None
) -> bool:
    """Tell whether a law survives all changes of units that are known.

    Parameters are those of `pmsr.laws.coincidences.count_coincidences`.
    """
    found = count_coincidences(
        program, units.n_columns, generators=units.generators, signs=signs, rows=rows
    )
    return found.broken == 0


def describe_impossible(text: str, units: Units) -> str:
    """Say that a law cannot hold in the units that are known, and what to do about it.

    Examples
    --------
    >>> units = read_units({"t": "s", "x": "m"}, ["t"], "x")
    >>> print(describe_impossible("c0 + t", units)[:63])
    'c0 + t' does not survive a change of units (t in s, x in m): a
    """
    known = ", ".join(f"{name} in {unit}" for name, unit in units.by_name.items())
    return (
        f"{text!r} does not survive a change of units ({known}): a number in it would have to "
        "change, so that it is impossible as a law. Put a parameter in its place, or correct the "
        "units."
    )


def parameter_units(
    program: Program, units: Units, *, signs: Signs | None = None, rows: Rows | None = None
) -> tuple[str | None, ...]:
    r"""Deduce the units of a law's parameters.

    Parameters are those of `is_possible`, which the law must be.

    Returns
    -------
    tuple
        A unit for each parameter, in the units of the table: ``"mm**(1/2)"``, ``""`` for a pure
        number; None if there is none, as for c0 in ``c0 + c1*log(x)``, which changes by an amount
        and not by a factor, or in ``c0*x**c1``, where it depends on the value of c1. None for all
        if the law holds for certain values of units that are not known.

    Notes
    -----
    Under a change of units with exponents e the parameters change by :math:`\delta\theta` with
    :math:`\chi\,\delta\theta = e_y f - \sum_j e_j x_j \partial f/\partial x_j`. A parameter has a
    unit if :math:`\delta\theta_k/\theta_k` is the same number at all parameters and points.
    """
    coincidences = count_coincidences(
        program, units.n_columns, generators=units.generators, signs=signs, rows=rows
    )
    if coincidences.broken:
        raise ValueError("The law does not survive a change of units: its parameters have none.")
    if coincidences.shared or coincidences.pure:
        return (None,) * program.n_parameters
    found: list[str | None] = []
    for changes in _changes_of_parameters(program, units, signs).transpose(2, 0, 1):
        # Of shape (n_theta, n_changes); rounding leaves eleven digits or so of well-posed ones.
        size = 1.0 + np.max(np.abs(changes), axis=0)
        is_constant = bool(np.all(np.ptp(changes, axis=0) <= 1e-6 * size))
        found.append(_write_unit(np.median(changes, axis=0), units) if is_constant else None)
    return tuple(found)


def _changes_of_parameters(program: Program, units: Units, signs: Signs | None) -> Floats:
    """Relative changes of the parameters, of shape (n_theta, n_changes, p), at generic theta."""
    d, p = units.n_columns, program.n_parameters
    if not p:
        return np.empty((1, len(units.changes), 0))
    rng = np.random.default_rng([d, p])
    X = 3.0 ** rng.uniform(-1.0, 1.0, size=(4 * (p + d) + 40, d)) * np.array(
        [sign or 1 for sign in signs or (1,) * d]
    )
    theta = 3.0 ** rng.uniform(-1.0, 1.0, size=(32, p))
    theta[1:] *= rng.choice([-1.0, 1.0], size=theta[1:].shape)
    values, chi, slopes = evaluate_slopes(program, theta, X)
    found = []
    for k in range(len(theta)):
        right = units.changes[:, d, None] * values[k]
        right = right - units.changes[:, :d] @ (X.T * slopes[0, k])
        matrix = np.vstack([chi[0, k], right])
        usable = np.all(np.isfinite(matrix), axis=0) & (np.max(np.abs(matrix), axis=0) > 0.0)
        if np.count_nonzero(usable) < p + 2:
            continue
        matrix = matrix[:, usable] / np.max(np.abs(matrix[:, usable]), axis=0)
        lengths = np.linalg.norm(matrix[:p], axis=1)
        if np.any(lengths == 0.0) or _is_singular(matrix[:p] / lengths[:, None]):
            continue
        solved = np.linalg.lstsq(matrix[:p].T / lengths, matrix[p:].T)[0] / lengths[:, None]
        found.append(solved.T / theta[k])
        if len(found) == N_DRAWS:
            break
    if not found:  # redundant parameters: what one takes up another may
        return np.full((1, len(units.changes), p), np.nan)
    return np.array(found)


def _is_singular(matrix: Floats) -> bool:
    values = np.linalg.svd(matrix, compute_uv=False)
    return bool(values[-1] <= math.sqrt(EPS) * values[0])


def _write_unit(wanted: Floats, units: Units) -> str | None:
    """Write a unit by its exponents and its factor: as few of the table's own units as will do."""
    nothing = np.zeros(len(wanted))
    for place, text in enumerate(units.texts):
        if text != UNKNOWN and _is_close(units.changes[:, place], wanted):
            return "" if _is_close(wanted, nothing) else text
    atoms = _atoms(units)
    some = [chosen for n in range(len(atoms) + 1) for chosen in combinations(atoms, n)]
    # Whole powers first: sqrt(m/cm) is a ten, but no unit that anybody writes.
    for largest in (1, _LARGEST_DENOMINATOR):
        for chosen in some:
            columns = np.array([atoms[name] for name in chosen]).reshape(-1, len(wanted)).T
            powers = np.linalg.lstsq(columns, wanted)[0] if chosen else np.empty(0)
            neat = [Fraction(float(power)).limit_denominator(largest) for power in powers]
            if all(neat) and _is_close(columns @ np.array([float(v) for v in neat]), wanted):
                return _product(dict(zip(chosen, neat, strict=True)))
    return None


def _is_close(one: Floats, other: Floats) -> bool:
    return bool(np.all(np.abs(one - other) <= 1e-6 * (1.0 + np.abs(other))))


def _atoms(units: Units) -> dict[str, Floats]:
    """Exponents and log factor of every single unit of the table, by the name it has there."""
    found: dict[str, Floats] = {}
    pairs = zip(units.names, units.texts, strict=True)
    written = {str(_parse(text, name)): text for name, text in pairs if text != UNKNOWN}
    for name, text in zip(units.names, units.texts, strict=True):
        if text == UNKNOWN:
            found[f"[{name}]"] = np.append(_base_row(units, {f"unit of {name}": 1.0}), 0.0)
            continue
        for atom in _parse(text, name)._units:
            unit = _registry().Unit(atom)
            zero, one = (float(_registry().Quantity(v, unit).to_base_units().m) for v in (0.0, 1.0))
            dimensions = {str(base): float(n) for base, n in unit.dimensionality.items()}
            if set(dimensions) <= set(units.bases):
                row = np.append(_base_row(units, dimensions), math.log(one - zero))
                if np.any(np.abs(row) > 0.0):
                    found[written.get(str(unit), f"{unit:~C}")] = row
    return found


def _base_row(units: Units, dimensions: Mapping[str, float]) -> Floats:
    return np.array([dimensions.get(base, 0.0) for base in units.bases])


def _product(powers: Mapping[str, Fraction]) -> str:
    """Write powers of units: ``mm**(1/2)``, ``µM/s``, ``1/s``."""

    def factor(name: str, power: Fraction) -> str:
        if power == 1:
            return name
        return f"{name}**{power}" if power.denominator == 1 else f"{name}**({power})"

    above = "*".join(factor(name, n) for name, n in powers.items() if n > 0)
    below = [factor(name, -n) for name, n in powers.items() if n < 0]
    if not below:
        return above
    line = below[0] if len(below) == 1 else f"({'*'.join(below)})"
    return f"{above or '1'}/{line}"


def unit_latex(text: str) -> str:
    r"""Write a unit in LaTeX, without dollar signs.

    Parameters
    ----------
    text
        As a user writes it, or as `parameter_units` does.

    Examples
    --------
    >>> print(unit_latex("mm**(1/2)/s"), unit_latex("µM/s"), unit_latex("degC"))
    \mathrm{mm}^{1/2}/\mathrm{s} \mathrm{\mu M}/\mathrm{s} \mathrm{{}^{\circ}C}
    """
    return _typeset(text, latex_upright, "^{{{}}}", r"\,")


def unit_html(text: str) -> str:
    """Write a unit in HTML.

    Examples
    --------
    >>> unit_html("mm**(1/2)/s"), unit_html("kg*degC^-2")
    ('mm<sup>1/2</sup>/s', 'kg·°C<sup>−2</sup>')
    """
    return _typeset(text, escape, "<sup>{}</sup>", "·").replace("<sup>-", "<sup>−")


def unit_label(text: str) -> str:
    r"""Write a unit for Matplotlib, whose formulas know less than LaTeX's.

    Examples
    --------
    >>> print(unit_label("mm**(1/2)/s"), unit_label("$/kg"))
    mm$^{1/2}$/s \$/kg
    """
    return _typeset(text, lambda word: word.replace("$", r"\$"), "$^{{{}}}$", "·")


def _typeset(text: str, word: Callable[[str], str], power: str, times: str) -> str:
    """Put a unit together from its written parts."""
    found = []
    for token in _TOKEN.finditer(text.strip()):
        if token["own"] is not None:
            found.append(f"[{word(token['own'])}]")
        elif token["power"]:
            found.append(power.format(token["inner"] or token["plain"]))
        elif token["times"]:
            found.append(times)
        elif token["sign"]:
            found.append(token["sign"])
        elif token["word"].isdigit():
            found.append(token["word"])
        else:
            found.append(word(_DEGREES.get(token["word"], token["word"])))
    return "".join(found)


def unit_beside(name: str, units: Mapping[str, str]) -> str:
    """Return the unit to be written beside a name: nothing if it holds it, or has none.

    Examples
    --------
    >>> units = {"H": "mm", "T [K]": "kelvin", "mass (m)": "kg", "n": "1", "w": "?"}
    >>> [unit_beside(name, units) for name in units]
    ['mm', '', 'kg', '', '']
    """
    text = units.get(name, UNKNOWN)
    if text == UNKNOWN or _is_pure(text):
        return ""
    written = units_from_names([name])[name]
    is_held = _is_unit(written) and _parse(written, name) == _parse(text, name)
    return "" if is_held else text
