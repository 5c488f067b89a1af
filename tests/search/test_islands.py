from dataclasses import fields, replace

import numpy as np
import pytest

from pmsr.data import load_galileo, make_data
from pmsr.equation.expression import Equation
from pmsr.evidence.problem import as_problem
from pmsr.search.bench import Bench
from pmsr.search.funnel import Funnel, enumerate_into
from pmsr.search.islands import N_TRAVELLERS, Island, evolve_island, exchange
from pmsr.search.memory import Records
from pmsr.search.sampler import Sampler
from pmsr.settings import QUICK, Search

SHELF = make_data(*load_galileo("shelf"))
SEARCH = Search(
    operators=("+", "*", "sqrt"),
    population_size=16,
    max_complexity=24,
    n_islands=2,
    n_enumerated=100,
    refresh=2,
)
KINDS = ("screened", "smc")
BENCHES = {
    kind: Bench(as_problem(SHELF, QUICK, None), replace(SEARCH, evidence=kind), QUICK, 4)
    for kind in KINDS
}


def ground(bench):
    if not bench.is_screened:
        return Sampler()
    *_, (funnel, _) = enumerate_into(Funnel(bench), bench)
    return funnel.count_anew()


@pytest.fixture(scope="module", params=KINDS)
def two(request):
    """Return a bench and two islands after two generations."""
    bench = BENCHES[request.param]
    judge = ground(bench)
    return bench, [evolve_island(Island(k, judge), bench, (), 2) for k in range(2)]


@pytest.fixture(scope="module", params=KINDS)
def apart(request):
    """Return a bench and two islands that began with other guesses, and with nothing known."""
    bench = BENCHES[request.param]
    guesses = (["c0*sqrt(H) + c1*H", "c0*sqrt(c1 + H)"], ["c0*H*H + c1", "c0*H + sqrt(H)"])
    return bench, [
        evolve_island(
            Island(k, Funnel(bench) if bench.is_screened else Sampler()),
            bench,
            [Equation(text, ["H"]) for text in texts],
            0,
        )
        for k, texts in enumerate(guesses)
    ]


def digest(island):
    """Write everything that decides how an island goes on, to the last bit."""
    judge = island.judge
    if isinstance(judge, Sampler):
        knows = repr(judge.candidates)
    else:
        records = judge.memory.records
        knows = [getattr(records, one.name).tobytes() for one in fields(Records)]
        knows += [(law.key, law.log_q.hex(), law.log_q_se.hex()) for law in judge.leaders.laws]
        knows += [sorted(judge.weighed.items()), judge.n_folded]
    return (
        island.number,
        island.generation,
        [(one.rows.tobytes(), one.literals) for one in island.genomes],
        island.names.tobytes(),
        knows,
        judge.n_sampled,
    )


@pytest.mark.parametrize("kind", KINDS)
def test_an_island_follows_from_problem_seed_number_and_generation(kind):
    bench = BENCHES[kind]
    start = Island(0, ground(bench))
    whole, again = (evolve_island(start, bench, (), 5) for _ in range(2))
    assert digest(whole) == digest(again) and repr(whole.records) == repr(again.records)
    # Cut in other places, from a judge made anew, it is the same.
    island, records = Island(0, ground(bench)), []
    for last in (0, 1, 4, 4, 5):
        island = evolve_island(island, bench, (), last)
        records += island.records
    assert digest(island) == digest(whole) and repr(tuple(records)) == repr(whole.records)
    for other_bench, number in ((replace(bench, seed=5), 0), (bench, 1)):
        other = evolve_island(Island(number, ground(other_bench)), other_bench, (), 5)
        assert digest(other)[2] != digest(whole)[2]


def test_an_island_that_is_given_stays_as_it_is(two):
    bench, (island, _) = two
    before = digest(island)
    later = evolve_island(island, bench, (), 4)
    assert later.generation == 4 and digest(island) == before


def test_an_island_whose_work_is_interrupted_is_as_before(two, monkeypatch):
    bench, (island, _) = two
    before, judge = digest(island), type(island.judge)
    real, calls = judge.judge, []

    def interrupt(self, genomes, bench):
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return real(self, genomes, bench)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(judge, "judge", interrupt)
        evolve_island(island, bench, (), 6)
    assert digest(island) == before


def test_guesses_and_the_best_that_is_known_are_in_the_first_population():
    bench = BENCHES["screened"]
    judge = ground(bench)
    guess = Equation("c0*sqrt(H) + c1*H", ["H"])
    island = evolve_island(Island(0, judge), bench, [guess], 0)
    assert len(island.genomes) == SEARCH.population_size
    assert island.genomes[0].equation(("H",)).key == guess.key
    best = {law.law for law in judge.starters[: SEARCH.population_size // 4]}
    assert best <= set(island.judge.memory.laws(island.names).tolist())


def test_every_generation_leaves_a_record(two):
    _, (island, _) = two
    assert [record["generation"] for record in island.records] == [0, 1, 2]
    for record in island.records:
        assert record["best"] and np.isfinite(record["score_best"])
        assert record["score_best"] >= record["score_median"]
        assert 0 < record["n_distinct"] <= SEARCH.population_size
        assert 0 <= record["n_failed"] <= SEARCH.population_size
    best = [record["score_best"] for record in island.records]
    seen = [record["n_candidates"] for record in island.records]
    assert best == sorted(best) and seen == sorted(seen)


def test_the_best_take_the_places_of_the_worst(apart):
    _, islands = apart
    before = [digest(island) for island in islands]
    after = exchange(islands)
    assert [digest(island) for island in islands] == before
    for here in range(2):
        old, new, source = islands[here], after[here], islands[1 - here]
        changed = np.flatnonzero(old.names != new.names)
        assert 0 < len(changed) <= N_TRAVELLERS
        arrived = new.names[changed]
        scores = source.judge.scores(source.names)
        # The best distinct of there that were not here, best first.
        order = source.names[np.argsort(-scores, kind="stable")].tolist()
        best = list(dict.fromkeys(order))[:N_TRAVELLERS]
        assert set(arrived.tolist()) == set(best) - set(old.names.tolist())
        own = old.judge.scores(old.names)
        stayed = np.setdiff1d(np.arange(len(own)), changed)
        assert own[changed].max() <= own[stayed].min()
        # Graphs come along with their names.
        assert new.judge.describe(arrived) == source.judge.describe(arrived)
        for place in changed.tolist():
            there = np.flatnonzero(source.names == new.names[place]).tolist()
            assert any(new.genomes[place] is source.genomes[k] for k in there)


def test_what_arrivals_are_worth_is_known(apart):
    bench, islands = apart
    after = exchange(islands)
    for here in range(2):
        new, source = after[here], islands[1 - here]
        arrived = new.names[islands[here].names != new.names]
        assert new.judge.scores(arrived).tolist() == source.judge.scores(arrived).tolist()
        # Nobody judges them again.
        counts = new.judge.n_screened, new.judge.n_sampled
        judge = new.judge.copy()
        judge.judge([new.genomes[k] for k in np.flatnonzero(np.isin(new.names, arrived))], bench)
        assert (judge.n_screened, judge.n_sampled) == counts


def test_an_island_alone_exchanges_nothing(two):
    _, islands = two
    assert exchange(islands[:1]) == (islands[0],)
