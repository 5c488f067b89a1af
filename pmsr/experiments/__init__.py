"""The paper's experiments, each with a page that puts its claims beside our results.

Each is a module, such as ``pmsr.experiments.sine``, with a function ``run``; they are imported on
first use.

May import: everything but the shell.
"""

from importlib import import_module
from pathlib import Path

NAMES = (
    "polynomials",
    "sine",
    "galileo_shelf",
    "galileo_no_shelf",
    "galileo_synthetic",
    "evidence_accuracy",
)


def __getattr__(name: str) -> object:
    if name not in NAMES:
        raise AttributeError(f"module 'pmsr.experiments' has no attribute {name!r}")
    return import_module(f"pmsr.experiments.{name}")


def reproduce(
    name: str,
    out: str | Path,
    *,
    quick: bool = False,
    n_seeds: int | None = None,
    n_jobs: int | None = None,
    random_seed: int = 0,
    peer: str | Path | None = None,
) -> list[Path]:
    """Repeat an experiment of the paper.

    Parameters
    ----------
    name
        ``"polynomials"`` (Section 2.3), ``"sine"`` (3.1), ``"galileo_shelf"``,
        ``"galileo_no_shelf"``, ``"galileo_synthetic"`` (3.2), ``"evidence_accuracy"`` (ours), or
        ``"all"``.
    out
        Folder for figures, numbers.csv, page.md and page.html; of ``"all"``, each experiment gets
        a folder of its own in it, beside index.html with all claims. A run that was interrupted
        goes on where it stopped.
    quick
        Whether to make do with few repetitions and short searches.
    n_seeds
        Number of repetitions, or of datasets; by default the paper's or more.
    n_jobs
        Units of work at a time, in the sense of joblib.
    random_seed
        The same seed gives the same numbers, but for times.
    peer
        A Python in which the paper's implementation (bingo-nasa and smcpy) is installed, for
        ``"evidence_accuracy"``.

    Returns
    -------
    list of Path
        The pages, page.html; of ``"all"``, index.html comes first.
    """
    if name != "all" and name not in NAMES:
        raise ValueError(f"Unknown experiment {name!r}. Available: {', '.join(NAMES)}, all.")
    if n_seeds is not None and not (isinstance(n_seeds, int) and n_seeds >= 1):
        raise ValueError(f"n_seeds must be an integer of at least 1, got {n_seeds!r}.")
    if n_jobs == 0:
        raise ValueError("n_jobs must not be 0. Use 1 for one process, -1 for one per core.")
    if Path(out).is_file():
        raise ValueError(f"out must be a folder, but {str(out)!r} is a file.")
    if peer is not None and name not in ("evidence_accuracy", "all"):
        raise ValueError(f"peer is for evidence_accuracy alone, not for {name}. Leave it out.")
    pages = []
    for one in NAMES if name == "all" else (name,):
        folder = Path(out) / one if name == "all" else Path(out)
        more = {"peer": peer} if one == "evidence_accuracy" else {}
        run = import_module(f"pmsr.experiments.{one}").run
        pages.append(
            run(
                folder,
                quick=quick,
                n_seeds=n_seeds,
                n_jobs=n_jobs,
                random_seed=random_seed,
                **more,
            )
        )
        if name == "all":  # after every experiment: what is done can be read
            index = import_module("pmsr.experiments.pages").write_index(out, pages)
    return [index, *pages] if name == "all" else pages
