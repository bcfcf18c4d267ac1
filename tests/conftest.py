"""Fixtures that several test files share."""

import gc
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from tests.checkout import ROOT as ROOT
from tests.checkout import write_rows as write_rows
from tests.oracles import install
from tests.ray_head import Cluster, ray_head

if TYPE_CHECKING:
    from tests.library import Library

install()

# What is slow is the first draw in a fresh checkout, and a machine that others use too; neither is a failure. `ci` draws the
# same examples each time, so that a verdict is never a matter of luck; `nightly` (--hypothesis-profile=nightly) draws new ones.
settings.register_profile(
    "ci", deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=25, derandomize=True, database=None
)
settings.register_profile("nightly", settings.get_profile("ci"), max_examples=300, derandomize=False)
settings.load_profile("ci")

SHARED_DATA = ROOT.parent / "shared" / "data"


@pytest.hookimpl(tryfirst=True)
def pytest_collection() -> None:
    """What is collected stays: looked through again and again for cycles, it takes two fifths longer, in every process."""
    gc.disable()


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """A module whose mark leaves out all of its tests is not even imported, which is half the time of `make check`."""
    left_out = re.findall(r"not (\w+)", config.option.markexpr)
    if not left_out or collection_path.suffix != ".py":
        return None
    mark = re.search(r"^pytestmark = .*", collection_path.read_text("utf-8"), re.MULTILINE)
    return True if mark and re.search(rf"pytest\.mark\.({'|'.join(left_out)})\b", mark[0]) else None


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()


def pytest_sessionfinish() -> None:
    gc.unfreeze()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files with slow tests come first, so that two processes that take a file each in turn end at about the same time."""
    marked = {name: {item.path for item in items if item.get_closest_marker(name)} for name in ("model", "ray", "slow")}
    items.sort(key=lambda item: [item.path not in paths for paths in marked.values()])


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> "Library":
    """Finished runs that several test files read."""
    from tests.library import Library

    return Library.of(tmp_path_factory)


@pytest.fixture(scope="module")
def ours_alone() -> Iterator[None]:
    """Where a test is about all that there is, as a user sees it."""
    from tests.plugin.installed import ours_alone

    with ours_alone():
        yield


@pytest.fixture(scope="session")
def ray_cluster() -> Iterator[Cluster]:
    """One Ray cluster for all tests of this process. A dashboard would take as long to start as the rest of it."""
    with ray_head(dashboard=False) as made:
        yield made


@pytest.fixture
def light(monkeypatch: pytest.MonkeyPatch) -> None:
    """Checkers have children that start in a moment."""
    from tests.graders import light_child

    monkeypatch.setattr("pipeline.graders.line_process.start_module", light_child.start)


def run_stepvalue(
    arguments: Sequence[str], *, environment: dict[str, str] | None = None, timeout: float = 240
) -> "subprocess.CompletedProcess[str]":
    """The command line as a user starts it, in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "pipeline", *arguments],
        cwd=ROOT,
        env={**os.environ, **(environment or {})},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
