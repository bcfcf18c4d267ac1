"""`status` on runs in every state: what it prints, that it changes nothing, and that it never shows a traceback."""

import json
import os
import re
import shutil
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import fsspec
import pytest

from pipeline.__main__ import main
from pipeline.analysis.relabel import relabel
from pipeline.analysis.status import SHOWN_DAMAGE, RunStatus, StartState, lines, run_status
from pipeline.config.changes import RelabelConfig
from pipeline.config.choices import LabelRule
from pipeline.core.forecast import Cost, Forecast, Limit, Pilot, PlannedWork, Range, StartCost, encode_forecast
from pipeline.core.progress import Load, SpeedSample, Status, Verdicts, replaced_worker
from pipeline.runtime.chain_run.run import run_task
from pipeline.runtime.driver import LabelTask
from pipeline.runtime.stop import StopSignal
from pipeline.storage.local import LocalStorage
from pipeline.storage.objects import ObjectStorage
from pipeline.storage.run_record import encode_identity
from pipeline.storage.starts import FAILED, FOLDER, PLAN, Start, read_starts, this_process, write_start
from tests.audit.runs import config, files
from tests.library import Library
from tests.runtime.in_process import in_process
from tests.runtime.test_starting import FULL, Gpus, run
from tests.settings import EstimatorChange

FINISHED = """\
run       RUN
state     finished: all units are finished
start     on HOST, process PID, started TIME UTC
units     2 of 2 finished
rows      9 read = 7 used + 2 rejected
work      5 problems, 9 chains, 16 distinct prefixes
rollouts  45 = 32 correct + 13 incorrect + 0 without an answer + 0 ungraded
          1 prefix did not fit into the policy's context: see rejects/
tokens    1,313 in rollouts, 148 in sampled solutions
rule      lasting_drop: a step is bad if the value falls to 0.5 of its best so far, or below, and stays there, else good
cost      H device hours, M in money, in 1 start
"""

WORKING = Status(
    stage="labelling", units=2, units_done=1, prefixes=15, prefixes_decided=9, rollouts=40, rollouts_expected=100,
    rollouts_before=5, tokens=4000, verdicts=Verdicts(correct=20, incorrect=18, no_answer=2, truncated=1),
    load=Load(running=8, waiting=4, grading=1), workers=2, device_seconds=7200.0, share_of_bound=0.5,
)  # fmt: skip
COURSE = (SpeedSample(0.0, 0, 0, 0, 0, 0, 0, 0, 0, 0.0), SpeedSample(20.0, 1, 9, 40, 4000, 8, 4, 1, 2, 40.0))


@pytest.fixture
def run_dir(library: Library, tmp_path: Path) -> Path:
    return library.copy("mixed", tmp_path)


def the_start(run_dir: Path) -> Start:
    (start,) = read_starts(LocalStorage(run_dir)).starts
    return start


def report(run_dir: Path, **changes: object) -> Start:
    start = replace(the_start(run_dir), **changes)  # type: ignore[arg-type]
    write_start(LocalStorage(run_dir), start)
    return start


def records_of_a_unit(run_dir: Path) -> list[Path]:
    """All records of one unit, in order."""
    first, *_ = sorted((run_dir / "commits").glob("unit-*"))
    return sorted(first.parent.glob(f"{first.name.rpartition('-')[0]}-*"))


def owe_a_unit(run_dir: Path) -> None:
    for record in records_of_a_unit(run_dir):
        record.unlink()


def status(run_dir: Path, now: float | None = None) -> RunStatus:
    starts = read_starts(LocalStorage(run_dir)).starts
    return run_status(LocalStorage(run_dir), now or (starts[-1].at + 3 if starts else 0.0))


def masked(run_dir: Path, text: str) -> str:
    for pattern, name in (
        (re.escape(str(run_dir)), "RUN"),
        (r"on \S+, process \d+, started \S+ \S+ UTC", "on HOST, process PID, started TIME UTC"),
        (r"[\d.]+ device hours, [\d.]+ in money", "H device hours, M in money"),
    ):
        text = re.sub(pattern, name, text)
    return text


def printed(run_dir: Path, now: float | None = None) -> str:
    return masked(run_dir, "".join(f"{line}\n" for line in lines(status(run_dir, now))))


