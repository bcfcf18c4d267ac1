"""The report of one run: its readable data, compared with its plan if it has one, and the lines that summarize them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from pipeline.analysis.report import aggregates
from pipeline.analysis.report.aggregates import UnlikelyOutcomes, in_all
from pipeline.analysis.report.plan_check import PlannedAmount, compare_with_plan, differing_settings, plan_of
from pipeline.analysis.report.run_data import RunData, load_run_data, staged_input
from pipeline.analysis.report.warnings import warning_lines
from pipeline.consensus.kept import summary_lines
from pipeline.core.errors import UsageError
from pipeline.core.forecast import Forecast, decode_forecast
from pipeline.core.formatting import first_of, format_count, format_number, format_percent, format_range, printable
from pipeline.core.records import UNGRADED
from pipeline.core.tables import SCHEMA_VERSION
from pipeline.display.embedded import shortened
from pipeline.estimators.labels import label_rule
from pipeline.storage.commits import FOLDER, UNIT
from pipeline.storage.editions import edition_sequence
from pipeline.storage.run_record import SCHEMA, recorded_identity
from pipeline.storage.starts import DONE, FAILED, INTERRUPTED, LIMITED, PLAN
from pipeline.storage.storage import Storage
from pipeline.storage.stored_run import StoredRun, refuse_no_run, stored_run

_BLOCKS = "▁▂▃▄▅▆▇█"
_NONE = "·"
_UNTOLD = ("rows used", "rows rejected", "problems", "chains", "steps", "distinct prefixes")
"""A plan knows these amounts exactly, so they are printed only if a finished run differs."""
_NAMED = 3
TEXT = 300
"""Characters of a message or of a reject's text that are shown."""
_ENDS = {DONE: "ended normally", INTERRUPTED: "was interrupted", FAILED: "failed", LIMITED: "stopped at its limit"}


@dataclass(frozen=True, slots=True, kw_only=True)
class RunReport:
    """`planned_amounts`: planned and actual amounts; empty without a plan. `other`: the settings in which plan and run differ.
    `notes`: why the plan is ignored, or must be read with care."""

    found: RunData
    planned_amounts: tuple[PlannedAmount, ...]
    other: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def short(self) -> list[str]:
        """The lines after the totals."""
        return short_lines(self.found, self.planned_amounts, self.other)


def read_run(storage: Storage, plan: str | None) -> RunReport:
    """Read a run and its plan. `plan` names a file; None: the plan in the run directory. Raises UsageError for a directory
    without a run, a run of another version and a file that is not a plan, and StoreError for a damaged run."""
    run = readable(storage)
    forecast, fault = plan_of(storage) if plan is None else (_named(plan), "")
    notes = (f"{PLAN} is ignored: {fault}.",) if fault else ()
    found = load_run_data(run, forecast)
    steps = in_all(found.steps).steps
    totals = found.totals + found.unfinished
    planned_amounts = compare_with_plan(forecast, totals, steps=steps, starts=found.starts) if forecast else ()
    other = differing_settings(forecast, run.present) if forecast else ()
    if other:
        notes = (*notes, f"The plan is for another run: {setting_names(other)}.")
    return RunReport(found=found, planned_amounts=planned_amounts, other=other, notes=notes)


def short_lines(found: RunData, plan: Sequence[PlannedAmount], other: Sequence[str]) -> list[str]:
    """Made-up values, unfinished units, values, labels, consensus, outcomes from the data, unlikely outcomes,
    ungraded verdicts and the plan: what `terminal.totals_lines` does not say.

    `other`: the settings in which plan and run differ.
    """
    return [
        *([f"policy    {found.made_up}"] if found.made_up else []),
        *(f"witness   {text}" for text in found.made_up_opinions),
        *_owed(found),
        *_values(found),
        *_labels(found),
        *(summary_lines(found.consensus) if found.consensus else []),
        *_outcomes(found),
        *_ungraded(found),
        *(f"warning   {words}" for words in warning_lines(found.steps, found.repeats)),
        *_planned(found, plan, other),
        *(f"damaged   {words}" for words in missing_costs(found)),
    ]


def readable(storage: Storage) -> StoredRun:
    """The run in `storage`. It has no units if its whole input was rejected. Raises UsageError for a directory without a run
    and for a run of another version, StoreError for a damaged run."""
    refuse_no_run(storage)
    identity = recorded_identity(storage)
    begun = any(name.startswith(f"{FOLDER}/{UNIT}-") for name in storage.names(FOLDER))
    if begun or identity.get(SCHEMA) != SCHEMA_VERSION or staged_input(storage, identity):
        return stored_run(storage)
    editions = edition_sequence(storage)
    return StoredRun(storage=storage, identity=identity, planned=(), units=(), wholes={}, editions=editions)


def setting_names(settings: Sequence[str]) -> str:
    """A clause on the settings that differ; it names the first of them."""
    more = f" and {len(settings) - _NAMED} more" if len(settings) > _NAMED else ""
    return f"{', '.join(settings[:_NAMED])}{more} differ{'s' if len(settings) == 1 else ''}"


