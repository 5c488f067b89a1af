import time
from dataclasses import replace

import pytest

from pmsr.data import load_galileo, make_data
from pmsr.equation.expression import Equation
from pmsr.evidence.evidence import seed_for, weigh
from pmsr.evidence.problem import Problem
from pmsr.search.bench import Bench
from pmsr.search.funnel import Funnel
from pmsr.search.islands import Island, evolve_island
from pmsr.search.workers import Workers, batches
from pmsr.settings import QUICK, Search

SHELF = Problem.of(make_data(*load_galileo("shelf")), QUICK)
SEARCH = Search(operators=("+", "*", "sqrt"), population_size=16, n_islands=2, refresh=2)
BENCH = Bench(SHELF, SEARCH, QUICK, 7)
TEXTS = ["c0*H", "c0*sqrt(H)", "c0 + c1*H"]
TASKS = [(text, Equation(text, ["H"]).program, QUICK) for text in TEXTS]


@pytest.fixture
def workers():
    return Workers.hire(BENCH, 1)


def test_evidence_does_not_depend_on_who_weighs(workers):
    found = workers.weigh(TASKS, 7, None)
    alone = [weigh(program, SHELF, QUICK, seed_for(key, 7)) for key, program, _ in TASKS]
    assert [one.evidence.log_q for one in found] == [one.evidence.log_q for one in alone]


def test_every_equation_is_weighed_with_its_own_effort(workers):
    more = replace(QUICK, n_draws=2 * QUICK.n_draws)
    key, program, _ = TASKS[0]
    found = workers.weigh([TASKS[0], (key, program, more)], 7, None)
    alone = weigh(program, SHELF, more, seed_for(key, 7))
    assert found[1].evidence.log_q == alone.evidence.log_q != found[0].evidence.log_q


def test_islands_come_back_in_their_order_and_as_if_evolved_here(workers):
    islands = [Island(k, Funnel(BENCH)) for k in range(2)]
    guess = [Equation("c0*sqrt(H)", ["H"])]
    found = workers.evolve(islands, guess, 2, None)
    alone = [evolve_island(island, BENCH, guess, 2) for island in islands]
    assert [one.number for one in found] == [0, 1]
    assert [one.generation for one in islands] == [-1, -1]
    for one, other in zip(found, alone, strict=True):
        assert one.names.tolist() == other.names.tolist()
        assert repr(one.records) == repr(other.records)


def test_what_there_was_no_time_for_is_missing(workers):
    past = time.monotonic() - 1.0
    assert workers.weigh(TASKS, 7, past) == [None] * 3
    assert workers.evolve([Island(0, Funnel(BENCH))], (), 2, past) is None


def test_a_unit_of_which_one_island_is_missing_is_missing(workers):
    islands = [Island(k, Funnel(BENCH)) for k in range(2)]
    real = workers.parallel

    def lose_one(tasks):
        return [*real(tasks)[:1], None]

    losing = replace(workers, parallel=lose_one)
    assert losing.evolve(islands, (), 0, None) is None


def test_dismissed_workers_leave_the_work_to_this_process(workers):
    alone = workers.dismiss()
    assert alone.n_workers == workers.n_workers and alone.parallel is not workers.parallel
    [found], [own] = (one.weigh(TASKS[:1], 7, None) for one in (alone, workers))
    assert found.evidence.log_q == own.evidence.log_q


def test_no_work_is_no_batch(workers):
    assert batches([], 3) == [] == workers.weigh([], 7, None)
