import copy
import json
import re

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.collections import FillBetweenPolyCollection, LineCollection
from matplotlib.colors import to_rgb

import pmsr
from pmsr import plots
from pmsr.data import load_galileo, make_data
from pmsr.equation.expression import Equation
from pmsr.equation.graph import lay_out
from pmsr.evidence.posterior import sample_posterior
from pmsr.plots import (
    plot_families,
    plot_fit,
    plot_front,
    plot_graph,
    plot_history,
    plot_pairs,
    plot_parity,
    plot_posterior,
    plot_residuals,
    plot_suggestion,
    to_svg,
)
from pmsr.plots.predictions import draw_fit
from pmsr.result.comparison import weigh_equations

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


@pytest.fixture(scope="module")
def posterior():
    """Two parameters and sigma, drawn by the sampler itself."""
    return sample_posterior("c0 + c1*sqrt(H)", *SHELF, draws=200, chains=2, random_seed=1)


@pytest.fixture(autouse=True)
def no_figure_stays():
    yield
    plt.close("all")


def extent(text):
    text.figure.draw_without_rendering()
    return text.get_window_extent()


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


def test_an_average_has_its_mean_drawn_instead_of_a_best_fit(ax):
    average = make_prediction().drop(columns="map")
    plot_fit(GRID, average, *SHELF, ax=ax)
    line = next(line for line in ax.get_lines() if line.get_label() == "mean of all equations")
    np.testing.assert_allclose(line.get_ydata(), np.sort(average["mean"]))


def test_intervals_are_named_in_the_legend_with_their_level(ax):
    plot_fit(GRID, make_prediction(0.5), *SHELF, level=0.5, ax=ax)
    assert [text.get_text() for text in ax.get_legend().get_texts()] == [
        "data",
        "best fit (MAP)",
        "50 % credible interval",
        "50 % prediction interval",
    ]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("H", "D")


def test_what_lies_outside_the_data_is_hatched_and_named(ax):
    grid = np.array([100.0, 600.0, 1200.0])
    plot_fit(grid, make_prediction(), *SHELF, ax=ax)
    spans = sorted((patch.get_x(), patch.get_x() + patch.get_width()) for patch in ax.patches)
    np.testing.assert_allclose(spans, [(100.0, 300.0), (1000.0, 1200.0)])
    assert all(patch.get_hatch() for patch in ax.patches)
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert labels.count("extrapolation: no data") == 1


def test_a_pole_does_not_flatten_the_data(ax):
    prediction = make_prediction()
    prediction.loc[0, ["map", "prediction_high"]] = 1e9
    plot_fit(GRID, prediction, *SHELF, ax=ax)
    width = np.ptp(SHELF[1])
    assert ax.get_ylim()[1] == pytest.approx(SHELF[1].max() + 0.5 * width)


def test_a_dollar_in_a_name_is_no_formula(ax):
    plot_fit(GRID, make_prediction(), SHELF[0].rename(columns={"H": "$a_$b"}), SHELF[1], ax=ax)
    ax.figure.draw_without_rendering()
    assert ax.get_xlabel() == r"\$a_\$b"


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
    with pytest.raises(ValueError, match=r"one variable, got 2: H, other. Use plot_parity"):
        plot_fit(GRID, make_prediction(), X, SHELF[1])


def test_a_level_that_is_not_the_predictions_is_refused():
    with pytest.raises(ValueError, match=r"level must be that of the prediction, 0.5, got 0.95"):
        plot_fit(GRID, make_prediction(0.5), *SHELF)


def test_a_prediction_for_another_grid_is_refused():
    with pytest.raises(ValueError, match="a row for each row of X_grid, got 3 and 2"):
        plot_fit(GRID[:2], make_prediction(), *SHELF)


def test_parity_shows_predictions_and_their_intervals_at_the_observations(ax):
    y = pd.Series([800.0, 900.0, 1500.0], name="D")
    assert plot_parity(y, make_prediction(), ax=ax) is ax
    points, diagonal = ax.get_lines()
    np.testing.assert_array_equal(points.get_xdata(), y)
    np.testing.assert_allclose(points.get_ydata(), 50 * np.sqrt(GRID))
    np.testing.assert_array_equal(diagonal.get_xdata(), diagonal.get_ydata())
    segments = ax.collections[0].get_segments()
    np.testing.assert_allclose([np.ptp(segment[:, 1]) for segment in segments], 100.0)
    np.testing.assert_allclose([segment[0, 0] for segment in segments], y)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("D, observed", "D, predicted")
    assert "95 % prediction interval" in ax.get_legend_handles_labels()[1]


