"""SymPy to PyTensor to PyMC: priors and noise of Section 2.2, written once."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
from numpy.typing import ArrayLike, NDArray
from pymc.distributions.continuous import FlatRV
from pymc.distributions.shape_utils import rv_size_is_none
from pytensor.compile.mode import Mode
from pytensor.graph.replace import clone_replace, vectorize_graph
from sympytensor.pytensor import PytensorPrinter

from pmsr.equation.algebra import real_symbol
from pmsr.equation.expression import Equation
from pmsr.equation.operators import OPERATORS
from pmsr.equation.program import EvaluateProgram, Program
from pmsr.equation.rules import arguments, denominators
from pmsr.evidence.distributions import add_variable
from pmsr.evidence.multistart import Region
from pmsr.evidence.noise import GAUSSIAN, Columns, Noise
from pmsr.evidence.problem import Problem, read_problem, refuse_groups
from pmsr.evidence.volume import (
    SurfaceRegion,
    log_inside,
    log_no_alias,
    log_no_pole,
    log_one_side,
    log_volume,
)
from pmsr.limits import check_time
from pmsr.settings import Settings
from pmsr.threads import ONE_AT_A_TIME

Floats = NDArray[np.float64]

TINY = 1e-300  # of a variance: the root has no derivative at zero
_RESERVED = {
    "sigma",
    "y",
    "X",
    "y_observed",
    "mu",
    "y_err",
    "X_err",
    "repeats",
    "volume",
    "region",
    "side",
    "signs",
    "repeated",
    "observation",
    "column",
}
CHUNK = 2**18  # values of mu at a time: 2 MB, whatever the number of points or particles


def build_model(
    equation: Equation | str,
    X: ArrayLike,
    y: ArrayLike,
    *,
    y_err: ArrayLike | None = None,
    X_err: ArrayLike | None = None,
    groups: Any = None,
    sample_weight: ArrayLike | None = None,
    constants: Mapping[str, Any] | None = None,
    priors: Mapping[str, Any] | None = None,
    settings: Settings | None = None,
    region: Region | SurfaceRegion | None = None,
    **options: Any,
) -> pm.Model:
    r"""Plain PyMC model of one equation: ordinary PyTensor operations, no custom Op.

    .. math:: \theta_k \sim \mathrm{Flat}, \quad \sigma \sim \mathrm{Flat}(\sigma_{min},
        \sigma_{max}), \quad y \sim N(f(x, \theta), \sigma)

    With the invariant prior, the default, the potential ``volume`` adds half the log determinant
    of :math:`\chi'\chi`: theta is then flat on the surface of predictions. NUTS, nutpie and
    JAX work on it; so do your own changes of prior and likelihood.

    Parameters
    ----------
    equation
        What to model. Its parameters become scalar variables of the same names.
    X, y
        The data; X as a table with the equation's variables as columns.
    y_err, X_err, sample_weight
        Known errors of the target, standard deviations in its units, and of the variables, of the
        shape of X or a table of those columns that have errors; and how often each row was
        observed: 2 is the same as the row twice. Precisions belong in ``y_err``.
    groups
        Refused: a model is that of one group.
    constants
        Known constants by name, which equations may use as they use columns: a number, a value
        with its standard error, or a PyMC distribution. One that is not exact is a parameter with
        that prior.
    priors
        Proper priors of parameters by name, as in :func:`pmsr.compute_evidence`. With one for
        every parameter, ``pm.sample_prior_predictive`` draws from them.
    settings
        The noise, the prior of sigma and its bounds.
    region
        Where theta is flat, from ``pmsr.fit_equation(equation, X, y).region``. Without it the
        posterior of most non-linear equations is improper, and a sampler wanders off. Parameters
        that the data do not determine are held at the best fit, as in the evidence. Sample such a
        model by ``pm.sample(init="adapt_diag")``, from the best fit: PyMC's default adds a jitter
        of up to one, which can lie outside.
    options
        Single options of :class:`pmsr.Settings`, as in :func:`pmsr.compute_evidence`.

    Returns
    -------
    pymc.Model
        Free variables: the parameters, then ``sigma``. Data: ``X`` and ``y_observed``, and
        ``y_err`` and ``X_err`` where errors are known, with the dimensions ``observation`` and
        ``column``. ``pm.set_data({"X": new})`` alone, with other errors if there are any, is
        enough to predict new rows by ``pm.sample_posterior_predictive``.

    Examples
    --------
    >>> from pmsr.data import load_galileo
    >>> model = build_model(Equation("c0*sqrt(H)", ["H"]), *load_galileo("shelf"))
    >>> [variable.name for variable in model.free_RVs]
    ['c0', 'sigma']
    """
    equation, problem, _ = read_problem(
        equation,
        X,
        y,
        settings,
        options,
        constants=constants,
        priors=priors,
        y_err=y_err,
        X_err=X_err,
        groups=groups,
        sample_weight=sample_weight,
    )
    return make_model(equation, problem, region)


def make_model(
    equation: Equation, problem: Problem, region: Region | SurfaceRegion | None = None
) -> pm.Model:
    """Make the model that `build_model` describes."""
    refuse_groups(problem, "A PyMC model is made for")
    data = problem.data
    clash = next((name for name in equation.parameters if name in _RESERVED), None)
    if clash is not None:
        raise ValueError(
            f"A parameter must not be called {clash!r}: the model has a variable of that name. "
            f"Rename it in {equation.text!r}."
        )
    with ONE_AT_A_TIME, pm.Model() as model:
        model.add_coord("column", data.names)
        inputs = pm.Data("X", data.X, dims=("observation", "column"))
        held = {} if region is None else region.held()
        names = [name for k, name in enumerate(equation.parameters) if k not in held]
        starts = dict(zip(names, region.starts(), strict=True)) if region else {}
        theta = [_add_parameter(name, problem, starts.get(name)) for name in names]
        given = {equation.parameters[place] for place in problem.given.places}
        flat_theta = [one for name, one in zip(names, theta, strict=True) if name not in given]
        tensors = {name: inputs[:, column] for column, name in enumerate(equation.variables)}
        tensors |= dict(zip(names, theta, strict=True))
        for place, number in held.items():
            name = equation.parameters[place]
            tensors[name] = pm.Deterministic(name, pt.constant(number, dtype="float64"))
        value = _SymbolPrinter(tensors).doprint(equation.expression)
        value = pt.as_tensor(value, dtype="float64")
        mu = pm.Deterministic("mu", pt.broadcast_to(value, inputs.shape[:1]), dims="observation")
        # Without names of rows: new X may have another number of them.
        y_observed = pm.Data("y_observed", data.y)
        columns = {name: pm.Data(name, values) for name, values in problem.columns.items()}
        if problem.noise.uses_slopes:
            X_err = np.zeros_like(data.X) if data.X_err is None else data.X_err
            X_err = pm.Data("X_err", X_err, dims=("observation", "column"))
            columns = {"y_err": _effective_error(mu, inputs, X_err, columns.get("y_err", 0.0))}
        sigma = None
        if problem.scale.is_free:
            sigma = _add_sigma(problem.sigma_bounds, problem.sigma_power)
        problem.noise.observe(mu, sigma, y_observed, columns, shape=mu.shape, dims="observation")
        if data.counts is not None:
            kind, arguments = problem.noise.distribution(mu, sigma, columns)
            more = pm.Data("repeats", data.counts - 1.0)
            log_density = pm.logp(kind.dist(**arguments), y_observed)
            pm.Potential("repeated", pt.sum(more * log_density))
        if problem.positive and flat_theta:
            known = {} if region is None else starts
            signs = [-1.0 if known.get(one.name, 1.0) < 0.0 else 1.0 for one in flat_theta]
            least = pt.min(pt.stack([s * one for s, one in zip(signs, flat_theta, strict=True)]))
            pm.Potential("signs", pt.switch(least > 0.0, 0.0, -np.inf))
        if problem.noise.is_mirrored:
            pm.Potential("side", log_one_side(mu, problem.noise.signs(data)))
        flat = problem.noise.link is None and is_linear(equation.program, held)
        if problem.parameter_prior == "invariant" and flat_theta and (given or not flat):
            weights = _volume_weights(problem, region)
            pm.Potential("volume", log_volume(_whiten(mu, problem, weights), flat_theta))
        if isinstance(region, SurfaceRegion):
            pm.Potential("region", _log_region(equation, problem, region, mu, tensors))
        elif region is not None:
            steps = [pt.stack(theta) - centre for centre in region.centres]
            squares = [
                pt.sum(pt.dot(W, s) ** 2) for W, s in zip(region.whitens, steps, strict=True)
            ]
            nearest = pt.min(pt.stack(squares))
            pm.Potential("region", pt.switch(nearest <= region.radius**2, 0.0, -np.inf))
    return model


def _add_parameter(name: str, problem: Problem, initval: float | None) -> Any:
    """Add a parameter to the model in context, with its prior or flat."""
    places = problem.given.places
    prior = problem.priors.get(name) if places else None
    if prior is None:
        return Improper(name, initval=initval)
    return add_variable(name, prior, initval)


class ImproperRV(FlatRV):
    """What cannot be drawn: NaN, where PyMC's own would fail even to say that it is a number."""

    @classmethod
    def rng_fn(cls, rng: np.random.Generator, size: Any) -> Any:  # noqa: D102
        return np.full(() if size is None else size, np.nan)


