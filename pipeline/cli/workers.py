"""What commands with workers share: how they run with Ray, show their progress, and end, also for a Python call."""

import os
import secrets
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from pipeline.cli.command import imported, interruptible, named_function, write_lines
from pipeline.core.formatting import format_count, format_duration, format_number
from pipeline.core.output import say

if TYPE_CHECKING:
    from pipeline.config.label import ClusterConfig
    from pipeline.core.progress import Summary
    from pipeline.runtime.chain_run.estimate import Estimate
    from pipeline.runtime.chain_run.run import Hiring
    from pipeline.runtime.stop import StopSignal
    from pipeline.runtime.worker_handle import Watcher, WorkerPool

NOTHING_FOUND = 1
"""Exit code of a run that has found nothing: no score, no verdict or no chain."""
Config = TypeVar("Config")
Found = TypeVar("Found")
Workers = Callable[[Any, Callable[[], None]], "AbstractContextManager[WorkerPool]"]
"""Provides the workers for what a run asks for. The second argument is called while nodes are waited for."""
_RAY_WORKERS: Workers = imported("pipeline.runtime.actors:ray_workers")


@dataclass(frozen=True, slots=True, kw_only=True)
class Work(Generic[Config, Found]):
    """What a command has workers do. Its functions import their modules when they are called.

    `run`: the function that does it, or the `Task`, or the module and the name of one of them. A function gets the settings, a
    function that hires `workers`, a watcher and a stop signal, and returns what the run holds and what this start did. `ended`
    prints that, and says whether anything was found. `estimate`: lines on what it would cost; `estimated`: lines on what a
    sample of a task has cost. `warnings`: what is to be doubted. `returned`: what a Python call gets. `shown`: the price of a
    device per hour, if it is known, and the name of what the workers load. `blame`: the context in which a task is made.
    """

    run: "str | Callable[[Config, Hiring, Watcher, StopSignal], Found]"
    ended: Callable[[Config, Found], bool]
    estimate: Callable[[Config], Iterable[str]] | None = None
    estimated: "Callable[[Config, Estimate], Iterable[str]] | None" = None
    warnings: Callable[[Config], Iterable[str]] = lambda _: ()
    returned: Callable[[Config, Found], Any] = lambda _, found: found
    shown: Callable[[Config], tuple[float | None, str]] = lambda _: (None, "")
    workers: Workers = _RAY_WORKERS
    blame: Callable[[], AbstractContextManager[None]] = nullcontext

    def __call__(self, config: Config) -> int:
        """Do it on the command line, or estimate it. Returns the exit code. Raises as `run` does."""
        if not getattr(config, "estimate", False):
            return self.do(config, self.with_ray)
        with interruptible():
            self._warn(config)
            lines = list(self._estimates(config))
        write_lines(lines)
        return 0

    def do(self, config: Config, run: "Callable[[Config, Watcher], Found]") -> int:
        """Show the progress of `run`, and what came of it. Returns the exit code. Raises as `run` does."""
        from pipeline.display.live import LiveView
        from pipeline.display.terminal import terminal

        with LiveView(terminal(), *self.shown(config)) as view:
            found = run(config, view)
        return 0 if self.ended(config, found) else NOTHING_FOUND

    def with_ray(self, config: Any, watch: "Watcher") -> Found:
        """Run with this machine's own Ray, or the cluster of the settings, until it is done or a signal comes. Raises as `run`
        does."""
        self._warn(config)
        from pipeline.runtime.stop import stoppable

        with stoppable() as stop, ray_hiring(config.cluster, self.workers, stop.check) as hire:
            return self.hired(config, watch, hire, stop)

    def hired(self, config: Config, watch: "Watcher", hire: "Hiring", stop: "StopSignal") -> Found:
        """Run with the workers that `hire` provides. Raises as `run` does."""
        from pipeline.runtime.chain_run.run import run_task

        run = self._loaded()
        do: Any = partial(run_task, self._task(config)) if isinstance(run, type) else partial(run, config)
        found: Found = do(hire, watch, stop)
        return found

    def _loaded(self) -> Any:
        """The function or the class that `run` names."""
        return named_function(self.run) if isinstance(self.run, str) else self.run

    def _estimates(self, config: Config) -> Iterable[str]:
        if self.estimated is None:
            return () if self.estimate is None else self.estimate(config)
        from pipeline.runtime.chain_run.estimate import estimate

        return self.estimated(config, estimate(self._task(config)))

    def _task(self, config: Config) -> Any:
        with self.blame():
            return self._loaded()(config)

    def _warn(self, config: Config) -> None:
        for line in self.warnings(config):
            say(f"warning: {line}")


