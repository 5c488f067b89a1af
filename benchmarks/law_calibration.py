"""How often the law with reported probability p is the true one, on the laws of science.

python benchmarks/law_calibration.py            searches and ranks, all 68 laws
python benchmarks/law_calibration.py --table    prints the tables of docs/law_calibration.md and
                                                draws its picture, from the results

Trials, for every law of benchmarks/laws_of_science.py, with data as `make` draws them:

* "search": one search (seed 2000) of five seconds of CPU on one core, with + - * / sqrt and the
  law's own functions, else the default options. What `from_evolution` makes of it is what a user
  reads: the winner, its probability, the family of the winner and its probability.
* "ranked": nine new datasets (seeds 2001 to 2009: other noise, number of rows, constants). The
  candidates are those of the search: of the laws that it screened, each in its cheapest spelling,
  the first 1,000 by t*log q + log P for each t of TEMPERS (with fewer or noisier data log q
  counts for less, down to not at all; with more and better data for more), and the law itself if
  the search has seen it. They are screened on the new data, merged by their curves, and have the
  probabilities softmax(linear log q + log P) among themselves. Families are made of what a search
  would weigh: the first 40 within 7 nats, with the bands of the screened fits.

What is counted. A winner is the true law if its rank, and its best fit at rows and probes, are
those of the law itself, fitted to the same noisy data, or if it has the same canonical form; a
special case or an extension of the law, or another law that the data cannot tell from it, is
wrong. A family is right if the law is one of its members. Where the search has not seen the law,
all its trials count, and the winner is wrong; so does a dataset to which the law could not be
fitted.

Measured: the expected calibration error (ECE), in ten bins of the probability, of winners and of
their families; training and test laws apart, searched and ranked apart. Intervals are from 2,000
bootstrap samples of laws, whole laws at a time. As a perfectly calibrated method has an ECE above
0, its mean is shown too: outcomes are drawn with the reported probabilities, trial by trial, which
ignores that trials of a law go together. Aim, named before the run: an ECE of at most 0.10.

For finding causes, none of which changes the above:

* "own": the candidates ranked on the search's own data, so that the closed form and the choice of
  candidates can be told from the rest;
* "all": for every other training and test law, all that was screened instead of the candidates, on
  the first new dataset;
* other rules, for the training laws only, on the same trials: see RULES.
"""

import argparse
import csv
import os
import time
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from law_prior import calibration_error, enumeration, log_p, tables_of
from laws_of_science import LAWS, make
from scipy.special import logsumexp
from search_options import operators_of

from pmsr.equation.expression import Equation
from pmsr.evidence.problem import Problem
from pmsr.laws.coincidences import column_signs, count_all_coincidences
from pmsr.laws.families import group_families, probe_points, trace_band
from pmsr.laws.prior import LawPrior
from pmsr.result.searched import from_evolution
from pmsr.search.curves import KnownLaws, digest_curves
from pmsr.search.evolution import run_evolution
from pmsr.search.finalists import FINAL_REACH
from pmsr.search.folding import Folded, Rules, fold
from pmsr.search.funnel import Funnel
from pmsr.search.screening import Batch, screen
from pmsr.settings import QUICK, Search

HERE = Path(__file__).parent
RESULTS = HERE / "results" / "law_calibration.csv"
PICTURE = HERE.parent / "docs" / "figures" / "law_calibration.svg"
SECONDS = 5.0  # of CPU for a search
SEARCHED = 2000  # seed of the data of the search
N_NEW = 9  # further datasets of each law
TEMPERS = (0.0, 0.25, 0.5, 1.0, 2.0, 4.0)
N_EACH = 1_000  # candidates for each of them
N_BOOTSTRAP = 2_000
N_FINALISTS = Search().n_finalists

# Nats a node or "counts", for a coincidence, for a pure number; what log q is multiplied with:
# "whole" is 1/(1 - gamma), as if no part of the data were spent on the prior of the parameters.
DEFAULT = (LawPrior().per_node, LawPrior().per_coincidence, LawPrior().per_coincidence)
RULES = {
    "default": (DEFAULT, 1.0),
    "counts": (("counts", *DEFAULT[1:]), 1.0),
    "1.25 a node": ((1.25, *DEFAULT[1:]), 1.0),
    "1.75 a node": ((1.75, *DEFAULT[1:]), 1.0),
    "2 a node": ((2.0, *DEFAULT[1:]), 1.0),
    "whole log q": (DEFAULT, "whole"),
}


