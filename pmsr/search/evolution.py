"""Generations of equations on DEAP: variation, evaluation by key, crowding; what was found."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from itertools import islice, zip_longest
from pathlib import Path
from typing import Any

import numpy as np
from deap import base, tools
from joblib import Parallel, delayed, effective_n_jobs
from rich.errors import LiveError
from rich.markup import escape
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from pmsr.data import Data, leave_out_constant
from pmsr.equation.algebra import TooLarge
from pmsr.equation.expression import MAX_LENGTH, Equation
from pmsr.equation.grammar import without_quotes
from pmsr.equation.operators import (
    FIRST_OPERATOR,
    OPERATORS,
    PARAMETER,
    POWER,
    VARIABLE,
    Operator,
    added_operators,
    operator_code,
    take_over,
)
from pmsr.equation.program import Program
from pmsr.evidence.evidence import (
    CHAINS,
    DRAWS,
    Evidence,
    Weighed,
    fit_rmse,
    seed_for,
    weigh,
)
from pmsr.evidence.posterior import OVERSAMPLING
from pmsr.evidence.problem import Problem, as_problem
from pmsr.evidence.smc import MAX_SWEEPS
from pmsr.limits import OutOfTime, check_time, time_left, time_limit
from pmsr.search.checkpoint import BUDGETS, State, load_state, save_state
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
from pmsr.search.selection import (
    pair_by_distance,
    replaces_if_better,
    replaces_probabilistically,
    simplest_close,
)
from pmsr.settings import QUICK, RandomSeed, Search, Settings
from pmsr.threads import SCREEN

N_LEADERS = 300  # size of the hall of fame
SHARES = 2  # batches for each worker: few, because each costs milliseconds, yet of even lengths
N_CLIMBERS = 3  # of the best individuals that climb at a refresh
MAX_CLIMB = 5  # steps that each takes at most
# Nats behind the best at which an equation is not sampled: more than half of all. Its integral is
# then that of a linear equation with the same squared error, within a nat for most.
FAR = 12.0
SAVE_SECONDS = 5.0  # between checkpoints
FINAL_SHARE = 0.2  # of max_time, at least, for all that comes after the last generation
MOST_SHARE = 0.5  # of max_time, at most, for the same
# Among thousands of forms some gain a nat by chance: on Galileo's shelf data sqrt(c0*H/(c1 + H))
# is 1.05 nats ahead of c0*sqrt(H), by quadrature. So the winner may be farther behind than in a
# comparison of a few equations.
MARGIN = 1.5


@dataclass(frozen=True)
class Candidate:
    """One distinct equation that the search has seen, with its evidence."""

    key: str  # canonical, except in a conventional search
    score: float  # log q less two standard errors, or the negative RMSE; larger is better
    log_q: float
    log_q_se: float
    rmse: float
    n_parameters: int
    complexity: int
    failure: str | None = None


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

    @property
    def winner(self) -> Equation:
        """The simplest finalist whose evidence is close to the best one's, or the least error."""
        equations, evidences = zip(*self.finalists, strict=True)
        if self.fitness == "rmse":
            return equations[0]
        place = simplest_close(
            [evidence.log_q for evidence in evidences],
            [evidence.log_q_se for evidence in evidences],
            [equation.complexity for equation in equations],
            [len(equation.parameters) for equation in equations],
            margin=MARGIN,
        )
        return equations[place]


class _Score(base.Fitness):
    """DEAP's fitness, defined here because ``creator.create`` writes into module globals."""

    weights = (1.0,)


class _ScoreAndSize(base.Fitness):
    weights = (1.0, -1.0)


class Individual:
    """A genome with DEAP's fitness and the key of its equation."""

    def __init__(self, genome: Genome) -> None:
        self.genome = genome
        self.key = ""
        self.fitness = _Score()


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
        same = _same_equation
        self.leaders = tools.HallOfFame(N_LEADERS, similar=same)
        self.front = tools.ParetoFront(similar=same)

    def key_of(self, raw: bytes) -> str | None:
        """Return the key of a graph from its raw key, if it was read before."""
        self.n_lookups += 1
        key = self._keys.get(raw)
        self.n_hits += key is not None
        return key

    def learn(self, raw: bytes, reading: "Reading") -> bool:
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
            self.leaders.update([_Member(candidate, _Score((candidate.score,)))])
            both = _ScoreAndSize((candidate.score, candidate.complexity))
            self.front.update([_Member(candidate, both)])


@dataclass(frozen=True, eq=False)
class Reading:
    """What a graph means: its equation, or why it is refused."""

    key: str
    program: Program | None = None
    refusal: str | None = None


