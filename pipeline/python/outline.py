"""What a run directory holds: the summary of a `Run` in figures, and the lines that a shell or a notebook shows of it.

Read from the records of the run; of its labels only the columns that are counted.
"""

from collections.abc import Iterator
from dataclasses import replace

import polars as pl

from pipeline.core.formatting import format_count, format_unfinished
from pipeline.core.progress import Summary
from pipeline.core.records import Tally
from pipeline.storage.editions import whose_labels
from pipeline.storage.storage import Storage
from pipeline.storage.stored_run import StoredRun

_END = "terminal"
"""The origin of the value of the last step of a chain, which repeats its outcome."""


def stored_summary(run: StoredRun, called: Summary | None) -> Summary:
    """The summary of a run. `called`: that of a `label` call, whose figures about itself it keeps. Raises StoreError."""
    tally = run.tally + run.planned[0].tally
    before = called or Summary(
        run_dir=run.storage.run_dir,
        tally=tally,
        units=0,
        units_done_now=0,
        added=Tally(),
        seconds_starting=0.0,
        seconds_working=0.0,
    )
    return replace(before, tally=tally, units=len(run.units), labels=whose_labels(run.editions, run.wholes))


def rejects(storage: Storage) -> list[str]:
    """Why rows were rejected, and the first of them, as the command line says it. Raises StoreError."""
    from pipeline.analysis.report.run_data import rejected_rows
    from pipeline.analysis.report.run_lines import SHOWN_REJECTS, reject_lines

    return list(reject_lines(rejected_rows(storage, SHOWN_REJECTS), storage.run_dir))


def run_lines(run: StoredRun, summary: Summary, labels: pl.LazyFrame | None) -> Iterator[str]:
    """The important lines of a run. `labels`: its current labels; None where there are none yet. Raises StoreError."""
    from pipeline.analysis.report.run_lines import totals_lines
    from pipeline.engines.registry import made_up_text

    yield from totals_lines(summary.totals)
    if made_up := made_up_text(run.identity):
        yield f"policy    {made_up}"
    if run.unfinished:
        yield f"units     {format_unfinished(run.unfinished, len(run.units))}: `label` with the same run_dir continues the run"
    if labels is not None:
        yield from _steps(labels)
        yield f"labels    {run.storage.run_dir}/labels/*.parquet"
    if summary.labels:
        yield f"          these are {summary.labels}"
    if summary.totals.rejected:
        yield from rejects(run.storage)


def _steps(labels: pl.LazyFrame) -> Iterator[str]:
    """The number of steps by label; the last steps of chains apart."""
    from pipeline.analysis.report.aggregates import LABELS, own_steps

    of_chains = labels.select(*(own_steps(name, labels.collect_schema()) for name in ("label", "origin")))
    counted = of_chains.explode("label", "origin").group_by("label", "origin").len().collect()
    inner: dict[str, int] = {}
    ends = 0
    for label, origin, count in counted.iter_rows():
        if origin == _END:
            ends += count
        else:
            inner[LABELS[label]] = inner.get(LABELS[label], 0) + count
    parts = [f"{inner[name]:,} {name}" for name in LABELS.values() if name in inner]
    said = [f"{sum(inner.values()):,} = {' + '.join(parts)}"] if parts else []
    apart = [f"{format_count(ends, 'last step')} of chains, with the outcome as value"] if ends else []
    if said or apart:
        yield f"steps     {'; not counted: '.join([*said, *apart])}"
