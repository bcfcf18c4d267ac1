"""Workers of a schedule: the real `Worker` on a fake disk, with the oracle whose texts tell who wrote them, and their fates."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from pathlib import Path
from typing import Any, TypeVar

from pipeline.config.fields import as_type
from pipeline.config.label import LabelConfig
from pipeline.core.errors import EngineDied, WorkerLost
from pipeline.core.progress import EngineWork
from pipeline.core.records import Completion, Request
from pipeline.engines.oracle import OracleEngine, OraclePolicyConfig
from pipeline.runtime.worker import Receipt, UnitTask
from pipeline.runtime.worker_handle import WorkerLocation
from pipeline.storage.local import LocalStorage
from tests.faults.disk import Killed
from tests.faults.world import Process
from tests.runtime.in_process import worker_with

_Result = TypeVar("_Result")

RUN_DIR = Path("/run")
CHUNK = 4
"""Completions that come at once, at most."""
CHUNK_SECONDS = 0.6
START_SECONDS = 1.0


class Misdeed(Enum):
    """What an engine does instead of answering."""

    DIES = "dies"
    HANGS = "hangs"
    LEAVES_ONE_OUT = "leaves one out"
    ANSWERS_TWICE = "answers twice"
    ANSWERS_ANOTHER = "answers another"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fate:
    """What befalls a worker, in seconds after it was hired; None: never.

    `severed`: its driver believes it dead (or its machine gone: `lost`), but it lives on. `deaf`: how long it survives its
    killing. `doubled`: each call reaches it twice. `misdeed` comes after this number of completions.
    """

    killed: float | None = None
    severed: float | None = None
    lost: bool = False
    frozen: float | None = None
    frozen_for: float = 0.0
    deaf: float = 0.0
    doubled: bool = False
    never_starts: bool = False
    misdeed: Misdeed | None = None
    after: int = 0


@dataclass(slots=True)
class Answers:
    """All that engines ever answered, and which requests they do not survive or were under suspicion for."""

    poison: frozenset[str] = frozenset()
    given: set[tuple[str, str]] = field(default_factory=set)
    suspected: set[str] = field(default_factory=set)


class SignedEngine:
    """The oracle, but every text names the process that it comes from: same verdict, other row. Implements `Engine`."""

    def __init__(self, config: LabelConfig, process: Process, fate: Fate, answers: Answers) -> None:
        self._oracle = OracleEngine(as_type(config.policy, OraclePolicyConfig))
        self._process = process
        self._fate = fate
        self._answers = answers
        self._dead = False
        self._finished = 0
        self.tokenizer = self._oracle.tokenizer
        self.hardware = self._oracle.hardware
        self.max_model_len = self._oracle.max_model_len
        self.policy = self._oracle.policy
        self.load = self._oracle.load
        self.capacity = CHUNK
        self.work = EngineWork()

    async def start(self) -> None:
        await self._process.sleep(1e9 if self._fate.never_starts else START_SECONDS)

    async def generate(
        self, requests: Sequence[Request], *, keep_tokens: bool = False
    ) -> AsyncIterator[Sequence[Completion]]:
        rest = list(requests)
        while rest:
            await self._process.sleep(self._process.rng.random() * CHUNK_SECONDS)
            size = self._process.rng.randint(1, CHUNK)
            chunk, rest = rest[:size], rest[size:]
            if self._dead or any(request.request_id in self._answers.poison for request in chunk):
                self._dead = True
                raise EngineDied("the engine of a schedule is dead")
            async for batch in self._oracle.generate(chunk, keep_tokens=keep_tokens):
                signed = [self._signed(completion, keep_tokens=keep_tokens) for completion in batch]
                if self._fate.misdeed and self._finished >= self._fate.after:
                    signed = await self._misled(signed)
                self._finished += len(signed)
                self.work += EngineWork(generated=sum(completion.n_tokens for completion in signed))
                yield signed

    def abort(self, request_ids: Iterable[str]) -> None:
        self._oracle.abort(request_ids)

    async def close(self) -> None:
        return

    def _signed(self, completion: Completion, *, keep_tokens: bool) -> Completion:
        text = completion.text.replace("the work", f"the work of {self._process.name}")
        self._answers.given.add((completion.request.request_id, text))
        ids = tuple(self.tokenizer.encode(text)) if keep_tokens else ()
        return replace(completion, text=text, token_ids=ids)

    async def _misled(self, answers: list[Completion]) -> list[Completion]:
        first = answers[0]
        match self._fate.misdeed:
            case Misdeed.DIES:
                self._dead = True
                raise EngineDied("the engine of a schedule dies")
            case Misdeed.HANGS:
                await self._process.world.loop.create_future()
            case Misdeed.ANSWERS_TWICE:
                return [*answers, first]
            case Misdeed.ANSWERS_ANOTHER:
                return [*answers[1:], replace(first, request=replace(first.request, request_id="another"))]
        return answers[1:]


class SignedWorker:
    """A worker as its driver sees it; implements `worker_handle.WorkerHandle`."""

    def __init__(
        self,
        config: LabelConfig,
        driver: Process,
        name: str,
        fate: Fate,
        answers: Answers,
        on_receipt: Callable[[], None],
    ) -> None:
        self._driver = driver
        self._on_receipt = on_receipt
        self._fate = fate
        self._answers = answers
        self._process = driver.world.process(name)
        driver.children.append(self._process)
        engine = SignedEngine(config, self._process, fate, answers)
        self._worker = worker_with(config, engine, LocalStorage(RUN_DIR, self._process.disk))
        loop = driver.world.loop
        self._severed: asyncio.Future[None] = loop.create_future()
        if fate.killed is not None:
            loop.call_later(fate.killed, self._process.kill)
        if fate.severed is not None:
            loop.call_later(fate.severed, self._sever)
        if fate.frozen is not None:
            loop.call_later(fate.frozen, self._freeze)

    async def location(self) -> WorkerLocation:
        return WorkerLocation()

    def __getattr__(self, name: str) -> Any:
        """All else the worker does."""
        return lambda *arguments: self._called(getattr(self._worker, name)(*arguments))

    async def finish_unit(self, task: UnitTask) -> Receipt:
        if self._fate.doubled:
            self._process.spawn(self._worker.finish_unit(task))
        try:
            receipt = await self._called(self._worker.finish_unit(task))
            self._on_receipt()
            return receipt
        except WorkerLost:
            raise
        except (EngineDied, asyncio.CancelledError):
            self._answers.suspected |= task.probe.only if task.probe else frozenset()
            raise

    def kill(self) -> None:
        if self._driver.alive:
            self._driver.world.loop.call_later(self._fate.deaf, self._process.kill)

    async def _called(self, work: Coroutine[Any, Any, _Result]) -> _Result:
        """What a call comes to for the driver. The worker goes on with it when the driver does not wait any more."""
        if not self._in_touch():
            work.close()
            raise self._gone()
        task = self._process.spawn(work)
        ends: list[asyncio.Future[Any]] = [task, self._process.died, self._severed]
        await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        if not self._in_touch():
            raise self._gone()
        return task.result()

    def _gone(self) -> BaseException:
        if not self._driver.alive:
            return Killed(self._driver.name)
        return (WorkerLost if self._fate.lost else EngineDied)("a worker of a schedule is gone")

    def _in_touch(self) -> bool:
        return self._driver.alive and self._process.alive and not self._severed.done()

    def _sever(self) -> None:
        if not self._severed.done():
            self._severed.set_result(None)

    def _freeze(self) -> None:
        self._process.frozen_until = self._process.world.loop.time() + self._fate.frozen_for