def read_graph(genome: Genome, variables: Sequence[str], search: Search) -> Reading:
    """Read a graph as an equation and check it against the constraints of a search.

    The equation is put into canonical form, so that a law is weighed once. The conventional
    search, in which equations grow without end, does without algebra: there it would take most of
    the time, and a redundant parameter changes no error.
    """
    try:
        equation = genome.equation(variables)
        if search.fitness == "rmse":
            key = str(equation)
        else:
            key = equation.key
            equation = equation.to_canonical()
    except TooLarge as error:
        return Reading(f"! {error}", refusal="too complex")
    except (ValueError, TypeError) as error:  # SymPy's way to say that a number is not real
        return Reading(f"! {error}", refusal="not a real, finite expression")
    refusal = "too complex" if len(key) > MAX_LENGTH else _refusal(equation, search)
    return Reading(key, equation.program if refusal is None else None, refusal)


def _refusal(equation: Equation, search: Search) -> str | None:
    """Tell which constraint an equation breaks, if any."""
    if equation.complexity > search.max_complexity:
        return "too complex"
    if search.max_parameters is not None and len(equation.parameters) > search.max_parameters:
        return "too many parameters"
    if not search.variable_exponents and _has_variable_exponent(equation.program):
        return "variable exponent"
    if not search.nested_functions and _has_nested_waves(equation.program):
        return "nested functions"
    if (foreign := _foreign_function(equation.program, search)) is not None:
        return f"operator {foreign}"
    if not search.share_parameters and _has_shared_parameter(equation.program):
        return "shared parameter"
    return None


@lru_cache(maxsize=1024)
def read_key(key: str, variables: tuple[str, ...]) -> Equation:
    """Return the equation of a key: whoever asks for it gets the same object, read once."""
    return Equation(key, variables)


def distinct_laws(candidates: Sequence[Candidate], variables: Sequence[str]) -> list[Candidate]:
    """Choose one spelling of each law: the simplest, then that with the fewest curved parameters.

    c0*sqrt(H), sqrt(c0*H) and sqrt(c0)*sqrt(c1*H/c0) have keys of their own, because flat priors on
    their parameters are not the same prior; but they fit equally well, to all digits, and a
    report of all of them would divide the probability of one law among its spellings.
    """
    laws: list[list[Candidate]] = []
    for candidate in candidates:
        for spellings in laws:
            if _among(candidate, spellings[:1]):
                spellings.append(candidate)
                break
        else:
            laws.append([candidate])

    def simplicity(candidate: Candidate) -> tuple[float, ...]:
        program = read_key(candidate.key, tuple(variables)).program
        n_curved = program.n_parameters - len(program.affine)
        return candidate.complexity, candidate.n_parameters, n_curved, -candidate.score

    return [min(spellings, key=simplicity) for spellings in laws]


def _among(candidate: Candidate, others: Sequence[Candidate]) -> bool:
    """Tell whether another candidate fits equally well: to 1e-7, which chance does not."""
    return any(abs(candidate.rmse - other.rmse) <= 1e-7 * other.rmse for other in others)


def _has_variable_exponent(program: Program) -> bool:
    """Tell whether a variable stands in an exponent; exp(x) is a function, not an exponent."""
    power = operator_code("pow")
    depends: list[bool] = []
    for code, a, b in program.nodes.tolist():
        if code == power and depends[b]:
            return True
        inner = code >= POWER
        depends.append(
            code == VARIABLE or (inner and (depends[a] or (code != POWER and depends[b])))
        )
    return False


def _has_nested_waves(program: Program) -> bool:
    """Tell whether one of sin, cos, tan and tanh stands inside another."""
    waves = [operator_code(name) for name in ("sin", "cos", "tan", "tanh")]
    inside: list[bool] = []
    for code, a, b in program.nodes.tolist():
        below = code >= POWER and (inside[a] or (code != POWER and inside[b]))
        if code in waves and below:
            return True
        inside.append(below or code in waves)
    return False


def _foreign_function(program: Program, search: Search) -> str | None:
    """Name a function that algebra brought in although it is not allowed: sqrt(x*x) is abs(x)."""
    names = list(OPERATORS)
    for code in program.nodes[:, 0].tolist():
        name = names[code - FIRST_OPERATOR] if code >= FIRST_OPERATOR else ""
        if name in search.operators or name in ("pow", "sqrt") or not name.isidentifier():
            continue
        if not (name == "exp" and search.variable_exponents):
            return name
    return None


