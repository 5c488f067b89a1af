"""Evidence by other means: closed forms and brute force, for tests and benchmarks."""

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import quad, simpson
from scipy.interpolate import CubicSpline
from scipy.special import logsumexp

from pmsr.program import evaluate
from pmsr.proposal import Target
from pmsr.settings import Settings

Floats = NDArray[np.float64]


def linear_log_q(design: Floats, y: Floats, settings: Settings) -> float:
    """Exact log q of a model that is linear in its parameters (DESIGN 3.3)."""
    n, p = design.shape
    k = settings.sigma_power
    low, high = settings.sigma_bounds(y)
    gamma = settings.resolve_gamma(n, p)
    theta = np.linalg.lstsq(design, y, rcond=None)[0]
    sse = float(np.sum((y - design @ theta) ** 2))

    def log_z(phi: float) -> float:
        def log_integrand(log_sigma: float) -> float:
            power = p - phi * n - k + 1  # one more for d sigma = sigma d log sigma
            return power * log_sigma - phi * sse / 2 * np.exp(-2 * log_sigma)

        places = np.linspace(np.log(low), np.log(high), 2001)
        values = np.array([log_integrand(u) for u in places])
        top, peak = values.max(), places[values.argmax()]
        near = places[values > top - 45]
        integral = sum(
            quad(lambda u: np.exp(log_integrand(u) - top), a, b, epsabs=0, epsrel=1e-11, limit=200)[
                0
            ]
            for a, b in ((near[0], peak), (peak, near[-1]))
            if b > a
        )
        return (
            -(phi * n / 2) * np.log(2 * np.pi)
            + (p / 2) * np.log(2 * np.pi / phi)
            - 0.5 * np.linalg.slogdet(design.T @ design)[1]
            + top
            + np.log(integral)
        )

    return float(log_z(1.0) - log_z(gamma))


def brute_force_log_q(target: Target, n_rho: int = 2000, n_angles: int = 1000) -> float:
    """Log q by quadrature over the region, for one or two parameters.

    Sigma is integrated by Simpson's rule on a fine grid and interpolated in log SSE; theta by the
    midpoint rule in log-polar coordinates around each minimum. Points that an earlier minimum's
    region contains are not counted again.
    """
    y, region = target.data.y, target.region
    n, k = len(y), target.sigma_power
    log_sigma = np.linspace(*np.log(target.sigma_bounds), 4001)
    log_least = np.log(min(chart.sse for chart in target.charts))
    log_sse = np.linspace(log_least - 0.01, log_least + 40.0, 2001)
    span = 14.0
    log_rho = np.log(region.radius) - (np.arange(n_rho) + 0.5) / n_rho * span
    if len(region.centres[0]) == 1:
        directions = np.array([[1.0], [-1.0]])
        log_cell = log_rho + np.log(span / n_rho)
    else:
        angles = (np.arange(n_angles) + 0.5) / n_angles * 2 * np.pi
        directions = np.column_stack([np.cos(angles), np.sin(angles)])
        log_cell = 2 * log_rho + np.log(span / n_rho) + np.log(2 * np.pi / n_angles)
    log_z = {}
    for phi in (target.gamma, 1.0):
        exponent = (1 - k - phi * n) * log_sigma - phi / 2 * np.exp(
            log_sse[:, None] - 2 * log_sigma
        )
        top = exponent.max(axis=1)
        integral = simpson(np.exp(exponent - top[:, None]), x=log_sigma, axis=1)
        log_likelihood = CubicSpline(log_sse, top + np.log(integral))
        terms = []
        for j, chart in enumerate(target.charts):
            for direction in directions:
                step = np.exp(log_rho)[:, None] * direction
                theta = chart.theta + step @ chart.B.T
                counted = np.all([s > region.radius**2 for s in region.squares(theta)[:j]], axis=0)
                with np.errstate(all="ignore"):
                    sse = np.sum((evaluate(target.fit.program, theta, target.data.X) - y) ** 2, 1)
                log_value = np.log(sse)
                counted &= np.isfinite(log_value) & (log_value < log_sse[-1])
                if counted.any():
                    value = log_likelihood(log_value[counted]) + log_cell[counted] + chart.log_det
                    terms.append(logsumexp(value))
        log_z[phi] = logsumexp(terms) - phi * n / 2 * np.log(2 * np.pi)
    return float(log_z[1.0] - log_z[target.gamma])
