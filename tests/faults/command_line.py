"""`python -m pipeline label` on a scene, with its private Ray or on a cluster, as a user starts it, and libraries that are
preloaded into its processes, compiled from the C files beside this one."""

import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.checkout import stepvalue
from tests.faults.raylets import Raylets
from tests.faults.runs import Scene
from tests.ray_head import TOKEN

SECONDS = 130.0


@dataclass(frozen=True, slots=True)
class Job:
    """The command line under way on a scene."""

    scene: Scene
    process: "subprocess.Popen[bytes]"

    @property
    def said(self) -> str:
        """What all starts on the scene have printed."""
        return (self.scene.folder / "said").read_text()

    def at_work(self) -> bool:
        """Whether a part of a unit is committed, while the run goes on."""
        assert self.process.poll() is None, self.said
        return bool(self.scene.committed())

    def wait(self, seconds: float = SECONDS) -> int:
        """Its exit code. Raises TimeoutExpired; it is killed then."""
        try:
            return self.process.wait(seconds)
        finally:
            self.end()

    def end(self) -> None:
        self.process.kill()
        self.process.wait()


def started(
    scene: Scene, *overrides: str, cluster: Raylets | None = None, environment: Mapping[str, str] | None = None
) -> Job:
    where = [f"data.path={scene.data}", f"run_dir={scene.run_dir}", "run.report=false"]
    if cluster:
        where, environment = [*where, f"cluster.address={cluster.address}"], TOKEN
    words = ["label", *where, *scene.settings, *overrides]
    return Job(scene, stepvalue(scene.folder / "said", *words, environment=environment))


def compiled(name: str, folder: Path) -> Path:
    """The library of `NAME.c`. Skips the test where there is no C compiler."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("there is no C compiler; the same faults are also played by tests/faults/sim.py")
    library = folder / f"{name}.so"
    source = Path(__file__).with_name(f"{name}.c")
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-Wall", "-o", str(library), str(source), "-ldl"], check=True)
    return library
