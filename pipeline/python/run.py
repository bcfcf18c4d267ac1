"""A run directory in Python: its labels, rollouts and rejects as frames, and the commands that read it."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

import polars as pl

from pipeline.analysis.chains import Chains, chosen
from pipeline.cli.command import Command
from pipeline.core.errors import StepvalueError, UsageError, first_line
from pipeline.core.progress import RelabelResult, Summary
from pipeline.core.shown import Shown
from pipeline.core.suggestions import choice_hint
from pipeline.core.table import TABLES
from pipeline.core.tables import CRITIQUES, FINDINGS
from pipeline.python.outline import run_lines, stored_summary
from pipeline.python.overrides import (
    Setting,
    format_settings,
    is_object,
    named_settings,
    objects_of,
    offered_format,
    offered_here,
    overrides_of,
    settings_in,
    settings_with,
    with_options,
)
from pipeline.python.process import done_for_call
from pipeline.python.tree import LabelledTree, labelled_tree
from pipeline.runtime.chain_run.registry import TASKS
from pipeline.storage.location import storage_at
from pipeline.storage.shards import ASIDE, ShardRecord, aside_name, read_shard
from pipeline.storage.stored_chain_run import stored_chain_run
from pipeline.storage.stored_critiques import critique_frames, judge_names, stored_judge
from pipeline.storage.stored_findings import check_names, finding_frames, stored_check
from pipeline.storage.stored_run import StoredRun, stored_run

if TYPE_CHECKING:
    from pipeline.analysis.agree.judge import ScoreAgreement
    from pipeline.analysis.agree.run import Agreement
    from pipeline.analysis.audit.run import AuditReport
    from pipeline.analysis.calibrate.run import CalibrationReport
    from pipeline.analysis.checks import CheckSummary
    from pipeline.engines.base import Policy
    from pipeline.export.base import Exporter
    from pipeline.export.formats.base import Format
    from pipeline.export.result import ExportResult
    from pipeline.pickers.base import Picker
    from pipeline.runtime.objects import Given
    from pipeline.runtime.scoring.files import Scored
    from pipeline.storage.stored_critiques import CritiqueCounts
    from pipeline.storage.stored_growths import GrownCounts
    from pipeline.verifiers.base import Verifier


class Run(Shown):
    """A run directory that `label` has written. Each call reads the directory again, so it shows what is there now. A shell or
    a notebook shows the important lines of it.

    Every method raises UsageError where there is no run, and StoreError where a file of it is missing or damaged.
    """

    def __init__(self, run_dir: str | Path, summary: Summary | None = None, objects: "tuple[Given, ...]" = ()) -> None:
        """`summary`: of the `label` call that made this object, if one did. `objects`: those that the call gave."""
        self._storage = storage_at(str(run_dir))
        self._objects = objects
        self._called = summary
        self._stored()

    @property
    def run_dir(self) -> str:
        """Path or address of the directory."""
        return self._storage.run_dir

    @property
    def summary(self) -> Summary:
        """The totals of all units that are finished, the number of units, and where the current labels come from.

        What the call of `label` that returned this object added is in `..._now`, `seconds_...`, `damaged`, `overspent` and
        `throughput`. After `open_run` these are 0 or empty.
        """
        return self._summary_of(self._stored())

    @property
    def settings(self) -> dict[str, object]:
        """What makes the run what it is, by dotted key: its settings, and the identity of its input, policy and versions."""
        run = self._stored()
        return {**run.present, **run.settings}

    @property
    def finished(self) -> bool:
        """Whether all of the input is labelled. `label` with the same `run_dir` continues an unfinished run."""
        return not self._stored().incomplete

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
        return self._scan(label_shards(self._storage, run)) if lazy else labels_frame(self._storage, run)

    @overload
    def rollouts(self, *, lazy: Literal[False] = False) -> pl.DataFrame: ...
    @overload
    def rollouts(self, *, lazy: Literal[True]) -> pl.LazyFrame: ...
    def rollouts(self, *, lazy: bool = False) -> pl.DataFrame | pl.LazyFrame:
        """The log: one row per completion that is committed, those of unfinished units too. Verdicts are those of `label`;
        `regrade` keeps its own beside them."""
        return self._tables("rollouts", list(self._logged("rollouts")), lazy=lazy)

    @overload
    def rejects(self, *, lazy: Literal[False] = False) -> pl.DataFrame: ...
    @overload
    def rejects(self, *, lazy: Literal[True]) -> pl.LazyFrame: ...
    def rejects(self, *, lazy: bool = False) -> pl.DataFrame | pl.LazyFrame:
        """Rows of the input, and prefixes, that could not be used, each with a reason. Empty where all could."""
        return self._tables("rejects", [*self._staged("rejects"), *self._logged("rejects")], lazy=lazy)

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

        return labelled_tree(StoredTrees(self._storage, self._stored()), problem)

    def report(self, **settings: Any) -> str:
        """Write the page of the run, `report.html`, and return its path. Settings as for the command `report`."""
        from pipeline.analysis.report.run import report
        from pipeline.cli.report import REPORT

        with self._composed(REPORT, settings) as config:
            report(config)
        return f"{self.run_dir}/report.html"

    def export(
        self, format: "str | Mapping[str, Any] | Format | Exporter", out: str | Path, **settings: Any
    ) -> "ExportResult":
        """Write the labels in the format of a trainer, into the folder `out`. Settings as for the command `export`.

        `format`: its name; a dict of its name and its own settings, such as `{"name": "preference", "margin": 0.2}`; or an
        object of yours (CONTRIBUTING.md, An export format).
        """
        from pipeline.cli.export import EXPORT
        from pipeline.export.run import export

        chosen, own = format_settings(format)
        with (
            offered_format(chosen) as name,
            self._composed(EXPORT, settings, *settings_in({"format": name, "out": out}), *own) as config,
        ):
            return export(config)

    def relabel(self, **settings: Any) -> RelabelResult:
        """Make other labels from the stored rollouts: `run.relabel(**{"estimator.rule": "threshold"})`. No model is needed.

        `estimator` may be an object of yours."""
        from pipeline.analysis.relabel import relabel
        from pipeline.cli.stored import RELABEL

        with self._composed(RELABEL, settings) as config:
            return relabel(config)

    def regrade(self, **settings: Any) -> RelabelResult:
        """Grade the stored completions and chains again: `run.regrade(**{"grader.answer_pattern": "..."})`. No model is needed.

        `grader` and `estimator` may be objects of yours."""
        from pipeline.analysis.relabel import regrade
        from pipeline.cli.stored import REGRADE

        with self._composed(REGRADE, settings) as config:
            return regrade(config)

    def audit(self, **settings: Any) -> "AuditReport":
        """Prove every invariant of the run again. Settings as for the command `audit`."""
        from pipeline.analysis.audit.run import audit
        from pipeline.cli.stored import AUDIT

        with self._composed(AUDIT, settings) as config:
            return audit(config)

    @overload
    def agree(self, path: str | Path, *, scores: None = None, **settings: Any) -> "Agreement": ...
    @overload
    def agree(self, path: str | Path, *, scores: str | Path, **settings: Any) -> "ScoreAgreement": ...
    def agree(
        self, path: str | Path, *, scores: str | Path | None = None, **settings: Any
    ) -> "Agreement | ScoreAgreement":
        """Compare the labels with human labels in a file; with `scores`, judge the step scores of that file or folder by them
        instead. Settings as for the command `agree`."""
        from pipeline.analysis.agree.run import agree
        from pipeline.cli.agree import AGREE

        asked = [Setting.of("data.path", "path", path)]
        if scores is not None:
            asked.append(Setting.of("scores", "scores", scores))
        with self._composed(AGREE, settings, *asked, of_run=scores is None) as config:
            return agree(config)

    def score(self, out: str | Path, **settings: Any) -> "Scored":
        """Score the steps of the chains of this run and write the file `out`, Parquet or JSONL by its name. Settings as for the
        command `score`: `model="prm"`, `scorer="qwen"`; `scorer` may also be an object of yours."""
        from pipeline.cli.score import SCORE
        from pipeline.runtime.scoring.files import score_to_file

        with self._composed(SCORE, settings, Setting.of("out", "out", out)) as config, ThreadPoolExecutor(1) as thread:
            # A notebook has an event loop in this thread already.
            return thread.submit(score_to_file, config).result()

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
        from pipeline.cli.judge import JUDGE
        from pipeline.storage.stored_critiques import critique_counts

        objects = objects_of({"policy": policy, **settings})
        asked = [Setting.of("judge.name", "name", name), *named_settings({"policy": policy})]
        done_for_call(JUDGE, self._asked(asked, objects, settings), objects, progress=progress)
        # `audit` and `regrade` read critiques with it.
        self._objects = (*self._objects, *(each for each in objects if each.section == "judge"))
        return critique_counts(stored_judge(self._storage, name))

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
        from pipeline.cli.grow import GROW

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
        from pipeline.cli.check import CHECK

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
        from pipeline.cli import all_commands, command_named

        command = command_named(name)
        if command is None or command.work is None:
            known = [each.name for each in all_commands().values() if each.work]
            raise UsageError(f"do: {name!r} is no command that has workers: {choice_hint(name, known)}")
        objects = objects_of(settings)
        return done_for_call(command, self._asked((), objects, settings), objects, progress=progress)

    def frame(self, name: str) -> pl.DataFrame:
        """The rows of the command `name` of a plug-in on this run, in the order of the input, of its finished units."""
        own = storage_at(f"{self.run_dir}/{name}")
        return stored_chain_run(own, name, partial=True).frame(TASKS.load(name).table)

    @property
    def verifiers(self) -> list[str]:
        """The names of the verifiers that have checked this run, those that are unfinished too."""
        return check_names(self._storage)

    def checks(self, *names: str, partial: bool = False) -> pl.DataFrame:
        """The findings of the verifiers `names`, or of all that have checked this run: one row per step, in the order of the
        input, one verifier after the other; see pipeline/storage/README.md for the columns. `partial`: also those of a verifier
        that is unfinished."""
        found = [stored_check(self._storage, name, partial=partial) for name in names or self.verifiers]
        frames = [frame for each in found for frame in finding_frames(each)]
        return pl.concat(frames) if frames else pl.DataFrame(FINDINGS.schema.empty_table())

    @property
    def judges(self) -> list[str]:
        """The names of the judges of this run, unfinished ones too."""
        return judge_names(self._storage)

    def critiques(self, name: str, *, partial: bool = False) -> pl.DataFrame:
        """The critiques of a judge, one row per vote, in the order of the input, each as it was read last; see
        pipeline/storage/README.md for the columns. `partial`: also those of a judge that is unfinished."""
        frames = list(critique_frames(stored_judge(self._storage, name, partial=partial)))
        return pl.concat(frames) if frames else pl.DataFrame(CRITIQUES.schema.empty_table())

    def calibrate(self, scores: str | Path, out: str | Path, **settings: Any) -> "CalibrationReport":
        """Fit a calibration of the step scores in a file or folder to the rollouts of this run, and write it to the file `out`.
        Settings as for the command `calibrate`.

        `report.calibration.apply([0.9, 0.4])` makes V of the step scores of a chain."""
        from pipeline.analysis.calibrate.run import calibrate
        from pipeline.cli.calibrate import CALIBRATE

        asked = [Setting.of("scores", "scores", scores), Setting.of("out", "out", out)]
        with self._composed(CALIBRATE, settings, *asked) as config:
            return calibrate(config)

    def _shown_lines(self) -> Iterator[str]:
        try:
            run = self._stored()
            lines = list(run_lines(self._storage, run, self._summary_of(run), self._labels_if_any(run)))
        except StepvalueError as error:  # what shows an object does not expect that this fails
            yield f"Run({self.run_dir!r}): {first_line(error)}"
            return
        done = "finished" if not run.incomplete else f"{run.incomplete} of {len(run.units)} units unfinished"
        yield f"Run({self.run_dir!r}, {done})"
        yield from lines

    def _stored(self) -> StoredRun:
        return stored_run(self._storage)

    def _summary_of(self, run: StoredRun) -> Summary:
        return stored_summary(self._storage, run, self._called)

    def _labels_if_any(self, run: StoredRun) -> pl.LazyFrame | None:
        from pipeline.storage.stored_labels import label_shards

        return self._scan(label_shards(self._storage, run)) if run.wholes else None

    @contextmanager
    def _composed(
        self, command: Command, settings: dict[str, Any], *arguments: Setting, of_run: bool = True
    ) -> Iterator[Any]:
        """The settings of a command on this run, those of its named arguments included; without `of_run`, it needs no run.
        The objects of the run, and those among the settings, are known meanwhile."""
        from pipeline.cli.compose import compose

        objects = objects_of(settings)
        with offered_here((*self._objects, *objects)):
            asked = self._asked(arguments, objects, settings, of_run=of_run)
            yield compose(command, overrides_of(with_options(asked, command))).settings()

    def _asked(
        self, named: Iterable[Setting], objects: "tuple[Given, ...]", given: Mapping[str, Any], *, of_run: bool = True
    ) -> list[Setting]:
        """The settings of a command on this run: its named arguments, and those of the objects and settings that are given."""
        here = Setting(key="run_dir", value=self.run_dir if of_run else None, said="the directory of this run")
        return [here, *named, *settings_with(objects, given)]

    def _logged(self, table: str) -> Iterator[ShardRecord]:
        from pipeline.storage.commits import UNIT, record_sequences, resolve

        for found in record_sequences(self._storage, UNIT):
            yield from (shard for shard in resolve(found).log if shard.table == table)

    def _staged(self, table: str) -> Iterator[ShardRecord]:
        from pipeline.storage.commits import INPUT, record_sequence, resolve
        from pipeline.storage.run_record import STAGED_INPUT

        whole = resolve(record_sequence(self._storage, INPUT, str(self._stored().identity[STAGED_INPUT]))).whole
        yield from (shard for shard in (whole.shards if whole else ()) if shard.table == table)

    def _tables(self, table: str, shards: Sequence[ShardRecord], *, lazy: bool) -> pl.DataFrame | pl.LazyFrame:
        if not shards:
            empty = pl.DataFrame(TABLES[table].schema.empty_table())
            return empty.lazy() if lazy else empty
        return self._scan(shards) if lazy else pl.concat(self._read(shard) for shard in shards)

    def _read(self, shard: ShardRecord) -> pl.DataFrame:
        found = pl.from_arrow(read_shard(self._storage, shard))
        assert isinstance(found, pl.DataFrame)
        return found

    def _scan(self, shards: Sequence[ShardRecord]) -> pl.LazyFrame:
        aside = set(self._storage.names(ASIDE))  # where new labels are until they are moved
        files = [aside_name(shard.file) if aside_name(shard.file) in aside else shard.file for shard in shards]
        return pl.scan_parquet([f"{self.run_dir}/{file}" for file in files])
