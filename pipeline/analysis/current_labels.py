"""Says by which rule the current labels of a run are made, which edition they are, and how many of their rows have changed."""

from collections.abc import Iterator

from pipeline.config.consensus import describe_consensus, is_consensus
from pipeline.config.label import EstimatorConfig
from pipeline.config.recorded_settings import Settings, chosen_settings
from pipeline.core.errors import UsageError
from pipeline.core.formatting import format_count
from pipeline.estimators.labels import describe_rule
from pipeline.estimators.registry import ESTIMATORS
from pipeline.storage.changes import KeptChanges, counted_changes


def label_rule(settings: Settings) -> str:
    """The label rule in words. `settings`: those of the current labels."""
    if is_consensus(settings):
        return describe_consensus(settings)
    try:
        return describe_rule(chosen_settings(settings, EstimatorConfig, ESTIMATORS))
    except (ValueError, UsageError):
        # The run can be read without the plug-in that made its labels, and its other settings still name the rule.
        return str(settings.get("estimator.rule", "unknown"))


def changed_text(changes: KeptChanges, used: int) -> str:
    """How many of the `used` rows the input no longer has as they were labelled, and what becomes of their labels. Empty for
    none."""
    number = len(changes.rows)
    if not number:
        return ""
    be = "is not as it was" if number == 1 else "are not as they were"
    return (
        f"{number:,} of {format_count(used, 'used row')} {be} labelled ({counted_changes(changes.changed, changes.vanished)}): "
        "`labels` marks their chains in input_changed, `export` and `train` leave them out"
    )


def current_labels(rule: str, edition: int | None, command: str) -> Iterator[tuple[str, str]]:
    """Names and texts for the screen: the rule, and the edition unless the labels are those of `label` itself.

    `command`: the command that made the edition."""
    yield "rule", rule
    if edition is not None:
        yield "edition", f"{edition}, made by `{command}`"
