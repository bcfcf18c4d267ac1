"""Runs of `search` with oracles of the tree world, in the process of the test."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pipeline.cli.compose import compose
from pipeline.cli.search import SEARCH
from pipeline.config.search import SearchRunConfig
from pipeline.core.progress import Summary
from pipeline.runtime.searching.task import SearchTask
from tests.conftest import write_rows
from tests.runtime.in_process import done_here

Row = dict[str, Any]
ORACLES = ("policy=lab", "policy.oracle.world=tree", "scorer=lab", "scorer.oracle.world=tree", "scorer.oracle.auc=0.7")
"""A policy, and a scorer of the same world that is often wrong."""


def sums(count: int, *, known: bool = True) -> list[Row]:
    """Problems, with their answers if `known`."""
    return [
        {"id": f"sum-{n}", "problem": f"What is {n} + {n}?", **({"answer": str(2 * n)} if known else {})}
        for n in range(1, count + 1)
    ]


def settings(folder: Path, rows: Sequence[Row], *overrides: str) -> SearchRunConfig:
    """The settings of a search of `rows` in `folder`/run."""
    data = write_rows(folder / "rows.jsonl", list(rows))
    config = compose(SEARCH, [f"data.path={data}", f"run_dir={folder / 'run'}", *ORACLES, *overrides]).settings()
    assert isinstance(config, SearchRunConfig)
    return config


def searched(config: SearchRunConfig) -> Summary:
    return done_here(SearchTask(config), run=asyncio.run)


def search_in(folder: Path, rows: Sequence[Row], *overrides: str) -> Path:
    folder.mkdir(exist_ok=True)
    searched(settings(folder, rows, *overrides))
    return folder / "run"
