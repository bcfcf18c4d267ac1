"""The candidates among which models choose, each distinct chain once. Pure but for the grader."""

from dataclasses import dataclass

from pipeline.data.steps import step_texts
from tests.bench.loop.choice import Contest
from tests.bench.loop.replay import Graded
from tests.bench.loop.truth import right_so_far


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


def candidates_of(graded: Graded, count: int) -> Candidates:
    """The first `count` draws for every problem of a part. An empty draw is a candidate without answer and score."""
    chains: list[CandidateChain] = []
    contests: list[Contest] = []
    for problem, exercise in graded.exercises.items():
        answers: dict[str, int] = {}
        number: dict[str, int] = {}
        group: dict[str, int] = {}
        for chain in graded.chains(problem, count):
            steps = step_texts(chain.solution.text, chain.solution.ends)
            number[chain.solution.text] = len(chains)
            answer = chain.final_answer
            group[chain.solution.text] = -1 if answer is None else answers.setdefault(str(int(answer)), len(answers))
            chains.append(
                CandidateChain(
                    problem=problem,
                    steps=tuple(steps),
                    right_so_far=tuple(right_so_far(steps, exercise)),
                    is_right=chain.outcome is True,
                )
            )
        drawn = graded.part.draws[problem][:count]
        places = [number.get(text) for text in drawn]
        contests.append(
            Contest(
                groups=tuple(group.get(text, -1) for text in drawn),
                right=tuple(place is not None and chains[place].is_right for place in places),
                chains=tuple(places),
            )
        )
    return Candidates(chains=tuple(chains), contests=tuple(contests))
