"""Each row once in the folders that people read: every command is killed just before and just after its commits, and its files
are damaged; the next start leaves the rows of a run to which nothing happened, each once, and an audit proves it.

A start writes other bytes than the one before, as another machine does, so that what it writes again has other names.
"""

import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from pipeline.analysis.audit.run import audit
from pipeline.analysis.relabel import regrade, relabel
from pipeline.config.changes import AuditConfig, RegradeConfig, RelabelConfig
from pipeline.core.failpoints import ARMED, arm
from pipeline.judges.oracle import OracleJudge
from pipeline.storage import commits, shards
from pipeline.storage.location import storage_at
from tests.conftest import write_rows
from tests.faults.local_driver import CONTEXT
from tests.faults.reading import folder_rows
from tests.relabel.test_regrade import TAKES_IS
from tests.runtime import chain_tasks, grown
from tests.runtime.growing import SMALL, Row, bare, chains
from tests.runtime.in_process import label_in_process
from tests.runtime.judging import runs as judges
from tests.runtime.judging.test_regrade import stricter
from tests.runtime.virtual_clock import on_a_virtual_clock
from tests.settings import EstimatorChange, compose_label

pytestmark = pytest.mark.slow

SECONDS = 60.0
QUICK = replace(chain_tasks.QUICK, unit_problems=3, units_in_flight=1, flush_seconds=0.05)
SLOW = (*("policy=lab", "policy.lab.tokens_per_second=3000", "estimator=pooled", "run.units_in_flight=1"),)
LABEL = (*SLOW, "run.flush_seconds=0.05", "sampling.rollouts=8", "sampling.solutions=2")
ROWS = [*chains(1, 2, 3), *chains(2, 4, last=3), *bare(5, 6), *chains(1)]
ORDINARY = {"before": "commit.before", "after": "commit.after"}
Point = tuple[str, str, int]
"""A kind of record, what happens, and the how-manieth record it happens at."""


@dataclass(frozen=True, kw_only=True)
class Case:
    """A command: `prepared` makes what it starts with, `start` is a start of it to the end; it writes to `place`."""

    prepared: Callable[[Path], object]
    start: Callable[[Path], object]
    place: Callable[[Path], Path] = lambda folder: folder / "run"
    within: Callable[[], AbstractContextManager[object]] = nullcontext
    """Where it starts, and is audited."""


def _task(task: chain_tasks.Task, **slow: Any) -> Case:
    return Case(
        prepared=lambda folder: task.prepared(folder, 7),
        start=lambda folder: task.start(folder / "run", QUICK, workers=1, **slow),
        place=lambda folder: task.place(folder / "run"),
    )


def label(folder: Path, rows: Sequence[Row], *overrides: str) -> None:
    data = write_rows(folder / "rows.jsonl", rows)
    words = [f"data.path={data}", f"run_dir={folder / 'run'}", *SMALL, *LABEL, *overrides]
    label_in_process(compose_label(words), run=on_a_virtual_clock)


def _judged(folder: Path) -> None:
    judges.judged(judges.settings(judges.labelled(folder, 5), unparseable=0.1))


def _other_parser() -> AbstractContextManager[object]:
    return patch.object(OracleJudge, "read", stricter)


def _grown(folder: Path) -> None:
    grown.labelled(folder)
    grown.grow_here(folder, "grow.budget=48")


CASES = {
    "label": Case(
        prepared=lambda _: None,
        start=lambda folder: label(folder, ROWS),
    ),
    "label more": Case(
        prepared=lambda folder: label(folder, ROWS, "sampling.rollouts=4"),
        start=lambda folder: label(folder, ROWS),
    ),
    "label grown": Case(
        prepared=lambda folder: label(folder, ROWS[:-4]),
        start=lambda folder: label(folder, ROWS),
    ),
    "grow": Case(
        prepared=grown.labelled,
        start=lambda folder: grown.grow_here(folder, "grow.budget=48", "run.flush_seconds=0.05"),
    ),
    "label after grow": Case(prepared=_grown, start=grown.labelled),
    "relabel": Case(
        prepared=lambda folder: label(folder, ROWS),
        start=lambda folder: relabel(
            RelabelConfig(run_dir=str(folder / "run"), estimator=EstimatorChange(threshold=0.3))
        ),
    ),
    "regrade": Case(
        prepared=lambda folder: label(folder, ROWS),
        start=lambda folder: regrade(RegradeConfig(run_dir=str(folder / "run"), grader=TAKES_IS)),
    ),
    "regrade of a judge": Case(
        prepared=_judged,
        start=lambda folder: regrade(RegradeConfig(run_dir=str(folder / "run"))),
        place=lambda folder: chain_tasks.JUDGE.place(folder / "run"),
        within=_other_parser,
    ),
    "judge": _task(chain_tasks.JUDGE, tokens_per_second=100),
    "check": _task(chain_tasks.CHECK),
    "score": _task(chain_tasks.SCORE, chains_per_second=10),
    "search": _task(chain_tasks.SEARCH, tokens_per_second=300),
}

