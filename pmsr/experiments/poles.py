"""The paper's equation with two poles, integrated over where its poles are."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from pmsr.evidence.evidence import fit_equation
from pmsr.evidence.proposal import Target, log_sum_exp
from pmsr.evidence.scale import log_sigma_integral
from pmsr.evidence.smc import run_kernel
from pmsr.experiments.datasets import read_source
from pmsr.experiments.fits import N_MULTISTARTS
from pmsr.experiments.paper_settings import FINALIST
from pmsr.experiments.work import Record, Task

Floats = NDArray[np.float64]

EQUATION = "D**2*(theta1 + theta2*D)/(theta3*D**2 + theta4*D + theta5)"
FREE = (0, 1, 2, 4)  # theta4 is held: a common factor of all five changes nothing
HELD = 3
# Places and widths of the Cauchy distributions that draw a pole, in units of D.
PLACES = np.array([0.0, 400.0, 600.0, 900.0, 900.0, 535.0, 535.0])
WIDTHS = np.array([3000.0, 150.0, 400.0, 60.0, 600.0, 3.0, 30.0])
IMAGINARY = np.array([1.0, 10.0, 100.0, 1000.0])
# Sum and product of the poles, in magnitude, between which their logarithms are drawn evenly.
RANGES = (((1e-2, 1e4), (1e2, 1e9)), ((5.0, 2e3), (5e4, 5e6)))
N_SIGMA = 100
BATCH = 100_000


@dataclass(frozen=True)
class PoleIntegral:
    """Evidence of the equation, and how much of its posterior has a pole beside a datapoint.

    Parameters
    ----------
    log_q, log_q_se
        Over the region of a fit, and its Monte-Carlo standard error.
    share, share_gamma
        Share of the posterior, and of that at gamma, in which a real pole is close to the place.
    """

    log_q: float
    log_q_se: float
    share: float
    share_gamma: float


def integrate_over_poles(
    target: Target, place: float, distance: float, *, n_draws: int, rng: np.random.Generator
) -> PoleIntegral:
    r"""Integrate the likelihood of the paper's overfit equation over the places of its poles.

    Parameters
    ----------
    target
        The fit of `EQUATION`, which has the region.
    place, distance
        What counts as a pole beside the datapoint.
    n_draws
        Draws of the two poles.
    rng
        Source of the draws.

    Returns
    -------
    PoleIntegral
        By importance sampling that shares nothing with `pmsr.evidence.smc` but the region.

    Notes
    -----
    With S and P the sum and the product of the poles, :math:`\theta_3 = -\theta_4 / S`,
    :math:`\theta_5 = \theta_3 P`, and :math:`d\theta_3 d\theta_5 = \theta_4^2 |S|^{-3} dS dP`. The
    rest is linear in :math:`\theta_1, \theta_2`, which are integrated in closed form, and one
    draw of them tells whether they are in the region. In these coordinates the integrand is smooth:
    a pole on top of a datapoint makes :math:`|\chi|` infinite, and the integrand zero.
    """
    if target.fit.free != FREE:
        raise ValueError(f"theta4 must be the parameter that is held, got free {target.fit.free}.")
    S, P = _draw(n_draws, rng)
    n_draws = len(S)
    log_density, near = _log_density(S, P), _has_pole(S, P, place, distance)
    held = float(target.fit.theta[HELD])
    log_weight = 2 * np.log(abs(held)) - 3 * np.log(np.abs(S)) - log_density - np.log(n_draws)
    log_z, variance, shares = [], 0.0, []
    for phi in (target.gamma, 1.0):
        terms = np.concatenate(
            [
                _log_terms(target, held, S[batch], P[batch], phi, rng) + log_weight[batch]
                for batch in np.array_split(np.arange(n_draws), -(-n_draws // BATCH))
            ]
        )
        log_z.append(float(log_sum_exp(terms)))
        weights = np.exp(terms - log_z[-1])
        variance += float(np.sum(weights**2)) - 1 / n_draws
        shares.append(float(np.sum(weights[near])))
    return PoleIntegral(log_z[1] - log_z[0], float(np.sqrt(variance)), shares[1], shares[0])


def weigh_by_poles(task: Task) -> Record:
    """Weigh the equation over the region of one fit: by Sequential Monte Carlo, and over poles."""
    X, y = read_source(task["source"])
    settings = replace(FINALIST, n_multistarts=N_MULTISTARTS)
    rng = np.random.default_rng(task["seed"])
    target = fit_equation(EQUATION, X, y, settings=settings, random_seed=task["seed"])
    runs = [
        run_kernel(
            target,
            n_draws=settings.n_draws,
            n_particles=settings.n_particles,
            rng=rng,
            to_posterior=False,
        )
        for _ in range(settings.n_replicates)
    ]
    log_q = [run.log_marginal_likelihood - run.log_z_gamma for run in runs]
    with np.errstate(all="ignore"):
        found = integrate_over_poles(
            target, task["place"], task["distance"], n_draws=task["n_draws"], rng=rng
        )
    return {
        "fit": task["seed"],
        "minima (RMSE)": ", ".join(
            f"{np.sqrt(minimum.sse / len(y)):.2f}" for minimum in target.fit.minima
        ),
        "smc_log_q": float(np.mean(log_q)),
        "smc_log_q_se": float(np.std(log_q, ddof=1) / np.sqrt(len(log_q))),
        "log_q": found.log_q,
        "log_q_se": found.log_q_se,
        "share": found.share,
        "share_gamma": found.share_gamma,
    }


def _draw(n_draws: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Draw sum and product of the poles: a real pair, a complex pair, or evenly on log scales."""
    n = n_draws // (2 + len(RANGES))

    def pole() -> Floats:
        k = rng.integers(len(PLACES), size=n)
        return np.asarray(PLACES[k] + WIDTHS[k] * rng.standard_cauchy(n))

    first, second, middle = pole(), pole(), pole()
    imaginary = np.abs(rng.choice(IMAGINARY, n) * rng.standard_cauchy(n))
    sums, products = [first + second, 2 * middle], [first * second, middle**2 + imaginary**2]
    for bounds in RANGES:
        for values, (low, high) in zip((sums, products), bounds, strict=True):
            size = low * (high / low) ** rng.random(n)
            values.append(size * rng.choice([-1.0, 1.0], n))
    return np.concatenate(sums), np.concatenate(products)


