"""The search as a scikit-learn estimator: parameters in, fitted attributes out, no algorithm."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.metrics import r2_score
from sklearn.utils.validation import check_is_fitted, validate_data

from pmsr.data import Data, make_data
from pmsr.equation.expression import Equation
from pmsr.equation.operator_sets import expand_sets
from pmsr.evidence.distributions import read_constants
from pmsr.evidence.noise import GAUSSIAN
from pmsr.evidence.prediction import check_level
from pmsr.evidence.problem import Problem
from pmsr.files import BROKEN
from pmsr.inputs import check_container, check_order, is_time
from pmsr.laws.coincidences import column_signs
from pmsr.laws.units import (
    AUTO,
    Units,
    describe_impossible,
    is_possible,
    resolve_units,
    units_of,
)
from pmsr.limits import time_limit
from pmsr.pysr_names import ATTRIBUTES, FOR_FIT, describe_unknown
from pmsr.result.doubts import warn
from pmsr.result.fitted import FittedEquation, Kind
from pmsr.result.loading import decode_result
from pmsr.result.parameters import (
    SEARCH_OPTIONS,
    SETTINGS_OPTIONS,
    parameters_from_json,
    parameters_to_json,
)
from pmsr.result.result import Result
from pmsr.result.searched import from_evolution
from pmsr.result.storage import (
    damaged,
    read_folder,
)
from pmsr.search.evolution import Evolution, further, run_evolution
from pmsr.search.pilot import AUTO as AUTO_NOISE
from pmsr.search.pilot import Choice
from pmsr.search.settling import Settled, settle_noise
from pmsr.settings import QUICK, Search, Settings, check_settings

_BEGINS_ANEW = (
    "The search began anew: warm_start=True goes on from a fit that had it, too, and the last one "
    "had not. Give it to the first fit."
)


# X and y are Any as in `data`: what users hand over is recognised by what it can do.
class BayesianSymbolicRegressor(RegressorMixin, BaseEstimator):
    r"""Find equations that explain a target, weighed by their Bayesian evidence.

    Parameters
    ----------
    operators
        Names of the operators that equations may use: ``"+"``, ``"-"``, ``"*"``, ``"/"``,
        ``"pow"``, ``"sqrt"``, ``"exp"``, ``"log"``, ``"sin"``, ``"cos"``, ``"tan"``, ``"tanh"``,
        ``"abs"``, and those of :func:`pmsr.add_operator`. Or a set of them: ``"common"``, which has
        sqrt, exp and log besides ``+ - * /``, ``"trig"``, ``"powers"``, ``"all"``.
    population_size
        Number of equations that evolve on each island; even.
    generations, max_time
        Budget: generations and seconds, whichever ends first; two minutes unless you say otherwise,
        None for no limit of time. The seconds are those until `fit` returns; what there was no time
        for, such as the posterior of a law of many rows, is done when it is first asked for, and a
        warning says so.
    patience
        Stop after this many generations without a better equation; None for never.
    max_complexity, max_parameters
        Largest number of nodes and of parameters of an equation; None for no limit on the latter.
    fitness
        ``"evidence"``: log q, with probabilistic crowding (Algorithm 1); ``"rmse"``: the
        conventional search, with deterministic crowding.
    gamma
        Fraction of Eq. (5): a number in (0, 1), ``"paper"`` for :math:`1/\sqrt N`, or
        ``"ohagan"``, which needs ``max_parameters``.
    noise
        Distribution of the noise: ``"gaussian"``; ``"student"``, for outliers; ``"proportional"``
        or ``"lognormal"``, for relative errors; ``"poisson"``, for counts; or ``"auto"``, the one
        under which the best of some laws has the largest evidence, see ``noise_table_``.
    extra_noise
        Whether noise of unknown size adds in quadrature to the errors that `fit` is given.
    constants
        Numbers that you know, by name, which laws may use as they use columns and which print as
        names: ``{"g": 9.81, "k": (1.38e-23, 1e-25)}``. One with a standard error, or a PyMC
        distribution, is a parameter with that prior wherever a law is weighed; the search takes
        it for exact until then. ``predict`` knows them: X has no columns for them.
    positive
        Whether the parameters of a law keep the sign that they have at its best fit: what is known
        of rates, masses and distances. The prior has nothing on the other side of zero.
    shared_sigma
        Whether the groups that `fit` is given have noise of one size, or each has its own.
    parameter_prior
        Where parameters are flat: ``"invariant"``, on the predictions, so that log q belongs to a
        law and not to its spelling; or ``"flat"``, in the parameters, as in the paper. By default
        that of ``settings``, which is invariant.
    law_prior
        How probable laws are before any data are seen: ``"description"``, the shorter and the less
        dependent on units the more probable; ``"uniform"``, all alike, as in the paper; a
        :class:`pmsr.LawPrior` with costs of your own; or a function of an equation that
        returns the log of its probability, but for a constant.
    interval
        Names of columns whose zero is arbitrary, such as a date or degrees Celsius: laws that
        depend on it are less probable.
    units
        Units of all columns and of the target by name, such as ``{"H": "mm", "D": "mm"}``; the
        target's stands under the name of its series, or ``"y"``. ``"1"`` is a pure number, ``"?"``
        one that is not known. ``"auto"`` takes them from the names: ``T [K]``, ``k (1/s)``. A law
        that does not survive a change of a base unit is then not bred, and parameters have units.
    forbid
        Operators that may not stand inside another, at any depth, by its name:
        ``{"exp": ["exp", "sin"]}``.
    max_uses
        How often operators may stand in a law, by name: ``{"sin": 1}``.
    require, exclude
        Names of columns that every law must, or must not, depend on.
    guesses
        Equations to start from, as text with the names of the columns: ``["c0*sqrt(H)"]``.
    settings
        Further options of the evidence, a :class:`pmsr.Settings`. By default
        ``pmsr.settings.QUICK``; change it with ``dataclasses.replace(QUICK, sigma_max=3.0)``.
    search
        Further options of the search, a :class:`pmsr.Search`: ``max_evaluations``,
        ``variable_exponents``, ``p_crossover``, ``p_mutation``, ``refresh``, ``n_finalists``;
        ``n_islands`` populations, which several workers share; ``n_enumerated`` small laws that
        are screened first; and ``evidence="smc"`` to weigh every candidate, as in the paper.
    checkpoint
        File to which the state of the search is written every few seconds, and from which a fit
        with the same data, parameters and seed goes on.
    warm_start
        Whether another `fit` of the same data goes on where the last one ended, for another budget.
        What it goes on from is not saved: use ``checkpoint`` for that, whose ``max_time`` is that
        of all its fits together.
    callbacks
        Called with a :class:`pmsr.search.evolution.Generation` after every unit of the search: the
        first population, then every ``Search.refresh`` generations, ten by default. One that
        returns True ends the search.
    random_state
        An integer makes the fit repeatable, for any number of workers; None is different every
        time (with a checkpoint: 0, or it could not go on).
    n_jobs
        Workers, in the sense of joblib; None follows ``joblib.parallel_config``.
    verbose
        Whether to show progress; or a function, called with a line that says what is being done.

    Attributes
    ----------
    equations_ : DataFrame
        Every distinct equation that is reported, ranked: :attr:`pmsr.result.result.Result.table`.
    best_ : FittedEquation
        The chosen equation, with its posterior, predictions and exports.
    pareto_front_ : DataFrame
        The rows of ``equations_`` that no other beats in both score and complexity.
    history_ : DataFrame
        One row for each generation.
    warnings_ : list of str
        Reasons to doubt the result. They are also issued as :class:`pmsr.ResultWarning`.
    result_ : Result
        All of this as one object.
    n_features_in_ : int
        Number of variables.
    feature_names_in_ : ndarray
        Their names, if X was a table.

    Notes
    -----
    Ctrl-C ends the search and keeps what was found.

    Examples
    --------
    >>> from pmsr.data import load_galileo
    >>> X, y = load_galileo("shelf")
    >>> regressor = BayesianSymbolicRegressor(
    ...     ("*", "sqrt"), population_size=20, generations=5, random_state=0, verbose=False
    ... )
    >>> print(regressor.fit(X, y).best_.equation)
    c0*sqrt(H)
    """

    def __init__(
        self,
        operators: Sequence[str] = ("+", "-", "*", "/"),
        *,
        population_size: int = 120,
        generations: int = 1000,
        max_time: float | None = 120.0,
        patience: int | None = None,
        max_complexity: int = 64,
        max_parameters: int | None = None,
        fitness: str = "evidence",
        gamma: float | str = "paper",
        noise: str = "gaussian",
        extra_noise: bool = False,
        constants: Mapping[str, Any] | None = None,
        positive: bool = False,
        shared_sigma: bool = False,
        parameter_prior: str | None = None,
        law_prior: str | Callable[..., float] = "description",
        interval: Sequence[str] = (),
        units: Mapping[str, str] | str | None = None,
        forbid: Mapping[str, Sequence[str]] | None = None,
        max_uses: Mapping[str, int] | None = None,
        require: Sequence[str] = (),
        exclude: Sequence[str] = (),
        guesses: Sequence[str] = (),
        settings: Settings | None = None,
        search: Search | None = None,
        checkpoint: str | Path | None = None,
        warm_start: bool = False,
        callbacks: Sequence[Any] = (),
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: bool | Callable[[str], None] = True,
    ) -> None:
        self.operators = operators
        self.population_size = population_size
        self.generations = generations
        self.max_time = max_time
        self.patience = patience
        self.max_complexity = max_complexity
        self.max_parameters = max_parameters
        self.fitness = fitness
        self.gamma = gamma
        self.noise = noise
        self.extra_noise = extra_noise
        self.constants = constants
        self.positive = positive
        self.shared_sigma = shared_sigma
        self.parameter_prior = parameter_prior
        self.law_prior = law_prior
        self.interval = interval
        self.units = units
        self.forbid = forbid
        self.max_uses = max_uses
        self.require = require
        self.exclude = exclude
        self.guesses = guesses
        self.settings = settings
        self.search = search
        self.checkpoint = checkpoint
        self.warm_start = warm_start
        self.callbacks = callbacks
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    # Here, because scikit-learn takes whatever __init__ accepts for a parameter.
    def __new__(cls, *_: Any, **parameters: Any) -> Self:
        """Refuse a parameter that there is not, and say what it is called here."""
        for name in parameters:
            if name not in cls._get_param_names():
                raise TypeError(describe_unknown(name, cls._get_param_names()))
        return super().__new__(cls)

    __new__.__signature__ = inspect.signature(__init__)  # type: ignore[attr-defined]

    def __getattr__(self, name: str) -> Any:
        """Say what an attribute of PySR's is called here; there is none of that name."""
        if hasattr(type(self), name):  # a property that has failed says why
            return object.__getattribute__(self, name)
        hint = f" {ATTRIBUTES[name]}" if name in ATTRIBUTES else ""
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}.{hint}")

    def fit(
        self,
        X: Any,
        y: Any,
        *,
        y_err: Any = None,
        X_err: Any = None,
        groups: Any = None,
        sample_weight: Any = None,
        **unknown: Any,
    ) -> "BayesianSymbolicRegressor":
        """Search for equations.

        Parameters
        ----------
        X
            Values of the variables, of shape (N, d): an array or a table, whose column names may
            have spaces, units and Greek letters.
        y
            Values of the target, of shape (N,).
        y_err
            Known errors of the target, of shape (N,): standard deviations in its units. Sigma is
            then no parameter, or with ``extra_noise=True`` adds to them in quadrature.
        X_err
            Known errors of the variables, independent of one another: an array of the shape of X,
            or a table of those columns that have errors. They count by the slope of the law at
            each row, see the page on errors in x; predictions take x to be exact.
        groups
            Label of the experiment to which each row belongs, of shape (N,): one law is sought,
            with constants of its own for each.
        sample_weight
            How often each row was observed: 2 is the same as the row twice. Precisions belong in
            ``y_err``.
        **unknown
            Refused, with the name that it has here.

        Returns
        -------
        BayesianSymbolicRegressor
            Itself, fitted.

        Warns
        -----
        ResultWarning
            For each of the reasons to doubt the result.
        """
        measured = {
            "y_err": y_err,
            "X_err": X_err,
            "groups": groups,
            "sample_weight": sample_weight,
        }
        for name in unknown:
            raise TypeError(self._unknown_for_fit(name, list(measured)))
        self._search()
        return self._fit(self._validate(X, y, **measured))

    def _unknown_for_fit(self, name: str, known: Sequence[str]) -> str:
        if name in self._get_param_names():
            return f"fit has no argument {name!r}: it is a parameter of the estimator itself."
        return describe_unknown(name, known, FOR_FIT, what="fit has no argument")

    def set_params(self, **params: Any) -> Self:
        """Set parameters, see scikit-learn; one that there is not is refused as by the class."""
        for name in params:
            if name.partition("__")[0] not in self._get_param_names():
                raise ValueError(describe_unknown(name, self._get_param_names()))
        return super().set_params(**params)

    def fit_data(self, data: Data) -> "BayesianSymbolicRegressor":
        """Search for equations that explain measurements which are checked already.

        What `fit` does with a table, once its columns are known to be what they must be.
        """
        self.n_features_in_ = len(data.measured)
        self.feature_names_in_ = np.array(data.measured, dtype=object)
        return self._fit(data)

    def _fit(self, data: Data) -> "BayesianSymbolicRegressor":
        search, settings = self._search(data), self._settings()
        is_open = settings.noise == AUTO_NOISE
        normal = replace(settings, noise=GAUSSIAN.name) if is_open else settings
        # Equal rows as one: the search depends on the observations, not on how they are written.
        merged = data.merge_equal()
        problem = Problem.of(merged, normal, search.max_parameters)
        if isinstance(self.guesses, str):
            raise ValueError(f"guesses must be a list of equations, got {self.guesses!r}.")
        seeds = [
            guess if isinstance(guess, Equation) else Equation(guess, data.names)
            for guess in self.guesses or ()
        ]
        check_guesses(seeds, data, units_of(search, data))
        self._check_how()
        if not isinstance(self.callbacks, Sequence) or not all(map(callable, self.callbacks)):
            raise ValueError(f"callbacks must be a list of functions, got {self.callbacks!r}.")
        after: Evolution | None = getattr(self, "_found", None) if self.warm_start else None
        if self.warm_start and after is None and hasattr(self, "result_"):
            warn([_BEGINS_ANEW])
        random_seed = self._random_seed() if after is None else self._fitted().random_seed
        found: Evolution | None = None
        if is_open and after is None:
            settled = self._settle_noise(problem, search, normal, seeds, random_seed)
            settings, search = settled.settings, settled.search
            found = settled.first if settled.is_over else None
            if settled.is_normal:
                after = settled.first
            else:
                problem, seeds = settled.problem, [*seeds, *settled.laws]
        elif is_open:
            # What goes on has the noise that was chosen for it.
            settings = replace(settings, noise=self._fitted().settings.noise)
            problem = Problem.of(merged, settings, search.max_parameters)
        found = found or run_evolution(
            problem,
            search=search,
            settings=settings,
            seeds=seeds,
            random_seed=random_seed,
            n_jobs=self.n_jobs,
            callbacks=self.callbacks,
            checkpoint=self.checkpoint,
            after=after,
            verbose=self._shown,
        )
        self._found = found if self.warm_start else None
        self.result_ = from_evolution(
            found,
            problem if merged is data else Problem.of(data, settings, search.max_parameters),
            search=search if after is None else further(search, after),
            settings=settings,
            random_seed=random_seed,
        )
        if is_open:  # a search that goes on has the table of the first
            self.result_ = replace(self.result_, noise_table=self.noise_table_)
        with time_limit(found.limit):
            warn(self.warnings_)
        return self

    def _settle_noise(
        self,
        problem: Problem,
        search: Search,
        settings: Settings,
        seeds: Sequence[Equation],
        random_seed: int,
    ) -> Settled:
        """Search under normal noise first, and see which noise suits what that finds."""
        if self.checkpoint is not None:
            raise ValueError(
                'noise="auto" does not go with checkpoint: a search that goes on has one noise. '
                "Find it first, in noise_table_, and name it; or use warm_start=True."
            )
        if problem.data.y_err is not None or problem.data.X_err is not None:
            given = "y_err" if problem.data.y_err is not None else "X_err"
            raise ValueError(
                f'noise="auto" asks how large errors are and how they are spread, and {given} says '
                f"it. Leave {given} out if there are outliers; otherwise leave noise out."
            )
        if search.fitness != "evidence":
            raise ValueError(
                f'noise="auto" is chosen by evidence, got fitness={search.fitness!r}. Name a noise.'
            )
        settled = settle_noise(
            problem,
            search=search,
            settings=settings,
            random_seed=random_seed,
            seeds=seeds,
            n_jobs=self.n_jobs,
            callbacks=self.callbacks,
            verbose=self._shown,
        )
        columns = [field.name for field in fields(Choice)]
        self.noise_table_ = pd.DataFrame([vars(row) for row in settled.table], columns=columns)
        return settled

    def settle_noise(self, data: Data) -> dict[str, Any]:
        """Choose the noise of ``noise="auto"`` and return the parameters with which to go on.

        What `fit` does by itself, for somebody who keeps a checkpoint: under ``noise``, which is
        then a name, from ``guesses``, for the rest of ``max_time``. The table is `noise_table_`.
        """
        search, settings = self._search(data), self._settings()
        normal = replace(settings, noise=GAUSSIAN.name)
        problem = Problem.of(data.merge_equal(), normal, search.max_parameters)
        seeds = [Equation(str(guess), data.names) for guess in self.guesses or ()]
        settled = self._settle_noise(problem, search, normal, seeds, self._random_seed())
        if settled.first.stopped == "interrupted":
            raise KeyboardInterrupt  # nothing is kept yet that a search could go on from
        guesses = (*(self.guesses or ()), *(str(law) for law in settled.laws))
        return {
            "noise": settled.settings.noise,
            "guesses": guesses,
            "max_time": settled.search.max_time,
        }

    def _validate(self, X: Any, y: Any, **measured: Any) -> Data:
        """Check X and y as scikit-learn does, and then as every other door of pmsr does."""
        _check_readable(X, y)
        try:
            # Missing values are left to make_data, which says where they are.
            values, target = validate_data(
                self,
                X,
                y,
                dtype=np.float64,
                y_numeric=True,
                ensure_min_samples=2,
                ensure_all_finite=False,
            )
        except (ValueError, TypeError) as error:
            unclear = hasattr(X, "columns") or str(error).startswith("could not convert")
            if unclear and y is not None:
                make_data(X, y)  # names the column that cannot be used
            raise
        check_order(X, y)
        names = getattr(self, "feature_names_in_", None)
        tables = (one for one in (y, X) if isinstance(one, pd.Series | pd.DataFrame))
        index = getattr(next(tables, None), "index", None)
        return make_data(
            values,
            pd.Series(target, name=_name_of(y), index=index),
            names=None if names is None else [str(name) for name in names],
            constants=read_constants(self.constants),
            **measured,
        )

    def _search(self, data: Data | None = None) -> Search:
        """Return the options of the search; units that stand in names need the data."""
        chosen = {name: getattr(self, name) for name in SEARCH_OPTIONS}
        chosen["operators"] = expand_sets(self.operators)
        names = () if data is None else (*data.names, data.target)
        is_open = data is None and self.units == AUTO
        chosen["units"] = None if is_open else resolve_units(self.units, names)
        if self.search is None:
            return Search(**chosen)
        if not isinstance(self.search, Search):
            raise ValueError(
                f"search must be a Search object, got {type(self.search).__name__}. "
                "Use pmsr.Search(n_finalists=50)."
            )
        _check_set_once("search", self.search, Search(), chosen)
        return replace(self.search, **chosen)

    def _settings(self) -> Settings:
        chosen = {name: getattr(self, name) for name in SETTINGS_OPTIONS}
        if self.parameter_prior is not None:
            chosen["parameter_prior"] = self.parameter_prior
        settings = check_settings(self.settings, QUICK)
        _check_set_once("settings", settings, QUICK, chosen)
        return replace(settings, **chosen)

    def _check_how(self) -> None:
        """Check what a search does not know of."""
        if not isinstance(self.warm_start, bool | np.bool_):
            raise ValueError(f"warm_start must be True or False, got {self.warm_start!r}.")
        if not callable(self.verbose) and not isinstance(self.verbose, bool | int | np.bool_):
            raise ValueError(
                "verbose must be True, False or a function of a line of text, got "
                f"{self.verbose!r}."
            )
        if self.checkpoint is not None and not isinstance(self.checkpoint, str | Path):
            raise ValueError(
                f'checkpoint must be the name of a file, such as "run.npz", got '
                f"{self.checkpoint!r}."
            )

    @property
    def _shown(self) -> bool | Callable[[str], None]:
        """How progress is shown, as a search takes it."""
        return self.verbose if callable(self.verbose) else bool(self.verbose)

    def _random_seed(self) -> int:
        state = self.random_state
        if state is None:
            if self.checkpoint is not None:
                return 0
            return int(np.random.default_rng().integers(2**63))
        if isinstance(state, np.random.RandomState):
            return int(state.randint(2**31 - 1))
        if isinstance(state, np.random.Generator):
            return int(state.integers(2**63))
        if isinstance(state, bool) or not isinstance(state, int | np.integer) or state < 0:
            raise ValueError(
                "random_state must be an integer of at least 0, a NumPy generator or None, "
                f"got {state!r}."
            )
        return int(state)

    @property
    def equations_(self) -> pd.DataFrame:
        """Every distinct equation that is reported, ranked."""
        return self._fitted().table

    @property
    def best_(self) -> FittedEquation:
        """The chosen equation."""
        return self._fitted().best

    @property
    def pareto_front_(self) -> pd.DataFrame:
        """The equations that no other beats in both score and complexity."""
        return self._fitted().pareto_front

    @property
    def history_(self) -> pd.DataFrame:
        """One row for each generation."""
        return pd.DataFrame(list(self._fitted().history))

    @property
    def warnings_(self) -> list[str]:
        """Reasons to doubt the result, in words."""
        return self._fitted().warnings

    def _fitted(self) -> Result:
        check_is_fitted(self, "result_")
        result: Result = self.result_
        return result

    def predict(
        self,
        X: Any,
        return_std: bool = False,
        average: bool = False,
        *,
        index: int | str | None = None,
        groups: Any = None,
    ) -> Any:
        """Predict new observations.

        Parameters
        ----------
        X
            Values of the variables, of shape (n, d).
        return_std
            Whether to return the standard deviation too.
        average
            Whether to average over all equations, weighted by their probabilities, instead of
            using ``best_``.
        index
            Another equation to predict with: its row in ``equations_``, or its text.
        groups
            The group of each row, or one for all, if `fit` was given groups.

        Returns
        -------
        ndarray, or tuple of two
            The posterior mean, of shape (n,), and the standard deviation of a new observation.
            Both are NaN where the equation is not finite for half of the draws or more.
        """
        if not isinstance(return_std, bool | np.bool_):
            raise ValueError(
                f"return_std must be True or False, got {return_std!r}. Another equation predicts "
                "with predict(X, index=3)."
            )
        result = self._predictor(average, index)
        return result.predict(
            self._points(X), return_std=return_std, average=average, groups=groups
        )

    def predict_interval(
        self,
        X: Any,
        level: float = 0.95,
        kind: Kind = "prediction",
        average: bool = False,
        *,
        index: int | str | None = None,
        groups: Any = None,
    ) -> Any:
        """Return where new observations, or the curve itself, lie.

        Parameters
        ----------
        X, average, index, groups
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
        result = self._predictor(average, index)
        return result.predict_interval(
            self._points(X), level=level, kind=kind, average=average, groups=groups
        )

    def score(self, X: Any, y: Any, sample_weight: Any = None, *, groups: Any = None) -> float:
        """Return the coefficient of determination of predictions.

        Parameters
        ----------
        X, groups
            As in `predict`.
        y
            What was measured, of shape (n,).
        sample_weight
            How often each row was observed.
        """
        found = self.predict(X, groups=groups)
        return float(r2_score(y, found, sample_weight=sample_weight))

    def _predictor(self, average: bool, index: int | str | None) -> Result:
        """Return the result with the equation that is to predict as its best."""
        result = self._fitted()
        if index is None:
            return result
        if average:
            raise ValueError(f"Either average=True or index={index!r}: an average is of all.")
        return result.select(index)

    def _points(self, X: Any) -> Any:
        _check_readable(X)
        return validate_data(self, X, reset=False, dtype=np.float64)

    def select(self, which: int | str) -> "BayesianSymbolicRegressor":
        """Choose another equation as ``best_``, which predicts from now on.

        Parameters
        ----------
        which
            Its row in ``equations_``, or the equation in any spelling.
        """
        self.result_ = self._fitted().select(which)
        return self

    def suggest(
        self, n: int = 3, bounds: Mapping[str, tuple[float, float]] | None = None
    ) -> pd.DataFrame:
        """Return where to measure next: inputs at which the leading families disagree most.

        Parameters
        ----------
        n
            How many places.
        bounds
            Between which values to look, by the names of variables; by default the data's.

        Returns
        -------
        DataFrame
            As :meth:`pmsr.result.result.Result.suggest`.
        """
        return self._fitted().suggest(n, bounds)

    def save(self, path: str | Path, *, others: bool = False) -> None:
        """Save the fitted estimator to a folder; :func:`pmsr.load` reads it.

        The folder holds ``result.json`` and an npz file with the data and posteriors; nothing is
        pickled. A ``random_state`` that is no integer, and ``callbacks``, are not saved.

        Parameters
        ----------
        path
            The folder, made if need be. An older result in it is replaced.
        others
            Whether the folder may hold other files at first.
        """
        self._fitted().save(
            path,
            {
                "estimator": {
                    "parameters": parameters_to_json(self.get_params(deep=False)),
                    "named": hasattr(self, "feature_names_in_"),
                }
            },
            others=others,
        )

    def latex(self, *, fitted: bool = False) -> str:
        """Return LaTeX of ``best_``, without dollar signs: target = equation.

        Parameters
        ----------
        fitted
            Whether rounded numbers, those of the best fit, take the place of the parameters.
        """
        return self._fitted().latex(fitted=fitted)

    def report(self, path: str | Path, *, level: float = 0.95, title: str = "") -> Path:
        """Write the result as one HTML page, for colleagues.

        Parameters
        ----------
        path
            The file; an older one is replaced.
        level
            Probability of the intervals.
        title
            Heading of the page.

        Returns
        -------
        Path
            The file.
        """
        # Matplotlib is not loaded before it is needed.
        from pmsr.report.content import gather_content
        from pmsr.report.page import write_report

        content = gather_content(self._fitted(), level=check_level(level), title=title)
        return write_report(path, content)

    def __sklearn_tags__(self) -> Any:
        """Tell scikit-learn's checks that a search with a tiny budget may predict poorly."""
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True
        return tags

    def _repr_html_(self) -> Any:
        if hasattr(self, "result_"):
            return self.result_._repr_html_()
        # Any: a method or a property, depending on scikit-learn's version.
        drawn: Any = super()._repr_html_
        return drawn() if callable(drawn) else drawn

    def _repr_mimebundle_(self, **options: Any) -> Any:
        if not hasattr(self, "result_"):
            return super()._repr_mimebundle_(**options)
        result = self.result_
        return {
            "text/plain": f"{self!r}\n{result.best}",
            "text/html": result._repr_html_(),
            "text/latex": result._repr_latex_(),
        }


