"""Drawings of numbers that other modules computed; each returns its Axes.

May import: laws, evidence, equation, data, settings.
"""

from pmsr.plots.graphs import plot_graph
from pmsr.plots.marks import CREDIBLE, LINE, POINTS, PREDICTION, WINNER, to_svg
from pmsr.plots.posteriors import plot_pairs, plot_posterior
from pmsr.plots.predictions import plot_fit, plot_parity, plot_residuals, plot_suggestion
from pmsr.plots.searches import plot_families, plot_front, plot_history

__all__ = [
    "CREDIBLE",
    "LINE",
    "POINTS",
    "PREDICTION",
    "WINNER",
    "plot_families",
    "plot_fit",
    "plot_front",
    "plot_graph",
    "plot_history",
    "plot_pairs",
    "plot_parity",
    "plot_posterior",
    "plot_residuals",
    "plot_suggestion",
    "to_svg",
]
