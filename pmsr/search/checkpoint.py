"""A run's state on disk: one npz file with JSON inside, written atomically, never pickled."""

import json
import re
from dataclasses import asdict, dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pmsr.data import Data
from pmsr.equation.operators import FIRST_OPERATOR, LITERAL, OPERATORS, PARAMETER, POWER, VARIABLE
from pmsr.files import (
    BROKEN,
    as_count,
    as_history,
    as_number,
    as_text,
    read_arrays,
    reason,
    remove_parts,
    writing,
)
from pmsr.search.genome import Genome
from pmsr.settings import ADDED, Search, Settings

FORMAT = 1
BUDGETS = ("generations", "max_time", "max_evaluations", "patience")
MAX_RATIO = 200  # of a checkpoint's contents to its file


@dataclass(frozen=True, eq=False)
class State:
    """Everything that decides how a search goes on.

    Parameters
    ----------
    generation, last_improvement, elapsed
        Where the search is: generations done, the last that found something better, seconds used.
    rng_state
        State of the generator.
    genomes, keys
        The population.
    candidates
        Every distinct equation seen, in the order of their discovery.
    history
        The logbook's records.
    ended
        Which budget ended the search, if one did; what remains is to weigh the finalists.
    budget
        The budgets with which it ended, by name: with others it goes on.
    """

    generation: int
    last_improvement: int
    elapsed: float
    rng_state: Any  # what NumPy says of its generators: nested dicts of integers
    genomes: list[Genome]
    keys: list[str]
    candidates: list[dict[str, Any]]
    history: list[dict[str, Any]]
    ended: str | None = None
    budget: dict[str, float | None] = field(default_factory=dict)


def save_state(
    path: str | Path, state: State, data: Data, search: Search, settings: Settings, seed: int
) -> None:
    """Write a state; a crash in the middle leaves the previous file."""
    header = {
        "format": FORMAT,
        "fingerprint": _fingerprint(data, search, settings, seed),
        "generation": state.generation,
        "last_improvement": state.last_improvement,
        "elapsed": state.elapsed,
        "rng_state": state.rng_state,
        "keys": state.keys,
        "literals": [genome.literals for genome in state.genomes],
        "candidates": state.candidates,
        "history": state.history,
        "ended": state.ended,
        "budget": state.budget,
    }
    text = np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)
    rows = np.stack([genome.rows for genome in state.genomes])
    with writing(Path(path)) as part, part.open("xb") as file:
        np.savez_compressed(file, header=text, rows=rows)


def load_state(
    path: str | Path, data: Data, search: Search, settings: Settings, seed: int
) -> State:
    """Read a state that belongs to these data and options.

    Raises
    ------
    ValueError
        If the file is not a checkpoint, has another format, or belongs to another run.
    """
    path = Path(path)
    remove_parts(path.parent, re.compile(re.escape(path.name)))
    header, rows = _read(path)
    try:
        if header["fingerprint"] != _fingerprint(data, search, settings, seed):
            raise _Foreign
        return _check_state(header, rows, search, len(data.names))
    except _Foreign:
        raise ValueError(
            f"{path} belongs to other data, options or seed. Resume with those it was made "
            "with, or choose another file."
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


def _read(path: str | Path) -> tuple[dict[str, Any], NDArray[Any]]:
    """Read the header and the population, without looking into either."""
    try:
        # Ours shrink to a tenth or so: what unfolds to much more is not ours.
        arrays = read_arrays(Path(path).read_bytes(), MAX_RATIO)
        header = json.loads(arrays["header"].tobytes().decode())
        rows = arrays["rows"]
    except BROKEN as error:
        raise _damaged(path, error) from error
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        found = header.get("format") if isinstance(header, dict) else None
        raise ValueError(
            f"{path} has checkpoint format {found!r}, this version of pmsr reads {FORMAT}."
        )
    return header, rows


def _check_state(
    header: dict[str, Any], rows: NDArray[Any], search: Search, n_variables: int
) -> State:
    """Return the state in a header, all of whose parts fit together."""
    shape = (search.population_size, search.max_complexity, 3)
    if rows.shape != shape or rows.dtype != np.int32:
        raise ValueError(f"a population of shape {rows.shape}")
    literals = [tuple(map(_literal, numbers)) for numbers in header["literals"]]
    for graph, numbers in zip(rows, literals, strict=True):
        _check_graph(graph, len(numbers), n_variables)
    keys = list(map(as_text, header["keys"]))
    candidates = [_check_candidate(candidate) for candidate in header["candidates"]]
    if not set(keys) <= {candidate["key"] for candidate in candidates} or len(keys) != len(rows):
        raise ValueError("its population is not among its equations")
    if as_count(header["last_improvement"]) > as_count(header["generation"]):
        raise ValueError("its last improvement is yet to come")
    # Those of an earlier version do not say whether they had ended.
    ended, budget = header.get("ended"), header.get("budget", {})
    # NumPy's own setter refuses a state that is not one.
    np.random.default_rng().bit_generator.state = header["rng_state"]
    return State(
        generation=as_count(header["generation"]),
        last_improvement=as_count(header["last_improvement"]),
        elapsed=_seconds(header["elapsed"]),
        rng_state=header["rng_state"],
        genomes=[
            Genome(np.ascontiguousarray(graph), numbers, search.share_parameters)
            for graph, numbers in zip(rows, literals, strict=True)
        ],
        keys=keys,
        candidates=candidates,
        history=as_history(header["history"]),
        ended=None if ended is None else as_text(ended),
        budget={
            name: None if value is None else as_number(value) for name, value in budget.items()
        },
    )


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


def _fingerprint(data: Data, search: Search, settings: Settings, seed: int) -> str:
    """Digest of what must be the same when a search goes on; budgets may change."""
    options = asdict(search)
    for name in (*BUDGETS, "n_finalists"):
        del options[name]
    chosen = asdict(settings)
    for name, value in ADDED.items():
        if chosen[name] == value:
            del chosen[name]
    digest = blake2b(digest_size=16)
    digest.update(data.X.tobytes())
    digest.update(data.y.tobytes())
    digest.update(json.dumps([data.names, options, chosen, seed]).encode())
    return digest.hexdigest()
