"""`label --multirun`: labels once for each combination of values, and compares the runs.

Everything is checked before the first run starts. Runs follow each other in one process, with one Ray. Those that differ only
in what matters after sampling share their rollouts (`analysis.shared_rollouts`). A run that fails does not stop the others. The
same command, started again, does what is missing: each run is resumed as `label` resumes it.
"""

import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import TYPE_CHECKING

from pipeline.cli.command import Command, write_out
from pipeline.cli.compose import ComposedSettings, compose
from pipeline.cli.label import checked_workers, policy_name, set_up_ray
from pipeline.cli.own_settings import Given
from pipeline.cli.sweep import Combination, combinations, said
from pipeline.config.label import LabelConfig
from pipeline.core.errors import ClusterError, Damaged, Interrupted, StepvalueError, UsageError
from pipeline.core.formatting import format_count, printable
from pipeline.core.output import say
from pipeline.storage.location import storage_at
from pipeline.storage.lock import hold_lock
from pipeline.storage.run_record import NAME
from pipeline.storage.storage import Storage
from pipeline.storage.sweep_record import (
    SWEEP_PAGE,
    SWEEP_RECORD,
    RunFigures,
    Sweep,
    SweepState,
    SweptRun,
    read_sweep,
    run_path,
    write_sweep,
)

if TYPE_CHECKING:
    from pipeline.runtime.connection import KeptCluster
    from pipeline.runtime.driver import Hiring
    from pipeline.runtime.stop import StopSignal
    from pipeline.runtime.worker_handle import WorkerPool


@dataclass(frozen=True, slots=True, kw_only=True)
class _Planned:
    """A run before it starts. `sampling`: what its rollouts depend on; runs with the same have the same."""

    combination: Combination
    config: LabelConfig
    identity: dict[str, object]
    sampling: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Done:
    """A finished run. `seconds` is None if it was finished before."""

    figures: RunFigures | None
    rollouts_of: str
    seconds: float | None


def sweep(
    command: Command,
    overrides: Sequence[str],
    given: Given,
    hiring: "Hiring | None" = None,
    seconds_joining: Callable[[], float] = lambda: 0.0,
) -> int:
    """Make all runs, print the table and write the record and the page. Returns the exit code: 1 if a run has failed.

    `hiring` provides the workers of each run; None: one Ray does, for all runs. `seconds_joining`: the seconds that it has
    spent so far on what all runs share, which count for none of them.

    Raises UsageError, before anything starts, for a combination that `label` would refuse, Interrupted, RunConflict if another
    job sweeps in the folder, and StoreError.
    """
    configs = []
    for combination, composed in _composed(command, overrides, given):
        with _named(combination):
            config = composed.settings()
        assert isinstance(config, LabelConfig)
        configs.append((combination, config))
    first = configs[0][1]
    folder = _folder([config for _, config in configs])
    storage = storage_at(folder)
    set_up_ray(first.cluster.address)
    from pipeline.data.rows import input_digest
    from pipeline.runtime.stop import stoppable

    digest = cache(input_digest)
    planned = [_planned(storage, combination, config, digest) for combination, config in configs]

    with stoppable() as stop, hold_lock(storage, lock=first.run.lock):
        sweeping = _Sweeping(storage, planned, stop)
        if hiring is not None:
            return sweeping.run(hiring, lambda: None, seconds_joining)
        from pipeline.runtime.connection import KeptCluster

        with KeptCluster() as cluster:
            return sweeping.run(partial(_workers, cluster, stop.check), cluster.leave, lambda: cluster.seconds_joining)


def show(command: Command, overrides: Sequence[str], given: Given) -> None:
    """Print the settings of each run, as `--cfg job` prints those of one: a YAML document for each, with its name before it."""
    found = _composed(command, overrides, given)
    write_out("---\n".join(f"# {combination.name}\n{composed.yaml}" for combination, composed in found))


def _composed(command: Command, overrides: Sequence[str], given: Given) -> list[tuple[Combination, ComposedSettings]]:
    found = []
    for combination in combinations(overrides):
        with _named(combination):
            found.append((combination, compose(command, combination.overrides, given)))
    for remark in dict.fromkeys(remark for _, composed in found for remark in composed.remarks):
        say(remark)
    return found


