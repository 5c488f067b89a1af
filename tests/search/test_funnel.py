from dataclasses import replace

import numpy as np
import pytest

from pmsr.data import load_galileo, make_data
from pmsr.equation.expression import Equation
from pmsr.evidence.evidence import seed_for, weigh
from pmsr.evidence.problem import as_problem
from pmsr.limits import OutOfTime, time_limit
from pmsr.search import funnel as module
from pmsr.search.bench import Bench
from pmsr.search.folding import fold_genomes
from pmsr.search.funnel import SHAPES, Funnel, candidate_of, enumerate_into
from pmsr.search.genome import equation_genome, random_genome
from pmsr.settings import QUICK, Search

SHELF = make_data(*load_galileo("shelf"))
SEARCH = Search(
    operators=("+", "*", "sqrt"), population_size=16, max_complexity=24, n_enumerated=100
)
BENCH = Bench(as_problem(SHELF, QUICK, None), SEARCH, QUICK, 3)


def random_genomes(n, seed=0):
    rng = np.random.default_rng(seed)
    return [random_genome(BENCH.primitives, rng=rng) for _ in range(n)]


def genomes_of(*texts):
    rng = np.random.default_rng(0)
    return [equation_genome(Equation(one, ["H"]), BENCH.primitives, rng=rng) for one in texts]


def known(funnel):
    """Return all that a funnel knows of programs: their laws and scores."""
    records = funnel.memory.records
    return {
        int(key): (int(law), float(score).hex())
        for key, law, score in zip(records.key, records.law, records.score, strict=True)
    }


def enumerated(bench=BENCH):
    *_, (funnel, level) = enumerate_into(Funnel(bench), bench)
    return funnel, level


def test_a_law_is_screened_once_whatever_its_spelling_and_number():
    funnel = Funnel(BENCH)
    names = funnel.judge(genomes_of("c0*H", "H*c0", "c0*H + c1", "c0*H"), BENCH)
    assert names[0] == names[1] == names[3] != names[2]
    assert (funnel.n_folded, funnel.n_screened) == (4, 2)
    again = funnel.judge(genomes_of("c0*H"), BENCH)
    assert again[0] == names[0] and (funnel.n_folded, funnel.n_screened) == (5, 2)


def test_a_law_that_was_only_screened_is_never_said_to_be_weighed(monkeypatch):
    funnel = Funnel(BENCH)
    funnel.judge(random_genomes(400), BENCH)
    assert 0 < funnel.n_sampled == len(funnel.weighed)
    for law in funnel.leaders.laws:
        assert law.is_weighed == (law.law in funnel.weighed)
        candidate = candidate_of(law, BENCH.names)
        assert np.isnan(candidate.log_q_se) != law.is_weighed
    # Without contenders nothing is.
    monkeypatch.setattr(module, "SHARE", 0.0)
    funnel = Funnel(BENCH)
    funnel.judge(random_genomes(400), BENCH)
    assert funnel.n_sampled == 0 and not funnel.weighed
    assert not any(law.is_weighed for law in funnel.leaders.laws)


def test_a_contender_has_the_weight_that_it_has_alone():
    funnel, _ = enumerated()
    law = next(law for law in funnel.leaders.laws if law.is_weighed)
    alone = weigh(law.program, BENCH.problem, QUICK, seed_for(f"{law.law:016x}", BENCH.seed))
    assert (law.log_q, law.log_q_se) == (alone.evidence.log_q, alone.evidence.log_q_se)
    spelled = funnel.memory.records
    assert set(spelled.log_q[spelled.law == law.law]) == {law.log_q}


def test_what_is_weighed_does_not_depend_on_how_many_finalists_there_will_be():
    # With another number of these a search may go on from its checkpoint.
    found = []
    for n in (1, 40):
        bench = replace(BENCH, search=replace(SEARCH, n_finalists=n))
        funnel = Funnel(bench)
        for seed in range(5):
            funnel.judge(random_genomes(200, seed), bench)
        found.append((known(funnel), funnel.weighed, funnel.n_sampled))
    assert found[0] == found[1] and found[0][2] > 1


