"""A kind of run: what makes it what it is, what its workers do, and what its rows come to.

`run.run_task` does the rest: claim, lock, staging, repair, workers, progress, resume.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol, TypeVar

from pipeline.config.label import ClusterConfig, RunConfig
from pipeline.core.progress import Status
from pipeline.core.records import UnitTarget
from pipeline.engines.base import OnDevices, Surroundings
from pipeline.runtime.heartbeat import heartbeat
from pipeline.runtime.state import RunState
from pipeline.runtime.stop import StopSignal
from pipeline.runtime.worker import LearnedState, UnitWork
from pipeline.runtime.worker_handle import Watcher
from pipeline.storage.commits import Commit, RecordSequence
from pipeline.storage.editions import current_edition, current_files, edition_sequence
from pipeline.storage.run_record import as_recorded, check_claim
from pipeline.storage.storage import Storage
from pipeline.storage.units import UnitRef


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPlace:
    """A run directory, and the identity of the run that a start wants in it."""

    storage: Storage
    identity: dict[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldRun:
    """A run directory that its driver has locked and claimed. `asked`: the identity of this start. `stop`: it is asked now and
    then. `damaged`: names of damaged files that were found so far."""

    storage: Storage
    identity: Mapping[str, object]
    asked: Mapping[str, object]
    stop: StopSignal
    damaged: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """What is required of each unit, by unit id. `growths`: the records of the run's growths."""

    targets: Mapping[str, UnitTarget]
    growths: tuple[Commit, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Arranged:
    """`files`: those that people read. `labels` and `overspent`: see `Summary`."""

    files: Collection[str]
    labels: str = ""
    overspent: str = ""


class TaskSettings(Protocol):
    """The settings of a run: those of its units and of its workers, among others."""

    run: RunConfig
    cluster: ClusterConfig


Config = TypeVar("Config", bound=TaskSettings)


class Task(Protocol[Config]):
    """See the module. Made from the settings of one run.

    `doing`: the stage of a status while workers work. `counted`: what a status counts: the name of a count.
    """

    doing: ClassVar[str]
    counted: ClassVar[str] = "chains"
    config: Config

    def __init__(self, config: Config) -> None:
        self.config = config

    def storage(self) -> Storage:
        """The run directory."""
        ...

    @property
    def names(self) -> Mapping[str, str]:
        """What errors about the directory say here, see `core.errors.named`."""
        return {}

    def identity(self) -> dict[str, object]:
        """What determines the result, as dotted key -> plain value.

        Raises InputError, UsageError and StoreError for chains that cannot be read, and UsageError for a missing model folder.
        """
        ...

    def wanted(self, watch: Watcher) -> RunPlace:
        """Where the run goes and what it is, see `storage` and `identity`. Raises what they raise."""
        watch(Status(stage="reading the chains", counted=self.counted))
        return RunPlace(storage=self.storage(), identity=self.identity())

    def check_place(self, place: RunPlace) -> None:
        """Raise RunConflict if another run is in the directory, and StoreError. Changes nothing."""
        check_claim(place.storage, as_recorded(place.storage, place.identity))

    def recorded(self, held: HeldRun, watch: Watcher) -> AbstractContextManager[Watcher]:
        """A watcher for the start, which records it in the directory and passes on to `watch`. May raise what forbids it."""
        return heartbeat(held.storage, None, watch)

    def model(self) -> OnDevices:
        """What the workers load. Raises UsageError for what is not installed."""
        ...

    def spread(self, parts: int) -> Config:
        """The settings with the model spread over this number of GPUs."""
        return self.config

    def staged(self, held: HeldRun) -> Commit:
        """The record of the staged input. Raises InputError, RunConflict, StoreError, and Interrupted."""
        ...

    def goal(self, held: HeldRun, units: Sequence[UnitRef], found: Mapping[str, RecordSequence]) -> Goal:
        """What each unit must reach. `found`: the record sequences of the units."""
        return Goal(targets=dict.fromkeys((unit.unit_id for unit in units), UnitTarget()))

    def begun(self, held: HeldRun, before: RunState, watch: Watcher) -> tuple[Watcher, LearnedState | None]:
        """Whom the statuses of workers go to, and what the run has learned before they begin. May raise."""
        return watch, None

    def finished(
        self,
        held: HeldRun,
        planned: tuple[Commit, ...],
        units: Sequence[UnitRef],
        after: RunState,
        show: Callable[[str], None],
    ) -> Arranged:
        """Finish a run all of whose units are whole. `planned`: the records of the input and of growths. `show`: shows a stage.
        May raise Interrupted."""
        edition = current_edition(edition_sequence(held.storage), after.wholes)
        return Arranged(files=current_files((*planned, *after.wholes.values()), edition))

    def planned_devices(self) -> int | None:
        """The number of devices that the settings state for an estimate of the wall time."""
        return None

    def work(self, around: Surroundings) -> UnitWork[Any]:
        """What a worker does, in its own process. Raises UsageError for what is not installed."""
        ...
