"""A run's state on disk: one npz file with JSON inside, written atomically, never pickled."""

import json
import re
from dataclasses import asdict, dataclass, field, fields
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pmsr.equation.operators import (
    FIRST_OPERATOR,
    LITERAL,
    OPERATORS,
    PARAMETER,
    POWER,
    VARIABLE,
    added_operators,
    digest_rows,
)
from pmsr.equation.program import Program
from pmsr.files import (
    BROKEN,
    as_count,
    as_history,
    as_list,
    as_number,
    as_text,
    read_arrays,
    reason,
    remove_parts,
    writing,
)
from pmsr.search.archive import Candidate
from pmsr.search.bench import Bench
from pmsr.search.funnel import Funnel, Unit
from pmsr.search.genome import Genome
from pmsr.search.halving import Reference
from pmsr.search.islands import Island
from pmsr.search.leaders import Leader
from pmsr.search.memory import Memory, Records
from pmsr.search.sampler import Sampler
from pmsr.settings import Search

FORMAT = 2  # one more where an earlier version could not read what is written
BUDGETS = ("generations", "max_time", "max_evaluations", "max_units", "patience")
MAX_RATIO = 200  # of a checkpoint's contents to its file

Arrays = dict[str, NDArray[Any]]


@dataclass(frozen=True, eq=False)
class State:
    """Everything that decides how a search goes on.

    Parameters
    ----------
    n_units
        How many units were done.
    levels, is_enumerated
        The last level of each kind that was enumerated, and whether that was all.
    ground
        What all islands begin from.
    tally
        What was counted before the islands began, by name.
    islands
        Where they are, after the last exchange; none before the first population.
    last_improvement, elapsed
        The last generation that found something better, and seconds used.
    history
        The logbook's records.
    ended
        Which budget ended the search, if one did; what remains is to weigh the finalists.
    budget
        The budgets with which it ended, by name: with others it goes on.
    """

    n_units: int
    levels: tuple[Unit, ...]
    is_enumerated: bool
    ground: Island
    tally: dict[str, int]
    islands: tuple[Island, ...]
    last_improvement: int
    elapsed: float
    history: list[dict[str, Any]]
    ended: str | None = None
    budget: dict[str, float | None] = field(default_factory=dict)

    @property
    def generation(self) -> int:
        """Generations that were completed."""
        return max(0, self.islands[0].generation) if self.islands else 0


def save_state(path: str | Path, state: State, bench: Bench) -> None:
    """Write a state; a crash in the middle leaves the previous file."""
    arrays: Arrays = {}
    header = {
        "format": FORMAT,
        "fingerprint": fingerprint(bench),
        "generation": state.generation,
        "n_units": state.n_units,
        "levels": [list(unit) for unit in state.levels],
        "is_enumerated": state.is_enumerated,
        "last_improvement": state.last_improvement,
        "elapsed": state.elapsed,
        "tally": state.tally,
        # What was enumerated is in the memory of every island.
        "islands": [
            _encode_island(island, f"{k}.", arrays)
            for k, island in enumerate(state.islands or (state.ground,))
        ],
        "history": state.history,
        "ended": state.ended,
        "budget": state.budget,
    }
    text = np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)
    with writing(Path(path)) as part, part.open("xb") as file:
        np.savez(file, **{"header": text, **arrays})  # type: ignore[arg-type]


def load_state(path: str | Path, bench: Bench) -> State:
    """Read a state that belongs to these data and options.

    Raises
    ------
    ValueError
        If the file is not a checkpoint, has another format, or belongs to another run.
    """
    path = Path(path)
    remove_parts(path.parent, re.compile(re.escape(path.name)))
    header, arrays = _read(path)
    try:
        if header["fingerprint"] != fingerprint(bench):
            raise _Foreign
        return _check_state(header, arrays, bench)
    except _Foreign:
        raise ValueError(
            f"{path} belongs to other data, options or seed. Resume with those it was made "
            "with, or choose another file. Operators of your own must be added with the same "
            "forms and in the same order."
        ) from None
    except BROKEN as error:
        raise _damaged(path, error) from error


def read_progress(path: str | Path) -> tuple[int, float]:
    """Return how many generations and seconds a search has done.

    Raises
    ------
    ValueError
        If the file is not a checkpoint, or has another format.
    """
    header, _ = _read(path)
    try:
        return as_count(header["generation"]), _seconds(header["elapsed"])
    except BROKEN as error:
        raise _damaged(path, error) from error


def _damaged(path: str | Path, error: Exception) -> ValueError:
    return ValueError(f"{path} is not a checkpoint of pmsr, or is damaged: {reason(error)}.")


