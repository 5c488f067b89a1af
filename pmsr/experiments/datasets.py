"""The data of the paper's experiments, each described by what JSON can hold."""

from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from pmsr.data import load_galileo, make_sine
from pmsr.evidence.evidence import fit_equation

# Any: what JSON can hold.
Source: TypeAlias = dict[str, Any]

NO_SHELF_LAW = "k1*D**2/(1 + k2*D)"


def sine(sigma: float, seed: int, n_points: int = 20) -> Source:
    """Describe one dataset of Section 3.1."""
    return {"kind": "sine", "sigma": sigma, "seed": seed, "n_points": n_points}


def galileo(experiment: str) -> Source:
    """Describe Galileo's own measurements, "shelf" or "no_shelf"."""
    return {"kind": "galileo", "experiment": experiment}


def synthetic(seed: int) -> Source:
    """Describe one dataset with normal noise on the law without shelf (Section 3.2)."""
    return {"kind": "synthetic", "seed": seed}


def read_source(source: Source) -> tuple[pd.DataFrame, pd.Series]:
    """Return the data that a description stands for.

    Examples
    --------
    >>> read_source(galileo("shelf"))[1].to_list()
    [1500.0, 1340.0, 1328.0, 1172.0, 800.0]
    >>> len(read_source(synthetic(0))[0])
    7
    """
    match source["kind"]:
        case "sine":
            return make_sine(source["n_points"], source["sigma"], random_seed=source["seed"])
        case "galileo":
            return load_galileo(source["experiment"])
        case "synthetic":
            return _make_synthetic(np.random.default_rng(source["seed"]))
    raise ValueError(f"Unknown kind {source['kind']!r}. Available: sine, galileo, synthetic.")


def no_shelf_least_squares() -> tuple[float, float, float]:
    """Return k1 and k2 of the law without shelf, and the deviation of its residuals."""
    X, y = load_galileo("no_shelf")
    target = fit_equation(NO_SHELF_LAW, X, y, random_seed=0)
    k1, k2 = target.fit.theta
    D = X["D"].to_numpy()
    residuals = y.to_numpy() - k1 * D**2 / (1 + k2 * D)
    return float(k1), float(k2), float(np.std(residuals))


def _make_synthetic(rng: np.random.Generator) -> tuple[pd.DataFrame, pd.Series]:
    k1, k2, sigma = no_shelf_least_squares()
    D = rng.uniform(0.0, 800.0, size=7)
    H = k1 * D**2 / (1 + k2 * D) + sigma * rng.normal(size=7)
    return pd.DataFrame({"D": D}), pd.Series(H, name="H")
