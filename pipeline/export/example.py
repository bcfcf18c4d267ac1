"""What is exported: a chain with one target per step, in the same form for every format."""

from dataclasses import dataclass
from typing import NamedTuple

from pipeline.estimators.labels import NEGATIVE, NEUTRAL, POSITIVE

Pair = tuple[int, int]
"""Right and graded rollouts of a prefix."""
StepTarget = int | float | Pair | None
"""Of a step: 1 or 0, or 2 for a neutral one (hard), a probability (soft), a `Pair` (counts), None where it has no label."""


def display_name(chain_id: str, source_id: str | None) -> str:
    """A chain by the name its owner knows, where a terminal can show that."""
    return source_id if source_id and source_id.isprintable() else chain_id


class LabelCounts(NamedTuple):
    """How many labels are of each kind. Made for every chain, so it is one that is made fast."""

    good: int = 0
    bad: int = 0
    neutral: int = 0
    unlabelled: int = 0

    @property
    def total(self) -> int:
        return self.good + self.bad + self.neutral + self.unlabelled


NO_LABELS = LabelCounts()


def count_labels(labels: list[int | None]) -> LabelCounts:
    return LabelCounts(labels.count(POSITIVE), labels.count(NEGATIVE), labels.count(NEUTRAL), labels.count(None))


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingExample:
    """A chain as it is to be trained on: texts as they are, one of `targets` for each of `steps`, nothing formatted yet.

    `labels`: what the steps are by the run's rule or the threshold that was asked for, whatever they are trained towards.
    """

    chain_id: str
    problem_id: str
    source_id: str | None
    problem: str
    gold_answer: str
    final_answer: str | None
    outcome: bool | None
    steps: list[str]
    targets: list[StepTarget]
    labels: list[int | None]
