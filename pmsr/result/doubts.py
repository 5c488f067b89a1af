"""What a user should doubt about a result, in words, with something to do about it."""

import sys
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pmsr.data import Data
from pmsr.equation.notation import percent
from pmsr.evidence.diagnostics import normality
from pmsr.evidence.evidence import Evidence
from pmsr.evidence.noise import GAUSSIAN, Noise
from pmsr.evidence.trust import THOROUGH

Floats = NDArray[np.float64]

LEAST_PER_PARAMETER = 2.0  # observations for each parameter, the noise level included
CLEARLY = 3.0  # how many times more probable than the next a clear winner is
LEAST_P = 0.05  # of the test for normal residuals
ROUNDING = 1e-9  # of the largest value of the target: residuals below are those of floats
BEYOND = 0.1  # of the data's range: where a user will ask next
N_BEYOND = 10  # places there, to either side
N_ROWS = 64  # rows from which one variable is led beyond the data
FOLDS = "sklearn.model_selection._validation"  # the module that fits the folds
N_NAMED = 5  # columns that a doubt names; more would hide the other doubts


class ResultWarning(UserWarning):
    """A reason to doubt a result; `warnings.filterwarnings` silences it by this name."""


_silent: ContextVar[bool] = ContextVar("silent", default=False)


@contextmanager
def quietly() -> Iterator[None]:
    """Leave warnings about a result away, in this thread only.

    ``warnings.catch_warnings`` would change the filters of all threads: their doubts would be
    lost, and where two of them overlap, all later ones too.

    Examples
    --------
    >>> with quietly():
    ...     warn(["There are 3 observations."])
    """
    token = _silent.set(True)
    try:
        yield
    finally:
        _silent.reset(token)


def warn(doubts: Sequence[str]) -> None:
    """Issue doubts as warnings that point at the line outside pmsr which asked for them.

    The folds of a cross-validation are nobody's result: theirs are only kept in ``warnings_``.
    """
    if _silent.get():
        return
    callers = [str(frame.f_globals.get("__name__")) for frame, _ in traceback.walk_stack(None)]
    if FOLDS in callers:
        return
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and str(frame.f_globals.get("__name__")).startswith("pmsr."):
        level, frame = level + 1, frame.f_back
    for doubt in doubts:
        warnings.warn(doubt, ResultWarning, stacklevel=level)


def doubt_number_of_points(n_points: float, n_parameters: int) -> list[str]:
    """Say whether there are too few observations for the parameters and the noise level.

    A law without parameters needs as many as a constant, which has one: the constant is what it
    has to be told from.

    Examples
    --------
    >>> doubt_number_of_points(5, 1)
    []
    >>> len(doubt_number_of_points(5, 2))
    1
    >>> doubt_number_of_points(2, 0)[0][:61]
    'There are 2 observations, too few to tell any law from a cons'
    """
    if n_points >= LEAST_PER_PARAMETER * (max(n_parameters, 1) + 1):
        return []
    if n_parameters == 0:
        return [
            f"There are {n_points:g} observations, too few to tell any law from a constant with "
            "noise: many laws pass through so few points. Measure more."
        ]
    s = "" if n_parameters == 1 else "s"
    return [
        f"There are {n_points:g} observations for {n_parameters} parameter{s} and the noise level: "
        "the intervals lean on the prior. Measure more, or prefer a shorter equation."
    ]


def doubt_interpolation(residuals: Floats, y: Floats, n_parameters: int) -> list[str]:
    """Say whether a law passes through every point because it has as many parameters as points.

    Examples
    --------
    >>> len(doubt_interpolation(np.zeros(2), np.array([1.0, 2.0]), 2))
    1
    >>> doubt_interpolation(np.zeros(2), np.array([1.0, 2.0]), 1)
    []
    """
    if n_parameters < len(y) or not _is_rounding(residuals, y):
        return []
    return [
        f"The equation has as many parameters as there are observations ({len(y)}) or more, and "
        "passes through all of them: nothing is left to test it, and the noise level is what the "
        "prior says. Measure more, or prefer a shorter equation."
    ]


def _is_rounding(residuals: Floats, y: Floats) -> bool:
    """Tell whether residuals are nothing but the rounding of floats."""
    return bool(np.max(np.abs(residuals)) < ROUNDING * np.max(np.abs(y)))


