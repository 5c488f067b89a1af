"""An equation against its data: the fit, predictions against observations, residuals."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from numpy.typing import ArrayLike, NDArray
from scipy.stats import norm

from pmsr.data import Data, check_X, make_data
from pmsr.evidence.diagnostics import normality
from pmsr.magnitude import spans_decades
from pmsr.plots.marks import (
    CREDIBLE,
    GROUPS,
    LINE,
    MANY,
    MARKS,
    PREDICTION,
    WINNER,
    axis_label,
    dots,
    finish,
    new_axes,
    plain,
)

Floats = NDArray[np.float64]

ROOM = 0.5  # of the target's range, to either side, beyond which nothing is drawn


# X_grid, X and y are Any as in `data`: what users hand over is recognised by what it can do.
def plot_fit(
    X_grid: Any,
    prediction: pd.DataFrame,
    X: Any,
    y: Any,
    *,
    level: float = 0.95,
    units: Mapping[str, str] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw an equation of one variable through its data, with its two intervals.

    Parameters
    ----------
    X_grid
        Values of the variable, in any order.
    prediction
        What :func:`pmsr.predict` returned for ``X_grid``, or an average over several equations;
        without intervals none are drawn.
    X, y
        The data.
    level
        Probability of the intervals, that of the prediction. It goes into the legend.
    units
        Units of columns by name, such as ``{"H": "mm"}``, for the axes; a name that holds its unit
        already, such as ``T [K]``, stays as it is.
    ax
        Where to draw; by default a new figure.

    Returns
    -------
    Axes
        With the best fit (maximum a posteriori; of an average the mean), the credible interval
        (theta only), the prediction interval (theta and sigma) and the data. Where the grid leaves
        the range of the data the ground is hatched: nothing was measured there. What leaves the
        range of the target by more than its width, such as a pole, is cut off.

    Examples
    --------
    >>> from pmsr.data import load_galileo
    >>> from pmsr.evidence.prediction import predict
    >>> X, y = load_galileo("shelf")
    >>> grid = np.linspace(0.0, 1100.0, 50)
    >>> ax = plot_fit(grid, predict("c0*sqrt(H)", grid, X=X, y=y, random_seed=1), X, y)
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('H', 'D')
    >>> plt.close(ax.figure)
    """
    data = make_data(X, y)
    if len(data.names) != 1:
        raise ValueError(
            f"plot_fit draws equations of one variable, got {len(data.names)}: "
            f"{', '.join(data.names)}. Use plot_parity, predictions against observations."
        )
    x = check_X(X_grid, data.names)[:, 0]
    _check_prediction(prediction, len(x), level, "X_grid")
    return draw_fit(x, prediction, data, level=level, units=units, ax=ax)


