import json
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest

from pmsr.data import load_galileo, make_data
from pmsr.equation.operators import (
    OPERATORS,
    PARAMETER,
    POWER,
    VARIABLE,
    add_operator,
    operator_code,
)
from pmsr.equation.program import Program
from pmsr.evidence.problem import Problem, as_problem
from pmsr.search.bench import Bench
from pmsr.search.checkpoint import State, fingerprint, load_state, read_progress, save_state
from pmsr.search.funnel import Funnel, Unit, enumerate_into
from pmsr.search.islands import Island, evolve_island, exchange
from pmsr.search.sampler import Sampler
from pmsr.settings import QUICK, Search, Settings

DATA = make_data(*load_galileo("shelf"))
SMALL = Search(
    operators=("+", "*", "sqrt"),
    population_size=16,
    generations=6,
    n_finalists=4,
    n_islands=2,
    n_enumerated=100,
    max_complexity=24,
    refresh=2,
)
KINDS = ("screened", "smc")
DAMAGED = "is not a checkpoint of pmsr, or is damaged"


def make_bench(evidence="screened", data=DATA, settings=QUICK, seed=5, **options):
    search = replace(SMALL, evidence=evidence, **options)
    return Bench(as_problem(data, settings, None), search, settings, seed)


def make_state(bench, generation=2):
    """Return a state such as a search has after an exchange."""
    judge = Funnel(bench) if bench.is_screened else Sampler()
    if bench.is_screened:
        *_, (judge, _) = enumerate_into(judge, bench)
    ground = Island(0, judge)
    islands = tuple(Island(k, judge.count_anew()) for k in range(2))
    if generation >= 0:
        islands = exchange([evolve_island(one, bench, (), generation) for one in islands])
    return State(
        n_units=9,
        levels=(Unit("laws", 5, 86), Unit("shapes", 8, 242)),
        is_enumerated=True,
        ground=ground,
        tally={"n_folded": 100, "n_screened": 86},
        islands=islands if generation >= 0 else (),
        last_improvement=max(0, generation - 1),
        elapsed=1.5,
        history=[{"generation": 0, "best": "c0", "score_best": -np.inf}],
    )


BENCHES = {kind: make_bench(kind) for kind in KINDS}


@pytest.fixture(scope="module")
def states():
    return {kind: make_state(bench) for kind, bench in BENCHES.items()}


@pytest.fixture(scope="module")
def saved(states, tmp_path_factory):
    """Return the bytes of a checkpoint of each kind."""
    folder = tmp_path_factory.mktemp("saved")
    for kind, state in states.items():
        save_state(folder / kind, state, BENCHES[kind])
    return {kind: (folder / kind).read_bytes() for kind in KINDS}


def digest(state):
    """Write everything in a state, to the last bit."""
    return [
        (
            island.generation,
            [(one.rows.tobytes(), one.literals, one.shared) for one in island.genomes],
            island.names.tobytes(),
            judged(island.judge),
        )
        for island in state.islands or (state.ground,)
    ]


def judged(judge):
    counts = judge.n_folded, judge.n_sampled, judge.n_failed, judge.n_screened
    if isinstance(judge, Sampler):
        return counts, [exactly(one) for one in judge.candidates.values()]
    records, laws = judge.memory.records, judge.leaders.laws
    return (
        counts,
        {law: float(log_q).hex() for law, log_q in judge.weighed.items()},
        judge.memory.n_forgotten,
        judge.expanded,
        judge.reference is not None
        and [exactly(judge.reference), exactly(judge.reference.program)],
        exactly(records),
        [exactly(law) for law in laws],
        [exactly(law.program) for law in laws],
    )


def exactly(record):
    """Write the numbers of a record to the last bit; NaN is as good as NaN."""
    values = (getattr(record, one.name) for one in fields(record))
    return [
        float(one).hex()
        if isinstance(one, float)
        else (one.dtype, one.tobytes())
        if isinstance(one, np.ndarray)
        else one
        for one in values
        if not isinstance(one, Program)
    ]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("generation", [-1, 2])
def test_a_state_survives_the_disk_to_the_last_bit(tmp_path, kind, generation):
    bench, path = BENCHES[kind], tmp_path / "run.npz"
    before = make_state(bench, generation)
    save_state(path, before, bench)
    after = load_state(path, bench)
    assert digest(after) == digest(before)
    assert len(after.islands) == len(before.islands)
    for name in ("n_units", "levels", "is_enumerated", "tally", "last_improvement"):
        assert getattr(after, name) == getattr(before, name)
    assert (after.elapsed, after.history) == (before.elapsed, before.history)
    assert [path.name for path in tmp_path.iterdir()] == ["run.npz"]


