"""`python -m pipeline label` on a scene, with its private Ray, as a user starts it, and libraries that are preloaded into its
processes, compiled from the C files beside this one."""

import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

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


def compiled(name: str, folder: Path) -> Path:
    """The library of `NAME.c`. Skips the test where there is no C compiler."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("there is no C compiler; the same faults are also played by tests/faults/sim.py")
    library = folder / f"{name}.so"
    source = Path(__file__).with_name(f"{name}.c")
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-Wall", "-o", str(library), str(source), "-ldl"], check=True)
    return library
