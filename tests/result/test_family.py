import dataclasses

import numpy as np
import pytest

from pmsr.data import load_galileo
from pmsr.result.comparison import weigh_equations
from pmsr.result.family import noise_level
from pmsr.settings import QUICK

SHELF = load_galileo("shelf")
LAWS = {"line": "c0 + c1*H", "root": "c0*sqrt(H)", "power": "c0*H**c1", "failed": "c0*log(-H)"}


@pytest.fixture(scope="module")
def result():
    return weigh_equations(LAWS, *SHELF, settings=QUICK, random_seed=1)


def test_laws_that_the_data_cannot_tell_apart_have_one_probability(result):
    root, line = result.families
    assert [one.equation.text for one in root.members] == ["c0*sqrt(H)", "c0*H**c1"]
    assert root.face is result["root"] and line.face is result["line"] and len(line) == 1
    assert root.probability == pytest.approx(result.probabilities[:2].sum())
    assert repr(line).startswith("Family('c0 + c1*H', 1 law, 0.0")
    # What failed belongs to none.
    assert result["failed"] not in [one for family in result.families for one in family.members]


def test_the_face_has_the_highest_score(result):
    for family in result.families:
        assert family.face.score == max(one.score for one in family.members)


def test_the_best_has_the_family_in_which_it_is(result):
    assert result.family is result.families[0]
    # Another choice does not make another family.
    assert result.select("power").family.places == result.family.places
    assert result.select("failed").family is None


def test_tables_say_what_families_say(result):
    table = result.family_table
    assert table["equation"].to_list() == ["c0*sqrt(H)", "c0 + c1*H"] and list(table.index) == [
        1,
        2,
    ]
    assert table["others"].to_list() == [["c0*H**c1"], []] and table["laws"].to_list() == [2, 1]
    assert result.table["family"].to_list() == [1, 1, 2, 0]
    for row in result.table.itertuples():
        if row.family:
            assert row.family_probability == table["probability"][row.family]
    assert result.table["family_probability"]["failed"] == 0.0


def test_with_less_noise_the_same_laws_are_told_apart():
    X = SHELF[0]
    noise = np.array([0.5, -0.3, 0.1, 0.4, -0.2])
    for exponent, sizes in ((0.5, [2, 1]), (0.52, [1, 1, 1])):
        y = 47.0 * X["H"].to_numpy() ** exponent
        found = weigh_equations(LAWS, X, y + noise, settings=QUICK, random_seed=1)
        assert [len(family) for family in found.families] == sizes
        rough = weigh_equations(LAWS, X, y + 40.0 * noise, settings=QUICK, random_seed=1)
        texts = {one.equation.text for one in rough.families[0].members}
        assert {"c0*sqrt(H)", "c0*H**c1"} <= texts


def test_the_most_probable_family_comes_first(result):
    fitted = list(result.equations)
    line = dataclasses.replace(fitted[2], log_prior=2.0)
    changed = dataclasses.replace(result, equations=(line, *fitted[:2], fitted[3]))
    sums = [family.probability for family in changed.families]
    assert sums == sorted(sums, reverse=True) and sum(sums) == pytest.approx(1.0)


def test_the_noise_is_that_which_the_best_fit_leaves(result):
    one = result["line"]
    expected = np.sqrt(np.sum(one.residuals**2) / (5 - 2))
    assert noise_level(one) == pytest.approx(expected)
    perfect = weigh_equations(["2*x0", "c0"], [1.0, 2.0, 3.0], [2.0, 4.0, 6.0], settings=QUICK)
    assert noise_level(perfect["2*x0"]) == perfect.problem.sigma_bounds[0]
