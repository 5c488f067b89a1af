"""The search: small laws enumerated, islands evolved unit by unit, finalists weighed and ranked."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from deap import tools

from pmsr.data import Data, leave_out_constant
from pmsr.equation.expression import Equation
from pmsr.evidence.evidence import Evidence, Weighed
from pmsr.evidence.problem import Problem, as_problem
from pmsr.laws.identity import Trace, group_laws
from pmsr.laws.order import rank
from pmsr.laws.units import units_of
from pmsr.limits import OutOfTime, time_left, time_limit
from pmsr.search.archive import Archive, Candidate
from pmsr.search.bench import Bench
from pmsr.search.checkpoint import BUDGETS, State, fingerprint, load_state, save_state
from pmsr.search.columns import find_return
from pmsr.search.finalists import (
    N_PASSED_ON,
    breaks,
    gather,
    order_finalists,
    read_key,
    reserve,
    spell,
    weigh_finalists,
)
from pmsr.search.funnel import Funnel, Unit, enumerate_into
from pmsr.search.genome import Genome, Primitives, constant_equation, equation_genome
from pmsr.search.islands import PERIOD, Island, exchange
from pmsr.search.memory import Records, sum_scores
from pmsr.search.pilot import N_LEADERS, make_bench
from pmsr.search.progress import show_progress
from pmsr.search.restrictions import Restrictions, check_restrictions
from pmsr.search.sampler import Sampler
from pmsr.search.warm_up import warm_up
from pmsr.search.workers import Workers
from pmsr.settings import QUICK, RandomSeed, Search, Settings

SAVE_SECONDS = 5.0  # between checkpoints
COUNTS = ("n_folded", "n_screened", "n_sampled", "n_failed")
ENDINGS = ("patience", "callback", "interrupted")  # after which no other part follows
LATELY = 0.25  # of the generations, in which a search that has settled finds nothing better


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
        How many graphs were folded, laws screened by the closed form, and laws weighed by
        Sequential Monte Carlo.
    n_enumerated, level
        All laws of up to so many nodes were screened, and how many these are; 0 if none.
    n_shapes, shape_level
        For all shapes g, functions of the variables alone, of up to so many nodes, the laws g,
        c0*g and c0 + c1*g were screened.
    n_units
        How many units were done.
    log_rest
        Log of the sum of exp(log q + log P) over the laws that are not among the finalists, by the
        closed form where nothing else is known.
    is_settled
        Whether the best score had not risen for a while when the search ended.
    screened
        All that is remembered of programs that were screened, of all islands.
    left_out, brought_back
        Names of columns that the search did not begin with, because nothing in the data speaks for
        them at first sight, and after which generation they came back; 0 if never.
    elapsed
        Seconds from the start of the search to its end, those before a checkpoint among them.
    state, fingerprint
        Where it ended, and of which data, options and seed: `run_evolution` can go on from there.
    known
        Of a part of a search, the best equations that it knows, best first.
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
    n_shapes: int = 0
    shape_level: int = 0
    n_units: int = 0
    log_rest: float = -np.inf
    is_settled: bool = True
    screened: Records = field(default_factory=Records.none)
    left_out: tuple[str, ...] = ()
    brought_back: int = 0
    elapsed: float = np.nan
    state: State | None = None
    fingerprint: str = ""
    known: tuple[Equation, ...] = ()

    @property
    def winner(self) -> Equation:
        """The finalist with the highest score."""
        return self.finalists[0][0]


@dataclass(frozen=True)
class Generation:
    """What a callback is told after every unit: the first population, then every refresh."""

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
    after: Evolution | None = None,
    is_part: bool = False,
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
        Called after every unit, which is the first population or ``search.refresh`` generations;
        one that returns True ends the search.
    checkpoint
        File to which the state is written after every few units, and from which the search
        goes on if it exists. If a budget had ended it, and is the same, the finalists are weighed
        and nothing else.
    after
        An earlier search of the same data, options and seed, which goes on with the budget of this
        one added to what it had used.
    is_part
        Whether another part of the search follows, which weighs finalists: this one then does so
        only where it turns out to be the last, because nothing better was found for long or
        somebody has ended it.
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
    if after is not None:
        search = further(search, after)
    problem = as_problem(data, settings, search.max_parameters)
    units_of(search, problem.data)  # or an error
    names = problem.data.names
    problem = problem.select(leave_out_constant(problem.data).names)
    check_restrictions(search, names, problem.data.names)
    seeds = [guess_without_constant(seed, problem.data) for seed in seeds]
    check_guesses(seeds, search)
    seed = int(np.random.default_rng(random_seed).integers(2**63))
    bench = make_bench(problem, search, settings, seed, seeds)
    primitives = bench.primitives  # or an error that says which operators there are
    for guess in seeds:
        genome_of(guess, primitives)
    run = _Run(bench, seeds, n_jobs)
    with run.workers.parallel:
        if after is not None and after.state is not None:
            if after.fingerprint != fingerprint(bench):
                raise ValueError(
                    "The earlier search had other data, options or seed, and cannot go on with "
                    "these. Use warm_start=False to begin anew."
                )
            # Patience, too, begins anew.
            run.restore(replace(after.state, last_improvement=after.state.generation))
        elif checkpoint is not None and Path(checkpoint).exists():
            run.restore(load_state(checkpoint, run.bench))
        with show_progress(run, verbose) as show:
            show("getting ready")
            # What is compiled once after installation is not the search's time.
            run.delay(warm_up())
            stopped = run.ended or run.evolve(callbacks, checkpoint, show)
            if not is_part:
                return run.finish(stopped, show)
            is_over = stopped in ENDINGS
            found = run.finish(stopped, show) if is_over else run.pause(stopped)
            return replace(found, known=run.known())


def further(search: Search, after: Evolution) -> Search:
    """Return the options with which an earlier search goes on for another budget."""
    state = after.state
    if state is None:
        return search
    used = {
        "generations": state.generation,
        "max_time": state.elapsed,
        "max_evaluations": after.n_candidates,
        "max_units": state.n_units,
    }
    budget = {name: getattr(search, name) for name in used}
    return replace(search, **{name: n + used[name] for name, n in budget.items() if n is not None})


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


def _forget_expanded(island: Island) -> Island:
    """Return an island whose best laws wait to be expanded."""
    judge = island.judge.copy()
    judge.expanded = frozenset()
    return replace(island, judge=judge)


def genome_of(guess: Equation, primitives: Primitives) -> Genome:
    """Return the graph of a guess, always the same; an error if the operators cannot write it."""
    return equation_genome(guess, primitives, rng=np.random.default_rng(0))


def check_guesses(guesses: Sequence[Equation], search: Search) -> None:
    """Refuse a guess that breaks one of the user's rules: the search would drop it."""
    for guess in guesses:
        rules = Restrictions.of(search, guess.variables)
        broken = None if rules is None else rules.describe(guess.program)
        for name in search.require:
            if name not in guess.variables:
                broken = f"does not depend on {name!r}, which require asks for"
        if broken is not None:
            raise ValueError(f"The guess {guess.text!r} {broken}. Change the guess, or that rule.")


