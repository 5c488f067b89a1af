"""The paper's own experiments: flat priors, and every candidate of one population weighed."""

from dataclasses import replace
from typing import Any

from pmsr import settings

FINALIST = replace(settings.FINALIST, parameter_prior="flat")
QUICK = replace(settings.QUICK, parameter_prior="flat")
SEARCH: dict[str, Any] = {"law_prior": "uniform", "evidence": "smc", "n_islands": 1}
