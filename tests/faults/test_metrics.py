"""What a run does can be read where a cluster's metrics are read: at its nodes, as Prometheus text."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.ray_head import Cluster

pytestmark = pytest.mark.nightly

# A driver that reports two statuses, and what its node's agent then offers of them.
_DRIVER = """
import re, sys, time
from urllib.request import urlopen
import ray
from pipeline.core.progress import Load, Status, Verdicts
from pipeline.runtime.metrics import RunMetrics

ray.init(address=sys.argv[1], log_to_driver=False, logging_level="ERROR")
(node,) = [each for each in ray.nodes() if each["Alive"]]
watch = RunMetrics("math")
watch(Status(stage="labelling", units=9, units_done=1, rollouts=10, tokens=100, verdicts=Verdicts(correct=10)))
watch(Status(
    stage="labelling", units=9, units_done=4, prefixes=50, prefixes_decided=20, rollouts=30, tokens=345,
    verdicts=Verdicts(correct=12, incorrect=11, no_answer=4, ungraded=2, aborted=1, truncated=3),
    load=Load(running=7, waiting=5, grading=6), workers=2, device_seconds=12.5,
))
deadline = time.monotonic() + 60
text = ""
# What the agent has of the first status it may offer for a while.
newest = [
    r"units_done\\{.*\\} 4", r"rollouts_total\\{.*\\} 30", r"device_seconds_total\\{.*\\} 12.5",
    r"verdicts_total\\{.*aborted.*\\} 1",
]
while time.monotonic() < deadline and not all(re.search(each, text) for each in newest):
    time.sleep(0.2)
    offered = urlopen(f"http://{node['NodeManagerAddress']}:{node['MetricsExportPort']}").read().decode()
    # The cluster has had other runs.
    own = [line for line in offered.splitlines() if line.startswith("ray_stepvalue") and 'run="math"' in line]
    text = "\\n".join(own)
print(text)
"""


def test_a_cluster_offers_a_runs_progress_to_prometheus(ray_cluster: Cluster, tmp_path: Path) -> None:
    driver = tmp_path / "driver.py"
    driver.write_text(_DRIVER)
    done = subprocess.run(
        [sys.executable, str(driver), ray_cluster.address],
        env={**os.environ, **ray_cluster.environment, "PYTHONPATH": str(ROOT)},
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert dict(map(_sample, done.stdout.splitlines())) == {
        "units": 9, "units_done": 4, "prefixes": 50, "prefixes_decided": 20, "workers": 2, "grader_queue": 6,
        "requests running": 7, "requests waiting": 5,
        "rollouts_total": 30, "tokens_total": 345, "truncated_total": 3, "device_seconds_total": 12.5,
        "verdicts_total correct": 12, "verdicts_total incorrect": 11, "verdicts_total no_answer": 4,
        "verdicts_total ungraded": 2, "verdicts_total aborted": 1,
    }  # fmt: skip


def _sample(line: str) -> tuple[str, float]:
    """`ray_stepvalue_NAME{tag="value",...} number` -> the name with its kind, and the number."""
    matched = re.fullmatch(r"ray_stepvalue_(\w+)\{(.*)\} (\S+)", line)
    assert matched, line
    name, tags, number = matched.groups()
    kind = re.search(r'(?:state|verdict)="(\w+)"', tags)
    return f"{name} {kind[1]}" if kind else name, float(number)
