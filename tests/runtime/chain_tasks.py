"""The commands that do something with every chain or problem once, each as what their common tests need of it."""

import asyncio
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import polars as pl

from pipeline.analysis.audit.findings import Finding
from pipeline.analysis.audit.run import AuditReport, audit
from pipeline.config.changes import AuditConfig
from pipeline.config.label import ClusterConfig, DataConfig, RunConfig
from pipeline.core.progress import Status, Summary
from pipeline.core.records import ChainText
from pipeline.core.tables import CRITIQUES, FINDINGS, SEARCHES
from pipeline.runtime.searching.task import SearchTask
from pipeline.storage.location import storage_at
from pipeline.storage.stored_critiques import JUDGE_RUNS
from pipeline.storage.stored_findings import CHECK_RUNS
from pipeline.storage.stored_search import stored_search
from pipeline.storage.tasks import task_runs
from tests.conftest import write_rows
from tests.plugin.count_tokens import CountTokens, CountTokensConfig, StepTokens
from tests.runtime.checking import runs as checks
from tests.runtime.in_process import done_here
from tests.runtime.judging import runs as judges
from tests.runtime.scoring import test_score_run as scores
from tests.runtime.searching.tables import tables, without_chance
from tests.searches import runs as searches

QUICK = judges.QUICK
Watch = Callable[[Status], None]


@dataclass(frozen=True, kw_only=True, eq=False)
class Task:
    """A command. It reads `run_dir`, or for a search the rows beside it, and writes to `place(run_dir)`.

    `prepared`: makes a run directory in a folder, with this number of chains, or adds further ones. `rows`: the rows of its
    `table`, `keys` tell them apart. `partial`: how many an unfinished one has. `slow`: settings with which it can be
    interrupted. `other`: settings that are refused later, with this text. `audited`: what an audit of the run says of it.
    `counts`: the name of the count of its rows, `over`: that of chains. `stated`: what status says of its rows and of chains.
    """

    command: str
    table: str
    keys: tuple[str, ...]
    prepared: Callable[[Path, int], Path]
    place: Callable[[Path], Path]
    settings: Callable[..., Any]
    run: Callable[[Any, Watch], Summary]
    rows: Callable[[Path], pl.DataFrame]
    partial: Callable[[Path], int] | None = None
    slow: Mapping[str, Any]
    other: Mapping[str, Any]
    refused: str
    audited: Callable[[AuditReport], Any] = lambda _: None
    counts: str
    over: str = "chains"
    stated: str = ""
    sound: str = ""
    """What an audit of its own folder ends with."""

    def start(
        self, run_dir: Path, run: RunConfig = QUICK, watch: Watch = lambda _: None, *, workers: int = 2, **own: Any
    ) -> Summary:
        config = replace(self.settings(run_dir, run, **own), cluster=ClusterConfig(workers=workers))
        return self.run(config, watch)

    def audited_dir(self, run_dir: Path) -> Path:
        return run_dir if self in ON_RUNS else self.place(run_dir)

    def findings(self, run_dir: Path) -> Sequence[Finding]:
        """What an audit finds in the task's folder; the run itself is sound."""
        report = audit(AuditConfig(run_dir=str(self.audited_dir(run_dir))))
        assert not report.findings or self not in ON_RUNS
        (own,) = self.audited(report)
        assert report.sound == own.sound == (not own.findings and not own.owed)
        found: Sequence[Finding] = own.findings
        return found


def _to_score(run_dir: Path, run: RunConfig, **own: Any) -> Any:
    config = scores.settings(Path(), run_dir.parent / "out", run, **own)
    return replace(config, run_dir=str(run_dir), data=DataConfig(path=""))


def _problems(folder: Path, count: int) -> Path:
    write_rows(folder / "rows.jsonl", searches.sums(count))
    return folder / "run"


def _to_search(run_dir: Path, run: RunConfig, **own: Any) -> Any:
    given = [json.loads(line) for line in (run_dir.parent / "rows.jsonl").read_text().splitlines()]
    words = [f"policy.{'oracle' if name == 'seed' else 'lab'}.{name}={value}" for name, value in own.items()]
    config = searches.settings(run_dir.parent, given, "search=majority", "search.n=2", *words)
    return replace(config, run=run)


def _search(config: Any, watch: Watch) -> Summary:
    return done_here(SearchTask(config), watch)


