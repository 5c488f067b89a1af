import numpy as np
import pytest
from scipy.stats import norm

from pmsr.data import load_galileo
from pmsr.result.comparison import weigh_equations
from pmsr.result.suggestion import (
    LEAST,
    Forecast,
    choose_places,
    forecast,
    information,
    leading_families,
)
from pmsr.settings import QUICK

SHELF = load_galileo("shelf")
LAWS = ["c0*sqrt(H)", "c0 + c1*H", "c0*H"]


@pytest.fixture(scope="module")
def result():
    return weigh_equations(LAWS, *SHELF, settings=QUICK, random_seed=1)


def expecting(mean, shares=None, curve=0.0, noise=1.0):
    mean = np.array(mean, dtype=float)
    shares = np.full(len(mean), 1 / len(mean)) if shares is None else np.array(shares)
    return Forecast(shares, mean, np.full(mean.shape, curve), np.full(mean.shape, noise))


def test_information_is_the_mutual_information_of_law_and_measurement():
    shares, mean, variance = np.array([0.7, 0.3]), np.array([0.0, 1.5]), np.array([1.0, 2.0])
    y = np.linspace(-15.0, 15.0, 20_001)
    density = norm.pdf(y, mean[:, None], np.sqrt(variance)[:, None])
    told = density * np.log(density / (shares @ density))
    exact = float(shares @ np.trapezoid(told, y))
    curve = np.array([[0.25], [0.5]])
    found = information(Forecast(shares, mean[:, None], curve, variance[:, None] - curve))
    assert found == pytest.approx([exact], abs=0.003)


def test_information_is_at_most_what_there_is_to_know():
    alike, apart = information(expecting([[0.0, 0.0], [0.0, 1e6]], shares=[0.9, 0.1]))
    assert alike == pytest.approx(0.0, abs=1e-12)
    assert apart == pytest.approx(-0.9 * np.log(0.9) - 0.1 * np.log(0.1))
    # Where a law is certain there is nothing left to tell.
    sure = information(expecting([[0.0], [5.0]]), np.array([[1.0, 0.0], [0.5, 0.5]]))
    assert sure[0] == 0.0 and sure[1] > 0.6


def test_laws_that_agree_within_the_data_are_told_apart_beyond(result):
    inside = result.suggest(1)
    beyond = result.suggest(1, {"H": (0.0, 3000.0)})
    assert SHELF[0]["H"].min() <= inside.at[0, "H"] <= SHELF[0]["H"].max()
    # A line and a root through the same data differ most where it ends.
    assert beyond.at[0, "H"] in (0.0, 3000.0)
    assert beyond.at[0, "information"] > inside.at[0, "information"]


def test_the_numbers_of_a_place_are_those_of_the_posteriors(result):
    table = result.suggest(2)
    assert list(table.columns) == ["H", "information", "disagreement", "scatter"]
    leading = leading_families(result.families)
    expected = forecast(leading, table[["H"]].to_numpy(), ["H"])
    for k, family in enumerate(leading):
        direct = family.face.predict(table[["H"]])
        np.testing.assert_allclose(expected.mean[k], direct, rtol=0.01)
    assert table.at[0, "information"] == pytest.approx(information(expected)[0])
    first = leading[0].face.predict(table[["H"]], return_std=True)[1]
    # The median of the noise is less than its mean.
    assert (table["scatter"] < first).all() and (table["scatter"] > 0.4 * first).all()


def test_places_are_distinct_and_the_most_telling_comes_first(result):
    table = result.suggest(4, {"H": (0.0, 2000.0)})
    assert len(table) == 4
    gaps = np.diff(np.sort(table["H"]))
    assert gaps.min() >= 2000.0 / 8 - 1e-9
    assert table.at[0, "information"] == table["information"].max()


