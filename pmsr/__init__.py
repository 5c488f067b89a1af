"""Symbolic regression that weighs equations by their Bayesian evidence.

The names below are the public interface. Each is imported from its module on first use, so that
``import pmsr`` itself is cheap.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pmsr.data import load_chronometers, load_galileo, make_sine
    from pmsr.equation.expression import Equation
    from pmsr.equation.operators import Operator, add_operator
    from pmsr.estimator import BayesianSymbolicRegressor, load
    from pmsr.evidence.evidence import Evidence, compute_evidence, fit_equation
    from pmsr.evidence.model import build_model
    from pmsr.evidence.posterior import sample_posterior
    from pmsr.evidence.prediction import predict
    from pmsr.laws.prior import LawPrior
    from pmsr.result.comparison import compare, weigh_equations
    from pmsr.result.doubts import ResultWarning
    from pmsr.settings import Search, Settings

__version__ = "0.1.0"

__all__ = [
    "BayesianSymbolicRegressor",
    "Equation",
    "Evidence",
    "LawPrior",
    "Operator",
    "ResultWarning",
    "Search",
    "Settings",
    "__version__",
    "add_operator",
    "build_model",
    "compare",
    "compute_evidence",
    "fit_equation",
    "load",
    "load_chronometers",
    "load_galileo",
    "make_sine",
    "predict",
    "sample_posterior",
    "weigh_equations",
]

_MODULE_OF = {
    "BayesianSymbolicRegressor": "pmsr.estimator",
    "Equation": "pmsr.equation.expression",
    "Evidence": "pmsr.evidence.evidence",
    "LawPrior": "pmsr.laws.prior",
    "Operator": "pmsr.equation.operators",
    "ResultWarning": "pmsr.result.doubts",
    "Search": "pmsr.settings",
    "Settings": "pmsr.settings",
    "add_operator": "pmsr.equation.operators",
    "build_model": "pmsr.evidence.model",
    "compare": "pmsr.result.comparison",
    "compute_evidence": "pmsr.evidence.evidence",
    "fit_equation": "pmsr.evidence.evidence",
    "load": "pmsr.estimator",
    "load_chronometers": "pmsr.data",
    "load_galileo": "pmsr.data",
    "make_sine": "pmsr.data",
    "predict": "pmsr.evidence.prediction",
    "sample_posterior": "pmsr.evidence.posterior",
    "weigh_equations": "pmsr.result.comparison",
}


_PACKAGES = ("experiments", "plots")


def __getattr__(name: str) -> object:
    if name in _PACKAGES:
        return import_module(f"pmsr.{name}")
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'pmsr' has no attribute {name!r}")
    return getattr(import_module(_MODULE_OF[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
