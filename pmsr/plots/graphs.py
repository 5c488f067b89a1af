"""The acyclic graph of an equation, Figure 1 of the paper."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import FancyArrowPatch, PathPatch
from matplotlib.path import Path
from numpy.typing import NDArray

from pmsr.equation.expression import Equation
from pmsr.equation.graph import Node, lay_out
from pmsr.plots.marks import CREDIBLE, LINE, POINTS, PREDICTION, new_axes

Floats = NDArray[np.float64]

# Ground and shape by kind: a reader of a grayscale print tells them apart by the shape.
_BOXES = {
    "operator": ("white", "circle,pad=0.3"),
    "variable": (PREDICTION, "square,pad=0.35"),
    "parameter": (CREDIBLE, "round,pad=0.35,rounding_size=0.6"),
    "number": ("#e6e6e6", "round,pad=0.35,rounding_size=0.6"),
}


def plot_graph(equation: Equation, *, ax: Axes | None = None) -> Axes:
    r"""Draw an equation as the acyclic graph that the search evolves.

    Parameters
    ----------
    equation
        The equation; its complexity is the number of nodes.
    ax
        Where to draw; by default a new figure.

    Returns
    -------
    Axes
        The result is on top and arrows point to arguments; where their order matters, they are
        numbered. Operators are circles, variables boxes, parameters and numbers rounded boxes.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> ax = plot_graph(Equation("x0 + x0*x1", ["x0", "x1"]))
    >>> sorted(text.get_text() for text in ax.texts)
    ['$+$', '$\\times$', '$x_{0}$', '$x_{1}$']
    >>> plt.close(ax.figure)
    """
    nodes = lay_out(equation)
    width = max(node.x for node in nodes) + 1.2
    height = 0.8 - min(node.y for node in nodes)
    # Two neighbours are one unit apart, and both may have a long name.
    unit = max(
        1.0,
        0.085 * max((len(node.label) for node in nodes if "$" not in node.label), default=0) + 0.3,
    )
    ax = ax or new_axes(min(max(unit * width, 2.5), 12.0), min(0.85 * height, 12.0))
    ax.set(xlim=(-0.6, width - 0.6), ylim=(0.4 - height, 0.4))
    ax.set_axis_off()
    texts = []
    for node in nodes:
        ground, shape = _BOXES[node.kind]
        texts.append(
            ax.text(
                node.x,
                node.y,
                node.label,
                horizontalalignment="center",
                verticalalignment="center",
                color=POINTS,
                bbox={"boxstyle": shape, "facecolor": ground, "edgecolor": LINE, "linewidth": 1.2},
                zorder=3,
            )
        )
    for node, text in zip(nodes, texts, strict=True):
        for position, argument in enumerate(node.arguments):
            points = _corners(node, nodes[argument], position)
            start, first = points[0], points[1]
            box = text.get_bbox_patch()
            if len(points) > 2:
                path = _rounded(points)
                ax.add_patch(PathPatch(path, facecolor="none", edgecolor=LINE, linewidth=1.0))
                start, box = 0.5 * (points[-2] + points[-1]), None
            ax.add_patch(
                FancyArrowPatch(
                    tuple(start),
                    tuple(points[-1]),
                    arrowstyle="-|>",
                    mutation_scale=10,
                    color=LINE,
                    linewidth=1.0,
                    patchA=box,
                    patchB=texts[argument].get_bbox_patch(),
                    shrinkA=0,
                    shrinkB=0,
                )
            )
            if node.is_ordered:
                step = (first - points[0]) / np.linalg.norm(first - points[0])
                ax.annotate(
                    str(position + 1),
                    tuple(points[0] + 0.42 * step),
                    xytext=(-6 if step[0] < 0 else 6, 0),
                    textcoords="offset points",
                    horizontalalignment="center",
                    fontsize="x-small",
                    color="#595959",
                )
    return ax


def _corners(node: Node, argument: Node, position: int) -> Floats:
    """Return the points of a line, from the node through its bends to the argument."""
    bends = list(node.paths[position])
    if not bends and len(node.arguments) == 2 and node.arguments[0] == node.arguments[1]:
        # The same argument twice: two lines, bent apart.
        aside = 0.35 if position else -0.35
        bends = [(0.5 * (node.x + argument.x) + aside, 0.5 * (node.y + argument.y))]
    return np.array([(node.x, node.y), *bends, (argument.x, argument.y)])


def _rounded(points: Floats) -> Path:
    """Return the line with round corners, up to the middle of its last piece."""
    middles = 0.5 * (points[:-1] + points[1:])
    vertices, codes = [points[0], middles[0]], [Path.MOVETO, Path.LINETO]
    for corner, middle in zip(points[1:-1], middles[1:], strict=True):
        vertices += [corner, middle]
        codes += [Path.CURVE3, Path.CURVE3]
    return Path(np.array(vertices), codes)
