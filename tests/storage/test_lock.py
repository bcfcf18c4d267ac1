"""One driver per run directory, across processes. The lock is released when its holder dies."""

import subprocess
import sys
from pathlib import Path

import pytest

from pipeline.core.errors import RunConflict
from pipeline.storage.lock import run_lock

HOLD = """
import sys
from pathlib import Path
from pipeline.storage.lock import run_lock
with run_lock(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_second_holder_is_refused_until_the_first_has_left(tmp_path: Path) -> None:
    run_dir = tmp_path / "new" / "run"
    with run_lock(run_dir):
        with pytest.raises(RunConflict, match="another job works on"), run_lock(run_dir):
            pass
        with run_lock(tmp_path / "elsewhere"):
            pass
    with run_lock(run_dir):
        pass


def test_an_error_inside_frees_the_lock(tmp_path: Path) -> None:
    with pytest.raises(KeyError), run_lock(tmp_path):
        raise KeyError
    with run_lock(tmp_path):
        pass


def test_another_process_is_refused_and_its_death_frees_the_lock(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(RunConflict), run_lock(tmp_path):
            pass
        holder.kill()
        holder.wait()
        with run_lock(tmp_path):
            pass
