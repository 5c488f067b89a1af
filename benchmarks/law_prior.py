"""The study by which the costs of the prior over laws are chosen, on half of the laws of science.

python benchmarks/law_prior.py            weighs the training laws, and chooses
python benchmarks/law_prior.py --test     weighs the other half, once, under the rules of interest
python benchmarks/law_prior.py --table    prints the tables of docs/law_prior.md from the results

Candidates of a dataset are all laws of an enumeration with + - * / sqrt and the law's own
functions, the law itself, mutants of it, and what five rounds of a search make of the best: mutants
of those with the largest log q, less 0, 0.75 and 1.5 nats a node, so that contrived laws compete
too. Each is fitted by screening and has the log q of a linear law; spellings of one law are one,
with the prior of the cheapest.

Rules that are compared: a fixed cost a node, or minus the log of the number of laws of that size;
a cost for two columns that share a unit, and for a column that must be a pure number the same or
one or two nats more. What is measured, on the same candidates for all: the log of the probability
that softmax(log q + log P) gives to the law (the logarithmic score), how often the law has the
largest score (the same curve), how often the winner is the law or holds it with at most one
parameter more, and the expected calibration error of the winner's probability, in ten bins.

The rule for choosing, fixed before the first run: the highest mean logarithmic score over the
training laws (of each, the mean over its datasets). Whatever is worse by less than one standard
error of the difference, bootstrapped by law, counts as equal; of equals the simplest: a fixed cost
before counts, one cost for all coincidences before two, a whole number of nats a node before halves
before quarters; of those that are left, the one that the design named beforehand (a = 1, d = 2) if
it is among them, else the highest mean. A dataset whose law could not be fitted is left out.
"""

import argparse
import csv
import os
from functools import lru_cache
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from laws_of_science import LAWS, make
from rich.console import Console
from scipy.special import logsumexp

from pmsr.data import make_data
from pmsr.equation.descent import FITTED
from pmsr.equation.operators import FIRST_OPERATOR, OPERATORS, POWER
from pmsr.equation.program import Tables, evaluate
from pmsr.evidence.problem import Problem
from pmsr.laws.coincidences import column_signs, count_all_coincidences
from pmsr.laws.prior import LawCounts, LawPrior
from pmsr.search.curves import KnownLaws
from pmsr.search.enumeration import enumerate_laws
from pmsr.search.folding import ACCEPTED, Rules, fold, fold_genomes
from pmsr.search.genome import Genome, Primitives, mutate, random_genome
from pmsr.search.screening import Batch, screen
from pmsr.settings import Settings

RESULTS = Path(__file__).parent / "results"
N_DATASETS = 4  # of each law
MAX_LAWS = 40_000  # of an enumeration
N_MUTANTS = 2_000  # of the law, and in each round
N_ROUNDS = 5
N_PARENTS = 40  # for each of the three costs a node
MOST_NODES = 25
MOST_PARAMETERS = 6
EXACT = 1e-6  # of the standard deviation of what a law gives: it holds another if it fits as well

PER_NODE = (0.5, 0.75, 1.0, 1.25, 1.5, 1.75, 2.0, "counts")
PER_COINCIDENCE = (0.0, 1.0, 2.0, 3.0, 4.0)
MORE_IF_PURE = (0.0, 1.0, 2.0)
RULES = tuple(
    (size, shared, shared + more)
    for size in PER_NODE
    for shared in PER_COINCIDENCE
    for more in MORE_IF_PURE
)
REFERENCE = (1.0, 2.0, 2.0)  # named in the design before any study
UNIFORM = ("uniform", 0.0, 0.0)
console = Console()


def operators_for(law):
    """Return + - * / sqrt and the functions that the law has."""
    names = list(OPERATORS)
    codes = law.equation.program.nodes[:, 0].tolist()
    own = [names[code - FIRST_OPERATOR] for code in codes if code >= FIRST_OPERATOR]
    return tuple(dict.fromkeys(["+", "-", "*", "/", "sqrt", *sorted(own)]))


@lru_cache(maxsize=4)
def enumeration(operators, n_columns):
    """Return the laws of all complete levels, and how many there are of each size."""
    rules = Rules(operators=operators, max_parameters=MOST_PARAMETERS)
    levels = list(enumerate_laws(operators, n_columns, max_laws=MAX_LAWS, rules=rules))
    n_laws = {level.size: len(level.laws) for level in levels}
    counts = LawCounts(tuple(n_laws.get(size, 0) for size in range(1, max(n_laws) + 1)))
    return [level.laws for level in levels], counts


