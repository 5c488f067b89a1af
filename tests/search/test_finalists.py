import pytest

import pmsr.search.finalists
from pmsr.data import load_galileo, make_data
from pmsr.equation.expression import Equation
from pmsr.search.archive import Candidate
from pmsr.search.evolution import run_evolution
from pmsr.search.finalists import (
    FINAL_SHARE,
    MOST_SHARE,
    distinct_laws,
    order_finalists,
    reserve,
)
from pmsr.settings import FINALIST, QUICK, Search

SHELF = make_data(*load_galileo("shelf"))
SMALL = Search(operators=("+", "*", "sqrt"), population_size=16, generations=6, n_finalists=4)


def candidate(text, score, rmse):
    equation = Equation(text, ["H"])
    size = len(equation.parameters), equation.complexity
    return Candidate(equation.key, score, score, 0.1, rmse, *size)


def test_finalists_are_weighed_at_least_as_thoroughly_as_the_search_was_told():
    thorough = QUICK.for_finalists()
    assert thorough.thorough and thorough.n_replicates == 2
    assert thorough.n_draws == FINALIST.n_draws // 4 > QUICK.n_draws
    assert FINALIST.for_finalists() == FINALIST


def test_spellings_of_one_law_are_one_finalist():
    spelt = [
        candidate("sqrt(c0)*sqrt(c1*H/c0)", -9.0, 13.75980001),
        candidate("sqrt(c0*H)", -9.1, 13.7598),
        candidate("c0 + c1*H", -9.2, 14.0),
        candidate("c0*sqrt(H)", -9.3, 13.7598 * (1.0 + 1e-9)),
    ]
    laws = distinct_laws(spelt, ["H"])
    assert [law.key for law in laws] == [spelt[3].key, spelt[2].key]


def test_the_simplest_and_the_best_are_weighed_first():
    laws = [
        candidate("c0 + c1*H + c2*sqrt(H)", -9.0, 1.0),
        candidate("c0 + c1*H", -9.2, 1.1),
        candidate("c0*H", -9.5, 1.2),
        candidate("c0", -20.0, 5.0),
    ]
    front = [laws[3], laws[2], laws[1], laws[0]]
    assert order_finalists(laws[:3], front, ["H"], 2) == [laws[3], laws[0], laws[2], laws[1]]


def test_without_time_for_finalists_the_simplest_and_the_best_are_there(monkeypatch):
    whole = run_evolution(SHELF, search=SMALL, random_seed=1)
    weigh_again = pmsr.search.finalists._weigh_again

    def run_out(keys, workers, settings, seed, until):
        # No thorough weighing ends in time.
        yield from weigh_again(keys, workers, settings, seed, until if until is None else 0.0)

    monkeypatch.setattr(pmsr.search.finalists, "_weigh_again", run_out)
    found = run_evolution(SHELF, search=SMALL, random_seed=1)
    simplest, best = whole.front[0], max(whole.front, key=lambda one: one.score)
    assert {equation.key for equation, _ in found.finalists} == {simplest.key, best.key}
    assert {evidence.log_q for _, evidence in found.finalists} == {simplest.log_q, best.log_q}


@pytest.mark.parametrize(("quick", "share"), [(0.0, FINAL_SHARE), (1e6, MOST_SHARE)])
def test_the_end_has_its_least_and_its_most_share_of_the_time(quick, share):
    assert reserve(100.0, quick, QUICK) == pytest.approx(share * 100.0)


def test_the_slower_the_weighing_the_more_time_is_kept():
    assert reserve(1e6, 10.0, QUICK) <= reserve(1e6, 1000.0, QUICK) <= reserve(1e6, 2000.0, QUICK)
