"""One law, many spellings: that with the largest prior is what the law costs, and what is shown."""

import math
from collections.abc import Collection, Iterator
from typing import Any

import numpy as np
import sympy

from pmsr.data import Data
from pmsr.equation.algebra import real_symbol, settle
from pmsr.equation.expression import Equation
from pmsr.equation.program import evaluate
from pmsr.laws.prior import LawPrior
from pmsr.threads import ONE_AT_A_TIME

# Terms of a common fraction, multiplied out, up to which SymPy's polynomials take milliseconds.
MOST_TERMS = 64
# Of one fraction: each of its coefficients in turn is 1, over each of its terms.
MOST_PARAMETERS = 4

# Any: SymPy's expressions are untyped.


def best_spelling(
    equation: Equation, prior: LawPrior | None = None, *, nonzero: Collection[str] = ()
) -> Equation:
    """Return the spelling of a law with the largest prior.

    Parameters
    ----------
    equation
        The law.
    prior
        Costs; by default those of ``LawPrior()``. Coincidences do not matter: they are the law's.
    nonzero
        Names of variables that are zero nowhere: a fraction may be divided through by them.

    Notes
    -----
    Tried are the equation, its canonical form, both with the sign of a parameter turned or with its
    inverse where that is cheaper, fractions and products in other parameters (`_fractions`), and
    what SymPy makes of these: expanded, factored, on one denominator, cancelled, with powers
    joined. At equal cost the equation as it was written stays; of any other spelling the parameters
    may have another meaning, and are fitted anew.

    Examples
    --------
    >>> str(best_spelling(Equation("c0*x/y + c1*x/y", ["x", "y"])))
    'c0*x/y'
    >>> str(best_spelling(Equation("x*c0 + x*y", ["x", "y"])))
    'x*(c0 + y)'
    >>> str(best_spelling(Equation("-x**2/(c0 + x)", ["x"])))
    'x**2/(c0 - x)'
    >>> str(best_spelling(Equation("c0*x/(1 + c1*x)", ["x"])))
    'c0*x/(c1 + x)'
    >>> str(best_spelling(Equation("c0*x**2/(1 + c1*x)", ["x"]), nonzero=["x"]))
    'x/(c1 + c0/x)'
    """
    prior = prior or LawPrior()
    spellings = [equation, equation.to_canonical()]
    spellings += [_turned(spelling, prior) for spelling in tuple(spellings)]
    for known in tuple(dict.fromkeys(spellings)):
        if max(_terms(known.expression)) <= MOST_TERMS:
            spellings += _respelled(known)
            spellings += _fractions(known, frozenset(nonzero))
    costs = prior.log_ps([spelling.program for spelling in spellings])
    return spellings[int(np.argmax(costs))]


def nonzero_columns(data: Data) -> list[str]:
    """Return the names of columns that are zero nowhere.

    Examples
    --------
    >>> from pmsr.data import make_data
    >>> nonzero_columns(make_data([[0.0, 1.0], [2.0, 3.0]], [1.0, 2.0]))
    ['x1']
    """
    return [name for name, x in zip(data.names, data.X.T, strict=True) if x.all()]


def _turned(equation: Equation, prior: LawPrior) -> Equation:
    """Return the law with -c or 1/c for every parameter c for which that is cheaper."""
    for name in equation.parameters:
        c = real_symbol(name)
        for instead in (-c, 1 / c):
            with ONE_AT_A_TIME:
                expression = _sign_inside(settle(equation.expression, {c: instead}))
            other = Equation.from_real(expression, equation.variables, equation.parameters)
            if prior.log_p(other.program) > prior.log_p(equation.program):
                equation = other
    return equation


def _sign_inside(e: Any) -> Any:
    """Write -x/(x - c) as x/(c - x): in a product, a sum takes up the minus sign."""
    if not e.args:
        return e
    e = e.func(*map(_sign_inside, e.args))
    if not e.is_Mul or not e.as_coeff_Mul()[0].is_negative:
        return e
    for factor in e.args:
        base, exponent = factor.as_base_exp()
        if base.is_Add and exponent.is_Integer and exponent.p % 2:
            rest = sympy.Mul(*(other for other in e.args if other is not factor))
            return -rest * sympy.Add(*(-term for term in base.args)) ** exponent
    return e


def _terms(e: Any) -> tuple[float, float]:
    """Bound terms and degree above and below the line of the fraction e, multiplied out.

    Arguments of functions count where they are longer.
    """
    inner = [_terms(argument) for argument in e.args]
    if e.is_Add:
        below = math.prod(d for _, d in inner)
        return sum(n * below / d for n, d in inner), below
    if e.is_Mul:
        return math.prod(n for n, _ in inner), math.prod(d for _, d in inner)
    if e.is_Pow and e.exp.is_Integer:
        k = abs(int(e.exp))
        # At least the degree: SymPy's polynomials hold what is missing between the powers too.
        above, below = (max(k, math.comb(int(min(t, 99)) + k - 1, k)) for t in inner[0])
        return (above, below) if e.exp > 0 else (below, above)
    return max((max(pair) for pair in inner), default=1.0), 1.0


