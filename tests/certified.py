"""NIST's certified non-linear regressions (data/nist_strd), for tests and benchmarks."""

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pmsr.equation.program import evaluate, evaluate_jacobian

FOLDER = Path(__file__).parent / "data" / "nist_strd"

# Each file states its model; this is how pmsr writes it.
EQUATIONS = {
    "BoxBOD": "b1*(1 - exp(-b2*x))",
    "Chwirut2": "exp(-b1*x)/(b2 + b3*x)",
    "DanWood": "b1*x**b2",
    "Gauss1": "b1*exp(-b2*x) + b3*exp(-(x - b4)**2/b5**2) + b6*exp(-(x - b7)**2/b8**2)",
    "Gauss2": "b1*exp(-b2*x) + b3*exp(-(x - b4)**2/b5**2) + b6*exp(-(x - b7)**2/b8**2)",
    "Hahn1": "(b1 + b2*x + b3*x**2 + b4*x**3)/(1 + b5*x + b6*x**2 + b7*x**3)",
    "Kirby2": "(b1 + b2*x + b3*x**2)/(1 + b4*x + b5*x**2)",
    "Lanczos3": "b1*exp(-b2*x) + b3*exp(-b4*x) + b5*exp(-b6*x)",
    "MGH09": "b1*(x**2 + x*b2)/(x**2 + x*b3 + b4)",
    "MGH17": "b1 + b2*exp(-x*b4) + b3*exp(-x*b5)",
    "Misra1a": "b1*(1 - exp(-b2*x))",
    "Misra1c": "b1*(1 - (1 + 2*b2*x)**(-0.5))",
    "Nelson": "b1 - b2*x1*exp(-b3*x2)",
    "Roszman1": "b1 - b2*x - arctan(b3/(x - b4))/3.141592653589793",
}

# Grids of the parameters that are not affine: number of points, and reach on either side along the
# principal axes, in standard deviations. MGH17 has none: no such grid resolves its ridge, b4 = b5.
GRIDS = {
    "BoxBOD": (20_001, [(10, 100)]),
    "Chwirut2": (101, [(9, 9)] * 3),
    "DanWood": (4001, [(40, 40)]),
    "Kirby2": (401, [(12, 12)] * 2),
    "Lanczos3": (151, [(14, 14), (14, 14), (10, 10)]),
    "Misra1a": (2001, [(15, 15)]),
    "Misra1c": (2001, [(15, 15)]),
    "Nelson": (8001, [(12, 12)]),
    "Roszman1": (501, [(20, 20)] * 2),
}


@dataclass(frozen=True, eq=False)
class Problem:
    """One file: its data, and the certified least-squares solution.

    Parameters
    ----------
    name, equation
        Name of the file, and its model.
    X, y
        The data; y is already transformed where the model is one of log y.
    theta, theta_sd
        Certified parameters and standard deviations.
    sse
        Certified sum of squared residuals.
    """

    name: str
    equation: str
    X: pd.DataFrame
    y: NDArray[np.float64]
    theta: NDArray[np.float64]
    theta_sd: NDArray[np.float64]
    sse: float


def read_problem(name: str) -> Problem:
    """Read one of NIST's files."""
    lines = (FOLDER / f"{name}.dat").read_text().splitlines()
    header = "\n".join(lines[:60])
    # Parameter, two starts, certified value, certified standard deviation.
    rows = re.findall(r"^\s*b\d+ =\s+\S+\s+\S+\s+(\S+)\s+(\S+)\s*$", header, flags=re.MULTILINE)
    certified = np.array(rows, dtype=float)
    sse = float(re.search(r"Residual Sum of Squares:\s+(\S+)", header)[1])
    names = lines[59].split()[1:]
    table = pd.DataFrame(
        [list(map(float, line.split())) for line in lines[60:] if line.strip()], columns=names
    )
    y = table.pop("y").to_numpy()
    if "log[y]" in header:
        y = np.log(y)
    return Problem(name, EQUATIONS[name], table, y, certified[:, 0], certified[:, 1], sse)


def fold(name: str, theta: NDArray[np.float64]) -> NDArray[np.float64]:
    """Map parameters to the one of their symmetric copies that NIST certifies.

    Sums of exponentials or of Gaussians do not change when their terms are swapped, and a Gaussian
    does not change with the sign of its width. Terms are sorted as in the certified solution.

    Parameters
    ----------
    name
        Name of the file.
    theta
        Shape (n, p).
    """
    if name.startswith("Gauss"):
        theta = theta.copy()
        theta[:, [4, 7]] = np.abs(theta[:, [4, 7]])
        return _sort_terms(theta, [[2, 3, 4], [5, 6, 7]], by=1)
    if name == "Lanczos3":
        return _sort_terms(theta, [[0, 1], [2, 3], [4, 5]], by=1)
    if name == "MGH17":
        return _sort_terms(theta, [[1, 3], [2, 4]], by=1)
    return theta


def _sort_terms(theta: NDArray[np.float64], terms: list[list[int]], by: int) -> NDArray[np.float64]:
    """Sort the terms of each row by the parameter at place ``by`` of each."""
    blocks = theta[:, np.array(terms)]
    order = np.argsort(blocks[:, :, by], axis=1)
    result = theta.copy()
    result[:, np.array(terms)] = np.take_along_axis(blocks, order[:, :, None], axis=1)
    return result


class Linearised:
    """Least squares at the certified solution: noise, and a root of the covariance."""

    def __init__(self, problem, program):
        jacobian = evaluate_jacobian(program, problem.theta[None], problem.X.to_numpy())[1][0].T
        length = np.linalg.norm(jacobian, axis=0)
        _, s, vt = np.linalg.svd(jacobian / length, full_matrices=False)
        self.noise = np.sqrt(problem.sse / (len(problem.y) - len(problem.theta)))
        root = self.noise * vt.T / s / length[:, None]
        self.covariance = root @ root.T


