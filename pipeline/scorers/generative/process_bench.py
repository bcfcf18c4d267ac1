r"""The critique prompt of ProcessBench, for any chat model: the index of the first paragraph with an error, or -1, in a box.

Prompt: `code/templates/critique_template.txt` of QwenLM/ProcessBench, word for word, where the first paragraph has the index 0.
With an `index_base` of 1 the prompt says so. Votes are sampled as there: temperature 1, top_p 0.9.

Steps before the index have the score 1, that step and all later ones 0: the solution is wrong from there on. The last complete
box that names an index counts. One outside the chain, or an answer that the token limit cut, says nothing.
"""

import re
from collections.abc import Sequence

from pipeline.core.records import ChainText, Finish
from pipeline.judges.boxes import boxes
from pipeline.scorers.generative.base import Judged, Messages, Sampling, Style, Vote, Writer, Written
from pipeline.scorers.generative.whole_chain import judge_whole

_TEMPLATE = """\
The following is a math problem and a solution (split into paragraphs, enclosed with tags and indexed from {base}):

[Math Problem]

{problem}

[Solution]

{tagged_response}

Your task is to review and critique the solution paragraph by paragraph. Once you identify an error in a paragraph, return the \
index of the paragraph where the earliest error occurs. Otherwise, return the index of -1 (which typically denotes "not found").

Please put your final answer (i.e., the index) in \\boxed{}."""
_FIELDS = re.compile(r"\{(base|problem|tagged_response)\}")
_INDEX = re.compile(r"(?:(?:paragraph|step|index)\W{0,3}_?\W{0,3})?([-\u2212]?[0-9]{1,6})", re.IGNORECASE)
_NONE = -1


class ProcessBench(Style):
    """See the module."""

    sampling = Sampling(temperature=1.0, top_p=0.9)
    stop = ()
    base = 0
    reads_words = False

    def __init__(self, index_base: int, *, probability: bool) -> None:
        self._base = index_base

    async def judge(self, chain: ChainText, writer: Writer) -> Judged:
        return await judge_whole(chain, writer, self._prompted, self._votes)

    def _prompted(self, problem: str, steps: Sequence[str]) -> tuple[Messages, str]:
        return [{"role": "user", "content": critique_prompt(problem, steps, self._base)}], ""

    async def _votes(self, written: Written, steps: int) -> list[Vote]:
        return [
            [None] * steps if each.finish is not Finish.STOP else first_error_vote(each.text, steps, self._base)
            for each in written.completions
        ]


def critique_prompt(problem: str, steps: Sequence[str], base: int) -> str:
    """The user's turn."""
    tagged = "".join(
        f"<paragraph_{at}>\n{step}\n</paragraph_{at}>\n\n" for at, step in enumerate(steps, start=base)
    ).strip()
    values = {"base": str(base), "problem": problem, "tagged_response": tagged}
    return _FIELDS.sub(lambda field: values[field[1]], _TEMPLATE)


def first_error_vote(text: str, steps: int, base: int) -> Vote:
    """The vote of an answer: 1 before the first error, 0 from there on."""
    indices = [int(found[1].replace("\u2212", "-")) for box in boxes(text) if (found := _INDEX.fullmatch(box.says))]
    if not indices:
        return [None] * steps
    if indices[-1] == _NONE:
        return [1.0] * steps
    right = indices[-1] - base
    return [1.0] * right + [0.0] * (steps - right) if 0 <= right < steps else [None] * steps
