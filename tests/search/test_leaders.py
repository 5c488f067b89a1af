from dataclasses import replace

import numpy as np

from pmsr.data import load_galileo, make_data
from pmsr.equation.expression import Equation
from pmsr.search.leaders import N_LEADERS, Leader, Leaders

DATA = make_data(*load_galileo("shelf"))


def leader(key, log_q=0.0, log_p=-3.0, curve=(1.0, 2.0), rank=1, text="c0*H", se=np.nan):
    program = Equation(text, ["H"]).program
    return Leader(program, key, key, rank, 1.0, log_q, se, log_p, 3, np.array(curve, dtype=float))


def test_the_best_come_first_and_the_last_fall_out():
    leaders = Leaders(DATA)
    rng = np.random.default_rng(0)
    for key in rng.permutation(N_LEADERS + 20).tolist():
        leaders.add([leader(key, log_q=float(key), curve=(key * 1e3, 1.0))])
    assert [law.key for law in leaders.laws[:3]] == [N_LEADERS + 19, N_LEADERS + 18, N_LEADERS + 17]
    assert len(leaders.laws) == N_LEADERS and leaders.floor == leaders.laws[-1].score == 17.0


def test_spellings_of_one_law_are_one_entry_in_the_better_spelling():
    leaders = Leaders(DATA)
    leaders.add([leader(1, log_p=-5.0, se=0.1, log_q=2.0), leader(2, log_p=-3.0, log_q=1.5)])
    [law] = leaders.laws
    # The weight that was sampled stays, the prior is that of the shorter.
    assert (law.key, law.log_q, law.log_p) == (2, 2.0, -3.0)


def test_of_equal_spellings_the_linear_one_is_shown():
    leaders = Leaders(DATA)
    leaders.add([leader(1, text="sqrt(c0*H)"), leader(2, text="c0*sqrt(H)")])
    assert leaders.laws[0].key == 2


def test_other_ranks_and_other_curves_are_other_laws():
    leaders = Leaders(DATA)
    leaders.add([leader(1), leader(2, rank=2), leader(3, curve=(1.0, np.nan))])
    leaders.add([leader(4, curve=(1.0, np.nan))])
    assert {law.key for law in leaders.laws} == {1, 2, 3}


def test_laws_that_fit_everything_are_never_united():
    leaders = Leaders(DATA)
    n = len(DATA.y)
    leaders.add([leader(1, rank=n), leader(2, rank=n), leader(2, rank=n)])
    assert [law.key for law in leaders.laws] == [1, 2]


def test_a_weight_moves_a_law_and_a_failure_removes_it():
    leaders = Leaders(DATA)
    leaders.add([leader(1), leader(2, log_q=-1.0, curve=(5.0, 5.0))])
    leaders.weigh(leaders.laws[1], 3.0, 0.1)
    assert [law.key for law in leaders.laws] == [2, 1] and leaders.laws[0].is_weighed
    leaders.weigh(leaders.laws[0], -np.inf, 0.0)
    assert [law.key for law in leaders.laws] == [1]
    assert not replace(leaders.laws[0]).is_weighed
