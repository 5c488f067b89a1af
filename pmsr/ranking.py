"""Equations ranked by their evidence: the table, and the winner that is shown to a user."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from numbers import Integral
from typing import Any

import numpy as np
import pandas as pd

from pmsr.data import Data, make_data
from pmsr.evidence import Evidence, seed_for, weigh
from pmsr.expression import Equation
from pmsr.selection import simplest_close
from pmsr.settings import FINALIST, RandomSeed, Settings


# X and y are Any as in `data`: what users hand over is recognised by what it can do.
def compare(
    equations: Sequence[Equation | str] | Mapping[str, Equation | str],
    X: Any,
    y: Any,
    *,
    settings: Settings | None = None,
    random_seed: RandomSeed = None,
    callback: Callable[[str], None] | None = None,
) -> pd.DataFrame:
    """Rank equations by how well the data support them.

    Parameters
    ----------
    equations
        Equations, as objects or as text with the columns of X as variables; in a dictionary, under
        names of your own.
    X, y
        The data.
    settings
        Fraction, priors and sizes; by default ``pmsr.settings.FINALIST``, which repeats every run
        four times.
    random_seed
        Seed or generator. An equation's evidence depends on the seed and on the equation, not on
        the others in the list.
    callback
        Called with the name of each equation once it has been weighed.

    Returns
    -------
    DataFrame
        As `tabulate` makes it, best first. Where ``gamma`` depends on the number of parameters
        (``"ohagan"``), the largest equation's is taken for all.

    Examples
    --------
    >>> from pmsr.data import load_galileo
    >>> X, y = load_galileo("shelf")
    >>> table = compare({"line": "c0 + c1*H", "root": "c0*sqrt(H)"}, X, y, random_seed=1)
    >>> table["probability"].round(2).to_dict()
    {'root': 0.96, 'line': 0.04}
    """
    data = make_data(X, y)
    named = _read_equations(equations, data)
    settings = settings or FINALIST
    largest = max(len(equation.parameters) for equation in named.values())
    settings = replace(settings, gamma=settings.resolve_gamma(len(data.y), largest))
    if not isinstance(random_seed, Integral):
        # One seed for all: equations are weighed alike, in whatever order they come.
        random_seed = int(np.random.default_rng(random_seed).integers(2**63))
    by_key: dict[str, Evidence] = {}
    for name, equation in named.items():
        if equation.key not in by_key:
            selected = data.select(equation.variables)
            seed = seed_for(equation.key, random_seed)
            by_key[equation.key] = weigh(equation.program, selected, settings, seed)
        if callback is not None:
            callback(name)
    return tabulate(named, {name: by_key[equation.key] for name, equation in named.items()})


def tabulate(equations: Mapping[str, Equation], evidences: Mapping[str, Evidence]) -> pd.DataFrame:
    r"""Arrange equations and their evidence, computed with one gamma, in a ranked table.

    Parameters
    ----------
    equations, evidences
        Under the same names.

    Returns
    -------
    DataFrame
        Best first, failures last, with the names as index and the columns

        - ``equation``: as it was written;
        - ``log_q``, ``log_q_se``: log normalized marginal likelihood of Eq. (5) and its
          Monte-Carlo standard error; -inf after a failure;
        - ``difference``: ``log_q`` minus that of the best, in nats;
        - ``probability``: posterior probability of the equation if, beforehand, all in the table
          were equally likely, Eq. (4). Spellings of the same equation share its probability;
        - ``bayes_factor``: fractional Bayes factor of the best against this one, how many times
          better the data support the best;
        - ``parameters``: how many;
        - ``complexity``: number of nodes of the equation's graph;
        - ``rmse``: root mean squared error of the best fit;
        - ``prior_sensitivity``: by how many nats ``log_q`` would change if the bounds of the
          prior were halved. Differences that are smaller are not evidence;
        - ``failure``: None, or why there is no evidence.

        ``attrs`` hold ``gamma`` and ``sigma_bounds``.
    """
    spellings = Counter(equation.key for equation in equations.values())
    rows = []
    for name, equation in equations.items():
        evidence = evidences[name]
        rows.append(
            {
                "equation": equation.text,
                "log_q": evidence.log_q,
                "log_q_se": evidence.log_q_se,
                "parameters": len(equation.parameters),
                "complexity": equation.complexity,
                "rmse": evidence.rmse,
                "prior_sensitivity": evidence.prior_sensitivity,
                "share": 1.0 / spellings[equation.key],
            }
        )
    table = pd.DataFrame(rows, index=pd.Index(list(equations), name="name"))
    log_q = table["log_q"].to_numpy()
    best = log_q.max()
    difference = log_q - best if np.isfinite(best) else np.full(len(log_q), -np.inf)
    weights = np.exp(difference) * table.pop("share").to_numpy()
    table.insert(3, "difference", difference)
    table.insert(4, "probability", weights / max(weights.sum(), 1e-300))
    with np.errstate(over="ignore"):
        table.insert(5, "bayes_factor", np.exp(-difference))
    # Of dtype object: a column of strings would turn None into NaN.
    failures = [evidences[name].failure for name in equations]
    table["failure"] = pd.Series(failures, index=table.index, dtype=object)
    table = table.sort_values(["log_q", "complexity"], ascending=[False, True], kind="stable")
    any_evidence = next(iter(evidences.values()))
    table.attrs["gamma"] = any_evidence.gamma
    table.attrs["sigma_bounds"] = any_evidence.sigma_bounds
    return table


def parsimonious(table: pd.DataFrame) -> str:
    """Name of the simplest equation that the data do not clearly reject.

    Parameters
    ----------
    table
        From `compare` or `tabulate`.

    Returns
    -------
    str
        Among the equations whose ``log_q`` is within one nat of the best, or within two standard
        errors of the difference where these are larger, the one of least complexity; then the one
        with fewest parameters; then the one with the largest ``log_q``.

    Examples
    --------
    >>> columns = ["log_q", "log_q_se", "complexity", "parameters"]
    >>> rows = [(-10.0, 0.01, 9, 2), (-10.7, 0.01, 4, 1), (-12.0, 0.01, 3, 1)]
    >>> parsimonious(pd.DataFrame(rows, index=["long", "short", "wrong"], columns=columns))
    'short'
    """
    if not np.isfinite(table["log_q"]).any():
        raise ValueError("No equation could be weighed. The column failure says why.")
    columns = (table[name] for name in ("log_q", "log_q_se", "complexity", "parameters"))
    return str(table.index[simplest_close(*(column.tolist() for column in columns))])


def _read_equations(equations: Any, data: Data) -> dict[str, Equation]:
    """Return the equations under their names, after checking what the user wrote."""
    if isinstance(equations, str | Equation) or not isinstance(equations, Mapping | Sequence):
        raise ValueError(
            "equations must be a list or a dictionary of equations, got "
            f"{type(equations).__name__}. Use [...] even for one."
        )
    if not equations:
        raise ValueError('equations must not be empty. Give at least one, such as ["c0 + c1*x0"].')
    pairs = (
        list(equations.items())
        if isinstance(equations, Mapping)
        else [(getattr(equation, "text", equation), equation) for equation in equations]
    )
    named: dict[str, Equation] = {}
    for name, equation in pairs:
        if not isinstance(equation, Equation | str):
            raise ValueError(
                "An equation is an Equation or its text, got "
                f"{equation!r}. Use pmsr.Equation(text, variables)."
            )
        if not isinstance(name, str):
            raise ValueError(f"Names of equations must be strings, got {name!r}.")
        if name in named:
            raise ValueError(
                f"The equation {name!r} is listed twice. Leave one out, or name both: "
                "{name: equation, ...}."
            )
        named[name] = equation if isinstance(equation, Equation) else Equation(equation, data.names)
    return named
