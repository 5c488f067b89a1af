"""What the drawings have in common: colours, marks, finish, and the figure as text."""

import io
from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.transforms import Bbox

from pmsr.laws.units import unit_beside, unit_label

# Blues whose lightness differs enough for grayscale and for every kind of colour vision, and an
# orange that stands out from them for whoever sees colours; its marks have a shape of their own.
LINE, CREDIBLE, PREDICTION, POINTS = "#08306b", "#6baed6", "#c6dbef", "#000000"
WINNER, FAINT = "#d55e00", "#8c8c8c"

# Of Okabe and Ito, which differ for every kind of colour vision, and marks of their own.
GROUPS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00")
MARKS = "os^Dv*"

MANY = 1000  # more points than this are drawn as an image: each would be an element of an SVG

# Any: Matplotlib's properties are of many types.
DATA: dict[str, Any] = {
    "linestyle": "none",
    "marker": "o",
    "markersize": 5.5,
    "markerfacecolor": "white",
    "markeredgecolor": POINTS,
    "markeredgewidth": 1.2,
}

GAP = 0.02  # between a frame and its legend, as a share of the frame's height
POWER = 0.07  # the same, of a power of ten that stands in between
CROWD = 200  # more points than this are small and lie beneath the lines, which they would hide


# Any: as above.
def dots(n: int, color: str = POINTS) -> dict[str, Any]:
    """Return how so many measurements are marked.

    Examples
    --------
    >>> dots(20)["markerfacecolor"], dots(2000)["markerfacecolor"] == FAINT
    ('white', True)
    """
    if n <= CROWD:
        return {**DATA, "markeredgecolor": color, "rasterized": False}
    small = {"marker": "o", "markersize": 2.5, "markeredgewidth": 0.0, "alpha": 0.6, "zorder": 1.5}
    face = FAINT if color == POINTS else color
    return {**DATA, **small, "markerfacecolor": face, "rasterized": n > MANY}


def new_axes(width: float = 6.0, height: float = 4.0) -> Axes:
    """Return the Axes of a new figure, in inches."""
    return plt.subplots(figsize=(width, height), layout="constrained")[1]


def finish(ax: Axes, *, legend: bool = False) -> None:
    """Take away the frame's upper and right line; show the legend, last drawn first.

    It stands above the frame, where it covers nothing. In a figure whose layout makes no room for
    it, the Axes give of theirs.
    """
    ax.spines[["top", "right"]].set_visible(False)
    if not legend:
        return
    handles, labels = ax.get_legend_handles_labels()
    figure = ax.get_figure(root=True)
    width = ax.get_position().width * (6.0 if figure is None else figure.get_figwidth())
    ax.legend(
        handles[::-1],
        labels[::-1],
        loc="lower left",
        bbox_to_anchor=(0.0, 1.0 + GAP + (POWER if _has_power(ax) else 0.0)),
        borderaxespad=0.0,
        ncols=count_columns([len(label) for label in labels[::-1]], width),
        frameon=False,
        fontsize="small",
    )
    if ax.get_axes_locator() is None:
        ax.set_axes_locator(BelowLegend(ax))


def _has_power(ax: Axes) -> bool:
    """Return whether a power of ten stands above the numbers of the vertical axis."""
    formatter = ax.yaxis.get_major_formatter()
    formatter.set_locs(ax.get_yticks().tolist())
    return bool(formatter.get_offset())


def count_columns(lengths: Sequence[int], width: float) -> int:
    """Return in how many columns labels of so many letters fit into a width, in inches.

    Examples
    --------
    >>> count_columns([22, 24, 22, 14, 4], 4.65), count_columns([60, 60], 4.65)
    (2, 1)
    """
    for n in range(len(lengths), 1, -1):
        # As Matplotlib fills them. Letters are about 0.065 inches wide, a line and its gaps 0.6.
        columns = np.array_split(np.asarray(lengths), n)
        if sum(0.6 + 0.065 * float(column.max()) for column in columns) <= width:
            return n
    return 1


class BelowLegend:
    """Places Axes in their cell so that their legend fits above them."""

    def __init__(self, ax: Axes) -> None:
        # Matplotlib's tight_layout wants to know the cell.
        self.get_subplotspec = ax.get_subplotspec

    # Any: Matplotlib's own base of Axes, and its renderer.
    def __call__(self, ax: Any, renderer: Any) -> Bbox:
        """Return the place of the frame: lower than its cell, but not than the middle of that."""
        box, legend = ax.get_position(original=True), ax.get_legend()
        parent, figure = ax.get_figure(), ax.get_figure(root=True)
        if parent is None or figure is None or legend is None:
            return box
        engine = figure.get_layout_engine()
        # The constrained layout knows of it; while a figure is saved, another stands in its place,
        # which has this of it.
        if engine is not None and not engine.adjust_compatible:
            return box
        needed = legend.get_window_extent(renderer).height / parent.bbox.height + GAP * box.height
        height = max(box.height - needed, 0.5 * box.height)
        return Bbox.from_bounds(box.x0, box.y0, box.width, height)


def plain(text: str) -> str:
    r"""Return text in which Matplotlib sees no formula.

    Examples
    --------
    >>> print(plain("price [$] of $x"))
    price [\$] of \$x
    """
    return str(text).replace("$", r"\$")


def axis_label(name: str, units: Mapping[str, str] | None = None) -> str:
    """Return the label of a column's axis, with its unit if the name does not hold it.

    Examples
    --------
    >>> axis_label("H", {"H": "mm"}), axis_label("T [K]", {"T [K]": "K"}), axis_label("n")
    ('H [mm]', 'T [K]', 'n')
    """
    return with_unit(plain(name), unit_beside(name, units or {}))


def with_unit(label: str, unit: str) -> str:
    """Return a label with a unit behind it, if there is one.

    Examples
    --------
    >>> with_unit("c0", "mm**(1/2)"), with_unit("c1", "")
    ('c0 [mm$^{1/2}$]', 'c1')
    """
    return f"{label} [{unit_label(unit)}]" if unit else label


def to_svg(figure: Figure) -> str:
    """Return a figure as the text of an SVG element, and close it.

    Letters are drawn as shapes, so that it looks the same on every machine; the ground is
    transparent; the same figure gives the same text.

    Examples
    --------
    >>> svg = to_svg(new_axes().figure)
    >>> svg.startswith("<svg"), svg.rstrip().endswith("</svg>")
    (True, True)
    """
    stream = io.StringIO()
    with mpl.rc_context({"svg.hashsalt": "pmsr", "svg.fonttype": "path"}):
        figure.savefig(stream, format="svg", transparent=True, dpi=150, metadata={"Date": None})
    plt.close(figure)
    text = stream.getvalue()
    return text[text.index("<svg") :]