def test_parity_refuses_predictions_for_other_rows():
    with pytest.raises(ValueError, match="a row for each row of X, got 3 and 2"):
        plot_parity([1.0, 2.0], make_prediction())


@pytest.mark.parametrize(("against", "x"), [("prediction", [2, 1, 4, 3]), ("order", [1, 2, 3, 4])])
def test_residuals_are_observation_less_prediction(against, x):
    left, right = plot_residuals([2.5, 0.8, 4.1, 2.2], [2, 1, 4, 3], against=against)
    zero, points = left.get_lines()
    assert set(zero.get_ydata()) == {0.0}
    np.testing.assert_array_equal(points.get_xdata(), x)
    np.testing.assert_allclose(points.get_ydata(), [0.5, -0.2, 0.1, -0.8])
    quantiles = right.get_lines()[1]
    np.testing.assert_allclose(quantiles.get_ydata(), [-0.8, -0.2, 0.1, 0.5])
    # Symmetric, and by Blom's formula the least of four is at the quantile of 0.625/4.25.
    np.testing.assert_allclose(quantiles.get_xdata(), -quantiles.get_xdata()[::-1], atol=1e-12)
    assert quantiles.get_xdata()[0] == pytest.approx(-1.0491, abs=1e-4)
    assert re.fullmatch(r"Shapiro-Wilk p = 0\.\d+", right.get_title())


def test_two_residuals_are_drawn_without_a_test():
    assert plot_residuals([1.0, 2.0], [1.1, 1.9])[1].get_title() == "too few residuals for a test"


def test_residuals_that_are_all_equal_are_no_test():
    exact = plot_residuals([1.0, 2.0, 3.0, 4.0], [1.0, 2.0, 3.0, 4.0])[1]
    assert exact.get_title() == "all are equal: no test"


def test_residuals_against_anything_else_are_refused():
    with pytest.raises(ValueError, match=r"Unknown against 'time'. Available: prediction, order"):
        plot_residuals([1.0, 2.0], [1.0, 2.0], against="time")


TABLE = pd.DataFrame(
    [
        ("c0*sqrt(H)", 4, -13.1, 0.1, 14.0),
        ("c0 + c1*sqrt(H)", 6, -13.0, 0.3, 13.0),
        ("c0*H", 3, -16.3, 0.1, 90.0),
        ("c0 + c1*H", 5, -16.0, 0.1, 27.0),
        ("c0", 1, -19.8, 0.1, 238.0),
        ("c0**H", 3, -400.0, 0.1, 9000.0),
        ("log(-H)", 2, -np.inf, 0.0, np.inf),
    ],
    index=["root", "shifted root", "ray", "line", "constant", "awful", "failed"],
    columns=["equation", "complexity", "log_q", "log_q_se", "rmse"],
)


def test_front_is_a_step_line_through_the_best_of_each_complexity(ax):
    assert plot_front(TABLE, winner="root", ax=ax) is ax
    line = ax.get_lines()[0]
    assert line.get_drawstyle() == "steps-post"
    np.testing.assert_array_equal(line.get_xdata(), [1, 3, 4, 6])
    np.testing.assert_array_equal(line.get_ydata(), [-19.8, -16.3, -13.1, -13.0])
    drawn = [line for line in ax.get_lines() if line.get_label() == "winner"]
    assert [(*line.get_xdata(), *line.get_ydata()) for line in drawn] == [(4, -13.1)]
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert labels == ["winner", "Pareto front"]
    assert ax.get_xlabel().endswith("; 1 more below")
    bars = {tuple(segment[:, 1].round(6)) for segment in ax.collections[0].get_segments()}
    assert (-13.3, -12.7) in bars


