"""What a run without faults comes to, known once, and scenes that are cleared away."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.faults.runs import Found, Scene, found, scene


@pytest.fixture(scope="session")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Found:
    calm = scene(tmp_path_factory.mktemp("reference"))
    calm.finish()
    return found(calm.run_dir)


@pytest.fixture
def scenes(tmp_path: Path) -> Iterator[Callable[..., Scene]]:
    """Makes scenes, by name; whatever still runs of them at the end is ended."""
    made: list[Scene] = []

    def make(name: str = "scene", **options: object) -> Scene:
        made.append(scene(tmp_path / name, **options))  # type: ignore[arg-type]
        return made[-1]

    yield make
    for each in made:
        each.clear_away()
