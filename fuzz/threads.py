"""Many calls at once, in four threads: every number must be that of one thread, to the last bit."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np

import pmsr
from fuzz.tally import Tally, generator
from pmsr.settings import QUICK

N_THREADS = 4
EQUATIONS = (
    "c0",
    "c0 + c1*x0",
    "c0*exp(c1*x0)",
    "c0*exp(c1*x0) + c2",
    "c0/(c1 + x0)",
    "c0*x0**c1",
    "c0*sin(c1*x0 + c2) + c3",
    "2*exp(-x0/2)",
)


def attack(n: int, seed: int) -> Tally:
    """Weigh n equations on data of 20 to 3000 rows, alone and in threads, and compare."""
    tally = Tally("threads")
    places = range(n)
    # The threads come first, so that they also compile together.
    with ThreadPoolExecutor(N_THREADS) as threads:
        # What is raised in a thread is a fault, not the end of the attack.
        together = [threads.submit(_weigh, seed, place) for place in places]
    alone = [_weigh(seed, place) for place in places]

    def compare(place: int) -> str:
        found = together[place].result()
        if found != alone[place]:
            raise ValueError(f"{found} in a thread, {alone[place]} alone")
        return "equal"

    for place in places:
        tally.attempt(f"call {place}", lambda place=place: compare(place))
    return tally


def _weigh(seed: int, place: int) -> tuple[float, float, str | None]:
    rng = generator(seed, place)
    x = np.linspace(0.1, 5.0, int(rng.choice([20, 200, 3000])))
    y = 2.0 * np.exp(-0.5 * x) + 0.1 * rng.standard_normal(len(x))
    equation = EQUATIONS[place % len(EQUATIONS)]
    found = pmsr.compute_evidence(equation, x, y, settings=QUICK, random_seed=place)
    return found.log_q, found.log_q_se, found.failure
