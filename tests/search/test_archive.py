import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pmsr.data import load_galileo, make_data
from pmsr.equation.expression import Equation
from pmsr.evidence.evidence import seed_for, weigh
from pmsr.evidence.problem import Problem
from pmsr.laws.order import pareto_front
from pmsr.search.archive import (
    N_LEADERS,
    Archive,
    Candidate,
    failed_candidate,
    make_candidate,
)
from pmsr.search.engines import ENGINES
from pmsr.settings import QUICK


def candidate(key, score, complexity, failure=None):
    return Candidate(key, score, score, 0.1, 1.0, 1, complexity, failure)


def test_a_candidate_is_what_was_weighed_with_its_prior():
    program = Equation("c0*H", ["H"]).program
    shelf = Problem.of(make_data(*load_galileo("shelf")), QUICK)
    evidence = weigh(program, shelf, QUICK, seed_for("c0*H", 0)).evidence
    found = make_candidate("c0*H", program, evidence, ENGINES["evidence"], -3.0)
    assert (found.score, found.log_q, found.log_prior) == (
        evidence.log_q - 3.0,
        evidence.log_q,
        -3.0,
    )
    assert (found.n_parameters, found.complexity, found.failure) == (1, 3, None)


def test_what_is_refused_has_no_place():
    archive = Archive([failed_candidate("c0", "too complex"), candidate("c1", np.nan, 3)])
    assert (archive.best, archive.leaders, archive.front) == (None, [], [])


@given(st.lists(st.tuples(st.integers(-20, 0), st.integers(1, 6)), max_size=20), st.randoms())
def test_leaders_are_the_best_and_the_front_is_the_front(pairs, random):
    found = [candidate(str(k), float(score), size) for k, (score, size) in enumerate(pairs)]
    found.append(candidate("failed", -np.inf, 1, "never finite"))
    archive = Archive(found)
    scores = [one.score for one in archive.leaders]
    assert scores == sorted((float(score) for score, _ in pairs), reverse=True)
    assert not pairs or archive.best is archive.leaders[0]
    # The archive keeps all of those that are equal, the table's front one of them.
    front = [(one.score, one.complexity) for one in archive.front]
    assert (
        list(dict.fromkeys(front))
        == [pairs[place] for place in pareto_front(*map(list, zip(*pairs, strict=True)))]
        if pairs
        else not front
    )
    # Whatever the order in which they come.
    random.shuffle(found)
    again = Archive(found)
    assert (again.leaders, again.front) == (archive.leaders, archive.front)


def test_the_hall_of_fame_has_an_end():
    archive = Archive(candidate(str(k), float(k), 3) for k in range(N_LEADERS + 5))
    assert len(archive.leaders) == N_LEADERS
    assert archive.best.score == pytest.approx(N_LEADERS + 4)