class _Foreign(Exception):
    """A checkpoint of another run."""


def _read(path: str | Path) -> tuple[dict[str, Any], Arrays]:
    """Read the header and the arrays, without looking into either."""
    try:
        # Ours do not shrink at all: what unfolds to much more is not ours.
        arrays = dict(read_arrays(Path(path).read_bytes(), MAX_RATIO))
        header = json.loads(arrays.pop("header").tobytes().decode())
    except BROKEN as error:
        raise _damaged(path, error) from error
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        found = header.get("format") if isinstance(header, dict) else None
        raise ValueError(
            f"{path} has checkpoint format {found!r}, this version of pmsr reads {FORMAT}. Finish "
            "that search with the version that began it, or begin anew."
        )
    return header, arrays


def _check_state(header: dict[str, Any], arrays: Arrays, bench: Bench) -> State:
    """Return the state in a header, all of whose parts fit together."""
    found = [
        _decode_island(record, k, f"{k}.", arrays, bench)
        for k, record in enumerate(as_list(header["islands"]))
    ]
    if len(found) not in (1, bench.search.n_islands):
        raise ValueError(f"{len(found)} islands")
    has_begun = found[0].generation >= 0
    if any(island.generation != found[0].generation for island in found):
        raise ValueError("its islands are not at the same generation")
    if not isinstance(header["is_enumerated"], bool):
        raise ValueError("it does not say whether small laws were enumerated")
    generation = max(0, found[0].generation)
    if as_count(header["generation"]) != generation:
        raise ValueError("its generation is not that of its islands")
    if as_count(header["last_improvement"]) > generation:
        raise ValueError("its last improvement is yet to come")
    ended, budget = header["ended"], header["budget"]
    return State(
        n_units=as_count(header["n_units"]),
        levels=tuple(
            Unit(as_text(kind), as_count(size), as_count(n))
            for kind, size, n in as_list(header["levels"])
        ),
        is_enumerated=header["is_enumerated"],
        ground=Island(0, found[0].judge),
        tally={as_text(name): as_count(count) for name, count in header["tally"].items()},
        islands=tuple(found) if has_begun else (),
        last_improvement=as_count(header["last_improvement"]),
        elapsed=_seconds(header["elapsed"]),
        history=as_history(header["history"]),
        ended=None if ended is None else as_text(ended),
        budget={
            name: None if value is None else as_number(value) for name, value in budget.items()
        },
    )


def _encode_island(island: Island, name: str, arrays: Arrays) -> dict[str, Any]:
    if island.genomes:
        arrays[name + "rows"] = np.stack([genome.rows for genome in island.genomes])
    arrays[name + "names"] = island.names
    encode = _encode_funnel if isinstance(island.judge, Funnel) else _encode_sampler
    return {
        "generation": island.generation,
        "literals": [genome.literals for genome in island.genomes],
        "judge": encode(island.judge, name, arrays),
    }


def _decode_island(
    record: dict[str, Any], number: int, name: str, arrays: Arrays, bench: Bench
) -> Island:
    search = bench.search
    decode = _decode_funnel if bench.is_screened else _decode_sampler
    judge = decode(record["judge"], name, arrays, bench)
    literals = [tuple(map(_literal, numbers)) for numbers in as_list(record["literals"])]
    names = _array(arrays, name + "names", np.uint64, (len(literals),))
    if not literals:
        if record["generation"] != -1:
            raise ValueError("an island without a population")
        return Island(number, judge)
    shape = (search.population_size, search.max_complexity, 3)
    rows = _array(arrays, name + "rows", np.int32, shape)
    for graph, numbers in zip(rows, literals, strict=True):
        _check_graph(graph, len(numbers), len(bench.names))
    genomes = tuple(
        Genome(np.ascontiguousarray(graph), numbers, search.share_parameters)
        for graph, numbers in zip(rows, literals, strict=True)
    )
    judge.scores(names)  # all must be known
    return Island(number, judge, genomes, names, as_count(record["generation"]))


def _array(arrays: Arrays, name: str, dtype: Any, shape: tuple[int | None, ...]) -> NDArray[Any]:
    """Return one of the arrays, if it is what it must be; None stands for any length."""
    array = arrays[name]
    fits = array.ndim == len(shape) and all(
        n is None or n == m for n, m in zip(shape, array.shape, strict=True)
    )
    if not fits or array.dtype != np.dtype(dtype):
        raise ValueError(f"{name} is of shape {array.shape} and type {array.dtype}")
    return array