def test_a_front_of_one_equation_shows_what_is_a_nat_behind(ax):
    columns = ["equation", "complexity", "log_q", "log_q_se"]
    rows = [("c0*x", 3, -5.37, 0.0), ("c0 + x", 3, -7.1, 0.0)]
    plot_front(pd.DataFrame(rows, columns=columns), ax=ax)
    low, high = ax.get_ylim()
    assert low < -7.1 and high > -5.37 and "below" not in ax.get_xlabel()
    assert all(float(tick).is_integer() for tick in ax.get_xticks())


def test_front_of_the_error_goes_down(ax):
    plot_front(TABLE, measure="rmse", ax=ax)
    np.testing.assert_array_equal(ax.get_lines()[0].get_ydata(), [238, 90, 14, 13])
    assert ax.get_ylabel() == "RMSE of the best fit"
    assert ax.get_ylim()[0] >= 0


def test_labels_of_the_front_touch_neither_each_other_nor_the_legend(ax):
    plot_front(TABLE, winner="root", ax=ax)
    assert "c0*sqrt(H)" in [text.get_text() for text in ax.texts]
    boxes = [extent(text) for text in ax.texts] + [ax.get_legend().get_window_extent()]
    assert len(boxes) > 2
    for place, box in enumerate(boxes):
        assert not any(box.overlaps(other) for other in boxes[:place])
    frame = ax.get_window_extent()
    for box in boxes[:-1]:
        assert frame.count_contains([box.min, box.max]) == 2
    assert not frame.overlaps(boxes[-1])


def test_a_long_equation_is_cut_in_the_label(ax):
    table = TABLE.iloc[:1].assign(equation="c0*sqrt(H) + " + "c1*H + " * 20)
    plot_front(table, ax=ax)
    assert [len(text.get_text()) for text in ax.texts] == [34]


def test_a_front_of_nothing_is_refused():
    with pytest.raises(ValueError, match="No equation of the table has a finite log_q"):
        plot_front(TABLE.loc[["failed"]])
    with pytest.raises(ValueError, match="Unknown measure 'aic'"):
        plot_front(TABLE, measure="aic")


HISTORY = pd.DataFrame(
    {
        "generation": [0, 5, 10],
        "score_best": [-np.inf, -14.0, -13.0],
        "score_mean": [-500.0, -30.0, -20.0],
        "complexity_best": [0, 5, 4],
        "complexity_mean": [9.0, 8.0, 7.0],
        "n_distinct": [12, 10, 11],
        "rmse_train": [30.0, 20.0, 14.0],
        "rmse_test": [31.0, 22.0, 25.0],
        "best": ["", "c0", "c0*sqrt(H)"],
    }
)


def test_history_draws_the_columns_there_are():
    axes = plot_history(HISTORY)
    names = [ax.get_ylabel() for ax in axes]
    assert names == ["score", "complexity", "equations, distinct", "RMSE"]
    best, mean = axes[0].get_lines()
    np.testing.assert_array_equal(best.get_xdata(), [0, 5, 10])
    np.testing.assert_array_equal(best.get_ydata(), [np.nan, -14, -13])
    np.testing.assert_array_equal(mean.get_ydata(), HISTORY["score_mean"])
    assert axes[0].get_ylim()[0] > -100
    train, test = axes[3].get_lines()
    assert (train.get_label(), test.get_label()) == ("train", "test")
    np.testing.assert_array_equal(test.get_ydata(), HISTORY["rmse_test"])
    assert train.get_linestyle() != test.get_linestyle()


def test_history_goes_into_given_axes():
    _, given = plt.subplots(1, 2)
    axes = plot_history(HISTORY[["complexity_mean", "n_distinct"]], ax=given)
    assert list(axes) == list(given)
    np.testing.assert_array_equal(given[0].get_lines()[0].get_xdata(), [0, 1, 2])
    with pytest.raises(ValueError, match="ax must hold 1 Axes, one a quantity, got 2"):
        plot_history(HISTORY[["n_distinct"]], ax=given)


def test_a_history_of_nothing_is_refused():
    with pytest.raises(ValueError, match="none of the columns that can be drawn, got best"):
        plot_history(HISTORY[["best"]])


