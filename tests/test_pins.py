"""The GPU extra resolves to its lock. This asks a package index, with uv; it skips where none can be reached."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.lint_pins import GPU_LOCK, pins

SECONDS = 250
UNREACHABLE = (
    "error sending request",
    "dns error",
    "client error (Connect)",
    "operation timed out",
    "network is disabled",
)
"""What uv says where it reaches no index. Anything else is a fault of the lock."""


@pytest.mark.nightly
@pytest.mark.parametrize("python", ["3.11", "3.12"])
def test_the_gpu_extra_resolves_to_the_lock(tmp_path: Path, python: str) -> None:
    """uv keeps the versions of a lock wherever they still satisfy what `pyproject.toml` asks for."""
    lock = tmp_path / GPU_LOCK.name
    shutil.copy(GPU_LOCK, lock)
    asked = "pyproject.toml --extra gpu --extra s3 --extra gcs --group image --python-platform x86_64-manylinux_2_28"
    written = "--generate-hashes --no-header --no-annotate --quiet --output-file"
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "uv",
            "pip",
            "compile",
            *asked.split(),
            "--python-version",
            python,
            *written.split(),
            str(lock),
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    if done.returncode and any(words in done.stderr for words in UNREACHABLE):
        pytest.skip(f"no package index can be reached: {done.stderr.strip().splitlines()[0]}")
    assert done.returncode == 0, done.stderr
    assert pins(lock.read_text("utf-8")) == pins(GPU_LOCK.read_text("utf-8"))
