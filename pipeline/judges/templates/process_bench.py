r"""The critique prompt of ProcessBench, for any chat model: the index of the first paragraph with an error, or -1, in a box.

Prompt: `code/templates/critique_template.txt` of QwenLM/ProcessBench, word for word, where the first paragraph has the index 0.
With an `index_base` of 1 the prompt says so. Votes are sampled as there: temperature 1, top_p 0.9.

The last complete box that names an index counts, or an index that is the whole answer. One outside the chain, or an answer that
the token limit cut, says nothing.
"""

import re
from collections.abc import Sequence

from pipeline.config.label import SamplingConfig
from pipeline.core.records import ChainText, Finish, Reading
from pipeline.judges.templates.base import Messages
from pipeline.judges.templates.whole_chain import OfWholeChain
from pipeline.judges.verdicts import index_reading, stated_index

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


class ProcessBench(OfWholeChain):
    """See the module."""

    sampling = SamplingConfig(temperature=1.0, top_p=0.9)
    base = 0

    def prompted(self, chain: ChainText, steps: Sequence[str]) -> tuple[Messages, str]:
        return [{"role": "user", "content": critique_prompt(chain.problem, steps, self.index_base)}], ""

    def verdict(self, turns: Sequence[str], finish: Finish, steps: int) -> Reading:
        return index_reading(stated_index(turns[-1]), finish, steps, self.index_base)


def critique_prompt(problem: str, steps: Sequence[str], base: int) -> str:
    """The user's turn."""
    tagged = "".join(
        f"<paragraph_{at}>\n{step}\n</paragraph_{at}>\n\n" for at, step in enumerate(steps, start=base)
    ).strip()
    values = {"base": str(base), "problem": problem, "tagged_response": tagged}
    return _FIELDS.sub(lambda field: values[field[1]], _TEMPLATE)
