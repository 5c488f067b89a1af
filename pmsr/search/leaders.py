"""The best laws that an island has seen, each once and in its best spelling."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from pmsr.data import Data
from pmsr.equation.program import Program
from pmsr.evidence.surface import SAME_CURVE
from pmsr.search.curves import agree

N_LEADERS = 150  # that an island keeps: some times as many as there are finalists


@dataclass(frozen=True, eq=False)
class Leader:
    """A law near the top.

    Parameters
    ----------
    program
        Its best spelling so far, folded.
    key
        Of the program.
    law
        Digest of its curve.
    rank
        How many parameters the data determine.
    rmse
        Of the best fit.
    log_q, log_q_se
        By the closed form, and NaN; or as it was weighed, with its standard error, infinite
        if the draws did not suffice.
    log_p
        Log prior probability of the spelling.
    size
        Nodes of the spelling's tree.
    curve
        Predictions at rows and probes, of shape (n,).
    """

    program: Program
    key: int
    law: int
    rank: int
    rmse: float
    log_q: float
    log_q_se: float
    log_p: float
    size: int
    curve: NDArray[np.float64]

    @cached_property
    def first(self) -> float:
        """The first finite value of the curve: where two laws differ, it nearly always does too."""
        finite = self.curve[np.isfinite(self.curve)]
        return float(finite[0]) if len(finite) else 0.0

    @property
    def score(self) -> float:
        """What leads the search."""
        return self.log_q + self.log_p

    @property
    def is_weighed(self) -> bool:
        """Whether log q is that of Sequential Monte Carlo."""
        return not np.isnan(self.log_q_se)


class Leaders:
    """Laws in the order of their scores, best first; of equals the one with the smaller key.

    Two spellings are one law if their ranks are equal and their best fits agree within 1e-6
    standard deviations of the target at the rows and at the probes. Laws with as many identifiable
    parameters as rows fit everything and are never taken for one another.

    Parameters
    ----------
    data
        The rows.
    """

    def __init__(self, data: Data) -> None:
        self.n_rows = len(data.y)
        self.tolerance = SAME_CURVE * data.spread
        self.laws: tuple[Leader, ...] = ()

    def copy(self) -> "Leaders":
        """Return leaders that go their own way from here."""
        other = object.__new__(Leaders)
        other.__dict__ |= self.__dict__
        return other

    @property
    def floor(self) -> float:
        """The score that a law must exceed to be among them."""
        return self.laws[-1].score if len(self.laws) == N_LEADERS else -np.inf

    def add(self, new: Iterable[Leader]) -> None:
        """Take in laws; what falls behind the last place is gone."""
        found = list(self.laws)
        for one in new:
            if not one.score > -np.inf:
                continue
            place = self._find(found, one)
            if place is None:
                found.append(one)
            else:
                found[place] = _united(found[place], one)
        self.laws = tuple(sorted(found, key=lambda law: (-law.score, law.key))[:N_LEADERS])

    def weigh(self, law: Leader, log_q: float, log_q_se: float) -> None:
        """Put what was weighed in the place of the closed form; without a weight the law goes."""
        others = [one for one in self.laws if one is not law]
        self.laws = tuple(others)
        self.add([replace(law, log_q=log_q, log_q_se=log_q_se)])

    def _find(self, laws: list[Leader], one: Leader) -> int | None:
        if one.rank >= self.n_rows:
            return next((k for k, law in enumerate(laws) if law.key == one.key), None)
        first, tolerance = one.first, self.tolerance
        for k, law in enumerate(laws):
            if abs(law.first - first) <= tolerance and law.rank == one.rank:
                if agree(law.curve, one.curve, tolerance):
                    return k
        return None


def _united(old: Leader, new: Leader) -> Leader:
    """Return a law in the better of two spellings, with its weight if either has been weighed.

    Of equals, that with more parameters in which it is linear: c0*sqrt(x) before sqrt(c0*x).
    """
    spelled = max((old, new), key=lambda one: (one.log_p, len(one.program.affine), -one.key))
    weighed = old if old.is_weighed or not new.is_weighed else new
    return replace(spelled, log_q=weighed.log_q, log_q_se=weighed.log_q_se)
