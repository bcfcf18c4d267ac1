"""The looks at a running program: each limit is held by itself, also against a program that disturbs the looks."""

import json
import os
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

import pytest

from pipeline.core.records import Verdict
from pipeline.graders.code import child
from pipeline.graders.code.checker import CodeChecker
from pipeline.graders.code.child import MAX_FILES, MAX_FOLDER_BYTES, Watched, _Looks
from pipeline.graders.code.wire import ProgramTask, TaskKind

pytestmark = pytest.mark.slow

Maker = Callable[..., CodeChecker]

PRINTS = json.dumps({"inputs": [""], "outputs": ["done"]})
# Renames its files all the time, so that a list of the folder names files that are gone when they are looked at.
CHURN = """
import os, threading, time
threading.stack_size(2**16)
names = [str(n) for n in range(50)]
for name in names: open(name, 'w').close()
for n in range({threads}): threading.Thread(target=time.sleep, args=(3,), daemon=True).start()
end = time.monotonic() + 1
while time.monotonic() < end:
    for name in names: os.rename(name, name + 'x')
    for name in names: os.rename(name + 'x', name)
print('done')
"""


@pytest.mark.parametrize(("threads", "verdict"), [(10, Verdict.CORRECT), (80, Verdict.INCORRECT)])
def test_a_program_may_rename_files_all_the_time_and_hides_nothing_by_it(
    own_checker: Maker, threads: int, verdict: Verdict
) -> None:
    checker = own_checker(cpu_seconds=30.0, deadline_seconds=60.0)
    assert checker.grade_answer((PRINTS,), CHURN.format(threads=threads)).verdict is verdict


def looks(folder: Path, cpu_seconds: float) -> _Looks:
    task = ProgramTask(kind=TaskKind.SCRIPT, cpu_seconds=cpu_seconds, wall_seconds=9, memory_bytes=0)
    return _Looks(task, Watched(os.getpid()), str(folder))


def test_a_look_that_fails_skips_no_other_and_is_not_endured_for_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    missing = tmp_path / "missing"
    assert looks(missing, cpu_seconds=0.0).exhausts()
    fails = looks(missing, cpu_seconds=1e9)
    assert not fails.exhausts()
    assert not fails.blind
    monkeypatch.setattr(child, "BLIND_SECONDS", 0.0)
    assert not fails.exhausts()
    assert fails.blind


def test_a_look_that_fails_now_and_then_is_no_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "run"
    seen = looks(folder, cpu_seconds=1e9)
    assert not seen.exhausts()
    folder.mkdir()
    assert not seen.exhausts()
    monkeypatch.setattr(child, "BLIND_SECONDS", 0.5)
    folder.rmdir()
    assert not seen.exhausts()
    assert not seen.blind


class Entry:
    """A file in a list of the folder. It has vanished since if it has no size."""

    def __init__(self, size: int | None) -> None:
        self._size = size

    def stat(self, *, follow_symlinks: bool) -> os.stat_result:
        if self._size is None:
            raise FileNotFoundError
        return os.stat_result([0, 0, 0, 0, 0, 0, self._size, 0, 0, 0])

    def is_dir(self, *, follow_symlinks: bool) -> bool:
        return False


@pytest.mark.parametrize(
    ("sizes", "cpu_seconds", "exhausts"),
    [
        ([None, 1], 1e9, False),
        ([None, 1], 0.0, True),
        ([None, *[1] * MAX_FILES], 1e9, True),
        ([None] * (MAX_FILES + 1), 1e9, True),
        ([None, MAX_FOLDER_BYTES, 1], 1e9, True),
    ],
    ids=["no limit", "processor time", "files", "only vanished files", "size"],
)
def test_a_file_that_vanishes_during_a_look_skips_no_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sizes: list[int | None], cpu_seconds: float, exhausts: bool
) -> None:
    monkeypatch.setattr(os, "scandir", lambda _: nullcontext(map(Entry, sizes)))
    seen = looks(tmp_path, cpu_seconds)
    assert seen.exhausts() is exhausts
    assert not seen.blind


def test_a_file_that_vanishes_during_a_look_hides_no_threads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "scandir", lambda _: nullcontext([Entry(None)]))
    monkeypatch.setattr(child, "MAX_THREADS", 0)
    assert looks(tmp_path, cpu_seconds=1e9).exhausts()
