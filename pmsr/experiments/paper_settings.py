"""Settings of the paper's own experiments: its prior, flat in the parameters."""

from dataclasses import replace

from pmsr import settings

FINALIST = replace(settings.FINALIST, parameter_prior="flat")
QUICK = replace(settings.QUICK, parameter_prior="flat")
