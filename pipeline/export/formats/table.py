"""Every format that has a row for a chain. Pairs, which have rows for a problem, are in `preference`."""

from collections.abc import Mapping

from pipeline.export.formats.axolotl import AXOLOTL
from pipeline.export.formats.base import Format
from pipeline.export.formats.math_shepherd import MATH_SHEPHERD
from pipeline.export.formats.openr import OPENR
from pipeline.export.formats.openrlhf import OPENRLHF
from pipeline.export.formats.orm import ORM
from pipeline.export.formats.prm800k import PRM800K
from pipeline.export.formats.processbench import PROCESSBENCH
from pipeline.export.formats.qwen import QWEN
from pipeline.export.formats.rlhflow import RLHFLOW
from pipeline.export.formats.scan import SCAN
from pipeline.export.formats.steps import STEPS
from pipeline.export.formats.trl import TRL
from pipeline.export.settings import ExportFormat

FORMATS: Mapping[ExportFormat, Format] = {
    ExportFormat.trl: TRL,
    ExportFormat.axolotl: AXOLOTL,
    ExportFormat.openrlhf: OPENRLHF,
    ExportFormat.rlhflow: RLHFLOW,
    ExportFormat.qwen: QWEN,
    ExportFormat.prm800k: PRM800K,
    ExportFormat.math_shepherd: MATH_SHEPHERD,
    ExportFormat.openr: OPENR,
    ExportFormat.scan: SCAN,
    ExportFormat.processbench: PROCESSBENCH,
    ExportFormat.orm: ORM,
    ExportFormat.parquet: STEPS,
}
