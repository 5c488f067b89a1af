"""Hostile files: saved results, checkpoints, runs and tables, each with something wrong in it.

Every reader must refuse one in one line, or return numbers that are numbers.
"""

import copy
import csv
import io
import json
import math
import os
import resource
import shutil
import sys
import tempfile
import time
import warnings
import zipfile
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pandas as pd

import pmsr
from fuzz.tally import Tally, generator
from pmsr.data import Data, load_galileo, make_data
from pmsr.evidence.problem import as_problem
from pmsr.result.storage import HEADER, _digest
from pmsr.search.bench import Bench
from pmsr.search.checkpoint import load_state
from pmsr.search.evolution import run_evolution
from pmsr.settings import QUICK, Search
from pmsr.shell.cli import main
from pmsr.shell.data_files import choose_columns, read_table, split_table
from pmsr.shell.run_folder import CHECKPOINT, DATA, SETTINGS

SECONDS = 5.0  # of CPU, to read one file
SEARCH_SECONDS = 10.0  # to go on with a search whose file turned out to be in order
MAX_BYTES = 2**30
TINY = ["--generations", "2", "--population", "8", "--max-complexity", "8", "--no-report"]

TEXTS = (
    "",
    "x",
    "NaN",
    "=cmd|' /C calc'!A0",
    "\x00",
    "\x1b[2J",
    "\ud800",
    "a\nb",
    "__import__('os')",
    "../../etc/passwd",
    "c0",
    "c0*H",
    "c1*H + c0",
    "c0/(H - H)",
    "log(-H)",
    "0/0",
    "1e400*H",
    "H**H**H**H**H",
    "exp(exp(exp(exp(c0*H))))",
    "c99999999999999999999*H",
    "(" * 5000,
    "-" * 5000 + "H",
    "exp(" * 500 + "H" + ")" * 500,
    "H" + " + H" * 2000,
    "c0*" * 2000 + "H",
    "sqrt(" * 20 + "c0*H" + ")" * 20,
    "c0*H**(1000000000 + 1/3)",
    "3**(1000000000 + 1/3)*H",
    "abs(H/3)**(10000000019/2)",
    "c0*log(1 - (H + 3/8)**45761239297)",
    "(H/exp(1))**3061950562*c0",
    "sqrt((H + " * 25 + "sqrt(H)" + ")**2)" * 25,
    "sqrt(1/(c0 + " * 12 + "H" + "))" * 12,
    "sqrt(pow(H/(1 + c0/" * 15 + "H" + "), H))" * 15,
    "-(0.5**0.5**" * 35 + "H" + ")" * 35,
    "(H + tanh(" * 30 + "H" + "))**2" * 30,
    "`" * 101,
    "H" * 100_000,
)
NUMBERS = (math.nan, math.inf, -math.inf, -1, 0, -0.0, 1e308, 5e-324, 1.5, 1e12, 2**63, 10**400)
NESTED: list[Any] = []
for _ in range(100):
    NESTED = [NESTED]
JUNK = (*NUMBERS, *TEXTS, None, True, [], {}, [[]], NESTED, {"a": 1}, [1, 2, 3], ["c0", "c0"])


