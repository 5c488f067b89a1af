"""Equations ranked by their evidence: the table, and the winner that is shown to a user."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from numbers import Integral
from typing import Any

import numpy as np
import pandas as pd
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from pmsr.data import Data, make_data
from pmsr.equation.expression import Equation
from pmsr.evidence.distributions import read_constants, read_priors
from pmsr.evidence.evidence import Weighed, fit_rmse, seed_for, weigh
from pmsr.evidence.problem import Problem, check_priors, check_twice
from pmsr.laws.identity import Trace, group_laws
from pmsr.laws.order import rank
from pmsr.laws.prior import LawPriorOption
from pmsr.laws.units import read_units, resolve_units
from pmsr.result.fitted import FittedEquation, name_of_row
from pmsr.result.grouped import fitted_equation
from pmsr.result.result import Result, library_versions
from pmsr.result.scoring import find_log_prior
from pmsr.result.table import choose_winner
from pmsr.settings import FINALIST, RandomSeed, Settings, check_settings
from pmsr.threads import SCREEN

PATIENCE = 1.0  # seconds before a progress bar appears


# X and y are Any as in `data`: what users hand over is recognised by what it can do.
def compare(
    equations: Sequence[Equation | str] | Mapping[str, Equation | str],
    X: Any,
    y: Any,
    *,
    y_err: Any = None,
    X_err: Any = None,
    groups: Any = None,
    sample_weight: Any = None,
    constants: Mapping[str, Any] | None = None,
    priors: Mapping[str, Any] | None = None,
    parameters: Sequence[str] = (),
    settings: Settings | None = None,
    law_prior: LawPriorOption = "uniform",
    units: Mapping[str, str] | str | None = None,
    interval: Sequence[str] = (),
    random_seed: RandomSeed = None,
    callback: Callable[[str], None] | None = None,
    verbose: bool = True,
    **options: Any,
) -> pd.DataFrame:
    """Rank equations by how well the data support them.

    Parameters
    ----------
    equations, X, y, y_err, X_err, groups, sample_weight
        As in `weigh_equations`, which returns posteriors and predictions too.
    constants, priors, parameters, settings, law_prior, units, interval
        As there.
    random_seed, callback, options
        As there.
    verbose
        Whether to show progress in a terminal, if it takes longer than a moment.

    Returns
    -------
    DataFrame
        As :attr:`pmsr.result.result.Result.table`, best first, and in the column ``estimates`` the
        posterior mean of each parameter and of sigma, with its 95 % credible interval and, where
        units are known, its unit.

    Examples
    --------
    >>> from pmsr.data import load_galileo
    >>> X, y = load_galileo("shelf")
    >>> table = compare({"line": "c0 + c1*H", "root": "c0*sqrt(H)"}, X, y, random_seed=1)
    >>> table["probability"].round(2).to_dict()
    {'root': 0.96, 'line': 0.04}
    """
    n_steps = 2 * len(equations) if isinstance(equations, Sequence | Mapping) else None
    with _Progress(n_steps, verbose) as show:

        def weighed(name: str) -> None:
            show(f"weighed {name}")
            if callback is not None:
                callback(name)

        result = weigh_equations(
            equations,
            X,
            y,
            y_err=y_err,
            X_err=X_err,
            groups=groups,
            sample_weight=sample_weight,
            constants=constants,
            priors=priors,
            parameters=parameters,
            settings=settings,
            law_prior=law_prior,
            units=units,
            interval=interval,
            random_seed=random_seed,
            callback=weighed,
            **options,
        )
        estimates = []
        for fitted in result.equations:
            estimates.append(_write_estimates(fitted))
            show(f"sampled {fitted.equation.text}")
    table = result.table.copy()
    table.insert(list(table.columns).index("prior_sensitivity"), "estimates", estimates)
    return table


def _write_estimates(fitted: FittedEquation) -> str:
    """Write each parameter's mean and credible interval."""
    if fitted.evidence.failure is not None:
        return ""
    units = fitted.parameter_units
    rows = fitted.estimates().itertuples()
    return ", ".join(
        f"{name_of_row(row.Index)} = {row.mean:.4g} ({row.low:.4g} to {row.high:.4g}) "
        f"{units.get(name_of_row(row.Index), '')}".rstrip()
        for row in rows
    )


