"""Where a law of one variable is drawn: over the data, and a little beyond, as far as it goes."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from pmsr.magnitude import spans_decades

Floats = NDArray[np.float64]

N_GRID = 200  # points of a curve
BEYOND = 0.25  # of the data's range, to either side, where the curve is drawn too


def make_grid(x: Floats, y: Floats, curve: Callable[[Floats], Floats]) -> Floats:
    """Return values of a variable at which a law is drawn.

    Parameters
    ----------
    x, y
        The variable and the target, as they were measured.
    curve
        Returns the best fit at values of the variable.

    Returns
    -------
    ndarray
        Even on a logarithmic axis, where the variable wants one
        (:func:`pmsr.magnitude.spans_decades`).
        Beyond the data the grid ends at zero, where the variable never crossed it, and where the
        law leaves the range of the target by more than its width: behind a pole there is nothing
        to see, and before it the data would be a flat line.

    Examples
    --------
    >>> x = np.array([1.0, 2.0, 5.0])
    >>> grid = make_grid(x, 3.0 * x, lambda values: 3.0 * values)
    >>> grid[[0, -1]]
    array([0., 6.])
    >>> grid = make_grid(x, 1.0 / (5.5 - x), lambda values: 1.0 / (5.5 - values))
    >>> bool(5.0 < grid[-1] < 5.5)
    True
    """
    low, high = float(x.min()), float(x.max())
    if spans_decades(x):
        ratio = (high / low) ** BEYOND
        start, end = low / ratio, high * ratio
    else:
        room = BEYOND * (high - low)
        start = max(low - room, 0.0) if low >= 0.0 else low - room
        end = min(high + room, 0.0) if high <= 0.0 else high + room
    grid = grid_along(x, start, end)
    width = float(np.ptp(y))
    with np.errstate(all="ignore"):
        values = curve(grid)
        is_seen = (values >= y.min() - width) & (values <= y.max() + width)
    before = np.flatnonzero(~is_seen & (grid < low))
    behind = np.flatnonzero(~is_seen & (grid > high))
    if len(before):
        start = min(low, float(grid[before[-1] + 1]))
    if len(behind):
        end = max(high, float(grid[behind[0] - 1]))
    return grid_along(x, start, end)


def grid_along(x: Floats, start: float, end: float) -> Floats:
    """Return values from a start to an end, as far from each other as they are seen to be.

    Examples
    --------
    >>> grid = grid_along(np.geomspace(0.01, 100.0, 9), 0.01, 100.0)
    >>> bool(np.allclose(np.diff(np.log(grid)), np.log(grid[1] / grid[0])))
    True
    """
    if spans_decades(x) and start > 0.0:
        grid: Floats = np.geomspace(start, end, N_GRID)
        return grid
    return np.linspace(start, end, N_GRID)
