"""What a person sees at the end of an export."""

from collections.abc import Iterator

from pipeline.export.exported import Exported, FileCounts
from pipeline.export.run import LEFT_OUT


def told(exported: Exported) -> Iterator[str]:
    """Lines of text; those about left-out chains name the first of each kind."""
    if exported.owed:
        yield f"unfinished        {exported.owed:,} units of the run have no labels yet"
    for name, counts in exported.files.items():
        yield f"{name:<17} {_counts(counts)}"
    total = sum(reason.count for reason in exported.left_out.values())
    if total:
        yield f"left out          {total:,} of {exported.chains:,} chains; {exported.out}/{LEFT_OUT} names each"
    for kind, reason in exported.left_out.items():
        yield f"  {reason.count:,} {kind}, the first: {reason.first.told}"
    for kind, reason in exported.kept.items():
        yield f"kept all the same {reason.count:,} {kind}, the first: {reason.first.told}"
    yield f"{exported.out}"


def _counts(counts: FileCounts) -> str:
    labels = counts.labels
    kinds = [
        f"{number:,} {name}"
        for number, name, always in (
            (labels.good, "good", True),
            (labels.bad, "bad", True),
            (labels.neutral, "neutral", False),
            (labels.unlabelled, "undecided", False),
        )
        if number or always
    ]
    return f"{counts.rows:,} rows, {len(counts.problems):,} problems, {labels.total:,} labels = {' + '.join(kinds)}"
