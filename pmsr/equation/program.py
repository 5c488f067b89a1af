"""The equation as data: an integer table with its literals, its value, Jacobian and PyTensor Op."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

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

from pmsr.equation import kernels
from pmsr.equation.kernels import BLOCK, run_compiled
from pmsr.equation.operators import FIRST_OPERATOR, LITERAL, OPERATORS, PARAMETER, POWER, VARIABLE

Floats = NDArray[np.float64]


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


class Tables(NamedTuple):
    """Programs side by side, padded to the size of the largest.

    Parameters
    ----------
    nodes
        As in `Program`, of shape (n, most nodes, 3); rows beyond ``n_nodes`` mean nothing.
    n_nodes
        Of each program, of shape (n,).
    literals
        Of shape (n, most literals); those beyond ``n_literals`` mean nothing.
    n_literals, n_parameters
        Of each program, of shape (n,).

    Examples
    --------
    >>> line = Program.of([(PARAMETER, 0, 0), (VARIABLE, 0, 0), (6, 0, 1)], [], 1)   # c0*x0
    >>> Tables.of([line, line]).program(1).nodes.tolist() == line.nodes.tolist()
    True
    """

    nodes: NDArray[np.int32]
    n_nodes: NDArray[np.integer]
    literals: Floats
    n_literals: NDArray[np.integer]
    n_parameters: NDArray[np.integer]

    @classmethod
    def of(cls, programs: Sequence[Program]) -> "Tables":
        """Put programs side by side."""
        n_nodes = np.array([len(one.nodes) for one in programs], dtype=np.int64)
        n_literals = np.array([len(one.literals) for one in programs], dtype=np.int64)
        nodes = np.zeros((len(programs), n_nodes.max(initial=1), 3), dtype=np.int32)
        literals = np.zeros((len(programs), n_literals.max(initial=1)))
        for k, one in enumerate(programs):
            nodes[k, : len(one.nodes)] = one.nodes
            literals[k, : len(one.literals)] = one.literals
        n_parameters = np.array([one.n_parameters for one in programs], dtype=np.int64)
        return cls(nodes, n_nodes, literals, n_literals, n_parameters)

    @property
    def n_programs(self) -> int:
        """How many there are; the length of a tuple is that of its fields."""
        return len(self.n_nodes)

    def program(self, place: int) -> Program:
        """Return one program."""
        return Program(
            self.nodes[place, : self.n_nodes[place]].copy(),
            self.literals[place, : self.n_literals[place]].copy(),
            int(self.n_parameters[place]),
        )

    def take(self, places: Any) -> "Tables":
        """Return those at some places, or where a mask holds, no wider than they need."""
        n_nodes, n_literals = self.n_nodes[places], self.n_literals[places]
        return Tables(
            np.ascontiguousarray(self.nodes[places, : n_nodes.max(initial=1)]),
            n_nodes,
            np.ascontiguousarray(self.literals[places, : n_literals.max(initial=1)]),
            n_literals,
            self.n_parameters[places],
        )


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


def evaluate_slopes(program: Program, theta: Floats, X: Floats) -> tuple[Floats, Floats, Floats]:
    """Value of the equation, its derivatives by the parameters and those by the variables.

    Returns
    -------
    tuple
        Values of shape (n_batch, N), derivatives of shape (2, n_batch, p, N) and
        (2, n_batch, d, N). The second half of each is what was added up without regard to sign:
        rounding errors are in proportion to it.

    Examples
    --------
    >>> line = Program.of([(PARAMETER, 0, 0), (VARIABLE, 0, 0), (6, 0, 1)], [], 1)   # c0*x0
    >>> evaluate_slopes(line, np.array([[2.0]]), np.array([[1.0], [3.0]]))[2][0]
    array([[[2., 2.]]])
    """
    values = np.empty((len(theta), len(X)))
    jacobian = np.empty((2, len(theta), theta.shape[1], len(X)))
    slopes = np.empty((2, len(theta), X.shape[1], len(X)))
    run_compiled(
        "_slopes",
        program.nodes,
        program.literals,
        np.ascontiguousarray(theta),
        np.ascontiguousarray(X),
        values,
        jacobian,
        slopes,
    )
    return values, jacobian, slopes


def evaluate_slopes_of_many(
    tables: Tables, theta: Floats, X: Floats
) -> tuple[Floats, Floats, Floats]:
    """Do what `evaluate_slopes` does for programs that have as many parameters, at the same theta.

    The results have one more dimension, the first: that of the programs.
    """
    n, n_batch, n_points = tables.n_programs, len(theta), len(X)
    values = np.empty((n, n_batch, n_points))
    jacobian = np.empty((n, 2, n_batch, theta.shape[1], n_points))
    slopes = np.empty((n, 2, n_batch, X.shape[1], n_points))
    run_compiled(
        "_slopes_of_many",
        np.ascontiguousarray(tables.nodes, np.int32),
        np.ascontiguousarray(tables.n_nodes, np.int64),
        np.ascontiguousarray(tables.literals, np.float64),
        np.ascontiguousarray(theta),
        np.ascontiguousarray(X),
        values,
        jacobian,
        slopes,
    )
    return values, jacobian, slopes


def parameter_free_values(program: Program, X: Floats) -> dict[int, Floats]:
    """Values of the nodes that depend on no parameter, at the first `BLOCK` points."""
    which = ~kernels.find_active(program.nodes)
    points = X[:BLOCK]
    table = np.empty((len(program.nodes), len(points)))
    theta = np.empty((1, program.n_parameters))
    run_compiled(
        "_sweep", program.nodes, program.literals, theta, points, len(points), table, which
    )
    return {int(node): table[node] for node in np.flatnonzero(which)}


def evaluate_table(nodes: NDArray[np.int32], literals: Floats, theta: Floats, X: Floats) -> Floats:
    """Like `evaluate`, on the bare table."""
    values = np.empty((len(theta), len(X)))
    run_compiled("_values", nodes, literals, np.ascontiguousarray(theta), X, values)
    return values


def evaluate_table_jacobian(
    nodes: NDArray[np.int32], literals: Floats, theta: Floats, X: Floats
) -> tuple[Floats, Floats]:
    """Like `evaluate_jacobian`, on the bare table."""
    values = np.empty((len(theta), len(X)))
    jacobian = np.empty((len(theta), theta.shape[1], len(X)))
    run_compiled("_jacobian", nodes, literals, np.ascontiguousarray(theta), X, values, jacobian)
    return values, jacobian


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
        kernels._values(
            table, np.ascontiguousarray(literals), rows, np.ascontiguousarray(X), values
        )
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
        kernels._jacobian(table, np.ascontiguousarray(literals), rows, inputs, values, jacobian)
        return jacobian if batched else jacobian[0]

    return derivatives


def _compute_once(op: _ProgramOp) -> None:
    """Bring the kernel up to date with the table, which compiled graphs cannot check."""
    one = Program.of([(LITERAL, 0, 0)], [1.0], 0)
    op.compute(one.nodes, one.literals, np.empty((1, 0)), np.empty((1, 0)))
