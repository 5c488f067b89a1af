"""When an estimate of log q can be trusted: one policy, a row for the search, one for the rest."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pmsr.settings import Settings

Floats = NDArray[np.float64]
Booleans = NDArray[np.bool_]

# Two of these are two nats, by which laws are told apart: log q that is known no better is not
# known. What was not sampled at all is reported with just this error.
UNKNOWN_SE = 1.0


@dataclass(frozen=True, kw_only=True)
class Trust:
    """How hard to work for an estimate of log q, and what it must show to be believed.

    Effective sample sizes stand for errors: the integral that n effective draws give is known to
    1/sqrt(n) nats. The fields without a default are those in which `SEARCH` and `THOROUGH` differ.

    Parameters
    ----------
    fits_once
        Whether a search by squared error is content with the first minimum that it finds.
    takes_linear
        Whether the closed form of a linear equation will do for what is hopeless.
    max_growth
        How many times ``n_draws`` may be drawn where fewer do not cover both ends of the path.
    builds_bridges
        Whether a step that leaves too few effective particles is shortened, and these are moved.
    n_repeats
        Runs that are added where one does not cover the target: it cannot tell its own error.
    wild_pareto_k, wild_ess
        Tail index above which, and effective sample size below which, a run that does not cover
        the target is a failure.
    max_se
        Largest standard error with which log q is still a number; beyond, it is a failure.
    samples_sensitivity
        Whether the prior's bounds are halved and the equation is weighed again, where its draws
        do not tell what would change.
    """

    fits_once: bool
    takes_linear: bool
    max_growth: int
    builds_bridges: bool
    n_repeats: int
    wild_pareto_k: float
    wild_ess: float
    max_se: float
    samples_sensitivity: bool

    # Nats behind a constant, odds of 1 to 22,000. For most equations the closed form is within a
    # nat of the truth: sampling would not bring one back.
    hopeless: float = 10.0
    # 0.1 nats: a tenth of what tells two laws apart.
    min_ess: float = 100.0
    # Beyond, the mean of so many weights as anybody draws is not reliable (Vehtari et al. 2024).
    max_pareto_k: float = 0.7
    # A heavy tail matters if something is in it: without its largest weight, an integral of
    # which that is a twentieth changes by 0.05 nats.
    max_top_share: float = 0.05
    # What a run does not reach it cannot count in its error either. Chosen, not derived: twice what
    # benchmarks/evidence_surface.py lets covered runs claim, and less than the nat that decides.
    uncovered_se: float = 0.3
    # Squared errors of one minimum differ by where optimisations stop. With a hundred points, a
    # thousandth of it is 0.05 nats of log likelihood.
    same_minimum: float = 1e-3
    # Of the squared target; residuals of 1e-12 of it are rounding errors of a few operations, and
    # which of two such fits has the smaller says nothing.
    rounding: float = 1e-24
    # Log likelihoods, as differences of huge numbers, are wanted to a few hundredths of a nat.
    max_rounding: float = 0.01
    # Of a linear equation the log likelihood is half a chi-squared below its largest, (p + 1)/2
    # nats on average. Six times that, and ten nats for what is curved, is not the posterior.
    arrival_nats: float = 10.0
    arrival_nats_each: float = 3.0
    # Of all chains: a posterior's means are then known to 3 % of a standard deviation, the ends of
    # 95 % intervals to 8 %.
    posterior_ess: float = 1000.0
    # Two of these are a nat, the margin by which a comparison rejects an equation.
    max_sure_se: float = 0.5
    # Below, and above, ArviZ's authors mistrust means and intervals (Vehtari et al. 2021).
    min_draws: float = 400.0
    max_r_hat: float = 1.01

    def is_hopeless(self, log_q_linear: float, constant: float, floor: float) -> bool:
        """Tell whether sampling an equation is idle: it is far behind a constant, or below a floor.

        Examples
        --------
        >>> SEARCH.is_hopeless(-40.0, -28.0, -np.inf), SEARCH.is_hopeless(-30.0, -28.0, -np.inf)
        (True, False)
        """
        return log_q_linear < max(floor, constant - self.hopeless)

    def has_enough(self, ess: float) -> bool:
        """Tell whether so many effective draws make an integral."""
        return ess >= self.min_ess

    def is_heavy(self, pareto_k: float) -> bool:
        """Tell whether weights have a tail too heavy for their mean to be reliable."""
        return pareto_k > self.max_pareto_k

    def covers(self, ess: float, pareto_k: float, top_share: float) -> bool:
        """Tell whether draws cover a target: enough effective ones and no dominating tail.

        Examples
        --------
        >>> THOROUGH.covers(500.0, 0.9, 0.01), THOROUGH.covers(500.0, 0.9, 0.2)
        (True, False)
        """
        return self.has_enough(ess) and not (
            self.is_heavy(pareto_k) and top_share > self.max_top_share
        )

    def is_wild(self, ess: float, pareto_k: float) -> bool:
        """Tell whether weights that do not cover the target are too bad to be reported at all.

        Examples
        --------
        >>> SEARCH.is_wild(20.0, 0.9), THOROUGH.is_wild(20.0, 0.9)
        (True, False)
        """
        return pareto_k > self.wild_pareto_k or ess < self.wild_ess

    def is_number(self, se: float) -> bool:
        """Tell whether log q with this standard error is a number: a worse one would mislead."""
        return se <= self.max_se

    def largest_error(self, sse: float, square: float) -> float:
        """Return the largest squared error of fits that found the same minimum as the best.

        Parameters
        ----------
        sse
            Squared error of the best.
        square
            That of zero: the sum of the squared target.
        """
        return (1.0 + self.same_minimum) * sse + self.rounding * square

    def has_arrived(self, mean: float, expected: float, n_parameters: int) -> bool:
        """Tell whether a mean log likelihood may be that of the posterior."""
        each = self.arrival_nats_each * (n_parameters + 1)
        return mean > expected - self.arrival_nats - each

    def make_posterior(self, ess: Sequence[float]) -> bool:
        """Tell whether chains with these effective sample sizes make a posterior."""
        return self.has_enough(min(ess)) and sum(ess) >= self.posterior_ess

    def is_unsure(self, se: float) -> bool:
        """Tell whether a user should doubt log q with this standard error."""
        return se > self.max_sure_se

    def are_few(self, ess: Floats) -> Booleans:
        """Tell which parameters have too few effective draws for their means and intervals."""
        return np.asarray(ess < self.min_draws)

    def are_apart(self, r_hat: Floats) -> Booleans:
        """Tell about which parameters the chains disagree."""
        return np.asarray(r_hat > self.max_r_hat)


# Thousands are weighed, so that the best is the one that is most wrong: on 1000 generations it had
# log q = 7 and, weighed thoroughly, -8. What would take long to know is refused instead; what
# comes out on top is weighed again.
SEARCH = Trust(
    fits_once=True,
    takes_linear=True,
    max_growth=4,  # two doublings: an equation costs at most four others
    builds_bridges=False,
    n_repeats=0,
    wild_pareto_k=1.0,  # from here on, the mean of the weights does not even exist
    wild_ess=30.0,  # 0.2 nats, by an estimate that is itself made of so few
    max_se=np.inf,  # its score is log q less two errors: what is not known does not win
    samples_sensitivity=False,
)
"""For the many equations that a search sees and forgets."""

THOROUGH = Trust(
    fits_once=False,
    takes_linear=False,
    max_growth=8,  # three doublings, before a bridge is built instead
    builds_bridges=True,
    n_repeats=3,  # with the first, four: their error is known to 1/sqrt(6), 40 %
    wild_pareto_k=np.inf,  # bridges and repetitions tell instead
    wild_ess=0.0,
    max_se=UNKNOWN_SE,
    samples_sensitivity=True,
)
"""For what is shown; and for judging it, whatever it was weighed with."""


def trust_of(settings: Settings) -> Trust:
    """Return the row that settings choose.

    Examples
    --------
    >>> from pmsr.settings import FINALIST, QUICK
    >>> trust_of(FINALIST).max_growth, trust_of(QUICK).max_growth
    (8, 4)
    """
    return THOROUGH if settings.thorough else SEARCH


def are_known(errors: Floats) -> Booleans:
    """Tell which standard errors belong to a known log q, with which others may be compared.

    Examples
    --------
    >>> are_known(np.array([0.1, UNKNOWN_SE]))
    array([ True, False])
    """
    return np.asarray(errors < UNKNOWN_SE)
