"""A written start is read back unchanged, damaged files are named, and each process has a unique identity."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.core.errors import StoreError
from pipeline.core.progress import MOST, Load, ProgressHistory, Status, Verdicts
from pipeline.storage import starts
from pipeline.storage.disk import OsDisk
from pipeline.storage.local import LocalStorage
from pipeline.storage.starts import (
    FOLDER,
    Start,
    Starts,
    new_start_id,
    process_with,
    read_starts,
    same_machine,
    this_process,
    write_start,
)
from tests.deadlines import until

STATUS = Status(
    stage="labelling",
    units=3,
    rollouts=5,
    verdicts=Verdicts(correct=5),
    load=Load(running=2),
    share_of_bound=0.5,
    warnings=("a worker on m, GPU 3 could not start", "two"),
)


def start(began: float = 1_800_000_000.0, **changes: object) -> Start:
    course = ProgressHistory()
    course.take(STATUS, 1.5)
    made = Start(
        start_id=new_start_id(began), host="here", pid=7, process="", began_at=began, at=began, status=STATUS,
        samples=course.samples,
    )  # fmt: skip
    return replace(made, **changes)  # type: ignore[arg-type]


def test_starts_come_back_in_the_order_of_time(tmp_path: Path) -> None:
    storage = LocalStorage(tmp_path)
    shown = [start(1_800_000_000.0 + at, ended="failed", message="\ud800 no", price=2.5) for at in (20, 0, 10)]
    for each in shown:
        write_start(storage, each)
    first, second, third = read_starts(storage).starts
    assert [first.began_at, second.began_at, third.began_at] == sorted(each.began_at for each in shown)
    assert first == replace(shown[1], message="? no")


def test_a_start_is_replaced_by_what_it_reports_later(tmp_path: Path) -> None:
    storage, shown = LocalStorage(tmp_path), start()
    write_start(storage, shown)
    write_start(storage, replace(shown, ended="done"))
    (found,) = read_starts(storage).starts
    assert found.ended == "done"


def test_a_start_is_for_its_owner_alone_and_others_see_that_it_is_there(tmp_path: Path) -> None:
    """It states why it failed. Nobody is refused as root, so the refusal is made here."""
    storage = LocalStorage(tmp_path)
    write_start(storage, start())
    (file,) = (tmp_path / FOLDER).iterdir()
    assert file.stat().st_mode & 0o777 == 0o600
    with patch.object(OsDisk, "read", side_effect=PermissionError(13, "Permission denied")):
        assert read_starts(storage) == Starts(starts=(), damaged=(f"{FOLDER}/{file.name}",))
    with (
        patch.object(OsDisk, "read", side_effect=OSError(5, "Input/output error")),
        pytest.raises(StoreError, match="cannot be read"),
    ):
        read_starts(storage)


def test_of_very_many_starts_the_last_ones_are_read(tmp_path: Path) -> None:
    storage = LocalStorage(tmp_path)
    shown = [start(1_800_000_000.0 + at) for at in range(5)]
    for each in shown:
        write_start(storage, each)
    with patch.object(starts, "READ", 3):
        assert read_starts(storage).starts == tuple(shown[2:])


def _fields(**changes: object) -> str:
    return json.dumps(
        {"start_id": "x", "host": "h", "pid": 1, "process": "", "began_at": 1.0, "at": 1.0, "samples": []}
        | {"status": {"stage": "", "load": {}, "verdicts": {}, "warnings": []}, "settings": {}}
        | changes
    )


@pytest.mark.parametrize(
    "content",
    [
        "", "{", "[]", "null", "7", "{}", '"' + "x" * 50, "[" * 100_000, "\x00",
        _fields(later=1), _fields(at="yesterday"), _fields(at=None), _fields(pid=1.5), _fields(host=3), _fields(samples=[[1]]),
        _fields(samples=[["a"] * 10]), _fields(status=3),
        _fields(status={"stage": "", "load": {}, "verdicts": {}, "warnings": [1]}),
        _fields(status={"stage": "", "load": [], "verdicts": {}, "warnings": []}), _fields(settings=["x"]),
    ],
)  # fmt: skip
def test_a_damaged_file_reports_nothing_and_is_named(tmp_path: Path, content: str) -> None:
    (tmp_path / FOLDER).mkdir()
    name = f"{FOLDER}/start-{new_start_id(1.0)}-00000.json"
    (tmp_path / name).write_text(content)
    (tmp_path / FOLDER / "notes.txt").write_text("not ours")
    assert read_starts(LocalStorage(tmp_path)) == Starts(starts=(), damaged=(name,))
    (tmp_path / FOLDER / f"start-{new_start_id(2.0)}-00000.json").write_text(_fields())
    found = read_starts(LocalStorage(tmp_path))
    assert (len(found.starts), found.damaged) == (1, (name,))


def test_a_process_is_reported_from_those_before_and_behind_it() -> None:
    other = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        name = process_with(other.pid)
        assert name not in ("", this_process())
        assert same_machine(name)
        other.kill()
        # Until it is waited for it is a zombie, which has a number and does nothing.
        until(lambda: process_with(other.pid) == "")
    finally:
        other.kill()
        other.wait()


@pytest.mark.parametrize("process", ["", "another-boot pid:[1] 7 7"])
def test_a_process_of_another_machine_cannot_be_seen(process: str) -> None:
    assert not same_machine(process)


@given(st.lists(st.floats(0, 100), max_size=60), st.integers(1, 40))
def test_a_course_keeps_its_last_sample_and_is_bounded(steps: list[float], times: int) -> None:
    course, now = ProgressHistory(), 0.0
    for count, step in enumerate(steps * times):
        now += step
        course.take(replace(STATUS, rollouts=count), now)
        assert course.samples[-1].rollouts == count
    found = [sample.seconds for sample in course.samples]
    assert found == sorted(found)
    assert len(found) <= MOST