def test_every_parameter_has_its_density_mean_and_interval(posterior):
    axes = plot_posterior(posterior, reference={"c1": 46.0}, level=0.5)
    assert [ax.get_xlabel() for ax in axes] == ["$c_{0}$", "$c_{1}$", r"$\sigma$"]
    for ax, name in zip(axes, ("c0", "c1", "sigma"), strict=True):
        draws = np.asarray(posterior.posterior[name]).ravel()
        density, bar, mean = ax.get_lines()[:3]
        area = np.trapezoid(density.get_ydata(), density.get_xdata())
        assert area == pytest.approx(1.0, abs=0.05)
        np.testing.assert_allclose(bar.get_xdata(), np.quantile(draws, [0.25, 0.75]))
        np.testing.assert_allclose(mean.get_xdata(), draws.mean())
        marked = [line for line in ax.get_lines() if line.get_label() == "reference"]
        assert [line.get_xdata()[0] for line in marked] == ([46.0] if name == "c1" else [])
    (legend,) = axes[0].figure.legends
    assert "50 % credible interval" in [text.get_text() for text in legend.get_texts()]


def test_draws_far_out_do_not_hide_the_rest(posterior):
    far = copy.deepcopy(posterior)
    far.posterior["c0"].values[0, 0] = 1e9
    low, high = plot_posterior(far)[0].get_xlim()
    width = np.ptp(np.asarray(posterior.posterior["c0"]))
    assert high - low < 4 * width


def test_pairs_are_below_the_diagonal_and_densities_on_it(posterior):
    axes = plot_pairs(posterior, reference={"c0": 1.0})
    assert axes.shape == (3, 3)
    assert all(axes[row, column] is None for row, column in [(0, 1), (0, 2), (1, 2)])
    assert (axes[2, 0].get_xlabel(), axes[2, 0].get_ylabel()) == ("$c_{0}$", r"$\sigma$")
    points = np.vstack([np.asarray(mark.get_offsets()) for mark in axes[2, 1].collections])
    c1, sigma = (np.asarray(posterior.posterior[name]).ravel() for name in ("c1", "sigma"))
    assert len(points) == len(c1)
    np.testing.assert_allclose(np.median(points, axis=0), [np.median(c1), np.median(sigma)])
    assert all(mark.get_rasterized() for mark in axes[2, 1].collections)
    assert axes[1, 0].get_lines()[-1].get_xdata()[0] == 1.0
    assert plot_pairs(posterior, names=["c0", "sigma"]).shape == (2, 2)


def test_one_parameter_has_no_pairs_and_an_unknown_one_no_reference(posterior):
    with pytest.raises(ValueError, match="Pairs need two parameters that are not held, got c0"):
        plot_pairs(posterior, names=["c0"])
    with pytest.raises(ValueError, match=r"Unknown parameter 'c7'. Available: c0, c1, sigma"):
        plot_pairs(posterior, names=["c0", "c7"])
    with pytest.raises(ValueError, match=r"Unknown parameter 'c7'. Available: c0, c1, sigma"):
        plot_posterior(posterior, reference={"c7": 0.0})


def test_a_parameter_that_is_held_is_not_drawn(posterior):
    far = copy.deepcopy(posterior)
    far.posterior.attrs["held"] = json.dumps({"c0": 1.0})
    axes = plot_posterior(far, reference={"c0": 1.0})
    assert [ax.get_xlabel() for ax in axes] == ["$c_{1}$", r"$\sigma$"]


def test_the_graph_has_a_node_for_each_unit_of_complexity(ax):
    law = Equation("k1*D**2/(1 + k2*D)", ["D"])
    assert plot_graph(law, ax=ax) is ax
    boxed = {text.get_text(): text for text in ax.texts if text.get_bbox_patch() is not None}
    nodes = lay_out(law)
    assert len(nodes) == law.complexity
    assert {node.label for node in nodes} == set(boxed)
    assert boxed["$D$"].get_position()[1] == min(node.y for node in nodes)
    arrows = [patch for patch in ax.patches if type(patch).__name__ == "FancyArrowPatch"]
    assert len(arrows) == sum(len(node.arguments) for node in nodes)
    # Only of the division does the order matter.
    assert [text.get_text() for text in ax.texts if text.get_bbox_patch() is None] == ["1", "2"]


