"""Sequential Monte Carlo (Section 2.2) as a PyMC kernel: from the proposal to gamma, then to 1."""

from copy import copy
from typing import Any, ClassVar

import numpy as np
import pymc as pm
from numpy.typing import NDArray
from pymc.smc.kernels import SMC_KERNEL
from scipy.special import softmax

from pmsr.evidence.model import Template, make_template
from pmsr.evidence.proposal import Draws, Target, log_sum_exp
from pmsr.evidence.surface import Look
from pmsr.evidence.trust import THOROUGH, Trust
from pmsr.threads import ONE_AT_A_TIME

Floats = NDArray[np.float64]

MAX_STAGES = 200  # a bound on the time of a bridge whose steps shrink to nothing
MAX_SWEEPS = 8  # of moves in one stage: where particles do not move, more would go on for ever
# Share of the particles that must have moved before a stage ends: copies that stay count once.
MIN_MOVED = 0.9

_PARTICLE_ARRAYS = ("theta", "log_sigma", "log_g", "part", "log_prior", "log_likelihood")


class FractionalKernel(SMC_KERNEL):
    r"""PyMC kernel that starts from a proposal, pauses at gamma and ends at 1.

    Stages target :math:`g^{1-t} (L^\gamma \pi)^t` for t from 0 to 1 and then :math:`L^\phi \pi`
    for :math:`\phi` from gamma to 1, where g is the mixture of `proposal`. As a rule one step
    leads to gamma and another to 1 without any move in between: the whole weighted set goes on
    while its effective sample size allows. It also runs under ``pm.sample_smc(kernel=...)``.

    Parameters
    ----------
    draws
        Number of particles after the first resampling.
    start, model, random_seed, threshold, compile_kwargs
        As in PyMC; ``start`` must be None, because particles come from the proposal.
    target
        The density, from ``pmsr.fit_equation``.
    n_draws
        Number of points drawn from the proposal.
    trust
        When the draws cover the target, and what to do where they do not.

    Attributes
    ----------
    log_z_gamma, log_marginal_likelihood
        :math:`\log Z(\gamma)` and, at the end, :math:`\log Z(1)`.
    log_q_variance
        Estimated variance of their difference.
    half_shares, half_ess
        Share of the particles at gamma and at 1 that halved bounds would leave, and the least
        effective number of those.
    covered
        Whether the draws from the proposal cover both ends of the path: then the variance is to
        be trusted.
    stages
        What `sample_stats` says after each stage of `run_kernel`.
    """

    stats_dtypes_shapes: ClassVar[dict[str, tuple[type, list[int]]]] = {
        "log_marginal_likelihood": (float, []),
        "beta": (float, []),
        "accept_rate": (float, []),
    }

    def __init__(
        self,
        draws: int = 400,
        start: Any = None,
        model: pm.Model | None = None,
        random_seed: Any = None,
        threshold: float = 0.5,
        compile_kwargs: dict[str, Any] | None = None,
        *,
        target: Target | None = None,
        n_draws: int = 2000,
        trust: Trust = THOROUGH,
    ) -> None:
        if start is not None:
            raise ValueError("start must be None: the particles come from the proposal.")
        # PyMC compiles its per-particle densities here, which this kernel never calls.
        super().__init__(
            draws=draws,
            model=model,
            random_seed=random_seed,
            threshold=threshold,
            compile_kwargs={"mode": "FAST_COMPILE"},
        )
        if target is None:
            raise ValueError(
                "FractionalKernel needs target=, the fitted equation: "
                "target=pmsr.fit_equation(equation, X, y)."
            )
        self.model = pm.modelcontext(model)
        self.target = target
        self.n_draws = n_draws
        self.trust = trust

    def set_rng(self, rng: np.random.Generator) -> None:
        """Store the generator; PyMC would copy compiled functions that are not used here."""
        self.rng = rng

    def _reset_state(self) -> None:
        self.log_marginal_likelihood = 0.0
        self.beta = 0.0
        self.iteration = 0
        self.acc_rate = np.nan
        self.log_z_gamma = np.nan
        self.log_q_variance = 0.0
        self.pareto_k = -np.inf
        self.ess = np.inf
        self.covered = True
        self.half_shares: dict[float, float] = {}
        self.half_ess = np.inf
        self.stages: list[dict[str, float]] = []
        self._bridge = 0.0  # t: how much of the way from the proposal to gamma is done
        self._limited = False
        self._origin: Floats | None = None  # weights at gamma, or after the last resampling

    def _initialize_kernel(self) -> None:
        """Draw from the proposal until both ends of the path are well covered, or enough is enough.

        PyMC's version evaluates one particle at a time and takes the particles for prior draws,
        which inflates log q by 0.4 nats a parameter.
        """
        self.evaluate = _template(self.target).log_likelihood
        self.proposal = self.target.propose(self.n_draws, rng=self.rng)
        # A linear equation's weights are bounded by 2: half the draws are plenty.
        n_first = self.n_draws if self.proposal.curved else (self.n_draws + 1) // 2
        self._append(self.proposal.draw(n_first, rng=self.rng), fresh=True)
        most = self.trust.max_growth * self.n_draws
        while not (covered := self._covered()) and len(self.theta) < most:
            # What a mixture has learnt from is not part of the estimate.
            before, self.proposal = (
                self.proposal,
                self.proposal.follow(self._draws, self._ends(), rng=self.rng),
            )
            fresh = self.proposal is not before
            more = (2 if fresh else 1) * len(self.theta)
            self._append(self.proposal.draw(more, rng=self.rng), fresh=fresh)
        self.covered = covered
        self.log_weights = np.full(len(self.theta), -np.log(len(self.theta)))

    def _append(self, draws: Draws, *, fresh: bool) -> None:
        self._draws = draws
        new = (*draws[:-1], *self._densities(draws.theta, draws.log_sigma, draws.look))
        for name, values in zip(_PARTICLE_ARRAYS, new, strict=True):
            values = values if fresh else np.concatenate([getattr(self, name), values])
            setattr(self, name, values)

    def _densities(
        self, theta: Floats, log_sigma: Floats, look: Look | None = None
    ) -> tuple[Floats, Floats]:
        return self.target.densities(theta, log_sigma, self.evaluate, look)

    def _ends(self) -> list[Floats]:
        """Log weights at gamma and at 1."""
        return [self._log_weights_from_proposal(phi) for phi in (self.target.gamma, 1.0)]

    def _covered(self) -> bool:
        """Tell whether both ends have enough effective draws and no dominating tail."""
        ends = self._ends()
        self.pareto_k = max(pareto_k(end) for end in ends)
        self.ess = min(effective_sample_size(end) for end in ends)
        top_share = max(float(np.exp(end.max() - log_sum_exp(end))) for end in ends)
        return self.trust.covers(self.ess, self.pareto_k, top_share)

    def _log_weights_from_proposal(self, phi: float) -> Floats:
        weights = _times(phi, self.log_likelihood) + self.log_prior - self.log_g
        # Where the conditional normal does not exist, the draw is NaN and all of these infinite.
        return np.where(np.isneginf(self.log_prior), -np.inf, weights)

    def update_beta_and_weights(self) -> None:
        """Go on as far as the effective sample size allows: to gamma first, then to 1."""
        self.iteration += 1
        gamma = self.target.gamma
        if self._bridge < 1.0:
            slope = self._log_weights_from_proposal(gamma)
            step = self._longest_step(slope, 1.0 - self._bridge)
            self._bridge = 1.0 if not self._limited else self._bridge + step
            self.beta = gamma * self._bridge
        else:
            slope = self.log_likelihood
            step = self._longest_step(slope, 1.0 - self.beta)
            self.beta = 1.0 if not self._limited else self.beta + step
        if self.iteration >= MAX_STAGES:
            raise FloatingPointError(f"SMC did not reach its end in {MAX_STAGES} stages")
        before = np.exp(self.log_weights)
        new = self.log_weights + _times(step, slope)
        total = float(log_sum_exp(new))
        if not np.isfinite(total):
            raise FloatingPointError("never finite: no particle has positive density")
        self.log_marginal_likelihood += total
        self.log_weights = new - total
        self.weights = np.exp(self.log_weights)
        if self._bridge == 1.0 and np.isnan(self.log_z_gamma):
            self.log_z_gamma = self.log_marginal_likelihood
            self.half_shares[gamma] = self._share_in_half()
            self._origin = self.weights
        elif self._bridge == 1.0:
            if self._origin is None:
                self._origin = before
            if self._limited or self.beta == 1.0:
                self.log_q_variance += self._variance_of_sum(self.weights - self._origin)
        if self.beta == 1.0:
            self.half_shares[1.0] = self._share_in_half()

    def _longest_step(self, slope: Floats, most: float) -> float:
        """Find the largest step along the slope that keeps enough effective particles."""
        least = min(self.trust.min_ess, self.threshold * len(slope))

        def ess(step: float) -> float:
            return effective_sample_size(self.log_weights + _times(step, slope))

        self._limited = self.trust.builds_bridges and ess(most) < least
        if not self._limited:
            return most
        # A particle of density zero dies in the first step, however short; what counts is the
        # number that is left.
        least = min(least, 0.5 * ess(1e-9 * most))
        low, high = 0.0, most
        for _ in range(40):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if ess(middle) >= least else (low, middle)
        return high

    def _variance_of_sum(self, terms: Floats) -> float:
        """Estimate the variance of a sum over particles drawn in fixed numbers from each part."""
        sums = np.bincount(self.part, terms)
        counts = np.maximum(np.bincount(self.part), 1)
        return max(0.0, float(terms @ terms - np.sum(sums**2 / counts)))

    def _share_in_half(self) -> float:
        """Share of the weighted particles that would survive if R and sigma_max were halved."""
        half = self.target.inside_half(self.theta)
        half &= self.log_sigma <= np.log(self.target.halved.sigma_bounds[1])
        survivors = self.log_weights[half]
        ess = effective_sample_size(survivors) if len(survivors) else 0.0
        self.half_ess = min(self.half_ess, ess)
        return float(np.exp(survivors).sum())

    def resample(self) -> None:
        """Resample to equal weights, unless the whole set goes on."""
        if not (self._limited or self.beta == 1.0):
            return
        n = self.draws
        indexes = systematic_indexes(self.weights, n, self.rng)
        self.resampling_indexes = indexes
        for name in _PARTICLE_ARRAYS:
            setattr(self, name, getattr(self, name)[indexes])
        self.part = np.zeros(n, dtype=np.int64)
        self._origin = None
        self.log_weights = np.full(n, -np.log(n))
        self.weights = np.exp(self.log_weights)

    def mutate(self) -> None:
        """Move the particles: independent draws from a proposal alternate with random walks."""
        if not (self._limited or self.beta == 1.0):
            return
        chart = self.target.charts[0]
        phi = max(self.beta, self.target.gamma)
        independent = self.proposal.at(phi)
        white = (self.theta - chart.theta) @ chart.whiten.T
        spread = np.cov(white, rowvar=False).reshape(white.shape[1], -1)
        root = _root(spread) @ np.eye(white.shape[1])
        step_to_theta = chart.B @ root * (2.38 / np.sqrt(white.shape[1] + 1))
        u_scale = max(float(np.std(self.log_sigma)), 1e-3) * 2.38
        log_independent = independent.log_pdf(self.theta, self.log_sigma)
        moved = np.zeros(self.draws, dtype=bool)
        accepted_count, scale = [], 1.0
        for _ in range(MAX_SWEEPS):
            theta, log_sigma, log_new, _, look = independent.draw(self.draws, rng=self.rng)
            order = self.rng.permutation(self.draws)  # the draws come sorted by part
            theta, log_sigma, log_new = theta[order], log_sigma[order], log_new[order]
            look = None if look is None else look.take(order)
            accepted = self._accept(theta, log_sigma, log_independent - log_new, look)
            log_independent = np.where(accepted, log_new, log_independent)
            moved |= accepted
            accepted_count.append(accepted.mean())
            if moved.mean() >= MIN_MOVED:
                break
            # Random walk in theta at fixed sigma, then in log sigma at fixed theta.
            steps = self.rng.standard_normal(self.theta.shape) @ step_to_theta.T
            accepted = self._accept(self.theta + scale * steps, self.log_sigma, 0.0)
            scale *= float(np.exp(accepted.mean() - 0.3))
            moved |= accepted
            if self.target.problem.scale.is_free:
                shifted = self.log_sigma + u_scale * self.rng.standard_normal(self.draws)
                self._accept(self.theta, shifted, 0.0)
            log_independent = independent.log_pdf(self.theta, self.log_sigma)
        self.acc_rate = float(np.mean(accepted_count))

    def _accept(
        self,
        theta: Floats,
        log_sigma: Floats,
        log_correction: Floats | float,
        look: Look | None = None,
    ) -> NDArray[np.bool_]:
        """Do one Metropolis-Hastings step of all particles; tell which accepted."""
        log_prior, log_likelihood = self._densities(theta, log_sigma, look)
        bridging = self._bridge < 1.0
        log_g = self.proposal.log_pdf(theta, log_sigma, look) if bridging else self.log_g
        new = self._log_target(log_g, log_prior, log_likelihood)
        old = self._log_target(self.log_g, self.log_prior, self.log_likelihood)
        with np.errstate(invalid="ignore"):
            accepted = np.log(self.rng.random(len(theta))) < new - old + log_correction
        self.theta[accepted] = theta[accepted]
        self.log_sigma[accepted] = log_sigma[accepted]
        self.log_prior[accepted] = log_prior[accepted]
        self.log_likelihood[accepted] = log_likelihood[accepted]
        if bridging:
            self.log_g[accepted] = log_g[accepted]
        return np.asarray(accepted)

    def _log_target(self, log_g: Floats, log_prior: Floats, log_likelihood: Floats) -> Floats:
        if self._bridge == 1.0:
            return log_prior + self.beta * log_likelihood
        end = log_prior + self.target.gamma * log_likelihood
        return (1.0 - self._bridge) * log_g + _times(self._bridge, end)

    def check_arrival(self) -> None:
        """Refuse to report what never came near the minimum it started from.

        The mean log likelihood at the end is compared with that of a linear equation with the
        same minimum. Particles that are stuck on a ridge, far below, have not seen the posterior.
        """
        target, chart = self.target, self.target.charts[0]
        p = len(chart.theta)
        law = target.log_sigma(chart, 1.0)
        best = law.mean(target.log_likelihood_at_best)
        expected = best - 0.5 * p
        alive = self.log_weights > -np.inf
        # From the largest: weights of likelihoods of -1e9 add up to 1 only within 1e-6.
        top = float(self.log_likelihood[alive].max())
        mean = top + float(np.exp(self.log_weights[alive]) @ (self.log_likelihood[alive] - top))
        if not self.trust.has_arrived(mean, expected, p):
            raise FloatingPointError(
                f"unreliable: the particles' mean log likelihood is {mean:.4g} instead of about "
                f"{expected:.4g}; the posterior is a ridge that sampling cannot follow"
            )

    def sample_stats(self) -> dict[str, float]:
        """Log marginal likelihood at this stage's temperature, which PyMC's kernels leave out."""
        return {
            "log_marginal_likelihood": self.log_marginal_likelihood,
            "beta": self.beta,
            "accept_rate": self.acc_rate,
        }

    def sample_settings(self) -> dict[str, float]:
        """Return the sizes."""
        return {"_n_draws": self.draws, "n_proposed": self.n_draws, "threshold": self.threshold}

    @property
    def tempered_posterior(self) -> Floats:
        """Particles as values of the model's variables, of shape (n, p + 1), or without sigma."""
        theta = self.target.fit.full_theta(self.theta)
        free = self.target.fit.free
        if len(self.model.free_RVs) <= len(free) + 1 < theta.shape[1] + 1:
            theta = theta[:, list(free)]  # the model holds the others
        if not self.target.problem.scale.is_free:
            return theta
        sigma_rv = self.model["sigma"]
        transform = self.model.rvs_to_transforms[sigma_rv]
        sigma = np.exp(self.log_sigma)
        if transform is not None:
            with ONE_AT_A_TIME:
                sigma = transform.forward(sigma, *sigma_rv.owner.inputs).eval()
        return np.column_stack([theta, sigma])

    @tempered_posterior.setter
    def tempered_posterior(self, value: Any) -> None:
        """PyMC's constructor may clear what is not there."""


