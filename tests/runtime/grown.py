"""Starts of `grow` without Ray, and runs of the oracle's tree world for it."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from pipeline.cli.compose import compose
from pipeline.cli.label import GROW
from pipeline.config.grow import GrowConfig
from pipeline.core.errors import EngineDied
from pipeline.core.records import Completion, Request
from pipeline.engines.base import Engine, Surroundings
from pipeline.runtime.grow import Grown, grow, label_part
from pipeline.runtime.labelling import engine_for
from tests.runtime.growing import Row, bare, label, labels
from tests.runtime.in_process import in_process, stop_signal

TREE = (
    *(
        "sampling.store_tokens=true",
        "policy=lab",
        "policy.oracle.world=tree",
        "policy.lab.spread=1.0",
        "policy.lab.branching=5",
    ),
    *("sampling.solutions=3", "sampling.rollouts=4"),
)


def labelled(folder: Path, *overrides: str, rows: Sequence[Row] = ()) -> None:
    """A run of some bare problems of the tree world that can grow, in `folder`/run."""
    label(folder, rows or bare(*range(1, 7)), *TREE, *overrides)


def settings(folder: Path, *overrides: str) -> GrowConfig:
    config = compose(GROW, [f"run_dir={folder / 'run'}", "grow.rollouts=4", "grow.budget_unit=rollouts", *overrides])
    found: GrowConfig = config.settings()
    return found


def grow_here(folder: Path, *overrides: str, engine: Engine | None = None) -> Grown:
    """`grow` but for what it prints."""
    with stop_signal() as stop:
        return grow(settings(folder, *overrides), partial(in_process, engine=engine), lambda _: None, stop)


class DyingEngine:
    """The engine of a run that dies after it has answered some requests."""

    def __init__(self, folder: Path, answers: int) -> None:
        self._engine = engine_for(label_part(settings(folder, "grow.budget=1000")), Surroundings())
        self._left = answers

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    async def generate(
        self, requests: Sequence[Request], *, keep_tokens: bool = False
    ) -> AsyncIterator[Sequence[Completion]]:
        async for batch in self._engine.generate(requests, keep_tokens=keep_tokens):
            for completion in batch:
                if not self._left:
                    raise EngineDied("the engine of this test died")
                self._left -= 1
                await asyncio.sleep(0)
                yield [completion]


class PoisonedEngine(DyingEngine):
    """The engine of a run that dies of one request of a promoted prefix: of the first one that it sees."""

    poison: ClassVar[list[str]] = []
    """Id of that request; shared by all engines of a test, which empties it."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, 10**9)
        self._known = set(labels(folder)["prefix_ids"].explode()) | set(labels(folder)["root_prefix_id"])

    async def generate(
        self, requests: Sequence[Request], *, keep_tokens: bool = False
    ) -> AsyncIterator[Sequence[Completion]]:
        fresh = [request.request_id for request in requests if request.prefix.prefix_id not in self._known]
        self.poison.extend(fresh[:1] if not self.poison else [])
        if {*self.poison} & {request.request_id for request in requests}:
            raise EngineDied("the engine of this test died of a request")
        async for batch in super().generate(requests, keep_tokens=keep_tokens):
            yield batch