def exact_draws(problem, program, target, n_draws=400_000):
    """Weighted draws from the posterior: theta, weights, and the share outside the region.

    They are made for flat theta. Under the invariant prior they are weighed by the volume of the
    surface of predictions, computed here and not by what is tested.
    """
    n_grid, reach = GRIDS[problem.name]
    rng = np.random.default_rng(0)
    affine = list(program.affine)
    curved = [k for k in range(program.n_parameters) if k not in affine]
    covariance = Linearised(problem, program).covariance[np.ix_(curved, curved)]
    sd = np.sqrt(np.diag(covariance))
    values, vectors = np.linalg.eigh(covariance / np.outer(sd, sd))
    axes = sd[:, None] * vectors * np.sqrt(values)
    grids = [np.linspace(-low, high, n_grid) for low, high in reach]
    cells = np.stack(np.meshgrid(*grids, indexing="ij"), -1).reshape(-1, len(curved))
    pieces = np.array_split(cells, max(1, len(cells) // 20_000))
    log_p = np.concatenate([_solve(problem, program, piece @ axes.T)[0] for piece in pieces])
    p = np.exp(log_p - log_p.max())
    chosen = rng.choice(len(cells), size=n_draws, p=p / p.sum())
    width = np.array([grid[1] - grid[0] for grid in grids])
    steps = (cells[chosen] + (rng.random((n_draws, len(curved))) - 0.5) * width) @ axes.T
    thetas, log_new, sigmas = [], [], []
    for piece in np.array_split(steps, n_draws // 20_000):
        log_density, theta, sse, triangle, right, length = _solve(problem, program, piece)
        shape = (len(problem.y) - 1 - len(affine)) / 2
        sigma = np.sqrt(sse / 2 / rng.gamma(shape, size=len(piece)))
        if affine:
            right = right + sigma[:, None] * rng.standard_normal(right.shape)
            theta[:, affine] = np.linalg.solve(triangle, right[:, :, None])[:, :, 0] / length
        thetas.append(theta)
        log_new.append(log_density)
        sigmas.append(sigma)
    theta, sigma = np.concatenate(thetas), np.concatenate(sigmas)
    # The density inside a cell is not quite that of its centre.
    weight = np.exp(np.concatenate(log_new) - log_p[chosen])
    weight[sigma > target.sigma_bounds[1]] = 0.0
    if target.problem.parameter_prior == "invariant":
        log_volume, distance = _look(problem, program, theta)
        weight *= np.exp(log_volume - np.max(log_volume, where=weight > 0.0, initial=-np.inf))
        # Nothing that fits has a pole between rows, or an alias: of these rules nothing is seen.
        inside = distance <= target.radius
    elif problem.name == "Lanczos3":
        # Its regions are so large that nothing is outside, whichever copies were found.
        inside = np.ones(n_draws, dtype=bool)
    else:
        inside = target.inside(theta)
    outside = weight[~inside].sum() / weight.sum()
    return fold(problem.name, theta), np.where(inside, weight, 0.0), outside


def _look(problem, program, theta):
    """Log volume element of the surface, and the distance from the certified predictions."""
    X = problem.X.to_numpy()
    best = evaluate(program, problem.theta[None], X)[0]
    log_volumes, distances = [], []
    for piece in np.array_split(theta, max(1, len(theta) // 10_000)):
        value, jacobian = evaluate_jacobian(program, piece, X)
        length = np.linalg.norm(jacobian, axis=2)
        # The derivatives by different parameters differ by many orders of magnitude.
        unit = (jacobian / length[:, :, None]).transpose(0, 2, 1)
        diagonal = np.abs(np.diagonal(np.linalg.qr(unit, mode="r"), axis1=1, axis2=2))
        log_volumes.append(np.log(diagonal).sum(axis=1) + np.log(length).sum(axis=1))
        distances.append(np.linalg.norm(value - best, axis=1))
    return np.concatenate(log_volumes), np.concatenate(distances)


def _solve(problem, program, steps):
    """Log density of the curved parameters, the affine ones and sigma integrated out."""
    affine = list(program.affine)
    curved = [k for k in range(program.n_parameters) if k not in affine]
    theta = np.zeros((len(steps), program.n_parameters))
    theta[:, curved] = problem.theta[curved] + steps
    with np.errstate(all="ignore"):
        value, jacobian = evaluate_jacobian(program, theta, problem.X.to_numpy())
        residual = problem.y - value
        log_p, triangle, right, length = np.zeros(len(steps)), None, None, None
        if affine:
            design = jacobian[:, affine].transpose(0, 2, 1)
            length = np.linalg.norm(design, axis=1)
            unit = design / length[:, None, :]
            unusable = ~np.isfinite(unit).all(axis=(1, 2))
            unit[unusable] = 1.0
            q, triangle = np.linalg.qr(unit)
            right = np.einsum("bnk,bn->bk", q, residual)
            residual = residual - np.einsum("bnk,bk->bn", q, right)
            diagonal = np.abs(np.diagonal(triangle, axis1=1, axis2=2))
            log_p = -np.log(diagonal).sum(axis=1) - np.log(length).sum(axis=1)
            log_p[unusable] = -np.inf
        sse = np.sum(residual**2, axis=1)
        log_p = log_p - (len(problem.y) - 1 - len(affine)) / 2 * np.log(sse)
    return np.where(np.isfinite(log_p), log_p, -np.inf), theta, sse, triangle, right, length
