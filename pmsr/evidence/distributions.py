"""From PyMC's distributions, and values with errors, to priors of parameters."""

from collections.abc import Mapping
from numbers import Real
from typing import Any

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
from numpy.typing import NDArray
from pymc.distributions.distribution import SymbolicRandomVariable
from pytensor.compile.mode import Mode
from pytensor.graph.replace import clone_replace
from pytensor.tensor.random.op import RandomVariable

from pmsr.data import Constant
from pmsr.evidence.priors import Normal, Prior, Tabulated, Unsaved, read_normal
from pmsr.threads import ONE_AT_A_TIME

Floats = NDArray[np.float64]

RESERVED = ("sigma", "y", "X", "y_observed", "y_err", "mu", "chain", "draw")
N_LOOKED_AT = 500  # draws that say where the bulk of a distribution is
_HOW = "Give a distribution such as pm.HalfNormal.dist(2), or (value, error)."


# Any: PyTensor's variables, and what users hand over instead.
def read_prior(name: str, prior: Any) -> Prior:
    """Return the prior of one parameter, or say what it must be.

    Parameters
    ----------
    name
        Of the parameter.
    prior
        A PyMC distribution without a name, from ``.dist(...)``; a value and its standard error; or
        a prior that was read already.

    Examples
    --------
    >>> read_prior("c1", pm.HalfNormal.dist(2.0)).words
    'HalfNormal(0, 2)'
    """
    if isinstance(prior, Normal | Tabulated | Unsaved):
        return prior
    if isinstance(prior, tuple | list):
        return read_normal(name, prior)
    operator = getattr(getattr(prior, "owner", None), "op", None)
    if not isinstance(operator, RandomVariable | SymbolicRandomVariable):
        hint = ""
        if isinstance(prior, type) or callable(getattr(prior, "dist", None)):
            hint = f"It has arguments to be given: pm.{getattr(prior, '__name__', 'X')}.dist(...). "
        raise ValueError(f"The prior of {name!r} is no distribution, got {prior!r}. {hint}{_HOW}")
    words = _words(prior)
    if prior.ndim != 0:
        raise ValueError(
            f"The prior of {name!r}, {words}, must be of one number, got {prior.ndim} dimension(s)."
            f" {_HOW}"
        )
    if not str(prior.dtype).startswith("float"):
        raise ValueError(
            f"The prior of {name!r}, {words}, is discrete: parameters are on a line. {_HOW}"
        )
    if _has_random_arguments(prior):
        raise ValueError(
            f"The prior of {name!r}, {words}, has an argument that is itself random. Give numbers; "
            "hierarchies are for a model of your own, from pmsr.build_model."
        )
    with ONE_AT_A_TIME:
        compiled = Distribution(prior)
        numbers = _numbers(prior)
        if str(operator).startswith("normal_rv") and numbers is not None:
            return read_normal(name, numbers)
        try:
            draws = pm.draw(prior, N_LOOKED_AT, random_seed=1, mode=Mode(linker="py"))
        except (NotImplementedError, ValueError) as error:
            raise ValueError(
                f"The prior of {name!r}, {words}, is no proper prior: nobody can draw from it. "
                f"Leave it out for a flat one. {_HOW}"
            ) from error
    try:
        return Tabulated.of(
            words, compiled.log_density, compiled.forward, compiled.backward, draws, prior
        )
    except ValueError as error:
        raise ValueError(f"The prior of {name!r}: {error}") from None


def read_priors(priors: Mapping[str, Any] | None) -> dict[str, Prior]:
    """Return the priors of parameters by name.

    Examples
    --------
    >>> read_priors({"c1": (2.0, 0.1)})
    {'c1': Normal(value=2.0, error=0.1)}
    """
    if priors is None:
        return {}
    if not isinstance(priors, Mapping) or not all(isinstance(name, str) for name in priors):
        raise ValueError(
            f"priors must be a dictionary with names of parameters, got {priors!r}. "
            'Use priors={"c1": pm.HalfNormal.dist(2)}.'
        )
    if "sigma" in priors:
        raise ValueError(
            "sigma has no prior of this kind: it is flat, or flat in its logarithm, between its "
            "bounds. Change Settings(sigma_prior=, sigma_min=, sigma_max=), or give y_err."
        )
    return {name: read_prior(name, prior) for name, prior in priors.items()}


