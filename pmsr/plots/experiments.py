"""The figures of the paper's experiments: against order, generation, noise; rivals; engines."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import ArrayLike, NDArray

from pmsr.equation.graph import label_of
from pmsr.files import writing
from pmsr.plots.marks import CREDIBLE, DATA, FAINT, LINE, WINNER, finish, new_axes, plain

TRUTH: dict[str, Any] = {"color": WINNER, "linestyle": "--", "linewidth": 1.5}
# Colour, line and mark of the first, second, ... of several things that are compared.
_STYLES = ((LINE, "-", "o"), (WINNER, "--", "s"), (FAINT, "-.", "^"), (CREDIBLE, ":", "D"))


def new_panels(n: int, width: float = 4.6, height: float = 3.7) -> list[Axes]:
    """Return the Axes of a new figure, side by side; each so large, in inches.

    Examples
    --------
    >>> len(new_panels(2))
    2
    >>> plt.close("all")
    """
    _, axes = plt.subplots(1, n, figsize=(n * width, height), layout="constrained", squeeze=False)
    return list(axes[0])


# Any: a figure may be part of another, and arrays of Axes have no types.
def save_png(axes: Any, path: str | Path) -> str:
    """Write the figure of one or several Axes, close it, and return the name of the file."""
    figure: Figure = np.ravel(np.array(axes, dtype=object))[0].figure
    with writing(Path(path)) as part:
        figure.savefig(part, dpi=150, format="png")
    plt.close(figure)
    return Path(path).name


def add_curve(ax: Axes, x: ArrayLike, y: ArrayLike, label: str, *, is_truth: bool = False) -> None:
    """Add a curve to a drawing of `plot_fit`, and its name to the legend; the range stays."""
    limits = ax.get_ylim()
    style = TRUTH if is_truth else {"color": "black", "linestyle": ":", "linewidth": 1.8}
    ax.plot(np.asarray(x), np.asarray(y), **style, label=label, zorder=3)
    ax.set_ylim(limits)
    finish(ax, legend=True)


def add_level(ax: Axes, level: float, label: str) -> None:
    """Add a horizontal line, and its name to the legend."""
    ax.axhline(level, color=FAINT, linestyle=":", label=label)
    finish(ax, legend=True)


def add_title(ax: Axes, title: str) -> None:
    """Write a title of ordinary size; formulas between dollar signs are typeset."""
    ax.set_title(title.replace(r"\frac", r"\dfrac"), fontsize="medium")


def same_range(axes: Sequence[Axes]) -> None:
    """Give several drawings the same range of y, the largest."""
    limits = [ax.get_ylim() for ax in axes]
    for ax in axes:
        ax.set_ylim(min(low for low, _ in limits), max(high for _, high in limits))


def plot_order(table: pd.DataFrame, *, ax: Sequence[Axes] | None = None) -> NDArray[np.object_]:
    """Draw evidence and error of polynomials against their order (Section 2.3).

    Parameters
    ----------
    table
        With the columns ``dataset``, ``order``, ``log_q``, ``log_q_se``, ``exact`` and
        ``rmse_in_sigma``. The first dataset is drawn in front.
    ax
        Two Axes; by default a new figure.

    Returns
    -------
    ndarray
        The two Axes. The first shows log q less the largest exact log q of the dataset.
    """
    left, right = new_panels(2) if ax is None else ax
    first = table["dataset"].iloc[0]
    others = "other datasets"
    for dataset, part in table.groupby("dataset", sort=False):
        if dataset == first:
            continue
        top = part["exact"].max()
        left.plot(part["order"], part["exact"] - top, color=FAINT, lw=0.8, alpha=0.6, label=others)
        right.plot(
            part["order"], part["rmse_in_sigma"], color=FAINT, lw=0.8, alpha=0.6, label=others
        )
        others = "_more"
    part = table[table["dataset"] == first]
    top = part["exact"].max()
    left.plot(part["order"], part["exact"] - top, color=LINE, label="exact")
    left.errorbar(
        part["order"],
        part["log_q"] - top,
        2 * part["log_q_se"],
        fmt="D",
        color=WINNER,
        capsize=3,
        label="Sequential Monte Carlo",
    )
    right.plot(part["order"], part["rmse_in_sigma"], "o-", color=LINE, label="first dataset")
    low = part["exact"].min() - top
    left.set(xlabel="order of the polynomial", ylabel="log q less its maximum")
    left.set_ylim(1.25 * low, max(1.5, -0.08 * low))
    right.set(xlabel="order of the polynomial", ylabel="RMSE / σ of the noise")
    right.axhline(1.0, color=FAINT, linestyle=":", label="noise")
    right.set_ylim(bottom=0.0)
    for panel in (left, right):
        panel.xaxis.set_major_locator(MaxNLocator(integer=True))
        finish(panel, legend=True)
    return np.array([left, right], dtype=object)


def plot_groups(
    table: pd.DataFrame,
    x: str,
    y: str,
    *,
    by: str = "engine",
    marks: bool = False,
    ax: Axes | None = None,
) -> Axes:
    """Draw the median of several runs, with the middle half of them as a band, for every group.

    Parameters
    ----------
    table
        One row a run and value of ``x``.
    x, y, by
        Columns: what to draw against what, and what tells the groups apart.
    marks
        Whether to mark the values of ``x``.
    ax
        Where to draw; by default a new figure.

    Returns
    -------
    Axes
        Labelled with the names of the columns.
    """
    ax = ax or new_axes(4.6, 3.7)
    for (name, part), (color, line, mark) in zip(
        table.groupby(by, sort=False), _STYLES, strict=False
    ):
        quartiles = part.groupby(x)[y].quantile(np.array([0.25, 0.5, 0.75])).unstack()
        places = quartiles.index.to_numpy()
        ax.fill_between(places, quartiles[0.25], quartiles[0.75], color=color, alpha=0.15, lw=0)
        ax.plot(
            places,
            quartiles[0.5],
            color=color,
            linestyle=line,
            marker=mark if marks else None,
            label=plain(str(name)),
        )
    ax.set(xlabel=plain(x), ylabel=plain(y))
    finish(ax, legend=True)
    return ax


def plot_rivals(
    table: pd.DataFrame, *, names: Mapping[str, str] | None = None, ax: Axes | None = None
) -> Axes:
    """Draw the evidence of equations below one another, best first.

    Parameters
    ----------
    table
        With the columns ``equation``, ``log_q``, ``log_q_se`` and ``is_law``.
    names
        What to write instead of an equation, such as its LaTeX between dollar signs.
    ax
        Where to draw; by default a new figure.

    Returns
    -------
    Axes
        With log q less that of the best; the laws are set off by colour and shape.
    """
    rows = table.sort_values("log_q", ascending=False).reset_index(drop=True)
    ax = ax or new_axes(6.4, 0.9 + 0.47 * len(rows))
    behind = rows["log_q"] - rows["log_q"].max()
    for is_law, color, mark, label in (
        (False, LINE, "o", "rivals"),
        (True, WINNER, "D", "the true law"),
    ):
        part = rows["is_law"].astype(bool) == is_law
        if part.any():
            ax.errorbar(
                behind[part],
                rows.index[part],
                xerr=2 * rows["log_q_se"][part],
                fmt=mark,
                color=color,
                capsize=3,
                label=label,
            )
    texts = [(names or {}).get(text, plain(text)) for text in rows["equation"]]
    ax.set_yticks(range(len(rows)), [text.replace(r"\frac", r"\dfrac") for text in texts])
    ax.invert_yaxis()
    ax.margins(y=0.08)
    ax.grid(axis="x", color="#e5e5e5", linewidth=0.8)
    ax.set_axisbelow(True)
    ax.set(xlabel="log q less that of the best")
    finish(ax, legend=True)
    return ax


def plot_curves(
    x: ArrayLike,
    curves: Sequence[tuple[ArrayLike, ArrayLike | None, ArrayLike | None]],
    truth: ArrayLike,
    data: Sequence[tuple[ArrayLike, ArrayLike]],
    *,
    ax: Axes | None = None,
) -> Axes:
    """Draw what one engine predicts from several datasets of the same law.

    Parameters
    ----------
    x
        Where the curves are given, of shape (n,).
    curves
        For every dataset the curve, and the ends of its interval or None, each of shape (n,).
    truth
        The law.
    data
        The datasets: x and y.
    ax
        Where to draw; by default a new figure.

    Returns
    -------
    Axes
        The range of y is that of the law and the data, with some room.
    """
    ax = ax or new_axes(4.6, 3.7)
    place = np.asarray(x)
    for k, ((curve, low, high), (points, values)) in enumerate(zip(curves, data, strict=True)):
        color, line, mark = _STYLES[k % len(_STYLES)]
        if low is not None and high is not None:
            ax.fill_between(place, np.asarray(low), np.asarray(high), color=color, alpha=0.15, lw=0)
        ax.plot(place, np.asarray(curve), color=color, linestyle=line, label=f"dataset {k + 1}")
        style = DATA | {"marker": mark, "markeredgecolor": color, "markersize": 4.0}
        ax.plot(np.asarray(points), np.asarray(values), **style)
    ax.plot(place, np.asarray(truth), color="black", linewidth=1.0, label="true law")
    heights = np.concatenate([np.asarray(truth), *(np.asarray(values) for _, values in data)])
    room = 0.35 * np.ptp(heights)
    end = max(float(np.max(np.asarray(points))) for points, _ in data)
    if place.max() > end:
        ax.axvspan(end, place.max(), color="#f2f2f2", zorder=0, label="no data here")
    ax.set(
        xlim=(place.min(), place.max()),
        ylim=(heights.min() - room, heights.max() + 2.0 * room),
    )
    finish(ax, legend=True)
    return ax


def plot_datasets(
    x: ArrayLike,
    truth: ArrayLike,
    data: Sequence[tuple[ArrayLike, ArrayLike]],
    names: Sequence[str],
    *,
    ax: Axes | None = None,
) -> Axes:
    """Draw several datasets around the law they come from.

    Parameters
    ----------
    x, truth
        The law, each of shape (n,).
    data, names
        The datasets, x and y of each, and what the legend calls them.
    ax
        Where to draw; by default a new figure.

    Returns
    -------
    Axes
        With a mark of its own for every dataset.
    """
    ax = ax or new_axes()
    ax.plot(np.asarray(x), np.asarray(truth), color="black", linewidth=1.0, label="law")
    colors = plt.get_cmap("viridis")(np.linspace(0.0, 0.9, len(data)))
    marks = "osD^vP*X"
    for k, ((places, values), name) in enumerate(zip(data, names, strict=True)):
        style = DATA | {"marker": marks[k % len(marks)], "markeredgecolor": colors[k]}
        ax.plot(np.asarray(places), np.asarray(values), **style, label=plain(name))
    finish(ax, legend=True)
    return ax


def plot_draws(
    draws: Mapping[str, ArrayLike], *, pair: tuple[str, str] | None = None
) -> NDArray[np.object_]:
    """Draw a posterior with separate modes: a histogram of every parameter, and one pair.

    ArviZ's density would blur narrow modes that are far apart.

    Parameters
    ----------
    draws
        The draws of every parameter, by its name, each of shape (n,).
    pair
        Two of them to be drawn against each other.

    Returns
    -------
    ndarray
        One Axes for each parameter, and the last for the pair.
    """
    n_panels = len(draws) + (pair is not None)
    axes = new_panels(n_panels, 2.6, 2.7)
    for ax, (name, values) in zip(axes, draws.items(), strict=False):
        ax.hist(np.asarray(values), bins=60, color=CREDIBLE, edgecolor=LINE, histtype="stepfilled")
        ax.set(xlabel=label_of(name))
        ax.set_yticks([])
        ax.spines["left"].set_visible(False)
    if pair is not None:
        x, y = (np.asarray(draws[name]) for name in pair)
        axes[-1].plot(x, y, ".", color=LINE, markersize=3, alpha=0.3, rasterized=True)
        axes[-1].set(xlabel=label_of(pair[0]), ylabel=label_of(pair[1]))
    for ax in axes:
        ax.xaxis.set_major_locator(MaxNLocator(4))
        finish(ax)
    return np.array(axes, dtype=object)


def plot_accuracy(table: pd.DataFrame, *, ax: Sequence[Axes] | None = None) -> NDArray[np.object_]:
    """Draw the error of log q, and the time it takes, against the number of parameters.

    Parameters
    ----------
    table
        One row a run: ``engine``, ``n_parameters``, ``exact``, ``log_q``, ``error`` (log q less
        the exact one for the engine's prior) and ``milliseconds``.
    ax
        Three Axes; by default a new figure.

    Returns
    -------
    ndarray
        The three Axes, with every run as a point and the means as a line.
    """
    values, left, right = new_panels(3, 4.2, 3.7) if ax is None else ax
    exact = table.groupby("n_parameters")["exact"].first()
    values.plot(exact.index, exact, color="black", linewidth=1.0, label="exact (bounded σ)")
    engines = list(dict.fromkeys(table["engine"]))
    for k, (engine, (color, line, mark)) in enumerate(zip(engines, _STYLES, strict=False)):
        part = table[table["engine"] == engine]
        shift = 0.16 * (k - 0.5 * (len(engines) - 1))
        for panel, column in ((values, "log_q"), (left, "error"), (right, "milliseconds")):
            finite = part[np.isfinite(part[column])]
            beside = 0.0 if panel is values else shift
            places = finite["n_parameters"] + beside
            panel.plot(places, finite[column], mark, color=color, markersize=3, alpha=0.35)
            means = finite.groupby("n_parameters")[column].mean()
            panel.plot(
                means.index.to_numpy() + beside,
                means,
                color=color,
                linestyle=line,
                marker=mark,
                markersize=6,
                label=plain(str(engine)),
            )
    left.axhline(0.0, color=FAINT, linewidth=1.0)
    values.set(xlabel="parameters", ylabel="log q")
    left.set(xlabel="parameters", ylabel="error of log q (nats)")
    right.set(xlabel="parameters", ylabel="CPU time of one equation (ms)", yscale="log")
    for panel in (values, left, right):
        panel.xaxis.set_major_locator(MaxNLocator(integer=True))
        finish(panel, legend=panel is values)
    return np.array([values, left, right], dtype=object)
