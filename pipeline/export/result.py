"""The result of an export, and its printed lines."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pipeline.config.choices import ValueColumn
from pipeline.consensus.kept import ConsensusSummary
from pipeline.core.formatting import format_count
from pipeline.core.shown import Shown
from pipeline.estimators.target_places import NO_PLACES, TargetPlaces, left_out_text
from pipeline.export.base import Plan
from pipeline.export.example import NO_LABELS, NO_STEPS, LabelCounts, StepCounts, display_name
from pipeline.export.settings import ExportConfig, TargetKind

CARD = "README.md"
CARD_MARK = "Step labels exported by stepvalue"
_HEAD_BYTES = 4096
LEFT_OUT = "left_out.jsonl"
"""The file in the folder of an export that lists the chains which are not exported."""


_AS_COLUMNS = {"soft": "value", "hard": "label"}
"""The columns of `labels` that are targets, where they are written unchanged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstLeftOut:
    """A chain that is left out, or that the trainer would misread. `kind` is a word for counting, `detail` a sentence.
    `fatal`: the chain cannot be written at all."""

    chain_id: str
    source_id: str | None
    kind: str
    detail: str
    fatal: bool = False

    @property
    def text(self) -> str:
        """The chain and the reason."""
        return f"chain {display_name(self.chain_id, self.source_id)}: {self.detail}"


@dataclass(kw_only=True, slots=True)
class FileCounts:
    """The content of one file, counted while it is written. Labels are those of the run's rule or of `threshold`."""

    rows: int = 0
    problems: set[str] = field(default_factory=set)
    labels: LabelCounts = NO_LABELS
    places: TargetPlaces = NO_PLACES
    steps: StepCounts = NO_STEPS


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """The number of chains with one reason, and the first of them."""

    count: int
    first: FirstLeftOut


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ExportResult(Shown):
    """`chains` and `steps`: numbers read. `files`: by name. `step_counts`: of the chains in the files. `steps_left_out`: of
    chains that are left out. `left_out`: reasons why chains are in no file. `kept`: reasons why the trainer will misread chains
    that are written. `owed`: number of unfinished units. `target`: that of a step, in words; empty if steps have none.
    `warnings`: sentences about the labels. `given_outcomes`: number of chains in the files that state no answer, so that
    their outcomes are those in the data. `made_up`: a sentence where the policy makes its rollouts up. `made_up_opinions`: one
    for each witness of labels by consensus that makes up what it says. `consensus`: what consensus made of the labels of the
    run; None for labels by another rule. `address`: where a hub has it; empty without one."""

    out: str
    chains: int
    steps: int
    files: Mapping[str, FileCounts]
    left_out: Mapping[str, Reason]
    kept: Mapping[str, Reason]
    owed: int
    target: str = ""
    warnings: tuple[str, ...] = ()
    step_counts: StepCounts = NO_STEPS
    steps_left_out: int = 0
    given_outcomes: int = 0
    made_up: str = ""
    made_up_opinions: tuple[str, ...] = ()
    consensus: ConsensusSummary | None = None
    address: str = ""

    def _shown_lines(self) -> Iterator[str]:
        return result_lines(self)


def target_text(plan: Plan, config: ExportConfig) -> str:
    """What the target of a step is: the default depends on the format, so the result says which one was written."""
    match plan.target:
        case TargetKind.soft:
            return f"soft: {(config.soft or ValueColumn.value).value}, a probability"
        case TargetKind.hard:
            rule = "the run's label rule" if config.threshold is None else f"threshold={config.threshold:g}"
            return f"hard: 1 or 0, by {rule}"
        case TargetKind.counts:
            return "counts: correct and graded rollouts"
    columns = plan.columns or ()
    return "; ".join(f"{kind}: column {name}" for kind, name in _AS_COLUMNS.items() if name in columns)


def reasons(chains: Iterable[FirstLeftOut]) -> dict[str, Reason]:
    """The chains by kind, the most frequent first."""
    found: dict[str, Reason] = {}
    for chain in chains:
        before = found.get(chain.kind)
        found[chain.kind] = Reason(count=before.count + 1 if before else 1, first=before.first if before else chain)
    return dict(sorted(found.items(), key=lambda item: -item[1].count))


def is_card(path: Path) -> bool:
    """Whether a file is a data card that an export has written."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return CARD_MARK.encode() in file.read(_HEAD_BYTES)


def result_lines(exported: ExportResult) -> Iterator[str]:
    """The printed lines. Each reason names its first chain."""
    if exported.owed:
        yield f"unfinished        {format_count(exported.owed, 'unit')} of the run, left out"
    for name, counts in exported.files.items():
        yield f"{name:<17} {_counts(counts)}"
    for at, text in enumerate(step_lines(exported)):
        yield f"{'' if at else 'steps':<17} {text}"
    if exported.given_outcomes:
        yield f"outcomes          {given_outcomes_text(exported)}"
    if exported.target:
        yield f"target            {exported.target}"
    total = sum(reason.count for reason in exported.left_out.values())
    if total:
        yield f"left out          {total:,} of {format_count(exported.chains, 'chain')}; {exported.out}/{LEFT_OUT} lists them"
    for kind, reason in exported.left_out.items():
        yield f"  {reason.count:,} {kind}, the first: {reason.first.text}"
    for kind, reason in exported.kept.items():
        yield f"kept, misread     {reason.count:,} {kind}, the first: {reason.first.text}"
    if exported.made_up:
        yield f"policy            {exported.made_up}"
    yield from (f"witness           {text}" for text in exported.made_up_opinions)
    yield from (f"warning           {text}" for text in exported.warnings)
    yield f"{exported.out}"
    if exported.address:
        yield exported.address


def step_lines(exported: ExportResult) -> Iterator[str]:
    """Why the files have other counts than the summary of the run. Nothing for rows that are no labelled chains."""
    counts = exported.step_counts
    if not counts.written:
        return
    parts = [
        f"{number:,} {what}"
        for number, what in (
            (counts.written, "written"),
            (counts.after_error, "after the first bad step of their chain (after_error=true writes them)"),
            (counts.merged, "without a target, cut or merged into the next step (uncertain=...)"),
            (exported.steps_left_out, "of chains that are left out, see below"),
        )
        if number
    ]
    total = counts.total + exported.steps_left_out
    yield f"{total:,} in the run" + (", all written" if total == counts.written else f" = {' + '.join(parts)}")
    if implied := sum(file.places.implied for file in exported.files.values()):
        yield left_out_text(implied)
    if counts.ends:
        ends = "is the last step of a chain" if counts.ends == 1 else "are last steps of chains"
        yield f"{counts.ends:,} of those written {ends}, with the outcome as target; the summary of the run counts these apart"


def given_outcomes_text(exported: ExportResult) -> str:
    """How many outcomes are those in the data. All others come from grading an answer."""
    number = exported.given_outcomes
    states = "states no answer; its outcome is" if number == 1 else "state no answer; their outcomes are"
    return f"{format_count(number, 'chain')} of those written {states} what the data say"


def _counts(counts: FileCounts) -> str:
    labels = counts.labels
    kinds = [
        f"{number:,} {name}"
        for number, name, always in (
            (labels.good, "good", True),
            (labels.bad, "bad", True),
            (labels.neutral, "neutral", False),
            (labels.unlabelled, "uncertain", False),
        )
        if number or always
    ]
    return (
        f"{format_count(counts.rows, 'row')}, {format_count(len(counts.problems), 'problem')}, "
        f"{format_count(labels.total, 'label')} = {' + '.join(kinds)}"
    )
