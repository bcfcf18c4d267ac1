"""The process that labels, grows, judges, checks or searches for a Python call. The caller's process loads neither Ray nor an
engine, and keeps its event loop, signal handlers and environment.

    python -m pipeline.python.child DESCRIPTOR

The descriptor is a connection. A `Task` comes in. Each `Status` goes out, and at the end an `Outcome`. Where the
caller's end closes, the run stops as at SIGTERM, and can be continued.
"""

import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Mapping
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Any

from pipeline.core.errors import StepvalueError, UsageError
from pipeline.core.output import say
from pipeline.core.progress import Status, Summary
from pipeline.python.task import Outcome, Task
from pipeline.storage.run_record import CHECK, JUDGE, LABEL, SEARCH

if TYPE_CHECKING:
    from pipeline.cli.command import Command


def main(descriptor: int) -> None:
    """Do one task."""
    connection: Connection[Any, Any] = Connection(descriptor)
    task: Task = connection.recv()
    threading.Thread(target=_end_with, args=(connection,), daemon=True).start()
    connection.send(_outcome(task, connection))


def _outcome(task: Task, connection: "Connection[Any, Any]") -> Outcome:
    def send(status: Status) -> None:
        connection.send(status)

    try:
        with task.offered():
            return Outcome(summary=_DOING[task.command](task, send))
    except StepvalueError as error:
        return Outcome(error=type(error).__name__, message=str(error))
    except KeyboardInterrupt:
        return Outcome(error="Interrupted", message="interrupted before the run began")
    except Exception:  # noqa: BLE001  the caller's process shows it
        return Outcome(error="", message=traceback.format_exc())


def _labelled(task: Task, send: Callable[[Status], None]) -> Summary:
    from pipeline.cli.label import LABEL as COMMAND
    from pipeline.cli.label import label_run

    config = _settings(COMMAND, task)
    summary = label_run(config, send)
    _write_page(summary, wanted=config.run.report)
    return summary


def _grown(task: Task, send: Callable[[Status], None]) -> Summary:
    from pipeline.cli.grow import GROW as COMMAND
    from pipeline.cli.grow import grow_run

    config = _settings(COMMAND, task)
    summary = grow_run(config, send).summary
    _write_page(summary, wanted=config.run.report)
    return summary


def _judged(task: Task, send: Callable[[Status], None]) -> Summary:
    from pipeline.cli.judge import JUDGE as COMMAND
    from pipeline.cli.judge import judge_with_ray

    return judge_with_ray(_settings(COMMAND, task), send)


def _checked(task: Task, send: Callable[[Status], None]) -> Summary:
    from pipeline.cli.check import CHECK as COMMAND
    from pipeline.cli.check import check_with_ray

    # One of them stands for all: the caller reads what they found from the run directory.
    *_, last = check_with_ray(_settings(COMMAND, task), send).values()
    return last


def _searched(task: Task, send: Callable[[Status], None]) -> Summary:
    from pipeline.cli.search import SEARCH as COMMAND
    from pipeline.cli.search import search_with_ray

    return search_with_ray(_settings(COMMAND, task), send)


_DOING: Mapping[str, Callable[[Task, Callable[[Status], None]], Summary]] = {
    LABEL: _labelled,
    "grow": _grown,
    JUDGE: _judged,
    CHECK: _checked,
    SEARCH: _searched,
}
"""Command -> what does it."""


def _settings(command: "Command", task: Task) -> Any:
    """The settings of a task. Raises UsageError."""
    from pipeline.cli.compose import compose

    composed = compose(command, task.overrides)
    for remark in composed.remarks:
        say(remark)
    config = composed.settings()
    if task.objects is not None and config.cluster.address is not None:
        raise UsageError(
            "cluster.address: a run with an object that was given in Python is for one machine: make the object a plug-in, "
            "which every machine can install, or leave cluster.address out"
        )
    return config


def _write_page(summary: Summary, *, wanted: bool) -> None:
    from rich.console import Console

    from pipeline.analysis.report.run_report import end_with_report
    from pipeline.storage.location import storage_at

    # The caller has the figures as objects; what goes wrong with the page is printed by it all the same.
    end_with_report(Console(quiet=True), storage_at(summary.run_dir), page=wanted, changed=summary.units_done_now > 0)


def _end_with(connection: "Connection[Any, Any]") -> None:
    """Stop this process in order when the caller's is gone."""
    try:
        connection.recv()
    except (EOFError, OSError):
        os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    main(int(sys.argv[1]))
