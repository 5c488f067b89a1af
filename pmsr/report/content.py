"""What a report shows, gathered from a result."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pmsr.data import Data
from pmsr.equation.expression import Equation
from pmsr.evidence.evidence import CHAINS
from pmsr.evidence.noise import GAUSSIAN
from pmsr.laws.prior import LawPrior, LawPriorOption
from pmsr.limits import OutOfTime, time_limit
from pmsr.report.explorer import ShownLaw, ShownPart
from pmsr.result.coverage import untried_operators
from pmsr.result.curve import grid_along
from pmsr.result.doubts import quietly
from pmsr.result.fitted import FittedEquation
from pmsr.result.grouped import GroupedEquation
from pmsr.result.result import STORED, Result, library_versions
from pmsr.result.suggestion import forecast, leading_families

Floats = NDArray[np.float64]

N_SUGGESTED = 3  # measurements
MAX_GROUPS = 6  # of which predictions stand on the first screen
MAX_LAWS = 60  # that the page can draw
# Weighed, but not sampled, as the result's warnings say; or no time for so many rows.
_NOT_SAMPLED = (ValueError, OutOfTime)


@dataclass(frozen=True, kw_only=True, eq=False)
class ReportContent:
    """What a report shows; nothing in it is computed anew but the diagnostics.

    Parameters
    ----------
    data
        The measurements.
    equations
        The equations of the table, under the names of its index.
    table
        Equations and their evidence, best first, with the columns of :func:`pmsr.compare`. The
        ``log_q`` of a conventional search may be NaN: the report then speaks of errors.
    winner
        Name of the equation that is put forward; None if none could be weighed.
    families
        Names of laws that the data cannot tell apart, together, the face first; the most probable
        family first. What is in none is one of its own.
    posterior
        ArviZ data of the winner, from :func:`pmsr.sample_posterior`; None leaves the parameters
        and their pictures out.
    posteriors, curves
        With several groups: the posterior of each, by label, and the curves that
        :func:`pmsr.plots.predictions.draw_groups` draws, for a law of one variable.
    prediction
        What :func:`pmsr.predict` returned for the rows of the data, or of it the column ``map``
        alone; None leaves the residuals out.
    residuals
        What the winner leaves unexplained, in units of its noise; None where that is of one size:
        residuals are then observations less predictions.
    variable, grid, grid_prediction
        For a law of one variable: its name, values of it, shape (n,), and what
        :func:`pmsr.predict` returned for them, or of it ``map`` alone. Otherwise, or if None,
        predictions are drawn against observations.
    level
        Probability of all intervals, that of the predictions.
    history
        One row a generation, see :func:`pmsr.plots.plot_history`; None for a mere comparison.
    search_notes
        What the search knows about itself, in sentences.
    is_settled
        Whether the search had ceased to find better laws; if not, no probability stands alone.
    coincidences
        What each equation claims that is true in one unit only, in phrases.
    inclusion, robustness, n_credible
        :attr:`pmsr.result.result.Result.inclusion`, what its ``robustness`` returned, and how many
        laws hold the level of the probability; None leaves them out.
    suggestions, rivals
        What ``Result.suggest`` returned, and predictions as :func:`pmsr.plots.plot_suggestion`
        takes them; None leaves them out.
    laws
        What the page can draw and predict with, by the names of the table; empty for a page that
        only reads.
    known
        Known constants and other priors of parameters by name, in words.
    noise, noise_words
        Name of the noise model, and what it is in words.
    noise_table
        How the noise was chosen: a row for each model, with ``noise``, ``equation``, ``log_q`` and
        ``score`` of its best law, best first; None or empty if it was not.
    outlook
        What the winner predicts at a few inputs: their columns, ``mean``, ``prediction_low`` and
        ``prediction_high``; None leaves it out.
    folder
        Where the run is, for commands that go on with it; empty if it is in no folder.
    untried
        Usual operators that the search did not have.
    seconds
        How long the search took; None if unknown.
    units, parameter_units
        Units of the columns and of the target by name, and of the winner's parameters and sigma;
        empty if none is known.
    n_candidates, n_failed
        Distinct equations that the search has met, and how many could not be weighed; None if
        unknown.
    settings
        Options by name, in the order in which they are to be read.
    warnings
        Reasons to doubt the result, such as :attr:`pmsr.result.result.Result.warnings`. The report
        adds those that concern the sampling and the share of failures.
    title, source
        Heading, and where the data come from, such as the name of a file.
    created, command
        When, and how to do it again: a command line, or a call. Both are shown as they are.
    versions
        Names and versions of the software that made the result.
    """

    data: Data
    equations: Mapping[str, Equation]
    table: pd.DataFrame
    winner: str | None
    families: Sequence[Sequence[str]] = ()
    # Any: the type of a posterior depends on ArviZ.
    posterior: Any = None
    posteriors: Mapping[str, Any] = field(default_factory=dict)
    curves: Sequence[Any] = ()
    prediction: pd.DataFrame | None = None
    residuals: Floats | None = None
    variable: str | None = None
    grid: Floats | None = None
    grid_prediction: pd.DataFrame | None = None
    level: float = 0.95
    history: pd.DataFrame | None = None
    search_notes: Sequence[str] = ()
    is_settled: bool = True
    coincidences: Mapping[str, Sequence[str]] = field(default_factory=dict)
    inclusion: pd.DataFrame | None = None
    robustness: pd.DataFrame | None = None
    n_credible: int | None = None
    suggestions: pd.DataFrame | None = None
    rivals: pd.DataFrame | None = None
    laws: Mapping[str, ShownLaw] = field(default_factory=dict)
    known: Mapping[str, str] = field(default_factory=dict)
    noise: str = GAUSSIAN.name
    noise_words: str = ""
    noise_table: pd.DataFrame | None = None
    outlook: pd.DataFrame | None = None
    folder: str = ""
    untried: Sequence[str] = ()
    seconds: float | None = None
    units: Mapping[str, str] = field(default_factory=dict)
    parameter_units: Mapping[str, str] = field(default_factory=dict)
    n_candidates: int | None = None
    n_failed: int | None = None
    settings: Mapping[str, object] = field(default_factory=dict)
    warnings: Sequence[str] = ()
    title: str = ""
    source: str = ""
    created: str = ""
    command: str = ""
    versions: Mapping[str, str] = field(default_factory=library_versions)

    @property
    def labels(self) -> list[str]:
        """Labels of the groups, in the order of their rows; none without groups."""
        return list(dict.fromkeys(self.data.groups or ()))

    def __post_init__(self) -> None:
        missing = [str(name) for name in self.table.index if name not in self.equations]
        if missing:
            raise ValueError(
                f"equations must hold every equation of the table, got none for {missing[0]!r}. "
                f"Available: {', '.join(self.equations) or 'none'}."
            )
        if self.winner is not None and self.winner not in self.table.index:
            raise ValueError(f"winner must be a name of the table, got {self.winner!r}.")


def gather_content(
    result: Result,
    *,
    level: float = 0.95,
    title: str = "",
    source: str = "",
    created: str = "",
    command: str = "",
    folder: str = "",
    warnings: Sequence[str] = (),
) -> ReportContent:
    """Gather what a report shows of a result.

    Parameters
    ----------
    result
        What a search or a comparison has found.
    level
        Probability of all intervals.
    title, source, created, command, folder
        As in `ReportContent`.
    warnings
        Sentences for the reader, besides the result's own warnings.

    Returns
    -------
    ReportContent
        Posterior and predictions are those of ``result.best``.

    Examples
    --------
    >>> from pmsr.data import load_galileo
    >>> from pmsr.result.comparison import weigh_equations
    >>> result = weigh_equations(["c0*sqrt(H)"], *load_galileo("shelf"), random_seed=1)
    >>> content = gather_content(result)
    >>> content.winner, len(content.prediction), content.history
    ('c0*sqrt(H)', 5, None)
    """
    names = result.names or tuple(str(one.equation) for one in result.equations)
    table = result.table.copy()
    table.index = pd.Index(names, name="name")
    weighed = result.best.evidence.failure is None
    data = result.data
    variable = next(iter(result.best.parts.values()), result.best).line
    posterior = prediction = grid = grid_prediction = None
    outlook: pd.DataFrame | None = None
    curves: Sequence[Any] = ()
    posteriors: dict[str, Any] = {}
    best = result.best
    if weighed:
        with quietly():  # a drawing shows where the data end
            with suppress(*_NOT_SAMPLED):
                posterior = best.compact_posterior
                posteriors = {label: one.compact_posterior for label, one in best.parts.items()}
            is_fitted = best.is_sampled or np.isfinite(best.evidence.theta).all()
            if variable is not None and not best.parts and is_fitted:
                points = best.line_points(variable)
                grid = points[:, best.data.names.index(variable)]
                grid_prediction = pd.DataFrame({"map": best.to_callable()(*points.T)})
            if posterior is not None:
                with time_limit(None):  # no longer than it takes to draw them
                    outlook = _look_ahead(best, level)
                    if isinstance(best, GroupedEquation):
                        curves = best.curves(level) or ()
                    elif grid is not None:
                        grid_prediction = best.tabulate_at(points, level)
            prediction = _predict_rows(result, level)
    is_weighed = weighed and bool(np.nansum(result.probabilities) > 0.0)
    suggestions, rivals = _suggest(result) if is_weighed else (None, None)
    return ReportContent(
        data=data,
        equations={name: one.equation for name, one in zip(names, result.equations, strict=True)},
        table=table,
        winner=names[result.chosen] if weighed else None,
        families=[[names[place] for place in family.places] for family in result.families],
        posterior=posterior,
        posteriors=posteriors,
        curves=curves,
        prediction=prediction,
        residuals=best.normal_residuals if weighed and not best.has_plain_noise else None,
        variable=variable,
        grid=grid,
        grid_prediction=grid_prediction,
        level=level,
        history=pd.DataFrame(list(result.history)) if result.history else None,
        search_notes=result.search_notes,
        is_settled=result.coverage.is_settled,
        coincidences={
            name: one.coincidences
            for name, one in zip(names, result.equations, strict=True)
            if one.evidence.failure is None
        },
        inclusion=result.inclusion if is_weighed else None,
        # Weighing again takes its time: not here.
        robustness=result.robustness(n_reweighed=0) if is_weighed else None,
        n_credible=len(result.credible_set(level)) if is_weighed else None,
        suggestions=suggestions,
        rivals=rivals,
        laws=_show_laws(result, names, level),
        known=_describe_known(result),
        noise=result.problem.noise.name,
        noise_words=_describe_noise(result),
        noise_table=result.noise_table,
        outlook=outlook,
        folder=folder,
        untried=() if result.search is None else untried_operators(result.search.operators),
        seconds=None if np.isnan(result.coverage.elapsed) else result.coverage.elapsed,
        units=_known_units(result),
        parameter_units=result.best.parameter_units,
        n_candidates=None if result.search is None else result.n_candidates,
        n_failed=result.n_failed,
        settings=_describe_settings(result),
        warnings=[*warnings, *(result.warnings if weighed else [])],
        title=title,
        source=source,
        created=created,
        command=command,
        versions=result.versions or {},
    )


def _predict_rows(result: Result, level: float) -> pd.DataFrame | None:
    """Return predictions for the rows of the data; the best fit alone where there is no time."""
    with suppress(*_NOT_SAMPLED):
        return result.tabulate_at(result.data.X, level, groups=result.data.groups)
    with suppress(*_NOT_SAMPLED):
        return pd.DataFrame({"map": result.best.data.y - result.best.residuals})
    return None


def _show_laws(result: Result, names: Sequence[str], level: float) -> dict[str, ShownLaw]:
    """Return the laws that the page can draw; those that count, with their posteriors."""
    shown: dict[str, ShownLaw] = {}
    for place, (name, one) in enumerate(zip(names, result.equations, strict=True)):
        if one.evidence.failure is not None or (len(shown) >= MAX_LAWS and place != result.chosen):
            continue
        counts = place == result.chosen or result.probabilities[place] > STORED
        parts = [
            part
            for own in one.parts.values() or [one]
            if (part := _show_part(own, counts=counts)) is not None
        ]
        if len(parts) != max(1, len(one.parts)):  # not fitted
            continue
        estimates = None
        if all(part.draws is not None for part in parts):
            estimates = one.estimates(level)
        shown[name] = ShownLaw(
            program=one.equation.program,
            variables=one.equation.variables,
            parts=parts,
            residuals=one.residuals if one.has_plain_noise else one.normal_residuals,
            estimates=estimates,
        )
    return shown


def _show_part(one: FittedEquation, *, counts: bool) -> ShownPart | None:
    """Return the best fit and the draws; without these, where they cost and do not count."""
    with quietly(), suppress(ValueError, OutOfTime):  # weighed, but not sampled
        if counts or one.is_sampled or len(one.weighed.chains) == CHAINS:
            component = one.component(one.data.X[:1])
            return ShownPart(one.theta, component.theta, component.sigma)
    with suppress(ValueError, OutOfTime):
        if np.isfinite(one.theta).all():
            return ShownPart(one.theta)
    return None


def _look_ahead(best: FittedEquation, level: float) -> pd.DataFrame:
    """Return what the best predicts at the least, a middle and the largest of its inputs."""
    if best.parts:
        tables = []
        for label, one in list(best.parts.items())[:MAX_GROUPS]:
            table = _predict_some(one, level, [len(one.data.y) // 2])
            table.insert(0, "group", label, allow_duplicates=True)
            tables.append(table)
        return pd.concat(tables, ignore_index=True)
    return _predict_some(best, level, [0, len(best.data.y) // 2, -1] if best.used else [0])


def _predict_some(best: FittedEquation, level: float, places: Sequence[int]) -> pd.DataFrame:
    """Return what a law predicts at some places of the order of its variable, or of the target."""
    data = best.data
    if best.line is not None:
        column = data.names.index(best.line)
        order = np.argsort(data.X[:, column], kind="stable")
    else:
        order = np.argsort(data.y, kind="stable")
    rows = data.X[order[[*places]]]
    table = best.tabulate_at(rows, level)[["mean", "prediction_low", "prediction_high"]]
    for place, name in enumerate(best.used):
        table.insert(place, name, rows[:, data.names.index(name)], allow_duplicates=True)
    return table


def _describe_known(result: Result) -> dict[str, str]:
    """Return known constants, and priors of parameters, in words."""
    words = {name: f"{one.value:g}" for name, one in result.data.constants.items()}
    return words | {name: prior.words for name, prior in result.problem.priors.items()}


def _describe_noise(result: Result) -> str:
    """Return in words how measurements scatter around the laws."""
    words = result.problem.noise.words
    if not result.problem.parts or not result.problem.noise.has_sigma:
        return words
    return words + (", the same in all groups" if result.problem.shared_sigma else " in each group")


def _suggest(result: Result) -> tuple[pd.DataFrame | None, pd.DataFrame | None]:
    """Return where to measure next, and what the leading families predict there, or around."""
    data = result.data
    try:
        places = result.suggest(N_SUGGESTED)
        families = leading_families(result.families)
        index = np.arange(1.0, len(places) + 1)
        measured = places[list(data.measured)].to_numpy(dtype=np.float64)
        if len(data.measured) == 1:
            column = data.X[:, data.names.index(data.measured[0])]
            index = grid_along(column, column.min(), column.max())
            measured = index[:, None]
        points = np.repeat(data.X[:1], len(measured), axis=0)  # known constants are in all rows
        points[:, [data.names.index(name) for name in data.measured]] = measured
        mean = forecast(families, points, data.names).mean
    except (ValueError, OutOfTime):  # not sampled, or no time to
        return None, None
    texts = [one.face.equation.text for one in families]
    return places, pd.DataFrame(mean.T, index=index, columns=texts)


def _describe_settings(result: Result) -> dict[str, object]:
    """Return the options in the words of a reader."""
    found: dict[str, object] = {}
    search = result.search
    if search is not None:
        limits = {
            "seconds": search.max_time,
            "largest complexity": search.max_complexity,
            "most parameters": search.max_parameters,
        }
        found |= {
            "operators": " ".join(search.operators),
            "population": search.population_size,
            "generations": f"{_generations(result)} of at most {search.generations}",
            **{name: f"{value:g}" for name, value in limits.items() if value is not None},
            "fitness": search.fitness,
            "prior over laws": _name_prior(result.law_prior),
            "columns of arbitrary zero": ", ".join(search.interval) or "none",
            "units": ", ".join(f"{n}: {unit}" for n, unit in _known_units(result).items())
            or "not known",
            "ended by": result.stopped,
        }
    gamma = result.best.evidence.gamma
    if np.isfinite(gamma):
        low, high = result.best.evidence.sigma_bounds
        found |= {
            "fraction γ": f"{gamma:.4g}",
            "prior of σ": f"{result.settings.sigma_prior}, {low:.3g} to {high:.3g}",
        }
    return found | {"seed": result.random_seed}


def _known_units(result: Result) -> Mapping[str, str]:
    return result.units.by_name if result.units is not None and result.units.are_known else {}


def _name_prior(law_prior: LawPriorOption) -> str:
    if isinstance(law_prior, str):
        return law_prior
    return str(law_prior) if isinstance(law_prior, LawPrior) else "a function"


def _generations(result: Result) -> int:
    return int(result.history[-1]["generation"]) if result.history else 0