def sample_with_pymc(
    target: Target,
    model: pm.Model,
    *,
    n_draws: int,
    n_particles: int,
    chains: int,
    rng: np.random.Generator,
) -> Any:
    """Run the kernel under ``pm.sample_smc``, on a model of the equation.

    PyMC's own driver, statistics and messages stand behind the draws; building and compiling the
    model takes seconds, which `run_kernel` saves.

    Returns
    -------
    InferenceData or DataTree
        What PyMC returns.
    """
    return pm.sample_smc(
        draws=n_particles,
        kernel=FractionalKernel,
        model=model,
        target=target,
        n_draws=n_draws,
        chains=chains,
        cores=1,
        random_seed=rng.integers(2**31, size=chains).tolist(),
        progressbar=False,
        compute_convergence_checks=False,
    )


def run_kernel(
    target: Target,
    *,
    n_draws: int,
    n_particles: int,
    rng: np.random.Generator,
    to_posterior: bool,
    trust: Trust = THOROUGH,
) -> FractionalKernel:
    """Run the kernel outside ``pm.sample_smc``, which would build and compile a model each time.

    Parameters
    ----------
    target
        The density.
    n_draws, n_particles
        Points from the proposal, and particles after the first resampling.
    rng
        Source of randomness.
    to_posterior
        Whether the particles at 1 are wanted, resampled and moved; the evidence needs them not.
    trust
        When the draws cover the target, and what to do where they do not.
    """
    _check_rounding(target, trust)
    kernel = copy(_prototype(target))
    kernel.target, kernel.draws, kernel.n_draws = target, n_particles, n_draws
    kernel.trust = trust
    kernel.initialize(None, rng)
    while kernel.beta < 1.0:
        kernel.update_beta_and_weights()
        if kernel.beta < 1.0 or to_posterior:
            kernel.step()
        kernel.stages.append(kernel.sample_stats())
    kernel.check_arrival()
    return kernel


