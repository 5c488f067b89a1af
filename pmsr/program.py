"""The equation as data: an integer table with its literals, its value, Jacobian and PyTensor Op."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pytensor.tensor as pt
from numba import njit
from numpy.typing import NDArray
from pytensor.gradient import DisconnectedType, grad_not_implemented
from pytensor.graph.basic import Apply, Variable
from pytensor.graph.op import Op
from pytensor.graph.replace import _vectorize_node
from pytensor.link.numba.dispatch import numba_funcify
from pytensor.tensor.type import TensorType

from pmsr.operators import (
    BUILT_IN,
    FIRST_OPERATOR,
    LITERAL,
    OPERATORS,
    PARAMETER,
    POWER,
    VARIABLE,
    compile_derivatives,
    compile_values,
    table_fingerprint,
)

Floats = NDArray[np.float64]

BLOCK = 512  # values of a node that are computed together: few dispatches, and all stays in cache


@dataclass(frozen=True, eq=False)
class Program:
    """An equation as an acyclic graph in topological order; the last node is the result.

    Parameters
    ----------
    nodes
        Integers of shape (n_nodes, 3): a code and two entries. For a leaf (``VARIABLE``,
        ``PARAMETER``, ``LITERAL``) the first entry is a column of X, a parameter or a literal; for
        ``POWER`` the entries are a node and an integer exponent; for an operator, its argument
        nodes, which come earlier in the table.
    literals
        The numbers that the ``LITERAL`` nodes refer to.
    n_parameters
        The length of theta.

    Examples
    --------
    >>> line = Program.of([(PARAMETER, 0, 0), (VARIABLE, 0, 0), (6, 0, 1)], [], 1)   # c0*x0
    >>> evaluate(line, np.array([[2.0]]), np.array([[1.0], [3.0]]))
    array([[2., 6.]])
    """

    nodes: NDArray[np.int32]
    literals: Floats
    n_parameters: int

    @classmethod
    def of(
        cls, nodes: list[tuple[int, int, int]], literals: list[float], n_parameters: int
    ) -> "Program":
        """Make a program from lists."""
        return cls(
            np.array(nodes, dtype=np.int32).reshape(-1, 3),
            np.array(literals, dtype=np.float64),
            n_parameters,
        )

    @cached_property
    def affine(self) -> tuple[int, ...]:
        """Parameters in which the equation is jointly affine: as many as a greedy choice finds.

        Examples
        --------
        >>> decay = Program.of([(PARAMETER, 0, 0), (PARAMETER, 1, 0), (6, 0, 1)], [], 2)
        >>> decay.affine    # c0*c1 is affine in either, not in both
        (0,)
        """
        degrees, partners = self._dependence()
        candidates = [k for k in range(self.n_parameters) if degrees.get(k, 0) <= 1]
        chosen: list[int] = []
        # Few partners first: of c0*(c1 + c2*x), c1 and c2 rather than c0.
        for parameter in sorted(candidates, key=lambda k: len(partners[k])):
            if not partners[parameter] & set(chosen):
                chosen.append(parameter)
        return tuple(sorted(chosen))

    def _dependence(self) -> tuple[dict[int, int], list[set[int]]]:
        """Degree (1 affine, 2 not) by parameter at the root, and who multiplies whom."""
        names = list(OPERATORS)
        degrees: list[dict[int, int]] = []
        partners: list[set[int]] = [set() for _ in range(self.n_parameters)]
        for code, a, b in self.nodes.tolist():
            if code == PARAMETER:
                degrees.append({a: 1})
                continue
            if code in (VARIABLE, LITERAL):
                degrees.append({})
                continue
            left = degrees[a]
            right = {} if code == POWER else degrees[b]
            name = "pow" if code == POWER else names[code - FIRST_OPERATOR]
            if code != POWER and OPERATORS[name].arity == 1:
                right = {}
            joint = {k: max(left.get(k, 0), right.get(k, 0)) for k in [*left, *right]}
            if name == "*":
                for k in left:
                    partners[k].update(right)
                for k in right:
                    partners[k].update(left)
                joint.update({k: 2 for k in left if k in right})
            elif name == "/":
                for k in left:
                    partners[k].update(right)
                for k in right:
                    partners[k].update(left)
                joint.update(dict.fromkeys(right, 2))
            elif name not in ("+", "-"):
                joint = dict.fromkeys(joint, 2)
            degrees.append(joint)
        return degrees[-1], partners

    def freeze(self, frozen: dict[int, float]) -> "Program":
        """Return the program with some parameters turned into literals; the others close ranks."""
        rank = {k: i for i, k in enumerate(k for k in range(self.n_parameters) if k not in frozen)}
        nodes, literals = [], self.literals.tolist()
        for code, a, b in self.nodes.tolist():
            if code == PARAMETER and a in frozen:
                nodes.append((LITERAL, len(literals), 0))
                literals.append(frozen[a])
            elif code == PARAMETER:
                nodes.append((PARAMETER, rank[a], 0))
            else:
                nodes.append((code, a, b))
        return Program.of(nodes, literals, len(rank))


def evaluate(program: Program, theta: Floats, X: Floats) -> Floats:
    """Value of the equation for a batch of parameter vectors.

    Parameters
    ----------
    program
        The equation.
    theta
        Parameters, of shape (n_batch, p).
    X
        Inputs, of shape (N, d).

    Returns
    -------
    numpy.ndarray
        Shape (n_batch, N); infinite or NaN where the equation is.
    """
    return evaluate_table(program.nodes, program.literals, theta, X)


def evaluate_jacobian(program: Program, theta: Floats, X: Floats) -> tuple[Floats, Floats]:
    r"""Value of the equation and its derivatives by the parameters.

    Returns
    -------
    tuple
        Values of shape (n_batch, N) and :math:`\chi` of Eq. (8), of shape (n_batch, p, N): one
        contiguous row a parameter.
    """
    return evaluate_table_jacobian(program.nodes, program.literals, theta, X)


def parameter_free_values(program: Program, X: Floats) -> dict[int, Floats]:
    """Values of the nodes that depend on no parameter, at the first `BLOCK` points."""
    which = ~_activity(program.nodes)
    points = X[:BLOCK]
    table = np.empty((len(program.nodes), len(points)))
    theta = np.empty((1, program.n_parameters))
    _run("_sweep", program.nodes, program.literals, theta, points, len(points), table, which)
    return {int(node): table[node] for node in np.flatnonzero(which)}


def evaluate_table(nodes: NDArray[np.int32], literals: Floats, theta: Floats, X: Floats) -> Floats:
    """Like `evaluate`, on the bare table."""
    values = np.empty((len(theta), len(X)))
    _run("_values", nodes, literals, np.ascontiguousarray(theta), X, values)
    return values


def evaluate_table_jacobian(
    nodes: NDArray[np.int32], literals: Floats, theta: Floats, X: Floats
) -> tuple[Floats, Floats]:
    """Like `evaluate_jacobian`, on the bare table."""
    values = np.empty((len(theta), len(X)))
    jacobian = np.empty((len(theta), theta.shape[1], len(X)))
    _run("_jacobian", nodes, literals, np.ascontiguousarray(theta), X, values, jacobian)
    return values, jacobian


def _run(name: str, *arguments: Any) -> None:
    """Call a compiled kernel; compile all anew if it was made for another table of operators."""
    if globals()[name](*arguments) != table_fingerprint():
        _compile_anew()
        globals()[name](*arguments)


def _compile_anew() -> None:
    """Link today's rows. Kernels with a user's rows stay out of the cache that all share."""
    global _apply, _push, _linked
    if _linked != table_fingerprint():
        _apply, _push, _linked = compile_values(), compile_derivatives(), table_fingerprint()
    for name in ("_sweep", "_backward", "_values", "_jacobian"):
        if table_fingerprint() == BUILT_IN:
            globals()[name].recompile()
        else:
            globals()[name] = njit(error_model="numpy", nogil=True)(globals()[name].py_func)


_apply, _push, _linked = compile_values(), compile_derivatives(), table_fingerprint()

# Compiling takes seconds, so the result is kept on disk. Numba looks only at the date of this
# file: hence the fingerprint that each kernel returns, a constant since it was compiled.


@njit(error_model="numpy", nogil=True, cache=True)
def _activity(nodes):  # type: ignore[no-untyped-def]
    """Tell which nodes depend on a parameter: the others are the same for the whole batch."""
    active = np.zeros(len(nodes), dtype=np.bool_)
    for node in range(len(nodes)):
        code, a, b = nodes[node]
        if code == PARAMETER:
            active[node] = True
        elif code == POWER:
            active[node] = active[a]
        elif code >= FIRST_OPERATOR:
            active[node] = active[a] or active[b]
    return active


@njit(error_model="numpy", nogil=True, cache=True)
def _sweep(nodes, literals, theta, X, n_points, table, which):  # type: ignore[no-untyped-def]
    """Compute the rows of the table for which `which` holds, for a block of theta times points."""
    n_block = len(theta) * n_points
    for node in range(len(nodes)):
        if not which[node]:
            continue
        code, a, b = nodes[node]
        row = table[node, :n_block]
        if code == VARIABLE:
            for batch in range(len(theta)):
                for i in range(n_points):
                    row[batch * n_points + i] = X[i, a]
        elif code == PARAMETER:
            for batch in range(len(theta)):
                for i in range(n_points):
                    row[batch * n_points + i] = theta[batch, a]
        elif code == LITERAL:
            row[:] = literals[a]
        elif code == POWER:
            base = table[a]
            if b == 2:
                for i in range(n_block):
                    row[i] = base[i] * base[i]
            elif b == 3:
                for i in range(n_block):
                    row[i] = base[i] * base[i] * base[i]
            else:
                for i in range(n_block):
                    row[i] = base[i] ** b
        else:
            _apply(code, table[a], table[b], row)
    return _linked


@njit(error_model="numpy", nogil=True, cache=True)
def _values(nodes, literals, theta, X, values):  # type: ignore[no-untyped-def]
    """Fill values, of shape (n_batch, N); return the fingerprint of the operators."""
    active = _activity(nodes)
    inactive = ~active
    most_points = min(BLOCK, len(X))
    most_theta = max(1, min(BLOCK // most_points, len(theta)))
    table = np.empty((len(nodes), most_theta * most_points))
    for start in range(0, len(X), most_points):
        points = X[start : start + most_points]
        n = len(points)
        _sweep(nodes, literals, theta[:most_theta], points, n, table, inactive)
        for batch in range(0, len(theta), most_theta):
            block = theta[batch : batch + most_theta]
            _sweep(nodes, literals, block, points, n, table, active)
            for k in range(len(block)):
                values[batch + k, start : start + n] = table[-1, k * n : (k + 1) * n]
    return _linked


@njit(error_model="numpy", nogil=True, cache=True)
def _jacobian(nodes, literals, theta, X, values, jacobian):  # type: ignore[no-untyped-def]
    """Fill values and, by one backward sweep, jacobian of shape (n_batch, p, N)."""
    active = _activity(nodes)
    inactive = ~active
    most_points = min(BLOCK, len(X))
    most_theta = max(1, min(BLOCK // most_points, len(theta)))
    table = np.empty((len(nodes), most_theta * most_points))
    adjoint = np.empty_like(table)
    jacobian[:] = 0.0
    for start in range(0, len(X), most_points):
        points = X[start : start + most_points]
        n = len(points)
        _sweep(nodes, literals, theta[:most_theta], points, n, table, inactive)
        for batch in range(0, len(theta), most_theta):
            block = theta[batch : batch + most_theta]
            _sweep(nodes, literals, block, points, n, table, active)
            for k in range(len(block)):
                values[batch + k, start : start + n] = table[-1, k * n : (k + 1) * n]
            if active[-1]:
                _backward(nodes, table, adjoint, len(block) * n, active)
                for node in range(len(nodes)):
                    if nodes[node, 0] == PARAMETER:
                        a = nodes[node, 1]
                        for k in range(len(block)):
                            for i in range(n):
                                jacobian[batch + k, a, start + i] += adjoint[node, k * n + i]
    return _linked


@njit(error_model="numpy", nogil=True, cache=True)
def _backward(nodes, table, adjoint, n_block, active):  # type: ignore[no-untyped-def]
    """Fill adjoint with the derivatives of the result by every active node."""
    adjoint[:, :n_block] = 0.0
    adjoint[-1, :n_block] = 1.0
    for node in range(len(nodes) - 1, -1, -1):
        code, a, b = nodes[node]
        if not active[node] or code == PARAMETER:
            continue
        down = adjoint[node]
        if code == POWER:
            for i in range(n_block):
                adjoint[a, i] += down[i] * b * table[a, i] ** (b - 1)
        else:
            n_a = n_block if active[a] else 0
            n_b = n_block if active[b] else 0
            _push(code, table[a], table[b], table[node], down, adjoint[a, :n_a], adjoint[b, :n_b])


# Any: PyTensor's variables take operators and attributes that its annotations do not know.


class _ProgramOp(Op):
    """What the value and the Jacobian share as PyTensor Ops: inputs, batching, disconnection."""

    __props__ = ()

    @staticmethod
    def output_shape(theta: Any, X: Any) -> tuple[Any, ...]:
        """Shape of the result, from the shapes of theta and X."""
        raise NotImplementedError

    @staticmethod
    def compute(nodes: Any, literals: Any, theta: Any, X: Any) -> Floats:
        """Compute the result for a batch of theta."""
        raise NotImplementedError

    def make_node(self, *inputs: Any) -> Apply:
        """Bring nodes, literals, theta and X together; theta is a vector or a batch of them."""
        nodes, literals, theta, X = map(pt.as_tensor_variable, inputs)
        if theta.ndim not in (1, 2):
            raise ValueError(f"theta must have 1 or 2 dimensions, got {theta.ndim}.")
        typed = [nodes.astype("int32"), *(a.astype("float64") for a in (literals, theta, X))]
        shape = self.output_shape(theta.type.shape, X.type.shape)
        return Apply(self, typed, [TensorType("float64", shape)()])

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        """Everything but the table of integers moves the result continuously."""
        return [[False], [True], [True], [True]]

    def perform(self, node: Apply, inputs: Any, outputs: Any) -> None:
        """Compute, for PyTensor's own linkers."""
        nodes, literals, theta, X = inputs
        result = self.compute(nodes, literals, np.atleast_2d(theta), np.ascontiguousarray(X))
        outputs[0][0] = result.reshape(self.output_shape(theta.shape, X.shape))


