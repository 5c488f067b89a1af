"""Generations of the paper's own implementation (Bingo and SMCPy); runs in its environment.

Reads one line of JSON with x, y and the number of generations from standard input; prints one line
of JSON with the CPU seconds of each generation. See search.py --peer.
"""

import json
import sys
import time
import warnings

warnings.filterwarnings("ignore")

import numpy as np  # noqa: E402
from bingo.evaluation.evaluation import Evaluation  # noqa: E402
from bingo.evolutionary_algorithms.generalized_crowding import (  # noqa: E402
    GeneralizedCrowdingEA,
)
from bingo.evolutionary_optimizers.island import Island  # noqa: E402
from bingo.local_optimizers.normalized_marginal_likelihood import (  # noqa: E402
    NormalizedMarginalLikelihood,
)
from bingo.local_optimizers.scipy_optimizer import ScipyOptimizer  # noqa: E402
from bingo.selection.probabilistic_crowding import ProbabilisticCrowding  # noqa: E402
from bingo.symbolic_regression.agraph.agraph import (  # noqa: E402
    force_use_of_python_backends,
)
from bingo.symbolic_regression.agraph.component_generator import ComponentGenerator  # noqa: E402
from bingo.symbolic_regression.agraph.crossover import AGraphCrossover  # noqa: E402
from bingo.symbolic_regression.agraph.generator import AGraphGenerator  # noqa: E402
from bingo.symbolic_regression.agraph.mutation import AGraphMutation  # noqa: E402
from bingo.symbolic_regression.explicit_regression import (  # noqa: E402
    ExplicitRegression,
    ExplicitTrainingData,
)


def main() -> None:
    """Evolve a population of 120 with the paper's settings and time every generation."""
    # The C++ engine returns NaN for two or more parameters.
    force_use_of_python_backends()
    task = json.loads(sys.stdin.readline())
    np.random.seed(0)  # noqa: NPY002
    x, y = np.array(task["x"])[:, None], np.array(task["y"])[:, None]
    error = ExplicitRegression(training_data=ExplicitTrainingData(x, y))
    optimizer = ScipyOptimizer(error, method="lm", param_init_bounds=[-1, 1])
    fitness = NormalizedMarginalLikelihood(error, optimizer, reuse_starting_point=False)
    components = ComponentGenerator(1)
    for operator in ("+", "-", "*"):
        components.add_operator(operator)
    algorithm = GeneralizedCrowdingEA(
        Evaluation(fitness),
        AGraphCrossover(),
        AGraphMutation(components),
        0.4,
        0.4,
        ProbabilisticCrowding(log_scale=True, negative=True),
    )
    island = Island(algorithm, AGraphGenerator(64, components, use_python=True), 120)
    seconds, started = [], time.process_time()
    while len(seconds) < task["generations"]:
        before = time.process_time()
        island.evolve(1)
        seconds.append(time.process_time() - before)
        if time.process_time() - started > task["seconds"]:
            break
    print(json.dumps(seconds))


if __name__ == "__main__":
    main()