def test_a_place_that_tells_what_another_told_is_not_chosen_next():
    # The first place tells 0 from 1 and 2 for sure; only the last tells 1 from 2.
    expected = expecting([[0.0, 0.0, 0.0], [90.0, 80.0, 3.0], [91.0, 80.0, 0.0]])
    chosen = choose_places(expected, np.array([[0.0], [0.5], [1.0]]), 2)
    assert list(chosen) == [0, 2]
    # Together they tell at most which of three it is.
    assert 0.9 < sum(chosen.values()) < np.log(3.0)
    assert len(choose_places(expected, np.array([[0.0], [0.5], [1.0]]), 9)) == 3


def test_if_one_law_has_it_all_its_own_curve_decides():
    only = weigh_equations(["c0*sqrt(H)"], *SHELF, settings=QUICK, random_seed=1)
    table = only.suggest(1)
    # The least certain end of c0*sqrt(H) is the upper one.
    assert table.at[0, "H"] == SHELF[0]["H"].max() and table.at[0, "disagreement"] == 0.0


def test_variables_that_matter_to_nobody_have_their_median(result):
    X = SHELF[0].assign(T=[1.0, 5.0, 2.0, 9.0, 3.0], information=1.0)
    other = weigh_equations(LAWS, X, SHELF[1], settings=QUICK, random_seed=1)
    table = other.suggest(2)
    assert (table["T"] == 3.0).all()
    assert list(table.columns[3:]) == ["information_", "disagreement", "scatter"]
    np.testing.assert_allclose(table["H"], result.suggest(2)["H"])


def test_laws_of_several_variables_have_places_in_a_box():
    rng = np.random.default_rng(0)
    X = rng.uniform(1.0, 2.0, (20, 2))
    y = 3.0 * X[:, 0] * X[:, 1] + rng.normal(0.0, 2.0, 20)
    found = weigh_equations(["c0*x0*x1", "c0*(x0 + x1)"], X, y, settings=QUICK, random_seed=1)
    table = found.suggest(3, {"x0": (0.0, 4.0)})
    assert table["x0"].between(0.0, 4.0).all() and table["x1"].between(1.0, 2.0).all()
    assert table["information"].iloc[0] > 0.1


def test_places_where_a_law_is_not_defined_are_left_out():
    laws = ["c0*sqrt(H - 200)", "c0 + c1*H"]
    found = weigh_equations(laws, *SHELF, settings=QUICK, random_seed=1)
    assert (found.suggest(3, {"H": (0.0, 1000.0)})["H"] >= 200.0).all()
    with pytest.raises(ValueError, match="no place is in the domain of all leading laws"):
        weigh_equations(laws[:1], *SHELF, settings=QUICK, random_seed=1).suggest(
            1, {"H": (-100.0, 100.0)}
        )


def test_families_without_a_say_are_not_asked(result):
    assert all(family.probability >= LEAST for family in leading_families(result.families))
    failed = weigh_equations(["log(-H)"], *SHELF, settings=QUICK, random_seed=1)
    with pytest.raises(ValueError, match="no probabilities to tell laws by"):
        failed.suggest()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0,), "n must be an integer of at least 1, got 0"),
        ((2.5,), "n must be an integer of at least 1, got 2.5"),
        ((1, {"T": (0, 1)}), "bounds name 'T', which is not a variable. Variables: H"),
        ((1, {"H": (1, 0)}), "bounds of 'H' must be two rising numbers, got"),
        ((1, {"H": 5}), "bounds of 'H' must be two rising numbers, got 5"),
        ((1, {"H": ("a", "b")}), "bounds of 'H' must be two rising numbers"),
        ((1, {"H": (0, float("inf"))}), "bounds of 'H' must be two rising numbers"),
        ((1, [(0, 1)]), "bounds must be a dictionary"),
    ],
)
def test_what_cannot_be_asked_is_refused(result, arguments, message):
    with pytest.raises(ValueError, match=message):
        result.suggest(*arguments)