def draw_fit(
    x: NDArray[np.float64],
    prediction: pd.DataFrame,
    data: Data,
    *,
    level: float = 0.95,
    units: Mapping[str, str] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw what `plot_fit` draws, of values and data that are checked."""
    order = np.argsort(x, kind="stable")
    x, drawn = x[order], prediction.iloc[order]

    ax = ax or new_axes()
    probability = f"{100 * level:g} %"
    measured = data.X[:, 0].min(), data.X[:, 0].max()
    spans = [(x[0], measured[0]), (measured[1], x[-1])]
    for place, (start, end) in enumerate([(a, b) for a, b in spans if a < b]):
        ax.axvspan(
            start,
            end,
            facecolor="#f2f2f2",
            edgecolor="#bdbdbd",
            hatch="///",
            linewidth=0.0,
            zorder=0.5,
            label="_more" if place else "extrapolation: no data",
        )
    for kind, color in (("prediction", PREDICTION), ("credible", CREDIBLE)):
        if f"{kind}_low" not in drawn:  # of a law whose posterior was not sampled
            continue
        ax.fill_between(
            x,
            drawn[f"{kind}_low"].to_numpy(),
            drawn[f"{kind}_high"].to_numpy(),
            color=color,
            linewidth=0.0,
            label=f"{probability} {kind} interval",
        )
    line, label = ("map", "best fit (MAP)") if "map" in drawn else ("mean", "mean of all equations")
    lowest = drawn["prediction_low" if "prediction_low" in drawn else line].to_numpy()
    _scale(ax, data.X[:, 0], x, "x")
    _scale(ax, data.y, lowest[(x >= measured[0]) & (x <= measured[1])], "y")
    window = _window(ax, data.y)
    curve = _without_poles(drawn[line].to_numpy(dtype=np.float64), window)
    ax.plot(x, curve, color=LINE, linewidth=1.5, label=label)
    _draw_data(ax, data, dots(len(data.y)))
    return _frame(ax, data, window, units)


def _frame(
    ax: Axes, data: Data, window: tuple[float, float], units: Mapping[str, str] | None
) -> Axes:
    """Label the axes of a curve, and keep them within its window."""
    ax.set(xlabel=axis_label(data.names[0], units), ylabel=axis_label(data.target, units))
    ax.margins(x=0.0)
    bottom, top = ax.get_ylim()
    ax.set_ylim(max(bottom, window[0]), min(top, window[1]))
    finish(ax, legend=True)
    return ax


def _scale(ax: Axes, measured: Floats, drawn: Floats, axis: Literal["x", "y"]) -> None:
    """Make an axis logarithmic if measurements span decades, and all else has a place there."""
    if spans_decades(measured) and np.nanmin(drawn, initial=np.inf) > 0.0:
        ax.set(**{f"{axis}scale": "log"})


def _window(ax: Axes, y: Floats) -> tuple[float, float]:
    """Return how far up and down a curve is shown: beyond, it would squash the data."""
    if ax.get_yscale() == "log":
        ratio = (y.max() / y.min()) ** ROOM
        return float(y.min() / ratio), float(y.max() * ratio)
    width = ROOM * np.ptp(y)
    return float(y.min() - width), float(y.max() + width)


class GroupCurve(NamedTuple):
    """One of several groups: its label, a curve with intervals, and its data, of one variable."""

    label: str
    x: Floats
    prediction: pd.DataFrame
    data: Data


def draw_groups(
    curves: Sequence[GroupCurve],
    *,
    level: float = 0.95,
    units: Mapping[str, str] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw a law through several groups of data, each in a colour and with a mark of its own.

    The band is the prediction interval.
    """
    ax = ax or new_axes()
    targets = np.concatenate([one.data.y for one in curves])
    along = np.concatenate([one.data.X[:, 0] for one in curves])
    _scale(ax, along, np.concatenate([one.x for one in curves]), "x")
    lows = [
        one.prediction["prediction_low"].to_numpy()[
            (one.x >= one.data.X[:, 0].min()) & (one.x <= one.data.X[:, 0].max())
        ]
        for one in curves
    ]
    _scale(ax, targets, np.concatenate(lows), "y")
    window = _window(ax, targets)
    for place, one in enumerate(curves):
        color, mark = GROUPS[place % len(GROUPS)], MARKS[place % len(MARKS)]
        low, high = (one.prediction[f"prediction_{end}"].to_numpy() for end in ("low", "high"))
        name = "_more" if place else f"{100 * level:g} % prediction intervals"
        ax.fill_between(one.x, low, high, color=color, alpha=0.18, linewidth=0.0, label=name)
        curve = _without_poles(one.prediction["map"].to_numpy(dtype=np.float64), window)
        ax.plot(one.x, curve, color=color, linewidth=1.5)
        style = {**dots(len(targets), color), "marker": mark}
        _draw_data(ax, one.data, style, label=plain(one.label))
    return _frame(ax, curves[0].data, window, units)


# Any: Matplotlib's properties are of many types.
def _draw_data(ax: Axes, data: Data, style: Mapping[str, Any], *, label: str = "data") -> None:
    """Draw the measurements, with bars for the errors that are known."""
    if data.y_err is not None or data.X_err is not None:
        ax.errorbar(
            data.X[:, 0],
            data.y,
            yerr=data.y_err,
            xerr=None if data.X_err is None else data.X_err[:, 0],
            fmt="none",
            ecolor=style["markeredgecolor"],
            elinewidth=1.0,
            capsize=2.0,
            label="_errors",
            zorder=style.get("zorder", 2.0),
        )
    ax.plot(data.X[:, 0], data.y, **style, label=label, clip_on=False)


def _without_poles(values: Floats, window: tuple[float, float]) -> Floats:
    """Return a curve with a gap where it leaves the picture on one side and returns on the other.

    Examples
    --------
    >>> _without_poles(np.array([1.0, 9.0, -9.0, 0.0]), (0.0, 2.0))
    array([ 1.,  9., nan,  0.])
    """
    with np.errstate(invalid="ignore"):
        side = np.where(values > window[1], 1, np.where(values < window[0], -1, 0))
    gap = np.flatnonzero(side[1:] * side[:-1] == -1) + 1
    cut = values.copy()
    cut[gap] = np.nan
    return cut


def plot_parity(
    y: ArrayLike,
    prediction: pd.DataFrame,
    *,
    level: float = 0.95,
    units: Mapping[str, str] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw predictions against observations, for equations of any number of variables.

    Parameters
    ----------
    y
        The observations, shape (N,).
    prediction
        What :func:`pmsr.predict` returned for the rows of X that belong to them; without
        intervals none are drawn.
    level
        Probability of the intervals, that of the prediction.
    units
        Units of columns by name, such as ``{"H": "mm"}``, for the axes; a name that holds its unit
        already, such as ``T [K]``, stays as it is.
    ax
        Where to draw; by default a new figure.

    Returns
    -------
    Axes
        With the best fit against the observation, the prediction interval as a bar, and the line
        on which both are equal.

    Examples
    --------
    >>> from pmsr.data import load_galileo
    >>> from pmsr.evidence.prediction import predict
    >>> X, y = load_galileo("shelf")
    >>> ax = plot_parity(y, predict("c0*sqrt(H)", X, X=X, y=y, random_seed=1))
    >>> plt.close(ax.figure)
    """
    observed = np.asarray(y, dtype=np.float64).ravel()
    _check_prediction(prediction, len(observed), level, "X")
    best = prediction["map"].to_numpy(dtype=np.float64)
    ax = ax or new_axes(5.0, 4.6)
    if "prediction_low" in prediction:  # else its posterior was not sampled
        ax.vlines(
            observed,
            prediction["prediction_low"],
            prediction["prediction_high"],
            color=CREDIBLE,
            linewidth=1.6 if len(observed) <= 100 else 0.8,
            label=f"{100 * level:g} % prediction interval",
            rasterized=len(observed) > MANY,
        )
    ax.plot(observed, best, **dots(len(observed)), label="best fit (MAP)")
    ends = [np.nanmin([observed, best]), np.nanmax([observed, best])]
    ax.plot(ends, ends, color=LINE, linewidth=1.2, linestyle="--", label="predicted = observed")
    lowest = prediction["prediction_low"] if "prediction_low" in prediction else best
    for axis in ("x", "y"):
        _scale(ax, observed, np.asarray(lowest, dtype=np.float64), axis)
    name = axis_label(getattr(y, "name", None) or "target", units)
    ax.set(xlabel=f"{name}, observed", ylabel=f"{name}, predicted")
    finish(ax, legend=True)
    return ax


def plot_residuals(
    y: ArrayLike,
    predicted: ArrayLike,
    *,
    residuals: ArrayLike | None = None,
    against: Literal["prediction", "order"] = "prediction",
    units: Mapping[str, str] | None = None,
    ax: Sequence[Axes] | None = None,
) -> NDArray[np.object_]:
    """Draw what an equation leaves unexplained, and whether it looks like normal noise.

    Parameters
    ----------
    y, predicted
        Observations and the best fit at the same rows, shape (N,).
    residuals
        Residuals in units of their noise, such as ``FittedEquation.normal_residuals``, where the
        noise is not of one size; by default the difference of the other two.
    against
        What the first panel shows the residuals against: the prediction, or the order of the rows.
    units
        Units of columns by name, such as ``{"H": "mm"}``, for the axes; a name that holds its unit
        already, such as ``T [K]``, stays as it is.
    ax
        Two Axes; by default a new figure.

    Returns
    -------
    ndarray
        The two Axes: the residuals, and their quantiles against those of a normal distribution,
        with the p value of the test of Shapiro and Wilk
        (:func:`pmsr.evidence.diagnostics.normality`).

    Examples
    --------
    >>> axes = plot_residuals([1.0, 2.0, 3.0, 4.0], [1.1, 1.8, 3.0, 3.9])
    >>> axes[1].get_title()
    'Shapiro-Wilk p = 0.97'
    >>> plt.close(axes[0].figure)
    """
    if against not in ("prediction", "order"):
        raise ValueError(f"Unknown against {against!r}. Available: prediction, order.")
    fitted = np.asarray(predicted, dtype=np.float64).ravel()
    name = axis_label(getattr(y, "name", None) or "target", units)
    label = f"residual of {name}"
    if residuals is None:
        residuals = np.asarray(y, dtype=np.float64).ravel() - fitted
    else:
        label += ", in units of its noise"
    left, right = (
        plt.subplots(1, 2, figsize=(8.0, 3.6), layout="constrained")[1] if ax is None else ax
    )
    place = fitted if against == "prediction" else np.arange(1.0, len(fitted) + 1)
    draw_residuals(
        place,
        np.asarray(residuals, dtype=np.float64).ravel(),
        labels=(f"{name}, predicted" if against == "prediction" else "row", label),
        ax=left,
    )
    draw_quantiles(np.asarray(residuals, dtype=np.float64).ravel(), label=label, ax=right)
    return np.array([left, right])


def draw_residuals(place: Floats, residuals: Floats, *, labels: tuple[str, str], ax: Axes) -> Axes:
    """Draw residuals against anything, with the names of both axes."""
    ax.axhline(0.0, color=LINE, linewidth=1.2)
    _scale(ax, place, place, "x")
    ax.plot(place, residuals, **dots(len(residuals)))
    ax.set(xlabel=labels[0], ylabel=labels[1])
    finish(ax)
    return ax


def draw_quantiles(residuals: Floats, *, label: str, ax: Axes) -> Axes:
    """Draw the quantiles of residuals against normal ones."""
    finite = np.sort(residuals[np.isfinite(residuals)])
    # Blom's plotting positions.
    expected = norm.ppf((np.arange(1, len(finite) + 1) - 0.375) / (len(finite) + 0.25))
    scale = finite.std(ddof=1) if len(finite) > 1 else 0.0
    ends = np.array([expected.min(), expected.max()]) if len(finite) else np.zeros(2)
    centre = finite.mean() if len(finite) else 0.0
    ax.plot(ends, centre + scale * ends, color=LINE, linewidth=1.2)
    ax.plot(expected, finite, **dots(len(finite)))
    p = normality(residuals)
    untested = "too few residuals for a test" if len(finite) < 3 else "all are equal: no test"
    ax.set(
        xlabel="normal quantile",
        ylabel=f"{label}, sorted",
        title=untested if p is None else f"Shapiro-Wilk p = {p:.2g}",
    )
    ax.title.set_fontsize("medium")
    finish(ax)
    return ax


def _check_prediction(prediction: pd.DataFrame, n_rows: int, level: float, rows: str) -> None:
    if len(prediction) != n_rows:
        raise ValueError(
            f"prediction must have a row for each row of {rows}, got {len(prediction)} and "
            f"{n_rows}. Use predict(posterior, {rows})."
        )
    found = prediction.attrs.get("level", level)
    if found != level:
        raise ValueError(
            f"level must be that of the prediction, {found:g}, got {level!r}. "
            f"Pass level={found:g}, or predict again."
        )


MAX_LABEL = 60  # characters of an equation in a legend
_STYLES = ("-", "--", "-.", ":")


def plot_suggestion(
    curves: pd.DataFrame,
    places: ArrayLike,
    data: Data,
    *,
    units: Mapping[str, str] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw what rival laws predict, and where a measurement would tell most about them.

    Parameters
    ----------
    curves
        Predictions, a column for each law; the index holds the values of the variable, or, where
        laws have several variables, the numbers of the places.
    places
        Values of the variable at which to measure, or the numbers of the places.
    data
        The measurements, with one variable; with none or several they are not drawn.
    units
        Units of columns by name, such as ``{"H": "mm"}``, for the axes; a name that holds its unit
        already, such as ``T [K]``, stays as it is.
    ax
        Where to draw; by default a new figure.

    Returns
    -------
    Axes
        With a line for each law, or a mark for each law at each place if there are several
        variables.

    Examples
    --------
    >>> data = make_data([1.0, 2.0, 3.0], [1.0, 2.0, 2.9], names=["x"])
    >>> curves = pd.DataFrame({"c0*x": [0.0, 4.0], "c0*sqrt(x)": [0.0, 3.3]}, index=[0.0, 4.0])
    >>> ax = plot_suggestion(curves, [4.0], data)
    >>> ax.get_legend_handles_labels()[1]
    ['c0*x', 'c0*sqrt(x)', 'data', 'measure here']
    >>> plt.close(ax.figure)
    """
    ax = ax or new_axes()
    is_line = len(data.names) == 1
    x = curves.index.to_numpy(dtype=np.float64)
    shades = plt.colormaps["cividis"](np.linspace(0.0, 0.85, curves.shape[1]))
    for number, name in enumerate(curves.columns):
        y = curves[name].to_numpy(dtype=np.float64)
        if is_line:
            width = np.ptp(data.y)
            y = _without_poles(y, (data.y.min() - width, data.y.max() + width))
        # Any: Matplotlib's properties are of many types.
        style: dict[str, Any] = {"linestyle": _STYLES[number % len(_STYLES)], "linewidth": 1.8}
        if not is_line:
            style = {"linestyle": "none", "marker": "os^Dv*PX"[number % 8], "markersize": 7}
        text = str(name) if len(str(name)) <= MAX_LABEL else f"{str(name)[: MAX_LABEL - 1]}…"
        ax.plot(x, y, color=shades[number], label=plain(text), **style)
    if is_line:
        _scale(ax, data.X[:, 0], x, "x")
        _scale(ax, data.y, curves.to_numpy(dtype=np.float64), "y")
        ax.plot(data.X[:, 0], data.y, **dots(len(data.y)), label="data")
        for number, place in enumerate(np.atleast_1d(np.asarray(places, dtype=np.float64))):
            label = "measure here" if number == 0 else "_more"
            ax.axvline(place, color=WINNER, linewidth=1.4, linestyle=(0, (4, 2)), label=label)
        ax.set_xlabel(axis_label(data.names[0], units))
        y_all = np.concatenate([data.y, curves.to_numpy(dtype=np.float64).ravel()])
        low, high = data.y.min(), data.y.max()
        room = high - low
        seen = y_all[np.isfinite(y_all) & (y_all > low - room) & (y_all < high + room)]
        if ax.get_yscale() == "linear":
            ax.set_ylim(seen.min() - 0.05 * room, seen.max() + 0.05 * room)
    else:
        ax.set_xticks(x, [f"{int(number)}" for number in x])
        ax.set_xlim(x.min() - 0.5, x.max() + 0.5)
        ax.set_xlabel("suggested measurement")
    ax.set_ylabel(axis_label(data.target, units))
    finish(ax, legend=True)
    return ax
