from dataclasses import replace

import pytest

from pmsr.data import load_galileo, make_data
from pmsr.equation.expression import Equation
from pmsr.equation.program import Tables
from pmsr.equation.structure import MAX_PARAMETERS
from pmsr.evidence.evidence import seed_for
from pmsr.evidence.problem import as_problem
from pmsr.laws.prior import LawPrior
from pmsr.search.bench import Bench
from pmsr.search.engines import ENGINES
from pmsr.settings import QUICK, Search

SHELF = make_data(*load_galileo("shelf"))
SMALL = Search(operators=("+", "*", "sqrt"), max_complexity=12)


def bench(data=SHELF, settings=QUICK, **options):
    return Bench(as_problem(data, settings, None), replace(SMALL, **options), settings, 0)


def test_graphs_are_made_of_what_the_search_allows():
    one = bench(share_parameters=True)
    assert one.names == ("H",) and one.primitives.operators == SMALL.operators
    assert (one.primitives.size, one.primitives.shared) == (12, True)


@pytest.mark.parametrize("limit", [None, 3, MAX_PARAMETERS + 5])
def test_no_law_has_more_parameters_than_an_equation_may_have(limit):
    expected = MAX_PARAMETERS if limit is None else min(limit, MAX_PARAMETERS)
    assert bench(max_parameters=limit).rules.max_parameters == expected


def test_laws_are_screened_where_the_closed_form_is_that_of_the_evidence():
    assert bench().is_screened
    assert not bench(evidence="smc").is_screened
    assert not bench(fitness="rmse").is_screened
    assert not bench(settings=replace(QUICK, parameter_prior="flat")).is_screened


def test_the_prior_of_many_laws_is_that_of_each():
    one = bench()
    equations = [Equation(text, ["H"]) for text in ("c0*H", "c0*sqrt(H)", "c0 + c1*H")]
    together = one.log_priors(Tables.of([equation.program for equation in equations]))
    assert together.tolist() == [one.log_prior(equation.program) for equation in equations]
    assert together == pytest.approx([LawPrior()(equation) for equation in equations])
    assert len(set(together.tolist())) > 1


def test_all_laws_are_alike_where_the_prior_is_uniform_or_errors_count():
    for one in (bench(law_prior="uniform"), bench(fitness="rmse")):
        programs = [Equation(text, ["H"]).program for text in ("c0*H", "c0 + c1*H")]
        assert [one.log_prior(program) for program in programs] == [0.0, 0.0]


def test_a_column_whose_zero_is_arbitrary_makes_laws_less_probable():
    program = Equation("c0*H", ["H"]).program
    assert bench(interval=("H",)).log_prior(program) < bench().log_prior(program)
    # A column that does not vary is gone, and may be named.
    assert bench(interval=("T",)).log_prior(program) == bench().log_prior(program)


def test_results_are_ranked_by_evidence_and_prior():
    equation = Equation("c0*H", ["H"])
    for one in (bench(), bench(law_prior="uniform"), bench(fitness="rmse")):
        found = one.engine.weigh(equation.program, one.problem, QUICK, seed_for("c0*H", 0))
        expected = one.engine.score(found.evidence) + one.log_prior(equation.program)
        assert one.final_score(equation, found.evidence) == expected
    assert bench(fitness="rmse").engine is ENGINES["rmse"]
