"""Libraries that are preloaded into the processes of a run, compiled from the C files beside this one."""

import shutil
import subprocess
from pathlib import Path

import pytest


def compiled(name: str, folder: Path) -> Path:
    """The library of `NAME.c`. Skips the test where there is no C compiler."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("there is no C compiler; the same faults are also played by tests/faults/sim.py")
    library = folder / f"{name}.so"
    source = Path(__file__).with_name(f"{name}.c")
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-Wall", "-o", str(library), str(source), "-ldl"], check=True)
    return library
