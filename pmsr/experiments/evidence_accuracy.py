"""How exact log q is, and what it costs, against the number of parameters."""

import json
import subprocess
import time
from importlib.resources import as_file, files
from pathlib import Path

import numpy as np
import pandas as pd

from pmsr.evidence.evidence import compute_evidence
from pmsr.experiments.datasets import read_source, sine
from pmsr.experiments.exact import exact_linear_log_q, polynomial, polynomial_design
from pmsr.experiments.pages import Claim, Page, write_page
from pmsr.experiments.paper_settings import FINALIST, QUICK
from pmsr.experiments.verdicts import judge
from pmsr.experiments.work import Record, Task, run_units
from pmsr.plots.experiments import plot_accuracy, save_png
from pmsr.settings import Settings

ORDERS = range(7)
SIGMA = 0.3
ENGINES: dict[str, Settings] = {"pmsr, in a search": QUICK, "pmsr, compare": FINALIST}
PEER = "Bingo and SMCPy"
MAX_BIAS = 0.1  # nats
UNBOUNDED = 1e10  # times the deviation of y: what is beyond adds less than 1e-4 to the integral


def run(
    out: str | Path,
    *,
    quick: bool = False,
    n_seeds: int | None = None,
    n_jobs: int | None = None,
    random_seed: int = 0,
    peer: str | Path | None = None,
) -> Path:
    """Compare estimates of log q with its exact value, for polynomials on the sine data.

    Parameters
    ----------
    out
        Folder for figures, numbers.csv, page.md and page.html. What is done in it already is not
        done again.
    quick
        Ten repetitions instead of 50, and three of the peer instead of ten.
    n_seeds
        Number of repetitions, if it shall be another.
    n_jobs
        Units of work at a time, in the sense of joblib.
    random_seed
        Seed of the dataset and of the first repetition; the others follow.
    peer
        A Python in which the paper's implementation (bingo-nasa and smcpy) is installed; None to
        leave it out.

    Returns
    -------
    Path
        The page, page.html.
    """
    out = Path(out)
    if peer is not None:
        _check_peer(peer)
    n_repeats = n_seeds or (10 if quick else 50)
    source = sine(SIGMA, random_seed)
    tasks = [
        {
            "name": f"ours-{place}-order{order}",
            "engine": engine,
            "order": order,
            "source": source,
            "seed": random_seed,
            "n_repeats": n_repeats,
        }
        for place, engine in enumerate(ENGINES)
        for order in ORDERS
    ]
    records = run_units(
        weigh_repeatedly, tasks, out, n_jobs=n_jobs, title="accuracy of the evidence"
    )
    if peer is not None:
        tasks = [
            {
                "name": f"peer-order{order}",
                "engine": PEER,
                "order": order,
                "source": source,
                "n_repeats": min(n_repeats, 3 if quick else 10),
                "python": str(peer),
            }
            for order in ORDERS
        ]
        title = "accuracy of the evidence: the paper's implementation"
        records += run_units(weigh_with_peer, tasks, out, n_jobs=n_jobs, title=title)
    table = pd.DataFrame([row for record in records for row in record["rows"]])
    summary = summarise(table)
    with_peer = "" if peer is not None else " The paper's implementation was not given."
    page = Page(
        title="How exact log q is, and what it costs",
        summary=(
            "Polynomials of order 0 to 6 on one sine dataset of 20 points, weighed "
            f"{n_repeats} times each. Their log q is known: theta is integrated in closed form, σ "
            f"by quadrature.{with_peer}"
        ),
        claims=make_claims(summary),
        figures=[
            (
                save_png(plot_accuracy(table), out / "accuracy.png"),
                "Log q, its error, and the CPU time of one equation: every run, and the means.",
            )
        ],
        tables={"Mean error and deviation of log q, and CPU time": summary},
        numbers={"runs": table, "summary": summary},
        notes=[
            "Settings of pmsr: 1000 draws in a search, and four repetitions with 16 000 draws in "
            "a comparison (`pmsr.compare`).",
            "Every engine is compared with the exact value for its own prior of σ: flat up to two "
            "standard deviations of y in pmsr, flat without end in the paper. With the latter the "
            "integral Z(γ) is infinite from four parameters on (N = 20), so that there is no "
            "exact value, and no error, though an estimate is returned.",
        ],
    )
    return write_page(out, page)


def weigh_repeatedly(task: Task) -> Record:
    """Weigh one polynomial with several seeds."""
    X, y = read_source(task["source"])
    settings, text = ENGINES[task["engine"]], polynomial(task["order"])
    compute_evidence(text, X, y, settings=settings, random_seed=0)  # compiles
    log_q, seconds = [], []
    for k in range(task["n_repeats"]):
        clock = time.process_time()
        found = compute_evidence(text, X, y, settings=settings, random_seed=task["seed"] + k)
        seconds.append(time.process_time() - clock)
        log_q.append(found.log_q)
    return {"rows": _rows(task, log_q, seconds)}