BY_DAY = [
    ("label", "unit whole", "before"),
    ("label", "edition whole", "after"),
    ("regrade", "edition whole", "before"),
    ("score", "unit whole", "before"),
    ("search", "unit whole", "before"),
]
"""What `make test` does; all else is for the night."""
REPAIRED = [name for name in CASES if name != "grow" and not name.startswith(("relabel", "regrade"))]
"""Commands that repair what is damaged."""
COMMITTING = [name for name in CASES if name != "label after grow"]
UNREAD = {"flushed", "aside"}
"""Folders of files of which only an audit says that they are damaged."""


def start(name: str, folder: Path, number: int, environment: Mapping[str, str]) -> None:
    """The main function of a process with the `number`-th start. It notes the records that it publishes."""
    arm(environment)
    encode = commits.encode_commit

    def noted(commit: commits.Commit) -> bytes:
        with (folder / "records").open("a") as file:
            file.write(f"{commit.kind} {commit.state}\n")
        return encode(commit)

    with (
        patch.object(commits, "encode_commit", noted),
        patch.object(shards, "_REPEATING", shards._REPEATING * (not number)),
        CASES[name].within(),
    ):
        CASES[name].start(folder)
    os._exit(0)


def started(name: str, folder: Path, number: int = 0, environment: Mapping[str, str] | None = None) -> int | None:
    process = CONTEXT.Process(target=start, args=(name, folder, number, environment or {}))
    process.start()
    process.join(SECONDS)
    return process.exitcode


@pytest.fixture(scope="module")
def prepared(quick_folder: Path) -> Callable[[str, Path], Path]:
    """Copies what a command starts with, or what it ends with, to a folder."""

    def made(name: str, folder: Path, *, ended: bool = False) -> Path:
        given, calm = quick_folder / f"given {name}", quick_folder / f"calm {name}"
        if not given.exists():
            given.mkdir()
            CASES[name].prepared(given)
            shutil.copytree(given, calm)
            (calm / "records").touch()
            assert started(name, calm) == 0
        shutil.copytree(calm if ended else given, folder)
        return calm

    return made


def points(name: str, calm: Path) -> list[Point]:
    kinds = (calm / "records").read_text().splitlines()
    return [(kind, moment, hit) for hit, kind in enumerate(kinds, start=1) for moment in ORDINARY]


def assert_each_row_once(name: str, folder: Path, calm: Path, *, planned_again: bool = False) -> None:
    place = CASES[name].place
    there, expected = (folder_rows(storage_at(str(place(each))), "flushed") for each in (folder, calm))
    for table, rows in there.items():
        assert rows.total() == len(rows), f"{table}: {rows.total()} rows, {len(rows)} distinct"
    # What an estimator that learns asks for depends on what it knew, and what a growth promotes on its plan.
    chosen = {"rollouts", "promotions", "verdicts", *(("labels", "allotments") if planned_again else ())}
    for table in [table for table in expected if table not in chosen and not table.startswith("flushed")]:
        assert there[table] == expected[table], table
    with CASES[name].within():
        report = audit(AuditConfig(run_dir=str(place(folder))))
    assert report.sound, report


def killed(name: str, point: Point, folder: Path, prepared: Callable[..., Path]) -> None:
    calm = prepared(name, folder)
    kind, moment, hit = point
    code = started(name, folder, 0, {ARMED: f"{ORDINARY[moment]}:kill:{hit}"})
    assert code == -9, f"{kind} {hit} was not reached: {code}"
    assert started(name, folder, 1) == 0
    assert_each_row_once(name, folder, calm)


@pytest.mark.parametrize(("name", "kind", "moment"), BY_DAY)
def test_killed_at_a_commit(name: str, kind: str, moment: str, tmp_path: Path, prepared: Callable[..., Path]) -> None:
    every = points(name, prepared(name, tmp_path / "given"))
    point = [each for each in every if each[:2] == (kind, moment)][-1]
    killed(name, point, tmp_path / "killed", prepared)


@pytest.mark.nightly
@pytest.mark.timeout(280)
@pytest.mark.parametrize("name", COMMITTING)
def test_killed_at_each_commit(name: str, tmp_path: Path, prepared: Callable[..., Path]) -> None:
    for number, point in enumerate(points(name, prepared(name, tmp_path / "given"))):
        killed(name, point, tmp_path / str(number), prepared)


@pytest.mark.nightly
@pytest.mark.timeout(280)
@pytest.mark.parametrize("name", REPAIRED)
def test_damaged_files_and_records(name: str, tmp_path: Path, prepared: Callable[..., Path]) -> None:
    calm = prepared(name, tmp_path / "given", ended=True)
    place = CASES[name].place
    folders = [folder for folder in sorted(place(calm).iterdir()) if folder.name not in UNREAD]
    victims = [files[0] for folder in folders if (files := sorted(folder.glob("*.parquet")))]
    victims += {path.name.partition("-")[0]: path for path in sorted((place(calm) / "commits").iterdir())}.values()
    for number, victim in enumerate(victims):
        folder = tmp_path / str(number)
        prepared(name, folder, ended=True)
        also = victim.parent.name == "allotments"  # units that have grown are labelled again after it
        for path in (victim, *(place(calm) / "rollouts").iterdir()) if also else (victim,):
            os.truncate(folder / path.relative_to(calm), 40)
        assert started(name, folder, 1) == 0
        assert_each_row_once(
            name, folder, calm, planned_again=victim.parent.name == "allotments" or "growth" in victim.name
        )
