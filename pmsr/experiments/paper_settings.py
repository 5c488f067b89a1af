"""Settings of the paper's own experiments: its priors, flat in parameters and over equations."""

from dataclasses import replace
from typing import Any

from pmsr import settings

FINALIST = replace(settings.FINALIST, parameter_prior="flat")
QUICK = replace(settings.QUICK, parameter_prior="flat")
SEARCH: dict[str, Any] = {"law_prior": "uniform"}
