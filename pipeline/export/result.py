"""The result of an export, its printed lines, and its data card. The card describes the folder for readers and for
`datasets.load_dataset(FOLDER)`.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from enum import Enum
from pathlib import Path

from pipeline.config.choices import ValueColumn
from pipeline.config.recorded_settings import Settings, flatten_settings
from pipeline.core.formatting import format_count
from pipeline.estimators.target_places import NO_PLACES, TargetPlaces
from pipeline.export.base import Plan
from pipeline.export.example import NO_LABELS, NO_STEPS, LabelCounts, StepCounts, display_name
from pipeline.export.settings import ExportConfig, TargetKind

CARD = "README.md"
_MARK = "Step labels exported by stepvalue"
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


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportResult:
    """`chains` and `steps`: numbers read. `files`: by name. `step_counts`: of the chains in the files. `steps_left_out`: of the
    other chains. `left_out`: reasons why chains are in no file. `kept`: reasons why
    the trainer will misread chains that are written. `owed`: number of unfinished units. `target`: that of a step, in words;
    empty if steps have none. `warnings`: sentences about the labels."""

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
        return _MARK.encode() in file.read(_HEAD_BYTES)


def data_card(config: ExportConfig, plan: Plan, exported: ExportResult, made_with: Settings) -> str:
    """The data card in Markdown. Its front matter names the data files."""
    front = "".join(f"  - split: {name.partition('.')[0]}\n    path: {name}\n" for name in exported.files)
    parts = asdict(config)
    own = parts.pop("own")
    if config.own is not None:
        parts[config.own.SECTION] = own
    asked = {key: value for name, part in parts.items() for key, value in flatten_settings(name, part).items()}
    return (
        f"---\nconfigs:\n- config_name: default\n  data_files:\n{front}---\n\n"
        f"# {_MARK}\n\n"
        f"Layout `{config.format}`{_marks(plan)}. Labels are Monte Carlo estimates of the chance that the policy "
        "reaches a correct answer; its name and the settings are below. "
        "The texts keep the licence of the problems and chains.\n\n"
        "| file | rows | problems | labels | good | bad | neutral | uncertain |\n|---|---|---|---|---|---|---|---|\n"
        + "".join(_row(name, counts) for name, counts in exported.files.items())
        + "".join(f"\nSteps: {text}.\n" for text in step_lines(exported))
        + (f"\nTarget of a step: {exported.target}.\n" if exported.target else "")
        + _reasons("Left out", exported.left_out)
        + _reasons("Kept, although the trainer misreads them", exported.kept)
        + "".join(f"\nWarning: {text}.\n" for text in exported.warnings)
        + (f"\nUnfinished units of the run, which are left out: {exported.owed:,}.\n" if exported.owed else "")
        + "\n## Settings of the export\n\n"
        + _settings(asked)
        + "\n## Settings of the labels\n\n"
        + _settings(made_with)
    )


def result_lines(exported: ExportResult) -> Iterator[str]:
    """The printed lines. Each reason names its first chain."""
    if exported.owed:
        yield f"unfinished        {format_count(exported.owed, 'unit')} of the run, left out"
    for name, counts in exported.files.items():
        yield f"{name:<17} {_counts(counts)}"
    for at, text in enumerate(step_lines(exported)):
        yield f"{'' if at else 'steps':<17} {text}"
    if exported.target:
        yield f"target            {exported.target}"
    total = sum(reason.count for reason in exported.left_out.values())
    if total:
        yield f"left out          {total:,} of {format_count(exported.chains, 'chain')}; {exported.out}/{LEFT_OUT} lists them"
    for kind, reason in exported.left_out.items():
        yield f"  {reason.count:,} {kind}, the first: {reason.first.text}"
    for kind, reason in exported.kept.items():
        yield f"kept, misread     {reason.count:,} {kind}, the first: {reason.first.text}"
    yield from (f"warning           {text}" for text in exported.warnings)
    yield f"{exported.out}"


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
    if counts.ends:
        ends = "is the last step of a chain" if counts.ends == 1 else "are last steps of chains"
        yield f"{counts.ends:,} of those written {ends}, with the outcome as target; the summary of the run counts these apart"


def _row(name: str, counts: FileCounts) -> str:
    labels = counts.labels
    kinds = (labels.good, labels.bad, labels.neutral, labels.unlabelled)
    numbers = (counts.rows, len(counts.problems), labels.total, *kinds)
    return f"| `{name}` | " + " | ".join(f"{number:,}" for number in numbers) + " |\n"


def _reasons(title: str, found: Mapping[str, Reason]) -> str:
    return (
        "".join([f"\n{title}:\n\n", *(f"- {kind}: {reason.count:,}\n" for kind, reason in found.items())])
        if found
        else ""
    )


def _settings(settings: Settings) -> str:
    return "".join(f"- `{key}`: `{_plain(value)}`\n" for key, value in settings.items() if value not in (None, [], ""))


def _plain(value: object) -> str:
    return repr(value.value if isinstance(value, Enum) else value).replace("`", "'")


def _marks(plan: Plan) -> str:
    named = (("separator", plan.marks.separator), ("placeholder", plan.marks.placeholder))
    return "".join(f", {name} `{mark!r}`" for name, mark in named if mark)


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
