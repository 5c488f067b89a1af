"""What the page computes by itself: the laws as tables of integers, with their posteriors."""

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pmsr.data import Data
from pmsr.equation.operators import FIRST_OPERATOR, OPERATORS, POWER
from pmsr.equation.program import Program
from pmsr.evidence.noise import find_noise

Floats = NDArray[np.float64]

MAX_BYTES = 1_000_000  # of draws, in the page: with all else it stays below 2 MB
MAX_ROWS = 1000  # measurements that are drawn
MAX_DRAWS = 10**6  # of a law: all
N_THINNED = 250  # draws of a law for which there is no room: enough for a band
KNOWN = frozenset("+ - * / pow sqrt exp log sin cos tan tanh abs".split())
"""The operators that the page's script has, by name."""


@dataclass(frozen=True, eq=False)
class ShownPart:
    """What the data say about a law's parameters: all of them, or those of one group.

    Parameters
    ----------
    theta
        The best fit.
    draws, sigma
        Draws of the parameters, of shape (n, p), and of the size of a new observation's noise, of
        shape (n,); None for a law that was not sampled.
    """

    theta: Floats
    draws: Floats | None = None
    sigma: Floats | None = None

    # Any: what JSON holds.
    def encode(self, n_draws: int) -> dict[str, Any]:
        """Return what the script needs, with at most so many draws."""
        record: dict[str, Any] = {"theta": self.theta.tolist()}
        if self.draws is None or self.sigma is None:
            return record
        n = len(self.draws)
        some = np.arange(n) if n <= n_draws else np.linspace(0, n - 1, n_draws).astype(int)
        centre, factor, white = whiten(self.draws[some])
        return record | {
            "n": len(some),
            "of": n,
            "centre": centre.tolist(),
            "factor": factor.tolist(),
            "white": _pack(white.T),
            "sigma": _pack(self.sigma[some]),
        }


@dataclass(frozen=True, eq=False, kw_only=True)
class ShownLaw:
    """A law that the page can draw, and predict with.

    Parameters
    ----------
    program, variables
        The law, and the names of its variables in its order.
    parts
        One for each group; without groups one.
    residuals
        What the best fit leaves unexplained, as it is shown.
    estimates
        As :meth:`pmsr.result.fitted.FittedEquation.estimates`; None if it was not sampled.
    """

    program: Program
    variables: tuple[str, ...]
    parts: Sequence[ShownPart]
    residuals: Floats
    estimates: pd.DataFrame | None = None

    @property
    def is_known(self) -> bool:
        """Whether the script knows all of its operators."""
        return all(name in KNOWN for name in self._operators)

    @property
    def _operators(self) -> list[str]:
        names = list(OPERATORS)
        codes = self.program.nodes[:, 0]
        return [names[code - FIRST_OPERATOR] for code in codes if code >= FIRST_OPERATOR]

    # Any: what JSON holds.
    def encode(
        self, columns: Sequence[str], rows: NDArray[np.intp], n_draws: int
    ) -> dict[str, Any]:
        """Return what the script needs, with at most so many draws."""
        names = list(OPERATORS)
        nodes: list[list[Any]] = []
        for code, a, b in self.program.nodes.tolist():
            kind = "xcl^"[code] if code <= POWER else names[code - FIRST_OPERATOR]
            nodes.append([kind, a, b])
        return {
            "nodes": nodes,
            "literals": self.program.literals.tolist(),
            "columns": [list(columns).index(name) for name in self.variables],
            "residuals": _pack(self.residuals[rows]),
            "parts": [one.encode(n_draws) for one in self.parts],
        }

    @property
    def n_bytes(self) -> int:
        """How long all draws are in the page, about."""
        draws = [one.draws for one in self.parts if one.draws is not None]
        return 6 * sum(len(one) * (one.shape[1] + 1) for one in draws)