class _Progress:
    """A progress bar that appears where it can be seen, once there is time to see it."""

    def __init__(self, total: int | None, verbose: bool) -> None:
        self.total = total
        self.done = 0
        self.started = time.monotonic()
        console = Console(stderr=True)
        seen = console.is_terminal and not console.is_jupyter  # there rich needs widgets
        self.bar: Progress | None = None
        if verbose and seen and total is not None:
            columns = (BarColumn(), MofNCompleteColumn(), TextColumn("{task.description}"))
            self.bar = Progress(*columns, TimeElapsedColumn(), console=console, transient=True)
            self.task = self.bar.add_task("", total=total)

    def __enter__(self) -> Callable[[str], None]:
        return self.show

    def show(self, text: str) -> None:
        """Count one step."""
        self.done += 1
        if self.bar is None:
            return
        is_due = not self.bar.live.is_started and time.monotonic() - self.started > PATIENCE
        if is_due and SCREEN.acquire(blocking=False):
            self.bar.start()
        self.bar.update(self.task, completed=self.done, description=escape(text))

    def __exit__(self, *_: object) -> None:
        if self.bar is not None and self.bar.live.is_started:
            self.bar.stop()
            SCREEN.release()


def weigh_equations(
    equations: Sequence[Equation | str] | Mapping[str, Equation | str],
    X: Any,
    y: Any,
    *,
    y_err: Any = None,
    X_err: Any = None,
    groups: Any = None,
    sample_weight: Any = None,
    constants: Mapping[str, Any] | None = None,
    priors: Mapping[str, Any] | None = None,
    parameters: Sequence[str] = (),
    settings: Settings | None = None,
    law_prior: LawPriorOption = "uniform",
    units: Mapping[str, str] | str | None = None,
    interval: Sequence[str] = (),
    random_seed: RandomSeed = None,
    callback: Callable[[str], None] | None = None,
    **options: Any,
) -> Result:
    """Weigh equations that a user wrote down, fixed forms included, and rank them.

    Parameters
    ----------
    equations
        Equations, as objects or as text with the columns of X as variables; in a dictionary, under
        names of your own.
    X, y
        The data.
    y_err, X_err, sample_weight
        Known errors of the target, standard deviations in its units, and of the variables, of the
        shape of X or a table of those columns that have errors; and how often each row was
        observed: 2 is the same as the row twice. Precisions belong in ``y_err``.
    groups
        The experiment to which each row belongs: every law then has constants of its own for each.
        Sizes of noise too, unless you say ``shared_sigma=True``.
    constants
        Known constants by name, which equations may use as they use columns: a number, a value
        with its standard error, or a PyMC distribution. One that is not exact is a parameter with
        that prior.
    priors
        Proper priors of parameters by name: a PyMC distribution of one number without a name, such
        as ``{"c1": pm.HalfNormal.dist(2)}``, or a value and its standard error. They hold for all
        equations that have a parameter of that name.
    parameters
        Names of parameters that are not a word with digits, such as ``["a", "b"]``, as in
        :class:`pmsr.Equation`: each equation has those that it names.
    settings
        Fraction, priors and sizes; by default ``pmsr.settings.FINALIST``, which repeats every run
        four times. Where ``gamma`` depends on the number of parameters (``"ohagan"``), the largest
        equation's is taken for all.
    law_prior
        How probable equations are beforehand, as in :class:`pmsr.Search`. What you have written
        down is equally probable, unless you say otherwise.
    units
        Units of all columns and of the target by name, such as ``{"H": "mm", "D": "mm"}``, or
        ``"auto"``, those in their names, such as ``T [K]``: parameters then have units, and an
        equation that does not survive a change of a base unit is impossible.
    interval
        Names of columns whose zero is arbitrary, such as a date.
    random_seed
        Seed or generator. An equation's evidence depends on the seed and on the equation, not on
        the others in the list.
    callback
        Called with the name of each equation once it has been weighed.
    options
        Single options of :class:`pmsr.Settings`, which are changed in ``settings``:
        ``noise="student"``, ``extra_noise=True``, ``positive=True``.

    Returns
    -------
    Result
        Its ``table`` ranks the equations, ``result["name"].posterior`` is ArviZ data, and
        ``result.predict_interval(X, average=True)`` predicts with all of them.

    Examples
    --------
    >>> from pmsr.data import load_galileo
    >>> laws = {"line": "c0 + c1*H", "root": "c0*sqrt(H)"}
    >>> result = weigh_equations(laws, *load_galileo("shelf"), random_seed=1)
    >>> result["root"].estimates().loc["c0", "mean"].round(0)
    np.float64(47.0)
    """
    constant, own_priors = read_constants(constants), read_priors(priors)
    data = make_data(
        X,
        y,
        y_err=y_err,
        X_err=X_err,
        groups=groups,
        sample_weight=sample_weight,
        constants=constant,
    )
    settings = check_settings(settings, FINALIST, options)
    named = _read_equations(equations, data, parameters)
    check_priors(own_priors, list(named.values()))
    check_twice(own_priors, constant)
    largest = max(len(equation.parameters) for equation in named.values())
    problem = Problem.of(data, settings, largest)
    problem = problem.with_priors(own_priors)
    pairs = [problem.suit(equation) for equation in named.values()]
    known = read_units(
        resolve_units(units, (*data.names, data.target)),
        data.names,
        data.target,
        interval=interval,
        constants=data.constants,
    )
    if not isinstance(random_seed, Integral):
        # One seed for all: equations are weighed alike, in whatever order they come.
        random_seed = int(np.random.default_rng(random_seed).integers(2**63))
    written = [equation for equation, _ in pairs]
    # Only the same equation has the same evidence: another law on the same curve has its own.
    laws = group_laws([Trace(equation.key) for equation in written])
    first_of = {place: first for first, places in laws.items() for place in places}
    found: list[FittedEquation] = []
    for place, (name, plain) in enumerate(named.items()):
        equation, selected = pairs[place]
        seed = seed_for(equation.key, random_seed)
        first = first_of[place]
        if first == place:
            own = weigh(equation.program, selected, settings, seed, keep=True)
        else:
            own = found[first].weighed
        if equation != written[first]:
            # Another spelling: its parameters are others, and so is its best fit.
            fit = fit_rmse(equation.program, selected, settings, seed)
            own = Weighed(replace(own.evidence, theta=fit.theta, n_parameters=fit.n_parameters))
        own_units = known.select(equation.variables)
        log_prior = find_log_prior(
            plain,
            data.select(plain.variables),
            law_prior,
            units=known.select(plain.variables),
            evidence=own.evidence,
        )
        found.append(
            fitted_equation(
                equation, own, selected, settings, int(random_seed), log_prior, own_units
            )
        )
        if callback is not None:
            callback(name)
    order = rank([one.score for one in found], [one.equation.complexity for one in found])
    fitted, names = [found[place] for place in order], list(named)
    return Result(
        tuple(fitted),
        tuple(names[place] for place in order),
        problem,
        settings,
        None,
        int(random_seed),
        choose_winner(fitted),
        n_candidates=len(laws),
        versions=library_versions(),
        law_prior=law_prior,
        units=known,
    )


def _read_equations(equations: Any, data: Data, parameters: Sequence[str]) -> dict[str, Equation]:
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
        if isinstance(equation, Equation):
            exact = [key for key, one in data.constants.items() if one.prior is None]
            named[name] = equation.with_variables(exact)
        else:
            named[name] = Equation(equation, data.names, parameters)
    return named
