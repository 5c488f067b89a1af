import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.collections import FillBetweenPolyCollection
from matplotlib.colors import to_rgb

from pmsr import plots
from pmsr.data import load_galileo
from pmsr.plots import plot_fit

SHELF = load_galileo("shelf")
GRID = np.array([900.0, 300.0, 600.0])


def make_prediction(level=0.95):
    """Make a table as predict does; each column has its own distance from the mean."""
    centre = 50 * np.sqrt(GRID)
    offsets = {
        "mean": 1,
        "map": 0,
        "credible_low": -10,
        "credible_high": 10,
        "prediction_low": -50,
        "prediction_high": 50,
    }
    table = pd.DataFrame({name: centre + offset for name, offset in offsets.items()})
    table.attrs["level"] = level
    return table


@pytest.fixture
def ax():
    figure, axes = plt.subplots()
    yield axes
    plt.close(figure)


def test_everything_is_drawn_where_the_numbers_say(ax):
    assert plot_fit(GRID, make_prediction(), *SHELF, ax=ax) is ax
    curve, points = ax.get_lines()
    np.testing.assert_array_equal(curve.get_xdata(), [300, 600, 900])
    np.testing.assert_allclose(curve.get_ydata(), 50 * np.sqrt([300, 600, 900]))
    np.testing.assert_array_equal(points.get_xdata(), SHELF[0]["H"])
    np.testing.assert_array_equal(points.get_ydata(), SHELF[1])
    bands = {
        band.get_label(): band.get_paths()[0].vertices
        for band in ax.collections
        if isinstance(band, FillBetweenPolyCollection)
    }
    for label, offset in (("95 % prediction interval", 50), ("95 % credible interval", 10)):
        heights = bands[label][np.isclose(bands[label][:, 0], 600), 1]
        np.testing.assert_allclose(
            [heights.min(), heights.max()], 50 * np.sqrt(600) + np.array([-offset, offset])
        )


def test_intervals_are_named_in_the_legend_with_their_level(ax):
    plot_fit(GRID, make_prediction(0.5), *SHELF, level=0.5, ax=ax)
    assert [text.get_text() for text in ax.get_legend().get_texts()] == [
        "data",
        "best fit (MAP)",
        "50 % credible interval",
        "50 % prediction interval",
    ]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("H", "D")


def test_without_axes_a_new_figure_is_made_and_nothing_else_changes():
    before = dict(plt.rcParams)
    ax = plot_fit(GRID, make_prediction(), *SHELF)
    assert isinstance(ax, Axes)
    assert dict(plt.rcParams) == before
    plt.close(ax.figure)


def test_the_colours_differ_in_lightness():
    # Weights of the sRGB primaries in luminance: what a grayscale print keeps.
    shades = [
        np.dot(to_rgb(color), [0.2126, 0.7152, 0.0722])
        for color in (plots.LINE, plots.CREDIBLE, plots.PREDICTION, "white")
    ]
    assert np.diff(shades).min() > 0.1


def test_more_than_one_variable_is_refused():
    X = SHELF[0].assign(other=1.0)
    with pytest.raises(ValueError, match="draws equations of one variable, got 2: H, other"):
        plot_fit(GRID, make_prediction(), X, SHELF[1])


def test_a_level_that_is_not_the_predictions_is_refused():
    with pytest.raises(ValueError, match=r"level must be that of the prediction, 0.5, got 0.95"):
        plot_fit(GRID, make_prediction(0.5), *SHELF)


def test_a_prediction_for_another_grid_is_refused():
    with pytest.raises(ValueError, match="a row for each row of X_grid, got 3 and 2"):
        plot_fit(GRID[:2], make_prediction(), *SHELF)
