"""Evidence without sampling: in closed form, or by quadrature for one or two parameters."""

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import simpson
from scipy.interpolate import CubicSpline
from scipy.special import logsumexp

from pmsr.equation.program import evaluate
from pmsr.evidence.proposal import Target
from pmsr.evidence.scale import log_sigma_integral
from pmsr.settings import Settings

Floats = NDArray[np.float64]


def exact_linear_log_q(design: Floats, y: Floats, settings: Settings | None = None) -> float:
    r"""Exact log q of an equation that is linear in its parameters.

    Parameters
    ----------
    design
        Derivatives of the equation by its parameters, of shape (N, p) and rank p.
    y
        The target, of shape (N,).
    settings
        Fraction and prior of sigma.

    Returns
    -------
    float
        :math:`\log Z(1) - \log Z(\gamma)` of Eq. (5), where theta is integrated in closed form:

        .. math:: Z(\varphi) \propto \left(\frac{2\pi}{\varphi}\right)^{p/2} (2\pi)^{-\varphi N/2}
            \int \sigma^{p - \varphi N - k} e^{-\varphi \mathrm{SSE} / 2\sigma^2} d\sigma

        and the integral over sigma, between its bounds, by Simpson's rule.

    Examples
    --------
    >>> round(exact_linear_log_q(np.ones((4, 1)), np.array([1.0, 2.0, 3.0, 4.0])), 4)
    -3.6441
    """
    settings = settings or Settings()
    n, p = design.shape
    gamma = settings.resolve_gamma(n, p)
    theta = np.linalg.lstsq(design, y, rcond=None)[0]
    sse = float(np.sum((y - design @ theta) ** 2))
    low, high = np.log(settings.sigma_bounds(y))

    def log_integral(phi: float) -> float:
        # One more power for d sigma = sigma d log sigma.
        power = p + 1 - settings.sigma_power - phi * n
        return log_sigma_integral(power, phi * sse / 2.0, low, high)

    return float(
        log_integral(1.0)
        - log_integral(gamma)
        + 0.5 * p * np.log(gamma)
        - 0.5 * (1.0 - gamma) * n * np.log(2.0 * np.pi)
    )


def brute_force_log_q(target: Target, n_rho: int = 2000, n_angles: int = 1000) -> float:
    """Log q by quadrature over the region, for one or two parameters.

    Sigma is integrated by Simpson's rule on a fine grid and interpolated in log SSE; theta by the
    midpoint rule in log-polar coordinates around each minimum. Points that an earlier minimum's
    region contains are not counted again.
    """
    y, region = target.data.y, target.region
    n, k = len(y), target.sigma_power
    low, high = np.log(target.sigma_bounds)
    log_sigma = np.linspace(low, high, 4001)
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


def polynomial(order: int, variable: str = "x0") -> str:
    """Write the polynomial of an order.

    Examples
    --------
    >>> polynomial(2)
    'c0 + c1*x0 + c2*x0**2'
    """
    terms = ["c0", f"c1*{variable}", *(f"c{k}*{variable}**{k}" for k in range(2, order + 1))]
    return " + ".join(terms[: order + 1])


def polynomial_design(x: Floats, order: int) -> Floats:
    """Powers of x from 0 to the order, of shape (N, order + 1)."""
    return np.asarray(x[:, None] ** np.arange(order + 1.0))
