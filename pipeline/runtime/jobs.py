"""What is to be done with a unit next. One that fails again and again is taken apart until the request to blame is alone."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from pipeline.core.records import Goal
from pipeline.runtime.unit import Probe
from pipeline.runtime.worker import Learnt, Task
from pipeline.storage.units import UnitRef


@dataclass(slots=True, eq=False)
class Job:
    """A unit on its way. `groups` are the requests of a suspect unit that are still to be tried, the next one last."""

    unit: UnitRef
    known_length: int
    goal: Goal
    failures: int = 0
    groups: list[Sequence[str]] = field(default_factory=list)
    written_off: set[str] = field(default_factory=set)

    def task(self, learnt: Learnt | None = None) -> Task:
        """The whole unit, for a worker who may begin with what others have learnt."""
        return Task(unit=self.unit, known_length=self.known_length, goal=self.goal, learnt=learnt)

    def probe(self, learnt: Learnt | None = None) -> Task:
        """The next group of a suspect unit."""
        probe = Probe(only=frozenset(self.groups[-1]), failed=frozenset(self.written_off))
        return replace(self.task(learnt), probe=probe)

    def survived(self) -> None:
        """The engine has answered the next group."""
        self.groups.pop()

    def failed(self) -> None:
        """The engine has died of the next group: its halves are tried, and a single request is written off."""
        if not self.groups:
            return
        group = self.groups.pop()
        if len(group) > 1:
            middle = len(group) // 2
            self.groups += [group[middle:], group[:middle]]
        elif group:
            self.written_off.add(group[0])
            self.groups.append([])
