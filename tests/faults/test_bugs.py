"""Do the simulator's tests bite? Bugs that others have had are sown into a copy, and must turn the tests red."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT

BUGS = sorted((Path(__file__).parent / "bugs").glob("*.patch"))
SEEDS = 150
SECONDS = 200

of_each_bug = pytest.mark.parametrize("bug", BUGS, ids=[bug.stem for bug in BUGS])


@of_each_bug
def test_a_bug_can_be_sown(bug: Path) -> None:
    checked = subprocess.run(
        ["git", "apply", "--check", str(bug)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert checked.returncode == 0, (
        f"{bug.name} does not fit the code any more: sow the bug by hand and write it again with "
        f"`git diff pipeline > tests/faults/bugs/{bug.name}`\n{checked.stderr}"
    )


@pytest.mark.nightly
@of_each_bug
def test_a_sown_bug_turns_the_tests_red(tmp_path: Path, bug: Path) -> None:
    _copy(tmp_path)
    subprocess.run(["git", "apply", str(bug)], cwd=tmp_path, check=True)
    red = _tested(tmp_path)
    assert red.returncode == 1, f"nothing noticed {bug.stem}\n{red.stdout}{red.stderr}"
    assert "AssertionError" in red.stdout


@pytest.mark.nightly
def test_the_copy_without_a_bug_is_green(tmp_path: Path) -> None:
    _copy(tmp_path)
    green = _tested(tmp_path)
    assert green.returncode == 0, green.stdout + green.stderr


def _copy(folder: Path) -> None:
    for name in ("pipeline", "tests"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", folder)


def _tested(folder: Path) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "pytest", "-x", "-p", "no:cacheprovider", "tests/faults/test_simulated.py"]
    environment = {**os.environ, "PYTHONPATH": str(folder), "SEEDS": str(SEEDS)}
    environment.pop("SEED", None)
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=SECONDS, check=False
    )
