"""The command `status`: prints the state of a run as text or as JSON."""

import json
import time

from pipeline.analysis.settings import StatusConfig
from pipeline.cli.command import Command, interruptible, write_lines


def _status(config: StatusConfig) -> int:
    from pipeline.analysis.status import as_json, lines, run_status
    from pipeline.storage.location import storage_at

    with interruptible():
        storage = storage_at(config.run_dir)
        status = run_status(storage, time.time())
    written = [json.dumps(as_json(status))] if config.json else lines(status)
    write_lines(written)
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
    most_used=("run_dir", "json"),
    schema=StatusConfig,
    run=_status,
)