def test_few_of_the_screened_are_sampled():
    funnel = Funnel(BENCH)
    for seed in range(5):
        funnel.judge(random_genomes(200, seed), BENCH)
        # Of the first few, one.
        assert funnel.n_sampled <= max(1.0, 0.03 * funnel.n_screened)
    assert 0 < funnel.n_sampled < funnel.n_screened < funnel.n_folded


@pytest.mark.parametrize("share", [0.0, module.SHARE])
def test_laws_and_scores_do_not_depend_on_the_order_of_a_batch(monkeypatch, share):
    monkeypatch.setattr(module, "SHARE", share)
    genomes = random_genomes(300)
    first, second = Funnel(BENCH), Funnel(BENCH)
    names = first.judge(genomes, BENCH)
    assert second.judge(genomes[::-1], BENCH)[::-1].tolist() == names.tolist()
    assert known(first) == known(second)
    assert first.weighed == second.weighed
    leaders = [[law.law for law in one.leaders.laws] for one in (first, second)]
    assert leaders[0] == leaders[1]


def test_laws_and_screened_scores_do_not_depend_on_how_they_are_cut_into_batches(monkeypatch):
    monkeypatch.setattr(module, "SHARE", 0.0)
    genomes = random_genomes(300)
    whole, pieces = Funnel(BENCH), Funnel(BENCH)
    whole.judge(genomes, BENCH)
    for start in range(0, 300, 70):
        pieces.judge(genomes[start : start + 70], BENCH)
    assert known(whole) == known(pieces)
    monkeypatch.setattr(module, "CHUNK", 7)
    small = Funnel(BENCH)
    small.judge(genomes, BENCH)
    assert known(small) == known(whole)


def test_what_is_known_or_refused_brings_nothing_new():
    narrow = replace(BENCH, search=replace(SEARCH, max_parameters=1))
    funnel = Funnel(narrow)
    funnel.judge(genomes_of("c0*H"), narrow)
    asked = genomes_of("H*c0", "c0*sqrt(H)", "c0 + c1*H")
    assert funnel.are_known(asked, narrow).tolist() == [True, False, True]
    names = funnel.judge(asked, narrow)
    assert np.isneginf(funnel.scores(names)).tolist() == [False, False, True]
    assert funnel.sizes(names[:1])[1].tolist() == [1.0]


def test_meeting_another_island_brings_its_weights():
    there, _ = enumerated()
    law = next(law for law in there.leaders.laws if law.is_weighed)
    here = Funnel(BENCH)
    name = np.array([law.key], dtype=np.uint64)
    here.meet(there, name)
    assert here.scores(name).tolist() == there.scores(name).tolist()
    assert here.weighed == {law.law: law.log_q}
    assert here.leaders.laws == (law,) and here.n_sampled == 0


@pytest.mark.parametrize("is_weighed", [True, False])
def test_a_law_weighed_here_keeps_its_weight_when_it_arrives_in_another_spelling(
    monkeypatch, is_weighed
):
    here, there = Funnel(BENCH), Funnel(BENCH)
    names = here.judge(genomes_of("sqrt(c0*H)"), BENCH)
    monkeypatch.setattr(module, "SHARE", module.SHARE if is_weighed else 0.0)
    there.judge(genomes_of("c0*sqrt(H)"), BENCH)
    [law] = here.memory.laws(names).tolist()
    [own], [arriving] = here.weighed.values(), there.leaders.laws
    assert arriving.law == law and arriving.is_weighed == is_weighed and arriving.log_q != own
    here.meet(there, np.array([arriving.key], dtype=np.uint64))
    [leader], records = here.leaders.laws, here.memory.records
    assert len(records) == 2 and set(records.law.tolist()) == {law}
    assert {leader.log_q, here.weighed[law], *records.log_q.tolist()} == {own}


