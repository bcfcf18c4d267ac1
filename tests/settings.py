"""Settings of implementations by name, as a command line would compose them."""

from collections.abc import Sequence
from typing import Any

from pipeline.cli.compose import compose
from pipeline.cli.label import LABEL
from pipeline.config.changes import change_type
from pipeline.config.label import EstimatorConfig, GraderConfig, LabelConfig
from pipeline.core.records import StepValue
from pipeline.engines.registry import ENGINES
from pipeline.estimators.base import Estimator
from pipeline.estimators.labels import step_labels
from pipeline.estimators.registry import ESTIMATORS, estimator_for
from pipeline.graders.registry import GRADERS

EstimatorChange: Any = change_type(EstimatorConfig, ESTIMATORS)
GraderChange: Any = change_type(GraderConfig, GRADERS)


def compose_label(overrides: Sequence[str]) -> LabelConfig:
    """The settings of `label` as plain objects."""
    config = compose(LABEL, overrides).settings()
    assert isinstance(config, LabelConfig)
    return config


def estimator_settings(name: str = "fixed", **own: Any) -> Any:
    """The settings of an estimator."""
    return ESTIMATORS.load(name).Config(**own)


def estimator(name: str = "fixed", **own: Any) -> Estimator:
    """An estimator with these settings."""
    return estimator_for(estimator_settings(name, **own))


def policy_settings(kind: str, **own: Any) -> Any:
    """The settings of a policy."""
    return ENGINES.load(kind).Config(**own)


def grader_settings(kind: str = "math", **own: Any) -> Any:
    """The settings of a checker."""
    return GRADERS.load(kind).Config(**own)


def rule_labels(root: StepValue, steps: Sequence[StepValue], settings: EstimatorConfig) -> tuple[int | None, ...]:
    """What the rule of an estimator's settings makes of its values."""
    return step_labels(root, steps, settings)


def deciding(config: LabelConfig) -> tuple[Estimator, int]:
    """What decides about a unit's goal: the estimator, and the rollouts per prefix."""
    return estimator_for(config.estimator), config.sampling.rollouts
