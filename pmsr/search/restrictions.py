"""A user's rules about laws: what may not stand inside what, how often, and of which variables.

They hold for folded programs, in which each law is spelled as it is reported.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from pmsr.equation.operators import FIRST_OPERATOR, OPERATORS, POWER, VARIABLE
from pmsr.equation.program import Program
from pmsr.settings import Search

KEPT, FORBIDDEN, TOO_MANY, EXCLUDED, REQUIRED = range(5)
_MOST = 63  # operators that may be inner ones: a bit for each


class Table(NamedTuple):
    """Restrictions, as compiled code reads them; by the code of a node, or by the variable."""

    arity: NDArray[np.int8]
    kind: NDArray[np.int64]  # the code, but an integer power is "pow"
    bit: NDArray[np.uint64]  # of what may be forbidden inside something
    forbids: NDArray[np.uint64]  # the bits of what is forbidden inside
    most: NDArray[np.float64]  # how often it may stand in a law
    excluded: NDArray[np.bool_]
    required: NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Restrictions:
    """Rules about operators and variables, in addition to what a search refuses anyway.

    Parameters
    ----------
    variables
        Names of the columns of X.
    forbid
        Names of operators that may not stand inside an operator, at any depth, by its name.
    max_uses
        How often operators may stand in a law, by name.
    require, exclude
        Names of variables that a law must, or must not, depend on.
    """

    variables: tuple[str, ...]
    forbid: Mapping[str, Sequence[str]]
    max_uses: Mapping[str, int]
    require: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()

    @classmethod
    def of(
        cls, search: Search, variables: Sequence[str], left_out: Sequence[str] = ()
    ) -> "Restrictions | None":
        """Return the restrictions of a search, and of what it has left out; None for none.

        Examples
        --------
        >>> Restrictions.of(Search(), ["x"]) is None
        True
        """
        exclude = tuple(name for name in variables if name in (*search.exclude, *left_out))
        if not (search.forbid or search.max_uses or search.require or exclude):
            return None
        return cls(tuple(variables), search.forbid, search.max_uses, search.require, exclude)

    def for_parts(self) -> "Restrictions":
        """Return those that hold for every part of a law too."""
        return replace(self, require=())

    @property
    def table(self) -> Table:
        """The restrictions as arrays, for the operators of now."""
        names = list(OPERATORS)
        n_codes = FIRST_OPERATOR + len(names)
        code = {name: FIRST_OPERATOR + place for place, name in enumerate(names)}
        inner = sorted({name for listed in self.forbid.values() for name in listed})
        bits = {name: np.uint64(1 << place) for place, name in enumerate(inner)}
        table = Table(
            np.array([0, 0, 0, 1, *(row.arity for row in OPERATORS.values())], np.int8),
            np.arange(n_codes),
            np.zeros(n_codes, np.uint64),
            np.zeros(n_codes, np.uint64),
            np.full(n_codes, np.inf),
            np.isin(self.variables, self.exclude),
            np.isin(self.variables, self.require),
        )
        table.kind[POWER] = code["pow"]
        for name, bit in bits.items():
            table.bit[code[name]] = bit
        for name, listed in self.forbid.items():
            for other in listed:
                table.forbids[code[name]] |= bits[other]
        for name, most in self.max_uses.items():
            table.most[code[name]] = most
        return table

    def find_broken(
        self, nodes: NDArray[np.int32], n_nodes: NDArray[np.int32]
    ) -> NDArray[np.int64]:
        """Return what laws break: a rule, `KEPT` if none, and the codes or the column it is about.

        Parameters
        ----------
        nodes, n_nodes
            Rows of programs, of shape (n, width, 3), and how many each has.

        Returns
        -------
        ndarray
            Of shape (n, 3).
        """
        broken = np.zeros((len(nodes), 3), np.int64)
        _find_broken(nodes, n_nodes, *self.table, broken)
        return broken

    def describe(self, program: Program) -> str | None:
        """Say which rule a law breaks, if any.

        Examples
        --------
        >>> from pmsr.equation.expression import Equation
        >>> rules = Restrictions.of(Search(max_uses={"sin": 1}, require=["x"]), ["x", "y"])
        >>> rules.describe(Equation("sin(x) + c0*sin(y)", ["x", "y"]).program)
        "uses 'sin' 2 times, and max_uses allows 1"
        >>> rules.describe(Equation("c0*sin(y)", ["x", "y"]).program)
        "does not depend on 'x', which require asks for"
        """
        nodes = np.ascontiguousarray(program.nodes, np.int32)[None]
        lengths = np.array([len(program.nodes)], np.int32)
        rule, first, second = self.find_broken(nodes, lengths)[0].tolist()
        names = list(OPERATORS)
        if rule == FORBIDDEN:
            outer, inner = (names[code - FIRST_OPERATOR] for code in (first, second))
            return f"has {inner!r} inside {outer!r}, which forbid rules out"
        if rule == TOO_MANY:
            name = names[first - FIRST_OPERATOR]
            return f"uses {name!r} {second} times, and max_uses allows {self.max_uses[name]}"
        if rule == EXCLUDED:
            return f"depends on {self.variables[first]!r}, which exclude rules out"
        if rule == REQUIRED:
            return f"does not depend on {self.variables[first]!r}, which require asks for"
        return None


def check_restrictions(search: Search, variables: Sequence[str], varying: Sequence[str]) -> None:
    """Refuse restrictions that name what there is not, or that no law can keep.

    Parameters
    ----------
    search
        Their options.
    variables, varying
        Names of the columns, and of those that are not the same in all rows.

    Examples
    --------
    >>> check_restrictions(Search(require=["h"]), ["H"], ["H"])
    Traceback (most recent call last):
        ...
    ValueError: There is no variable 'h', which require names. Variables: H.
    """
    for what in ("forbid", "max_uses"):
        for name, listed in getattr(search, what).items():
            for one in (name, *(listed if what == "forbid" else ())):
                if one not in OPERATORS:
                    raise ValueError(
                        f"Unknown operator {one!r} in {what}. Available: "
                        f"{', '.join(sorted(OPERATORS))}."
                    )
    if len({one for listed in search.forbid.values() for one in listed}) > _MOST:
        raise ValueError(f"forbid may name at most {_MOST} operators that stand inside others.")
    for what in ("require", "exclude"):
        for name in getattr(search, what):
            if name not in variables:
                raise ValueError(
                    f"There is no variable {name!r}, which {what} names. Variables: "
                    f"{', '.join(variables)}."
                )
    for name in search.require:
        if name not in varying:
            raise ValueError(
                f"{name!r}, which require names, is the same in all rows: no law can tell that it "
                "depends on it. Leave it out of require."
            )
        if name in search.exclude:
            raise ValueError(f"{name!r} is named by require and by exclude. Choose one.")
    if set(varying) <= set(search.exclude):
        raise ValueError("exclude names every variable that varies: nothing is left. Name fewer.")
    _check_joining(search)


def _check_joining(search: Search) -> None:
    """Refuse to require more variables than a law can hold: it joins n by n - 1 operators."""
    n = len(set(search.require))
    binary = [name for name in search.operators if name in OPERATORS and OPERATORS[name].arity == 2]
    most = 1 + sum(search.max_uses.get(name, math.inf) for name in binary)
    if n > most:
        raise ValueError(
            f"require names {n} variables, and the operators and max_uses join no more than {most} "
            "in a law. Require fewer, or allow more operators of two arguments."
        )
    if 2 * n - 1 > search.max_complexity:
        raise ValueError(
            f"require names {n} variables, and a law of them has {2 * n - 1} nodes or more: "
            f"max_complexity is {search.max_complexity}. Require fewer, or allow larger laws."
        )


@njit(error_model="numpy", nogil=True, cache=True)
def _find_broken(  # type: ignore[no-untyped-def]
    nodes, n_nodes, arity, kind, bit, forbids, most, excluded, required, broken
):
    """Fill broken, of shape (n, 3), with the first rule that each program breaks."""
    width = nodes.shape[1]
    inside = np.zeros(width, np.uint64)  # bits of what stands at a node and below it
    times = np.zeros(width)  # how often a node would be written
    uses = np.zeros(len(kind))
    seen = np.zeros(len(required), np.bool_)
    none = np.uint64(0)
    for law in range(len(nodes)):
        n = n_nodes[law]
        uses[:], seen[:], times[:] = 0.0, False, 0.0
        for k in range(n):
            code, a, b = nodes[law, k]
            below = none
            if arity[code] > 0:
                below = inside[a]
            if arity[code] == 2:
                below = below | inside[b]
            own = kind[code]
            clash = below & forbids[own]
            if clash != none and broken[law, 0] == KEPT:
                for other in range(len(bit)):
                    if bit[other] & clash != none:
                        broken[law, 0], broken[law, 1], broken[law, 2] = FORBIDDEN, own, other
            inside[k] = below | bit[own]
            if code == VARIABLE:
                seen[a] = True
        if n > 0:
            times[n - 1] = 1.0
        for k in range(n - 1, -1, -1):
            code, a, b = nodes[law, k]
            uses[kind[code]] += times[k]
            if arity[code] > 0:
                times[a] += times[k]
            if arity[code] == 2:
                times[b] += times[k]
        for code in range(len(uses)):
            if uses[code] > most[code] and broken[law, 0] == KEPT:
                broken[law, 0], broken[law, 1] = TOO_MANY, code
                broken[law, 2] = np.int64(min(uses[code], 1e15))
        for column in range(len(required)):
            if broken[law, 0] != KEPT:
                break
            if seen[column] and excluded[column]:
                broken[law, 0], broken[law, 1] = EXCLUDED, column
            elif required[column] and not seen[column]:
                broken[law, 0], broken[law, 1] = REQUIRED, column
