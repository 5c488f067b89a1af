"""Searches that are killed or stopped at any moment and go on: they must end as if they had not."""

import json
import multiprocessing
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

import pmsr.search.evolution
from fuzz.tally import Tally, generator
from pmsr.data import Data, make_data
from pmsr.equation.operators import OPERATORS
from pmsr.search.evolution import Evolution, run_evolution
from pmsr.settings import Search
from pmsr.shell.cli import main

OPERATOR_SETS = (
    ("+", "-", "*", "/", "sqrt"),
    ("+", "*", "exp", "log", "abs"),
    ("-", "*", "pow", "sin", "tanh"),
)
STOPS = 2.5  # searches that a callback stops, for each that is killed
MAX_KILLS = 3  # of one search
CLOCKS = ("elapsed", "equations_per_second")  # what a clock says


def attack(n: int, seed: int) -> Tally:
    """Kill n runs of ``pmsr fit``, and stop more searches, and compare how they end."""
    tally = Tally("kills")
    with tempfile.TemporaryDirectory() as folder:
        for place in range(round(STOPS * n)):
            path = Path(folder) / f"stop{place}.npz"
            tally.attempt(f"stop {place}", lambda place=place, path=path: _stop(seed, place, path))
        for place in range(n):
            path = Path(folder) / f"kill{place}"
            tally.attempt(f"kill {place}", lambda place=place, path=path: _kill(seed, place, path))
    return tally


def _make_data(rng: np.random.Generator) -> Data:
    X = rng.uniform(0.5, 4.0, (int(rng.integers(5, 30)), int(rng.integers(1, 3))))
    return make_data(X, X[:, 0] * np.sqrt(X[:, -1]) + 0.1 * rng.standard_normal(len(X)))


def _stop(seed: int, place: int, path: Path) -> str:
    """Stop a search after some generations, with any operators, and go on."""
    rng = generator(seed, place)
    data = _make_data(rng)
    names = [name for name, operator in OPERATORS.items() if operator.arity == 2]
    others = [name for name in OPERATORS if name not in names]
    operators = (
        *rng.choice(names, int(rng.integers(1, 4)), replace=False),
        *rng.choice(others, int(rng.integers(0, 4)), replace=False),
    )
    search = Search(
        operators=tuple(map(str, operators)),
        population_size=8,
        generations=5,
        max_complexity=12,
        n_finalists=2,
        refresh=int(rng.integers(1, 4)),
        evidence=str(rng.choice(["screened", "smc"])),
        n_islands=int(rng.integers(1, 4)),
        n_enumerated=int(rng.integers(0, 100)),
    )
    last = int(rng.integers(1, 5))
    whole = run_evolution(data, search=search, random_seed=place)
    run_evolution(
        data,
        search=search,
        random_seed=place,
        checkpoint=path,
        callbacks=[lambda generation: generation.number >= last],
    )
    resumed = run_evolution(data, search=search, random_seed=place, checkpoint=path)
    _check_same(_describe(resumed), _describe(whole))
    return "stopped"


def _describe(found: Evolution) -> Any:
    """Return all that must be the same, numbers to the last bit."""
    finalists = [(str(equation), evidence.log_q.hex()) for equation, evidence in found.finalists]
    front = json.dumps([vars(one) for one in found.front])
    return finalists, found.population, front, json.dumps(_without_clocks(found.history))


def _without_clocks(history: Any) -> list[dict[str, Any]]:
    return [{k: v for k, v in record.items() if k not in CLOCKS} for record in history]


def _kill(seed: int, place: int, path: Path) -> str:
    """Kill ``pmsr fit`` at random times, and go on with ``pmsr resume`` until it ends."""
    rng = generator(seed, 1_000_000 + place)
    data = _make_data(rng)
    table = path.with_suffix(".csv")
    header = ",".join([*data.names, "y"])
    np.savetxt(table, np.column_stack([data.X, data.y]), delimiter=",", header=header, comments="")
    operators = " ".join(OPERATOR_SETS[place % len(OPERATOR_SETS)])
    options = f"--target y --population 12 --generations 6 --seed {place} --no-report --force"

    def start(out: Path) -> list[str]:
        if (out / "settings.json").exists():
            return ["resume", str(out), "--no-report"]
        return ["fit", str(table), "--operators", operators, *options.split(), "--out", str(out)]

    whole = path.with_name(path.name + "-whole")
    clock = time.monotonic()
    if _run(start(whole)) != 0:
        raise ValueError("the run that nobody killed has failed")
    duration = time.monotonic() - clock
    n_kills = 0
    for _ in range(int(rng.integers(1, MAX_KILLS + 1))):
        n_kills += _run(start(path), kill_after=float(rng.uniform(0.0, duration))) is None
        if n_kills == 0:
            break  # it was faster than its twin, and a run that has ended would start over
        if (path / "settings.json").exists() and _is_finished(path):
            break
    if not (path / "settings.json").exists() or not _is_finished(path):
        if _run(start(path)) != 0:
            raise ValueError(f"after {n_kills} kills it cannot go on")
    _check_same(_read(path), _read(whole))
    left = [file.name for file in path.iterdir() if file.name.endswith(".part")]
    if left:
        raise ValueError(f"parts are left: {left}")
    return f"killed {n_kills} times"


def _is_finished(path: Path) -> bool:
    return bool(json.loads((path / "settings.json").read_text())["finished"])


def _run(arguments: list[str], kill_after: float | None = None) -> int | None:
    """Run a command in a process of its own; None if it was killed."""
    # A fork has everything compiled: what is tested is the search, not how long imports take.
    process = multiprocessing.get_context("fork").Process(target=_work, args=(arguments,))
    process.start()
    process.join(kill_after)
    if process.is_alive():
        process.kill()
        process.join()
        return None
    return process.exitcode


def _work(arguments: list[str]) -> None:
    pmsr.search.evolution.SAVE_SECONDS = 0.0  # a checkpoint after every unit
    with open(os.devnull, "w") as nowhere:
        sys.stdout = nowhere
        code = main([*arguments, "--quiet"])
    os._exit(code)


def _read(path: Path) -> Any:
    """Return what a run has left, without clocks."""
    result = json.loads((path / "result.json").read_text())
    result["history"] = _without_clocks(result["history"])
    return result, (path / "equations.csv").read_bytes()


def _check_same(found: Any, expected: Any) -> None:
    for mine, other in zip(found, expected, strict=True):
        if mine != other:
            raise ValueError(f"it ended otherwise: {str(mine)[:300]}, not {str(other)[:300]}")