def test_nodes_of_a_graph_do_not_overlap():
    text = (
        "c0*exp(-c1*t)*sin(c2*t + c3)**2 - c4/(1.5 + t**c5) + c3*`a long name`*`another long name`"
    )
    ax = plot_graph(Equation(text, ["t", "a long name", "another long name"]))
    boxes = [text.get_bbox_patch() for text in ax.texts if text.get_bbox_patch() is not None]
    ax.figure.draw_without_rendering()
    boxes = [box.get_window_extent() for box in boxes]
    for place, box in enumerate(boxes):
        assert not any(box.overlaps(other) for other in boxes[:place])


@pytest.mark.parametrize("name", ["R&D", "$x$", r"\frac", "a_b_c", "{", "%#~^", "x" * 80, "v_max"])
def test_the_graph_takes_any_name(name):
    ax = plot_graph(Equation("c0*`" + name + "`", [name]))
    ax.figure.draw_without_rendering()


def test_an_equation_of_one_node_is_drawn():
    assert [text.get_text() for text in plot_graph(Equation("c0", ["x"])).texts] == ["$c_{0}$"]


def test_a_figure_as_text_is_the_same_every_time_and_is_closed():
    texts = [to_svg(plot_parity([1.0, 2.0, 3.0], make_prediction()).figure) for _ in range(2)]
    assert texts[0] == texts[1]
    assert "<text" not in texts[0]
    assert plt.get_fignums() == []


def test_rival_laws_are_drawn_with_the_places_to_measure():
    data = make_data(np.array([1.0, 2.0, 3.0]), np.array([1.0, 2.0, 2.9]), names=["x $"])
    curves = pd.DataFrame({"c0*x": [0.0, 4.0], "pole": [1e9, np.nan]}, index=[0.0, 4.0])
    ax = plot_suggestion(curves, [4.0, 1.5], data)
    labels = [line.get_label() for line in ax.get_lines()]
    assert labels == ["c0*x", "pole", "data", "measure here", "_more"]
    # A pole does not make the rest flat.
    assert ax.get_ylim()[1] < 10.0 and ax.get_xlabel() == r"x \$"
    plt.close(ax.figure)
    two = make_data(np.ones((3, 2)) * [[1], [2], [3]], np.array([1.0, 2.0, 2.9]))
    ax = plot_suggestion(curves.set_axis([1.0, 2.0]), [1.0, 2.0], two)
    assert [text.get_text() for text in ax.get_xticklabels()] == ["1", "2"]
    plt.close(ax.figure)


def test_axes_show_the_units_that_names_do_not_hold(posterior):
    X, y = SHELF
    units = {"H": "mm", "D": "cm**(1/2)", "D [mm]": "mm"}
    ax = plot_fit(GRID, make_prediction(), X, y, units=units)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("H [mm]", "D [cm$^{1/2}$]")
    ax = plot_parity(y[:3], make_prediction(), units=units)
    assert ax.get_xlabel() == "D [cm$^{1/2}$], observed"
    held = plot_residuals(y.rename("D [mm]"), y, units=units)
    assert held[0].get_ylabel() == "residual of D [mm]"
    curves = pd.DataFrame({"c0*H": [0.0, 4.0]}, index=[0.0, 4.0])
    ax = plot_suggestion(curves, [4.0], make_data(X, y), units=units)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("H [mm]", "D [cm$^{1/2}$]")
    own = {"c0": "mm", "c1": "mm**(1/2)", "sigma": ""}
    wanted = ["$c_{0}$ [mm]", "$c_{1}$ [mm$^{1/2}$]", r"$\sigma$"]
    assert [ax.get_xlabel() for ax in plot_posterior(posterior, units=own)] == wanted
    axes = plot_pairs(posterior, units=own)
    assert [ax.get_xlabel() for ax in axes[-1]] == wanted
    to_svg(axes[0, 0].figure)


def test_legends_stand_above_the_frame_and_every_entry_has_its_mark(ax):
    plot_fit(GRID, make_prediction(), *SHELF, ax=ax)
    ax.figure.draw_without_rendering()
    legend = ax.get_legend()
    assert legend.get_window_extent().y0 >= ax.get_window_extent().y1
    assert len(legend.legend_handles) == len(legend.get_texts())


