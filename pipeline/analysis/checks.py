"""What a verifier found in a run: coverage, where it refutes, and what the run's labels say of the same steps.

Labels come from rollouts, so they are no truth: a wrong step may have a high value, and a right one a low value. A part that
holds says nothing of its step, which is why the steps that hold are compared too.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from pipeline.core.formatting import WHY_UNCHECKED, format_count, format_percent
from pipeline.core.records import Tally
from pipeline.core.shown import Shown
from pipeline.core.tables import FINDINGS, LABELS
from pipeline.storage.run_record import NAME
from pipeline.storage.storage import Storage
from pipeline.storage.stored_findings import CHECK_RUNS
from pipeline.storage.stored_run import stored_run
from pipeline.verifiers.base import Covers, Fault, StepVerdict

POSITIONS = (1, 2, 3, 4, 7, 11)
"""The first steps of the ranges by which steps are counted."""
_KEY = ("chain_id", "step_index")


@dataclass(frozen=True, slots=True, kw_only=True)
class AtPosition:
    """Steps `first` to `last` of their chains; None: to the end. `steps` of them, of which `refuted`."""

    first: int
    last: int | None
    steps: int
    refuted: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingCounts:
    """`steps` = `refuted` + `holds` + `unknown`. `holds_whole`: steps that hold as a whole. `faults`: unknown steps that the
    verifier has not looked at, by reason; each reason is there."""

    chains: int
    steps: int
    refuted: int
    holds: int
    holds_whole: int
    unknown: int
    faults: Mapping[Fault, int]
    by_position: tuple[AtPosition, ...]

    @property
    def said(self) -> int:
        """Steps with a verdict."""
        return self.refuted + self.holds

    @property
    def seen(self) -> int:
        """Steps that the verifier has looked at."""
        return self.steps - sum(self.faults.values())

    @property
    def coverage(self) -> float:
        """The share of the steps with a verdict."""
        return self.said / self.steps if self.steps else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Labelled:
    """Steps with a label, how many of them are bad, how many have a value, and the sum of these."""

    steps: int
    bad: int
    valued: int
    value: float

    @property
    def share(self) -> float:
        """The share of bad steps."""
        return self.bad / self.steps if self.steps else 0.0

    @property
    def mean_value(self) -> float:
        """The mean value of the steps that have one."""
        return self.value / self.valued if self.valued else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class AgainstLabels:
    """What the labels of the run say of refuted steps, of steps that hold, and of all."""

    refuted: Labelled
    holds: Labelled
    every: Labelled


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class CheckSummary(Shown):
    """`against`: None where the findings are those of rows without a run, or no step has a label."""

    name: str
    folder: str
    counts: FindingCounts
    against: AgainstLabels | None

    def lines(self) -> Iterator[str]:
        """The printed lines."""
        counts = self.counts
        yield (
            f"{self.name}: checked {format_count(counts.steps, 'step')} of {format_count(counts.chains, 'chain')}: "
            f"{self.folder}"
        )
        whole = f" ({counts.holds_whole:,} as a whole)" if counts.holds_whole else ""
        hold = "holds" if counts.holds == 1 else "hold"
        yield (
            f"  {counts.refuted:,} refuted, {counts.holds:,} {hold}{whole}, {counts.unknown:,} unknown: a verdict on "
            f"{format_percent(counts.coverage)} of the steps"
        )
        if counts.refuted:
            yield f"  refuted by position: {', '.join(map(_position, counts.by_position))}"
        if self.against is not None:
            yield from _label_lines(self.against)
        for fault, steps in counts.faults.items():
            if steps:
                yield f"  unknown, because {WHY_UNCHECKED[fault]}: {format_count(steps, 'step')}"

    _shown_lines = lines


def check_summary(storage: Storage, name: str, *, partial: bool = False) -> CheckSummary:
    """What the verifier of this name found in the run directory `storage`, compared with its labels. Raises as
    `RunFolder.read` does, and StoreError for a damaged file."""
    check = CHECK_RUNS.read(storage, name, partial=partial)
    verdict, whole = pl.col("verdict"), pl.col("covers") == Covers.WHOLE.value
    refuted, holds = verdict == StepVerdict.REFUTED.value, verdict == StepVerdict.HOLDS.value
    found, said = [], []
    for frame in check.frames(FINDINGS, [*_KEY, "verdict", "covers"]):
        of_steps = frame.group_by("step_index")
        found.append(of_steps.agg(steps=pl.len(), refuted=refuted.sum(), holds_whole=(holds & whole).sum()))
        said.append(frame.filter(verdict != StepVerdict.UNKNOWN.value).select(*_KEY, "verdict"))
    has_labels = NAME in storage.names("")
    return CheckSummary(
        name=name,
        folder=f"{check.storage.run_dir}/{FINDINGS.name}",
        counts=_counts(check.tally, found),
        against=_against_labels(storage, pl.concat(said)) if has_labels and said else None,
    )


def _counts(tally: Tally, found: Sequence[pl.DataFrame]) -> FindingCounts:
    """`tally`: that of `stored_findings.finding_tally`. `found`: by step."""
    faults = {fault: tally["engine_failed" if fault is Fault.LOST else fault.value] for fault in Fault}
    return FindingCounts(
        chains=tally["chains"],
        steps=tally["steps"],
        refuted=tally["refuted"],
        holds=tally["holds"],
        holds_whole=sum(int(each["holds_whole"].sum()) for each in found),
        unknown=tally["unknown"] + sum(faults.values()),
        faults=faults,
        by_position=tuple(_by_position(pl.concat(found))) if found else (),
    )


def _by_position(found: pl.DataFrame) -> Iterator[AtPosition]:
    ends = [*(first - 1 for first in POSITIONS[1:]), None]
    for first, last in zip(POSITIONS, ends, strict=True):
        here = found.filter(
            pl.col("step_index") >= first, pl.lit(True) if last is None else pl.col("step_index") <= last
        )
        if here.height:
            yield AtPosition(first=first, last=last, steps=int(here["steps"].sum()), refuted=int(here["refuted"].sum()))


def _against_labels(storage: Storage, said: pl.DataFrame) -> AgainstLabels | None:
    """`said`: chain, step and verdict of each step with a verdict."""
    parts = []
    for frame in stored_run(storage).frames(LABELS, ["chain_id", "label", "value"]):
        steps = (
            frame.with_columns(step_index=pl.int_ranges(1, pl.col("label").list.len() + 1, dtype=pl.Int32))
            .explode("label", "value", "step_index")
            .drop_nulls("label")
        )
        bad, value = (pl.col("label") == 0).sum(), pl.col("value")
        of_verdicts = steps.join(said, on=_KEY, how="left").group_by("verdict")
        parts.append(of_verdicts.agg(steps=pl.len(), bad=bad, valued=value.count(), value=value.sum()))
    found = pl.concat(parts) if parts else pl.DataFrame()
    if not found.height:
        return None
    refuted, holds = (
        found.filter(pl.col("verdict") == verdict.value) for verdict in (StepVerdict.REFUTED, StepVerdict.HOLDS)
    )
    return AgainstLabels(refuted=_labelled(refuted), holds=_labelled(holds), every=_labelled(found))


def _labelled(steps: pl.DataFrame) -> Labelled:
    return Labelled(**steps.drop("verdict").sum().row(0, named=True))


def _position(at: AtPosition) -> str:
    if at.last is None:
        where = f"step {at.first} and later"
    else:
        where = f"step {at.first}" if at.first == at.last else f"steps {at.first}-{at.last}"
    return f"{where} {at.refuted:,} of {at.steps:,}"


def _label_lines(against: AgainstLabels) -> Iterator[str]:
    refuted, holds, every = against.refuted, against.holds, against.every
    if refuted.steps:
        yield f"  labels of the run: {_bad(refuted, 'refuted step')}; {_of_all(every)}"
    if holds.steps:
        yield f"  labels of the run: {_bad(holds, 'step')} that hold{'s' if holds.steps == 1 else ''}; {_of_all(every)}"


def _bad(found: Labelled, noun: str) -> str:
    steps = format_count(found.steps, noun)
    return f"{found.bad:,} bad ({format_percent(found.share)}){_mean_value(found)}, of {steps}"


def _of_all(every: Labelled) -> str:
    return f"of all steps {format_percent(every.share)}{_mean_value(every)}"


def _mean_value(found: Labelled) -> str:
    return f", mean value {found.mean_value:.2f}" if found.valued else ""
