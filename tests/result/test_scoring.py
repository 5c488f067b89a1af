import dataclasses

import numpy as np
import pytest

from pmsr.data import make_data
from pmsr.equation.expression import Equation
from pmsr.evidence.evidence import compute_evidence
from pmsr.laws.prior import LawPrior
from pmsr.laws.units import read_units
from pmsr.result.scoring import find_log_prior, known_rows
from pmsr.settings import QUICK

X = np.linspace(1.0, 9.0, 12)
DATA = make_data(X, 3.0 * np.sqrt(X))


def log_prior(text, law_prior="description", given=None, interval=()):
    units = read_units(given, ["x0", "date"], "y", interval=interval)
    return find_log_prior(Equation(text, ["x0"]), DATA, law_prior, units=units)


def test_every_spelling_of_a_law_has_the_prior_of_the_best():
    assert log_prior("c0*sqrt(x0)") == log_prior("c0*sqrt(x0) + c1*sqrt(x0)") == -6.0


def test_a_coincidence_and_an_arbitrary_zero_cost_what_the_prior_says():
    prior = LawPrior(per_node=1.0, per_coincidence=2.5)
    assert log_prior("c0 + x0", prior) == -3.0 - 2.5
    assert log_prior("c0*x0", prior, interval=["x0"]) == log_prior("c0*x0", prior) - 2.5
    # A column that a search has left out does not matter.
    assert log_prior("c0*x0", prior, interval=["date"]) == log_prior("c0*x0", prior)


def test_the_paper_and_functions_of_users_see_the_equation_as_it_is():
    assert log_prior("c0*x0 + c1*x0", "uniform") == 0.0
    assert log_prior("c0*x0 + c1*x0", lambda law: -len(law.parameters)) == -2.0
    with pytest.raises(ValueError, match="law_prior returned nan"):
        log_prior("c0*x0", lambda law: float("nan"))


@pytest.mark.parametrize("law_prior", ["description", "uniform", lambda law: -1.0])
def test_a_law_that_known_units_forbid_is_impossible_under_every_prior(law_prior):
    given = {"x0": "m", "date": "?", "y": "s"}
    assert log_prior("c0 + x0", law_prior, given) == -np.inf
    assert np.isfinite(log_prior("c0 + c1*x0", law_prior, given))
    assert np.isfinite(log_prior("c0 + x0", law_prior, {**given, "y": "m"}))
    assert np.isfinite(log_prior("c0 + x0", law_prior))


def test_of_columns_that_share_a_known_unit_there_is_no_charge():
    given = {"x0": "m", "date": "?", "y": "m"}
    prior = LawPrior(per_node=1.0, per_coincidence=2.5)
    assert log_prior("c0 + x0", prior, given) == -3.0
    assert log_prior("c0 + x0", prior, {**given, "x0": "?"}) == -3.0 - 2.5


def test_the_best_fit_counts_only_where_there_is_one():
    assert known_rows(DATA, None) is None
    good = compute_evidence("c0*sqrt(x0)", DATA.X, DATA.y, settings=QUICK, random_seed=1)
    X, theta = known_rows(DATA, good)
    assert X is DATA.X
    np.testing.assert_array_equal(theta, good.theta)
    assert known_rows(DATA, dataclasses.replace(good, theta=np.array([np.nan]))) is None
    assert known_rows(DATA, dataclasses.replace(good, failure="never finite")) is None
