"""Assigns requests to servers. Pure: the time is an argument.

All requests of a problem go to one server, whose cache then holds the problem's prefixes. A new problem goes to the server with
the fewest requests. A server with a free slot and an empty queue takes from the end of the longest other queue, so no server is
idle while a request waits. A server that is down or rests gets nothing. The queue of a server that is down moves to others.

When a server reports that it is busy, its number of slots is halved. Each answer from it adds one slot again.
"""

from collections import OrderedDict, deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Generic, TypeVar

REMEMBERED_PROBLEMS = 65_536

T = TypeVar("T")


@dataclass(slots=True)
class _Server(Generic[T]):
    slots: int
    queue: deque[tuple[T, str]] = field(default_factory=deque)
    in_flight: int = 0
    down: bool = False
    rests_until: float = 0.0

    def available(self, now: float) -> bool:
        return not self.down and self.rests_until <= now


class Queues(Generic[T]):
    """Requests for `servers` servers. Each server runs at most `slots` of them at once."""

    def __init__(self, servers: int, slots: int) -> None:
        self._slots = slots
        self._servers: list[_Server[T]] = [_Server(slots=slots) for _ in range(servers)]
        self._homes: OrderedDict[str, int] = OrderedDict()

    @property
    def in_flight(self) -> int:
        return sum(server.in_flight for server in self._servers)

    def waiting(self) -> Iterator[T]:
        """The requests that no server has yet."""
        return (item for server in self._servers for item, _ in server.queue)

    def add(self, item: T, problem_id: str) -> None:
        """Append a request to the queue of its problem's server."""
        self._servers[self._home(problem_id)].queue.append((item, problem_id))

    def add_again(self, item: T, problem_id: str, *, failed_at: int) -> None:
        """Put a failed request at the front of a queue: that of another server that is up, if there is one."""
        others = [at for at in range(len(self._servers)) if at != failed_at and not self._servers[at].down]
        at = min(others, key=self._burden, default=failed_at)
        self._servers[at].queue.appendleft((item, problem_id))

    def take(self, now: float) -> tuple[int, T] | None:
        """The next server and request to send to it. None where no server has a free slot or no request waits."""
        free = [at for at, each in enumerate(self._servers) if each.available(now) and each.in_flight < each.slots]
        for at in sorted(free, key=lambda at: (not self._servers[at].queue, self._burden(at))):
            server = self._servers[at]
            longest = max(self._servers, key=lambda each: len(each.queue))
            if server.queue:
                item, _ = server.queue.popleft()
            elif longest.queue:
                item, _ = longest.queue.pop()
            else:
                return None
            server.in_flight += 1
            return at, item
        return None

    def release(self, at: int) -> None:
        """Record that a request taken for this server is no longer in flight."""
        self._servers[at].in_flight -= 1

    def record_answer(self, at: int) -> None:
        """Record an answer of this server."""
        server = self._servers[at]
        server.slots = min(self._slots, server.slots + 1)

    def rest(self, at: int, now: float, seconds: float) -> None:
        """Send nothing to this server for `seconds`."""
        server = self._servers[at]
        if server.rests_until <= now:
            server.slots = max(1, server.slots // 2)
        server.rests_until = max(server.rests_until, now + seconds)

    def is_resting(self, at: int, now: float) -> bool:
        return self._servers[at].rests_until > now

    def mark_down(self, at: int) -> bool:
        """Send nothing to this server until `mark_up`. Returns whether it was up."""
        was_up = not self._servers[at].down
        self._servers[at].down = True
        self._move_from_down()
        return was_up

    def mark_up(self, at: int) -> None:
        self._servers[at].down = False
        self._move_from_down()

    def none_available(self, now: float) -> bool:
        """Whether every server is down or resting."""
        return not any(server.available(now) for server in self._servers)

    def _move_from_down(self) -> None:
        if all(server.down for server in self._servers):
            return
        for server in self._servers:
            if server.down:
                waiting, server.queue = server.queue, deque()
                for item, problem_id in waiting:
                    self.add(item, problem_id)

    def _home(self, problem_id: str) -> int:
        at = self._homes.pop(problem_id, None)
        if at is None or self._servers[at].down:
            up = [other for other in range(len(self._servers)) if not self._servers[other].down]
            at = min(up or range(len(self._servers)), key=self._burden)
        self._homes[problem_id] = at
        if len(self._homes) > REMEMBERED_PROBLEMS:
            self._homes.popitem(last=False)
        return at

    def _burden(self, at: int) -> int:
        return self._servers[at].in_flight + len(self._servers[at].queue)
