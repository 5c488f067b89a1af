"""Symbolic regression that weighs equations by their Bayesian evidence.

The names below are the public interface. Each is imported from its module on first use, so that
``import pmsr`` itself is cheap.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pmsr.data import load_galileo, make_sine
    from pmsr.doubts import ResultWarning
    from pmsr.estimator import BayesianSymbolicRegressor, load
    from pmsr.evidence import Evidence, compute_evidence, fit_equation
    from pmsr.expression import Equation
    from pmsr.model import build_model
    from pmsr.operators import Operator, add_operator
    from pmsr.posterior import sample_posterior
    from pmsr.prediction import predict
    from pmsr.ranking import compare, weigh_equations
    from pmsr.settings import Search, Settings

__version__ = "0.1.0"

__all__ = [
    "BayesianSymbolicRegressor",
    "Equation",
    "Evidence",
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
    "load_galileo",
    "make_sine",
    "predict",
    "sample_posterior",
    "weigh_equations",
]

_MODULE_OF = {
    "BayesianSymbolicRegressor": "pmsr.estimator",
    "Equation": "pmsr.expression",
    "Evidence": "pmsr.evidence",
    "Operator": "pmsr.operators",
    "ResultWarning": "pmsr.doubts",
    "Search": "pmsr.settings",
    "Settings": "pmsr.settings",
    "add_operator": "pmsr.operators",
    "build_model": "pmsr.model",
    "compare": "pmsr.ranking",
    "compute_evidence": "pmsr.evidence",
    "fit_equation": "pmsr.evidence",
    "load": "pmsr.estimator",
    "load_galileo": "pmsr.data",
    "make_sine": "pmsr.data",
    "predict": "pmsr.prediction",
    "sample_posterior": "pmsr.posterior",
    "weigh_equations": "pmsr.ranking",
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
