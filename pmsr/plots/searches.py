"""What a search has found, and how it went."""

from collections.abc import Sequence
from typing import Literal

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.text import Annotation
from matplotlib.ticker import MaxNLocator
from matplotlib.transforms import Bbox
from numpy.typing import NDArray

from pmsr.equation.notation import percent
from pmsr.equation.symbols import shorten
from pmsr.laws.order import pareto_front
from pmsr.plots.marks import CREDIBLE, FAINT, LINE, MANY, WINNER, finish, new_axes, plain

Floats = NDArray[np.float64]

LEAST_NATS = 3.0  # to either side of a front: odds of 20 to 1
MAX_LABEL = 34  # characters of an equation that is written into the picture
# Where a label may stand, seen from its point: offset in points, and how it is aligned.
_CORNERS = (
    (8, 7, "left", "bottom"),
    (8, -7, "left", "top"),
    (-8, 7, "right", "bottom"),
    (-8, -7, "right", "top"),
    (0, 12, "center", "bottom"),
    (0, -12, "center", "top"),
)


def plot_front(
    table: pd.DataFrame,
    *,
    measure: Literal["score", "log_q", "rmse"] = "log_q",
    winner: str | None = None,
    n_labels: int = 5,
    ax: Axes | None = None,
) -> Axes:
    """Draw evidence or error against complexity, with the best that each complexity can do.

    Parameters
    ----------
    table
        With the columns ``equation``, ``complexity`` and the measure's, and ``log_q_se``, as
        :func:`pmsr.compare` returns it. Failed equations are left out.
    measure
        What to draw: the score, log q + log prior, or log q, larger is better; or the root mean
        squared error.
    winner
        Name of the equation to point out.
    n_labels
        How many equations of the front are written out: the winner, then those that gain most over
        what is simpler. One for which there is no room is left out.
    ax
        Where to draw; by default a new figure.

    Returns
    -------
    Axes
        Equations far below the front are not drawn; the label of the axis says how many.

    Examples
    --------
    >>> columns = ["equation", "complexity", "log_q", "log_q_se"]
    >>> rows = [("c0*sqrt(H)", 4, -13.1, 0.1), ("c0 + c1*H", 5, -16.3, 0.1), ("c0", 1, -19.8, 0.1)]
    >>> table = pd.DataFrame(rows, index=["root", "line", "constant"], columns=columns)
    >>> ax = plot_front(table, winner="root")
    >>> ax.get_lines()[0].get_ydata().tolist()
    [-19.8, -13.1]
    >>> plt.close(ax.figure)
    """
    labels = {
        "score": "score (larger is better)",
        "log_q": "log q (larger is better)",
        "rmse": "RMSE of the best fit",
    }
    if measure not in labels:
        raise ValueError(f"Unknown measure {measure!r}. Available: {', '.join(labels)}.")
    shown = table[np.isfinite(table[measure].astype(float))]
    if "failure" in shown:
        shown = shown[shown["failure"].isna()]
    if shown.empty:
        raise ValueError(f"No equation of the table has a finite {measure}: nothing to draw.")
    sign = -1.0 if measure == "rmse" else 1.0
    size = shown["complexity"].to_numpy(dtype=np.float64)
    value = shown[measure].to_numpy(dtype=np.float64)
    front = pareto_front((sign * value).tolist(), size.tolist())

    ax = ax or new_axes()
    end = size.max() + 0.5
    ax.plot(size[front], value[front], drawstyle="steps-post", color=LINE, label="Pareto front")
    ax.plot([size[front[-1]], end], value[[front[-1]] * 2], color=LINE, label="_more")
    if measure != "rmse":
        error = shown["log_q_se"].to_numpy(dtype=np.float64)
        ax.errorbar(size, value, error, fmt="none", ecolor=FAINT, elinewidth=1.0, capsize=2.0)
    others = [k for k in range(len(size)) if k not in front]
    ax.plot(
        size[others],
        value[others],
        "o",
        color=FAINT,
        markersize=4,
        label="_more",
        rasterized=len(size) > MANY,
    )
    ax.plot(size[front], value[front], "o", color=LINE, markersize=5.5, label="_more")
    chosen = list(shown.index).index(winner) if winner in shown.index else None
    if chosen is not None:
        ax.plot(
            size[chosen], value[chosen], "D", color=WINNER, markersize=9, zorder=4, label="winner"
        )
    beyond = _focus(ax, value, value[front if chosen is None else [*front, chosen]], sign)
    ax.set(
        xlabel=f"complexity (nodes of the graph){beyond}",
        ylabel=labels[measure],
        xlim=(size.min() - 0.5, end),
    )
    ax.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    finish(ax, legend=True)
    gains = np.diff(sign * value[front], prepend=-np.inf)
    labelled = [front[k] for k in np.argsort(-gains, kind="stable")]
    if chosen is not None:
        labelled = [chosen, *(k for k in labelled if k != chosen)]
    texts = shorten([str(text) for text in shown["equation"]])
    _label(
        ax,
        [(size[k], value[k], texts[k]) for k in labelled[:n_labels]],
        np.column_stack([size, value]),
        (np.append(size[front], end), np.append(value[front], value[front[-1]])),
    )
    return ax


