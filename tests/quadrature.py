"""Log q under the prior that is flat on predictions, by brute force, for tests and benchmarks.

Nothing here is shared with `pmsr.evidence`: neither its derivatives, charts, region, rules nor its
integral over sigma. A law is a NumPy function of one or two coordinates that cover its surface
once. A volume does not depend on the coordinates in which it is computed, so that these need not
be the law's parameters; they are chosen such that infinity is at a finite place.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import trapezoid
from scipy.interpolate import CubicSpline

Floats = NDArray[np.float64]
Shape = Callable[[NDArray, Floats], NDArray]
"""Predictions at x, of shape (N,), for coordinates t of shape (..., 1): shape (..., N)."""

STEP = 1e-20  # imaginary: derivatives have no rounding error
N_FIRST = 48  # cells along a coordinate, to begin with
N_NODES = 4  # of Gauss's rule along each side of a cell
N_SIGMA = 8001
MAX_LEVELS = 12


@dataclass(frozen=True)
class Chart:
    """A law as amplitude times shape, or as anything of one coordinate.

    Parameters
    ----------
    shape
        The shape, of any length, as a function of t between -1 and 1.
    signs
        ``"both"``, ``"positive"``: the amplitude's; ``"none"``: there is no amplitude, and the
        shape is the law.
    offset
        Whether a constant is added, a third parameter. The surface is then a cylinder, and the
        integral along it is known.
    """

    shape: Shape
    signs: str = "both"
    offset: bool = False


def surface_log_q(
    chart: Chart,
    x: Floats,
    y: Floats,
    *,
    tolerance: float = 1e-3,
    sigma_max: float = 2.0,
    radius_factor: float = 1.0,
) -> float:
    r"""Log Z(1) - log Z(gamma), :math:`Z(\varphi) = \int L^\varphi \sqrt{\det \chi'\chi}`.

    On :math:`\|f - f^*\| \le R`, with sigma flat between 1e-6 and sigma_max standard deviations.
    """
    n, std = len(y), float(np.std(y))
    gamma = 1.0 / np.sqrt(n)
    rank = 1 if chart.signs == "none" else 2
    radius = sigma_max * std * (np.sqrt(rank + chart.offset) + 4.0) / np.sqrt(gamma)
    radius *= radius_factor
    over_sigma = [
        _over_sigma(phi, n, 1e-6 * std, sigma_max * std, int(chart.offset)) for phi in (gamma, 1.0)
    ]
    y = y - np.mean(y) if chart.offset else y

    def predict(places: NDArray) -> NDArray:
        """Predictions for coordinates of shape (..., rank)."""
        shape = chart.shape(places[..., -1:], x)
        if chart.offset:
            shape = shape - shape.mean(axis=-1, keepdims=True)
        if rank == 1:
            return shape
        # Not `norm`, which is real: a derivative is taken through this.
        return places[..., :1] * shape / np.sqrt(np.sum(shape**2, axis=-1, keepdims=True))

    edges = [np.linspace(-1.0, 1.0, 4 * N_FIRST + 1)]
    if rank == 2:
        largest = np.sqrt(np.sum(y**2)) + radius
        low = -largest if chart.signs == "both" else 0.0
        edges.insert(0, np.linspace(low, largest, N_FIRST + 1))
    cells = _first_cells(edges)
    best, centre = np.inf, y

    def look(places: Floats) -> tuple[Floats, Floats, Floats]:
        with np.errstate(all="ignore"):
            values = predict(places.astype(np.complex128)).real
            columns = [
                predict(places + 1j * STEP * np.eye(rank)[k]).imag / STEP for k in range(rank)
            ]
            chi = np.stack(columns, axis=-1)
            volume = np.sqrt(np.clip(np.linalg.det(np.swapaxes(chi, -1, -2) @ chi), 0.0, None))
            return values, np.sum((y - values) ** 2, axis=-1), volume

    # The centre first: the best of many places, then of ever smaller neighbourhoods.
    places, width = cells.mean(axis=-1), cells[0, :, 1] - cells[0, :, 0]
    rng = np.random.default_rng(0)
    for _ in range(40):
        values, sse, _ = look(places)
        sse = np.where(np.isfinite(sse), sse, np.inf)
        if sse.min() < best:
            best, centre, place = float(sse.min()), values[sse.argmin()], places[sse.argmin()]
        places = place + width * rng.uniform(-1.0, 1.0, (400, rank))
        places[:, -1] = np.clip(places[:, -1], -1.0 + 1e-12, 1.0 - 1e-12)
        if chart.signs == "positive":
            places[:, 0] = np.abs(places[:, 0])
        width = 0.75 * width
    tops = np.array([integral(np.log(best)) for integral in over_sigma])

    def integrands(places: Floats) -> Floats:
        values, sse, volume = look(places)
        with np.errstate(all="ignore"):
            inside = np.sum((values - centre) ** 2, axis=-1) <= radius**2
        inside &= np.isfinite(volume) & np.isfinite(sse)
        log_sse = np.log(np.where(inside, sse, best))
        density = [np.exp(f(log_sse) - top) for f, top in zip(over_sigma, tops, strict=True)]
        return np.where(inside[..., None], np.stack(density, axis=-1) * volume[..., None], 0.0)

    total = _integrate(integrands, cells, tolerance)
    constant = -0.5 * (1.0 - gamma) * n * np.log(2.0 * np.pi) + 0.5 * chart.offset * np.log(gamma)
    logs = np.log(total) + tops
    return float(logs[1] - logs[0] + constant)


def _over_sigma(
    phi: float, n: int, low: float, high: float, n_done: int
) -> Callable[[Floats], Floats]:
    """Return log of the integral of sigma^-phi n exp(-phi SSE/2 sigma^2), by the log of SSE.

    Each parameter over which the integral is done left a sigma behind.
    """
    u = np.linspace(np.log(low), np.log(high), N_SIGMA)
    log_sse = np.linspace(2.0 * np.log(low), np.log(n) + 2.0 * np.log(high) + 12.0, 1201)
    terms = (1.0 + n_done - phi * n) * u - 0.5 * phi * np.exp(log_sse[:, None] - 2.0 * u)
    top = terms.max(axis=1)
    return CubicSpline(log_sse, top + np.log(trapezoid(np.exp(terms - top[:, None]), u, axis=1)))


def _first_cells(edges: list[Floats]) -> Floats:
    """Cells of shape (n, rank, 2): lower and upper ends."""
    sides = [np.stack([e[:-1], e[1:]], axis=-1) for e in edges]
    if len(sides) == 1:
        return sides[0][:, None, :]
    first = np.repeat(sides[0], len(sides[1]), axis=0)
    return np.stack([first, np.tile(sides[1], (len(sides[0]), 1))], axis=1)


def _integrate(integrands: Callable[[Floats], Floats], cells: Floats, tolerance: float) -> Floats:
    """Halve those cells on which halving makes a difference, until it makes none."""
    rank = cells.shape[1]
    value = _gauss(integrands, cells)
    done = np.zeros(value.shape[1])
    for _ in range(MAX_LEVELS):
        children = _halve(cells)
        new = _gauss(integrands, children.reshape(-1, rank, 2)).reshape(len(cells), 2**rank, -1)
        total = done + new.sum(axis=(0, 1))
        error = np.abs(new.sum(axis=1) - value)
        if np.all(error.sum(axis=0) <= tolerance * total):
            return total
        # What the settled cells are off by must add up to less than the tolerance.
        order = np.sort(error / total, axis=0)
        small = np.cumsum(order, axis=0) <= 0.1 * tolerance
        limit = np.max(np.where(small, order, 0.0), axis=0)
        open_ = np.any(error / total > limit, axis=1)
        done = done + new[~open_].sum(axis=(0, 1))
        cells, value = children[open_].reshape(-1, rank, 2), new[open_].reshape(-1, len(done))
    raise ArithmeticError(f"quadrature did not converge to {tolerance:g} in {MAX_LEVELS} levels")


def _halve(cells: Floats) -> Floats:
    middle = cells.mean(axis=-1)
    halves = np.stack(
        [
            np.stack([cells[..., 0], middle], axis=-1),
            np.stack([middle, cells[..., 1]], axis=-1),
        ],
        axis=0,
    )  # (2, n, rank, 2)
    if cells.shape[1] == 1:
        return np.moveaxis(halves, 0, 1)
    pairs = [
        np.stack([halves[i, :, 0], halves[j, :, 1]], axis=1) for i in range(2) for j in range(2)
    ]
    return np.stack(pairs, axis=1)


def _gauss(integrands: Callable[[Floats], Floats], cells: Floats) -> Floats:
    nodes, weights = np.polynomial.legendre.leggauss(N_NODES)
    rank = cells.shape[1]
    grid = np.stack(np.meshgrid(*[nodes] * rank, indexing="ij"), axis=-1).reshape(-1, rank)
    weight = np.prod(np.stack(np.meshgrid(*[weights] * rank, indexing="ij")), axis=0).ravel()
    out = []
    for some in np.array_split(cells, max(1, len(cells) // 2000)):
        middle, half = some.mean(axis=-1), 0.5 * np.diff(some, axis=-1)[..., 0]
        places = middle[:, None, :] + half[:, None, :] * grid
        values = integrands(places)
        out.append(np.einsum("ngk,g->nk", values, weight) * np.prod(half, axis=1)[:, None])
    return np.concatenate(out)


def tan_of(t: NDArray) -> NDArray:
    """Map -1 to 1 to all numbers."""
    return np.tan(0.5 * np.pi * t)


def pencil(x: Floats, t: NDArray, low: float | None = None) -> NDArray:
    """a + b*x, up to a factor, for all a and b with which it is positive at all x > 0.

    With low = 0, for b > 0 only.
    """
    low = -np.arctan2(1.0, x.max()) if low is None else low
    high = np.pi - np.arctan2(1.0, x.min())
    angle = low + (high - low) * 0.5 * (1.0 + t)
    return np.cos(angle) + np.sin(angle) * x


def _power_of(logs: Floats, exponent: NDArray) -> NDArray:
    """exp(exponent*logs), divided by its largest value."""
    values = exponent * logs
    return np.exp(values - values.real.max(axis=-1, keepdims=True))


def _wave(t: NDArray, x: Floats) -> NDArray:
    most = np.pi * (len(x) - 1) / np.ptp(x)
    frequency = most * 0.5 * (1.0 + t)
    return np.sin(frequency * x) / frequency


def _log_of(t: NDArray, x: Floats) -> NDArray:
    """log(1 + c*x)/c for 1 + c*x > 0: c*max(x) = exp(T) - 1."""
    T, z = tan_of(t), x / x.max()
    up = T.real > 0.0
    large = T + np.log(z + np.exp(-np.where(up, T, 0.0)) * (1.0 - z))
    small = np.log(1.0 - z + np.exp(np.where(up, 0.0, T)) * z)
    # At max(x) the sum is exp(T), which rounding must not turn into zero.
    small = np.where(z == 1.0, T, small)
    c = np.where(up, 1.0 - np.exp(-np.where(up, T, 0.0)), np.exp(np.where(up, 0.0, T)) - 1.0)
    return np.where(up, large, small) / c


def _half_plane(t: NDArray, x: Floats) -> NDArray:
    """a + b*x with a > 0, up to a positive factor."""
    angle = 0.5 * np.pi * t
    return np.cos(angle) + np.sin(angle) * x


CHARTS = {
    "c0*exp(c1*x)": Chart(lambda t, x: _power_of(x, tan_of(t))),
    "exp(c0 + c1*x)": Chart(lambda t, x: _power_of(x, tan_of(t)), "positive"),
    "c0*x**c1": Chart(lambda t, x: _power_of(np.log(x), tan_of(t))),
    "exp(c0)*x**c1": Chart(lambda t, x: _power_of(np.log(x), tan_of(t)), "positive"),
    "c0*x/(c1 + x)": Chart(lambda t, x: x / pencil(x, t)),
    "k1*x**2/(1 + k2*x)": Chart(lambda t, x: x**2 / pencil(x, t)),
    "c0/(c1 + x)**2": Chart(lambda t, x: pencil(x, t) ** -2),
    "sqrt(c0*x/(c1 + x))": Chart(lambda t, x: np.sqrt(x / pencil(x, t)), "positive"),
    "c0*sqrt(x)/(c1 + 2*x)": Chart(lambda t, x: np.sqrt(x) / pencil(x, t)),
    "c0**2 + c1*x": Chart(_half_plane, "positive"),
    "c0 + c1*x": Chart(_half_plane),
    "c0**2*x": Chart(lambda t, x: -np.log(0.5 * (1.0 - t)) * x, "none"),
    "c0*sqrt(x)": Chart(lambda t, x: tan_of(t) * np.sqrt(x), "none"),
    "(c0 + c1*x)**2": Chart(lambda t, x: _half_plane(t, x) ** 2, "positive"),
    "1/(c0 + c1*x)**2": Chart(lambda t, x: pencil(x, t) ** -2, "positive"),
    "sqrt(x*(c0 + x)/c1)": Chart(lambda t, x: np.sqrt(x * pencil(x, t)), "positive"),
    # Unlike in the law above, c1 + x is positive here.
    "c0*sqrt(x/(c1 + x))": Chart(lambda t, x: np.sqrt(x / pencil(x, t, 0.0))),
    "c0*sin(c1*x)": Chart(_wave),
    "c0*tanh(c1*x)": Chart(lambda t, x: np.tanh(tan_of(0.5 * (1.0 + t)) * x)),
    "c0*log(1 + c1*x)": Chart(_log_of),
    "c0*exp(c1*x) + c2": Chart(lambda t, x: _power_of(x, tan_of(t)), offset=True),
    "exp(c0 + c1*x) + c2": Chart(lambda t, x: _power_of(x, tan_of(t)), "positive", True),
    "(c0 + c1*x)/(c2 + x)": Chart(lambda t, x: 1.0 / pencil(x, t), offset=True),
    "c0*tanh(c1*x) + c2": Chart(lambda t, x: np.tanh(tan_of(0.5 * (1.0 + t)) * x), offset=True),
    "exp(c0*x)": Chart(lambda t, x: np.exp(tan_of(t) * x), "none"),
    "x**c0": Chart(lambda t, x: np.exp(tan_of(t) * np.log(x)), "none"),
    "c0**sqrt(x)": Chart(lambda t, x: np.exp(tan_of(t) * np.sqrt(x)), "none"),
}
