"""Every distinct equation that a search has seen, its leaders and its Pareto front."""

from dataclasses import dataclass

import numpy as np
from deap import base, tools

from pmsr.equation.program import Program
from pmsr.evidence.evidence import Evidence
from pmsr.search.constraints import Reading
from pmsr.search.engines import Engine

N_LEADERS = 300  # size of the hall of fame


@dataclass(frozen=True)
class Candidate:
    """One distinct equation that the search has seen, with its evidence."""

    key: str  # canonical, except in a conventional search
    score: float  # of the engine; larger is better
    log_q: float
    log_q_se: float
    rmse: float
    n_parameters: int
    complexity: int
    failure: str | None = None


def make_candidate(key: str, program: Program, evidence: Evidence, engine: Engine) -> Candidate:
    """Return what a search remembers of an equation that was weighed."""
    return Candidate(
        key,
        engine.score(evidence),
        evidence.log_q,
        evidence.log_q_se,
        evidence.rmse,
        evidence.n_parameters,
        len(program.nodes),
        evidence.failure,
    )


class Score(base.Fitness):
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
    """Every distinct equation seen, by key; the cache of the evidence."""

    def __init__(self) -> None:
        self.candidates: dict[str, Candidate] = {}
        self._keys: dict[bytes, str] = {}
        self.n_lookups = self.n_hits = 0
        self._leaders = tools.HallOfFame(N_LEADERS, similar=_is_same_equation)
        self._front = tools.ParetoFront(similar=_is_same_equation)

    @property
    def best(self) -> Candidate | None:
        """The best candidate so far."""
        return self._leaders[0].candidate if len(self._leaders) else None

    @property
    def leaders(self) -> list[Candidate]:
        """The best candidates, best first."""
        return [member.candidate for member in self._leaders]

    @property
    def front(self) -> list[Candidate]:
        """Those that no other beats in both score and complexity, simplest first."""
        members = (member.candidate for member in self._front)
        return sorted(members, key=lambda candidate: candidate.complexity)

    @property
    def n_failed(self) -> int:
        """How many could not be weighed."""
        return sum(candidate.failure is not None for candidate in self.candidates.values())

    def key_of(self, raw: bytes) -> str | None:
        """Return the key of a graph from its raw key, if it was read before."""
        self.n_lookups += 1
        key = self._keys.get(raw)
        # Time may have been up between reading a graph and weighing its equation.
        key = key if key in self.candidates else None
        self.n_hits += key is not None
        return key

    def learn(self, raw: bytes, reading: Reading) -> bool:
        """Take note of what a graph means; tell whether the equation must be weighed."""
        self._keys[raw] = reading.key
        if reading.key in self.candidates:
            self.n_hits += 1
            return False
        if reading.refusal is not None:
            self.add(_failed(reading.key, reading.refusal))
            return False
        return True

    def add(self, candidate: Candidate) -> None:
        """Record a candidate; keep the leaders and the front up to date."""
        self.candidates[candidate.key] = candidate
        if candidate.failure is None and np.isfinite(candidate.score):
            self._leaders.update([_Member(candidate, Score((candidate.score,)))])
            both = _ScoreAndSize((candidate.score, candidate.complexity))
            self._front.update([_Member(candidate, both)])


def _is_same_equation(first: _Member, second: _Member) -> bool:
    # DEAP's question about members; the archive itself holds every key once.
    return first.candidate.key == second.candidate.key


def _failed(key: str, reason: str) -> Candidate:
    return Candidate(key, -np.inf, -np.inf, 0.0, np.inf, 0, 0, reason)
