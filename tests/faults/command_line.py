"""`python -m pipeline label` on a scene, with its private Ray, as a user starts it."""

import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass

from tests.conftest import ROOT
from tests.faults.runs import Scene

SECONDS = 130.0


@dataclass(frozen=True, slots=True)
class Done:
    """How it ended, and all that it printed."""

    code: int
    said: str


def started(scene: Scene, *overrides: str, environment: Mapping[str, str] | None = None) -> "subprocess.Popen[str]":
    where = [f"data.path={scene.data}", f"run_dir={scene.run_dir}", "run.report=false"]
    return subprocess.Popen(
        [sys.executable, "-m", "pipeline", "label", *where, *scene.settings, *overrides],
        cwd=ROOT,
        env={**os.environ, **(environment or {})},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def ended(process: "subprocess.Popen[str]") -> Done:
    """Wait for it. Raises TimeoutExpired; it is killed then."""
    try:
        said = process.communicate(timeout=SECONDS)[0]
    except subprocess.TimeoutExpired:
        process.kill()
        raise
    return Done(process.returncode, said)


def label(scene: Scene, *overrides: str, environment: Mapping[str, str] | None = None) -> Done:
    return ended(started(scene, *overrides, environment=environment))
