"""`doctor` on this machine and on a Ray cluster."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from pipeline.__main__ import compose_label, main
from pipeline.preflight.nodes import this_machine
from pipeline.preflight.run import node_warnings
from tests.checkout import ROOT


def test_this_machine_is_well(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "policy=oracle", f"run_dir={tmp_path / 'deep' / 'run'}"]) == 0
    shown = capsys.readouterr().out
    assert "ok       versions        Python 3." in shown
    assert f"{tmp_path / 'deep' / 'run'} is seen here" in shown
    assert shown.endswith("all is well\n")
    assert list(tmp_path.iterdir()) == []


def test_a_model_that_is_not_there_and_a_folder_that_cannot_be_written_fail(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "config.json").write_text("{}")
    assert main(["doctor", f"policy.model={tmp_path}", "run_dir=/proc/none/run"]) == 1
    shown = capsys.readouterr().out
    assert "failed   policy" in shown
    assert "failed   run_dir         /proc cannot be written" in shown
    assert "remedy: choose another run_dir" in shown
    assert shown.endswith("2 failed\n")


SCRIPT = """
import sys
from pipeline.cli.label import set_up_ray
set_up_ray(None)
from pipeline.config.label import ClusterConfig
from pipeline.preflight.machine import look
from pipeline.runtime.cluster import cluster, on_every_node
with cluster(ClusterConfig()):
    ((host, machine, arrived),) = on_every_node(look, (sys.argv[1], sys.argv[1] + "/none"))
print(host == machine.host, sorted(machine.sees.values()), abs(machine.clock - arrived) < 60)
"""


@pytest.mark.ray
def test_every_node_of_a_cluster_is_looked_at(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(tmp_path)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.stdout == "True [False, True] True\n", done.stderr


def test_a_run_that_begins_prints_what_is_wrong_with_its_nodes(tmp_path: Path) -> None:
    config = compose_label(["data=sample", f"policy.model={tmp_path}", f"run_dir={tmp_path / 'run'}"])
    here = this_machine(())[0]
    nodes = [replace(here, sees={str(tmp_path): True}), replace(here, host="far", packages={"ray": "2.0"}, clock=99.0)]
    lines = list(node_warnings(config, lambda paths: nodes))
    assert [line.partition(":")[0] for line in lines] == ["versions", "clocks", "model"]
    assert f"{tmp_path} does not exist on far; use a path that all nodes mount" in lines[2]
    assert list(node_warnings(config, this_machine)) == []
