import numpy as np

from pmsr.search import memory as module
from pmsr.search.memory import Memory, Records, sum_scores


def records(keys, log_q, laws=None):
    n = len(keys)
    small = np.zeros(n, dtype=np.int16)
    return Records(
        np.array(keys, dtype=np.uint64),
        np.array(keys if laws is None else laws, dtype=np.uint64),
        np.array(log_q, dtype=float),
        np.full(n, -1.0),
        np.ones(n),
        small,
        small,
        small,
    )


def test_what_was_added_is_found_and_nothing_else():
    memory = Memory()
    rng = np.random.default_rng(0)
    keys = rng.permutation(5000).astype(np.uint64)
    for some in np.array_split(keys, 30):
        memory.add(records(some, some.astype(float)))
    assert len(memory) == 5000
    asked = np.array([7, 4999, 5000, 0], dtype=np.uint64)
    assert memory.is_known(asked).tolist() == [True, True, False, True]
    assert memory.look_up(asked, "score").tolist() == [6.0, 4998.0, -np.inf, -1.0]


def test_a_copy_goes_its_own_way():
    memory = Memory()
    memory.add(records([1, 2], [0.0, 0.0]))
    copy = memory.copy()
    copy.add(records([3], [0.0]))
    copy.learn({1: 5.0})
    assert (len(memory), len(copy)) == (2, 3)
    one = np.array([1], dtype=np.uint64)
    assert memory.look_up(one, "log_q")[0] == 0.0 and copy.look_up(one, "log_q")[0] == 5.0


def test_the_weight_of_a_law_is_that_of_all_its_spellings():
    memory = Memory()
    memory.add(records([1, 2, 3], [0.0, 0.0, 0.0], laws=[9, 8, 9]))
    memory.learn({9: -4.0})
    keys = np.array([1, 2, 3], dtype=np.uint64)
    assert memory.look_up(keys, "log_q").tolist() == [-4.0, 0.0, -4.0]


def test_memory_is_bounded_and_forgets_the_worst(monkeypatch):
    monkeypatch.setattr(module, "MOST", 3000)
    orders = []
    for seed in range(2):
        memory = Memory()
        keys = np.random.default_rng(seed).permutation(10_000).astype(np.uint64)
        for some in np.array_split(keys, 10):
            memory.add(records(some, some.astype(float)))
        assert len(memory.records) <= 3000 + 1000 and len(memory) == 10_000
        orders.append(memory.is_known(np.array([9999], dtype=np.uint64))[0])
    assert orders == [True, True]


def test_every_law_counts_once_in_its_best_spelling():
    found = records([1, 2, 3, 4], [0.0, 1.0, 2.0, 3.0], laws=[7, 7, 8, 9])
    none = np.empty(0, dtype=np.uint64)
    assert np.isclose(sum_scores(found, none), np.log(np.exp([0.0, 1.0, 2.0]).sum()))
    assert np.isclose(sum_scores(found, np.array([9], dtype=np.uint64)), np.log(1 + np.e))
    assert sum_scores(Records.none(), none) == -np.inf