@pytest.mark.parametrize("tighten", [False, True])
def test_a_legend_has_room_in_a_figure_without_a_layout(ax, tighten):
    for _ in range(2):  # two laws may be drawn into the same Axes
        plot_fit(GRID, make_prediction(), *SHELF, ax=ax)
    if tighten:
        ax.figure.tight_layout()
    ax.figure.draw_without_rendering()
    legend, frame = ax.get_legend().get_window_extent(), ax.get_window_extent()
    assert frame.y1 <= legend.y0 and legend.y1 <= ax.figure.bbox.y1
    assert frame.height > 0.5 * ax.figure.bbox.height


def test_where_a_layout_makes_room_the_frame_fills_its_cell():
    ax = plot_fit(GRID, make_prediction(), *SHELF)
    ax.figure.draw_without_rendering()
    np.testing.assert_allclose(ax.get_position().bounds, ax.get_position(original=True).bounds)


def test_many_points_lie_beneath_the_line(ax):
    x = np.linspace(1.0, 2.0, 300)
    grid = np.sort(GRID)
    draw_fit(grid, make_prediction(), make_data(x[:, None], x), ax=ax)
    line, points = ax.get_lines()
    assert points.get_zorder() < line.get_zorder() and points.get_markersize() < 3.0
    _, few = draw_fit(grid, make_prediction(), make_data(*SHELF), ax=None).get_lines()
    assert few.get_markersize() > 5.0


def test_without_intervals_the_curve_is_drawn_alone(ax):
    draw_fit(np.sort(GRID), make_prediction()[["map"]], make_data(*SHELF), ax=ax)
    assert ax.get_legend_handles_labels()[1] == ["best fit (MAP)", "data"]
    alone = plot_parity(SHELF[1][:3], make_prediction()[["map"]])
    assert alone.get_legend_handles_labels()[1] == ["best fit (MAP)", "predicted = observed"]


def test_known_errors_are_drawn_as_bars(ax):
    X, y = SHELF
    data = make_data(X, y, y_err=np.full(5, 30.0))
    draw_fit(np.sort(GRID), make_prediction(), data, ax=ax)
    bars = [
        segment
        for mark in ax.collections
        if isinstance(mark, LineCollection)
        for segment in mark.get_segments()
    ]
    np.testing.assert_allclose([np.ptp(bar[:, 1]) for bar in bars], 60.0)
    np.testing.assert_allclose([bar[:, 1].mean() for bar in bars], y)
    assert "_errors" not in [text.get_text() for text in ax.get_legend().get_texts()]


def test_no_line_is_drawn_across_a_pole(ax):
    grid = np.array([300.0, 500.0, 600.0, 900.0])
    prediction = pd.concat([make_prediction(), make_prediction().iloc[:1]], ignore_index=True)
    prediction["map"] = [900.0, 1e9, -1e9, 1300.0]
    prediction.attrs["level"] = 0.95
    plot_fit(grid, prediction, *SHELF, ax=ax)
    drawn = ax.get_lines()[0].get_ydata()
    assert np.isnan(drawn[2]) and np.isfinite(drawn[[0, 1, 3]]).all()


def test_residuals_can_be_in_units_of_their_noise():
    left, right = plot_residuals([2.0, 4.0, 8.0], [1.0, 2.0, 3.0], residuals=[0.5, -0.25, 1.0])
    np.testing.assert_array_equal(left.get_lines()[1].get_ydata(), [0.5, -0.25, 1.0])
    np.testing.assert_array_equal(right.get_lines()[1].get_ydata(), [-0.25, 0.5, 1.0])
    assert left.get_ylabel() == "residual of target, in units of its noise"


FAMILIES = pd.DataFrame(
    {
        "equation": ["c0*sqrt(H)", "c0 + c1*`H [mm]`", "c0", "c0*H + " * 20 + "c0", "failed"],
        "probability": [0.7, 0.2, 0.06, 0.04, np.nan],
        "laws": [3, 2, 1, 1, 1],
    }
)


def test_families_have_a_bar_each_and_the_rest_one_together(ax):
    assert plot_families(FAMILIES, n_bars=2, ax=ax) is ax
    np.testing.assert_allclose([bar.get_width() for bar in ax.patches], [0.7, 0.2, 0.1])
    names = [label.get_text() for label in ax.get_yticklabels()]
    assert names == ["c0*sqrt(H), and 2 like it", "c0 + c1*`H [mm]`, and 1 like it", "2 more"]
    assert [text.get_text() for text in ax.texts] == ["70.0%", "20.0%", "10.0%"]
    tops = [bar.get_y() for bar in ax.patches]
    bottom, top = ax.get_ylim()
    assert bottom > top and tops == sorted(tops)


