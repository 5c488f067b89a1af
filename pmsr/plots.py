"""Drawings of numbers that other modules computed; each returns its Axes."""

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from pmsr.data import check_X, make_data

# Blues whose lightness differs enough for grayscale and for every kind of colour vision.
LINE, CREDIBLE, PREDICTION, POINTS = "#08306b", "#6baed6", "#c6dbef", "#000000"


# X_grid, X and y are Any as in `data`: what users hand over is recognised by what it can do.
def plot_fit(
    X_grid: Any,
    prediction: pd.DataFrame,
    X: Any,
    y: Any,
    *,
    level: float = 0.95,
    ax: Axes | None = None,
) -> Axes:
    """Draw an equation of one variable through its data, with its two intervals.

    Parameters
    ----------
    X_grid
        Values of the variable, in any order.
    prediction
        What :func:`pmsr.predict` returned for ``X_grid``.
    X, y
        The data.
    level
        Probability of the intervals, that of the prediction. It goes into the legend.
    ax
        Where to draw; by default a new figure.

    Returns
    -------
    Axes
        With the best fit (maximum a posteriori), the credible interval (theta only), the
        prediction interval (theta and sigma) and the data.

    Examples
    --------
    >>> from pmsr.data import load_galileo
    >>> from pmsr.prediction import predict
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
            f"{', '.join(data.names)}. Plot the predictions against the observations instead."
        )
    x = check_X(X_grid, data.names)[:, 0]
    _check_prediction(prediction, len(x), level)
    order = np.argsort(x, kind="stable")
    x, drawn = x[order], prediction.iloc[order]

    if ax is None:
        _, ax = plt.subplots(figsize=(6.0, 4.0), layout="constrained")
    probability = f"{100 * level:g} %"
    for kind, color in (("prediction", PREDICTION), ("credible", CREDIBLE)):
        ax.fill_between(
            x,
            drawn[f"{kind}_low"].to_numpy(),
            drawn[f"{kind}_high"].to_numpy(),
            color=color,
            linewidth=0.0,
            label=f"{probability} {kind} interval",
        )
    ax.plot(x, drawn["map"].to_numpy(), color=LINE, linewidth=1.5, label="best fit (MAP)")
    ax.plot(
        data.X[:, 0],
        data.y,
        linestyle="none",
        marker="o",
        markersize=5.5,
        markerfacecolor="white",
        markeredgecolor=POINTS,
        markeredgewidth=1.2,
        label="data",
    )
    ax.set(xlabel=data.names[0], ylabel=data.target)
    ax.margins(x=0.0)
    ax.spines[["top", "right"]].set_visible(False)
    handles, labels = ax.get_legend_handles_labels()
    ax.legend(handles[::-1], labels[::-1], frameon=False)
    return ax


def _check_prediction(prediction: pd.DataFrame, n_rows: int, level: float) -> None:
    if len(prediction) != n_rows:
        raise ValueError(
            f"prediction must have a row for each row of X_grid, got {len(prediction)} and "
            f"{n_rows}. Use predict(posterior, X_grid)."
        )
    found = prediction.attrs.get("level", level)
    if found != level:
        raise ValueError(
            f"level must be that of the prediction, {found:g}, got {level!r}. "
            f"Pass level={found:g}, or predict again."
        )
