"""A run's state on disk: one npz file with JSON inside, written atomically, never pickled."""

import json
import os
from dataclasses import asdict, dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from pmsr.data import Data
from pmsr.genome import Genome
from pmsr.settings import Search, Settings

FORMAT = 1


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
    """

    generation: int
    last_improvement: int
    elapsed: float
    rng_state: Any  # what NumPy says of its generators: nested dicts of integers
    genomes: list[Genome]
    keys: list[str]
    candidates: list[dict[str, Any]]
    history: list[dict[str, Any]]


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
    }
    text = np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)
    rows = np.stack([genome.rows for genome in state.genomes])
    path = Path(path)
    temporary = path.with_name(path.name + ".part")
    with temporary.open("wb") as file:
        np.savez_compressed(file, header=text, rows=rows)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)


def load_state(
    path: str | Path, data: Data, search: Search, settings: Settings, seed: int
) -> State:
    """Read a state that belongs to these data and options.

    Raises
    ------
    ValueError
        If the file is not a checkpoint, has another format, or belongs to another run.
    """
    try:
        # An open stream: np.load leaves a file that is no archive open.
        with Path(path).open("rb") as stream, np.load(stream, allow_pickle=False) as file:
            header = json.loads(file["header"].tobytes().decode())
            rows = file["rows"]
    except (OSError, ValueError, KeyError, TypeError, BadZipFile, EOFError) as error:
        raise ValueError(f"{path} is not a checkpoint of pmsr, or is damaged: {error}.") from error
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        found = header.get("format") if isinstance(header, dict) else None
        raise ValueError(
            f"{path} has checkpoint format {found!r}, this version of pmsr reads {FORMAT}."
        )
    if header["fingerprint"] != _fingerprint(data, search, settings, seed):
        raise ValueError(
            f"{path} belongs to other data, options or seed. Resume with those it was made "
            "with, or choose another file."
        )
    if rows.ndim != 3 or rows.shape[1:] != (search.max_complexity, 3) or rows.dtype != np.int32:
        raise ValueError(f"{path} holds a population of shape {rows.shape}: it is damaged.")
    genomes = [
        Genome(np.ascontiguousarray(row), tuple(literals), search.share_parameters)
        for row, literals in zip(rows, header["literals"], strict=True)
    ]
    return State(
        generation=header["generation"],
        last_improvement=header["last_improvement"],
        elapsed=header["elapsed"],
        rng_state=header["rng_state"],
        genomes=genomes,
        keys=header["keys"],
        candidates=header["candidates"],
        history=header["history"],
    )


def _fingerprint(data: Data, search: Search, settings: Settings, seed: int) -> str:
    """Digest of what must be the same when a search goes on; budgets may change."""
    options = asdict(search)
    for budget in ("generations", "max_time", "max_evaluations", "patience", "n_finalists"):
        del options[budget]
    digest = blake2b(digest_size=16)
    digest.update(data.X.tobytes())
    digest.update(data.y.tobytes())
    digest.update(json.dumps([data.names, options, asdict(settings), seed]).encode())
    return digest.hexdigest()
