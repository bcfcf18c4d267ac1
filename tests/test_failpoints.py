"""Failpoints do nothing unless armed, and an armed process always says so."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pipeline.core.errors import UsageError
from pipeline.core.failpoints import ARMED, COUNTED, Injected, arm, failpoint
from tests.conftest import ROOT, run_stepvalue


@pytest.fixture(autouse=True)
def _disarmed() -> Iterator[None]:
    yield
    arm({})


def test_nothing_happens_where_nothing_is_armed() -> None:
    assert arm({}) == ""
    failpoint("disk.write")


def test_the_named_hit_fails_and_no_other() -> None:
    arm({ARMED: "disk.write:enospc:2"})
    failpoint("disk.write")
    failpoint("disk.link")
    with pytest.raises(OSError, match="No space left"):
        failpoint("disk.write")
    failpoint("disk.write")


def test_raise_is_an_error_that_nobody_expects() -> None:
    arm({ARMED: "driver.planned:raise:1"})
    with pytest.raises(Injected):
        failpoint("driver.planned")


def test_reached_points_are_counted(tmp_path: Path) -> None:
    shown = arm({COUNTED: str(tmp_path / "hits")})
    for name in ("disk.write", "disk.link", "disk.write"):
        failpoint(name)
    assert (tmp_path / "hits").read_text().split() == ["disk.write", "disk.link", "disk.write"]
    assert COUNTED in shown


@pytest.mark.parametrize(("action", "signal"), [("kill", 9), ("stop", 19)])
def test_kill_and_stop_are_signals_to_the_process_itself(action: str, signal: int) -> None:
    code = f"from pipeline.core.failpoints import *; arm({{'{ARMED}': 'here:{action}:1'}}); failpoint('here')"
    process = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT)
    try:
        if action == "kill":
            assert process.wait(30) == -signal
        else:
            status = Path(f"/proc/{process.pid}/stat")
            while status.read_text().rpartition(")")[2].split()[0] != "T":
                assert process.poll() is None
    finally:
        process.kill()
        process.wait()


@pytest.mark.parametrize("value", ["", "x", "disk.write:kill", "disk.write:burn:1", "disk.write:kill:0", ":kill:1"])
def test_a_value_that_cannot_be_read_is_refused(value: str) -> None:
    if not value:
        assert arm({ARMED: value}) == ""
        return
    with pytest.raises(UsageError, match=re.escape(value)):
        arm({ARMED: value})


def test_the_command_says_that_a_failpoint_is_armed() -> None:
    armed = run_stepvalue(["grade", "--cfg", "job"], environment={ARMED: "disk.write:kill:7"})
    assert armed.returncode == 0
    assert f"{ARMED}=disk.write:kill:7" in armed.stderr
    wrong = run_stepvalue(["grade", "--cfg", "job"], environment={ARMED: "disk.write"})
    assert wrong.returncode == 2
    assert len(wrong.stderr.strip().splitlines()) == 1
