"""What the experiments with Galileo's data have in common (Section 3.2)."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from pmsr.equation.expression import Equation
from pmsr.experiments.datasets import Source, read_source
from pmsr.experiments.fits import weigh_one, weigh_task
from pmsr.experiments.searches import PAPER, search_one, search_task
from pmsr.experiments.work import Record, run_units

OPERATORS = ("+", "-", "*", "/", "pow", "sqrt")
OURS, THEIRS = "pmsr's search", "the paper's search"
# Population 120 and complexity 64 are the defaults. Our own search needs few generations, as the
# best climb; the paper's goes on, as its last population is looked at.
ENGINES: dict[str, dict[str, Any]] = {OURS: {}, THEIRS: PAPER}
GENERATIONS = {OURS: 60, THEIRS: 1000}
QUICK_GENERATIONS = {OURS: 40, THEIRS: 100}

_ENGINE_NOTE = (
    "Two searches are run. The paper's: crossover, mutation and probabilistic crowding alone, and "
    "a parameter may stand in several places. Ours (the default of pmsr): every parameter stands "
    "in one place, no variable in an exponent, repeated equations make room for new ones every ten "
    "generations, and the best few climb; it ends after {ours} generations, the paper's after "
    "{paper}. As that changes the population, what is said of the last population is said of the "
    "paper's search."
)
WINNER_NOTE = (
    "The winner of a search is the equation with the largest log q: as in the paper, all equations "
    "are equally probable beforehand. Among the thousands that a search sees, some are ahead by "
    "chance; the default of pmsr, a prior over laws, is not used here."
)


def describe_engines(quick: bool) -> str:
    """Say what the two searches are."""
    generations = QUICK_GENERATIONS if quick else GENERATIONS
    return _ENGINE_NOTE.format(ours=generations[OURS], paper=generations[THEIRS])


def search_all(
    out: Path,
    sources: Sequence[Source],
    seeds: Sequence[int],
    law: str,
    truth: Sequence[float],
    *,
    quick: bool,
    n_jobs: int | None,
    title: str,
) -> pd.DataFrame:
    """Run both searches on every dataset with its seed; one row a search."""
    generations = QUICK_GENERATIONS if quick else GENERATIONS
    tasks, engines = [], []
    for engine, options in ENGINES.items():
        short = "ours" if engine == OURS else "paper"
        for source, seed in zip(sources, seeds, strict=True):
            search = {"operators": list(OPERATORS), "generations": generations[engine]} | options
            tasks.append(
                search_task(f"search-{short}-{seed}", source, search, seed, law=law, truth=truth)
            )
            engines.append(engine)
    records = run_units(search_one, tasks, out, n_jobs=n_jobs, title=f"{title}: searching")
    return pd.DataFrame(
        [
            to_search_row(record) | {"engine": engine}
            for record, engine in zip(records, engines, strict=True)
        ]
    )


def to_search_row(record: Record) -> dict[str, Any]:
    """Return the numbers of a search that stand in a table."""
    names = (
        "seed",
        "law_found",
        "law_won",
        "special_case_won",
        "law_place",
        "law_behind",
        "law_in_population",
        "extensions_in_population",
        "largest_other",
        "population_size",
        "stopped",
        "n_candidates",
        "cpu_seconds",
    )
    row = {name: record[name] for name in names}
    best = record["finalists"][0]
    return row | {
        "winner": record["winner"]["equation"],
        "winner_log_q": record["winner"]["log_q"],
        "best": best["equation"],
        "best_log_q": best["log_q"],
        "generations": record["history"][-1]["generation"],
    }


def weigh_rivals(
    out: Path,
    equations: dict[str, str],
    laws: Sequence[str],
    source: Source,
    *,
    n_repeats: int,
    random_seed: int,
    n_jobs: int | None,
    title: str,
) -> pd.DataFrame:
    """Weigh named equations, best first; ``laws`` are the names of those that are the law."""
    records = run_units(
        weigh_one,
        [
            weigh_task(f"weigh-{name}", text, source, random_seed, n_repeats)
            for name, text in equations.items()
        ],
        out,
        n_jobs=n_jobs,
        title=f"{title}: weighing rivals",
    )
    rows = []
    for name, record in zip(equations, records, strict=True):
        row = {k: v for k, v in record.items() if k not in ("log_q_runs", "theta", "failure")}
        row |= {f"theta_{k}": value for k, value in enumerate(record["theta"], 1)}
        rows.append({"name": name, "is_law": name in laws} | row)
    table = pd.DataFrame(rows).sort_values("log_q", ascending=False, ignore_index=True)
    table.insert(3, "behind", table["log_q"].max() - table["log_q"])
    return table


def latex_names(table: pd.DataFrame, source: Source) -> dict[str, str]:
    """Return the LaTeX of a table's equations, for a figure."""
    variables = list(read_source(source)[0].columns)
    return {text: f"${Equation(text, variables).latex()}$" for text in table["equation"]}


RIVAL_COLUMNS = ["equation", "log_q", "log_q_se", "behind", "log_q_invariant", "rmse"]


def log_q_of(table: pd.DataFrame, name: str) -> tuple[float, float]:
    """Return log q and its standard error of a named rival."""
    row = table[table["name"] == name].iloc[0]
    return float(row["log_q"]), float(row["log_q_se"])


def show_searches(table: pd.DataFrame) -> pd.DataFrame:
    """Return the columns of the searches that a reader wants to see."""
    columns = ["engine", "seed", "law_found", "law_won", "special_case_won"]
    columns += ["law_behind", "law_in_population"]
    shown = table[[*columns, "winner", "best", "generations", "cpu_seconds"]].copy()
    shown["law_behind"] = shown["law_behind"].astype(float)
    return shown.rename(columns=lambda name: name.replace("_", " "))