@contextmanager
def _named(combination: Combination) -> Iterator[None]:
    """Name the combination in errors about its settings."""
    try:
        yield
    except StepvalueError as error:
        raise type(error)(f"{said(combination.values)}: {error}") from error


def _folder(configs: Sequence[LabelConfig]) -> str:
    """The folder of the sweep. Raises UsageError where it is not given, or not the same for all."""
    folders = {config.run_dir for config in configs}
    if None in folders:
        raise UsageError("a sweep needs a folder for its runs: give run_dir=FOLDER, and the same one to go on later")
    if len(folders) > 1:
        raise UsageError(f"run_dir differs between the runs ({', '.join(sorted(map(str, folders)))}): give one for all")
    folder = str(folders.pop())
    names = storage_at(folder).names("")
    if NAME in names:
        raise UsageError(
            f"run_dir={folder} is the directory of a run: give another folder, which will hold a directory per run"
        )
    if names and SWEEP_RECORD not in names:
        raise UsageError(f"run_dir={folder} contains other files ({names[0]}, ...): give an empty or new folder")
    return folder


def _planned(folder: Storage, combination: Combination, config: LabelConfig, digest: Callable[[str], str]) -> _Planned:
    """`digest`: the hash of the input at a path. Raises what `label` would raise on the directory of the run before it does any
    work."""
    from pipeline.runtime.driver import check_place, place_of
    from pipeline.runtime.state import sampling_identity

    config = replace(config, run_dir=run_path(folder.run_dir, combination.name))
    with _named(combination):
        place = place_of(config, digest)
        check_place(place)
    return _Planned(combination=combination, config=config, identity=place.identity, sampling=sampling_identity(config))


def _earlier_seconds(folder: Storage) -> dict[str, float | None]:
    """Name of a run -> how long it took, as an earlier command recorded it."""
    try:
        known = read_sweep(folder)
    except Damaged:
        return {}
    return {} if known is None else {run.name: run.seconds for run in known.runs}


