"""An event loop whose time is virtual and whose threads take turns: a schedule is decided by its seed alone.

When nothing is ready the clock jumps to the next timer, so waiting costs nothing; when there is no timer either, the
programme is deadlocked, which raises. What `asyncio.to_thread` runs lies on a real thread, but exactly one thread has the
baton: `pause` gives it back to the loop, which returns it after a virtual delay. Nothing here covers sockets or signals.
"""

import asyncio
import threading
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

_Result = TypeVar("_Result")


class Deadlock(Exception):
    """Everybody waits, and nobody will ever be woken."""


class VirtualLoop(asyncio.BaseEventLoop):
    """See the module. `advance` is what a clock does that jumps. After `max_turns` of the loop `overrun` is called."""

    def __init__(self, max_turns: int | None = None, overrun: Callable[[], None] = lambda: None) -> None:
        super().__init__()
        self._turns_left = max_turns
        self._overrun = overrun
        self._virtual_time = 0.0
        self._selector = _Selector(self)
        self.threads_under_way = 0

    def time(self) -> float:
        return self._virtual_time

    def advance(self, seconds: float) -> None:
        self._virtual_time += seconds

    def run_in_executor(  # type: ignore[override]  # the loop's own future, as every other loop returns
        self, executor: object, work: Callable[..., _Result], *arguments: Any
    ) -> "asyncio.Future[_Result]":
        future: asyncio.Future[_Result] = self.create_future()
        runner = _idle.pop() if _idle else _Runner()
        self.threads_under_way += 1
        self.call_soon(runner.begin, self, future, work, arguments)
        return future

    def count_turn(self) -> None:
        if self._turns_left is not None:
            self._turns_left -= 1
            if self._turns_left == 0:
                self._overrun()

    def _process_events(self, event_list: Sequence[object]) -> None:
        return

    def _write_to_self(self) -> None:
        return


def pause(seconds: float) -> None:
    """Called on a thread of a `VirtualLoop`: let the others go on for so long. Elsewhere it does nothing."""
    runner: _Runner | None = getattr(_here, "runner", None)
    if runner is not None:
        runner.loop.call_later(seconds, runner.resume)
        runner.give_back()


def finished(task: "asyncio.Task[_Result]") -> _Result:
    """Called on a thread of a `VirtualLoop`: what a task of that loop comes to; the others go on meanwhile."""
    runner: _Runner = _here.runner
    task.add_done_callback(lambda _: runner.resume())
    runner.give_back()
    return task.result()


class _Selector:
    """In the place of the one that waits for sockets."""

    def __init__(self, loop: VirtualLoop) -> None:
        self._loop = loop

    def select(self, timeout: float | None) -> list[object]:
        if timeout is None:
            raise Deadlock(f"nothing is left to wait for at {self._loop.time():.3f} s")
        self._loop.advance(timeout)
        self._loop.count_turn()
        return []


class _Runner:
    """A thread that goes on only while it has the baton. It is used again, because starting one takes long."""

    loop: VirtualLoop

    def __init__(self) -> None:
        self._go, self._back = threading.Lock(), threading.Lock()
        self._go.acquire()
        self._back.acquire()
        self._work: Callable[[], None] | None = None
        threading.Thread(target=self._live, daemon=True).start()

    def begin(
        self, loop: VirtualLoop, future: "asyncio.Future[Any]", work: Callable[..., object], arguments: Sequence[object]
    ) -> None:
        self.loop = loop
        self._work = lambda: _settle(future, work, arguments)
        self.resume()

    def resume(self) -> None:
        """On the loop: pass the baton on, and wait for it."""
        self._go.release()
        self._back.acquire()
        if self._work is None:
            self.loop.threads_under_way -= 1
            _idle.append(self)

    def give_back(self) -> None:
        """On the thread: give the baton to the loop, and wait for it."""
        self._back.release()
        self._go.acquire()

    def _live(self) -> None:
        _here.runner = self
        while True:
            self._go.acquire()
            assert self._work is not None
            self._work()
            self._work = None
            self._back.release()


def _settle(future: "asyncio.Future[Any]", work: Callable[..., object], arguments: Sequence[object]) -> None:
    try:
        result = work(*arguments)
    except BaseException as error:  # noqa: BLE001  # whatever ends the thread belongs to who waits for it
        if not future.done():
            future.set_exception(error)
    else:
        if not future.done():
            future.set_result(result)


_here = threading.local()
_idle: list[_Runner] = []
