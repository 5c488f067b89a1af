"""Cases whose numbers must not change while the house is rebuilt around them.

`scripts/check_frozen` compares all of them with another commit, to the last bit;
`tests/test_frozen.py` compares some with numbers that were written down.
"""

from collections.abc import Iterator
from dataclasses import fields, replace
from typing import Any

import numpy as np

import pmsr
from pmsr import settings
from pmsr.settings import Settings

# An older commit, with which these numbers are compared, knows no other prior.
FLAT = (
    {"parameter_prior": "flat"} if "parameter_prior" in [f.name for f in fields(Settings)] else {}
)
FINALIST, QUICK = (replace(one, **FLAT) for one in (settings.FINALIST, settings.QUICK))
SMALL = Settings(n_draws=1000, n_particles=200, n_multistarts=4, **FLAT)


def datasets() -> dict[str, tuple[Any, Any]]:
    """Small, noisy, real and made: N from 5 to 1000, one variable to three."""
    rng = np.random.default_rng(20261118)

    def noisy(X: Any, y: Any, share: float) -> tuple[Any, Any]:
        return X.reshape(len(y), -1), y + share * np.std(y) * rng.standard_normal(len(y))

    x10, x12, x24 = np.linspace(-2, 3, 10), np.geomspace(0.1, 50, 12), np.linspace(0.2, 12, 24)
    x30, x200, x1000 = np.linspace(0, 6, 30), np.linspace(0, 9, 200), np.linspace(-1, 1, 1000)
    X40 = rng.uniform(0.5, 3.0, (40, 3))
    return {
        "shelf": pmsr.load_galileo("shelf"),
        "no_shelf": pmsr.load_galileo("no_shelf"),
        "sine": pmsr.make_sine(20, 0.3, 1),
        "line": noisy(x10, 2.0 - 0.7 * x10, 0.1),
        "power": noisy(x12, 3.0 * x12**0.6, 0.05),
        "enzyme": noisy(x24, 7.0 * x24 / (1.5 + x24), 0.06),
        "decay": noisy(x30, 4.0 * np.exp(-0.8 * x30) + 0.5, 0.05),
        "newton": noisy(X40, X40[:, 0] * X40[:, 1] / X40[:, 2] ** 2, 0.05),
        "wave": noisy(x200, 1.5 * np.sin(1.3 * x200 + 0.4), 0.2),
        "large": noisy(x1000, 1.0 + 2.0 * x1000 - 3.0 * x1000**3, 0.3),
    }


