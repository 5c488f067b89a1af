"""The paper's own way: every candidate is read by algebra and weighed, or fitted, by itself."""

import time
from collections.abc import Sequence
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from pmsr.evidence.evidence import seed_for
from pmsr.limits import check_time
from pmsr.search.archive import Candidate, failed_candidate, make_candidate
from pmsr.search.bench import Bench
from pmsr.search.constraints import Reading, read_graph
from pmsr.search.genome import Genome
from pmsr.search.leaders import Leader
from pmsr.search.memory import Floats, Keys

# Nats behind the best at which an equation is not sampled: more than half of all. Its integral is
# then that of a linear equation with the same squared error, within a nat for most.
FAR = 12.0


class Sampler:
    """What an island knows: every distinct equation that it has seen."""

    def __init__(self) -> None:
        self.candidates: dict[str, Candidate] = {}
        self.keys: dict[bytes, str] = {}
        self._top: Candidate | None = None
        self.n_folded = self.n_sampled = 0
        self.seconds = dict.fromkeys(("algebra", "weighing"), 0.0)

    @property
    def n_screened(self) -> int:
        """How many distinct equations were seen."""
        return len(self.candidates)

    def count_anew(self) -> "Sampler":
        """Return a sampler that goes on from here: nothing comes before the islands."""
        return self.copy()

    @property
    def n_failed(self) -> int:
        """How many of them could not be weighed."""
        return sum(one.failure is not None for one in self.candidates.values())

    def copy(self) -> "Sampler":
        """Return a sampler that goes its own way from here."""
        other = Sampler()
        other.candidates, other.keys = dict(self.candidates), dict(self.keys)
        other._top, other.n_sampled = self._top, self.n_sampled
        other.seconds = dict(self.seconds)
        return other

    @property
    def starters(self) -> tuple[Leader, ...]:
        """None: the first population is random."""
        return ()

    def expand(self, bench: Bench) -> None:
        """Do nothing: the paper's search does not."""

    def best(self, bench: Bench) -> Candidate | None:
        """Return the best so far."""
        return self._top

    def are_known(self, genomes: Sequence[Genome], bench: Bench) -> NDArray[np.bool_]:
        """Tell which graphs would bring nothing new: the paper does not ask."""
        return np.zeros(len(genomes), dtype=bool)

    def judge(self, genomes: Sequence[Genome], bench: Bench) -> Keys:
        """Read and weigh what is new among graphs; return their names."""
        keys = []
        top = self._top
        # Not among the results so far: of a batch, the order must not matter.
        floor = top.score - FAR if top is not None else -np.inf
        for genome in genomes:
            raw = genome.raw_key()
            key = self.keys.get(raw)
            if key is None:
                check_time()
                clock = time.monotonic()
                reading = read_graph(genome, bench.names, bench.search, bench.restrictions)
                key = reading.key
                self.seconds["algebra"] += time.monotonic() - clock
                if key not in self.candidates:
                    clock = time.monotonic()
                    self.add(_weighed(reading, bench, floor))
                    self.seconds["weighing"] += time.monotonic() - clock
                    self.n_sampled += reading.program is not None
                self.keys[raw] = key
            keys.append(key)
        return np.array([name_of(key) for key in keys], dtype=np.uint64)

    def add(self, candidate: Candidate) -> None:
        """Remember a candidate that was not known."""
        self.candidates[candidate.key] = candidate
        is_weighed = candidate.failure is None and np.isfinite(candidate.score)
        if is_weighed and (self._top is None or candidate.score > self._top.score):
            self._top = candidate

    def scores(self, names: Keys) -> Floats:
        """Return the score of each name."""
        known = self._by_name()
        return np.array([known[int(name)].score for name in names])

    def sizes(self, names: Keys) -> tuple[Floats, Floats]:
        """Return the complexity and the number of parameters of each name."""
        known = self._by_name()
        found = [known[int(name)] for name in names]
        return (
            np.array([float(one.complexity) for one in found]),
            np.array([float(one.n_parameters) for one in found]),
        )

    def meet(self, other: "Sampler", names: Keys) -> None:
        """Take over what another island knows of these."""
        known = other._by_name()
        for name in names.tolist():
            if known[name].key not in self.candidates:
                self.add(known[name])

    def describe(self, names: Keys) -> tuple[str, ...]:
        """Return the keys behind names."""
        known = self._by_name()
        return tuple(known[int(name)].key for name in names)

    def _by_name(self) -> dict[int, Candidate]:
        known: dict[int, Candidate] = self.__dict__.setdefault("_named", {})
        if len(known) < len(self.candidates):
            for candidate in list(self.candidates.values())[len(known) :]:
                known[name_of(candidate.key)] = candidate
        return known


def name_of(key: str) -> int:
    """Return the name of a key: 64 bits of its digest."""
    return int.from_bytes(blake2b(key.encode(), digest_size=8).digest(), "big")


def _weighed(reading: Reading, bench: Bench, floor: float) -> Candidate:
    if reading.program is None:
        return failed_candidate(reading.key, reading.refusal or "")
    log_p = bench.log_prior(reading.program)
    seed = seed_for(reading.key, bench.seed)
    one = bench.engine.weigh(
        reading.program, bench.problem, bench.settings, seed, floor=floor - log_p
    )
    return make_candidate(reading.key, reading.program, one.evidence, bench.engine, log_p)
