import json
from dataclasses import replace

import numpy as np
import pytest

from pmsr.checkpoint import State, load_state, save_state
from pmsr.data import load_galileo, make_data
from pmsr.genome import Primitives, random_genome
from pmsr.settings import Search, Settings

DATA = make_data(*load_galileo("shelf"))
SEARCH, SETTINGS = Search(population_size=4), Settings()


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
        candidates=[{"key": "c0", "score": -np.inf}],
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