def as_genome(program, primitives, rng):
    """Write a program into the last rows of a random graph."""
    genome = random_genome(primitives, rng=rng)
    rows, shift = genome.rows.copy(), primitives.size - len(program.nodes)
    own = program.nodes.copy()
    own[own[:, 0] >= POWER, 1] += shift
    own[own[:, 0] >= FIRST_OPERATOR, 2] += shift
    rows[shift:] = own
    return Genome(rows, tuple(program.literals.tolist()), shared=genome.shared)


def mutants(programs, primitives, rules, rng):
    """Fold graphs that are one to four mutations away from some laws."""
    graphs = []
    for k in range(N_MUTANTS):
        graph = as_genome(programs[k % len(programs)], primitives, rng)
        for _ in range(int(rng.integers(1, 5))):
            graph = mutate(graph, primitives, rng=rng)
        graphs.append(graph)
    # Genomes have as many literals as their own law: folding takes them padded.
    return accepted(fold_genomes(graphs, rules))


def accepted(folded):
    folded = folded.take(folded.refusal == ACCEPTED)
    return folded.take(np.unique(folded.key, return_index=True)[1])


def tables_of(folded):
    return Tables(
        folded.nodes, folded.n_nodes, folded.literals, folded.n_literals, folded.n_parameters
    )


class Candidates:
    """Laws that were fitted to one dataset, and what any rule needs to know of them."""

    def __init__(self, problem, seed):
        self.problem, self.seed = problem, seed
        self.known = KnownLaws(problem.data)
        self.seen = set()
        self.programs, self.log_q, self.law, self.features = [], [], [], []

    def add(self, folded):
        """Screen laws that are new."""
        new = [k for k, key in enumerate(folded.key.tolist()) if key not in self.seen]
        folded = folded.take(new)
        self.seen.update(folded.key.tolist())
        tables = tables_of(folded).take(slice(None))
        batch = Batch(
            tables.nodes,
            tables.n_nodes.astype(np.int64),
            tables.literals,
            tables.n_parameters.astype(np.int64),
        )
        screened = screen(batch, self.problem, self.seed, keys=folded.key)
        X = self.problem.data.X
        found = count_all_coincidences(
            tables, X.shape[1], signs=column_signs(X), X=X, theta=screened.theta
        )
        numbers = LawPrior(per_node=0.0).describe(tables)
        nodes = numbers - LawPrior(per_node=1.0).describe(tables)
        self.features.append(np.column_stack([nodes, -numbers, found[:, :3]]))
        self.log_q.append(screened.log_q)
        self.law.append(self.known.add(screened))
        self.programs += [tables.program(k) for k in range(tables.n_programs)]

    def arrays(self):
        """Return log q, number of the law and features of every spelling that was fitted."""
        log_q, law = np.concatenate(self.log_q), np.concatenate(self.law)
        usable = np.isfinite(log_q) & (law >= 0)
        return log_q[usable], law[usable], np.concatenate(self.features)[usable], usable

    def best(self, per_node):
        """Return programs of the laws with the largest log q less a cost for their nodes."""
        log_q, law, features, usable = self.arrays()
        order = np.argsort(-(log_q - per_node * features[:, 0]), kind="stable")
        places = np.flatnonzero(usable)[order]
        _, first = np.unique(law[order], return_index=True)
        return [self.programs[places[k]] for k in np.sort(first)[:N_PARENTS]]


def gather(law, seed):
    """Return candidates for a dataset, with the law's number among them (-1: not fitted)."""
    data, drawn = make(law, seed)
    problem = Problem.of(data, Settings())
    rng = np.random.default_rng([seed, 1, *law.name.encode()])
    operators, d = operators_for(law), len(law.columns)
    primitives = Primitives(operators, tuple(law.columns), size=MOST_NODES)
    rules = Rules(operators=operators, max_complexity=MOST_NODES, max_parameters=MOST_PARAMETERS)
    levels, counts = enumeration(operators, d)
    candidates = Candidates(problem, seed)
    for level in levels:
        candidates.add(level)
    program = law.equation.program
    candidates.add(mutants([program], primitives, rules, rng))
    for _ in range(N_ROUNDS):
        parents = [one for cost in (0.0, 0.75, 1.5) for one in candidates.best(cost)]
        candidates.add(mutants(parents, primitives, rules, rng))
    # Last, so that of equal scores another's counts.
    truth = fold(program.nodes[None], program.literals[None], rules=Rules(sharing="keep"))
    candidates.seen.discard(int(truth.key[0]))
    candidates.add(truth)
    return candidates, counts, int(candidates.law[-1][0]), drawn


