from dataclasses import replace

import numpy as np

from pmsr.data import load_galileo, make_data
from pmsr.equation.expression import Equation
from pmsr.evidence.evidence import seed_for, weigh
from pmsr.evidence.problem import as_problem
from pmsr.search.bench import Bench
from pmsr.search.genome import equation_genome, random_genome
from pmsr.search.sampler import Sampler, name_of
from pmsr.settings import QUICK, Search

SHELF = make_data(*load_galileo("shelf"))
SEARCH = Search(operators=("+", "*", "sqrt"), max_complexity=24, evidence="smc")
BENCH = Bench(as_problem(SHELF, QUICK, None), SEARCH, QUICK, 3)


def genomes_of(*texts):
    rng = np.random.default_rng(0)
    return [equation_genome(Equation(one, ["H"]), BENCH.primitives, rng=rng) for one in texts]


def random_genomes(n, seed=0):
    rng = np.random.default_rng(seed)
    return [random_genome(BENCH.primitives, rng=rng) for _ in range(n)]


def test_every_equation_is_weighed_once():
    sampler = Sampler()
    texts = "c0*H", "c0*H + c1", "c1 + H*c0", "c0*sqrt(H)"
    names = sampler.judge(genomes_of(*texts), BENCH)
    assert names.tolist() == [name_of(Equation(text, ["H"]).key) for text in texts]
    assert names[1] == names[2]
    assert (sampler.n_screened, sampler.n_sampled, sampler.n_failed) == (3, 3, 0)
    program = Equation("c0*H", ["H"]).to_canonical().program
    key = Equation("c0*H", ["H"]).key
    alone = weigh(program, BENCH.problem, QUICK, seed_for(key, BENCH.seed)).evidence
    [score] = sampler.scores(names[:1])
    assert score == alone.log_q + BENCH.log_prior(program)
    assert sampler.describe(names)[0] == key
    sampler.judge(genomes_of("c0*H"), BENCH)
    assert sampler.n_sampled == 3


def test_laws_and_scores_do_not_depend_on_the_order_of_a_batch():
    genomes = random_genomes(40)
    first, second = Sampler(), Sampler()
    names = first.judge(genomes, BENCH)
    assert second.judge(genomes[::-1], BENCH)[::-1].tolist() == names.tolist()
    assert first.scores(names).tolist() == second.scores(names).tolist()
    assert first.best(BENCH) == second.best(BENCH)


def test_what_is_refused_counts_as_failed_and_is_not_weighed():
    narrow = replace(BENCH, search=replace(SEARCH, max_parameters=1))
    sampler = Sampler()
    names = sampler.judge(genomes_of("c0 + c1*H"), narrow)
    assert np.isneginf(sampler.scores(names)).all() and sampler.best(narrow) is None
    assert (sampler.n_screened, sampler.n_sampled, sampler.n_failed) == (1, 0, 1)
    [candidate] = sampler.candidates.values()
    assert candidate.failure == "too many parameters"


def test_a_copy_goes_its_own_way():
    sampler = Sampler()
    sampler.judge(genomes_of("c0*H"), BENCH)
    copy = sampler.copy()
    [name] = copy.judge(genomes_of("c0*sqrt(H)"), BENCH)
    assert (sampler.n_screened, copy.n_screened) == (1, 2)
    assert (sampler.n_sampled, copy.n_sampled) == (1, 2)
    assert sampler.best(BENCH).key != copy.best(BENCH).key == copy.describe([name])[0]


def test_meeting_another_island_brings_its_weights():
    here, there = Sampler(), Sampler()
    names = there.judge(genomes_of("c0*H", "c0*sqrt(H)"), BENCH)
    here.judge(genomes_of("c0 + H"), BENCH)
    here.meet(there, names)
    assert here.scores(names).tolist() == there.scores(names).tolist()
    assert here.best(BENCH) == there.best(BENCH) and here.n_sampled == 1
    here.judge(genomes_of("c0*H"), BENCH)
    assert here.n_sampled == 1


def test_the_paper_asks_for_no_news_and_starts_at_random():
    sampler = Sampler()
    genomes = genomes_of("c0*H")
    sampler.judge(genomes, BENCH)
    assert not sampler.are_known(genomes, BENCH).any() and sampler.starters == ()
    assert sampler.count_anew().n_screened == 1


def test_the_conventional_search_only_fits():
    bench = replace(BENCH, search=replace(SEARCH, fitness="rmse"))
    sampler = Sampler()
    names = sampler.judge(genomes_of("c0*c1*H"), bench)
    best = sampler.best(bench)
    assert sampler.scores(names).tolist() == [-best.rmse] and np.isnan(best.log_q)
    sizes, parameters = sampler.sizes(names)
    assert parameters.tolist() == [2.0] and sizes.tolist() == [float(best.complexity)]
