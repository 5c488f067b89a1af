"""Short symbols for the names of columns, so that a formula can be read: T for ``T [K]``."""

import re
from collections.abc import Iterator, Sequence

from pmsr.equation.grammar import without_quotes

LONGEST = 8  # letters of a word that is short enough
_BRACKETS = re.compile(r"\s*[\[(][^\[\]()]*[\])]\s*$")
_SHORT = re.compile(rf"[^\W\d_]{{1,{LONGEST}}}(_?\d{{1,3}}|_[^\W_]{{1,{LONGEST}}})?")
_QUOTED = re.compile("`([^`]+)`")
_TAKEN = frozenset({"e", "pi", "sigma"})  # two numbers, and the noise


def short_symbols(names: Sequence[str], taken: Sequence[str] = ()) -> dict[str, str]:
    """Return a short symbol for each name, by which formulas are typeset.

    Parameters
    ----------
    names
        What columns are called; each a different name.
    taken
        What means something else in the formulas: their parameters.

    Returns
    -------
    dict
        A name that is short stays as it is; of others the unit in brackets is left out, and of
        what is then still long the first letter is left, with a subscript where two would be one.

    Examples
    --------
    >>> short_symbols(["T [K]", "k (1/s)", "drop height (cm)", "sigma_D", "drag"])
    {'T [K]': 'T', 'k (1/s)': 'k', 'drop height (cm)': 'd', 'sigma_D': 'sigma_D', 'drag': 'drag'}
    >>> short_symbols(["temperature", "t", "time of flight"])
    {'temperature': 't_e', 't': 't', 'time of flight': 't_of'}
    """
    bases = {name: _BRACKETS.sub("", name).strip() or name for name in names}
    # Who is short already has the first choice.
    found = {name: name for name in names if _SHORT.fullmatch(name)}
    used = {*_TAKEN, *taken, *found}
    for is_short in (True, False):
        for name, base in bases.items():
            if name not in found and bool(_SHORT.fullmatch(base)) == is_short:
                found[name] = next(one for one in _candidates(base) if one not in used)
                used.add(found[name])
    return {name: found[name] for name in names}


def shorten(texts: Sequence[str]) -> list[str]:
    """Return equations for the labels of a picture: without units where names have them.

    A picture has no legend of symbols, so that nothing else takes the place of a name.

    Examples
    --------
    >>> shorten(["c0*`T [K]`/`drop height`", "c0 + `H`*`H [mm]`"])
    ['c0*T/`drop height`', 'c0 + H*`H [mm]`']
    """
    texts = [without_quotes(text) for text in texts]
    names = dict.fromkeys(name for text in texts for name in _QUOTED.findall(text))
    others = [word for text in texts for word in re.findall(r"[^\W\d]\w*", _QUOTED.sub("", text))]
    symbols = {
        name: symbol
        for name, symbol in short_symbols(list(names), others).items()
        if symbol == _BRACKETS.sub("", name).strip()
    }
    return [_QUOTED.sub(lambda found: symbols.get(found[1], found[0]), text) for text in texts]


def _candidates(base: str) -> Iterator[str]:
    """Yield symbols for a name, the best first."""
    if _SHORT.fullmatch(base):
        yield base
    words = re.findall(r"[^\W\d_]+", base)
    letter = words[0][0] if words else "x"
    if not _SHORT.fullmatch(base):
        yield letter
    initials = "".join(word[0] for word in words[1:4]) or (words[0][1:2] if words else "")
    digits = re.search(r"\d{1,3}(?=\D*$)", base)
    if digits is not None:
        yield f"{letter}_{digits[0]}"
    if initials:
        yield f"{letter}_{initials}"
    yield from (f"{letter}_{number}" for number in range(2, 10**6))
