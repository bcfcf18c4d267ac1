"""Scores chains in this process and writes them to one file, as a whole or not at all: `score out=FILE`."""

import asyncio
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from pipeline.config.score import ScoreConfig
from pipeline.core.errors import InputError
from pipeline.core.schemas import SCORES
from pipeline.data.rows import input_files
from pipeline.engines.base import Surroundings
from pipeline.runtime.scoring.chains import GivenChain, LeftOutRows, given_chains
from pipeline.runtime.scoring.tables import scores_table
from pipeline.runtime.scoring.work import score_chains
from pipeline.scorers.base import ScoringEngine
from pipeline.scorers.registry import open_scorer
from pipeline.storage.location import folder_at
from pipeline.storage.outputs import atomic_file, check_output_file, refuse_overwriting

Write = Callable[[pa.Table], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scored:
    """Counts of a scoring. `unscored`: chains with a step without a score, by reason. `left_out`: rows without a usable
    chain."""

    chains: int
    steps: int
    unscored: dict[str, int]
    left_out: LeftOutRows


def is_file(out: str) -> bool:
    """Whether `out` names a file of scores; else it names a folder."""
    return Path(out).suffix in _WRITERS


def score_to_file(config: ScoreConfig) -> Scored:
    """Score chains and write `config.out`.

    Raises UsageError for an unusable model, run or output, InputError if there is no chain, EngineDied, and StoreError.
    """
    out = Path(config.out).expanduser()
    check_output_file("out", out)
    refuse_overwriting({"out": out}, [folder_at(config.run_dir)] if config.run_dir else input_files(config.data.path))
    return asyncio.run(_scored(config, out, open_scorer(config.scorer, Surroundings())))


async def _scored(config: ScoreConfig, out: Path, engine: ScoringEngine) -> Scored:
    left_out = LeftOutRows()
    chains = given_chains(config, left_out)
    counted = steps = 0
    unscored: dict[str, int] = {}
    try:
        await engine.start()
        with _WRITERS[out.suffix](out) as write:
            while block := list(islice(chains, engine.capacity)):
                scored = await score_chains(engine, [chain.text for chain in block])
                write(scores_table(_columns(block), scored, aggregation=config.aggregation, model=engine.model))
                counted += len(block)
                steps += sum(score is not None for each in scored for score in each.scores)
                for each in scored:
                    if each.fault:
                        unscored[each.fault] = unscored.get(each.fault, 0) + 1
            if not counted:
                first = f"; the first of {left_out.rows:,} rows: {left_out.first}" if left_out.rows else ""
                raise InputError(f"{config.run_dir or config.data.path} holds no chain to score{first}")
    finally:
        await engine.close()
    return Scored(chains=counted, steps=steps, unscored=unscored, left_out=left_out)


def _columns(chains: list[GivenChain]) -> dict[str, list[object]]:
    rows = [asdict(chain) for chain in chains]
    return {name: [row[name] for row in rows] for name in rows[0]}


@contextmanager
def _parquet(out: Path) -> Iterator[Write]:
    with atomic_file(out) as file, pq.ParquetWriter(file, SCORES, compression="zstd") as writer:
        yield writer.write_table


@contextmanager
def _jsonl(out: Path) -> Iterator[Write]:
    with atomic_file(out) as file:

        def write(table: pa.Table) -> None:
            for row in table.to_pylist():
                file.write(json.dumps(row, ensure_ascii=False).encode() + b"\n")

        yield write


_WRITERS = {".parquet": _parquet, ".jsonl": _jsonl}
