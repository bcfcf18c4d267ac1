"""Run directories made before, and what today's program makes of them.

`tests/guard/before` holds them with their inputs. A run's file name in a table of inputs is relative, so that no path of
the machine that made it is kept.
"""

import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.guard.digests import digest, settings, tables
from tests.guard.runs import ORDERLY, exports, summary
from tests.guard.terminal import HERE, ROOT, Answer, Part, Terminal

BEFORE = HERE / "before"
INPUTS = ("problems.jsonl", "programs.jsonl")
SETTINGS = f"{ORDERLY} data.path=problems.jsonl sampling.solutions=2"
WAIT_SECONDS = 60.0
SLOW = "policy.oracle.tokens_per_second=4000"
"""Slow enough to be stopped between two units; it is no part of a run's identity."""
NOT_COMPARED = ("copy", "prune")
"""Steps between those that are compared. What there is to prune depends on the processor: labels that come to other last bits
than those before them are another edition, which leaves the earlier files aside."""


@dataclass(frozen=True, kw_only=True)
class Old:
    """A stored run directory, the settings it was made with, and whether it was stopped before its end."""

    name: str
    settings: str
    stopped: bool = False
    extended: str = ""
    """Settings with which it goes on."""
    compared: bool = False
    """Whether a new run is made to be compared with it; `label` refuses a run that is another one."""


OLD = {
    old.name: old
    for old in (
        Old(
            name="fixed",
            settings=f"{SETTINGS} estimator=fixed run.unit_problems=4",
            extended="sampling.rollouts=12",
            compared=True,
        ),
        # `label` refuses it: the estimator of these settings, `pooled`, has another prior now.
        Old(name="default", settings=f"{SETTINGS} run.unit_problems=4"),
        Old(name="first_success", settings=f"{SETTINGS} estimator=first_success run.unit_problems=4"),
        Old(name="bisect", settings=f"{SETTINGS} estimator=bisect run.unit_problems=4"),
        Old(name="stopped", settings=f"{SETTINGS} estimator=fixed run.unit_problems=2", stopped=True),
        Old(
            name="programs",
            settings=(
                f"{ORDERLY} data.path=programs.jsonl data.answer_is_suite=true data.splitter=whole grader=code "
                "grader.timeout_is=ungraded estimator=fixed sampling.rollouts=2"
            ),
            compared=True,
        ),
    )
}


def placed(folder: Path) -> None:
    """Copies of the inputs, under the names that the runs know them by."""
    for name in INPUTS:
        shutil.copy(BEFORE / name, folder / name)


def copied(old: Old, folder: Path) -> Path:
    """A copy of a stored run directory that may be written to."""
    return Path(shutil.copytree(BEFORE / old.name, folder / old.name))


def new_run(old: Old, folder: Path) -> Part:
    """What a new run with the same command comes to."""

    def collect(answers: Sequence[Answer]) -> dict[str, Any]:
        (answer,) = answers
        if answer.code:
            return summary(answer, folder)
        return {**summary(answer, folder), **tables(folder / "new"), "settings": settings(folder / "new")}

    return Part(folder=folder, commands=[f"label {old.settings} run_dir=new"], collect=collect)


def used(old: Old, folder: Path) -> Part:
    """What each command makes of an old run directory. `folder` holds a copy of it. Its labels have the columns of schema 3, so
    reports and exports are refused until `relabel` has made new ones (`upgrade`)."""
    run_dir = folder / old.name
    at = f"run_dir={old.name}"
    first = digest((run_dir / "run.json").read_bytes())
    lines = {
        "status": f"status {at}",
        "audit before": f"audit {at}",
        "label": f"label {old.settings} {at}",
        "audit after": f"audit {at}",
        "report of old labels": f"report {at} out=report.html",
        "export of old labels": f"export {at} format=trl out=refused",
        "upgrade": f"relabel {at}",
        "audit of new labels": f"audit {at}",
        "report": f"report {at} out=report.html",
        "status after": f"status {at}",
        "copy": f"copy {old.name} labelled",
        "relabel": f"relabel {at} estimator.rule=threshold estimator.threshold=0.4",
        "regrade": f"regrade {at} grader.fallback=last_number",
        "prune": f"audit --prune {at}",
        "audit at last": f"audit {at}",
    }
    if old.extended:
        lines["second copy"] = "copy labelled extended"
        lines["extended"] = f"label {old.settings} {old.extended} run_dir=extended"
        lines["upgrade of the extended"] = "relabel run_dir=extended"
        lines["audit of the extended"] = "audit run_dir=extended"
    written = exports(folder / "labelled", folder, ["format=trl", "format=parquet"])

    def collect(answers: Sequence[Answer]) -> dict[str, Any]:
        found: dict[str, Any] = {"run.json": first}
        for name, answer in zip(lines, answers, strict=False):
            if not any(step in name for step in NOT_COMPARED):
                found[name] = summary(answer, folder)
        found["upgrade"] |= tables(folder / "labelled")
        found["run.json after"] = digest((run_dir / "run.json").read_bytes())
        found["export"] = written.collect(answers[len(lines) :])
        found["at last"] = tables(run_dir)
        if old.extended:
            found["extended"] |= tables(folder / "extended")
        return found

    return Part(folder=folder, commands=[*lines.values(), *written.commands], collect=collect)


def all_used(terminal: Terminal, folder: Path, names: Sequence[str] = tuple(OLD)) -> dict[str, dict[str, Any]]:
    """What becomes of copies of old run directories, `NAME`, and of some new runs with the same commands, `NAME new`."""
    parts = {}
    for old in map(OLD.__getitem__, names):
        below = folder / old.name
        below.mkdir()
        placed(below)
        copied(old, below)
        parts[old.name] = used(old, below)
        if old.compared:
            parts[f"{old.name} new"] = new_run(old, below)
    return terminal.run_parts(parts)


def make(terminal: Terminal, old: Old, folder: Path) -> None:
    """Make a run directory as it is stored."""
    command = f"label {old.settings} run_dir={old.name}"
    if not old.stopped:
        (answer,) = terminal.run(folder, [command])
        if answer.code:
            raise RuntimeError(answer.err)
        return
    words = [*shlex.split(command), SLOW]
    with subprocess.Popen(
        [sys.executable, "-m", "pipeline", *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as started:
        deadline = time.monotonic() + WAIT_SECONDS
        while len(list((folder / old.name).glob("commits/unit-*"))) < 2 and time.monotonic() < deadline:
            time.sleep(0.01)
        started.send_signal(signal.SIGTERM)
        if started.wait(WAIT_SECONDS) != 75:
            raise RuntimeError(f"the run was not stopped in the middle: it ended with {started.returncode}")
