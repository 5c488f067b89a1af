import dataclasses

import numpy as np
import pytest
from shelf import DATA, GRID, SEARCH, SHELF, wrap

from pmsr.data import make_data
from pmsr.equation.expression import Equation
from pmsr.result.searched import from_evolution
from pmsr.search.bench import Bench
from pmsr.search.evolution import Evolution, run_evolution
from pmsr.settings import QUICK, Search


def test_a_search_becomes_a_ranked_table(found):
    result = wrap(found)
    table = result.table
    assert set(table["equation"]) == {str(equation) for equation, _ in found.finalists}
    assert table["score"].is_monotonic_decreasing and list(table.index) == list(range(len(table)))
    assert result.best.score == table["score"].max() and result.law_prior == "description"
    assert "`" not in "".join(table["equation"])
    plain = wrap(found, dataclasses.replace(SEARCH, law_prior="uniform"))
    assert plain.table["log_q"].is_monotonic_decreasing and (plain.table["log_prior"] == 0.0).all()
    assert result.stopped == "generations" and result.n_candidates == found.n_candidates
    assert result.n_failed == found.n_failed
    assert [r["generation"] for r in result.history] == [0, 1, 2, 3]
    evidence = dict((equation.key, evidence) for equation, evidence in found.finalists)
    for fitted in result.equations:
        assert fitted.evidence is evidence[fitted.equation.key]
        # The same parameters, in the same order: the best fit is the best fit.
        rmse = np.sqrt(np.mean(fitted.residuals**2))
        assert rmse == pytest.approx(fitted.evidence.rmse, rel=1e-6)


def is_beaten(row, table, better):
    return any(
        other.complexity <= row.complexity
        and better(other, row) >= 0
        and (other.complexity < row.complexity or better(other, row) > 0)
        for other in table.itertuples()
    )


def test_nothing_on_the_front_is_beaten(found):
    result = wrap(found)
    front = result.pareto_front
    for row in result.table.itertuples():
        beaten = is_beaten(row, result.table, lambda a, b: a.score - b.score)
        assert (row.Index in front.index) != beaten
    assert front["complexity"].is_monotonic_increasing


def test_a_conventional_search_is_ranked_by_its_error(found):
    search = dataclasses.replace(SEARCH, fitness="rmse")
    pairs = tuple(
        (equation, dataclasses.replace(evidence, log_q=np.nan, gamma=np.nan))
        for equation, evidence in found.finalists
    )
    result = wrap(dataclasses.replace(found, finalists=pairs), search)
    table = result.table
    assert table["rmse"].is_monotonic_increasing and result.chosen == 0
    assert table[["log_q", "probability", "difference"]].isna().all(axis=None)
    for row in table.itertuples():
        beaten = is_beaten(row, table, lambda a, b: b.rmse - a.rmse)
        assert (row.Index in result.pareto_front.index) != beaten
    assert result.best.predict(GRID).shape == (3,)
    assert np.isfinite(np.asarray(result.best.posterior.posterior["sigma"])).all()
    with pytest.raises(ValueError, match=r'no probabilities to average with.*fitness="evidence"'):
        result.predict(GRID, average=True)
    assert not any("do not decide" in doubt for doubt in result.warnings)


def test_a_search_that_ranks_by_error_but_weighs_keeps_its_order(found):
    result = wrap(found, dataclasses.replace(SEARCH, fitness="rmse"))
    assert result.table["rmse"].is_monotonic_increasing and result.chosen == 0
    assert result.probabilities.sum() + result.unweighed_share == pytest.approx(1)


@pytest.mark.parametrize("finalists", ["none", "failed"])
def test_if_all_else_fails_there_is_a_constant(found, finalists):
    pairs = ()
    if finalists == "failed":
        bad = dataclasses.replace(
            found.finalists[0][1], log_q=-np.inf, rmse=np.inf, failure="singular covariance"
        )
        pairs = ((Equation("c0*log(-H)", ["H"]), bad),)
    empty = Evolution(pairs, (), (), found.history, 7, "max_time")
    result = wrap(empty)
    assert str(result.best.equation) == "c0"
    assert result.predict(GRID) == pytest.approx(SHELF[1].mean(), rel=0.02)
    assert result.table["failure"].to_list() == [None, "singular covariance"][: len(result)]


def test_the_constant_has_another_name_than_a_variable(found):
    data = make_data(SHELF[0].rename(columns={"H": "c"}), SHELF[1])
    empty = Evolution((), (), (), found.history, 7, "max_time")
    result = from_evolution(empty, data, search=SEARCH, settings=QUICK, random_seed=1)
    assert str(result.best.equation) == "cc0"


@pytest.mark.parametrize("law_prior", ["description", "uniform"])
def test_a_law_has_the_prior_of_the_search_also_where_units_are_known(law_prior):
    search = Search(
        operators=("+", "*", "sqrt"),
        population_size=8,
        generations=2,
        n_islands=1,
        n_enumerated=50,
        law_prior=law_prior,
        units={"H": "mm", "D": "?"},
        interval=["H"],
    )
    found = run_evolution(DATA, search=search, random_seed=1)
    result = wrap(found, search)
    bench = Bench(result.problem, search, QUICK, 1)
    assert len(result) > 3
    for (equation, _), one in zip(
        sorted(found.finalists, key=lambda pair: pair[0].key),
        sorted(result.equations, key=lambda one: one.equation.key),
        strict=True,
    ):
        assert one.log_prior == bench.log_prior(equation.program) > -np.inf, equation
    assert result.units.by_name == {"H": "mm", "D": "?"}