def _encode_sampler(sampler: Sampler, name: str, arrays: Arrays) -> dict[str, Any]:
    return {
        "candidates": [vars(one) for one in sampler.candidates.values()],
        "counts": _encode_counts(sampler),
    }


def _decode_sampler(record: dict[str, Any], name: str, arrays: Arrays, bench: Bench) -> Sampler:
    sampler = Sampler()
    for candidate in as_list(record["candidates"]):
        sampler.add(Candidate(**_check_candidate(candidate)))
    return _with_counts(sampler, record["counts"])


def _encode_counts(judge: Any) -> dict[str, int]:
    return {name: getattr(judge, name) for name in _COUNTED if name in vars(judge)}


def _with_counts(judge: Any, record: dict[str, Any]) -> Any:
    """Let a judge go on counting where it was."""
    for name in _encode_counts(judge):
        setattr(judge, name, as_count(record[name]))
    return judge


_COUNTED = ("n_folded", "n_sampled", "n_failed", "n_given")
_NUMBERS = ("rmse", "log_q", "log_q_se", "log_p")
_COUNTS = ("key", "law", "rank", "size")


def _encode_funnel(funnel: Funnel, name: str, arrays: Arrays) -> dict[str, Any]:
    records = funnel.memory.records
    for one in fields(records):
        arrays[f"{name}memory.{one.name}"] = getattr(records, one.name)
    laws = funnel.leaders.laws
    for what in (*_NUMBERS, *_COUNTS):
        kind = float if what in _NUMBERS else np.uint64
        arrays[f"{name}leaders.{what}"] = np.array([getattr(law, what) for law in laws], dtype=kind)
    if laws:
        arrays[f"{name}leaders.curve"] = np.stack([law.curve for law in laws])
    return {
        "programs": [_encode_program(law.program) for law in laws],
        "n_forgotten": funnel.memory.n_forgotten,
        "counts": _encode_counts(funnel),
        "reference": _encode_reference(funnel.reference),
        "expanded": [str(key) for key in sorted(funnel.expanded)],
        "weighed": [[str(law), log_q] for law, log_q in funnel.weighed.items()],
    }


def _decode_funnel(record: dict[str, Any], name: str, arrays: Arrays, bench: Bench) -> Funnel:
    funnel = Funnel(bench)
    empty = Records.none()
    n = len(arrays[f"{name}memory.key"])
    columns = {
        one.name: _array(arrays, f"{name}memory.{one.name}", getattr(empty, one.name).dtype, (n,))
        for one in fields(empty)
    }
    if np.any(columns["key"][1:] <= columns["key"][:-1]):
        raise ValueError("its memory is not in order")
    # -inf is what could not be fitted.
    if not np.all(columns["log_q"] < np.inf) or not np.all(columns["log_p"] < np.inf):
        raise ValueError("a law has an infinite score, or none")
    funnel.memory = Memory(Records(**columns), as_count(record["n_forgotten"]))
    programs = [_program(one, bench) for one in as_list(record["programs"])]
    m = len(programs)
    values = {what: _array(arrays, f"{name}leaders.{what}", float, (m,)) for what in _NUMBERS}
    counts = {what: _array(arrays, f"{name}leaders.{what}", np.uint64, (m,)) for what in _COUNTS}
    if not np.all(np.isfinite(values["log_q"])) or not np.all(np.isfinite(values["log_p"])):
        raise ValueError("a leader has an infinite score, or none")
    curves = np.empty((0, 0))
    if programs:
        curves = _array(arrays, f"{name}leaders.curve", float, (m, None))
    funnel.leaders.laws = tuple(
        Leader(
            program=program,
            curve=curves[k],
            **{what: int(counts[what][k]) for what in _COUNTS},
            **{what: float(values[what][k]) for what in _NUMBERS},  # type: ignore[arg-type]
        )
        for k, program in enumerate(programs)
    )
    funnel.weighed = {
        int(as_text(law)): as_number(log_q) for law, log_q in as_list(record["weighed"])
    }
    funnel.reference = _decode_reference(record["reference"], bench)
    funnel.expanded = frozenset(int(as_text(key)) for key in as_list(record["expanded"]))
    return _with_counts(funnel, record["counts"])


def _encode_reference(reference: Reference | None) -> dict[str, Any] | None:
    if reference is None:
        return None
    return {
        "program": _encode_program(reference.program),
        "theta": reference.theta[:, : reference.program.n_parameters].tolist(),
        "squares": reference.squares.tolist(),
        "rank": reference.rank,
        "log_q": reference.log_q,
        "levels": reference.levels.tolist(),
    }