class _World:
    """Files in order, made once, and what belongs to them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        X, y = load_galileo("shelf")
        self.table = X.assign(D=y)
        self.csv = folder / "shelf.csv"
        self.table.to_csv(self.csv, index=False)
        self.runs = []
        for fitness in ("evidence", "rmse"):
            run = folder / fitness
            options = [*TINY, "--fitness", fitness, "--out", str(run), "--quiet"]
            _check_silence(*_call(["fit", str(self.csv), "--target", "D", *options]))
            self.runs.append(run)
        self.data: Data = make_data(X, y)
        self.checkpoints = []
        for evidence in ("screened", "smc"):
            search = Search(
                population_size=8,
                max_complexity=8,
                generations=2,
                n_finalists=2,
                n_islands=2,
                n_enumerated=30,
                evidence=evidence,
            )
            path = folder / f"{evidence}.npz"
            run_evolution(self.data, search=search, settings=QUICK, random_seed=1, checkpoint=path)
            # The seed of a run is drawn from that which a user gives.
            seed = int(np.random.default_rng(1).integers(2**63))
            problem = as_problem(self.data, QUICK, search.max_parameters)
            self.checkpoints.append((path, Bench(problem, search, QUICK, seed)))
            load_state(*self.checkpoints[-1])

    def copy(self, rng: np.random.Generator) -> Path:
        """Copy a run to where it may be spoilt."""
        path = self.folder / "spoilt"
        shutil.rmtree(path, ignore_errors=True)
        return Path(shutil.copytree(self.runs[rng.integers(len(self.runs))], path))


def attack(n: int, seed: int) -> Tally:
    """Read n files that somebody tampered with."""
    tally = Tally("files")
    with tempfile.TemporaryDirectory() as folder, patch.dict(os.environ, PMSR_DEBUG="1"):
        world = _World(Path(folder))
        ways = (
            _attack_header,
            _attack_arrays,
            _attack_checkpoint,
            _attack_predict,
            _attack_table,
            _attack_new_data,
            _attack_run,
            _attack_table,
            _attack_header,
            _attack_fit,
        )
        for place in range(n):
            way = ways[place % len(ways)]
            rng = generator(seed, place)
            searches = way in (_attack_run, _attack_fit)
            seconds = SEARCH_SECONDS if searches else SECONDS
            before, clock = _peak_bytes(), time.process_time()
            about = f"seed {seed}, place {place}, {way.__name__}"
            tally.attempt(
                about,
                lambda way=way, rng=rng: way(world, rng),
                seconds,
            )
            # The limit cannot interrupt libraries, nor does it count time in the system.
            if time.process_time() - clock > seconds:
                tally.faults.append(f"{time.process_time() - clock:.1f} s: {about}")
            if _peak_bytes() - before > MAX_BYTES:
                tally.faults.append(f"{_peak_bytes() - before:,} bytes more: {about}")
    return tally


def _peak_bytes() -> int:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak


def _refused(call: Callable[[], Any]) -> str:
    """Say whether a reader has refused a file, in one line of some length."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            call()
    except ValueError as error:
        # UnicodeError and the like are ValueErrors too, but say nothing of the file.
        if type(error) is not ValueError:
            raise AssertionError(f"{type(error).__name__}: {error}") from error
        text = str(error)
        if not text or "\n" in text or len(text) > 1000:
            raise AssertionError(f"an error of {len(text)} characters: {text[:200]!r}") from error
        return "refused"
    return "accepted"


