r"""ThinkPRM: a critique of every step in one text, each of which ends in `\boxed{correct}` or `\boxed{incorrect}`.

Prompt: `format_verification_cot_for_thinkprm` in `utils/helper.py` of mukhal/ThinkPRM, with the steps as lines that begin with
`Step 1: `, as its process verifier has them. The assistant's turn begins with a line end and "Let's verify step by step:".
Votes are sampled as in `prm/thinkprm_api.py`: temperature 0.7.

The last complete verdict in the part about a step counts. A part begins with a line that begins with `Step K`; in a text
without such lines, the K-th verdict is about step K. The model may stop at the first wrong step: later ones have the score 0. A
step without a verdict has none otherwise.

With `scorer.verdict=probability` the score is P(correct) against P(incorrect) where the verdict stands. (The publication reads
P(Yes) after "Is the solution correct?", of a whole solution.)
"""

import asyncio
import re
from collections.abc import Sequence

from pipeline.core.records import ChainText
from pipeline.judges.boxes import Box, boxes
from pipeline.scorers.generative.base import Judged, Messages, Sampling, Style, Vote, Writer, Written
from pipeline.scorers.generative.votes import after_first_error
from pipeline.scorers.generative.whole_chain import judge_whole

WORDS = ("correct", "incorrect")
OPENING = "\nLet's verify step by step:"
_TASK = (
    "Review and critique each step in the proposed solution to determine whether each step is correct. If the solution is "
    "incomplete, only verify the provided steps."
)
_HEADING = re.compile(r"(?:\A|\n)[ \t#*>-]{0,16}Step[ ]{0,4}([0-9]{1,6})\b", re.IGNORECASE)
_OWN_NUMBER = re.compile(r"Step [0-9]{1,6}:")


class ThinkPrm(Style):
    """See the module."""

    sampling = Sampling(temperature=0.7)
    stop = ("Is the solution correct?",)
    base = 1
    reads_words = True

    def __init__(self, index_base: int, *, probability: bool) -> None:
        self._base = index_base
        self._probability = probability

    async def judge(self, chain: ChainText, writer: Writer) -> Judged:
        async def votes(written: Written, steps: int) -> list[Vote]:
            texts = [completion.text for completion in written.completions]
            return await asyncio.gather(*(self._vote(chain, writer, written, text, steps) for text in texts))

        return await judge_whole(chain, writer, self._prompted, votes)

    def _prompted(self, problem: str, steps: Sequence[str]) -> tuple[Messages, str]:
        return [{"role": "user", "content": critique_prompt(problem, steps, self._base)}], OPENING

    async def _vote(self, chain: ChainText, writer: Writer, written: Written, text: str, steps: int) -> Vote:
        found = verdicts(text, steps, self._base)
        if not self._probability:
            return after_first_error([None if box is None else float(box.says.lower() == WORDS[0]) for box in found])

        async def share(box: Box | None) -> float | None:
            if box is None:
                return None
            return await writer.probability(chain, written.prompt, text[: _word_at(text, box)], WORDS)

        return after_first_error(await asyncio.gather(*map(share, found)))


def critique_prompt(problem: str, steps: Sequence[str], base: int) -> str:
    """The user's turn."""
    solution = "\n".join(
        f"Step {number}: {_OWN_NUMBER.sub('', step).strip()}" for number, step in enumerate(steps, start=base)
    )
    parts = ("You are given a math problem and a proposed step-by-step solution:", "[Math Problem]", problem)
    return "\n\n".join([*parts, "[Solution]", solution, _TASK])


def verdicts(text: str, steps: int, base: int) -> list[Box | None]:
    """The box with the verdict on each step. None for a step without one."""
    found: list[Box | None] = [None] * steps
    said = [box for box in boxes(text) if box.says.lower() in WORDS]
    headings = [(heading.start(), int(heading[1]) - base) for heading in _HEADING.finditer(text)]
    if not headings:
        return [*said, *found[len(said) :]] if len(said) <= steps else found
    at = -1
    for box in said:
        while at + 1 < len(headings) and headings[at + 1][0] <= box.begin:
            at += 1
        if at >= 0 and 0 <= headings[at][1] < steps:
            found[headings[at][1]] = box
    return found


def _word_at(text: str, box: Box) -> int:
    """Where the word of a verdict begins."""
    return text.index(box.says, box.begin + len("\\boxed"), box.end)
