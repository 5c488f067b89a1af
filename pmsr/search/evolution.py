"""The loop of generations on DEAP: variation, evaluation by key, crowding; what was found."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from deap import base, tools

from pmsr.data import Data, leave_out_constant
from pmsr.equation.expression import Equation
from pmsr.equation.program import Program
from pmsr.evidence.evidence import Evidence, Weighed
from pmsr.evidence.problem import Problem, as_problem
from pmsr.laws.identity import Trace, group_laws
from pmsr.laws.order import rank
from pmsr.limits import time_left
from pmsr.search.archive import Archive, Candidate, Score, make_candidate
from pmsr.search.checkpoint import BUDGETS, State, load_state, save_state
from pmsr.search.engines import ENGINES, engine_of
from pmsr.search.finalists import order_finalists, read_key, reserve, weigh_finalists
from pmsr.search.genome import (
    Genome,
    Primitives,
    constant_equation,
    crossover,
    distance,
    equation_genome,
    mutate,
    neighbours,
    random_genome,
)
from pmsr.search.progress import show_progress
from pmsr.search.selection import pair_by_distance
from pmsr.search.workers import Workers
from pmsr.settings import QUICK, RandomSeed, Search, Settings

N_CLIMBERS = 3  # of the best individuals that climb at a refresh
MAX_CLIMB = 5  # steps that each takes at most
# Nats behind the best at which an equation is not sampled: more than half of all. Its integral is
# then that of a linear equation with the same squared error, within a nat for most.
FAR = 12.0
SAVE_SECONDS = 5.0  # between checkpoints


@dataclass(frozen=True, eq=False)
class Evolution:
    """What a search has found.

    Parameters
    ----------
    finalists
        The best distinct equations with their evidence, weighed again and ranked, best first.
    front
        Those that no other equation beats in both score and complexity, simplest first.
    population
        Keys of the last population.
    history
        One record a generation: DEAP's logbook.
    n_candidates
        Number of distinct equations seen.
    stopped
        Why the search ended.
    fitness
        ``"evidence"`` or ``"rmse"``; the conventional search does not weigh its finalists, whose
        ``log_q`` is NaN.
    seconds
        Where the time went: variation, algebra (with the look-up), weighing, finalists.
    n_failed
        How many of the equations seen could not be weighed.
    limit
        When, by ``time.monotonic``, all that belongs to the search must have come to its end.
    weighed
        Fit and particles of the finalists, by key: what their posteriors are made of.
    n_folded, n_screened, n_sampled
        Graphs folded, laws screened by the closed form, and laws weighed by sampling.
    n_enumerated, level
        All so many laws of up to so many nodes were screened; 0 if none was enumerated.
    log_rest
        Log of the sum of exp(log q + log P) over all laws that were screened and are not among the
        finalists, by the linear log q.
    is_settled
        Whether the best score had ceased to rise when time ended.
    """

    finalists: tuple[tuple[Equation, Evidence], ...]
    front: tuple[Candidate, ...]
    population: tuple[str, ...]
    history: tools.Logbook
    n_candidates: int
    stopped: str
    fitness: str = "evidence"
    seconds: Mapping[str, float] = field(default_factory=dict)
    n_failed: int = 0
    limit: float = np.inf
    weighed: Mapping[str, Weighed] = field(default_factory=dict)
    n_folded: int = 0
    n_screened: int = 0
    n_sampled: int = 0
    n_enumerated: int = 0
    level: int = 0
    log_rest: float = -np.inf
    is_settled: bool = True

    @property
    def winner(self) -> Equation:
        """The best of the finalists."""
        return self.finalists[ENGINES[self.fitness].winner(self.finalists)][0]


class Individual:
    """A genome with DEAP's fitness and the key of its equation."""

    def __init__(self, genome: Genome) -> None:
        self.genome = genome
        self.key = ""
        self.fitness = Score()


@dataclass(frozen=True)
class Generation:
    """What a callback is told after every generation."""

    number: int
    best: Candidate | None
    record: dict[str, Any] = field(default_factory=dict)


Callback = Callable[[Generation], bool | None]