def plot_families(table: pd.DataFrame, *, n_bars: int = 8, ax: Axes | None = None) -> Axes:
    """Draw the probabilities of the families, the most probable on top.

    Parameters
    ----------
    table
        With the columns ``equation``, ``probability`` and ``laws``, as
        :attr:`pmsr.result.result.Result.family_table`.
    n_bars
        How many families have a bar; the others share one.
    ax
        Where to draw; by default a new figure.

    Returns
    -------
    Axes
        With a bar for each family, named by its best law.

    Examples
    --------
    >>> rows = [("c0*sqrt(H)", 0.9, 3), ("c0 + c1*H", 0.1, 1)]
    >>> ax = plot_families(pd.DataFrame(rows, columns=["equation", "probability", "laws"]))
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['c0*sqrt(H), and 2 like it', 'c0 + c1*H']
    >>> plt.close(ax.figure)
    """
    known = table[table["probability"].astype(float) > 0.0]
    if known.empty:
        raise ValueError("No family of the table has a probability: nothing to draw.")
    shown, rest = known.iloc[:n_bars], known.iloc[n_bars:]
    shares = shown["probability"].astype(float).to_list()
    names = []
    texts = shorten([str(text) for text in shown["equation"]])
    for text, laws in zip(texts, shown["laws"], strict=True):
        text = text if len(text) <= MAX_LABEL else f"{text[: MAX_LABEL - 1]}\N{HORIZONTAL ELLIPSIS}"
        names.append(plain(text) + (f", and {laws - 1} like it" if laws > 1 else ""))
    if len(rest):
        shares.append(float(rest["probability"].astype(float).sum()))
        names.append(f"{len(rest)} more" if len(rest) > 1 else "one more")
    ax = ax or new_axes(6.0, 0.9 + 0.36 * len(shares))
    places = np.arange(len(shares))
    ax.barh(places, shares, height=0.62, color=[LINE] + [CREDIBLE] * (len(shares) - 1))
    for place, share in zip(places, shares, strict=True):
        ax.annotate(percent(share), (share, place), (4, 0), textcoords="offset points", va="center")
    ax.set_yticks(places, names)
    ax.set(xlabel="probability of the family", xlim=(0.0, 1.18), ylim=(len(shares) - 0.4, -0.6))
    ax.set_xticks(np.linspace(0.0, 1.0, 5))
    finish(ax)
    return ax


_HISTORY = (
    ("log q", (("log_q_best", "best"), ("log_q_mean", "mean"))),
    ("score", (("score_best", "best"), ("score_median", "median"), ("score_mean", "mean"))),
    ("complexity", (("complexity_best", "best"), ("complexity_mean", "mean"))),
    ("parameters", (("parameters_best", "best"), ("parameters_mean", "mean"))),
    ("equations", (("n_distinct", "distinct"),)),
    ("RMSE", (("rmse_best", "best"), ("rmse_train", "train"), ("rmse_test", "test"))),
)


def plot_history(history: pd.DataFrame, *, ax: Sequence[Axes] | None = None) -> NDArray[np.object_]:
    """Draw how a search went, generation by generation.

    Parameters
    ----------
    history
        One row a generation, numbered by the column ``generation`` or else by the index. Drawn is
        what there is of ``log_q_best`` and ``log_q_mean`` (or ``score_...``), ``complexity_...``,
        ``parameters_...``, ``n_distinct``, and ``rmse_best``, ``rmse_train``, ``rmse_test``.
    ax
        As many Axes as there are panels; by default a new figure.

    Returns
    -------
    ndarray
        The Axes, one for each quantity.

    Examples
    --------
    >>> history = pd.DataFrame({"generation": [0, 1, 2], "score_best": [-30.0, -12.0, -11.0]})
    >>> axes = plot_history(history)
    >>> [panel.get_ylabel() for panel in axes]
    ['score, best']
    >>> plt.close(axes[0].figure)
    """
    panels = []
    for name, series in _HISTORY:
        present = [(column, label) for column, label in series if column in history]
        if present:
            panels.append((name, present))
    if not panels:
        raise ValueError(
            "history has none of the columns that can be drawn, got "
            f"{', '.join(map(str, history.columns)) or 'none'}."
        )
    axes = list(_grid(len(panels)) if ax is None else ax)
    if len(axes) != len(panels):
        raise ValueError(f"ax must hold {len(panels)} Axes, one a quantity, got {len(axes)}.")
    x = (history["generation"] if "generation" in history else history.index).to_numpy()
    styles = ((LINE, "-"), (CREDIBLE, "--"), (WINNER, "-."))
    for panel, (name, present) in zip(axes, panels, strict=True):
        for (column, label), (color, line) in zip(present, styles, strict=False):
            values = _finite(history[column])
            panel.plot(x, values, color=color, linestyle=line, linewidth=1.5, label=label)
        alone = len(present) == 1
        panel.set(xlabel="generation", ylabel=f"{name}, {present[0][1]}" if alone else name)
        panel.ticklabel_format(axis="y", useOffset=False)
        drawn = [_finite(history[column]) for column, _ in present]
        _zoom(panel, drawn, is_score=name in ("log q", "score"))
        panel.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
        finish(panel, legend=not alone)
    return np.array(axes, dtype=object)


