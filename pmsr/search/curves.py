"""Laws told apart by their curves: equal rank, and best fits that agree at rows and probes."""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from pmsr.data import Data
from pmsr.equation.descent import FITTED
from pmsr.evidence.surface import SAME_CURVE
from pmsr.search.screening import N_PROBES, Screened

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


def digest_curves(screened: Screened, data: Data, keys: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Digest ranks and curves: spellings of one law nearly always get the same number.

    Two weighted means of the curve, in steps of twice the tolerance within which curves agree. One
    in some thousands is next to the border of a step and gets another number than its like: what
    must not be mistaken is compared by its curve. What fits everything, or cannot be fitted, is
    known by its key.
    """
    n = screened.curves.shape[1]
    step = 2.0 * SAME_CURVE * data.spread
    fitted = (screened.outcome == FITTED) & (screened.rank < len(data.y))
    values = np.where(np.isfinite(screened.curves), screened.curves, 0.0)
    digest = screened.rank.astype(np.uint64)
    for ratio in ((np.sqrt(5.0) - 1.0) / 2.0, np.sqrt(2.0) - 1.0):
        weights = 0.5 + np.arange(1, n + 1) * ratio % 1.0
        means = np.clip(np.floor(values @ weights / (weights.sum() * step)), -(2.0**53), 2.0**53)
        digest = (digest ^ means.astype(np.int64).view(np.uint64)) * np.uint64(0x9E3779B97F4A7C15)
        digest ^= digest >> np.uint64(29)
    return np.where(fitted, digest, keys)


class KnownLaws:
    """Laws by their curves: equal rank, and best fits that agree at the rows and at the probes.

    "Agree" is within 1e-6 standard deviations of the target. A digest, a weighted mean of the
    curve in steps of twice that, only finds candidates for the comparison: curves that agree share
    a step or are in neighbouring ones. Laws with as many identifiable parameters as rows fit
    everything and are never taken for one another.

    Parameters
    ----------
    data
        The rows.
    n_rows
        How many of them curves are known at, if not at all.
    """

    def __init__(self, data: Data, n_rows: int | None = None) -> None:
        self.n_rows = len(data.y) if n_rows is None else n_rows
        self.tolerance = SAME_CURVE * data.spread
        n = self.n_rows + N_PROBES
        # Of one sign, so that the mean of differences is no larger than the largest of them; no
        # two alike, so that a permutation of the rows is another law.
        weights = 0.5 + np.arange(1, n + 1) * 0.5 * (np.sqrt(5.0) - 1.0) % 1.0
        self._weights = weights / weights.sum()
        self._curves = np.empty((0, n))
        self._ranks, self._steps = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
        self._following = np.empty(0, dtype=np.int64)
        self._heads = np.full(1, -1, dtype=np.int64)
        self.n_laws = 0

    def add(self, screened: Screened) -> Integers:
        """Take in a batch, in its order; return for each the number of its law.

        Laws are numbered as they come: a number from the former ``n_laws`` on, seen for the first
        time, is a new law, another one a spelling of a law that is known. -1 is none at all: it
        could not be fitted.
        """
        laws = np.empty(len(screened.sse), dtype=np.int64)
        self._make_room(self.n_laws + len(laws))
        self.n_laws = int(
            _sort_in(
                screened.curves,
                screened.rank,
                screened.outcome,
                self.tolerance,
                self._weights,
                self.n_rows,
                self._curves,
                self._ranks,
                self._steps,
                self._following,
                self._heads,
                self.n_laws,
                laws,
            )
        )
        return laws

    def _make_room(self, n_laws: int) -> None:
        """Double the memory if so many laws do not fit, and sort them into a larger index."""
        if n_laws <= len(self._ranks):
            return
        room = 1 << int(n_laws).bit_length()
        more = room - len(self._ranks)
        self._curves = np.concatenate([self._curves, np.empty((more, self._curves.shape[1]))])
        none = np.zeros(more, dtype=np.int64)
        self._ranks = np.concatenate([self._ranks, none])
        self._steps = np.concatenate([self._steps, none])
        self._following = np.full(room, -1, dtype=np.int64)
        self._heads = np.full(2 * room, -1, dtype=np.int64)
        _index(self._ranks, self._steps, self._following, self._heads, self.n_laws)


@njit(error_model="numpy", nogil=True, cache=True)
def _slot(rank, step, n_slots):  # type: ignore[no-untyped-def]
    """Scatter the digest over a power of two."""
    mixed = np.uint64(step) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(rank)
    mixed = (mixed ^ (mixed >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)
    return np.int64((mixed ^ (mixed >> np.uint64(32))) & np.uint64(n_slots - 1))


@njit(error_model="numpy", nogil=True, cache=True)
def _index(ranks, steps, following, heads, n_laws):  # type: ignore[no-untyped-def]
    for law in range(n_laws):
        slot = _slot(ranks[law], steps[law], len(heads))
        following[law] = heads[slot]
        heads[slot] = law


@njit(error_model="numpy", nogil=True, cache=True)
def _sort_in(  # type: ignore[no-untyped-def]
    new_curves, new_ranks, outcome, tolerance, weights, n_rows,
    curves, ranks, steps, following, heads, n_laws, laws,
):  # fmt: skip
    """Fill laws, put new ones at the end, and return how many there are then."""
    for one in range(len(new_curves)):
        laws[one] = -1
        if outcome[one] != FITTED:
            continue
        curve, rank = new_curves[one], new_ranks[one]
        mean = 0.0
        for i in range(curve.size):
            if np.isfinite(curve[i]):
                mean += weights[i] * curve[i]
        # Beyond 2**53 steps, rounding is coarser than a step: all of these are candidates.
        step = np.int64(min(max(np.floor(mean / (2.0 * tolerance)), -(2.0**53)), 2.0**53))
        if rank < n_rows:
            for near in range(step - 1, step + 2):
                law = heads[_slot(rank, near, len(heads))]
                while law >= 0:
                    if ranks[law] == rank and steps[law] == near:
                        if agree(curve, curves[law], tolerance):
                            # The first that came, whatever the order in the index.
                            laws[one] = law if laws[one] < 0 else min(law, laws[one])
                    law = following[law]
        if laws[one] < 0:
            laws[one] = n_laws
            ranks[n_laws], steps[n_laws] = rank, step
            for i in range(curve.size):
                curves[n_laws, i] = curve[i]
            slot = _slot(rank, step, len(heads))
            following[n_laws] = heads[slot]
            heads[slot] = n_laws
            n_laws += 1
    return n_laws


@njit(error_model="numpy", nogil=True, cache=True)
def agree(first, second, tolerance):  # type: ignore[no-untyped-def]
    """Tell whether two curves are one, and numbers at the same places."""
    for i in range(first.size):
        if np.isfinite(first[i]) != np.isfinite(second[i]):
            return False
        if np.isfinite(first[i]) and not abs(first[i] - second[i]) <= tolerance:
            return False
    return True
