"""A result on disk: a folder with a JSON file and an npz file of plain arrays, never pickled."""

import io
import json
import math
import os
import re
import zlib
from collections.abc import Mapping
from dataclasses import asdict
from hashlib import blake2b
from pathlib import Path
from typing import IO, Any
from zipfile import ZIP_STORED, BadZipFile, ZipFile

import numpy as np
from numpy.typing import NDArray

from pmsr.data import Data, make_data
from pmsr.evidence import Evidence
from pmsr.posterior import CHAIN_STATS, STAGE_STATS, Draws

FORMAT = 1
KIND = "pmsr result"
HEADER = "result.json"
_ARRAYS = re.compile(r"arrays-([0-9a-f]{32})\.npz")
# What reading a file that somebody tampered with can raise.
BROKEN = (
    OSError,
    ValueError,  # JSON and Unicode errors are ValueErrors
    LookupError,
    TypeError,
    AttributeError,
    ArithmeticError,
    BadZipFile,
    EOFError,
    MemoryError,
    NotImplementedError,
    RecursionError,
    RuntimeError,
    zlib.error,
)


# Any: values of JSON.
def write_folder(
    path: str | Path,
    header: Mapping[str, Any],
    arrays: Mapping[str, NDArray[Any]],
    *,
    others: bool = False,
) -> None:
    """Write a header and arrays; a crash in the middle leaves what was there before.

    Parameters
    ----------
    path
        The folder, made if need be. Other files in it are left alone.
    header
        What JSON can hold, NaN and infinities included.
    arrays
        Arrays of floats by name.
    others
        Whether the folder may hold other files at first.

    Raises
    ------
    ValueError
        If the path is a file, or a folder with something else in it.

    Notes
    -----
    The arrays go into a file named after their digest, and the header, which names that file,
    takes the place of the old one in a single step; only then are older arrays removed.
    """
    path = Path(path)
    if path.exists() and not path.is_dir():
        raise ValueError(f"{path} is a file. Results are saved in a folder: choose another name.")
    is_new = path.is_dir() and not others and not (path / HEADER).exists()
    if is_new and any(path.iterdir()):
        raise ValueError(
            f"{path} holds other files and no saved result. Choose a new or an empty folder."
        )
    path.mkdir(parents=True, exist_ok=True)
    buffer = io.BytesIO()
    # Any: NumPy's stubs take the names of arrays for options.
    contents: Any = {
        name: np.ascontiguousarray(values, dtype=np.float64) for name, values in arrays.items()
    }
    np.savez(buffer, **contents)
    name = f"arrays-{_digest(buffer.getvalue())}.npz"
    write_file(path / name, buffer.getvalue())
    whole = {"kind": KIND, "format": FORMAT, "arrays": name, **header}
    write_file(path / HEADER, json.dumps(whole, indent=1, ensure_ascii=False).encode())
    for old in path.iterdir():
        if _ARRAYS.fullmatch(old.name) and old.name != name:
            old.unlink()


def write_file(path: Path, contents: bytes) -> None:
    """Write a file in a single step; a crash leaves the old one, and links are not followed."""
    temporary = path.with_name(path.name + ".part")
    temporary.unlink(missing_ok=True)
    with temporary.open("xb") as file:
        file.write(contents)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)


def read_folder(path: str | Path) -> tuple[dict[str, Any], dict[str, NDArray[np.float64]]]:
    """Read what `write_folder` wrote.

    Raises
    ------
    ValueError
        If the folder is not a saved result, is damaged, or has another format. Nothing in the
        files is executed, and nothing outside the folder is read.
    """
    path = Path(path)
    if not (path / HEADER).is_file():
        raise ValueError(
            f"{path} is not a saved result: it has no {HEADER}. Give the folder that save() made."
        )
    try:
        header = json.loads((path / HEADER).read_bytes())
        if not isinstance(header, dict) or header.get("kind") != KIND:
            raise ValueError(f'{HEADER} does not say "kind": "{KIND}"')
        found = header.get("format")
    except BROKEN as error:
        raise damaged(path, error) from None
    if found != FORMAT:
        raise ValueError(
            f"{path} has format {found!r}, this version of pmsr reads {FORMAT}. "
            "Load it with the version of pmsr that saved it."
        )
    try:
        return header, _read_arrays(path, header["arrays"])
    except BROKEN as error:
        raise damaged(path, error) from None


def _read_arrays(path: Path, name: object) -> dict[str, NDArray[np.float64]]:
    match = _ARRAYS.fullmatch(name) if isinstance(name, str) else None
    if match is None:
        raise ValueError(f"{name!r} is not the name of a file of arrays")
    contents = (path / match[0]).read_bytes()
    if _digest(contents) != match[1]:
        raise ValueError(f"{match[0]} is not the file that was written")
    arrays = {}
    with ZipFile(io.BytesIO(contents)) as archive:
        for member in archive.infolist():
            # Ours are stored as they are: nothing can unfold to more than the file itself.
            if member.compress_type != ZIP_STORED or member.file_size > len(contents):
                raise ValueError(f"{match[0]} is compressed")
            with archive.open(member) as stream:
                arrays[member.filename.removesuffix(".npy")] = _read_floats(stream)
    return arrays