def test_a_finished_run(run_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = files(run_dir)
    assert main(["status", f"run_dir={run_dir}"]) == 0
    assert masked(run_dir, capsys.readouterr().out) == FINISHED
    assert files(run_dir) == before


def test_the_edition_with_the_current_labels_is_named(run_dir: Path) -> None:
    assert "edition" not in printed(run_dir)
    relabel(RelabelConfig(run_dir=str(run_dir), estimator=EstimatorChange(rule=LabelRule.threshold, threshold=0.3)))
    assert status(run_dir).edition == 0
    text = printed(run_dir)
    assert "rule      threshold: a step is good if its value is above 0.3, else bad\n" in text
    assert "edition   0, made by `relabel`\n" in text


def test_a_run_at_work(run_dir: Path) -> None:
    owe_a_unit(run_dir)
    report(run_dir, ended="", process=this_process(), pid=os.getpid(), status=WORKING, samples=COURSE)
    text = printed(run_dir)
    assert "state     running: last heartbeat 3 s ago\n" in text
    assert "units     1 of 2 finished\n" in text
    assert (
        text.partition("now ")[2]
        == """\
      labelling
          units     1 of 2 finished
          prefixes  9 of 15 done, of the units begun
          rollouts  40 of 100 expected so far, 5 from earlier starts
          speed     200 tokens/s, 200 since the start
          hardware  50 % of the hardware's upper bound
          requests  8 running, 4 waiting, 1 waiting for the grader
          verdicts  50 % correct, 45 % incorrect, 5.0 % no answer
          cut       2.5 % of rollouts, by sampling.max_tokens
          left      about 0:00:30
          workers   2
cost      H device hours, M in money, in 1 start
"""
    )


def test_the_error_that_ended_a_run_is_printed_once(run_dir: Path) -> None:
    owe_a_unit(run_dir)
    gpus = Gpus(count=3, faults={gpu: [FULL] for gpu in range(3)}, downloads=[0.0, 20.0, 40.0])
    ended = run(gpus, 3)
    warnings = ended.shown[-1].warnings
    assert [str(FULL) in warning for warning in warnings] == [True, True]
    shown = replace(ended.shown[-1], warnings=(*warnings, replaced_worker(str(FULL)), replaced_worker("another error")))
    report(run_dir, ended=FAILED, message=str(ended.error), status=shown)
    text = printed(run_dir)
    assert text.count(str(FULL)) == 1
    assert f"state     failed: {FULL} (and 2 other workers could not start either)\n" in text
    assert "at last   replacing a worker\n" in text
    assert "warning   a worker was replaced: another error\n" in text


def test_a_start_on_another_machine_is_known_by_its_signs_of_life(run_dir: Path) -> None:
    owe_a_unit(run_dir)
    start = report(run_dir, ended="", process="elsewhere pid:[1] 7 7", status=WORKING)
    assert status(run_dir, start.at - 100).condition.state is StartState.RUNNING  # its clock is ahead
    assert status(run_dir, start.at + 59).condition.state is StartState.RUNNING
    assert status(run_dir, start.at + 61).condition.state is StartState.DEAD
    text = printed(run_dir, start.at + 240)
    assert "state     dead: no heartbeat for 4 min: the process is dead or disconnected; start `label` again" in text


def test_a_start_on_this_machine_is_dead_when_its_process_is(run_dir: Path) -> None:
    owe_a_unit(run_dir)
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    boot, names, *_ = this_process().split()
    report(run_dir, ended="", pid=gone.pid, process=f"{boot} {names} {gone.pid} 1", status=WORKING)
    text = printed(run_dir)
    assert "state     dead: its process is gone; last heartbeat 3 s ago" in text
    assert "at last   labelling" in text
    assert "left" not in text


def test_a_process_with_the_number_of_a_dead_one_is_another(run_dir: Path) -> None:
    owe_a_unit(run_dir)
    boot, names, *_ = this_process().split()
    report(run_dir, ended="", pid=os.getpid(), process=f"{boot} {names} {os.getpid()} 1")
    assert status(run_dir).condition.state is StartState.DEAD


@pytest.mark.parametrize(
    ("ended", "line"),
    [
        ("interrupted", "state     interrupted: 3 s ago; start `label` again to go on"),
        ("failed", "state     failed: worker died: �[31m CUDA error"),
        ("stopped at its limit", "state     stopped at its limit: worker died: �[31m CUDA error"),
        (
            "done",
            "state     unfinished: some units need rollouts again since the last start; start `label` again to go on",
        ),
    ],
)
def test_how_the_last_start_ended_is_reported(run_dir: Path, ended: str, line: str) -> None:
    owe_a_unit(run_dir)
    report(run_dir, ended=ended, message="worker died:\n[31m CUDA error")
    assert f"{line}\n" in printed(run_dir)


def test_a_run_whose_units_are_whole_is_finished_whatever_its_last_start_said(run_dir: Path) -> None:
    report(run_dir, ended="failed", message="the disk was full")
    assert status(run_dir).condition.state is StartState.FINISHED


def test_more_that_is_added_to_a_finished_run_is_work(run_dir: Path) -> None:
    report(run_dir, ended="", process=this_process(), pid=os.getpid())
    assert status(run_dir).condition.state is StartState.RUNNING


def test_of_several_starts_the_one_at_work_is_reported_of_and_all_are_paid(run_dir: Path) -> None:
    owe_a_unit(run_dir)
    first = report(run_dir, ended="", process=this_process(), pid=os.getpid(), status=WORKING, price=3.0)
    for later in (1, 2):
        other = replace(first, start_id=f"{later:020x}", began_at=first.began_at + later, ended="failed", price=None)
        write_start(LocalStorage(run_dir), other)
    found = status(run_dir)
    assert found.condition.seen
    assert found.condition.seen.start == first
    assert (found.spent.starts, found.spent.unpriced) == (3, 2)
    assert found.spent.money == pytest.approx(6.0)
    assert "6.00 device hours, 6.00 in money, in 3 starts (2 without a price)" in "".join(lines(found))


@pytest.mark.parametrize("owed", [True, False])
def test_a_run_without_its_starts(run_dir: Path, owed: bool) -> None:
    shutil.rmtree(run_dir / FOLDER)
    if owed:
        owe_a_unit(run_dir)
    text = printed(run_dir)
    assert ("state     unfinished: no start gives a reason" if owed else "state     finished:") in text
    assert f"units     {1 if owed else 2} of 2 finished\n" in text
    assert "cost" not in text
    assert "start  " not in text


def test_what_is_committed_of_a_unit_in_work_is_counted_apart(run_dir: Path) -> None:
    """The last record of a unit is removed after the unit was flushed and then completed."""
    records = sorted((run_dir / "commits").glob("unit-*"))
    last = next(path for path in reversed(records) if not path.name.endswith("-00000.json"))
    last.unlink()
    found = status(run_dir)
    assert found.units_done == 1
    assert 0 < found.unfinished["rollouts"] < 45
    totals = found.tally.totals
    assert totals.rollouts == (totals.correct + totals.incorrect + totals.no_answer + totals.ungraded + totals.aborted)
    assert f"{found.unfinished['rollouts']} more in unfinished units" in printed(run_dir)


def test_planned_beside_so_far(run_dir: Path) -> None:
    (run_dir / PLAN).write_bytes(encode_forecast(FORECAST))
    six_seconds = replace(the_start(run_dir).status, device_seconds=6.0)
    report(run_dir, status=six_seconds)
    text = printed(run_dir)
    assert "planned   rollouts 100 (80 to 130), so far 45\n" in text
    assert "          tokens 2,000 (1,500 to 2,500), so far 1,461\n" in text
    assert "          device hours 1.50 (1.00 to 2.00), so far 0.0017\n" in text
    assert "          money 3.00 (2.00 to 4.00), so far 0.0033\n" in text
    (run_dir / PLAN).write_text("{")
    assert "planned   plan.json cannot be read: it is not JSON" in printed(run_dir)


def test_a_run_that_has_only_been_claimed(run_dir: Path) -> None:
    for folder in (FOLDER, "commits", "inputs", "labels", "rollouts"):
        shutil.rmtree(run_dir / folder)
    text = printed(run_dir)
    assert "state     unfinished: no start gives a reason" in text
    assert "units     not known yet" in text
    assert "rollouts" not in text


@pytest.mark.parametrize("content", [b"", b"\x00\xff", b"{}", b"[1]"])
def test_damaged_records_are_named_and_the_rest_is_reported(run_dir: Path, content: bytes) -> None:
    for victim in (*records_of_a_unit(run_dir), *(run_dir / FOLDER).iterdir()):
        victim.write_bytes(content)
    text = printed(run_dir)
    assert "damaged   commits/unit-" in text
    assert "damaged   starts/start-" in text
    assert "unreadable, so the cost of this start is not counted" in text
    assert "units     1 of 2 finished" in text
    shutil.rmtree(run_dir / FOLDER)
    for victim in (*(run_dir / "commits").iterdir(), *(run_dir / "inputs").iterdir()):
        victim.write_bytes(content)
    text = printed(run_dir)
    assert "units     not known yet" in text
    assert text.count("damaged") == SHOWN_DAMAGE
    assert "more records\n" in text


@pytest.mark.parametrize(
    ("content", "complaint"),
    [(b"{", "is damaged"), (encode_identity({"schema": 1}), "written with schema 1"), (None, "has no run.json")],
)
def test_what_is_no_run_of_this_version_is_one_line(
    run_dir: Path, content: bytes | None, complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (run_dir / "run.json").unlink()
    if content is not None:
        (run_dir / "run.json").write_bytes(content)
    assert main(["status", f"run_dir={run_dir}"]) in (1, 2)
    error = capsys.readouterr().err
    assert complaint in error
    assert error.count("\n") == 1


@pytest.mark.parametrize("place", ["", "nowhere", "file", "s3://no.such.scheme/../x"])
def test_a_place_without_a_run_is_one_line(tmp_path: Path, place: str, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").touch()
    assert main(["status", f"run_dir={place if '://' in place else tmp_path / place}"]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_json_is_one_object_with_the_same(run_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["status", f"run_dir={run_dir}", "json=true"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert (shown["condition"]["state"], shown["units"], shown["units_done"]) == ("finished", 2, 2)
    assert shown["totals"]["rollouts"] == 45
    assert shown["condition"]["seen"]["start"]["status"]["units"] == 2
    assert "samples" not in shown["condition"]["seen"]["start"]


def test_an_object_store_is_read_several_files_at_once(run_dir: Path) -> None:
    owe_a_unit(run_dir)
    memory = fsspec.filesystem("memory")
    memory.put(str(run_dir), "/watched", recursive=True)
    reads = Counting(memory)
    stored = ObjectStorage(reads, "/watched", "memory://watched", sends_condition=False)
    try:
        found, local = run_status(stored, 2e9), status(run_dir, 2e9)
        assert replace(found, run_dir="") == replace(local, run_dir="")
        assert len(reads.threads) > 1
    finally:
        memory.rm("/watched", recursive=True)


class Counting:
    """A file system that records which threads have read."""

    def __init__(self, files: Any) -> None:
        self._files = files
        self.threads: set[int] = set()

    def cat_file(self, path: str) -> bytes:
        self.threads.add(threading.get_ident())
        return bytes(self._files.cat_file(path))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._files, name)


def test_it_can_be_asked_while_a_run_works(tmp_path: Path) -> None:
    found: list[StartState] = []

    def ask(status: Status) -> None:
        if status.stage == "labelling":
            found.append(run_status(LocalStorage(tmp_path / "run"), time.time()).condition.state)

    run_task(LabelTask(config(tmp_path)), in_process, ask, StopSignal())
    assert set(found) <= {StartState.UNFINISHED, StartState.RUNNING, StartState.FINISHED}
    assert StartState.RUNNING in found


def _range(low: float, expected: float, high: float) -> Range:
    return Range(low=low, expected=expected, high=high)


FORECAST = Forecast(
    made_at="", identity={}, settings={}, gpus=1, gpu_hour_price=2.0, others=(), limit=Limit(tokens=None),
    planned=PlannedWork(
        rows=1, used=1, rejected=0, rejects={}, problems=1, chains=1, steps=1, prefixes=1, too_long=0, prompt_tokens=1,
        distinct_prompt_tokens=1, context=1,
    ),
    pilot=Pilot(
        measured=False, completion_tokens=_range(1, 1, 1), success_rate=_range(0, 0.5, 1), tokens_per_second=None
    ),
    starting=StartCost(device_hours=_range(0, 0, 1), wall_hours=_range(0, 0, 1), money=None),
    cost=Cost(
        estimator="fixed", rollouts=_range(80, 100, 130), tokens=_range(1500, 2000, 2500), device_hours=_range(1, 1.5, 2),
        wall_hours=None, money=_range(2, 3, 4),
    ),
)  # fmt: skip
