"""Turns a labelled chain into a training example: the steps to train on and their targets.

A label refers to the prefix that ends with a step. So steps can be cut off at the end, or merged into the next step, without
changing the meaning of the other labels.
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

from pipeline.config.chain_filter import COLUMNS as BOUNDED
from pipeline.config.choices import ValueColumn
from pipeline.core.errors import UsageError
from pipeline.core.records import Origin
from pipeline.estimators.labels import NEGATIVE, NEUTRAL, POSITIVE, values_with_evidence
from pipeline.estimators.target_places import NO_PLACES, TargetPlaces, are_left_out, target_places
from pipeline.export.example import StepCounts, StepTarget, TrainingExample, display_name
from pipeline.export.formats.base import Format
from pipeline.export.settings import ExportConfig, NeutralSteps, TargetKind, UncertainSteps

JOINT = " "
"""The text between a step and the step that it is merged into. No trainer uses it to separate steps."""
_ONE_VALUE = {UncertainSteps.positive: POSITIVE, UncertainSteps.negative: NEGATIVE}
_ONE_CLASS = {
    NeutralSteps.positive: POSITIVE,
    NeutralSteps.negative: NEGATIVE,
    NeutralSteps.keep: NEUTRAL,
    NeutralSteps.uncertain: None,
}


class LabelRow(NamedTuple):
    """The columns of `labels` that exports use. Lists have one entry per step.

    Of the columns in `SOMETIMES`, only those that the plan reads are loaded; the others are None. `left_out`,
    `p_error_free`: see `tables.CONSENSUS`; None for labels by another rule. `p_no_drop`: see `StepValue`.
    """

    chain_id: str
    problem_id: str
    source_id: str | None
    problem: str
    gold_answer: str
    final_answer: str | None
    outcome: bool | None
    steps: list[str]
    label: list[int | None]
    value: list[float | None]
    unbiased_value: list[float | None]
    n_correct: list[int]
    n_rollouts: list[int]
    origin: list[str]
    prefix_ids: list[str]
    root_prefix_id: str
    estimator: str
    root_n_rollouts: int | None = None
    p_outcome: float | None = None
    root_value: float | None = None
    left_out: str | None = None
    p_no_drop: list[float | None] | None = None
    p_error_free: list[float | None] | None = None
    grown: bool = False


def without_implied(row: LabelRow) -> LabelRow:
    """The row of a promoted chain with nulls for the steps that `target_places.are_left_out`."""
    if not row.grown:
        return row
    out = are_left_out(row.origin, grown=True)
    kept: dict[str, Any] = {
        name: [None if left_out else each for each, left_out in zip(column, out, strict=True)]
        for name in ("label", "value", "unbiased_value", *OTHER_VALUES)
        if (column := getattr(row, name))
    }
    return row._replace(**kept)


ORIGIN = "origin"
VALUES = ("value", "unbiased_value", "n_rollouts", "root_n_rollouts", ORIGIN)
COUNTS = ("n_correct", "n_rollouts", ORIGIN)
OTHER_VALUES = ("p_no_drop", "p_error_free")
PLACE = ("prefix_ids", "root_prefix_id")
SOMETIMES = (*VALUES, *COUNTS, *OTHER_VALUES, *PLACE, *BOUNDED)


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetChoice:
    """The settings of an export after defaults are applied."""

    target: TargetKind
    soft: ValueColumn
    threshold: float | None
    uncertain: UncertainSteps
    neutral: NeutralSteps | None
    after_error: bool
    whole: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOutChains:
    """Why a chain is not exported: `kind` is a word for counting, `detail` a sentence."""

    kind: str
    detail: str


UNCERTAIN_STEP = "uncertain_step"
NO_LABEL = "no_label"


def target_choice(config: ExportConfig, layout: Format) -> TargetChoice:
    """The settings of the export, with the format's defaults. Raises UsageError for settings that the format cannot express."""
    name = config.format
    target = config.target or layout.targets[0]
    if target not in layout.targets:
        able = " or ".join(f"target={known.value}" for known in layout.targets)
        raise UsageError(f"target={target.value}: format={name} takes {able}; its trainer would misread anything else")
    if layout.outcome:
        _refuse_about_steps(config)
    if config.soft is not None and target is not TargetKind.soft and config.threshold is None:
        raise UsageError(
            f"soft={config.soft.value} has no effect with target={target.value}: leave it out, or give target=soft"
        )
    uncertain = config.uncertain or (UncertainSteps.ignore if layout.ignores else UncertainSteps.merge)
    if uncertain is UncertainSteps.ignore and not layout.ignores:
        raise UsageError(
            f"uncertain=ignore: format={name} cannot hold a step without a label; choose merge, cut or drop"
        )
    if layout.whole and (config.after_error is False or uncertain in (UncertainSteps.merge, UncertainSteps.cut)):
        raise UsageError(f"format={name} holds whole chains: leave out after_error and uncertain=merge or cut")
    if config.neutral is NeutralSteps.keep and not layout.neutral:
        raise UsageError(
            f"neutral=keep: format={name} has no class for neutral steps; choose positive, negative or uncertain"
        )
    return TargetChoice(
        target=target,
        soft=config.soft or ValueColumn.value,
        threshold=config.threshold,
        uncertain=uncertain,
        neutral=config.neutral or (NeutralSteps.keep if layout.neutral else None),
        after_error=layout.whole
        or (target is not TargetKind.hard if config.after_error is None else config.after_error),
        whole=layout.whole,
    )


