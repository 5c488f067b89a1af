"""What is the same for all equations that are compared: data, noise, fraction and priors."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from pmsr.data import Data, make_data, make_data_for
from pmsr.equation.expression import Equation
from pmsr.settings import Settings, check_settings


@dataclass(frozen=True, eq=False)
class Problem:
    r"""What equations are weighed on: made once, where a user enters, and handed down.

    Parameters
    ----------
    data
        The observations.
    gamma
        The fraction of Eq. (5), the same for all equations that are compared.
    parameter_prior
        Where theta is flat: on the surface of predictions, or in the parameters.
    sigma_bounds
        Lower and upper bound of sigma.
    sigma_power
        k of the prior :math:`\sigma^{-k}`: 0 flat, 1 log-flat.

    Examples
    --------
    >>> Problem.of(make_data([1.0, 2.0, 3.0, 4.0], [1.0, 3.0, 1.0, 3.0]), Settings()).gamma
    0.5
    """

    data: Data
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
        return cls(
            data,
            settings.resolve_gamma(len(data.y), n_parameters or 0),
            settings.parameter_prior,
            settings.sigma_bounds(data.y),
            settings.sigma_power,
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