def holds_law(program, law, drawn, data):
    """Tell whether a law, fitted to the true curve, gives that curve."""
    y = evaluate(law.equation.program, drawn["truth"][None, :], data.X)[0]
    problem = Problem.of(make_data(data.X, y, names=list(law.columns)), Settings())
    found = screen(Batch.of([program]), problem, 0)
    return bool(found.outcome[0] == FITTED and np.sqrt(found.sse[0] / len(y)) <= EXACT * np.std(y))


def log_p(rule, counts, features):
    size, per_shared, per_pure = rule
    if size == "uniform":
        return np.zeros(len(features))
    nodes, numbers, shared, pure, zeros = features.T
    by_size = counts.log_counts(nodes) if size == "counts" else size * nodes
    return -by_size - numbers - per_shared * (shared + zeros) - per_pure * pure


def weigh(law, seed, rules):
    """Return a row of results for each rule, and one about the dataset."""
    candidates, counts, truth, drawn = gather(law, seed)
    log_q, number, features, usable = candidates.arrays()
    about = {
        "law": law.name,
        "seed": seed,
        "n": drawn["n"],
        "noise": round(drawn["noise"], 4),
        "candidates": len(usable),
        "laws": len(np.unique(number)),
        "growth": round(counts.growth, 3),
    }
    if truth < 0:
        return [], about
    order = np.argsort(number, kind="stable")
    laws, starts = np.unique(number[order], return_index=True)
    place = int(np.searchsorted(laws, truth))
    true_rank = int(candidates.known._ranks[truth])
    places, held = np.flatnonzero(usable), {}
    rows = []
    for rule in rules:
        spelled = (log_q + log_p(rule, counts, features))[order]
        scores = np.maximum.reduceat(spelled, starts)
        total = logsumexp(scores)
        winner = int(np.argmax(scores))
        end = starts[winner + 1] if winner + 1 < len(starts) else len(order)
        best = order[starts[winner] + int(np.argmax(spelled[starts[winner] : end]))]
        if winner not in held:
            held[winner] = candidates.known._ranks[laws[winner]] <= true_rank + 1 and holds_law(
                candidates.programs[places[best]], law, drawn, candidates.problem.data
            )
        rows.append(
            {
                "law": law.name,
                "seed": seed,
                "per_node": rule[0],
                "per_coincidence": rule[1],
                "per_pure_number": rule[2],
                "log_score": round(float(scores[place] - total), 3),
                "wins": int(winner == place),
                "wins_or_holds": int(winner == place or held[winner]),
                "p_winner": round(float(np.exp(scores[winner] - total)), 4),
            }
        )
    return rows, about


