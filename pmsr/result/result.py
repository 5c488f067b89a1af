"""Equations with their evidence, ranked: the table, averages over them, save and load."""

import platform
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from html import escape
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal, overload

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pmsr.data import Data, check_X
from pmsr.equation.canonical import parameter_names
from pmsr.equation.expression import Equation
from pmsr.equation.mathml import to_mathml
from pmsr.equation.notation import percent
from pmsr.evidence.evidence import CHAINS
from pmsr.evidence.prediction import check_level, describe_undefined, predict_mixture
from pmsr.evidence.priors import record_known
from pmsr.evidence.problem import Problem
from pmsr.inputs import read_labels
from pmsr.laws.order import model_probabilities, pareto_front
from pmsr.laws.prior import LawPriorOption
from pmsr.laws.units import Units
from pmsr.result.coverage import Coverage, describe_coverage, untried_operators
from pmsr.result.doubts import (
    doubt_chance,
    doubt_columns,
    doubt_face,
    doubt_prior,
    doubt_range,
    doubt_settled,
    doubt_unweighed,
    doubt_winner,
    warn,
)
from pmsr.result.family import Family, find_families, tabulate_families
from pmsr.result.fitted import FittedEquation, Kind, interval_rows, refuse_labels
from pmsr.result.inclusion import tabulate_inclusion
from pmsr.result.robustness import N_REWEIGHED, tabulate_robustness
from pmsr.result.scoring import find_log_prior
from pmsr.result.storage import (
    record_draws,
    record_evidence,
    record_fit,
    record_noise_table,
    record_prior,
    record_search,
    write_folder,
)
from pmsr.result.suggestion import Bounds, suggest_points
from pmsr.result.table import make_table, rank_by
from pmsr.search.engines import engine_of
from pmsr.search.genome import constant_equation
from pmsr.settings import Search, Settings

Floats = NDArray[np.float64]

STORED = 1e-3  # probability above which an equation's posterior is saved
NEGLIGIBLE = 1e-6  # probability below which an equation is left out of averages
LIBRARIES = ("pymc", "pytensor", "arviz", "sympy", "scipy", "numpy", "deap")
N_SHOWN = 10  # equations in the table of a notebook