def run_evolution(
    data: Data | Problem,
    *,
    search: Search | None = None,
    settings: Settings | None = None,
    seeds: Sequence[Equation] = (),
    random_seed: RandomSeed = None,
    n_jobs: int | None = None,
    callbacks: Sequence[Callback] = (),
    checkpoint: str | Path | None = None,
    verbose: bool | Callable[[str], None] = False,
) -> Evolution:
    """Search for equations (Section 2.1 and Algorithm 1).

    Parameters
    ----------
    data
        The observations, or the problem that was made of them and of the settings. Variables that
        are the same in all rows are left out.
    search, settings
        Options of the search and of the evidence.
    seeds
        Equations that are part of the first population.
    random_seed
        Seed or generator: the same seed gives the same result for any number of workers.
    n_jobs
        Workers, in the sense of joblib; None follows ``joblib.parallel_config``.
    callbacks
        Called after every generation; one that returns True ends the search.
    checkpoint
        File to which the state is written after every few generations, and from which the search
        goes on if it exists. If a budget had ended it, and is the same, the finalists are weighed
        and nothing else.
    verbose
        Whether to show progress; or a function, called with a line that says what is being done.

    Returns
    -------
    Evolution
        What was found, also after Ctrl-C.

    Examples
    --------
    >>> from pmsr.data import load_galileo, make_data
    >>> found = run_evolution(
    ...     make_data(*load_galileo("shelf")),
    ...     search=Search(operators=("*", "sqrt"), population_size=20, generations=5),
    ...     random_seed=0,
    ... )
    >>> print(found.winner)
    c0*sqrt(H)
    """
    search, settings = search or Search(), settings or QUICK
    problem = as_problem(data, settings, search.max_parameters)
    problem = replace(problem, data=leave_out_constant(problem.data))
    seeds = [guess_without_constant(seed, problem.data) for seed in seeds]
    run = _Run(problem, search, settings, random_seed, n_jobs)
    with run.workers.parallel:
        if checkpoint is not None and Path(checkpoint).exists():
            run.restore(load_state(checkpoint, run.data, search, settings, run.seed))
        else:
            run.prepare(seeds)
        with show_progress(run, verbose) as show:
            stopped = run.ended or run.evolve(callbacks, checkpoint, show)
            return run.finish(stopped, show)


def guess_without_constant(seed: Equation, data: Data) -> Equation:
    """Return a guess as an equation in the variables that vary."""
    used = {symbol.name for symbol in seed.expression.free_symbols}
    for name in seed.variables:
        if name in used and name not in data.names:
            raise ValueError(
                f"The guess {seed.text!r} depends on {name!r}, which is the same in all rows. "
                "Write a number or a parameter in its place, or weigh it with pmsr.compare."
            )
    if set(seed.variables) <= set(data.names):
        return seed
    kept = [name for name in seed.variables if name in data.names]
    return Equation(seed.text, kept, seed.parameters)