def last_activity(found: RunData) -> str:
    """How the last start of an unfinished run ended; empty if no start is recorded."""
    if not found.starts:
        return ""
    last = found.starts[-1]
    if not last.ended:
        return "the last start has not recorded its end: see `status`"
    # What a limit says of units was true then.
    why = f": {shortened(printable(last.message), TEXT)}" if last.message and last.ended != LIMITED else ""
    return f"the last start {_ENDS.get(last.ended, 'ended')}{why}"


def sparkline(counts: Sequence[int]) -> str:
    """One character per count: a point for 0, else a block whose height is the share of the largest count."""
    most = max(counts, default=0)
    return "".join(_BLOCKS[-(-len(_BLOCKS) * count // most) - 1] if count else _NONE for count in counts)


def missing_costs(found: RunData) -> Iterator[str]:
    """A sentence on starts whose device hours and money are not counted, or nothing."""
    if found.damaged_starts:
        text = "their data, such as device hours and money, are not counted"
        yield f"{first_of(found.damaged_starts)} cannot be read: {text}"


def _named(plan: str) -> Forecast:
    try:
        return decode_forecast(Path(plan).expanduser().read_bytes())
    except OSError as error:
        raise UsageError(f"planned={plan} cannot be read: {error.strerror or error}") from error
    except ValueError as error:
        raise UsageError(f"planned={plan} is not a plan: {error}; name a file that `plan` has written") from error


def _owed(found: RunData) -> Iterator[str]:
    if found.run.unfinished:
        parts = [found.run.owed]
        if found.unfinished.rollouts:
            rollouts = format_count(found.unfinished.rollouts, "rollout")
            tokens = format_count(found.unfinished.tokens, "token")
            parts.append(f"unfinished units have {rollouts} with {tokens} so far")
        yield f"units     {'; '.join(filter(None, [*parts, last_activity(found)]))}"


def _values(found: RunData) -> Iterator[str]:
    counts = aggregates.value_counts(found.steps)["all"].to_list()
    if any(counts) and aggregates.has_graded(found.steps):
        whole = aggregates.in_all(found.steps)
        of_outcomes = (("right", whole.mean_right), ("wrong", whole.mean_wrong))
        means = [f"{mean:.2f} in {outcome} chains" for outcome, mean in of_outcomes if mean is not None]
        said = f"; mean value {', '.join(means)}" if means else ""
        yield f"values    0 {sparkline(counts)} 1  a histogram, last steps left out{said}"


def _labels(found: RunData) -> Iterator[str]:
    whole = aggregates.in_all(found.steps)
    ends = f"{format_count(whole.ends, 'last step')} of chains, with the outcome as value" if whole.ends else ""
    if whole.steps == whole.ends:
        yield from [f"steps     {ends}"] if ends else []
        return
    by_label = dict(aggregates.label_counts(found.steps).group_by("label").agg(pl.sum("steps")).iter_rows())
    parts = [f"{by_label[name]:,} {name}" for name in aggregates.LABELS.values() if name in by_label]
    before_ends = whole.steps - whole.ends
    share = f" ({format_percent(whole.uncertain / before_ends)})" if whole.uncertain else ""
    text = f"{before_ends:,} = {' + '.join(parts)}{share}"
    yield f"steps     {'; not counted: '.join(filter(None, [text, ends]))}"
    yield f"rule      {label_rule(found.settings)}"
    if (edition := found.run.edition) and (command := found.run.edition_command):
        yield f"edition   {edition.number}, made by `{command}`"


def _outcomes(found: RunData) -> Iterator[str]:
    """Those that the data give, and unlikely ones."""
    if given := found.given_outcomes:
        states = "states no answer: its outcome is" if given == 1 else "state no answer: their outcomes are"
        yield f"given     {given:,} of {format_count(found.totals.chains, 'chain')} {states} what the data say"
    counted = aggregates.unlikely_outcomes(found.chains)
    if counted.right + counted.wrong:
        yield f"outcomes  {unlikely_text(counted)}"


def unlikely_text(counted: UnlikelyOutcomes) -> str:
    """How many chains have an unlikely outcome."""
    return (
        f"{counted.right + counted.wrong:,} of {counted.chains:,} chains have p_outcome below {aggregates.UNLIKELY:g}: the "
        f"value before the last step makes their outcome unlikely ({counted.right:,} right, {counted.wrong:,} wrong)"
    )


def _ungraded(found: RunData) -> list[str]:
    """Why rollouts are ungraded; the line of rollouts has their sum and the other verdicts."""
    counts = aggregates.verdict_counts(found.log).iter_rows()
    parts = [f"{rollouts:,} {verdict}" for verdict, rollouts, _ in counts if verdict in UNGRADED]
    return [f"ungraded  {' + '.join(parts)}"] if parts else []


def _planned(found: RunData, plan: Sequence[PlannedAmount], other: Sequence[str]) -> list[str]:
    text = [f"the plan is for another run: {setting_names(other)}"] if other else []
    for each in plan:
        planned = each.planned
        if planned is None or each.actual is None or (each.name in _UNTOLD and (each.inside or found.run.unfinished)):
            continue
        actual, expected = format_number(each.actual, each.digits), format_number(planned.expected, each.digits)
        between = format_range(planned.low, planned.high, each.digits)
        verdict = "" if found.run.unfinished else ", inside the range" if each.inside else ", OUTSIDE the range"
        text.append(f"{actual} {each.name} of {expected} planned ({between}{verdict})")
    return ["planned   " + "\n          ".join(text)] if text else []
