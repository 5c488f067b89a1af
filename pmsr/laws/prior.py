r"""The prior over laws: what a law costs before any data are seen.

The number of distinct laws grows several times with each node, so equal probabilities for all are a
prior for monsters. A description has a price instead:

.. math::
    \log P = - a\, n - \sum_{p/q} \log \frac{p (p + 1)}{2} \frac{q (q + 1)}{2} - d\, k

with n nodes of the tree, the numbers p/q in it, and k unit coincidences.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from numbers import Real
from typing import Any, Literal, TypeAlias

import numpy as np
import sympy
from numba import njit
from numpy.typing import NDArray

from pmsr.equation.algebra import apply_operator, real_symbol
from pmsr.equation.expression import Equation
from pmsr.equation.operators import (
    FIRST_OPERATOR,
    LITERAL,
    OPERATORS,
    POWER,
    table_fingerprint,
)
from pmsr.equation.program import Program, Tables
from pmsr.laws.coincidences import (
    Coincidences,
    Generators,
    Rows,
    Signs,
    count_all_coincidences,
    count_coincidences,
)
from pmsr.threads import ONE_AT_A_TIME

Floats = NDArray[np.float64]

# Rounding of a number that was computed, such as 2*pi/3, and of the fraction it is compared with.
ROUNDING = 4.0 * float(np.finfo(np.float64).eps)
LARGEST_FLOAT = float(np.finfo(np.float64).max) / 2.0  # of denormal numbers, the inverse is larger

# Any: SymPy's constructors are untyped; every Any below is a SymPy expression or a check's value.


@dataclass(frozen=True)
class LawCounts:
    """How many distinct laws there are of every size: what a size costs is the log of it.

    Parameters
    ----------
    by_nodes
        Number of distinct laws with 1, 2, ... nodes. Larger sizes are extrapolated.

    Examples
    --------
    >>> counts = LawCounts((2, 1, 6, 18, 80))
    >>> round(counts.log_count(5), 3), round(math.exp(counts.log_count(7)))
    (4.382, 1067)
    """

    by_nodes: tuple[int, ...]

    def __post_init__(self) -> None:
        counts = tuple(self.by_nodes)
        if any(isinstance(n, bool) or not isinstance(n, int) or n < 0 for n in counts):
            raise ValueError(f"by_nodes must be integers of at least 0, got {counts!r}.")
        if sum(n > 0 for n in counts) < 2:
            raise ValueError(
                f"by_nodes must hold at least two sizes that occur, got {counts!r}. Count further."
            )
        object.__setattr__(self, "by_nodes", counts)

    @cached_property
    def _known(self) -> tuple[Floats, Floats]:
        sizes = np.array([k for k, n in enumerate(self.by_nodes, 1) if n])
        return sizes.astype(float), np.log([self.by_nodes[k - 1] for k in sizes])

    @property
    def growth(self) -> float:
        """Nats for each further node, from the last sizes that were counted.

        Two steps back, where there are as many: with binary operators odd sizes are commoner.
        """
        sizes, logs = self._known
        back = min(3, len(sizes))
        return float((logs[-1] - logs[-back]) / (sizes[-1] - sizes[-back]))

    def log_count(self, n_nodes: float) -> float:
        """Log of the number of distinct laws of a size."""
        return float(self.log_counts(np.array([n_nodes]))[0])

    def log_counts(self, n_nodes: Floats) -> Floats:
        """Return the logs of the numbers of distinct laws of many sizes."""
        sizes, logs = self._known
        beyond = logs[-1] + self.growth * (n_nodes - sizes[-1])
        return np.where(n_nodes > sizes[-1], beyond, np.interp(n_nodes, sizes, logs))


@dataclass(frozen=True, kw_only=True)
class LawPrior:
    """What the parts of a law cost, in nats.

    The defaults were chosen on laws of science, see ``docs/law_prior.md``.

    Parameters
    ----------
    per_node
        Cost of a node of the tree: a variable, a parameter, a number, an operator.
    per_coincidence
        Cost of a unit coincidence.
    per_pure_number
        Cost of a coincidence by which a column must be a pure number, which is rarer in a table
        than two columns that share a unit; by default ``per_coincidence``.
    operators
        Costs of single operators in place of that of a node: ``{"sin": 3.0}``. ``"pow"`` is every
        power; its exponent costs as a number does.
    counts
        The alternative to a fixed cost: nodes without a cost of their own cost together the log of
        the number of distinct laws of that size, see `count_laws`.

    Examples
    --------
    >>> round(LawPrior(per_node=1.0).log_p(Equation("c0*sqrt(H)", ["H"]).program), 3)
    -4.0
    >>> LawPrior(per_node=-1.0)
    Traceback (most recent call last):
        ...
    ValueError: per_node must be a number of at least 0, got -1.0.
    """

    per_node: float = 1.5
    per_coincidence: float = 1.0
    per_pure_number: float | None = None
    operators: Mapping[str, float] = field(default_factory=dict, hash=False)
    counts: LawCounts | None = None

    def __post_init__(self) -> None:
        for name in ("per_node", "per_coincidence", "per_pure_number"):
            cost = getattr(self, name)
            if cost is not None or name != "per_pure_number":
                _check_cost(name, cost)
                object.__setattr__(self, name, float(cost))  # files hold no numbers of NumPy
        if not isinstance(self.operators, Mapping):
            raise ValueError(
                'operators must map names to costs, such as {"sin": 3.0}, got '
                f"{self.operators!r}."
            )
        for name, cost in self.operators.items():
            if name not in OPERATORS:
                raise ValueError(
                    f"Unknown operator {name!r} in operators. Available: {', '.join(OPERATORS)}."
                )
            _check_cost(f"The cost of {name!r}", cost)
        if self.counts is not None and not isinstance(self.counts, LawCounts):
            raise ValueError(f"counts must be a LawCounts or None, got {self.counts!r}.")
        own = {name: float(cost) for name, cost in self.operators.items()}
        object.__setattr__(self, "operators", own)

    def __call__(
        self,
        law: Equation,
        *,
        signs: Signs | None = None,
        generators: Generators | None = None,
        rows: Rows | None = None,
    ) -> float:
        """Log prior probability of a law as it is spelled, but for a constant.

        Parameters are those of `pmsr.laws.coincidences.count_coincidences`. It is ``-inf`` if the
        law does not survive a change of units that are known.
        """
        found = count_coincidences(
            law.program, len(law.variables), signs=signs, generators=generators, rows=rows
        )
        return self.log_p(law.program, found)

    def log_p(self, program: Program, coincidences: Coincidences | None = None) -> float:
        """Log prior probability of one folded program, but for a constant."""
        return float(self.log_ps([program], None if coincidences is None else [coincidences])[0])

    def log_ps(
        self, programs: Sequence[Program], coincidences: Sequence[Coincidences] | None = None
    ) -> Floats:
        """Log prior probabilities of many programs, of shape (n,)."""
        log_p = self.describe(Tables.of(programs))
        if coincidences is not None:
            log_p -= np.array([self.coincidence_cost(one) for one in coincidences])
        return log_p

    def describe(self, tables: Tables) -> Floats:
        """Log prior probabilities without regard to coincidences: nodes, operators and numbers."""
        sizes = np.empty((tables.n_programs, 2))
        describe_tables(
            np.ascontiguousarray(tables.nodes, np.int32),
            np.ascontiguousarray(tables.n_nodes, np.int64),
            np.ascontiguousarray(tables.literals, np.float64),
            *_operator_costs(self),
            sizes,
        )
        n_nodes, other = sizes.T
        if self.counts is None:
            return np.asarray(-self.per_node * n_nodes - other)
        return np.asarray(-np.where(n_nodes, self.counts.log_counts(n_nodes), 0.0) - other)

    # Any: a record of numbers of one law, or of arrays with those of many.
    def coincidence_cost(self, coincidences: Coincidences) -> Any:
        """Cost of the coincidences of one law; infinite if it is impossible."""
        pure = self.per_coincidence if self.per_pure_number is None else self.per_pure_number
        tied = coincidences.shared + coincidences.zeros
        cost = self.per_coincidence * tied + pure * coincidences.pure
        return np.where(np.asarray(coincidences.broken) > 0, math.inf, cost)


def uniform(law: Equation, **looks: Any) -> float:
    """Log prior probability of the paper: that of every equation is the same.

    Units that a user gives count nevertheless: ``-inf`` for a law that is impossible.
    """
    return -math.inf if _is_impossible(law, **looks) else 0.0


def _is_impossible(law: Equation, *, generators: Generators | None = None, **looks: Any) -> bool:
    if generators is None or generators.known is None:
        return False
    n_columns = len(law.variables)
    return count_coincidences(law.program, n_columns, generators=generators, **looks).broken > 0


def log_priors(
    prior: LawPrior,
    tables: Tables,
    n_columns: int,
    *,
    signs: Signs | None = None,
    generators: Generators | None = None,
    X: Floats | None = None,
    theta: Floats | None = None,
) -> Floats:
    """Log prior probabilities of many laws as they are spelled, in compiled code.

    Parameters
    ----------
    prior
        What the parts of a law cost.
    tables
        The laws, folded.
    n_columns, signs, generators, X, theta
        As in `pmsr.laws.coincidences.count_all_coincidences`.

    Returns
    -------
    ndarray
        Of shape (n,): what ``prior`` returns for each.

    Examples
    --------
    >>> laws = [Equation(text, ["x"]).program for text in ("c0*sqrt(x)", "c0 + x")]
    >>> log_priors(LawPrior(per_node=1.0, per_coincidence=2.0), Tables.of(laws), 1)
    array([-4., -5.])
    """
    log_p = prior.describe(tables)
    has_known = generators is not None and generators.known is not None
    if not has_known and prior.coincidence_cost(Coincidences(1, 1, 1)) == 0.0:
        return log_p
    found = count_all_coincidences(
        tables, n_columns, signs=signs, generators=generators, X=X, theta=theta
    )
    return np.asarray(log_p - prior.coincidence_cost(Coincidences(*found.T)))


LawPriorOption: TypeAlias = Literal["description", "uniform"] | LawPrior | Callable[..., float]


def read_law_prior(law_prior: LawPriorOption) -> Callable[..., float]:
    """Return the function from an Equation to its log prior that a user asks for.

    Parameters
    ----------
    law_prior
        ``"description"`` for the costs of `LawPrior`, ``"uniform"`` for the paper's, a `LawPrior`
        with other costs, or any function of an `Equation` that returns a number; ``-inf`` for a law
        that is impossible.

    Examples
    --------
    >>> read_law_prior("uniform")(Equation("c0*x", ["x"]))
    0.0
    """
    if isinstance(law_prior, str):
        if law_prior == "description":
            return LawPrior()
        if law_prior == "uniform":
            return uniform
    elif isinstance(law_prior, (LawPrior, _Checked)) or law_prior is uniform:
        return law_prior
    elif callable(law_prior):
        return _Checked(law_prior)
    raise ValueError(
        f'law_prior must be "description", "uniform", a LawPrior or a function of an equation, got '
        f"{law_prior!r}."
    )


@dataclass(frozen=True)
class _Checked:
    """A user's function, whose results are looked at; a class, so that it can be pickled."""

    function: Callable[[Equation], float]

    def __call__(self, law: Equation, **looks: Any) -> float:
        if _is_impossible(law, **looks):
            return -math.inf
        log_p: Any = self.function(law)  # users may return anything
        is_number = isinstance(log_p, Real) and not isinstance(log_p, bool)
        if not is_number or math.isnan(log_p) or log_p == math.inf:
            raise ValueError(
                f"law_prior returned {log_p!r} for {law}. Return a number, the log of a "
                "probability but for a constant, or -inf for a law that is impossible."
            )
        return float(log_p)


