"""Reads scores, as `score` writes them, for the commands that compare scores: a file, a run of `score`, or a folder of files.

Not covered: what the scores mean. Who reads them checks their range.
"""

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from pipeline.config.recorded_settings import RUN_RECORD
from pipeline.core.errors import InputError
from pipeline.core.records import FAILED, TOO_LONG, UNREADABLE, Tally
from pipeline.core.tables import CALIBRATED_SCORES, SCORES
from pipeline.storage.location import storage_at
from pipeline.storage.run_record import SCORE
from pipeline.storage.shards import intact_bytes
from pipeline.storage.stored_run import StoredTask, stored_task

JSONL, PARQUET = ".jsonl", ".parquet"
_REMEDY = "name a file that `python -m pipeline score` has written"
_NAMES = ("chain_id", "problem_id")
_TYPES = pl.DataFrame(CALIBRATED_SCORES.schema.empty_table()).schema


def score_files(key: str, path: Path) -> list[Path]:
    """The file that the setting `key` names; the files of a run of `score` in the folder; or else the files of scores in the
    folder, sorted by name. Raises InputError if there is none, UsageError for an unfinished run, and StoreError for a damaged
    one."""
    if not path.is_dir():
        return [path]
    if (path / RUN_RECORD).exists():
        run = stored_task(storage_at(str(path)), SCORE, StoredTask)
        for shard in run.shards(SCORES):
            intact_bytes(run.storage, shard)
        return [path / shard.file for shard in run.shards(SCORES)]
    files = sorted(file for file in path.iterdir() if file.suffix.lower() in (JSONL, PARQUET) and file.name[0] != ".")
    if not files:
        raise InputError(f"{key}={path}: the folder holds no file that ends in {PARQUET} or {JSONL}; {_REMEDY}")
    return files


def read_score_file(key: str, path: Path, columns: Sequence[str], optional: Sequence[str] = ()) -> pl.DataFrame:
    """The `columns` of a Parquet or JSONL file in the types of `tables.CALIBRATED_SCORES`, and the `optional` ones, null
    where the file lacks them. Raises InputError for another file."""
    if not path.is_file():
        raise InputError(f"{key}={path}: there is no such file; {_REMEDY}")
    jsonl = path.suffix.lower() == JSONL
    try:
        frame = pl.read_ndjson(path, infer_schema_length=None) if jsonl else pl.read_parquet(path)
    except (pl.exceptions.PolarsError, OSError) as error:
        reason = (_no_number(path) if jsonl else None) or str(error).splitlines()[0]
        raise InputError(f"{key}={path} is not {'JSON lines' if jsonl else 'Parquet'} ({reason}); {_REMEDY}") from error
    if missing := [name for name in columns if name not in frame.columns]:
        raise InputError(f"{key}={path} has no column {', '.join(missing)}; {_REMEDY}")
    if not frame.height:
        raise InputError(f"{key}={path} has no rows; {_REMEDY}")
    absent = [pl.lit(None).alias(name) for name in optional if name not in frame.columns]
    frame = frame.with_columns(absent).select(*columns, *optional)
    for name in frame.columns:
        try:
            frame = frame.with_columns(pl.col(name).cast(_TYPES[name]))
        except pl.exceptions.PolarsError as error:
            held = frame.schema[name]
            raise InputError(f"{key}={path}: column {name} holds {held}, not {_TYPES[name]}; {_REMEDY}") from error
    if nameless := [name for name in _NAMES if name in columns and frame[name].null_count()]:
        raise InputError(f"{key}={path}: {', '.join(nameless)} is empty in some rows; {_REMEDY}")
    return frame


def read_scores_of(key: str, path: Path, columns: Sequence[str]) -> pl.DataFrame:
    """`read_score_file` of all files of `score_files`, one below the other. Raises as they do."""
    return pl.concat([read_score_file(key, file, columns) for file in score_files(key, path)])


def _no_number(path: Path) -> str | None:
    """The first line with a number that JSON does not have, which Python writes as NaN or Infinity."""
    found: list[str] = []
    with path.open("rb") as lines:
        for number, line in enumerate(lines, start=1):
            try:
                json.loads(line, parse_constant=found.append)
            except ValueError:
                return None
            if found:
                return f"line {number} holds {found[0]}, which is no number"
    return None


def score_tally(scores: pa.Table) -> Tally:
    """The counts of scores: `chains`, `steps` with a score, `tokens`; `too_long`, `unreadable` and `engine_failed` are chains
    without all of their scores, by reason."""
    faults = Counter(scores["fault"].to_pylist())
    return Tally(
        chains=scores.num_rows,
        steps=pc.sum(scores["n_scored"]).as_py() or 0,
        tokens=pc.sum(scores["n_tokens"]).as_py() or 0,
        too_long=faults[TOO_LONG],
        unreadable=faults[UNREADABLE],
        engine_failed=faults[FAILED],
    )