def _call(arguments: list[str]) -> tuple[int, str, str]:
    """Call the command, and return its exit code, its output and its complaints."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = main(arguments)
    return code, out.getvalue(), err.getvalue()


def _check_silence(code: int, out: str, err: str) -> str:
    """Say what a command has done; complain of one that failed in other than one line."""
    if code == 0:
        return "accepted"
    lines = err.splitlines()
    if code != 1 or out or len(lines) != 1 or not lines[0].startswith("pmsr: "):
        raise AssertionError(f"exit code {code}, {out[:200]!r}, {err[:500]!r}")
    if not lines[0].isprintable() or len(lines[0]) > 1000:
        raise AssertionError(f"an error of {len(lines[0])} characters: {lines[0][:200]!r}")
    return "refused"


def _attack_header(world: _World, rng: np.random.Generator) -> str:
    path = world.copy(rng)
    _spoil_json(path / HEADER, rng)
    return _load(path)


def _attack_arrays(world: _World, rng: np.random.Generator) -> str:
    path = world.copy(rng)
    _spoil_arrays(path, rng)
    return _load(path)


def _attack_checkpoint(world: _World, rng: np.random.Generator) -> str:
    path = world.folder / "spoilt.npz"
    whole, bench = world.checkpoints[rng.integers(len(world.checkpoints))]
    shutil.copy(whole, path)
    _spoil_checkpoint(path, rng)

    def read() -> None:
        state = load_state(path, bench)
        assert state.generation >= state.last_improvement
        for island in state.islands or (state.ground,):
            best = island.judge.best(bench)
            assert best is None or best.score < math.inf
            assert not np.any(np.isnan(island.judge.scores(island.names)))
            assert all(genome.rows.dtype == np.int32 for genome in island.genomes)

    return _refused(read)


def _attack_predict(world: _World, rng: np.random.Generator) -> str:
    path = world.copy(rng)
    if rng.random() < 0.5:
        _spoil_json(path / HEADER, rng)
    else:
        _spoil_arrays(path, rng)
    return _predict(path, world.csv)


def _attack_new_data(world: _World, rng: np.random.Generator) -> str:
    return _predict(world.copy(rng), _make_table(world, rng))


def _attack_table(world: _World, rng: np.random.Generator) -> str:
    path = _make_table(world, rng)

    def read() -> None:
        table = read_table(path)
        X, y = split_table(table, "D", None, str(path))
        assert np.isfinite(X.to_numpy()).all() and np.isfinite(y.to_numpy()).all()
        choose_columns(table, ["H"], str(path))

    return _refused(read)


def _attack_fit(world: _World, rng: np.random.Generator) -> str:
    path, out = _make_table(world, rng), world.folder / "new"
    shutil.rmtree(out, ignore_errors=True)
    arguments = ["fit", str(path), "--target", "D", *TINY, "--out", str(out), "--json"]
    code, printed, err = _call(arguments)
    if code == 0 and _load(out) != "accepted":
        raise AssertionError("its own result cannot be loaded")
    if code != 0 and out.exists():
        raise AssertionError(f"a search that could not begin has left {os.listdir(out)}")
    return _check_silence(code, printed, err)


def _attack_run(world: _World, rng: np.random.Generator) -> str:
    path = world.copy(rng)
    way = rng.integers(3)
    if way == 0:
        _spoil_json(path / SETTINGS, rng)
    elif way == 1:
        _spoil_checkpoint(path / CHECKPOINT, rng)
    else:
        (path / DATA).write_bytes(_spoil_text((path / DATA).read_bytes(), rng))
    more = ["--generations", "1", "--time", "2s", "--no-report", "--json"]
    code, printed, err = _call(["resume", str(path), *more])
    if list(path.glob("*.part")):
        raise AssertionError("it has left parts of files")
    if code == 0 and _load(path) != "accepted":
        raise AssertionError("its own result cannot be loaded")
    return _check_silence(code, printed, err)


def _load(path: Path) -> str:
    """Load a result, and look at every number in it."""

    def read() -> None:
        result = pmsr.load(path).result_
        table = result.table
        weighed = [one.evidence for one in result.equations if math.isfinite(one.evidence.log_q)]
        for one in weighed:
            assert one.log_q_se >= 0.0 and 0.0 < one.gamma < 1.0, one
            assert 0.0 < one.sigma_bounds[0] < one.sigma_bounds[1] < math.inf, one
        if weighed:
            # Spellings of one equation share its probability.
            distinct = table.groupby([one.equation.key for one in result.equations])
            share = distinct["probability"].first().sum() + result.unweighed_share
            assert abs(share - 1.0) < 1e-9
        assert len(result.pareto_front) <= len(result)
        assert all(isinstance(doubt, str) for doubt in result.warnings)
        assert result._repr_html_()
        if "draws" in vars(result.best):
            _check_predictions(result.predict_table(result.data.X).to_numpy())

    return _refused(read)


def _predict(path: Path, data: Path) -> str:
    code, out, err = _call(["predict", str(path), str(data), "--quiet"])
    if code == 0:
        rows = list(csv.reader(io.StringIO(out)))[1:]
        _check_predictions(np.array([[float(cell or "nan") for cell in row[1:]] for row in rows]))
        return "accepted"
    return _check_silence(code, out, err)


def _check_predictions(rows: Any) -> None:
    """Refuse infinities, negative errors, and intervals that end before they begin."""
    _mean, std, _best, low, high, least, largest = rows.T
    assert not np.isinf(rows).any(), "an infinite prediction"
    assert not (std < 0.0).any() and not (low > high).any() and not (least > largest).any()


# Any: values of JSON.
def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yield every container in JSON with each of its keys."""
    if isinstance(value, dict | list):
        for key in list(value) if isinstance(value, dict) else range(len(value)):
            yield value, key
            yield from _places(value[key])