# X and y are Any as in `data`: what users hand over is recognised by what it can do.
@dataclass(frozen=True, eq=False, repr=False)
class Result:
    """What a search or a comparison has found.

    Parameters
    ----------
    equations
        The distinct equations with their evidence, best first.
    names
        A name for each of them, or None.
    problem
        What they were weighed on: the data that they explain, the fraction and the priors.
    settings, search
        Options of the evidence and of the search; a comparison has no search.
    random_seed
        Seed of the run, and of the posteriors.
    chosen
        Place of the equation that is shown and predicts.
    history
        One record for each generation.
    n_candidates, n_failed
        Number of distinct equations that were seen, and how many of them could not be weighed;
        None if unknown.
    stopped
        Why the search ended.
    versions
        Of pmsr and of the libraries that it was made with.
    law_prior
        How probable the laws were before any data were seen, as in :class:`pmsr.Search`.
    coverage
        How much a search has seen.
    units
        Units of the columns and of the target, with the columns whose zero is arbitrary; None if
        nothing is known of them.
    constant_log_prior
        Log prior of a constant, if ``law_prior`` cannot be asked: a loaded result has no function.
    noise_table
        What each noise model makes of the data, best first, with the columns ``noise``,
        ``equation``, ``log_q`` and ``score``; None if the noise was not chosen by the data.

    Examples
    --------
    >>> from pmsr.data import load_galileo
    >>> from pmsr.result.comparison import weigh_equations
    >>> result = weigh_equations(["c0*H", "c0*sqrt(H)"], *load_galileo("shelf"), random_seed=1)
    >>> result.best
    FittedEquation('c0*sqrt(H)', log_q=-13.13)
    >>> result.table["probability"].round(2).to_dict()
    {'c0*sqrt(H)': 1.0, 'c0*H': 0.0}
    """

    equations: tuple[FittedEquation, ...]
    names: tuple[str, ...] | None
    problem: Problem
    settings: Settings
    search: Search | None
    random_seed: int
    chosen: int = 0
    history: tuple[dict[str, Any], ...] = ()
    n_candidates: int = 0
    n_failed: int | None = None
    stopped: str = ""
    versions: Mapping[str, str] | None = None
    law_prior: LawPriorOption = "uniform"
    coverage: Coverage = field(default_factory=Coverage)
    units: Units | None = None
    constant_log_prior: float | None = None
    noise_table: pd.DataFrame | None = None

    @property
    def data(self) -> Data:
        """What the equations explain."""
        return self.problem.data

    @property
    def best(self) -> FittedEquation:
        """The equation that was chosen."""
        return self.equations[self.chosen]

    @overload
    def __getitem__(self, which: int | str) -> FittedEquation: ...

    @overload
    def __getitem__(self, which: slice) -> tuple[FittedEquation, ...]: ...

    def __getitem__(self, which: int | str | slice) -> FittedEquation | tuple[FittedEquation, ...]:
        """Return an equation by its place in the table, or by its name; or several by a slice."""
        if isinstance(which, slice):
            return self.equations[which]
        return self.equations[self._place(which)]

    def __iter__(self) -> Iterator[FittedEquation]:
        return iter(self.equations)

    def __len__(self) -> int:
        return len(self.equations)

    def select(self, which: int | str) -> "Result":
        """Return the result with another equation as the best.

        Parameters
        ----------
        which
            Its place in the table, counted from 0, its name, or the equation in any spelling.
        """
        return replace(self, chosen=self._place(which))

    def _place(self, which: int | str) -> int:
        if isinstance(which, int | np.integer) and not isinstance(which, bool):
            if not 0 <= which < len(self):
                raise ValueError(f"There are {len(self)} equations, from 0 on, got {which}.")
            return int(which)
        texts = [fitted.equation.text for fitted in self.equations]
        for known in (list(self.names or ()), texts):
            if which in known:
                return known.index(str(which))
        try:
            key = Equation(str(which), self.data.names).key
            return [fitted.equation.key for fitted in self.equations].index(key)
        except ValueError:  # not an equation, or not one of these
            raise ValueError(
                f"There is no equation {which!r}. Available: {', '.join(texts)}."
            ) from None

    @cached_property
    def probabilities(self) -> Floats:
        """Posterior probabilities of the equations, of shape (n,); NaN without evidence.

        Together with `unweighed_share` they add up to one.
        """
        scores = [fitted.score for fitted in self.equations]
        keys = [fitted.equation.key for fitted in self.equations]
        return model_probabilities(scores, keys, self.coverage.log_rest)

    @property
    def unweighed_share(self) -> float:
        """Probability of all laws that a search has only screened, by the linear log q."""
        if self.coverage.log_rest == -np.inf:
            return 0.0
        return float(np.clip(1.0 - self.probabilities.sum(), 0.0, 1.0))

    @cached_property
    def families(self) -> list[Family]:
        """Laws that the data cannot tell apart, together; the most probable family first.

        See :mod:`pmsr.laws.families`. What failed belongs to none.
        """
        return find_families(self.equations, self.probabilities, self.problem)

    @property
    def family(self) -> Family | None:
        """The family of the best; None if nothing could be weighed."""
        return next((one for one in self.families if self.chosen in one.places), None)

    @property
    def family_table(self) -> pd.DataFrame:
        """The families in a table, numbered from 1, the most probable first.

        With the columns ``equation``, that of the face, which is the member with the highest score;
        ``probability``, the sum of all members'; ``laws``, how many they are; ``log_q`` and
        ``score`` of the face; ``others``, the equations of the other members.
        """
        return tabulate_families(self.families)

    @cached_property
    def table(self) -> pd.DataFrame:
        r"""The equations in a table.

        Best first, failures last, under their names or numbers, with the columns

        - ``equation``: as it was written;
        - ``log_q``, ``log_q_se``: log normalized marginal likelihood of Eq. (5) and its
          Monte-Carlo standard error; -inf after a failure, NaN if it was not computed;
        - ``log_prior``: log of the probability of the law before any data were seen, but for a
          constant; 0 in a comparison, unless it was asked for;
        - ``score``: ``log_q + log_prior``, by which equations are ranked;
        - ``difference``: ``score`` minus that of the best, in nats;
        - ``probability``: posterior probability of the equation, Eq. (4), among all that a search
          has screened. Spellings of the same equation share its probability;
        - ``family``, ``family_probability``: number of its family in `family_table`, 0 if it has
          none, and the probability of all laws in it;
        - ``bayes_factor``: fractional Bayes factor of the best against this one, how many times
          better the data, without the prior, support the best;
        - ``parameters``: how many;
        - ``complexity``: number of nodes of the equation's graph;
        - ``rmse``: root mean squared error of the best fit;
        - ``prior_sensitivity``: by how many nats ``log_q`` would change if the bounds of the
          prior were halved. Differences that are smaller are not evidence;
        - ``failure``: None, or why there is no evidence;
        - ``latex``: the equation in LaTeX.

        ``attrs`` hold ``gamma``, ``sigma_bounds`` and ``unweighed_share``.
        """
        table = make_table(
            [fitted.equation for fitted in self.equations],
            [fitted.evidence for fitted in self.equations],
            [fitted.log_prior for fitted in self.equations],
            self.coverage.log_rest,
        )
        table.attrs["unweighed_share"] = self.unweighed_share
        numbers, sums = np.zeros(len(self), dtype=int), np.zeros(len(self))
        for number, family in enumerate(self.families, start=1):
            numbers[[*family.places]] = number
            sums[[*family.places]] = family.probability
        after = list(table.columns).index("probability") + 1
        table.insert(after, "family", numbers)
        table.insert(after + 1, "family_probability", sums)
        if self.names is not None:
            table.index = pd.Index(list(self.names), name="name")
        return table

    @property
    def pareto_front(self) -> pd.DataFrame:
        """The rows of the table that no other equation beats in both score and complexity.

        After a conventional search the score is ``rmse``. Simplest first.
        """
        score = rank_by(self.equations, self.search)
        return self.table.iloc[pareto_front(score, self.table["complexity"].to_list())]

    @property
    def search_notes(self) -> list[str]:
        """What a search knows about itself, in words: how much it has seen, and what it has not."""
        if self.search is None:
            return []
        notes = describe_coverage(self.coverage, self.unweighed_share)
        untried = untried_operators(self.search.operators)
        if untried:
            notes.append(f"Usual operators that were not tried: {' '.join(untried)}.")
        return notes

    @property
    def left_out(self) -> tuple[str, ...]:
        """Columns that no law could depend on: there was no time to bring them back."""
        return () if self.coverage.brought_back else self.coverage.left_out

    @cached_property
    def inclusion(self) -> pd.DataFrame:
        """The probability that each variable and operator is part of the law.

        Under their names, with the columns ``kind`` (variable or operator) and ``probability``,
        among the laws that were weighed. A difference counts as ``+``.
        """
        return tabulate_inclusion(self.equations, self.probabilities, self.data.names)

    def credible_set(self, level: float = 0.95) -> pd.DataFrame:
        """Return the smallest set of laws that holds so much of the probability.

        Parameters
        ----------
        level
            How much.

        Returns
        -------
        DataFrame
            Rows of `table`, the most probable first; its attribute ``probability`` is what they
            hold. If a search has left more than the rest unweighed, that is less than the level,
            and all laws are in the set.
        """
        level = check_level(level)
        shares = np.nan_to_num(self.probabilities)
        order = np.argsort(-shares, kind="stable")
        held = np.cumsum(shares[order])
        # Sums of so many shares are known to rounding errors only.
        enough = np.flatnonzero(held >= level - 1e-9)
        n = int(enough[0]) + 1 if len(enough) else int(np.count_nonzero(shares))
        rows = self.table.iloc[order[:n]].copy()
        rows.attrs = {"level": level, "probability": float(shares[order[:n]].sum())}
        return rows

    def robustness(self, n_reweighed: int = N_REWEIGHED) -> pd.DataFrame:
        """Return how the winner, and the probability of the best, change under other priors.

        Parameters
        ----------
        n_reweighed
            How many of the leading laws are weighed again with the other prior of the parameters,
            flat or invariant, which takes its time; 0 for none.

        Returns
        -------
        DataFrame
            One row for each prior: as reported, laws equally probable, costs of laws halved and
            doubled, parameters flat (of the leading laws only). The columns: ``winner`` and its
            ``probability``; ``of_best`` and ``of_family``, the probabilities of what was reported
            as the best and of its family; ``same_family``, whether the winner is in it. All among
            the laws that were weighed. The attribute ``verdict`` is "robust" if every winner is, or
            "depends on the prior".
        """
        return tabulate_robustness(self.equations, self.families, self.chosen, n_reweighed)

    def suggest(self, n: int = 3, bounds: Bounds | None = None) -> pd.DataFrame:
        """Return where to measure next: inputs at which the leading families disagree most.

        Parameters
        ----------
        n
            How many places, which are distinct; fewer if there is no room for them.
        bounds
            Between which values to look, by the names of variables: ``{"H": (0.0, 2000.0)}``. By
            default within the range of the data.

        Returns
        -------
        DataFrame
            One row for each place, the most telling first: the variables; ``information``, the nats
            that a measurement there is expected to tell about which family is right, after those at
            the places before; ``disagreement``, the standard deviation between the families'
            predictions, and ``scatter``, that of a measurement if the first family is right
            (noise and posterior), in the unit of the target. Variables that matter to no leading
            law have their median. If one family has all of the probability, places are where its
            own curve is least certain, and ``information`` is about that curve, for each by itself.

        Raises
        ------
        ValueError
            If there are no probabilities, or the bounds are none.
        """
        if self.problem.parts:
            raise ValueError(
                "Where to measure next is not known for several groups: each has its own curves. "
                "Ask the result of a fit to one of them."
            )
        return suggest_points(self.families, self.data, n, bounds)

    def estimates(self, level: float = 0.95) -> pd.DataFrame:
        """Return the parameters of all equations with their uncertainty.

        Returns
        -------
        DataFrame
            As :meth:`FittedEquation.estimates`, under the equation's name or number and the
            parameter. Equations without a posterior are left out.
        """
        tables = {}
        for name, fitted in zip(self.table.index, self.equations, strict=True):
            if fitted.evidence.failure is None:
                tables[name] = fitted.estimates(level)
        if not tables:
            raise ValueError("No equation could be weighed. The column failure says why.")
        by_group = ["group"] if self.problem.parts else []
        return pd.concat(tables, names=["equation", *by_group, "parameter"])

    @property
    def warnings(self) -> list[str]:
        """Reasons to doubt the result, in words; empty if there are none."""
        known: list[str] | None = self.__dict__.get("_doubts")
        if known is None:
            known = self._find_doubts()
            # Without a posterior one of them may be that there was no time for it.
            if self.best.is_sampled:
                self.__dict__["_doubts"] = known
        return list(known)

    def _find_doubts(self) -> list[str]:
        text, own = self.best.equation.text, self.family
        others = [family for family in self.families if family is not own]
        doubts = doubt_settled(self.coverage.is_settled)
        doubts += doubt_chance(text, self._lead(), self._n_tried)
        undecided = []
        if own is not None:
            rivals = {one.face.equation.text: (one.probability, len(one)) for one in others}
            undecided = doubt_winner(text, (own.probability, len(own)), rivals)
            of_face = self.probabilities[own.places[0]]
            undecided += doubt_face(
                text, self.probabilities[self.chosen], own.face.equation.text, of_face
            )
            undecided += doubt_unweighed(self.unweighed_share, own.probability)
        sensitivity = self.best.evidence.prior_sensitivity
        doubts += undecided or doubt_prior(text, sensitivity, self._leads(others))
        used, constant = self.best.used, self.data.constant
        if self.search is None:
            # In a comparison the user says what an equation depends on.
            constant = {name: value for name, value in constant.items() if name in used}
        return doubts + doubt_columns(constant, used) + self.best.warnings

    def _lead(self) -> float:
        """Nats by which the best is ahead of every constant; NaN if it is one, or not weighed."""
        best = self.best
        if not np.isfinite(best.evidence.log_q) or not best.used:
            return float("nan")
        # c0 need not be among the equations: its log q is known in closed form.
        constants = [self.problem.constant_log_q + self._constant_log_prior()]
        constants += [one.score for one in self.equations if not one.used]
        return best.score - float(np.nanmax(constants))

    def _constant_log_prior(self) -> float:
        """Log prior of a constant, which need not be among the equations."""
        if self.constant_log_prior is not None:
            return self.constant_log_prior
        constant = constant_equation(self.data.names)
        return find_log_prior(constant, self.data, self.law_prior, units=self.units)

    @property
    def _n_tried(self) -> int:
        """How many equations the best was chosen from, as far as its score does not know that.

        A prior over descriptions charges for the number of laws: of each size they share what that
        size has.
        """
        return self.n_candidates if self.law_prior == "uniform" else 1

    def _leads(self, others: Sequence[Family]) -> dict[str, float]:
        """Nats by which the best is ahead of each other family, and of a constant."""
        leads = {one.face.equation.text: self.best.score - one.face.score for one in others}
        [constant] = parameter_names(1, self.data.names)
        return {constant: self._lead()} | leads

    def predict(
        self, X: Any, return_std: bool = False, average: bool = False, *, groups: Any = None
    ) -> Any:
        """Predict new observations, with the best equation or with all.

        Parameters
        ----------
        X
            Values of the variables: a table with their names as columns, or an array with their
            columns in order.
        return_std
            Whether to return the standard deviation too.
        average
            Whether to average over all equations, weighted by their probabilities. Those with a
            probability below one in a million are left out.
        groups
            The group of each row, or one for all, if the equations were fitted to several.

        Returns
        -------
        ndarray, or tuple of two
            The mean, of shape (n,), and the standard deviation of a new observation.
        """
        mean, std = self._predict(X, None, average, groups)
        return (mean, std) if return_std else mean

    def predict_interval(
        self,
        X: Any,
        level: float = 0.95,
        kind: Kind = "prediction",
        average: bool = False,
        *,
        groups: Any = None,
    ) -> Floats:
        """Return where new observations, or the curve itself, lie.

        Parameters
        ----------
        X, average, groups
            As in `predict`. The interval of an average is that of the mixture of posteriors.
        level
            Probability of the intervals, which leave out the same probability on either side.
        kind
            ``"prediction"`` for a new observation (parameters and noise), ``"credible"`` for the
            curve (parameters only).

        Returns
        -------
        ndarray
            Lower and upper ends, of shape (n, 2).
        """
        rows = interval_rows(kind)
        found = self._predict(X, check_level(level), average, groups)
        return np.ascontiguousarray(found[rows].T)

    def predict_table(
        self, X: Any, level: float = 0.95, average: bool = False, *, groups: Any = None
    ) -> pd.DataFrame:
        """Return everything about new observations at once.

        Returns
        -------
        DataFrame
            The columns of :func:`pmsr.predict`; an average has no ``map``.
        """
        points = self._points(X)
        table = self.tabulate_at(points, check_level(level), average, groups=groups)
        if isinstance(X, pd.DataFrame | pd.Series):
            table.index = X.index
        return table

    def tabulate_at(
        self, points: Floats, level: float, average: bool = False, *, groups: Any = None
    ) -> pd.DataFrame:
        """Return `predict_table` at points that are checked: rows of the data, a grid.

        Parameters
        ----------
        points
            Values of all variables, of shape (n, d).
        level, average, groups
            As in `predict_table`.
        """
        names = ["mean", "std", "credible_low", "credible_high"]
        names += ["prediction_low", "prediction_high"]
        table = pd.DataFrame(self._predict_at(points, level, average, groups).T, columns=names)
        if not average:
            table.insert(2, "map", self._curve(points, groups))
        table.attrs["level"] = level
        return table

    # Any: Matplotlib's Axes, which this layer does not import.
    def plot_fit(
        self, which: int | str | None = None, *, level: float = 0.95, ax: Any = None
    ) -> Any:
        """Draw an equation with its data and intervals.

        Parameters
        ----------
        which
            Its place in the table, counted from 0, or its name; by default the best.
        level
            Probability of the intervals.
        ax
            Where to draw; by default a new figure.

        Returns
        -------
        Axes
            As :meth:`FittedEquation.plot`.

        Examples
        --------
        >>> from pmsr.data import load_galileo
        >>> from pmsr.result.comparison import weigh_equations
        >>> result = weigh_equations(["c0*H", "c0*sqrt(H)"], *load_galileo("shelf"), random_seed=1)
        >>> ax = result.plot_fit()
        >>> ax.get_xlabel(), ax.get_ylabel()
        ('H', 'D')
        >>> ax.figure.clear()
        """
        return self._which(which).plot(level=level, ax=ax)

    def plot_residuals(
        self,
        which: int | str | None = None,
        *,
        against: Literal["prediction", "order"] = "prediction",
        ax: Any = None,
    ) -> Any:
        """Draw what an equation leaves unexplained, see :meth:`FittedEquation.plot_residuals`.

        Parameters
        ----------
        which
            Its place in the table, counted from 0, or its name; by default the best.
        against, ax
            As there.
        """
        return self._which(which).plot_residuals(against=against, ax=ax)

    def plot_front(
        self,
        *,
        measure: Literal["score", "log_q", "rmse"] | None = None,
        n_labels: int = 5,
        ax: Any = None,
    ) -> Any:
        """Draw the equations against their complexity, see :func:`pmsr.plots.plot_front`.

        Parameters
        ----------
        measure
            What to draw; by default the score, or the error where there is no evidence.
        n_labels, ax
            As there.

        Returns
        -------
        Axes
            With the best pointed out.
        """
        from pmsr.plots import plot_front

        if measure is None:
            measure = "score" if engine_of(self.search).has_evidence else "rmse"
        winner = self.table.index[self.chosen]
        return plot_front(self.table, measure=measure, winner=winner, n_labels=n_labels, ax=ax)

    def plot_families(self, *, n_bars: int = 8, ax: Any = None) -> Any:
        """Draw the probabilities of the families, see :func:`pmsr.plots.plot_families`.

        Parameters
        ----------
        n_bars
            How many have a bar of their own.
        ax
            Where to draw; by default a new figure.

        Returns
        -------
        Axes
        """
        from pmsr.plots import plot_families

        return plot_families(self.family_table, n_bars=n_bars, ax=ax)

    def _which(self, which: int | str | None) -> FittedEquation:
        return self.best if which is None else self.equations[self._place(which)]

    def _curve(self, points: Floats, groups: Any) -> Floats:
        """Return the best fit of the best equation at points."""
        best, values = self.best, np.empty(len(points))
        for label, rows in self._by_group(len(points), groups).items():
            one = best if label is None else best.parts[label]
            values[rows] = one.to_callable()(*self._columns(best, points[rows]).T)
        return values

    def _by_group(self, n_rows: int, groups: Any) -> dict[str | None, NDArray[np.int64]]:
        """Return the rows of each group; all under None where there are no groups."""
        if not self.problem.parts:
            refuse_labels(groups)
            return {None: np.arange(n_rows)}
        labels = np.array(read_labels(groups, n_rows, self.problem.labels), dtype=object)
        return {label: np.flatnonzero(labels == label) for label in dict.fromkeys(labels.tolist())}

    def _predict(self, X: Any, level: float | None, average: bool, groups: Any) -> Floats:
        return self._predict_at(self._points(X), level, average, groups)

    def _points(self, X: Any) -> Floats:
        """Return values of all variables; those of known constants need not be given."""
        return check_X(X, self.data.names, others=True, constants=self.data.constants)

    def _predict_at(
        self, points: Floats, level: float | None, average: bool, groups: Any
    ) -> Floats:
        chosen = self._averaged() if average else {self.chosen: 1.0}
        by_group = self._by_group(len(points), groups)
        found, undefined = np.empty((2 if level is None else 6, len(points))), np.zeros(len(points))
        used: set[str] = set()
        for label, rows in by_group.items():
            components = []
            for place, share in chosen.items():
                one = self.equations[place]
                used |= set(one.used)
                part = one if label is None else one.parts[label]
                components.append(part.component(self._columns(one, points[rows]), share))
            found[:, rows], undefined[rows] = predict_mixture(components, level, self.problem.noise)
        for label, rows in by_group.items():
            data = self.data
            if label is not None:
                data = self.problem.parts[self.problem.labels.index(label)].data
            warn(doubt_range(data, points[rows], sorted(used)))
        if undefined.any():
            warn([describe_undefined(undefined)])
        return found

    def _columns(self, fitted: FittedEquation, points: Floats) -> Floats:
        places = [self.data.names.index(name) for name in fitted.equation.variables]
        return np.ascontiguousarray(points[:, places])

    def _averaged(self) -> dict[int, float]:
        """Return the equations that count, with their probabilities."""
        shares = {
            place: float(share)
            for place, share in enumerate(self.probabilities)
            if share >= NEGLIGIBLE
        }
        if not shares:
            raise ValueError(
                "There are no probabilities to average with: no equation has been weighed. "
                'Use average=False, or search with fitness="evidence".'
            )
        return shares

    def save(
        self,
        path: str | Path,
        extra: Mapping[str, Any] | None = None,
        *,
        others: bool = False,
    ) -> None:
        """Save the result, with the posteriors of the equations that count, to a folder.

        Parameters
        ----------
        path
            The folder, made if need be. An older result in it is replaced.
        extra
            What else the header is to hold, for JSON.
        others
            Whether the folder may hold other files at first.

        Notes
        -----
        Equations with a probability of less than one in a thousand, the best and the first
        excepted, that have no posterior yet are sampled when it is first asked for after loading.

        See Also
        --------
        load_result
        """
        header, arrays = _encode(self)
        write_folder(path, {**header, **(extra or {})}, arrays, others=others)

    def __repr__(self) -> str:
        return f"Result({len(self)} equations, best: {str(self.best.equation)!r})"

    def _repr_html_(self) -> str:
        rows = []
        shown = self.table.head(N_SHOWN).itertuples()
        for row, fitted, probability in zip(
            shown, self.equations, self.probabilities, strict=False
        ):
            numbers = (f"{row.log_q:.2f}", f"{row.score:.2f}", percent(probability))
            cells = [
                escape(str(row.Index)),
                to_mathml(fitted.equation),
                *numbers,
                str(row.complexity),
                f"{row.rmse:.4g}",
            ]
            rows.append("<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>")
        chance = "probability" if self.coverage.is_settled else "probability (not settled)"
        titles = ("", "equation", "log q", "score", chance, "complexity", "RMSE")
        head = "<tr>" + "".join(f"<th>{title}</th>" for title in titles) + "</tr>"
        return f"<div>{self.best._repr_html_()}<table>{head}{''.join(rows)}</table></div>"

    def latex(self, *, fitted: bool = False) -> str:
        """Return LaTeX of the best equation, without dollar signs: target = equation.

        Parameters
        ----------
        fitted
            Whether rounded numbers, those of the best fit, take the place of the parameters.
        """
        return self.best.latex(fitted=fitted)

    def _repr_latex_(self) -> str:
        return self.best._repr_latex_()


