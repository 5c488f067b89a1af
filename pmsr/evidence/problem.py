"""What is the same for all equations that are compared: data, noise, fraction and priors."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pmsr.data import Data, make_data, make_data_for
from pmsr.equation.expression import Equation
from pmsr.equation.operators import PARAMETER, VARIABLE, operator_code
from pmsr.equation.program import Program, evaluate, evaluate_slopes
from pmsr.evidence.distributions import read_constants, read_priors
from pmsr.evidence.noise import LOG_2_PI, Columns, Noise, find_noise
from pmsr.evidence.priors import Given, Prior
from pmsr.evidence.scale import ExtraScale, FreeScale, Rest, Scale, SharedScale
from pmsr.names import suggest
from pmsr.settings import Settings, check_settings

Floats = NDArray[np.float64]

CHUNK = 2**18  # predictions at a time: 2 MB
HOPELESS = 1e6  # a log likelihood this far below zero is no law's


class Tuning(NamedTuple):
    """Weights of residuals that suit a fit.

    Parameters
    ----------
    weights
        Of shape (N,).
    residuals
        Measurements less predictions, of shape (N,).
    sigma
        Most likely size of the noise.
    errors
        What adds to it in quadrature, of shape (N,); None if nothing does.
    """

    weights: Floats
    residuals: Floats
    sigma: float
    errors: Floats | None = None


@dataclass(frozen=True, eq=False)
class Problem:
    r"""What equations are weighed on: made once, where a user enters, and handed down.

    Parameters
    ----------
    data
        The observations.
    noise
        How they scatter: a row of `pmsr.evidence.noise.NOISES`.
    gamma
        The fraction of Eq. (5), the same for all equations that are compared.
    parameter_prior
        Where theta is flat: on the surface of predictions, or in the parameters.
    sigma_bounds
        Lower and upper bound of sigma; 1 and 1 where it is not a parameter.
    sigma_power
        k of the prior :math:`\sigma^{-k}`: 0 flat, 1 log-flat.
    tuning
        What the fit of one equation says of the weights of its residuals, where they depend on it.
    labels, parts
        With several groups, each of which has constants of its own: their labels, and a problem for
        the rows of each. The data are then sorted by group; bounds here are those of all rows
        together, and so is gamma, unless sigma is shared: then it is that of a typical group.
    shared_sigma
        Whether all groups have noise of one size.
    rest
        Of a part, what the other groups say of a size that is shared, approximately: draws of one
        part then are where those of all belong.
    priors
        Proper priors of parameters, by name.
    given
        Which parameters of one equation have them: see `suit`.
    positive
        Whether the other parameters keep the sign that they have at the best fit.

    Examples
    --------
    >>> Problem.of(make_data([1.0, 2.0, 3.0, 4.0], [1.0, 3.0, 1.0, 3.0]), Settings()).gamma
    0.5
    """

    data: Data
    noise: Noise
    gamma: float
    parameter_prior: Literal["invariant", "flat"]
    sigma_bounds: tuple[float, float]
    sigma_power: int
    tuning: Tuning | None = None
    labels: tuple[str, ...] = ()
    parts: tuple["Problem", ...] = ()
    shared_sigma: bool = False
    rest: Rest | None = None
    priors: Mapping[str, Prior] = field(default_factory=dict)
    given: Given = field(default_factory=Given)
    positive: bool = False

    @classmethod
    def of(cls, data: Data, settings: Settings, n_parameters: int | None = None) -> "Problem":
        """Make the problem that a user's options describe.

        Parameters
        ----------
        data
            The observations.
        settings
            The options.
        n_parameters
            Of the largest equation that is compared; None if nobody knows.
        """
        if settings.gamma == "ohagan" and n_parameters is None:
            raise ValueError(
                'gamma="ohagan" depends on the largest number of parameters. '
                'Set max_parameters, or use gamma="paper".'
            )
        if data.groups is not None:
            return cls._of_groups(data, settings, n_parameters)
        noise = find_noise(settings.noise, data, extra_noise=settings.extra_noise)
        n_training = noise.n_training(n_parameters or 0, settings.sigma_power)
        bounds = (1.0, 1.0)
        if noise.has_sigma:
            bounds = settings.sigma_bounds(noise.transform(data.y), data.counts)
        return cls(
            data,
            noise,
            settings.resolve_gamma(total_count(data), n_parameters or 0, n_training),
            settings.parameter_prior,
            bounds,
            settings.sigma_power if noise.has_sigma else 0,
            priors=_priors_of(data),
            positive=settings.positive,
        )

    @classmethod
    def _of_groups(cls, data: Data, settings: Settings, n_parameters: int | None) -> "Problem":
        """Make the problem of several groups: a part for each, and what they have in common."""
        rows = split_groups(data.groups or ())
        # Of the same rows in another order, the same numbers.
        data = data.take(np.concatenate(list(rows.values())))
        noise = find_noise(settings.noise, data, extra_noise=settings.extra_noise)
        if settings.shared_sigma and not noise.has_sigma:
            raise ValueError(
                f"shared_sigma=True needs noise whose size is a parameter, got {noise.words}: "
                "there is no sigma to share. Leave shared_sigma out."
            )
        if settings.shared_sigma and noise.uses_slopes:
            raise ValueError(
                "X_err goes with a sigma of its own for each group, got shared_sigma=True: what "
                "other groups say of sigma would depend on slopes. Leave one of them out."
            )
        parts = [replace(data.take(places), groups=None) for places in _sorted_rows(rows)]
        power = settings.sigma_power if noise.has_sigma else 0
        if not settings.shared_sigma:
            problems = []
            for label, part in zip(rows, parts, strict=True):
                if noise.has_sigma and part.has_constant_target:
                    raise ValueError(
                        f"The target {data.target!r} is constant in the group {label!r}, "
                        f"{part.y[0]:g}: noise of its own would have no size. Leave the group out, "
                        "or let all groups have noise of one size: shared_sigma=True."
                    )
                problems.append(cls.of(part, settings, n_parameters))
            bounds = (
                min(one.sigma_bounds[0] for one in problems),
                max(one.sigma_bounds[1] for one in problems),
            )
        else:
            bounds = _shared_bounds(noise, parts, data, settings)
        n_points, n_all = total_count(data), n_parameters or 0
        if settings.shared_sigma and settings.gamma == "paper":
            # That of a typical group, whose rows alone determine its constants. That of all rows
            # is too small for G p constants: with G p > sqrt(N) - 1, Z(gamma) leans on the bound
            # of sigma, and each constant costs twice what it costs in a group by itself.
            n_points /= len(parts)
        elif settings.shared_sigma:
            n_all *= len(parts)
        n_training = noise.n_training(n_all, settings.sigma_power)
        gamma = settings.resolve_gamma(n_points, n_all, n_training)
        prior = settings.parameter_prior
        if settings.shared_sigma:
            problems = [cls(part, noise, gamma, prior, bounds, power) for part in parts]
            problems = [replace(one, positive=settings.positive) for one in problems]
        whole = cls(
            data,
            noise,
            gamma,
            prior,
            bounds,
            power,
            labels=tuple(rows),
            parts=tuple(problems),
            shared_sigma=settings.shared_sigma,
            positive=settings.positive,
        )
        return whole.with_priors(_priors_of(data))  # or an error, if there are any

    @property
    def n(self) -> float:
        """Number of observations: rows, or the sum of their counts."""
        return total_count(self.data)

    @cached_property
    def counts(self) -> Floats:
        """How often each row was observed, of shape (N,)."""
        return np.ones(len(self.data.y)) if self.data.counts is None else self.data.counts

    def tuned(self, program: Program, theta: Floats) -> "Problem":
        """Return the problem with the weights that suit a fit; itself where they are known."""
        if not self.noise.needs_tuning:
            return self
        values = evaluate(program, theta[None, :], self.data.X)[0]
        columns = self.columns_at(program, theta[None, :])
        return self._tuned_to(self.data.y - values, {k: v.reshape(-1) for k, v in columns.items()})

    def _tuned_to(self, residuals: Floats, columns: Columns) -> "Problem":
        weights, sigma = self.noise.tune(residuals, columns, self.counts, self.sigma_bounds[0])
        if weights is None or not np.all(np.isfinite(weights) & (weights > 0.0)):
            return self
        return replace(self, tuning=Tuning(weights, residuals, sigma, columns.get("y_err")))

    def with_tunings(self, tunings: Sequence[Tuning]) -> "Problem":
        """Return the problem with weights of residuals for each group."""
        weights, residuals = (
            np.concatenate([getattr(one, name) for one in tunings])
            for name in ("weights", "residuals")
        )
        sigma = float(np.mean([one.sigma for one in tunings]))
        known = [one.errors for one in tunings if one.errors is not None]
        errors = np.concatenate(known) if len(known) == len(tunings) else None
        parts = [replace(part, tuning=one) for part, one in zip(self.parts, tunings, strict=True)]
        return replace(self, parts=tuple(parts), tuning=Tuning(weights, residuals, sigma, errors))

    @property
    def untuned(self) -> "Problem":
        """The problem as it is for all equations."""
        return self if self.tuning is None else replace(self, tuning=None)

    @property
    def is_plain(self) -> bool:
        """Whether residuals are taken as they are."""
        return self.weights is None and self.noise.link is None

    def select(self, names: Sequence[str]) -> "Problem":
        """Return the problem with only these variables, in this order."""
        if tuple(names) == self.data.names:
            return self
        parts = tuple(part.select(names) for part in self.parts)
        return replace(self, data=self.data.select(names), parts=parts)

    def with_rest(self, rest: Rest) -> "Problem":
        """Return a part that knows what the other groups say of a sigma that is shared."""
        # In their parameters they are integrated: each leaves a factor of sigma.
        return replace(self, rest=rest, sigma_power=self.sigma_power - rest.rank)

    def with_priors(self, priors: Mapping[str, Prior]) -> "Problem":
        """Return the problem with priors of parameters, by name, added to those it has."""
        if not priors:
            return self
        if self.parts:
            raise ValueError(
                f"{next(iter(priors))!r} has a prior and there are several groups, in which "
                "parameters are each group's own: what they share cannot be weighed yet. Weigh one "
                "group at a time, or give the constant as exact."
            )
        return replace(self, priors={**self.priors, **priors})

    def release(self, program: Program) -> tuple[Program, "Problem"]:
        """Return a program in which uncertain constants are parameters, as `suit` makes them.

        They come after the others.
        """
        columns = {k: name for k, name in enumerate(self.data.names) if name in self.priors}
        if not columns or len(self.given):
            return program, self
        nodes = program.nodes.tolist()
        used = {a for code, a, _ in nodes if code == VARIABLE}
        names = [name for name in self.priors if name in self.data.names]
        freed = [name for name in names if self.data.names.index(name) in used]
        place = {name: program.n_parameters + k for k, name in enumerate(freed)}
        left = [k for k in range(len(self.data.names)) if k not in columns]
        rows = [
            (code, a, b)
            if code != VARIABLE
            else (PARAMETER, place[columns[a]], 0)
            if a in columns
            else (code, left.index(a), b)
            for code, a, b in nodes
        ]
        program = Program.of(rows, program.literals.tolist(), program.n_parameters + len(freed))
        problem = self.select([self.data.names[k] for k in left])
        given = Given(tuple(place.values()), tuple(self.priors[name] for name in freed))
        return program, replace(problem, given=given)

    def suit(self, equation: Equation) -> tuple[Equation, "Problem"]:
        """Return an equation and the problem as they belong together.

        The data have the equation's variables, in its order; parameters with priors are found by
        their names, and keep these in the equation's key.
        """
        if not self.priors:
            return equation, self.select(equation.variables)
        equation = equation.with_known(tuple(self.priors))
        problem = self.select(equation.variables)
        return equation, replace(problem, given=Given.of(equation.parameters, self.priors))

    @property
    def halved(self) -> "Problem":
        """The same with half the largest sigma, or itself where no sigma would be left."""
        low, high = self.sigma_bounds
        if 0.5 * high > low:
            return replace(self, sigma_bounds=(low, 0.5 * high))
        return self

    @cached_property
    def scale(self) -> Scale:
        """The prior of sigma."""
        tuning = self.tuning
        if self.noise.has_sigma and tuning is not None and tuning.errors is not None:
            return ExtraScale(
                self.sigma_bounds,
                self.sigma_power,
                tuning.errors,
                tuning.residuals,
                self.counts,
                tuning.sigma,
            )
        if self.rest is not None:
            return SharedScale(self.sigma_bounds, self.sigma_power, self.rest)
        return self.noise.scale(self.sigma_bounds, self.sigma_power)

    @cached_property
    def columns(self) -> Columns:
        """What the noise model knows of each row."""
        return self.noise.columns(self.data)

    def new_sigma(self, sigma: Floats) -> Floats:
        """Return the size of the noise of a new observation, for each draw of sigma."""
        return self.noise.new_sigma(sigma, self.columns, self.counts)

    def columns_at(self, program: Program, theta: Floats) -> Columns:
        """Return the same for a law and a batch of its parameters, of shape (n, p).

        Errors of the variables, which count by the slopes of the law, add to those of the target
        in quadrature; the column is then of shape (n, N).
        """
        X_err = self.data.X_err
        if not self.noise.uses_slopes:
            return self.columns
        n_rows, known = len(self.data.y), self.columns.get("y_err", 0.0)
        square = np.broadcast_to(np.square(known), (len(theta), n_rows)).copy()
        if X_err is not None:
            size = max(1, CHUNK // (n_rows * (1 + 2 * theta.shape[1] + 2 * X_err.shape[1])))
            for k in range(0, len(theta), size):
                slopes = evaluate_slopes(program, theta[k : k + size], self.data.X)[2][0]
                for place in np.flatnonzero(X_err.any(axis=0)):
                    errors = X_err[:, place]
                    shifts = np.where(errors > 0.0, slopes[:, place] * errors, 0.0)
                    square[k : k + size] += shifts**2
        return {"y_err": np.sqrt(square)}

    @cached_property
    def weights(self) -> Floats | None:
        """What residuals are multiplied by to have noise of one size; None if they have it."""
        weights = self.noise.weights(self.data)
        for more in (
            None if self.tuning is None else self.tuning.weights,
            None if self.data.counts is None else np.sqrt(self.data.counts),
        ):
            if more is not None:
                weights = more if weights is None else weights * more
        return weights

    @cached_property
    def log_weight(self) -> float:
        """Log density of the target that normal noise of weighed residuals lacks."""
        return float(np.sum(self.counts * self.noise.log_jacobian(self.data)))

    @cached_property
    def white(self) -> Data:
        """The data in the space in which noise is of one size, with weights in a last column.

        Together with `whiten`, so that whatever fits or draws for noise of one size does for all.
        """
        if self.is_plain and not self.parts:
            return self.data
        w, data = self.weights, self.data
        ones = np.ones(len(data.y))
        columns = [data.X, *(one for one in (self.noise.signs(data), w) if one is not None)]
        X = np.ascontiguousarray(np.column_stack(columns))
        y = self.noise.transform(data.y)
        w = ones if w is None else w
        middle = np.sum(w**2 * y) / np.sum(w**2)
        deviation = float(np.sqrt(np.mean((w * (y - middle)) ** 2)))
        if not deviation > 0.0:  # a constant group
            deviation = float(np.sqrt(np.mean((w * y) ** 2))) or 1.0
        if self.parts:  # what can be told apart in any of them is to be told apart
            deviation = min(part.white.spread for part in self.parts)
        names = (*data.names, *("",) * (X.shape[1] - len(data.names)))
        return White(
            X,
            w * y,
            names,
            data.target,
            deviation=deviation,
            plain=data.y,
            n=self.n,
            n_added=len(self.added_nodes),
        )

    def whiten(self, program: Program) -> Program:
        """Return the equation that `white` is explained by: its link, times the weights."""
        if self.is_plain:
            return program
        nodes = list(map(tuple, program.nodes.tolist()))
        for code, column in self.added_nodes:
            n = len(nodes)
            if code == VARIABLE:
                nodes.append((code, column, 0))
            elif code == operator_code("*"):
                nodes.append((code, n - 2, n - 1))
            else:
                nodes.append((code, n - 1, 0))
        return Program.of(nodes, program.literals.tolist(), program.n_parameters)

    @property
    def added_nodes(self) -> list[tuple[int, int]]:
        """What `whiten` adds, in order: a code and, for a column, which; -1 for an operator.

        An operator is applied to the node before it and, if it is a product, the one before that.
        """
        column, nodes = len(self.data.names), []
        times = (operator_code("*"), -1)
        if self.noise.signs(self.data) is not None:
            nodes += [(VARIABLE, column), times]
            column += 1
        if self.noise.link is not None:
            nodes.append((operator_code(self.noise.link.operator), -1))
        if self.weights is not None:
            nodes += [(VARIABLE, column), times]
        return nodes

    def unwhiten(self, values: Floats) -> Floats:
        """Return predictions at the rows, of shape (n, N), from those in the space of `white`."""
        values = values if self.weights is None else values / self.weights
        if self.noise.link is not None:
            with np.errstate(over="ignore"):
                values = self.noise.link.inverse(values)
        signs = self.noise.signs(self.data)
        return values if signs is None else values * signs

    def local_weights(self, values: Floats) -> Floats | None:
        """Return what residuals next to predictions, of shape (N,), are to be multiplied by."""
        weights = self.weights
        if self.noise.link is None:
            return weights
        with np.errstate(divide="ignore", invalid="ignore"):
            slope = self.noise.link.slope(values)
        return slope if weights is None else weights * slope

    def log_likelihood(self, square: Any, log_sigma: Any) -> Any:
        """Return log L of normal noise from the sum of squares of weighed residuals."""
        n = self.n
        value = -0.5 * n * LOG_2_PI - n * log_sigma
        value = value - 0.5 * square * np.exp(-2.0 * log_sigma) + self.log_weight
        return value if self.rest is None else value + self.rest.log_likelihood(log_sigma)

    def exact_log_likelihood(self, program: Program, theta: Floats, log_sigma: Floats) -> Floats:
        """Return log L of a batch, of shapes (n, p) and (n,); -inf where f is not finite."""
        data, found = self.data, np.empty(len(theta))
        size = max(1, CHUNK // len(data.y))
        with np.errstate(all="ignore"):
            for k in range(0, len(theta), size):
                some = slice(k, k + size)
                mu = evaluate(program, theta[some], data.X)
                sigma = np.exp(log_sigma[some])[:, None]
                columns = self.columns_at(program, theta[some])
                density = self.noise.log_density(data.y, mu, sigma, columns)
                found[some] = np.sum(self.counts * density, axis=1)
            if self.rest is not None:
                found += self.rest.log_likelihood(log_sigma)
        return np.where(np.isfinite(found), found, -np.inf)

    def working(self, values: Floats, columns: Columns | None = None) -> tuple[Floats, Floats]:
        """Return what the closed form needs of predictions, of shape (n, N).

        Parameters
        ----------
        values
            The predictions.
        columns
            From `columns_at`, where they depend on the law.

        Returns
        -------
        squares : ndarray
            Sums of squares of weighed residuals, with weights that suit them.
        excess : ndarray
            Largest log likelihood, less that of normal noise which leaves these squares.
        """
        data, noise, n = self.data, self.noise, self.n
        columns = self.columns if columns is None else columns
        with np.errstate(all="ignore"):
            sigma = noise.most_likely_sigma(data.y, values, self.counts, columns)
            if noise.needs_tuning and noise.has_sigma:
                squares = n * sigma[:, 0] ** 2
                if "y_err" in columns:
                    total = np.sum(self.counts / (sigma**2 + columns["y_err"] ** 2), axis=1)
                    squares = n**2 / total
            elif noise.needs_tuning:
                squares = np.sum(self.counts * ((data.y - values) / columns["y_err"]) ** 2, axis=1)
            else:
                residuals = noise.transform(data.y) - noise.apply_link(values, data)
                w = 1.0 if self.untuned.weights is None else self.untuned.weights
                squares = np.sum((w * residuals) ** 2, axis=1)
            low, high = self.sigma_bounds
            sigma = np.clip(sigma, low, high)
            density = noise.log_density(data.y, values, sigma, columns)
            exact = np.sum(self.counts * density, axis=1)
            if noise.has_sigma and not noise.is_exact:
                # Beyond, both logarithms would be huge, and their difference rounding.
                squares = np.clip(squares, n * low**2, n * high**2)
            if noise.has_sigma:
                best = np.clip(squares / n, low**2, high**2)
                normal = -0.5 * n * (LOG_2_PI + np.log(best)) - 0.5 * squares / best
            else:
                normal = -0.5 * n * LOG_2_PI - 0.5 * squares
        if noise.is_exact:
            return squares, np.full(len(values), self.log_weight)
        hopeless = ~(exact > -HOPELESS)
        return np.where(hopeless, np.inf, squares), np.where(hopeless, 0.0, exact - normal)

    def rmse(self, program: Program, theta: Floats, square: float | None = None) -> float:
        """Return the root mean squared error of a fit, in units of the target.

        Its sum of squares, if it is known, is that of weighed residuals.
        """
        if square is None or not self.is_plain:
            values = evaluate(program, theta[None, :], self.data.X)[0]
            square = float(np.sum(self.counts * (self.data.y - values) ** 2))
        return float(np.sqrt(square / self.n))

    def rmses(self, curves: Floats) -> Floats:
        """Return the same for predictions in the space of `white`, of shape (n, N)."""
        with np.errstate(all="ignore"):
            square = self.counts * (self.data.y - self.unwhiten(curves)) ** 2
            return np.asarray(np.sqrt(np.sum(square, axis=1) / self.n))

    @cached_property
    def constant_log_q(self) -> float:
        """Log q of the equation c0; what every other equation is to be told from.

        Exact for normal noise, and close for others.
        """
        if self.parts:
            return self._constant_log_q_of_groups
        problem, columns = self, dict(self.columns)
        if self.noise.uses_slopes:  # a constant has none
            columns = {"y_err": np.zeros(len(self.data.y)), **columns}
        middle = self.noise.middle(self.data.y, self.counts)
        if not self.noise.is_exact:
            problem = self._tuned_to(self.data.y - middle, columns)
        white = problem.white
        square = self._square if problem.is_plain else len(white.y) * white.spread**2
        excess = problem.log_weight
        if not self.noise.is_exact and not problem.scale.knows_rows:
            values = np.full((1, len(self.data.y)), middle)
            excess = float(self.working(values, columns)[1][0])
        return self._linear_log_q(problem.scale, 1, square, excess)

    @property
    def _constant_log_q_of_groups(self) -> float:
        """Log q of a constant for each group."""
        if not self.shared_sigma:
            return sum(part.constant_log_q for part in self.parts)
        square = sum(len(one.white.y) * one.white.spread**2 for one in self.parts)
        scale = FreeScale(self.sigma_bounds, self.sigma_power)
        excess = self.log_weight
        if not self.noise.is_exact:
            middles = [
                np.full(len(part.data.y), self.noise.middle(part.data.y, part.counts))
                for part in self.parts
            ]
            excess = float(self.working(np.concatenate(middles)[None, :])[1][0])
        return self._linear_log_q(scale, len(self.parts), square, excess)

    def _linear_log_q(self, scale: Scale, rank: int, square: float, excess: float) -> float:
        """Log q of a linear law: of its rank, what its fit leaves, and what normal noise lacks."""
        n, gamma = self.n, self.gamma
        integrals = [scale.log_integral(rank, n, square, phi) for phi in (1.0, gamma)]
        constant = 0.5 * rank * np.log(gamma) - 0.5 * (1.0 - gamma) * n * LOG_2_PI
        return float(integrals[0] - integrals[1] + constant + (1.0 - gamma) * excess)

    @property
    def _square(self) -> float:
        return float(np.var(self.data.y) * len(self.data.y))


def split_groups(groups: Sequence[str]) -> dict[str, NDArray[np.int64]]:
    """Return the rows of each group, in the order of the labels: numbers by size.

    Examples
    --------
    >>> {label: rows.tolist() for label, rows in split_groups(["10", "9", "10"]).items()}
    {'9': [1], '10': [0, 2]}
    """
    labels = list(set(groups))
    try:
        labels.sort(key=lambda label: (float(label), label))
    except ValueError:
        labels.sort()
    named = np.array(groups, dtype=object)
    return {label: np.flatnonzero(named == label) for label in labels}


def _sorted_rows(rows: Mapping[str, NDArray[np.int64]]) -> list[NDArray[np.int64]]:
    """Return where the rows of each group are, once the data are sorted by group."""
    ends = np.cumsum([len(places) for places in rows.values()])
    return np.split(np.arange(ends[-1]), ends[:-1])


def _shared_bounds(
    noise: Noise, parts: Sequence[Data], data: Data, settings: Settings
) -> tuple[float, float]:
    """Return the bounds of a sigma that all groups share, from the spread within them."""
    targets = [noise.transform(part.y) for part in parts]
    means = [np.average(y, weights=part.counts) for y, part in zip(targets, parts, strict=True)]
    within = np.concatenate([y - mean for y, mean in zip(targets, means, strict=True)])
    rounding = 1e-12 * max(float(np.max(np.abs(y))) for y in targets)
    if not np.max(np.abs(within)) > rounding:
        raise ValueError(
            f"The target {data.target!r} is constant in every group: a constant for each explains "
            "it whatever the law. Leave groups out."
        )
    low, high = settings.sigma_bounds(within, data.counts)
    return max(low, rounding), high


def _priors_of(data: Data) -> dict[str, Prior]:
    """Return the priors of uncertain constants."""
    known = data.constants.items()
    return {name: one.prior for name, one in known if one.prior is not None}


def total_count(data: Data) -> float:
    """Return the number of observations: rows, or the sum of their counts."""
    return len(data.y) if data.counts is None else float(np.sum(data.counts))


@dataclass(frozen=True, eq=False, kw_only=True)
class White(Data):
    """Data in units of their own errors.

    Parameters
    ----------
    deviation
        Of the target from its weighed mean; that of its weighed values could be zero.
    plain
        The target as it was measured.
    n
        Number of observations: rows, or the sum of their counts.
    n_added
        Nodes that an equation for these data has more than that for the target.
    """

    deviation: float
    plain: Floats
    n: float
    n_added: int

    @property
    def spread(self) -> float:
        """Standard deviation of the target."""
        return self.deviation


def as_problem(data: Data | Problem, settings: Settings, n_parameters: int | None) -> Problem:
    """Return the problem, made of the data and of the options unless somebody has made it."""
    return data if isinstance(data, Problem) else Problem.of(data, settings, n_parameters)


def refuse_groups(problem: Problem, what: str) -> None:
    """Refuse several groups where only one makes sense."""
    if problem.parts:
        raise ValueError(
            f"{what} one group at a time, got {len(problem.parts)}: "
            f"{', '.join(problem.labels[:5])}{' ...' if len(problem.labels) > 5 else ''}. Give the "
            'rows of one; or use pmsr.result.comparison.weigh_equations(...).best.parts["label"].'
        )


# X and y are Any as in `data`: what users hand over is recognised by what it can do.
def read_problem(
    equation: Equation | str,
    X: Any,
    y: Any,
    settings: Settings | None = None,
    options: Mapping[str, Any] | None = None,
    *,
    priors: Mapping[str, Any] | None = None,
    constants: Mapping[str, Any] | None = None,
    **measured: Any,
) -> tuple[Equation, Problem, Settings]:
    """Check what a user hands over: an equation or its text, the data, and options or None.

    Errors and weights are those of :func:`pmsr.data.make_data`, priors those of
    :func:`pmsr.evidence.distributions.read_priors`.

    Examples
    --------
    >>> read_problem("c0*x0", [1.0, 2.0], [2.0, 4.5])[0]
    Equation('c0*x0', variables=['x0'])
    """
    settings = check_settings(settings, Settings(), options)
    known = read_constants(constants)
    measured["constants"] = known
    if isinstance(equation, Equation):
        exact = [name for name, one in known.items() if one.prior is None]
        equation = equation.with_variables(exact)
        data = make_data_for(equation.variables, X, y, **measured)
    else:
        data = make_data(X, y, **measured)
        equation = Equation(equation, data.names)
    problem = Problem.of(data, settings, len(equation.parameters))
    own = read_priors(priors)
    check_priors(own, [equation])
    check_twice(own, known)
    return *problem.with_priors(own).suit(equation), settings


def check_twice(priors: Mapping[str, Prior], constants: Mapping[str, Any]) -> None:
    """Refuse a parameter that has a prior and is a known constant too.

    Examples
    --------
    >>> check_twice({}, {"g": 9.81})
    """
    both = [name for name in priors if name in constants]
    if both:
        raise ValueError(
            f"{both[0]!r} is a constant and has a prior. Leave one out: a constant with an error "
            "or a distribution is a parameter with a prior."
        )


def check_priors(priors: Mapping[str, Prior], equations: Sequence[Equation]) -> None:
    """Refuse priors of parameters that no equation has.

    Examples
    --------
    >>> check_priors({}, [Equation("c0*x", ["x"])])
    """
    known = list(dict.fromkeys(name for one in equations for name in one.parameters))
    for name in priors:
        if name not in known:
            raise ValueError(
                f"There is no parameter {name!r} to have a prior.{suggest(name, known)} "
                "Priors are given by the names of parameters as the equation is written."
            )
