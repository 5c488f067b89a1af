"""A result on disk: a folder with a JSON file and an npz file of plain arrays, never pickled."""

import io
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pmsr.data import Constant, Data, make_data
from pmsr.equation.expression import Equation
from pmsr.equation.program import Program
from pmsr.evidence.evidence import Evidence
from pmsr.evidence.multistart import Fit, Minimum, invert, straighten
from pmsr.evidence.posterior import CHAIN_STATS, STAGE_STATS, Draws
from pmsr.evidence.priors import read_known
from pmsr.files import (
    BROKEN,
    as_count,
    as_list,
    as_number,
    as_text,
    read_arrays,
    reason,
    remove_parts,
    write_file,
)
from pmsr.laws.prior import LawCounts, LawPrior, LawPriorOption
from pmsr.result.coverage import Coverage
from pmsr.settings import ADDED_TO_SEARCH, Search

FORMAT = 1  # one more where an earlier version could not read what is written
KIND = "pmsr result"
HEADER = "result.json"
ARRAYS = re.compile(r"arrays-([0-9a-f]{32})\.npz")
_OURS = re.compile(f"{re.escape(HEADER)}|{ARRAYS.pattern}")


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
    if path.is_dir():
        remove_parts(path, _OURS)
    is_new = path.is_dir() and not others and not (path / HEADER).exists()
    # Arrays without a header are what a process left that was killed before it wrote one.
    if is_new and not all(ARRAYS.fullmatch(file.name) for file in path.iterdir()):
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
    is_known = (path / name).exists()
    write_file(path / name, buffer.getvalue())
    whole = {"kind": KIND, "format": FORMAT, "arrays": name, **header}
    try:
        write_file(path / HEADER, json.dumps(whole, indent=1, ensure_ascii=False).encode())
    except BaseException:
        # Nothing refers to the new arrays; perhaps they are what has filled the disk.
        if not is_known:
            (path / name).unlink(missing_ok=True)
        raise
    for old in path.iterdir():
        if ARRAYS.fullmatch(old.name) and old.name != name:
            old.unlink()


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
    match = ARRAYS.fullmatch(name) if isinstance(name, str) else None
    if match is None:
        raise ValueError(f"{name!r} is not the name of a file of arrays")
    contents = (path / match[0]).read_bytes()
    if _digest(contents) != match[1]:
        raise ValueError(f"{match[0]} is not the file that was written")
    # Ours are stored as they are: nothing can unfold to more than the file itself.
    arrays = read_arrays(contents, max_ratio=1.0)
    if any(values.dtype != np.float64 for values in arrays.values()):
        raise ValueError(f"{match[0]} holds other things than floats")
    return arrays


def damaged(path: str | Path, error: Exception) -> ValueError:
    """Return the error that says why a saved result cannot be used."""
    return ValueError(f"{path} is damaged, or is not a result of pmsr: {reason(error)}.")


def _digest(contents: bytes) -> str:
    return blake2b(contents, digest_size=16).hexdigest()


def record_evidence(evidence: Evidence) -> dict[str, Any]:
    """Return the evidence as JSON knows it; floats lose no digit there."""
    return {**asdict(evidence), "theta": evidence.theta.tolist()}


def read_evidence(
    record: Mapping[str, Any],
    n_parameters: int,
    n_points: int,
    *,
    conventional: bool,
    n_groups: int = 0,
) -> Evidence:
    """Return the evidence of an equation, all of whose parts are what `weigh` can say.

    Parameters
    ----------
    record
        From `record_evidence`.
    n_parameters, n_points
        Of the equation and of the data.
    conventional
        Whether a search by error found it, whose ``log_q`` and ``gamma`` may be NaN.
    n_groups
        How many groups have constants of their own; 0 without groups.
    """
    low, high = map(as_number, as_list(record["sigma_bounds"]))
    failure = record["failure"]
    evidence = Evidence(
        **{name: as_number(record[name]) for name in _EVIDENCE_FLOATS},
        # An earlier version did not save it.
        log_q_linear=as_number(record.get("log_q_linear", math.nan)),
        sigma_bounds=(low, high),
        n_parameters=as_count(record["n_parameters"]),
        rank=as_count(record["rank"]),
        theta=_read_best(record["theta"], n_groups, n_parameters),
        failure=None if failure is None else as_text(failure),
    )
    wrong = _find_wrong(evidence, n_parameters, n_points, conventional, n_groups)
    if wrong is not None:
        raise ValueError(f"an equation has {wrong} = {getattr(evidence, wrong)!r}")
    return evidence


