"""The acyclic graph of an equation (Figure 1 of the paper), laid out in layers for a drawing."""

import re
from dataclasses import dataclass
from typing import Literal

from pmsr.equation.expression import Equation, latex_name
from pmsr.equation.operators import FIRST_OPERATOR, LITERAL, OPERATORS, PARAMETER, POWER, VARIABLE

MAX_NAME = 20  # characters of a name in a drawing
N_SWEEPS = 8  # passes that move nodes towards their neighbours
_SYMBOLS = {"+": "$+$", "-": "$-$", "*": r"$\times$", "/": r"$\div$", "pow": r"$a^{\,b}$"}
_WORD = re.compile(r"[a-zA-Z]+_?[a-zA-Z0-9]*")
_ORDERED = ("-", "/", "pow")  # of their arguments the drawing must tell which is the first


@dataclass(frozen=True)
class Node:
    """One node of a graph that has been laid out.

    Parameters
    ----------
    label
        What stands in the node, in Matplotlib's notation.
    kind
        What it is; the drawing gives each its own shape and shade.
    x, y
        Where it stands: y is minus the layer, the result's is 0; x in widths of a node.
    arguments
        Places of its arguments in the list of nodes, first argument first.
    paths
        For each argument, the points that its line passes between the two nodes.
    is_ordered
        Whether the arguments must not be swapped.
    """

    label: str
    kind: Literal["operator", "variable", "parameter", "number"]
    x: float
    y: float
    arguments: tuple[int, ...]
    paths: tuple[tuple[tuple[float, float], ...], ...]
    is_ordered: bool


def lay_out(equation: Equation) -> tuple[Node, ...]:
    r"""Return the nodes of an equation's graph with their places in a drawing.

    Parameters
    ----------
    equation
        Its program has one node for each that is drawn; their number is its complexity.

    Returns
    -------
    tuple of Node
        In the order of the program: arguments come before what uses them, the result last.

    Notes
    -----
    The usual layered drawing [1]_: a node's layer is its largest distance from the result, so that
    all lines point down; a line that spans several layers passes through a place of its own in
    each; nodes are ordered by the mean place of their neighbours, down and up in turn.

    References
    ----------
    .. [1] K. Sugiyama, S. Tagawa, M. Toda, "Methods for Visual Understanding of Hierarchical
       System Structures", IEEE Transactions on Systems, Man, and Cybernetics 11 (1981),
       doi:10.1109/TSMC.1981.4308636

    Examples
    --------
    >>> nodes = lay_out(Equation("x0 + x0*x1", ["x0", "x1"]))
    >>> [(node.kind, node.y, node.arguments) for node in nodes[1:]]
    [('variable', -2.0, ()), ('operator', -1.0, (0, 1)), ('operator', 0.0, (0, 2))]
    """
    arguments = [_arguments(code, a, b) for code, a, b in equation.program.nodes.tolist()]
    layers = _layers(arguments)
    bends, neighbours, rows = _with_bends(arguments, layers)
    x = _places(neighbours, rows)
    depth = {node: layer for layer, row in enumerate(rows) for node in row}
    nodes = []
    for place, (code, a, b) in enumerate(equation.program.nodes.tolist()):
        label, kind, is_ordered = _describe(equation, code, a, b)
        paths = tuple(
            tuple((x[bend], 0.0 - depth[bend]) for bend in bends[place, position])
            for position in range(len(arguments[place]))
        )
        y = 0.0 - layers[place]
        nodes.append(Node(label, kind, x[place], y, arguments[place], paths, is_ordered))
    return tuple(nodes)


def label_of(name: str) -> str:
    r"""Return a name in Matplotlib's notation: c0 with a subscript, anything unusual as it is.

    Matplotlib's formulas know less than LaTeX's: ``\&``, for one, is an error.

    Examples
    --------
    >>> print(label_of("theta_2"), label_of("R&D [$]"))
    $\theta_{2}$ R&D [\$]
    """
    if len(name) <= MAX_NAME and _WORD.fullmatch(name):
        return f"${latex_name(name)}$"
    cut = name if len(name) <= MAX_NAME else f"{name[: MAX_NAME - 1]}\N{HORIZONTAL ELLIPSIS}"
    return cut.replace("$", r"\$")


