"""Evidence in closed form, for equations that are linear in their parameters."""

import numpy as np
from numpy.typing import NDArray

from pmsr.evidence import log_sigma_integral
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