class EvaluateProgram(_ProgramOp):
    """The value of an equation as a PyTensor Op: ``EvaluateProgram()(nodes, literals, theta, X)``.

    The table is an input like any other, so that one compiled function serves all equations with
    the same number of parameters. Works in a PyMC model of your own, with gradients for NUTS.

    Examples
    --------
    >>> line = Program.of([(PARAMETER, 0, 0), (VARIABLE, 0, 0), (6, 0, 1)], [], 1)   # c0*x0
    >>> mu = EvaluateProgram()(line.nodes, line.literals, np.array([2.0]), np.array([[1.0], [3.0]]))
    >>> mu.eval()
    array([2., 6.])
    """

    @staticmethod
    def output_shape(theta: Any, X: Any) -> tuple[Any, ...]:  # noqa: D102
        return (*theta[:-1], X[0])

    @staticmethod
    def compute(nodes: Any, literals: Any, theta: Any, X: Any) -> Floats:  # noqa: D102
        return evaluate_table(nodes, literals, theta, X)

    def pullback(self, inputs: Any, outputs: Any, cotangents: Any) -> list[Variable]:
        """Product of the Jacobian's transpose with the cotangent; by theta only."""
        nodes, literals, theta, X = inputs
        jacobian = ProgramJacobian()(nodes, literals, theta, X)
        return [
            DisconnectedType()(),
            grad_not_implemented(self, 1, literals),
            (jacobian * cotangents[0][..., None, :]).sum(axis=-1),
            grad_not_implemented(self, 3, X),
        ]

    L_op = pullback  # type: ignore[assignment]  # the name before PyTensor 3


