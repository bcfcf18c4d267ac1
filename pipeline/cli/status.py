"""The command `status`: prints the state of a run as text or as JSON."""

import json
import time
from typing import TYPE_CHECKING

from pipeline.analysis.settings import StatusConfig
from pipeline.cli.command import Command, interruptible, write_lines

if TYPE_CHECKING:
    from pipeline.storage.sweep_record import Sweep


def _status(config: StatusConfig) -> int:
    from pipeline.analysis.status import as_json, lines, run_status
    from pipeline.storage.location import storage_at
    from pipeline.storage.sweep_record import read_sweep

    with interruptible():
        storage = storage_at(config.run_dir)
        if (sweep := read_sweep(storage)) is not None:
            return _status_of_sweep(sweep, storage.run_dir, config)
        status = run_status(storage, time.time())
    written = [json.dumps(as_json(status))] if config.json else lines(status)
    write_lines(written)
    return 0


def _status_of_sweep(sweep: "Sweep", folder: str, config: StatusConfig) -> int:
    from rich.console import Console

    from pipeline.analysis.sweep import observed, print_sweep
    from pipeline.storage.sweep_record import sweep_fields

    seen = observed(sweep, folder, time.time())
    if config.json:
        write_lines([json.dumps(sweep_fields(seen))])
    else:
        print_sweep(Console(highlight=False), seen)
    return 0


STATUS = Command(
    name="status",
    summary="show what a run has done and the time left, from any machine",
    about="status: whether a start of a run is at work, what the run has committed, its speed, the time left and the cost.",
    examples=(
        "status run_dir=out",
        "status run_dir=s3://bucket/runs/math",
        "status run_dir=out json=true | jq .condition.state",
    ),
    notes="""\
It writes nothing and takes no lock: use it while `label` works, or to see whether it still does. A start gives a sign of
life every 10 seconds. On its own machine a dead start is known by its process, from elsewhere by a minute's silence.
""",
    most_used=(
        "run_dir",
        "json",
    ),
    schema=StatusConfig,
    run=_status,
)
