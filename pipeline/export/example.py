"""What is exported: a chain with one target per step, in the same form for every format."""

from dataclasses import dataclass

Pair = tuple[int, int]
"""Right and graded rollouts of a prefix."""
StepTarget = int | float | Pair | None
"""Of a step: 1 or 0, or 2 for a neutral one (hard), a probability (soft), a `Pair` (counts), None where it has no label."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """A chain as it is to be trained on: texts as they are, one of `targets` for each of `steps`, nothing formatted yet."""

    chain_id: str
    problem_id: str
    source_id: str | None
    problem: str
    gold_answer: str
    final_answer: str | None
    outcome: bool | None
    steps: list[str]
    targets: list[StepTarget]