class _Run:
    """The state of a search: population, generator, archive, logbook."""

    def __init__(
        self,
        problem: Problem,
        search: Search,
        settings: Settings,
        random_seed: RandomSeed,
        n_jobs: int | None,
    ) -> None:
        self.problem, self.search, self.settings = problem, search, settings
        self.data = data = problem.data
        self.engine = engine_of(search)
        self.started = time.monotonic()
        self.begun = self.started  # in this process: a search that goes on has started earlier
        self.around = self.begun + time_left()
        self.seed = int(np.random.default_rng(random_seed).integers(2**63))
        self.rng = np.random.default_rng(self.seed)
        self.primitives = Primitives(
            search.operators, data.names, search.max_complexity, shared=search.share_parameters
        )
        self.archive = Archive()
        self.workers = Workers.hire(problem, search, n_jobs)
        self.generation = 0
        self.last_improvement = 0
        self.history = tools.Logbook()
        self.population: list[Individual] = []
        self.seconds = dict.fromkeys(("variation", "algebra", "weighing", "finalists"), 0.0)
        self.n_timed = 0  # equations on which the seconds of weighing were spent
        self.n_whole = 0  # candidates that were seen in whole generations
        self.ended: str | None = None
        self.weighed: dict[str, Weighed] = {}
        self.toolbox = self._toolbox()
        self.statistics = self._statistics()

    def _toolbox(self) -> base.Toolbox:
        """Register our operators: DEAP's own draw from the global random module."""
        toolbox = base.Toolbox()
        toolbox.register("individual", random_genome, self.primitives, rng=self.rng)
        toolbox.register("mate", crossover, rng=self.rng)
        toolbox.register("mutate", mutate, primitives=self.primitives, rng=self.rng)
        toolbox.register("distance", distance)
        toolbox.register("replaces", self.engine.replaces, rng=self.rng)
        return toolbox

    def _statistics(self) -> tools.MultiStatistics:
        """Statistics of the population's score, complexity and number of parameters."""
        candidates = self.archive.candidates

        def score(individual: Individual) -> float:
            return float(candidates[individual.key].score)

        statistics = tools.MultiStatistics(
            score=tools.Statistics(score),
            complexity=tools.Statistics(lambda i: candidates[i.key].complexity),
            parameters=tools.Statistics(lambda i: candidates[i.key].n_parameters),
        )
        statistics.register("mean", _finite_mean)
        statistics.register("max", max)
        return statistics

    def prepare(self, seeds: Sequence[Equation]) -> None:
        """Make the first population."""
        genomes = [equation_genome(seed, self.primitives, rng=self.rng) for seed in seeds]
        while len(genomes) < self.search.population_size:
            genomes.append(self.toolbox.individual())
        self.population = [Individual(genome) for genome in genomes[: self.search.population_size]]

    def restore(self, state: State) -> None:
        """Go on where a checkpoint left off."""
        for candidate in state.candidates:
            self.archive.add(Candidate(**candidate))
        self.population = [Individual(genome) for genome in state.genomes]
        for individual, key in zip(self.population, state.keys, strict=True):
            individual.key = key
            individual.fitness.values = (self.archive.candidates[key].score,)
        self.rng.bit_generator.state = state.rng_state
        self.generation, self.last_improvement = state.generation, state.last_improvement
        self.started -= state.elapsed
        self.n_whole = self.n_weighed
        for record in state.history:
            self.history.record(**record)
        if state.budget == self._budget():
            self.ended = state.ended

    def _budget(self) -> dict[str, float | None]:
        return {name: getattr(self.search, name) for name in BUDGETS}

    def state(self) -> State:
        """Everything that decides how the search goes on."""
        return State(
            generation=self.generation,
            last_improvement=self.last_improvement,
            elapsed=time.monotonic() - self.started,
            rng_state=self.rng.bit_generator.state,
            genomes=[individual.genome for individual in self.population],
            keys=[individual.key for individual in self.population],
            # Without those of a generation that was not completed: they will come again.
            candidates=[
                vars(one) for one in islice(self.archive.candidates.values(), self.n_whole)
            ],
            history=list(self.history),
            ended=self.ended,
            budget=self._budget(),
        )

    def evolve(
        self,
        callbacks: Sequence[Callback],
        checkpoint: str | Path | None,
        show: Callable[..., None],
    ) -> str:
        """Do generations until the budget ends; return the reason."""
        last_saved = time.monotonic()
        whole = self.population[:], self.rng.bit_generator.state
        reason: str | None = None
        try:
            if not self.history:
                show("first population")
                if not self.evaluate(self.population, self.deadline):
                    self._fill()
                    reason = "max_time"
                self._record()
            while reason is None and (reason := self._end()) is None:
                if not self.step():
                    reason = "max_time"
                    break
                whole = self.population[:], self.rng.bit_generator.state
                show()
                if checkpoint is not None and time.monotonic() - last_saved > SAVE_SECONDS:
                    save_state(
                        checkpoint, self.state(), self.data, self.search, self.settings, self.seed
                    )
                    last_saved = time.monotonic()
                told = Generation(self.generation, self.best, self.history[-1])
                if any([callback(told) for callback in callbacks]):
                    reason = "callback"
                    break
        except KeyboardInterrupt:
            if not self.history:
                raise  # in the first population: nothing is lost
            reason = "interrupted"
            # Ctrl-C reaches the workers too, and may have taken half of their work with it.
            self.workers = self.workers.dismiss()
            # In the middle of a generation the population may hold what was never weighed.
            self.population, self.rng.bit_generator.state = whole
        if reason not in ("callback", "interrupted"):
            self.ended = reason
        if checkpoint is not None:
            save_state(checkpoint, self.state(), self.data, self.search, self.settings, self.seed)
        return reason

    def _fill(self) -> None:
        """Give the places of those that there was no time to weigh to others, in turn."""
        weighed = [one for one in self.population if one.key in self.archive.candidates]
        if not any(self.archive.candidates[one.key].failure is None for one in weighed):
            # A constant can always be weighed.
            constant = constant_equation(self.data.names)
            one = Individual(equation_genome(constant, self.primitives, rng=self.rng))
            self.evaluate([one], None)
            weighed.insert(0, one)
        for one in weighed:
            one.fitness.values = (self.archive.candidates[one.key].score,)
        self.population = [weighed[k % len(weighed)] for k in range(len(self.population))]

    def _end(self) -> str | None:
        search = self.search
        if self.generation >= search.generations:
            return "generations"
        if search.max_evaluations is not None and self.n_weighed >= search.max_evaluations:
            return "max_evaluations"
        if (
            search.patience is not None
            and self.generation - self.last_improvement >= search.patience
        ):
            return "patience"
        if self.deadline is not None and time.monotonic() >= self.deadline:
            return "max_time"
        return None

    @property
    def n_weighed(self) -> int:
        """Number of distinct equations seen."""
        return len(self.archive.candidates)

    @property
    def deadline(self) -> float | None:
        """When to stop, so that time is left for the finalists and for the winner's posterior."""
        if self.limit == np.inf:
            return None
        return self.limit - reserve(self.limit - self.begun, self._pace(), self.settings)

    def _pace(self) -> float:
        """Return the seconds that weighing an equation has taken so far, on average."""
        return self.seconds["weighing"] * self.workers.n_workers / max(1, self.n_timed)

    @property
    def limit(self) -> float:
        """When everything must have come to its end."""
        return min(self.started + float(self.search.max_time or np.inf), self.around)

    @property
    def best(self) -> Candidate | None:
        """The best candidate so far."""
        return self.archive.best

    def step(self) -> bool:
        """Do one generation of crowding; False if time ran out in the middle, which undoes it."""
        before = self.population[:], self.rng.bit_generator.state
        best = self.best
        clock = time.monotonic()
        order = self.rng.permutation(len(self.population))
        families = []
        for first, second in zip(order[::2], order[1::2], strict=True):
            parents = (int(first), int(second))
            families.append((parents, self._children(*parents)))
        self.seconds["variation"] += time.monotonic() - clock
        children = [child for _, pair in families for child in pair]
        done = self.evaluate(children, self.deadline)
        if done:
            for parents, pair in families:
                self._replace(parents, pair)
            refresh = self.search.refresh
            if refresh is not None and (self.generation + 1) % refresh == 0:
                done = self._refresh()
        if not done:
            self.population, self.rng.bit_generator.state = before
            return False
        self.generation += 1
        if best is not self.best:
            self.last_improvement = self.generation
        self._record()
        return True

    def _children(self, first: int, second: int) -> tuple[Individual, Individual]:
        """Cross two parents and mutate their children, each with its probability."""
        genomes = (self.population[first].genome, self.population[second].genome)
        if self.rng.random() < self.search.p_crossover:
            genomes = self.toolbox.mate(*genomes)
        children = []
        for genome in genomes:
            mutated = self.rng.random() < self.search.p_mutation
            children.append(Individual(self.toolbox.mutate(genome) if mutated else genome))
        return children[0], children[1]

    def _replace(self, parents: tuple[int, int], children: tuple[Individual, Individual]) -> None:
        old = [self.population[parent] for parent in parents]
        distances = tuple(
            self.toolbox.distance(parent.genome, child.genome)
            for parent in old
            for child in children
        )
        for parent, child in pair_by_distance(distances):
            scores = (children[child].fitness.values[0], old[parent].fitness.values[0])
            if self.toolbox.replaces(*scores):
                self.population[parents[parent]] = children[child]

    def _refresh(self) -> bool:
        """Replace repeated equations by random ones, and let the best meet all their neighbours.

        False if time ran out.
        """
        seen: set[str] = set()
        distinct, newcomers = [], []
        for place, individual in enumerate(self.population):
            if individual.key in seen:
                newcomers.append(place)
                self.population[place] = Individual(self.toolbox.individual())
            else:
                distinct.append(place)
            seen.add(individual.key)
        if not self.evaluate([self.population[place] for place in newcomers], self.deadline):
            return False
        distinct.sort(key=lambda place: -self.population[place].fitness.values[0])
        return all(self._climb(place) for place in distinct[:N_CLIMBERS])

    def _climb(self, place: int) -> bool:
        """Put the best neighbour in the place of an individual, while that is an improvement.

        False if time ran out.
        """
        for _ in range(MAX_CLIMB):
            now = self.population[place]
            around = [Individual(genome) for genome in neighbours(now.genome, self.primitives)]
            if not self.evaluate(around, self.deadline):
                return False
            best = max(around, key=lambda individual: individual.fitness.values[0], default=now)
            if best.fitness.values[0] <= now.fitness.values[0]:
                return True
            self.population[place] = best
        return True

    def evaluate(self, individuals: Sequence[Individual], deadline: float | None) -> bool:
        """Give every individual its key and score; False if the deadline passed meanwhile."""
        clock = time.monotonic()
        raws = [individual.genome.raw_key() for individual in individuals]
        unread: dict[bytes, Genome] = {}
        for raw, individual in zip(raws, individuals, strict=True):
            individual.key = self.archive.key_of(raw) or ""
            if not individual.key:
                unread.setdefault(raw, individual.genome)
        found = self.workers.read(list(unread.values()), deadline)
        readings = {raw: one for raw, one in zip(unread, found, strict=True) if one is not None}
        new = {
            reading.key: reading.program
            for raw, reading in readings.items()
            if self.archive.learn(raw, reading) and reading.program is not None
        }
        for raw, individual in zip(raws, individuals, strict=True):
            if raw in readings:
                individual.key = readings[raw].key
        self.seconds["algebra"] += time.monotonic() - clock
        clock = time.monotonic()
        done = self._weigh(list(new.items()), deadline) and len(readings) == len(unread)
        self.seconds["weighing"] += time.monotonic() - clock
        if done:
            for individual in individuals:
                individual.fitness.values = (self.archive.candidates[individual.key].score,)
        return done

    def _weigh(self, new: list[tuple[str, Program]], deadline: float | None) -> bool:
        """Weigh new equations in parallel; False if time was up before the last."""
        # Not among the tasks' results so far: they must not depend on the number of workers.
        floor = self.best.score - FAR if self.best is not None else -np.inf
        found = self.workers.weigh(new, self.settings, self.seed, deadline, floor=floor)
        for (key, program), weighed in zip(new, found, strict=True):
            if weighed is not None:
                self.archive.add(make_candidate(key, program, weighed.evidence, self.engine))
                self.n_timed += 1
        return all(weighed is not None for weighed in found)

    def _record(self) -> None:
        """Write one line of the logbook."""
        self.n_whole = self.n_weighed
        chapters = self.statistics.compile(self.population)
        candidates = [self.archive.candidates[i.key] for i in self.population]
        self.history.record(
            generation=self.generation,
            best=self.best.key if self.best else "",
            score_best=self.best.score if self.best else -np.inf,
            score_mean=chapters["score"]["mean"],
            complexity_best=self.best.complexity if self.best else 0,
            complexity_mean=chapters["complexity"]["mean"],
            parameters_mean=chapters["parameters"]["mean"],
            rmse_best=self.best.rmse if self.best else np.inf,
            n_distinct=len({i.key for i in self.population}),
            n_failed=sum(candidate.failure is not None for candidate in candidates),
            n_candidates=self.n_weighed,
            cache_hits=self.archive.n_hits,
            cache_lookups=self.archive.n_lookups,
            equations_per_second=self.n_weighed / max(1e-9, time.monotonic() - self.started),
            elapsed=time.monotonic() - self.started,
        )

    def finish(self, stopped: str, show: Callable[..., None]) -> Evolution:
        """Weigh the finalists again, with replicates, and rank them."""
        names, front = self.data.names, self.archive.front
        laws = order_finalists(self.archive.leaders, front, names, self.search.n_finalists)
        traces = [Trace(read_key(law.key, names).key) for law in laws]
        keys = [traces[place].key for place in group_laws(traces)]
        pairs: list[tuple[Equation, Evidence]] = []
        clock = time.monotonic()
        show(f"weighing {len(keys)} finalists again")
        try:
            for equation, weighed in weigh_finalists(
                keys,
                self.workers,
                self.settings,
                self.seed,
                limit=self.limit,
                quick=self._pace(),
            ):
                pairs.append((equation, weighed.evidence))
                self.weighed[equation.key] = weighed
                show(f"weighing finalists again: {len(pairs)} of {len(keys)} done")
        except KeyboardInterrupt:
            if not pairs:
                raise
            stopped = "interrupted"
        self.seconds["finalists"] += time.monotonic() - clock
        show("sampling the posterior of the winner")
        order = rank([self.engine.score(evidence) for _, evidence in pairs])
        population = tuple(individual.key for individual in self.population)
        return Evolution(
            tuple(pairs[place] for place in order),
            tuple(front),
            population,
            self.history,
            self.n_weighed,
            stopped,
            self.search.fitness,
            dict(self.seconds),
            self.archive.n_failed,
            self.limit,
            self.weighed,
        )


def _finite_mean(values: Sequence[float]) -> float:
    finite = [value for value in values if np.isfinite(value)]
    return float(np.mean(finite)) if finite else float("nan")
