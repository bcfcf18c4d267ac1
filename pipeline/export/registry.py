"""The export formats by name: ours and those of installed distributions. Checks the settings of an export and plans its rows.

A new format of ours is one line here.
"""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pipeline.core.errors import UsageError
from pipeline.core.registry import Registry
from pipeline.export.settings import DecontaminateConfig, ExportConfig

if TYPE_CHECKING:
    from pipeline.export.base import Exporter, Plan
    from pipeline.export.formats.base import Encoder, Format

_OURS = "pipeline.export.formats"
EXPORTS: "Registry[Format | Exporter]" = Registry(
    "exports",
    noun="format",
    setting="format",
    ours={
        "trl": f"{_OURS}.stepwise:TRL",
        "axolotl": f"{_OURS}.stepwise:AXOLOTL_EXPORTER",
        "openrlhf": f"{_OURS}.placeholders:OPENRLHF",
        "rlhflow": f"{_OURS}.stepwise:RLHFLOW",
        "qwen": f"{_OURS}.placeholders:QWEN",
        "prm800k": f"{_OURS}.annotated:PRM800K",
        "math_shepherd": f"{_OURS}.numbered:MATH_SHEPHERD",
        "openr": f"{_OURS}.numbered:OPENR",
        "scan": f"{_OURS}.stepwise:SCAN",
        "processbench": f"{_OURS}.annotated:PROCESSBENCH",
        "orm": f"{_OURS}.plain:ORM",
        "ppm": f"{_OURS}.ppm:PPM pipeline.export.settings:PpmConfig",
        "omegaprm": f"{_OURS}.omegaprm:OMEGAPRM",
        "preference": f"{_OURS}.preference:PREFERENCE pipeline.export.settings:PreferenceConfig",
        "parquet": f"{_OURS}.plain:PARQUET",
    },
    needs=(),
)


def exporter_for(config: ExportConfig) -> "Exporter":
    """The exporter of a format: its own, or the one for layouts. Raises UsageError for an unknown format."""
    from pipeline.export.base import LayoutExporter
    from pipeline.export.formats.base import Format

    found: Any = EXPORTS.load(config.format)
    made = LayoutExporter(found) if isinstance(found, Format) else found
    usable: Exporter = EXPORTS.guard(config.format, made)
    return usable


def with_own_settings(config: ExportConfig) -> ExportConfig:
    """The settings including the format's own, or their defaults. Raises UsageError for own settings of another format."""
    schema = EXPORTS.settings(config.format)
    if config.own is None and schema is not None:
        return replace(config, own=schema())
    if config.own is not None and (schema is None or not isinstance(config.own, schema)):
        raise UsageError(f"own: {type(config.own).__name__} is not for format={config.format}; leave it out")
    return config


def refuse_ineffective(config: ExportConfig) -> None:
    """Raise UsageError for a setting that has no effect together with the others, because the user expects an effect."""
    for ineffective, text in (
        (
            config.max_length is not None and not config.tokenizer,
            "max_length: tokens are counted with a tokenizer; add tokenizer=...",
        ),
        (
            config.neutral is not None and config.threshold is not None,
            "neutral: with threshold=... there are no neutral steps; leave one of the two out",
        ),
        (
            config.decontaminate != DecontaminateConfig() and not config.decontaminate.paths,
            "decontaminate.column and .ngram have no effect without decontaminate.paths=[...]; add it",
        ),
        *((True, f"{key}: {why}") for key, why in exporter_for(config).ineffective_settings(config).items()),
    ):
        if ineffective:
            raise UsageError(text)


def plan_of(config: ExportConfig, encoder: "Encoder | None") -> "Plan":
    """The plan for settings from `with_own_settings`. Raises UsageError for settings that contradict each other."""
    return exporter_for(config).plan(config, encoder)
