"""Reads the stored critiques of a judge again: for `audit`, which compares, and for `regrade`, which writes what has changed.

Only this module of `analysis` knows judges. It asks none of them for a critique.
"""

from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa

from pipeline.config.judge import JudgeConfig
from pipeline.config.recorded_settings import Settings, chosen_settings
from pipeline.core.records import Finish, Reading
from pipeline.core.tables import turns_of
from pipeline.judges.base import read_critique
from pipeline.judges.registry import JUDGES, judge_for

Reader = Callable[[pa.Table, Mapping[int, int]], list[Reading]]
"""Reads critiques, given the number of steps of each chain by row."""


def reader_of(settings: Settings) -> Reader:
    """What reads the critiques of the judge with these recorded settings.

    Raises UsageError for a judge that is not installed here as it was, and ValueError for invalid settings.
    """
    judge = judge_for(chosen_settings(settings, JudgeConfig, JUDGES))

    def read(critiques: pa.Table, steps: Mapping[int, int]) -> list[Reading]:
        columns: list[list[Any]] = [critiques[name].to_pylist() for name in ("row", "text", "turn_ends", "finish")]
        return [
            read_critique(judge, turns_of(text, ends), Finish(finish), steps[row])
            for row, text, ends, finish in zip(*columns, strict=True)
        ]

    return read


def steps_of(chains: pa.Table) -> dict[int, int]:
    """Row -> the number of steps of the chain."""
    rows: list[Any] = chains["row"].to_pylist()
    steps: list[Any] = chains["steps"].to_pylist()
    return {row: len(each) for row, each in zip(rows, steps, strict=True)}
