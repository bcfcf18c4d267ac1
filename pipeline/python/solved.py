"""A problem that `solve` has searched: the answer, the steps of the chosen chain with their scores, and the other candidates.

Texts are a model's: what a shell or a notebook shows of them is plain text.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from pipeline.analysis.chains import number_of, value_colour
from pipeline.core.formatting import format_count, format_percent, plain_lines, printable
from pipeline.core.shown import Shown
from pipeline.graders.answer_groups import answer_groups

SHOWN_ANSWERS = 5
"""Other answers that are shown; `alternatives` has all candidates."""
Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class SolvedStep:
    """A step of the chosen chain. `score`: the scorer's, in [0, 1], calibrated where the call says so; None without one.
    `reliability`: how sure the scorer is of it; None where it does not say. `sure`: whether the score reaches `accept`, and the
    reliability `search.reliability`; None without `accept`."""

    text: str
    score: float | None
    reliability: float | None
    sure: bool | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Alternative:
    """A candidate that was not chosen. `score`: of the chain, as `search.aggregation` makes it; None without one. `share`: the
    share of all candidates that state the same answer; None without an answer. `cut`: a limit ended the chain."""

    answer: str | None
    score: float | None
    share: float | None
    steps: tuple[str, ...]
    step_scores: tuple[float | None, ...]
    cut: bool


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Solved(Shown):
    """The search of one problem. A shell or a notebook shows the steps with their scores, and other answers.

    `answer`: the final answer of the chosen chain; None where it states none. `steps`: those of the chain; empty where no chain
    ended. `score`: of the chain. `confidence`: how sure the method is of its choice, in [0, 1]: the score of the chain, or its
    answer's share of the votes. `trusted`: whether it reaches `accept`; None without that. `weakest`: the number of the step
    with the lowest score, from 1. `share`: the share of all candidates that state this answer. `alternatives`: the other
    candidates, the best first. `outcome`: whether the answer is correct; None where no right answer is known. `stopped`: why
    the search ended, a `pipeline.searches.base.Stop`. `policy_tokens`: generated; `scorer_tokens`: computed by the scorer;
    `seconds`: from its beginning to its end, side by side with others.
    """

    problem: str
    problem_id: str
    source_id: str | None
    answer: str | None
    steps: tuple[SolvedStep, ...]
    score: float | None
    confidence: float | None
    trusted: bool | None
    weakest: int | None
    share: float | None
    alternatives: tuple[Alternative, ...]
    outcome: bool | None
    stopped: str
    policy_tokens: int
    scorer_tokens: int
    seconds: float

    def _shown_lines(self) -> Iterator[str]:
        yield from plain_lines(self.problem).splitlines()
        yield from (f"{name:<12}{said}" for name, said in self._said())
        yield from ("", f"{'':<12}score") if self.steps else ()
        for number, step in enumerate(self.steps, start=1):
            first, *rest = step.text.splitlines() or [""]
            yield f"{f'step {number}':<12}{number_of(step.score)}  {first}{self._mark(number)}"
            yield from (f"{'':<18}{line}" for line in rest)

    def _repr_html_(self) -> str:
        said = "".join(
            f"<tr><td>{escape(name)}</td><td>{escape(plain_lines(text))}</td></tr>" for name, text in self._said()
        )
        steps = "".join(
            f'<div style="background:{value_colour(step.score)};color:#000;padding:1px 6px;margin:1px 0;'
            f'white-space:pre-wrap"><span style="font-family:monospace">{number_of(step.score)}</span> '
            f"{escape(plain_lines(step.text))}<i>{escape(self._mark(number))}</i></div>"
            for number, step in enumerate(self.steps, start=1)
        )
        return (
            f'<div style="margin:0 0 1em 0"><div style="white-space:pre-wrap"><b>{escape(plain_lines(self.problem))}</b></div>'
            f"<table>{said}</table>{steps}</div>"
        )

    def _said(self) -> Iterator[tuple[str, str]]:
        """What is said of the search, as pairs of a name and a text."""
        outcome = {True: ", which is right", False: ", which is wrong", None: ""}[self.outcome]
        yield "answer", f"{'none' if self.answer is None else printable(self.answer)}{outcome}"
        if self.confidence is not None:
            trusted = {True: ": trusted", False: ": not trusted", None: ""}[self.trusted]
            yield "confidence", f"{self.confidence:.2f}{trusted}"
        elif self.trusted is not None:
            yield "trusted", "yes" if self.trusted else "no"
        if not self.steps:
            yield "no chain", f"the search ended with {self.stopped}"
        if self.share is not None and self.alternatives:
            yield (
                "agreement",
                f"{format_percent(self.share)} of {len(self.alternatives) + 1:,} candidates state this answer",
            )
        yield from zip(["others", *[""] * SHOWN_ANSWERS], self._other_answers(), strict=False)
        yield "tokens", f"{self.policy_tokens:,} of the policy, {self.scorer_tokens:,} of the scorer"

    def _other_answers(self) -> Iterator[str]:
        """The other answers of candidates, the most frequent first, letter by letter."""
        answers = Counter(each.answer for each in self.alternatives if each.answer not in (None, self.answer))
        for answer, count in answers.most_common(SHOWN_ANSWERS):
            scores = [each.score for each in self.alternatives if each.answer == answer and each.score is not None]
            best = max(scores, default=None)
            score = "" if best is None else f", best score {best:.2f}"
            yield f"{printable(str(answer))}: {format_count(count, 'candidate')}{score}"

    def _mark(self, number: int) -> str:
        marks = ["the weakest step"] if number == self.weakest and len(self.steps) > 1 else []
        marks += ["not sure"] if self.steps[number - 1].sure is False else []
        return f"  ({', '.join(marks)})" if marks else ""


def solved_of(search: Row, candidates: Sequence[Row], accept: float | None, reliability: float | None) -> Solved:
    """The search of a problem, from its row of `searches` and its rows of `candidates`. `accept` and `reliability`: settings of
    the search."""
    shares = _shares([each["final_answer"] for each in candidates])
    chosen = search["chosen"]
    at = next((at for at, each in enumerate(candidates) if each["candidate"] == chosen), None)
    others = [
        Alternative(
            answer=each["final_answer"],
            score=each["score"],
            share=share,
            steps=tuple(each["steps"]),
            step_scores=tuple(each["step_scores"]),
            cut=each["cut"],
        )
        for number, (each, share) in enumerate(zip(candidates, shares, strict=True))
        if number != at
    ]
    return Solved(
        problem=search["problem"],
        problem_id=search["problem_id"],
        source_id=search["source_id"],
        answer=search["final_answer"],
        steps=() if at is None else _steps(candidates[at], accept, reliability),
        score=search["score"],
        confidence=search["confidence"],
        trusted=search["trusted"],
        weakest=search["weakest_step"],
        share=None if at is None else shares[at],
        alternatives=tuple(sorted(others, key=lambda each: (each.score is None, -(each.score or 0.0)))),
        outcome=search["outcome"],
        stopped=search["stopped"],
        policy_tokens=search["policy_tokens"],
        scorer_tokens=search["scorer_computed"],
        seconds=search["seconds"],
    )


def _steps(chosen: Row, accept: float | None, reliability: float | None) -> tuple[SolvedStep, ...]:
    said = chosen["reliability"] or [None] * len(chosen["steps"])
    return tuple(
        SolvedStep(text=text, score=score, reliability=sure, sure=_sure(score, sure, accept, reliability))
        for text, score, sure in zip(chosen["steps"], chosen["step_scores"], said, strict=True)
    )


def _sure(score: float | None, said: float | None, accept: float | None, reliability: float | None) -> bool | None:
    if accept is None:
        return None
    enough = score is not None and score >= accept
    return enough and (reliability is None or (said is not None and said >= reliability))


def _shares(answers: Sequence[str | None]) -> list[float | None]:
    """The share of all candidates that state the same answer, for each."""
    groups = answer_groups(answers)
    counts = Counter(groups)
    return [None if group is None else counts[group] / len(groups) for group in groups]
