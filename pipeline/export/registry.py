"""The formats by name: ours, and those of installed distributions. A new one of ours is a line here."""

from typing import Any

from pipeline.core.doors import Door, guarded
from pipeline.export.base import Exporter, LayoutExporter
from pipeline.export.formats.base import Format
from pipeline.export.settings import ExportConfig

_OURS = "pipeline.export.formats"
EXPORTS: Door[Format | Exporter] = Door(
    "exports",
    noun="format",
    setting="format",
    ours={
        "trl": f"{_OURS}.trl:TRL",
        "axolotl": f"{_OURS}.axolotl:AXOLOTL_EXPORTER",
        "openrlhf": f"{_OURS}.openrlhf:OPENRLHF",
        "rlhflow": f"{_OURS}.rlhflow:RLHFLOW",
        "qwen": f"{_OURS}.qwen:QWEN",
        "prm800k": f"{_OURS}.prm800k:PRM800K",
        "math_shepherd": f"{_OURS}.math_shepherd:MATH_SHEPHERD",
        "openr": f"{_OURS}.openr:OPENR",
        "scan": f"{_OURS}.scan:SCAN",
        "processbench": f"{_OURS}.processbench:PROCESSBENCH",
        "orm": f"{_OURS}.orm:ORM",
        "preference": f"{_OURS}.pairs:PREFERENCE",
        "parquet": f"{_OURS}.steps:PARQUET",
    },
    needs=(),
)


def exporter_for(config: ExportConfig) -> Exporter:
    """How a format is exported: by its own exporter, or as any layout. Raises UsageError where there is none of that name."""
    found: Any = EXPORTS.load(config.format)
    made = LayoutExporter(found) if isinstance(found, Format) else found
    usable: Exporter = guarded(made, EXPORTS.plugin(config.format), f"format {config.format}")
    return usable
