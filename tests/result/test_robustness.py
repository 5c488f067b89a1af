import dataclasses

import numpy as np
import pytest
from scipy.special import softmax

from pmsr.data import load_galileo
from pmsr.evidence.evidence import compute_evidence
from pmsr.result.comparison import weigh_equations
from pmsr.settings import QUICK

SHELF = load_galileo("shelf")
LAWS = ["c0*sqrt(H)", "c0 + c1*H", "c0*H"]
PRIORS = ["as reported", "laws equally probable", "costs halved", "costs doubled"]


@pytest.fixture(scope="module")
def result():
    return weigh_equations(LAWS, *SHELF, settings=QUICK, random_seed=1, law_prior="description")


def test_a_winner_under_every_prior_is_robust(result):
    table = result.robustness()
    assert list(table.index) == [*PRIORS, "parameters flat"]
    assert table.attrs["verdict"] == "robust" and table["same_family"].all()
    assert (table["winner"] == "c0*sqrt(H)").all()
    log_q = np.array([one.evidence.log_q for one in result.equations])
    cost = np.array([one.log_prior for one in result.equations])
    for name, scale in zip(PRIORS, (1.0, 0.0, 0.5, 2.0), strict=True):
        expected = softmax(log_q + scale * cost)
        assert table.at[name, "probability"] == pytest.approx(expected[0])
        assert table.at[name, "of_best"] == table.at[name, "of_family"]


def test_only_the_leading_few_are_weighed_again_and_under_the_other_prior(result, monkeypatch):
    seen = []

    def weigh(program, problem, *arguments):
        seen.append(problem.parameter_prior)
        return original(program, problem, *arguments)

    from pmsr.result import robustness

    original = robustness.weigh
    monkeypatch.setattr(robustness, "weigh", weigh)
    assert list(result.robustness(n_reweighed=0).index) == PRIORS and seen == []
    result.robustness(n_reweighed=2)
    assert seen == ["flat", "flat"]


def test_flat_parameters_are_the_evidence_of_the_paper():
    flat = dataclasses.replace(QUICK, parameter_prior="flat")
    laws = ["c0*H**c1", "c0*sqrt(H)"]
    result = weigh_equations(laws, *SHELF, settings=QUICK, random_seed=1)
    alone = [
        compute_evidence(one.equation, *SHELF, settings=flat, random_seed=1).log_q
        for one in result.equations
    ]
    row = result.robustness().loc["parameters flat"]
    assert row["of_best"] == pytest.approx(softmax(alone)[0])
    back = weigh_equations(laws, *SHELF, settings=flat, random_seed=1).robustness()
    assert "parameters invariant" in back.index


def test_a_winner_that_a_prior_decides_is_said_to_depend_on_it(result):
    fitted = list(result.equations)
    [place] = [k for k, one in enumerate(fitted) if one.equation.text == "c0 + c1*H"]
    line = fitted[place]
    # So costly that only a prior which knows no costs can have it as the winner.
    better = dataclasses.replace(
        line.evidence, log_q=fitted[0].evidence.log_q + 1.0, log_z=np.nan, log_z_gamma=np.nan
    )
    fitted[place] = dataclasses.replace(
        line, weighed=dataclasses.replace(line.weighed, evidence=better)
    )
    changed = dataclasses.replace(result, equations=tuple(fitted))
    table = changed.robustness(n_reweighed=0)
    assert table.attrs["verdict"] == "depends on the prior"
    assert table.at["laws equally probable", "winner"] == "c0 + c1*H"
    assert table.at["costs doubled", "same_family"]


def test_where_all_were_equally_probable_short_laws_are_tried_as_more_probable():
    result = weigh_equations(LAWS, *SHELF, settings=QUICK, random_seed=1)
    table = result.robustness(n_reweighed=0)
    assert list(table.index) == ["as reported", "short laws more probable"]


def test_where_nothing_could_be_weighed_there_is_nothing_to_compare():
    failed = weigh_equations(["log(-H)"], *SHELF, settings=QUICK, random_seed=1)
    assert failed.robustness().empty


@pytest.mark.parametrize("n", [-1, 1.5, True, "all"])
def test_how_many_are_weighed_again_is_a_count(result, n):
    with pytest.raises(ValueError, match="n_reweighed must be an integer of at least 0, got"):
        result.robustness(n)
