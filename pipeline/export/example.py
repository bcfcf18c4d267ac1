"""The training example that every format receives: a chain with one target per step."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from pipeline.core.records import NumberedChain
from pipeline.estimators.labels import NEGATIVE, NEUTRAL, POSITIVE
from pipeline.estimators.target_places import NO_PLACES, TargetPlaces

Pair = tuple[int, int]
"""Correct and graded rollouts of a prefix."""
StepTarget = int | float | Pair | None
"""The target of a step: 1, 0 or 2 for neutral (hard), a probability (soft), a `Pair` (counts), or None without a label."""


def display_name(chain_id: str, source_id: str | None) -> str:
    """The `source_id` of a chain if it is printable, else its `chain_id`."""
    return source_id if source_id and source_id.isprintable() else chain_id


class LabelCounts(NamedTuple):
    """The number of labels of each kind. A NamedTuple, because one is made for every chain and it is fast."""

    good: int = 0
    bad: int = 0
    neutral: int = 0
    unlabelled: int = 0

    @property
    def total(self) -> int:
        return self.good + self.bad + self.neutral + self.unlabelled


NO_LABELS = LabelCounts()


class StepCounts(NamedTuple):
    """What became of the steps of a chain, as numbers: `written` ones, of which `ends` are the end of a chain with its outcome
    as label; those `after_error`, after the first bad step; and those without a label that were cut or `merged` into another.
    """

    written: int = 0
    ends: int = 0
    after_error: int = 0
    merged: int = 0

    @property
    def total(self) -> int:
        return self.written + self.after_error + self.merged


NO_STEPS = StepCounts()


def step_totals(counted: Iterable[StepCounts]) -> StepCounts:
    return StepCounts(*map(sum, zip(NO_STEPS, *counted, strict=True)))


def count_labels(labels: list[int | None]) -> LabelCounts:
    return LabelCounts(labels.count(POSITIVE), labels.count(NEGATIVE), labels.count(NEUTRAL), labels.count(None))


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingExample(NumberedChain):
    """A chain to train on: unformatted texts, and one entry of `targets` for each of `steps`.

    `labels`: the labels of the steps by the run's rule or by `threshold`, independent of the targets. `places`: where the
    targets are. `counts`: what became of the chain's steps.
    """

    targets: list[StepTarget]
    labels: list[int | None]
    places: TargetPlaces = NO_PLACES
    counts: StepCounts = NO_STEPS
