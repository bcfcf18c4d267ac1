"""Reads two runs, joins and compares them.

Labels are read unit by unit, and only the columns that are compared. Texts are read later, only for the prefixes that are
shown.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from pipeline.analysis.compare.comparison import Comparison, Side, differing_settings, requested_settings
from pipeline.analysis.compare.frames import COLUMNS, Common, Frames, common, frames
from pipeline.analysis.compare.sections import page_of
from pipeline.analysis.compare.shift import label_flips, noise, shift
from pipeline.analysis.report.run_report import readable
from pipeline.analysis.settings import ReportConfig
from pipeline.config.label import EstimatorConfig
from pipeline.config.recorded_settings import Settings, chosen_settings
from pipeline.config.words import setting_word
from pipeline.core.errors import UsageError
from pipeline.core.formatting import format_count
from pipeline.core.tables import LABELS
from pipeline.display.document import GENERATOR
from pipeline.display.page import foot, html
from pipeline.estimators.base import Estimator
from pipeline.estimators.registry import ESTIMATORS, estimator_for
from pipeline.storage.location import folder_at, storage_at
from pipeline.storage.outputs import atomic_file, check_output_file, refuse_foreign, refuse_overwriting
from pipeline.storage.stored_run import StoredRun
from pipeline.storage.units import RowNames

NAME = "compare.html"
"""In the current folder, because the page belongs to neither run."""
MOST_MOVED = 20
"""Prefixes that are shown, at most one per problem."""
BINS = 10
_MADE = ("estimator", "label_rule", "policy")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Run:
    """`made`: estimator, label rule and policy, as recorded in its labels."""

    run_dir: str
    stored: StoredRun
    frames: Frames
    made: Mapping[str, str]

    @property
    def settings(self) -> Settings:
        requested = requested_settings(whole.unit_target for whole in self.stored.wholes.values())
        return {**self.stored.present, **self.stored.settings, **requested, "policy": self.made["policy"]}

    @property
    def estimator(self) -> Estimator:
        return estimator_for(chosen_settings(self.stored.settings, EstimatorConfig, ESTIMATORS))


def write_comparison(config: ReportConfig) -> tuple[Comparison, Path]:
    """Compare the two runs and write the page. Returns the comparison and the path of the page.

    Raises as `compare_runs` does, UsageError for a plan and for an `out` that cannot be written, is in one of the runs, or
    exists and is not a page of ours, and StoreError for a page that cannot be written.
    """
    if config.planned is not None:
        raise UsageError(f"planned={config.planned} is the plan of one run: leave it out when comparing two runs")
    out = Path(NAME if config.out is None else config.out).expanduser()
    check_output_file("out", out)
    refuse_overwriting({"out": out}, [folder_at(run_dir) for run_dir in config.run_dir])
    refuse_foreign("out", out, GENERATOR, "report")
    found = compare_runs(config.run_dir)
    runs = setting_word("run_dir", list(config.run_dir), '"').removeprefix("run_dir=")
    data = html(page_of(found, foot("report", {"run_dir": runs, "out": config.out})))
    with atomic_file(out) as file:
        file.write(data)
    return found, out


def compare_runs(run_dirs: tuple[str, str]) -> Comparison:
    """Raises UsageError for a directory without a run, a run of another schema or without labels, and two runs without a common
    prefix; StoreError for a damaged run."""
    a, b = (_read(run_dir) for run_dir in run_dirs)
    found = common(a.frames, b.frames)
    other_answers = _other_answers(a, b)
    if not len(found.prefixes):
        raise UsageError(_nothing_common(a, b, found, other_answers))
    return Comparison(
        a=_side(a, found, "a"),
        b=_side(b, found, "b"),
        differing=differing_settings(a.settings, b.settings),
        overlap=found.overlap,
        other_answers=other_answers,
        shift=shift(found),
        noise=noise(found, a.estimator, b.estimator),
        flips=label_flips(found, a.estimator, b.estimator),
        bins=_bins(found),
        moved=_moved(found, a),
    )


def _read(run_dir: str) -> _Run:
    stored = readable(storage_at(run_dir))
    read = frames(stored.frames(LABELS, COLUMNS))
    if read is None:
        raise UsageError(
            f"run_dir={stored.storage.run_dir} holds no labels: see its rejects/, or wait until `label` has written some"
        )
    made = next(frame for frame in stored.frames(LABELS, _MADE) if len(frame)).row(0, named=True)
    return _Run(run_dir=run_dir, stored=stored, frames=read, made=made)


def _side(run: _Run, found: Common, side: str) -> Side:
    totals = run.stored.tally.totals
    return Side(
        run_dir=run.run_dir,
        **run.made,
        units=len(run.stored.units),
        owed=run.stored.unfinished,
        chains=len(run.frames.chains),
        prefixes=len(run.frames.prefixes),
        rollouts=totals.rollouts,
        tokens=totals.tokens,
        on_common=int(found.prefixes[f"rollouts_{side}"].sum()),
        counts_are_shares=run.estimator.counts_are_shares,
    )


def _bins(found: Common) -> list[list[int]]:
    columns = ("value_a", "value_b")
    bins = [(pl.col(name) * BINS).cast(pl.Int32).clip(0, BINS - 1).alias(name) for name in columns]
    counts = [[0] * BINS for _ in range(BINS)]
    for i, j, number in found.prefixes.drop_nulls(columns).select(bins).group_by(columns).len().iter_rows():
        counts[i][j] = number
    return counts


def _moved(found: Common, a: _Run) -> tuple[Mapping[str, Any], ...]:
    distance = (pl.col("value_b") - pl.col("value_a")).abs() / (pl.col("sd_a") ** 2 + pl.col("sd_b") ** 2).sqrt()
    farthest = (
        found.prefixes.drop_nulls(("value_a", "value_b"))
        .with_columns(distance.alias("distance"))
        .filter(pl.col("distance").is_finite() & (pl.col("distance") > 0))
        .sort("distance", "prefix_id", descending=(True, False))
        .unique("problem", keep="first", maintain_order=True)
        .head(MOST_MOVED)
    )
    texts = _texts(a, farthest["problem_id"].to_list(), farthest["prefix_id"].to_list())
    return tuple({**row, **texts[row["prefix_id"]]} for row in farthest.iter_rows(named=True))


def _texts(a: _Run, problem_ids: Sequence[str], prefix_ids: Sequence[str]) -> dict[str, dict[str, str | None]]:
    """Texts of the prefixes, by prefix id, see `Comparison.moved`."""
    wanted, problems = set(prefix_ids), set(problem_ids)
    texts: dict[str, dict[str, str | None]] = {}
    columns = ("problem_id", "problem", "steps", "prefix_ids", "root_prefix_id", "source_id", "chain_id")
    names = RowNames(a.stored.storage)
    for unit, frame in a.stored.unit_frames(LABELS, columns):
        if len(texts) == len(wanted):
            break
        rows = names.named(unit, frame.filter(pl.col("problem_id").is_in(problems)))
        for row in rows.iter_rows(named=True):
            for prefix_id, last in zip((row["root_prefix_id"], *row["prefix_ids"]), (None, *row["steps"]), strict=True):
                if prefix_id in wanted:
                    texts.setdefault(prefix_id, {"problem": row["problem"], "name": row["source_id"], "last": last})
    return texts


def _other_answers(a: _Run, b: _Run) -> int:
    """Number of problems with the same words in both runs but different ids, and therefore different known answers."""
    of_a, of_b = (set(run.frames.chains["problem_id"]) for run in (a, b))
    only_a, only_b = of_a - of_b, of_b - of_a
    return len(_words(a, only_a) & _words(b, only_b)) if only_a and only_b else 0


def _words(run: _Run, problem_ids: set[str]) -> set[int]:
    found: set[int] = set()
    for frame in run.stored.frames(LABELS, ("problem_id", "problem")):
        found.update(frame.filter(pl.col("problem_id").is_in(problem_ids))["problem"].hash())
    return found


def _nothing_common(a: _Run, b: _Run, found: Common, other_answers: int) -> str:
    start = f"run_dir: {a.run_dir} and {b.run_dir} have no labelled prefix in common"
    if found.overlap.problems:
        return (
            f"{start}, although they share {format_count(found.overlap.problems, 'problem')}: "
            "their chains differ, and no bare problem has a value in both; label the same chains in both"
        )
    if other_answers:
        return (
            f"{start}: the known answers differ in {format_count(other_answers, 'problem')} with the same words; give both "
            "runs the same answer column, in the same spelling"
        )
    return f"{start}: no problem is in both; label the same rows in both, from the same data.path with the same data settings"
