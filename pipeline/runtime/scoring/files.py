"""Scores chains in this process and writes them to one file, as a whole or not at all: `score out=FILE`."""

import asyncio
import json
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from pipeline.config.score import ScoreConfig
from pipeline.core.errors import UsageError
from pipeline.data.rows import input_files
from pipeline.engines.base import Surroundings
from pipeline.runtime.chain_run.chain_task import chain_texts
from pipeline.runtime.intake import LeftOutRows
from pipeline.runtime.scoring.task import ScoreTask, score_chains
from pipeline.scorers.registry import scorer_for
from pipeline.storage.location import folder_at
from pipeline.storage.outputs import atomic_file, check_output_file, refuse_overwriting

Write = Callable[[pa.Table], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scored:
    """Counts of a scoring. `unscored`: chains with a step without a score, by reason. `left_out`: rows without a usable
    chain."""

    chains: int
    steps: int
    unscored: Mapping[str, int]
    left_out: LeftOutRows


def is_file(out: str) -> bool:
    """Whether `out` names a file of scores; else it names a folder."""
    return Path(out).suffix in _WRITERS


def score_to_file(config: ScoreConfig) -> Scored:
    """Score chains and write `config.out`.

    Raises UsageError for an unusable model, run or output, or a calibration of another model; InputError if there is no chain,
    or no calibration in its file; EngineDied, and StoreError.
    """
    out = Path(config.out).expanduser()
    if not is_file(config.out):
        raise UsageError(
            f"out={config.out} must end in {' or '.join(_WRITERS)}; the command `score` also writes folders"
        )
    check_output_file("out", out)
    given = [folder_at(config.run_dir)] if config.run_dir else input_files(config.data.path)
    calibrations = [] if config.calibration is None else [Path(config.calibration).expanduser()]
    refuse_overwriting({"out": out}, [*given, *calibrations])
    scorer_for(config.scorer).fingerprint()  # refuses a model folder that is not there
    return asyncio.run(_scored(ScoreTask(config), out))


async def _scored(task: ScoreTask, out: Path) -> Scored:
    """In this process, which may use all of its cores."""
    scoring, left_out = task.work(Surroundings(cpus=len(os.sched_getaffinity(0)))), LeftOutRows()
    counted = steps = 0
    unscored: Counter[str] = Counter()
    try:
        _, capacity = await scoring.load()
        with _WRITERS[out.suffix](out, scoring.table.schema) as write:
            for block in _blocks(task.chains(left_out), capacity):
                scored = await score_chains(scoring.engine, chain_texts(block))
                write(scoring.rows(block, scored))
                counted += len(scored)
                steps += sum(score is not None for each in scored for score in each.scores)
                unscored.update(each.fault for each in scored if each.fault)
            task.refuse_none(counted, left_out)
    finally:
        await scoring.close()
    return Scored(chains=counted, steps=steps, unscored=unscored, left_out=left_out)


def _blocks(tables: Iterable[pa.Table], size: int) -> Iterator[pa.Table]:
    """The same rows in tables of `size` rows, but for the last."""
    waiting: list[pa.Table] = []
    for table in tables:
        waiting.append(table)
        while sum(each.num_rows for each in waiting) >= size:
            together = pa.concat_tables(waiting)
            yield together.slice(0, size)
            waiting = [together.slice(size)]
    if any(each.num_rows for each in waiting):
        yield pa.concat_tables(waiting)


@contextmanager
def _parquet(out: Path, schema: pa.Schema) -> Iterator[Write]:
    with atomic_file(out) as file, pq.ParquetWriter(file, schema, compression="zstd") as writer:
        yield writer.write_table


@contextmanager
def _jsonl(out: Path, _schema: pa.Schema) -> Iterator[Write]:
    with atomic_file(out) as file:

        def write(table: pa.Table) -> None:
            for row in table.to_pylist():
                file.write(json.dumps(row, ensure_ascii=False).encode() + b"\n")

        yield write


_WRITERS = {".parquet": _parquet, ".jsonl": _jsonl}