def weigh_with_peer(task: Task) -> Record:
    """Weigh one polynomial with the paper's implementation, in its own Python."""
    X, y = read_source(task["source"])
    order = task["order"]
    message = {
        "x": X["x0"].tolist(),
        "y": y.tolist(),
        "orders": [order],
        "repeats": task["n_repeats"],
    }
    with as_file(files("pmsr.experiments") / "weigh_with_bingo.txt") as script:
        done = subprocess.run(
            [task["python"], str(script)],
            input=json.dumps(message) + "\n",
            capture_output=True,
            text=True,
            check=True,
        )
    found = json.loads(done.stdout.splitlines()[-1])[str(order)]
    return {"rows": _rows(task, found["log_q"], found["seconds"])}


def _check_peer(peer: str | Path) -> None:
    """Refuse a Python that cannot be compared with, before any work is done."""
    try:
        done = subprocess.run(
            [str(peer), "-W", "ignore", "-c", "import bingo, smcpy"], capture_output=True, text=True
        )
    except OSError as error:
        raise ValueError(
            f"peer must be a Python, but {str(peer)!r} cannot be run: {error}."
        ) from None
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise ValueError(
            f"peer must be a Python with bingo-nasa and smcpy installed, got {str(peer)!r}, "
            f"which says: {reason}"
        )


def _rows(task: Task, log_q: list[float], seconds: list[float]) -> list[Record]:
    X, y = read_source(task["source"])
    design = polynomial_design(X["x0"].to_numpy(), task["order"])
    n, p = design.shape
    exact = own = exact_linear_log_q(design, y.to_numpy())
    if task["engine"] == PEER:
        # Its prior of sigma has no upper end; from sqrt(N) - 1 parameters on Z(gamma) is infinite.
        unbounded = Settings(sigma_max=UNBOUNDED)
        is_finite = p < np.sqrt(n) - 1
        own = exact_linear_log_q(design, y.to_numpy(), unbounded) if is_finite else np.nan
    return [
        {
            "engine": task["engine"],
            "n_parameters": task["order"] + 1,
            "repeat": k,
            "exact": exact,
            "exact_with_its_prior": own,
            "log_q": value,
            "error": value - own,
            "milliseconds": 1e3 * time_spent,
        }
        for k, (value, time_spent) in enumerate(zip(log_q, seconds, strict=True))
    ]


def summarise(table: pd.DataFrame) -> pd.DataFrame:
    """Mean and deviation of the error, and mean time, of every engine and number of parameters."""
    groups = table.groupby(["engine", "n_parameters"], sort=False)
    return groups.agg(
        exact=("exact", "first"),
        log_q=("log_q", "mean"),
        mean_error=("error", "mean"),
        deviation=("error", "std"),
        milliseconds=("milliseconds", "mean"),
    ).reset_index()


def make_claims(summary: pd.DataFrame) -> list[Claim]:
    """Compare what the paper says of Sequential Monte Carlo with the numbers."""

    def worst(engine: str) -> float:
        return float(summary[summary["engine"] == engine]["mean_error"].abs().max())

    def spread(engine: str) -> float:
        return float(summary[summary["engine"] == engine]["deviation"].max())

    engines = list(ENGINES)
    ours = "; ".join(
        f"{engine}: mean error at most {worst(engine):.3f}, deviation at most "
        f"{spread(engine):.3f} nats"
        for engine in engines
    )
    has_peer = PEER in set(summary["engine"])
    theirs = (
        f" {PEER}, where its log q exists: mean error up to {worst(PEER):.1f}, deviation up to "
        f"{spread(PEER):.1f} nats."
        if has_peer
        else ""
    )
    ours_worst = max(worst(engine) for engine in engines)
    claims = [
        Claim(
            "Section 2.2",
            "Sequential Monte Carlo produces direct, unbiased estimates of the marginal "
            "likelihood.",
            f"{ours}.{theirs}",
            f"reproduced if the mean error of log q is at most {MAX_BIAS} nats at every order; "
            "better if it is also smaller than that of the paper's implementation, wherever that "
            "exists.",
            judge(ours_worst <= MAX_BIAS, has_peer and is_closer(summary)),
        )
    ]
    if has_peer:
        times = summary.pivot(index="n_parameters", columns="engine", values="milliseconds")
        ratio = times[PEER] / times[engines[0]]
        claims.append(
            Claim(
                "Section 2.2",
                "The paper's implementation weighs equations efficiently.",
                f"{engines[0]} takes {times[engines[0]].min():.1f} to "
                f"{times[engines[0]].max():.1f} ms of CPU time, {PEER} {times[PEER].min():.0f} to "
                f"{times[PEER].max():.0f} ms, {ratio.min():.0f} to {ratio.max():.0f} times as "
                "much.",
                "better if pmsr takes less time at every order.",
                judge(bool((ratio >= 1.0).all()), bool((ratio > 1.0).all())),
            )
        )
    return claims


def is_closer(summary: pd.DataFrame) -> bool:
    """Tell whether all our mean errors are small and smaller than the peer's."""
    errors = summary.pivot(index="n_parameters", columns="engine", values="mean_error").abs()
    errors = errors[errors[PEER].notna()]
    return not errors.empty and all(
        bool((errors[engine] < errors[PEER]).all() and errors[engine].max() <= MAX_BIAS)
        for engine in ENGINES
    )
