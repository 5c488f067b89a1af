import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from pmsr.data import load_galileo
from pmsr.result.comparison import weigh_equations
from pmsr.result.curve import make_grid

SHELF = load_galileo("shelf")


@pytest.fixture(autouse=True)
def no_figure_stays():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def result():
    return weigh_equations(["c0*sqrt(H)", "c0 + c1*H"], *SHELF, random_seed=1)


def test_a_positive_variable_stays_positive_and_a_negative_one_negative():
    x = np.array([1.0, 5.0, 9.0])
    assert make_grid(x, x, lambda v: v)[[0, -1]].tolist() == [0.0, 11.0]
    assert make_grid(-x, -x, lambda v: v)[[0, -1]].tolist() == [-11.0, 0.0]
    assert make_grid(x - 2.0, x, lambda v: v)[[0, -1]].tolist() == [-3.0, 9.0]


def test_the_grid_ends_before_a_pole_and_always_covers_the_data():
    x = np.linspace(1.0, 5.0, 9)
    y = 1.0 / (5.4 - x)
    grid = make_grid(x, y, lambda v: 1.0 / (5.4 - v))
    assert 5.0 < grid[-1] < 5.4
    assert np.max(1.0 / (5.4 - grid)) <= y.max() + np.ptp(y)
    # A law that is nowhere near the data is drawn over them.
    grid = make_grid(x, y, lambda v: 1e9 + v)
    assert grid[[0, -1]].tolist() == [1.0, 5.0]
    grid = make_grid(x, y, lambda v: np.full(len(v), np.nan))
    assert grid[[0, -1]].tolist() == [1.0, 5.0]


def test_one_call_draws_the_fit_of_any_equation(result):
    ax = result.plot_fit()
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("H", "D")
    _, own = plt.subplots()
    assert result.best.plot(ax=own) is own
    np.testing.assert_array_equal(own.get_lines()[0].get_ydata(), ax.get_lines()[0].get_ydata())
    line = result.plot_fit(1).get_lines()[0]
    theta = result[1].theta
    np.testing.assert_allclose(line.get_ydata(), theta[0] + theta[1] * line.get_xdata())


def test_intervals_of_the_drawing_are_those_of_predict_interval(result):
    ax = result.best.plot(level=0.5)
    names = [text.get_text() for text in ax.get_legend().get_texts()]
    assert "50 % prediction interval" in names
    band = next(one for one in ax.collections if one.get_label() == "50 % prediction interval")
    top = band.get_paths()[0].vertices[:, 1].max()
    x = ax.get_lines()[0].get_xdata()
    with pytest.warns(UserWarning, match="outside the data"):
        ends = result.best.predict_interval(x, 0.5)
    assert top == pytest.approx(ends.max())


def test_a_law_of_several_variables_is_drawn_against_what_was_observed():
    X = SHELF[0].assign(other=[3.0, 1.0, 4.0, 1.0, 5.0])
    found = weigh_equations(["c0*H + other", "c0*sqrt(H)"], X, SHELF[1], random_seed=1)
    assert found.plot_fit("c0*H + other").get_xlabel() == "D, observed"
    assert found.plot_fit("c0*sqrt(H)").get_xlabel() == "H"


def test_one_call_draws_residuals_front_and_families(result):
    left, _ = result.plot_residuals()
    np.testing.assert_allclose(left.get_lines()[1].get_ydata(), result.best.residuals)
    assert result.plot_residuals(1, against="order")[0].get_xlabel() == "row"
    front = result.plot_front()
    assert front.get_ylabel().startswith("score")
    assert "winner" in [line.get_label() for line in front.get_lines()]
    assert result.plot_front(measure="rmse").get_ylabel().startswith("RMSE")
    bars = result.plot_families().patches
    np.testing.assert_allclose(
        [bar.get_width() for bar in bars], [one.probability for one in result.families]
    )


def test_residuals_of_known_errors_are_drawn_in_their_units():
    X, y = SHELF
    found = weigh_equations(
        ["c0*sqrt(H)"], X, pd.Series(y, name="D"), y_err=np.full(5, 10.0), random_seed=1
    )
    left, _ = found.best.plot_residuals()
    drawn = left.get_lines()[1].get_ydata()
    np.testing.assert_allclose(drawn, found.best.residuals / 10.0)
    assert "in units of its noise" in left.get_ylabel()
