r"""GOOD, OK or BAD for each step, for any chat model: `Step K: \boxed{GOOD}`.

What the words mean follows the prompt with which VersaPRM's steps were labelled (`mmlu_autolabel_to_bedrock.py` of its
repository, arXiv 2502.06737), in words of our own and for any problem, not only multiple choice. As there, steps are in tags
`<step_K>`, the first one has the index 0, and the known answer may be shown; with an `index_base` of 1 the prompt says so.

There the answer is the index of the first BAD step alone. Here it is a line for each step up to that one, so that a step which
is merely OK is seen too. The last box of a step's part counts. In an answer without any such box, words after `Step K:` count.
"""

from collections.abc import Sequence

from pipeline.core.records import ChainText, Finish, Reading
from pipeline.judges.templates.base import Messages, shown_answer, tagged_steps
from pipeline.judges.templates.whole_chain import OfWholeChain
from pipeline.judges.verdicts import boxed_words, headings, line_words, words_reading

_SYSTEM = """\
You are an experienced evaluator of solutions. You judge each step of a solution as GOOD, OK or BAD.

GOOD: all that the step says is correct and can be checked with common knowledge or a short calculation. It fits the steps
before \\ it, or corrects one of them. It is a sensible move, even if it turns out not to lead to the end.
OK: the step is correct and can be checked, but it adds little. It repeats what is known, encourages, or advances only slightly.
BAD: the step says or derives something false, misuses a concept{contradicts}. Or it takes great effort to check because it is \
explained badly, is off the topic, or leads into a dead end or a circle."""
_CONTRADICTS = ", or contradicts the known answer"
_TASK = """\
Judge the steps in their order, and explain each verdict in a sentence or two. Then write a line with the number of the step and
\\ its verdict in a box, such as

Step {base}: \\boxed{{GOOD}}

Stop after the first BAD step. If there is none, go on to the last step, which is step {last}."""


class GoodOkBad(OfWholeChain):
    """See the module."""

    base = 0

    def __init__(self, index_base: int | None = None, *, show_answer: bool = False) -> None:
        super().__init__(index_base)
        self._show_answer = show_answer

    def prompted(self, chain: ChainText, steps: Sequence[str]) -> tuple[Messages, str]:
        answer = shown_answer(chain) if self._show_answer else None
        return critique_messages(chain.problem, steps, self.index_base, answer), ""

    def verdict(self, turns: Sequence[str], finish: Finish, steps: int) -> Reading:
        text = turns[-1]
        said = list(boxed_words(text)) or list(line_words(text))
        return words_reading(said, headings(text, self.index_base), finish, steps)


def critique_messages(problem: str, steps: Sequence[str], base: int, answer: str | None) -> Messages:
    """The conversation. `answer`: the known answer, where the judge may see it."""
    known = [] if answer is None else ["[Known Answer]", answer]
    number = "indexed" if base == 0 else "numbered"
    intro = (
        f"The following is a problem and a solution (split into steps, enclosed with tags and {number} from {base})."
    )
    parts = [intro, "[Problem]", problem, *known, "[Solution]", tagged_steps(steps, base)]
    task = _TASK.format(base=base, last=base + len(steps) - 1)
    return [
        {"role": "system", "content": _SYSTEM.format(contradicts="" if answer is None else _CONTRADICTS)},
        {"role": "user", "content": "\n\n".join([*parts, task])},
    ]
