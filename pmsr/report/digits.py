"""Numbers as the page writes them."""

import math

from pmsr.equation.notation import typeset

ROUNDING = 1e-12  # of numbers beside it: what is smaller is zero


def short(number: float, digits: int = 4, *, size: float = 0.0) -> str:
    """Write a number with few digits; a dash for what is not known.

    Parameters
    ----------
    number, digits
        The number, and how many digits.
    size
        That of the numbers beside it: what is smaller by twelve orders of magnitude is zero, but
        for rounding errors.

    Examples
    --------
    >>> short(13.00061), short(-0.25, 2), short(2.5e9), short(float("nan"))
    ('13', '−0.25', '2.5 × 10⁹', '–')
    >>> short(-1.4e-13, size=10.0)
    '0'
    """
    if math.isfinite(size) and abs(number) < ROUNDING * size:
        return "0"
    return typeset(f"{number:.{digits}g}")


def digits_for(low: float, high: float) -> int:
    """Return how many digits show the width of an interval.

    Examples
    --------
    >>> digits_for(900.0, 1100.0), digits_for(1000.1, 1000.2)
    (4, 8)
    """
    size, width = max(abs(low), abs(high)), high - low
    if not (width > 0.0 and math.isfinite(size)):
        return 4
    return min(10, max(4, math.ceil(math.log10(size / width)) + 3))


def write_log_q(value: float, error: float = 0.0) -> str:
    """Write a logarithm to a hundredth of a nat, which is more than it can be trusted."""
    if not math.isfinite(value):
        return short(value)
    return typeset(f"{value:.2f} ± {max(error, 0.01):.2f}" if error > 0.0 else f"{value:.2f}")


def write_duration(seconds: float) -> str:
    """Write a time as people say it.

    Examples
    --------
    >>> write_duration(3.2), write_duration(95.0), write_duration(7300.0)
    ('3.2 s', '95 s', '2.0 h')
    """
    if seconds < 100.0:
        return f"{seconds:.2g} s"
    return f"{seconds / 60.0:.0f} min" if seconds < 6000.0 else f"{seconds / 3600.0:.1f} h"