class Catch:
    """Keeps all programs that a search screens, which itself remembers numbers only."""

    def __enter__(self):
        self.folded, self._screen = [], Funnel._screen

        def screen_and_keep(funnel, laws, bench, level):
            self.folded.append(laws)
            self._screen(funnel, laws, bench, level)

        Funnel._screen = screen_and_keep
        return self

    def __exit__(self, *_):
        Funnel._screen = self._screen

    def programs(self, keys):
        """Return the programs with these keys."""
        everything = join(self.folded)
        found, first = np.unique(everything.key, return_index=True)
        return everything.take(first[np.isin(found, keys)])


def join(folded):
    """Put folded programs side by side, with room for the largest."""
    width = max(one.nodes.shape[1] for one in folded)
    n_numbers = max(one.literals.shape[1] for one in folded)
    parts = {name: [getattr(one, name) for one in folded] for name in Folded.__dataclass_fields__}
    parts["nodes"] = [
        np.pad(one, ((0, 0), (0, width - one.shape[1]), (0, 0))) for one in parts["nodes"]
    ]
    parts["literals"] = [
        np.pad(one, ((0, 0), (0, n_numbers - one.shape[1]))) for one in parts["literals"]
    ]
    return Folded(**{name: np.concatenate(some) for name, some in parts.items()})


def screen_folded(folded, problem, seed=0):
    tables = tables_of(folded).take(slice(None))
    batch = Batch(
        tables.nodes,
        tables.n_nodes.astype(np.int64),
        tables.literals,
        tables.n_parameters.astype(np.int64),
    )
    return tables, screen(batch, problem, seed, keys=folded.key)


def fold_law(law):
    program = law.equation.program
    return fold(program.nodes[None], program.literals[None], rules=Rules(sharing="keep"))


def search_for(law):
    """Search once; return the row of what a user reads, candidates, and all that was screened."""
    data, drawn = make(law, SEARCHED)
    search = Search(operators=operators_of(law), generations=10**6)
    started = time.process_time()
    with Catch() as catch:
        found = run_evolution(
            data,
            search=search,
            random_seed=SEARCHED,
            n_jobs=1,
            callbacks=[lambda told: time.process_time() - started > SECONDS],
        )
    result = from_evolution(found, data, search=search, settings=QUICK, random_seed=SEARCHED)
    problem = Problem.of(data, QUICK)
    truth = fold_law(law)
    _, fitted = screen_folded(truth, problem)
    digest = digest_curves(fitted, data, truth.key)[0]
    seen = bool(np.isin(digest, found.screened.law))
    # Equations are in their own variables: written anew in all of them.
    own = [Equation(str(one.equation), data.names) for one in result.equations]
    is_true = are_true([one.program for one in own], law, problem)
    is_true |= np.array([one.key == law.equation.key for one in own])
    family = result.family
    probabilities = result.probabilities
    row = describe(law, SEARCHED, drawn, "search", "default", seen) | {
        "p_winner": probabilities[result.chosen],
        "winner_true": int(is_true[result.chosen]),
        "p_family": family.probability,
        "family_true": int(is_true[list(family.places)].any()),
        "members": len(family),
        "p_law": probabilities[is_true].sum() if seen else np.nan,
        "rest": result.unweighed_share,
        "settled": int(found.is_settled),
        "candidates": found.n_screened,
        "winner": str(result.best.equation),
    }
    best, outside = choose_candidates(found.screened)
    everything = catch.programs(found.screened.key)
    candidates = everything.take(np.isin(everything.key, best))
    return row, seen, candidates, everything, outside


def are_true(programs, law, problem):
    """Tell which programs are the law on these data."""
    known = KnownLaws(problem.data)
    [number] = known.add(screen_folded(fold_law(law), problem)[1])
    numbers = known.add(screen(Batch.of(programs), problem, 0))
    return (numbers == number) & (number >= 0)


def choose_candidates(records):
    """Return keys of the candidates, and the probability of the rest on the search's own data."""
    records = records.take(np.isfinite(records.score))
    order = np.lexsort((records.key, -records.log_p, records.law))
    first = np.ones(len(order), dtype=bool)
    first[1:] = records.law[order][1:] != records.law[order][:-1]
    cheapest = records.take(order[first])
    chosen = np.zeros(len(cheapest), dtype=bool)
    for temper in TEMPERS:
        best = np.argsort(-(temper * cheapest.log_q + cheapest.log_p), kind="stable")
        chosen[best[:N_EACH]] = True
    shares = np.exp(cheapest.score - logsumexp(cheapest.score))
    return cheapest.key[chosen], float(shares[~chosen].sum())