def _read_best(values: object, n_groups: int, n_parameters: int) -> NDArray[np.float64]:
    """Return the best fit, with groups a row for each."""
    if not n_groups:
        return np.array([as_number(value) for value in as_list(values)], dtype=np.float64)
    rows = [[as_number(value) for value in as_list(row)] for row in as_list(values)]
    if any(len(row) != n_parameters for row in rows):
        raise ValueError(f"expected {n_parameters} parameters for each group, got {rows!r}")
    return np.array(rows, dtype=np.float64).reshape(len(rows), n_parameters)


def _find_wrong(
    e: Evidence, n_parameters: int, n_points: int, conventional: bool, n_groups: int
) -> str | None:
    """Name a part of the evidence that cannot be; None if all can."""
    has_failed = e.failure is not None
    is_weighed = math.isfinite(e.log_q)
    # What has failed, or is another spelling of what was weighed, may have no best fit: all NaN.
    fitted = np.isfinite(e.theta).all() or np.isnan(e.theta).all()
    integrals = (e.log_z, e.log_z_gamma)
    # A search that is content with an estimate does not compute them.
    agree = all(map(math.isnan, integrals)) or (
        is_weighed and math.isclose(e.log_z - e.log_z_gamma, e.log_q, abs_tol=1e-6, rel_tol=1e-6)
    )
    right = {
        "failure": e.failure != "",
        "log_q": (is_weighed and not has_failed)
        or (e.log_q == -math.inf and has_failed)
        or (math.isnan(e.log_q) and conventional),
        "log_q_se": 0.0 <= e.log_q_se < math.inf,
        "log_z": agree,
        "gamma": 0.0 < e.gamma < 1.0 or (math.isnan(e.gamma) and math.isnan(e.log_q)),
        "sigma_bounds": 0.0 < e.sigma_bounds[0] <= e.sigma_bounds[1] < math.inf,
        "n_parameters": e.n_parameters == n_parameters,
        "rank": e.rank <= min(n_parameters * max(1, n_groups), n_points),
        "theta": e.theta.shape == ((n_groups,) if n_groups else ()) + (n_parameters,) and fitted,
        "rmse": 0.0 <= e.rmse < math.inf or (e.rmse == math.inf and has_failed),
        "pareto_k": not math.isnan(e.pareto_k),
        "prior_sensitivity": math.isfinite(e.prior_sensitivity),
    }
    return next((name for name, is_right in right.items() if not is_right), None)


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


def record_search(search: Search) -> dict[str, Any]:
    """Return the options of a search as JSON knows them."""
    options = {one.name: getattr(search, one.name) for one in fields(search)}
    return {**options, "law_prior": record_prior(search.law_prior)}


def read_search(record: Mapping[str, Any]) -> Search:
    """Return the options of a search; those that an earlier version did not have are its."""
    options = {**ADDED_TO_SEARCH, **record}
    return Search(**{**options, "law_prior": read_prior(options["law_prior"])})


def record_prior(law_prior: LawPriorOption) -> str | dict[str, Any]:
    """Return the prior over laws as JSON knows it: its name or its costs, but no function."""
    if isinstance(law_prior, str):
        return law_prior
    if isinstance(law_prior, LawPrior):
        return asdict(law_prior)
    if isinstance(law_prior, ForgottenPrior):
        return {"function": law_prior.name}
    return {"function": getattr(law_prior, "__name__", type(law_prior).__name__)}


def read_prior(record: object) -> LawPriorOption:
    """Return the prior over laws that was recorded; a function is only remembered by its name."""
    if record == "description" or record == "uniform":
        return record
    if not isinstance(record, dict):
        raise ValueError(f"{record!r} is no prior over laws")
    if "function" in record:
        return ForgottenPrior(as_text(record["function"]))
    costs = dict(record)
    if costs["counts"] is not None:
        counts = as_list(costs["counts"]["by_nodes"])
        costs["counts"] = LawCounts(tuple(as_count(n) for n in counts))
    return LawPrior(**costs)


