"""What a search remembers of every program that it has screened: a few numbers, found by key."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Keys = NDArray[np.uint64]

# Programs of which a search remembers anything: 30 MB. Beyond, the worse half is forgotten.
MOST = 1 << 19
SOME = 1000  # new records that are joined to the others


@dataclass(frozen=True, eq=False)
class Records:
    """One row for each screened program.

    Parameters
    ----------
    key
        The key of the folded program.
    law
        Digest of its rank and of its fitted curve: spellings of one law have the same.
    log_q
        By the closed form, or as it was weighed; -inf if the law cannot be fitted.
    log_p
        Log prior probability of this spelling.
    rmse
        Of the best fit.
    size, n_parameters
        Nodes of the tree, and parameters, of this spelling.
    level
        The number of its level if it was enumerated, else 0.
    """

    key: Keys
    law: Keys
    log_q: Floats
    log_p: Floats
    rmse: Floats
    size: NDArray[np.int16]
    n_parameters: NDArray[np.int16]
    level: NDArray[np.int16]

    @classmethod
    def none(cls) -> Self:
        """No rows."""
        return cls(*(np.empty(0, dtype) for dtype in _TYPES))

    def __len__(self) -> int:
        return len(self.key)

    @property
    def score(self) -> Floats:
        """What leads the search."""
        return self.log_q + self.log_p

    def take(self, which: Integers | NDArray[np.bool_]) -> "Records":
        """Choose some rows."""
        return Records(*(getattr(self, one.name)[which] for one in fields(self)))

    def join(self, other: "Records") -> "Records":
        """Put the rows of another one after these."""
        return Records(
            *(
                np.concatenate([getattr(self, one.name), getattr(other, one.name)])
                for one in fields(self)
            )
        )


_TYPES = (np.uint64, np.uint64, float, float, float, np.int16, np.int16, np.int16)


class Memory:
    """Records in the order of their keys; nothing that was handed out ever changes.

    So a copy costs nothing: whoever goes on from it leaves the original as it was. New records are
    kept apart until there are some, because each joining moves all that are known.
    """

    def __init__(self, records: Records | None = None, n_forgotten: int = 0) -> None:
        self._old = Records.none() if records is None else records
        self._new = Records.none()
        self.n_forgotten = n_forgotten

    @property
    def records(self) -> Records:
        """All that is remembered."""
        return _sorted(self._old.join(self._new))

    def __len__(self) -> int:
        """Return how many programs were screened, those that are forgotten too."""
        return len(self._old) + len(self._new) + self.n_forgotten

    def copy(self) -> "Memory":
        """Return a memory that goes its own way from here."""
        other = Memory(self._old, self.n_forgotten)
        other._new = self._new
        return other

    def is_known(self, keys: Keys) -> NDArray[np.bool_]:
        """Tell which programs are remembered."""
        return (_find(self._old.key, keys) >= 0) | (_find(self._new.key, keys) >= 0)

    def look_up(self, keys: Keys, what: str) -> Floats:
        """Return a number of each program; -inf for those that are not known."""
        found = np.full(len(keys), -np.inf)
        for some in (self._old, self._new):
            rows = _find(some.key, keys)
            found[rows >= 0] = getattr(some, what)[rows[rows >= 0]]
        return found

    def choose(self, keys: Keys) -> Records:
        """Return the records of those programs that are known."""
        chosen = [some.take(np.isin(some.key, keys)) for some in (self._old, self._new)]
        return _sorted(chosen[0].join(chosen[1]))

    def laws(self, keys: Keys) -> Keys:
        """Return the law of each program; of those that are not known, their keys."""
        found = keys.copy()
        for some in (self._old, self._new):
            rows = _find(some.key, keys)
            found[rows >= 0] = some.law[rows[rows >= 0]]
        return found

    def add(self, new: Records) -> None:
        """Remember programs that were not known; beyond the limit forget those far behind."""
        self._new = _sorted(self._new.join(new))
        if len(self._new) < max(SOME, len(self._old) // 64):
            return
        joined, self._new = self.records, Records.none()
        if len(joined) > MOST:
            # Of equals the smaller keys stay: whatever the order in which they came.
            worst = np.lexsort((joined.key, -joined.score))[MOST // 2 :]
            self.n_forgotten += len(worst)
            kept = np.ones(len(joined), dtype=bool)
            kept[worst] = False
            joined = joined.take(kept)
        self._old = joined

    def learn(self, weighed: Mapping[int, float]) -> None:
        """Take note of the log q of laws that were weighed, for all their spellings."""
        self._old, self._new = _weighed(self._old, weighed), _weighed(self._new, weighed)


def _sorted(records: Records) -> Records:
    return records.take(np.argsort(records.key, kind="stable"))


def _find(known: Keys, keys: Keys) -> Integers:
    """Return the row of each key; -1 for those that are not known."""
    if not len(known):
        return np.full(len(keys), -1, dtype=np.int64)
    rows = np.minimum(np.searchsorted(known, keys), len(known) - 1)
    return np.where(known[rows] == keys, rows, -1)


def _weighed(records: Records, weighed: Mapping[int, float]) -> Records:
    laws = np.array(list(weighed), dtype=np.uint64)
    places = np.flatnonzero(np.isin(records.law, laws))
    if not len(places):
        return records
    log_q = records.log_q.copy()
    log_q[places] = [weighed[int(law)] for law in records.law[places]]
    return replace(records, log_q=log_q)


def sum_scores(records: Records, but: Keys) -> float:
    """Return log of the sum of exp(score) over laws, each once and in its best spelling.

    Parameters
    ----------
    records
        Programs that were screened, by one or several islands.
    but
        Laws that do not count.
    """
    records = records.take(~np.isin(records.law, but) & np.isfinite(records.score))
    if not len(records):
        return float("-inf")
    order = np.lexsort((-records.score, records.law))
    first = np.ones(len(order), dtype=bool)
    first[1:] = records.law[order][1:] != records.law[order][:-1]
    return float(np.logaddexp.reduce(records.score[order][first]))
