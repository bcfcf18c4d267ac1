"""The process that does a command for a Python call. The caller's process loads neither Ray nor an engine, and keeps its event
loop, signal handlers and environment.

    python -m pipeline.python.child DESCRIPTOR

The descriptor is a connection. A `Task` comes in. Each `Status` goes out, and at the end an `Outcome`. Where the
caller's end closes, the run stops as at SIGTERM, and can be continued.
"""

import os
import signal
import sys
import threading
import traceback
from multiprocessing.connection import Connection
from typing import Any

from pipeline.cli.command import Command
from pipeline.core.errors import StepvalueError, UsageError
from pipeline.core.output import say
from pipeline.python.overrides import offered_here
from pipeline.python.process import Outcome, Task


def main(descriptor: int) -> None:
    """Do one task."""
    connection: Connection[Any, Any] = Connection(descriptor)
    task: Task = connection.recv()
    threading.Thread(target=_end_with, args=(connection,), daemon=True).start()
    connection.send(_outcome(task, connection))


def _outcome(task: Task, connection: "Connection[Any, Any]") -> Outcome:
    from pipeline.cli import command_named

    try:
        command = command_named(task.command)
        assert command is not None
        assert command.work is not None
        with offered_here(task.objects.unpacked()[0] if task.objects else ()):
            config = _settings(command, task)
            return Outcome(found=command.work.returned(config, command.work.with_ray(config, connection.send)))
    except StepvalueError as error:
        return Outcome(error=type(error).__name__, message=str(error))
    except KeyboardInterrupt:
        return Outcome(error="Interrupted", message="interrupted before the run began")
    except Exception:  # noqa: BLE001  the caller's process shows it
        return Outcome(error="", message=traceback.format_exc())


def _settings(command: Command, task: Task) -> Any:
    """The settings of a task. Raises UsageError."""
    from pipeline.cli.compose import compose

    composed = compose(command, task.overrides)
    for remark in composed.remarks:
        say(remark)
    config = composed.settings()
    if getattr(config, "estimate", False):
        raise UsageError(
            f"estimate: a call does its work: ask for an estimate with stepvalue {command.name} --estimate"
        )
    if task.objects is not None and config.cluster.address is not None:
        raise UsageError(
            "cluster.address: a run with an object that was given in Python is for one machine: make the object a plug-in, "
            "which every machine can install, or leave cluster.address out"
        )
    return config


def _end_with(connection: "Connection[Any, Any]") -> None:
    """Stop this process in order when the caller's is gone."""
    try:
        connection.recv()
    except (EOFError, OSError):
        os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    main(int(sys.argv[1]))
