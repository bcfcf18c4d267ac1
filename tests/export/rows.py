"""Rows of labels for tests, made by hand or by Hypothesis."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from pipeline.export.formats.base import Row
from pipeline.export.formats.preference import Pair, PairRows, preference_pairs
from pipeline.export.registry import plan_of, with_own_settings
from pipeline.export.result import ExportResult
from pipeline.export.run import export
from pipeline.export.settings import ExportConfig, FileType, PreferenceConfig
from pipeline.export.targets import LabelRow
from pipeline.export.write import row_file


def label_row(labels: Sequence[int | None] = (1, 0), **changes: Any) -> LabelRow:
    """A chain with these labels and matching values: 0.9 for good, 0.05 for bad, 0.6 for neutral, None for uncertain."""
    values = [None if label is None else (0.05, 0.9, 0.6)[label] for label in labels]
    row = LabelRow(
        chain_id="c",
        problem_id="p",
        source_id="s",
        problem="What is 1 + 1?",
        gold_answer="2",
        final_answer="2",
        outcome=True,
        steps=[f"Step text {number}." for number in range(1, len(labels) + 1)],
        label=list(labels),
        value=list(values),
        unbiased_value=list(values),
        n_correct=[0 if value is None else round(20 * value) for value in values],
        n_rollouts=[0 if value is None else 20 for value in values],
        origin=["measured" if value is not None else "unmeasured" for value in values],
        prefix_ids=[f"prefix{number}" for number in range(1, len(labels) + 1)],
        root_prefix_id="prefix0",
        estimator="fixed",
    )
    return row._replace(**changes)


def settings(layout: str = "trl", **changes: Any) -> ExportConfig:
    """Settings of an export that neither reads nor writes."""
    return with_own_settings(ExportConfig(run_dir="run", format=layout, out="out", **changes))


def pairs_of(chains: Sequence[LabelRow], config: PreferenceConfig) -> list[Pair]:
    """The pairs of one problem."""
    made = plan_of(settings("preference", own=config), None).make
    assert isinstance(made, PairRows)
    return list(preference_pairs(chains, made.choice, config, made.separator))


def exported(run_dir: Path, out: Path, layout: str = "trl", **asked: Any) -> ExportResult:
    return export(ExportConfig(run_dir=str(run_dir), format=layout, out=str(out), **asked))


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def loaded(rows: Sequence[Row], schema: pa.Schema, file: FileType, folder: Path) -> Any:
    """Rows as `datasets` reads them from a file of ours."""
    import datasets

    path = folder / f"rows.{file.value}"
    with row_file(path, file, schema) as writer:
        writer.write(rows)
    loader = "parquet" if file is FileType.parquet else "json"
    return datasets.load_dataset(loader, data_files=str(path), split="train", cache_dir=str(folder / "cache"))


label_lists = st.lists(st.sampled_from([0, 1, 2, None]), min_size=1, max_size=8)
