"""Random and hostile texts as equations: read or refused, soon, and read back as they were."""

import numpy as np

from fuzz.tally import MAX_SECONDS, Tally, generator, share
from pmsr.equation.expression import Equation
from pmsr.equation.operators import OPERATORS

VARIABLES = ("x", "y", "drop height [mm]")
FUNCTIONS = tuple(name for name in OPERATORS if name.isidentifier() and name != "pow")
NUMBERS = (
    "0",
    "1",
    "2",
    "3",
    "7",
    "10",
    "1/3",
    "3/8",
    "0.5",
    "0.1",
    "2.5",
    "1e-3",
    "6.02e23",
    "pi",
)
LARGE = ("64", "65", "1000", "9999", "10001", "45761239297", "10000000019", "1e9", "1e18", "1e300")
LARGE += ("1e308", "1e-320", "1e400", "1e-400", "9223372036854775807", "9" * 30, "2147483648")
STRANGE = (*"()*/+-^,.`=<>!;:'\"\\ \n\t\0²³½√∞−×·éßλµΩ中\u200b\u202e\ud800٣😀", "**", "``", "//")


def attack(n: int, seed: int) -> Tally:
    """Read n texts, write what they mean, and read that again."""
    return share("strings", _attempt, n, seed)


def _attempt(tally: Tally, seed: int, place: int) -> None:
    text = make_text(generator(seed, place), place)
    about = repr(text) if len(text) < 300 else f"{text[:300]!r}... ({place})"
    tally.attempt(about, lambda: read(text), seconds=MAX_SECONDS)


def read(text: str) -> str:
    """Read one text; whatever is accepted must have a key, a program, and a text that is stable."""
    try:
        equation = Equation(text, VARIABLES)
    except ValueError:
        return "refused"
    check_equation(equation)
    return "accepted"


def check_equation(equation: Equation) -> None:
    """Raise unless an equation, and the equation of its key, read back from their own texts."""
    written = str(equation)
    try:
        again = Equation(written, equation.variables, equation.parameters)
        if str(again) != written:
            raise AssertionError(f"{written[:200]} is read back as {str(again)[:200]}")
        key = equation.key
        if Equation(key, equation.variables).key != key:
            raise AssertionError(f"{key[:200]} has another key")
    except ValueError as error:
        raise AssertionError(f"not read back: {error}") from error
    for one in (equation, again, equation.to_canonical()):
        if not len(one.program.nodes):
            raise AssertionError("an empty program")


def make_text(rng: np.random.Generator, place: int) -> str:
    """Write a text of the kind that is next in turn."""
    kinds = (_valid, _valid, _valid, _with_large_numbers, _mutated, _mutated, _hostile, _soup)
    return kinds[place % len(kinds)](rng)


def _valid(rng: np.random.Generator) -> str:
    return _tree(rng, int(rng.integers(1, 7)), NUMBERS)


def _with_large_numbers(rng: np.random.Generator) -> str:
    return _tree(rng, int(rng.integers(1, 5)), NUMBERS + LARGE)


def _tree(rng: np.random.Generator, depth: int, numbers: tuple[str, ...]) -> str:
    if depth == 0 or rng.random() < 0.1:
        kind = rng.random()
        if kind < 0.35:
            return str(rng.choice(["x", "y", "`drop height [mm]`"]))
        return f"c{rng.integers(4)}" if kind < 0.65 else str(rng.choice(numbers))
    kind = rng.random()
    one = _tree(rng, depth - 1, numbers)
    if kind < 0.3:
        return f"{rng.choice(FUNCTIONS)}({one})"
    if kind < 0.4:
        return f"({one})**{rng.choice(['2', '3', '(-1)', '0.5', '(1/3)', '(-3/2)'])}"
    if kind < 0.45:
        return f"-({one})"
    other = _tree(rng, int(rng.integers(depth)), numbers)
    if kind < 0.5:
        return f"pow({one}, {other})"
    operator = rng.choice(["+", "-", "*", "/", "+", "-", "*", "/", "**", "^"])
    return f"({one}){operator}({other})" if rng.random() < 0.9 else f"{one}{operator}{other}"


def _mutated(rng: np.random.Generator) -> str:
    text = _valid(rng)
    for _ in range(int(rng.integers(1, 4))):
        place, length = int(rng.integers(len(text) + 1)), int(rng.integers(4))
        piece = str(rng.choice(STRANGE + LARGE)) if rng.random() < 0.7 else text[place : place + 9]
        text = text[:place] + piece + text[place + length :]
    return text