def read_constants(constants: Mapping[str, Any] | None) -> dict[str, Constant]:
    """Return known constants by name: exact ones, and those with an error or a distribution.

    Parameters
    ----------
    constants
        A number, a value with its standard error, or a PyMC distribution for each name.

    Examples
    --------
    >>> read_constants({"g": 9.81, "k": (1.38e-23, 1e-25)})["g"]
    Constant(value=9.81, prior=None)
    """
    if constants is None:
        return {}
    if not isinstance(constants, Mapping):
        raise ValueError(
            f"constants must be a dictionary of names and values, got {constants!r}. "
            'Use constants={"g": 9.81, "k": (1.38e-23, 1e-25)}.'
        )
    found = {}
    for name, value in constants.items():
        if isinstance(value, Constant):
            found[name] = value
        elif isinstance(value, Real):
            found[name] = Constant(value)  # type: ignore[arg-type]
        else:
            if name in RESERVED:
                raise ValueError(
                    f"An uncertain constant must not be called {name!r}: the model has a variable "
                    "of that name. Rename it."
                )
            prior = read_prior(str(name), value)
            found[name] = Constant(float(prior.from_z(np.zeros(1))[0]), prior)
    return found


def add_variable(name: str, prior: Prior, initval: float | None) -> Any:
    """Add a parameter with its prior to the PyMC model in context."""
    if isinstance(prior, Normal):
        return pm.Normal(name, prior.value, prior.error, initval=initval)
    variable = getattr(prior, "variable", None)
    if variable is None:
        raise ValueError(
            f"The prior of {name!r}, {prior.words}, was not saved: a PyMC distribution is not. "
            "Build the model with priors= of your own."
        )
    # A copy with a generator of its own: one distribution may be in several models.
    return pm.modelcontext(None).register_rv(clone_replace(variable), name, initval=initval)


class Distribution:
    """The density of a PyMC distribution of one number, compiled when it is first asked for."""

    def __init__(self, variable: Any) -> None:
        self.variable = variable

    def log_density(self, theta: Floats) -> Floats:
        """Return the log density of an array."""
        return np.asarray(self._functions()[0](theta), dtype=np.float64)

    def forward(self, theta: Floats) -> Floats:
        """Return values on the whole line."""
        return np.asarray(self._functions()[1](theta), dtype=np.float64)

    def backward(self, line: Floats) -> tuple[Floats, Floats]:
        """Return parameters for values on the whole line, and the log of the slope."""
        theta, log_slope = self._functions()[2](line)
        return np.asarray(theta, dtype=np.float64), np.asarray(log_slope, dtype=np.float64)

    def _functions(self) -> tuple[Any, Any, Any]:
        if "compiled" not in self.__dict__:
            with ONE_AT_A_TIME:
                self.compiled = self._compile()
        return self.compiled

    def _compile(self) -> tuple[Any, Any, Any]:
        with pm.Model(model=None) as model:
            copy = clone_replace(self.variable)
            model.register_rv(copy, "theta")
        transform = model.rvs_to_transforms[copy]
        inputs = copy.owner.inputs
        value = pt.vector("theta", dtype="float64")
        forward: Any = value
        backward: Any = value
        log_slope: Any = pt.zeros_like(value)
        # An angle's transform is no map of the whole line.
        if transform is not None and transform.name != "circular":
            forward = transform.forward(value, *inputs)
            backward = transform.backward(value, *inputs)
            log_slope = transform.log_jac_det(value, *inputs)
        density = pm.logp(copy, value)
        mode = Mode(linker="py", optimizer="fast_run").excluding("fusion")
        density, forward, backward, log_slope = (
            pt.broadcast_to(pt.cast(one, "float64"), value.shape)
            for one in (density, forward, backward, log_slope)
        )
        return (
            pytensor.function([value], density, mode=mode),
            pytensor.function([value], forward, mode=mode),
            pytensor.function([value], [backward, log_slope], mode=mode),
        )

    def __getstate__(self) -> dict[str, Any]:
        return {"variable": self.variable}


def _has_random_arguments(variable: Any) -> bool:
    """Tell whether a distribution depends on another."""
    stack = list(variable.owner.inputs)
    while stack:
        one = stack.pop()
        if one.owner is None:
            continue
        if isinstance(one.owner.op, RandomVariable | SymbolicRandomVariable):
            # The parts of a mixture, or what is truncated, are not arguments.
            if not isinstance(variable.owner.op, SymbolicRandomVariable):
                return True
            if _has_random_arguments(one):
                return True
            continue
        stack.extend(one.owner.inputs)
    return False


def _numbers(variable: Any) -> tuple[float, ...] | None:
    """Return the arguments of a distribution where they are numbers."""
    operator, found = variable.owner.op, []
    parameters = getattr(operator, "dist_params", None)
    if parameters is None:
        return None
    try:
        for one in parameters(variable.owner):
            found.append(float(pm.pytensorf.constant_fold([one])[0]))
    except Exception:  # whatever is no number is not written as one
        return None
    return tuple(found)


def _words(variable: Any) -> str:
    """Write a distribution for a reader."""
    operator = variable.owner.op
    name = (getattr(operator, "_print_name", None) or (type(operator).__name__,))[0]
    numbers = _numbers(variable)
    arguments = "..." if numbers is None else ", ".join(f"{number:g}" for number in numbers)
    return f"{name}({arguments})"
