"""What is compiled once after installation, before a search looks at the clock."""

import time

import numpy as np
from numba.core.event import install_recorder

from pmsr.data import Data
from pmsr.equation.expression import Equation
from pmsr.equation.operators import table_fingerprint
from pmsr.evidence.evidence import seed_for, weigh
from pmsr.evidence.problem import Problem
from pmsr.limits import time_limit
from pmsr.search.bench import Bench
from pmsr.search.enumeration import enumerate_laws
from pmsr.search.funnel import Funnel
from pmsr.search.genome import equation_genome
from pmsr.settings import QUICK, Search

LAWS = ("c0", "c0*x", "c0/(c1 + x)")
_warm: set[int] = set()


def warm_up() -> float:
    """Run all compiled loops once on a toy; return the seconds that compiling took.

    Compiled code is kept on disk, so these are seconds only once after installation, and a
    moment after a user has added an operator; else it is 0.
    """
    fingerprint = table_fingerprint()
    if fingerprint in _warm:
        return 0.0
    started = time.monotonic()
    x = np.linspace(1.0, 2.0, 8)
    data = Data(x[:, None], 1.0 / x + 0.01 * np.cos(9.0 * x), ("x",), "y")
    problem = Problem.of(data, QUICK)
    # With a rule that nothing breaks: rules are looked after by a loop of their own.
    bench = Bench(problem, Search(operators=("+", "*", "/"), max_uses={"/": 9}), QUICK, 0)
    laws = [Equation(text, ["x"]) for text in LAWS]
    rng = np.random.default_rng(0)
    graphs = [equation_genome(law, bench.primitives, rng=rng) for law in laws]
    # Also where the time of a search is limited from outside: what is compiled is not that time.
    with time_limit(None), install_recorder("numba:compile") as compiled:
        Funnel(bench).judge(graphs, bench)
        for _ in enumerate_laws(bench.search.operators, 1, max_laws=40):
            pass
        for law in laws:
            weigh(law.program, problem, QUICK, seed_for(law.key, 0))
    _warm.add(fingerprint)
    return time.monotonic() - started if compiled.buffer else 0.0