def describe(law, seed, drawn, kind, rule, seen):
    return {
        "law": law.name,
        "set": "train" if law.is_for_training else "test",
        "kind": kind,
        "rule": rule,
        "seed": seed,
        "n": drawn["n"],
        "noise": drawn["noise"],
        "seen": int(seen),
    }


def rank_anew(law, seed, folded, seen, kind, rules):
    """Rank candidates on a dataset; return a row for each rule."""
    data, drawn = make(law, seed)
    problem = Problem.of(data, QUICK)
    if seen:
        folded = join([folded, fold_law(law)])
    tables, screened = screen_folded(folded, problem, seed)
    known = KnownLaws(data)
    [truth] = known.add(screen_folded(fold_law(law), problem, seed)[1])
    number = known.add(screened)
    found = count_all_coincidences(
        tables, data.X.shape[1], signs=column_signs(data.X), X=data.X, theta=screened.theta
    )
    numbers = LawPrior(per_node=0.0).describe(tables)
    nodes = numbers - LawPrior(per_node=1.0).describe(tables)
    features = np.column_stack([nodes, -numbers, found[:, :3]])
    counts = enumeration(operators_of(law), data.X.shape[1])[1] if "counts" in rules else None
    usable = np.flatnonzero(np.isfinite(screened.log_q) & (number >= 0))
    points, _ = probe_points(data.X)
    bands = {}

    def band(k):
        if k not in bands:
            program = tables.program(k)
            theta = screened.theta[k, : program.n_parameters]
            bands[k] = trace_band(program, theta, data.X, points)
        return bands[k]

    def noise_of(k):
        n_free = max(1, len(data.y) - int(screened.rank[k]))
        sigma = float(np.clip(np.sqrt(screened.sse[k] / n_free), *problem.sigma_bounds))
        return sigma, np.full(len(points), sigma)

    rows = []
    for name, (rule, factor) in rules.items():
        factor = 1.0 / (1.0 - problem.gamma) if factor == "whole" else factor
        score = factor * screened.log_q[usable] + log_p(rule, counts, features[usable])
        order = np.argsort(-score, kind="stable")
        # Each law in its best spelling, best first.
        _, first = np.unique(number[usable][order], return_index=True)
        order = order[np.sort(first)]
        places, score = usable[order], score[order]
        p = np.exp(score - logsumexp(score))
        near = places[:N_FINALISTS][score[:N_FINALISTS] >= score[0] - FINAL_REACH]
        families = group_families({int(k): band(int(k)) for k in near}, noise_of, len(data.y))
        members = np.isin(places, families[int(places[0])])
        is_true = (number[places] == truth) & (truth >= 0)
        rows.append(
            describe(law, seed, drawn, kind, name, seen)
            | {
                "p_winner": p[0],
                "winner_true": int(is_true[0]),
                "p_family": p[members].sum(),
                "family_true": int((is_true & members).any()),
                "members": int(members.sum()),
                "p_law": p[is_true].sum() if seen else np.nan,
                "rest": p[len(near) :].sum(),
                "candidates": len(folded),
                "winner": name_law(tables.program(int(places[0])), data.names),
            }
        )
    return rows


def name_law(program, names):
    try:
        return str(Equation.from_program(program, names))
    except ValueError:  # what algebra refuses, and could be fitted
        return "?"


def run(laws):
    rows = []
    for law in laws:
        clock = time.process_time()
        row, seen, candidates, everything, outside = search_for(law)
        rows.append(row | {"outside": outside})
        rules = RULES if law.is_for_training else {"default": RULES["default"]}
        only = {"default": RULES["default"]}
        searched = time.process_time() - clock
        rows += rank_anew(law, SEARCHED, candidates, seen, "own", only)
        for seed in range(SEARCHED + 1, SEARCHED + 1 + N_NEW):
            rows += rank_anew(law, seed, candidates, seen, "ranked", rules)
        if LAWS.index(law) % 4 == 0 or LAWS.index(law) % 4 == 3:
            rows += rank_anew(law, SEARCHED + 1, everything, seen, "all", only)
        print(
            f"{law.name}: {row['winner']} {row['p_winner']:.2f} true {row['winner_true']}, "
            f"family {row['p_family']:.2f} true {row['family_true']}; {outside:.3f} outside; "
            f"{searched:.1f} + {time.process_time() - clock - searched:.1f} s",
            flush=True,
        )
        pd.DataFrame(rows).round(5).to_csv(RESULTS, index=False, quoting=csv.QUOTE_MINIMAL)