def _read_floats(stream: IO[bytes]) -> NDArray[np.float64]:
    """Read one array in NumPy's format. Unlike ``np.load`` it allocates what is there, at most."""
    if np.lib.format.read_magic(stream) != (1, 0):
        raise ValueError("expected version 1.0 of NumPy's format")
    shape, in_columns, dtype = np.lib.format.read_array_header_1_0(stream)
    contents = stream.read()
    if dtype != np.float64 or in_columns or 8 * math.prod(shape) != len(contents):
        raise ValueError(f"expected floats, got {dtype} of shape {shape} in {len(contents)} bytes")
    return np.frombuffer(contents, dtype=np.float64).reshape(shape).copy()


def damaged(path: str | Path, error: Exception) -> ValueError:
    """Return the error that says why a saved result cannot be used."""
    reason = str(error) or type(error).__name__
    if isinstance(error, KeyError):
        reason = f"{reason} is missing"
    return ValueError(f"{path} is damaged, or is not a result of pmsr: {reason}.")


def _digest(contents: bytes) -> str:
    return blake2b(contents, digest_size=16).hexdigest()


def record_evidence(evidence: Evidence) -> dict[str, Any]:
    """Return the evidence as JSON knows it; floats lose no digit there."""
    return {**asdict(evidence), "theta": evidence.theta.tolist()}


def read_evidence(record: Mapping[str, Any], n_parameters: int) -> Evidence:
    """Return the evidence of an equation with this many parameters."""
    low, high = record["sigma_bounds"]
    failure = record["failure"]
    return Evidence(
        **{name: float(record[name]) for name in _EVIDENCE_FLOATS},
        sigma_bounds=(float(low), float(high)),
        n_parameters=read_count(record["n_parameters"]),
        rank=read_count(record["rank"]),
        theta=_check_shape(np.array(record["theta"], dtype=np.float64), (n_parameters,)),
        failure=None if failure is None else str(failure),
    )


_EVIDENCE_FLOATS = (
    "log_q",
    "log_q_se",
    "log_z_gamma",
    "log_z",
    "gamma",
    "rmse",
    "prior_sensitivity",
    "pareto_k",
)


def record_draws(draws: Draws, prefix: str) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return what of the draws goes into the header, and the arrays under their names."""
    arrays = {"theta": draws.theta, "sigma": draws.sigma, "theta_map": draws.theta_map}
    arrays |= draws.stats
    record = {"gamma": draws.gamma, "held": draws.held, "reasons": draws.reasons}
    return record, {prefix + name: values for name, values in arrays.items()}


def read_draws(
    record: Mapping[str, Any], prefix: str, arrays: Mapping[str, NDArray[Any]], n_parameters: int
) -> Draws:
    """Return the draws of an equation with this many parameters."""
    sigma = arrays[prefix + "sigma"]
    chains, draws = sigma.shape
    stages = arrays[prefix + STAGE_STATS[0]].shape[1]
    shapes = {"theta": (chains, draws, n_parameters), "sigma": (chains, draws)}
    shapes |= {"theta_map": (n_parameters,)}
    shapes |= {name: (chains, stages) for name in STAGE_STATS}
    shapes |= {name: (chains,) for name in CHAIN_STATS}
    checked = {name: _check_shape(arrays[prefix + name], shape) for name, shape in shapes.items()}
    if sigma.size == 0 or not (sigma > 0.0).all() or not np.isfinite(checked["theta"]).all():
        raise ValueError("draws must be finite, and those of sigma positive")
    return Draws(
        theta=checked["theta"],
        sigma=checked["sigma"],
        theta_map=checked["theta_map"],
        gamma=float(record["gamma"]),
        held={str(name): float(value) for name, value in record["held"].items()},
        reasons=tuple(map(str, record["reasons"])),
        stats={name: checked[name] for name in (*STAGE_STATS, *CHAIN_STATS)},
    )


def read_data(record: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Data:
    """Return the data that a result explains."""
    y = _check_shape(arrays["y"], arrays["y"].shape[:1])
    data = make_data(arrays["X"], y, names=record["names"])
    return Data(X=data.X, y=data.y, names=data.names, target=str(record["target"]))


def read_count(value: object) -> int:
    """Return a whole number that is not negative."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ValueError(f"expected a whole number, got {value!r}")
    return value


def _check_shape(values: NDArray[Any], shape: tuple[int, ...]) -> NDArray[np.float64]:
    if values.dtype != np.float64 or values.shape != shape:
        raise ValueError(
            f"expected floats of shape {shape}, got {values.dtype} of shape {values.shape}"
        )
    return np.ascontiguousarray(values)
