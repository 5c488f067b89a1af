r"""The surface of predictions: its volume, on which the invariant prior is flat, and its limits.

An equation with r parameters that the data determine maps them to an r-dimensional surface in the
space of predictions at the rows. Its volume element, :math:`\sqrt{\det \chi'\chi}`, belongs to the
law and not to the way in which it is written.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import pi
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pmsr.data import Data
from pmsr.equation.kernels import factor_moments, find_active, run_compiled
from pmsr.equation.lowering import lower
from pmsr.equation.operators import FIRST_OPERATOR, LITERAL, OPERATORS, POWER, VARIABLE, Operator
from pmsr.equation.program import Program, evaluate, evaluate_jacobian
from pmsr.equation.rules import PERIODIC, look_into
from pmsr.evidence.multistart import Minimum
from pmsr.evidence.problem import White
from pmsr.limits import check_time
from pmsr.magnitude import column_lengths

Floats = NDArray[np.float64]

# Share of its length that a column of chi must add to the others. From chi'chi it is known to
# the root of the rounding error; beyond, a direction has no volume to speak of.
LEAST_SHARE = 1e-7
SAME_CURVE = 1e-6  # of the target's standard deviation: predictions that differ by less are one
CHUNK = 2**18  # values between two looks at the clock


class Look(NamedTuple):
    """What a batch of n parameter vectors predicts, in sums over the rows.

    Parameters
    ----------
    sse
        Sums of squared errors, of shape (n,).
    log_volume
        Half the log determinant of chi'chi, of shape (n,); NaN where it is singular.
    square
        Least squared distance of the predictions from those of a minimum, of shape (n,).
    allowed
        Whether the rules allow them: no pole between rows, no alias.
    lengths, root, whitened
        As `pmsr.equation.kernels.factor_moments` returns them, affine parameters first.
    """

    sse: Floats
    log_volume: Floats
    square: Floats
    allowed: NDArray[np.bool_]
    lengths: Floats
    root: Floats
    whitened: Floats

    def take(self, which: NDArray[np.int64]) -> "Look":
        """Choose some of the batch."""
        some: Any = (values[which] for values in self)
        return Look(*some)


class Watched(NamedTuple):
    """A value that the rules look at.

    Parameters
    ----------
    node
        Its place in the program; -1 for what stands inside an operator's form.
    argument
        The program of which it is the result.
    kind
        ``"below"`` for a denominator, ``"wave"`` for the argument of sin or cos, ``"tan"``.
    shifts
        Change of each parameter, of shape (p,), that shifts an argument by half a period in all
        rows alike; none where no parameter is a phase.
    is_phase
        Whether the parameters can do nothing but shift the argument, as in cos(x + exp(c0)): then
        there is no alias of another frequency, whatever the argument spans.
    """

    node: int
    argument: Program
    kind: str
    shifts: tuple[Floats, ...] = ()
    is_phase: bool = False

    @property
    def has_phase(self) -> bool:
        """Whether the argument at the first row counts modulo a period."""
        return self.is_phase or len(self.shifts) > 0


@dataclass(frozen=True, eq=False)
class Surface:
    """The surface of an equation's predictions at the rows.

    Parameters
    ----------
    program
        The equation, weighed; all its parameters are identifiable.
    data
        The rows, weighed.
    centres
        Predictions from which distances are measured, of shape (n_centres, N).
    scales
        Powers of two, one for each parameter, that keep squares of derivatives within range.
    phases
        For each watched node, the first value that the best minimum has, or NaN; empty if no
        minimum is known.
    given
        Places of parameters with priors of their own: the surface, and its volume, is that of the
        others while these are held.
    """

    program: Program
    data: Data
    centres: Floats
    scales: Floats
    phases: Floats
    given: tuple[int, ...] = ()

    @classmethod
    def of(cls, program: Program, data: Data, given: tuple[int, ...] = ()) -> "Surface":
        """Describe the whole surface."""
        none = np.empty((0, len(data.y)))
        return cls(program, data, none, np.ones(program.n_parameters), np.empty(0), given)

    def around(self, minima: Sequence[Minimum]) -> "Surface":
        """Measure distances from minima, and count phases within one period of the first."""
        best = minima[0]
        lengths = column_lengths(best.jacobian)
        known = np.where(lengths > 0.0, lengths / column_lengths(self.data.y[:, None])[0], 1.0)
        scales = np.ldexp(1.0, -np.frexp(known)[1])
        values = evaluate(self.program, np.array([m.theta for m in minima]), self.data.X)
        kept: list[int] = []
        near = SAME_CURVE * self.data.spread
        for k, row in enumerate(values):  # mirror images share theirs
            if not any(np.max(np.abs(row - values[other])) <= near for other in kept):
                kept.append(k)
        firsts = [
            self._first(w.argument, best.theta) if w.has_phase else np.nan for w in self.watched
        ]
        return replace(
            self,
            centres=np.ascontiguousarray(values[kept]),
            scales=np.asarray(scales),
            phases=np.array(firsts),
        )

    @cached_property
    def order(self) -> NDArray[np.int64]:
        """Parameters, affine ones first, those with priors of their own last."""
        affine = list(self._affine)
        known = {*affine, *self.given}
        curved = [k for k in range(self.program.n_parameters) if k not in known]
        return np.array([*affine, *curved, *self.given], dtype=np.int64)

    @cached_property
    def _affine(self) -> tuple[int, ...]:
        if not self.given:
            return self.program.affine
        held = self.program.freeze(dict.fromkeys(self.given, 0.7))
        left = [k for k in range(self.program.n_parameters) if k not in self.given]
        return tuple(left[k] for k in held.affine)

    @property
    def n_affine(self) -> int:
        """Number of parameters in which the equation is jointly affine."""
        return len(self._affine)

    @property
    def n_flat(self) -> int:
        """Number of parameters without a prior of their own."""
        return self.program.n_parameters - len(self.given)

    @cached_property
    def watched(self) -> tuple[Watched, ...]:
        """Denominators, and arguments of periodic functions, that depend on a parameter."""
        active = find_active(self.program.nodes)
        rows = list(OPERATORS.values())
        below: dict[int, None] = {}
        inside: dict[int, str] = {}
        parts: list[Watched] = []
        for code, a, b in self.program.nodes.tolist():
            row = rows[code - FIRST_OPERATOR] if code >= FIRST_OPERATOR else None
            name = "" if row is None else row.name
            if (code == POWER and b < 0) or name == "/":
                factors = self._factors(a if code == POWER else b)
                below |= {node: None for node in factors if active[node]}
            elif name in PERIODIC and active[a]:
                inside[a] = "tan" if name == "tan" or inside.get(a) == "tan" else "wave"
            elif row is not None and row.form is not None:
                parts += self._look_into(row, a, b)
        return (
            *(Watched(node, self._argument(node), "below") for node in below),
            *(self._watch_wave(kind, self._argument(node), node) for node, kind in inside.items()),
            *parts,
        )

    def _watch_wave(self, kind: str, argument: Program, node: int = -1) -> Watched:
        return Watched(node, argument, kind, self._shifts(argument), _is_phase(argument))

    def _look_into(self, row: Operator, a: int, b: int) -> list[Watched]:
        """Return what the rules look at inside the form of an operator, applied to two nodes."""
        seen = look_into(row)
        found = []
        for kind, part in (*(("below", one) for one in seen.below), *seen.waves):
            argument = self._part(part, (a, b))
            if not find_active(argument.nodes)[-1]:
                continue
            if kind == "below":
                found.append(Watched(-1, argument, kind))
            else:
                found.append(self._watch_wave("tan" if kind == "tan" else "wave", argument))
        return found

    # Any: a SymPy expression.
    def _part(self, part: Any, given: tuple[int, int]) -> Program:
        """Return the program of a part of an operator's form, applied to nodes of this one."""
        own = lower(part, ("a", "b"), ())
        nodes, literals = self.program.nodes[: max(given) + 1].tolist(), self.program.literals
        places: list[int] = []
        for code, a, b in own.nodes.tolist():
            if code == VARIABLE:
                places.append(given[a])
                continue
            if code == LITERAL:
                entry = (code, a + len(literals), 0)
            else:
                entry = (code, places[a], b if code == POWER else places[b])
            places.append(len(nodes))
            nodes.append(entry)
        return replace(
            self.program,
            nodes=np.array(nodes[: places[-1] + 1], dtype=np.int32),
            literals=np.concatenate([literals, own.literals]),
        )

    def _factors(self, node: int) -> list[int]:
        """Nodes whose zeros are those of a denominator: it changes no sign if it is a square."""
        code, a, b = self.program.nodes[node].tolist()
        if code == POWER:
            return self._factors(a)
        name = list(OPERATORS)[code - FIRST_OPERATOR] if code >= FIRST_OPERATOR else ""
        if name == "*":
            return self._factors(a) + self._factors(b)
        return self._factors(a) if name in ("/", "sqrt", "abs") else [node]

    def _argument(self, node: int) -> Program:
        return replace(self.program, nodes=self.program.nodes[: node + 1])

    def _first(self, argument: Program, theta: Floats) -> float:
        return float(evaluate(argument, theta[None, :], self.data.X[:1])[0, 0])

    def _shifts(self, argument: Program) -> tuple[Floats, ...]:
        """Find parameters that are added to an argument, with nothing but a sign."""
        p = self.program.n_parameters
        # Two places: a derivative by a phase is 1 or -1 at both.
        theta = np.stack([np.full(p, 0.7), np.linspace(1.3, 2.1, p)])
        jacobian = evaluate_jacobian(argument, theta, self.data.X)[1]
        signs = [float(jacobian[0, k, 0]) for k in range(p)]
        return tuple(
            pi * sign * np.eye(p)[k]
            for k, sign in enumerate(signs)
            if abs(sign) == 1.0 and np.all(jacobian[:, k] == sign)
        )

    def wrap(self, theta: Floats) -> Floats:
        """Return parameters with phases such that arguments begin between -pi and pi."""
        theta = theta.copy()
        for watched in self.watched:
            if watched.shifts:
                periods = np.round(self._first(watched.argument, theta) / (2.0 * pi))
                theta -= 2.0 * periods * watched.shifts[0]
        return theta

    def errors(self, theta: Floats) -> Floats:
        """Return the sums of squared errors of a batch, without derivatives."""
        size = max(1, CHUNK // len(self.data.y))
        parts = [
            np.sum((evaluate(self.program, theta[k : k + size], self.data.X) - self.data.y) ** 2, 1)
            for k in range(0, len(theta), size)
        ]
        return np.concatenate(parts)

    def obeys(self, theta: Floats) -> NDArray[np.bool_]:
        """Tell which of a batch the rules allow."""
        return self.look(theta).allowed if self.watched else np.ones(len(theta), dtype=np.bool_)

    @property
    def _n(self) -> float:
        """Number of observations."""
        return self.data.n if isinstance(self.data, White) else len(self.data.y)

    def look(self, theta: Floats) -> Look:
        """Evaluate a batch, of shape (n, p)."""
        n, p = theta.shape
        places = [watched.node for watched in self.watched if watched.node >= 0]
        nodes = np.array(places, dtype=np.int64)
        sums, slope, gram = np.empty(n), np.empty((n, p)), np.empty((n, p, p))
        distances = np.empty((n, len(self.centres)))
        extremes = np.empty((n, len(nodes), 3))
        theta = np.ascontiguousarray(theta)
        size = max(1, CHUNK // len(self.data.y))
        with np.errstate(all="ignore"):
            for k in range(0, n, size):
                check_time()
                some = slice(k, k + size)
                run_compiled(
                    "_moments",
                    self.program.nodes,
                    self.program.literals,
                    theta[some],
                    self.data.X,
                    self.data.y,
                    self.centres,
                    self.scales,
                    nodes,
                    sums[some],
                    slope[some],
                    gram[some],
                    distances[some],
                    extremes[some],
                )
            parts = [
                self._extremes(watched.argument, theta) for watched in self.watched[len(places) :]
            ]
            lengths, root, whitened = factor_moments(gram, slope, self.order, LEAST_SHARE)
            lengths = lengths / self.scales[self.order]
            diagonal = np.einsum("nii->ni", root)
            some_logs = np.log(diagonal) + np.log(lengths)
            log_volume = np.sum(some_logs[:, : self.n_flat], axis=1)
            square = distances.min(axis=1, initial=np.inf) if len(self.centres) else np.zeros(n)
        allowed = np.isfinite(sums)
        if parts:
            extremes = np.concatenate([extremes, *(part[:, None] for part in parts)], axis=1)
        for place, watched in enumerate(self.watched):
            low, high, first = extremes[:, place].T
            longest = np.inf if watched.is_phase else pi * (self._n - 1)
            phase = float(self.phases[place]) if len(self.phases) else np.nan
            allowed &= _obeys(watched.kind, low, high, first, phase, longest)
        return Look(sums, log_volume, square, allowed, lengths, root, whitened)

    def _extremes(self, argument: Program, theta: Floats) -> Floats:
        """Return the least, largest and first value of a program, of shape (n, 3)."""
        size = max(1, CHUNK // len(self.data.y))
        found = np.empty((len(theta), 3))
        for k in range(0, len(theta), size):
            values = evaluate(argument, theta[k : k + size], self.data.X)
            found[k : k + size] = np.stack([values.min(1), values.max(1), values[:, 0]], axis=1)
        return found


def _is_phase(argument: Program) -> bool:
    """Tell whether parameters and variables are in different terms of a sum."""
    active = find_active(argument.nodes)
    rows = list(OPERATORS.values())

    def has_variable(node: int) -> bool:
        code, a, b = argument.nodes[node].tolist()
        if code < FIRST_OPERATOR and code != POWER:
            return bool(code == VARIABLE)
        is_binary = code != POWER and rows[code - FIRST_OPERATOR].arity == 2
        return has_variable(a) or (is_binary and has_variable(b))

    def is_apart(node: int) -> bool:
        if not active[node]:
            return True
        code, a, b = argument.nodes[node].tolist()
        if code >= FIRST_OPERATOR and rows[code - FIRST_OPERATOR].name in ("+", "-"):
            return is_apart(a) and is_apart(b)
        return not has_variable(node)

    return is_apart(len(argument.nodes) - 1)


def _obeys(
    kind: str, low: Floats, high: Floats, first: Floats, phase: float, longest: float
) -> NDArray[np.bool_]:
    """Tell where a denominator keeps its sign, or an argument is no alias of another."""
    with np.errstate(invalid="ignore", over="ignore"):
        if kind == "below":
            return np.asarray((low > 0.0) | (high < 0.0))
        obeys = high - low <= longest
        if kind == "tan":
            obeys &= np.floor(low / pi + 0.5) == np.floor(high / pi + 0.5)
        if not np.isnan(phase):
            # A window of one period; half a period away from the best, where the amplitude has
            # the other sign, must not be its edge.
            obeys &= (first > phase - 0.5 * pi) & (first <= phase + 1.5 * pi)
        return np.asarray(obeys)
