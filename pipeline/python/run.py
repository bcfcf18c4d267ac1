"""A run directory in Python: its labels, rollouts and rejects as frames, and the commands that read it."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

import polars as pl

from pipeline.analysis.chains import Chains, chosen
from pipeline.core.errors import UsageError
from pipeline.core.progress import RelabelResult, Summary
from pipeline.core.suggestions import choice_hint
from pipeline.core.table import TABLES, Table
from pipeline.core.tables import CRITIQUES, FINDINGS, PER_STEP
from pipeline.python.directory import RunDirectory
from pipeline.python.outline import run_lines, stored_summary
from pipeline.python.overrides import (
    Setting,
    format_settings,
    is_object,
    named_settings,
    objects_of,
    offered_format,
    settings_in,
)
from pipeline.python.process import done_for_call
from pipeline.python.tree import LabelledTree, labelled_tree
from pipeline.storage.shards import ASIDE, ShardRecord, aside_name, read_shard
from pipeline.storage.stored_critiques import JUDGE_RUNS
from pipeline.storage.stored_findings import CHECK_RUNS
from pipeline.storage.stored_run import GrownCounts, StoredRun, stored_run
from pipeline.storage.tasks import TASKS, task_runs

if TYPE_CHECKING:
    from pipeline.analysis.agree.judge import ScoreAgreement
    from pipeline.analysis.agree.run import Agreement
    from pipeline.analysis.calibrate.report import CalibrationReport
    from pipeline.analysis.checks import CheckSummary
    from pipeline.engines.base import Policy
    from pipeline.export.base import Exporter
    from pipeline.export.formats.base import Format
    from pipeline.export.result import ExportResult
    from pipeline.pickers.base import Picker
    from pipeline.runtime.objects import Given
    from pipeline.runtime.scoring.files import Scored
    from pipeline.storage.stored_critiques import CritiqueCounts
    from pipeline.verifiers.base import Verifier


class Run(RunDirectory):
    """A run directory that `label` has written. Each call reads the directory again, so it shows what is there now. A shell or
    a notebook shows the important lines of it.

    Every method raises UsageError where there is no run, and StoreError where a file of it is missing or damaged.
    """

    def __init__(self, run_dir: str | Path, summary: Summary | None = None, objects: "tuple[Given, ...]" = ()) -> None:
        """`summary`: of the `label` call that made this object, if one did. `objects`: those that the call gave."""
        self._called = summary
        super().__init__(run_dir, objects)

    @property
    def summary(self) -> Summary:
        """The totals of all units that are finished, the number of units, and where the current labels come from.

        What the call of `label` that returned this object added is in `now`, `seconds_...`, `damaged`, `overspent` and
        `throughput`. After `open_run` these are 0 or empty.
        """
        return stored_summary(self._stored(), self._called)

    @property
    def settings(self) -> dict[str, object]:
        """What makes the run what it is, by dotted key: its settings, and the identity of its input, policy and versions."""
        run = self._stored()
        return {**run.present, **run.settings}

    @property
    def finished(self) -> bool:
        """Whether all of the input is labelled. `label` with the same `run_dir` continues an unfinished run."""
        return not self._stored().unfinished

    @overload
    def labels(self, *, lazy: Literal[False] = False) -> pl.DataFrame: ...
    @overload
    def labels(self, *, lazy: Literal[True]) -> pl.LazyFrame: ...
    def labels(self, *, lazy: bool = False) -> pl.DataFrame | pl.LazyFrame:
        """The current labels, one row per chain, in the order of the input; see pipeline/storage/README.md for the columns.

        `lazy`: a frame that polars reads when it is collected, and only the columns that are needed.
        """
        from pipeline.storage.stored_labels import label_shards, labels_frame

        run = self._stored()
        return self._scan(label_shards(run)) if lazy else labels_frame(run)

    def steps(self) -> pl.DataFrame:
        """The current labels, one row per step of each chain: `step` from 1, `text`, and what `labels` says of the step."""
        labels = self.labels()
        found = [name for name in PER_STEP if name in labels.columns]
        return (
            labels.select(
                *("chain_id", "problem_id", "source_id", "outcome"),
                pl.int_ranges(1, pl.col("steps").list.len() + 1).alias("step"),
                *found,
            )
            .explode("step", *found)
            .rename({"steps": "text", "prefix_ids": "prefix_id"})
        )

    @overload
    def rollouts(self, *, lazy: Literal[False] = False) -> pl.DataFrame: ...
    @overload
    def rollouts(self, *, lazy: Literal[True]) -> pl.LazyFrame: ...
    def rollouts(self, *, lazy: bool = False) -> pl.DataFrame | pl.LazyFrame:
        """The log: one row per completion that is committed, those of unfinished units too. Verdicts are those of `label`;
        `regrade` keeps its own beside them."""
        return self._tables("rollouts", self._log(), lazy=lazy)

    @overload
    def rejects(self, *, lazy: Literal[False] = False) -> pl.DataFrame: ...
    @overload
    def rejects(self, *, lazy: Literal[True]) -> pl.LazyFrame: ...
    def rejects(self, *, lazy: bool = False) -> pl.DataFrame | pl.LazyFrame:
        """Rows of the input, and prefixes, that could not be used, each with a reason. Empty where all could."""
        return self._tables("rejects", [*self._stored().planned[0].shards, *self._log()], lazy=lazy)

    def show(self, count: int = 4, *, where: str | pl.Expr | None = None) -> Chains:
        """The first `count` chains for which `where` is true, for reading: `run.show(3, where="drop > 0.5 AND NOT outcome")`.

        `where` may name the columns of `labels` and those of `pipeline.analysis.chains.COLUMNS`. Raises UsageError for others,
        and for a `count` that is no whole number from 1 on.
        """
        if isinstance(count, bool) or not isinstance(count, int) or count < 1:
            raise UsageError(f"show: how many chains is a whole number from 1 on, such as run.show(3), not {count!r}")
        return chosen(self.labels(), count, where)

    def tree(self, problem: str | int) -> LabelledTree:
        """What the policy wrote for one problem, as a tree: an outline where it is shown, all of its nodes in `nodes`. The
        problem is named by its `problem_id`, your own id of one of its rows, or its text. Raises UsageError for one that is not
        there.

        Where a grown input has the problem in several units, there is a tree for each of them."""
        from pipeline.storage.stored_trees import StoredTrees

        return labelled_tree(StoredTrees(self._stored()), problem)

    def export(
        self, format: "str | Mapping[str, Any] | Format | Exporter", out: str | Path, **settings: Any
    ) -> "ExportResult":
        """Write the labels in the format of a trainer, into the folder `out`. Settings as for the command `export`.

        `format`: its name; a dict of its name and its own settings, such as `{"name": "preference", "margin": 0.2}`; or an
        object of yours (CONTRIBUTING.md, An export format).
        """
        chosen, own = format_settings(format)
        with offered_format(chosen) as name:
            asked = settings_in({"format": name, "out": out})
            exported: ExportResult = self._here("export", settings, *asked, *own)
        return exported

    def relabel(self, **settings: Any) -> RelabelResult:
        """Make other labels from the stored rollouts: `run.relabel(**{"estimator.rule": "threshold"})`. No model is needed.

        `estimator` may be an object of yours."""
        found: RelabelResult = self._here("relabel", settings)
        return found

    def regrade(self, **settings: Any) -> RelabelResult:
        """Grade the stored completions and chains again: `run.regrade(**{"grader.answer_pattern": "..."})`. No model is needed.

        `grader` and `estimator` may be objects of yours."""
        found: RelabelResult = self._here("regrade", settings)
        return found

    @overload
    def agree(self, path: str | Path, *, scores: None = None, **settings: Any) -> "Agreement": ...
    @overload
    def agree(self, path: str | Path, *, scores: str | Path, **settings: Any) -> "ScoreAgreement": ...
    def agree(
        self, path: str | Path, *, scores: str | Path | None = None, **settings: Any
    ) -> "Agreement | ScoreAgreement":
        """Compare the labels with human labels in a file; with `scores`, judge the step scores of that file or folder by them
        instead. Settings as for the command `agree`."""
        asked = [Setting.of("data.path", "path", path)]
        if scores is not None:
            asked.append(Setting.of("scores", "scores", scores))
        found: Agreement | ScoreAgreement = self._here("agree", settings, *asked, of_run=scores is None)
        return found

    def score(self, out: str | Path, **settings: Any) -> "Scored":
        """Score the steps of the chains of this run and write the file `out`, Parquet or JSONL by its name. Settings as for the
        command `score`: `model="prm"`, `scorer="qwen"`; `scorer` may also be an object of yours."""
        asked, to_file = Setting.of("out", "out", out), "pipeline.runtime.scoring.files:score_to_file"
        with ThreadPoolExecutor(1) as thread:  # a notebook has an event loop in this thread already
            scored: Scored = thread.submit(self._here, "score", settings, asked, do=to_file).result()
        return scored

    def judge(
        self,
        name: str,
        *,
        policy: "str | Path | Mapping[str, Any] | Policy | type[Policy] | None" = None,
        progress: bool = True,
        **settings: Any,
    ) -> "CritiqueCounts":
        """Have the judge `name` criticise the chains of this run: `run.judge("qwq", policy="Qwen/QwQ-32B")`, and return its
        critiques in numbers. The same call continues it, and judges chains that are new.

        Settings as for the command `judge`: `judge={"votes": 8}`; `judge` and `policy` may also be objects of yours. As the
        call of `label`, it works in a process of its own."""
        from pipeline.cli.opinions import JUDGE
        from pipeline.storage.stored_critiques import critique_counts

        objects = objects_of({"policy": policy, **settings})
        asked = [Setting.of("judge.name", "name", name), *named_settings({"policy": policy})]
        done_for_call(JUDGE, self._asked(asked, objects, settings), objects, progress=progress)
        # `audit` and `regrade` read critiques with it.
        self._objects = (*self._objects, *(each for each in objects if each.section == "judge"))
        return critique_counts(JUDGE_RUNS.read(self._storage, name))

    def grow(
        self,
        budget: int,
        *,
        pick: "str | Mapping[str, Any] | Picker | type[Picker] | None" = None,
        progress: bool = True,
        **settings: Any,
    ) -> "GrownCounts":
        """Measure prefixes that the rollouts of this run wrote, and add them to its labels: `run.grow(100_000, pick="errors")`.
        Returns what all growths of the run have promoted, in numbers. The same call continues it; a larger `budget` measures
        more.

        `pick`: the name of a picker; a dict with its settings, such as `{"pick": "pairs", "per_branch": 2}`; or an object of
        yours (CONTRIBUTING.md, A picker). Settings as for the command `grow`. As the call of `label`, it works in a process of
        its own."""
        from pipeline.cli.label import GROW

        given = {**settings, "grow": pick} if is_object(pick) else settings
        objects = objects_of(given)
        asked = [
            Setting.of("grow.budget", "budget", budget),
            *([Setting.of("grow.pick", "pick", pick)] if isinstance(pick, str) else ()),
            *(settings_in({"grow": pick}) if isinstance(pick, Mapping) else ()),
        ]
        asked = self._asked(asked, objects, given)
        objects = (*(each for each in self._objects if each.section not in {one.section for one in objects}), *objects)
        counts: GrownCounts = done_for_call(GROW, asked, objects, progress=progress)
        # A later call, and `label` itself, may have to finish the growth.
        self._objects = objects
        return counts

    def check(
        self, *verifiers: "str | Verifier | type[Verifier]", progress: bool = True, **settings: Any
    ) -> "dict[str, CheckSummary]":
        """Have programs prove or refute the steps of this run: `run.check("arithmetic", "algebra")`. Returns what each verifier
        found, in numbers, by its name. The same call continues it, and checks chains that are new.

        A verifier may be an object of yours, one in a call (CONTRIBUTING.md, A verifier). Settings as for the command `check`:
        `verifier={"kind": "algebra", "deadline_seconds": 5}` for one of them. As the call of `label`, it works in a process of
        its own."""
        from pipeline.analysis.checks import check_summary
        from pipeline.cli.opinions import CHECK

        own = [each for each in verifiers if is_object(each)]
        if len(own) > 1 or (own and "verifier" in settings):
            raise UsageError("check: give one object at most, and no settings of another verifier beside it")
        given = {**settings, "verifier": own[0]} if own else settings
        objects = objects_of(given)
        names = [objects[0].name if is_object(each) else each for each in verifiers]
        asked = [Setting(key="checks", value=names, said=f"the verifiers {names}")] if names else []
        found = done_for_call(CHECK, self._asked(asked, objects, given), objects, progress=progress)
        return {name: check_summary(self._storage, name) for name in found}

    def do(self, name: str, *, progress: bool = True, **settings: Any) -> Any:
        """Do what the command `name` of a plug-in does with this run, in a process of its own, and return what that holds.
        Settings as for the command."""
        from pipeline.cli import command_named

        if name not in TASKS.names():
            raise UsageError(f"do: {name!r} is no command of a plug-in: {choice_hint(str(name), TASKS.names())}")
        objects = objects_of(settings)
        command = command_named(name)
        assert command is not None
        return done_for_call(command, self._asked((), objects, settings), objects, progress=progress)

    def frame(self, table: str) -> pl.DataFrame:
        """The rows of a table: `labels`, `rollouts`, `rejects`, `findings` of all verifiers, `critiques` of all judges, or
        those of a plug-in's command, by its name. Of unfinished units, rollouts and rejects."""
        ours: dict[str, Callable[[], pl.DataFrame]] = {
            "labels": self.labels,
            "rollouts": self.rollouts,
            "rejects": self.rejects,
            FINDINGS.name: lambda: self.checks(partial=True),
            CRITIQUES.name: lambda: _joined(CRITIQUES, (self.critiques(name, partial=True) for name in self.judges)),
        }
        if table in ours:
            return ours[table]()
        if table not in TASKS.names():
            raise UsageError(f"frame: a run has no table {table!r}: {choice_hint(table, [*ours, *TASKS.names()])}")
        return task_runs(table).read(self._storage, table, partial=True).frame(TASKS.load(table).table)

    @property
    def verifiers(self) -> list[str]:
        """The names of the verifiers that have checked this run, those that are unfinished too."""
        return CHECK_RUNS.names(self._storage)

    def checks(self, *names: str, partial: bool = False) -> pl.DataFrame:
        """The findings of the verifiers `names`, or of all that have checked this run: one row per step, in the order of the
        input, one verifier after the other; see pipeline/storage/README.md for the columns. `partial`: also those of a verifier
        that is unfinished."""
        found = [CHECK_RUNS.read(self._storage, name, partial=partial) for name in names or self.verifiers]
        return _joined(FINDINGS, (each.frame(FINDINGS) for each in found))

    @property
    def judges(self) -> list[str]:
        """The names of the judges of this run, unfinished ones too."""
        return JUDGE_RUNS.names(self._storage)

    def critiques(self, name: str, *, partial: bool = False) -> pl.DataFrame:
        """The critiques of a judge, one row per vote, in the order of the input, each as it was read last; see
        pipeline/storage/README.md for the columns. `partial`: also those of a judge that is unfinished."""
        return JUDGE_RUNS.read(self._storage, name, partial=partial).frame(CRITIQUES)

    def calibrate(self, scores: str | Path, out: str | Path, **settings: Any) -> "CalibrationReport":
        """Fit a calibration of the step scores in a file or folder to the rollouts of this run, and write it to the file `out`.
        Settings as for the command `calibrate`.

        `report.calibration.apply([0.9, 0.4])` makes V of the step scores of a chain."""
        asked = [Setting.of("scores", "scores", scores), Setting.of("out", "out", out)]
        found: CalibrationReport = self._here("calibrate", settings, *asked)
        return found

    def _outline(self) -> tuple[int, int, list[str]]:
        from pipeline.storage.stored_labels import label_shards

        run = self._stored()
        labels = self._scan(label_shards(run)) if run.wholes else None
        return run.unfinished, len(run.units), list(run_lines(run, stored_summary(run, self._called), labels))

    def _stored(self) -> StoredRun:
        return stored_run(self._storage)

    def _log(self) -> Iterator[ShardRecord]:
        from pipeline.storage.commits import UNIT, record_sequences, resolve

        return (shard for found in record_sequences(self._storage, UNIT) for shard in resolve(found).log)

    def _tables(self, table: str, files: Iterable[ShardRecord], *, lazy: bool) -> pl.DataFrame | pl.LazyFrame:
        shards = [file for file in files if file.table == table]
        if not shards:
            empty = pl.DataFrame(TABLES[table].schema.empty_table())
            return empty.lazy() if lazy else empty
        if lazy:
            return self._scan(shards)
        return pl.concat(pl.DataFrame(read_shard(self._storage, shard)) for shard in shards)

    def _scan(self, shards: Sequence[ShardRecord]) -> pl.LazyFrame:
        aside = set(self._storage.names(ASIDE))  # where new labels are until they are moved
        files = [aside_name(shard.file) if aside_name(shard.file) in aside else shard.file for shard in shards]
        return pl.scan_parquet([f"{self.run_dir}/{file}" for file in files])


def _joined(table: Table[Any], frames: Iterable[pl.DataFrame]) -> pl.DataFrame:
    """The frames of a table as one."""
    found = [*frames]
    return pl.concat(found) if found else pl.DataFrame(table.schema.empty_table())
