import time

import numpy as np
import pytest

from pmsr.data import load_galileo, make_data
from pmsr.equation.expression import Equation
from pmsr.evidence.evidence import seed_for, weigh
from pmsr.evidence.problem import Problem
from pmsr.search.genome import Primitives, equation_genome
from pmsr.search.workers import Workers, batches
from pmsr.settings import QUICK, Search

SHELF = Problem.of(make_data(*load_galileo("shelf")), QUICK)
SEARCH = Search(operators=("+", "*", "sqrt"))
TEXTS = ["c0*H", "c0*sqrt(H)", "c0 + c1*H"]
TASKS = [(text, Equation(text, ["H"]).program) for text in TEXTS]


@pytest.fixture
def workers():
    return Workers.hire(SHELF, SEARCH, 1)


@pytest.mark.parametrize("size", [None, 1, 2, 5])
def test_evidence_does_not_depend_on_how_work_is_shared(workers, size):
    found = workers.weigh(TASKS, QUICK, 7, None, size=size)
    alone = [weigh(program, SHELF, QUICK, seed_for(key, 7)) for key, program in TASKS]
    assert [one.evidence.log_q for one in found] == [one.evidence.log_q for one in alone]


def test_graphs_are_read_in_their_order(workers):
    primitives = Primitives(SEARCH.operators, ("H",))
    rng = np.random.default_rng(0)
    genomes = [equation_genome(Equation(text, ["H"]), primitives, rng=rng) for text in TEXTS]
    keys = [reading.key for reading in workers.read(genomes, None)]
    assert keys == [Equation(text, ["H"]).key for text in TEXTS]


def test_what_there_was_no_time_for_is_missing(workers):
    past = time.monotonic() - 1.0
    assert workers.weigh(TASKS, QUICK, 7, past) == [None] * 3
    genome = equation_genome(
        Equation("c0*H", ["H"]), Primitives(("*",), ("H",)), rng=np.random.default_rng(0)
    )
    assert workers.read([genome], past) == [None]


def test_dismissed_workers_leave_the_work_to_this_process(workers):
    alone = workers.dismiss()
    assert alone.n_workers == workers.n_workers and alone.parallel is not workers.parallel
    [found], [own] = (one.weigh(TASKS[:1], QUICK, 7, None) for one in (alone, workers))
    assert found.evidence.log_q == own.evidence.log_q


def test_no_work_is_no_batch(workers):
    assert batches([], 3) == [] == workers.weigh([], QUICK, 7, None)
