"""Lengths and spreads of numbers of any size: the squares of 1e200 and 1e-200 are out of range."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]

# Lengths whose squares, and products of two of which, are far from both ends of the range.
SHORT, LONG = 1e-140, 1e140


def take_out_exponent(values: Floats, axis: int | None = None) -> tuple[Floats, Any]:
    """Divide values by the power of two that brings the largest to between 1/2 and 1.

    Powers of two change no digit, so that what is computed from the result and multiplied by
    the power again (``np.ldexp``) has the bits that it would have without.

    Parameters
    ----------
    values
        Numbers. What is not finite stays so, and counts for nothing.
    axis
        Along which one power serves all; by default it serves the whole array.

    Returns
    -------
    tuple
        The scaled values, and the exponent of the power: an integer, or one for each column.

    Examples
    --------
    >>> take_out_exponent(np.array([3 * 2.0**700, 0.0]))
    (array([0.75, 0.  ]), 702)
    """
    sizes = np.abs(values)
    largest = np.max(sizes, axis=axis, where=np.isfinite(sizes), initial=0.0)
    exponent = np.frexp(largest)[1]
    scaled = np.ldexp(values, -(exponent if axis is None else np.expand_dims(exponent, axis)))
    return scaled, exponent if np.ndim(exponent) else int(exponent)


def column_lengths(matrix: Floats) -> Floats:
    """Euclidean length of each column, whatever its size; infinite only if it is.

    Examples
    --------
    >>> column_lengths(np.array([[3e200, 3e-200], [4e200, 4e-200]]))
    array([5.e+200, 5.e-200])
    """
    with np.errstate(over="ignore"):
        lengths = np.linalg.norm(matrix, axis=0)
    if np.all((lengths > SHORT) & (lengths < LONG)):
        return lengths
    scaled, exponents = take_out_exponent(matrix, axis=0)
    return np.asarray(np.ldexp(np.linalg.norm(scaled, axis=0), exponents))


def length(vector: Floats) -> float:
    """Euclidean length of a vector, whatever its size.

    Examples
    --------
    >>> length(np.array([3e-200, 4e-200]))
    5e-200
    """
    with np.errstate(over="ignore"):
        simple = float(np.linalg.norm(vector))
    if SHORT < simple < LONG:
        return simple
    scaled, exponent = take_out_exponent(vector)
    return float(np.ldexp(np.linalg.norm(scaled), exponent))


def mean_and_deviation(values: Floats) -> tuple[Any, Any]:
    """Mean and standard deviation (ddof = 0) along the first axis, whatever the size.

    Examples
    --------
    >>> mean, deviation = mean_and_deviation(np.array([1e-200, 3e-200]))
    >>> float(mean), float(deviation)
    (2e-200, 1e-200)
    """
    scaled, exponents = take_out_exponent(values, axis=0)
    return np.ldexp(scaled.mean(axis=0), exponents), np.ldexp(scaled.std(axis=0), exponents)


def spans_decades(values: ArrayLike) -> bool:
    """Return whether positive values are so unlike that they want a logarithmic axis.

    They are if the largest is a hundred times the least, and more than half of them would share the
    first tenth of a linear axis.

    Examples
    --------
    >>> spans_decades(np.geomspace(0.01, 100.0, 9)), spans_decades(np.linspace(0.01, 100.0, 9))
    (True, False)
    """
    finite = np.asarray(values, dtype=np.float64)
    finite = finite[np.isfinite(finite)]
    if not finite.size or finite.min() <= 0.0:
        return False
    low, high = float(finite.min()), float(finite.max())
    return bool(high / 100.0 >= low and float(np.median(finite)) - low < 0.1 * (high - low))
