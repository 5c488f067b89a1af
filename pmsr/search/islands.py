"""Islands: populations that evolve on their own, generation by generation, and exchange their best.

What an island does follows from the problem, the seed, its number and the generation, and from what
the last exchange brought; never from the clock, from other islands meanwhile, or from who computes.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
from deap import base, tools
from numpy.typing import NDArray

from pmsr.equation.expression import Equation
from pmsr.search.archive import Candidate
from pmsr.search.bench import Bench
from pmsr.search.genome import (
    Genome,
    crossover,
    distance,
    equation_genome,
    mutate,
    neighbours,
    program_genome,
    random_genome,
)
from pmsr.search.leaders import Leader
from pmsr.search.memory import Floats, Keys
from pmsr.search.selection import pair_by_distance

N_CLIMBERS = 3  # of the best individuals that climb at a refresh
MAX_CLIMB = 5  # steps that each takes at most
N_TRAVELLERS = 4  # of the best individuals that go to the next island
N_RENEWALS = 3  # further mutations of a child that is known already
PERIOD = 10  # generations between exchanges, if the search is never refreshed


class Judge(Protocol):
    """How an island finds the scores of graphs, and what it knows from doing so."""

    def judge(self, genomes: Sequence[Genome], bench: Bench) -> Keys:
        """Make sure that all graphs are known; return their names, the same for the same law."""

    def are_known(self, genomes: Sequence[Genome], bench: Bench) -> NDArray[np.bool_]:
        """Tell which graphs would bring nothing new."""

    def scores(self, names: Keys) -> Floats:
        """Return the score of each name; -inf for what was refused."""

    def sizes(self, names: Keys) -> tuple[Floats, Floats]:
        """Return the complexity and the number of parameters of each name."""

    def expand(self, bench: Bench) -> None:
        """Look at laws that are an operator larger than the best."""

    def best(self, bench: Bench) -> Candidate | None:
        """Return the best so far."""

    def meet(self, other: Any, names: Keys) -> None:
        """Learn from the judge of another island, of the same kind, what these are worth."""

    def copy(self) -> Any:
        """Return a judge that goes its own way from here."""

    @property
    def n_screened(self) -> int:
        """How many distinct candidates it has judged."""

    @property
    def starters(self) -> Sequence[Leader]:
        """Laws that a first population may draw from, best first."""


@dataclass(frozen=True, eq=False)
class Island:
    """A population, between two generations.

    Parameters
    ----------
    number
        Of the island, from 0 on.
    judge
        What it knows.
    genomes, names
        The population.
    generation
        How many it has completed; -1 before its first population.
    records
        One for each generation since the last exchange.
    """

    number: int
    judge: Any  # a Judge: a funnel or a sampler
    genomes: tuple[Genome, ...] = ()
    names: Keys = field(default_factory=lambda: np.empty(0, dtype=np.uint64))
    generation: int = -1
    records: tuple[dict[str, Any], ...] = ()


def evolve_island(
    island: Island, bench: Bench, seeds: Sequence[Equation], generation: int
) -> Island:
    """Go on to a generation; the island that was given stays as it is.

    Parameters
    ----------
    island
        Where to go on.
    bench
        What laws are judged by.
    seeds
        Equations that are part of the first population.
    generation
        The last to do.
    """
    return _Evolving(island, bench).run(seeds, generation)


class _Evolving:
    """An island on its way through some generations."""

    def __init__(self, island: Island, bench: Bench) -> None:
        self.island, self.bench, self.search = island, bench, bench.search
        self.judge: Judge = island.judge.copy()
        self.genomes, self.names = list(island.genomes), island.names.copy()
        self.records: list[dict[str, Any]] = []
        self.rng = np.random.default_rng(0)
        self.toolbox = self._toolbox()
        self.statistics = _statistics()

    def _toolbox(self) -> base.Toolbox:
        """Register our operators: DEAP's own draw from the global random module."""
        toolbox = base.Toolbox()
        toolbox.register("individual", random_genome, self.bench.primitives)
        toolbox.register("mate", crossover)
        toolbox.register("mutate", mutate, primitives=self.bench.primitives)
        toolbox.register("distance", distance)
        toolbox.register("replaces", self.bench.engine.replaces)
        return toolbox

    def run(self, seeds: Sequence[Equation], last: int) -> Island:
        generation = self.island.generation
        while generation < last:
            generation += 1
            # A generator for each: where a run was interrupted leaves no trace.
            entropy = [self.bench.seed, self.island.number, generation]
            self.rng = np.random.default_rng(entropy)
            if generation == 0:
                self._begin(seeds)
            else:
                self._step()
                if self.search.refresh is not None and generation % self.search.refresh == 0:
                    self._refresh()
            self._record(generation)
        return replace(
            self.island,
            judge=self.judge,
            genomes=tuple(self.genomes),
            names=self.names,
            generation=generation,
            records=tuple(self.records),
        )

    def _begin(self, seeds: Sequence[Equation]) -> None:
        """Make the first population: guesses, the best of what is known, and random ones."""
        size, primitives, rng = self.search.population_size, self.bench.primitives, self.rng
        genomes = [equation_genome(seed, primitives, rng=rng) for seed in seeds]
        genomes += self._drawn(self.judge.starters[: size // 4], size // 4)
        genomes += self._drawn(self.judge.starters[size // 4 :], size // 4)
        while len(genomes) < size:
            genomes.append(self.toolbox.individual(rng=rng))
        self.genomes = genomes[:size]
        self.names = self.judge.judge(self.genomes, self.bench)

    def _drawn(self, laws: Sequence[Leader], n: int) -> list[Genome]:
        """Draw laws without repetition, as graphs."""
        genomes = []
        for place in self.rng.permutation(len(laws))[:n].tolist():
            # Algebra may have brought in an operator that graphs may not have.
            with suppress(ValueError):
                program = laws[place].program
                genomes.append(program_genome(program, self.bench.primitives, rng=self.rng))
        return genomes

    def _step(self) -> None:
        """Do one generation of crowding."""
        order = self.rng.permutation(len(self.genomes)).tolist()
        families = list(zip(order[::2], order[1::2], strict=True))
        children: list[Genome] = []
        for first, second in families:
            children += self._children(first, second)
        self._renew(children)
        names = self.judge.judge(children, self.bench)
        scores, new_scores = self.judge.scores(self.names), self.judge.scores(names)
        for place, parents in enumerate(families):
            pair = (2 * place, 2 * place + 1)
            distances = tuple(
                self.toolbox.distance(self.genomes[parent], children[child])
                for parent in parents
                for child in pair
            )
            for parent, child in pair_by_distance(distances):
                old, new = parents[parent], pair[child]
                if self.toolbox.replaces(new_scores[new], scores[old], rng=self.rng):
                    self.genomes[old], self.names[old] = children[new], names[new]

    def _children(self, first: int, second: int) -> list[Genome]:
        """Cross two parents and mutate their children, each with its probability."""
        genomes = [self.genomes[first], self.genomes[second]]
        if self.rng.random() < self.search.p_crossover:
            genomes = list(self.toolbox.mate(*genomes, rng=self.rng))
        return [
            self.toolbox.mutate(genome, rng=self.rng)
            if self.rng.random() < self.search.p_mutation
            else genome
            for genome in genomes
        ]

    def _renew(self, children: list[Genome]) -> None:
        """Mutate children that would bring nothing new once more, a few times."""
        places = list(range(len(children)))
        for _ in range(N_RENEWALS):
            known = self.judge.are_known([children[place] for place in places], self.bench)
            places = [place for place, is_known in zip(places, known, strict=True) if is_known]
            if not places:
                return
            for place in places:
                children[place] = self.toolbox.mutate(children[place], rng=self.rng)

    def _refresh(self) -> None:
        """Replace repeated laws by others, and let the best meet all their neighbours.

        Half of the others are random, half drawn from the leaders.
        """
        self.judge.expand(self.bench)
        _, first = np.unique(self.names, return_index=True)
        repeated = np.setdiff1d(np.arange(len(self.names)), first)
        newcomers = self._drawn(self.judge.starters, len(repeated) // 2)
        while len(newcomers) < len(repeated):
            newcomers.append(self.toolbox.individual(rng=self.rng))
        self.names[repeated] = self.judge.judge(newcomers, self.bench)
        for place, genome in zip(repeated.tolist(), newcomers, strict=True):
            self.genomes[place] = genome
        scores = self.judge.scores(self.names)[first]
        for place in first[np.argsort(-scores, kind="stable")][:N_CLIMBERS].tolist():
            self._climb(place)

    def _climb(self, place: int) -> None:
        """Put the best neighbour in the place of an individual, while that is an improvement."""
        for _ in range(MAX_CLIMB):
            around = neighbours(self.genomes[place], self.bench.primitives)
            if not around:
                return
            names = self.judge.judge(around, self.bench)
            scores = self.judge.scores(np.append(names, self.names[place]))
            best = int(np.argmax(scores[:-1]))
            if not scores[best] > scores[-1]:
                return
            self.genomes[place], self.names[place] = around[best], names[best]

    def _record(self, generation: int) -> None:
        """Say how the population is."""
        scores = self.judge.scores(self.names)
        sizes, parameters = self.judge.sizes(self.names)
        best = self.judge.best(self.bench)
        failed = ~np.isfinite(scores)
        chapters = self.statistics.compile(
            list(zip(scores[~failed], sizes[~failed], parameters[~failed], strict=True))
        )
        self.records.append(
            {
                "generation": generation,
                "best": best.key if best else "",
                "score_best": best.score if best else -np.inf,
                "score_median": chapters["score"]["median"],
                "complexity_best": best.complexity if best else 0,
                "complexity_mean": chapters["complexity"]["mean"],
                "parameters_mean": chapters["parameters"]["mean"],
                "rmse_best": best.rmse if best else np.inf,
                "n_distinct": len(np.unique(self.names)),
                "n_failed": int(np.count_nonzero(failed)),
                "n_candidates": self.judge.n_screened,
            }
        )


def _statistics() -> tools.MultiStatistics:
    """Statistics of the population's score, complexity and number of parameters."""
    statistics = tools.MultiStatistics(
        score=tools.Statistics(lambda one: one[0]),
        complexity=tools.Statistics(lambda one: one[1]),
        parameters=tools.Statistics(lambda one: one[2]),
    )
    statistics.register("mean", lambda values: float(np.mean(values)) if values else np.nan)
    # A law that misses by far has a score of any size.
    statistics["score"].register(
        "median", lambda values: float(np.median(values)) if values else np.nan
    )
    return statistics


def exchange(islands: Sequence[Island]) -> tuple[Island, ...]:
    """Let the best of every island go to the next, where they take the places of the worst."""
    if len(islands) == 1:
        return tuple(islands)
    judges = [island.judge.copy() for island in islands]
    genomes = [list(island.genomes) for island in islands]
    names = [island.names.copy() for island in islands]
    for here, island in enumerate(islands):
        there = (here + 1) % len(islands)
        _, first = np.unique(island.names, return_index=True)
        scores = island.judge.scores(island.names)
        best = first[np.argsort(-scores[first], kind="stable")][:N_TRAVELLERS]
        best = best[np.isfinite(scores[best])]
        best = best[~np.isin(island.names[best], islands[there].names)]
        judges[there].meet(island.judge, island.names[best])
        worst = np.argsort(islands[there].judge.scores(islands[there].names), kind="stable")
        for place, traveller in zip(worst.tolist(), best.tolist(), strict=False):
            genomes[there][place] = island.genomes[traveller]
            names[there][place] = island.names[traveller]
    return tuple(
        replace(island, judge=judges[k], genomes=tuple(genomes[k]), names=names[k])
        for k, island in enumerate(islands)
    )
