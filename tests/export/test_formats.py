"""Every format: `datasets` loads the same rows from JSONL and Parquet, and chains that cannot be written are reported."""

from pathlib import Path
from typing import Any

import pytest

from pipeline.export.base import LayoutExporter
from pipeline.export.example import StepTarget
from pipeline.export.formats.base import Format
from pipeline.export.formats.plain import STEPS
from pipeline.export.registry import EXPORTS, exporter_for
from pipeline.export.settings import FileType, TargetKind
from pipeline.export.write import row_file
from tests.export.examples import example, kinds
from tests.export.rows import settings

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
    import datasets

    layout = FORMATS[name]
    given = TARGETS[target]
    some = [*given[:1], None, *given[1:]] if layout.ignores else given
    chains = [example(given, outcome=True), example(some, problem='é\n"?"', final_answer=None)]
    rows = [layout.row(chain, layout.marks) for chain in chains]
    read = []
    for loader, file in (("json", FileType.jsonl), ("json", FileType.json), ("parquet", FileType.parquet)):
        path = tmp_path / f"rows.{file.value}"
        with row_file(path, file, layout.schema(target)) as writer:
            writer.write(rows)
        read.append(
            datasets.load_dataset(loader, data_files=str(path), split="train", cache_dir=str(tmp_path)).to_list()
        )
    assert read == [rows, rows, rows]


@pytest.mark.parametrize("name", FORMATS, ids=str)
def test_every_format_reports_a_chain_without_steps_and_nothing_of_a_plain_one(name: str) -> None:
    layout = FORMATS[name]
    assert ("no_steps", True) in kinds(layout, example([]))
    assert kinds(layout, example(TARGETS[layout.targets[0]])) == []


def test_only_pairs_and_trees_have_no_rows_for_chains() -> None:
    assert {"preference", "ppm", "omegaprm"} <= set(EXPORTS.ours) - set(FORMATS)


@pytest.mark.parametrize(
    ("targets", "columns"),
    [
        ([1, None, 2], {"labels": [1, None, 2]}),
        ([None, 0.5], {"scores": [None, 0.5]}),
        ([(1, 2), None], {"n_correct": [1, None], "n_rollouts": [2, None]}),
    ],
)
def test_plain_rows_have_a_column_for_each_number(targets: list[StepTarget], columns: dict[str, Any]) -> None:
    row = STEPS.row(example(targets), STEPS.marks)
    assert {name: row[name] for name in columns} == columns
    assert not {"labels", "scores", "n_correct"} - set(columns) & set(row)