@pytest.mark.parametrize("kind", KINDS)
def test_an_island_from_the_disk_goes_on_like_the_one_that_was_written(tmp_path, kind, states):
    bench, path = BENCHES[kind], tmp_path / "run.npz"
    save_state(path, states[kind], bench)
    after = load_state(path, bench)
    both = [
        replace(one, islands=tuple(evolve_island(k, bench, (), 4) for k in one.islands))
        for one in (states[kind], after)
    ]
    assert digest(both[0]) == digest(both[1])


def test_a_checkpoint_of_the_first_version_is_refused():
    path = Path(__file__).parents[1] / "data" / "checkpoint-0.1.0.npz"
    with pytest.raises(ValueError, match="has checkpoint format 1, this version of pmsr reads 2"):
        load_state(path, BENCHES["screened"])
    with pytest.raises(ValueError, match="Finish that search with the version that began it"):
        read_progress(path)


def test_budgets_may_change_but_data_options_and_seed_may_not(tmp_path, saved):
    path = tmp_path / "run.npz"
    path.write_bytes(saved["screened"])
    load_state(path, make_bench(generations=5, max_time=3.0, n_finalists=7))
    for other in (
        make_bench(data=make_data(*load_galileo("no_shelf"))),
        make_bench(operators=("+",)),
        make_bench(settings=Settings(gamma=0.3)),
        make_bench(seed=6),
        make_bench("smc"),
        make_bench(n_islands=3),
        make_bench(n_enumerated=0),
        make_bench(refresh=None),
        make_bench(law_prior="uniform"),
    ):
        with pytest.raises(ValueError, match="belongs to other data, options or seed"):
            load_state(path, other)


def test_foreign_and_broken_files_are_refused(tmp_path):
    path, bench = tmp_path / "run.npz", BENCHES["screened"]
    for content in (b"", b"hello", b"PK\x03\x04 not really a zip"):
        path.write_bytes(content)
        with pytest.raises(ValueError, match=DAMAGED):
            load_state(path, bench)
    np.savez(path, header=np.array([object()], dtype=object), rows=np.zeros(1))
    with pytest.raises(ValueError, match="is not a checkpoint"):
        load_state(path, bench)
    text = np.frombuffer(json.dumps({"format": 99}).encode(), dtype=np.uint8)
    np.savez(path, header=text, rows=np.zeros(1))
    with pytest.raises(ValueError, match="checkpoint format 99, this version of pmsr reads 2"):
        load_state(path, bench)


@pytest.mark.parametrize("kind", KINDS)
def test_a_truncated_file_is_refused(tmp_path, saved, kind):
    path = tmp_path / "run.npz"
    for missing in (1, 200, len(saved[kind]) // 2):
        path.write_bytes(saved[kind][:-missing])
        with pytest.raises(ValueError, match="damaged"):
            load_state(path, BENCHES[kind])


@pytest.mark.parametrize("kind", KINDS)
def test_the_progress_can_be_read_without_the_data(tmp_path, saved, kind):
    (tmp_path / "run.npz").write_bytes(saved[kind])
    assert read_progress(tmp_path / "run.npz") == (2, 1.5)


def rewrite(path, change):
    """Change the header and the arrays of a checkpoint."""
    with np.load(path) as file:
        arrays = dict(file)
    header = json.loads(arrays.pop("header").tobytes())
    change(header, arrays)
    text = np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)
    np.savez(path, header=text, **arrays)


def is_refused(path, contents, bench, change, match=DAMAGED):
    path.write_bytes(contents)
    rewrite(path, change)
    with pytest.raises(ValueError, match=match):
        load_state(path, bench)
    return True


JUNK = [None, -1, 1.5, "x", [], {}, [[]], {"a": 1}, True, 10**400, ["__import__('os')"]]
# What is junk in one place is a value in another.
MEANT = {
    "elapsed": [1.5],
    "is_enumerated": [True],
    "levels": [[]],
    "tally": [{}, {"a": 1}],
    "history": [[]],
    "ended": [None, "x"],
    "budget": [{}, {"a": 1}],
}
FIELDS = (
    "generation",
    "n_units",
    "levels",
    "is_enumerated",
    "last_improvement",
    "elapsed",
    "tally",
    "islands",
    "history",
    "ended",
    "budget",
)


def places(record, before=()):
    """Return the ways to all records within a header."""
    for name, value in record.items():
        yield (*before, name)
        if isinstance(value, dict):
            yield from places(value, (*before, name))


