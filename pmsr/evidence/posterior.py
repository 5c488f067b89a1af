"""The posterior of one equation as ArviZ data."""

import json
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from numbers import Integral
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

import arviz as az
import numpy as np
import xarray as xr
from numpy.typing import NDArray

from pmsr.data import Data
from pmsr.equation.expression import Equation
from pmsr.equation.program import evaluate, evaluate_jacobian
from pmsr.evidence.evidence import (
    CHAINS,
    DRAWS,
    Chain,
    Weighed,
    group_seeds,
    make_target,
    seed_for,
    sigma_density,
    weigh,
)
from pmsr.evidence.model import make_model
from pmsr.evidence.multistart import Fit, FitError
from pmsr.evidence.problem import Problem, read_problem
from pmsr.evidence.proposal import Target
from pmsr.evidence.scale import sigma_quantiles
from pmsr.evidence.smc import keep_families, run_kernel, sample_with_pymc
from pmsr.limits import OutOfTime
from pmsr.magnitude import column_lengths
from pmsr.settings import RandomSeed, Settings
from pmsr.threads import one_blas_thread

if TYPE_CHECKING:
    from arviz import InferenceData

Floats = NDArray[np.float64]

MIN_DRAWS = 100  # in a chain: the kernel wants as many effective particles
OVERSAMPLING = 4  # points from the proposal for each draw, unless the settings ask for more
MAX_POINTWISE = 60_000_000  # values in each pointwise group: together they take 1 GB
_RESERVED = ("sigma", "chain", "draw")
Sampler: TypeAlias = Literal["kernel", "pymc"]
"""What runs Sequential Monte Carlo: our loop, or PyMC's."""