@dataclass(frozen=True)
class ForgottenPrior:
    """A function of a user that gave laws their prior; files hold what it said, not what it is."""

    name: str

    def __call__(self, law: Equation, **_: Any) -> float:
        """Refuse to judge another law."""
        raise ValueError(
            f"law_prior was a function, {self.name!r}, and functions are not saved. "
            "Hand it over again: law_prior=..."
        )


def read_coverage(record: Mapping[str, Any]) -> Coverage:
    """Return what a search knew about itself; an earlier version did not save it."""
    counts = [one.name for one in fields(Coverage) if isinstance(one.default, int)]
    counts.remove("is_settled")
    is_settled = record.get("is_settled", True)
    log_rest = as_number(record.get("log_rest", -math.inf))
    if not isinstance(is_settled, bool) or not log_rest < math.inf:
        raise ValueError(f"a search cannot have seen {dict(record)!r}")
    known = {name: as_count(record.get(name, 0)) for name in counts}
    left_out = tuple(map(as_text, as_list(record.get("left_out", []))))
    return Coverage(
        **known,
        log_rest=log_rest,
        is_settled=is_settled,
        left_out=left_out,
        elapsed=as_number(record.get("elapsed", math.nan)),
    )


def record_draws(draws: Draws, prefix: str) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return what of the draws goes into the header, and the arrays under their names."""
    arrays = {"theta": draws.theta, "sigma": draws.sigma, "theta_map": draws.theta_map}
    arrays |= draws.stats
    record = {"gamma": draws.gamma, "held": draws.held, "reasons": draws.reasons}
    return record, {prefix + name: values for name, values in arrays.items()}


def read_draws(
    record: Mapping[str, Any],
    prefix: str,
    arrays: Mapping[str, NDArray[Any]],
    parameters: Sequence[str],
    gamma: float,
) -> Draws:
    """Return the draws of an equation with these parameters, weighed with this gamma."""
    sigma = arrays[prefix + "sigma"]
    chains, draws = sigma.shape
    stages = arrays[prefix + STAGE_STATS[0]].shape[1]
    shapes = {"theta": (chains, draws, len(parameters)), "sigma": (chains, draws)}
    shapes |= {"theta_map": (len(parameters),)}
    shapes |= {name: (chains, stages) for name in STAGE_STATS}
    shapes |= {name: (chains,) for name in CHAIN_STATS}
    checked = {name: _check_shape(arrays[prefix + name], shape) for name, shape in shapes.items()}
    finite = all(np.isfinite(checked[name]).all() for name in ("theta", "sigma", "theta_map"))
    if sigma.size == 0 or not finite or not (sigma > 0.0).all():
        raise ValueError("draws must be finite, and those of sigma positive")
    held = {name: as_number(value) for name, value in record["held"].items()}
    if not set(held) <= set(parameters) or not all(map(math.isfinite, held.values())):
        raise ValueError(f"the parameters {held!r} cannot be held")
    # A conventional search has no gamma of its own, but its posterior has.
    own = as_number(record["gamma"])
    if not 0.0 < own < 1.0 or own != (own if math.isnan(gamma) else gamma):
        raise ValueError(f"draws at gamma = {own!r} of an equation weighed at {gamma!r}")
    return Draws(
        theta=checked["theta"],
        sigma=checked["sigma"],
        theta_map=checked["theta_map"],
        gamma=own,
        held=held,
        reasons=tuple(map(as_text, as_list(record["reasons"]))),
        stats={name: checked[name] for name in (*STAGE_STATS, *CHAIN_STATS)},
    )


def record_fit(fit: Fit | None) -> dict[str, Any] | None:
    """Return the region that log q came from as JSON knows it."""
    if fit is None:
        return None
    minima, images = (
        [
            {"theta": one.theta.tolist(), "sse": float(one.sse), "converged": bool(one.converged)}
            for one in some
        ]
        for some in (fit.minima, fit.images)
    )
    free = [int(place) for place in fit.free]
    return {"free": free, "theta": fit.theta.tolist(), "minima": minima, "images": images}


def read_fit(record: Mapping[str, Any] | None, program: Program, *, is_flat: bool) -> Fit | None:
    """Return the region that an equation's log q came from; None if it was not saved.

    Where theta is not flat, minima are those of another spelling, see `straighten`.
    """
    if record is None:
        return None
    program, inverted = (program, ()) if is_flat else straighten(program)
    p = program.n_parameters
    free = tuple(as_count(place) for place in as_list(record["free"]))
    theta = _read_theta(record["theta"], p)
    if not free or sorted(set(free)) != list(free) or free[-1] >= p:
        raise ValueError(f"the parameters {free!r} of {p} cannot be those that are free")
    minima, images = (
        tuple(_read_minimum(one, len(free)) for one in as_list(record[name]))
        for name in ("minima", "images")
    )
    if not minima:
        raise ValueError("a fit has no minimum")
    own = invert(theta, inverted)
    held = {place: float(own[place]) for place in range(p) if place not in free}
    left = tuple(place for place, k in enumerate(free) if k in inverted)
    return Fit(program.freeze(held) if held else program, minima, free, theta, images, left)


def _read_minimum(record: Mapping[str, Any], n_free: int) -> Minimum:
    sse = as_number(record["sse"])
    if not 0.0 <= sse < math.inf or not isinstance(record["converged"], bool):
        raise ValueError(f"a minimum has the squared error {sse!r}")
    theta = _read_theta(record["theta"], n_free)
    return Minimum(theta, sse, np.empty((0, n_free)), record["converged"])


def _read_theta(values: object, n: int) -> NDArray[np.float64]:
    theta = np.array([as_number(value) for value in as_list(values)], dtype=np.float64)
    if theta.shape != (n,) or not np.isfinite(theta).all():
        raise ValueError(f"expected {n} finite parameters, got {theta.tolist()!r}")
    return theta


NOISE_COLUMNS = ("noise", "equation", "log_q", "score")


def record_noise_table(table: pd.DataFrame | None) -> list[dict[str, Any]] | None:
    """Return what each noise model makes of the data as JSON knows it."""
    if table is None:
        return None
    rows = table[list(NOISE_COLUMNS)].itertuples(index=False)
    return [dict(zip(NOISE_COLUMNS, row, strict=True)) for row in rows]


def read_noise_table(records: object) -> pd.DataFrame | None:
    """Return what was recorded; an earlier version did not save it."""
    if records is None:
        return None
    rows = []
    for record in as_list(records):
        log_q, score = as_number(record["log_q"]), as_number(record["score"])
        rows.append((as_text(record["noise"]), as_text(record["equation"]), log_q, score))
    return pd.DataFrame(rows, columns=list(NOISE_COLUMNS))


def read_data(record: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Data:
    """Return the data that a result explains."""
    y = _check_shape(arrays["y"], arrays["y"].shape[:1])
    target = pd.Series(y, name=as_text(record["target"]))
    measured = {
        argument: _check_shape(arrays[name], y.shape)
        for argument, name in (("y_err", "y_err"), ("sample_weight", "counts"))
        if name in arrays
    }
    if "X_err" in arrays:
        measured["X_err"] = _check_shape(arrays["X_err"], arrays["X"].shape)
    groups = record.get("groups")
    if groups is not None:
        groups = [as_text(label) for label in as_list(groups)]
    names, X = as_list(record["names"]), arrays["X"]
    # An earlier version knew of no constants.
    known = record.get("constants", {})
    constants = {
        name: Constant(
            float(X[0, names.index(name)]), None if one is None else read_known(name, one)
        )
        for name, one in known.items()
    }
    kept = [name for name in names if name not in constants]
    if kept + list(constants) != names:
        raise ValueError(f"the constants {list(constants)!r} are not the last of {names!r}")
    if "X_err" in measured:
        measured["X_err"] = measured["X_err"][:, : len(kept)]
    return make_data(
        X[:, : len(kept)], target, names=kept, groups=groups, constants=constants, **measured
    )


def _check_shape(values: NDArray[Any], shape: tuple[int, ...]) -> NDArray[np.float64]:
    if values.dtype != np.float64 or values.shape != shape:
        raise ValueError(
            f"expected floats of shape {shape}, got {values.dtype} of shape {values.shape}"
        )
    return np.ascontiguousarray(values)
