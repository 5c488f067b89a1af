"""The log prior of an equation, as a user asks for it: what its score adds to log q."""

import numpy as np

from pmsr.data import Data
from pmsr.equation.expression import Equation
from pmsr.evidence.evidence import Evidence
from pmsr.laws.coincidences import Rows, column_signs, count_coincidences
from pmsr.laws.prior import LawPrior, LawPriorOption, read_law_prior
from pmsr.laws.spelling import best_spelling, nonzero_columns
from pmsr.laws.units import Units


def find_log_prior(
    equation: Equation,
    data: Data,
    law_prior: LawPriorOption,
    *,
    units: Units | None = None,
    evidence: Evidence | None = None,
    is_spelled: bool = False,
) -> float:
    """Return the log of the prior probability of a law, but for a constant.

    Parameters
    ----------
    equation
        The law. A description is that of its best spelling.
    data
        What it explains, with its variables in its order: their signs say where units are looked
        at.
    law_prior
        As in :class:`pmsr.Search`.
    units
        Units of columns, with those whose zero is arbitrary; those that the equation does not have
        do not matter. A law that does not survive a change of units that are known is impossible:
        ``-inf``. By default every column, and the target, has one of its own.
    evidence
        With the best fit, if it is known.
    is_spelled
        Whether the equation is in its best spelling already, as what comes from a search is.

    Examples
    --------
    >>> from pmsr.data import make_data
    >>> data = make_data([1.0, 2.0, 3.0], [1.0, 1.4, 1.7])
    >>> find_log_prior(Equation("c0*sqrt(x0)", ["x0"]), data, "description")
    -6.0
    >>> find_log_prior(Equation("c0*sqrt(x0)", ["x0"]), data, "uniform")
    0.0
    """
    prior = read_law_prior(law_prior)
    generators = None if units is None else units.select(equation.variables).generators
    # Coincidences belong to the law: they are counted where its best fit is known.
    signs, rows = column_signs(data.X), known_rows(data, evidence, len(equation.parameters))
    if not isinstance(prior, LawPrior):
        return float(prior(equation, signs=signs, generators=generators, rows=rows))
    found = count_coincidences(
        equation.program, len(equation.variables), signs=signs, generators=generators, rows=rows
    )
    if not is_spelled:
        equation = best_spelling(equation, prior, nonzero=nonzero_columns(data))
    return prior.log_p(equation.program, found)


def known_rows(
    data: Data, evidence: Evidence | None, n_parameters: int | None = None
) -> Rows | None:
    """Return where a law was seen: the data and its best fit; None if it has none.

    With a number of parameters, what comes after them are uncertain constants, which are columns
    to a law.
    """
    if evidence is None or evidence.failure is not None or not np.isfinite(evidence.theta).all():
        return None
    if evidence.theta.ndim == 2:  # of several groups; where one of them is will do
        return data.X, evidence.theta[0]
    return data.X, evidence.theta[:n_parameters]
