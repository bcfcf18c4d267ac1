"""The estimators by name: ours, and those of installed distributions. A new one of ours is a line here."""

from typing import TYPE_CHECKING

from pipeline.config.choices import ValueColumn
from pipeline.config.label import EstimatorConfig
from pipeline.config.recorded_settings import complete_settings
from pipeline.core.doors import Door

if TYPE_CHECKING:
    from pipeline.estimators.base import Estimator

ESTIMATORS: "Door[type[Estimator]]" = Door(
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
    """The estimator that settings name. Raises UsageError where there is none such here, ValueError where it does not take
    them."""
    usable: Estimator = ESTIMATORS.made(settings.name, complete_settings(settings, ESTIMATORS))
    return usable


def value_column(asked: ValueColumn | None, estimator: str) -> ValueColumn:
    """The column that is asked for, else the one that labels by an estimator are made of."""
    return asked if asked is not None else ESTIMATORS.load(estimator).value_column
