"""What votes on a chain's steps are."""

from collections.abc import Sequence
from dataclasses import dataclass

Vote = Sequence[float | None]
"""A score for each step that one reading of a chain gives: 1 or 0, or a probability. None where it says nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """Votes on the first steps of a chain. `left_out`: last steps that did not fit. `failed`: whether the model could not be
    asked. `tokens`: read and written."""

    votes: Sequence[Vote]
    left_out: int = 0
    failed: bool = False
    tokens: int = 0
