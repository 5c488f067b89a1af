"""A saved result, read again: every value is checked, and nothing is executed."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sympy import Function

from pmsr.data import Data
from pmsr.equation.expression import Equation
from pmsr.equation.operators import added_operators
from pmsr.evidence.evidence import Evidence, Weighed, is_flat
from pmsr.evidence.priors import read_known
from pmsr.evidence.problem import Problem
from pmsr.files import BROKEN, as_count, as_history, as_list, as_number, as_seed, as_text
from pmsr.laws.units import read_units, units_of
from pmsr.result.fitted import FittedEquation
from pmsr.result.grouped import fitted_equation
from pmsr.result.result import Result
from pmsr.result.storage import (
    damaged,
    read_coverage,
    read_data,
    read_draws,
    read_evidence,
    read_fit,
    read_folder,
    read_noise_table,
    read_prior,
    read_search,
)
from pmsr.search.engines import engine_of
from pmsr.settings import ADDED, Search, Settings

SAME_ERROR = 1e-6  # of the target's size, and of the error itself: what computers may differ by


class Redefined(ValueError):
    """An operator of a user's has another form than when the result was saved."""


def load_result(path: str | Path) -> Result:
    """Load a result that was saved to a folder.

    Raises
    ------
    ValueError
        If the folder is not a saved result, is damaged, or was tampered with. Nothing in it is
        executed.
    """
    return decode_result(path, *read_folder(path))


def decode_result(
    path: str | Path, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]
) -> Result:
    """Make a result of what a folder holds; errors say that ``path`` is damaged."""
    try:
        return _decode(header, arrays)
    except Redefined as error:
        raise ValueError(f"{path} {error}") from None
    except BROKEN as error:
        unknown = re.match(r"Unknown function '(\w+)'", str(error))
        if unknown is not None:
            raise ValueError(
                f"{path} was saved with the operator {unknown[1]!r}, which is not there. Add it "
                f"first, with the form that it had: pmsr.add_operator({unknown[1]!r}, lambda x: "
                "...)."
            ) from None
        raise damaged(path, error) from None