def write(name, rows):
    with open(RESULTS / name, "w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def run(laws, rules, name):
    rows, datasets = [], []
    for law in laws:
        for seed in range(N_DATASETS):
            found, about = weigh(law, seed, rules)
            rows += found
            datasets.append(about)
        console.print(f"{law.name}: {datasets[-1]['laws']} laws", highlight=False)
        write(f"{name}.csv", rows)
        write(f"{name}_datasets.csv", datasets)


def read(name):
    """Return results by rule: laws, and arrays of the four measures, dataset by dataset."""
    by_rule = {}
    with open(RESULTS / name, newline="") as file:
        for row in csv.DictReader(file):
            size = row["per_node"]
            rule = (
                size if size in ("counts", "uniform") else float(size),
                float(row["per_coincidence"]),
                float(row["per_pure_number"]),
            )
            measures = [
                float(row[key]) for key in ("log_score", "wins", "wins_or_holds", "p_winner")
            ]
            by_rule.setdefault(rule, []).append((row["law"], measures))
    return {
        rule: (np.array([law for law, _ in rows]), np.array([m for _, m in rows]))
        for rule, rows in by_rule.items()
    }


def by_law(laws, values):
    """Mean of each law over its datasets, in the order of the list."""
    return np.array([values[laws == name].mean() for name in dict.fromkeys(laws.tolist())])


def calibration_error(p, is_right):
    bins = np.minimum((p * 10).astype(int), 9)
    gaps = [
        abs(p[bins == b].mean() - is_right[bins == b].mean()) * np.mean(bins == b)
        for b in np.unique(bins)
    ]
    return float(np.sum(gaps))


def bootstrap_error(differences):
    """Return the standard error of a mean over laws."""
    rng = np.random.default_rng(0)
    draws = rng.integers(len(differences), size=(2000, len(differences)))
    return float(differences[draws].mean(axis=1).std())


def choose(results):
    """Apply the rule for choosing; return the choice, the best, and all that count as equal."""
    scores = {rule: by_law(laws, values[:, 0]) for rule, (laws, values) in results.items()}
    best = max(scores, key=lambda rule: scores[rule].mean())
    equal = [
        rule
        for rule in scores
        if scores[best].mean() - scores[rule].mean() <= bootstrap_error(scores[best] - scores[rule])
    ]

    def simplicity(rule):
        size, shared, pure = rule
        roundness = 3 if size == "counts" else (0 if size % 1 == 0 else 1 if size % 0.5 == 0 else 2)
        return size == "counts", shared != pure, roundness, rule != REFERENCE, -scores[rule].mean()

    return min(equal, key=simplicity), best, sorted(equal, key=simplicity)


def row_of(rule, results, best):
    """Return a row of a table: the measures, and how far the score is behind the best rule's."""
    laws, values = results[rule]
    score, wins, p = by_law(laws, values[:, 0]), values[:, 1], values[:, 3]
    behind = by_law(*(results[best][0], results[best][1][:, 0])) - score
    size, shared, pure = rule
    entries = [
        size if isinstance(size, str) else f"{size:g}",
        f"{shared:g}",
        f"{pure:g}",
        f"{score.mean():.3f}",
        f"{behind.mean():.3f} ± {bootstrap_error(behind):.3f}",
        f"{100 * wins.mean():.0f} %",
        f"{100 * values[:, 2].mean():.0f} %",
        f"{100 * p.mean():.0f} %",
        f"{calibration_error(p, wins):.3f}",
    ]
    return "| " + " | ".join(entries) + " |"


def print_table(title, rules, results, best):
    head = (
        "nats a node",
        "shared unit",
        "pure number",
        "log score",
        "behind the best",
        "the law wins",
        "or holds it",
        "mean probability",
        "calibration error",
    )
    print(f"\n{title}\n\n| " + " | ".join(head) + " |\n|" + "---|" * len(head))
    for rule in rules:
        if rule in results:
            print(row_of(rule, results, best))


def print_tables():
    train = read("law_prior_train.csv")
    compared = {rule: found for rule, found in train.items() if rule != UNIFORM}
    choice, best, equal = choose(compared)
    n_datasets = len(train[best][0])
    print(f"{n_datasets} datasets; best {best}; chosen {choice}; {len(equal)} count as equal")
    by_size = [(size, *choice[1:]) for size in PER_NODE]
    print_table("Training laws, by the cost of a node", [*by_size, best, UNIFORM], train, best)
    by_kind = [(choice[0], shared, shared + more) for shared in PER_COINCIDENCE for more in (0, 2)]
    print_table("Training laws, by the cost of a coincidence", by_kind, train, best)
    if (RESULTS / "law_prior_test.csv").exists():
        test = read("law_prior_test.csv")
        print_table("The same rules, training laws", list(test), train, best)
        print_table(f"Test laws, {len(test[choice][0])} datasets", list(test), test, best)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--test", action="store_true")
    parser.add_argument("--table", action="store_true")
    arguments = parser.parse_args()
    if arguments.test:
        results = read("law_prior_train.csv")
        choice, best, _ = choose(
            {rule: found for rule, found in results.items() if rule != UNIFORM}
        )
        rules = tuple(dict.fromkeys([choice, best, REFERENCE, ("counts", *choice[1:]), UNIFORM]))
        run([law for law in LAWS if not law.is_for_training], rules, "law_prior_test")
    elif not arguments.table:
        run([law for law in LAWS if law.is_for_training], (*RULES, UNIFORM), "law_prior_train")
    print_tables()


if __name__ == "__main__":
    main()
