"""The families of a result: laws that the data cannot tell apart, with one probability."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pmsr.equation.program import evaluate
from pmsr.evidence.problem import Problem
from pmsr.laws.families import Band, group_families, probe_points, trace_band
from pmsr.result.fitted import FittedEquation

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Family:
    """Laws whose predictions within the data cannot be told apart at the present noise.

    Parameters
    ----------
    face
        The member with the highest score, which speaks for all.
    members
        All of them, the face first, best first.
    probability
        The sum of theirs; NaN without evidence.
    places
        Their places among the equations of the result.
    """

    face: FittedEquation
    members: tuple[FittedEquation, ...]
    probability: float
    places: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.members)

    def __repr__(self) -> str:
        laws = "law" if len(self) == 1 else "laws"
        return f"Family({self.face.equation.text!r}, {len(self)} {laws}, {self.probability:.3f})"


def find_families(
    equations: Sequence[FittedEquation], probabilities: Floats, problem: Problem
) -> list[Family]:
    """Group the equations of a result, which come best first.

    Parameters
    ----------
    equations, probabilities
        The equations; those that failed belong to no family.
    problem
        What they were weighed on, with all variables.

    Returns
    -------
    list of Family
        The most probable first.

    Notes
    -----
    With groups, laws are compared in all of them, each with its own constants and noise.
    """
    parts = problem.parts or (problem,)
    names, places = problem.data.names, [probe_points(p.data.X, p.data.counts) for p in parts]

    def look(one: FittedEquation) -> list[tuple[FittedEquation, Floats, NDArray[np.int64]]]:
        """Return the equation of each group, where it is compared, and which rows these are."""
        columns = [names.index(name) for name in one.equation.variables]
        own = list(one.parts.values()) or [one]
        return [
            (part, np.ascontiguousarray(points[:, columns]), rows)
            for part, (points, rows) in zip(own, places, strict=True)
        ]

    bands = {}
    for place, one in enumerate(equations):
        if one.evidence.failure is None and np.isfinite(one.evidence.theta).all():
            found = [_band(part, where) for part, where, _ in look(one)]
            values = np.concatenate([band.values for band in found])
            bands[place] = Band(values, np.concatenate([band.spread for band in found]))

    def noise_of(place: int) -> tuple[float | Floats, Floats]:
        found = [_noise(part, where, rows) for part, where, rows in look(equations[place])]
        if not problem.parts:
            return found[0]
        sigma = [np.full(len(noise), sigma) for sigma, noise in found]
        return np.concatenate(sigma), np.concatenate([noise for _, noise in found])

    grouped = group_families(bands, noise_of, problem.n)
    families = [
        Family(
            equations[face],
            tuple(equations[place] for place in places),
            float(np.sum(probabilities[places])),
            tuple(places),
        )
        for face, places in grouped.items()
    ]
    # Without evidence, all sums are NaN: in their order.
    return sorted(families, key=lambda family: -np.nan_to_num(family.probability))


def _band(one: FittedEquation, where: Floats) -> Band:
    """Return the curve of an equation at points."""
    weights = one.problem.local_weights(one.data.y - one.residuals)
    return trace_band(one.equation.program, one.evidence.theta, one.data.X, where, weights)


def _noise(one: FittedEquation, where: Floats, rows: NDArray[np.int64]) -> tuple[float, Floats]:
    """Return the size of weighed residuals, and that of a measurement at points."""
    problem, sigma = one.problem, noise_level(one)
    new = problem.new_sigma(np.array([sigma]))
    mu = evaluate(one.equation.program, one.evidence.theta[None, :], where)
    noise = np.broadcast_to(problem.noise.spread(mu, new), mu.shape)[0].copy()
    known = problem.columns_at(one.equation.program, one.evidence.theta[None, :]).get("y_err")
    if known is not None:
        extra = sigma if problem.noise.has_sigma else 0.0
        noise[: len(rows)] = np.hypot(known.reshape(-1)[rows], extra)
    return sigma, noise


def noise_level(fitted: FittedEquation) -> float:
    """Return the size of the noise, from what the best fit leaves."""
    problem = fitted.problem
    if not problem.scale.is_free:
        return 1.0
    if problem.noise.needs_tuning:
        mu = (problem.data.y - fitted.residuals)[None, :]
        columns = problem.columns_at(fitted.equation.program, fitted.theta[None, :])
        best = problem.noise.most_likely_sigma(problem.data.y, mu, problem.counts, columns)
        return float(np.clip(best[0, 0], *problem.sigma_bounds))
    weights = problem.local_weights(problem.data.y - fitted.residuals)
    residuals = fitted.residuals * (1.0 if weights is None else weights)
    largest = float(np.max(np.abs(residuals)))
    low, high = fitted.problem.sigma_bounds
    if not largest > 0.0:
        return low
    n_free = max(1, problem.n - fitted.evidence.rank)
    sigma = largest * float(np.sqrt(np.sum((residuals / largest) ** 2) / n_free))
    return min(max(sigma, low), high)


def tabulate_families(families: Sequence[Family]) -> pd.DataFrame:
    """Arrange families in a table, the most probable first, numbered from 1."""
    return pd.DataFrame(
        {
            "equation": [family.face.equation.text for family in families],
            "probability": [family.probability for family in families],
            "laws": [len(family) for family in families],
            "log_q": [family.face.evidence.log_q for family in families],
            "score": [family.face.score for family in families],
            "others": [[one.equation.text for one in family.members[1:]] for family in families],
        },
        index=pd.RangeIndex(1, len(families) + 1, name="family"),
    )
