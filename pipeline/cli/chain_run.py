"""What `score`, `judge`, `check` and `search` share: how they run with Ray, and how their results end."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, TypeVar

from pipeline.cli.label import set_up_ray
from pipeline.core.formatting import format_count, format_duration

if TYPE_CHECKING:
    from pipeline.config.judge import JudgeRunConfig
    from pipeline.config.score import ScoreConfig
    from pipeline.config.search import SearchRunConfig
    from pipeline.core.progress import Summary
    from pipeline.runtime.chain_run.task import Task
    from pipeline.runtime.worker_handle import Watcher

Config = TypeVar("Config", "ScoreConfig", "JudgeRunConfig", "SearchRunConfig")


def run_with_ray(kind: "type[Task[Config]]", config: Config, watch: "Watcher") -> "Summary":
    """Run with this machine's own Ray, or the cluster of the settings, until it is done or a signal comes.

    Raises what `run_task` raises.
    """
    set_up_ray(config.cluster.address)
    from pipeline.runtime.actors import ray_workers
    from pipeline.runtime.chain_run.run import run_task
    from pipeline.runtime.stop import stoppable

    with stoppable() as stop:
        return run_task(kind(config), lambda workload: ray_workers(workload, stop.check), watch, stop)


def ending_lines(found: "Summary", made: str, speed: Callable[[float], str], *, over: str = "chains") -> Iterator[str]:
    """The last lines of a result. `made`: by this start. `speed`: from the seconds that workers worked. `over`: what the run
    goes over, in the plural."""
    if found.totals.rejected:
        yield f"left out: {format_count(found.totals.rejected, 'row')}; {found.run_dir}/rejects says why"
    for name in found.damaged:
        yield f"damaged and made again: {name}"
    if found.units_done_now:
        seconds = found.seconds_working
        yield (
            f"this start: {made} in {format_duration(seconds)}{f', {speed(seconds)}' if seconds else ''}, after "
            f"{format_duration(found.seconds_starting)} to start"
        )
    else:
        yield f"nothing to do: all {over} are done"
