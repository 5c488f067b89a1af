"""The posterior of the parameters, drawn by ArviZ; what differs between its versions stays here."""

import json
import warnings
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import Any

import arviz as az
import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from pmsr.equation.graph import label_of
from pmsr.plots.marks import CREDIBLE, LINE, WINNER, finish, with_unit

IS_NEW = int(version("arviz").split(".")[0]) >= 1
MAX_PAIRS = 6  # parameters whose pairs fit into a picture


# A posterior is Any because its type depends on ArviZ.
def plot_posterior(
    posterior: Any,
    *,
    reference: Mapping[str, float] | None = None,
    reference_label: str = "reference",
    level: float = 0.95,
    units: Mapping[str, str] | None = None,
) -> NDArray[np.object_]:
    r"""Draw the posterior density of every parameter and of the noise.

    Parameters
    ----------
    posterior
        The ArviZ data of :func:`pmsr.sample_posterior`.
    reference, reference_label
        Values to mark, by the parameter's name, such as those of least squares, and what the
        legend calls them.
    level
        Probability of the credible intervals, which leave out the same probability on either side.
    units
        Units of the parameters and of sigma by name, for the axes, such as
        ``FittedEquation.parameter_units``.

    Returns
    -------
    ndarray
        One Axes for each parameter that is not held, and the last for sigma, with the mean as a
        point and the interval as a bar. Of a distribution with long tails the middle is shown.
        ArviZ 1.x makes its own figure, so there is no ``ax``.

    Examples
    --------
    >>> from pmsr.data import load_galileo
    >>> from pmsr.evidence.posterior import sample_posterior
    >>> idata = sample_posterior("c0*sqrt(H)", *load_galileo("shelf"), random_seed=1)
    >>> [ax.get_xlabel() for ax in plot_posterior(idata)]
    ['$c_{0}$', '$\\sigma$']
    >>> plt.close("all")
    """
    names = _free_names(posterior)
    if not names:
        raise ValueError(
            "A posterior needs a parameter that is not held, or a sigma that is not known, got "
            "none. Use plot_fit."
        )
    reference = _checked(reference, posterior)
    middle, limits = _middle(posterior, names)
    axes = _densities(middle, names)
    tails = [(1.0 - level) / 2.0, (1.0 + level) / 2.0]
    for ax, name in zip(axes, names, strict=True):
        draws = np.asarray(posterior.posterior[name], dtype=np.float64).ravel()
        _style_density(ax)
        top = max(np.max(line.get_ydata()) for line in ax.get_lines())
        low = -0.07 * top
        interval = f"{100 * level:g} % credible interval"
        ax.plot(np.quantile(draws, tails), [low, low], color=CREDIBLE, linewidth=5, label=interval)
        ax.plot(draws.mean(), low, "o", color=LINE, markersize=5, label="posterior mean")
        if name in reference:
            ax.axvline(reference[name], color=WINNER, linestyle="--", label=reference_label)
        label = with_unit(label_of(name), (units or {}).get(name, ""))
        ax.set(xlabel=label, ylim=(2.2 * low, 1.08 * top), xlim=limits[name])
        _tidy(ax)
        ax.spines["left"].set_visible(False)
        ax.set_yticks([])
    # Not every parameter has a reference.
    named: dict[str, Any] = {}
    for ax in axes:
        handles, labels = ax.get_legend_handles_labels()
        named |= dict(zip(labels, handles, strict=True))
    labels = list(named)
    axes[0].figure.legend(
        list(named.values()),
        labels,
        loc="outside lower center",
        ncols=1 if len(names) == 1 else len(labels),
        frameon=False,
        fontsize="small",
    )
    return axes


