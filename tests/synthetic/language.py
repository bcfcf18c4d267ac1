"""What the synthetic policy writes: a step gives its state, the last line an answer in LaTeX. One token is one byte.

A step in a given state can be worded in WORDINGS ways, so that a rollout repeats a step of a chain token for token now and
then, but not whenever it reaches the same state.
"""

from dataclasses import dataclass

import numpy as np

from tests.synthetic.draw import Integers

_OPENINGS = ("So", "Hence", "Thus", "Now", "Then", "Next", "Therefore", "It follows that")
_VERBS = ("the sum becomes", "we get")
_DETOUR = " after terms cancel"
_MOST_DETOURS = 4

WORDINGS = len(_OPENINGS) * len(_VERBS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A final answer, and ways in which it is stated rightly and wrongly; as many of each for every question."""

    gold: str
    right: tuple[str, ...]
    wrong: tuple[str, ...]


QUESTIONS = (
    Question(
        gold=r"\frac{3}{4}",
        right=(r"\frac{3}{4}", "0.75", r"\dfrac{6}{8}", "3/4"),
        wrong=(r"\frac{4}{3}", "0.57", r"\frac{3}{5}", r"-\frac{3}{4}"),
    ),
    Question(
        gold=r"2\sqrt{3}",
        right=(r"2\sqrt{3}", r"\sqrt{12}", r"2 \sqrt 3", r"\frac{6}{\sqrt{3}}"),
        wrong=(r"3\sqrt{2}", r"\sqrt{18}", "2", r"\sqrt{6}"),
    ),
    Question(
        gold=r"\{1, 2, 5\}",
        right=(r"\{1, 2, 5\}", r"\{5, 2, 1\}", r"\{1,2,5\}", r"\left\{2, 1, 5\right\}"),
        wrong=(r"\{1, 2\}", r"\{1, 2, 6\}", r"\{1, 2, 5, 7\}", r"\{0, 2, 5\}"),
    ),
    Question(gold="1024", right=("1024", "1,024", "2^{10}", "1024.0"), wrong=("1023", "2048", "2^{11}", "104")),
    Question(
        gold=r"\left[0, \frac{1}{2}\right)",
        right=(r"\left[0, \frac{1}{2}\right)", r"[0, \frac{1}{2})", "[0, 0.5)", "[0, 1/2)"),
        wrong=(r"\left[0, \frac{1}{2}\right]", r"(0, \frac{1}{2})", "[0, 2)", "[0, 1/3)"),
    ),
    Question(
        gold=r"\frac{\pi}{6}",
        right=(r"\frac{\pi}{6}", r"\pi/6", r"\frac{2\pi}{12}", r"\frac{1}{6}\pi"),
        wrong=(r"\frac{\pi}{3}", r"\frac{6}{\pi}", r"\pi", "30"),
    ),
)
RENDERINGS = len(QUESTIONS[0].right)


def step_text(state: int, wording: int) -> str:
    opening, verb = divmod(wording, len(_VERBS))
    return f"{_OPENINGS[opening]} {_VERBS[verb]} [{state:03d}]{_DETOUR * _detours(state)}.\n"


def _detours(state: int) -> int:
    """Steps differ in length, but states that are worth little or much are not shorter than others."""
    return (7 * state + 2) % (_MOST_DETOURS + 1)


def answer_text(question: int, right: bool, rendering: int) -> str:
    asked = QUESTIONS[question]
    return f"The answer is \\boxed{{{(asked.right if right else asked.wrong)[rendering]}}}.\n"


def step_tokens(states: int) -> Integers:
    """Tokens of a step by state and wording, shape (states, WORDINGS)."""
    return np.array([[len(step_text(state, wording)) for wording in range(WORDINGS)] for state in range(states)])


def answer_tokens() -> Integers:
    """Tokens of an answer by question, right (1) or wrong (0), and rendering, shape (questions, 2, RENDERINGS)."""
    return np.array(
        [
            [
                [len(answer_text(question, right, rendering)) for rendering in range(RENDERINGS)]
                for right in (False, True)
            ]
            for question in range(len(QUESTIONS))
        ]
    )