def find_log_priors(
    law_prior: LawPriorOption,
    tables: Tables,
    variables: Sequence[str],
    *,
    signs: Signs | None = None,
    generators: Generators | None = None,
    X: Floats | None = None,
    theta: Floats | None = None,
) -> Floats:
    """Log prior probabilities of many laws, whatever prior a user asks for.

    Parameters
    ----------
    law_prior
        As in `read_law_prior`. A user's function is asked law by law, in Python; what cannot be
        written as an equation, such as a number beyond the range of floats, is impossible.
    tables
        The laws, folded.
    variables
        Names of the columns of X.
    signs, generators, X, theta
        As in `pmsr.laws.coincidences.count_all_coincidences`.

    Examples
    --------
    >>> laws = Tables.of([Equation(text, ["x"]).program for text in ("c0*sqrt(x)", "c0 + x")])
    >>> find_log_priors("uniform", laws, ["x"])
    array([0., 0.])
    >>> find_log_priors(lambda law: -2.0 * len(law.parameters), laws, ["x"])
    array([-2., -2.])
    """
    prior = read_law_prior(law_prior)
    looks: dict[str, Any] = {"signs": signs, "generators": generators, "X": X, "theta": theta}
    if isinstance(prior, LawPrior):
        return log_priors(prior, tables, len(variables), **looks)
    log_p = np.zeros(tables.n_programs)
    if generators is not None and generators.known is not None:
        found = count_all_coincidences(tables, len(variables), **looks)
        log_p[found[:, 3] > 0] = -math.inf
    if prior is not uniform:
        for place in np.flatnonzero(np.isfinite(log_p)).tolist():
            try:
                law = Equation.from_program(tables.program(place), variables)
            except ValueError:
                log_p[place] = -math.inf
            else:
                log_p[place] = prior(law)
    return log_p