def plot_pairs(
    posterior: Any,
    *,
    names: Sequence[str] | None = None,
    reference: Mapping[str, float] | None = None,
    units: Mapping[str, str] | None = None,
) -> NDArray[np.object_]:
    """Draw the draws of every two parameters against each other.

    Parameters
    ----------
    posterior
        The ArviZ data of :func:`pmsr.sample_posterior`.
    names
        Parameters to draw, "sigma" among them; by default the first six that are not held.
    reference
        Values to mark, by the parameter's name, such as those of least squares.
    units
        Units of the parameters and of sigma by name, for the axes, such as
        ``FittedEquation.parameter_units``.

    Returns
    -------
    ndarray
        Axes of shape (n, n) with the pairs below the diagonal and the densities on it; None above.
        ArviZ 1.x makes its own figure, so there is no ``ax``.
    """
    free = _free_names(posterior)
    if names is None:
        names = free if len(free) <= MAX_PAIRS else free[:MAX_PAIRS]
    for name in names:
        if name not in free:
            raise ValueError(f"Unknown parameter {name!r}. Available: {', '.join(free)}.")
    if len(names) < 2:
        raise ValueError(
            f"Pairs need two parameters that are not held, got {', '.join(names) or 'none'}. "
            "Use plot_posterior."
        )
    reference = _checked(reference, posterior)
    middle, limits = _middle(posterior, names)
    axes = _scatters(middle, list(names))
    for row, column in np.ndindex(len(names), len(names)):
        if column > row:
            continue
        # Any: NumPy does not know what its objects are.
        ax: Any = axes[row, column]
        x, y = names[column], names[row]
        if row == column:
            _style_density(ax)
            ax.set_yticks([])
        else:
            for mark in ax.collections:
                # Thousands of points: as an image.
                mark.set(color=LINE, alpha=0.25, linewidth=0.0, sizes=[7.0], rasterized=True)
        if x in reference:
            ax.axvline(reference[x], color=WINNER, linestyle="--", linewidth=1.2)
        if y in reference and row != column:
            ax.axhline(reference[y], color=WINNER, linestyle="--", linewidth=1.2)
        _tidy(ax)
        ax.set_xlim(limits[x])
        if row != column:
            ax.set_ylim(limits[y])
        is_last, is_first = row == len(names) - 1, column == 0 and row > 0
        labels = [with_unit(label_of(name), (units or {}).get(name, "")) for name in (x, y)]
        ax.set_xlabel(labels[0] if is_last else "")
        ax.set_ylabel(labels[1] if is_first else "")
        ax.tick_params(labelbottom=is_last, labelleft=is_first)
        ax.xaxis.get_offset_text().set_visible(is_last)
        ax.yaxis.get_offset_text().set_visible(is_first)
    return axes


def _free_names(posterior: Any) -> list[str]:
    """Parameters that vary, then sigma, if it is one."""
    held = json.loads(posterior.posterior.attrs.get("held", "{}"))
    return [name for name in _names(posterior) if name not in held]


def _names(posterior: Any) -> list[str]:
    """All parameters; with known errors sigma is none."""
    names = [*json.loads(posterior.posterior.attrs["parameters"]), "sigma"]
    return [name for name in names if name in posterior.posterior]


def _checked(reference: Mapping[str, float] | None, posterior: Any) -> dict[str, float]:
    names = _names(posterior)
    for name in reference or {}:
        if name not in names:
            raise ValueError(f"Unknown parameter {name!r}. Available: {', '.join(names)}.")
    return dict(reference or {})


def _middle(posterior: Any, names: Sequence[str]) -> tuple[Any, dict[str, tuple[float, float]]]:
    """Pull the few draws of long tails in, and return the range of x that leaves them out.

    One draw in a thousand can lie so far out that the rest would be a line in the picture, and
    that the grid of ArviZ's density would step over it.
    """
    draws: dict[str, Any] = {}
    limits = {}
    for name in names:
        values = np.asarray(posterior.posterior[name], dtype=np.float64)
        low = np.quantile(values, 0.005, method="higher")
        high = np.quantile(values, 0.995, method="lower")
        room = 0.5 * (high - low)
        low, high = max(values.min(), low - room), min(values.max(), high + room)
        draws[name] = (("chain", "draw"), np.clip(values, low, high))
        inner = 0.02 * (high - low)
        is_cut = values.min() < low, values.max() > high
        limits[name] = (
            low + (inner if is_cut[0] else -inner),
            high - (inner if is_cut[1] else -inner),
        )
    group = xr.Dataset(draws)
    # Any: ArviZ's functions are not the same in its two versions.
    arviz: Any = az
    if IS_NEW:
        return xr.DataTree.from_dict({"posterior": group}), limits
    return arviz.InferenceData(posterior=group), limits


