"""What the tests of the Python functions share: calls do their work in this process, but where a test is marked `ray`."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from pipeline import Run, label, open_run
from tests.python.calls import INPUT, QUICK
from tests.runtime.without_ray import python_without_ray


@pytest.fixture(autouse=True)
def in_this_process(request: pytest.FixtureRequest) -> Iterator[None]:
    if request.node.get_closest_marker("ray"):
        yield
        return
    with python_without_ray():
        yield


@pytest.fixture(scope="session")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run that every test reads, and none changes."""
    with python_without_ray():
        return label(INPUT, run_dir=tmp_path_factory.mktemp("python") / "run", **QUICK)


@pytest.fixture
def own(run: Run, tmp_path: Path) -> Run:
    """A copy of it, to be changed."""
    return open_run(shutil.copytree(run.run_dir, tmp_path / "run"))
