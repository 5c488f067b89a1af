import numpy as np
import pandas as pd
import pytest

from pmsr.report.content import gather_content
from pmsr.result.comparison import weigh_equations

TOWER = ["drop height [m]", "fall time [s]"]


@pytest.fixture(scope="session")
def tower():
    """The content of a comparison of three laws of a fall, with units in the names."""
    rng = np.random.default_rng(1)
    X = pd.DataFrame({TOWER[0]: np.linspace(1.0, 20.0, 12), "m": rng.uniform(1.0, 2.0, 12)})
    y = pd.Series(np.sqrt(X[TOWER[0]] / 4.9) + rng.normal(0.0, 0.02, 12), name=TOWER[1])
    laws = [f"c0*sqrt(`{TOWER[0]}`)", "c0 + c1*m", f"c0*log(-`{TOWER[0]}`)"]
    found = weigh_equations(laws, X, y, units="auto", random_seed=1)
    return gather_content(found, folder="tower-run")