def _densities(posterior: Any, names: list[str]) -> NDArray[np.object_]:
    """Let ArviZ draw the densities, without its own texts and intervals."""
    arviz: Any = az
    n_columns = min(len(names), 3)
    n_rows = -(-len(names) // n_columns)
    size = (2.9 * n_columns, 2.2 * n_rows + 0.3)
    if IS_NEW:
        hidden = ("credible_interval", "point_estimate", "point_estimate_text", "title")
        drawn = arviz.plot_dist(
            posterior,
            var_names=names,
            kind="kde",
            backend="matplotlib",
            visuals=dict.fromkeys(hidden, False),
            col_wrap=n_columns,
            figure_kwargs={"figsize": size, "figsize_units": "inches"},
        )
        axes = [drawn.viz["plot"][name].item() for name in names]
        axes[0].figure.set_layout_engine("constrained")
    else:
        _, grid = plt.subplots(n_rows, n_columns, figsize=size, layout="constrained", squeeze=False)
        axes = grid.ravel().tolist()
        for unused in axes[len(names) :]:
            unused.remove()
        axes = axes[: len(names)]
        for ax, name in zip(axes, names, strict=True):
            _draw_old(ax, posterior, [name, name])
    return np.array(axes, dtype=object)


def _scatters(posterior: Any, names: list[str]) -> NDArray[np.object_]:
    """Let ArviZ draw the pairs; return its Axes, None above the diagonal."""
    arviz: Any = az
    n = len(names)
    size = (1.9 * n + 0.6, 1.7 * n + 0.6)
    axes: Any
    if IS_NEW:
        drawn = arviz.plot_pair(
            posterior,
            var_names=names,
            backend="matplotlib",
            marginal=True,
            triangle="lower",
            figure_kwargs={"figsize": size, "figsize_units": "inches"},
        )
        axes = np.array(drawn.viz["plot"].values, dtype=object)
        axes[0, 0].figure.set_layout_engine("constrained")
    else:
        _, axes = plt.subplots(n, n, figsize=size, layout="constrained", squeeze=False)
        for row, column in np.ndindex(n, n):
            if column > row:
                axes[row, column].remove()
            else:
                _draw_old(axes[row, column], posterior, [names[column], names[row]])
    axes[np.triu_indices(n, 1)] = None
    return np.asarray(axes)


def _draw_old(ax: Axes, posterior: Any, pair: list[str]) -> None:
    """Let ArviZ 0.23 draw one pair, or of the same name the density."""
    arviz: Any = az
    with warnings.catch_warnings():
        # It calls Matplotlib 3.11 in a way that 3.13 will no longer understand.
        warnings.filterwarnings("ignore", message=".*normalize_kwargs", category=DeprecationWarning)
        if pair[0] == pair[1]:
            arviz.plot_dist(np.asarray(posterior.posterior[pair[0]]).ravel(), ax=ax)
        else:
            arviz.plot_pair(posterior, var_names=pair, ax=ax, scatter_kwargs={"marker": "o"})


def _style_density(ax: Axes) -> None:
    for line in ax.get_lines():
        line.set(color=LINE, linewidth=1.5)
    for filled in list(ax.collections):
        filled.remove()


def _tidy(ax: Axes) -> None:
    """Few ticks, so that long numbers do not touch; a power of ten is written once."""
    ax.xaxis.set_major_locator(MaxNLocator(3))
    if len(ax.get_yticks()):
        ax.yaxis.set_major_locator(MaxNLocator(4))
    ax.ticklabel_format(style="sci", scilimits=(-3, 4), useMathText=True)
    ax.tick_params(labelsize="small")
    for label in (ax.xaxis.label, ax.yaxis.label):
        label.set_fontsize("medium")
    finish(ax)
