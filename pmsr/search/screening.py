"""Screening: thousands of laws a second fitted in compiled code, and told apart by their curves."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pmsr.data import Data
from pmsr.equation.descent import Plan, law_keys, make_work, run_screen
from pmsr.equation.program import Program
from pmsr.evidence.multistart import CURVED_TOLERANCE, N_AROUND, RANK_TOLERANCE, SPREAD

Floats = NDArray[np.float64]

N_PROBES = 32
DEFAULT = Plan(16, 4, 8, 2, 60, SPREAD, RANK_TOLERANCE, CURVED_TOLERANCE, N_AROUND)


@dataclass(frozen=True, eq=False)
class Batch:
    nodes: NDArray[np.int32]
    lengths: NDArray[np.int64]
    literals: Floats
    n_parameters: NDArray[np.int64]

    @classmethod
    def of(cls, programs: Sequence[Program]) -> "Batch":
        n = len(programs)
        nodes = np.zeros((n, max(len(p.nodes) for p in programs), 3), dtype=np.int32)
        literals = np.zeros((n, max(1, *(len(p.literals) for p in programs))))
        for k, p in enumerate(programs):
            nodes[k, : len(p.nodes)] = p.nodes
            literals[k, : len(p.literals)] = p.literals
        return cls(nodes, np.array([len(p.nodes) for p in programs]), literals, np.array([p.n_parameters for p in programs]))


def probe_points(X):
    d = X.shape[1]
    phi = 2.0
    for _ in range(60):
        phi = (1.0 + phi) ** (1.0 / (d + 1))
    steps = phi ** -np.arange(1.0, d + 1)
    unit = (0.5 + np.outer(np.arange(1, N_PROBES + 1), steps)) % 1.0
    low, high = X.min(axis=0), X.max(axis=0)
    return np.ascontiguousarray(low + (high - low) * unit)


def screen(batch, data: Data, seed: int, plan=DEFAULT):
    n_laws, n = len(batch.nodes), len(data.y)
    p = max(1, int(batch.n_parameters.max(initial=0)))
    keys = np.empty(n_laws, dtype=np.uint64)
    law_keys(batch.nodes, batch.lengths, batch.literals, batch.n_parameters, keys)
    probes = probe_points(data.X)
    work = make_work(batch.nodes.shape[1], max(n, N_PROBES), p, plan.n_starts)
    theta = np.empty((n_laws, p)); sse = np.empty(n_laws); rank = np.empty(n_laws, dtype=np.int64)
    curves = np.empty((n_laws, n + N_PROBES)); outcome = np.empty(n_laws, dtype=np.int64); ev = np.empty(n_laws, dtype=np.int64)
    unit = 1.0 / float(np.std(data.y))
    run_screen(batch.nodes, batch.lengths, batch.literals, batch.n_parameters, keys, np.uint64(seed), data.X, data.y, unit, probes, plan, work, theta, sse, rank, curves, outcome, ev)
    return theta, sse / unit**2, rank, curves, outcome, ev
