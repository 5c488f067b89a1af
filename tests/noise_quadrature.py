"""Log q under every noise model by brute force: it shares no code with the sampler."""

import numpy as np
from scipy import stats

N = 14
x = np.linspace(0.5, 4.0, N)


def line(c0):
    """f and df/dtheta of c0*x, of shapes (n, N) and (n, 1, N)."""
    return c0[:, None] * x, np.broadcast_to(x, (len(c0), 1, N))


def decay(c0, c1):
    """The same of c0*exp(c1*x)."""
    e = np.exp(c1[:, None] * x)
    return c0[:, None] * e, np.stack([e, c0[:, None] * x * e], axis=1)


DENSITIES = {
    "gaussian": lambda y, f, s: stats.norm.logpdf(y, f, s),
    "student": lambda y, f, s: stats.t.logpdf(y, 4, f, s),
    "proportional": lambda y, f, s: stats.norm.logpdf(y, f, s * np.abs(f)),
    "lognormal": lambda y, f, s: stats.lognorm.logpdf(y, s, scale=f),
    "poisson": lambda y, f, s: stats.poisson.logpmf(y, f),
}
WEIGHTS = {
    "gaussian": lambda f: np.ones_like(f),
    "student": lambda f: np.ones_like(f),
    "proportional": lambda f: 1.0 / np.abs(f),
    "lognormal": lambda f: 1.0 / f,
    "poisson": lambda f: 1.0 / np.sqrt(f),
}


def draw(noise, f, rng):
    """Measurements of f; the errors are about ten percent."""
    if noise == "gaussian":
        return f + 0.15 * rng.standard_normal(N)
    if noise == "student":
        return f + 0.12 * rng.standard_t(4, N)
    if noise == "proportional":
        return f * (1.0 + 0.1 * rng.standard_normal(N))
    if noise == "lognormal":
        return f * np.exp(0.15 * rng.standard_normal(N))
    return rng.poisson(12.0 * f).astype(float)


def log_q_by_quadrature(noise, y, theta, weight, curve, bounds, density=None, weigh_rows=None):
    """Sum over a grid of theta (with weights of its cells) and of log sigma."""
    gamma = 1.0 / np.sqrt(N)
    density = density or DENSITIES[noise]
    weigh_rows = weigh_rows or WEIGHTS[noise]
    with np.errstate(all="ignore"):
        f, slopes = curve(*theta)
        w = weigh_rows(f)
        chi = slopes * w[:, None, :]
        volume = 0.5 * np.linalg.slogdet(chi @ chi.transpose(0, 2, 1))[1]
        us = np.linspace(*np.log(bounds), 400) if bounds else np.zeros(1)
        terms = {1.0: [], gamma: []}
        for u in us:
            log_l = np.sum(density(y, f, np.exp(u)), axis=1)
            ok = np.isfinite(log_l) & np.isfinite(volume)
            for phi, parts in terms.items():
                parts.append(np.logaddexp.reduce((phi * log_l + volume + np.log(weight))[ok]) + u)
    total = {phi: np.logaddexp.reduce(parts) for phi, parts in terms.items()}
    return total[1.0] - total[gamma]


def grid(spans, n):
    """Points and weights of a grid in sinh-spaced coordinates around a centre."""
    axes, cells = [], []
    for centre, width, far in spans:
        t = np.linspace(-np.arcsinh(far / width), np.arcsinh(far / width), n)
        axes.append(centre + width * np.sinh(t))
        cells.append(width * np.cosh(t))
    points = [a.ravel() for a in np.meshgrid(*axes, indexing="ij")]
    weight = np.prod([c.ravel() for c in np.meshgrid(*cells, indexing="ij")], axis=0)
    return points, weight