@pytest.mark.parametrize("kind", KINDS)
def test_the_header_holds_what_is_tampered_with_here(tmp_path, saved, kind):
    path = tmp_path / "run.npz"
    path.write_bytes(saved[kind])
    with np.load(path) as file:
        header = json.loads(file["header"].tobytes())
    assert set(header) == {"format", "fingerprint", *FIELDS}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", FIELDS)
def test_a_header_that_was_tampered_with_is_refused(tmp_path, saved, kind, name):
    path, bench = tmp_path / "run.npz", BENCHES[kind]
    for value in JUNK:
        if not any(value is one or value == one for one in MEANT.get(name, ())) or (
            name == "elapsed" and value is True
        ):
            change = {name: value}
            assert is_refused(path, saved[kind], bench, lambda h, _, new=change: h.update(new))
    assert is_refused(path, saved[kind], bench, lambda header, _: header.pop(name))


@pytest.mark.parametrize("kind", KINDS)
def test_an_island_that_was_tampered_with_is_refused(tmp_path, saved, kind):
    path, bench = tmp_path / "run.npz", BENCHES[kind]
    path.write_bytes(saved[kind])
    with np.load(path) as file:
        header = json.loads(file["header"].tobytes())
    # A count may be another, and to have weighed nothing is as good as any.
    meant = {"weighed": [[]], "expanded": [[]], "reference": [None]}
    for way in places(header["islands"][1]):
        for value in JUNK:
            if any(value == one for one in meant.get(way[-1], ())):
                continue

            def change(header, _, way=way, value=value):
                record = header["islands"][1]
                for name in way[:-1]:
                    record = record[name]
                record[way[-1]] = value

            assert is_refused(path, saved[kind], bench, change), (way, value)


@pytest.mark.parametrize("kind", KINDS)
def test_arrays_of_another_shape_or_type_are_refused(tmp_path, saved, kind):
    path, bench = tmp_path / "run.npz", BENCHES[kind]
    path.write_bytes(saved[kind])
    with np.load(path) as file:
        names = [name for name in file.files if name != "header"]
    assert {"0.rows", "1.rows", "0.names", "1.names"} <= set(names)
    for name in names:
        for change in (
            lambda array: array[:-1],
            lambda array: array[None],
            lambda array: np.zeros_like(array, np.int8),
            lambda array: np.zeros(0),
        ):

            def put(_, arrays, name=name, change=change):
                arrays[name] = change(arrays[name])

            assert is_refused(path, saved[kind], bench, put), name
        assert is_refused(path, saved[kind], bench, lambda _, arrays, name=name: arrays.pop(name))


def edit(name, place, value):
    """Return a change of one number in an array."""

    def change(_, arrays):
        arrays[name] = arrays[name].copy()
        arrays[name][place] = value

    return change


@pytest.mark.parametrize(
    ("name", "value", "match"),
    [
        ("0.memory.key", 0, "its memory is not in order"),
        ("0.memory.log_q", np.inf, "infinite score"),
        ("0.memory.log_p", np.inf, "infinite score"),
        ("0.memory.log_q", np.nan, "or none"),
        ("0.memory.log_p", np.nan, "or none"),
        ("0.leaders.log_q", np.inf, "infinite score"),
        ("0.leaders.log_p", -np.inf, "infinite score"),
        ("0.leaders.log_q", np.nan, "or none"),
        ("0.leaders.log_p", np.nan, "or none"),
    ],
)
def test_scores_that_no_law_can_have_are_refused(tmp_path, saved, name, value, match):
    path, bench = tmp_path / "run.npz", BENCHES["screened"]
    assert is_refused(path, saved["screened"], bench, edit(name, -1, value), match)


def test_a_population_that_nobody_has_judged_is_refused(tmp_path, saved):
    # Where laws are screened, a graph without a record is one that was refused.
    path, bench = tmp_path / "run.npz", BENCHES["smc"]
    assert is_refused(path, saved["smc"], bench, edit("1.names", 3, 12345))


def test_an_improvement_that_is_yet_to_come_is_refused(tmp_path, saved):
    def change(header, _):
        header["last_improvement"] = 8

    match = "its last improvement is yet to come"
    path = tmp_path / "run.npz"
    assert is_refused(path, saved["screened"], BENCHES["screened"], change, match)


def test_islands_at_different_generations_are_refused(tmp_path, saved):
    def change(header, _):
        header["islands"][1]["generation"] = 1

    match = "its islands are not at the same generation"
    path = tmp_path / "run.npz"
    assert is_refused(path, saved["screened"], BENCHES["screened"], change, match)