def _log_density(S: Floats, P: Floats) -> Floats:
    """Log density of `_draw` in sum and product."""
    root = np.sqrt(np.abs(S**2 / 4 - P))
    root = np.maximum(root, np.finfo(float).tiny)  # where both poles are one, to rounding
    total = np.where(
        _is_real(S, P),
        # A pair in either order; the poles differ by twice the root.
        2 * _pole_density(S / 2 - root) * _pole_density(S / 2 + root) / (2 * root),
        _pole_density(S / 2) * _half_cauchy(root) / (4 * root),
    )
    for (low, high), (least, most) in RANGES:
        inside = (np.abs(S) > low) & (np.abs(S) < high) & (np.abs(P) > least) & (np.abs(P) < most)
        area = 4 * np.log(high / low) * np.log(most / least)
        total = total + np.where(inside, 1 / (area * np.abs(S * P)), 0.0)
    return np.asarray(np.log(total / (2 + len(RANGES))))


def _pole_density(x: Floats) -> Floats:
    z = (x[:, None] - PLACES) / WIDTHS
    return np.asarray(np.mean(1 / (np.pi * WIDTHS * (1 + z**2)), axis=1))


def _half_cauchy(x: Floats) -> Floats:
    return np.asarray(
        np.mean(2 / (np.pi * IMAGINARY * (1 + (x[:, None] / IMAGINARY) ** 2)), axis=1)
    )


def _is_real(S: Floats, P: Floats) -> NDArray[np.bool_]:
    return np.asarray(S**2 / 4 > P)


def _has_pole(S: Floats, P: Floats, place: float, distance: float) -> NDArray[np.bool_]:
    root = np.sqrt(np.abs(S**2 / 4 - P))
    gap = np.minimum(np.abs(S / 2 - root - place), np.abs(S / 2 + root - place))
    return np.asarray(_is_real(S, P) & (gap < distance))


def _log_terms(
    target: Target, held: float, S: Floats, P: Floats, phi: float, rng: np.random.Generator
) -> Floats:
    """Log of the integral over theta1, theta2 and sigma; -inf where a draw of them is outside."""
    x, y = target.data.X[:, 0], target.data.y
    n = len(y)
    third = -held / S
    fifth = third * P
    below = third[:, None] * x**2 + held * x + fifth[:, None]
    # Orthonormal columns, twice over: next to a pole the two are nearly parallel.
    first, second = x**2 / below, x**3 / below
    length = np.linalg.norm(first, axis=1)
    q1 = first / length[:, None]
    along = np.einsum("ij,ij->i", q1, second)
    rest = second - along[:, None] * q1
    more = np.einsum("ij,ij->i", q1, rest)
    rest, along = rest - more[:, None] * q1, along + more
    height = np.linalg.norm(rest, axis=1)
    q2 = rest / height[:, None]
    b1, b2 = q1 @ y, q2 @ y
    sse = np.sum((y - b1[:, None] * q1 - b2[:, None] * q2) ** 2, axis=1)
    sse = np.where(np.isfinite(sse), sse, np.inf)  # on top of a datapoint: no likelihood
    low, high = np.log(target.sigma_bounds)
    power = 3 - target.sigma_power - phi * n
    # Of sigma, the integral is needed at every error: interpolated, and drawn from, on grids.
    finite = np.log(sse[np.isfinite(sse)])
    log_sse = np.linspace(finite.min(), finite.max(), 400)
    table = [log_sigma_integral(power, phi * np.exp(s) / 2, low, high) for s in log_sse]
    log_integral = np.interp(np.log(sse), log_sse, table)
    grid = np.linspace(max(low, high - 8.0), high, N_SIGMA)
    kernel = power * grid - phi / 2 * sse[:, None] * np.exp(-2 * grid)
    cumulative = np.cumsum(np.exp(kernel - kernel.max(axis=1, keepdims=True)), axis=1)
    place = np.sum(cumulative < rng.random((len(S), 1)) * cumulative[:, -1:], axis=1)
    spread = np.exp(grid[place]) / np.sqrt(phi)
    second_theta = (b2 + spread * rng.standard_normal(len(S))) / height
    first_theta = (b1 + spread * rng.standard_normal(len(S)) - along * second_theta) / length
    theta = np.column_stack([first_theta, second_theta, third, fifth])
    log_integral[np.isinf(sse)] = -np.inf
    terms = log_integral + np.log(2 * np.pi / phi) - np.log(length) - np.log(height)
    terms -= phi * n / 2 * np.log(2 * np.pi)
    return np.where(np.isfinite(terms) & target.inside(theta), terms, -np.inf)
