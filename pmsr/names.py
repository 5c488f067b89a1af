"""Names that were meant, where somebody gave one that there is not."""

import re
from collections.abc import Sequence
from difflib import get_close_matches

_MAX_SHOWN = 300  # characters of the names that an error lists


def suggest(name: str, available: Sequence[str]) -> str:
    """Return the end of an error about an unknown name: the closest one, or all there are."""
    close = find_closest(name, available)
    if close is not None:
        return f" Did you mean {close!r}?"
    shown = ", ".join(other for other in available if other.strip()) or "none"
    return f" Available: {shown if len(shown) <= _MAX_SHOWN else shown[:_MAX_SHOWN] + ' …'}."


def find_closest(name: str, available: Sequence[str], *, cutoff: float = 0.6) -> str | None:
    """Return the name that was probably meant, None if there is no such name.

    Parameters
    ----------
    name, available
        What was given, and what there is.
    cutoff
        How similar others must be, if none is the same but for case, or but for a unit.

    Examples
    --------
    >>> find_closest("t", ["T", "x"]), find_closest("T", ["time", "T [K]"])
    ('T', 'T [K]')
    >>> find_closest("T", ["T [K]", "T (wall)"]) is None
    True
    """
    folded = [other for other in available if other.casefold() == name.casefold()]
    if not folded:
        stems = [re.split(r"[\[(]", other)[0].strip().casefold() for other in available]
        if stems.count(name.strip().casefold()) == 1:
            folded = [available[stems.index(name.strip().casefold())]]
    found = folded or get_close_matches(name, available, n=1, cutoff=cutoff)
    return found[0] if found else None
