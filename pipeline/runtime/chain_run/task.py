"""A kind of run over chains: what makes it what it is, what its workers do, and what its rows come to.

`run.run_task` does the rest: claim, lock, staging, repair, workers, progress, resume.
"""

from collections.abc import Mapping
from typing import Any, ClassVar, Protocol, TypeVar

from pipeline.config.label import ClusterConfig, RunConfig
from pipeline.core.records import Totals
from pipeline.engines.base import OnDevices, Surroundings
from pipeline.runtime.chain_run.chains import ChainSource
from pipeline.runtime.worker import UnitWork, Worker
from pipeline.runtime.workload import Workload
from pipeline.storage.storage import Storage


class TaskSettings(Protocol):
    """The settings of a run: those of its units and of its workers, among others."""

    run: RunConfig
    cluster: ClusterConfig


Config = TypeVar("Config", bound=TaskSettings)


class Task(Protocol[Config]):
    """See the module. Made from the settings of one run.

    `doing`: the stage of a status while workers work. `counted`: what a status counts, in the plural; `count`: their number in
    totals. `sample`: chains that an estimate tries.
    """

    doing: ClassVar[str]
    counted: ClassVar[str] = "chains"
    sample: ClassVar[int] = 32
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

    def source(self) -> ChainSource:
        """The chains."""
        ...

    def model(self) -> OnDevices:
        """What the workers load. Raises UsageError for what is not installed."""
        ...

    def spread(self, parts: int) -> Config:
        """The settings with the model spread over this number of GPUs."""
        return self.config

    def work(self, around: Surroundings) -> UnitWork[Any]:
        """What a worker does, in its own process. Raises UsageError for what is not installed."""
        ...

    def count(self, totals: Totals) -> int:
        return totals.chains


def workload_of(task: Task[Any]) -> Workload:
    """What the workers of a run do. Raises as `Task.model` does."""
    return Workload(
        model=task.model(),
        settings=lambda parts: (type(task), task.spread(parts)),
        make=task_worker,
        run_dir=task.storage().run_dir,
        units_in_flight=task.config.run.units_in_flight,
        cluster=task.config.cluster,
    )


def task_worker(settings: tuple[type[Task[Any]], Any], around: Surroundings) -> Worker:
    """A worker in its own process."""
    kind, config = settings
    task = kind(config)
    return Worker(task.work(around), task.storage(), config.run.flush_seconds)
