"""What a search refuses to weigh: graphs that are no equation, or break one of its rules."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pmsr.equation.algebra import TooLarge
from pmsr.equation.expression import MAX_LENGTH, Equation
from pmsr.equation.operators import (
    FIRST_OPERATOR,
    OPERATORS,
    PARAMETER,
    POWER,
    VARIABLE,
    operator_code,
)
from pmsr.equation.program import Program
from pmsr.search.engines import engine_of
from pmsr.search.genome import Genome
from pmsr.search.restrictions import Restrictions
from pmsr.settings import Search


@dataclass(frozen=True, eq=False)
class Reading:
    """What a graph means: its equation, or why it is refused."""

    key: str
    program: Program | None = None
    refusal: str | None = None


def read_graph(
    genome: Genome,
    variables: Sequence[str],
    search: Search,
    restrictions: Restrictions | None = None,
) -> Reading:
    """Read a graph as an equation and check it against the constraints of a search.

    Returns
    -------
    Reading
        The key and the program, both in the form that the search's engine gives equations.
    """
    try:
        key, equation = engine_of(search).key(genome.equation(variables))
    except TooLarge as error:
        return Reading(f"! {error}", refusal="too complex")
    except (ValueError, TypeError) as error:  # SymPy's way to say that a number is not real
        return Reading(f"! {error}", refusal="not a real, finite expression")
    refusal = "too complex" if len(key) > MAX_LENGTH else _refusal(equation, search)
    if refusal is None and restrictions is not None:
        refusal = restrictions.describe(equation.program)
    return Reading(key, equation.program if refusal is None else None, refusal)


def _refusal(equation: Equation, search: Search) -> str | None:
    """Tell which constraint an equation breaks, if any."""
    if equation.complexity > search.max_complexity:
        return "too complex"
    if search.max_parameters is not None and len(equation.parameters) > search.max_parameters:
        return "too many parameters"
    if not search.variable_exponents and _has_variable_exponent(equation.program):
        return "variable exponent"
    if not search.nested_functions and _has_nested_waves(equation.program):
        return "nested functions"
    if (foreign := _foreign_function(equation.program, search)) is not None:
        return f"operator {foreign}"
    if not search.share_parameters and _has_shared_parameter(equation.program):
        return "shared parameter"
    return None


def _has_variable_exponent(program: Program) -> bool:
    """Tell whether a variable stands in an exponent; exp(x) is a function, not an exponent."""
    power = operator_code("pow")
    depends: list[bool] = []
    for code, a, b in program.nodes.tolist():
        if code == power and depends[b]:
            return True
        inner = code >= POWER
        depends.append(
            code == VARIABLE or (inner and (depends[a] or (code != POWER and depends[b])))
        )
    return False


def _has_nested_waves(program: Program) -> bool:
    """Tell whether one of sin, cos, tan and tanh stands inside another."""
    waves = [operator_code(name) for name in ("sin", "cos", "tan", "tanh")]
    inside: list[bool] = []
    for code, a, b in program.nodes.tolist():
        below = code >= POWER and (inside[a] or (code != POWER and inside[b]))
        if code in waves and below:
            return True
        inside.append(below or code in waves)
    return False


def _foreign_function(program: Program, search: Search) -> str | None:
    """Name a function that algebra brought in although it is not allowed: sqrt(x*x) is abs(x)."""
    names = list(OPERATORS)
    for code in program.nodes[:, 0].tolist():
        name = names[code - FIRST_OPERATOR] if code >= FIRST_OPERATOR else ""
        if name in search.operators or name in ("pow", "sqrt") or not name.isidentifier():
            continue
        if not (name == "exp" and search.variable_exponents):
            return name
    return None


def _has_shared_parameter(program: Program) -> bool:
    """Tell whether a parameter is an argument of two nodes, as in c0*(c0 + x)."""
    arguments = [
        child
        for code, a, b in program.nodes.tolist()
        if code >= POWER
        for child in ((a,) if code == POWER else {a, b})
    ]
    parameters = np.flatnonzero(program.nodes[:, 0] == PARAMETER)
    return any(arguments.count(node) > 1 for node in parameters.tolist())