class _Sweeping:
    """The runs of a sweep, one after the other, and the record of it."""

    def __init__(self, folder: Storage, planned: Sequence[_Planned], stop: "StopSignal") -> None:
        self._folder = folder
        self._planned = planned
        self._stop = stop
        self._sources: dict[str, _Planned] = {}
        self._earlier = _earlier_seconds(folder)
        self._seconds_joining: Callable[[], float] = lambda: 0.0
        self._sweep = Sweep(
            runs=tuple(SweptRun(name=each.combination.name, values=each.combination.values) for each in planned),
            began_at=time.time(),
        )

    def run(self, hiring: "Hiring", leave: Callable[[], None], seconds_joining: Callable[[], float]) -> int:
        """`leave`: leave the cluster that `hiring` has joined. `seconds_joining`: see `sweep`. Raises Interrupted and
        StoreError."""
        from rich.console import Console

        from pipeline.analysis.report.run_report import page_link
        from pipeline.analysis.report.terminal import print_lines
        from pipeline.analysis.sweep import compare_with_first, print_sweep, sweep_page

        console = Console(highlight=False)
        self._seconds_joining = seconds_joining
        write_sweep(self._folder, self._sweep)
        try:
            for number in range(len(self._planned)):
                self._one(number, hiring, leave)
            compared = compare_with_first(self._folder.run_dir, self._sweep, self._stop.check)
        except Interrupted:
            print_sweep(console, self._sweep)
            raise
        print_sweep(console, self._sweep, compared)
        if joining := seconds_joining():
            print_lines(console, [f"Ray was started or joined in {joining:,.1f} s, which are in no run's seconds"])
        if self._planned[0].config.run.report:
            self._folder.replace(SWEEP_PAGE, sweep_page(self._folder.run_dir, self._sweep, compared))
            print_lines(console, ["", f"report    {page_link(self._folder, SWEEP_PAGE)}"])
        failed = sum(run.state is SweepState.FAILED for run in self._sweep.runs)
        if failed:
            say(
                f"{failed} of {format_count(len(self._planned), 'run')} failed, see above: the same command tries "
                f"{'it' if failed == 1 else 'them'} again"
            )
        return 1 if failed else 0

    def _one(self, number: int, hiring: "Hiring", leave: Callable[[], None]) -> None:
        planned = self._planned[number]
        title = f"run {number + 1} of {len(self._planned)}: {printable(said(planned.combination.values))}"
        say(title)
        self._put(number, state=SweepState.RUNNING)
        try:
            self._stop.check()
            done = self._labelled(planned, hiring)
        except Interrupted as error:
            self._put(number, state=SweepState.INTERRUPTED, message=str(error))
            raise
        except StepvalueError as error:
            if isinstance(error, ClusterError):
                # The next run may find another cluster, or start its own Ray again.
                leave()
            self._failed(number, str(error))
        except Exception as error:  # noqa: BLE001  a defect in one run must not cost the others their night
            traceback.print_exc()
            self._failed(number, f"{type(error).__name__}: {error}")
        else:
            self._sources.setdefault(planned.sampling, planned)
            self._put(
                number,
                state=SweepState.FINISHED,
                figures=done.figures,
                rollouts_of=done.rollouts_of,
                seconds=self._earlier.get(planned.combination.name) if done.seconds is None else done.seconds,
            )

    def _failed(self, number: int, message: str) -> None:
        say(f"run {number + 1} failed: {message}")
        self._put(number, state=SweepState.FAILED, message=message)

    def _put(self, number: int, **changes: object) -> None:
        runs = list(self._sweep.runs)
        runs[number] = replace(runs[number], **changes)  # type: ignore[arg-type]  # the names of its fields
        self._sweep = replace(self._sweep, runs=tuple(runs))
        write_sweep(self._folder, self._sweep)

    def _labelled(self, planned: _Planned, hiring: "Hiring") -> _Done:
        """Label the run: with the rollouts of an earlier one if both have the same, else as `label` does."""
        from rich.console import Console

        from pipeline.analysis.report.run_report import end_with_report
        from pipeline.analysis.report.terminal import LiveView
        from pipeline.analysis.shared_rollouts import SharedRollouts, label_with_rollouts_of
        from pipeline.analysis.sweep import figures_of
        from pipeline.estimators.registry import estimator_for
        from pipeline.runtime.driver import label
        from pipeline.runtime.worker_handle import no_watcher

        began, joined = time.monotonic(), self._seconds_joining()
        config = planned.config
        target = storage_at(str(config.run_dir))
        source, shared = self._sources.get(planned.sampling), SharedRollouts(same=False)
        if source is not None:
            shared = label_with_rollouts_of(
                storage_at(str(source.config.run_dir)),
                target,
                planned.identity,
                estimator_for(config.estimator),
                self._stop.check,
                lock=config.run.lock,
            )
        if shared.same:
            # Nothing is left to do but what `label` does at the end of a run.
            summary = label(config, hiring, no_watcher, self._stop)
        else:
            with LiveView(Console(highlight=False), config.plan.gpu_hour_price, policy_name(config)) as view:
                summary = label(config, hiring, view, self._stop)
        changed = bool(summary.units_done_now or shared.labelled)
        read = end_with_report(Console(quiet=True), target, page=config.run.report, changed=changed)
        same = source is not None and shared.same and not summary.units_done_now
        return _Done(
            figures=None if read is None else figures_of(read.found),
            rollouts_of=source.combination.name if source is not None and same else "",
            seconds=time.monotonic() - began - (self._seconds_joining() - joined) if changed else None,
        )


@contextmanager
def _workers(cluster: "KeptCluster", check: Callable[[], None], config: LabelConfig) -> Iterator["WorkerPool"]:
    """Workers on the cluster that all runs of the sweep share."""
    from pipeline.runtime.actors import worker_pool
    from pipeline.runtime.workload import labelling

    cluster.join(config.cluster, check)
    with checked_workers(config, check, nullcontext(worker_pool(labelling(config), check))) as pool:
        yield pool