def doubt_chance(text: str, lead: float, n_tried: int) -> list[str]:
    r"""Say whether an equation is no farther ahead of a constant than the luckiest of many is.

    Parameters
    ----------
    text
        The equation.
    lead
        Its score less that of the best equation without variables; NaN if it is not known. Minus
        infinity is that of a law that its units make impossible, which is told by itself.
    n_tried
        How many distinct equations it was chosen from; 1 where the prior over laws accounts for
        their number.

    Notes
    -----
    If the target is noise about a constant, a Bayes factor of any other equation against it has a
    mean of one; so by Markov's inequality it exceeds t with a probability of at most 1/t, and one
    of N equations does with at most N/t. That bounds nothing until t is N, a lead of
    :math:`\ln N` nats. Put otherwise: if the N equations share what probability the constant has
    beforehand, the data must first make up for :math:`\ln N` nats. Fractional Bayes factors, and
    equations that resemble one another, obey this only roughly.

    Examples
    --------
    >>> doubt_chance("sin(x)", 8.3, 4000)
    []
    >>> print(doubt_chance("sin(x)", 8.3, 5506)[0][:73])
    5,506 equations were tried; among so many, chance alone lets the best lea
    >>> doubt_chance("c0 + t", float("-inf"), 1)
    []
    >>> print(doubt_chance("c0*x", -1.2, 1)[0][:60])
    A constant is ahead of 'c0*x' by 1.2 nats: what the equation
    """
    by_chance = float(np.log(max(1, n_tried)))
    if np.isnan(lead) or lead == -np.inf or (lead > 0.0 and lead >= by_chance):
        return []
    if lead <= 0.0:
        return [
            f"A constant is ahead of {text!r} by {abs(lead):.1f} nats: what the equation says of "
            "the variables may be noise. Measure more, or take the constant."
        ]
    return [
        f"{n_tried:,} equations were tried; among so many, chance alone lets the best lead a "
        f"constant by about ln({n_tried:,}) = {by_chance:.1f} nats; {text!r} leads by {lead:.1f}: "
        "it may be noise. Measure more, or test it on new data."
    ]


def doubt_winner(
    text: str, own: tuple[float, int], rivals: Mapping[str, tuple[float, int]]
) -> list[str]:
    """Say whether the winner is not clearly more probable than the strongest of the others.

    Parameters
    ----------
    text
        The equation that is put forward.
    own
        Probability of its family, and how many laws that has.
    rivals
        The same for the other families, by the equations that speak for them.

    Examples
    --------
    >>> doubt_winner("c0*x", (0.9, 1), {"c0": (0.1, 1)})
    []
    >>> print(doubt_winner("c0*x", (0.6, 3), {"c0": (0.4, 1)})[0][:79])
    The data do not decide: 'c0*x' (with 2 laws like it) has probability 60.0%, 'c0
    """
    probability, n_laws = own
    others = {rival: known for rival, known in rivals.items() if known[0] > 0.0}
    if not others or not np.isfinite(probability):
        return []
    rival = max(others, key=lambda one: others[one][0])
    if probability >= CLEARLY * others[rival][0]:
        return []
    begin = "do not decide"
    if others[rival][0] >= CLEARLY * probability:
        begin = "speak for another law"
    return [
        f"The data {begin}: {_with_family(text, n_laws)} has probability "
        f"{percent(probability)}, {_with_family(rival, others[rival][1])} has "
        f"{percent(others[rival][0])}. Compare their predictions, average over all of them "
        "(average=True, or --average), or measure where they differ."
    ]


def doubt_face(text: str, probability: float, face: str, probability_of_face: float) -> list[str]:
    """Say whether a law that was chosen has one like it that is clearly more probable.

    Examples
    --------
    >>> doubt_face("c0*x", 0.6, "c0*x", 0.6)
    []
    >>> print(doubt_face("c0*x**c1", 0.19, "c0*x", 0.79)[0][:71])
    The data cannot tell 'c0*x**c1' from 'c0*x', which is more probable (79
    """
    if not CLEARLY * probability < probability_of_face:
        return []
    return [
        f"The data cannot tell {text!r} from {face!r}, which is more probable "
        f"({percent(probability_of_face)} against {percent(probability)}). Have a reason of your "
        "own for this one."
    ]


