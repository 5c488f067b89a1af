import io
import json
import pickle
import zipfile
from pathlib import Path

import numpy as np
import pytest

import pmsr.result.storage
from pmsr.result.storage import HEADER, read_folder, write_folder

ARRAYS = {"X": np.arange(6.0).reshape(3, 2), "0.theta": np.array([1 / 3, np.nan, -np.inf])}


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / "deep" / "saved"
    write_folder(path, {"a": [1 / 3, float("-inf")], "σ": "ü"}, ARRAYS)
    return path


def rewrite(folder, **changes):
    header = json.loads((folder / HEADER).read_text())
    (folder / HEADER).write_text(json.dumps({**header, **changes}))


def replace_arrays(folder, contents):
    name = f"arrays-{pmsr.result.storage._digest(contents)}.npz"
    (folder / name).write_bytes(contents)
    rewrite(folder, arrays=name)


def test_what_was_written_is_read(folder):
    header, arrays = read_folder(folder)
    assert header["a"] == [1 / 3, float("-inf")] and header["σ"] == "ü"
    assert arrays.keys() == ARRAYS.keys()
    for name, values in ARRAYS.items():
        assert arrays[name].tobytes() == values.tobytes()


def test_saving_again_replaces_and_leaves_other_files(folder):
    (folder / "notes.txt").write_text("mine")
    write_folder(folder, {"a": 2}, {"X": np.ones(3)})
    assert read_folder(folder)[0]["a"] == 2
    assert len(list(folder.glob("arrays-*.npz"))) == 1
    assert (folder / "notes.txt").read_text() == "mine"


def test_a_crash_leaves_what_was_there(folder, monkeypatch):
    def crash(path, contents):
        if path.name == HEADER:
            raise OSError("no space left on device")
        original(path, contents)

    original = pmsr.result.storage.write_file
    monkeypatch.setattr(pmsr.result.storage, "write_file", crash)
    with pytest.raises(OSError, match="no space left"):
        write_folder(folder, {"a": 2}, {"X": np.ones(3)})
    assert read_folder(folder)[0]["a"] == [1 / 3, float("-inf")]


def test_what_a_killed_process_left_is_in_nobodys_way(tmp_path):
    name = f"arrays-{'0' * 32}.npz"
    for left in (name, f"{name}.77.part", f"{HEADER}.77.part", f"{HEADER}.part"):
        (tmp_path / left).write_bytes(b"PK")
    write_folder(tmp_path, {"a": 2}, ARRAYS)
    assert read_folder(tmp_path)[0]["a"] == 2
    assert len(list(tmp_path.iterdir())) == 2 and not list(tmp_path.glob("*.part"))


def test_a_full_disk_leaves_the_old_result_and_nothing_of_the_new(folder, full_disk):
    before = {file.name: file.read_bytes() for file in folder.iterdir()}
    for name in ("arrays-", HEADER):
        with full_disk(name), pytest.raises(OSError, match="No space left on device") as caught:
            write_folder(folder, {"a": 2}, {"X": np.ones(3)})
        assert Path(caught.value.filename).name.startswith(name)
        assert {file.name: file.read_bytes() for file in folder.iterdir()} == before


def test_nothing_of_somebody_else_is_overwritten(tmp_path):
    (tmp_path / "data.csv").write_text("x,y")
    with pytest.raises(ValueError, match="holds other files and no saved result"):
        write_folder(tmp_path, {}, ARRAYS)
    with pytest.raises(ValueError, match=r"is a file\. Results are saved in a folder"):
        write_folder(tmp_path / "data.csv", {}, ARRAYS)


def test_a_folder_without_a_result_is_refused(tmp_path):
    for path in (tmp_path, tmp_path / "missing"):
        with pytest.raises(ValueError, match=r"is not a saved result: it has no result\.json"):
            read_folder(path)


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "null", '{"kind": "other"}', "[" * 100_000, "\xff\xfe", "9" * 10_000],
)
def test_a_broken_header_is_refused(folder, text):
    (folder / HEADER).write_text(text, encoding="latin-1")
    with pytest.raises(ValueError, match="is damaged, or is not a result of pmsr"):
        read_folder(folder)


@pytest.mark.parametrize("version", [0, 2, "1", None])
def test_another_format_is_refused(folder, version):
    rewrite(folder, format=version)
    with pytest.raises(ValueError, match=r"has format .*, this version of pmsr reads 1"):
        read_folder(folder)


@pytest.mark.parametrize("name", ["../../secret.npz", "/etc/passwd", "arrays-.npz", None, 3, {}])
def test_only_our_file_names_are_read(folder, name):
    rewrite(folder, arrays=name)
    with pytest.raises(ValueError, match="is not the name of a file of arrays"):
        read_folder(folder)


def test_a_changed_byte_is_noticed(folder):
    [file] = folder.glob("arrays-*.npz")
    contents = bytearray(file.read_bytes())
    contents[200] ^= 1
    file.write_bytes(contents)
    with pytest.raises(ValueError, match="is not the file that was written"):
        read_folder(folder)
    file.unlink()
    with pytest.raises(ValueError, match="is damaged"):
        read_folder(folder)


class Bomb:
    def __reduce__(self):
        return (exec, ("raise SystemExit('executed')",))


def as_npz(**arrays):
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    return buffer.getvalue()


def as_zip(compression, **members):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as file:
        for name, contents in members.items():
            file.writestr(f"{name}.npy", contents)
    return buffer.getvalue()


@pytest.mark.parametrize(
    "contents",
    [
        b"",
        b"not a zip",
        pickle.dumps(Bomb()),
        as_npz(X=np.array([Bomb()], dtype=object)),
        as_zip(zipfile.ZIP_STORED, X=pickle.dumps(Bomb())),
        as_zip(zipfile.ZIP_DEFLATED, X=bytes(10_000_000)),
        as_zip(zipfile.ZIP_STORED, X=b"\x93NUMPY\x01\x00"),
        as_npz(X=np.ones(9))[:-40],
    ],
)
def test_hostile_arrays_are_refused_and_harmless(folder, contents):
    replace_arrays(folder, contents)
    with pytest.raises(ValueError, match="is damaged, or is not a result of pmsr"):
        read_folder(folder)


@pytest.mark.parametrize("shape", [(10**13,), (10**9,), (-3, -3), (10**5, 10**30)])
def test_an_array_that_claims_another_size_is_refused(folder, shape):
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        header, {"shape": shape, "fortran_order": False, "descr": "<f8"}
    )
    replace_arrays(folder, as_zip(zipfile.ZIP_STORED, X=header.getvalue() + bytes(80)))
    with pytest.raises(ValueError, match=r"is damaged.*expected numbers"):
        read_folder(folder)