def whiten(draws: Floats) -> tuple[Floats, Floats, Floats]:
    r"""Return m, L and z with draws = m + L z, where z has no correlations.

    Rounded to single precision, z moves draws along the ridge of the posterior, not off it: what
    they predict is as good as with all digits, also where parameters nearly cancel.

    Examples
    --------
    >>> draws = np.array([[1.0, 2.0], [2.0, 4.1], [3.0, 5.9], [4.0, 8.0]])
    >>> m, L, z = whiten(draws)
    >>> bool(np.allclose(m + z @ L.T, draws)), (abs(z.T @ z) / 4).round(3).tolist()
    (True, [[1.0, 0.0], [0.0, 1.0]])
    """
    n_parameters = draws.shape[1]
    centre = draws.mean(axis=0) if len(draws) else np.zeros(n_parameters)
    apart = draws - centre
    scale = np.max(np.abs(apart), axis=0, initial=0.0)
    scale[scale == 0.0] = 1.0
    apart = apart / scale
    square = apart.T @ apart / max(1, len(apart))
    # Parameters that are held vary by nothing.
    square[np.diag_indices(n_parameters)] += np.where(np.diag(square) > 0.0, 0.0, 1.0)
    jitter = 0.0
    while True:
        try:
            factor = np.linalg.cholesky(square + jitter * np.eye(n_parameters))
            break
        except np.linalg.LinAlgError:
            jitter = max(1e-14, 10.0 * jitter)
    white = np.linalg.solve(factor, apart.T).T
    return centre, scale[:, None] * factor, white


def encode_laws(
    laws: Mapping[str, ShownLaw],
    data: Data,
    *,
    order: Sequence[str],
    noise: str,
    level: float,
) -> dict[str, Any]:
    """Return what the page's script needs of data and laws, for JSON.

    Parameters
    ----------
    laws
        By their names.
    data
        The measurements.
    order
        Names of the laws, that which is put forward first: the first have all of their draws, as
        far as there is room.
    noise
        Name of the noise model.
    level
        Probability of intervals.
    """
    n_rows = len(data.y)
    rows = np.arange(n_rows)
    if n_rows > MAX_ROWS:
        rows = np.linspace(0, n_rows - 1, MAX_ROWS).astype(int)
    labels = list(dict.fromkeys(data.groups or ()))  # problems sort their rows by group
    left = MAX_BYTES
    records = {}
    for name in order:
        law = laws.get(name)
        if law is None or not law.is_known:
            continue
        n_draws = N_THINNED
        if law.n_bytes <= left:
            left -= law.n_bytes
            n_draws = MAX_DRAWS
        records[name] = law.encode(data.names, rows, n_draws)
    tails = ((1.0 - level) / 2.0, (1.0 + level) / 2.0)
    standard = find_noise(noise).standard
    return {
        "noise": noise,
        "tails": tails,
        "ends": [float(standard.quantile(tail)) for tail in tails],
        "n": len(rows),
        "of": n_rows,
        "X": _pack(data.X[rows].T, np.float64),
        "y": _pack(data.y[rows], np.float64),
        "yError": None if data.y_err is None else _pack(data.y_err[rows]),
        "xError": None if data.X_err is None else _pack(data.X_err[rows].T),
        "groups": labels,
        "group": [labels.index(data.groups[row]) for row in rows] if data.groups else None,
        "laws": records,
    }


# Any: what JSON holds.
def to_json(payload: Any) -> str:
    r"""Return JSON that may stand in a page: no tag can begin or end in it.

    Examples
    --------
    >>> print(to_json("</script>&"))
    "\u003c/script\u003e\u0026"
    """
    text = json.dumps(payload, separators=(",", ":"), allow_nan=False)
    for sign in "<>&":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text


def _pack(values: Floats, kind: type = np.float32) -> str:
    """Return numbers as base64, the least significant byte first."""
    with np.errstate(over="ignore"):
        packed = np.ascontiguousarray(values, dtype=np.dtype(kind).newbyteorder("<"))
    return base64.b64encode(packed.tobytes()).decode()
