r"""The invariant prior in PyTensor: the surface's volume element and its limits."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytensor.tensor as pt
from numpy.typing import NDArray
from pytensor import gradient

Floats = NDArray[np.float64]

# Any: PyTensor 3 has another name for it, and its return type depends on the arguments.
_PUSH_FORWARD: Any = getattr(gradient, "pushforward", None) or gradient.Rop

# Any: PyTensor's and SymPy's expressions have no types that a checker would know.


@dataclass(frozen=True, eq=False)
class SurfaceRegion:
    """Where the invariant prior is positive.

    Parameters
    ----------
    start
        The best minimum in the equation's own parameters, of shape (p,).
    free
        Places of the parameters that the data determine; the others are held at the start.
    centres
        Predictions at the minima, of shape (n_centres, N), in the space of weighed residuals.
    radius
        How far predictions may be from the nearest of them.
    weights
        Of residuals, of shape (N,); None if all are 1.
    """

    start: Floats
    free: tuple[int, ...]
    centres: Floats
    radius: float
    weights: Floats | None = None

    def held(self) -> dict[int, float]:
        """Return the parameters that are held, by place, with their values."""
        return {k: float(v) for k, v in enumerate(self.start) if k not in self.free}

    def starts(self) -> Floats:
        """Return the best values of the others."""
        return self.start[list(self.free)]


def log_volume(mu: Any, theta: Sequence[Any]) -> Any:
    r"""Return :math:`\frac12 \log \det \chi'\chi` as a differentiable expression.

    Parameters
    ----------
    mu
        Predictions at the rows, a vector.
    theta
        Scalar variables on which they depend.
    """
    columns = [_PUSH_FORWARD(mu, one, pt.ones_like(one)) for one in theta]
    chi = pt.stack(columns, axis=1)
    # Columns of unit length first: parameters may differ by many orders of magnitude.
    length = pt.sqrt(pt.sum(chi**2, axis=0))
    unit = chi / length
    return 0.5 * pt.linalg.slogdet(unit.T @ unit)[1] + pt.sum(pt.log(length))


# Rules are logarithms, 0 or -inf, which add up: PyTensor's booleans are of several kinds.


def _log_of(condition: Any) -> Any:
    return pt.switch(condition, 0.0, -np.inf)


def log_inside(mu: Any, region: SurfaceRegion) -> Any:
    """Return 0 where predictions are within the radius of those of a minimum."""
    squares = [pt.sum((mu - centre) ** 2) for centre in region.centres]
    return _log_of(pt.min(pt.stack(squares)) <= region.radius**2)


def log_one_side(mu: Any, signs: Floats | None) -> Any:
    """Return 0 where predictions have the signs of the measurements; None if all are positive."""
    return _log_of(pt.min(mu if signs is None else mu * signs) > 0.0)


def log_no_pole(vector: Any) -> Any:
    """Return 0 where a denominator, at the rows, keeps its sign."""
    return _log_of(pt.min(vector) * pt.max(vector) > 0.0)


def log_no_alias(name: str, vector: Any, phase: float | None, n: float) -> Any:
    """Return 0 where the argument of a periodic function, at the rows, is no alias of another.

    Parameters
    ----------
    name
        The function.
    vector
        Its argument.
    phase
        The value at the first row from which one period counts, as in `surface`; or None.
    n
        Number of observations.
    """
    log = _log_of(pt.max(vector) - pt.min(vector) <= np.pi * (n - 1.0))
    if name == "tan":
        turns = pt.floor(vector / np.pi + 0.5)
        log = log + _log_of(pt.eq(pt.min(turns), pt.max(turns)))
    if phase is not None:
        first = vector[0] - phase
        log = log + _log_of(first > -0.5 * np.pi) + _log_of(first <= 1.5 * np.pi)
    return log
