"""System calls on the run directory that fail in the real processes: the command line with its private Ray, driver and workers.

The calls are taken from the processes by a small library that is preloaded into all of them (`broken_calls.c`).
"""

import errno
from pathlib import Path

import pytest

from tests.faults.command_line import compiled, started
from tests.faults.runs import Found, Scene, Scenes, assert_same

pytestmark = [pytest.mark.nightly, pytest.mark.ray, pytest.mark.timeout(280)]

ALWAYS = 10**6
REMEDY = "free disk space or permit writing, then start again"
REFUSED = [
    ("write", errno.ENOSPC, 3), ("write", errno.EIO, 9), ("write", errno.EDQUOT, 12),
    ("fsync", errno.EIO, 5), ("fsync", errno.EIO, 17), ("fsync", errno.ENOSPC, 31),
    ("create", errno.EROFS, 3), ("create", errno.EROFS, 9), ("create", errno.EMFILE, 6),
    ("link", errno.EIO, 4), ("link", errno.EROFS, 9), ("link", errno.ENOSPC, 11),
]  # fmt: skip


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled("broken_calls", tmp_path_factory.mktemp("library"))


def broken(scene: Scene, library: Path, call: str, how: str, first: int, times: int) -> dict[str, str]:
    return {
        "LD_PRELOAD": str(library),
        "BREAK_UNDER": str(scene.run_dir),
        "BREAK_CALL": call,
        "BREAK_HOW": how,
        "BREAK_FIRST": str(first),
        "BREAK_TIMES": str(times),
        "BREAK_LOG": str(scene.folder / "broken"),
    }


def struck(scene: Scene) -> int:
    log = scene.folder / "broken"
    return len(log.read_text().splitlines()) if log.exists() else 0


@pytest.mark.parametrize(("call", "code", "first"), REFUSED)
def test_a_call_that_fails_from_some_time_on_ends_the_run_by_name_and_the_next_start_goes_on(
    scenes: Scenes, reference: Found, library: Path, call: str, code: int, first: int
) -> None:
    scene = scenes()
    job = started(scene, environment=broken(scene, library, call, str(code), first, ALWAYS))
    assert job.wait() == 1, job.said
    assert struck(scene)
    assert "Traceback" not in job.said
    assert REMEDY in job.said
    assert started(scene).wait() == 0
    assert_same(scene, reference)


@pytest.mark.parametrize(("call", "how", "first"), [
    ("write", "short", 1), ("rename", f"{errno.EIO}", 1), ("link", f"late {errno.EIO}", 12), ("rename", f"late {errno.EIO}", 2),
    ("fsync", f"{errno.EIO}", 12), ("write", f"{errno.EIO}", 12),
])  # fmt: skip
def test_a_call_that_fails_once_costs_nothing_that_was_committed(
    scenes: Scenes, reference: Found, library: Path, call: str, how: str, first: int
) -> None:
    scene = scenes()
    times = ALWAYS if how == "short" else 1
    job = started(scene, environment=broken(scene, library, call, how, first, times))
    assert job.wait() == 0 or (how != "short" and REMEDY in job.said), job.said
    assert struck(scene)
    assert "Traceback" not in job.said
    assert started(scene).wait() == 0
    assert_same(scene, reference)
