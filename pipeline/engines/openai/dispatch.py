"""Sends requests to servers until each is answered, refused or given up. It knows nothing of what they ask.

A failed request is sent again (`wire.ErrorKind` classifies failures), to another server if there is one. A server that fails
gets no requests until it serves again. The dispatcher is dead when no server has answered for too long.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Generic, Protocol, TypeVar

from pipeline.core.errors import EngineDied, PolicyError
from pipeline.engines.openai.http import Http
from pipeline.engines.openai.queues import Queues
from pipeline.engines.openai.wire import BadAnswer, ErrorKind, ServerError, pause
from pipeline.engines.settings import OpenAiConfig

LOOK_SECONDS = 0.05
"""Interval of checks while requests wait and no other event would send them."""


class Job(Protocol):
    """One HTTP request, sent until it is done. `failures`: how often it has failed; the dispatcher counts."""

    failures: int

    @property
    def home(self) -> str:
        """Jobs with the same home go to one server, whose cache then holds what they have in common."""
        ...

    @property
    def name(self) -> str:
        """What it asks for, for messages."""
        ...

    @property
    def wanted(self) -> int:
        """The number of results that somebody waits for. A job without any is not sent, and is cancelled if it was."""
        ...

    async def attempt(self, at: int, connection: Http) -> bool:
        """Send it once to server `at`. Returns whether it is done; otherwise it is sent again. Raises ServerError, and
        BadAnswer for an answer that is invalid."""
        ...

    def refuse(self, error: ServerError) -> None:
        """The server rejects this request and serves others: it is not sent again."""
        ...

    def give_up(self, error: EngineDied) -> None:
        """It has failed too often, or for a reason that sending it again does not mend."""
        ...


J = TypeVar("J", bound=Job)


class Dispatcher(Generic[J]):
    """See the module. Use one instance in one event loop only.

    `serves`: whether server `at` serves again, as an empty text or what is wrong; it may raise ServerError and PolicyError.
    `changing` is called before and `changed` after jobs are sent or have ended. `died` is called once, with the reason.
    """

    def __init__(
        self,
        servers: OpenAiConfig,
        connection: Http,
        *,
        serves: Callable[[Http, int], Awaitable[str]],
        died: Callable[[str], None],
        changing: Callable[[], None] = lambda: None,
        changed: Callable[[], None] = lambda: None,
    ) -> None:
        self._servers = servers
        self._connection: Http | None = connection
        self._serves = serves
        self._died = died
        self._changing = changing
        self._changed = changed
        self.queues: Queues[J] = Queues(len(servers.urls), servers.connections)
        self._flights: dict[asyncio.Task[None], J] = {}
        self._reviving: set[asyncio.Task[None]] = set()
        self._later: set[asyncio.TimerHandle] = set()
        self._setbacks = [0] * len(servers.urls)
        self._silent_since: float | None = None
        self._last_error = ""
        self.running = 0
        """The number of results in flight, as `Job.wanted` counts them."""
        self.death = ""
        """Why no server is asked any more; empty while they are."""

    def begin_patience(self) -> None:
        """Forget how long the servers have been silent: nobody was waiting."""
        self._silent_since = None

    def add(self, job: J) -> None:
        """Queue a job. `send` sends it."""
        self.queues.add(job, job.home)

    def send(self) -> None:
        """Send the jobs that have a slot, and check whether an answer can still arrive."""
        self._changing()
        while self._connection is not None and (taken := self.queues.take(_now())) is not None:
            at, job = taken
            if wanted := job.wanted:
                flight = asyncio.create_task(self._fly(at, job, self._connection))
                self._flights[flight] = job
                self.running += wanted
                flight.add_done_callback(partial(self._landed, at, wanted))
            else:
                self.queues.release(at)
        self._changed()
        self._check_alive()
        idle = self._connection is not None and not (self._flights or self._later or self._reviving)
        if idle and any(job.wanted for job in self.queues.waiting()):
            # A timer may fire slightly before the end of the rest period for which it was set.
            self._after(LOOK_SECONDS, self.send)

    def cancel_unwanted(self) -> None:
        """Cancel HTTP requests that no caller waits for. The server stops generating when the connection closes."""
        for flight, job in self._flights.items():
            if not job.wanted:
                flight.cancel()

    def leave_out(self, at: int) -> None:
        """Send nothing to a server until it serves again."""
        if self.queues.mark_down(at):
            reviving = asyncio.create_task(self._revive(at))
            self._reviving.add(reviving)
            reviving.add_done_callback(self._reviving.discard)

    async def close(self) -> None:
        """Cancel everything and close the connections. Safe to call twice."""
        connection, self._connection = self._connection, None
        for handle in self._later:
            handle.cancel()
        under_way = [*self._flights, *self._reviving]
        for task in under_way:
            task.cancel()
        await asyncio.gather(*under_way, return_exceptions=True)
        if connection is not None:
            await connection.close()

    def _landed(self, at: int, wanted: int, flight: "asyncio.Task[None]") -> None:
        """Called when a job's request ends. It is a callback because a task that is cancelled before it begins runs no code."""
        del self._flights[flight]
        self.running -= wanted
        self.queues.release(at)
        self.send()

    async def _fly(self, at: int, job: J, connection: Http) -> None:
        try:
            done = await job.attempt(at, connection)
        except BadAnswer as error:
            self._failed(at, job, ServerError(ErrorKind.FAULT, f"{self._servers.urls[at]}: {error}"))
        except ServerError as server_error:
            self._failed(at, job, server_error)
        except Exception as error:  # noqa: BLE001  else the caller would wait forever
            job.give_up(EngineDied(f"{job.name} could not be answered: {type(error).__name__}: {error}"))
        else:
            self._silent_since = None
            self._setbacks[at] = 0
            self.queues.record_answer(at)
            if not done:
                self.queues.add_again(job, job.home, failed_at=at)

    def _failed(self, at: int, job: J, server_error: ServerError) -> None:
        """Decide what happens to a job and to its server after a failed try."""
        now = _now()
        self._last_error = str(server_error)
        if server_error.kind is ErrorKind.REFUSED:
            job.refuse(server_error)
            return
        if self._silent_since is None:
            self._silent_since = now
        if server_error.kind in (ErrorKind.DROPPED, ErrorKind.GONE):
            self.leave_out(at)
        if server_error.kind is ErrorKind.BUSY:
            # Requests that were in flight together with the first rejected one count as one setback.
            self._setbacks[at] += not self.queues.is_resting(at, now)
            seconds = pause(self._setbacks[at], random.random()) if server_error.wait is None else server_error.wait
            self.queues.rest(at, now, seconds)
            self._after(seconds, self.send)
        if server_error.kind in (ErrorKind.BUSY, ErrorKind.GONE):
            self.queues.add_again(job, job.home, failed_at=at)
            return
        job.failures += 1
        section = self._servers.SECTION
        if job.failures > self._servers.retries:
            why = f"{job.name} failed {job.failures} times ({section}.retries), the last time: {server_error}"
            job.give_up(EngineDied(why))
            return
        self._after(pause(job.failures, random.random()), lambda: self._send_again(job, at))

    def _send_again(self, job: J, failed_at: int) -> None:
        self.queues.add_again(job, job.home, failed_at=failed_at)
        self.send()

    async def _revive(self, at: int) -> None:
        while self._connection is not None:
            self._setbacks[at] += 1
            await asyncio.sleep(pause(self._setbacks[at], random.random()))
            try:
                wrong = await self._serves(self._connection, at)
                if not wrong:
                    self.queues.mark_up(at)
                    self.send()
                    return
                self._last_error = wrong
            except (ServerError, PolicyError) as error:
                self._last_error = str(error)
            self._check_alive()

    def _check_alive(self) -> None:
        """Report the death when no server has answered for too long and no answer is expected."""
        now, patience = _now(), self._servers.patience_seconds
        silent = 0.0 if self._silent_since is None else now - self._silent_since
        if self.death or silent < patience or self.queues.in_flight or not self.queues.none_available(now):
            return
        section = self._servers.SECTION
        self.death = (
            f"no server of {section}.urls answered for {patience:g} s ({section}.patience_seconds): {self._last_error}"
        )
        self._died(self.death)

    def _after(self, seconds: float, act: Callable[[], None]) -> None:
        def run() -> None:
            self._later.discard(handle)
            act()

        handle = asyncio.get_running_loop().call_later(seconds, run)
        self._later.add(handle)


def _now() -> float:
    return asyncio.get_running_loop().time()
