"""Numbers as people write them: decimal commas, thousands separators, other minus signs."""

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

DECIMALS = (".", ",")
_SPACES = "[ \u00a0\u2009\u202f'\u2019]"  # between thousands, in most of the world
_SPACED = re.compile(rf"([+-]?\d{{1,3}}(?:{_SPACES}\d{{3}})+)(?=\D|$)")
_BODY = re.compile(r"[+-]?(?P<digits>\d[\d.,]*|[.,]\d+)(?P<power>[eE][+-]?\d+)?")


@dataclass(frozen=True)
class Doubtful:
    """Text that is one number where commas are decimal, and another where points are.

    It is no string: nothing may take it for either by accident.
    """

    text: str

    def __str__(self) -> str:
        return self.text


def find_decimal(text: str) -> str | None:
    """Return the sign that must be the decimal one, "?" if it can be either, None for neither.

    Examples
    --------
    >>> [find_decimal(text) for text in ("1,5", "1.234,5", "1 234.5", "1,234,567", "0,123")]
    [',', ',', '.', '.', ',']
    >>> find_decimal("1,234"), find_decimal("1234"), find_decimal("1.2.3")
    ('?', None, None)
    """
    found = _BODY.fullmatch(_without_spaces(text))
    if found is None:
        return None
    digits, power = found["digits"], found["power"]
    marks = re.findall("[.,]", digits)
    if not marks:
        return None
    last, other = marks[-1], DECIMALS[marks[-1] == "."]
    if len(set(marks)) == 2:
        return last if _grouped(digits, other, last) else None
    if len(marks) > 1:
        return other if _grouped(digits, last, other) else None
    is_open = power is None and re.fullmatch(r"[1-9]\d{0,2}[.,]\d{3}", digits)
    return "?" if is_open else last


def read_number(text: str, decimal: str = ".") -> float:
    """Return a number as it is written where a sign is the decimal one.

    Raises
    ------
    ValueError
        If it is no number.

    Examples
    --------
    >>> read_number("1.234,5", ","), read_number("1 234.5"), read_number("\u22121e3")
    (1234.5, 1234.5, -1000.0)
    """
    text = _without_spaces(text)
    other = DECIMALS[decimal == "."]
    if other in text:
        found = _BODY.fullmatch(text)
        if found is None or not _grouped(found["digits"], other, decimal):
            raise ValueError(text)
        text = text.replace(other, "")
    if "_" in text:  # 1_000 is a number for Python only
        raise ValueError(text)
    return float(text.replace(decimal, "."))


def choose_decimals(
    columns: Sequence[Sequence[str]], *, given: str | None = None, default: str | None = None
) -> list[str | None]:
    """Return the decimal sign of each column; None where its numbers could mean either.

    Parameters
    ----------
    columns
        The texts of each column in which all are like numbers; of others, nothing.
    given
        What the user says it is.
    default
        What it is if nothing else in the file tells.

    Notes
    -----
    What a column shows itself decides. Where it does not, as in 1,234, the file's other columns do,
    with one exception: instruments write points whatever the country, so that 1.234 beside 2,5 is
    left open, but nobody writes decimal commas beside decimal points.

    Examples
    --------
    >>> choose_decimals([["1,5", "2,250"], ["7", "8"]])
    [',', '.']
    >>> choose_decimals([["1,234"], ["0.5"]]), choose_decimals([["1.234"], ["0,5"]])
    (['.', '.'], [None, ','])
    >>> choose_decimals([["1,234"]]), choose_decimals([["1,234"]], default=",")
    ([None], [','])
    """
    if given is not None:
        return [given] * len(columns)
    shown = [{find_decimal(text) for text in column} - {None} for column in columns]
    everywhere = set().union(*shown) - {"?"}
    chosen: list[str | None] = []
    for column, own in zip(columns, shown, strict=True):
        known = own - {"?"}
        if len(known) == 1:
            chosen.append(*known)
        elif known:
            chosen.append(None)
        elif not own:
            chosen.append(".")
        else:
            chosen.append(_choose_open(column, everywhere, default))
    return chosen


def _choose_open(
    column: Iterable[str], everywhere: set[str | None], default: str | None
) -> str | None:
    """Return the decimal sign of a column in which all have one sign and three digits after it."""
    marks = {mark for text in column for mark in re.findall("[.,]", text)}
    if marks == {"."}:
        return None if everywhere == {","} else "."
    if marks == {","}:
        if everywhere == {"."}:
            return "."
        return "," if "," in everywhere else default
    return None


def is_like_a_number(text: str) -> bool:
    """Tell whether a text is a number wherever it is written.

    Examples
    --------
    >>> is_like_a_number("1,234.5"), is_like_a_number("1.2.3"), is_like_a_number("1_000")
    (True, False, False)
    """
    for decimal in DECIMALS:
        try:
            read_number(text, decimal)
        except ValueError:
            continue
        return True
    return False


def both_readings(text: str) -> tuple[float, float]:
    """Return what a text is where points are decimal, and where commas are.

    Examples
    --------
    >>> both_readings("1,234")
    (1234.0, 1.234)
    """
    values = []
    for decimal in DECIMALS:
        try:
            values.append(read_number(text, decimal))
        except ValueError:
            values.append(math.nan)
    return values[0], values[1]


def _without_spaces(text: str) -> str:
    text = text.strip().replace("\u2212", "-")
    return _SPACED.sub(lambda found: re.sub(_SPACES, "", found[1]), text, count=1)


def _grouped(digits: str, thousands: str, decimal: str) -> bool:
    """Tell whether digits stand in groups of three."""
    mark, point = re.escape(thousands), re.escape(decimal)
    return re.fullmatch(rf"\d{{1,3}}(?:{mark}\d{{3}})+(?:{point}\d*)?", digits) is not None