WHATS = ("winner", "family")


def bootstrap(table, measure):
    """Return the measure of bootstrap samples of laws, whole laws at a time."""
    rng = np.random.default_rng(0)
    by_law = list(table.groupby("law", sort=False).indices.values())
    values = []
    for _ in range(N_BOOTSTRAP):
        drawn = rng.integers(len(by_law), size=len(by_law))
        values.append(measure(np.concatenate([by_law[k] for k in drawn])))
    return np.array(values)


def error_of(table, what):
    """Return the ECE, its 95 % interval, and that of a perfectly calibrated method."""
    p, right = table[f"p_{what}"].to_numpy(), table[f"{what}_true"].to_numpy()
    draws = bootstrap(table, lambda rows: calibration_error(p[rows], right[rows]))
    rng = np.random.default_rng(0)
    perfect = [calibration_error(p, rng.random(len(p)) < p) for _ in range(N_BOOTSTRAP)]
    return calibration_error(p, right), np.quantile(draws, [0.025, 0.975]), np.mean(perfect)


def row_of(table, what):
    """Return a row of a table of summaries."""
    p, right = table[f"p_{what}"], table[f"{what}_true"]
    error, (low, high), perfect = error_of(table, what)
    gaps = bootstrap(table, lambda rows: (p.to_numpy() - right.to_numpy())[rows].mean())
    return (
        f"{len(table)} | {100 * p.mean():.0f} % | {100 * right.mean():.0f} % | "
        f"{100 * (p - right).mean():+.0f} ± {100 * gaps.std():.0f} | "
        f"{error:.3f} | {low:.3f} to {high:.3f} | {perfect:.3f} |"
    )


SUMMARY = "trials | mean probability | right | difference | ECE | 95 % interval | if calibrated |\n"


def print_summaries(title, groups):
    """Print a table with a row for each group of trials, for winners and families."""
    print(f"\n{title}\n\n| group | of | {SUMMARY}|{'---|' * 9}")
    for name, table in groups.items():
        for what in WHATS:
            print(f"| {name} | {what} | {row_of(table, what)}")


def reliability(table, what):
    """Return a row for each bin: trials, laws, mean probability, share that is right, its bars."""
    p, right = table[f"p_{what}"].to_numpy(), table[f"{what}_true"].to_numpy()
    bins = np.minimum((p * 10).astype(int), 9)

    def shares(rows):
        n = np.bincount(bins[rows], minlength=10)
        with np.errstate(invalid="ignore"):
            return np.bincount(bins[rows], weights=right[rows], minlength=10) / n

    draws = bootstrap(table, shares)
    found = []
    for b in np.unique(bins):
        mine = bins == b
        low, high = np.nanquantile(draws[:, b], [0.025, 0.975])
        n_laws = table["law"][mine].nunique()
        found.append((b, mine.sum(), n_laws, p[mine].mean(), right[mine].mean(), low, high))
    return found


def print_reliability(title, table):
    head = "probability | trials | laws | mean probability | right | 95 % interval |"
    for what in WHATS:
        print(f"\n{title}, {what}\n\n| {head}\n|{'---|' * 6}")
        for b, n, n_laws, p, right, low, high in reliability(table, what):
            print(
                f"| {10 * b} to {10 * b + 10} % | {n} | {n_laws} | {100 * p:.0f} % | "
                f"{100 * right:.0f} % | {100 * low:.0f} to {100 * high:.0f} % |"
            )


