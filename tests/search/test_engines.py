import numpy as np
import pytest

from pmsr.data import load_galileo, make_data
from pmsr.equation.expression import Equation
from pmsr.evidence.evidence import fit_rmse, seed_for, weigh
from pmsr.evidence.problem import Problem
from pmsr.search.engines import ENGINES, engine_of
from pmsr.settings import QUICK, Search

SHELF = Problem.of(make_data(*load_galileo("shelf")), QUICK)


def found_by(engine, text):
    equation = Equation(text, ["H"])
    seed = seed_for(text, 0)
    return equation, engine.weigh(equation.program, SHELF, QUICK, seed, floor=-np.inf).evidence


def test_every_fitness_has_its_engine_and_a_comparison_the_bayesian():
    assert engine_of(Search(fitness="rmse")) is ENGINES["rmse"]
    assert engine_of(Search(fitness="evidence")) is engine_of(None) is ENGINES["evidence"]
    for fitness in ENGINES:
        assert Search(fitness=fitness).fitness == fitness


def test_the_bayesian_engine_weighs():
    engine = ENGINES["evidence"]
    equation, evidence = found_by(engine, "c0*H**c1")
    alone = weigh(equation.program, SHELF, QUICK, seed_for("c0*H**c1", 0)).evidence
    assert engine.score(evidence) == engine.rank(evidence) == evidence.log_q == alone.log_q
    assert engine.show(evidence) == f"log q {evidence.log_q:.2f}"


def test_the_conventional_engine_fits_and_nothing_else():
    engine = ENGINES["rmse"]
    equation, evidence = found_by(engine, "c0*H**c1")
    alone = fit_rmse(equation.program, SHELF, QUICK, seed_for("c0*H**c1", 0))
    assert engine.score(evidence) == engine.rank(evidence) == -evidence.rmse == -alone.rmse
    assert np.isnan(evidence.log_q)
    assert engine.show(evidence) == f"RMSE {evidence.rmse:.4g}"


def test_the_error_of_a_law_without_parameters_counts_rows_as_often_as_they_were_seen():
    data = make_data([1.0, 2.0, 3.0], [1.0, 2.0, 4.0], sample_weight=[1, 1, 2])
    equation = Equation("x0", ["x0"])
    found = fit_rmse(equation.program, Problem.of(data, QUICK), QUICK, seed_for("x0", 0))
    assert found.rmse == pytest.approx(np.sqrt(2 / 4))


@pytest.mark.parametrize(("fitness", "is_finite"), [("evidence", True), ("rmse", False)])
def test_an_engine_says_whether_it_computes_evidence(fitness, is_finite):
    engine = ENGINES[fitness]
    _, evidence = found_by(engine, "c0*H")
    assert engine.has_evidence == np.isfinite(evidence.log_q) == is_finite


def test_a_worse_child_may_replace_its_parent_only_in_the_bayesian_search():
    rng = np.random.default_rng(0)
    replaced = {
        fitness: sum(engine.replaces(-11.0, -10.0, rng) for _ in range(200))
        for fitness, engine in ENGINES.items()
    }
    assert replaced["evidence"] > 0 == replaced["rmse"]


def test_keys_are_canonical_where_evidence_counts():
    equation = Equation("c0*c1*H", ["H"])
    key, weighed = ENGINES["evidence"].key(equation)
    assert key == equation.key and len(weighed.parameters) == 1
    key, fitted = ENGINES["rmse"].key(equation)
    assert key == str(equation) and fitted is equation
