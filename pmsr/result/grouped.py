"""One law on several groups of data, with constants of its own for each."""

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any
from zlib import crc32

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pmsr.data import check_X
from pmsr.equation.expression import Equation
from pmsr.evidence.evidence import CHAINS, Evidence, Weighed, weigh
from pmsr.evidence.noise import Columns
from pmsr.evidence.posterior import Draws, draw_posterior, flatten_groups, join_groups
from pmsr.evidence.prediction import check_level
from pmsr.evidence.problem import Problem
from pmsr.inputs import read_labels
from pmsr.laws.units import Units
from pmsr.result.doubts import (
    doubt_beyond,
    doubt_evidence,
    doubt_interpolation,
    doubt_noise,
    doubt_number_of_points,
)
from pmsr.result.fitted import FittedEquation
from pmsr.settings import Settings

if TYPE_CHECKING:
    import xarray as xr
    from arviz import InferenceData

Floats = NDArray[np.float64]


def fitted_equation(
    equation: Equation,
    weighed: Weighed,
    problem: Problem,
    settings: Settings,
    random_seed: int,
    log_prior: float = 0.0,
    units: Units | None = None,
) -> FittedEquation:
    """Return an equation with its data, which may be of several groups."""
    kind = GroupedEquation if problem.parts else FittedEquation
    return kind(equation, weighed, problem, settings, random_seed, log_prior, units)


class SharingEquation(FittedEquation):
    """One group of several whose noise has one size: its draws are those of all together."""

    @cached_property
    def draws(self) -> Draws:
        """Draws from the posterior, as arrays; those of sigma are the same in all groups."""
        whole, place = self.__dict__["whole"]
        sample: Draws = whole.shared_draws[place]
        if sample.held or not np.isfinite(self.evidence.theta).all():
            return sample
        return replace(sample, theta_map=self.evidence.theta)