def _with_family(text: str, n_laws: int) -> str:
    if n_laws == 1:
        return repr(text)
    return f"{text!r} (with {n_laws - 1} {'law' if n_laws == 2 else 'laws'} like it)"


def doubt_prior(text: str, prior_sensitivity: float, leads: Mapping[str, float]) -> list[str]:
    """Say whether an equation is ahead of another by less than the bounds of the prior matter.

    Parameters
    ----------
    text
        The equation.
    prior_sensitivity
        By how many nats its log q would change if the bounds of the prior were halved.
    leads
        By how many nats it is ahead of others. In nats, because a probability of exp(-800) is zero
        and would hide a rival, however sensitive the equation. What it is behind is no lead.

    Examples
    --------
    >>> doubt_prior("c0*x", 1.0, {"c0": 2.2})
    []
    >>> print(doubt_prior("c0*x", -3.0, {"c0": 2.2})[0][:71])
    Halving the bounds of the prior would change the log q of 'c0*x' by 3 n
    """
    ahead = {rival: lead for rival, lead in leads.items() if 0.0 < lead < np.inf}
    if not ahead:
        return []
    rival = min(ahead, key=lambda one: ahead[one])
    if not abs(prior_sensitivity) > ahead[rival]:
        return []
    return [
        f"Halving the bounds of the prior would change the log q of {text!r} by "
        f"{abs(prior_sensitivity):.2g} nats, more than it is ahead of {rival!r} "
        f"({ahead[rival]:.2g}). Take the two for equally good, or measure where they differ."
    ]


def doubt_settled(is_settled: bool) -> list[str]:
    """Say whether a search was ended while it still found better laws.

    Examples
    --------
    >>> doubt_settled(True)
    []
    >>> doubt_settled(False)[0][:66]
    'The search had not settled: its best score was still rising when t'
    """
    if is_settled:
        return []
    return [
        "The search had not settled: its best score was still rising when time ended, so that "
        "probabilities are only those among what it has seen. Go on with it: pmsr resume in the "
        "shell, or fit with a checkpoint and a larger max_time."
    ]


def doubt_unweighed(share: float, probability: float) -> list[str]:
    """Say whether laws that were only screened may together be as probable as the winner.

    Parameters
    ----------
    share
        Their probability.
    probability
        That of the winner's family.

    Examples
    --------
    >>> doubt_unweighed(0.1, 0.8)
    []
    >>> doubt_unweighed(0.4, 0.5)[0][:64]
    'Laws that were only screened, not weighed, hold 40.0% of the pro'
    """
    if not CLEARLY * share > probability:
        return []
    return [
        f"Laws that were only screened, not weighed, hold {percent(share)} of the probability, as "
        "far as a formula for linear laws tells. Weigh more of them: "
        "search=pmsr.Search(n_finalists=200), or more time."
    ]


def doubt_beyond(
    text: str, data: Data, used: Sequence[str], curve: Callable[[Floats], Floats]
) -> list[str]:
    """Say whether a law is not defined within a tenth of the data's range beyond the data.

    Parameters
    ----------
    text
        The law.
    data
        What it explains.
    used
        Names of the variables on which it depends.
    curve
        Returns its values at points, of shape (n, d).

    Notes
    -----
    One variable at a time is led beyond the data, the others stay as they were measured. A variable
    that was always positive stays so, and one that was negative too.

    Examples
    --------
    >>> from pmsr.data import make_data
    >>> data = make_data([1.0, 2.0, 3.0], [0.0, 0.8, 1.0])
    >>> doubt_beyond("sqrt(x0)", data, ["x0"], lambda X: np.sqrt(X[:, 0]))
    []
    >>> doubt_beyond("sqrt(log(x0))", data, ["x0"], lambda X: np.sqrt(np.log(X[:, 0])))[0][:53]
    "'sqrt(log(x0))' is not defined at x0 = 0.98, just bey"
    """
    rows = data.X[np.unique(np.linspace(0, len(data.X) - 1, N_ROWS).astype(int))]
    undefined: list[tuple[float, str]] = []
    for name in used:
        column = data.names.index(name)
        for far, value, low, high in _places_beyond(data.X[:, column]):
            points = rows.copy()
            points[:, column] = value
            with np.errstate(all="ignore"):
                if not np.isfinite(curve(points)).all():
                    where = f"{name} = {value:.6g}, just beyond the data ({low:.6g} to {high:.6g})"
                    undefined.append((far, where))
    if not undefined:
        return []
    return [
        f"{text!r} is not defined at {min(undefined)[1]}. A law should be defined where you will "
        "ask next: prefer one that is, or measure there."
    ]


