"""The candidates among which models choose, each distinct chain once. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass

from tests.bench.loop.choice import Contest
from tests.bench.loop.problems import right_so_far
from tests.bench.loop.tiny_runs import TinyRun
from tests.tiny.arithmetic import Exercise


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateChain:
    """A chain to be scored. `right_so_far`: of each step, whether it and all before it are right by arithmetic."""

    problem: str
    steps: tuple[str, ...]
    right_so_far: tuple[bool, ...]
    is_right: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidates:
    """The distinct chains, and a contest for every problem."""

    chains: tuple[CandidateChain, ...]
    contests: tuple[Contest, ...]


def candidates_of(run: TinyRun, exercises: Mapping[str, Exercise]) -> Candidates:
    """All draws of a run. `exercises`: by the text of the problem. A draw without steps is a candidate without answer and
    score."""
    place = {row["chain_id"]: number for number, row in enumerate(run.rows)}
    drawn: dict[str, list[int | None]] = {problem: [] for problem in exercises}
    for draw in sorted(run.draws, key=lambda draw: draw.number):
        drawn[draw.problem].append(place.get(draw.chain_id))
    return Candidates(
        chains=tuple(
            CandidateChain(
                problem=row["problem"],
                steps=tuple(row["steps"]),
                right_so_far=tuple(right_so_far(row["steps"], exercises[row["problem"]])),
                is_right=row["outcome"] is True,
            )
            for row in run.rows
        ),
        contests=tuple(_contest(run, places) for places in drawn.values()),
    )


def _contest(run: TinyRun, places: list[int | None]) -> Contest:
    answers = [None if place is None else run.rows[place]["final_answer"] for place in places]
    return Contest(
        groups=tuple(-1 if answer is None else int(answer) for answer in answers),
        right=tuple(place is not None and run.rows[place]["outcome"] is True for place in places),
        chains=tuple(places),
    )
