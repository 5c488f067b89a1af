"""All that sets the Bayesian search and the conventional one apart: a row for each."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from pmsr.equation.expression import Equation
from pmsr.equation.program import Program
from pmsr.evidence.evidence import Evidence, Weighed, fit_rmse, weigh
from pmsr.evidence.problem import Problem
from pmsr.search.selection import replaces_if_better, replaces_probabilistically
from pmsr.settings import Search, Settings


class Measured(Protocol):
    """What has been weighed or fitted: the evidence of an equation, or a candidate."""

    @property
    def log_q(self) -> float:
        """Log normalized marginal likelihood; NaN if it was not computed."""

    @property
    def rmse(self) -> float:
        """Root mean squared error of the best fit."""


@dataclass(frozen=True)
class Engine:
    """How a search treats equations.

    Parameters
    ----------
    weigh
        Evidence of a program on a problem, with settings and a seed. ``floor`` is the score below
        which a rough value will do; with ``keep``, fit and particles come with it.
    key
        The name under which an equation is remembered, and the form in which it is weighed.
    score
        What the search maximises.
    replaces
        Whether a child's score takes the place of its parent's.
    rank
        What results are ordered by, larger first.
    show
        The measure in words.
    has_evidence
        Whether log q is computed.
    """

    weigh: Callable[..., Weighed]
    key: Callable[[Equation], tuple[str, Equation]]
    score: Callable[[Evidence], float]
    replaces: Callable[[float, float, np.random.Generator], bool]
    rank: Callable[[Measured], float]
    show: Callable[[Measured], str]
    has_evidence: bool


def engine_of(search: Search | None) -> Engine:
    """Return the engine of a search; a comparison, which is none, weighs as the Bayesian one."""
    return ENGINES["evidence" if search is None else search.fitness]


def _fit(
    program: Program,
    problem: Problem,
    settings: Settings,
    seed: np.random.SeedSequence,
    *,
    floor: float = -np.inf,
    keep: bool = False,
) -> Weighed:
    """Fit, whatever the floor: there is nothing that could be spared, and nothing to keep."""
    return Weighed(fit_rmse(program, problem, settings, seed))


ENGINES = {
    "evidence": Engine(
        weigh=weigh,
        # In canonical form, so that a law is weighed once.
        key=lambda equation: (equation.key, equation.to_canonical()),
        score=lambda evidence: evidence.log_q,
        replaces=replaces_probabilistically,
        rank=lambda one: one.log_q,
        show=lambda one: f"log q {one.log_q:.2f}",
        has_evidence=True,
    ),
    "rmse": Engine(
        weigh=_fit,
        # Its equations grow without end, so that algebra would take most of the time; and a
        # redundant parameter changes no error.
        key=lambda equation: (str(equation), equation),
        score=lambda evidence: -evidence.rmse,
        replaces=replaces_if_better,
        rank=lambda one: -one.rmse,
        show=lambda one: f"RMSE {one.rmse:.4g}",
        has_evidence=False,
    ),
}