# Any: PyTensor's variables.
class Improper(pm.Flat):
    """PyMC's flat prior, of which ``pm.model_to_graphviz`` can find the shape.

    Draws from it, as by ``pm.sample_prior_predictive``, are NaN: there are none.
    """

    rv_op = ImproperRV()

    def support_point(rv: Any, size: Any) -> Any:  # noqa: D102
        return pt.zeros(() if rv_size_is_none(size) else size)

    def logp(value: Any) -> Any:  # noqa: D102
        return pt.zeros_like(value)


def _effective_error(mu: Any, X: Any, X_err: Any, y_err: Any) -> Any:
    """Return the error of each row, with those of the variables by the slopes of the law."""
    slopes = pytensor.grad(pt.sum(mu), X, disconnected_inputs="ignore")
    square = pt.sum(pt.switch(X_err > 0.0, slopes * X_err, 0.0) ** 2, axis=1) + y_err**2
    return pt.sqrt(pt.maximum(square, TINY))  # at zero, the root has no derivative


def _volume_weights(problem: Problem, region: Region | SurfaceRegion | None) -> Floats | None:
    """Return the weights of rows in the surface's volume: known errors count as at the best fit."""
    if not problem.noise.needs_tuning:
        return problem.weights
    if not (problem.noise.uses_slopes or "y_err" in problem.columns):
        return problem.untuned.weights
    if problem.tuning is None and isinstance(region, SurfaceRegion):
        return region.weights
    return problem.weights


