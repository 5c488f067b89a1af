import errno
import io
import os
import re
import subprocess
import sys
import zipfile

import numpy as np
import pytest

from pmsr.files import (
    BROKEN,
    MAX_COUNT,
    MAX_REASON,
    as_count,
    as_history,
    as_list,
    as_number,
    as_seed,
    as_text,
    naming,
    read_arrays,
    reason,
    remove_parts,
    write_file,
    writing,
)


def test_a_file_is_written_whole_or_not_at_all(tmp_path):
    path = tmp_path / "a.txt"
    write_file(path, b"old")
    for stop in (KeyboardInterrupt, ValueError):
        with pytest.raises(stop), writing(path) as part:
            part.write_bytes(b"half of the")
            raise stop
        assert path.read_bytes() == b"old" and list(tmp_path.iterdir()) == [path]
    write_file(path, b"new")
    assert path.read_bytes() == b"new" and list(tmp_path.iterdir()) == [path]


def test_two_processes_do_not_write_the_same_part(tmp_path):
    with writing(tmp_path / "a.txt") as part:
        part.touch()
        assert part.name == f"a.txt.{os.getpid()}.part"


def test_a_link_in_place_of_the_part_is_not_followed(tmp_path):
    victim = tmp_path / "victim"
    victim.write_text("mine")
    (tmp_path / f"a.txt.{os.getpid()}.part").symlink_to(victim)
    write_file(tmp_path / "a.txt", b"new")
    assert victim.read_text() == "mine"


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), "No space left on device. Make room"),
        (OSError(errno.EDQUOT, "Disk quota exceeded"), "Disk quota exceeded. Make room"),
        (OSError(errno.EACCES, "Permission denied"), "Permission denied. Allow it"),
        (OSError(errno.EIO, "Input/output error"), "Input/output error. Choose another place"),
        (OSError("a library\nsays so"), "a library says so. Choose another place"),
        (OSError(), "OSError. Choose another place"),
    ],
)
def test_an_error_of_the_system_names_the_file_and_says_what_to_do(tmp_path, error, words):
    path = tmp_path / "a.txt"
    with pytest.raises(OSError, match="cannot be written") as caught, naming(path):
        raise error
    assert caught.value.filename == str(path) and words in caught.value.strerror
    assert caught.value.errno == (error.errno or errno.EIO)


def test_a_full_disk_leaves_the_old_file_and_no_part(tmp_path, full_disk):
    path = tmp_path / "a.txt"
    write_file(path, b"old")
    with full_disk("a.txt"), pytest.raises(OSError, match="No space left") as caught:
        write_file(path, b"new")
    assert caught.value.filename == str(path)
    assert path.read_bytes() == b"old" and list(tmp_path.iterdir()) == [path]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no limits")
def test_a_write_that_fails_half_way_leaves_no_part(tmp_path):
    code = """
import pathlib, resource, sys
from pmsr.files import write_file
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
try:
    write_file(pathlib.Path(sys.argv[1]), bytes(5000))
except OSError as error:
    print(error.filename, error.strerror)
"""
    path = tmp_path / "a.bin"
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith(f"{path} cannot be written: File too large.")
    assert list(tmp_path.iterdir()) == []


def test_only_parts_of_the_files_that_are_named_are_removed(tmp_path):
    kept = ["a.txt", "b.txt.12.part", "a.txt.part.txt", "xa.txt.12.part", "a.txt.1x.part"]
    for name in (*kept, "a.txt.part", "a.txt.12.part"):
        (tmp_path / name).touch()
    (tmp_path / "a.txt.13.part").mkdir()
    remove_parts(tmp_path, re.compile(r"a\.txt"))
    left = {file.name for file in tmp_path.iterdir()}
    assert left == {*kept, "a.txt.13.part"}  # a folder is not what we write


def as_npz(compressed=False, **arrays):
    buffer = io.BytesIO()
    (np.savez_compressed if compressed else np.savez)(buffer, **arrays)
    return buffer.getvalue()


def test_arrays_are_read_to_the_last_bit():
    arrays = {"a": np.array([[0.1, np.nan], [-0.0, np.inf]]), "b": np.arange(3), "c": np.float64(2)}
    found = read_arrays(as_npz(**arrays), 1.0)
    assert found.keys() == arrays.keys()
    for name, values in arrays.items():
        assert found[name].dtype == values.dtype and found[name].shape == values.shape
        assert found[name].tobytes() == values.tobytes() and found[name].flags.writeable


@pytest.mark.parametrize(
    "values",
    [
        np.array(["text"]),
        np.array([1j]),
        np.array([True]),
        np.array(["2020"], dtype="M8[s]"),
        np.asfortranarray(np.ones((2, 3))),
        np.array([object()], dtype=object),
        np.zeros(2, dtype=[("a", "f8")]),
    ],
)
def test_what_is_no_plain_array_of_numbers_is_refused(values):
    with pytest.raises(ValueError, match="expected numbers"):
        read_arrays(as_npz(a=values), 10.0)


def test_what_unfolds_to_more_than_allowed_is_refused_before_it_is_read():
    contents = as_npz(compressed=True, a=np.zeros(1_000_000))
    with pytest.raises(ValueError, match="unfolds to more"):
        read_arrays(contents, 200.0)


def test_an_array_that_is_there_twice_is_refused():
    buffer = io.BytesIO(as_npz(a=np.ones(1)))
    with zipfile.ZipFile(buffer) as file:
        member = file.read("a.npy")
    with zipfile.ZipFile(buffer, "a") as file, pytest.warns(UserWarning, match="Duplicate"):
        file.writestr("a.npy", member)
    with pytest.raises(ValueError, match="it holds 'a' twice"):
        read_arrays(buffer.getvalue(), 10.0)


def test_every_truncation_is_one_of_the_errors_that_readers_expect():
    contents = as_npz(a=np.arange(5.0))
    for length in range(len(contents)):
        with pytest.raises(BROKEN):
            read_arrays(contents[:length], 1.0)


def test_a_reason_is_one_short_line():
    assert reason(ValueError("two\nlines")) == "two lines"
    assert reason(KeyError("gamma")) == "'gamma' is missing"
    assert reason(MemoryError()) == "MemoryError"
    assert len(reason(ValueError("x" * 10_000))) == MAX_REASON


NOTHING = [None, True, "1", [], {}, [1]]


@pytest.mark.parametrize(
    ("read", "right", "wrong"),
    [
        (as_text, ["", "a"], [None, 1, ["a"]]),
        (as_count, [0, MAX_COUNT - 1], [*NOTHING, -1, 1.0, float("nan"), MAX_COUNT, 10**400]),
        (as_seed, [0, 2**200], [*NOTHING, -1, 1.0]),
        (as_number, [-1, 0.5, float("inf")], NOTHING),
        (as_list, [[], [1]], [None, "ab", {}, 1]),
    ],
)
def test_values_of_json_have_the_kind_that_is_expected(read, right, wrong):
    for value in right:
        assert read(value) == value
    for value in wrong:
        with pytest.raises(ValueError, match="expected"):
            read(value)


def test_a_number_beyond_all_floats_is_one_of_the_errors_that_readers_expect():
    with pytest.raises(BROKEN):
        as_number(10**400)


def test_a_history_has_records_of_numbers():
    records = [{"generation": 0, "best": "c0", "elapsed": 0.5}]
    assert as_history(records) == records
    for wrong in ([{"best": "c0"}], [{"generation": 0, "best": 1}], [{"generation": 0, "n": "1"}]):
        with pytest.raises(BROKEN):
            as_history(wrong)