def _decode_reference(record: dict[str, Any] | None, bench: Bench) -> Reference | None:
    if record is None:
        return None
    program, n = _program(record["program"], bench), len(bench.stages.sizes)
    return Reference(
        program,
        np.array(record["theta"], dtype=float).reshape(n, program.n_parameters),
        np.array(record["squares"], dtype=float).reshape(n),
        as_count(record["rank"]),
        as_number(record["log_q"]),
        np.array(record["levels"], dtype=float).reshape(n - 1, 2),
    )


def _encode_program(program: Program) -> list[Any]:
    return [program.nodes.tolist(), program.literals.tolist(), program.n_parameters]


def _program(record: Any, bench: Bench) -> Program:
    nodes, literals, n_parameters = record
    table = np.array(nodes, dtype=np.int32).reshape(-1, 3)
    numbers = [_literal(number) for number in literals]
    _check_graph(table, len(numbers), len(bench.names))
    return Program(table, np.array(numbers, dtype=float), as_count(n_parameters))


def _check_graph(rows: NDArray[np.int32], n_literals: int, n_variables: int) -> None:
    """Refuse a graph whose rows refer to anything but earlier rows, variables and literals."""
    operators = list(OPERATORS.values())
    for place, (code, a, b) in enumerate(rows.tolist()):
        # What an entry counts, if it is one that is used: the others are left from mutations.
        limits = {VARIABLE: (n_variables,), PARAMETER: (), LITERAL: (n_literals,), POWER: (place,)}
        if FIRST_OPERATOR <= code < FIRST_OPERATOR + len(operators):
            limits[code] = (place,) * operators[code - FIRST_OPERATOR].arity
        used = zip((a, b), limits.get(code, (0,)), strict=False)
        if not all(0 <= entry < limit for entry, limit in used):
            raise ValueError(f"row {place} of a graph refers to {a} and {b}")


def _check_candidate(record: dict[str, Any]) -> dict[str, Any]:
    failure = record["failure"]
    numbers = {name: as_number(record[name]) for name in ("score", "log_q", "log_q_se", "rmse")}
    # What could not be weighed has -inf or NaN, and never leads; a fake leader would have more.
    if np.inf in (numbers["score"], numbers["log_q"]):
        raise ValueError(f"{record['key']!r} has an infinite score")
    if numbers["log_q_se"] < 0.0 or numbers["rmse"] < 0.0:
        raise ValueError(f"{record['key']!r} has a negative error")
    return {
        "key": as_text(record["key"]),
        **numbers,
        **{name: as_count(record[name]) for name in ("n_parameters", "complexity")},
        "failure": None if failure is None else as_text(failure),
        "log_prior": as_number(record["log_prior"]),
    }


def _literal(value: object) -> float:
    number = as_number(value)
    if not np.isfinite(number):
        raise ValueError(f"expected a finite number, got {number}")
    return number


def _seconds(value: object) -> float:
    seconds = as_number(value)
    if not 0 <= seconds < 1e12:
        raise ValueError(f"expected seconds, got {value!r}")
    return seconds


def _name_of(function: Any) -> str:
    """Name a user's prior over laws: its address is another one in every process."""
    return str(getattr(function, "__qualname__", type(function).__qualname__))


def fingerprint(bench: Bench) -> str:
    """Digest of what must be the same when a search goes on; budgets may change."""
    data = bench.problem.data
    options = asdict(bench.search)
    for name in (*BUDGETS, "n_finalists"):
        del options[name]
    for name in ("forbid", "max_uses", "require", "exclude", "screen_columns"):
        if options[name] == getattr(Search(), name):
            del options[name]  # as in checkpoints that are older than these options
    digest = blake2b(digest_size=16)
    digest.update(data.X.tobytes())
    digest.update(data.y.tobytes())
    for name in ("y_err", "counts", "X_err"):
        known = getattr(data, name)
        if known is not None:
            digest.update(name.encode() + known.tobytes())
    if data.groups is not None:
        digest.update(json.dumps(data.groups).encode())
    settings = asdict(bench.settings)
    for name in ("shared_sigma", "positive"):
        if not settings[name]:
            del settings[name]  # as in checkpoints that are older than these options
    chosen = [data.names, options, settings, bench.seed]
    # Graphs hold the codes of operators: of those that users add, it matters which came first.
    names = list(OPERATORS)
    own = [row for row in added_operators() if row.name in bench.search.operators]
    if own:
        chosen.append([[row.name, names.index(row.name), digest_rows([row])] for row in own])
    if data.constants:
        known = data.constants.items()
        chosen.append([(name, one.prior and one.prior.words) for name, one in known])
    digest.update(json.dumps(chosen, default=_name_of).encode())
    return digest.hexdigest()
