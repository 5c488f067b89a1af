r"""Unit coincidences: changes of unit that a law does not survive.

``c0 + H`` says that two columns add up with coefficient one, which is true in one unit only. A law
:math:`f(x, \theta)` survives a change of the unit of column j if
:math:`x_j \partial f/\partial x_j` lies in the span of
:math:`\chi = \partial f/\partial\theta`, and one of the unit of y if f does: the parameters then
take the change up. The number of coincidences is
:math:`\mathrm{rank}[\chi, G] - \mathrm{rank}\,\chi` with these generators G.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, NamedTuple

import numpy as np
import sympy
from numba import njit
from numpy.typing import NDArray

from pmsr.equation.algebra import function_rows, real_symbol, rebuild
from pmsr.equation.expression import Equation
from pmsr.equation.lowering import lower
from pmsr.equation.program import Program, Tables, evaluate_slopes, evaluate_slopes_of_many
from pmsr.threads import ONE_AT_A_TIME

Floats = NDArray[np.float64]
Signs = tuple[int, ...]
Rows = tuple[Floats, Floats]

EPS = float(np.finfo(np.float64).eps)
SMALLEST = float(np.finfo(np.float64).tiny) / EPS  # below, products lose digits
N_DRAWS = 3  # parameter vectors at which ranks are taken; a rank is the largest of them
N_MORE = 29  # further ones, for laws that are defined for few of them
LARGEST = 8.0  # generic points and parameters are between 1/8 and 8, even in their logarithms
# A number sets a scale. At a generic point u times smaller than it, sin(u) and u differ by u**2/6,
# which must stand out from rounding errors of second-order differences.
COMMON = EPS**-0.25
TOGETHER = 64  # laws whose derivatives are in memory at a time: they fit into a processor's cache


class Coincidences(NamedTuple):
    """Number of unit coincidences of a law, by kind.

    Parameters
    ----------
    shared
        Columns, or the target, whose unit is tied to that of others: ``x1 - x2``.
    pure
        Columns, or the target, that must be pure numbers: ``sin(x)``.
    zeros
        Columns on an interval scale whose zero the law cannot do without.
    broken
        Changes of known units that the law does not survive, whatever the units that are not
        known may be: it is no coincidence then, but impossible.
    """

    shared: int = 0
    pure: int = 0
    zeros: int = 0
    broken: int = 0

    @property
    def total(self) -> int:
        """Number of coincidences of all kinds, without what is impossible."""
        return self.shared + self.pure + self.zeros


@dataclass(frozen=True, eq=False)
class Generators:
    """Changes of units, as combinations of the derivatives that make them.

    Parameters
    ----------
    scales
        Of shape (n, 2 d + 2): coefficients of x_j df/dx_j, of df/dx_j, of f and of 1.
    shifts
        The same for changes of the zero of columns.
    known
        Changes of units that a user gave; a law that does not survive them is impossible.
    free
        Changes of known constants whose units nobody gave: what they make up for is no
        coincidence, because they may have the units that do. A number that stands for itself,
        such as the 9.81 of free fall, changes with the metre.

    Examples
    --------
    >>> Generators.of_columns(1).scales
    array([[1., 0., 0., 0.],
           [0., 0., 1., 0.]])
    """

    scales: Floats
    shifts: Floats
    known: Floats | None = None
    free: Floats | None = None

    @classmethod
    def of_columns(cls, n_columns: int, interval: Sequence[int] = ()) -> "Generators":
        """Give every column, and the target, a unit of its own.

        Parameters
        ----------
        n_columns
            Number of columns of X.
        interval
            Columns whose zero is arbitrary too.
        """
        return _of_columns(n_columns, tuple(interval))


@lru_cache(maxsize=256)
def _of_columns(d: int, interval: tuple[int, ...]) -> Generators:
    every = np.eye(2 * d + 2)
    return Generators(
        every[[*range(d), 2 * d]], every[[d + j for j in interval]].reshape(-1, 2 * d + 2)
    )


def interval_columns(variables: Sequence[str], interval: Sequence[str]) -> tuple[int, ...]:
    """Find the columns that a user names as those with an arbitrary zero.

    Examples
    --------
    >>> interval_columns(["x", "t"], ["t"])
    (1,)
    """
    if isinstance(interval, str):
        raise ValueError(
            f"interval must be a sequence of names, got {interval!r}. Use [{interval!r}]."
        )
    for name in interval:
        if name not in variables:
            raise ValueError(
                f"interval names {name!r}, which is not a column. Columns: {', '.join(variables)}."
            )
    return tuple(j for j, name in enumerate(variables) if name in interval)


def column_signs(X: Floats) -> Signs:
    """Tell of every column whether it is positive (1), negative (-1), or both (0).

    Examples
    --------
    >>> column_signs(np.array([[1.0, -1.0, 0.5], [2.0, -3.0, -0.5]]))
    (1, -1, 0)
    """
    low, high = X.min(axis=0), X.max(axis=0)
    return tuple(
        int(0 <= a and b > 0) - int(b <= 0 and a < 0) for a, b in zip(low, high, strict=True)
    )


def count_coincidences(
    program: Program,
    n_columns: int,
    *,
    signs: Signs | None = None,
    generators: Generators | None = None,
    rows: Rows | None = None,
) -> Coincidences:
    """Count the changes of unit that a law does not survive.

    Parameters
    ----------
    program
        The law; numbers in it are exact, parameters are free.
    n_columns
        Number of columns of X.
    signs
        As `column_signs` gives them: where the law is looked at. By default all are positive.
    generators
        Changes of units; by default every column and the target have a unit of their own.
    rows
        X and the best fit theta, where the law is looked at if generic points do not serve.

    Notes
    -----
    A rank belongs to the law and not to the data: it is that at generic parameters and generic
    points between 1/8 and 8. So neither a parameter that was fitted to 0, nor a column that hardly
    varies, nor the size of any number in the data makes a difference. The rows serve where the law
    is not defined at generic points, or has numbers far from 1, which set a scale.

    A column counts as independent of others if what is left of it exceeds a bound of the rounding
    errors that it can have by then.

    Examples
    --------
    >>> for text in ("c0*sqrt(x)", "c0 + x", "c0*sin(x) + c1", "2*sin(x) + c0"):
    ...     print(count_coincidences(Equation(text, ["x"]).program, 1))
    Coincidences(shared=0, pure=0, zeros=0, broken=0)
    Coincidences(shared=1, pure=0, zeros=0, broken=0)
    Coincidences(shared=0, pure=1, zeros=0, broken=0)
    Coincidences(shared=0, pure=2, zeros=0, broken=0)
    """
    X, theta = (None, None) if rows is None else (rows[0], rows[1][None, :])
    found = count_all_coincidences(
        Tables.of([program]), n_columns, signs=signs, generators=generators, X=X, theta=theta
    )
    return Coincidences(*found[0].tolist())


def count_all_coincidences(
    tables: Tables,
    n_columns: int,
    *,
    signs: Signs | None = None,
    generators: Generators | None = None,
    X: Floats | None = None,
    theta: Floats | None = None,
) -> NDArray[np.int64]:
    """Do what `count_coincidences` does for many laws, in compiled code.

    Parameters
    ----------
    tables
        The laws.
    n_columns, signs, generators
        As there.
    X, theta
        Rows and best fits, of shape (n, most parameters), where a law is looked at if generic
        points do not serve; not those whose parameters are not finite.

    Returns
    -------
    ndarray
        Of shape (n, 4): the numbers of shared, pure, zeros and broken.

    Notes
    -----
    Units that are known are asked last. A law of a column whose unit is not known may survive a
    change of a metre if that column is in metres, which is a coincidence and not impossible.
    """
    generators = generators or Generators.of_columns(n_columns)
    scales, shifts, known = generators.scales, generators.shifts, generators.known
    look = partial(all_generic_ranks, tables, n_columns, signs=signs, X=X, theta=theta)
    every = scales if known is None else np.vstack([scales, known])
    ranks = look(generators=Generators(every, shifts))
    by_chi, by_shifts, by_scales, by_all = ranks[:, 0], ranks[:, 1], ranks[:, 2], ranks[:, 2]
    if generators.free is not None:
        by_chi = look(generators=Generators(every, generators.free))[:, 1]
        shifts = np.vstack([generators.free, shifts])
        ranks = look(generators=Generators(every, shifts))
        by_shifts, by_scales, by_all = ranks[:, 1], ranks[:, 2], ranks[:, 2]
    if known is not None:
        by_scales = look(generators=Generators(known, np.vstack([shifts, scales])))[:, 1]
    # A column whose unit is tied to no other's is a pure number.
    n_pure = np.count_nonzero(ranks[:, 3 : 3 + len(scales)] < by_all[:, None], axis=1)
    n_shared = by_scales - by_shifts - n_pure
    return np.column_stack([n_shared, n_pure, by_shifts - by_chi, by_all - by_scales])


def all_generic_ranks(
    tables: Tables,
    n_columns: int,
    *,
    generators: Generators,
    signs: Signs | None = None,
    X: Floats | None = None,
    theta: Floats | None = None,
) -> NDArray[np.int64]:
    """Return ranks of many laws, of shape (n, 3 + n_scales).

    Those of chi, with shifts, with scales too, and that without each of the scales. All but the
    laws that need the rows are looked at in compiled code.
    """
    signs = (1,) * n_columns if signs is None else signs
    n_generators = len(generators.scales) + len(generators.shifts)
    ranks = np.full((tables.n_programs, 3 + len(generators.scales)), -1, dtype=np.int64)
    has_rows = _are_fitted(tables, theta)
    waiting = ~(has_rows & _have_uncommon_numbers(tables))
    for draws in (slice(N_DRAWS), slice(N_DRAWS, None)):
        for p in np.unique(tables.n_parameters[waiting]).tolist():
            points, draw = _generic(n_columns, p, p + n_generators, signs)
            which = np.flatnonzero(waiting & (tables.n_parameters == p))
            for start in range(0, len(which), TOGETHER):
                some = which[start : start + TOGETHER]
                found = _ranks(tables.take(some), draw[draws], points, generators)
                ranks[some] = np.maximum(ranks[some], found.max(axis=1))
                # Where a law is defined for few parameters, more of them are tried.
                waiting[some] = np.count_nonzero(found[:, :, 0] >= 0, axis=1) < 2
    if X is not None and theta is not None:
        for place in np.flatnonzero(has_rows & (ranks[:, 0] < 0)).tolist():
            program = tables.program(place)
            points, draw = _around(program, X, theta[place, : program.n_parameters])
            ranks[place] = _ranks(tables.take([place]), draw, points, generators).max(axis=(0, 1))
    # Nowhere defined, as far as one can see: there is nothing that a unit could change.
    ranks[ranks[:, 0] < 0] = 0
    return ranks


def _are_fitted(tables: Tables, theta: Floats | None) -> NDArray[np.bool_]:
    """Tell which laws have parameters that are numbers."""
    if theta is None:
        return np.zeros(tables.n_programs, dtype=np.bool_)
    is_own = np.arange(theta.shape[1]) < tables.n_parameters[:, None]
    return np.asarray(np.all(np.isfinite(theta) | ~is_own, axis=1))


def _have_uncommon_numbers(tables: Tables) -> NDArray[np.bool_]:
    sizes = np.abs(tables.literals)
    uncommon = (sizes > COMMON) | ((sizes < 1.0 / COMMON) & (sizes > 0.0))
    is_own = np.arange(sizes.shape[1]) < tables.n_literals[:, None]
    return np.asarray(np.any(uncommon & is_own, axis=1))


@lru_cache(maxsize=256)
def _generic(d: int, p: int, n: int, signs: Signs) -> tuple[Floats, Floats]:
    """Return the same points, of shape (n_points, d), and parameters, (n_draws, p), every time."""
    rng = np.random.default_rng([d, p, n])
    X = LARGEST ** rng.uniform(-1.0, 1.0, size=(4 * n + 24, d))
    theta = LARGEST ** rng.uniform(-1.0, 1.0, size=(N_DRAWS + N_MORE, p))
    # The first are positive: so are most parameters of laws with roots and powers.
    theta[1:] *= rng.choice([-1.0, 1.0], size=theta[1:].shape)
    return X * np.where(np.array(signs) == 0, rng.choice([-1.0, 1.0], size=X.shape), signs), theta


def _around(program: Program, X: Floats, theta: Floats) -> Rows:
    """Return rows, with others beside them where they are few, and shaken parameters."""
    rng = np.random.default_rng([len(X), len(theta)])
    n_points = 4 * (len(theta) + X.shape[1]) + 24
    chosen = X[np.linspace(0, len(X) - 1, min(n_points, len(X))).astype(int)]
    spread = np.std(X, axis=0)
    more = X[rng.integers(len(X), size=n_points)] + spread * rng.normal(size=(n_points, X.shape[1]))
    inside = np.all((more > 0.0) == (X[:1] > 0.0), axis=1) | np.any((X > 0.0) != (X[:1] > 0.0))
    points = np.concatenate([chosen, more[inside]])[:n_points]
    # Added and not multiplied: a parameter that was fitted to 0 must not stay there.
    values, chi, _ = evaluate_slopes(program, theta[None, :], points)
    defined = np.isfinite(values[0]) & np.all(np.isfinite(chi[0, 0]), axis=0)
    size = np.maximum(np.abs(theta), 1.0)
    if np.any(defined):
        with np.errstate(all="ignore"):
            lengths = np.sqrt(np.mean(chi[0, 0][:, defined] ** 2, axis=1))
            change = np.std(values[0, defined]) / lengths
        size = np.where(np.isfinite(change) & (change > 0.0), change, size)
    steps = np.repeat(0.5 ** np.arange(8.0), 2)[:, None]
    shaken = theta + steps * size * rng.normal(size=(len(steps), len(theta)))
    return points, np.concatenate([shaken, theta[None, :]])


def _ranks(tables: Tables, theta: Floats, X: Floats, generators: Generators) -> NDArray[np.int64]:
    """Ranks of `all_generic_ranks` of each law at each theta, of shape (n, n_theta, 3 + n_scales).

    They are -1 where too few points are in the law's domain.
    """
    values, chi, slopes = evaluate_slopes_of_many(tables, theta, X)
    ranks = np.empty((tables.n_programs, len(theta), 3 + len(generators.scales)), dtype=np.int64)
    _rank_columns_of_many(
        values,
        chi,
        slopes,
        X,
        generators.shifts,
        generators.scales,
        EPS * tables.n_nodes,
        ranks,
    )
    return ranks


@njit(error_model="numpy", nogil=True, cache=True)
def _rank_columns_of_many(values, chi, slopes, X, shifts, scales, rounding, ranks):  # type: ignore[no-untyped-def]
    """Do what `rank_columns` does for many laws, with rounding errors of their own."""
    for law in range(len(values)):
        rank_columns(
            values[law], chi[law], slopes[law], X, shifts, scales, rounding[law], ranks[law]
        )


@njit(error_model="numpy", nogil=True, cache=True)
def rank_columns(values, chi, slopes, X, shifts, scales, rounding, ranks):  # type: ignore[no-untyped-def]
    """Fill ranks, of shape (n_theta, 3 + n_scales), as `all_generic_ranks` returns them.

    Rows and columns are scaled, so that neither their units nor the largest of them decide.
    """
    d, p, n_shifts, n_scales = X.shape[1], chi.shape[2], len(shifts), len(scales)
    n_columns = p + n_shifts + n_scales
    most, least = 2 * n_columns + 8, n_columns + 2
    table = np.empty((n_columns, most))
    work = np.empty((n_columns, most))
    raw, sizes, gross = np.empty(2 * d + 2), np.empty(2 * d + 2), np.empty(n_columns)
    before, errors = np.empty(n_columns), np.empty(n_columns)
    used = np.empty(n_columns, dtype=np.bool_)
    for k in range(len(values)):
        m = 0
        before[:] = 0.0
        for i in range(len(X)):
            if m == most:
                break
            for j in range(d):
                raw[d + j], sizes[d + j] = slopes[0, k, j, i], slopes[1, k, j, i]
                raw[j], sizes[j] = X[i, j] * raw[d + j], abs(X[i, j]) * sizes[d + j]
            raw[2 * d], raw[2 * d + 1] = values[k, i], 1.0
            sizes[2 * d], sizes[2 * d + 1] = abs(values[k, i]), 1.0
            largest, is_finite = 0.0, np.isfinite(values[k, i])
            for c in range(n_columns):
                entry, gross[c] = 0.0, 0.0
                if c < p:
                    entry, gross[c] = chi[0, k, c, i], chi[1, k, c, i]
                else:
                    row = shifts[c - p] if c < p + n_shifts else scales[c - p - n_shifts]
                    for t in range(len(raw)):
                        if row[t] != 0.0:
                            entry += row[t] * raw[t]
                            gross[c] += abs(row[t]) * sizes[t]
                table[c, m] = entry
                is_finite = is_finite and np.isfinite(gross[c])
                is_finite = is_finite and (gross[c] == 0.0 or gross[c] > SMALLEST)
                largest = max(largest, gross[c])
            if is_finite and largest > 0.0:
                for c in range(n_columns):
                    table[c, m] /= largest
                    before[c] += (gross[c] / largest) ** 2
                m += 1
        if m < least:
            ranks[k, :] = -1
            continue
        for c in range(n_columns):
            length = np.sqrt(_product(table[c], table[c], m))
            if length > 0.0:
                for i in range(m):
                    table[c, i] /= length
                # Of a sum that cancels, what is left has the errors of its terms.
                before[c] = rounding * np.sqrt(before[c]) / length
            else:
                before[c] = rounding
        _begin(work, errors, used, table, before, m)
        ranks[k, 0] = _eliminate(work, errors, used, p, m)
        ranks[k, 1] = ranks[k, 0] + _eliminate(work, errors, used, p + n_shifts, m)
        ranks[k, 2] = ranks[k, 1] + _eliminate(work, errors, used, n_columns, m)
        n_lost = ranks[k, 2] - ranks[k, 1]
        for j in range(n_scales):
            if n_lost == 0 or n_lost == n_scales:
                ranks[k, 3 + j] = ranks[k, 2] - (1 if n_lost else 0)
            else:
                _begin(work, errors, used, table, before, m)
                used[p + n_shifts + j] = True
                rank = _eliminate(work, errors, used, p, m)
                rank += _eliminate(work, errors, used, p + n_shifts, m)
                ranks[k, 3 + j] = rank + _eliminate(work, errors, used, n_columns, m)


@njit(error_model="numpy", nogil=True, cache=True)
def _begin(work, errors, used, table, before, m):  # type: ignore[no-untyped-def]
    """Fill the first three for `_eliminate`."""
    for c in range(len(table)):
        errors[c], used[c] = before[c], False
        for i in range(m):
            work[c, i] = table[c, i]


@njit(error_model="numpy", nogil=True, cache=True)
def _product(a, b, m):  # type: ignore[no-untyped-def]
    total = 0.0
    for i in range(m):
        total += a[i] * b[i]
    return total


@njit(error_model="numpy", nogil=True, cache=True)
def _eliminate(columns, errors, used, end, m):  # type: ignore[no-untyped-def]
    """Count the independent ones of the first columns, and take them out of all others.

    `errors` bound what rounding may have done to each column, of length 1 at first; a column that
    was taken out hands on its own, magnified by as much as it was shorter.
    """
    rank = 0
    while True:
        best, clearest = -1, 1.0
        for c in range(end):
            if not used[c]:
                clear = np.sqrt(_product(columns[c], columns[c], m)) / errors[c]
                if clear > clearest:
                    best, clearest = c, clear
        if best < 0:
            return rank
        rank += 1
        used[best] = True
        pivot = columns[best]
        square = _product(pivot, pivot, m)
        length = np.sqrt(square)
        for c in range(len(columns)):
            if not used[c]:
                share = _product(columns[c], pivot, m) / square
                for i in range(m):
                    columns[c, i] -= share * pivot[i]
                errors[c] += abs(share) * (errors[best] + EPS * m * length)


_WORDS = {
    "exp": "exponential",
    "log": "logarithm",
    "sin": "sine",
    "cos": "cosine",
    "tan": "tangent",
    "tanh": "hyperbolic tangent",
}

# Any: SymPy's constructors are untyped; every Any below is a SymPy expression.


def describe_coincidences(
    equation: Equation,
    target: str = "y",
    *,
    signs: Signs | None = None,
    interval: Sequence[str] = (),
    generators: Generators | None = None,
    rows: Rows | None = None,
) -> list[str]:
    """Say in words what the coincidences of a law are, one phrase for each.

    Parameters
    ----------
    equation
        The law.
    target
        Name of what it predicts.
    signs, rows
        As in `count_coincidences`.
    interval
        Columns whose zero is arbitrary.
    generators
        Changes of units; of those that are known nothing is said. By default every column and the
        target have a unit of their own.

    Notes
    -----
    A phrase is about a place where one free coefficient would remove one coincidence.

    Examples
    --------
    >>> describe_coincidences(Equation("c0 + H", ["H"]), "D")
    ['adds H, in its unit, to D, in its unit, with coefficient exactly 1']
    >>> describe_coincidences(Equation("c0*sin(x) + c1", ["x"]))
    ['takes the sine of x in its own unit']
    """
    shifted = interval_columns(equation.variables, interval)
    scales = (generators or Generators.of_columns(len(equation.variables))).scales
    return _Words(equation, target, signs, rows, shifted, scales).phrases()


class _Words:
    """One law on its way to having no coincidence left: what stood in the way."""

    def __init__(
        self,
        equation: Equation,
        target: str,
        signs: Signs | None,
        rows: Rows | None,
        shifted: Sequence[int],
        scales: Floats,
    ) -> None:
        self.equation, self.target, self.signs, self.rows = equation, target, signs, rows
        self.shifted, self.scales = shifted, scales
        self.variables = [real_symbol(name) for name in equation.variables]
        self.added: list[str] = []
        self.mark = max((*equation.variables, *equation.parameters, "c"), key=len)

    def count(self, expression: Any, shifted: Sequence[int]) -> Coincidences:
        equation = self.equation
        with ONE_AT_A_TIME:
            program = lower(expression, equation.variables, [*equation.parameters, *self.added])
        d = len(equation.variables)
        rows = self.rows
        if rows is not None:
            rows = rows[0], np.append(rows[1], np.ones(len(self.added)))
        generators = Generators(self.scales, Generators.of_columns(d, shifted).shifts)
        return count_coincidences(program, d, signs=self.signs, generators=generators, rows=rows)

    def phrases(self) -> list[str]:
        expression = self.equation.expression
        found = [
            f"depends on where {self.equation.variables[j]} is zero"
            for j in self.shifted
            if self.count(expression, [j]).zeros
        ]
        left = self.count(expression, self.shifted)
        n_left = left.shared + left.pure
        while n_left:
            free = real_symbol(self.mark + "'" * (len(self.added) + 1))
            self.added.append(free.name)
            for phrase, mended in self.places(expression, free):
                n_then = self.count(mended, self.shifted)
                if n_then.shared + n_then.pure < n_left:
                    found.append(phrase())
                    expression, n_left = mended, n_then.shared + n_then.pure
                    break
            else:
                several = "a unit" if n_left == 1 else f"{n_left} units"
                return [*found, f"depends on {several} in a way that no single coefficient mends"]
        return found

    def places(self, expression: Any, free: Any) -> Iterator[tuple[Callable[[], str], Any]]:
        """Yield phrases and expressions with one more coefficient, from the root down."""
        if not expression.is_Add:
            yield partial(self.whole, expression), free * expression
        yield from self.inside(expression, free, lambda new: new, True)

    def inside(
        self, e: Any, free: Any, put: Callable[[Any], Any], is_root: bool
    ) -> Iterator[tuple[Callable[[], str], Any]]:
        if not self.varies(e) or not e.args:
            return

        def with_argument(place: int) -> Callable[[Any], Any]:
            return lambda new: put(rebuild(e, [*e.args[:place], new, *e.args[place + 1 :]]))

        functions = function_rows()
        for place, argument in enumerate(e.args):
            if not self.varies(argument):
                continue
            scaled = with_argument(place)(free * argument)
            if e.is_Add:
                yield partial(self.term, e, argument, is_root), scaled
            elif e.is_Pow and self.varies(e.exp):
                yield partial(self.power, e), scaled
            elif e.is_Function and not isinstance(e, sympy.Abs):
                yield partial(self.function, functions[e.func], argument), scaled
        if is_root and e.is_Add:
            yield partial(self.whole, e), free * e
        for place, argument in enumerate(e.args):
            yield from self.inside(argument, free, with_argument(place), False)

    def varies(self, e: Any) -> bool:
        return bool(e.free_symbols.intersection(self.variables))

    def text(self, e: Any) -> str:
        plain = e.xreplace({real_symbol(name): sympy.S.One for name in self.added})
        equation = self.equation
        return str(Equation.from_real(plain, equation.variables, equation.parameters))

    def whole(self, e: Any) -> str:
        number, body = e.as_coeff_Mul()
        return (
            f"gives {self.target}, in its unit, as {self.text(body)} with coefficient exactly "
            f"{self.text(number)}"
        )

    def function(self, name: str, argument: Any) -> str:
        word = _WORDS.get(name, f"function {name}")
        return f"takes the {word} of {self.text(argument)} in its own unit"

    def power(self, e: Any) -> str:
        return f"raises {self.text(e.base)} to the power {self.text(e.exp)} in its own unit"

    def term(self, total: Any, term: Any, is_root: bool) -> str:
        number, body = term.as_coeff_Mul()
        others = [other for other in total.args if other != term]
        fixed = [o for o in others if self.varies(o) and o.free_symbols <= {*self.variables}]
        first = self.with_unit(body)
        if fixed:
            beside, rest = fixed[0].as_coeff_Mul()
            number, second = number / beside, self.with_unit(rest)
            if number < 0 and beside < 0:  # of -x + y, x is what is subtracted
                first, second, number = second, first, 1 / number
        elif is_root:
            second = f"{self.target}, in its unit,"
        else:
            alone = sympy.Add(*others)
            second = f"the number {self.text(alone)}" if alone.is_number else self.text(alone)
        does, to = ("subtracts", "from") if number < 0 else ("adds", "to")
        return f"{does} {first} {to} {second} with coefficient exactly {self.text(abs(number))}"

    def with_unit(self, e: Any) -> str:
        is_pure = e.is_Function and not isinstance(e, sympy.Abs)
        return f"{self.text(e)}, {'a pure number' if is_pure else 'in its unit'},"
