"""The funnel: graphs are folded, new laws screened, and contenders weighed.

A law that was screened has the closed-form log q, within some tenths of a nat of the truth.
Sequential Monte Carlo is for those that are about to be among the best of an island.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pmsr.equation.expression import Equation
from pmsr.equation.operators import PARAMETER, operator_code
from pmsr.equation.program import Tables
from pmsr.evidence.evidence import seed_for, weigh
from pmsr.limits import check_time
from pmsr.search.archive import Candidate, failed_candidate
from pmsr.search.bench import Bench
from pmsr.search.curves import digest_curves
from pmsr.search.enumeration import enumerate_laws
from pmsr.search.folding import ACCEPTED, Folded, fold, fold_genomes
from pmsr.search.genome import Genome, Primitives, expansions
from pmsr.search.halving import Reference, screen_many
from pmsr.search.leaders import Leader, Leaders
from pmsr.search.memory import Floats, Keys, Memory, Records
from pmsr.search.screening import Batch

CHUNK = 256  # laws that are screened between two looks at the clock
# Of what was screened, at most, is weighed. More would take most of the time, and change little:
# what leads in the end is weighed again in any case.
SHARE = 0.005
# Rows beyond which fewer are weighed, in proportion: each takes longer, and the closed form is then
# exact.
MANY_ROWS = 500
SHAPES = 2.5  # so many shapes are enumerated for each law that is
N_EXPANDED = 5  # leaders that are expanded at a refresh
# Nats behind the best beyond which a law is neither contender nor finalist: it would have less than
# a thousandth of the best one's probability.
REACH = 7.0
# Best laws of an island that are contenders. Not as many as there will be finalists: a search may
# go on with another number of these, and must go on as it would have.
N_CONTENDERS = 40


class Funnel:
    """What an island knows: every program that it screened, and its leaders.

    Parameters
    ----------
    bench
        What laws are judged by.
    """

    def __init__(self, bench: Bench) -> None:
        self.memory = Memory()
        self.leaders = Leaders(bench.screening.white)
        self.n_folded = self.n_sampled = self.n_failed = self.n_given = 0
        self.seconds = dict.fromkeys(("folding", "screening", "prior", "weighing"), 0.0)
        self.weighed: dict[int, float] = {}
        self.reference: Reference | None = None
        self.expanded: frozenset[int] = frozenset()
        self._best: tuple[Leader, Candidate] | None = None

    def copy(self) -> "Funnel":
        """Return a funnel that goes its own way from here."""
        other = object.__new__(Funnel)
        other.__dict__ |= self.__dict__
        other.memory, other.leaders = self.memory.copy(), self.leaders.copy()
        other.weighed, other.seconds = dict(self.weighed), dict(self.seconds)
        return other

    @contextmanager
    def _timed(self, what: str) -> Iterator[None]:
        clock = time.monotonic()
        try:
            yield
        finally:
            self.seconds[what] += time.monotonic() - clock

    def describe(self, names: Keys) -> tuple[str, ...]:
        """Write the laws behind names: the digests of their curves."""
        return tuple(f"{law:016x}" for law in self.memory.laws(names).tolist())

    def count_anew(self) -> "Funnel":
        """Return a funnel that knows all this and counts what it does from here on."""
        other = self.copy()
        other.n_folded = other.n_sampled = other.n_failed = 0
        other.seconds = dict.fromkeys(self.seconds, 0.0)
        other.n_given = len(self.memory)
        return other

    @property
    def n_screened(self) -> int:
        """How many programs were screened."""
        return len(self.memory) - self.n_given

    def judge(self, genomes: Sequence[Genome], bench: Bench) -> Keys:
        """Make sure that all graphs are known; return their names."""
        with self._timed("folding"):
            folded = fold_genomes(genomes, bench.rules)
        self.judge_folded(folded, bench)
        return folded.key

    def are_known(self, genomes: Sequence[Genome], bench: Bench) -> NDArray[np.bool_]:
        """Tell which graphs would bring nothing new: known laws, and what is refused."""
        with self._timed("folding"):
            folded = fold_genomes(genomes, bench.rules)
        self.n_folded += len(folded)
        return (folded.refusal != ACCEPTED) | self.memory.is_known(folded.key)

    def scores(self, names: Keys) -> Floats:
        """Return the score of each graph; -inf for those that were refused."""
        return self.memory.look_up(names, "score")

    def sizes(self, names: Keys) -> tuple[Floats, Floats]:
        """Return the nodes of the tree and the parameters of each graph."""
        return self.memory.look_up(names, "size"), self.memory.look_up(names, "n_parameters")

    @property
    def starters(self) -> tuple[Leader, ...]:
        """Laws that a first population may draw from."""
        return self.leaders.laws

    def best(self, bench: Bench) -> Candidate | None:
        """Return the best so far, in words."""
        for law in self.leaders.laws:
            if self._best is None or self._best[0] is not law:
                self._best = law, candidate_of(law, bench.names)
            if self._best[1].failure is None:
                return self._best[1]
        return None

    def meet(self, other: "Funnel", names: Keys) -> None:
        """Learn from the funnel of another island what these graphs are worth."""
        self.memory.add(other.memory.choose(names[~self.memory.is_known(names)]))
        laws = set(other.memory.laws(names).tolist())
        leaders = [law for law in other.leaders.laws if law.law in laws]
        self.leaders.add(leaders)
        # A law that was weighed here, perhaps in another spelling, keeps its weight.
        self.weighed = {law.law: law.log_q for law in leaders if law.is_weighed} | self.weighed
        self.memory.learn({law: self.weighed[law] for law in laws if law in self.weighed})

    def judge_folded(self, folded: Folded, bench: Bench, level: int = 0) -> None:
        """Screen what is new among folded programs, and weigh contenders."""
        self.n_folded += len(folded)
        wanted = (folded.refusal == ACCEPTED) & ~self.memory.is_known(folded.key)
        _, first = np.unique(folded.key[wanted], return_index=True)
        new = np.flatnonzero(wanted)[np.sort(first)]
        for start in range(0, len(new), CHUNK):
            self._screen(folded.take(new[start : start + CHUNK]), bench, level)
        self._weigh_contenders(bench)

    def expand(self, bench: Bench) -> None:
        """Screen all that is an operator larger than the best laws that were not expanded yet."""
        waiting = (law for law in self.leaders.laws if law.key not in self.expanded)
        for law in list(islice(waiting, N_EXPANDED)):
            self.expanded = self.expanded | {law.key}
            rows, lengths = expansions(law.program, bench.primitives)
            literals = np.tile(law.program.literals, (len(rows), 1))
            with self._timed("folding"):
                folded = fold(rows, literals, lengths, bench.rules)
            self.judge_folded(folded, bench)

    def _screen(self, laws: Folded, bench: Bench, level: int) -> None:
        check_time()
        batch = Batch(
            laws.nodes,
            laws.n_nodes.astype(np.int64),
            laws.literals,
            laws.n_parameters.astype(np.int64),
        )
        with self._timed("screening"):
            found = screen_many(
                batch, bench.screening, bench.seed, bench.stages, self.reference, keys=laws.key
            )
        if self.reference is None or len(laws) == CHUNK:
            # What laws reach is known from many of them only.
            self.reference = found.reference or self.reference
        with self._timed("prior"):
            tables = Tables(
                laws.nodes, laws.n_nodes, laws.literals, laws.n_literals, laws.n_parameters
            )
            log_p = bench.log_priors(tables, found.theta)
        n_rows = len(bench.problem.data.y)
        digests = digest_curves(found, bench.screening.white, laws.key)
        log_q = found.log_q.copy()
        for k in np.flatnonzero(np.isin(digests, np.array(list(self.weighed), dtype=np.uint64))):
            log_q[k] = self.weighed[int(digests[k])]
        rmse = np.sqrt(found.sse / n_rows)
        if not bench.screening.is_plain and len(bench.stages.sizes) == 1:
            rmse = bench.screening.rmses(found.curves[:, :n_rows])
        self.memory.add(
            Records(
                laws.key,
                digests,
                log_q,
                log_p,
                rmse,
                laws.size.astype(np.int16),
                laws.n_parameters.astype(np.int16),
                np.full(len(laws), level, dtype=np.int16),
            )
        )
        self.n_failed += int(np.count_nonzero(np.isneginf(log_q)))
        score = log_q + log_p
        # Of what did not meet all rows, only an estimate is known.
        near = np.flatnonzero((score > self.leaders.floor) & (found.n_rows == n_rows))
        near = near[np.argsort(-score[near], kind="stable")]
        self.leaders.add(
            Leader(
                laws.program(k),
                int(laws.key[k]),
                int(digests[k]),
                int(found.rank[k]),
                float(rmse[k]),
                float(found.log_q[k]),
                np.nan,
                float(log_p[k]),
                int(laws.size[k]),
                found.curves[k].copy(),
            )
            for k in near.tolist()
        )

    def _weigh_contenders(self, bench: Bench) -> None:
        """Weigh those among the first places that are not weighed, best first, if few enough."""
        new: dict[int, float] = {}
        share = SHARE * min(1.0, MANY_ROWS / len(bench.problem.data.y))
        while self.n_sampled < share * self.n_screened:
            front = self.leaders.laws[:N_CONTENDERS]
            law = next((one for one in front if not one.is_weighed), None)
            if law is None or law.score < front[0].score - REACH:
                break
            check_time()
            seed = seed_for(f"{law.law:016x}", bench.seed)
            with self._timed("weighing"):
                evidence = weigh(law.program, bench.problem, bench.settings, seed).evidence
            self.n_sampled += 1
            log_q, error = evidence.log_q, evidence.log_q_se
            if evidence.failure is not None:
                # Few draws could not weigh it. More may, among the finalists: till then the closed
                # form has to do.
                log_q, error = law.log_q, np.inf
            self.leaders.weigh(law, log_q, error)
            new[law.law] = log_q
        if new:
            self.weighed |= new
            self.memory.learn(new)


class Unit(NamedTuple):
    """A complete level of an enumeration.

    Parameters
    ----------
    kind
        ``"laws"``, or ``"shapes"``.
    size
        Nodes of each.
    n
        How many there are of this kind, up to this size.
    """

    kind: str
    size: int
    n: int


def enumerate_into(
    funnel: Funnel, bench: Bench, done: Mapping[str, int] | None = None
) -> Iterator[tuple[Funnel, Unit]]:
    """Screen small laws, level by level, up to the number that the search asks for.

    First all laws. Then, for all shapes g, functions of the variables alone, the laws g, c0*g and
    c0 + c1*g: much of science is the like of c0*m1*m2/r**2, and there are few enough shapes to see
    all of those that are some nodes larger.

    Parameters
    ----------
    funnel
        Where to go on; it stays as it is.
    bench
        What laws are judged by.
    done
        Of each kind, the nodes of the last level that the funnel knows; None if none.

    Yields
    ------
    tuple
        The funnel with one more level, and the level.
    """
    search = bench.search
    for kind, options in (
        ("laws", {"max_laws": search.n_enumerated}),
        ("shapes", {"max_laws": SHAPES * search.n_enumerated, "parameters": False, "numbers": ()}),
    ):
        n = 0
        levels = enumerate_laws(
            search.operators,
            len(bench.names),
            max_size=search.max_complexity,
            rules=bench.rules,
            **options,
        )
        for level in levels:
            check_time()
            n += len(level.laws)
            if level.size > (done or {}).get(kind, 0):
                funnel = funnel.copy()
                funnel.n_folded += level.n_folded - len(level.laws)
                funnel.judge_folded(level.laws, bench, level.size)
                if kind == "shapes":
                    for rows, literals, lengths in with_parameters(level.laws, bench.primitives):
                        folded = fold(rows, literals, lengths, bench.rules)
                        funnel.judge_folded(folded, bench, level.size)
                yield funnel, Unit(kind, level.size, n)


def with_parameters(
    shapes: Folded, primitives: Primitives
) -> Iterator[tuple[NDArray[np.int32], Floats, NDArray[np.int32]]]:
    """Yield graphs of c0*g and of c0 + c1*g, as far as the operators allow."""
    names = primitives.operators
    n, width = len(shapes), shapes.nodes.shape[1]
    ends = shapes.n_nodes.astype(np.int32)
    for wanted in (("*",), ("*", "+")):
        if not set(wanted) <= set(names):
            return
        rows = np.zeros((n, width + 4, 3), dtype=np.int32)
        rows[:, :width] = shapes.nodes
        at, last = np.arange(n), ends - 1
        for place, name in enumerate(wanted):
            rows[at, ends + 2 * place] = (PARAMETER, 0, 0)
            rows[at, ends + 2 * place + 1, 0] = operator_code(name)
            rows[at, ends + 2 * place + 1, 1] = last
            rows[at, ends + 2 * place + 1, 2] = ends + 2 * place
            last = ends + 2 * place + 1
        yield rows, shapes.literals, last + 1


def candidate_of(law: Leader, variables: tuple[str, ...]) -> Candidate:
    """Return what a search says of a law, with its equation as text.

    Algebra may refuse what could be fitted: a number that is not real where it does not matter.
    """
    try:
        text = str(Equation.from_program(law.program, variables))
    except ValueError as error:
        return failed_candidate(f"! {error}", "not a real, finite expression")
    return Candidate(
        text,
        law.score,
        law.log_q,
        law.log_q_se,
        law.rmse,
        law.program.n_parameters,
        law.size,
        None,
        law.log_p,
        law.law,
    )