def _check_rounding(target: Target, trust: Trust) -> None:
    """Refuse an equation so far from the data that weights would be made of rounding errors."""
    # Of the misfit itself, and of log sigma, of which it is an exponential function.
    ulps = 1.0 + 2.0 * abs(np.log(target.sigma_bounds[1]))
    if target.log_misfit + np.log(ulps * np.finfo(np.float64).eps) > np.log(trust.max_rounding):
        raise FloatingPointError(
            "too far from the data: at the largest noise level its log likelihood is "
            f"-{np.exp(target.log_misfit):.2g}, with rounding errors as large as what matters"
        )


def _template(target: Target) -> Template:
    problem, p = target.problem, target.fit.program.n_parameters
    noise = problem.noise
    if noise.uses_slopes or (noise.has_sigma and not noise.is_exact):
        # Its density is the target's own: of the model, only the parameters' names and shapes are
        # needed.
        return make_template(p)
    return make_template(p, noise, problem.columns)


_prototypes: dict[int, FractionalKernel] = {}


def _prototype(target: Target) -> FractionalKernel:
    """One kernel for each template, to be copied: PyMC's constructor compiles."""
    template = _template(target)
    if id(template) not in _prototypes:
        with ONE_AT_A_TIME:
            if id(template) not in _prototypes:
                kernel = FractionalKernel(model=template.model, target=target)
                _prototypes[id(template)] = kernel
    return _prototypes[id(template)]