def _spoil_json(path: Path, rng: np.random.Generator) -> None:
    text = path.read_text(encoding="utf-8")
    if rng.random() < 0.15:
        path.write_bytes(_spoil_bytes(text.encode(), rng))
    else:
        path.write_text(_spoil_values(text, rng), encoding="utf-8", errors="surrogatepass")


def _spoil_values(text: str, rng: np.random.Generator) -> str:
    """Put one or two wrong values into JSON, or take some away."""
    whole = json.loads(text)
    for _ in range(rng.integers(1, 3)):
        places = list(_places(whole))
        # Each level is as likely as the next: there are many more numbers than options.
        depths = [key for key in whole] if isinstance(whole, dict) else []
        if depths and rng.random() < 0.3:
            place, key = whole, depths[rng.integers(len(depths))]
        else:
            place, key = places[rng.integers(len(places))]
        way = rng.integers(6)
        if way == 0:
            del place[key]
        elif way == 1:
            other, name = places[rng.integers(len(places))]
            place[key] = copy.deepcopy(other.get(name) if isinstance(other, dict) else other)
        elif way == 2 and isinstance(place, list):
            place.append(copy.deepcopy(place[key]))
        elif way == 3 and isinstance(place[key], int | float):
            place[key] = -place[key] if rng.random() < 0.5 else place[key] * 1e200
        else:
            place[key] = JUNK[rng.integers(len(JUNK))]
    spoilt = json.dumps(whole)
    if isinstance(whole, dict) and whole and rng.random() < 0.1:
        # A key that is there twice: the last one counts.
        key = list(whole)[rng.integers(len(whole))]
        spoilt = spoilt[:-1] + f", {json.dumps(key)}: {json.dumps(JUNK[rng.integers(len(JUNK))])}}}"
    if rng.random() < 0.1:
        spoilt = spoilt.replace(": 1", ": 1e400", 1)
    return spoilt


def _spoil_bytes(contents: bytes, rng: np.random.Generator) -> bytes:
    way = rng.integers(5)
    spoilt = bytearray(contents)
    if way == 0:
        return contents[: rng.integers(len(contents))]
    if way == 1:
        return contents + rng.bytes(100)
    if way == 2:
        return rng.bytes(1000)
    if way == 3:
        start = int(rng.integers(len(contents)))
        return contents[:start] + contents[start + int(rng.integers(1, 50)) :]
    for _ in range(rng.integers(1, 10)):
        spoilt[rng.integers(len(spoilt))] ^= 1 << int(rng.integers(8))
    return bytes(spoilt)


def _spoil_arrays(path: Path, rng: np.random.Generator) -> None:
    """Spoil the arrays of a result, whose name is then again that of their digest."""
    [old] = path.glob("arrays-*.npz")
    contents = old.read_bytes()
    old.unlink()
    if rng.random() < 0.2:
        spoilt = _spoil_bytes(contents, rng)
    else:
        with np.load(io.BytesIO(contents)) as file:
            spoilt = _spoil_npz(dict(file), rng, zipfile.ZIP_STORED)
    name = f"arrays-{_digest(spoilt)}.npz"
    (path / name).write_bytes(spoilt)
    header = (path / HEADER).read_text(encoding="utf-8")
    (path / HEADER).write_text(header.replace(old.name, name), encoding="utf-8")