def _soup(rng: np.random.Generator) -> str:
    tokens = (*STRANGE, *LARGE, *NUMBERS, *FUNCTIONS, "x", "y", "c0", "c1", "(", ")", "**", "sin(")
    return "".join(str(rng.choice(tokens)) for _ in range(int(rng.integers(0, 30))))


def _hostile(rng: np.random.Generator) -> str:
    return HOSTILE[int(rng.integers(len(HOSTILE)))](rng)


def _number(rng: np.random.Generator) -> str:
    kind = rng.integers(5)
    if kind == 0:
        return str(rng.choice(LARGE))
    if kind == 1:
        return f"{rng.integers(1, 100)}/{rng.integers(1, 100)}"
    if kind == 2:
        return f"{rng.uniform(1, 10):.6g}e{rng.integers(-330, 310)}"
    return str(int(10 ** rng.uniform(0, 12)))


def _base(rng: np.random.Generator) -> str:
    bases = ("3", "1/3", "sqrt(3)", "x", "x + 3/8", "x/exp(1)", "abs(x/3)", "2*x", "x/7 + y/3")
    bases += (
        "exp(x)",
        "pi",
        "1 + 1/3",
        "c0*x",
        "2*x + 2*y",
        "-x",
        "tan(x)",
        "log(3)",
        "0.1*x",
        "-8",
    )
    return str(rng.choice(bases))


def _power(rng: np.random.Generator) -> str:
    exponent = rng.choice(["{}", "{} + {}", "{}*{}", "{}/{}", "{} + y", "{}*y", "-({})", "y - {}"])
    exponent = str(exponent).replace("{}", "%s")
    exponent = exponent % tuple(_number(rng) for _ in range(exponent.count("%s")))
    return f"({_base(rng)})**({exponent})"


def _powers(rng: np.random.Generator) -> str:
    wraps = (
        "{}",
        "log(1 - {})",
        "c0*{}",
        "x + {}",
        "sqrt({})",
        "exp(log({}))",
        "1/({})",
        "({})**3",
    )
    wraps += ("exp({} * log(x + 3/8))", "({})*(3**(-y))", "sin({})", "tan({} + pi/2)", "abs({})")
    text = _power(rng)
    for _ in range(int(rng.integers(1, 4))):
        text = str(rng.choice(wraps)).replace("{}", text)
    return text


def _tower(rng: np.random.Generator) -> str:
    n = int(rng.integers(2, 40))
    exponents = [str(rng.choice(["2", "3", "64", "1000", "0.5", "1/3", "-1"])) for _ in range(n)]
    if rng.random() < 0.5:
        return "(" * n + _base(rng) + "".join(f")**({exponent})" for exponent in exponents)
    return "**".join(f"({e})" for e in [_base(rng), *exponents])


def _nested(rng: np.random.Generator) -> str:
    patterns = (
        "(|)",
        "sin(|)",
        "x**|",
        "(x + |)**2",
        "2**(x - |)",
        "1/(c0 + |)",
        "sqrt(|)",
        "-(|)",
    )
    patterns += (
        "exp(|)",
        "log(abs(|))",
        "0.5**|",
        "x - (y*|)",
        "abs(|)",
        "pow(|, y)",
        "x/(1 + y/|)",
    )
    n = int(rng.choice([3, 10, 30, 50, 90, 99, 100, 101, 200, 1000]))
    chosen = [str(rng.choice(patterns)) for _ in range(int(rng.integers(1, 4)))]
    text = str(rng.choice(["x", "c0", "2", "x + y"]))
    for level in range(n):
        text = chosen[level % len(chosen)].replace("|", text)
    return text


def _long(rng: np.random.Generator) -> str:
    patterns = ("(x + c#)", "c#", "x", "(c# + c@)", "sin(c#*x)", "(x + #)", "x^#", "#", "1/#")
    patterns += (
        "exp(c#*x + c@)",
        "(x - y/#)",
        "c#*x",
        "(c0 + c#*y)",
        "x**(1/#)",
        "#**x",
        "(c# - c@)",
    )
    pattern = str(rng.choice(patterns))
    n = int(rng.choice([10, 50, 100, 300, 1000, 2000]))
    symbol = str(rng.choice(["*", "+", "-", "/", "*"]))
    step = int(rng.integers(1, 4))
    return symbol.join(
        pattern.replace("#", str(i + 1)).replace("@", str((i + step) % n + 1)) for i in range(n)
    )


def _strange_names(rng: np.random.Generator) -> str:
    words = "".join(str(rng.choice(STRANGE)) for _ in range(int(rng.integers(1, 9))))
    return str(rng.choice(["`|`", "|", "|0", "c|", "x*|(y)", "`|"])).replace("|", words)


HOSTILE = (_powers, _powers, _powers, _tower, _nested, _long, _long, _strange_names)
