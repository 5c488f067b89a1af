"""The equations that a search would report: DEAP's hall of fame and Pareto front of candidates."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from deap import base, tools

from pmsr.equation.program import Program
from pmsr.evidence.evidence import Evidence
from pmsr.search.engines import Engine

N_LEADERS = 300  # size of the hall of fame


@dataclass(frozen=True)
class Candidate:
    """One distinct equation that the search has seen, with its evidence."""

    key: str  # canonical, as folded, or as it came in a conventional search
    score: float  # of the engine, with the prior; larger is better
    log_q: float
    log_q_se: float  # NaN if the law was only screened
    rmse: float
    n_parameters: int
    complexity: int
    failure: str | None = None
    log_prior: float = 0.0
    law: int = 0  # digest of its curve, if it was screened


def make_candidate(
    key: str, program: Program, evidence: Evidence, engine: Engine, log_prior: float = 0.0
) -> Candidate:
    """Return what a search remembers of an equation that was weighed."""
    return Candidate(
        key,
        engine.score(evidence) + log_prior,
        evidence.log_q,
        evidence.log_q_se,
        evidence.rmse,
        evidence.n_parameters,
        len(program.nodes),
        evidence.failure,
        log_prior,
    )


def failed_candidate(key: str, reason: str) -> Candidate:
    """Return what a search remembers of an equation that it refused."""
    return Candidate(key, -np.inf, -np.inf, 0.0, np.inf, 0, 0, reason)


class _Score(base.Fitness):
    """DEAP's fitness, defined here because ``creator.create`` writes into module globals."""

    weights = (1.0,)


class _ScoreAndSize(base.Fitness):
    weights = (1.0, -1.0)


class _Member:
    """An entry of the hall of fame or of the front: DEAP wants a fitness on it."""

    def __init__(self, candidate: Candidate, fitness: base.Fitness) -> None:
        self.candidate = candidate
        self.fitness = fitness


class Archive:
    """The best of many candidates, whatever the order in which they come.

    Parameters
    ----------
    candidates
        Distinct equations; those that failed do not count.
    """

    def __init__(self, candidates: Iterable[Candidate]) -> None:
        found = [one for one in candidates if one.failure is None and np.isfinite(one.score)]
        found.sort(key=lambda one: (-one.score, one.complexity, one.key))
        hall = tools.HallOfFame(N_LEADERS, similar=_is_same_equation)
        hall.update([_Member(one, _Score((one.score,))) for one in found[:N_LEADERS]])
        front = tools.ParetoFront(similar=_is_same_equation)
        front.update([_Member(one, _ScoreAndSize((one.score, one.complexity))) for one in found])
        self.leaders = [member.candidate for member in hall]
        self.front = sorted(
            (member.candidate for member in front), key=lambda one: (one.complexity, one.key)
        )

    @property
    def best(self) -> Candidate | None:
        """The best candidate."""
        return self.leaders[0] if self.leaders else None


def _is_same_equation(first: _Member, second: _Member) -> bool:
    return first.candidate.key == second.candidate.key