def _places_beyond(values: Floats) -> Iterator[tuple[float, float, float, float]]:
    """Yield how far beyond, the place, and the ends of the data."""
    low, high = float(values.min()), float(values.max())
    for k in range(1, N_BEYOND + 1):
        far = BEYOND * (high - low) * k / N_BEYOND
        if low - far > 0.0 or low < 0.0:
            yield far, low - far, low, high
        if high + far < 0.0 or high > 0.0:
            yield far, high + far, low, high


def doubt_noise(residuals: Floats, y: Floats, noise: Noise = GAUSSIAN) -> list[str]:
    """Say whether the residuals look as if the noise were another (Shapiro and Wilk's test).

    Examples
    --------
    >>> x = np.linspace(0.01, 0.99, 50)
    >>> doubt_noise(np.log(x / (1 - x)), 10 * x), len(doubt_noise(-np.log(x), 10 * x))
    ([], 1)
    """
    p = normality(residuals)
    # Rounding errors are not normal, and nobody's concern.
    if p is None or p >= LEAST_P or _is_rounding(residuals, y):
        return []
    test = f"do not look normal (Shapiro-Wilk p = {p:.2g})"
    if noise.has_one_size:
        said = f"The residuals {test}, and the intervals assume that they are."
    else:
        said = f"In units of {noise.words}, which the intervals assume, the residuals {test}."
    # With known errors there is nothing to choose, and what was chosen is not to be chosen again.
    more = ' noise="auto" asks which noise suits the data.' if noise == GAUSSIAN else ""
    return [
        f"{said} Plot them: outliers, noise that grows with the signal, or a missing term are the "
        f"usual causes.{more}"
    ]


def doubt_evidence(text: str, evidence: Evidence) -> list[str]:
    """Say whether the log q of an equation is unreliable, and why.

    Examples
    --------
    >>> from pmsr.data import load_galileo
    >>> from pmsr.evidence.evidence import compute_evidence
    >>> shelf = load_galileo("shelf")
    >>> doubt_evidence("c0*H", compute_evidence("c0*H", *shelf, random_seed=1))
    []
    >>> doubt_evidence("log(-H)", compute_evidence("log(-H)", *shelf))[0][:37]
    "'log(-H)' could not be weighed: never"
    """
    if evidence.failure is not None:
        return [f"{text!r} could not be weighed: {evidence.failure}."]
    if np.isnan(evidence.log_q):
        return []
    reasons = []
    if THOROUGH.is_unsure(evidence.log_q_se):
        reasons.append(f"its standard error is {evidence.log_q_se:.2f} nats")
    if THOROUGH.is_heavy(evidence.pareto_k):
        most = THOROUGH.max_pareto_k
        reasons.append(f"its Pareto k is {evidence.pareto_k:.2f}, above {most:g}")
    if not reasons:
        return []
    return [
        f"log q of {text!r} is unreliable: {' and '.join(reasons)}. Weigh it again with "
        "pmsr.compare in Python, and settings=pmsr.Settings(n_draws=64000, n_particles=4000, "
        "n_replicates=8)."
    ]


