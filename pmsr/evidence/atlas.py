r"""Draws that follow the surface of predictions: local charts where the draws before them landed.

The affine parameters and sigma come from their exact conditional distributions given the curved
parameters, so that only these have to be proposed. They are drawn from a mixture of Student
distributions whose widths are those of the surface itself, around the minima and then around
points of the surface that earlier draws have found at either temperature.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import lgamma, log, pi, sqrt
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pmsr.data import Data
from pmsr.equation.kernels import find_active, kernel_sums
from pmsr.equation.operators import FIRST_OPERATOR, OPERATORS, PARAMETER, POWER
from pmsr.equation.program import Program, evaluate
from pmsr.evidence.multistart import FitError, Minimum, Region
from pmsr.evidence.natural_scales import natural_scales
from pmsr.evidence.priors import Given
from pmsr.evidence.proposal import Chart, Draws, Evaluate, Target
from pmsr.evidence.scale import ConditionalLaw, Rest, SigmaLaw
from pmsr.evidence.surface import Look, Surface
from pmsr.evidence.volume import SurfaceRegion

Floats = NDArray[np.float64]

WIDEST = 2.0  # width of a chart, in units of asinh(eta / scale)
BROAD = 2.5  # width of the part that knows nothing
SHARE_BROAD = 0.1  # of draws, about, once others have followed the first: 0.3 of those 0.3
LEAST_LENGTH = 1e-6  # of a singular direction at a minimum
WIDE = 300.0  # beyond, sinh is out of range
LEAST_TRIED = 250  # draws that look for charts
ANCHORS = 16  # charts for each temperature and curved parameter


class Charts(NamedTuple):
    """Student distributions of the curved parameters, in w = asinh(eta / scale)."""

    centres: Floats  # (n_parts, q)
    whitens: Floats  # (n_parts, q, q), upper triangular
    shares: Floats  # (n_parts,), adding up to one
    group: NDArray[np.int64]  # place of the temperature that conditions the rest

    def join(self, other: "Charts", share: float) -> "Charts":
        """Mix with other charts, which get this share."""
        shares = np.concatenate([(1.0 - share) * self.shares, share * other.shares])
        return Charts(
            np.concatenate([self.centres, other.centres]),
            np.concatenate([self.whitens, other.whitens]),
            shares,
            np.concatenate([self.group, other.group]),
        )


@dataclass(frozen=True, eq=False)
class SurfaceTarget(Target):
    r"""The density to integrate: :math:`L^\phi \sigma^{-k}` times the surface's volume element.

    Where predictions are within the radius of those of a minimum, and the rules of `surface`
    allow it.
    """

    @cached_property
    def surface(self) -> Surface:
        """The surface around the minima."""
        white, given = self.problem.white, self.given.places
        return Surface.of(self.white_program, white, given).around(self.fit.minima)

    @cached_property
    def charts(self) -> tuple[Chart, ...]:
        """The minima with coordinates in which a linear model is a standard normal."""
        return tuple(Chart.at(self._moving(minimum), LEAST_LENGTH) for minimum in self.fit.minima)

    def _moving(self, minimum: Minimum) -> Minimum:
        """Return a minimum next to which predictions change.

        They do not at the end of tanh(c0), to which an optimisation runs off if the data are
        beyond it; steps are of natural size there.
        """
        if minimum.jacobian.any():
            return minimum
        n, p = minimum.jacobian.shape
        white = self.problem.white
        scales = natural_scales(self.white_program, white)
        return replace(minimum, jacobian=np.eye(n, p) * float(np.std(white.y)) / scales)

    @cached_property
    def given(self) -> Given:
        """The parameters with priors of their own."""
        given = self.problem.given
        return given.among(self.fit.free) if len(given) else given

    @cached_property
    def radius(self) -> float:
        r"""How far predictions may be from a minimum's.

        With priors on parameters, best fit and prior may be far apart, and what matters is between.
        """
        rank = self.fit.program.n_parameters
        between = 2.0 * sqrt(max(m.sse for m in self.fit.minima)) if len(self.given) else 0.0
        return float(self.size_bounds[1] * (sqrt(rank) + 4.0) / sqrt(self.gamma) + between)

    @cached_property
    def region(self) -> Region | SurfaceRegion:
        """Where the prior is positive.

        What is flat in theta itself, next to parameters with priors, has no limit in predictions:
        those of a decay are the same for all rates above some. As without priors, it is flat on
        ellipsoids around the minima.
        """
        if self.problem.parameter_prior == "invariant" or not self.n_flat:
            return SurfaceRegion(
                self.fit.theta, self.fit.free, self.surface.centres, self.radius,
                self.problem.weights,
            )  # fmt: skip
        minima = [m for m in self.fit.minima if m.sse <= self._worst]
        p = self.fit.program.n_parameters
        flat = [k for k in range(p) if k not in self.given.places]
        whitens = []
        for one in map(self._moving, minima):
            some = replace(one, theta=one.theta[flat], jacobian=one.jacobian[:, flat])
            whitens.append(Chart.at(some, LEAST_LENGTH).whiten @ np.eye(p)[flat])
        centres, radius = tuple(one.theta for one in minima), self.radius_share * self.radius
        return Region(centres, tuple(whitens), radius, self.fit.free, self.fit.theta)

    @cached_property
    def even_surface(self) -> Surface:
        """The surface whose volume counts: without weights that suit a fit only."""
        # Errors that are known hold at the best fit; what is robust against outliers does not.
        if self.problem.tuning is None or self.problem.tuning.errors is not None:
            return self.surface
        problem = self.problem.untuned
        surface = Surface.of(problem.whiten(self.fit.program), problem.white, self.given.places)
        return replace(surface, scales=self.surface.scales)

    @cached_property
    def scale(self) -> Floats:
        """Natural scales of the curved parameters; of factors their best fit, with its sign."""
        scales = natural_scales(self.white_program, self.problem.white)
        scales[self._factors] = self.fit.minima[0].theta[self._factors]
        return scales[self.surface.order[self.surface.n_affine :]]

    @cached_property
    def log_unit(self) -> Floats:
        """What the logarithms of the curved parameters are measured in.

        The farther the size of a factor is from that which it would have if all others were one,
        the farther it goes with them.
        """
        natural = natural_scales(self.white_program, self.problem.white)
        units = np.ones(len(natural))
        ratio = self.fit.minima[0].theta[self._factors] / natural[self._factors]
        units[self._factors] = np.maximum(1.0, np.abs(np.log(np.abs(ratio))))
        return units[self.surface.order[self.surface.n_affine :]]

    @cached_property
    def _factors(self) -> list[int]:
        """The parameters whose logarithm a link adds to what the others do.

        In it c0*x**c1 is straight under noise that multiplies; in c0 itself, which goes with a high
        power of the unit of x, no chart would be wide enough.
        """
        if self.problem.noise.link is None:
            return []
        found = [k for k in find_factors(self.fit.program) if k not in self.given.places]
        return [k for k in found if self.fit.minima[0].theta[k] != 0.0]

    def check_range(self) -> None:
        """Refuse what floating-point numbers cannot hold."""
        if self.halved.log_misfit > log(np.finfo(np.float64).max):
            raise FitError("too far from the data: its log likelihood is beyond all numbers")

    @cached_property
    def positive(self) -> NDArray[np.bool_]:
        """Which curved parameters have the sign of their scale, in their order."""
        which = find_positive(self.white_program, self.problem.white)
        which[self._factors] = True
        which[list(self.given.places)] = False  # they have coordinates of their own
        return which[self.surface.order[self.surface.n_affine :]]

    def to_w(self, eta: Floats) -> tuple[Floats, Floats]:
        """Return w, in which draws are made, for eta of shape (n, q); and d eta / dw.

        It is the asinh of eta, even near zero and logarithmic beyond, or of log eta where eta keeps
        its sign and 1e-9 and 1e-90 are as far apart as 1e9 and 1e90. A parameter with a prior is a
        standard normal there.
        """
        with np.errstate(all="ignore"):
            ratio = eta / self.scale
            log_ratio = np.log(ratio) / self.log_unit
            what = np.where(self.positive, log_ratio, ratio)
            size = np.where(self.positive, eta * self.log_unit, self.scale)
            slope = size * np.hypot(1.0, what)
            w = np.arcsinh(what)
            for k, prior in enumerate(self.given.priors, eta.shape[1] - len(self.given)):
                w[:, k], slope[:, k] = prior.to_z(eta[:, k])
        return w, slope

    def from_w(self, w: Floats) -> Floats:
        """Return eta."""
        with np.errstate(all="ignore"):
            what = np.sinh(np.clip(w, -WIDE, WIDE))
            factor = np.where(self.positive, np.exp(self.log_unit * what), what)
            eta = np.asarray(self.scale * factor)
            for k, prior in enumerate(self.given.priors, w.shape[1] - len(self.given)):
                eta[:, k] = prior.from_z(w[:, k])
        return eta

    @cached_property
    def own_precision(self) -> Floats:
        """Precision of each curved parameter that it has without data: 1 in z, or none."""
        which = np.isin(self.surface.order[self.surface.n_affine :], self.given.places)
        return which.astype(np.float64)

    @property
    def n_flat(self) -> int:
        """Number of parameters without priors of their own."""
        return self.surface.n_flat

    @property
    def log_learnt(self) -> float:
        r"""Half of :math:`\log |1 + \gamma M| - \log |1 + M|` with M the data's precision in z."""
        n = len(self.given)
        if n == 0:
            return 0.0
        best = self.fit.minima[0]
        low, high = self.size_bounds
        spare = max(1.0, self.problem.n - self.n_flat)
        size = min(max(sqrt(best.sse / spare), low), high)
        order = self.surface.order
        flat, own = best.jacobian[:, order[:-n]], best.jacobian[:, order[-n:]]
        own = own * self.given.to_z(best.theta[None, :])[1][0]
        if flat.shape[1]:
            own = own - flat @ np.linalg.lstsq(flat, own, rcond=None)[0]
        values = np.linalg.svd(own / size, compute_uv=False) ** 2
        return float(0.5 * np.sum(np.log1p(self.gamma * values) - np.log1p(values)))

    def log_sigma(self, chart: Chart, phi: float) -> SigmaLaw:
        """Distribution of log sigma if f were linear; parameters with priors leave nothing."""
        return self.problem.scale.law(self.surface.n_flat, self.problem.n, chart.sse, phi)

    def log_b(self, sse: Floats, phi: float) -> Floats:
        r"""Log of :math:`\phi \mathrm{SSE} / 2`, between the bounds that matter."""
        low, high = self._sse_range
        return np.log(0.5 * phi * (np.clip(np.nan_to_num(sse, nan=high), low, high) + self._rest))

    def log_b_range(self, phi: float) -> tuple[float, float]:
        """Bounds of `log_b`."""
        low, high = (square + self._rest for square in self._sse_range)
        return log(0.5 * phi * low), log(0.5 * phi * high)

    @property
    def _rest(self) -> float:
        """Sum of squares of other groups with which sigma is shared."""
        return 0.0 if self.problem.rest is None else self.problem.rest.square

    @cached_property
    def _sse_range(self) -> tuple[float, float]:
        # Below, sigma is at its lower bound whatever the error; above, theta is not in the region.
        least = self.problem.n * (1e-3 * self.size_bounds[0]) ** 2
        most = max(m.sse for m in self.fit.minima) if len(self.given) else self.fit.minima[0].sse
        return least, 4.0 * (self.radius + sqrt(most)) ** 2

    def inside(self, theta: Floats, fraction: float = 1.0) -> NDArray[np.bool_]:
        """Tell which theta the rules allow within the radius, or within a fraction of it."""
        return self._inside(theta, self.surface.look(theta), fraction)

    def _inside(self, theta: Floats, look: Look, fraction: float = 1.0) -> NDArray[np.bool_]:
        if isinstance(self.region, Region):
            return super().inside(theta, fraction) & np.isfinite(look.sse)
        near = look.square <= (fraction * self.radius) ** 2
        return np.asarray(look.allowed & near & np.isfinite(look.log_volume))

    def log_prior(self, theta: Floats, log_sigma: Floats) -> Floats:
        """Log prior density in (theta, log sigma), or -inf."""
        return self.densities(theta, log_sigma, None)[0]

    def inside_half(self, theta: Floats) -> NDArray[np.bool_]:
        """Tell which theta would stay if sigma's bound were halved: the radius matters not."""
        if isinstance(self.region, Region):
            return self.inside(theta, 0.5)
        return np.ones(len(theta), dtype=np.bool_)

    def densities(
        self, theta: Floats, log_sigma: Floats, evaluate: Evaluate | None, look: Any = None
    ) -> tuple[Floats, Floats]:
        """Log prior and log likelihood of a batch, from sums over the rows."""
        look = self.surface.look(theta) if look is None else look
        low, high = np.log(self.sigma_bounds)
        with np.errstate(all="ignore"):
            allowed = self._inside(theta, look) & (log_sigma >= low) & (log_sigma <= high)
            allowed &= self.keeps_signs(theta)
            volume = look if self.even_surface is self.surface else self.even_surface.look(theta)
            log_prior = (1 - self.sigma_power) * log_sigma
            if self.problem.parameter_prior == "invariant":
                log_prior = log_prior + volume.log_volume
            if len(self.given):
                log_prior = log_prior + self.given.log_density(theta)
            if self.problem.noise.is_exact:
                log_likelihood = self.problem.log_likelihood(look.sse, log_sigma)
            else:
                log_likelihood = self.problem.exact_log_likelihood(
                    self.fit.program, theta, log_sigma
                )
                allowed &= np.isfinite(log_prior)
        return np.where(allowed, log_prior, -np.inf), np.where(allowed, log_likelihood, -np.inf)

    def propose(self, n_draws: int, *, rng: np.random.Generator) -> "Atlas":
        """Make an atlas of the surface, from draws that are not part of the estimate."""
        atlas = Atlas.around(self, (self.gamma, 1.0))
        for _ in range(min(atlas.q, 2)):
            draws = atlas.draw(max(LEAST_TRIED, n_draws // 4), rng=rng)
            log_prior, log_likelihood = self.densities(
                draws.theta, draws.log_sigma, None, draws.look
            )
            with np.errstate(invalid="ignore"):
                ends = [
                    np.where(
                        np.isneginf(log_prior),
                        -np.inf,
                        log_prior + phi * log_likelihood - draws.log_density,
                    )
                    for phi in atlas.phis
                ]
            atlas = atlas.follow(draws, ends, rng=rng)
        return atlas


@dataclass(frozen=True, eq=False)
class Atlas:
    """Mixture of charts from which parameters and sigma are drawn.

    Parameters
    ----------
    target
        The density to cover.
    phis
        Temperatures, one for each group of charts.
    charts
        Where the curved parameters are drawn.
    """

    target: SurfaceTarget
    phis: tuple[float, ...]
    charts: Charts
    laws: tuple[ConditionalLaw, ...]

    @classmethod
    def around(cls, target: SurfaceTarget, phis: tuple[float, ...]) -> "Atlas":
        """Make charts of the minima, at both temperatures, and a broad part that knows nothing."""
        surface = target.surface
        q = len(surface.order) - surface.n_affine
        n, r = target.problem.n, len(surface.order)
        centres, metrics, widths, shares, group = [], [], [], [], []
        low, high = target.size_bounds
        for minimum in (*target.fit.minima, *target.fit.images):
            rest = target.problem.rest or Rest(0.0, 0.0, 0)
            n_free = max(1, n + rest.n - r - rest.rank)
            sigma = min(max(sqrt((minimum.sse + rest.square) / n_free), low), high)
            metric = _schur(minimum.jacobian, surface)
            w, slope = target.to_w(minimum.theta[None, surface.order[surface.n_affine :]])
            metric = metric * slope[0][:, None] * slope[0]
            for place, phi in enumerate(phis):
                sizes = (sigma,) if phi == 1.0 else (sigma, sqrt(sigma * high), high)
                for size in sizes:
                    centres.append(w[0])
                    metrics.append(metric)
                    widths.append(size / sqrt(phi))
                    shares.append(1.0 / len(sizes))
                    group.append(place)
        known = np.array(shares)
        whitens = _whiten(np.array(metrics), widths, target.own_precision)
        charts = Charts(np.array(centres), whitens, known / known.sum(), np.array(group))
        broad = Charts(
            np.zeros((len(phis), q)),
            np.repeat(np.eye(q)[None] / BROAD, len(phis), axis=0),
            np.full(len(phis), 1.0 / len(phis)),
            np.arange(len(phis)),
        )
        laws = tuple(
            target.problem.scale.conditional(surface.n_affine, n, phi, target.log_b_range(phi))
            for phi in phis
        )
        return cls(target, phis, charts.join(broad, 3 * SHARE_BROAD), laws)

    @property
    def curved(self) -> bool:
        """Whether any parameter is; as in `Proposal`."""
        return True

    @property
    def q(self) -> int:
        """Number of curved parameters."""
        return self.charts.centres.shape[1]

    @property
    def _power(self) -> int:
        """Half of nu + q, an integer: no logarithm is needed."""
        return (self.q + 4) // 2

    def draw(self, n: int, *, rng: np.random.Generator) -> Draws:
        """Draw n points, each chart as often as its share says (to the nearest integer)."""
        # Where the conditional normal does not exist, draws are NaN, and allowed by nobody.
        with np.errstate(all="ignore"):
            return self._draw(n, rng)

    def _draw(self, n: int, rng: np.random.Generator) -> Draws:
        surface, n_affine = self.target.surface, self.target.surface.n_affine
        last = np.rint(np.cumsum(self.charts.shares) * n).astype(int)
        part = np.repeat(np.arange(len(last)), np.diff(last, prepend=0))
        nu = 2 * self._power - self.q
        z = rng.standard_normal((n, self.q)) * np.sqrt(nu / rng.chisquare(nu, n))[:, None]
        unwhiten = np.linalg.inv(self.charts.whitens)
        w = self.charts.centres[part] + np.einsum("nij,nj->ni", unwhiten[part], z)
        phi = np.array(self.phis)[self.charts.group[part]]
        theta = np.zeros((n, len(surface.order)))
        theta[:, surface.order[n_affine:]] = self.target.from_w(w)
        noise = rng.standard_normal((n, n_affine))
        if n_affine:
            affine = surface.order[:n_affine]
            first = surface.look(theta)
            theta[:, affine] = _backward(first, first.whitened[:, :n_affine])
            log_sigma = self._draw_sigma(surface.errors(theta), part, rng)
            step = noise * (np.exp(self._log_size(log_sigma)) / np.sqrt(phi))[:, None]
            theta[:, affine] += _backward(first, step)
            look = surface.look(theta)
        else:
            look = surface.look(theta)
            log_sigma = self._draw_sigma(look.sse, part, rng)
        return Draws(theta, log_sigma, self.log_pdf(theta, log_sigma, look), part, look)

    def _draw_sigma(self, sse: Floats, part: NDArray[np.int64], rng: np.random.Generator) -> Floats:
        log_sigma = np.empty(len(sse))
        group = self.charts.group[part]
        for place, phi in enumerate(self.phis):
            here = group == place
            log_b = self.target.log_b(sse[here], phi)
            log_sigma[here] = self.laws[place].draw(log_b, rng)
        return log_sigma

    def _log_size(self, log_sigma: Floats) -> Floats:
        return self.target.problem.scale.log_size(log_sigma)

    def log_pdf(self, theta: Floats, log_sigma: Floats, look: Look | None = None) -> Floats:
        """Log density of the mixture in (theta, log sigma)."""
        log_size = self._log_size(log_sigma)
        look = self.target.surface.look(theta) if look is None else look
        surface, n_affine = self.target.surface, self.target.surface.n_affine
        w, slope = self.target.to_w(theta[:, surface.order[n_affine:]])
        charts, power = self.charts, self._power
        nu = 2 * power - self.q
        weights = charts.shares * np.prod(np.einsum("nii->ni", charts.whitens), axis=1)
        sums = np.empty((len(theta), len(self.phis)))
        # One layout: for another the loop would be compiled anew, in the middle of a search.
        points = np.ascontiguousarray(w)
        kernel_sums(
            points, charts.centres, charts.whitens, weights, charts.group, power, float(nu), sums
        )
        constant = lgamma(power) - lgamma(nu / 2) - (self.q / 2) * log(nu * pi)
        z = look.whitened[:, :n_affine]
        square = np.einsum("ij,ij->i", z, z)
        with np.errstate(all="ignore"):
            log_det = np.sum(
                np.log(np.einsum("nii->ni", look.root)[:, :n_affine] * look.lengths[:, :n_affine]),
                axis=1,
            )
            terms = np.log(sums) + constant - np.sum(np.log(np.abs(slope)), axis=1)[:, None]
            for place, phi in enumerate(self.phis):
                log_b = self.target.log_b(look.sse - square, phi)
                terms[:, place] += self.laws[place].log_pdf(log_sigma, log_b)
                terms[:, place] += (
                    0.5 * n_affine * log(phi / (2.0 * pi))
                    - n_affine * log_size
                    - 0.5 * phi * square * np.exp(-2.0 * log_size)
                    + log_det
                )
            top = terms.max(axis=1)
            total = top + np.log(np.sum(np.exp(terms - top[:, None]), axis=1))
        return np.where(np.isfinite(total), total, -np.inf)

    def follow(
        self, draws: Draws, log_weights: list[Floats], *, rng: np.random.Generator
    ) -> "Atlas":
        """Add charts where earlier draws, weighted at each temperature, have landed."""
        if self.q == 0:  # linear once redundant parameters are held: there is nothing to follow
            return self
        base = Atlas.around(self.target, self.phis).charts
        surface = self.target.surface
        n_anchors = min(64, ANCHORS * self.q)
        found = []
        for place, phi in enumerate(self.phis):
            weights = log_weights[place]
            top = weights.max()
            if not np.isfinite(top):
                continue
            share = np.exp(weights - top)
            share /= share.sum()
            places = (np.arange(n_anchors) + rng.random()) / n_anchors
            chosen = np.searchsorted(np.cumsum(share), places).clip(max=len(share) - 1)
            anchors, counts = np.unique(chosen, return_counts=True)
            look = draws.look.take(anchors)
            sigma = np.exp(self._log_size(draws.log_sigma[anchors]))
            theta = draws.theta[anchors][:, surface.order[surface.n_affine :]]
            w, slope = self.target.to_w(theta)
            n_a = surface.n_affine
            root = look.root[:, n_a:, n_a:] * (look.lengths[:, n_a:] * slope)[:, :, None]
            if len(self.target.given):  # what the data do not determine, the prior does
                root = np.nan_to_num(root)
            h = len(anchors) ** (-1.0 / (self.q + 4))
            metrics = np.array([L @ L.T for L in root])
            widths = [h * s / sqrt(phi) for s in sigma]
            whitens = _whiten(metrics, widths, self.target.own_precision / h**2)
            found.append(Charts(w, whitens, counts / counts.sum(), np.full(len(anchors), place)))
        charts = base
        if found:
            new = found[0]
            for k, more in enumerate(found[1:], 2):
                new = new.join(more, 1.0 / k)
            charts = base.join(new, 0.7)
        return replace(self, charts=charts)

    def at(self, phi: float) -> "Atlas":
        """Return the same charts with the rest conditioned at one temperature."""
        target = self.target
        law = target.problem.scale.conditional(
            target.surface.n_affine, target.problem.n, phi, target.log_b_range(phi)
        )
        last = self.charts.group == self.charts.group.max()
        shares = self.charts.shares[last] / self.charts.shares[last].sum()
        charts = Charts(
            self.charts.centres[last],
            self.charts.whitens[last],
            shares,
            np.zeros(last.sum(), dtype=np.int64),
        )
        return Atlas(self.target, (phi,), charts, (law,))


def find_positive(program: Program, data: Data) -> NDArray[np.bool_]:
    """Tell which parameters are positive, because they are nothing but bases and antilogarithms.

    Examples
    --------
    >>> from pmsr.data import make_data
    >>> from pmsr.equation.expression import Equation
    >>> data = make_data([0.5, 1.0, 2.0], [1.0, 2.0, 3.0])
    >>> find_positive(Equation("c0*c1**x0", ["x0"]).program, data).tolist()
    [False, True]
    """
    names = list(OPERATORS)
    nodes = program.nodes.tolist()
    found = np.zeros(program.n_parameters, dtype=np.bool_)
    other = np.zeros(program.n_parameters, dtype=np.bool_)
    for code, a, b in nodes:
        if code < FIRST_OPERATOR and code != POWER:
            continue
        name = "" if code == POWER else names[code - FIRST_OPERATOR]
        if nodes[a][0] == PARAMETER:
            (found if name in ("pow", "log") else other)[nodes[a][1]] = True
        if name and OPERATORS[name].arity == 2 and nodes[b][0] == PARAMETER:
            other[nodes[b][1]] = True
    found &= ~other
    # A power with integer exponents may have a negative base.
    scales = natural_scales(program, data)
    for k in np.flatnonzero(found):
        theta = np.where(np.arange(len(scales)) == k, -scales, scales)
        found[k] = not np.isfinite(evaluate(program, theta[None, :], data.X)).all()
    return found


def find_factors(program: Program) -> list[int]:
    """Find the parameter that multiplies a law, or divides it, and has the same sign everywhere.

    What else the law is a product of keeps its sign whatever the other parameters.

    Examples
    --------
    >>> from pmsr.equation.expression import Equation
    >>> [find_factors(Equation(text, ["x"]).program) for text in ("c0*x**c1", "c0*(c1 + x)")]
    [[0], []]
    """
    names, nodes, active = list(OPERATORS), program.nodes.tolist(), find_active(program.nodes)
    found: list[int] = []
    others: list[int] = []
    stack = [len(nodes) - 1]
    while stack:
        node = stack.pop()
        code, a, b = nodes[node]
        name = names[code - FIRST_OPERATOR] if code >= FIRST_OPERATOR else ""
        if name in ("*", "/"):
            stack += [a, b]
        elif code == PARAMETER:
            found.append(a)
        elif code == POWER and b % 2:
            stack.append(a)
            others.append(a)  # a parameter that is raised to a power is no factor itself
        elif active[node]:
            if code != POWER and name not in ("exp", "sqrt", "abs", "pow"):
                return []
            others.append(node)
    if len(found) != 1:
        return []
    depends = _depend_on(nodes, found[0])
    return [] if any(depends[node] for node in others) else found


def _depend_on(nodes: list[list[int]], parameter: int) -> list[bool]:
    """Tell which nodes depend on a parameter."""
    found: list[bool] = []
    for code, a, b in nodes:
        if code == PARAMETER:
            found.append(a == parameter)
        elif code == POWER:
            found.append(found[a])
        else:
            found.append(code >= FIRST_OPERATOR and (found[a] or found[b]))
    return found


def _backward(look: Look, right: Floats) -> Floats:
    """Solve for the affine parameters: from orthogonal coordinates to their own."""
    n_a = right.shape[1]
    result = np.empty_like(right)
    with np.errstate(all="ignore"):
        for i in range(n_a - 1, -1, -1):
            total = right[:, i].copy()
            for k in range(i + 1, n_a):
                total -= look.root[:, k, i] * result[:, k]
            result[:, i] = total / look.root[:, i, i]
        return result / look.lengths[:, :n_a]


def _schur(jacobian: Floats, surface: Surface) -> Floats:
    """Metric of the curved parameters, once the affine ones have made up for what they can."""
    affine, curved = np.split(surface.order, [surface.n_affine])
    rest = jacobian[:, curved]
    if len(affine):
        design = jacobian[:, affine]
        rest = rest - design @ np.linalg.lstsq(design, rest, rcond=None)[0]
    return np.asarray(rest.T @ rest)


def _whiten(metrics: Floats, widths: Sequence[float], own: Floats) -> Floats:
    """Upper triangular W with |W v|^2 = v' metric v / width^2, and no width above `WIDEST`.

    One for each metric, of shape (n, q, q). What parameters have of their own adds to that: their
    priors.
    """
    precision = metrics / np.array([width**2 for width in widths])[:, None, None]
    precision = np.where(np.isfinite(precision), precision, 0.0)
    diagonal = np.arange(precision.shape[-1])
    precision[:, diagonal, diagonal] += WIDEST**-2.0 + own
    return np.ascontiguousarray(np.swapaxes(np.linalg.cholesky(precision), 1, 2))