def _check_cost(name: str, cost: Any) -> None:
    is_number = isinstance(cost, Real) and not isinstance(cost, bool)
    if not is_number or not 0.0 <= cost < math.inf:
        raise ValueError(f"{name} must be a number of at least 0, got {cost!r}.")


def _operator_costs(prior: LawPrior) -> tuple[Floats, NDArray[np.int64]]:
    return _costs_of_codes(tuple(sorted(prior.operators.items())), table_fingerprint())


@lru_cache(maxsize=64)
def _costs_of_codes(
    own: tuple[tuple[str, float], ...], fingerprint: int
) -> tuple[Floats, NDArray[np.int64]]:
    """Costs by code, NaN where an operator is a node like others, and numbers of arguments."""
    costs = np.full(FIRST_OPERATOR + len(OPERATORS), np.nan)
    arities = np.ones(len(costs), dtype=np.int64)
    for code, (name, row) in enumerate(OPERATORS.items(), FIRST_OPERATOR):
        costs[code] = dict(own).get(name, np.nan)
        arities[code] = row.arity
    costs[POWER] = dict(own).get("pow", np.nan)
    return costs, arities


@njit(error_model="numpy", nogil=True, cache=True)
def describe_tables(nodes, n_nodes, literals, costs, arities, sizes):  # type: ignore[no-untyped-def]
    """Fill sizes, of shape (n, 2): nodes that cost what nodes do, and the sum of other costs.

    What several nodes of a table refer to is written several times in the tree.
    """
    plain, other = np.empty(nodes.shape[1]), np.empty(nodes.shape[1])
    for one in range(len(sizes)):
        for node in range(n_nodes[one]):
            code, a, b = nodes[one, node]
            plain[node], other[node] = 1.0, 0.0
            if code == LITERAL:
                more, other[node] = number_cost(literals[one, a])
                plain[node] += more
            elif code >= POWER:
                if not np.isnan(costs[code]):
                    plain[node], other[node] = 0.0, costs[code]
                plain[node] += plain[a]
                other[node] += other[a]
                if code == POWER:
                    plain[node] += 1.0
                    other[node] += fraction_cost(float(b))
                elif arities[code] == 2:
                    plain[node] += plain[b]
                    other[node] += other[b]
        last = n_nodes[one] - 1
        sizes[one, 0], sizes[one, 1] = plain[last], other[last]