# X is Any as in `data`: what users hand over is recognised by what it can do.
class GroupedEquation(FittedEquation):
    """An equation and the data of several groups, each of which has constants of its own.

    What belongs to one group, such as its posterior or its PyMC model, is found in `parts`.

    Examples
    --------
    >>> from pmsr.result.comparison import weigh_equations
    >>> x, y = [1.0, 2.0, 3.0, 1.0, 2.0, 3.0], [1.1, 2.0, 2.9, 5.2, 9.9, 15.0]
    >>> groups = ["slow", "slow", "slow", "fast", "fast", "fast"]
    >>> line = weigh_equations(["c0*x0"], x, y, groups=groups, random_seed=1).best
    >>> list(line.parts), line.theta.round(1).ravel().tolist()
    (['fast', 'slow'], [5.0, 1.0])
    >>> line.predict([2.0, 2.0], groups=["slow", "fast"]).round(0).tolist()
    [2.0, 10.0]
    """

    @cached_property
    def parts(self) -> Mapping[str, FittedEquation]:
        """The equation as it is fitted to each group, by label: an ordinary fitted equation."""
        found = {}
        for place, label in enumerate(self.problem.labels):
            problem = self.problem.parts[place]
            seed = (self.random_seed + crc32(label.encode())) % 2**63
            kind = SharingEquation if self.problem.shared_sigma else FittedEquation
            one = kind(
                self.equation, self._weighed_part(place), problem, self.settings, seed,
                self.log_prior, self.units,
            )  # fmt: skip
            one.__dict__["whole"] = self, place
            found[label] = one
        return MappingProxyType(found)

    def _weighed_part(self, place: int) -> Weighed:
        if self.weighed.parts:
            return self.weighed.parts[place]
        # Another spelling, or one that was not kept: only its best fit is known.
        whole, problem = self.evidence, self.problem.parts[place]
        theta = whole.theta[place]
        rmse = whole.rmse
        if np.isfinite(theta).all():
            rmse = problem.rmse(self.equation.program, theta)
        evidence = Evidence(
            np.nan, 0.0, np.nan, np.nan, problem.gamma, problem.sigma_bounds, whole.n_parameters,
            min(whole.n_parameters, len(problem.data.y)), theta, rmse, 0.0, whole.failure,
        )  # fmt: skip
        return Weighed(evidence)

    @cached_property
    def shared_draws(self) -> tuple[Draws, ...]:
        """Draws of each group, all with the same sigma: it is shared."""
        equation, problem, settings = self.equation, self.problem, self.settings
        if not equation.parameters:
            return (draw_posterior(equation, problem, settings, self._seed()),) * len(self.parts)
        found = self.weighed.parts
        if not found or not all(len(one.chains) == CHAINS for one in found):
            again = weigh(equation.program, problem, settings, self._seed(), keep=True)
            if again.evidence.failure is not None:
                raise ValueError(
                    f"The equation {equation.text!r} has no posterior on these data: "
                    f"{again.evidence.failure}."
                )
            found = again.parts
        return tuple(
            draw_posterior(equation, part, settings, self._seed(), weighed=one)
            for part, one in zip(problem.parts, found, strict=True)
        )

    @property
    def draws(self) -> Draws:
        """Refuse: every group has draws of its own, in `parts`."""
        raise ValueError(
            f"{self.equation.text!r} has draws for each group: "
            f"parts[{self.problem.labels[0]!r}].draws."
        )

    @property
    def is_sampled(self) -> bool:
        """Whether the posterior of all groups is known already."""
        return all(one.is_sampled for one in self.parts.values())

    @cached_property
    def posterior(self) -> "InferenceData | xr.DataTree":
        """The posterior as ArviZ data, with the dimension ``group`` for parameters and sigma.

        Without the groups that have a number for each observation and draw; those of `parts` have
        them.
        """
        draws = [one.draws for one in self.parts.values()]
        return join_groups(self.equation, self.problem, draws)

    @property
    def compact_posterior(self) -> "InferenceData | xr.DataTree":
        """The same with a variable for each parameter of each group, such as ``c0[run 1]``."""
        draws = [one.draws for one in self.parts.values()]
        return flatten_groups(self.equation, self.problem, draws)

    @property
    def theta(self) -> Floats:
        """The best fit, of shape (groups, parameters)."""
        if np.isfinite(self.evidence.theta).all():
            return self.evidence.theta
        return np.array([one.theta for one in self.parts.values()])

    @property
    def residuals(self) -> Floats:
        """What the best fit leaves unexplained, of shape (N,); rows are sorted by group."""
        return np.concatenate([one.residuals for one in self.parts.values()])

    @property
    def normal_residuals(self) -> Floats:
        """The same in units of their noise: each group's own, unless it is shared."""
        found = []
        for one in self.parts.values():
            residuals = one.normal_residuals
            own = 1.0
            if one.problem.noise.has_one_size:
                own = float(np.sqrt(np.average(residuals**2, weights=one.problem.counts)))
            is_own = not self.problem.shared_sigma and own > 0.0
            found.append(residuals / own if is_own else residuals)
        return np.concatenate(found)

    @property
    def _at_best(self) -> tuple[Floats, Floats, Floats, Columns]:
        """The same of all groups, one after the other."""
        *arrays, columns = zip(*(one._at_best for one in self.parts.values()), strict=True)
        y, mu, counts = (np.concatenate(some, axis=-1) for some in arrays)
        names = columns[0]
        return (
            y,
            mu,
            counts,
            {name: np.concatenate([one[name] for one in columns], axis=-1) for name in names},
        )

    def estimates(self, level: float = 0.95) -> pd.DataFrame:
        """Return the parameters and the noise level of every group, with their uncertainty.

        Returns
        -------
        DataFrame
            As :meth:`FittedEquation.estimates`, under the group's label and the parameter. A sigma
            that is shared stands in every group.
        """
        tables = {label: one.estimates(level) for label, one in self.parts.items()}
        if self.problem.shared_sigma:
            for one in tables.values():
                one.loc["sigma", "best_fit"] = self.best_sigma
        table = pd.concat(tables, names=["group", "parameter"])
        table.attrs["level"] = level
        return table

    @cached_property
    def parameter_units(self) -> dict[str, str]:
        """Units of the parameters, the same in all groups; also under the names of each group."""
        known = super().parameter_units
        named = {
            f"{name}[{label}]": unit
            for label in self.problem.labels
            for name, unit in known.items()
        }
        return {**known, **named}

    def _predict(self, X: Any, level: float | None, groups: Any) -> Floats:
        names, constants = self.equation.variables, self.data.constants
        points = check_X(X, names, others=True, constants=constants)
        labels = np.array(read_labels(groups, len(points), self.problem.labels), dtype=object)
        summary = np.empty((2 if level is None else 6, len(points)))
        for label in dict.fromkeys(labels.tolist()):
            rows = np.flatnonzero(labels == label)
            summary[:, rows] = self.parts[label]._predict(points[rows], level, None)
        return summary

    def curves(self, level: float) -> list[Any] | None:
        """Return what :func:`pmsr.plots.predictions.draw_groups` draws; None for several variables.

        Parameters
        ----------
        level
            Probability of the intervals.
        """
        from pmsr.plots.predictions import GroupCurve

        name = next(iter(self.parts.values())).line
        if name is None:
            return None
        found = []
        for label, one in self.parts.items():
            points = one.line_points(name)
            x = points[:, one.data.names.index(name)]
            table = one.tabulate_at(points, level)
            found.append(GroupCurve(label, x, table, one.data.select([name])))
        return found

    def plot(self, *, level: float = 0.95, ax: Any = None) -> Any:
        """Draw the law with the data of every group, each in a colour of its own.

        Parameters
        ----------
        level
            Probability of the intervals.
        ax
            Where to draw; by default a new figure.

        Returns
        -------
        Axes
            A law of one variable as a curve for each group; one of several by its predictions
            against what was observed.
        """
        from pmsr.plots.predictions import draw_groups, plot_parity

        level, units = check_level(level), self._known_units()
        curves = self.curves(level)
        if curves is not None:
            return draw_groups(curves, level=level, units=units, ax=ax)
        tables = [one.tabulate_at(one.data.X, level) for one in self.parts.values()]
        table = pd.concat(tables, ignore_index=True)
        y = np.concatenate([one.data.y for one in self.parts.values()])
        target = pd.Series(y, name=self.target)
        return plot_parity(target, table, level=level, units=units, ax=ax)

    @property
    def line(self) -> str | None:
        """None: there is no one curve."""
        return None

    def tabulate_at(self, points: Floats, level: float) -> pd.DataFrame:
        """Refuse: points belong to a group, ``parts["label"].tabulate_at(...)``."""
        raise ValueError(self._of_one_group("A table of predictions", "tabulate_at(points, level)"))

    @property
    def warnings(self) -> list[str]:
        """Reasons to doubt this equation, in words; empty if there are none."""
        doubts = doubt_evidence(self.equation.text, self.evidence)
        if self.evidence.failure is not None:
            return doubts
        p, data = len(self.equation.parameters), [one.data for one in self.parts.values()]
        for label, one in self.parts.items():
            y, residuals = one.data.y, one.residuals
            own = doubt_interpolation(residuals, y, p) or doubt_number_of_points(one.problem.n, p)
            own += doubt_beyond(one.equation.text, one.data, one.used, one._curve)
            doubts += [f"Group {label!r}: {doubt}" for doubt in own]
        parts = np.split(self.normal_residuals, np.cumsum([len(d.y) for d in data])[:-1])
        distinct = [part[one.distinct] for part, one in zip(parts, data, strict=True)]
        doubts += doubt_noise(np.concatenate(distinct), self.data.y, self.problem.noise)
        try:
            for label, one in self.parts.items():
                doubts += [f"Group {label!r}: {reason}" for reason in one.draws.reasons]
        except ValueError as error:  # weighed, but not sampled
            doubts.append(str(error))
        return doubts

    # Any: a pymc.Model, which this layer does not import.
    def to_pymc(self, *, priors: Mapping[str, Any] | None = None) -> Any:
        """Refuse: each group has a model of its own, ``parts["label"].to_pymc()``."""
        raise ValueError(self._of_one_group("A PyMC model", "to_pymc()"))

    def to_callable(self) -> Callable[..., Floats]:
        """Refuse: each group has a function of its own, ``parts["label"].to_callable()``."""
        raise ValueError(self._of_one_group("A function", "to_callable()"))

    def to_python(self) -> str:
        """Refuse: each group has a function of its own, ``parts["label"].to_python()``."""
        raise ValueError(self._of_one_group("Python source", "to_python()"))

    def sympy(self, *, fitted: bool = False) -> Any:
        """Return the right-hand side as a SymPy expression; with numbers, that of a part only."""
        if fitted:
            raise ValueError(self._of_one_group("An expression with numbers", "sympy(fitted=True)"))
        return super().sympy()

    def latex(self, *, fitted: bool = False) -> str:
        """Return LaTeX without dollar signs: target = equation; with numbers, of a part only."""
        if fitted:
            raise ValueError(self._of_one_group("A formula with numbers", "latex(fitted=True)"))
        return super().latex()

    def _of_one_group(self, what: str, call: str) -> str:
        label = self.problem.labels[0]
        return f"{what} belongs to one group: use parts[{json.dumps(label)}].{call}."

    def __getstate__(self) -> dict[str, Any]:
        left_out = ("posterior", "parts")
        state = {name: value for name, value in self.__dict__.items() if name not in left_out}
        known = self.__dict__.get("parts")
        return {**state, "_parts": dict(known) if known is not None else None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        known = state.pop("_parts")
        self.__dict__.update(state)
        if known is not None:
            self.__dict__["parts"] = MappingProxyType(known)
