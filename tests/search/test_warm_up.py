import time

from numba import njit

from pmsr.limits import time_limit
from pmsr.search import enumeration, restrictions
from pmsr.search import warm_up as module
from pmsr.search.warm_up import warm_up


def test_what_is_warm_takes_no_time(monkeypatch):
    warm_up()
    assert warm_up() == 0.0
    # Anew in a process in which everything is compiled: nothing is, so nothing counts.
    monkeypatch.setattr(module, "_warm", set())
    assert warm_up() == 0.0


def test_compiling_counts(monkeypatch):
    warm_up()
    monkeypatch.setattr(module, "_warm", set())
    real = module.weigh

    def compile_and_weigh(*arguments):
        njit(lambda x: x + 1.0)(1.0)
        return real(*arguments)

    monkeypatch.setattr(module, "weigh", compile_and_weigh)
    assert warm_up() > 0.0


def test_a_time_limit_from_outside_does_not_end_the_compiling(monkeypatch):
    monkeypatch.setattr(module, "_warm", set())
    with time_limit(time.monotonic() - 1.0):
        warm_up()
    assert module._warm


def test_the_loops_of_rules_and_of_small_laws_are_among_what_is_compiled(monkeypatch):
    monkeypatch.setattr(module, "_warm", set())
    seen = set()

    def looked_after(name, real):
        return lambda *arguments: seen.add(name) or real(*arguments)

    for where, name in ((restrictions, "_find_broken"), (enumeration, "_combine")):
        monkeypatch.setattr(where, name, looked_after(name, getattr(where, name)))
    warm_up()
    assert seen == {"_find_broken", "_combine"}
