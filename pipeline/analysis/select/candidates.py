"""What competes: the candidates of a problem. Pure."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A chain for a problem. None where it states no answer, or has no score.

    `right`: its answer was found to be the known one; what could not be judged is not right.
    """

    chain_id: str
    answer: str | None
    right: bool
    score: float | None
    outcome_score: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Contest:
    """All candidates of a problem, at least one. What is said of them does not depend on their order."""

    problem_id: str
    candidates: tuple[Candidate, ...]
