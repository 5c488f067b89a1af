"""Draw the picture of docs/evidence.md: what the region is and what prior_sensitivity measures.

python docs/figures/region.py
"""

from dataclasses import replace
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import pmsr
import pmsr.settings
from pmsr.data import make_data
from pmsr.evidence.evidence import make_target
from pmsr.evidence.problem import Problem
from pmsr.evidence.smc import run_kernel
from pmsr.experiments.exact import brute_force_log_q

LAWS = {"k1*D**2/(1 + k2*D)": "#0072B2", "D**2/(c0 + c1*D)": "#D55E00", "c0**sqrt(D)": "#000000"}


def target_of(text, X, y):
    """Fit a law to the no-shelf data."""
    rng = np.random.default_rng(0)
    equation = pmsr.Equation(text, ["D"])
    problem = Problem.of(make_data(X, y), pmsr.Settings())
    return make_target(equation.program, problem, 8, rng=rng)


def at_radius(target, factor):
    """Return the same target with another radius and bound of sigma."""
    low, high = target.sigma_bounds
    return replace(target, sigma_bounds=(low, factor * high))


def draw_region(ax, target):
    """Particles at gamma and at 1 in the chart, in units of R."""
    rng = np.random.default_rng(1)
    kernel = run_kernel(target, n_draws=40_000, n_particles=400, rng=rng, to_posterior=False)
    chart, radius = target.charts[0], target.region.radius
    for phi, colour, label, size in (
        (target.gamma, "#999999", r"$\propto L^{\gamma}$", 3),
        (1.0, "#0072B2", r"$\propto L$", 5),
    ):
        log_weight = kernel._log_weights_from_proposal(phi)
        weight = np.exp(log_weight - log_weight.max())
        chosen = rng.choice(len(weight), 1500, p=weight / weight.sum())
        place = (kernel.theta[chosen] - chart.theta) @ chart.whiten.T / radius
        ax.scatter(*place.T, s=size, color=colour, label=label, linewidths=0, rasterized=True)
    angle = np.linspace(0, 2 * np.pi, 200)
    ax.plot(np.cos(angle), np.sin(angle), color="black", lw=1.2, label="$R$")
    ax.plot(np.cos(angle) / 2, np.sin(angle) / 2, color="black", lw=1, ls="--", label="$R/2$")
    ax.set(xlabel="first direction of the chart / R", ylabel="second direction / R", aspect="equal")
    below = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.13), "ncols": 4}
    ax.legend(**below, frameon=False, markerscale=3, fontsize=8)
    ax.set_title("The region of Galileo's law", fontsize=10)


def draw_sensitivity(ax, X, y):
    """Exact log q against the radius, with the slope that prior_sensitivity reports."""
    factors = np.array([0.5, 0.71, 1.0, 1.41, 2.0])
    for text, colour in LAWS.items():
        target = target_of(text, X, y)
        exact = [brute_force_log_q(at_radius(target, f), 1000, 500) for f in factors]
        ax.plot(factors, exact, "o-", color=colour, label=text, ms=4)
        run = pmsr.compute_evidence(text, X, y, settings=pmsr.settings.FINALIST, random_seed=0)
        arrow = {"arrowstyle": "->", "color": colour, "lw": 1.2, "ls": "--"}
        end = (0.5, run.log_q + run.prior_sensitivity)
        ax.annotate("", end, (1.0, run.log_q), arrowprops=arrow)
    ax.set(xscale="log", xlabel=r"$R$ and $\sigma_{max}$, relative to the default")
    ax.set_ylabel(r"exact $\log q$")
    ax.set_xticks(factors[::2], ["1/2", "1", "2"])
    ax.minorticks_off()
    ax.legend(fontsize=8, frameon=False)
    ax.set_title("dashed arrows: prior_sensitivity", fontsize=10)


if __name__ == "__main__":
    X, y = pmsr.load_galileo("no_shelf")
    figure, axes = plt.subplots(1, 2, figsize=(9, 4.2), layout="constrained")
    draw_region(axes[0], target_of("k1*D**2/(1 + k2*D)", X, y))
    draw_sensitivity(axes[1], X, y)
    path = Path(__file__).with_suffix(".png")
    figure.savefig(path, dpi=150)
    print(f"saved {path}")
