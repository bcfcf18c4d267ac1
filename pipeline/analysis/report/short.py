"""A run's report in a few lines of text. Pure."""

from collections.abc import Sequence

import polars as pl

from pipeline.analysis.report import sums
from pipeline.analysis.report.gathered import Gathered
from pipeline.analysis.report.planned import Compared
from pipeline.core.words import figure, first_of, percent, printable, ranged
from pipeline.storage.starts import DONE, FAILED, INTERRUPTED

_BLOCKS = "▁▂▃▄▅▆▇█"
_NONE = "·"
_UNTOLD = ("rows used", "rows rejected", "problems", "chains", "steps", "distinct prefixes")
"""What a plan knows exactly is told where it was wrong."""
_NAMED = 3
TEXT = 300
"""Characters of a message or of a reject's words that are shown."""
_ENDS = {DONE: "came to its end", INTERRUPTED: "was interrupted", FAILED: "failed"}


def short_lines(found: Gathered, plan: Sequence[Compared], other: Sequence[str]) -> list[str]:
    """What is owed, values, labels, verdicts, and the plan: what the totals do not say, see `terminal.totals_lines`.

    `other`: in which settings the plan is that of another run.
    """
    return [
        *_owed(found),
        *_values(found),
        *_labels(found),
        *_verdicts(found),
        *_planned(found, plan, other),
        *_damaged(found),
    ]


def named(settings: Sequence[str]) -> str:
    """Settings that differ, the first of them by name."""
    more = f" and {len(settings) - _NAMED} more" if len(settings) > _NAMED else ""
    return f"{', '.join(settings[:_NAMED])}{more} differ{'s' if len(settings) == 1 else ''}"


def last_end(found: Gathered) -> str:
    """How the last start of an unfinished run ended; empty where none has told of itself."""
    if not found.starts:
        return ""
    last = found.starts[-1]
    if not last.ended:
        return "the last start has not told its end: see `status`"
    why = f": {cut(printable(last.message))}" if last.message else ""
    return f"the last start {_ENDS.get(last.ended, 'ended')}{why}"


def cut(text: str) -> str:
    """The beginning of a long text."""
    return text if len(text) <= TEXT else f"{text[:TEXT]} ... ({len(text):,} characters)"


def sparkline(counts: Sequence[int]) -> str:
    """A character per count: a point for none, else a block whose height tells the share of the largest count."""
    most = max(counts, default=0)
    return "".join(_BLOCKS[-(-len(_BLOCKS) * count // most) - 1] if count else _NONE for count in counts)


def missing_costs(found: Gathered) -> list[str]:
    """What is missing of device hours and money, in at most one sentence."""
    if not found.damaged_starts:
        return []
    told = "what they tell, device hours and money too, is not counted"
    return [f"{first_of(found.damaged_starts)} cannot be read: {told}"]


def _owed(found: Gathered) -> list[str]:
    if not found.owed:
        return []
    parts = [f"{found.owed:,} of {found.units:,} units"]
    if found.unfinished.rollouts:
        more = f"{found.unfinished.rollouts:,} more rollouts with {found.unfinished.tokens:,} tokens"
        parts.append(f"{more} are committed of units that are not whole")
    return [f"owed      {'; '.join(filter(None, [*parts, last_end(found)]))}"]


def _values(found: Gathered) -> list[str]:
    counts = sums.value_counts(found.steps)["all"].to_list()
    if not any(counts):
        return []
    whole = sums.in_all(found.steps)
    means = [
        f"{mean:.2f} in {outcome} chains"
        for outcome, mean in (("right", whole.mean_right), ("wrong", whole.mean_wrong))
        if mean is not None
    ]
    return [f"values    0 {sparkline(counts)} 1" + (f"  mean {', '.join(means)}, without ends" if means else "")]


def _labels(found: Gathered) -> list[str]:
    whole = sums.in_all(found.steps)
    if not whole.steps:
        return []
    ends = f"{whole.ends:,} ends of chains, whose value is the outcome" if whole.ends else ""
    if whole.steps == whole.ends:
        return [f"steps     {ends}"]
    by_label = dict(sums.label_counts(found.steps).group_by("label").agg(pl.sum("steps")).iter_rows())
    parts = [f"{by_label[name]:,} {name}" for name in sums.LABELS.values() if name in by_label]
    before_ends = whole.steps - whole.ends
    share = f" ({percent(whole.undecided / before_ends)})" if whole.undecided else ""
    told = f"{before_ends:,} = {' + '.join(parts)}{share}"
    return [f"steps     {'; beside them '.join(filter(None, [told, ends]))}"]


def _verdicts(found: Gathered) -> list[str]:
    counts = sums.verdict_counts(found.log)
    total = counts["rollouts"].sum()
    if not total:
        return []
    parts = [f"{percent(rollouts / total)} {verdict.replace('_', ' ')}" for verdict, rollouts, _ in counts.iter_rows()]
    return [f"verdicts  {', '.join(parts)}"]


def _planned(found: Gathered, plan: Sequence[Compared], other: Sequence[str]) -> list[str]:
    told = [f"for another run: {named(other)}"] if other else []
    for each in plan:
        planned = each.planned
        if planned is None or each.actual is None or (each.name in _UNTOLD and (each.inside or found.owed)):
            continue
        actual, expected = figure(each.actual, each.digits), figure(planned.expected, each.digits)
        between = ranged(planned.low, planned.high, each.digits)
        verdict = "" if found.owed else ", inside" if each.inside else ", OUTSIDE"
        told.append(f"{actual} {each.name} of {expected} planned ({between}{verdict})")
    return ["planned   " + "\n          ".join(told)] if told else []


def _damaged(found: Gathered) -> list[str]:
    return [f"damaged   {words}" for words in missing_costs(found)]
