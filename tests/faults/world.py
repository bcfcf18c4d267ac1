"""The machine that a schedule is played on: a disk, a clock, and processes that take turns effect by effect."""

import asyncio
from collections.abc import Coroutine
from random import Random
from typing import Any, TypeVar

from pipeline.core.errors import StepvalueError
from tests.faults.disk import FakeDisk, Killed, ProcessDisk, Strike
from tests.faults.loop import VirtualLoop, finished, pause

_Result = TypeVar("_Result")

MAX_EFFECTS = 6_000
"""Of a schedule, ten times what the longest takes: then it is no progress any more."""
MAX_TURNS = 60_000
ORPHAN_SECONDS = 20.0
"""How long the workers of a dead driver live on at most."""


class World:
    """`strikes` befall effects by their number, counted over all processes from 1. `violations` is what should never be."""

    def __init__(self, seed: object, disk: FakeDisk, *, turns: float = 1.0, disk_seconds: float = 0.02) -> None:
        self.rng = Random(repr(seed))
        self.loop = VirtualLoop(MAX_TURNS, self.give_up)
        self.loop.set_exception_handler(self._notice)
        self.disk = disk
        self.turns = turns
        self.disk_seconds = disk_seconds
        self.effects = 0
        self.strikes: dict[int, Strike] = {}
        self.processes: list[Process] = []
        self.violations: list[str] = []
        self.trace: list[str] = []
        self.overrun = False

    def process(self, name: str) -> "Process":
        self.processes.append(Process(self, name))
        if self.overrun:
            self.processes[-1].kill()
        return self.processes[-1]

    def struck(self, process: "Process", verb: str, path: str) -> Strike | None:
        self.effects += 1
        if self.effects >= MAX_EFFECTS:
            self.give_up()
            raise Killed(process.name)
        self.trace.append(f"{self.loop.time():.3f} {process.name} {verb} {_without_chance(path)}")
        strike = self.strikes.pop(self.effects, None)
        if strike is Strike.LIE and verb != "write":
            self.strikes[self.effects + 1] = strike
            return None
        if strike is not None:
            self.trace.append(f"  {strike.name}")
        return strike

    def give_up(self) -> None:
        """End a schedule that makes no progress."""
        if not self.overrun:
            self.violations.append("the run goes on without end")
        self.overrun = True
        for process in self.processes:
            process.kill()

    def power_cut(self) -> None:
        for process in self.processes:
            process.kill()
        self.disk.power_cut(self.rng)

    def run(self, work: Coroutine[Any, Any, _Result]) -> _Result:
        """Everything that happens: `work`, then the death of every process that is left."""
        loop = self.loop
        try:
            return loop.run_until_complete(work)
        finally:
            for process in self.processes:
                process.kill()
            while loop.threads_under_way or asyncio.all_tasks(loop):
                for task in asyncio.all_tasks(loop):
                    task.cancel()
                loop.run_until_complete(asyncio.sleep(self.disk_seconds))
            loop.run_until_complete(loop.shutdown_asyncgens())
            loop.close()

    def _notice(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Of errors that nobody waits for, those of the dead and those that a user can meet are no fault."""
        error = context.get("exception")
        if isinstance(error, Exception) and not isinstance(error, StepvalueError):
            self.violations.append(f"an error that nobody saw: {error!r}")


class Process:
    """A driver or a worker; implements `disk.Gate`. It may be frozen, and killed."""

    def __init__(self, world: World, name: str) -> None:
        self.world = world
        self.name = name
        self.rng = world.rng
        self.alive = True
        self.frozen_until = 0.0
        self.children: list[Process] = []
        self.died: asyncio.Future[None] = world.loop.create_future()
        self.disk = ProcessDisk(world.disk, self)
        self._tasks: set[asyncio.Task[Any]] = set()

    def enter(self, verb: str, path: str) -> Strike | None:
        world = self.world
        self._must_live()
        if self.rng.random() < world.turns:
            pause(self.rng.random() * world.disk_seconds)
        while self.alive and self.frozen_until > world.loop.time():
            pause(self.frozen_until - world.loop.time())
        self._must_live()
        return world.struck(self, verb, path)

    def die(self, strike: Strike) -> None:
        if strike is Strike.POWER_CUT:
            self.world.power_cut()
        self.kill()
        self._must_live()

    async def sleep(self, seconds: float) -> None:
        loop = self.world.loop
        await asyncio.sleep(seconds)
        while self.frozen_until > loop.time():
            await asyncio.sleep(self.frozen_until - loop.time())
        self._must_live()

    def spawn(self, work: Coroutine[Any, Any, _Result]) -> "asyncio.Task[_Result]":
        task = self.world.loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        if not self.alive:
            task.cancel()
        return task

    def run(self, work: Coroutine[Any, Any, None]) -> None:
        """`asyncio.run` on a thread of this process."""
        finished(self.spawn(work))

    def kill(self) -> None:
        if not self.alive:
            return
        self.alive = False
        self.world.trace.append(f"  {self.name} dies")
        for task in self._tasks:
            task.cancel()
        if not self.died.done():
            self.died.set_result(None)
        for child in self.children:
            self.world.loop.call_later(self.rng.random() * ORPHAN_SECONDS, child.kill)

    def _must_live(self) -> None:
        if not self.alive:
            raise Killed(self.name)


def _without_chance(path: str) -> str:
    """The path without the random part of a temporary name."""
    folder, _, name = path.rpartition("/")
    return f"{folder}/{name.rpartition('.')[0].rpartition('.')[0]}" if name.startswith(".") else path
