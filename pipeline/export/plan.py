"""The settings of an export -> how its rows are made, and into which kind of file they go."""

from pipeline.core.errors import UsageError
from pipeline.export.base import Exporter, Plan
from pipeline.export.formats.base import Encoder
from pipeline.export.registry import exporter_for
from pipeline.export.settings import DecontaminateConfig, ExportConfig, PreferenceConfig


def refuse_useless(config: ExportConfig) -> None:
    """Raise UsageError for a setting that would do nothing beside the others: who gives it expects otherwise."""
    exporter = exporter_for(config)
    for useless, told in (
        (
            config.max_length is not None and not config.tokenizer,
            "max_length: tokens are counted by tokenizer=..., add it",
        ),
        (
            config.neutral is not None and config.threshold is not None,
            "neutral: a threshold labels anew, and leaves no neutral steps; leave one of them out",
        ),
        (
            config.decontaminate != DecontaminateConfig() and not config.decontaminate.paths,
            "decontaminate.column and .ngram are for decontaminate.paths=[...], add it",
        ),
        (
            config.preference != PreferenceConfig() and exporter.Config is not PreferenceConfig,
            f"preference.*: format={config.format} has no pairs; leave it out",
        ),
        *((True, f"{key}: {why}") for key, why in exporter.useless(config).items()),
    ):
        if useless:
            raise UsageError(told)


def plan_of(config: ExportConfig, encoder: Encoder | None) -> Plan:
    """Raises UsageError for settings that do not go together."""
    exporter: Exporter = exporter_for(config)
    if config.columns and (not exporter.takes_columns or config.target is not None):
        raise UsageError(
            "columns=... is for format=parquet without a target: other rows have the columns of their format"
        )
    return exporter.plan(config, encoder)