def _refuse_about_steps(config: ExportConfig) -> None:
    for key in ("threshold", "soft", "uncertain", "neutral", "after_error"):
        if getattr(config, key) is not None:
            raise UsageError(
                f"{key}: format={config.format} holds outcomes of chains, not labels of steps; leave it out"
            )


def columns_for(choice: TargetChoice) -> tuple[str, ...]:
    """What `training_example` reads of a row beside what every export reads."""
    values = VALUES if choice.target is TargetKind.soft or choice.threshold is not None else ()
    other = (choice.soft.value,) if values and choice.soft.value in OTHER_VALUES else ()
    counts = COUNTS if choice.target is TargetKind.counts else ()
    return (*values, *other, *counts, *(() if choice.whole else (ORIGIN,)))


def training_example(row: LabelRow, choice: TargetChoice) -> TrainingExample | LeftOutChains:
    """The training example of a chain. Raises UsageError if it has neutral steps and `neutral` is required but not set."""
    hard = hard_labels(row, choice)
    end = len(hard) if choice.after_error or NEGATIVE not in hard else hard.index(NEGATIVE) + 1
    steps, targets, labels = row.steps[:end], _targets(row, choice, hard)[:end], hard[:end]
    places = _places(row, targets, choice)
    if None in targets:
        if choice.uncertain is UncertainSteps.drop:
            number = targets.index(None) + 1
            return LeftOutChains(kind=UNCERTAIN_STEP, detail=f"step {number} of {len(steps)} has no label")
        steps, targets, labels = _without_uncertain(steps, targets, labels, choice)
    counts = _step_counts(row, end, len(labels), choice)
    if not choice.whole and all(target is None for target in targets):
        return LeftOutChains(kind=NO_LABEL, detail=f"none of its {len(row.steps)} steps has a label")
    return TrainingExample(
        chain_id=row.chain_id,
        problem_id=row.problem_id,
        source_id=row.source_id,
        problem=row.problem,
        gold_answer=row.gold_answer,
        final_answer=row.final_answer,
        outcome=row.outcome,
        steps=tuple(steps),
        targets=targets,
        labels=labels,
        places=places,
        counts=counts,
    )


def _step_counts(row: LabelRow, end: int, written: int, choice: TargetChoice) -> StepCounts:
    """`end`: the number of steps up to the first bad one, if later ones are left out. `written`: of these, those with a label
    of their own."""
    cut = choice.uncertain is UncertainSteps.cut and written < end
    keeps_end = end == len(row.steps) and not cut and row.outcome is not None and not _of_consensus(choice)
    return StepCounts(written=written, ends=int(keeps_end), after_error=len(row.steps) - end, merged=end - written)