def test_a_copy_that_goes_on_leaves_the_original_untouched(monkeypatch):
    funnel = Funnel(BENCH)
    funnel.judge(random_genomes(200), BENCH)
    before = known(funnel), funnel.leaders.laws, dict(funnel.weighed), funnel.n_sampled
    counts, seconds = (funnel.n_folded, funnel.n_screened), dict(funnel.seconds)
    copy = funnel.copy()
    with pytest.raises(OutOfTime), time_limit(0.0):
        copy.judge(random_genomes(200, 1), BENCH)
    calls = []

    def interrupt(*_, **__):
        calls.append(1)
        raise KeyboardInterrupt

    copy = funnel.copy()
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(module, "weigh", interrupt)
        for seed in range(1, 50):
            copy.judge(random_genomes(200, seed), BENCH)
    assert calls and copy.n_screened > funnel.n_screened
    assert before == (known(funnel), funnel.leaders.laws, funnel.weighed, funnel.n_sampled)
    assert (counts, seconds) == ((funnel.n_folded, funnel.n_screened), funnel.seconds)


def test_who_counts_anew_knows_what_was_known():
    funnel, _ = enumerated()
    anew = funnel.count_anew()
    assert (anew.n_folded, anew.n_screened, anew.n_sampled, anew.n_failed) == (0, 0, 0, 0)
    assert known(anew) == known(funnel) and anew.starters == funnel.starters
    anew.judge(random_genomes(200), BENCH)
    assert anew.n_screened == len(known(anew)) - len(known(funnel))


def test_levels_are_enumerated_as_long_as_they_are_few_enough():
    steps = list(enumerate_into(Funnel(BENCH), BENCH))
    assert [unit.kind for _, unit in steps] == sorted(unit.kind for _, unit in steps)
    for kind, most in (("laws", 1), ("shapes", SHAPES)):
        units = [unit for _, unit in steps if unit.kind == kind]
        assert [unit.size for unit in units] == sorted({unit.size for unit in units})
        assert units[-1].n <= most * SEARCH.n_enumerated
    funnel, last = steps[-1]
    # An earlier step is as it was, and from it on the rest is the same.
    for middle, done in (steps[1], steps[-2]):
        kinds = {unit.kind: unit.size for _, unit in steps[: steps.index((middle, done)) + 1]}
        *_, (rest, end) = enumerate_into(middle, BENCH, kinds)
        assert end == last and known(rest) == known(funnel)
        assert middle.n_screened < funnel.n_screened


def test_shapes_come_alone_times_a_parameter_and_in_a_straight_line():
    funnel, _ = enumerated()
    # Nodes: 6, and 8 and 10 with the parameters; of all laws those of up to 5 are enumerated.
    texts = ["sqrt(H) + H*H*H", "c0*(sqrt(H) + H*H*H)", "c0 + c1*(sqrt(H) + H*H*H)"]
    names = fold_genomes(genomes_of(*texts), BENCH.rules).key
    assert funnel.memory.is_known(names).all()


def test_nothing_is_enumerated_if_nothing_is_asked_for():
    bench = replace(BENCH, search=replace(SEARCH, n_enumerated=0))
    assert list(enumerate_into(Funnel(bench), bench)) == []


def test_the_best_is_told_in_words():
    funnel = Funnel(BENCH)
    assert funnel.best(BENCH) is None
    funnel.judge(genomes_of("c0*sqrt(H)", "c0 + H"), BENCH)
    best = funnel.best(BENCH)
    assert best.key == "c0*sqrt(H)" and best.score == funnel.leaders.laws[0].score
    assert (best.n_parameters, best.complexity, best.failure) == (1, 4, None)
    assert funnel.describe(np.array([funnel.leaders.laws[0].key], dtype=np.uint64)) == (
        f"{best.law:016x}",
    )
