import ast
from dataclasses import MISSING, FrozenInstanceError, asdict, fields, replace
from pathlib import Path

import numpy as np
import pytest

import pmsr
from pmsr.evidence.evidence import compute_evidence
from pmsr.evidence.trust import SEARCH, THOROUGH, UNKNOWN_SE, Trust, are_known, trust_of
from pmsr.laws.order import find_winner
from pmsr.settings import FINALIST, QUICK, Settings


def test_settings_choose_a_row():
    assert trust_of(Settings()) is trust_of(FINALIST) is THOROUGH
    assert trust_of(QUICK) is SEARCH
    assert trust_of(QUICK.for_finalists()) is THOROUGH


def test_a_row_cannot_be_changed():
    with pytest.raises(FrozenInstanceError):
        SEARCH.max_growth = 1


def test_the_rows_differ_in_what_has_no_default_and_in_nothing_else():
    needed = {one.name for one in fields(Trust) if one.default is MISSING}
    differ = {name for name, value in asdict(SEARCH).items() if value != asdict(THOROUGH)[name]}
    assert differ == needed


def test_only_the_policy_asks_whether_settings_are_thorough():
    asking = set()
    root = Path(pmsr.__file__).parent
    for path in root.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Attribute) and node.attr == "thorough":
                asking.add(path.relative_to(root).as_posix())
    assert asking == {"evidence/trust.py"}


@pytest.mark.parametrize(
    ("ess", "pareto_k", "top_share", "covered"),
    [
        (100.0, 0.7, 1.0, True),
        (99.0, -np.inf, 0.0, False),
        (1000.0, 0.71, 0.05, True),
        (1000.0, 0.71, 0.06, False),
        (1000.0, np.inf, 0.06, False),
    ],
)
@pytest.mark.parametrize("trust", [SEARCH, THOROUGH], ids=["search", "thorough"])
def test_draws_cover_with_enough_of_them_and_no_dominating_tail(
    trust, ess, pareto_k, top_share, covered
):
    assert trust.covers(ess, pareto_k, top_share) is covered


@pytest.mark.parametrize(("ess", "pareto_k"), [(29.0, 0.0), (1000.0, 1.1), (0.0, np.inf)])
def test_wild_weights_are_refused_by_a_search_and_bridged_otherwise(ess, pareto_k):
    assert SEARCH.is_wild(ess, pareto_k)
    assert not THOROUGH.is_wild(ess, pareto_k)
    assert not SEARCH.is_wild(30.0, 1.0)


def test_log_q_is_a_number_up_to_an_error_of_a_nat_unless_a_search_subtracts_it():
    assert THOROUGH.is_number(UNKNOWN_SE) and not THOROUGH.is_number(1.01)
    assert SEARCH.is_number(50.0)
    assert not any(trust.is_number(np.nan) for trust in (SEARCH, THOROUGH))


def test_what_is_far_behind_a_constant_or_below_the_floor_is_hopeless():
    assert SEARCH.is_hopeless(-10.1, 0.0, -np.inf) and not SEARCH.is_hopeless(-10.0, 0.0, -np.inf)
    assert SEARCH.is_hopeless(-5.0, 0.0, -4.0)


def test_fits_of_one_minimum_may_differ_by_where_they_stop_and_by_rounding():
    assert THOROUGH.largest_error(2.0, 0.0) == pytest.approx(2.002)
    assert THOROUGH.largest_error(0.0, 1e6) == pytest.approx(1e-18)


def test_particles_on_a_ridge_have_not_arrived():
    assert THOROUGH.has_arrived(-118.0, -100.0, 2) and not THOROUGH.has_arrived(-119.0, -100.0, 2)
    assert not THOROUGH.has_arrived(np.nan, -100.0, 2)


@pytest.mark.parametrize(
    ("ess", "enough"), [([250.0] * 4, True), ([249.0] * 4, False), ([99.0, 5000.0], False)]
)
def test_a_posterior_needs_enough_draws_in_all_and_in_each_chain(ess, enough):
    assert THOROUGH.make_posterior(ess) is enough


def test_what_a_search_did_not_sample_is_not_known_and_sets_no_standard():
    x = np.linspace(0.0, 1.0, 30)
    y = 3.0 + 0.1 * np.cos(40.0 * x)
    skipped = compute_evidence("exp(c0*x0)", x, y, settings=QUICK, random_seed=0)
    assert skipped.log_q == skipped.log_q_linear and skipped.log_q_se == UNKNOWN_SE
    assert not are_known(np.array([skipped.log_q_se])).any()
    assert find_winner([0.0, -9.0], [UNKNOWN_SE, 0.1], [1, 5]) == 1


def test_parameters_are_doubted_by_their_draws():
    assert THOROUGH.are_few(np.array([399.0, 400.0, np.nan])).tolist() == [True, False, False]
    assert THOROUGH.are_apart(np.array([1.01, 1.02, np.nan])).tolist() == [False, True, False]


def test_a_row_of_ones_own_changes_one_decision_only():
    strict = replace(THOROUGH, max_growth=16)
    assert strict.max_growth == 16 and strict.covers(100.0, 0.0, 0.0)
