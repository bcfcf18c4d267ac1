"""What a run without faults comes to, known once, and scenes that are cleared away."""

import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.faults.runs import MORE, Found, Scene, found, scene

MEMORY = Path("/dev/shm")
"""Most of a run's time goes into flushing files to the disk, and a process that is killed loses nothing of what it wrote."""


@pytest.fixture(scope="session")
def quick_folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="stepvalue-", dir=MEMORY if MEMORY.is_dir() else None) as folder:
        yield Path(folder)


@pytest.fixture(scope="session")
def reference(quick_folder: Path) -> Found:
    calm = scene(quick_folder / "reference")
    calm.finish()
    return found(calm.run_dir)


@pytest.fixture(scope="session")
def extended(quick_folder: Path) -> Found:
    """What a run comes to that asks for `MORE`."""
    calm = scene(quick_folder / "extended")
    calm.finish(MORE)
    return found(calm.run_dir)


@pytest.fixture
def scenes(quick_folder: Path) -> Iterator[Callable[..., Scene]]:
    """Makes scenes, by name; whatever still runs of them at the end is ended."""
    made: list[Scene] = []
    folder = Path(tempfile.mkdtemp(dir=quick_folder))

    def make(name: str = "scene", **options: object) -> Scene:
        made.append(scene(folder / name, **options))  # type: ignore[arg-type]
        return made[-1]

    yield make
    for each in made:
        each.clear_away()
    shutil.rmtree(folder)
