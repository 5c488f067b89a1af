"""Operators by the names of sets, those that suit some data, and other names of operators."""

import difflib
from collections.abc import Sequence
from typing import Any

import numpy as np

from pmsr.data import Data, leave_out_constant
from pmsr.equation.operators import OPERATORS

ARITHMETIC = ("+", "-", "*", "/")
SETS = {
    "arithmetic": ARITHMETIC,
    "common": (*ARITHMETIC, "sqrt", "exp", "log"),
    "trig": (*ARITHMETIC, "sin", "cos", "tan"),
    "powers": (*ARITHMETIC, "sqrt", "pow"),
}
"""Sets of operators by name; ``"all"`` is every row of the table."""
ALL = "all"

_POWERS = "integer powers come by themselves: leave it out, or write pow for other exponents"
_KNOWN_AS = {
    "^": "did you mean 'pow'?",
    "**": "did you mean 'pow'?",
    "power": "did you mean 'pow'?",
    "square": _POWERS,
    "cube": _POWERS,
    "x^2": _POWERS,
    "add": "did you mean '+'?",
    "plus": "did you mean '+'?",
    "sub": "did you mean '-'?",
    "minus": "did you mean '-'?",
    "neg": "did you mean '-'?",
    "mul": "did you mean '*'?",
    "mult": "did you mean '*'?",
    "times": "did you mean '*'?",
    "div": "did you mean '/'?",
    "inv": "did you mean '/'?",
    "ln": "did you mean 'log'?",
    "log10": "did you mean 'log'? It differs by a factor, which is a parameter",
    "log2": "did you mean 'log'? It differs by a factor, which is a parameter",
    "sqr": "did you mean 'sqrt'? Integer powers come by themselves",
}
"""What other programs, or people, call an operator."""
_OTHERS = ("sinh", "cosh", "asin", "acos", "atan", "log1p", "expm1", "erf")
"""Functions that there are not, although the name of another is close."""


def read_operators(words: Sequence[str]) -> tuple[str, ...]:
    """Return operators for names of operators and of sets, each once.

    Parameters
    ----------
    words
        Names, of which a word may hold several, with commas or spaces between them.

    Examples
    --------
    >>> read_operators(["arithmetic", "sqrt,pow"])
    ('+', '-', '*', '/', 'sqrt', 'pow')
    >>> read_operators(["+", "expp"])
    Traceback (most recent call last):
        ...
    ValueError: Unknown operator 'expp': did you mean 'exp'?
    """
    found: dict[str, None] = {}
    for word in (name for text in words for name in text.replace(",", " ").split()):
        if word not in OPERATORS and word not in SETS and word != ALL:
            raise ValueError(describe_unknown(word))
        own = tuple(OPERATORS) if word == ALL else SETS.get(word, (word,))
        found |= dict.fromkeys(own)
    if not found:
        raise ValueError(f"At least one operator is needed, got none. {_available()}")
    return tuple(found)


# Any: what a user hands over, which is checked where it goes.
def expand_sets(names: Any) -> Any:
    """Return operators in place of the names of sets; names of operators stay as they are.

    Examples
    --------
    >>> expand_sets("powers"), expand_sets(["+", "sin"])
    (('+', '-', '*', '/', 'sqrt', 'pow'), ['+', 'sin'])
    """
    words = [names] if isinstance(names, str) else names
    is_list = isinstance(words, Sequence) and all(isinstance(word, str) for word in words)
    if is_list and any(word in SETS or word == ALL for word in words):
        return read_operators(words)
    return names


def usual_operators(data: Data) -> tuple[str, ...]:
    """Return the operators of the most common laws that can be true of some data.

    These are ``+ - * /`` and exp; sqrt if the target or a column that varies is nowhere negative;
    log if such a column is positive. The prior over laws charges for each that a law uses.

    Examples
    --------
    >>> from pmsr.data import make_data
    >>> usual_operators(make_data([1.0, 2.0, 3.0], [-1.0, 0.0, 1.0]))
    ('+', '-', '*', '/', 'sqrt', 'exp', 'log')
    >>> usual_operators(make_data([-1.0, 2.0, 3.0], [-1.0, 0.0, 1.0]))
    ('+', '-', '*', '/', 'exp')
    """
    least = leave_out_constant(data).X.min(axis=0)
    allowed = {
        "sqrt": bool(np.any(least >= 0.0) or np.all(data.y >= 0.0)),
        "log": bool(np.any(least > 0.0)),
    }
    return tuple(name for name in SETS["common"] if allowed.get(name, True))


def describe_unknown(name: str) -> str:
    """Return an error about an operator that there is not.

    Examples
    --------
    >>> describe_unknown("square")[:58]
    "Unknown operator 'square': integer powers come by themselv"
    """
    known = _KNOWN_AS.get(name.casefold())
    if known is None and name not in _OTHERS:
        names = [*OPERATORS, *SETS, ALL]
        close = difflib.get_close_matches(name.casefold(), names, n=1)
        known = f"did you mean {close[0]!r}?" if close else None
    if known is None:
        if all(sign in OPERATORS for sign in name):
            return f"Unknown operator {name!r}: put a space between operators."
        return f"Unknown operator {name!r}. {_available()}"
    return f"Unknown operator {name!r}: {known if known.endswith('?') else known + '.'}"


def _available() -> str:
    return f"Available: {', '.join(sorted(OPERATORS))}; sets: {', '.join([*SETS, ALL])}."