def sample_posterior(
    equation: Equation | str,
    X: Any,
    y: Any,
    *,
    y_err: Any = None,
    X_err: Any = None,
    groups: Any = None,
    sample_weight: Any = None,
    constants: Mapping[str, Any] | None = None,
    priors: Mapping[str, Any] | None = None,
    settings: Settings | None = None,
    random_seed: RandomSeed = None,
    draws: int = DRAWS,
    chains: int = CHAINS,
    pointwise: bool = True,
    sampler: Sampler = "kernel",
    **options: Any,
) -> "InferenceData | xr.DataTree":
    r"""Sample the posterior of an equation's parameters and of the noise level.

    Parameters
    ----------
    equation
        An equation, or its text with the columns of X as variables.
    X, y
        The data.
    y_err, X_err, sample_weight
        Known errors of the target, standard deviations in its units, and of the variables, of the
        shape of X or a table of those columns that have errors; and how often each row was
        observed: 2 is the same as the row twice. Precisions belong in ``y_err``.
    groups
        The experiment to which each row belongs. Parameters, and sigma unless it is shared, then
        have a dimension ``group``, and there are no pointwise groups.
    constants
        Known constants by name, which equations may use as they use columns: a number, a value
        with its standard error, or a PyMC distribution. One that is not exact is a parameter with
        that prior.
    priors
        Proper priors of parameters by name, as in :func:`pmsr.compute_evidence`.
    settings
        Fraction, prior of sigma, and number of multistarts, as for the evidence.
    random_seed
        Seed or generator. The same seed gives the same draws.
    draws, chains
        Draws in a chain, and independent runs of Sequential Monte Carlo (Section 2.2). They share
        the minima that the multistart found.
    pointwise
        Whether to add the groups ``posterior_predictive`` and ``log_likelihood``, each of which
        holds chains × draws × N numbers.
    sampler
        ``"kernel"`` runs our Sequential Monte Carlo kernel by itself, in milliseconds; ``"pymc"``
        runs it under ``pm.sample_smc`` on the very model that ``build_model`` and ``to_pymc()``
        give, which takes seconds to compile. Both sample the same density.
    options
        Single options of :class:`pmsr.Settings`, as in :func:`pmsr.compute_evidence`.

    Returns
    -------
    InferenceData or DataTree
        Whichever the installed ArviZ uses, ready for ``az.summary``, ``az.plot_pair``, ``az.loo``
        and the rest. Groups:

        - ``posterior``: one scalar for each parameter, under its own name, and ``sigma``. Its
          ``attrs`` hold the equation, :math:`\gamma`, the bounds of sigma, ``theta_map`` (the best
          minimum: under flat priors the maximum a posteriori) and ``held``;
        - ``posterior_predictive``, ``log_likelihood``, ``observed_data``: ``y``;
        - ``constant_data``: ``X``;
        - ``sample_stats``: for each stage ``beta`` (the inverse temperature),
          ``log_marginal_likelihood`` and ``accept_rate``, NaN after a chain's last stage; for each
          chain ``log_z_gamma``, ``log_z`` and ``log_q``.

    Raises
    ------
    ValueError
        If the equation has no posterior, for instance because it is never finite.

    Warns
    -----
    UserWarning
        If the data do not determine all parameters. As many as necessary are then held at their
        value in the best minimum, and the others are given these; ``held`` names them.

    Notes
    -----
    Draws that descend from the same particle follow one another, so that the effective sample size
    which ArviZ takes from the autocorrelation counts what they share.

    Examples
    --------
    >>> from pmsr.data import load_galileo
    >>> idata = sample_posterior("c0*sqrt(H)", *load_galileo("shelf"), random_seed=1)
    >>> dict(idata.posterior.sizes), list(idata.posterior.data_vars)
    ({'chain': 4, 'draw': 1000}, ['c0', 'sigma'])
    >>> round(float(idata.posterior["c0"].mean()), 1)
    47.1
    """
    equation, problem, settings = read_problem(
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
    if problem.parts:
        seed = seed_for(equation.key, random_seed)
        return _sample_groups(equation, problem, settings, seed, draws, chains, sampler)
    if pointwise:
        size = _check_count("draws", draws, MIN_DRAWS) * _check_count("chains", chains, 1)
        _check_pointwise(size, len(problem.data.y))
    seed = seed_for(equation.key, random_seed)
    sample = draw_posterior(
        equation, problem, settings, seed, draws=draws, chains=chains, sampler=sampler
    )
    for reason in sample.reasons:
        warnings.warn(reason, stacklevel=2)
    return to_arviz(equation, problem, sample, seed if pointwise else None)


def _sample_groups(
    equation: Equation,
    problem: Problem,
    settings: Settings,
    seed: np.random.SeedSequence,
    draws: int,
    chains: int,
    sampler: Sampler,
) -> "InferenceData | xr.DataTree":
    """Sample several groups: each by itself, or all together if they share sigma."""
    if problem.shared_sigma and equation.parameters:
        if (draws, chains, sampler) != (DRAWS, CHAINS, "kernel"):
            raise ValueError(
                f"Groups that share sigma have {CHAINS} chains of {DRAWS} draws, got {chains} of "
                f"{draws} by {sampler!r}. Leave draws, chains and sampler out."
            )
        _check_parameters(equation)
        whole = weigh(equation.program, problem, settings, seed, keep=True)
        if whole.evidence.failure is not None:
            raise ValueError(
                f"The equation {equation.text!r} has no posterior on these data: "
                f"{whole.evidence.failure}."
            )
        pairs = zip(problem.parts, whole.parts, strict=True)
        found = [draw_posterior(equation, part, settings, seed, weighed=one) for part, one in pairs]
    elif problem.shared_sigma:
        one = draw_posterior(
            equation, problem, settings, seed, draws=draws, chains=chains, sampler=sampler
        )
        found = [one] * len(problem.parts)
    else:
        found = [
            draw_posterior(
                equation, part, settings, own, draws=draws, chains=chains, sampler=sampler
            )
            for part, own in zip(problem.parts, group_seeds(seed, problem), strict=True)
        ]
    for label, one in zip(problem.labels, found, strict=True):
        for reason in one.reasons:
            warnings.warn(f"Group {label!r}: {reason}", stacklevel=3)
    return join_groups(equation, problem, found)


def join_groups(
    equation: Equation, problem: Problem, draws: Sequence["Draws"]
) -> "InferenceData | xr.DataTree":
    """Arrange the draws of all groups as ArviZ data with a dimension ``group``.

    A sigma that is shared has none.
    """
    tables = [
        _to_datasets(equation, part, one) for part, one in zip(problem.parts, draws, strict=True)
    ]
    posteriors = [table["posterior"] for table in tables]
    sigma = posteriors[0].get("sigma") if problem.shared_sigma else None
    if sigma is not None:
        posteriors = [one.drop_vars("sigma") for one in posteriors]
    posterior = posteriors[0]
    if posterior.data_vars:
        posterior = xr.concat(posteriors, dim="group").transpose("chain", "draw", "group")
    posterior = posterior.assign_coords(group=np.array(problem.labels, dtype=str))
    if sigma is not None:
        posterior["sigma"] = sigma
    posterior.attrs = tables[0]["posterior"].attrs | {
        "groups": json.dumps(problem.labels),
        "theta_map": json.dumps([one.theta_map.tolist() for one in draws]),
        "held": json.dumps([one.held for one in draws]),
        "gamma": problem.gamma,
        "sigma_bounds": list(problem.sigma_bounds),
    }
    labels = [
        label
        for label, part in zip(problem.labels, problem.parts, strict=True)
        for _ in part.data.y
    ]
    observed, known = (
        xr.concat([table[name] for table in tables], dim="observation").assign_coords(
            observation=np.arange(len(problem.data.y))
        )
        for name in ("observed_data", "constant_data")
    )
    known = known.assign({"group_of_row": (("observation",), np.array(labels))})
    return _to_arviz({"posterior": posterior, "observed_data": observed, "constant_data": known})


def flatten_groups(
    equation: Equation, problem: Problem, draws: Sequence["Draws"]
) -> "InferenceData | xr.DataTree":
    """Arrange the same with a variable for each parameter of each group, such as ``c0[run 1]``."""
    tables = [
        _to_datasets(equation, part, one) for part, one in zip(problem.parts, draws, strict=True)
    ]
    found: dict[str, xr.DataArray] = {}
    for label, table in zip(problem.labels, tables, strict=True):
        for name, values in table["posterior"].data_vars.items():
            is_shared = problem.shared_sigma and name == "sigma"
            found[str(name) if is_shared else f"{name}[{label}]"] = values
    first = tables[0]["posterior"]
    names = [f"{name}[{label}]" for label in problem.labels for name in equation.parameters]
    held = {
        f"{name}[{label}]": value
        for label, one in zip(problem.labels, draws, strict=True)
        for name, value in one.held.items()
    }
    attrs = first.attrs | {
        "parameters": json.dumps(names),
        "theta_map": json.dumps([value for one in draws for value in one.theta_map.tolist()]),
        "held": json.dumps(held),
    }
    # Sigma last, as ever.
    found = dict(sorted(found.items(), key=lambda pair: pair[0].startswith("sigma")))
    posterior = xr.Dataset(found, attrs=attrs)
    return _to_arviz({"posterior": posterior, "sample_stats": tables[0]["sample_stats"]})


@dataclass(frozen=True, eq=False)
class Draws:
    """Draws from the posterior of one equation, as plain arrays.

    Parameters
    ----------
    theta, sigma
        Of shapes (chains, draws, p) and (chains, draws); sigma is 1 where it is not a parameter.
    theta_map
        The best minimum, of shape (p,).
    gamma
        The fraction.
    held
        Parameters that the data do not determine, with the value at which they are held.
    reasons
        Why they are held, in words.
    stats
        The variables of the group ``sample_stats``, of shapes (chains, stages) and (chains,).
    """

    theta: Floats
    sigma: Floats
    theta_map: Floats
    gamma: float
    held: dict[str, float]
    reasons: tuple[str, ...]
    stats: dict[str, Floats]

    @property
    def flat_theta(self) -> Floats:
        """All draws, of shape (chains * draws, p)."""
        return self.theta.reshape(self.sigma.size, self.theta.shape[2])

    @property
    def flat_sigma(self) -> Floats:
        """All draws, of shape (chains * draws,)."""
        return self.sigma.ravel()


STAGE_STATS = ("beta", "log_marginal_likelihood", "accept_rate")
CHAIN_STATS = ("log_z_gamma", "log_z", "log_q")


def draw_posterior(
    equation: Equation,
    problem: Problem,
    settings: Settings,
    seed: np.random.SeedSequence,
    *,
    draws: int = DRAWS,
    chains: int = CHAINS,
    weighed: Weighed | None = None,
    sampler: Sampler = "kernel",
) -> Draws:
    """Sample what `sample_posterior` arranges for ArviZ; the same seed gives the same draws.

    Of an equation that was weighed, region and particles are those of its evidence.

    Raises
    ------
    ValueError
        If the equation has no posterior.
    """
    draws = _check_count("draws", draws, MIN_DRAWS)
    chains = _check_count("chains", chains, 1)
    if sampler not in get_args(Sampler):
        raise ValueError(f"Unknown sampler {sampler!r}. Available: {', '.join(get_args(Sampler))}.")
    _check_parameters(equation)
    rng_fit, _, *rngs = (_child(seed, k) for k in range(2 + chains))
    with one_blas_thread(), np.errstate(all="ignore"):
        try:
            if equation.parameters:
                return _sample(equation, problem, settings, draws, rng_fit, rngs, weighed, sampler)
            return _sample_constant(equation, problem, settings, draws, rngs)
        except (FitError, FloatingPointError, np.linalg.LinAlgError) as error:
            raise ValueError(
                f"The equation {equation.text!r} has no posterior on these data: {error}."
            ) from None
        except OutOfTime:
            raise ValueError(
                f"There was no time left to sample the posterior of {equation.text!r}: its "
                "parameters have no error bars yet. It is sampled when it is first asked for; "
                "or search with more time."
            ) from None


def _child(seed: np.random.SeedSequence, place: int) -> np.random.Generator:
    """Return the generator of a seed's child; ``seed.spawn`` would count how often it is asked."""
    child = np.random.SeedSequence(seed.entropy, spawn_key=(*seed.spawn_key, place))
    return np.random.Generator(np.random.PCG64(child))


def _join(
    chains: Sequence[Chain],
    theta_map: Floats,
    gamma: float,
    held: dict[str, float],
    reasons: Sequence[str],
) -> Draws:
    """Stack the chains; those with fewer stages are padded with NaN."""
    n_stages = max(len(chain.stages) for chain in chains)
    stats = {}
    for name in STAGE_STATS:
        values = np.full((len(chains), n_stages), np.nan)
        for row, chain in enumerate(chains):
            values[row, : len(chain.stages)] = [stage[name] for stage in chain.stages]
        stats[name] = values
    log_z_gamma = np.array([chain.log_z_gamma for chain in chains])
    log_z = np.array([chain.log_z for chain in chains])
    stats |= dict(zip(CHAIN_STATS, (log_z_gamma, log_z, log_z - log_z_gamma), strict=True))
    return Draws(
        np.stack([chain.theta for chain in chains]),
        np.stack([chain.sigma for chain in chains]),
        theta_map,
        gamma,
        held,
        tuple(reasons),
        stats,
    )


def _sample(
    equation: Equation,
    problem: Problem,
    settings: Settings,
    draws: int,
    rng_fit: np.random.Generator,
    rngs: Sequence[np.random.Generator],
    weighed: Weighed | None,
    sampler: Sampler,
) -> Draws:
    kept = () if weighed is None or sampler == "pymc" else weighed.chains
    if weighed is not None and weighed.fit is not None and len(kept) == len(rngs):
        found, chains = weighed.fit, list(kept)
    else:
        if weighed is not None and weighed.fit is not None:
            target = weighed.target(problem)
        else:
            target = make_target(equation.program, problem, settings.n_multistarts, rng=rng_fit)
        n_draws = max(settings.n_draws, OVERSAMPLING * draws)
        found = target.fit
        if sampler == "pymc":
            chains = _run_pymc(equation, target, draws, n_draws, rngs)
        else:
            chains = [_run_chain(target, draws, n_draws, rng) for rng in rngs]
    held, reasons = _describe_held(equation, found, problem.data)
    return _join(chains, found.theta, problem.gamma, held, reasons)


def _run_chain(target: Target, draws: int, n_draws: int, rng: np.random.Generator) -> Chain:
    """Run the kernel to the posterior and keep the statistics of every stage."""
    kernel = run_kernel(target, n_draws=n_draws, n_particles=draws, rng=rng, to_posterior=True)
    order = keep_families(kernel.resampling_indexes, rng)
    theta = target.fit.full_theta(kernel.theta[order])
    return Chain(
        theta,
        np.exp(kernel.log_sigma[order]),
        kernel.stages,
        kernel.log_z_gamma,
        kernel.log_marginal_likelihood,
    )


def _run_pymc(
    equation: Equation,
    target: Target,
    draws: int,
    n_draws: int,
    rngs: Sequence[np.random.Generator],
) -> list[Chain]:
    """Run all chains under PyMC's own driver, on the model that users get."""
    model = make_model(equation, target.problem, target.region)
    # Any: InferenceData or DataTree, whichever PyMC has.
    idata: Any = sample_with_pymc(
        target, model, n_draws=n_draws, n_particles=draws, chains=len(rngs), rng=rngs[0]
    )
    posterior, stats = idata.posterior, idata.sample_stats
    chains = []
    for row, rng in enumerate(rngs):
        theta = np.empty((draws, len(equation.parameters)))
        for place, name in enumerate(equation.parameters):
            theta[:, place] = np.asarray(posterior[name])[row]
        has_sigma = target.problem.scale.is_free
        sigma = np.asarray(posterior["sigma"])[row] if has_sigma else np.ones(draws)
        table = {name: np.asarray(stats[name])[row].ravel().tolist() for name in STAGE_STATS}
        rows = zip(*table.values(), strict=True)
        stages = [dict(zip(table, values, strict=True)) for values in rows]
        stages = [stage for stage in stages if np.isfinite(stage["beta"])]
        at_gamma = next(s for s in stages if s["beta"] == target.gamma)
        order = rng.permutation(draws)  # the kernel sorts its particles by the proposal's parts
        chains.append(
            Chain(
                theta[order],
                sigma[order],
                stages,
                at_gamma["log_marginal_likelihood"],
                stages[-1]["log_marginal_likelihood"],
            )
        )
    return chains


def _sample_constant(
    equation: Equation,
    problem: Problem,
    settings: Settings,
    draws: int,
    rngs: Sequence[np.random.Generator],
) -> Draws:
    """Sample sigma alone, by the inverse of its distribution function."""
    evidence = weigh(equation.program, problem, settings, np.random.SeedSequence(0)).evidence
    if evidence.failure is not None:
        raise FitError(evidence.failure)
    if problem.scale.is_free and not problem.noise.is_exact:
        draw = partial(sigma_quantiles, *sigma_density(equation.program, problem, 1.0))
    else:
        values = evaluate(problem.whiten(equation.program), np.empty((1, 0)), problem.white.X)[0]
        square = float(np.sum((problem.white.y - values) ** 2))
        draw = partial(problem.scale.draw, problem.n, square)
    stages = [
        {"beta": phi, "log_marginal_likelihood": log_z, "accept_rate": np.nan}
        for phi, log_z in ((evidence.gamma, evidence.log_z_gamma), (1.0, evidence.log_z))
    ]
    chains = []
    for rng in rngs:
        strata = (rng.permutation(draws) + rng.random(draws)) / draws
        theta = np.empty((draws, 0))
        chains.append(Chain(theta, draw(strata), stages, evidence.log_z_gamma, evidence.log_z))
    return _join(chains, np.empty(0), evidence.gamma, {}, [])


def _describe_held(equation: Equation, fit: Fit, data: Data) -> tuple[dict[str, float], list[str]]:
    """Name the parameters that are held, and those from which the data cannot tell them apart."""
    names = equation.parameters
    places = [place for place in range(len(names)) if place not in fit.free]
    held = {names[place]: float(fit.theta[place]) for place in places}
    if not held:
        return held, []
    jacobian = evaluate_jacobian(equation.program, fit.theta[None, :], data.X)[1][0].T
    length = column_lengths(jacobian)
    unit = jacobian / np.where(length > 0.0, length, 1.0)
    free = list(fit.free)
    reasons = []
    for place in places:
        name = names[place]
        mixed = np.linalg.lstsq(unit[:, free], unit[:, place], rcond=None)[0]
        partners = [free[k] for k in np.flatnonzero(np.abs(mixed) > 1e-6)]
        if length[place] > 0.0 and partners:
            *first, last = (names[k] for k in sorted([place, *partners]))
            what = f"{', '.join(first)} and {last} cannot be told apart by the data; {name}"
        else:
            what = f"{name} is not determined by the data; it"
        reasons.append(f"{what} is held at {held[name]:.6g}.")
    return held, reasons


def to_arviz(
    equation: Equation,
    problem: Problem,
    sample: Draws,
    seed: np.random.SeedSequence | None,
) -> "InferenceData | xr.DataTree":
    """Arrange draws as in `sample_posterior`; without a seed, without the pointwise groups."""
    groups = _to_datasets(equation, problem, sample)
    if seed is not None:
        groups |= _pointwise_groups(equation, problem, sample, _child(seed, 1))
    return _to_arviz(groups)


def _to_arviz(groups: dict[str, xr.Dataset]) -> "InferenceData | xr.DataTree":
    # A DataTree since ArviZ 1.0, InferenceData before.
    if int(version("arviz").split(".")[0]) >= 1:
        return xr.DataTree.from_dict(groups)
    inference_data: Any = az.InferenceData  # its signature is wrong about the groups
    found = inference_data(**groups)
    # It leaves out what holds no variable: the posterior of a law without parameters, where sigma
    # is none either. What stands in its attributes is asked for all the same.
    found.posterior = groups["posterior"]
    return found


def _to_datasets(equation: Equation, problem: Problem, sample: Draws) -> dict[str, xr.Dataset]:
    """Arrange everything but the pointwise groups as xarray's datasets."""
    data = problem.data
    draws = {name: sample.theta[:, :, place] for place, name in enumerate(equation.parameters)}
    if problem.scale.is_free:
        draws["sigma"] = sample.sigma
    # Lists as JSON: NetCDF turns a list of one name into a name, and knows no empty list.
    attrs = {
        "equation": equation.text,
        "variables": json.dumps(equation.variables),
        "parameters": json.dumps(equation.parameters),
        "target": data.target,
        "theta_map": json.dumps(sample.theta_map.tolist()),
        "held": json.dumps(sample.held),
        "constants": json.dumps({name: one.value for name, one in data.constants.items()}),
        "gamma": sample.gamma,
        "noise": problem.noise.name,
        "sigma_bounds": list(problem.sigma_bounds),
        "sigma_prior": "log-flat" if problem.sigma_power else "flat",
        "inference_library": "pmsr",
        "inference_library_version": version("pmsr"),
        "pymc_version": version("pymc"),
        "arviz_version": version("arviz"),
    }
    stats: dict[str, Any] = {
        name: (("chain", "stage")[: values.ndim], values) for name, values in sample.stats.items()
    }
    n_stages = sample.stats[STAGE_STATS[0]].shape[1]
    chain_coords = {"chain": np.arange(len(sample.sigma))}
    coords = {**chain_coords, "draw": np.arange(sample.sigma.shape[1])}
    observation = {"observation": np.arange(len(data.y))}
    return {
        "posterior": xr.Dataset(
            {name: (("chain", "draw"), values) for name, values in draws.items()},
            coords=coords,
            attrs=attrs,
        ),
        "sample_stats": xr.Dataset(stats, coords={**chain_coords, "stage": np.arange(n_stages)}),
        "observed_data": xr.Dataset({"y": (("observation",), data.y)}, coords=observation),
        "constant_data": xr.Dataset(
            {"X": (("observation", "column"), data.X)}
            | ({} if data.X_err is None else {"X_err": (("observation", "column"), data.X_err)})
            | ({} if data.counts is None else {"counts": (("observation",), data.counts)})
            | {name: (("observation",), values) for name, values in problem.columns.items()},
            coords={**observation, "column": list(data.names)},
        ),
    }


def _pointwise_groups(
    equation: Equation, problem: Problem, sample: Draws, rng: np.random.Generator
) -> dict[str, xr.Dataset]:
    """Draw new observations, and take the log density of the old ones, for every draw."""
    data, noise = problem.data, problem.noise
    columns = problem.columns_at(equation.program, sample.flat_theta)
    mu, sigma = evaluate(equation.program, sample.flat_theta, data.X), sample.flat_sigma[:, None]
    predictive = noise.draw(mu, sigma, columns, rng)
    log_likelihood = noise.log_density(data.y, mu, sigma, columns)
    n_chains, n_draws = sample.sigma.shape
    coords = {
        "chain": np.arange(n_chains),
        "draw": np.arange(n_draws),
        "observation": np.arange(len(data.y)),
    }
    return {
        group: xr.Dataset(
            {"y": (tuple(coords), values.reshape(n_chains, n_draws, -1))}, coords=coords
        )
        for group, values in (
            ("posterior_predictive", predictive),
            ("log_likelihood", log_likelihood),
        )
    }


def _check_count(name: str, value: object, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, Integral) or int(value) < least:
        raise ValueError(f"{name} must be an integer of at least {least}, got {value!r}.")
    return int(value)


def _check_parameters(equation: Equation) -> None:
    clash = next((name for name in equation.parameters if name in _RESERVED), None)
    if clash is not None:
        raise ValueError(
            f"A parameter must not be called {clash!r}: the posterior has something else of that "
            f"name. Rename it in {equation.text!r}."
        )


def _check_pointwise(n_draws: int, n_points: int) -> None:
    size = n_draws * n_points
    if size > MAX_POINTWISE:
        raise ValueError(
            f"posterior_predictive and log_likelihood would have {size:,} values each, for "
            f"{n_draws:,} draws and {n_points:,} observations. "
            "Use pointwise=False to leave them out, or fewer draws."
        )