# Linear, curved, redundant, failing, with several minima, and without parameters.
EQUATIONS = {
    "shelf": (
        "c0*sqrt(H) c0 c0*H c0+c1*H c0*H**c1 sqrt(c0*H/(c1+H)) c0*c1*sqrt(H) 47*sqrt(H) log(-H) "
        "c0+c1*H+c2*H**2 c0+c1*H+c2*H**2+c3*H**3 c0+c1*H+c2*H**2+c3*H**3+c4*H**4"
    ),
    "no_shelf": (
        "k1*D**2/(1+k2*D) D**2/(c0+c1*D) c0*D**c1 -D**2/(c0+D) c0+c1*D (c0+c1*D)/(c2+D) "
        "c0*exp(c1*D) c0**sqrt(D) c0*D**2+c1 k1*D**2*(1+k3*D)/((1+k2*D)*(1+k4*D))"
    ),
    "sine": (
        "2*sin(x0)+3 c0*sin(x0)+c1 c0*sin(c1*x0)+c2 c0*sin(c1*x0+c2)+c3 c0+c1*x0+c2*x0**2+c3*x0**3 "
        "c0 c0+c1*x0 c0*(c0+sin(x0)) c0*(c1+x0)*(c2+x0)*(c3+x0) c0/(c1+(x0-c2)**2) c0**2+c1*x0"
    ),
    "line": (
        "c0+c1*x0 c0-c1*x0 c0**2+c1*x0 c0*x0 (c0+c1)*x0 c0*x0+c1*x0+c2 abs(c0*x0+c1) exp(c0+c1*x0) "
        "c0*exp(c1*x0) sqrt(c0+x0) x0/(x0-x0**2/x0+c0) c0+c1*x0+c2*x0**3"
    ),
    "power": (
        "c0*x0**c1 c0*x0**c1+c2 c0*sqrt(x0) c0+c1*log(x0) c0*x0/(c1+x0) exp(c0+c1*log(x0)) "
        "c0*log(1+c1*x0) c0+c1*x0**c2 3*x0**0.6 c0*tanh(c1*x0)"
    ),
    "enzyme": (
        "c0*x0/(c1+x0) x0/(c0+c1*x0) c0/(1+c1/x0) c0*(1-exp(-c1*x0)) c0*x0**c1/(c2+x0**c1) "
        "c0*tanh(c1*x0) c0+c1*x0 c0*x0**2/(c1+x0**2) c0+c1/x0 c0*x0/(c1*c2+x0)"
    ),
    "decay": (
        "c0*exp(-c1*x0)+c2 c0*exp(-x0/c1)+c2 c0*exp(c1*x0) c0*exp(-c1*x0)+c2*exp(-c3*x0) "
        "c0/(c1+x0) c0+c1*x0 c0*c1**x0+c2 c0/(1+c1*x0)**2 c0-c1*tanh(x0) c0*cos(c1*x0)+c2"
    ),
    "newton": (
        "c0*x0*x1/x2**2 x0*x1/x2**2 c0+c1*x0+c2*x1+c3*x2 c0*x0**c1*x1**c2*x2**c3 "
        "c0*x0*x1/(c1+x2**2) c0*x0*x1 c0*x1/x2 c0*x0/x2+c1*x1 sqrt(c0*x0*x1)/x2 c0*exp(x0-c1*x2)*x1"
    ),
    "wave": (
        "c0*sin(c1*x0+c2) c0*sin(x0)+c1*cos(x0) c0*sin(c1*x0) c0+c1*x0 c0*cos(c1*x0)+c2*sin(c1*x0) "
        "c0*sin(x0/c1) c0+c1*sin(c2*x0+c3)"
    ),
    "large": (
        "c0+c1*x0+c2*x0**3 c0+c1*x0 c0+c1*x0+c2*x0**2+c3*x0**3 c0*exp(c1*x0)+c2*x0 c0*tanh(c1*x0) "
        "1+2*x0-3*x0**3 c0+c1*sin(c2*x0)"
    ),
}
OTHER_SETTINGS = {
    "log-flat": replace(SMALL, sigma_prior="log-flat"),
    "half": replace(SMALL, gamma=0.5),
    "o'hagan": replace(SMALL, gamma="ohagan"),
    "search": QUICK,
    "finalist": replace(FINALIST, n_draws=4000),
}


def cases() -> Iterator[tuple[str, str, Settings]]:
    """Yield dataset, equation and settings: about a hundred."""
    for name, texts in EQUATIONS.items():
        for place, text in enumerate(texts.split()):
            yield name, text, SMALL
            if place == 0 and name in ("shelf", "enzyme", "newton"):
                for settings in OTHER_SETTINGS.values():
                    yield name, text, settings


def weigh(name: str, text: str, settings: Settings) -> dict[str, Any]:
    """Return what the evidence says."""
    X, y = datasets()[name]
    found = pmsr.compute_evidence(text, X, y, settings=settings, random_seed=7)
    return {
        "log_q": found.log_q,
        "log_q_se": found.log_q_se,
        "rank": found.rank,
        "rmse": found.rmse,
        "theta": found.theta.tolist(),
        "pareto_k": found.pareto_k,
        "failure": found.failure,
    }


def sample(name: str, text: str, settings: Settings) -> dict[str, Any]:
    """Return posterior means and predictions, or why there are none."""
    X, y = datasets()[name]
    try:
        posterior = pmsr.sample_posterior(
            text, X, y, settings=settings, random_seed=7, draws=400, chains=2, pointwise=False
        )
    except ValueError as error:
        return {"error": str(error)}
    group = posterior.posterior
    found = {str(one): float(np.mean(np.asarray(group[one]))) for one in group.data_vars}
    table = pmsr.predict(posterior, X)
    return found | {column: float(np.nanmean(table[column])) for column in table.columns}