def _spoil_checkpoint(path: Path, rng: np.random.Generator) -> None:
    contents = path.read_bytes()
    if rng.random() < 0.2:
        path.write_bytes(_spoil_bytes(contents, rng))
        return
    with np.load(io.BytesIO(contents)) as file:
        arrays = dict(file)
    if rng.random() < 0.6:
        text = _spoil_values(arrays["header"].tobytes().decode(), rng).encode(errors="ignore")
        arrays["header"] = np.frombuffer(text, dtype=np.uint8)
        buffer = io.BytesIO()
        np.savez_compressed(buffer, **arrays)
        path.write_bytes(buffer.getvalue())
    else:
        path.write_bytes(_spoil_npz(arrays, rng, zipfile.ZIP_DEFLATED))


def _spoil_npz(arrays: dict[str, Any], rng: np.random.Generator, compression: int) -> bytes:
    """Write arrays, one of which is not what it should be."""
    names = list(arrays)
    name = names[rng.integers(len(names))]
    values = arrays[name]
    way = rng.integers(10)
    members = dict(arrays)
    if way == 0:
        del members[name]
    elif way == 1:
        members[name + "x"] = members.pop(name)
    elif way in (2, 3) and values.size:
        junk = np.array([np.nan, np.inf, -np.inf, -1.0, 0.0, 1e308, 2.0**31])
        with np.errstate(invalid="ignore"):
            changed = values.copy().ravel()
            changed[rng.integers(values.size)] = rng.choice(junk).astype(values.dtype)
        members[name] = changed.reshape(values.shape)
    elif way == 4:
        kinds = (np.float32, np.int64, np.complex128, np.bool_, "U8", "M8[s]", ">f8", "V8")
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            members[name] = np.zeros(values.shape, dtype=kinds[rng.integers(len(kinds))])
    elif way == 5:
        shapes = (values[None], values.ravel(), values[:0], values[..., None], np.float64(1.0))
        members[name] = shapes[rng.integers(len(shapes))]
    elif way == 6:
        members[name] = values[: max(1, len(values) // 2)] if values.ndim else values
    elif way == 7:
        members[name] = np.concatenate([np.atleast_1d(values)] * 2)
    elif way == 8:
        compression = zipfile.ZIP_DEFLATED
        members["bomb"] = np.zeros(20_000_000)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as file, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for member, contents in members.items():
            file.writestr(f"{member}.npy", _to_npy(contents))
        if way == 9:
            file.writestr(f"{name}.npy", _claim(values.dtype, rng))
    return buffer.getvalue()


def _to_npy(values: Any) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, values, allow_pickle=False)
    return buffer.getvalue()


def _claim(dtype: Any, rng: np.random.Generator) -> bytes:
    """Write an array that says it is as large as a disk."""
    shape = [(10**12,), (10**6, 10**9), (-1,), (2**62, 4)][rng.integers(4)]
    buffer = io.BytesIO()
    about = {"descr": np.dtype(dtype).str, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(buffer, about)
    return buffer.getvalue() + bytes(64)


def _make_table(world: _World, rng: np.random.Generator) -> Path:
    """Write a table of any kind with something wrong in it."""
    kind = rng.choice([".csv", ".tsv", ".txt", ".xlsx", ".parquet", ".json"])
    path = world.folder / f"table{kind}"
    table = world.table.astype(object)
    if rng.random() < 0.7:
        for _ in range(rng.integers(1, 3)):
            row, column = rng.integers(len(table)), rng.integers(2)
            cell = JUNK[rng.integers(len(JUNK))]
            table.iat[row, column] = str(cell) if isinstance(cell, list | dict) else cell
    if rng.random() < 0.3:
        names = [TEXTS[rng.integers(len(TEXTS))][:60], "D"]
        table.columns = pd.Index(names if rng.random() < 0.7 else ["D", "D"], dtype=object)
    buffer = io.BytesIO()
    try:
        _write_table(table, kind, buffer)
    except Exception:  # not every format can hold every value: then all of them as text
        buffer = io.BytesIO()
        clean = table.map(lambda cell: ascii(cell)[:1000]).set_axis(["H", "D"], axis=1)
        _write_table(clean, kind, buffer)
    contents = buffer.getvalue()
    if rng.random() < 0.4:
        is_text = kind in (".csv", ".tsv", ".txt", ".json")
        contents = _spoil_text(contents, rng) if is_text else _spoil_packed(contents, kind, rng)
    path.write_bytes(contents)
    return path


def _write_table(table: pd.DataFrame, kind: str, file: io.BytesIO) -> None:
    if kind == ".xlsx":
        table.to_excel(file, index=False)
    elif kind == ".parquet":
        table.infer_objects().to_parquet(file)
    elif kind == ".json":
        table.to_json(file)
    else:
        separator = "\t" if kind == ".tsv" else ","
        file.write(table.to_csv(index=False, sep=separator).encode("utf-8", "surrogatepass"))


def _spoil_text(contents: bytes, rng: np.random.Generator) -> bytes:
    way = rng.integers(8)
    lines = contents.split(b"\n")
    if way == 0:
        return contents.replace(b",", b'"', 1)
    if way == 1:
        return lines[0] + b"," * 100_000 + b"\n" + b"1\n" * 2000
    if way == 2:
        return contents.replace(b"\n", b"\r")
    if way == 3:
        return b"\n".join(lines[1:])
    if way == 4:
        return lines[0] + b"\n" + b"9" * 1_000_000 + b",1\n"
    if way == 5:
        return contents.decode("utf-8", "replace").encode("utf-16")
    if way == 6:
        return contents + b"\x00" * 1000
    return _spoil_bytes(contents, rng)


def _spoil_packed(contents: bytes, kind: str, rng: np.random.Generator) -> bytes:
    if kind == ".parquet":
        return _parquet_bomb() if rng.random() < 0.2 else _spoil_bytes(contents, rng)
    way = rng.integers(4)
    if way == 0:
        return _spoil_bytes(contents, rng)
    with zipfile.ZipFile(io.BytesIO(contents)) as old:
        members = {name: old.read(name) for name in old.namelist()}
    sheet = "xl/worksheets/sheet1.xml"
    if way == 1:
        # Entities within entities: a billion of them.
        entities = '<!ENTITY e0 "ha">'
        for k in range(1, 10):
            entities += f'<!ENTITY e{k} "{f"&e{k - 1};" * 10}">'
        text = members[sheet].decode().replace("<v>", "<v>&e9;", 1)
        head, body = text.split("?>", 1) if text.startswith("<?") else ("<?xml version='1.0'", text)
        members[sheet] = f"{head}?><!DOCTYPE x [{entities}]>{body}".encode()
    elif way == 2:
        name = list(members)[rng.integers(len(members))]
        members[name] = _spoil_bytes(members[name] or b"x", rng)
    else:
        members[sheet] = members[sheet].replace(b"<sheetData>", b"<sheetData>" + bytes(50_000_000))
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as new:
        for name, member in members.items():
            new.writestr(name, member)
    return buffer.getvalue()


def _parquet_bomb() -> bytes:
    """Write a text of a megabyte ten thousand times, which takes a few kilobytes."""
    import pyarrow as pa
    import pyarrow.parquet

    text = pa.DictionaryArray.from_arrays(np.zeros(10_000, dtype=np.int32), ["x" * 1_000_000])
    table = pa.table({"H": text, "D": np.arange(10_000.0)})
    buffer = io.BytesIO()
    pyarrow.parquet.write_table(table, buffer, store_schema=False)
    return buffer.getvalue()