def print_tables(table):
    default = table[table["rule"] == "default"]
    trials = default[default["kind"].isin(["search", "ranked"])]
    groups = {
        f"{kind}, {part}": trials[(trials["kind"] == kind) & (trials["set"] == part)]
        for kind in ("search", "ranked")
        for part in ("train", "test")
    }
    groups |= {f"all, {part}": trials[trials["set"] == part] for part in ("train", "test")}
    print_summaries("Calibration", groups | {"all": trials})
    for part in ("train", "test"):
        print_reliability(f"Reliability, {part}", trials[trials["set"] == part])
    train = table[(table["kind"] == "ranked") & (table["set"] == "train")]
    by_rule = {rule: train[train["rule"] == rule] for rule in RULES}
    print_summaries("Other rules, ranked, training laws", by_rule)
    print_causes(default, trials)


def print_causes(default, trials):
    """Print where winners are more, and less, often right than they say."""
    few, noisy = trials["n"] <= trials["n"].median(), trials["noise"] > trials["noise"].median()
    groups = {"seen": trials[trials["seen"] == 1], "not seen": trials[trials["seen"] == 0]}
    for rows, is_few in (("fewer rows", few), ("more rows", ~few)):
        for noise, is_noisy in (("more noise", noisy), ("less noise", ~noisy)):
            groups[f"{rows}, {noise}"] = trials[is_few & is_noisy]
    medians = f"{trials['n'].median():g} rows, {100 * trials['noise'].median():.1f} % noise"
    print_summaries(f"Where, both halves, by medians ({medians})", groups)
    for first, second in (("search", "own"), ("ranked", "all")):
        pairs = default[default["kind"] == first].merge(
            default[default["kind"] == second], on=["law", "seed"]
        )
        for what in WHATS:
            apart = pairs[f"p_{what}_x"] - pairs[f"p_{what}_y"]
            changed = (pairs[f"{what}_true_x"] != pairs[f"{what}_true_y"]).sum()
            print(
                f"{first} less {second}, {what}: mean {apart.mean():+.3f}, mean size "
                f"{apart.abs().mean():.3f}, largest {apart.abs().max():.3f}; right in one of them "
                f"only: {changed} of {len(pairs)}"
            )
    wrong = trials[trials["p_winner"].gt(0.8) & trials["winner_true"].eq(0)]
    print("\nWrong with more than 80 %:")
    print(wrong[["law", "kind", "n", "noise", "seen", "p_winner", "winner"]].to_string(index=False))


def draw(table):
    """Draw how often laws of each reported probability are right."""
    trials = table[table["rule"] == "default"]
    plt.rcParams["svg.hashsalt"] = "law_calibration"  # the same file for the same results
    fig, axes = plt.subplots(2, 2, figsize=(8, 7.6), sharex=True, sharey=True)
    titles = {"search": "one search a law", "ranked": "candidates ranked on new data"}
    colours = {"train": ("#0072B2", -0.008), "test": ("#D55E00", 0.008)}
    for line, (kind, words) in zip(axes, titles.items(), strict=True):
        for ax, what in zip(line, WHATS, strict=True):
            ax.plot([0, 1], [0, 1], color="0.6", lw=1)
            for part, (colour, aside) in colours.items():
                mine = trials[(trials["kind"] == kind) & (trials["set"] == part)]
                error, (low, high), _ = error_of(mine, what)
                _, n, _, p, right, below, above = np.array(reliability(mine, what)).T
                bars = np.clip([right - below, above - right], 0.0, None)
                ax.errorbar(p + aside, right, bars, fmt="none", color=colour, lw=1)
                ax.scatter(
                    p + aside,
                    right,
                    s=8 + 200 * n / len(mine),
                    color=colour,
                    alpha=0.7,
                    label=f"{part} laws: ECE {error:.2f} ({low:.2f} to {high:.2f})",
                )
            ax.set_title(f"{what}, {words}", fontsize=10)
            ax.legend(loc="upper left", fontsize=8, markerscale=0.6)
            ax.set(xlim=(-0.03, 1.03), ylim=(-0.03, 1.28), yticks=np.linspace(0, 1, 6))
    for ax in axes[1]:
        ax.set_xlabel("reported probability")
    for ax in axes[:, 0]:
        ax.set_ylabel("share that is right")
    fig.tight_layout()
    fig.savefig(PICTURE, metadata={"Date": None})
    plt.close(fig)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--laws", nargs="+", help="some laws only, and no table")
    arguments = parser.parse_args()
    if not arguments.table:
        run([law for law in LAWS if arguments.laws is None or law.name in arguments.laws])
    if arguments.laws is None:
        table = pd.read_csv(RESULTS)
        print_tables(table)
        draw(table)


if __name__ == "__main__":
    main()