def _grid(n_panels: int) -> list[Axes]:
    """Return the Axes of a new figure, two in a row."""
    n_columns = min(n_panels, 2)
    n_rows = -(-n_panels // n_columns)
    _, grid = plt.subplots(
        n_rows,
        n_columns,
        figsize=(4.2 * n_columns, 2.5 * n_rows),
        layout="constrained",
        squeeze=False,
    )
    axes: list[Axes] = grid.ravel().tolist()
    for unused in axes[n_panels:]:
        unused.remove()
    return axes[:n_panels]


def _finite(column: pd.Series) -> Floats:
    values = column.to_numpy(dtype=np.float64)
    return np.where(np.isfinite(values), values, np.nan)


def _zoom(ax: Axes, drawn: Sequence[Floats], *, is_score: bool) -> None:
    """Choose the range of y where Matplotlib would show too much or too little."""
    best = drawn[0]
    if not np.isfinite(best).any():
        return
    low, high = float(np.nanquantile(best, 0.02)), float(np.nanmax(best))
    if is_score:
        # One hopeless equation takes the mean of a population to minus thousands.
        typical = [np.nanmedian(values) for values in drawn if np.isfinite(values).any()]
        bottom = max(min(low, *typical), high - 20.0 * max(high - low, 1.0))
        room = 0.15 * max(high - bottom, 1.0)
        ax.set_ylim(bottom - room, high + room)
    elif np.ptp(ax.get_ylim()) < 1e-3 * abs(high):
        # A constant with its rounding errors.
        ax.set_ylim(high - 0.05 * abs(high), high + 0.05 * abs(high))


def _focus(ax: Axes, value: Floats, front: Floats, sign: float) -> str:
    """Choose the range of y by the front; return in words how many equations lie beyond it."""
    low, high = float(front.min()), float(front.max())
    # Of scores one or two nats are hardly worth mentioning: no picture is of less.
    room = max(0.35 * (high - low), LEAST_NATS if sign > 0 else 0.35 * abs(high), 1e-300)
    bottom, top = low - room, high + room
    beyond = int(np.sum(value < bottom if sign > 0 else value > top))
    if not beyond:
        bottom, top = min(bottom, value.min()), max(top, value.max())
    ax.set_ylim(bottom if sign > 0 else max(bottom, 0.0), top)
    return f"; {beyond} more {'below' if sign > 0 else 'above'}" if beyond else ""


def _label(
    ax: Axes,
    labels: Sequence[tuple[float, float, str]],
    points: Floats,
    steps: tuple[Floats, Floats],
) -> None:
    """Write labels next to their points where they cover neither points nor one another."""
    figure = ax.get_figure(root=True)
    if figure is None:
        return
    # Places are known only once the figure has its layout.
    figure.draw_without_rendering()
    points = ax.transData.transform(points)
    line = ax.transData.transform(_along(*steps))
    legend = ax.get_legend()
    taken = [] if legend is None else [legend.get_window_extent()]
    for x, y, text in labels:
        text = text if len(text) <= MAX_LABEL else f"{text[: MAX_LABEL - 1]}\N{HORIZONTAL ELLIPSIS}"
        near = points[np.hypot(*(points - ax.transData.transform((x, y))).T) > 1.0]
        note = ax.annotate(
            plain(text),
            (x, y),
            xytext=(0, 0),
            textcoords="offset points",
            fontsize="small",
            zorder=5,
        )
        # Rather across the line than not at all.
        for obstacles in (np.vstack([near, line]), near):
            if any(_fits(ax, note, corner, obstacles, taken) for corner in _CORNERS):
                taken.append(note.get_window_extent())
                break
        else:
            note.remove()


def _fits(
    ax: Axes,
    note: Annotation,
    corner: tuple[float, float, str, str],
    obstacles: Floats,
    taken: Sequence[Bbox],
) -> bool:
    """Move a label to a corner and tell whether it is free there."""
    dx, dy, horizontal, vertical = corner
    note.set(horizontalalignment=horizontal, verticalalignment=vertical)
    note.xyann = (dx, dy)
    box, frame = note.get_window_extent().padded(2.0), ax.get_window_extent()
    inside = frame.x0 <= box.x0 and box.x1 <= frame.x1 and frame.y0 <= box.y0 <= box.y1 <= frame.y1
    return (
        inside
        and box.count_contains(obstacles) == 0
        and not any(box.overlaps(other) for other in taken)
    )


def _along(x: Floats, y: Floats) -> Floats:
    """Return points all along the front's steps, of shape (n, 2)."""
    corners = np.column_stack([np.repeat(x, 2)[1:], np.repeat(y, 2)[:-1]])
    fraction = np.linspace(0.0, 1.0, 50)[:, None, None]
    return np.asarray((corners[:-1] + fraction * np.diff(corners, axis=0)).reshape(-1, 2))
