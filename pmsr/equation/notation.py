"""An equation and its numbers as people and programs read them: text, LaTeX, Python."""

import keyword
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any
from unicodedata import normalize

import sympy
from numpy.typing import NDArray
from sympy.core.function import AppliedUndef
from sympy.printing.numpy import NumPyPrinter

from pmsr.equation.algebra import real_symbol, settle
from pmsr.equation.expression import Equation, latex_name
from pmsr.equation.operators import write_out
from pmsr.threads import ONE_AT_A_TIME

DIGITS = 4  # of a number that stands in an equation
_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def plus_minus(mean: float, deviation: float) -> str:
    """Write a number with the digits that its uncertainty leaves.

    Examples
    --------
    >>> plus_minus(47.0889, 0.4968), plus_minus(1234.5, 320.0), plus_minus(-1.5e-19, 2e-21)
    ('47.09 ± 0.50', '1234 ± 320', '(-1.500 ± 0.020)e-19')
    >>> plus_minus(2.0, 0.0), plus_minus(-1.4e-13, 0.5)
    ('2', '0.00 ± 0.50')
    """
    if not math.isfinite(mean) or not 0.0 < deviation < math.inf:
        return f"{mean:.{DIGITS}g}"
    exponent = math.floor(math.log10(max(abs(mean), deviation)))
    scale = exponent if not -4 < exponent < 6 else 0
    mean, deviation = mean / 10.0**scale, deviation / 10.0**scale
    digits = min(12, max(0, 1 - math.floor(math.log10(deviation))))
    shown = f"{mean:.{digits}f}"
    if not float(shown):  # zero has no sign
        shown = shown.removeprefix("-")
    text = f"{shown} ± {deviation:.{digits}f}"
    return f"({text})e{scale}" if scale else text


def latex_number(text: str) -> str:
    r"""Turn a number, or a number ± its error, into LaTeX.

    Examples
    --------
    >>> print(latex_number("(1.50 ± 0.02)e-19"))
    (1.50 \pm 0.02) \times 10^{-19}
    """
    text = re.sub(r"e([+-]?)0*(\d+)", lambda m: rf" \times 10^{{{m[1].strip('+')}{m[2]}}}", text)
    return text.replace("±", r"\pm")


def typeset(text: str) -> str:
    """Write numbers in a text as in print: a true minus, and powers of ten.

    Examples
    --------
    >>> typeset("-2.5e+09"), typeset("(-1.500 ± 0.020)e-19"), typeset("nan")
    ('−2.5 × 10⁹', '(−1.500 ± 0.020) × 10⁻¹⁹', '–')
    """
    text = re.sub(r"(?<=[\d)])e[+]?(-?)0*(\d+)", _ten_to, text)
    return text.replace("-", "−").replace("nan", "–").replace("inf", "∞")


def _ten_to(match: re.Match[str]) -> str:
    return " × 10" + (match[1] + match[2]).translate(_SUPERSCRIPTS)


def latex_with_numbers(equation: Equation, theta: NDArray[Any]) -> str:
    r"""LaTeX of an equation with rounded numbers for its parameters.

    Examples
    --------
    >>> import numpy as np
    >>> print(latex_with_numbers(Equation("c0*sqrt(H)", ["H"]), np.array([47.0889])))
    47.09 \sqrt{H}
    >>> print(latex_with_numbers(Equation("sqrt(c0*H)", ["H"]), np.array([2217.0])))
    47.08 \sqrt{H}
    """
    numbers = {
        real_symbol(name): sympy.Float(f"{value:.{DIGITS}g}")
        for name, value in zip(equation.parameters, theta.tolist(), strict=True)
    }
    names = {real_symbol(name): latex_name(name) for name in equation.variables}
    with ONE_AT_A_TIME:
        filled = settle(equation.expression, numbers)
        # What numbers have merged into, such as sqrt(2217), has all digits again.
        rounded = {number: sympy.Float(number, DIGITS) for number in filled.atoms(sympy.Float)}
        return str(sympy.latex(filled.xreplace(rounded), symbol_names=names))


# Any: SymPy comes without types.
def to_plain(equation: Equation, theta: NDArray[Any] | None = None) -> Any:
    """Return the SymPy expression in plain symbols, with numbers for the parameters if given.

    Operators that were derived from a form are written out: to SymPy their names mean nothing. The
    symbols of an equation are real ones, which ``subs("x", 2)`` does not find.

    Examples
    --------
    >>> to_plain(Equation("c0*sqrt(H)", ["H"])).subs("H", 9)
    3*c0
    """
    names = (*equation.variables, *equation.parameters)
    plain = {real_symbol(name): sympy.Symbol(name) for name in names}
    if theta is not None:
        values = (sympy.Float(value) for value in theta.tolist())
        plain |= dict(zip(map(real_symbol, equation.parameters), values, strict=True))
    with ONE_AT_A_TIME:
        return write_out(equation.expression).subs(plain, simultaneous=True)


def latex_lines(
    left: str,
    equation: Equation,
    estimates: Mapping[str, str],
    units: Mapping[str, str] | None = None,
) -> str:
    r"""LaTeX, in display style, of an equation and of its parameters' estimates below it.

    Parameters
    ----------
    left
        What the equation explains.
    equation
        The equation.
    estimates
        Numbers of the parameters, with their errors.
    units
        Their units, in LaTeX; nothing for what has none.

    Examples
    --------
    >>> print(latex_lines("D", Equation("c0*H", ["H"]), {"c0": "1.2 ± 0.1"}))
    $\displaystyle \begin{aligned}D &= c_{0} H \\ c_{0} &= 1.2 \pm 0.1\end{aligned}$
    """
    lines = [f"{latex_name(left)} &= {equation.latex()}"]
    lines += [
        latex_estimate(name, text, (units or {}).get(name, ""), "&=")
        for name, text in estimates.items()
    ]
    return r"$\displaystyle \begin{aligned}" + r" \\ ".join(lines) + r"\end{aligned}$"