def load(path: str | Path) -> BayesianSymbolicRegressor | Result:
    """Load a fitted estimator, or a comparison, that was saved to a folder.

    Parameters
    ----------
    path
        What :meth:`BayesianSymbolicRegressor.save` or :meth:`pmsr.result.result.Result.save` wrote.

    Returns
    -------
    BayesianSymbolicRegressor or Result
        What was saved: a comparison is a result. Predictions are those of the one that was saved,
        to the last bit in the same environment.

    Raises
    ------
    ValueError
        If the folder is not a saved result, is damaged, or was tampered with. Nothing in it is
        executed.
    """
    header, arrays = read_folder(path)
    result = decode_result(path, header, arrays)
    if result.search is None:
        return result
    try:
        about = header.get("estimator") or {"parameters": {}, "named": True}
        estimator = BayesianSymbolicRegressor(**parameters_from_json(about["parameters"]))
        # What `fit` would refuse is refused now.
        search = estimator._search(result.data)
        units_of(search, result.data)
        settings = estimator._settings()
        if settings.noise == AUTO_NOISE:
            settings = replace(settings, noise=result.settings.noise)
        Problem.of(result.data, settings, search.max_parameters)
        named = about["named"]
        for value, kinds in (
            (named, bool),
            (estimator.verbose, bool | int),
            (estimator.n_jobs, int | None),
            (estimator.checkpoint, str | None),
            (estimator.warm_start, bool),
        ):
            if not isinstance(value, kinds):
                raise ValueError(f"{value!r} is no parameter of an estimator")
    except BROKEN as error:
        raise damaged(path, error) from None
    estimator.result_ = result
    if result.noise_table is not None:
        estimator.noise_table_ = result.noise_table
    estimator.n_features_in_ = len(result.data.measured)
    if named:
        estimator.feature_names_in_ = np.array(result.data.measured, dtype=object)
    return estimator