def _decode(header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Result:
    data = read_data(header["data"], arrays)
    settings = Settings(**{**ADDED, **header["settings"]})
    search = None if header["search"] is None else read_search(header["search"])
    seed = as_seed(header["random_seed"])
    conventional = not engine_of(search).has_evidence
    weighed = []
    for record in as_list(header["equations"]):
        variables, parameters = as_list(record["variables"]), as_list(record["parameters"])
        equation = Equation(as_text(record["text"]), variables, parameters)
        p, n = len(equation.parameters), len(data.y)
        n_groups = 0 if data.groups is None else len(set(data.groups))
        evidence = read_evidence(
            record["evidence"], p, n, conventional=conventional, n_groups=n_groups
        )
        weighed.append((record, equation, evidence))
    problem = _read_problem(data, settings, search, [pair[1:] for pair in weighed])
    # An earlier version knew of none.
    priors = {name: read_known(name, one) for name, one in header.get("priors", {}).items()}
    problem = problem.with_priors(priors)
    if search is None:
        # An earlier version knew of none.
        interval = tuple(map(as_text, as_list(header.get("interval", []))))
        units = read_units(
            header.get("units"),
            data.names,
            data.target,
            interval=interval,
            constants=data.constants,
        )
    else:
        units = units_of(search, data)
    equations = []
    for place, (record, equation, evidence) in enumerate(weighed):
        equation, selected = problem.suit(equation)
        # An earlier version did not save it. With priors, no law is spelled otherwise.
        flat = is_flat(equation.program, problem) or len(selected.given) > 0
        own = Weighed(evidence, read_fit(record.get("fit"), equation.program, is_flat=flat))
        if problem.parts:
            own = Weighed(evidence, parts=_read_parts(record["parts"], equation, problem, flat))
        # An earlier version had one prior for all.
        log_prior = as_number(record.get("log_prior", 0.0))
        if not log_prior < np.inf:
            raise ValueError(f"an equation has log_prior = {log_prior!r}")
        fitted = fitted_equation(
            equation, own, selected, settings, seed, log_prior, units.select(equation.variables)
        )
        for k, (one, part) in enumerate(
            zip(fitted.parts.values(), record["parts"] if problem.parts else (), strict=True)
        ):
            if part["posterior"] is not None:
                one.__dict__["draws"] = read_draws(
                    part["posterior"],
                    f"{place}.{k}.",
                    arrays,
                    equation.parameters,
                    one.problem.gamma,
                )
        if record["posterior"] is not None:
            # The draws, which were made in another process, take the place of the cached property.
            fitted.__dict__["draws"] = read_draws(
                record["posterior"], f"{place}.", arrays, equation.parameters, evidence.gamma
            )
        _check_added(fitted)
        equations.append(fitted)
    names = header["names"]
    # An earlier version saved neither.
    n_failed, of_constant = header.get("n_failed"), header.get("constant_log_prior")
    result = Result(
        equations=tuple(equations),
        names=None if names is None else tuple(map(as_text, as_list(names))),
        problem=problem,
        settings=settings,
        search=search,
        random_seed=seed,
        chosen=as_count(header["chosen"]),
        history=tuple(as_history(header["history"])),
        n_candidates=as_count(header["n_candidates"]),
        n_failed=None if n_failed is None else as_count(n_failed),
        stopped=as_text(header["stopped"]),
        versions={name: as_text(value) for name, value in header["versions"].items()},
        law_prior=read_prior(header.get("law_prior", "uniform")),
        coverage=read_coverage(header.get("coverage", {})),
        units=units,
        constant_log_prior=None if of_constant is None else as_number(of_constant),
        noise_table=read_noise_table(header.get("noise_table")),
    )
    if result.constant_log_prior is not None and not result.constant_log_prior < np.inf:
        raise ValueError(f"a constant has log_prior = {result.constant_log_prior!r}")
    if result.names is not None and len(set(result.names)) != len(result):
        raise ValueError(f"{len(result)} equations have the names {', '.join(result.names)}")
    if result.chosen >= len(result):
        raise ValueError(f"equation {result.chosen} of {len(result)} is chosen")
    if result.n_failed is not None and result.n_failed > result.n_candidates:
        raise ValueError(f"{result.n_failed} of {result.n_candidates} equations failed")
    return result


def _check_added(fitted: FittedEquation) -> None:
    """Refuse operators that a user added, with which a law no longer predicts what it did."""
    functions = fitted.equation.expression.atoms(Function)
    used = {type(one) for one in functions}
    added = [row.name for row in added_operators() if row.sympy in used]
    for one in (fitted.parts.values() or (fitted,)) if added else ():
        if one.evidence.failure is not None:
            continue
        known = one.evidence.rmse
        with np.errstate(all="ignore"):
            found = one.problem.rmse(one.equation.program, one.theta)
        size = known + float(np.max(np.abs(one.data.y)))
        if not abs(found - known) <= SAME_ERROR * size:
            names = ", ".join(map(repr, added))
            raise Redefined(
                f"was saved with {names} of another form: the RMSE of {one.equation.text!r} was "
                f"{known:.6g}, and with the operators that are there it is {found:.6g}. Load it in "
                "a new process, and add them with the forms that they had."
            )


def _read_problem(
    data: Data,
    settings: Settings,
    search: Search | None,
    weighed: Sequence[tuple[Equation, Evidence]],
) -> Problem:
    """Return what equations were weighed on; refuse evidence that cannot be compared."""
    gammas = {evidence.gamma for _, evidence in weighed if np.isfinite(evidence.gamma)}
    bounds = {evidence.sigma_bounds for _, evidence in weighed}
    if len(gammas) > 1 or len(bounds) > 1:
        raise ValueError("its equations were weighed with different fractions or bounds")
    largest = None if search is None else search.max_parameters
    if largest is None:
        largest = max(len(equation.parameters) for equation, _ in weighed)
    problem = Problem.of(data, settings, largest)
    # A conventional search has no fraction of its own.
    return replace(problem, gamma=gammas.pop() if gammas else problem.gamma)


def _read_parts(
    records: object, equation: Equation, problem: Problem, is_flat: bool
) -> tuple[Weighed, ...]:
    """Return what each group says of an equation; nothing, if only its best fit was known."""
    found = []
    for record, part in zip(as_list(records), problem.parts, strict=True):
        # Where sigma is shared, log q does not divide among the groups.
        evidence = read_evidence(
            record["evidence"], len(equation.parameters), len(part.data.y), conventional=True
        )
        fit = read_fit(record["fit"], equation.program, is_flat=is_flat)
        found.append(Weighed(evidence, fit))
    return tuple(found)