def _whiten(mu: Any, problem: Problem, weights: Floats | None) -> Any:
    """Return predictions in the space of weighed residuals, as `Problem.whiten` does.

    Where they have the wrong sign there is no likelihood, and this is a number all the same: with
    NaN the density would not be zero, but no density.
    """
    link, value = problem.noise.link, mu
    if link is not None:
        value = OPERATORS[link.operator].pytensor(abs(mu))
    return value if weights is None else value * weights


def is_linear(program: Program, held: Collection[int] = ()) -> bool:
    """Tell whether an equation is linear in its parameters, apart from those that are held."""
    free = program.freeze(dict.fromkeys(held, 1.0)) if held else program
    return len(free.affine) == free.n_parameters


def _log_region(
    equation: Equation,
    problem: Problem,
    region: SurfaceRegion,
    mu: Any,
    tensors: dict[str, Any],
) -> Any:
    """Return 0 within the region and its rules, -inf elsewhere."""
    log = log_inside(_whiten(mu, problem, region.weights), region)
    free = [real_symbol(equation.parameters[place]) for place in region.free]
    printer = _SymbolPrinter(tensors)
    for below in denominators(equation.expression, free):
        log = log + log_no_pole(printer.doprint(below))
    numbers = dict(zip(map(real_symbol, equation.parameters), region.start, strict=True))
    numbers |= dict(zip(map(real_symbol, equation.variables), problem.data.X[0], strict=True))
    for name, argument, is_phase in arguments(equation.expression, free):
        phase = float(argument.subs(numbers)) if is_phase else None
        log = log + log_no_alias(name, printer.doprint(argument), phase, problem.n)
    return log


class _SymbolPrinter(PytensorPrinter):
    """sympytensor's printer, with our tensors for the symbols and our rows for functions."""

    def __init__(self, tensors: dict[str, Any]) -> None:
        super().__init__()
        self.tensors = tensors
        self.rows = {row.sympy: row.pytensor for row in OPERATORS.values()}

    def _print_Symbol(self, symbol: Any, **_: Any) -> Any:
        return self.tensors[symbol.name]

    def _print_Integer(self, number: Any, **_: Any) -> Any:
        return int(number) if abs(number) < 2**63 else float(number)

    def _print_Function(self, expression: Any, **_: Any) -> Any:
        return self.rows[expression.func](*map(self._print, expression.args))

    _print_AppliedUndef = _print_Function


def _add_sigma(sigma_bounds: Any, sigma_power: int, **options: Any) -> Any:
    """Add sigma with its prior to the model in context."""
    low, high = sigma_bounds
    if sigma_power == 0:
        return pm.Uniform("sigma", low, high, **options)
    # Not a Potential: PyMC counts those to the likelihood, and would temper them.
    interval = pm.distributions.transforms.Interval(low, high)
    return pm.CustomDist(
        "sigma", low, high, logp=_log_flat, random=_draw_log_flat, default_transform=interval
    )


