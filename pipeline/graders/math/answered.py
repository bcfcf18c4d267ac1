r"""When a text that is still being written has stated its final answer. Pure.

A statement is complete when the line it stands in has ended, and what `extract` takes as the final answer is the same
whatever plain text follows on the next lines: a closed `\boxed{}`, `#### 72`, "the answer is 27". What is an answer only
where the text ends is none here: a bare number, a closing line "A: 27", a heading "#### Step 1". A sentence that goes on
behind the line ("The answer is the sum of:") is open, and so is an answer in many words.

Not covered: a text that would take its answer back, or state another one, further on.
"""

import re
from dataclasses import dataclass

from pipeline.graders.math.extract import final_answer

MAX_WORDS = 2
"""Of an answer without a digit: "yes", "New York". A longer one may be the beginning of an explanation."""
MAX_WORDS_WITH_NUMBER = 4
"""Of an answer with a digit: "27 shells in all". A formula may be longer."""

_MARKS = re.compile(r"nswer|NSWER|答案|故选|\\boxed|\\fbox|####")
_MORE = "\nNext"
_OPEN = (*":,;=+-*/([{", " and", " or")
_DIGIT = re.compile(r"\d")


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """`pattern`: the grader's own, which comes before all built-in markers; its time is the caller's."""

    pattern: re.Pattern[str] | None = None

    def may_state(self, piece: str) -> bool:
        """Whether a line may state an answer: quick, and false for most."""
        return self.pattern is not None or _MARKS.search(piece) is not None

    def complete(self, text: str) -> bool:
        """Whether `text` has stated a final answer that stands. What follows its last line end is not looked at."""
        lines = text[: text.rfind("\n") + 1]
        if lines.rstrip(" \t\r\n").endswith(_OPEN):
            return False
        answer = final_answer(lines, pattern=self.pattern)
        return answer is not None and _is_short(answer) and final_answer(lines + _MORE, pattern=self.pattern) == answer


def _is_short(answer: str) -> bool:
    most = MAX_WORDS_WITH_NUMBER if _DIGIT.search(answer) else MAX_WORDS
    return "\\" in answer or len(answer.split()) <= most
