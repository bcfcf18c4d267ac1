"""A place that gives out under a run, and a directory of another run."""

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from pipeline.config.recorded_settings import SETTING_NAMES
from pipeline.core.errors import RunConflict
from pipeline.data.rows import input_digest
from pipeline.engines.registry import policy_for
from pipeline.runtime.state import identity
from pipeline.storage.local import LocalStorage
from pipeline.storage.run_record import claim
from tests.faults.runs import Found, Scene, Scenes, assert_same, files, until

pytestmark = [pytest.mark.nightly, pytest.mark.timeout(120)]

SLOW = "policy.lab.tokens_per_second=30000"
TOO_SMALL, ENOUGH = "size=48k", "size=16m"
WRITABLE, READ_ONLY = 0o755, 0o555


@pytest.fixture
def small_disk(scenes: Scenes) -> Iterator[Scene]:
    """A scene whose run directory is a file system that is too small for it."""
    scene = scenes()
    scene.run_dir.mkdir()
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", TOO_SMALL, "tmpfs", scene.run_dir], capture_output=True)
    if made.returncode:
        pytest.skip("a file system can be mounted by root only; full disks are played by failpoints too")
    yield scene
    scene.clear_away()
    subprocess.run(["umount", scene.run_dir], check=True)


def test_a_full_disk_ends_the_run_and_with_space_it_goes_on(small_disk: Scene, reference: Found) -> None:
    start = small_disk.start()
    assert start.wait() == 1
    assert "No space left on device; free disk space or permit writing, then start again" in start.output
    assert "Traceback" not in start.output
    subprocess.run(["mount", "-o", f"remount,{ENOUGH}", small_disk.run_dir], check=True)
    small_disk.finish()
    assert_same(small_disk, reference)


def folders(run_dir: Path) -> list[Path]:
    return [run_dir, *(path for path in run_dir.rglob("*") if path.is_dir())]


def test_a_directory_that_becomes_read_only_ends_the_run(scenes: Scenes, reference: Found) -> None:
    scene = scenes()
    start = scene.start(SLOW, unprivileged=True)
    until(scene.committed)
    for folder in folders(scene.run_dir):
        os.chmod(folder, READ_ONLY)
    try:
        assert start.wait() == 1
        assert "Permission denied; free disk space or permit writing, then start again" in start.output
        assert "Traceback" not in start.output
    finally:
        for folder in folders(scene.run_dir):
            os.chmod(folder, WRITABLE)
    scene.finish()
    assert_same(scene, reference)


def test_every_key_of_the_fingerprint_is_refused_by_name(scenes: Scenes) -> None:
    scene = scenes()
    scene.finish()
    config, storage = scene.config(), LocalStorage(scene.run_dir)
    run_identity = identity(config, input_digest(config.data.path), policy_for(config.policy).fingerprint())
    before = files(scene.run_dir)
    for key in run_identity:
        name = re.escape(SETTING_NAMES.get(key, key))
        with pytest.raises(RunConflict, match=rf"{name} (was |\d, but this version of stepvalue uses something else)"):
            claim(storage, {**run_identity, key: "something else"})
    claim(storage, run_identity)
    assert files(scene.run_dir) == before
