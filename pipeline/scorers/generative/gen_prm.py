r"""GenPRM: a turn for every step, in which the model analyses the paragraph and says `\boxed{Yes}` or `\boxed{No}`.

Conversation: `src/prm_evaluation/eval_logic/processbench.py` of RyanLiu112/GenPRM: the system's turn, then the steps as turns
of the user, the first one after the problem and a line end; earlier critiques are the assistant's turns. The critique begins
with `<analyze>` and its sentence, and the judgement with `<output>` and `**Judgement**: $\boxed`
(`src/prm_evaluation/infer_module/infer_genprm.py`). Votes are sampled as in `genprm_inference.py`: temperature 0.6, top_p 0.95,
top_k 20.

The model's code is never run. So this is the published mode without `<verify>`: a judgement directly after the analysis. Of
several votes, the first one's critique is the turn that later steps see, as published.

The score is 1 for Yes and 0 for No, whatever earlier steps have; with `scorer.verdict=probability` it is P(Yes) against P(No)
at the judgement, as in `genprm_inference.py`.
"""

import asyncio
from collections.abc import Sequence

from pipeline.core.records import ChainText
from pipeline.judges.boxes import boxes
from pipeline.scorers.generative.base import Judged, Sampling, Style, Writer, failed, tokens

WORDS = ("Yes", "No")
_SYSTEM = "You are a math teacher. Your task is to review and critique the paragraphs in solution step by step."
_END_OF_ANALYSIS = "</analyze>"
_JUDGEMENT = "<output>\n**Judgement**: $\\boxed"
_SCORES = {"yes": 1.0, "no": 0.0}


class GenPrm(Style):
    """See the module."""

    sampling = Sampling(temperature=0.6, top_p=0.95, top_k=20)
    stop = ("</analyze>\n", "</output>\n")
    base = 1
    reads_words = True

    def __init__(self, index_base: int, *, probability: bool) -> None:
        self._base = index_base
        self._probability = probability

    async def judge(self, chain: ChainText, writer: Writer) -> Judged:
        votes: list[list[float | None]] = [[] for _ in range(writer.votes)]
        messages = [{"role": "system", "content": _SYSTEM}]
        total = 0
        for number, step in enumerate(chain.steps):
            text = f"{chain.problem}\n{step}" if number == 0 else step
            messages = [*messages, {"role": "user", "content": text}]
            opening = f"<analyze>\nLet's analyze the Paragraph {number + self._base} step by step: "
            prompt = writer.prompt(messages, opening)
            if prompt is None:
                return Judged(votes=votes, left_out=len(chain.steps) - number, tokens=total)
            analysed = await writer.write(chain, prompt, writer.votes)
            if failed(analysed):
                return Judged(votes=[], failed=True, left_out=len(chain.steps))
            total += tokens(analysed)
            critiques = [opening + ended(completion.text) + _JUDGEMENT for completion in analysed.completions]
            judged = await asyncio.gather(*(self._judgement(chain, writer, messages, each) for each in critiques))
            for vote, (score, _, spent) in zip(votes, judged, strict=True):
                vote.append(score)
                total += spent
            messages = [*messages, {"role": "assistant", "content": critiques[0] + judged[0][1]}]
        return Judged(votes=votes, tokens=total)

    async def _judgement(
        self, chain: ChainText, writer: Writer, messages: Sequence[dict[str, str]], critique: str
    ) -> tuple[float | None, str, int]:
        """The score after an analysis, what the model wrote, and the tokens of it."""
        prompt = writer.prompt(messages, critique)
        if prompt is None:
            return None, "", 0
        if self._probability:
            share = await writer.probability(chain, prompt, "{", WORDS)
            said = "" if share is None else f"{{{WORDS[share < 0.5]}}}$\n</output>\n"
            return share, said, 0
        written = await writer.write(chain, prompt, 1)
        text = written.completions[0].text
        return judgement(text), text, tokens(written)


def ended(analysis: str) -> str:
    """An analysis up to its end tag, which it gets where the model did not write it."""
    return analysis.partition(_END_OF_ANALYSIS)[0] + _END_OF_ANALYSIS + "\n"


def judgement(text: str) -> float | None:
    """The score of what follows `\\boxed`. The first complete box counts: the model may go on with another paragraph."""
    first = next(iter(boxes("\\boxed" + text)), None)
    return None if first is None or first.begin else _SCORES.get(first.says.lower())
