r"""ThinkPRM: a critique of every step in one text, each of which ends in `\boxed{correct}` or `\boxed{incorrect}`.

Prompt: `format_verification_cot_for_thinkprm` in `utils/helper.py` of mukhal/ThinkPRM, with the steps as lines that begin with
`Step 1: `, as its process verifier has them. The assistant's turn begins with a line end and "Let's verify step by step:".
Votes are sampled as in `prm/thinkprm_api.py`: temperature 0.7.

The last complete verdict in the part about a step counts. A part begins with a line that begins with `Step K`; in a text
without such lines, the K-th verdict is about step K. The model may stop at the first wrong step. A step without a verdict has
none otherwise.

A share is P(correct) against P(incorrect) where the verdict stands. (The publication reads P(Yes) after "Is the solution
correct?", of a whole solution.)
"""

import asyncio
import re
from collections.abc import Sequence
from dataclasses import replace

from pipeline.config.label import SamplingConfig
from pipeline.core.records import ChainText, Finish, Reading, StepOpinion
from pipeline.judges.templates.base import Messages, Shares, WrittenCritique
from pipeline.judges.templates.whole_chain import OfWholeChain
from pipeline.judges.verdicts import Box, Said, boxes, headings, step_words, words_reading

WORDS = ("correct", "incorrect")
OPENING = "\nLet's verify step by step:"
_OPINIONS = {WORDS[0]: StepOpinion.GOOD, WORDS[1]: StepOpinion.BAD}
_TASK = (
    "Review and critique each step in the proposed solution to determine whether each step is correct. If the solution is "
    "incomplete, only verify the provided steps."
)
_HEADING = re.compile(r"(?:\A|\n)[ \t#*>-]{0,16}Step[ ]{0,4}([0-9]{1,6})\b", re.IGNORECASE)
_OWN_NUMBER = re.compile(r"Step [0-9]{1,6}:")


class ThinkPrm(OfWholeChain):
    """See the module."""

    sampling = SamplingConfig(temperature=0.7)
    stop = ("Is the solution correct?",)
    base = 1
    words = WORDS

    def prompted(self, chain: ChainText, steps: Sequence[str]) -> tuple[Messages, str]:
        return [{"role": "user", "content": critique_prompt(chain.problem, steps, self.index_base)}], OPENING

    async def with_shares(
        self, critique: WrittenCritique, chain: ChainText, prompt: tuple[int, ...], steps: int, shares: Shares
    ) -> WrittenCritique:
        text = critique.turns[-1]
        asked = (_share(chain, prompt, shares, text, box) for box in verdict_boxes(text, steps, self.index_base))
        return replace(critique, shares=tuple(await asyncio.gather(*asked)))

    def verdict(self, turns: Sequence[str], finish: Finish, steps: int) -> Reading:
        _, said, parts = _worded(turns[-1], self.index_base)
        return words_reading(said, parts, finish, steps)


def critique_prompt(problem: str, steps: Sequence[str], base: int) -> str:
    """The user's turn."""
    solution = "\n".join(
        f"Step {number}: {_OWN_NUMBER.sub('', step).strip()}" for number, step in enumerate(steps, start=base)
    )
    parts = ("You are given a math problem and a proposed step-by-step solution:", "[Math Problem]", problem)
    return "\n\n".join([*parts, "[Solution]", solution, _TASK])


def verdict_boxes(text: str, steps: int, base: int) -> list[Box | None]:
    """The box with the verdict on each step. None for a step without one."""
    worded, said, parts = _worded(text, base)
    of_steps, _ = step_words(said, parts, steps)
    return [None if number is None else worded[number] for number in of_steps]


def _worded(text: str, base: int) -> tuple[list[Box], list[Said], list[tuple[int, int]]]:
    """The boxes with a verdict, what they say, and where the parts about steps begin."""
    worded = [box for box in boxes(text) if box.says.lower() in _OPINIONS]
    said = [Said(opinion=_OPINIONS[box.says.lower()], at=box.begin) for box in worded]
    return worded, said, headings(text, base, _HEADING)


async def _share(chain: ChainText, prompt: tuple[int, ...], shares: Shares, text: str, box: Box | None) -> float | None:
    if box is None:
        return None
    begin_of_word = text.index(box.says, box.begin + len("\\boxed"), box.end)
    return await shares(chain, prompt, text[:begin_of_word], WORDS)
