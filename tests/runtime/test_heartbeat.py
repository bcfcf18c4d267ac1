"""A working run writes its heartbeat on time. A failed write never ends a run, and a start without work leaves no file."""

import os
import threading
import time
from pathlib import Path
from unittest.mock import patch

import pytest

from pipeline.core.errors import EngineDied, InputError, Interrupted, StoreError
from pipeline.core.progress import Status
from pipeline.runtime import heartbeat
from pipeline.runtime.stop import StopSignal
from pipeline.runtime.worker_handle import no_watcher
from pipeline.storage.local import LocalStorage
from pipeline.storage.starts import Start, read_starts, this_process
from tests.audit.runs import config
from tests.conftest import write_rows
from tests.deadlines import until
from tests.runtime.in_process import label_in_process

OWED = Status(stage="labelling", units=2, units_done=1, rollouts=5, tokens=50, rollouts_before=3, tokens_before=30)


def shown(run_dir: Path) -> list[Start]:
    return list(read_starts(LocalStorage(run_dir)).starts)


def test_a_run_reports_how_it_ended_and_what_came_in(tmp_path: Path) -> None:
    summary = label_in_process(config(tmp_path, "plan.gpu_hour_price=2.5"))
    (start,) = shown(tmp_path / "run")
    assert (start.ended, start.message, start.pid, start.process) == ("done", "", os.getpid(), this_process())
    assert start.price == 2.5
    assert (start.status.units, start.status.units_done) == (summary.units, summary.units)
    assert (start.status.rollouts, start.status.tokens) == (summary.now.rollouts, summary.now.tokens)
    assert start.samples[-1].rollouts == summary.now.rollouts
    assert start.samples[-1].device_seconds == pytest.approx(start.status.device_seconds, abs=1e-3)
    assert start.status.device_seconds > 0
    assert start.began_at <= start.at <= time.time()


def test_a_start_records_the_settings_that_the_run_does_not(tmp_path: Path) -> None:
    label_in_process(config(tmp_path, "sampling.rollouts=3"))
    (start,) = shown(tmp_path / "run")
    assert start.settings["sampling.rollouts"] == 3
    assert start.settings["data.path"] == str(tmp_path / "rows.jsonl")
    assert not {"run_dir", "sampling.temperature"} & start.settings.keys()


def test_a_later_start_reports_what_earlier_ones_had_committed(tmp_path: Path) -> None:
    first = label_in_process(config(tmp_path, "sampling.rollouts=3"))
    second = label_in_process(config(tmp_path, "sampling.rollouts=5"))
    _, later = shown(tmp_path / "run")
    assert later.status.rollouts_before == first.now.rollouts
    assert later.status.tokens_before == first.now.tokens
    assert later.status.rollouts == second.now.rollouts


def test_a_run_that_is_interrupted_says_so(tmp_path: Path) -> None:
    class Stop(StopSignal):
        def check(self) -> None:
            raise Interrupted("interrupted here")

    with pytest.raises(Interrupted):
        label_in_process(config(tmp_path), Stop())
    (start,) = shown(tmp_path / "run")
    assert (start.ended, start.message) == ("interrupted", "interrupted here")


def test_a_run_that_fails_says_why(tmp_path: Path) -> None:
    write_rows(tmp_path / "rows.jsonl", [{"problem": ""}])
    with pytest.raises(InputError):
        label_in_process(config(tmp_path))
    (start,) = shown(tmp_path / "run")
    assert start.ended == "failed"
    assert "none of the 1 rows" in start.message


@pytest.mark.parametrize("error", [EngineDied("x" * 5000), KeyboardInterrupt(), ZeroDivisionError("odd")])
def test_any_end_is_reported_and_goes_on(tmp_path: Path, error: BaseException) -> None:
    with pytest.raises(type(error)), heartbeat.heartbeat(LocalStorage(tmp_path), None, no_watcher):
        raise error
    (start,) = shown(tmp_path)
    assert start.ended == "failed"
    assert 0 < len(start.message) <= heartbeat.MESSAGE_CHARS


def test_a_fresh_directory_is_reported_of_at_once_and_signs_of_life_follow(tmp_path: Path) -> None:
    with (
        patch.object(heartbeat, "HEARTBEAT_SECONDS", 0.05),
        heartbeat.heartbeat(LocalStorage(tmp_path), None, no_watcher) as report,
    ):
        until(lambda: shown(tmp_path))
        (first,) = shown(tmp_path)
        assert (first.ended, first.status.stage) == ("", "reading the input")
        until(lambda: shown(tmp_path)[0].at > first.at)
        report(OWED)
        until(lambda: shown(tmp_path)[0].status == OWED)
    (last,) = shown(tmp_path)
    assert last.ended == "done"
    assert last.samples[-1].tokens == 50


def test_the_first_start_of_a_run_leaves_its_settings_even_if_it_finds_no_work(tmp_path: Path) -> None:
    (tmp_path / "commits").mkdir()
    (tmp_path / "commits" / "input-00000000000000000000-00000.json").touch()
    for rollouts in (3, 4):
        with heartbeat.heartbeat(LocalStorage(tmp_path), None, no_watcher, {"sampling.rollouts": rollouts}) as report:
            report(Status(stage="starting", units=2, units_done=2))
    (start,) = shown(tmp_path)
    assert (start.ended, start.settings) == ("done", {"sampling.rollouts": 3})


def test_nothing_is_written_until_it_is_known_that_something_is_owed(tmp_path: Path) -> None:
    (tmp_path / "commits").mkdir()
    (tmp_path / "commits" / "input-00000000000000000000-00000.json").touch()
    with heartbeat.heartbeat(LocalStorage(tmp_path), None, no_watcher) as report:
        report(Status(stage="starting", units=2, units_done=2))
        time.sleep(0.1)
        assert shown(tmp_path) == []
        report(OWED)
        until(lambda: shown(tmp_path))


class Deaf(LocalStorage):
    """A store that accepts no file, and says so after `answers` only."""

    answers = threading.Event()

    def replace(self, name: str, data: bytes, *, private: bool = False) -> None:
        assert self.answers.wait(60)
        raise StoreError("no space")


def test_a_place_that_takes_nothing_neither_ends_the_run_nor_holds_it_up(tmp_path: Path) -> None:
    heard: list[Status] = []
    with (
        patch.object(heartbeat, "without_durability", lambda storage: storage),
        patch.object(heartbeat, "LAST_WORD_SECONDS", 0.1),
        heartbeat.heartbeat(Deaf(tmp_path), None, heard.append) as report,
    ):
        for _ in range(100):
            report(OWED)
    assert heard == [OWED] * 100
    assert "heartbeat" in {thread.name for thread in threading.enumerate()}, "it still waits for the store"
    Deaf.answers.set()
    until(lambda: "heartbeat" not in {thread.name for thread in threading.enumerate()})
    assert shown(tmp_path) == []