def test_families_without_a_probability_are_refused():
    with pytest.raises(ValueError, match="No family of the table has a probability"):
        plot_families(FAMILIES.iloc[-1:])


def decades(noise=0.1):
    x = np.geomspace(0.01, 100.0, 24)
    y = 30.0 / x * np.exp(noise * np.cos(9.0 * np.arange(24.0)))
    return pd.DataFrame({"f": x}), pd.Series(y, name="S")


def test_what_spans_decades_has_logarithmic_axes():
    X, y = decades()
    settings = pmsr.Settings(noise="lognormal")
    law = weigh_equations(["c0/f"], X, y, settings=settings, random_seed=1).best
    ax = law.plot()
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")
    # All points within, and the curve is even: a straight line.
    low, high = ax.get_ylim()
    assert low < y.min() and y.max() < high
    curve = next(line for line in ax.get_lines() if line.get_label() == "best fit (MAP)")
    steps = np.diff(np.log(curve.get_xdata()))
    np.testing.assert_allclose(steps, steps[0], rtol=1e-6)
    assert law.plot_residuals()[0].get_xscale() == "log"
    plt.close("all")


def test_an_axis_stays_linear_where_something_on_it_is_negative():
    X, y = decades()
    # Noise of one size, of which the smallest values know nothing.
    law = weigh_equations(["c0/f"], X, y, random_seed=1).best
    ax = law.plot()
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "linear")
    plt.close("all")
    line = weigh_equations(["c0*H"], *load_galileo("shelf"), random_seed=1).best.plot()
    assert (line.get_xscale(), line.get_yscale()) == ("linear", "linear")
    plt.close("all")


def test_names_with_units_are_symbols_in_the_labels_of_laws():
    rows = [("c0*`V (m^3)`/`T [K]`", 0.9, 3), ("c0*`V (m^3)`", 0.1, 1)]
    ax = plot_families(pd.DataFrame(rows, columns=["equation", "probability", "laws"]))
    assert [one.get_text() for one in ax.get_yticklabels()] == ["c0*V/T, and 2 like it", "c0*V"]
    plt.close("all")


def test_a_legend_takes_no_more_rows_than_its_labels_need():
    x = np.linspace(1.0, 3.0, 8)
    y = 2.0 * x + 0.1 * np.cos(9.0 * x)
    ax = weigh_equations(["c0*x0"], x, y, random_seed=1).best.plot()
    ax.figure.draw_without_rendering()
    # Five labels in two columns: most of the figure is for the data.
    assert ax.get_position().height > 0.6
    legend = ax.get_legend().get_window_extent()
    assert legend.x1 <= ax.figure.bbox.x1
    plt.close("all")


def test_a_power_of_ten_above_an_axis_is_not_under_the_legend():
    x = np.linspace(1.0, 3.0, 8)
    y = 1e-12 * (2.0 * x + 0.1 * np.cos(9.0 * x))
    ax = weigh_equations(["c0*x0"], x, y, random_seed=1).best.plot()
    ax.figure.draw_without_rendering()
    power = ax.yaxis.get_offset_text()
    assert power.get_text() != ""
    legend = ax.get_legend().get_window_extent()
    assert power.get_window_extent().y1 <= legend.y0
    plt.close("all")


def test_a_saved_picture_has_no_empty_strip_above_its_legend(tmp_path):
    x = np.linspace(1.0, 3.0, 8)
    y = 2.0 * x + 0.1 * np.cos(9.0 * x)
    ax = weigh_equations(["c0*x0"], x, y, random_seed=1).best.plot()
    ax.figure.savefig(tmp_path / "fit.png")
    height = len(plt.imread(tmp_path / "fit.png"))
    inked = np.flatnonzero((plt.imread(tmp_path / "fit.png")[..., :3] < 0.8).any(axis=(1, 2)))
    # The constrained layout leaves 3 points at the edge, and a legend half a line of 8 points.
    assert inked[0] <= 12.0 / 72.0 * ax.figure.dpi < 0.05 * height
    plt.close("all")
