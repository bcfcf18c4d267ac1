"""Every format: `datasets` loads the same rows from JSONL and Parquet, and chains that cannot be written are reported."""

from pathlib import Path

import pytest

from pipeline.export.base import LayoutExporter
from pipeline.export.example import StepTarget
from pipeline.export.formats.base import Format
from pipeline.export.registry import EXPORTS, exporter_for
from pipeline.export.settings import FileType, TargetKind
from tests.export.examples import example, kinds
from tests.export.rows import loaded, settings

pytestmark = pytest.mark.slow

FORMATS: dict[str, Format] = {
    name: exporter.layout
    for name in EXPORTS.ours
    if isinstance(exporter := exporter_for(settings(name)), LayoutExporter)
}
TARGETS: dict[TargetKind, list[StepTarget]] = {
    TargetKind.hard: [1, 1, 0],
    TargetKind.soft: [1.0, 0.25, 0.0],
    TargetKind.counts: [(3, 3), (1, 4), (0, 2)],
}
CASES = [(name, target) for name, layout in FORMATS.items() for target in layout.targets]


@pytest.mark.parametrize(("name", "target"), CASES, ids=str)
def test_datasets_reads_the_same_from_jsonl_and_parquet(name: str, target: TargetKind, tmp_path: Path) -> None:
    layout = FORMATS[name]
    given = TARGETS[target]
    some = [*given[:1], None, *given[1:]] if layout.ignores else given
    chains = [example(given, outcome=True), example(some, problem='é\n"?"', final_answer=None)]
    rows = [layout.row(chain, layout.marks) for chain in chains]
    for file in FileType:
        assert loaded(rows, layout.schema(target), file, tmp_path).to_list() == rows


@pytest.mark.parametrize("name", FORMATS, ids=str)
def test_every_format_reports_a_chain_without_steps_and_nothing_of_a_plain_one(name: str) -> None:
    layout = FORMATS[name]
    assert ("no_steps", True) in kinds(layout, example([]))
    assert kinds(layout, example(TARGETS[layout.targets[0]])) == []