def test_what_a_killed_search_left_of_a_checkpoint_is_removed(tmp_path, saved):
    path = tmp_path / "run.npz"
    path.write_bytes(saved["screened"])
    others = ["other.npz.77.part", "run.npz.old"]
    for name in ("run.npz.77.part", "run.npz.part", *others):
        (tmp_path / name).write_bytes(b"PK")
    load_state(path, BENCHES["screened"])
    assert {file.name for file in tmp_path.iterdir()} == {"run.npz", *others}


def test_a_full_disk_leaves_the_checkpoint_before(tmp_path, full_disk, states):
    path, state, bench = tmp_path / "run.npz", states["screened"], BENCHES["screened"]
    save_state(path, state, bench)
    before = path.read_bytes()
    with full_disk("run.npz"), pytest.raises(OSError, match="No space left on device") as caught:
        save_state(path, replace(state, elapsed=9.0), bench)
    assert caught.value.filename == str(path) and path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("row", [(4, 64, 0), (4, -1, 0), (99, 0, 0), (0, 7, 0), (2, 0, 0)])
def test_a_graph_that_points_outside_is_refused(tmp_path, saved, row):
    last = SMALL.max_complexity - 1
    for kind in KINDS:
        change = edit("1.rows", (2, last), row)
        match = f"row {last} of a graph refers to"
        assert is_refused(tmp_path / "run.npz", saved[kind], BENCHES[kind], change, match)


def test_a_leader_that_points_outside_is_refused(tmp_path, saved):
    def change(header, _):
        header["islands"][0]["judge"]["programs"][0][0][-1] = [4, 64, 0]

    match = "of a graph refers to"
    path = tmp_path / "run.npz"
    assert is_refused(path, saved["screened"], BENCHES["screened"], change, match)


def test_entries_that_a_row_does_not_use_may_hold_anything(tmp_path, saved):
    path, bench = tmp_path / "run.npz", BENCHES["screened"]
    unused = [(PARAMETER, 99, -1), (VARIABLE, 0, 99), (POWER, 0, 99)]
    unused += [
        (operator_code(name), 0, 99) for name, operator in OPERATORS.items() if operator.arity == 1
    ]
    path.write_bytes(saved["screened"])
    rewrite(path, edit("1.rows", (2, slice(-len(unused), None)), unused))
    loaded = load_state(path, bench)
    assert loaded.islands[1].genomes[2].rows[-len(unused) :].tolist() == [list(r) for r in unused]


def test_what_ended_a_search_survives_the_disk(tmp_path, states):
    path, bench = tmp_path / "run.npz", BENCHES["screened"]
    save_state(path, states["screened"], bench)
    assert load_state(path, bench).ended is None
    budget = {"generations": 7.0, "max_time": None}
    save_state(path, replace(states["screened"], ended="generations", budget=budget), bench)
    after = load_state(path, bench)
    assert (after.ended, after.budget) == ("generations", budget)


def test_a_file_that_unfolds_to_a_thousand_times_its_size_is_refused(tmp_path):
    path = tmp_path / "run.npz"
    np.savez_compressed(path, header=np.zeros(10**7, dtype=np.uint8), rows=np.zeros(1))
    with pytest.raises(ValueError, match="unfolds to more"):
        read_progress(path)


def test_a_link_in_place_of_the_new_file_is_not_followed(tmp_path, states):
    victim = tmp_path / "victim"
    victim.write_text("mine")
    (tmp_path / "run.npz.part").symlink_to(victim)
    save_state(tmp_path / "run.npz", states["smc"], BENCHES["smc"])
    assert victim.read_text() == "mine"


def test_a_checkpoint_knows_the_order_and_the_form_of_operators_that_users_added():
    def made(*forms):
        for name, form in forms:
            add_operator(name, form)
        try:
            search = Search(operators=("+", "mine"))
            data = make_data([1.0, 2.0, 3.0], [1.0, 2.5, 2.0])
            return fingerprint(Bench(Problem.of(data, Settings()), search, Settings(), 0))
        finally:
            for name, _ in forms:
                del OPERATORS[name]

    mine = ("mine", lambda x: 1 / (1 + x**2))
    unused = ("unused", lambda x: x**3)
    first = made(mine)
    assert made(mine) == first and made(mine, unused) == first
    assert made(unused, mine) != first
    assert made(("mine", lambda x: 1 / (2 + x**2))) != first
