"""Says by which rule the current labels of a run are made, and which edition they are."""

from collections.abc import Iterator

from pipeline.config.consensus import describe_consensus, is_consensus
from pipeline.config.label import EstimatorConfig
from pipeline.config.recorded_settings import Settings, chosen_settings
from pipeline.core.errors import UsageError
from pipeline.estimators.labels import describe_rule
from pipeline.estimators.registry import ESTIMATORS


def label_rule(settings: Settings) -> str:
    """The label rule in words. `settings`: those of the current labels."""
    if is_consensus(settings):
        return describe_consensus(settings)
    try:
        return describe_rule(chosen_settings(settings, EstimatorConfig, ESTIMATORS))
    except (ValueError, UsageError):
        # The run can be read without the plug-in that made its labels, and its other settings still name the rule.
        return str(settings.get("estimator.rule", "unknown"))


def current_labels(rule: str, edition: int | None, command: str) -> Iterator[tuple[str, str]]:
    """Names and texts for the screen: the rule, and the edition unless the labels are those of `label` itself.

    `command`: the command that made the edition."""
    yield "rule", rule
    if edition is not None:
        yield "edition", f"{edition}, made by `{command}`"