def hard_labels(row: LabelRow, choice: TargetChoice) -> list[int | None]:
    """The label of every step, from the run or by the threshold: 1, 0, None, or 2 if neutral steps are kept or are not the
    target."""
    if choice.threshold is not None:
        return [None if value is None else int(value > choice.threshold) for value in soft_values(row, choice.soft)]
    if NEUTRAL not in row.label:
        return row.label
    if choice.neutral is None and choice.target is not TargetKind.hard:
        return row.label
    if choice.neutral is None:
        name, number = display_name(row.chain_id, row.source_id), row.label.index(NEUTRAL) + 1
        raise UsageError(
            f"the run has neutral steps (chain {name}, step {number}), but the format has no class for them: choose "
            "neutral=positive, negative or uncertain (trainers differ)"
        )
    instead = _ONE_CLASS[choice.neutral]
    return [instead if label == NEUTRAL else label for label in row.label]


def soft_values(row: LabelRow, column: ValueColumn) -> list[float | None]:
    """The value of every step, from `column`; None without evidence."""
    if column is ValueColumn.p_error_free:
        return row.p_error_free or [None] * len(row.steps)
    values: list[float | None] = getattr(row, column.value)
    return values_with_evidence(values, row.origin, row.n_rollouts, row.root_n_rollouts or 0)


def _of_consensus(choice: TargetChoice) -> bool:
    """Whether the targets are probabilities of labels by consensus."""
    return choice.target is TargetKind.soft and choice.soft is ValueColumn.p_error_free


def _places(row: LabelRow, targets: list[StepTarget], choice: TargetChoice) -> TargetPlaces:
    """The places of the targets of exported steps, before steps without one are merged."""
    if choice.whole or _of_consensus(choice):
        # A probability of consensus is no outcome, at last steps either.
        # Whole chains are for evaluation, or labelled by their outcome alone.
        return NO_PLACES
    given: list[StepTarget] = targets
    if None in targets:
        match choice.uncertain:
            case UncertainSteps.cut:
                given = targets[: targets.index(None)]
            case UncertainSteps.positive | UncertainSteps.negative:
                given = [_ONE_VALUE[choice.uncertain] if target is None else target for target in targets]
    return target_places(given, row.origin, hard=choice.target is TargetKind.hard, grown=row.grown)


def _targets(row: LabelRow, choice: TargetChoice, hard: list[int | None]) -> list[StepTarget]:
    match choice.target:
        case TargetKind.hard:
            return list(hard)
        case TargetKind.soft:
            return list(soft_values(row, choice.soft))
        case TargetKind.counts:
            return [
                _pair(correct, rollouts, origin, row.outcome)
                for correct, rollouts, origin in zip(row.n_correct, row.n_rollouts, row.origin, strict=True)
            ]


def _pair(correct: int, rollouts: int, origin: str, outcome: bool | None) -> StepTarget:
    """Correct and graded rollouts. A terminal step has no rollouts, so the chain's outcome is its only trial."""
    if origin == Origin.TERMINAL.value and outcome is not None:
        return int(outcome), 1
    return (correct, rollouts) if rollouts else None


def _without_uncertain(
    steps: list[str], targets: list[StepTarget], labels: list[int | None], choice: TargetChoice
) -> tuple[list[str], list[StepTarget], list[int | None]]:
    match choice.uncertain:
        case UncertainSteps.cut:
            end = targets.index(None)
            return steps[:end], targets[:end], labels[:end]
        case UncertainSteps.merge:
            ends = [number for number, target in enumerate(targets) if target is not None]
            texts = [JOINT.join(steps[before + 1 : end + 1]) for before, end in pairwise([-1, *ends])]
            return texts, [targets[end] for end in ends], [labels[end] for end in ends]
        case UncertainSteps.positive | UncertainSteps.negative:
            one = _ONE_VALUE[choice.uncertain]
            instead: StepTarget = one
            if choice.target is not TargetKind.hard:
                instead = float(one) if choice.target is TargetKind.soft else (one, 1)
            labels = [one if target is None else label for target, label in zip(targets, labels, strict=True)]
            return steps, [instead if target is None else target for target in targets], labels
        case _:
            return steps, targets, labels
