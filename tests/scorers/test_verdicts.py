"""Verdicts in what models write: the last complete one counts, and nothing raises."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.core.records import Reading, ReadingKind, StepOpinion
from pipeline.judges.templates import gen_prm
from pipeline.judges.templates.process_bench import critique_prompt
from pipeline.judges.verdicts import boxes
from pipeline.scorers.base import TOO_LONG, UNREADABLE
from pipeline.scorers.generative.votes import after_first_error, first_error_vote, step_scores
from tests.strategies import texts

pytestmark = pytest.mark.slow


def says(text: str) -> list[str]:
    return [box.says for box in boxes(text)]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (r"\boxed{correct}", ["correct"]),
        (r"\boxed{\text{incorrect}}", ["incorrect"]),
        (r"$\boxed{ \mathbf{\text{Yes}} }$", ["Yes"]),
        (r"\boxed{{No}}", ["No"]),
        (r"\boxed{**-1**}", ["-1"]),
        (r"\boxed{$3$}.", ["3"]),
        (r"\boxed{\frac{1}{2}} and \boxed{2}", [r"\frac{1}{2}", "2"]),
        (r"\boxed{correct", []),
        (r"\boxed{\text{correct}", []),
        (r"\boxed{a\boxed{b}}", ["b", r"a\boxed{b}"]),
        (r"boxed{correct} \box{1}", []),
        (r"\boxed{" + "x" * 1000 + "}", []),
        (r"\boxed{}", [""]),
    ],
)
def test_only_complete_boxes_count_and_wrappings_come_off(text: str, wanted: list[str]) -> None:
    assert says(text) == wanted


@given(texts, st.sampled_from(["correct", "No", "-1"]), texts)
def test_a_box_is_found_wherever_it_stands(before: str, verdict: str, after: str) -> None:
    text = f"{before.replace('boxed', '')}\\boxed{{\\text{{{verdict}}}}}{after.replace('boxed', '')}"
    (box,) = [box for box in boxes(text) if box.says == verdict]
    assert text[box.begin : box.end] == f"\\boxed{{\\text{{{verdict}}}}}"


@given(st.integers(1, 12), st.data())
def test_a_first_error_is_a_vote_on_all_steps(steps: int, data: st.DataObject) -> None:
    error = data.draw(st.integers(1, steps))
    found = Reading(kind=ReadingKind.ERROR, first_error=error)
    assert first_error_vote(found, steps) == [1.0] * (error - 1) + [0.0] * (steps - error + 1)
    assert first_error_vote(Reading(kind=ReadingKind.NO_ERROR), steps) == [1.0] * steps
    assert first_error_vote(Reading(kind=ReadingKind.OUT_OF_RANGE), steps) == [None] * steps


@pytest.mark.parametrize(
    ("text", "opinion"),
    [
        ("{Yes}$\n</output>", StepOpinion.GOOD),
        ("{\\text{No}}$", StepOpinion.BAD),
        (" {yes}", StepOpinion.GOOD),
        ("{No}$\n</output>\nParagraph 2: \\boxed{Yes}", StepOpinion.BAD),
        ("{Maybe}", None),
        ("{Yes", None),
        ("", None),
        ("Yes", None),
        (" is it? \\boxed{Yes}", None),
    ],
)
def test_a_judgement_is_the_box_that_it_begins_with(text: str, opinion: StepOpinion | None) -> None:
    assert gen_prm.judgement(text) == opinion


@given(st.lists(st.sampled_from([None, 0.0, 1.0, 0.3, 0.8]), max_size=8))
def test_steps_after_an_error_that_nobody_judged_are_wrong(verdicts: list[float | None]) -> None:
    found = after_first_error(verdicts)
    first = next((at for at, verdict in enumerate(verdicts) if verdict is not None and verdict < 0.5), len(verdicts))
    for at, (before, after) in enumerate(zip(verdicts, found, strict=True)):
        assert after == (0.0 if before is None and at > first else before)


votes_of_three = st.lists(
    st.lists(st.sampled_from([None, 0.0, 1.0, 0.25]), min_size=3, max_size=3), min_size=1, max_size=9
)


@given(votes_of_three, st.integers(0, 2))
def test_votes_are_averaged_and_their_agreement_is_the_reliability(
    votes: list[list[float | None]], left_out: int
) -> None:
    scores = step_scores(votes, 3 + left_out, left_out=left_out)
    assert len(scores.scores) == len(scores.positions) == 3 + left_out
    said = [[vote[step] for vote in votes if vote[step] is not None] for step in range(3)]
    for votes_of_step, score in zip(said, scores.scores, strict=False):
        assert score == (
            pytest.approx(sum(filter(None, votes_of_step)) / len(votes_of_step)) if votes_of_step else None
        )
    assert (scores.reliability is None) == (len(votes) == 1)
    assert all(0.0 <= each <= 1.0 for each in scores.reliability or ())
    assert scores.fault == (TOO_LONG if left_out else UNREADABLE if [] in said else "")


@pytest.mark.parametrize("piece", ["\\boxed{", "\\boxed{{", "\\boxed{1", "{"])
def test_a_megabyte_of_the_same_piece_is_no_judgement(piece: str) -> None:
    # A reader that begins again at every brace would not end before the time limit of tests.
    assert gen_prm.judgement(piece * (1_000_000 // len(piece))) is None


def test_prompts_keep_what_looks_like_a_field() -> None:
    for problem, step in product(["{tagged_response}", "{base}", "%s {0}"], ["{problem}", "\\boxed{-1}"]):
        prompt = critique_prompt(problem, [step], 0)
        assert (
            f"[Math Problem]\n\n{problem}\n\n[Solution]\n\n<paragraph_0>\n{step}\n</paragraph_0>\n\nYour task" in prompt
        )
