r"""GenPRM: a turn for every step, in which the model analyses the paragraph and says `\boxed{Yes}` or `\boxed{No}`.

Conversation: `src/prm_evaluation/eval_logic/processbench.py` of RyanLiu112/GenPRM: the system's turn, then the steps as turns
of the user, the first one after the problem and a line end; earlier critiques are the assistant's turns. The critique begins
with `<analyze>` and its sentence, and the judgement with `<output>` and `**Judgement**: $\boxed`
(`src/prm_evaluation/infer_module/infer_genprm.py`). Votes are sampled as in `genprm_inference.py`: temperature 0.6, top_p 0.95,
top_k 20.

The model's code is never run. So this is the published mode without `<verify>`: a judgement directly after the analysis. Of
several votes, the first one's critique is the turn that later steps see, as published.

A critique has a turn for each step. Each step has a verdict of its own, whatever earlier steps have. A share is P(Yes) against
P(No) at the judgement, as in `genprm_inference.py`; the likelier word is then what the model is taken to have said.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

from pipeline.core.records import ChainText, Finish, Reading, StepOpinion
from pipeline.judges.boxes import boxes
from pipeline.judges.templates.base import (
    Messages,
    Sampling,
    Shares,
    Template,
    Writer,
    Written,
    WrittenCritique,
    WrittenCritiques,
    failed,
    tokens,
    unwritten_critiques,
)
from pipeline.judges.verdicts import opinions_reading, unwritten

WORDS = ("Yes", "No")
_SYSTEM = "You are a math teacher. Your task is to review and critique the paragraphs in solution step by step."
_END_OF_ANALYSIS = "</analyze>"
_JUDGEMENT = "<output>\n**Judgement**: $\\boxed"
_OPINIONS = {"yes": StepOpinion.GOOD, "no": StepOpinion.BAD}


@dataclass(slots=True)
class _Vote:
    """A critique that grows by a turn for each step."""

    turns: list[str] = field(default_factory=list)
    shares: list[float | None] = field(default_factory=list)
    finish: Finish = Finish.STOP
    n_tokens: int = 0
    n_prompt_tokens: int = 0

    def ended(self, finish: Finish | None = None) -> WrittenCritique:
        return WrittenCritique(
            turns=tuple(self.turns),
            finish=finish or self.finish,
            n_tokens=self.n_tokens,
            n_prompt_tokens=self.n_prompt_tokens,
            shares=tuple(self.shares),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Judgement:
    """What stands after `\\boxed`. `written`: what was sampled for it; None where a share was read instead, or nothing
    fitted."""

    text: str = ""
    share: float | None = None
    written: Written | None = None


class GenPrm(Template):
    """See the module."""

    sampling = Sampling(temperature=0.6, top_p=0.95, top_k=20)
    stop = ("</analyze>\n", "</output>\n")
    base = 1
    words = WORDS
    stops_at_error = False

    async def write(self, chain: ChainText, writer: Writer, shares: Shares | None = None) -> WrittenCritiques:
        steps, total = len(chain.steps), 0
        if writer.whole_chains and writer.prompt(self._shortest(chain), "") is None:
            return WrittenCritiques(critiques=unwritten_critiques(writer.votes, Finish.TOO_LONG), left_out=steps)
        votes = [_Vote() for _ in range(writer.votes)]
        messages: Messages = [{"role": "system", "content": _SYSTEM}]
        for number in range(steps):
            messages = [*messages, {"role": "user", "content": _user(chain, number)}]
            opening = self._opening(number)
            prompt = writer.prompt(messages, opening)
            if prompt is None:
                cut = [vote.ended(Finish.TOO_LONG) for vote in votes]
                return WrittenCritiques(critiques=cut, left_out=steps - number, tokens=total)
            analysed = await writer.write(chain, prompt, writer.votes)
            if failed(analysed):
                lost = [vote.ended(Finish.ENGINE_FAILED) for vote in votes]
                return WrittenCritiques(critiques=lost, failed=True, left_out=steps)
            total += tokens(analysed)
            critiques = [opening + ended(completion.text) + _JUDGEMENT for completion in analysed.completions]
            judged = await asyncio.gather(
                *(_judgement(chain, writer, messages, critique, shares) for critique in critiques)
            )
            for vote, analysis, critique, each in zip(votes, analysed.completions, critiques, judged, strict=True):
                vote.turns.append(critique + each.text)
                vote.n_tokens += analysis.n_tokens
                vote.n_prompt_tokens += len(analysed.prompt)
                vote.finish = analysis.finish
                if shares is not None:
                    vote.shares.append(each.share)
                elif each.written is None:
                    vote.finish = Finish.TOO_LONG
                if each.written is not None:
                    (completion,) = each.written.completions
                    vote.finish = completion.finish
                    vote.n_tokens += completion.n_tokens
                    vote.n_prompt_tokens += len(each.written.prompt)
                    total += tokens(each.written)
            messages = [*messages, {"role": "assistant", "content": votes[0].turns[-1]}]
        return WrittenCritiques(critiques=[vote.ended() for vote in votes], tokens=total)

    def read(self, turns: Sequence[str], finish: Finish, steps: int) -> Reading:
        missing = unwritten(turns, finish)
        if missing is not None:
            return missing
        said = [judgement(judged_part(turn)) for turn in turns[:steps]]
        return opinions_reading((*said, *[None] * (steps - len(said))), finish)

    def _opening(self, number: int) -> str:
        return f"<analyze>\nLet's analyze the Paragraph {number + self.index_base} step by step: "

    def _shortest(self, chain: ChainText) -> Messages:
        """The conversation about all steps with empty analyses: if it does not fit, no critique does."""
        turns: list[dict[str, str]] = [{"role": "system", "content": _SYSTEM}]
        for number in range(len(chain.steps)):
            critique = self._opening(number) + ended("") + _JUDGEMENT
            turns += [
                {"role": "user", "content": _user(chain, number)},
                {"role": "assistant", "content": critique},
            ]
        return turns[:-1]


async def _judgement(
    chain: ChainText, writer: Writer, messages: Messages, critique: str, shares: Shares | None
) -> _Judgement:
    """The judgement after an analysis."""
    prompt = writer.prompt(messages, critique)
    if prompt is None:
        return _Judgement()
    if shares is not None:
        share = await shares(chain, prompt, "{", WORDS)
        said = "" if share is None else f"{{{WORDS[share < 0.5]}}}$\n</output>\n"
        return _Judgement(text=said, share=share)
    written = await writer.write(chain, prompt, 1)
    return _Judgement(text=written.completions[0].text, written=written)


def _user(chain: ChainText, number: int) -> str:
    """The user's turn about a step, counted from 0."""
    return chain.steps[number] if number else f"{chain.problem}\n{chain.steps[number]}"


def ended(analysis: str) -> str:
    """An analysis up to its end tag, which it gets where the model did not write it."""
    return analysis.partition(_END_OF_ANALYSIS)[0] + _END_OF_ANALYSIS + "\n"


def judged_part(turn: str) -> str:
    """What follows `\\boxed` in a turn: after the first end of an analysis, which no analysis contains."""
    return turn.partition(f"{_END_OF_ANALYSIS}\n{_JUDGEMENT}")[2]


def judgement(text: str) -> StepOpinion | None:
    """The verdict of what follows `\\boxed`. The first complete box counts: the model may go on with another paragraph."""
    first = next(iter(boxes("\\boxed" + text)), None)
    return None if first is None or first.begin else _OPINIONS.get(first.says.lower())
