"""Which request goes to which server next. Pure: the time is an argument.

All requests of a problem go to one server, which then holds its prefixes in its cache; a problem that comes first goes to the
server that has least to do. A server with room and an empty queue takes from the end of the longest other queue, so that none
is idle while something waits. One that is down or rests gets nothing, and what waited for one that is down goes to others.

A server that says it is busy has its room halved, and one more place with every answer.
"""

from collections import OrderedDict, deque
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
    """Requests for `servers` servers, each of which takes at most `slots` at once."""

    def __init__(self, servers: int, slots: int) -> None:
        self._slots = slots
        self._servers: list[_Server[T]] = [_Server(slots=slots) for _ in range(servers)]
        self._homes: OrderedDict[str, int] = OrderedDict()

    @property
    def in_flight(self) -> int:
        return sum(server.in_flight for server in self._servers)

    def add(self, item: T, problem_id: str) -> None:
        """Put a request behind the others of its problem's server."""
        self._servers[self._home(problem_id)].queue.append((item, problem_id))

    def add_again(self, item: T, problem_id: str, *, failed_at: int) -> None:
        """Put a request that failed in front: of another server that is up, if there is one."""
        others = [at for at in range(len(self._servers)) if at != failed_at and not self._servers[at].down]
        at = min(others, key=self._burden, default=failed_at)
        self._servers[at].queue.appendleft((item, problem_id))

    def take(self, now: float) -> tuple[int, T] | None:
        """The next request to send, and where; None where no server has room or nothing waits for one that has."""
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

    def ended(self, at: int) -> None:
        """A request that was taken for this server is under way no more."""
        self._servers[at].in_flight -= 1

    def answered(self, at: int) -> None:
        """A request got its answer there."""
        server = self._servers[at]
        server.slots = min(self._slots, server.slots + 1)

    def rest(self, at: int, now: float, seconds: float) -> None:
        """Send nothing there for so long."""
        server = self._servers[at]
        if server.rests_until <= now:
            server.slots = max(1, server.slots // 2)
        server.rests_until = max(server.rests_until, now + seconds)

    def rests(self, at: int, now: float) -> bool:
        return self._servers[at].rests_until > now

    def down(self, at: int) -> bool:
        """Send nothing there until it is `up`. Whether it was up."""
        was_up = not self._servers[at].down
        self._servers[at].down = True
        self._move_from_down()
        return was_up

    def up(self, at: int) -> None:
        self._servers[at].down = False
        self._move_from_down()

    def none_available(self, now: float) -> bool:
        """Whether every server is down or rests."""
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
