"""The parameters of the estimator: which are whose options, and all of them as JSON."""

from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any

import numpy as np

from pmsr.evidence.distributions import read_constants
from pmsr.evidence.priors import record_known
from pmsr.files import as_list, as_seed, as_text, without_numpy
from pmsr.result.storage import read_prior, read_search, record_prior, record_search
from pmsr.settings import ADDED, ADDED_TO_SEARCH, Settings

# The options of Search and Settings that are parameters of the estimator itself.
SEARCH_OPTIONS = (
    "operators",
    "population_size",
    "generations",
    "max_time",
    "patience",
    "max_complexity",
    "max_parameters",
    "fitness",
    "law_prior",
    "interval",
    "units",
    "forbid",
    "max_uses",
    "require",
    "exclude",
)
SETTINGS_OPTIONS = ("gamma", "noise", "extra_noise", "shared_sigma", "positive")


def parameters_to_json(parameters: dict[str, Any]) -> dict[str, Any]:
    """Return the estimator's parameters as JSON knows them."""
    state = parameters["random_state"]
    whole = isinstance(state, int | np.integer) and not isinstance(state, bool)
    settings, search = parameters["settings"], parameters["search"]
    options = {
        "settings": None if settings is None else asdict(settings),
        "search": None if search is None else record_search(search),
        "law_prior": record_prior(parameters["law_prior"]),
        **{name: list(map(str, parameters[name])) for name in ("interval", "require", "exclude")},
        "forbid": _record_rules(parameters["forbid"], list),
        "max_uses": _record_rules(parameters["max_uses"], int),
        "units": _record_units(parameters["units"]),
        "constants": _record_constants(parameters["constants"]),
    }
    return {
        **{name: without_numpy(value) for name, value in parameters.items()},
        **options,
        "operators": list(map(str, parameters["operators"])),
        "guesses": [getattr(guess, "text", guess) for guess in parameters["guesses"] or ()],
        "checkpoint": None if parameters["checkpoint"] is None else str(parameters["checkpoint"]),
        "callbacks": [],
        "verbose": bool(parameters["verbose"]),
        "random_state": int(state) if whole else None,
    }


def parameters_from_json(parameters: dict[str, Any]) -> dict[str, Any]:
    """Return the estimator's parameters, of the types that its signature names."""
    # A result has none, an earlier version not all, and one that is gone.
    added = {name: value for name, value in ADDED_TO_SEARCH.items() if name in SEARCH_OPTIONS}
    parameters = {**added, **parameters} if parameters else {}
    parameters.pop("model_selection", None)
    if parameters.get("settings") is not None:
        parameters["settings"] = Settings(**{**ADDED, **parameters["settings"]})
    if parameters.get("search") is not None:
        parameters["search"] = read_search(parameters["search"])
    if parameters:
        parameters["law_prior"] = read_prior(parameters["law_prior"])
    for name in ("operators", "guesses", "callbacks", "interval", "require", "exclude"):
        if name in parameters:
            parameters[name] = tuple(map(as_text, as_list(parameters[name])))
    if isinstance(parameters.get("constants"), dict):  # JSON has no tuples
        found = parameters["constants"].items()
        parameters["constants"] = {k: tuple(v) if isinstance(v, list) else v for k, v in found}
    if parameters.get("random_state") is not None:
        as_seed(parameters["random_state"])
    return parameters


# Any: names of operators, or how often one may stand.
def _record_rules(
    rules: Mapping[str, Any] | None, kind: Callable[[Any], Any]
) -> dict[str, Any] | None:
    return None if rules is None else {name: kind(rule) for name, rule in rules.items()}


def _record_units(units: Mapping[str, str] | str | None) -> dict[str, str] | str | None:
    return dict(units) if isinstance(units, Mapping) else units


def _record_constants(constants: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return constants as JSON knows them; of a PyMC distribution, only words."""
    if constants is None:
        return None
    return {
        name: one.value if one.prior is None else record_known(one.prior)
        for name, one in read_constants(constants).items()
    }
