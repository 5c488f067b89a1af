"""Frozen options of the evidence, checked once when they are made."""

import difflib
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from numbers import Integral, Real
from typing import Any, Literal, TypeAlias, TypeGuard

import numpy as np
from numpy.typing import NDArray

RandomSeed: TypeAlias = int | np.random.Generator | None
"""What public functions take as ``random_seed``; None is different every time."""

# Below this many particles an effective sample size of 100, which the sampler holds itself to, is
# out of reach.
_MIN_PARTICLES = 100
# What is far beyond use and would only fill the memory. A column of so many draws takes 80 MB, and
# log q is then known to less than a thousandth of a nat.
_MAX_DRAWS = 10_000_000
# Each takes as long as the first; so many make the standard error a hundredth of the first's.
_MAX_REPLICATES = 10_000
# Starts go down together: with 1000 observations their residuals take 80 MB.
_MAX_MULTISTARTS = 10_000
# Targets go up to 1e100; the square of the region's radius, some ten times the largest sigma, must
# be a number.
_MAX_SIGMA = 1e30
# An equation has at most 10,000 characters, and so nodes.
_MAX_COMPLEXITY = 10_000
_MAX_ROWS = 100_000_000  # of all graphs of a population: 1.2 GB
# Each has a population and a memory of its own, of up to 40 MB.
_MAX_ISLANDS = 1000
_MAX_ENUMERATED = 10_000_000  # laws of 1 kB
_OPTIONAL = ("max_evaluations", "max_units", "patience", "max_parameters", "refresh")
_MAX_COUNT = 2**53  # what floats, and so JSON in other languages, can count


