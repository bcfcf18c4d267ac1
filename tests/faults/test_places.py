"""A place that becomes read-only under a run, and a directory of another run."""

import os
import re
from pathlib import Path

import pytest

from pipeline.config.recorded_settings import SETTING_NAMES
from pipeline.core.errors import RunConflict
from pipeline.data.rows import input_digest
from pipeline.engines.registry import policy_for
from pipeline.runtime.state import identity
from pipeline.storage.local import LocalStorage
from pipeline.storage.run_record import claim
from tests.faults.runs import Found, Scenes, assert_same, files, until

pytestmark = [pytest.mark.nightly, pytest.mark.timeout(120)]

SLOW = "policy.lab.tokens_per_second=30000"
WRITABLE, READ_ONLY = 0o755, 0o555


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
