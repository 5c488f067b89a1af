"""Which equations are one law."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import inf, isnan

# Of the root mean squared error: spellings of one law reach the same least error, to the digits
# that least squares leave (about half of the sixteen), and two laws do not by chance.
SAME_ERROR = 1e-7


@dataclass(frozen=True)
class Trace:
    """By what a law is recognised.

    Parameters
    ----------
    key
        The equation's key.
    values
        What its best fit gives: a curve's values, or its error alone. Empty if nothing is known,
        or if only the key is to count.
    """

    key: str
    values: tuple[float, ...] = ()


def is_same_law(
    first: Trace, second: Trace, *, relative: float = 0.0, absolute: float = 0.0
) -> bool:
    """Tell whether two equations are one law.

    Parameters
    ----------
    first, second
        What is known of them.
    relative, absolute
        By how much values may differ, as a share of the second's and in their own unit.

    Returns
    -------
    bool
        Whether they have the same key, so that they are the same equation; or else, whether all
        values of their best fits agree, so that one is the other in other parameters. What is
        undefined agrees with what is undefined.

    Examples
    --------
    >>> is_same_law(Trace("c0*H", (1.0, 2.0)), Trace("c0**3*H", (1.0, 2.1)), relative=0.01)
    False
    >>> is_same_law(Trace("c0*H", (1.0, 2.0)), Trace("c0**3*H", (1.0, 2.1)), relative=0.1)
    True
    """
    if first.key == second.key:
        return True
    if not first.values or not second.values:
        return False
    return all(
        a == b or (isnan(a) and isnan(b)) or abs(a - b) <= absolute + relative * abs(b) < inf
        for a, b in zip(first.values, second.values, strict=True)
    )


def is_among(
    one: Trace, others: Iterable[Trace], *, relative: float = 0.0, absolute: float = 0.0
) -> bool:
    """Tell whether a law is one of several."""
    return any(is_same_law(one, other, relative=relative, absolute=absolute) for other in others)


def group_laws(
    traces: Sequence[Trace],
    order: Iterable[int] | None = None,
    *,
    relative: float = 0.0,
    absolute: float = 0.0,
) -> dict[int, list[int]]:
    """Group equations that are one law.

    Parameters
    ----------
    traces
        What is known of the equations.
    order
        Places of the equations, by default as they come; the first of a group speaks for it, and
        others belong to it if they are the same law as the first.
    relative, absolute
        As in `is_same_law`.

    Returns
    -------
    dict
        The places of each group, the speaker's included, by the place of the speaker.

    Examples
    --------
    >>> group_laws([Trace("c0*H"), Trace("c0"), Trace("c0*H")], [2, 1, 0])
    {2: [2, 0], 1: [1]}
    """
    groups: dict[int, list[int]] = {}
    for place in range(len(traces)) if order is None else order:
        for speaker, members in groups.items():
            if is_same_law(traces[place], traces[speaker], relative=relative, absolute=absolute):
                members.append(place)
                break
        else:
            groups[place] = [place]
    return groups
