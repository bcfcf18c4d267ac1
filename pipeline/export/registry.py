"""The formats by name: ours, and those of installed distributions; and by the settings of an export how its rows are made, and
into which kind of file they go. A new format of ours is a line here.
"""

from typing import Any

from pipeline.core.doors import Door
from pipeline.core.errors import UsageError
from pipeline.export.base import Exporter, LayoutExporter, Plan
from pipeline.export.formats.base import Encoder, Format
from pipeline.export.settings import DecontaminateConfig, ExportConfig, PreferenceConfig

_OURS = "pipeline.export.formats"
EXPORTS: Door[Format | Exporter] = Door(
    "exports",
    noun="format",
    setting="format",
    ours={
        "trl": f"{_OURS}.stepwise:TRL",
        "axolotl": f"{_OURS}.stepwise:AXOLOTL_EXPORTER",
        "openrlhf": f"{_OURS}.placeholders:OPENRLHF",
        "rlhflow": f"{_OURS}.rlhflow:RLHFLOW",
        "qwen": f"{_OURS}.placeholders:QWEN",
        "prm800k": f"{_OURS}.annotated:PRM800K",
        "math_shepherd": f"{_OURS}.numbered:MATH_SHEPHERD",
        "openr": f"{_OURS}.numbered:OPENR",
        "scan": f"{_OURS}.stepwise:SCAN",
        "processbench": f"{_OURS}.annotated:PROCESSBENCH",
        "orm": f"{_OURS}.plain:ORM",
        "preference": f"{_OURS}.preference:PREFERENCE",
        "parquet": f"{_OURS}.plain:PARQUET",
    },
    needs=(),
)


def exporter_for(config: ExportConfig) -> Exporter:
    """How a format is exported: by its own exporter, or as any layout. Raises UsageError where there is none of that name."""
    found: Any = EXPORTS.load(config.format)
    made = LayoutExporter(found) if isinstance(found, Format) else found
    usable: Exporter = EXPORTS.guarded(config.format, made)
    return usable


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
