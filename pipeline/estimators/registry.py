"""The estimators by name: built-in ones and those of installed plug-ins. To add a built-in one, add a line to `ESTIMATORS`."""

from typing import TYPE_CHECKING

from pipeline.config.label import EstimatorConfig
from pipeline.config.recorded_settings import complete_settings
from pipeline.core.registry import Registry

if TYPE_CHECKING:
    from pipeline.estimators.base import Estimator

ESTIMATORS: "Registry[type[Estimator]]" = Registry(
    "estimators",
    noun="estimator",
    setting="estimator.name",
    ours={
        "fixed": "pipeline.estimators.fixed:Fixed pipeline.estimators.settings:FixedConfig",
        "first_success": "pipeline.estimators.first_success:FirstSuccess pipeline.estimators.settings:FirstSuccessConfig",
        "pooled": "pipeline.estimators.pooled.estimator:Pooled pipeline.estimators.settings:PooledConfig",
        "bisect": "pipeline.estimators.bisect:Bisect pipeline.estimators.settings:BisectConfig",
    },
    needs=("Config", "next_rollouts", "values", "labels", "lacks", "budget"),
    parts=("learner",),
    answers="pipeline.estimators.base:ANSWERS",
)


def estimator_for(settings: EstimatorConfig) -> "Estimator":
    """The estimator that the settings name. Raises UsageError where none of that name is installed, ValueError where it rejects
    the settings."""
    usable: Estimator = ESTIMATORS.create(settings.name, complete_settings(settings, ESTIMATORS))
    return usable
