"""How far log q of a curved law is from that of a linear one with its rank and squared error.

python benchmarks/linear_log_q.py [--quick]

The laws are drawn by the search's own generator: all built-in operators, at most 12 nodes.
"""

from dataclasses import replace

import numpy as np
import pandas as pd
import report

import pmsr
from pmsr.data import make_data
from pmsr.equation.operators import OPERATORS
from pmsr.evidence.evidence import linear_log_q, make_target, seed_for, weigh
from pmsr.evidence.multistart import FitError
from pmsr.search.evolution import read_graph
from pmsr.search.genome import Primitives, random_genome
from pmsr.settings import FINALIST, Search

N_LAWS, N_NODES = 50, 12  # for each of five datasets
MOST_WITHIN, ALL_WITHIN, SHARE = 0.4, 1.5, 0.9  # asked
SETTINGS = replace(FINALIST, parameter_prior="invariant", n_draws=4000, n_replicates=2)


def make_datasets():
    rng = np.random.default_rng(0)
    x = np.sort(rng.uniform(0.2, 5.0, 12))
    two = rng.uniform(0.5, 3.0, (30, 2))
    return {
        "shelf": pmsr.load_galileo("shelf"),
        "no shelf": pmsr.load_galileo("no_shelf"),
        "sine": pmsr.make_sine(n_points=20, sigma=0.3, random_seed=0),
        "saturation": (x, 3.0 * x / (1.0 + x) + 0.1 * rng.standard_normal(12)),
        "two variables": (two, 2.0 * two[:, 0] / two[:, 1] ** 2 + 0.1 * rng.standard_normal(30)),
    }


def draw_laws(variables, n, rng):
    """Draw distinct laws that are not linear in their parameters, as a search would read them."""
    search = Search(operators=tuple(OPERATORS), max_complexity=N_NODES)
    primitives = Primitives(search.operators, variables, size=N_NODES, shared=False)
    found = {}
    while len(found) < n:
        reading = read_graph(random_genome(primitives, rng=rng), variables, search)
        program = reading.program
        if program is not None and 0 < program.n_parameters > len(program.affine):
            found.setdefault(reading.key, program)
    return found


def measure(name, key, program, data):
    """Weigh one law, and say what a linear one would have."""
    seed = seed_for(key, 0)
    row = {"data": name, "equation": key}
    evidence = weigh(program, data, SETTINGS, seed)
    row |= {
        "p": program.n_parameters,
        "rank": evidence.rank,
        "log_q": evidence.log_q,
        "se": evidence.log_q_se,
        "failure": evidence.failure or "",
    }
    if evidence.failure is None:
        rng = np.random.Generator(np.random.PCG64(seed_for(key, 0).spawn(1)[0]))
        try:
            target = make_target(program, data, SETTINGS, rng=rng)
        except FitError as error:
            return row | {"failure": str(error)}
        row["linear"] = linear_log_q(target)
        row["difference"] = evidence.log_q - row["linear"]
    return row


def main(quick):
    rng = np.random.default_rng(0)
    rows = []
    for name, (X, y) in make_datasets().items():
        data = make_data(X, y)
        laws = draw_laws(data.names, 5 if quick else N_LAWS, rng)
        for key, program in report.track(laws.items(), len(laws), name):
            rows.append(measure(name, key, program, data))
    frame = pd.DataFrame(rows)
    report.save("linear_log_q", frame, quick)
    good = frame[frame["failure"] == ""]
    far = good["difference"].abs()
    formats = {"log_q": ".2f", "se": ".2f", "linear": ".2f", "difference": "+.2f"}
    worst = good.loc[far.sort_values(ascending=False).index[:10]]
    report.show("The ten that are farthest", worst.drop(columns="failure"), formats)
    failed = frame[frame["failure"] != ""][["data", "equation", "failure"]]
    report.show(f"{len(failed)} of {len(frame)} failed", failed, {})
    quantiles = far.quantile([0.5, 0.9, 0.99]).round(2).to_dict()
    report.console.print(f"{len(good)} laws; quantiles of the distance: {quantiles}")
    within = float((far <= MOST_WITHIN).mean())
    return all(
        [
            report.judge(f"{SHARE:.0%} within {MOST_WITHIN}: {within:.1%}", [within >= SHARE]),
            report.judge(f"all within {ALL_WITHIN}", (far <= ALL_WITHIN).to_list()),
        ]
    )


if __name__ == "__main__":
    report.run(main, __doc__)