def _has_shared_parameter(program: Program) -> bool:
    """Tell whether a parameter is an argument of two nodes, as in c0*(c0 + x)."""
    arguments = [
        child
        for code, a, b in program.nodes.tolist()
        if code >= POWER
        for child in ((a,) if code == POWER else {a, b})
    ]
    parameters = np.flatnonzero(program.nodes[:, 0] == PARAMETER)
    return any(arguments.count(node) > 1 for node in parameters.tolist())


def _same_equation(first: _Member, second: _Member) -> bool:
    return first.candidate.key == second.candidate.key


def _failed(key: str, reason: str) -> Candidate:
    return Candidate(key, -np.inf, -np.inf, 0.0, np.inf, 0, 0, reason)


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
    with run.parallel:
        if checkpoint is not None and Path(checkpoint).exists():
            run.restore(load_state(checkpoint, run.data, search, settings, run.seed))
        else:
            run.prepare(seeds)
        with _progress(run, verbose) as show:
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
        self.started = time.monotonic()
        self.begun = self.started  # in this process: a search that goes on has started earlier
        self.around = self.begun + time_left()
        self.seed = int(np.random.default_rng(random_seed).integers(2**63))
        self.rng = np.random.default_rng(self.seed)
        self.primitives = Primitives(
            search.operators, data.names, search.max_complexity, shared=search.share_parameters
        )
        self.archive = Archive()
        self.parallel = Parallel(n_jobs=n_jobs, batch_size=1, pre_dispatch="all")
        self.n_workers = effective_n_jobs(n_jobs)
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
        decide = (
            replaces_probabilistically if self.search.fitness == "evidence" else replaces_if_better
        )
        toolbox.register("replaces", decide, rng=self.rng)
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
            self.parallel = Parallel(n_jobs=1)
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
        """When to stop, so that time is left for the finalists and for the winner's posterior.

        How much these need follows from what weighing has taken so far and from the numbers of
        draws, as far as they decide it.
        """
        if self.limit == np.inf:
            return None
        whole = self.limit - self.begun
        needed = self._expected() * (1.0 + _posterior_work(self._thorough()))
        return self.limit - min(MOST_SHARE * whole, max(FINAL_SHARE * whole, needed))

    @property
    def limit(self) -> float:
        """When everything must have come to its end."""
        return min(self.started + float(self.search.max_time or np.inf), self.around)

    @property
    def best(self) -> Candidate | None:
        """The best candidate so far."""
        return self.archive.leaders[0].candidate if len(self.archive.leaders) else None

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
        found = self._read(list(unread.values()), deadline)
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

    def _read(self, genomes: list[Genome], deadline: float | None) -> list[Reading | None]:
        """Find the canonical forms of graphs, in parallel; None of those left when time is up."""
        until = _to_wall_clock(deadline)
        readings = self.parallel(
            delayed(_read_batch)(batch, self.data.names, self.search, added_operators(), until)
            for batch in _batches(genomes, self._share(len(genomes)))
        )
        return [reading for batch in readings for reading in batch]

    def _share(self, n_tasks: int) -> int:
        """Return how many tasks a batch should hold."""
        return max(1, -(-n_tasks // (SHARES * self.n_workers)))

    def _weigh(self, new: list[tuple[str, Program]], deadline: float | None) -> bool:
        """Weigh new equations in parallel; False if time was up before the last."""
        # Not among the tasks' results so far: they must not depend on the number of workers.
        floor = self.best.score - FAR if self.best is not None else -np.inf
        batches = _batches(new, self._share(len(new)))
        results = self.parallel(
            delayed(_weigh_batch)(
                batch,
                self.problem,
                self.settings,
                self.seed,
                self.search.fitness,
                added_operators(),
                _to_wall_clock(deadline),
                floor,
            )
            for batch in batches
        )
        for batch, evidences in zip(batches, results, strict=True):
            for (key, program), weighed in zip(batch, evidences, strict=False):
                self.archive.add(_candidate(key, program, weighed.evidence, self.search.fitness))
        n_weighed = sum(map(len, results))
        self.n_timed += n_weighed
        return n_weighed == len(new)

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
        front = sorted(
            (member.candidate for member in self.archive.front), key=lambda c: c.complexity
        )
        best = [member.candidate for member in self.archive.leaders]
        laws = order_finalists(best, front, self.data.names, self.search.n_finalists)
        keys = list(dict.fromkeys(read_key(law.key, self.data.names).key for law in laws))
        pairs: list[tuple[Equation, Evidence]] = []
        clock = time.monotonic()
        show(f"weighing {len(keys)} finalists again")
        try:
            for pair in self._weigh_finalists(keys):
                pairs.append(pair)
                show(f"weighing finalists again: {len(pairs)} of {len(keys)} done")
        except KeyboardInterrupt:
            if not pairs:
                raise
            stopped = "interrupted"
        self.seconds["finalists"] += time.monotonic() - clock
        show("sampling the posterior of the winner")
        if self.search.fitness == "evidence":
            pairs.sort(key=lambda pair: 2 * pair[1].log_q_se - pair[1].log_q)
        else:
            pairs.sort(key=lambda pair: pair[1].rmse)
        population = tuple(individual.key for individual in self.population)
        return Evolution(
            tuple(pairs),
            tuple(front),
            population,
            self.history,
            self.n_weighed,
            stopped,
            self.search.fitness,
            dict(self.seconds),
            sum(c.failure is not None for c in self.archive.candidates.values()),
            self.limit,
            self.weighed,
        )

    def _expected(self) -> float:
        """Return the seconds that a finalist will take, from what the search's weighing took."""
        quick = self.seconds["weighing"] * self.n_workers / max(1, self.n_timed)
        return quick * _work(self._thorough()) / _work(self.settings)

    def _thorough(self) -> Settings:
        """Return the settings with which finalists are weighed again."""
        return self.settings.for_finalists()

    def _weigh_finalists(self, keys: Sequence[str]) -> Iterator[tuple[Equation, Evidence]]:
        """Weigh equations thoroughly, in order, until the time that is left is a posterior's.

        At least half of the time is theirs: without them there is no winner to sample.
        """
        settings = self._thorough()
        slowest, weighed = self._expected(), set()
        half = 0.5 * (time.monotonic() + self.limit)
        for chunk in _batches(keys, self.n_workers):
            until = max(half, self.limit - _posterior_work(settings) * slowest)
            clock = time.monotonic()
            if clock > until:
                break
            for equation, evidence in self._weigh_again(chunk, settings, self.seed + 1, until):
                weighed.add(equation.key)
                yield equation, evidence
            slowest = max(slowest, time.monotonic() - clock)
        # The simplest and the best must be there. For those that there was no time for, what the
        # search itself knows of them, with its larger standard error, has to do.
        missing = [key for key in keys[:2] if key not in weighed]
        yield from self._weigh_again(missing, self.settings, self.seed, None)

    def _weigh_again(
        self, keys: Sequence[str], settings: Settings, seed: int, until: float | None
    ) -> Iterator[tuple[Equation, Evidence]]:
        """Weigh each equation in a worker of its own; those that end in time."""
        equations = [read_key(key, self.data.names) for key in keys]
        results = self.parallel(
            delayed(_weigh_batch)(
                [(key, equation.program)],
                self.problem,
                settings,
                seed,
                self.search.fitness,
                added_operators(),
                _to_wall_clock(until),
                keep=True,
            )
            for key, equation in zip(keys, equations, strict=True)
        )
        for equation, batch in zip(equations, results, strict=True):
            for weighed in batch:
                self.weighed[equation.key] = weighed
                yield equation, weighed.evidence


def order_finalists(
    leaders: Sequence[Candidate], front: Sequence[Candidate], variables: Sequence[str], n: int
) -> list[Candidate]:
    """Choose the laws to weigh again, so ordered that the first few are worth having alone.

    Parameters
    ----------
    leaders, front
        Candidates, best first and simplest first.
    variables
        Names of the variables.
    n
        How many of the leaders; all of the front are taken.

    Returns
    -------
    list of Candidate
        One spelling of each law: the simplest, the best, the next simplest, the next best, ...
    """
    best = distinct_laws(leaders, variables)[:n]
    laws = best + [law for law in distinct_laws(front, variables) if not _among(law, best)]
    simple = sorted((law for law in laws if _among(law, front)), key=lambda law: law.complexity)
    pairs = zip_longest(simple, best)
    return list(dict.fromkeys(law for pair in pairs for law in pair if law is not None))


def _work(settings: Settings) -> int:
    """Return how many draws the evidence of one equation takes, if they cover the posterior."""
    return settings.n_draws * settings.n_replicates


def _posterior_work(settings: Settings) -> float:
    """Return how many times as many draws a posterior takes as the evidence of the equation."""
    # In its last stage every particle may be moved, three times in each sweep.
    chain = max(settings.n_draws, OVERSAMPLING * DRAWS) + 3 * MAX_SWEEPS * DRAWS
    return CHAINS * chain / _work(settings)


def _to_wall_clock(deadline: float | None) -> float | None:
    """Return a time of ``time.monotonic`` as one of ``time.time``, which other machines share."""
    return None if deadline is None else deadline - time.monotonic() + time.time()


def _from_wall_clock(until: float | None) -> float | None:
    return None if until is None else until - time.time() + time.monotonic()


def _batches(items: Sequence[Any], size: int) -> list[Sequence[Any]]:
    return [items[k : k + size] for k in range(0, len(items), size)]


# What a worker does. It gets arrays and rows, never models, and keeps its own compiled loops.


def _read_batch(
    genomes: Iterable[Genome],
    variables: Sequence[str],
    search: Search,
    added: tuple[Operator, ...],
    until: float | None,
) -> list[Reading | None]:
    take_over(added)
    with time_limit(_from_wall_clock(until)):
        return [
            read_graph(genome, variables, search) if time_left() > 0.0 else None
            for genome in genomes
        ]


def _weigh_batch(
    tasks: Iterable[tuple[str, Program]],
    problem: Problem,
    settings: Settings,
    seed: int,
    fitness: str,
    added: tuple[Operator, ...],
    until: float | None,
    floor: float = -np.inf,
    keep: bool = False,
) -> list[Weighed]:
    """Weigh equations, as many as there is time for."""
    take_over(added)
    one = partial(weigh, floor=floor, keep=keep) if fitness == "evidence" else _fit_only
    evidences = []
    with time_limit(_from_wall_clock(until)), suppress(OutOfTime):
        for key, program in tasks:
            check_time()
            evidences.append(one(program, problem, settings, seed_for(key, seed)))
    return evidences


def _fit_only(
    program: Program, problem: Problem, settings: Settings, seed: np.random.SeedSequence
) -> Weighed:
    return Weighed(fit_rmse(program, problem, settings, seed))


def _candidate(key: str, program: Program, evidence: Evidence, fitness: str) -> Candidate:
    # Two standard errors below: the best of many noisy estimates would be the noisiest.
    score = evidence.log_q - 2 * evidence.log_q_se if fitness == "evidence" else -evidence.rmse
    return Candidate(
        key,
        float(score),
        evidence.log_q,
        evidence.log_q_se,
        evidence.rmse,
        evidence.n_parameters,
        len(program.nodes),
        evidence.failure,
    )


def _finite_mean(values: Sequence[float]) -> float:
    finite = [value for value in values if np.isfinite(value)]
    return float(np.mean(finite)) if finite else float("nan")


def _progress(run: _Run, verbose: bool | Callable[[str], None]) -> Any:
    """Show generation, best equation, its score, rate and time left."""
    if callable(verbose):
        return nullcontext(lambda text="": verbose(text))
    if not verbose:
        return nullcontext(lambda text="": None)
    return _Display(run)


class _Display:
    """A rich progress bar, for terminal and notebook: how much of the budget is used."""

    def __init__(self, run: _Run) -> None:
        self.run = run
        self.progress = Progress(
            TextColumn("generation {task.fields[generation]}"),
            BarColumn(bar_width=20),
            TextColumn("{task.description}"),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
        )

    def __enter__(self) -> Callable[..., None]:
        # Where another search shows its progress, in another thread or around this one, or a user
        # has a display of rich's own, this one goes on in silence.
        self.is_shown = SCREEN.acquire(blocking=False)
        if self.is_shown:
            try:
                self.progress.start()
            except LiveError:
                self.is_shown = False
                SCREEN.release()
        self.task = self.progress.add_task("first population", total=1.0, generation=0)
        return self.show

    def show(self, text: str = "") -> None:
        """Bring the line up to date."""
        run, best = self.run, self.run.best
        elapsed = time.monotonic() - run.started
        if not text and best is not None:
            value = f"log q {best.log_q:.2f}"
            if run.search.fitness == "rmse":
                value = f"RMSE {best.rmse:.4g}"
            rate = run.n_weighed / max(1e-9, elapsed)
            text = f"{escape(without_quotes(best.key)[:50])}  {value}  {rate:.0f} equations/s"
        search = run.search
        used = max(
            run.generation / max(1, search.generations),
            elapsed / (search.max_time or np.inf),
            run.n_weighed / (search.max_evaluations or np.inf),
        )
        self.progress.update(
            self.task, completed=min(1.0, used), description=text, generation=run.generation
        )

    def __exit__(self, *_: object) -> None:
        if self.is_shown:
            self.progress.stop()
            SCREEN.release()