def check_guesses(guesses: Sequence[Equation], data: Data, units: Units) -> None:
    """Refuse a guess that contradicts the units that are known: a search would drop it."""
    for guess in guesses if units.are_known else ():
        signs = column_signs(data.select(guess.variables).X)
        own = units.select(guess.variables)
        if not is_possible(guess.program, own, signs=signs):
            raise ValueError(f"The guess {describe_impossible(guess.text, own)}")


def _check_set_once(
    what: str, options: Search | Settings, default: Search | Settings, chosen: dict[str, Any]
) -> None:
    """Refuse an option that is set both in the estimator and in one of its objects."""
    for field in fields(options):
        value = getattr(options, field.name)
        if field.name not in chosen or value == getattr(default, field.name):
            continue
        if value != chosen[field.name]:
            raise ValueError(
                f"{field.name} is {value!r} in {what} and {chosen[field.name]!r} in the estimator. "
                f"Set it in the estimator only: BayesianSymbolicRegressor({field.name}={value!r})."
            )


def _check_readable(X: Any, y: Any = None) -> None:
    """Refuse what scikit-learn would take for other numbers, or not name: as `make_data` does.

    It takes dates for nanoseconds since 1970, and what is masked for measured.
    """
    check_container(X)
    check_container(y, "y")
    if any(_has_times(one) or np.ma.is_masked(one) for one in (X, y)):
        make_data(X, np.arange(len(X), dtype=np.float64) if y is None else y)


def _has_times(values: Any) -> bool:
    columns = getattr(values, "columns", None)
    parts = [values] if columns is None else [values[name] for name in columns]
    known = (part for part in parts if isinstance(part, np.ndarray) or hasattr(part, "to_numpy"))
    return any(is_time(part) for part in known)


def _name_of(y: Any) -> str | None:
    """Return the name of a series, or of a table's only column."""
    columns = getattr(y, "columns", None)
    name = columns[0] if columns is not None and len(columns) == 1 else getattr(y, "name", None)
    return None if name is None or name == "" else str(name)
