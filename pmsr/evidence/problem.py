"""What is the same for all equations that are compared: data, noise, fraction and priors."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from pmsr.data import Data, make_data, make_data_for
from pmsr.equation.expression import Equation
from pmsr.equation.operators import VARIABLE, operator_code
from pmsr.equation.program import Program, evaluate
from pmsr.evidence.noise import Columns, Noise, Scale, find_noise
from pmsr.settings import Settings, check_settings

Floats = NDArray[np.float64]


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
        noise = find_noise(settings.noise)
        n_training = noise.n_training(n_parameters or 0, settings.sigma_power)
        return cls(
            data,
            noise,
            settings.resolve_gamma(len(data.y), n_parameters or 0, n_training),
            settings.parameter_prior,
            settings.sigma_bounds(data.y) if noise.has_sigma else (1.0, 1.0),
            settings.sigma_power if noise.has_sigma else 0,
        )

    def select(self, names: Sequence[str]) -> "Problem":
        """Return the problem with only these variables, in this order."""
        if tuple(names) == self.data.names:
            return self
        return replace(self, data=self.data.select(names))

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
        return self.noise.scale(self.sigma_bounds, self.sigma_power)

    @cached_property
    def columns(self) -> Columns:
        """What the noise model knows of each row."""
        return self.noise.columns(self.data)

    @cached_property
    def weights(self) -> Floats | None:
        """What residuals are multiplied by to have noise of one size; None if they have it."""
        return self.noise.weights(self.data)

    @cached_property
    def log_weight(self) -> float:
        """Sum of the logarithms of the weights of residuals."""
        return 0.0 if self.weights is None else float(np.sum(np.log(self.weights)))

    @cached_property
    def white(self) -> Data:
        """The data with the target times its weights, which stand in a last column.

        Together with `whiten`, so that whatever fits or draws for noise of one size does for all.
        """
        w = self.weights
        if w is None:
            return self.data
        X = np.ascontiguousarray(np.column_stack([self.data.X, w]))
        middle = np.sum(w**2 * self.data.y) / np.sum(w**2)
        deviation = float(np.sqrt(np.mean((w * (self.data.y - middle)) ** 2)))
        names = (*self.data.names, "")
        return White(X, w * self.data.y, names, self.data.target, deviation=deviation)

    def whiten(self, program: Program) -> Program:
        """Return the equation times the weights: what `white` is explained by."""
        if self.weights is None:
            return program
        n, times = len(program.nodes), operator_code("*")
        more = [(VARIABLE, len(self.data.names), 0), (times, n - 1, n)]
        nodes = [*map(tuple, program.nodes.tolist()), *more]
        return Program.of(nodes, program.literals.tolist(), program.n_parameters)

    def log_likelihood(self, square: Any, log_sigma: Any) -> Any:
        """Return log L from the sum of squares of weighed residuals."""
        return self.noise.log_likelihood(len(self.data.y), self.log_weight, square, log_sigma)

    def rmse(self, program: Program, theta: Floats, square: float) -> float:
        """Return the root mean squared error, in units of the target, of a fit with this square."""
        if self.weights is not None:
            values = evaluate(program, theta[None, :], self.data.X)[0]
            square = float(np.sum((self.data.y - values) ** 2))
        return float(np.sqrt(square / len(self.data.y)))

    @cached_property
    def constant_log_q(self) -> float:
        """Log q of the equation c0, exact; what every other equation is to be told from."""
        n, gamma = len(self.data.y), self.gamma
        square = n * self.white.spread**2 if self.weights is not None else self._square
        integrals = [self.scale.log_integral(1, n, square, phi) for phi in (1.0, gamma)]
        constant = 0.5 * np.log(gamma) - 0.5 * (1.0 - gamma) * n * np.log(2.0 * np.pi)
        return float(integrals[0] - integrals[1] + constant + (1.0 - gamma) * self.log_weight)

    @property
    def _square(self) -> float:
        return float(np.var(self.data.y) * len(self.data.y))


@dataclass(frozen=True, eq=False, kw_only=True)
class White(Data):
    """Data in units of their own errors.

    Parameters
    ----------
    deviation
        Of the target from its weighed mean; that of its weighed values could be zero.
    """

    deviation: float

    @property
    def spread(self) -> float:
        """Standard deviation of the target."""
        return self.deviation


def as_problem(data: Data | Problem, settings: Settings, n_parameters: int | None) -> Problem:
    """Return the problem, made of the data and of the options unless somebody has made it."""
    return data if isinstance(data, Problem) else Problem.of(data, settings, n_parameters)


# X and y are Any as in `data`: what users hand over is recognised by what it can do.
def read_problem(
    equation: Equation | str, X: Any, y: Any, settings: Settings | None = None
) -> tuple[Equation, Problem, Settings]:
    """Check what a user hands over: an equation or its text, the data, and options or None.

    Examples
    --------
    >>> read_problem("c0*x0", [1.0, 2.0], [2.0, 4.5])[0]
    Equation('c0*x0', variables=['x0'])
    """
    settings = check_settings(settings, Settings())
    if isinstance(equation, Equation):
        data = make_data_for(equation.variables, X, y)
    else:
        data = make_data(X, y)
        equation = Equation(equation, data.names)
    return equation, Problem.of(data, settings, len(equation.parameters)), settings
