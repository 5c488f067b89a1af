"""Evidence in closed form by adaptive quadrature, for tests and benchmarks."""

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import quad

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
