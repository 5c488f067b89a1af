import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pmsr.equation.expression import Equation
from pmsr.laws.order import pareto_front
from pmsr.search.archive import N_LEADERS, Archive, Candidate
from pmsr.search.constraints import Reading, read_graph
from pmsr.search.genome import Primitives, equation_genome
from pmsr.settings import Search


def candidate(key, score, complexity, failure=None):
    return Candidate(key, score, score, 0.1, 1.0, 1, complexity, failure)


def test_the_archive_knows_what_it_has_seen():
    archive = Archive()
    primitives = Primitives(("+", "-", "*"), ("H",))
    needed = []
    for text in ("c0*H + c1", "c1 + H*c0", "c0 - H*c1"):
        genome = equation_genome(Equation(text, ["H"]), primitives, rng=np.random.default_rng(0))
        if archive.key_of(genome.raw_key()) is None:
            reading = read_graph(genome, ("H",), Search(operators=primitives.operators))
            assert reading.key == Equation("c0 + c1*H", ["H"]).key
            needed.append(archive.learn(genome.raw_key(), reading))
            archive.add(Candidate(reading.key, -1.0, -1.0, 0.1, 1.0, 2, 5))
    # The second is the same graph in another order, the third the same equation.
    assert needed == [True, False]
    assert (archive.n_lookups, archive.n_hits) == (3, 2)


def test_what_is_refused_counts_as_failed_and_is_not_weighed():
    archive = Archive()
    assert not archive.learn(b"graph", Reading("c0", refusal="too complex"))
    assert archive.candidates["c0"].failure == "too complex"
    assert (archive.n_failed, archive.best, archive.leaders, archive.front) == (1, None, [], [])


@given(st.lists(st.tuples(st.integers(-20, 0), st.integers(1, 6)), max_size=20))
def test_leaders_are_the_best_and_the_front_is_the_front(pairs):
    archive = Archive()
    for place, (score, size) in enumerate(pairs):
        archive.add(candidate(str(place), float(score), size))
    archive.add(candidate("failed", -np.inf, 1, "never finite"))
    scores = [one.score for one in archive.leaders]
    assert scores == sorted((float(score) for score, _ in pairs), reverse=True)
    assert not pairs or archive.best is archive.leaders[0]
    # The archive keeps all of those that are equal, the table's front one of them.
    found = [(one.score, one.complexity) for one in archive.front]
    assert (
        list(dict.fromkeys(found))
        == [pairs[place] for place in pareto_front(*map(list, zip(*pairs, strict=True)))]
        if pairs
        else not found
    )


def test_the_hall_of_fame_has_an_end():
    archive = Archive()
    for place in range(N_LEADERS + 5):
        archive.add(candidate(str(place), float(place), 3))
    assert len(archive.leaders) == N_LEADERS
    assert archive.best.score == pytest.approx(N_LEADERS + 4)