@dataclass(frozen=True, kw_only=True)
class Settings:
    r"""Options of :func:`pmsr.compute_evidence` and of everything built on it.

    Parameters
    ----------
    gamma
        Exponent :math:`\gamma` of the training likelihood in
        :math:`\log q = \log Z(1) - \log Z(\gamma)`, Eq. (5): a number in (0, 1), ``"paper"`` for
        :math:`1/\sqrt{N}`, or ``"ohagan"`` for the robust choice of [1]_. It must be the same for
        all equations that are compared, see :meth:`resolve_gamma`.
    parameter_prior
        Where theta is flat: ``"invariant"``, on the surface of the equation's predictions, so that
        log q belongs to the law and not to the way in which it is written; or ``"flat"``, in the
        parameters themselves, as in the paper. For equations linear in theta both are the same.
    sigma_prior
        Prior of the noise level :math:`\sigma` between its bounds: ``"flat"``, the paper's, or
        ``"log-flat"``, :math:`1/\sigma`.
    sigma_max, sigma_min
        Bounds of :math:`\sigma`, in multiples of the standard deviation of the target, see
        :meth:`sigma_bounds`.
    n_draws
        Draws from the proposal, weighted to the likelihood at :math:`\gamma`.
    n_particles
        Particles that go on from :math:`\gamma` to 1; at most ``n_draws``.
    n_multistarts
        Starting points of the search for the minima of the sum of squares.
    n_replicates
        Independent repetitions whose results are averaged.
    thorough
        Whether to draw more, and to build a bridge of distributions, where the first draws do not
        cover the target well. The search does without, and says so with a larger ``log_q_se``.
    noise
        Name of the distribution of the noise, a row of `pmsr.evidence.noise.NOISES`:
        ``"gaussian"``, ``"student"``, ``"proportional"``, ``"lognormal"`` or ``"poisson"``.
    extra_noise
        Whether a noise of unknown size adds in quadrature to the errors that are known; without
        known errors there is nothing to add to.
    shared_sigma
        Whether the groups of the data have noise of one size, or each has its own. Without groups
        there is one size in any case.
    positive
        Whether parameters keep the sign that they have at a law's best fit: the prior has nothing
        on the other side of zero. ``c0 - c1*x`` with positive parameters and ``c0 + c1*x`` with a
        negative one are the same law. Parameters with priors of their own have these instead.

    References
    ----------
    .. [1] A. O'Hagan, "Fractional Bayes Factors for Model Comparison", Journal of the Royal
       Statistical Society B 57 (1995), doi:10.1111/j.2517-6161.1995.tb02017.x

    Examples
    --------
    >>> Settings(gamma=0.5).resolve_gamma(n_points=20, n_parameters=2)
    0.5
    >>> Settings(gamma=2)
    Traceback (most recent call last):
        ...
    ValueError: gamma must be in (0, 1), got 2. Use "paper" for 1/sqrt(n).
    """

    gamma: float | Literal["paper", "ohagan"] = "paper"
    parameter_prior: Literal["invariant", "flat"] = "invariant"
    sigma_prior: Literal["flat", "log-flat"] = "flat"
    sigma_max: float = 2.0
    sigma_min: float = 1e-6
    n_draws: int = 2000
    n_particles: int = 400
    n_multistarts: int = 8
    n_replicates: int = 1
    thorough: bool = True
    noise: str = "gaussian"
    extra_noise: bool = False
    shared_sigma: bool = False
    positive: bool = False

    def __post_init__(self) -> None:
        for flag in ("thorough", "extra_noise", "shared_sigma", "positive"):
            if not isinstance(getattr(self, flag), bool):
                raise ValueError(f"{flag} must be True or False, got {getattr(self, flag)!r}.")
        _check_choice("parameter_prior", self.parameter_prior, ("invariant", "flat"))
        _check_choice("sigma_prior", self.sigma_prior, ("flat", "log-flat"))
        noise: object = self.noise
        if not isinstance(noise, str):
            raise ValueError(f'noise must be a name, got {_shortened(noise)}. Use "gaussian".')
        self._set("gamma", _check_gamma(self.gamma))
        for name in ("sigma_max", "sigma_min"):
            self._set(name, _check_sigma(name, getattr(self, name)))
        if self.sigma_min >= self.sigma_max:
            raise ValueError(
                f"sigma_min must be below sigma_max, got {self.sigma_min!r} and "
                f"{self.sigma_max!r}. Both are multiples of the standard deviation of the target."
            )
        for name, least, most in (
            ("n_draws", _MIN_PARTICLES, _MAX_DRAWS),
            ("n_particles", _MIN_PARTICLES, _MAX_DRAWS),
            ("n_multistarts", 1, _MAX_MULTISTARTS),
            ("n_replicates", 1, _MAX_REPLICATES),
        ):
            self._set(name, _check_count(name, getattr(self, name), least, most))
        if self.n_particles > self.n_draws:
            raise ValueError(
                f"n_particles must be at most n_draws, got {self.n_particles} and {self.n_draws}. "
                "The particles are chosen among the draws: raise n_draws."
            )

    @property
    def sigma_power(self) -> int:
        r"""Exponent k of the prior :math:`\sigma^{-k}`: 0 if flat, 1 if log-flat."""
        return 0 if self.sigma_prior == "flat" else 1

    def resolve_gamma(
        self, n_points: float, n_parameters: int, n_training: int | None = None
    ) -> float:
        r"""Return the exponent :math:`\gamma` as a number.

        Parameters
        ----------
        n_points
            Number of observations N, at least 2.
        n_parameters
            Number of parameters p of the largest equation that is compared. Only ``"ohagan"``
            depends on it.
        n_training
            The minimal training sample, if it is not that of normal noise of unknown size.

        Returns
        -------
        float
            :math:`1/\sqrt{N}` for ``"paper"`` (Section 2.2), :math:`\max(m, \sqrt{N})/N` for
            ``"ohagan"``, where m is the minimal training sample.

        Notes
        -----
        The minimal training sample is the least number m of observations whose likelihood, under
        unbounded priors, can be normalised. For an equation linear in its p parameters, once these
        are integrated out, what remains is

        .. math:: \int_0^\infty \sigma^{p - m - k} \exp(-\mathrm{SSE} / 2\sigma^2) \, d\sigma

        which converges at infinity if :math:`m > p + 1 - k`, and at zero if SSE > 0, that is if
        :math:`m > p`. So m = p + 2 if :math:`\sigma` is flat (k = 0), p + 1 if it is log-flat
        (k = 1).

        Examples
        --------
        >>> Settings().resolve_gamma(n_points=25, n_parameters=3)
        0.2
        >>> Settings(gamma="ohagan").resolve_gamma(n_points=10, n_parameters=3)
        0.5
        """
        if n_points < 2:
            raise ValueError(
                f"The evidence needs at least two observations, got {n_points}. With one, gamma "
                "is 1 and every equation has the same log q."
            )
        if isinstance(self.gamma, float):
            return self.gamma
        if self.gamma == "paper":
            return 1.0 / math.sqrt(n_points)
        if n_training is None:
            n_training = n_parameters + 2 - self.sigma_power
        if n_training >= n_points:
            raise ValueError(
                f'gamma="ohagan" needs more observations than the minimal training sample, '
                f"{n_training} for {n_parameters} parameters, got {n_points}. "
                'Use "paper" or compare smaller equations.'
            )
        return max(n_training, math.sqrt(n_points)) / n_points

    def sigma_bounds(
        self, y: NDArray[np.float64], counts: NDArray[np.float64] | None = None
    ) -> tuple[float, float]:
        r"""Return the least and the largest noise level :math:`\sigma`, in units of ``y``.

        Parameters
        ----------
        y
            Target values, shape (N,), not all equal.
        counts
            How often each was observed; None for once.

        Returns
        -------
        tuple of float
            ``sigma_min`` and ``sigma_max`` times the standard deviation of ``y`` (ddof = 0). The
            first is at least 1e-12 of the largest :math:`|y|`: rounding alone is as large as
            that.

        Notes
        -----
        The bounds keep :math:`Z(\gamma)` finite for equations with :math:`p \ge \sqrt{N} - 1`
        parameters, and give noiseless data a finite evidence.

        Examples
        --------
        >>> Settings().sigma_bounds(np.array([1.0, 3.0]))
        (1e-06, 2.0)
        """
        magnitude = float(np.max(np.abs(y)))
        # Squares of 1e-200 or 1e200 leave the range of floating-point numbers.
        std = magnitude * _deviation(y / magnitude, counts)
        lower = max(self.sigma_min * std, 1e-12 * magnitude)
        upper = self.sigma_max * std
        if lower >= upper:
            raise ValueError(
                f"The largest noise level, sigma_max * std(y) = {upper:.3g}, is within the "
                f"rounding errors of the target, {lower:.3g}. Raise sigma_max, or subtract the "
                "mean from the target."
            )
        return lower, upper

    def for_finalists(self) -> "Settings":
        """Return the options with which what a search has found is weighed again, and sampled.

        Examples
        --------
        >>> Settings(n_draws=1000, thorough=False).for_finalists().n_draws
        4000
        """
        return replace(
            self,
            n_draws=max(self.n_draws, FINALIST.n_draws // 4),
            n_multistarts=max(self.n_multistarts, FINALIST.n_multistarts),
            n_replicates=max(self.n_replicates, 2),
            thorough=True,
        )

    def _set(self, name: str, value: float | int | str) -> None:
        object.__setattr__(self, name, value)


def _check_choice(name: str, value: object, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise ValueError(f"Unknown {name} {value!r}. Available: {', '.join(allowed)}.")


def _is_number(value: object) -> TypeGuard[Real]:
    """Tell whether this is a number that a float can hold: not True, not 10**400."""
    if isinstance(value, bool) or not isinstance(value, Real):
        return False
    try:
        float(value)
    except OverflowError:
        return False
    return True


def _check_names(option: str, value: object, what: str) -> tuple[str, ...]:
    """Return names as a tuple; one of them alone is no list."""
    if isinstance(value, str) or not isinstance(value, Iterable):
        example = value if isinstance(value, str) else "H"
        raise ValueError(
            f"{option} must be a list of names of {what}, got {_shortened(value)}. "
            f"Use [{example!r}]."
        )
    names = tuple(value)
    if not all(isinstance(name, str) for name in names):
        raise ValueError(f"{option} must hold names of {what}, got {_shortened(names)}.")
    return names


def _check_forbidden(value: object) -> dict[str, tuple[str, ...]]:
    if value is None:
        return {}
    if not isinstance(value, Mapping) or not all(isinstance(name, str) for name in value):
        raise ValueError(
            "forbid must map the name of an operator to what may not stand inside it, such as "
            f'{{"exp": ["exp", "sin"]}}, got {_shortened(value)}.'
        )
    return {
        name: _check_names(f"forbid[{name!r}]", listed, "operators")
        for name, listed in value.items()
    }


def _check_uses(value: object) -> dict[str, int]:
    if value is None:
        return {}
    if not isinstance(value, Mapping) or not all(isinstance(name, str) for name in value):
        raise ValueError(
            "max_uses must map the name of an operator to how often it may stand in a law, such "
            f'as {{"sin": 1}}, got {_shortened(value)}.'
        )
    for name, most in value.items():
        if isinstance(most, bool) or not isinstance(most, Integral) or most < 0:
            raise ValueError(
                f"max_uses[{name!r}] must be an integer of at least 0, got {_shortened(most)}."
            )
    return {name: int(most) for name, most in value.items()}


def _check_gamma(gamma: object) -> float | str:
    if isinstance(gamma, str):
        if gamma not in ("paper", "ohagan"):
            raise ValueError(
                f"Unknown gamma {gamma!r}. Available: paper, ohagan, or a number in (0, 1)."
            )
        return gamma
    if not _is_number(gamma) or not 0 < float(gamma) < 1:
        got = _shortened(gamma)
        raise ValueError(f'gamma must be in (0, 1), got {got}. Use "paper" for 1/sqrt(n).')
    return float(gamma)


def _check_sigma(name: str, value: object) -> float:
    if not _is_number(value) or not 0 < float(value) <= _MAX_SIGMA:
        is_large = _is_number(value) and _MAX_SIGMA < float(value) < math.inf
        limit = f" of at most {_MAX_SIGMA:g}" if is_large else ""
        raise ValueError(
            f"{name} must be a positive number{limit}, got {_shortened(value)}. It is a multiple "
            "of the standard deviation of the target; the default is "
            f"{getattr(Settings, name)!r}."
        )
    return float(value)


def _check_count(name: str, value: object, least: int, most: int = _MAX_COUNT) -> int:
    whole = None if isinstance(value, bool) or not isinstance(value, Integral) else int(value)
    if whole is None or not least <= whole <= most:
        default = getattr(Settings, name) if hasattr(Settings, name) else getattr(Search, name)
        limit = f" and at most {most:,}" if whole is not None and whole > most else ""
        raise ValueError(
            f"{name} must be an integer of at least {least}{limit}, got {_shortened(value)}. "
            f"The default is {default}."
        )
    return whole


def _shortened(value: object) -> str:
    """Write a value for an error; Python itself refuses to write integers of thousands of digits.

    Examples
    --------
    >>> _shortened(7), _shortened(10**5000)
    ('7', 'an integer of 16610 bits')
    """
    if isinstance(value, int) and value.bit_length() > 256:
        return f"an integer of {value.bit_length()} bits"
    text = repr(value)
    return text if len(text) <= 80 else text[:79] + "…"


def check_settings(
    settings: object, default: Settings, options: Mapping[str, Any] | None = None
) -> Settings:
    """Return a user's options, or the default where there are none.

    Parameters
    ----------
    settings
        All of them, or None.
    default
        What takes the place of None.
    options
        Single ones by name, which are changed in these.

    Examples
    --------
    >>> check_settings({"gamma": 0.5}, Settings())
    Traceback (most recent call last):
        ...
    ValueError: settings must be a Settings object, got dict. Use pmsr.Settings(gamma=0.5).
    >>> check_settings(None, FINALIST, {"noise": "student"}) == replace(FINALIST, noise="student")
    True
    >>> check_settings(None, FINALIST, {"yerr": 0.1})
    Traceback (most recent call last):
        ...
    TypeError: There is no argument 'yerr'. Did you mean y_err=?
    """
    if options:
        names = [option.name for option in fields(Settings)]
        for name in options:
            if name not in names:
                raise TypeError(_describe_argument(name, names))
        return replace(check_settings(settings, default), **options)
    if settings is None:
        return default
    if not isinstance(settings, Settings):
        example = "gamma=0.5"
        if isinstance(settings, dict):
            example = ", ".join(f"{name}={value!r}" for name, value in settings.items())
        raise ValueError(
            f"settings must be a Settings object, got {type(settings).__name__}. "
            f"Use pmsr.Settings({example})."
        )
    return settings


def _describe_argument(name: str, options: Sequence[str]) -> str:
    """Say what an argument that there is not is called."""
    close = difflib.get_close_matches(name, [*MEASURED, *options], n=1)
    known = f"Did you mean {close[0]}=?" if close else f"Options: {', '.join(options)}."
    return f"There is no argument {name!r}. {_OTHER_WORDS.get(name, known)}"


MEASURED = ("y_err", "X_err", "groups", "sample_weight", "constants", "priors")
"""What functions take about measurements, besides X and y and the options."""

_OTHER_WORDS = {
    "weights": "Use sample_weight= for how often a row was observed, and y_err= for known errors.",
    "sigma": "Use y_err= for known errors.",
}

ADDED: dict[str, object] = {"parameter_prior": "flat", "extra_noise": False}
"""Options that are younger than saved files, with the value that says what was done before."""

ADDED_TO_SEARCH: dict[str, object] = {
    "law_prior": "uniform",
    "interval": [],
    "units": None,
    "evidence": "smc",
    "n_islands": 1,
    "n_enumerated": 0,
    "forbid": {},
    "max_uses": {},
    "require": [],
    "exclude": [],
    "screen_columns": False,
}
"""The same for options of a search, as JSON has them."""

LAW_PRIORS = ("description", "uniform")

FINALIST = Settings(n_draws=16_000, n_particles=1000, n_replicates=4)
"""Settings for the few equations that are ranked and shown: more draws, four repetitions."""


def _deviation(y: NDArray[np.float64], counts: NDArray[np.float64] | None) -> float:
    if counts is None:
        return float(np.std(y))
    mean = np.average(y, weights=counts)
    return float(np.sqrt(np.average((y - mean) ** 2, weights=counts)))


QUICK = Settings(n_draws=1000, n_multistarts=2, thorough=False)
"""Settings for the many equations that a search sees and forgets."""


@dataclass(frozen=True, kw_only=True)
class Search:
    r"""Options of the search for equations, Section 2.1 of the paper.

    Parameters
    ----------
    operators
        Names of the operators that equations may use.
    population_size
        Number of equations that evolve on each island; even.
    generations, max_time, max_evaluations
        Budget: generations, seconds, and distinct equations weighed, whichever ends first. The
        seconds include the finalists and the posterior of the winner.
    max_units
        Stop after so many units: levels of the enumeration, the first population, and the
        generations between two exchanges. A result says how many it did, and so many give it again,
        bit for bit, whatever had ended it.
    patience
        Stop after this many generations without a better equation; None for never.
    max_complexity
        Largest number of nodes of an equation.
    max_parameters
        Largest number of parameters; None for no limit.
    variable_exponents
        Whether a variable may stand in an exponent, as in ``c0**x``.
    nested_functions
        Whether sin, cos, tan and tanh may stand inside one another, as in ``sin(sin(x))``.
    share_parameters
        Whether a parameter may occur in several places, as in ``c0*(c0 + sin(x))`` and in the
        paper. Such coincidences save a parameter and so gain evidence by chance.
    fitness
        ``"evidence"``: log q, with probabilistic crowding (Algorithm 1); ``"rmse"``: the
        conventional search, with deterministic crowding.
    p_crossover, p_mutation
        Probabilities that a pair is crossed, and that a child is mutated.
    refresh
        Every so many generations repeated equations make room for random ones, and the best few
        are replaced by the best of their neighbours, which differ in one node, while that
        improves them; None for never.
    n_finalists
        How many of the best equations are weighed again before they are ranked.
    evidence
        ``"screened"``: laws are screened by the log q of a linear law with the same error and rank,
        and contenders weighed by Sequential Monte Carlo; ``"smc"``: every candidate is weighed, as
        in the paper. With flat priors on the parameters there is no screening.
    n_islands
        Number of populations, of `population_size` each, that evolve on their own and exchange
        their best after every refresh. The result does not depend on who computes them.
    n_enumerated
        Before evolution, all laws are screened level by level, smallest first, as long as they are
        no more than this; 0 for none. Then the laws g, c0*g and c0 + c1*g for all functions g of
        the variables alone, up to two and a half times as many. Only where laws are screened.
    law_prior
        How probable laws are before any data are seen: ``"description"``, the shorter and the less
        dependent on units the more probable; ``"uniform"``, all alike, as in the paper; a
        :class:`pmsr.LawPrior` with costs of your own; or a function of an equation that
        returns the log of its probability, but for a constant.
    interval
        Names of columns whose zero is arbitrary, such as a date or degrees Celsius: laws that
        depend on it are less probable.
    units
        Units of all columns and of the target by name, such as ``{"H": "mm", "D": "mm"}``: a law
        that does not survive a change of a base unit is then not bred. None if they are not known.
    forbid
        Operators that may not stand inside another, at any depth, by its name:
        ``{"exp": ["exp", "sin"]}``. ``"pow"`` is every power, also by a whole number.
    max_uses
        How often operators may stand in a law, by name: ``{"sin": 1}``. Counted is what is
        written: ``sin(x)*(1 + sin(x))`` has two.
    require, exclude
        Names of columns that every law must, or must not, depend on.
    screen_columns
        Whether a search of more than five columns begins with those that matter at first sight. The
        others come back when the best score has not risen for 20 generations. Only where laws are
        screened.

    Examples
    --------
    >>> Search(population_size=7)
    Traceback (most recent call last):
        ...
    ValueError: population_size must be even and at least 4, got 7.
    """

    operators: tuple[str, ...] = ("+", "-", "*", "/")
    population_size: int = 120
    generations: int = 1000
    max_time: float | None = None
    max_evaluations: int | None = None
    max_units: int | None = None
    patience: int | None = None
    max_complexity: int = 64
    max_parameters: int | None = None
    variable_exponents: bool = False
    nested_functions: bool = False
    share_parameters: bool = False
    fitness: Literal["evidence", "rmse"] = "evidence"
    p_crossover: float = 0.4
    p_mutation: float = 0.4
    refresh: int | None = 10
    n_finalists: int = 40
    evidence: Literal["screened", "smc"] = "screened"
    n_islands: int = 4
    n_enumerated: int = 10_000
    law_prior: Literal["description", "uniform"] | Callable[..., float] = "description"
    interval: tuple[str, ...] = ()
    units: Mapping[str, str] | None = None
    forbid: Mapping[str, Sequence[str]] = field(default_factory=dict)
    max_uses: Mapping[str, int] = field(default_factory=dict)
    require: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    screen_columns: bool = True

    def __post_init__(self) -> None:
        # Users may hand over anything: the types above are a promise, not a fact.
        operators: object = self.operators
        is_list = isinstance(operators, Iterable) and not isinstance(operators, str)
        names = tuple(self.operators) if is_list else ()
        if not is_list or not all(isinstance(name, str) for name in names):
            raise ValueError(
                f'operators must be a sequence of names, got {operators!r}. Use ("+", "*", "sqrt").'
            )
        object.__setattr__(self, "operators", names)
        law_prior: object = self.law_prior
        if law_prior not in LAW_PRIORS if isinstance(law_prior, str) else not callable(law_prior):
            raise ValueError(
                'law_prior must be "description", "uniform", a LawPrior or a function of an '
                f"equation, got {_shortened(law_prior)}."
            )
        object.__setattr__(self, "interval", _check_names("interval", self.interval, "columns"))
        units: object = self.units
        if units is not None:
            if not isinstance(units, Mapping):
                raise ValueError(
                    f'units must map names to units, such as {{"t": "s"}}, got {_shortened(units)}.'
                )
            object.__setattr__(self, "units", dict(units))
        object.__setattr__(self, "forbid", _check_forbidden(self.forbid))
        object.__setattr__(self, "max_uses", _check_uses(self.max_uses))
        for name in ("require", "exclude"):
            object.__setattr__(self, name, _check_names(name, getattr(self, name), "columns"))
        _check_choice("fitness", self.fitness, ("evidence", "rmse"))
        _check_choice("evidence", self.evidence, ("screened", "smc"))
        size: object = self.population_size
        if isinstance(size, bool) or not isinstance(size, Integral) or size < 4 or size % 2:
            raise ValueError(
                f"population_size must be even and at least 4, got {_shortened(size)}."
            )
        object.__setattr__(self, "population_size", int(size))
        for name in ("p_crossover", "p_mutation"):
            share = getattr(self, name)
            if not _is_number(share) or not 0.0 <= float(share) <= 1.0:
                raise ValueError(f"{name} must be in [0, 1], got {_shortened(share)}.")
        for name in (
            "variable_exponents",
            "nested_functions",
            "share_parameters",
            "screen_columns",
        ):
            if not isinstance(getattr(self, name), bool | np.bool_):
                raise ValueError(f"{name} must be True or False, got {getattr(self, name)!r}.")
        for name, least, most in (
            ("generations", 0, _MAX_COUNT),
            ("max_complexity", 3, _MAX_COMPLEXITY),
            ("n_finalists", 1, _MAX_COUNT),
            ("n_islands", 1, _MAX_ISLANDS),
            ("n_enumerated", 0, _MAX_ENUMERATED),
            ("max_evaluations", 1, _MAX_COUNT),
            ("max_units", 1, _MAX_COUNT),
            ("patience", 1, _MAX_COUNT),
            ("max_parameters", 0, _MAX_COUNT),
            ("refresh", 1, _MAX_COUNT),
        ):
            value = getattr(self, name)
            if value is not None or name not in _OPTIONAL:
                object.__setattr__(self, name, _check_count(name, value, least, most))
        if self.population_size * self.max_complexity > _MAX_ROWS:
            raise ValueError(
                f"population_size times max_complexity must be at most {_MAX_ROWS:,}, got "
                f"{_shortened(self.population_size)} times {self.max_complexity}. Such a "
                "population does not fit into memory: make it smaller."
            )
        limit: object = self.max_time
        if limit is not None and not (_is_number(limit) and float(limit) > 0):
            got = _shortened(limit)
            raise ValueError(f"max_time must be positive, got {got}. It is in seconds.")
