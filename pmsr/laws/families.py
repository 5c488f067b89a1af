r"""Families: laws whose predictions within the data cannot be told apart at the present noise.

An experiment as large as the present one would shift the odds between laws a and b, if a is true,
by about

.. math::
    s(a, b) = \frac{N}{2} \operatorname{mean}_k \frac{(m_a(x_k) - m_b(x_k))^2}
                                                 {\sigma_k^2 + (v_a(x_k) + v_b(x_k)) / 2}

nats, with their curves m, the posterior variances v of these curves, and the noise; the mean is
over rows and places between rows. Laws that are less than a nat from the face of a family belong to
it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pmsr.equation.program import Program, evaluate_jacobian

Floats = NDArray[np.float64]

APART = 1.0  # nats by which an experiment like the present one must tell laws apart
MAX_ROWS = 256  # rows at which curves are compared, evenly taken of more
N_PROBES = 64  # places between rows


@dataclass(frozen=True, eq=False)
class Band:
    """The curve of a law, and how closely the data determine it.

    Parameters
    ----------
    values
        The curve at the points of `probe_points`, of shape (n,); NaN where it is not defined.
    spread
        Posterior variance of the curve, in units of the squared noise of weighed residuals.
    """

    values: Floats
    spread: Floats


def probe_points(X: Floats, counts: Floats | None = None) -> tuple[Floats, NDArray[np.int64]]:
    """Return where curves are compared, and which of these are rows of the data.

    Parameters
    ----------
    X
        The data, of shape (N, d).
    counts
        How often each row was observed, of shape (N,); None for once. A row that was seen twice
        counts as two that are next to each other.

    Returns
    -------
    tuple
        Points of shape (n, d), the rows first, then places halfway between any two of them; and
        the numbers of these rows. Curves that pass through the same rows may differ between them.

    Examples
    --------
    >>> points, rows = probe_points(np.array([[0.0], [1.0]]))
    >>> rows.tolist(), np.unique(points[2:]).tolist()
    ([0, 1], [0.5])
    """
    last = np.cumsum(np.ones(len(X)) if counts is None else counts).astype(np.int64)
    n = int(last[-1])
    rng = np.random.default_rng(0)
    first = rng.integers(n, size=N_PROBES)
    second = (first + rng.integers(1, n, size=N_PROBES)) % n
    seen = np.unique(np.linspace(0, n - 1, min(n, MAX_ROWS)).astype(np.int64))
    rows, first, second = (np.searchsorted(last, k, side="right") for k in (seen, first, second))
    return np.vstack([X[rows], 0.5 * (X[first] + X[second])]), rows


def trace_band(
    program: Program, theta: Floats, X: Floats, points: Floats, weights: Floats | None = None
) -> Band:
    r"""Return the curve of the best fit and its posterior variance, to first order in theta.

    Parameters
    ----------
    program, theta
        The law and its best fit.
    X
        The data, of shape (N, d).
    points
        Where to compute, of shape (n, d).
    weights
        Of residuals, of shape (N,); None if all are 1.

    Notes
    -----
    With the Jacobian J at the data, weighed, and j at a point, the spread is
    :math:`j (J^\top J)^+ j^\top`: at the data its sum is the rank.

    Examples
    --------
    >>> from pmsr.equation.expression import Equation
    >>> X = np.array([[1.0], [2.0], [3.0], [4.0]])
    >>> band = trace_band(Equation("c0", ["x"]).program, np.array([7.0]), X, X)
    >>> band.values.tolist(), band.spread.tolist()
    ([7.0, 7.0, 7.0, 7.0], [0.25, 0.25, 0.25, 0.25])
    """
    values, chi = evaluate_jacobian(program, theta[None, :], points)
    curve = np.where(np.isfinite(values[0]), values[0], np.nan)
    if not len(theta):
        return Band(curve, np.zeros(len(points)))
    design = evaluate_jacobian(program, theta[None, :], X)[1][0].T
    design = design * (1.0 if weights is None else weights[:, None])
    size = np.max(np.abs(design), axis=0)
    used = np.isfinite(size) & (size > 0.0)
    if not used.any():
        return Band(curve, np.zeros(len(points)))
    # Columns of one size, or rounding of the largest would decide which others count.
    _, singular, axes = np.linalg.svd(design[:, used] / size[used], full_matrices=False)
    kept = singular > np.finfo(np.float64).eps * max(design.shape) * singular[0]
    with np.errstate(all="ignore"):
        slopes = (chi[0].T[:, used] / size[used]) @ (axes[kept].T / singular[kept])
        spread = np.sum(slopes**2, axis=1)
    return Band(curve, np.where(np.isfinite(spread), spread, 0.0))


def separation(
    one: Band, other: Band, *, sigma: float | Floats, noise: Floats, n_measurements: float
) -> float:
    """Return by how many nats an experiment like the present one would tell two laws apart.

    Parameters
    ----------
    one, other
        Their curves at the same points.
    sigma
        Size of the noise of weighed residuals; of shape (n,) if it differs between groups.
    noise
        Size of the noise of a measurement at each of the points.
    n_measurements
        How many measurements the experiment has.

    Returns
    -------
    float
        Infinite where one is defined and the other is not.

    Examples
    --------
    >>> flat, above = (Band(np.full(9, v), np.zeros(9)) for v in (0.0, 0.5))
    >>> separation(flat, above, sigma=1.0, noise=np.ones(9), n_measurements=8)
    1.0
    """
    seen = np.isfinite(one.values)
    if not np.array_equal(seen, np.isfinite(other.values)):
        return float("inf")
    if not seen.any():
        return 0.0
    # Divided before anything is squared: squares of 1e200 are no numbers.
    variance = (noise / sigma) ** 2 + 0.5 * (one.spread + other.spread)
    with np.errstate(all="ignore"):
        ratio = ((one.values - other.values) / sigma)[seen] / np.sqrt(variance[seen])
        return float(0.5 * n_measurements * np.mean(ratio**2))


def group_families(
    bands: Mapping[int, Band],
    noise_of: Callable[[int], tuple[float | Floats, Floats]],
    n_measurements: float,
) -> dict[int, list[int]]:
    """Group laws that cannot be told apart.

    Parameters
    ----------
    bands
        Of the laws, best first, by their places.
    noise_of
        Returns ``sigma`` and ``noise`` of `separation`, as the law at a place sees them: the noise
        of a family is that of its face.
    n_measurements
        As in `separation`.

    Returns
    -------
    dict
        The places of each family, by the place of its face, which comes first. A law is compared
        with faces only, and belongs to the first that it cannot be told apart from: families do
        not chain.

    Examples
    --------
    >>> steps = {k: Band(np.full(9, 0.4 * k), np.zeros(9)) for k in range(5)}
    >>> group_families(steps, lambda face: (1.0, np.ones(9)), 8)
    {0: [0, 1], 2: [2, 3], 4: [4]}
    """
    families: dict[int, list[int]] = {}
    noises: dict[int, tuple[float | Floats, Floats]] = {}
    for place, band in bands.items():
        for face, members in families.items():
            sigma, noise = noises[face]
            apart = separation(
                bands[face], band, sigma=sigma, noise=noise, n_measurements=n_measurements
            )
            if apart < APART:
                members.append(place)
                break
        else:
            families[place] = [place]
            noises[place] = noise_of(place)
    return families
