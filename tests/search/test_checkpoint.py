import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pmsr.data import load_galileo, make_data
from pmsr.equation.operators import OPERATORS, PARAMETER, POWER, VARIABLE, operator_code
from pmsr.search.archive import Candidate
from pmsr.search.checkpoint import State, load_state, read_progress, save_state
from pmsr.search.genome import Primitives, random_genome
from pmsr.settings import Search, Settings

DATA = make_data(*load_galileo("shelf"))
SEARCH, SETTINGS = Search(population_size=4), Settings()


def candidate(key, failure=None):
    return vars(Candidate(key, -np.inf, -np.inf, 0.0, np.inf, 1, 3, failure))


def state():
    rng = np.random.default_rng(1)
    primitives = Primitives(SEARCH.operators, DATA.names)
    return State(
        generation=7,
        last_improvement=3,
        elapsed=1.5,
        rng_state=rng.bit_generator.state,
        genomes=[random_genome(primitives, rng=rng) for _ in range(4)],
        keys=["c0", "c0", "`H`", "c0*`H`"],
        candidates=[candidate("c0"), candidate("`H`"), candidate("c0*`H`", "never finite")],
        history=[{"generation": 0, "best": "c0"}],
    )


def test_a_state_survives_the_disk(tmp_path):
    before = state()
    save_state(tmp_path / "run.npz", before, DATA, SEARCH, SETTINGS, 5)
    after = load_state(tmp_path / "run.npz", DATA, SEARCH, SETTINGS, 5)
    for old, new in zip(before.genomes, after.genomes, strict=True):
        np.testing.assert_array_equal(old.rows, new.rows)
    assert after.rng_state == before.rng_state
    assert after.candidates == before.candidates
    assert (after.generation, after.keys, after.history) == (7, before.keys, before.history)
    assert [path.name for path in tmp_path.iterdir()] == ["run.npz"]


def test_a_checkpoint_of_the_first_version_is_read():
    path = Path(__file__).parents[1] / "data" / "checkpoint-0.1.0.npz"
    old = load_state(path, DATA, SEARCH, replace(SETTINGS, parameter_prior="flat"), 5)
    assert (old.generation, old.keys) == (7, state().keys)
    with pytest.raises(ValueError, match="belongs to other data, options or seed"):
        load_state(path, DATA, SEARCH, replace(SETTINGS, parameter_prior="invariant"), 5)


def test_budgets_may_change_but_data_options_and_seed_may_not(tmp_path):
    path = tmp_path / "run.npz"
    save_state(path, state(), DATA, SEARCH, SETTINGS, 5)
    load_state(path, DATA, replace(SEARCH, generations=5, max_time=3.0), SETTINGS, 5)
    other = make_data(*load_galileo("no_shelf"))
    for arguments in (
        (other, SEARCH, SETTINGS, 5),
        (DATA, replace(SEARCH, operators=("+",)), SETTINGS, 5),
        (DATA, SEARCH, Settings(gamma=0.3), 5),
        (DATA, SEARCH, SETTINGS, 6),
    ):
        with pytest.raises(ValueError, match="belongs to other data, options or seed"):
            load_state(path, *arguments)


def test_foreign_and_broken_files_are_refused(tmp_path):
    path = tmp_path / "run.npz"
    for content in (b"", b"hello", b"PK\x03\x04 not really a zip"):
        path.write_bytes(content)
        with pytest.raises(ValueError, match="is not a checkpoint of pmsr, or is damaged"):
            load_state(path, DATA, SEARCH, SETTINGS, 5)
    np.savez(path, header=np.array([object()], dtype=object), rows=np.zeros(1))
    with pytest.raises(ValueError, match="is not a checkpoint"):
        load_state(path, DATA, SEARCH, SETTINGS, 5)
    text = np.frombuffer(json.dumps({"format": 99}).encode(), dtype=np.uint8)
    np.savez(path, header=text, rows=np.zeros(1))
    with pytest.raises(ValueError, match="checkpoint format 99, this version of pmsr reads 1"):
        load_state(path, DATA, SEARCH, SETTINGS, 5)


def test_a_truncated_file_is_refused(tmp_path):
    path = tmp_path / "run.npz"
    save_state(path, state(), DATA, SEARCH, SETTINGS, 5)
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(ValueError, match="damaged"):
        load_state(path, DATA, SEARCH, SETTINGS, 5)


def test_the_progress_can_be_read_without_the_data(tmp_path):
    save_state(tmp_path / "run.npz", state(), DATA, SEARCH, SETTINGS, 5)
    assert read_progress(tmp_path / "run.npz") == (7, 1.5)


def rewrite(path, change, rows=None):
    with np.load(path) as file:
        header, old = json.loads(file["header"].tobytes()), file["rows"]
    change(header)
    text = np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)
    np.savez_compressed(path, header=text, rows=old if rows is None else rows)


JUNK = [None, -1, 1.5, "x", [], {}, [[]], {"a": 1}, True, 10**400, ["__import__('os')"]]


