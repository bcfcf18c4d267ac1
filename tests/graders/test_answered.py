"""A statement is complete when nothing that follows on further lines is needed to read it."""

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pipeline.config.choices import Fallback
from pipeline.graders.math.extract import AnswerSeen
from pipeline.graders.math.pool import MathChecker
from tests.settings import grader_settings

ANSWERED = AnswerSeen()
CHECKER = MathChecker(grader_settings(fallback=Fallback.last_number))


@pytest.mark.parametrize(
    "text",
    [
        "The answer is 27.\n",
        "So it is 27.\n#### 27\n",
        "Thus \\boxed{27}.\n",
        "\\[ \\fbox{\\frac{1}{2}} \\]\n\n",
        "**Answer:** 27\n",
        "# Answer\n27\n",
        "The final answer is:\n\\[\n27\n\\]\n",
        "The answer is yes.\n",
        "The answer is New York.\n",
        "Answer: (B)\n",
        "答案是 5\n",
        "<answer>5</answer>\n",
        "The answer is 27 shells in all.\n",
        "The answer is $\\{ 1, 2, 3, 4, 5, 6 \\}$.\n",
        "The answer is 27.\n\nProblem: Ann has 3",
        "The answer is 27.\r\n",
    ],
)
def test_complete(text: str) -> None:
    assert ANSWERED.complete(text)
    assert any(map(ANSWERED.may_state, text.splitlines()))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n",
        "The answer is 27.",
        "Thus \\boxed{27",
        "Thus \\boxed{27\n",
        "\\boxed{3} or\n",
        "\\boxed{3},\n",
        "27\n",
        "A: 27\n",
        "#### Step 1\n",
        "####\n",
        "The answer is\n",
        "Answer:\n",
        "The final answer is:\n\\[\n27\n",
        "The answer is obtained as follows:\n",
        "The answer is the sum of the two\n",
        "The answer must be between 4 and 2 km an hour.\n",
        "<think>The answer is 27.\n",
        "She has 27 shells.\n",
        "Answer:\n- 27\n",
        "Answer:\n1. 27\n2. 28\n",
    ],
)
def test_not_complete(text: str) -> None:
    assert not ANSWERED.complete(text)


def test_a_pattern_of_the_grader_comes_first() -> None:
    answered = AnswerSeen(pattern=re.compile(r"#([0-9]+)"))
    assert answered.may_state("12*3=36")
    assert answered.complete("12*3=36\n#36\n")
    assert not answered.complete("12*3=36\n#36")
    assert not answered.complete("12*3=36\n")


def test_a_pattern_that_only_the_end_of_a_text_matches_is_never_complete() -> None:
    assert not AnswerSeen(pattern=re.compile(r"([0-9]+)\s*$")).complete("12 * 3 = 36\n")


LINES = st.sampled_from(
    [
        "The answer is 27.", "#### 72", "#### Step 1", "\\boxed{5}", "\\boxed{", "}", "so 3 * 4 = 12", "Answer:", "27",
        "A: 27", "the answer is about 3 because", "\\[", "27", "\\]", "", "  ", "Wait, actually it is 6.", "<answer>7",
        "</answer>", "<think>", "</think>", "答案是 5", "Final Answer", "**The answer is**", "is red", "x = 4,", "Problem: 9",
    ]
)  # fmt: skip
TEXTS = st.lists(LINES | st.text(max_size=6), max_size=8).map("\n".join)


@given(TEXTS, st.sampled_from(["", "So it was.", "Next\nProblem"]))
@example("The answer is 27.\n", "")
def test_the_text_up_to_there_is_graded_as_one_that_goes_on(text: str, more: str) -> None:
    """A text that ends after the line has the same answer as one that the token limit cuts there. No fallback is used."""
    cut = text[: text.rfind("\n") + 1]
    if ANSWERED.complete(text):
        answer = CHECKER.final_answer(cut)
        assert answer is not None
        assert answer == CHECKER.stated_answer(cut, complete=False)
        assert answer == CHECKER.stated_answer(cut + "\n" + more)
        assert ANSWERED.complete(cut)


@given(TEXTS, st.integers(0, 60))
def test_no_line_before_the_first_that_may_state_an_answer_completes_one(text: str, end: int) -> None:
    if ANSWERED.complete(text[:end]):
        assert any(map(ANSWERED.may_state, text[:end].split("\n")[:-1]))