def systematic_indexes(weights: Floats, n: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Draw n indexes in proportion to the weights, with systematic resampling.

    Examples
    --------
    >>> systematic_indexes(np.array([0.5, 0.0, 0.5]), 4, np.random.default_rng(0))
    array([0, 0, 2, 2])
    """
    cumulative = np.cumsum(weights)
    places = (np.arange(n) + rng.random()) / n * cumulative[-1]
    return np.searchsorted(cumulative, places).astype(np.int64)


def keep_families(ancestors: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int64]:
    """Return a random order in which particles of one ancestor follow one another.

    In the kernel's order the parts of the proposal, and so the draws, would be sorted. Families
    stay together: what siblings share must show in the autocorrelation.
    """
    return np.argsort(rng.permutation(ancestors.max() + 1)[ancestors], kind="stable")


def effective_sample_size(log_weights: Floats) -> float:
    """Kish's effective sample size of unnormalised log weights; 0 if all are -inf.

    Examples
    --------
    >>> effective_sample_size(np.zeros(50))
    50.0
    """
    top = log_weights.max()
    if not np.isfinite(top):
        return 0.0
    weights = np.exp(log_weights - top)
    return float(weights.sum() ** 2 / (weights @ weights))


def pareto_k(log_weights: Floats) -> float:
    r"""Tail index :math:`\hat k` of importance weights; above 0.7 their mean is unreliable.

    References
    ----------
    Zhang and Stephens (2009), doi:10.1198/tech.2009.08017; Vehtari et al. (2024),
    *Pareto smoothed importance sampling*.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> abs(pareto_k(0.5 * rng.standard_exponential(100_000)) - 0.5) < 0.05
    True
    """
    n_tail = int(min(0.2 * len(log_weights), 3.0 * np.sqrt(len(log_weights))))
    top = log_weights.max()
    if n_tail < 5 or not np.isfinite(top):
        return np.inf
    largest = np.partition(log_weights, -n_tail - 1)[-n_tail - 1 :]
    largest.sort()
    weights = np.exp(largest - top)
    excess = weights[1:] - weights[0]
    if weights[0] > 0.5:
        # Bounded weights: of a hundred in a tail with k = 0.7, the largest is 25 times the least.
        return -np.inf
    if excess[0] <= 0.0 or excess[-1] <= 1e-12:
        return np.inf  # nothing but a few particles
    n_grid = 30 + int(np.sqrt(n_tail))
    quartile = excess[int(n_tail / 4 + 0.5) - 1]
    grid = 1.0 - np.sqrt(n_grid / (np.arange(1, n_grid + 1) - 0.5))
    grid = grid / (3.0 * quartile) + 1.0 / excess[-1]
    shape = np.log1p(-grid[:, None] * excess).mean(axis=1)
    profile = n_tail * (np.log(-grid / shape) - shape - 1.0)
    best = float(grid @ softmax(profile))
    return float(np.log1p(-best * excess).mean())


def _times(factor: float, log_values: Floats) -> Floats:
    """Multiply, with 0 times -inf being -inf: what has density zero stays dead."""
    return np.where(np.isneginf(log_values), -np.inf, factor * log_values)


def _root(covariance: Floats) -> Floats:
    values, vectors = np.linalg.eigh(covariance)
    return np.asarray(vectors * np.sqrt(np.clip(values, 0.0, None)))
