"""A run of `label` in lines: its totals, its speed compared with what the hardware allows, rejected rows, and new labels."""

from collections.abc import Iterator

from pipeline.analysis.report.run_data import RejectedRows
from pipeline.core.formatting import format_count, format_percent, format_verdict_counts, format_work, printable
from pipeline.core.hardware import Hardware, Throughput
from pipeline.core.progress import RelabelResult, Summary
from pipeline.core.records import Totals

SHOWN_REJECTS = 3
_DETAIL = 300
"""Characters of the reason for a reject that are shown. Names of columns in it may be long."""
MOSTLY_THERE = 0.9
"""Engines on average, below which a run was without one for a while, such as the time that a replacement took to start."""


def summary_lines(summary: Summary) -> Iterator[str]:
    """The totals of the run, and the time and the speed of this start."""
    totals = summary.totals
    if summary.units_done_now == 0:
        yield "Nothing to do: this run is already finished."
    yield from totals_lines(totals)
    if summary.units_done_now:
        seconds = summary.seconds_working
        rate = f" ({summary.now.tokens / seconds:,.0f} tokens/s)" if seconds >= 1 else ""
        yield (
            f"time      {summary.seconds_starting:.0f} s to start, {seconds:.0f} s to sample and grade "
            f"{format_count(summary.now.rollouts, 'rollout')}{rate}"
        )
    if summary.throughput:
        yield ("engine    " + "\n          ".join(speed_lines(summary.throughput)))
    if summary.overspent:
        yield f"budget    {summary.overspent}"
    for name in summary.damaged:
        yield f"damaged   {name}: moved to damaged/; its content was made again"
    yield f"labels    {summary.run_dir}/labels/*.parquet" if totals.chains else f"labels    none in {summary.run_dir}"
    if summary.labels:
        yield f"          these are {summary.labels}"


def totals_lines(totals: Totals) -> Iterator[str]:
    """The totals as lines; each sum adds up."""
    yield f"rows      {totals.rows:,} read = {totals.used:,} used + {totals.rejected:,} rejected"
    if totals.mended:
        rows = format_count(totals.mended, "row")
        yield f"          {rows} with LaTeX whose backslash JSON took, put back; in JSON, write \\\\frac"
    yield f"work      {format_work(totals)}"
    aborted = " (no longer needed)" if totals.aborted else ""
    yield f"rollouts  {totals.rollouts:,} = {format_verdict_counts(totals)}{aborted}"
    if totals.truncated:
        yield f"          {totals.truncated:,} of them cut by sampling.max_tokens"
    if totals.engine_failed:
        yield f"          {totals.engine_failed:,} got no answer from any engine (finish engine_failed)"
    if totals.rollouts and totals.prefixes:
        yield f"          on average {totals.rollouts / totals.prefixes:.1f} for each prefix"
    if totals.spent:
        yield (
            f"spent     {totals.spent:,} of {format_count(totals.chains, 'chain')} used up the budget before the values were "
            "known to within estimator.target_sd; for more rollouts, raise sampling.rollouts, estimator.budget or "
            "estimator.run_budget and start `label` again"
        )
    if totals.too_long:
        yield f"          {format_count(totals.too_long, 'prefix')} did not fit into the policy's context: see rejects/"
    solutions = f", {totals.solution_tokens:,} in sampled solutions" if totals.solution_tokens else ""
    yield f"tokens    {totals.tokens:,} in rollouts{solutions}"


def new_label_lines(edited: RelabelResult) -> Iterator[str]:
    """What `relabel` or `regrade` changed."""
    if edited.number is None:
        yield "Nothing to do: the labels already have these settings."
    else:
        yield f"verdicts  {edited.verdicts_changed:,} of {edited.rollouts:,} changed"
        for change, count in edited.verdict_changes.most_common():
            yield f"          {count:,} from {change}"
        yield (
            f"labels    {edited.labels_changed:,} of {edited.labels:,} changed, in a run of "
            f"{format_count(edited.chains, 'chain')}"
        )
        yield f"edition   {edited.number} is new and holds the current labels: {edited.run_dir}/labels/*.parquet"
        if edited.number == 0:
            yield "          editions are numbered from 0; the labels of `label` itself have no number"
    yield from edited.notes


def reject_lines(rejected: RejectedRows, run_dir: str) -> Iterator[str]:
    """Why rows were rejected, the first of them with what to do, and where the others are."""
    reasons = ", ".join(f"{count:,} {reason}" for reason, count in rejected.counts.items())
    counted = "; rows are counted from 1" if any(not row.location.file for row in rejected.first) else ""
    yield f"rejected  {reasons}{counted}"
    for row in rejected.first:
        file, text = row.location.file.rpartition("/")[2], printable(row.detail)
        where = f"{file}, row {row.location.line}" if file else f"row {row.location.line}"
        shown = text if len(text) <= _DETAIL else f"{text[:_DETAIL]} ..."
        yield f"          {printable(where)}: {row.reason}: {shown}"
    more = sum(rejected.counts.values()) - len(rejected.first)
    others = f"{more:,} more, all of them" if more else "all of them"
    yield f"          {others} with what to do: {run_dir}/rejects/*.parquet"


def speed_lines(speed: Throughput) -> list[str]:
    """Three lines: tokens/s compared with what the hardware allows; idle slots; work on prompts and grading."""
    engines = round(speed.engines)
    of_engines = f" of {engines} engines" if engines > 1 else ""
    if speed.engines < MOSTLY_THERE:
        # What they reached, below, is of the time when they were there.
        of_engines = f" of an engine that was there for {format_percent(speed.engines)} of the time"
    first = f"{speed.tokens_per_second:,.0f} tokens/s{of_engines}"
    parallel = "" if speed.batch is None else f"{format_count(round(speed.batch), 'completion')} at a time and "
    where = f"with {parallel}{format_count(round(speed.context), 'token')} of context"
    if speed.share is None or speed.prefill_share is None:
        first += f" {where}; what the hardware allows is unknown: {speed.hardware.unknown}"
    else:
        first += (
            f", {format_percent(speed.share)} of the most that {_name(speed.hardware)} can generate {where} "
            f"({format_percent(speed.share + speed.prefill_share)} if work on prompts counts too)"
        )
    tail = "" if speed.tail is None else f" ({format_percent(speed.tail)} after the last unit was given out)"
    whose = "engines'" if engines > 1 else "engine's"
    second = f"{format_percent(speed.idle)} of the {whose} slots were idle{tail}"
    prompts = (
        ""
        if speed.prefill_ratio is None
        else f"each token of a prompt was computed {speed.prefill_ratio:.2f} times on average (at best 1); "
    )
    return [first, second, f"{prompts}grading took {format_percent(speed.grading)} of the engine's time"]


def _name(hardware: Hardware) -> str:
    assert hardware.device is not None
    return f"{hardware.devices} x {hardware.device.name}" if hardware.devices > 1 else hardware.device.name