def _respelled(equation: Equation) -> list[Equation]:
    """Other spellings by SymPy, in the same parameters, that have the same values."""
    found = []
    for change in (
        _sign_inside,
        sympy.expand,
        sympy.factor_terms,
        sympy.factor,
        sympy.together,
        sympy.cancel,
        sympy.powsimp,
        lambda e: sympy.factor_terms(sympy.expand(e)),
        lambda e: sympy.powsimp(sympy.factor(e)),
    ):
        try:
            with ONE_AT_A_TIME:
                expression = settle(change(equation.expression))
            other = Equation.from_real(expression, equation.variables, equation.parameters)
        except (ValueError, sympy.PolynomialError, NotImplementedError, RecursionError):
            continue  # SymPy cannot, or the result is too large to be read
        if other.parameters == equation.parameters and _agree(equation, other):
            found.append(other)
    return found


def _agree(one: Equation, other: Equation) -> bool:
    """Tell whether two spellings have the same values, and are defined at the same places."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(64, len(one.variables)))
    X[::2] = np.abs(X[::2])
    theta = rng.normal(size=(4, len(one.parameters)))
    theta[::2] = np.abs(theta[::2])
    a, b = evaluate(one.program, theta, X), evaluate(other.program, theta, X)
    both = np.isfinite(a) & np.isfinite(b)
    if not np.any(both) or np.any(np.isfinite(a) ^ np.isfinite(b)):
        return False
    # Half of the digits: spellings differ in what cancels.
    size = float(np.median(np.abs(a[both])))
    return bool(np.allclose(a[both], b[both], rtol=1e-8, atol=1e-8 * size))


def _fractions(equation: Equation, nonzero: frozenset[str]) -> list[Equation]:
    """Return the law with its fractions and products of sums in other parameters.

    Multiplied out, k1*x**2/(1 + k2*x) has the coefficients k1, 1 and k2, of which the ratios count:
    two numbers, as many as it has parameters. So x**2/(c0 + c1*x) and c0*x**2/(c1 + x) are the same
    law. That any numbers will do, and each by one choice of the parameters, is so where the
    coefficients are products of powers whose exponents have the determinant 1 or -1.
    """
    found = []
    for part in sympy.preorder_traversal(equation.expression):
        if not (part.is_Mul or part.is_Pow):
            continue
        own = [c for c in map(real_symbol, equation.parameters) if c in part.free_symbols]
        outside = equation.expression.xreplace({part: sympy.Dummy()})
        if not 0 < len(own) <= MOST_PARAMETERS or not outside.free_symbols.isdisjoint(own):
            continue
        with ONE_AT_A_TIME:
            for other in _ratios(part, own, nonzero):
                try:
                    expression = settle(equation.expression, {part: other})
                    found.append(
                        Equation.from_real(expression, equation.variables, equation.parameters)
                    )
                except ValueError:
                    continue  # out of the range of floats
    return [one for one in found if one.parameters == equation.parameters]


def _ratios(part: Any, own: list[Any], nonzero: frozenset[str]) -> Iterator[Any]:
    """Yield a sum of terms with free coefficients, or a ratio of two sums, one of them 1."""
    above, below = (sympy.Add.make_args(sympy.expand(e)) for e in sympy.fraction(part))
    split = [_split(term, own) for term in (*above, *below)]
    known = [one for one in split if one is not None]
    if len(known) < len(split):
        return
    shapes = [shape for shape, _ in known]
    powers = np.array([exponents for _, exponents in known])
    n = len(above)
    is_ratio = bool(powers[n:].any())
    ratios = powers[1:] - powers[0] if is_ratio else powers[:n]
    if ratios.shape != (len(own), len(own)) or abs(round(np.linalg.det(ratios))) != 1:
        return
    if not is_ratio:
        yield sympy.Add(*map(sympy.Mul, own, shapes)) / sympy.Add(*below)
        return
    divisors = dict.fromkeys([sympy.S.One, *(e for e in shapes if _is_monomial(e, nonzero))])
    # The last first: of equal prices c0*x/(c1 + x) comes before x/(c1 + c0*x).
    for place in reversed(range(len(shapes))):
        numbers = [*own[:place], sympy.S.One, *own[place:]]
        for divisor in divisors:
            terms = [c * shape / divisor for c, shape in zip(numbers, shapes, strict=True)]
            yield sympy.Add(*terms[:n]) / sympy.Add(*terms[n:])


def _split(term: Any, own: list[Any]) -> tuple[Any, list[int]] | None:
    """Return a term without its coefficient, and the powers of the parameters in that."""
    shape, exponents = sympy.S.One, [0] * len(own)
    for factor in sympy.Mul.make_args(term.as_coeff_Mul()[1]):
        base, exponent = factor.as_base_exp()
        if base in own and exponent.is_Integer:
            exponents[own.index(base)] += int(exponent)
        elif factor.free_symbols.isdisjoint(own):
            shape *= factor
        else:
            return None
    return shape, exponents


def _is_monomial(e: Any, names: frozenset[str]) -> bool:
    """Tell whether an expression is a product of powers of some variables."""
    bases = [factor.as_base_exp() for factor in sympy.Mul.make_args(e)]
    return all(b.is_Symbol and b.name in names and k.is_Number for b, k in bases)
