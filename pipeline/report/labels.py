"""The labels of a run directory as polars frames, through its commit records."""

from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import polars as pl
import pyarrow.compute as pc

from pipeline.store.commits import INPUT, UNIT, Commit, committed, committed_unit
from pipeline.store.run_record import STAGED_INPUT, recorded_identity
from pipeline.store.shards import read_shard
from pipeline.store.units import units_of


def label_frames(run_dir: Path) -> Iterator[pl.DataFrame]:
    """One frame per committed unit that has labels, in the order of the input."""
    staged = _staged_input(run_dir)
    for unit in units_of(run_dir, staged) if staged else ():
        yield from _frames(run_dir, unit.unit_id)


def _frames(run_dir: Path, unit_id: str) -> Iterator[pl.DataFrame]:
    commit = committed_unit(run_dir, UNIT, unit_id)
    if commit is not None:
        for shard in commit.shards:
            if shard.table == "labels":
                frame = pl.from_arrow(read_shard(run_dir, shard))
                assert isinstance(frame, pl.DataFrame)
                yield frame


def _staged_input(run_dir: Path) -> Commit | None:
    return committed_unit(run_dir, INPUT, str(recorded_identity(run_dir)[STAGED_INPUT]))


def first_chains(run_dir: Path, count: int) -> list[dict[str, object]]:
    """The first `count` label rows, chains of a problem together."""
    rows = (row for frame in label_frames(run_dir) for row in frame.iter_rows(named=True))
    return list(islice(rows, count))


def reject_counts(run_dir: Path) -> dict[str, int]:
    """How many rows were rejected for which reason, most frequent first."""
    counts: Counter[str] = Counter()
    staged = _staged_input(run_dir)
    for commit in [*([staged] if staged else []), *committed(run_dir, UNIT)]:
        for shard in commit.shards:
            if shard.table == "rejects":
                table = read_shard(run_dir, shard)
                whole_rows = table.filter(pc.is_null(table["step_index"]))
                counts.update(str(reason) for reason in whole_rows["reason"].to_pylist())
    return dict(counts.most_common())