@njit(error_model="numpy", nogil=True, cache=True)
def number_cost(value):  # type: ignore[no-untyped-def]
    """Return further nodes and the cost of a number: p/q, the root of it, or pi times it."""
    more, cost = 0.0, fraction_cost(value)
    by_root = fraction_cost(value * value)
    if by_root + 1.0 < more + cost:
        more, cost = 1.0, by_root
    by_pi = fraction_cost(value / math.pi)
    if by_pi + 2.0 < more + cost:
        more, cost = 2.0, by_pi
    return more, cost


@njit(error_model="numpy", nogil=True, cache=True)
def fraction_cost(value):  # type: ignore[no-untyped-def]
    """Cost of the simplest p/q that is the number, by its continued fraction; 0 costs as 1 does.

    The sign is free: it turns a plus into a minus.
    """
    value = abs(value)
    if not np.isfinite(value):
        return np.inf
    if value == 0.0:
        return 0.0
    p_before, q_before, p, q, rest = 0.0, 1.0, 1.0, 0.0, value
    while True:
        whole = np.floor(rest)
        p_before, p = p, whole * p + p_before
        q_before, q = q, whole * q + q_before
        # Once p or q is beyond what floats count, they cannot come closer.
        if abs(p / q - value) <= ROUNDING * value or p + q > 1.0 / ROUNDING or rest == whole:
            p = max(p, 1.0)
            return np.log(p) + np.log(p + 1.0) + np.log(q) + np.log(q + 1.0) - np.log(4.0)
        rest = min(1.0 / (rest - whole), LARGEST_FLOAT)


