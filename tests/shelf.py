"""Galileo's ramp with a shelf: laws, a small search of it, and its result."""

from pathlib import Path

import pandas as pd

from pmsr.data import load_galileo, make_data
from pmsr.result.searched import from_evolution
from pmsr.settings import QUICK, Search

SHELF = load_galileo("shelf")
DATA = make_data(*SHELF)
LAWS = {"line": "c0 + c1*H", "root": "c0*sqrt(H)", "power": "c0*H**c1", "failed": "c0*log(-H)"}
GRID = pd.DataFrame({"H": [350.0, 450.0, 900.0]}, index=["a", "b", "c"])
TINY = {"n_islands": 2, "n_enumerated": 100, "refresh": 2}
SEARCH = Search(
    operators=("+", "*", "/", "sqrt"), population_size=16, generations=3, n_finalists=5, **TINY
)
SAVED = Path(__file__).parent / "saved"


def wrap(found, search=SEARCH, **options):
    return from_evolution(found, DATA, search=search, settings=QUICK, random_seed=1, **options)