def _arguments(code: int, a: int, b: int) -> tuple[int, ...]:
    if code < POWER:
        return ()
    if code == POWER or list(OPERATORS.values())[code - FIRST_OPERATOR].arity == 1:
        return (a,)
    return (a, b)


def _describe(
    equation: Equation, code: int, a: int, b: int
) -> tuple[str, Literal["operator", "variable", "parameter", "number"], bool]:
    """Label, kind, and whether the arguments are ordered, of one row of the program."""
    if code == VARIABLE:
        return label_of(equation.variables[a]), "variable", False
    if code == PARAMETER:
        return label_of(equation.parameters[a]), "parameter", False
    if code == LITERAL:
        return f"{float(equation.program.literals[a]):.4g}", "number", False
    if code == POWER:
        return rf"$a^{{{b}}}$", "operator", False
    name = list(OPERATORS)[code - FIRST_OPERATOR]
    return _SYMBOLS.get(name, name), "operator", name in _ORDERED


def _layers(arguments: list[tuple[int, ...]]) -> list[int]:
    """Return the largest distance of each node from the last one."""
    layers = [0] * len(arguments)
    for node in reversed(range(len(arguments))):
        for argument in arguments[node]:
            layers[argument] = max(layers[argument], layers[node] + 1)
    return layers


def _with_bends(
    arguments: list[tuple[int, ...]], layers: list[int]
) -> tuple[dict[tuple[int, int], list[int]], dict[int, list[int]], list[list[int]]]:
    """Give every line a bend in each layer that it crosses.

    Returns
    -------
    tuple
        The bends of each (node, position of the argument), numbered after the nodes; the
        neighbours of nodes and bends; and the rows of both, from the result down, in the order of
        a walk that takes the first argument first.
    """
    bends: dict[tuple[int, int], list[int]] = {}
    neighbours: dict[int, list[int]] = {node: [] for node in range(len(arguments))}
    rows: list[list[int]] = [[] for _ in range(max(layers) + 1)]
    seen: set[int] = set()
    waiting = [len(arguments) - 1]
    while waiting:
        node = waiting.pop()
        if node in seen:
            continue
        seen.add(node)
        rows[layers[node]].append(node)
        for position, argument in enumerate(arguments[node]):
            above, chain = node, []
            for layer in range(layers[node] + 1, layers[argument]):
                bend = len(neighbours)
                neighbours[bend] = [above]
                neighbours[above].append(bend)
                rows[layer].append(bend)
                chain.append(bend)
                above = bend
            neighbours[above].append(argument)
            neighbours[argument].append(above)
            bends[node, position] = chain
        waiting += reversed(arguments[node])
    return bends, neighbours, rows


def _places(neighbours: dict[int, list[int]], rows: list[list[int]]) -> list[float]:
    """Return x for each node and bend: near its neighbours, and at least 1 from the next."""
    x = {node: float(place) for row in rows for place, node in enumerate(row)}
    depth = {node: layer for layer, row in enumerate(rows) for node in row}
    for sweep in range(N_SWEEPS):
        for layer in range(len(rows)) if sweep % 2 == 0 else reversed(range(len(rows))):
            step = -1 if sweep % 2 == 0 else 1
            wanted = {}
            for node in rows[layer]:
                near = [x[other] for other in neighbours[node] if depth[other] == layer + step]
                wanted[node] = sum(near) / len(near) if near else x[node]
            row = sorted(rows[layer], key=lambda node: (wanted[node], x[node]))
            x.update(zip(row, _spread([wanted[node] for node in row]), strict=True))
    least = min(x.values())
    return [x[node] - least for node in range(len(x))]


def _spread(wanted: list[float]) -> list[float]:
    """Move sorted places as little as possible, in squares, until neighbours are 1 apart.

    Examples
    --------
    >>> _spread([0.0, 0.0, 5.0])
    [-0.5, 0.5, 5.0]
    """
    # Less its rank, a place only has to be no smaller than the one before: pool those that are.
    blocks: list[tuple[float, int]] = []
    for rank, place in enumerate(wanted):
        mean, size = place - rank, 1
        while blocks and blocks[-1][0] > mean:
            other, n = blocks.pop()
            mean, size = (mean * size + other * n) / (size + n), size + n
        blocks.append((mean, size))
    level = [mean for mean, size in blocks for _ in range(size)]
    return [mean + rank for rank, mean in enumerate(level)]
