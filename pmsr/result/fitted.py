"""One equation with its data: evidence, posterior, predictions, exports."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from html import escape
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pmsr.data import Data, check_X
from pmsr.equation.expression import Equation, latex_name
from pmsr.equation.mathml import to_mathml
from pmsr.equation.notation import (
    latex_lines,
    latex_with_numbers,
    plus_minus,
    python_source,
    to_plain,
)
from pmsr.equation.program import evaluate
from pmsr.evidence.distributions import read_priors
from pmsr.evidence.evidence import Evidence, Weighed, make_target, seed_for
from pmsr.evidence.model import make_model
from pmsr.evidence.noise import Columns
from pmsr.evidence.posterior import MAX_POINTWISE, Draws, draw_posterior, to_arviz
from pmsr.evidence.prediction import (
    SUMMARY,
    Component,
    check_level,
    describe_undefined,
    predict_mixture,
)
from pmsr.evidence.problem import Problem, check_priors, check_twice
from pmsr.evidence.proposal import Target
from pmsr.laws.coincidences import column_signs, describe_coincidences
from pmsr.laws.units import (
    Units,
    describe_impossible,
    is_possible,
    parameter_units,
    unit_latex,
)
from pmsr.magnitude import mean_and_deviation
from pmsr.result.curve import make_grid
from pmsr.result.doubts import (
    doubt_beyond,
    doubt_evidence,
    doubt_interpolation,
    doubt_noise,
    doubt_number_of_points,
    doubt_range,
    warn,
)
from pmsr.result.scoring import known_rows
from pmsr.settings import Settings
from pmsr.threads import one_blas_thread

if TYPE_CHECKING:
    import xarray as xr
    from arviz import InferenceData

Floats = NDArray[np.float64]
Kind = Literal["prediction", "credible"]


# X is Any as in `data`: what users hand over is recognised by what it can do.
@dataclass(frozen=True, eq=False, repr=False)
class FittedEquation:
    r"""An equation, the data that it explains, and all that follows from both.

    The posterior is sampled when it is first needed, always to the same draws.

    Parameters
    ----------
    equation
        The equation.
    weighed
        How well the data support it, with its fit and particles, of which posterior, predictions
        and exports are made.
    problem
        What it was weighed on: the data, with the equation's variables in its order, and the
        priors, which the posterior shares.
    settings
        Sizes of samples.
    random_seed
        Seed of the posterior.
    log_prior
        Log of its prior probability, but for a constant.
    units
        Units of its variables and of the target, with the columns whose zero is arbitrary; None if
        nothing is known of them.

    Examples
    --------
    >>> from pmsr.data import load_galileo
    >>> from pmsr.result.comparison import weigh_equations
    >>> root = weigh_equations(["c0*sqrt(H)"], *load_galileo("shelf"), random_seed=1).best
    >>> root.latex(), root.theta.round(2)
    ('D = c_{0} \\sqrt{H}', array([47.09]))
    >>> root.predict([900.0]).round(-1)
    array([1410.])
    """

    equation: Equation
    weighed: Weighed
    problem: Problem
    settings: Settings
    random_seed: int
    log_prior: float = 0.0
    units: Units | None = None

    @property
    def evidence(self) -> Evidence:
        """How well the data support the equation."""
        return self.weighed.evidence

    @property
    def score(self) -> float:
        """Log q + log prior, by which laws are ranked."""
        return self.evidence.log_q + self.log_prior

    @property
    def parts(self) -> Mapping[str, "FittedEquation"]:
        """The equation as it is fitted to each of several groups, by label; none without groups."""
        return {}

    @property
    def data(self) -> Data:
        """What the equation explains, with its variables in its order."""
        return self.problem.data

    @property
    def target(self) -> str:
        """Name of what the equation explains."""
        return self.data.target

    @cached_property
    def draws(self) -> Draws:
        """Draws from the posterior, as arrays.

        Raises
        ------
        ValueError
            If the equation has no posterior on these data.
        """
        sample = draw_posterior(
            self.equation, self.problem, self.settings, self._seed(), weighed=self.weighed
        )
        if sample.held or not np.isfinite(self.evidence.theta).all():
            return sample
        # One best fit: the evidence's.
        return replace(sample, theta_map=self.evidence.theta)

    @property
    def is_sampled(self) -> bool:
        """Whether the posterior is known already."""
        return "draws" in self.__dict__

    @cached_property
    def posterior(self) -> "InferenceData | xr.DataTree":
        """The posterior as ArviZ data, with the groups of :func:`pmsr.sample_posterior`.

        Of many observations, the groups with a number for each of them and each draw are left out.
        """
        whole = self.draws.sigma.size * len(self.data.y) <= MAX_POINTWISE
        seed = self._seed() if whole else None
        return to_arviz(self.equation, self.problem, self.draws, seed)

    @property
    def compact_posterior(self) -> "InferenceData | xr.DataTree":
        """The posterior without the groups that hold a number for each observation and draw.

        They follow from the rest, and are thousands of times as large: `posterior` has them.
        """
        return to_arviz(self.equation, self.problem, self.draws, None)

    def _seed(self) -> np.random.SeedSequence:
        return seed_for(self.equation.key, self.random_seed)

    @property
    def theta(self) -> Floats:
        """The best fit, in the order of the equation's parameters."""
        finite = np.isfinite(self.evidence.theta).all()
        return self.evidence.theta if finite else self.draws.theta_map

    @property
    def residuals(self) -> Floats:
        """What the best fit leaves unexplained, of shape (N,)."""
        return np.asarray(self.data.y - self._curve(self.data.X))

    @property
    def normal_residuals(self) -> Floats:
        """The same in units of their noise: about standard normal if that is what it is said to be.

        Those of plain normal noise are in units of the target.
        """
        if self.problem.noise.has_one_size:
            return self.residuals
        y, mu, _, columns = self._at_best
        with np.errstate(all="ignore"):
            residuals = self.problem.noise.residuals(y, mu, self.best_sigma, columns)
            return np.asarray(residuals[0])

    @property
    def best_sigma(self) -> float:
        """The sigma that makes the measurements most likely about the best fit."""
        with np.errstate(all="ignore"):
            return float(self.problem.noise.most_likely_sigma(*self._at_best)[0, 0])

    @property
    def _at_best(self) -> tuple[Floats, Floats, Floats, Columns]:
        """The target, the best fit of shape (1, N), counts, and what the noise knows of rows."""
        mu = self._curve(self.data.X)[None, :]
        columns = self.problem.columns_at(self.equation.program, self.theta[None, :])
        return self.data.y, mu, self.problem.counts, columns

    def _curve(self, X: Floats) -> Floats:
        """Return the best fit at points."""
        return evaluate(self.equation.program, self.theta[None, :], np.ascontiguousarray(X))[0]

    def estimates(self, level: float = 0.95) -> pd.DataFrame:
        """Return the parameters and the noise level, with their uncertainty.

        Parameters
        ----------
        level
            Probability of the credible intervals.

        Returns
        -------
        DataFrame
            One row for each parameter and for ``sigma``: ``best_fit`` (for sigma the most
            likely one there), posterior ``mean`` and ``sd``, ``low`` and ``high`` of the credible
            interval. A parameter that the data do not determine is held, with an ``sd`` of zero.
            Where units are known, ``unit`` has those of `parameter_units`, an empty text for what
            has none.
        """
        level = check_level(level)
        names, values = list(self.equation.parameters), self.draws.flat_theta
        best_fit = list(self.draws.theta_map)
        if self.problem.scale.is_free:
            values = np.column_stack([values, self.draws.flat_sigma])
            names, best_fit = [*names, "sigma"], [*best_fit, self.best_sigma]
        tails = np.quantile(values, [(1.0 - level) / 2.0, (1.0 + level) / 2.0], axis=0)
        mean, deviation = mean_and_deviation(values)
        table = pd.DataFrame(
            {
                "best_fit": best_fit,
                "mean": mean,
                "sd": deviation,
                "low": tails[0],
                "high": tails[1],
            },
            index=pd.Index(names, name="parameter"),
        )
        if self.units is not None and self.units.are_known:
            known = self.parameter_units
            table["unit"] = [known[name] for name in names]
        table.attrs["level"] = level
        return table

    @cached_property
    def is_possible(self) -> bool:
        """Whether the law survives every change of the units that are known."""
        if self.units is None or not self.units.are_known:
            return True
        return is_possible(self.equation.program, self.units, **self._looks())

    # Any: keywords of functions of `pmsr.laws`.
    def _looks(self) -> dict[str, Any]:
        """Return where it is seen whether the law depends on units."""
        return {
            "signs": column_signs(self.data.X),
            "rows": known_rows(self.data, self.evidence),
        }

    @cached_property
    def parameter_units(self) -> dict[str, str]:
        """Units of the parameters, as the law is spelled, and of ``sigma``; none if none is known.

        An empty text for a pure number, and where there is no unit: c0 in ``c0*x**c1`` has one that
        depends on the value of c1, c0 in ``c0 + c1*log(x)`` changes by an amount.
        """
        if self.units is None or not self.units.are_known:
            return {}
        names: tuple[str, ...] = self.equation.parameters
        found: tuple[str | None, ...] = (None,) * len(names)
        if self.is_possible:
            found = parameter_units(self.equation.program, self.units, **self._looks())
        units = {name: unit or "" for name, unit in zip(names, found, strict=True)}
        sigma = "" if self.problem.noise.is_relative else self.units.of_target
        return {**units, "sigma": sigma}

    def predict(self, X: Any, return_std: bool = False, *, groups: Any = None) -> Any:
        """Predict new observations.

        Parameters
        ----------
        X
            Values of the variables: a table with their names among its columns, or an array with
            their columns in order.
        return_std
            Whether to return the standard deviation too.
        groups
            The group of each row, or one for all, if the equation was fitted to several.

        Returns
        -------
        ndarray, or tuple of two
            The posterior mean, of shape (n,), and the standard deviation of a new observation.
            Both are NaN where the equation is not finite for half of the draws or more.
        """
        mean, std = self._predict(X, None, groups)
        return (mean, std) if return_std else mean

    def predict_interval(
        self, X: Any, level: float = 0.95, kind: Kind = "prediction", *, groups: Any = None
    ) -> Floats:
        """Return where new observations, or the curve itself, lie.

        Parameters
        ----------
        X, groups
            As in `predict`.
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
        return np.ascontiguousarray(self._predict(X, check_level(level), groups)[rows].T)

    def _predict(self, X: Any, level: float | None, groups: Any) -> Floats:
        refuse_labels(groups)
        names, constants = self.equation.variables, self.data.constants
        points = check_X(X, names, others=True, constants=constants)
        summary, undefined = predict_mixture([self.component(points)], level, self.problem.noise)
        warn(doubt_range(self.data, points, self.used))
        if undefined.any():
            warn([describe_undefined(undefined)])
        return summary

    def component(self, points: Floats, probability: float = 1.0) -> Component:
        """Return what :func:`pmsr.evidence.prediction.predict_mixture` wants to know."""
        draws = self.draws
        program = self.equation.program
        sigma = self.problem.new_sigma(draws.flat_sigma)
        return Component(program, draws.flat_theta, sigma, points, probability)

    def tabulate_at(self, points: Floats, level: float) -> pd.DataFrame:
        """Return everything about new observations at points that are checked.

        Parameters
        ----------
        points
            Values of the equation's variables, of shape (n, d).
        level
            Probability of the intervals.

        Returns
        -------
        DataFrame
            The columns of :func:`pmsr.predict`.
        """
        summary, _ = predict_mixture([self.component(points)], level, self.problem.noise)
        table = pd.DataFrame(summary.T, columns=list(SUMMARY))
        table.insert(2, "map", self._curve(points))
        table.attrs["level"] = level
        return table

    @property
    def line(self) -> str | None:
        """The variable against which the law can be drawn as a curve; None if there are several."""
        used = self.data.measured if len(self.data.measured) == 1 else self.used
        return used[0] if len(used) == 1 else None

    def line_points(self, name: str) -> Floats:
        """Return points along a variable at which the law is drawn, the others at their medians."""
        column = self.data.names.index(name)
        middle = np.median(self.data.X, axis=0)

        def along(values: Floats) -> Floats:
            points = np.repeat(middle[None, :], len(values), axis=0)
            points[:, column] = values
            return points

        grid = make_grid(self.data.X[:, column], self.data.y, lambda v: self._curve(along(v)))
        return along(grid)

    # Any: Matplotlib's Axes, which this layer does not import.
    def plot(self, *, level: float = 0.95, ax: Any = None) -> Any:
        """Draw the law with its data and intervals, see :func:`pmsr.plots.plot_fit`.

        Parameters
        ----------
        level
            Probability of the intervals.
        ax
            Where to draw; by default a new figure.

        Returns
        -------
        Axes
            A law of one variable as a curve; one of several by its predictions against what was
            observed.
        """
        from pmsr.plots.predictions import draw_fit, plot_parity

        level, units = check_level(level), self._known_units()
        name = self.line
        if name is None:
            y = pd.Series(self.data.y, name=self.target)
            table = self.tabulate_at(self.data.X, level)
            return plot_parity(y, table, level=level, units=units, ax=ax)
        points = self.line_points(name)
        return draw_fit(
            points[:, self.data.names.index(name)],
            self.tabulate_at(points, level),
            self.data.select([name]),
            level=level,
            units=units,
            ax=ax,
        )

    def plot_residuals(
        self, *, against: Literal["prediction", "order"] = "prediction", ax: Any = None
    ) -> Any:
        """Draw what the best fit leaves unexplained, see :func:`pmsr.plots.plot_residuals`.

        Parameters
        ----------
        against
            What the first panel shows the residuals against: the prediction, or the order of the
            rows.
        ax
            Two Axes; by default a new figure.

        Returns
        -------
        ndarray
            The two Axes. Where noise is not of one size, residuals are in units of theirs.
        """
        from pmsr.plots import plot_residuals

        return plot_residuals(
            pd.Series(self.data.y, name=self.target),
            self.data.y - self.residuals,
            residuals=None if self.has_plain_noise else self.normal_residuals,
            against=against,
            units=self._known_units(),
            ax=ax,
        )

    @property
    def has_plain_noise(self) -> bool:
        """Whether all residuals have noise of one size: they are shown as they are."""
        is_of_all = not self.parts or self.problem.shared_sigma
        return self.problem.noise.has_one_size and is_of_all

    def _known_units(self) -> Mapping[str, str]:
        return self.units.by_name if self.units is not None and self.units.are_known else {}

    @property
    def used(self) -> tuple[str, ...]:
        """The variables that occur in the equation, without known constants."""
        return tuple(name for name in self._occurring if name not in self.data.constants)

    @property
    def used_constants(self) -> tuple[str, ...]:
        """The known constants that occur in the equation."""
        exact = [name for name in self._occurring if name in self.data.constants]
        return (*exact, *(name for name in self.equation.known))

    @property
    def _occurring(self) -> tuple[str, ...]:
        symbols = {symbol.name for symbol in self.equation.expression.free_symbols}
        return tuple(name for name in self.equation.variables if name in symbols)

    @property
    def warnings(self) -> list[str]:
        """Reasons to doubt this equation, in words; empty if there are none."""
        doubts = doubt_evidence(self.equation.text, self.evidence)
        if self.units is not None and not self.is_possible:
            doubts.append(describe_impossible(self.equation.text, self.units))
        if self.evidence.failure is not None:
            return doubts
        y, residuals, p = self.data.y, self.residuals, len(self.equation.parameters)
        n = self.problem.n
        # What interpolates has too few points, too: the stronger word is enough.
        doubts += doubt_interpolation(residuals, y, p) or doubt_number_of_points(n, p)
        # A row that stands there twice is one measurement, as with a count.
        distinct = self.normal_residuals[self.data.distinct]
        doubts += doubt_noise(distinct, y, self.problem.noise)
        doubts += doubt_beyond(self.equation.text, self.data, self.used, self._curve)
        try:
            return doubts + list(self.draws.reasons)
        except ValueError as error:  # weighed, but not sampled
            return [*doubts, str(error)]

    @cached_property
    def coincidences(self) -> list[str]:
        """What the law claims that is true in one unit only, a phrase for each; mostly nothing.

        Of units that are known nothing is said.
        """
        units = self.units
        return describe_coincidences(
            self.equation,
            self.target,
            interval=() if units is None else units.interval_names,
            generators=None if units is None else units.generators,
            **self._looks(),
        )

    # Any: PyMC's distributions and a pymc.Model, which this layer does not import.
    def to_pymc(self, *, priors: Mapping[str, Any] | None = None) -> Any:
        """Return the equation as a plain PyMC model, its parameters flat where the evidence has it.

        It starts at the best fit: sample it by ``pm.sample(init="adapt_diag")``, because the jitter
        of PyMC's default can leave the region.

        Parameters
        ----------
        priors
            Proper priors of parameters by name, as in :func:`pmsr.compute_evidence`, in place of
            those of the fit. The others stay flat on predictions; if there are none,
            ``pm.sample_prior_predictive`` draws from the priors.

        Examples
        --------
        >>> import pymc as pm
        >>> from pmsr.data import load_galileo
        >>> from pmsr.result.comparison import weigh_equations
        >>> root = weigh_equations(["c0*sqrt(H)"], *load_galileo("shelf"), random_seed=1).best
        >>> model = root.to_pymc(priors={"c0": pm.Normal.dist(45, 5)})
        >>> [(one.name, one.owner.op.name) for one in model.free_RVs]
        [('c0', 'normal'), ('sigma', 'uniform')]
        """
        own = read_priors(priors)
        check_priors(own, [self.equation])
        check_twice(own, self.problem.data.constants)
        equation, problem = self.problem.with_priors(own).suit(self.equation)
        n_flat = len(equation.parameters) - len(problem.given)
        if not equation.parameters or (own and n_flat == 0):  # nothing needs a region
            return make_model(equation, problem)
        target = self._fit_again(equation, problem) if own else self._target()
        return make_model(equation, problem, target.region)

    def _target(self) -> Target:
        """Return the density over the region that log q came from."""
        if self.weighed.fit is None:
            # A conventional search, another spelling, or a result that was loaded.
            return self._fit_again(self.equation, self.problem)
        with one_blas_thread():
            return self.weighed.target(self.problem)

    def _fit_again(self, equation: Equation, problem: Problem) -> Target:
        rng = np.random.Generator(np.random.PCG64(self._seed()))
        with one_blas_thread():
            return make_target(equation.program, problem, self.settings.n_multistarts, rng=rng)

    def to_callable(self) -> Callable[..., Floats]:
        """Return a function of the variables, in their order, that computes the best fit.

        Examples
        --------
        >>> from pmsr.data import load_galileo
        >>> from pmsr.result.comparison import weigh_equations
        >>> root = weigh_equations(["c0*sqrt(H)"], *load_galileo("shelf"), random_seed=1).best
        >>> root.to_callable()([400.0, 900.0]).round(1)
        array([ 941.7, 1412.6])
        """
        return BestFit(self.equation, self.theta)

    def to_python(self) -> str:
        """Return Python source, with NumPy only, of a function that computes the best fit."""
        return python_source(self.equation, self.theta, self.target)

    # Any: SymPy comes without types.
    def sympy(self, *, fitted: bool = False) -> Any:
        """Return the right-hand side as a SymPy expression, in plain symbols of the names.

        Parameters
        ----------
        fitted
            Whether the numbers of the best fit take the place of the parameters.

        Examples
        --------
        >>> from pmsr.data import load_galileo
        >>> from pmsr.result.comparison import weigh_equations
        >>> root = weigh_equations(["c0*sqrt(H)"], *load_galileo("shelf"), random_seed=1).best
        >>> root.sympy(), root.sympy(fitted=True).subs("H", 400).round(1)
        (sqrt(H)*c0, 941.7)
        """
        return to_plain(self.equation, self.theta if fitted else None)

    def latex(self, *, fitted: bool = False) -> str:
        """Return LaTeX without dollar signs: target = equation.

        Parameters
        ----------
        fitted
            Whether rounded numbers, those of the best fit, take the place of the parameters.
        """
        equation = self.equation
        right = latex_with_numbers(equation, self.theta) if fitted else equation.latex()
        return f"{latex_name(self.target)} = {right}"

    def _written_estimates(self) -> dict[str, str]:
        """Return mean ± standard deviation of every parameter; nothing without a posterior."""
        try:
            table = self.estimates()
        except ValueError:
            return {}
        return {
            name_of_row(name): plus_minus(mean, sd)
            for name, mean, sd in zip(table.index, table["mean"], table["sd"], strict=True)
        }

    def _with_units(self) -> dict[str, str]:
        """Return the same, each with its unit."""
        units = self.parameter_units
        written = self._written_estimates().items()
        return {name: f"{text} {units.get(name, '')}".rstrip() for name, text in written}

    def __str__(self) -> str:
        known = self.data.constants
        lines = [f"{name} = {known[name].value:g}" for name in self.used_constants if name in known]
        lines += [f"{name} = {text}" for name, text in self._with_units().items()]
        return "\n  ".join([f"{self.target} = {self.equation}", *lines])

    def __repr__(self) -> str:
        return f"FittedEquation({self.equation.text!r}, log_q={self.evidence.log_q:.2f})"

    def _repr_latex_(self) -> str:
        units = {name: unit_latex(unit) for name, unit in self.parameter_units.items()}
        return latex_lines(self.target, self.equation, self._written_estimates(), units)

    def _repr_html_(self) -> str:
        evidence = self.evidence
        rows = list(self._with_units().items())
        rows += [("log q", f"{evidence.log_q:.2f} ± {evidence.log_q_se:.2f}")]
        rows += [("log prior", f"{self.log_prior:.2f}")] if self.log_prior else []
        rows += [("RMSE", f"{evidence.rmse:.4g}")]
        if evidence.failure is not None:
            rows += [("failure", evidence.failure)]
        cells = "".join(f"<tr><th>{escape(a)}</th><td>{escape(b)}</td></tr>" for a, b in rows)
        math = to_mathml(self.equation, self.target, display=True)
        return f"<div>{math}<table>{cells}</table></div>"

    def __getstate__(self) -> dict[str, Any]:
        # ArviZ's data are made of the draws again.
        return {name: value for name, value in self.__dict__.items() if name != "posterior"}


def name_of_row(index: Any) -> str:
    """Return the name of a row of `estimates`: of a parameter, or of one of a group.

    Examples
    --------
    >>> name_of_row("c0"), name_of_row(("run 1", "c0"))
    ('c0', 'c0[run 1]')
    """
    return f"{index[1]}[{index[0]}]" if isinstance(index, tuple) else str(index)


class BestFit:
    """An equation with numbers for its parameters: a function that can be pickled."""

    def __init__(self, equation: Equation, theta: Floats) -> None:
        self.equation, self.theta = equation, theta

    def __call__(self, *columns: Any) -> Floats:
        """Compute the equation for arrays of its variables, which are broadcast."""
        names = self.equation.variables
        if len(columns) != len(names):
            raise TypeError(
                f"{self.equation.text!r} is a function of {len(names)} variables "
                f"({', '.join(names)}), got {len(columns)}."
            )
        arrays = np.broadcast_arrays(*(np.asarray(column, dtype=np.float64) for column in columns))
        X = np.column_stack([array.ravel() for array in arrays])
        values = evaluate(self.equation.program, self.theta[None, :], X)[0]
        return values.reshape(arrays[0].shape)


def refuse_labels(groups: Any) -> None:
    """Refuse groups of new rows where the equation has one set of constants."""
    if groups is not None:
        raise ValueError(
            "groups are given, and the equation was fitted without: it has one set of constants. "
            "Leave groups out, or fit with groups."
        )


def interval_rows(kind: str) -> slice:
    """Return the rows of a summary that hold an interval's ends."""
    if kind not in ("prediction", "credible"):
        raise ValueError(f"Unknown kind {kind!r}. Available: prediction, credible.")
    return slice(4, 6) if kind == "prediction" else slice(2, 4)
