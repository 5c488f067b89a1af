"""Time the paper's own implementation (Bingo and SMCPy); runs in its environment, see speed.py.

Reads one line of JSON with x, y, orders and repeats from standard input; prints one line of JSON.
"""

import json
import sys
import time
import warnings

warnings.filterwarnings("ignore")

import numpy as np  # noqa: E402
from bingo.local_optimizers.normalized_marginal_likelihood import (  # noqa: E402
    NormalizedMarginalLikelihood,
)
from bingo.local_optimizers.scipy_optimizer import ScipyOptimizer  # noqa: E402
from bingo.symbolic_regression.agraph.agraph import (  # noqa: E402
    AGraph,
    force_use_of_python_backends,
)
from bingo.symbolic_regression.explicit_regression import (  # noqa: E402
    ExplicitRegression,
    ExplicitTrainingData,
)


def polynomial(order: int) -> AGraph:
    """Bingo's graph of c0 + c1*x + ... + cp*x**p, powers by repeated multiplication."""
    variable, constant, add, multiply = 0, 1, 2, 4
    rows = [[variable, 0, 0], [constant, 0, 0]]
    power, total = 0, 1
    for degree in range(1, order + 1):
        if degree > 1:
            rows.append([multiply, power, 0])
            power = len(rows) - 1
        rows.append([constant, degree, degree])
        rows.append([multiply, len(rows) - 1, power])
        rows.append([add, total, len(rows) - 1])
        total = len(rows) - 1
    graph = AGraph(equation="")
    graph.command_array = np.array(rows, dtype=int)
    graph._update()
    return graph


def main() -> None:
    """Weigh every polynomial several times and print CPU seconds and log q."""
    # The C++ engine returns NaN for two or more parameters.
    force_use_of_python_backends()
    task = json.loads(sys.stdin.readline())
    x, y = np.array(task["x"])[:, None], np.array(task["y"])[:, None]
    fitness = ExplicitRegression(training_data=ExplicitTrainingData(x, y))
    optimizer = ScipyOptimizer(fitness, method="lm", param_init_bounds=[-1, 1])
    # As installed it would start from constants that were never optimised.
    weigh = NormalizedMarginalLikelihood(fitness, optimizer, reuse_starting_point=False)
    results = {}
    for order in task["orders"]:
        seconds, log_q = [], []
        for _ in range(task["repeats"] + 1):
            graph = polynomial(order)
            started = time.process_time()
            value = -float(weigh(graph))
            seconds.append(time.process_time() - started)
            log_q.append(value)
        results[order] = {"seconds": seconds[1:], "log_q": log_q[1:]}
    print(json.dumps(results))


if __name__ == "__main__":
    main()
