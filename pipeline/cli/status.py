"""The command `status`."""

import json
import time

from pipeline.analysis.settings import StatusConfig
from pipeline.cli.command import Command, interruptible, write_out


def _status(config: StatusConfig) -> int:
    from pipeline.analysis.status import as_json, lines, run_status
    from pipeline.storage.location import storage_at

    with interruptible():
        status = run_status(storage_at(config.run_dir), time.time())
    written = [json.dumps(as_json(status))] if config.json else lines(status)
    write_out("".join(f"{line}\n" for line in written))
    return 0


STATUS = Command(
    name="status",
    summary="how a run goes, from any machine that sees its directory: at work, finished or dead, what is done, time left",
    examples="""\
status: what is committed of a run, and what its starts tell: whether one is at work, how fast, how long still, at what cost.

  python -m pipeline status run_dir=out
  python -m pipeline status run_dir=s3://bucket/runs/math
  watch -n 10 python -m pipeline status run_dir=out
  python -m pipeline status run_dir=out json=true | jq .condition.state

It writes nothing and takes no lock: use it while `label` works, or when you wonder whether it still does. A start gives a sign
of life every 10 seconds. On its own machine a dead one is known by its process, from elsewhere by a minute's silence.
""",
    schema=StatusConfig,
    run=_status,
)