class _Run:
    """The state of a search: its islands, what was enumerated before, the logbook."""

    def __init__(
        self,
        bench: Bench,
        seeds: Sequence[Equation],
        n_jobs: int | None,
    ) -> None:
        self.bench, self.seeds = bench, seeds
        self.problem, self.search, self.settings = bench.problem, bench.search, bench.settings
        self.data = bench.problem.data
        self.started = time.monotonic()
        self.begun = self.started  # in this process: a search that goes on has started earlier
        self.around = self.begun + time_left()
        self.workers = Workers.hire(bench, n_jobs)
        self.n_units = 0
        self.levels: dict[str, Unit] = {}  # the last of each kind that was enumerated
        self.is_enumerated = not bench.is_screened
        self.islands: tuple[Island, ...] = ()
        self.last_improvement = 0
        self.history = tools.Logbook()
        self.slowest = 0.0  # seconds of the slowest unit so far
        self.finals = 0.0
        self.ended: str | None = None
        self.reached: State | None = None  # when the units had come to their end
        self.weighed: dict[str, Weighed] = {}
        judge = Funnel(bench) if bench.is_screened else Sampler()
        self.ground = Island(0, judge)  # what all islands begin from
        self.tally: dict[str, int] = {}  # what was counted before them
        self.left_out, self.brought_back = bench.left_out, 0

    def delay(self, seconds: float) -> None:
        """Let the clock start so much later."""
        self.started += seconds
        self.begun += seconds

    @property
    def generation(self) -> int:
        """Generations that all islands have completed."""
        return max(0, self.islands[0].generation) if self.islands else 0

    @property
    def judges(self) -> list[Any]:
        """What the islands know, or what was enumerated if there are none yet."""
        return [island.judge for island in self.islands or (self.ground,)]

    @property
    def best(self) -> Candidate | None:
        """The best candidate so far."""
        found = [judge.best(self.bench) for judge in self.judges]
        return max((one for one in found if one), key=lambda one: one.score, default=None)

    @property
    def n_weighed(self) -> int:
        """Number of distinct equations seen."""
        return self._total("n_screened")

    def _total(self, count: str) -> int:
        """Add up what was counted before the islands and on them."""
        return self.tally.get(count, 0) + sum(getattr(judge, count) for judge in self.judges)

    def restore(self, state: State) -> None:
        """Go on where a checkpoint left off."""
        self.n_units = state.n_units
        self.levels = {unit.kind: unit for unit in state.levels}
        self.is_enumerated = state.is_enumerated
        self.ground, self.islands, self.tally = state.ground, state.islands, state.tally
        self.last_improvement = state.last_improvement
        self.started -= state.elapsed
        self.reached = state
        for record in state.history:
            self.history.record(**record)
        self._bring_back()
        if state.budget == self._budget():
            self.ended = state.ended

    def _budget(self) -> dict[str, float | None]:
        return {name: getattr(self.search, name) for name in BUDGETS}

    def state(self) -> State:
        """Everything that decides how the search goes on."""
        return State(
            n_units=self.n_units,
            levels=tuple(self.levels.values()),
            is_enumerated=self.is_enumerated,
            ground=self.ground,
            tally=self.tally,
            islands=self.islands,
            last_improvement=self.last_improvement,
            elapsed=time.monotonic() - self.started,
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
        """Do one unit after another until the budget ends; return the reason."""
        last_saved = time.monotonic()
        reason: str | None = None
        try:
            for is_new in self._units(show):
                self.n_units += 1
                show()
                if checkpoint is not None and time.monotonic() - last_saved > SAVE_SECONDS:
                    save_state(checkpoint, self.state(), self.bench)
                    last_saved = time.monotonic()
                if is_new:
                    told = Generation(self.generation, self.best, self.history[-1])
                    if any([callback(told) for callback in callbacks]):
                        reason = "callback"
                        break
                if (reason := self._end()) is not None:
                    break
            else:
                reason = "max_time"
        except KeyboardInterrupt:
            if self.best is None:
                raise  # before anything was found: nothing is lost
            reason = "interrupted"
            # Ctrl-C reaches the workers too, and may have taken half of their work with it.
            self.workers = self.workers.dismiss()
        if reason not in ("callback", "interrupted"):
            self.ended = reason
        self.reached = self.state()
        if checkpoint is not None:
            save_state(checkpoint, self.reached, self.bench)
        return reason or "max_time"

    def _units(self, show: Callable[..., None]) -> Iterator[bool]:
        """Do unit after unit; tell of each whether it was one of generations.

        Ends when there is no time for another. What a unit had when its time was up is discarded:
        up to where a run came, it is a function of the problem and the seed alone.
        """
        if not self.is_enumerated:
            show("screening the smallest laws" + self._columns())
            yield from self._levels()
            if not self.is_enumerated:
                return
        while True:
            clock = time.monotonic()
            deadline = self.deadline
            if deadline is not None and clock + self.slowest > deadline and self.history:
                return
            period = self.search.refresh or PERIOD
            # A first population alone, so that there is something to show.
            last = min((self.generation // period + 1) * period, self.search.generations)
            last = last if self.history else 0
            done = self.workers.evolve(self.islands or self._land(), self.seeds, last, deadline)
            if done is None:
                return
            if not self.islands:
                self.tally = {count: getattr(self.ground.judge, count) for count in COUNTS}
            self.slowest = max(self.slowest, time.monotonic() - clock) if last else 0.0
            self._record(done)
            self.islands = exchange(done) if last and last % period == 0 else tuple(done)
            if self._bring_back():
                show("all columns again")
                # What was expanded may be so once more, by the others.
                self.islands = tuple(_forget_expanded(island) for island in self.islands)
                self.last_improvement = self.generation
            yield True

    def _columns(self) -> str:
        """Name the columns that the search begins with, if these are not all."""
        used = [name for name in self.data.names if name not in self.left_out]
        if not self.left_out:
            return ""
        return f" of {', '.join(used)}, {len(used)} of {len(self.data.names)} columns"

    def _bring_back(self) -> bool:
        """Let laws depend on the columns that were left out, if it is time; tell whether it is."""
        if not self.bench.left_out:
            return False
        found = find_return(self.history, self.search.refresh or PERIOD)
        if found is None:
            return False
        self.brought_back = found
        self.bench = replace(self.bench, left_out=())
        self.workers = replace(self.workers, bench=self.bench)
        return True

    def _land(self) -> tuple[Island, ...]:
        """Return islands without a population, which know what was enumerated."""
        known = self.ground.judge.count_anew()
        return tuple(Island(k, known) for k in range(self.search.n_islands))

    def _levels(self) -> Iterator[bool]:
        """Enumerate, level by level; guesses come first: a short search has no population."""
        done = {kind: unit.size for kind, unit in self.levels.items()}
        deadline = self.deadline
        judge = self.ground.judge
        if self.seeds and not done:
            judge = judge.copy()
            try:
                with time_limit(deadline):
                    primitives = self.bench.primitives
                    guesses = [genome_of(seed, primitives) for seed in self.seeds]
                    judge.judge(guesses, self.bench)
            except OutOfTime:
                return
        levels = enumerate_into(judge, self.bench, done)
        while True:
            try:
                with time_limit(deadline):
                    funnel, unit = next(levels, (None, None))
            except OutOfTime:
                return
            if funnel is None or unit is None:
                self.is_enumerated = True
                return
            self.levels[unit.kind] = unit
            self.ground = replace(self.ground, judge=funnel)
            yield False

    def _end(self) -> str | None:
        search = self.search
        if search.max_units is not None and self.n_units >= search.max_units:
            return "max_units"
        if not self.history:
            return None
        if self.generation >= search.generations:
            return "generations"
        if search.max_evaluations is not None and self.n_weighed >= search.max_evaluations:
            return "max_evaluations"
        if (
            search.patience is not None
            and self.generation - self.last_improvement >= search.patience
        ):
            return "patience"
        return None

    @property
    def deadline(self) -> float | None:
        """When to stop, so that time is left for the finalists and for the winner's posterior."""
        if self.limit == np.inf:
            return None
        return self.limit - reserve(self.limit - self.begun, self._pace(), self.settings)

    def _pace(self) -> float:
        """Return the seconds that weighing an equation has taken so far, on average."""
        seconds = sum(judge.seconds["weighing"] for judge in self.judges)
        return float(seconds / max(1, sum(judge.n_sampled for judge in self.judges)))

    @property
    def limit(self) -> float:
        """When everything must have come to its end."""
        return min(self.started + float(self.search.max_time or np.inf), self.around)

    def _record(self, islands: Sequence[Island]) -> None:
        """Write a line of the logbook for each generation: of all islands together."""
        elapsed = time.monotonic() - self.started
        for records in zip(*(island.records for island in islands), strict=True):
            best = max(records, key=lambda one: float(one["score_best"]))
            n_seen = self.tally.get("n_screened", 0) + sum(one["n_candidates"] for one in records)
            before = self.history[-1]["score_best"] if self.history else -np.inf
            if best["score_best"] > before:
                self.last_improvement = best["generation"]
            means = ("score_median", "complexity_mean", "parameters_mean")
            self.history.record(
                **best
                | {name: float(np.nanmean([one[name] for one in records])) for name in means}
                | {name: sum(one[name] for one in records) for name in ("n_distinct", "n_failed")}
                | {
                    "n_candidates": n_seen,
                    "equations_per_second": n_seen / max(1e-9, elapsed),
                    "elapsed": elapsed,
                }
            )

    def finish(self, stopped: str, show: Callable[..., None]) -> Evolution:
        """Weigh the finalists again, with replicates, and rank them."""
        names = self.data.names
        archive = Archive(gather(self.judges, self.bench))
        laws = order_finalists(
            archive.leaders,
            archive.front,
            names,
            self.search.n_finalists,
            self.data.constants,
        )
        best = archive.best.score if archive.best else 0.0
        spelled = {law.key: spell(law, best, self.bench) for law in laws}
        # Algebra may have spelled a law so that it breaks a rule that its graph had kept.
        laws = [law for law in laws if breaks(spelled[law.key][0], self.bench) is None]
        places = group_laws([Trace(spelled[law.key][0].key) for law in laws])
        keys = {str(spelled[laws[k].key][0]): spelled[laws[k].key][1] for k in places}
        if not keys and Restrictions.of(self.search, names) is not None:
            raise ValueError(
                "No law that keeps to forbid, max_uses, require and exclude could be weighed. "
                "Loosen them, allow more operators, or give the search more time."
            )
        # Where there was no time for a first population, guesses are all that is known; and a
        # constant can always be weighed.
        known = [Equation.from_program(seed.program, names) for seed in self.seeds]
        keys = keys or {str(one): True for one in known or [constant_equation(names)]}
        pairs: list[tuple[Equation, Evidence]] = []
        clock = time.monotonic()
        show(f"weighing {len(keys)} finalists again")
        try:
            for equation, weighed in weigh_finalists(
                keys,
                self.workers,
                self.settings,
                self.bench.seed,
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
        self.finals += time.monotonic() - clock
        show("sampling the posterior of the winner")
        scores = [self.bench.final_score(equation, evidence) for equation, evidence in pairs]
        order = rank(scores, [equation.complexity for equation, _ in pairs])
        # Of what failed to be weighed the closed form is all that is known.
        sound = {equation.key for equation, evidence in pairs if evidence.failure is None}
        final = [law.law for law in laws if spelled[law.key][0].key in sound]
        return self._found(stopped, archive.front, [pairs[place] for place in order], final)

    def pause(self, stopped: str) -> Evolution:
        """Return what was done so far, no finalist weighed again."""
        return self._found(stopped)

    def known(self) -> tuple[Equation, ...]:
        """Return the best laws so far, the first few as a reader should see them."""
        found = Archive(gather(self.judges, self.bench, N_PASSED_ON)).leaders[:N_PASSED_ON]
        laws = [spell(law, found[0].score, self.bench)[0] for law in found[:N_LEADERS]]
        laws += [read_key(law.key, self.bench.names) for law in found[N_LEADERS:]]
        return tuple(law for law in laws if breaks(law, self.bench) is None)

    def _found(
        self,
        stopped: str,
        front: Sequence[Candidate] = (),
        finalists: Sequence[tuple[Equation, Evidence]] = (),
        final: Sequence[int] = (),
    ) -> Evolution:
        """Return what the search has found; `final` are the digests of the finalists' curves."""
        screened = self._screened()
        laws_done, shapes = (self.levels.get(kind, Unit(kind, 0, 0)) for kind in ("laws", "shapes"))
        return Evolution(
            finalists=tuple(finalists),
            front=tuple(front),
            population=tuple(
                name for island in self.islands for name in island.judge.describe(island.names)
            ),
            history=self.history,
            n_candidates=self.n_weighed,
            stopped=stopped,
            fitness=self.search.fitness,
            seconds=self._seconds(),
            n_failed=self._total("n_failed"),
            limit=self.limit,
            weighed=self.weighed,
            n_folded=self._total("n_folded"),
            n_screened=self.n_weighed if self.bench.is_screened else 0,
            n_sampled=self._total("n_sampled"),
            n_enumerated=laws_done.n,
            level=laws_done.size,
            n_shapes=shapes.n,
            shape_level=shapes.size,
            n_units=self.n_units,
            log_rest=sum_scores(screened, np.array(final, dtype=np.uint64)),
            is_settled=self._is_settled(),
            screened=screened,
            left_out=self.left_out,
            brought_back=self.brought_back,
            elapsed=time.monotonic() - self.started,
            state=self.reached,
            fingerprint=fingerprint(self.bench),
        )

    def _screened(self) -> Records:
        """Return what all islands remember, each program once."""
        records = Records.none()
        for judge in self.judges if self.bench.is_screened else ():
            records = records.join(judge.memory.records)
        return records.take(np.unique(records.key, return_index=True)[1])

    def _is_settled(self) -> bool:
        """Tell whether the best score has been the same, to a tenth of a nat, of late."""
        scores = [float(record["score_best"]) for record in self.history]
        if len(scores) < 2:
            return False
        before = scores[int((1.0 - LATELY) * (len(scores) - 1))]
        return scores[-1] - before < 0.1

    def _seconds(self) -> dict[str, float]:
        """Where the time went, added up over the islands."""
        total: dict[str, float] = {"finalists": self.finals}
        for judge in {id(judge): judge for judge in (self.ground.judge, *self.judges)}.values():
            for name, seconds in judge.seconds.items():
                total[name] = total.get(name, 0.0) + seconds
        return total