def count_laws(operators: Sequence[str], n_variables: int, *, most: int = 3000) -> LawCounts:
    """Count the distinct laws of every size, level by level.

    Parameters
    ----------
    operators
        Operators of the search.
    n_variables
        Number of columns.
    most
        Combinations that a level may need to be counted; there are several times as many at the
        next, and each takes a third of a millisecond.

    Notes
    -----
    Leaves are variables and free parameters; a law counts at the smallest size at which it occurs,
    laws with the same canonical key are one.

    Examples
    --------
    >>> count_laws(("+", "*"), 1).by_nodes[:3]    # x and c0; then c0 + x, c0*x, 2*x, x**2
    (2, 0, 4)
    """
    for name in operators:
        if name not in OPERATORS:
            raise ValueError(f"Unknown operator {name!r}. Available: {', '.join(OPERATORS)}.")
    return _count_laws(tuple(operators), n_variables, most)


@lru_cache(maxsize=16)
def _count_laws(operators: tuple[str, ...], n_variables: int, most: int) -> LawCounts:
    variables = [f"x{j}" for j in range(n_variables)]
    leaves = [*map(real_symbol, variables), real_symbol("c0")]
    levels: list[list[Any]] = [leaves]
    seen = {Equation.from_real(leaf, variables).key for leaf in leaves}
    unary = [name for name in operators if OPERATORS[name].arity == 1]
    binary = [name for name in operators if OPERATORS[name].arity == 2]
    while True:
        combinations: list[tuple[str, tuple[Any, ...]]] = [
            (name, (a,)) for name in unary for a in levels[-1]
        ]
        pairs = range(1, len(levels))
        combinations += [
            (name, (a, b))
            for name in binary
            for k in pairs
            for a in levels[k - 1]
            for b in levels[len(levels) - k - 1]
        ]
        if len(levels) >= 3 and len(combinations) > most:
            break
        new = []
        for name, arguments in combinations:
            law = _combined(name, arguments, variables)
            if law is not None and law.key not in seen:
                seen.add(law.key)
                new.append(law.canonical)
        levels.append(new)
    return LawCounts(tuple(map(len, levels)))


def _combined(name: str, arguments: Sequence[Any], variables: Sequence[str]) -> Equation | None:
    """Apply an operator to laws, each with parameters of its own; None if nothing comes of it."""
    renamed, n_parameters = [], 0
    for argument in arguments:
        own = [symbol for symbol in argument.free_symbols if symbol.name not in variables]
        own.sort(key=lambda symbol: str(symbol.name))
        changes = {symbol: real_symbol(f"c{n_parameters + i}") for i, symbol in enumerate(own)}
        renamed.append(argument.xreplace(changes))
        n_parameters += len(own)
    try:
        with ONE_AT_A_TIME:
            expression = apply_operator(name, *renamed)
        if expression.has(sympy.zoo, sympy.nan, sympy.oo, sympy.I):
            return None
        return Equation.from_real(expression, variables)
    except ValueError:
        return None