def latex_estimate(name: str, text: str, unit: str = "", sign: str = "=") -> str:
    r"""LaTeX of a parameter, its number ± its error, and its unit, which is LaTeX already.

    Examples
    --------
    >>> print(latex_estimate("c0", "1.2 ± 0.1", r"\mathrm{mm}"))
    c_{0} = 1.2 \pm 0.1\,\mathrm{mm}
    """
    number = latex_number(text)
    return f"{latex_name(name)} {sign} {number}" + (rf"\,{unit}" if unit else "")


def identifiers(names: Sequence[str], taken: Sequence[str] = ()) -> list[str]:
    """Readable, distinct Python names for names of any kind.

    Parameters
    ----------
    names
        What a user calls things.
    taken
        Names that must not be used.

    Examples
    --------
    >>> identifiers(["height (cm)", "σ", "fall time [s]", "fall_time_s", "2nd", "lambda"])
    ['height_cm', 'σ', 'fall_time_s', 'fall_time_s_2', 'x_2nd', 'lambda_']
    """
    used = set(taken)
    found = []
    for name in names:
        # Python itself reads names in this normal form.
        word = re.sub(r"\W+", "_", normalize("NFKC", name))
        word = word if word == name else word.strip("_")
        if not word.isidentifier():
            word = normalize("NFKC", "x_" + word)
        if keyword.iskeyword(word):
            word += "_"
        distinct, number = word, 2
        while distinct in used:
            distinct, number = f"{word}_{number}", number + 1
        used.add(distinct)
        found.append(distinct)
    return found


def python_source(equation: Equation, theta: NDArray[Any], target: str) -> str:
    """Python source of a function that computes an equation with NumPy alone.

    Parameters
    ----------
    equation
        The equation.
    theta
        Numbers for its parameters, of shape (p,); written so that no digit is lost.
    target
        What the equation explains: the function is called so.

    Returns
    -------
    str
        A module with one function of the variables.

    Raises
    ------
    ValueError
        If the equation uses an operator that NumPy does not have.

    Examples
    --------
    >>> import numpy as np
    >>> print(python_source(Equation("c0*sqrt(H)", ["H"]), np.array([47.5]), "D"))
    import numpy
    <BLANKLINE>
    <BLANKLINE>
    def D(H):
        # 'D' = 'c0*sqrt(H)'
        H = numpy.asarray(H, dtype=float)
        c0 = 47.5
        return numpy.sqrt(H)*c0
    <BLANKLINE>
    """
    taken = ("numpy", "math", "abs", "float")
    own_names = (*equation.variables, *equation.parameters)
    *names, function = identifiers([*own_names, target], taken)
    variables, parameters = names[: len(equation.variables)], names[len(equation.variables) :]
    renamed = {
        real_symbol(own): real_symbol(name) for own, name in zip(own_names, names, strict=True)
    }
    try:
        with ONE_AT_A_TIME:
            expression = write_out(equation.expression, near_gaps=True)
            if expression.has(AppliedUndef):  # SymPy would take it for its own of that name
                raise NotImplementedError(f"{expression}")
            body = _SourcePrinter({"strict": True}).doprint(expression.xreplace(renamed))
    except NotImplementedError as error:
        raise ValueError(
            f"{equation.text!r} uses an operator that NumPy does not have. Use to_callable()."
        ) from error
    # repr: whatever a column is called stays inside the comment.
    lines = [f"# {target!r} = {str(equation)!r}"]
    lines += [f"{name} = numpy.asarray({name}, dtype=float)" for name in variables]
    lines += [f"{name} = {value!r}" for name, value in zip(parameters, theta.tolist(), strict=True)]
    shape = ", ".join(f"{name}.shape" for name in variables)
    used = {symbol.name for symbol in equation.expression.free_symbols}
    if not used.intersection(equation.variables):
        body = f"numpy.full(numpy.broadcast_shapes({shape}), float({body}))"
    if "numpy.select" in body:  # which computes all pieces, also where they are not taken
        lines += ['with numpy.errstate(all="ignore"):', f"    return {body}"]
    else:
        lines.append(f"return {body}")
    modules = "import math\n\nimport numpy\n" if "(math." in body else "import numpy\n"
    head = f"{modules}\n\ndef {function}({', '.join(variables)}):\n"
    return head + "".join(f"    {line}\n" for line in lines)


class _SourcePrinter(NumPyPrinter):
    """Writes what NumPy lacks in functions of `math`, element by element."""

    def _by_element(self, expr: Any) -> str:
        name = {"loggamma": "lgamma"}.get(expr.func.__name__, expr.func.__name__)
        return f"numpy.vectorize(math.{name}, otypes=[float])({self._print(expr.args[0])})"

    _print_erf = _print_erfc = _print_gamma = _print_loggamma = _by_element


def percent(probability: float) -> str:
    """Write a probability, everywhere alike; a dash for one that is not known.

    Examples
    --------
    >>> percent(0.0483), percent(2e-5), percent(0.9997), percent(1.0), percent(float("nan"))
    ('4.8%', '< 0.1%', '> 99.9%', '100.0%', '–')
    """
    if math.isnan(probability):
        return "–"
    if 0.0 < probability < 0.001:
        return "< 0.1%"
    return "> 99.9%" if 0.9995 <= probability < 1.0 else f"{probability:.1%}"
