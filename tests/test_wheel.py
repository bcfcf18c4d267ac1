"""The built wheel works outside the checkout: settings and sample travel with it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT

TOOLS = Path(sys.executable).parent


@pytest.mark.ray
def test_the_installed_command_labels_the_sample(tmp_path: Path) -> None:
    uv = str(TOOLS / "uv")
    build = [
        uv,
        "build",
        "--wheel",
        "--no-build-isolation",
        "--offline",
        "--python",
        sys.executable,
        "--out-dir",
        str(tmp_path),
    ]
    subprocess.run([*build, "--quiet"], cwd=ROOT, check=True, timeout=120)
    (wheel,) = tmp_path.glob("*.whl")
    site = tmp_path / "site"
    install = [
        uv,
        "pip",
        "install",
        "--no-deps",
        "--offline",
        "--python",
        sys.executable,
        "--target",
        str(site),
        str(wheel),
    ]
    subprocess.run([*install, "--quiet"], check=True, timeout=120)
    environment = {**os.environ, "PYTHONPATH": str(site)}
    where = [sys.executable, "-c", "import pipeline; print(pipeline.__file__)"]
    found = subprocess.run(where, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
    assert Path(found.stdout.strip()).is_relative_to(site)
    done = subprocess.run(
        [str(site / "bin" / "stepvalue"), "label", "data=sample", "policy=oracle"],
        cwd=tmp_path,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "82 read = 82 used + 0 rejected" in done.stdout
    assert list((tmp_path / "runs").glob("*/labels/*.parquet"))
    (page,) = (tmp_path / "runs").glob("*/report.html")
    assert done.stdout.endswith(f"\nreport    {page.as_uri()}\n")
    assert b"82 used + 0 rejected" in page.read_bytes()
