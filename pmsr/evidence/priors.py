r"""Proper priors of single parameters, in the coordinate in which each is a standard normal.

A parameter k with a prior is drawn as z with :math:`k = F^{-1}(\Phi(z))`, whatever the
distribution: a narrow one and a broad one are then the same to a sampler. The map need not be
exact, because the density of k itself is; it is that of a normal distribution, or linear between
the quantiles of a table.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from math import isfinite, log, pi, sqrt
from numbers import Real
from typing import Any, NoReturn, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

Floats = NDArray[np.float64]

LEAST_ERROR = 1e-10  # of a value: what is known better is exact, as far as numbers can tell
N_TABLE = 20_001  # places at which a density is tabulated
REACH = 40.0  # of the table: e**40 times the width of the distribution
MAX_Z = 8.0  # of the table's quantiles
SAME_MASS = 1e-3  # by how much the integral of a density may differ from 1, rounding included
N_END = 500  # places at each end of the table, where a proper density has nothing left


class Prior(Protocol):
    """A proper prior of one parameter."""

    @property
    def words(self) -> str:
        """What it is, for a reader."""

    def from_z(self, z: Floats) -> Floats:
        """Return parameters from their normal coordinates."""

    def to_z(self, theta: Floats) -> tuple[Floats, Floats]:
        """Return normal coordinates of parameters, and the slope of `from_z` there."""

    def log_density(self, theta: Floats) -> Floats:
        """Return the log density of parameters; -inf where there can be none."""


@dataclass(frozen=True)
class Normal:
    """A value with its standard error.

    Examples
    --------
    >>> g = Normal(9.81, 0.02)
    >>> g.from_z(np.array([-1.0, 0.0])).round(2), g.to_z(np.array([9.83]))[0].round(2)
    (array([9.79, 9.81]), array([1.]))
    """

    value: float
    error: float

    @property
    def words(self) -> str:
        """What it is, for a reader."""
        return f"{self.value:g} ± {self.error:g}"

    def from_z(self, z: Floats) -> Floats:
        """Return parameters from their normal coordinates."""
        return self.value + self.error * z

    def to_z(self, theta: Floats) -> tuple[Floats, Floats]:
        """Return normal coordinates of parameters, and the slope of `from_z` there."""
        return (theta - self.value) / self.error, np.full_like(theta, self.error)

    def log_density(self, theta: Floats) -> Floats:
        """Return the log density of parameters."""
        z = (theta - self.value) / self.error
        return np.asarray(-0.5 * z * z - log(self.error) - 0.5 * log(2.0 * pi))


@dataclass(frozen=True, eq=False)
class Tabulated:
    """Any distribution of one number, with a table of its quantiles.

    Parameters
    ----------
    words
        What it is, for a reader.
    density
        Returns the log density of an array; what `pmsr.evidence.model` compiles.
    forward
        Returns values on the whole line for parameters.
    backward
        Returns parameters for values on the whole line, and the log of the slope.
    middle, width
        Of the distribution on the whole line.
    z, v
        The table: normal coordinates, and the asinh of values on the line, in units of the width
        from the middle; both increase.
    log_mass
        Log integral of the density.
    variable
        PyMC's distribution.
    """

    words: str
    density: Callable[[Floats], Floats]
    forward: Callable[[Floats], Floats]
    backward: Callable[[Floats], tuple[Floats, Floats]]
    middle: float
    width: float
    z: Floats
    v: Floats
    log_mass: float = 0.0
    variable: Any = None

    @classmethod
    def of(
        cls,
        words: str,
        density: Callable[[Floats], Floats],
        forward: Callable[[Floats], Floats],
        backward: Callable[[Floats], tuple[Floats, Floats]],
        draws: Floats,
        variable: Any = None,
    ) -> "Tabulated":
        """Tabulate a distribution.

        Parameters
        ----------
        words, density, forward, backward, variable
            As above.
        draws
            Some draws, which say where its bulk is.

        Examples
        --------
        >>> rng = np.random.default_rng(0)
        >>> uniform = Tabulated.of(
        ...     "uniform between 0 and 1",
        ...     lambda theta: np.where((theta > 0.0) & (theta < 1.0), 0.0, -np.inf),
        ...     lambda theta: np.log(theta / (1.0 - theta)),
        ...     lambda u: (1.0 / (1.0 + np.exp(-u)), -2.0 * np.log(2.0 * np.cosh(0.5 * u))),
        ...     rng.random(100),
        ... )
        >>> uniform.from_z(np.array([-1.0, 0.0, 1.0])).round(4)
        array([0.1587, 0.5   , 0.8413])
        """
        with np.errstate(all="ignore"):
            line = forward(np.asarray(draws, dtype=np.float64))
            line = line[np.isfinite(line)]
            quarters = np.quantile(line, [0.25, 0.5, 0.75]) if len(line) else np.zeros(3)
            middle, width = float(quarters[1]), float(quarters[2] - quarters[0])
            if not width > 0.0:
                raise ValueError(f"{words} is a single value. Give it as a number.")
            v = np.linspace(-REACH, REACH, N_TABLE)
            theta, log_slope = backward(middle + width * np.sinh(v))
            log_density = density(theta) + log_slope + log(width) + np.log(np.cosh(v))
        mass = np.where(np.isfinite(log_density), np.exp(log_density), 0.0)
        cells = 0.5 * (mass[1:] + mass[:-1]) * (v[1] - v[0])
        total = float(cells.sum())
        ends = float(cells[:N_END].sum() + cells[-N_END:].sum())
        if not 0.0 < total < np.inf or ends > SAME_MASS * total:
            raise ValueError(
                f"{words} is no proper prior: its density has no integral. Use a distribution that "
                "can be normalised, such as pm.Normal.dist(0, 10)."
            )
        # PyMC may hold arguments in single precision, and a user's density may lack a factor.
        log_mass = 0.0 if abs(total - 1.0) <= SAME_MASS else log(total)
        below = np.concatenate([[0.0], np.cumsum(cells)]) / total
        above = np.concatenate([[0.0], np.cumsum(cells[::-1])])[::-1] / total
        with np.errstate(divide="ignore"):
            z = np.where(below < 0.5, ndtri(below), -ndtri(above))
        kept = np.flatnonzero(np.abs(z) <= MAX_Z)
        kept = kept[np.concatenate([[True], np.diff(z[kept]) > 1e-12])]
        return cls(
            words,
            density,
            forward,
            backward,
            middle,
            width,
            z[kept],
            v[kept],
            log_mass,
            variable,
        )

    def _cell(self, places: Floats, edges: Floats) -> NDArray[np.int64]:
        return np.clip(np.searchsorted(edges, places, side="right") - 1, 0, len(edges) - 2)

    def from_z(self, z: Floats) -> Floats:
        """Return parameters from their normal coordinates."""
        k = self._cell(z, self.z)
        slope = (self.v[k + 1] - self.v[k]) / (self.z[k + 1] - self.z[k])
        with np.errstate(all="ignore"):
            v = self.v[k] + slope * (z - self.z[k])
            return np.asarray(self.backward(self.middle + self.width * np.sinh(v))[0])

    def to_z(self, theta: Floats) -> tuple[Floats, Floats]:
        """Return normal coordinates of parameters, and the slope of `from_z` there."""
        with np.errstate(all="ignore"):
            line = self.forward(theta)
            v = np.arcsinh((line - self.middle) / self.width)
            k = self._cell(v, self.v)
            slope = (self.v[k + 1] - self.v[k]) / (self.z[k + 1] - self.z[k])
            z = self.z[k] + (v - self.v[k]) / slope
            log_slope = self.backward(line)[1] + np.log(self.width * np.cosh(v))
            return z, np.asarray(np.exp(log_slope) * slope)

    def log_density(self, theta: Floats) -> Floats:
        """Return the log density of parameters; -inf where there can be none."""
        with np.errstate(all="ignore"):
            theta = np.asarray(theta, dtype=np.float64)
            found = self.density(theta)
            # A positive parameter that has become 0 by rounding has no place on the line.
            exists = np.isfinite(self.forward(theta)) & ~np.isnan(found)
        return np.where(exists, found - self.log_mass, -np.inf)


@dataclass(frozen=True)
class Unsaved:
    """A prior of which a saved result knows nothing but its words.

    Examples
    --------
    >>> Unsaved("HalfNormal(0, 2)").words
    'HalfNormal(0, 2)'
    """

    words: str

    def _refuse(self) -> NoReturn:
        raise ValueError(
            f"The prior {self.words} is a PyMC distribution, which is not saved. Weigh the "
            "equation again with it; a value and its error are saved."
        )

    def from_z(self, z: Floats) -> Floats:
        """Refuse."""
        self._refuse()

    def to_z(self, theta: Floats) -> tuple[Floats, Floats]:
        """Refuse."""
        self._refuse()

    def log_density(self, theta: Floats) -> Floats:
        """Refuse."""
        self._refuse()


def record_known(prior: Prior) -> list[float] | str:
    """Return a prior as JSON knows it: a value and its error, or no more than words.

    Examples
    --------
    >>> record_known(Normal(9.81, 0.02)), record_known(Unsaved("Gamma(1, 2)"))
    ([9.81, 0.02], 'Gamma(1, 2)')
    """
    return [prior.value, prior.error] if isinstance(prior, Normal) else prior.words


def read_known(name: str, record: object) -> Prior:
    """Return a prior that `record_known` has recorded.

    Examples
    --------
    >>> read_known("g", [9.81, 0.02])
    Normal(value=9.81, error=0.02)
    """
    if isinstance(record, str):
        return Unsaved(record)
    if not isinstance(record, list):
        raise ValueError(f"{record!r} is no prior of {name!r}")
    return read_normal(name, record)


Priors: TypeAlias = Mapping[str, Prior]
"""Proper priors by the names of parameters."""


@dataclass(frozen=True, eq=False)
class Given:
    """The parameters of one equation that have proper priors.

    Parameters
    ----------
    places
        Of these parameters, increasing.
    priors
        Theirs.
    """

    places: tuple[int, ...] = ()
    priors: tuple[Prior, ...] = ()

    @classmethod
    def of(cls, parameters: tuple[str, ...], priors: Priors) -> "Given":
        """Find the parameters that have priors.

        Examples
        --------
        >>> Given.of(("c0", "c1"), {"c1": Normal(0.0, 1.0)}).places
        (1,)
        """
        found = [(k, priors[name]) for k, name in enumerate(parameters) if name in priors]
        return cls(tuple(k for k, _ in found), tuple(prior for _, prior in found))

    def __len__(self) -> int:
        return len(self.places)

    def among(self, free: tuple[int, ...]) -> "Given":
        """Return the same in an equation that has only these of the parameters left."""
        return replace(self, places=tuple(free.index(k) for k in self.places))

    def log_density(self, theta: Floats) -> Floats:
        """Return the log density of a batch of shape (n, p)."""
        total = np.zeros(len(theta))
        for k, prior in zip(self.places, self.priors, strict=True):
            total = total + prior.log_density(theta[:, k])
        return total

    def to_z(self, theta: Floats) -> tuple[Floats, Floats]:
        """Return normal coordinates and slopes, of shape (n, number of priors)."""
        pairs = [p.to_z(theta[:, k]) for k, p in zip(self.places, self.priors, strict=True)]
        z, slope = (np.stack(some, axis=1) for some in zip(*pairs, strict=True))
        return z, slope

    def from_z(self, z: Floats) -> Floats:
        """Return parameters for normal coordinates of shape (n, number of priors)."""
        columns = [prior.from_z(z[:, k]) for k, prior in enumerate(self.priors)]
        return np.stack(columns, axis=1)


def read_normal(name: str, value: Any) -> Normal:
    """Return the prior of a value with its standard error, or say what they must be.

    Examples
    --------
    >>> read_normal("g", (9.81, 0.02))
    Normal(value=9.81, error=0.02)
    """
    if len(value) != 2 or not all(isinstance(v, Real) and isfinite(v) for v in value):
        raise ValueError(f"{name!r} must be a finite value and its error, got {value!r}.")
    middle, error = map(float, value)
    if not error > 0.0:
        raise ValueError(
            f"The error of {name!r} must be positive, got {error!r}. Give an exact constant as a "
            f"number: constants={{{name!r}: {middle!r}}}."
        )
    if error < LEAST_ERROR * abs(middle):
        raise ValueError(
            f"The error of {name!r} is {error / abs(middle):.1g} of its value, beyond what can be "
            f"told apart. Give it as exact: constants={{{name!r}: {middle!r}}}."
        )
    if not 1e-290 < error < 1e290 or not sqrt(abs(middle)) < 1e150:
        raise ValueError(f"{name!r} = {value!r} is out of range. Change its unit.")
    return Normal(middle, error)