def _log_flat(sigma: Any, low: Any, high: Any) -> Any:
    """Log density of 1/sigma between two bounds."""
    inside = (sigma >= low) & (sigma <= high)
    return pt.switch(inside, -pt.log(sigma) - pt.log(pt.log(high / low)), -np.inf)


def _draw_log_flat(low: Any, high: Any, rng: np.random.Generator, size: Any) -> Floats:
    return np.asarray(np.exp(rng.uniform(np.log(low), np.log(high), size=size)))


@dataclass(frozen=True, eq=False)
class Template:
    """One compiled density for every equation with the same noise and number of parameters.

    Parameters
    ----------
    model
        PyMC model whose table, literals and data are ``pm.Data``; free variables theta and sigma.
    compiled
        Its ``datalogp``, vectorised over particles, with all data as inputs. Only its copies are
        called: a function keeps its inputs and intermediate results in places of its own, where
        two threads would overwrite each other's numbers.
    """

    model: pm.Model
    compiled: Any
    _idle: list[Any] = field(default_factory=list)

    def log_likelihood(
        self, program: Program, problem: Problem, theta: Floats, sigma: Floats
    ) -> Floats:
        r"""Return :math:`\log L(\theta, \sigma)` of many particles; -inf where f is not finite.

        Parameters
        ----------
        program, problem
            The equation and the observations.
        theta, sigma
            Particles, of shapes (n, p) and (n,).
        """
        data = problem.data
        size = max(1, CHUNK // len(data.y))
        table = (program.nodes, program.literals, data.X, data.y, *problem.columns.values())
        function = self._take()
        parts = []
        for start in range(0, len(theta), size):
            check_time()
            chunk = slice(start, start + size)
            particles = (theta[chunk], sigma[chunk])[: 1 + problem.scale.is_free]
            parts.append(function(*table, *particles))
        self._idle.append(function)  # unless it was interrupted
        log_likelihood: Floats = np.concatenate(parts)
        return np.where(np.isfinite(log_likelihood), log_likelihood, -np.inf)

    def _take(self) -> Any:
        """Take a function that nobody is using; there are as many as were ever busy at once."""
        try:
            return self._idle.pop()
        except IndexError:
            with ONE_AT_A_TIME:
                return self.compiled.copy()  # 1 ms


_templates: dict[tuple[str, tuple[str, ...], int], Template] = {}


def make_template(
    n_parameters: int, noise: Noise = GAUSSIAN, columns: Columns | None = None
) -> Template:
    """Compile the density of equations with this many parameters: once a process, 0.2 s."""
    names = tuple(columns or ())
    key = (noise.name, names, n_parameters)
    if key not in _templates:
        with ONE_AT_A_TIME:
            if key not in _templates:
                _templates[key] = _compile_template(n_parameters, noise, names)
    return _templates[key]


def _compile_template(n_parameters: int, noise: Noise, columns: tuple[str, ...]) -> Template:
    # Not part of a model whose context a user may have opened.
    with pm.Model(model=None) as model:
        names = ("nodes", "literals", "X", "y_observed", *columns)
        empty = [np.zeros((1, 3), "int32"), np.zeros(1), np.zeros((1, 1)), np.zeros(1)]
        empty += [np.ones(1)] * len(columns)
        inputs = [pm.Data(name, value) for name, value in zip(names, empty, strict=True)]
        nodes, literals, X, y, *others = inputs
        theta = pm.Flat("theta", shape=n_parameters)
        bounds = pm.Data("sigma_bounds", np.array([1.0, 2.0]))
        mu = EvaluateProgram()(nodes, literals, theta, X)
        # No transform: the particles of SMC are the values of sigma itself.
        sigma_rv = None
        if noise.has_sigma:
            sigma_rv = _add_sigma((bounds[0], bounds[1]), 0, default_transform=None)
        noise.observe(mu, sigma_rv, y, dict(zip(columns, others, strict=True)))

    # With an unspecified second dimension p = 1 would not broadcast.
    particles = pt.tensor("theta", dtype="float64", shape=(None, n_parameters))
    sigma = pt.vector("sigma", dtype="float64")
    arguments = [particles, sigma][: 1 + noise.has_sigma]
    values = dict(zip(model.value_vars, arguments, strict=True))
    density = vectorize_graph(model.datalogp, values)
    free = [variable.type() for variable in inputs]
    density = clone_replace(density, dict(zip(inputs, free, strict=True)))
    # The work is in the Op. Python's linker needs no C compiler and a tenth of the others' time
    # to compile; fused loops would be slow in it.
    mode = Mode(linker="py", optimizer="fast_run").excluding("fusion")
    compiled = pytensor.function([*free, *arguments], density, mode=mode)
    compiled.trust_input = True
    return Template(model, compiled)
