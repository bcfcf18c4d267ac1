"""`python -m pipeline label` on a scene, with its private Ray, as a user starts it."""

import subprocess
from collections.abc import Mapping
from dataclasses import dataclass

from tests.checkout import stepvalue
from tests.faults.runs import Scene

SECONDS = 130.0


@dataclass(frozen=True, slots=True)
class Done:
    """How it ended, and all that starts on the scene have printed."""

    code: int
    said: str


def started(scene: Scene, *overrides: str, environment: Mapping[str, str] | None = None) -> "subprocess.Popen[bytes]":
    where = [f"data.path={scene.data}", f"run_dir={scene.run_dir}", "run.report=false"]
    words = ["label", *where, *scene.settings, *overrides]
    return stepvalue(scene.folder / "said", *words, environment=environment)


def ended(scene: Scene, process: "subprocess.Popen[bytes]") -> Done:
    """Wait for it. Raises TimeoutExpired; it is killed then."""
    try:
        process.wait(timeout=SECONDS)
    finally:
        process.kill()
    return Done(process.wait(), (scene.folder / "said").read_text())


def label(scene: Scene, *overrides: str, environment: Mapping[str, str] | None = None) -> Done:
    return ended(scene, started(scene, *overrides, environment=environment))