def doubt_sampling(parameters: pd.DataFrame) -> list[str]:
    """Say whether a posterior was sampled too little.

    Parameters
    ----------
    parameters
        From :func:`pmsr.evidence.diagnostics.summarise_parameters`.

    Examples
    --------
    >>> table = pd.DataFrame({"ess": [50.0], "r_hat": [1.0]}, index=["c0"])
    >>> print(doubt_sampling(table)[0][:67])
    Few independent draws of c0 (effective sample size 50, wanted 400):
    """
    doubts = []
    few = parameters.index[THOROUGH.are_few(parameters["ess"].to_numpy())]
    if len(few):
        doubts.append(
            f"Few independent draws of {', '.join(map(str, few))} (effective sample size "
            f"{parameters['ess'].min():.0f}, wanted {THOROUGH.min_draws:.0f}): sample more for the "
            "intervals."
        )
    apart = parameters.index[THOROUGH.are_apart(parameters["r_hat"].to_numpy())]
    if len(apart):
        doubts.append(
            f"The chains disagree about {', '.join(map(str, apart))} (R-hat "
            f"{parameters['r_hat'].max():.2f}): sample more, or look for several minima."
        )
    return doubts


def doubt_columns(constant: Mapping[str, float], used: Sequence[str]) -> list[str]:
    """Say which columns are the same in all rows, so that the data tell nothing about them.

    Parameters
    ----------
    constant
        Such columns, with their value.
    used
        Names of the variables on which the equation depends; a search leaves constant ones out.

    Examples
    --------
    >>> print(doubt_columns({"T": 293.0}, ["x"])[0][:60])
    Left out, because it is the same in all rows: 'T' (293). The
    >>> print(doubt_columns({"T": 293.0}, ["x", "T"])[0][:58])
    The equation depends on 'T', which is 293 in all rows: the
    """
    doubts = [
        f"The equation depends on {name!r}, which is {value:.6g} in all rows: the data cannot say "
        "how. Measure at other values before relying on it."
        for name, value in constant.items()
        if name in used
    ]
    left_out = [f"{name!r} ({value:.6g})" for name, value in constant.items() if name not in used]
    if left_out:
        they_are = "it is" if len(left_out) == 1 else "they are"
        more = f" and {len(left_out) - N_NAMED} more" if len(left_out) > N_NAMED else ""
        doubts.append(
            f"Left out, because {they_are} the same in all rows: {', '.join(left_out[:N_NAMED])}"
            f"{more}. The data cannot say what {they_are.split()[0]} would do. Measure at other "
            "values; if a column does vary, subtract its mean first."
        )
    return doubts


def doubt_failures(n_failed: int | None, n_candidates: int | None) -> list[str]:
    """Say whether most of the equations that a search met could not be weighed.

    Examples
    --------
    >>> doubt_failures(10, 100)
    []
    >>> len(doubt_failures(80, 100))
    1
    """
    if not n_candidates or n_failed is None or n_failed <= 0.5 * n_candidates:
        return []
    return [
        f"{n_failed / n_candidates:.0%} of the equations that the search met could not be "
        "weighed. Other operators, or scaled variables, may leave more of them."
    ]


def doubt_range(data: Data, points: Floats, used: Sequence[str]) -> list[str]:
    """Say whether predictions are asked for outside the range of the data.

    Parameters
    ----------
    data
        What the equation was fitted to.
    points
        Where to predict, of shape (n, d), with the columns of the data.
    used
        Names of the variables on which the prediction depends.

    Examples
    --------
    >>> from pmsr.data import make_data
    >>> data = make_data([1.0, 2.0, 3.0], [1.0, 4.0, 9.0])
    >>> doubt_range(data, np.array([[1.5]]), ["x0"])
    []
    >>> print(doubt_range(data, np.array([[1.5], [4.0]]), ["x0"])[0][:60])
    1 of 2 rows lie outside the data, for instance at x0 = 4 (th
    """
    outside = np.zeros(len(points), dtype=bool)
    example = ""
    for column, name in enumerate(data.names):
        if name not in used:
            continue
        low, high = float(data.X[:, column].min()), float(data.X[:, column].max())
        # Room for rounding: a grid from low to high is not extrapolation.
        room = 1e-9 * (high - low)
        beyond = np.maximum(low - room - points[:, column], points[:, column] - high - room)
        if beyond.max() > 0.0 and not example:
            value = points[int(np.argmax(beyond)), column]
            example = f"{name} = {value:.6g} (the data go from {low:.6g} to {high:.6g})"
        outside |= beyond > 0.0
    if not example:
        return []
    return [
        f"{np.sum(outside)} of {len(points)} rows lie outside the data, for instance at {example}. "
        "The intervals there hold only if the equation does: measure there before relying on it."
    ]