class ProgramJacobian(_ProgramOp):
    r"""The Jacobian :math:`\chi` of an equation as a PyTensor Op, of shape (..., p, N)."""

    @staticmethod
    def output_shape(theta: Any, X: Any) -> tuple[Any, ...]:  # noqa: D102
        return (*theta, X[0])

    @staticmethod
    def compute(nodes: Any, literals: Any, theta: Any, X: Any) -> Floats:  # noqa: D102
        return evaluate_table_jacobian(nodes, literals, theta, X)[1]


@_vectorize_node.register(_ProgramOp)
def _vectorize_program(op: _ProgramOp, node: Apply, *inputs: Any) -> Apply:
    """Batch over theta by handing the Op a matrix; the rest must be the same for all particles."""
    for index, (new, old) in enumerate(zip(inputs, node.inputs, strict=True)):
        if index != 2 and new.type.ndim != old.type.ndim:
            raise NotImplementedError(f"Only theta can be batched, not {old}.")
    return op.make_node(*inputs)


@numba_funcify.register(EvaluateProgram)
def _funcify_value(op: EvaluateProgram, node: Apply, **_: Any) -> Any:
    _compute_once(op)
    batched = node.inputs[2].type.ndim == 2

    @njit
    def value(nodes, literals, theta, X):  # type: ignore[no-untyped-def]
        rows = np.ascontiguousarray(theta).reshape(-1, theta.shape[-1])
        values = np.empty((len(rows), len(X)))
        table = np.ascontiguousarray(nodes)
        _values(table, np.ascontiguousarray(literals), rows, np.ascontiguousarray(X), values)
        return values if batched else values[0]

    return value


@numba_funcify.register(ProgramJacobian)
def _funcify_jacobian(op: ProgramJacobian, node: Apply, **_: Any) -> Any:
    _compute_once(op)
    batched = node.inputs[2].type.ndim == 2

    @njit
    def derivatives(nodes, literals, theta, X):  # type: ignore[no-untyped-def]
        rows = np.ascontiguousarray(theta).reshape(-1, theta.shape[-1])
        values = np.empty((len(rows), len(X)))
        jacobian = np.empty((len(rows), rows.shape[1], len(X)))
        table, inputs = np.ascontiguousarray(nodes), np.ascontiguousarray(X)
        _jacobian(table, np.ascontiguousarray(literals), rows, inputs, values, jacobian)
        return jacobian if batched else jacobian[0]

    return derivatives


def _compute_once(op: _ProgramOp) -> None:
    """Bring the kernel up to date with the table, which compiled graphs cannot check."""
    one = Program.of([(LITERAL, 0, 0)], [1.0], 0)
    op.compute(one.nodes, one.literals, np.empty((1, 0)), np.empty((1, 0)))


if _linked != BUILT_IN:  # rows were added before this module was imported
    _compile_anew()