JUDGE = Task(
    command="judge",
    table="critiques",
    counts="critiques",
    keys=("row", "vote"),
    prepared=judges.labelled,
    place=lambda run_dir: run_dir / "judges" / judges.NAME,
    settings=judges.settings,
    run=judges.judged,
    rows=judges.frame,
    partial=lambda run_dir: (
        JUDGE_RUNS.read(storage_at(str(run_dir)), judges.NAME, partial=True).frame(CRITIQUES).height
    ),
    slow={"tokens_per_second": 20_000},
    other={"votes": 4},
    refused=r"has the critiques of judge.name=dry with other settings: choose another judge.name(.|\n)*votes was 3, now 4",
    audited=lambda report: report.parts["judge"],
    stated="{} critiques of {} chains",
    sound="sound      the judge is finished and nothing is wrong\n",
)
CHECK = Task(
    command="check",
    table="findings",
    counts="steps",
    keys=("row", "step_index"),
    prepared=checks.labelled,
    place=lambda run_dir: run_dir / "checks" / checks.NAME,
    settings=checks.settings,
    run=lambda config, watch: checks.checked(config, watch)[checks.NAME],
    rows=checks.frame,
    partial=lambda run_dir: CHECK_RUNS.read(storage_at(str(run_dir)), checks.NAME, partial=True).frame(FINDINGS).height,
    slow={"pause": 0.01},
    other={"deadline_seconds": 3.0},
    refused=r"checks/obedient has findings that were made otherwise: move that folder away to check again(.|\n)*deadline_sec",
    audited=lambda report: report.parts["check"],
    stated="{} steps of {} chains",
    sound="sound      all chains are checked and nothing is wrong\n",
)
SCORE = Task(
    command="score",
    table="scores",
    counts="chains",
    keys=("row",),
    prepared=judges.labelled,
    place=lambda run_dir: run_dir.parent / "out",
    settings=_to_score,
    run=scores.scored,
    rows=lambda run_dir: scores.frame(run_dir.parent / "out"),
    slow={"chains_per_second": 200},
    other={"shift": 1.0},
    refused=r"use another out, or (.|\n)*scorer.lab.shift was 0.0, now 1.0",
    audited=lambda report: [report],
    sound="sound      all chains are scored and nothing is wrong\n",
)
SEARCH = Task(
    command="search",
    table="searches",
    counts="problems",
    over="problems",
    keys=("row",),
    prepared=_problems,
    place=lambda run_dir: run_dir,
    settings=_to_search,
    run=_search,
    rows=lambda run_dir: without_chance(tables(run_dir))[SEARCHES.name],
    partial=lambda run_dir: stored_search(storage_at(str(run_dir)), partial=True).frame(SEARCHES).height,
    slow={"tokens_per_second": 10_000},
    other={"seed": 3},
    refused=r"policy\.oracle\.seed was 0, now 3",
)


class _Count(CountTokens):
    """A plug-in's task that can be slow."""

    pause: ClassVar[float] = 0.0

    def rows(self, row: int, chain: ChainText) -> Sequence[StepTokens]:
        time.sleep(self.pause)
        return super().rows(row, chain)


def _to_count(run_dir: Path, run: RunConfig, pause: float = 0.0, **own: Any) -> Any:
    _Count.pause = pause
    return CountTokensConfig(run_dir=str(run_dir), run=run, **own)


def _count(config: Any, watch: Watch) -> Summary:
    return done_here(_Count(config), watch, asyncio.run)


def _counted(run_dir: Path, *, partial: bool = False) -> pl.DataFrame:
    return task_runs(_Count.name).read(storage_at(str(run_dir)), _Count.name, partial=partial).frame(_Count.table)


COUNT = Task(
    command="count_tokens",
    table="steptokens",
    keys=("row", "step_index"),
    counts="results",
    prepared=judges.labelled,
    place=lambda run_dir: run_dir / "count_tokens",
    settings=_to_count,
    run=_count,
    rows=_counted,
    partial=lambda run_dir: _counted(run_dir, partial=True).height,
    slow={"pause": 0.01},
    other={"tokenizer": "other"},
    refused=r"count_tokens has tokens that were made otherwise(.|\n)*count_tokens.tokenizer was \"characters\", now \"other\"",
    audited=lambda report: report.parts["task"],
    stated="{} results of {} chains",
    sound="sound      all chains are counted and nothing is wrong\n",
)
TASKS = (JUDGE, CHECK, SCORE, SEARCH, COUNT)
AUDITED = (JUDGE, CHECK, SCORE, COUNT)
ON_RUNS = (JUDGE, CHECK, COUNT)
"""Those whose folders are in the run directory, which an audit proves with the run."""