@contextmanager
def ray_hiring(config: "ClusterConfig", workers: Workers, check: Callable[[], None]) -> "Iterator[Hiring]":
    """A function that hires workers. The first time, it joins the cluster or starts Ray, which all of them share; the end of
    the block leaves it. Raises nothing itself; the function raises as `workers` does, and ClusterError."""
    set_up_ray(config.address)
    with ExitStack() as joined:

        @cache
        def join() -> None:
            from pipeline.runtime.connection import cluster

            joined.enter_context(cluster(config, check))

        def hire(asked: Any) -> "AbstractContextManager[WorkerPool]":
            join()
            return workers(asked, check)

        yield hire


def set_up_ray(address: str | None) -> None:
    """Set the environment variables that Ray reads when it is imported."""
    if "ray" in sys.modules:
        return
    if address is not None:
        # Ray 2.60 makes clusters that require a token, but its clients do not send the token that they have.
        names = {"RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"}
        if names & os.environ.keys() or (Path.home() / ".ray" / "auth_token").exists():
            os.environ.setdefault("RAY_AUTH_MODE", "token")
        return
    # Ray has no setting on Linux to listen on 127.0.0.1 only, but it does so if it assumes that no cluster is possible.
    os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"
    # Without a token here, Ray would make one and leave it in the user's home folder.
    if "RAY_AUTH_MODE" not in os.environ:
        os.environ.update(RAY_AUTH_MODE="token", RAY_AUTH_TOKEN=secrets.token_hex(32))


def head_line(plan: "Estimate", to_do: str) -> str:
    """The first line of an estimate."""
    all_of = plan.sample
    return (
        f"{format_count(all_of.chains, 'chain')} with {format_count(all_of.steps, 'step')} to {to_do} by {plan.model}"
    )


def cost_lines(plan: "Estimate", noun: str = "chain") -> Iterator[str]:
    """The lines of an estimate about speed, time, and rows that cannot be used."""
    speed = plan.sampled / plan.seconds_of_sample
    yield (
        f"speed     {format_number(speed, 1)} {noun}s/s of one worker of this machine; loading took "
        f"{format_duration(plan.seconds_loading)}"
    )
    yield f"time      about {format_duration(plan.seconds)} for all {noun}s with one worker; several workers share it"
    if (left_out := plan.sample.left_out).rows:
        yield f"left out  {format_count(left_out.rows, 'row')}, the first: {left_out.first}"


def ending_lines(found: "Summary", made: str, *speeds: tuple[int, str], over: str = "chains") -> Iterator[str]:
    """The last lines of a result. `made`: by this start. `speeds`: how many of something, and the format of how many a second.
    `over`: what the run goes over, in the plural."""
    if found.tally["rejected"]:
        yield f"left out: {format_count(found.tally['rejected'], 'row')}; {found.run_dir}/rejects says why"
    for name in found.damaged:
        yield f"damaged and made again: {name}"
    if found.units_done_now:
        seconds = found.seconds_working
        fast = [form.format(number / seconds) for number, form in speeds] if seconds else []
        working = ", ".join([f"{made} in {format_duration(seconds)}", *fast])
        yield f"this start: {working}, after {format_duration(found.seconds_starting)} to start"
    else:
        yield f"nothing to do: all {over} are done"
