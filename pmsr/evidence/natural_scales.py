"""Typical sizes of an equation's parameters, before anything is fitted."""

import numpy as np
from numpy.typing import NDArray

from pmsr.data import Data
from pmsr.equation.operators import FIRST_OPERATOR, LITERAL, OPERATORS, PARAMETER, POWER, VARIABLE
from pmsr.equation.program import Program, parameter_free_values
from pmsr.evidence.problem import White

Floats = NDArray[np.float64]


def natural_scales(program: Program, data: Data) -> Floats:
    """Typical size of each parameter, such that every part of the equation matters.

    The size that a node should have is handed down from the result (the size of y) to the leaves:
    both terms of a sum get it, a factor gets it divided by its partner's size, an argument of exp
    or sin should be near 1, and a term beside a known one should be comparable to it. So Galileo's
    ``k1*D**2/(1 + k2*D)`` starts with k2 near 1/D and k1 near H/D**2.

    Examples
    --------
    >>> from pmsr.data import load_galileo, make_data
    >>> from pmsr.equation.expression import Equation
    >>> law = Equation("k1*D**2/(1 + k2*D)", ["D"])
    >>> natural_scales(law.program, make_data(*load_galileo("no_shelf"))).round(4)
    array([0.0027, 0.0022])
    """
    known = parameter_free_values(program, data.X)
    sizes = {node: _size(row) for node, row in known.items()}
    names = list(OPERATORS)
    # What was added to an equation is not part of it.
    top, y = len(program.nodes) - 1, data.y
    if isinstance(data, White):
        top, y = top - data.n_added, data.plain
    target: dict[int, float] = {top: _size(y)}
    scales = np.ones(program.n_parameters)
    for node in range(top, -1, -1):
        code, a, b = program.nodes[node].tolist()
        wanted = np.float64(target.get(node, 1.0))  # NumPy's overflow to infinity, Python's raise
        if node in known or code in (VARIABLE, LITERAL):
            continue
        if code == PARAMETER:
            scales[a] = wanted
            continue
        name = "power" if code == POWER else names[code - FIRST_OPERATOR]
        if name in ("+", "-"):
            pairs = [(a, max(wanted, sizes.get(b, 0.0))), (b, max(wanted, sizes.get(a, 0.0)))]
        elif name == "*":
            first, second = (b, a) if program.nodes[b, 0] == PARAMETER else (a, b)
            size = sizes.get(second, sizes.get(first, 1.0))
            free = first if first not in known else second
            other = second if free == first else first
            pairs = [(free, wanted / size), (other, 1.0)]
        elif name == "/":
            below = sizes.get(b, _guess(program, b, sizes))
            pairs = [(a, wanted * below), (b, sizes[a] / wanted if a in known else below)]
        elif name == "power":
            pairs = [(a, wanted ** (1.0 / b))]
        elif name == "sqrt":
            pairs = [(a, wanted**2)]
        elif name == "abs":
            pairs = [(a, wanted)]
        else:
            pairs = [(a, 1.0), (b, 1.0)]
        for child, size in pairs:
            if np.isfinite(size) and size > 0.0:
                target.setdefault(child, size)
    return scales


def _guess(program: Program, node: int, sizes: dict[int, float]) -> float:
    """Size of a node with parameters: that of the known terms it is a sum of, or 1."""
    code, a, b = program.nodes[node].tolist()
    if code == FIRST_OPERATOR or code == FIRST_OPERATOR + 1:
        return max(sizes.get(a, 0.0), sizes.get(b, 0.0)) or 1.0
    return 1.0


def _size(values: Floats) -> float:
    finite = np.abs(values[np.isfinite(values)])
    size = (
        float(np.sqrt(np.mean((finite / finite.max()) ** 2)) * finite.max())
        if finite.any()
        else 0.0
    )
    return size or 1.0