def _encode(result: Result) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return the header and the arrays of a saved result."""
    arrays: dict[str, NDArray[Any]] = {"X": result.data.X, "y": result.data.y}
    if result.data.y_err is not None:
        arrays["y_err"] = result.data.y_err
    if result.data.X_err is not None:
        arrays["X_err"] = result.data.X_err
    if result.data.counts is not None:
        arrays["counts"] = result.data.counts
    equations = []
    for place, fitted in enumerate(result.equations):
        posterior, parts = None, list(fitted.parts.values())
        has_draws = any(
            one.is_sampled or len(one.weighed.chains) == CHAINS for one in parts or [fitted]
        )
        wanted = has_draws or place in (0, result.chosen) or result.probabilities[place] > STORED
        if wanted and not parts:
            # One that cannot be sampled has no posterior after loading, either.
            with suppress(ValueError):
                posterior, more = record_draws(fitted.draws, f"{place}.")
                arrays |= more
        recorded = []
        for k, part in enumerate(parts):
            own = None
            if wanted:
                with suppress(ValueError):
                    own, more = record_draws(part.draws, f"{place}.{k}.")
                    arrays |= more
            recorded.append(
                {
                    "evidence": record_evidence(part.evidence),
                    "fit": record_fit(part.weighed.fit),
                    "posterior": own,
                }
            )
        equation = fitted.equation
        equations.append(
            {
                "text": equation.text,
                "variables": equation.variables,
                "parameters": equation.parameters,
                "evidence": record_evidence(fitted.evidence),
                "fit": record_fit(fitted.weighed.fit),
                "posterior": posterior,
                "log_prior": fitted.log_prior,
                **({"parts": recorded} if recorded else {}),
            }
        )
    about: dict[str, Any] = {"names": result.data.names, "target": result.data.target}
    if result.data.constants:
        about["constants"] = {
            name: None if one.prior is None else record_known(one.prior)
            for name, one in result.data.constants.items()
        }
    if result.data.groups is not None:
        about["groups"] = result.data.groups
    header = {
        "data": about,
        "priors": {
            name: record_known(prior)
            for name, prior in result.problem.priors.items()
            if name not in result.data.constants
        },
        "settings": asdict(result.settings),
        "search": None if result.search is None else record_search(result.search),
        "random_seed": result.random_seed,
        "names": result.names,
        "chosen": result.chosen,
        "n_candidates": result.n_candidates,
        "n_failed": result.n_failed,
        "stopped": result.stopped,
        "versions": dict(result.versions or {}),
        "equations": equations,
        "history": result.history,
        "law_prior": record_prior(result.law_prior),
        "constant_log_prior": result._constant_log_prior(),
        "coverage": asdict(result.coverage),
        "noise_table": record_noise_table(result.noise_table),
    }
    if result.search is None and result.units is not None:
        known = result.units.by_name if result.units.are_known else None
        header |= {"units": known, "interval": result.units.interval_names}
    return header, arrays


def library_versions() -> dict[str, str]:
    """Return the versions of pmsr, of Python and of the libraries that the numbers depend on.

    Examples
    --------
    >>> list(library_versions())[:3]
    ['pmsr', 'Python', 'pymc']
    """
    found = {"pmsr": version("pmsr"), "Python": platform.python_version()}
    return found | {name: version(name) for name in LIBRARIES}
