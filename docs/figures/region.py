"""Draw the picture of docs/evidence.md: flat in the parameter, and flat on predictions.

python docs/figures/region.py
"""

from dataclasses import replace
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import pmsr
from pmsr.settings import FINALIST

ROWS = (1.0, 3.0)
FAMILIES = {
    "Galileo's law, no shelf": ("k1*D**2/(1 + k2*D)", "D**2/(c0 + c1*D)", "D/(c0/D + c1)"),
    "power law": ("c0*D**c1", "exp(c0)*D**c1"),
}
ASIDE = np.array([0.03, -0.03])  # so that both rows of dots can be seen
BLUE, RED = "#0072B2", "#D55E00"


def draw_surface(ax):
    """Draw the curve of predictions of exp(-k*x) at two rows, with steps of k and of length."""
    k = np.linspace(0.0, 6.0, 20_001)
    curve = np.exp(-np.outer(k, ROWS))
    length = np.concatenate([[0.0], np.cumsum(np.hypot(*np.diff(curve, axis=0).T))])
    ax.plot(*curve.T, color="black", lw=1)
    steps = np.linspace(0.0, 6.0, 25)
    even_k = np.exp(-np.outer(steps, ROWS))
    even = np.stack([np.interp(np.linspace(0, length[-1], 25), length, c) for c in curve.T], axis=1)
    ax.scatter(*(even_k + ASIDE).T, s=18, color=RED, label="equal steps of k")
    ax.scatter(*(even - ASIDE).T, s=18, color=BLUE, label="equal steps on the curve")
    ax.set(xlabel=f"prediction at x = {ROWS[0]:g}", ylabel=f"prediction at x = {ROWS[1]:g}")
    ax.set_title(r"$e^{-kx}$: one curve, two priors", fontsize=10)
    ax.legend(frameon=False, fontsize=8)


def draw_spellings(ax, X, y):
    """Draw log q of every spelling under both priors."""
    labels, row = [], 0
    for texts in FAMILIES.values():
        for text in texts:
            for prior, colour in (("flat", RED), ("invariant", BLUE)):
                settings = replace(FINALIST, parameter_prior=prior)
                found = pmsr.compute_evidence(text, X, y, settings=settings, random_seed=0)
                ax.errorbar(found.log_q, -row, xerr=2 * found.log_q_se, fmt="o", ms=5, color=colour)
            labels.append(text)
            row += 1
        row += 1
        labels.append("")
    ax.set_yticks([-k for k in range(row)], labels[:row])
    ax.tick_params(axis="y", length=0)
    ax.set_xlabel("log q on Galileo's no-shelf data")
    ax.set_title("red: flat parameters; blue: flat on predictions", fontsize=10)


if __name__ == "__main__":
    X, y = pmsr.load_galileo("no_shelf")
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained")
    draw_surface(axes[0])
    draw_spellings(axes[1], X, y)
    path = Path(__file__).with_suffix(".png")
    figure.savefig(path, dpi=150)
    print(f"saved {path}")