@pytest.mark.parametrize(
    "name",
    ["generation", "last_improvement", "elapsed", "rng_state", "keys", "literals", "candidates"],
)
def test_a_header_that_was_tampered_with_is_refused(tmp_path, name):
    path = tmp_path / "run.npz"
    save_state(path, state(), DATA, SEARCH, SETTINGS, 5)
    original = path.read_bytes()
    for value in JUNK:
        if name == "elapsed" and value == 1.5:
            continue
        path.write_bytes(original)
        rewrite(path, lambda header, value=value: header.update({name: value}))
        with pytest.raises(ValueError, match="is not a checkpoint of pmsr, or is damaged"):
            load_state(path, DATA, SEARCH, SETTINGS, 5)
    path.write_bytes(original)
    rewrite(path, lambda header: header.pop(name))
    with pytest.raises(ValueError, match="damaged"):
        load_state(path, DATA, SEARCH, SETTINGS, 5)


def test_an_improvement_that_is_yet_to_come_is_refused(tmp_path):
    path = tmp_path / "run.npz"
    save_state(path, state(), DATA, SEARCH, SETTINGS, 5)
    rewrite(path, lambda header: header.update(last_improvement=8))
    with pytest.raises(ValueError, match="its last improvement is yet to come"):
        load_state(path, DATA, SEARCH, SETTINGS, 5)


def test_what_a_killed_search_left_of_a_checkpoint_is_removed(tmp_path):
    path = tmp_path / "run.npz"
    save_state(path, state(), DATA, SEARCH, SETTINGS, 5)
    others = ["other.npz.77.part", "run.npz.old"]
    for name in ("run.npz.77.part", "run.npz.part", *others):
        (tmp_path / name).write_bytes(b"PK")
    load_state(path, DATA, SEARCH, SETTINGS, 5)
    assert {file.name for file in tmp_path.iterdir()} == {"run.npz", *others}


def test_a_full_disk_leaves_the_checkpoint_before(tmp_path, full_disk):
    path = tmp_path / "run.npz"
    save_state(path, state(), DATA, SEARCH, SETTINGS, 5)
    before = path.read_bytes()
    with full_disk("run.npz"), pytest.raises(OSError, match="No space left on device") as caught:
        save_state(path, replace(state(), generation=9), DATA, SEARCH, SETTINGS, 5)
    assert caught.value.filename == str(path) and path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("row", [(4, 64, 0), (4, -1, 0), (99, 0, 0), (0, 7, 0), (2, 0, 0)])
def test_a_graph_that_points_outside_is_refused(tmp_path, row):
    path = tmp_path / "run.npz"
    before = state()
    save_state(path, before, DATA, SEARCH, SETTINGS, 5)
    rows = np.stack([genome.rows for genome in before.genomes])
    rows[2, 63] = row
    rewrite(path, lambda header: None, rows)
    with pytest.raises(ValueError, match="row 63 of a graph refers to"):
        load_state(path, DATA, SEARCH, SETTINGS, 5)


def test_entries_that_a_row_does_not_use_may_hold_anything(tmp_path):
    path = tmp_path / "run.npz"
    before = state()
    save_state(path, before, DATA, SEARCH, SETTINGS, 5)
    unused = [(PARAMETER, 99, -1), (VARIABLE, 0, 99), (POWER, 0, 99)]
    unused += [
        (operator_code(name), 0, 99) for name, operator in OPERATORS.items() if operator.arity == 1
    ]
    rows = np.stack([genome.rows for genome in before.genomes])
    rows[2, -len(unused) :] = unused
    rewrite(path, lambda header: None, rows)
    loaded = load_state(path, DATA, SEARCH, SETTINGS, 5)
    np.testing.assert_array_equal(loaded.genomes[2].rows, rows[2])


def test_what_ended_a_search_survives_the_disk(tmp_path):
    path = tmp_path / "run.npz"
    save_state(path, state(), DATA, SEARCH, SETTINGS, 5)
    assert load_state(path, DATA, SEARCH, SETTINGS, 5).ended is None
    budget = {"generations": 7.0, "max_time": None}
    ended = replace(state(), ended="generations", budget=budget)
    save_state(path, ended, DATA, SEARCH, SETTINGS, 5)
    after = load_state(path, DATA, SEARCH, SETTINGS, 5)
    assert (after.ended, after.budget) == ("generations", budget)
    rewrite(path, lambda header: header.update({"budget": 3}))
    with pytest.raises(ValueError, match="damaged"):
        load_state(path, DATA, SEARCH, SETTINGS, 5)


def test_a_file_that_unfolds_to_a_thousand_times_its_size_is_refused(tmp_path):
    path = tmp_path / "run.npz"
    np.savez_compressed(path, header=np.zeros(10**7, dtype=np.uint8), rows=np.zeros(1))
    with pytest.raises(ValueError, match="unfolds to more"):
        read_progress(path)


def test_a_link_in_place_of_the_new_file_is_not_followed(tmp_path):
    victim = tmp_path / "victim"
    victim.write_text("mine")
    (tmp_path / "run.npz.part").symlink_to(victim)
    save_state(tmp_path / "run.npz", state(), DATA, SEARCH, SETTINGS, 5)
    assert victim.read_text() == "mine"
