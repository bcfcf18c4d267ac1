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
from dataclasses import dataclass, replace

from pipeline.config.label import SamplingConfig
from pipeline.core.records import ChainText, Completion, Finish, Reading, StepOpinion
from pipeline.judges.templates.base import (
    Messages,
    Shares,
    Template,
    Writer,
    WrittenCritique,
    WrittenCritiques,
    failed,
    tokens,
)
from pipeline.judges.verdicts import boxes, opinions_reading

WORDS = ("Yes", "No")
_SYSTEM = "You are a math teacher. Your task is to review and critique the paragraphs in solution step by step."
_END_OF_ANALYSIS = "</analyze>"
_JUDGEMENT = "<output>\n**Judgement**: $\\boxed"
_OPINIONS = {"yes": StepOpinion.GOOD, "no": StepOpinion.BAD}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Judgement:
    """What stands after `\\boxed`. `written`: what was sampled for it; empty where a share was read instead, or nothing
    fitted."""

    text: str = ""
    share: float | None = None
    written: tuple[Completion, ...] = ()


class GenPrm(Template):
    """See the module."""

    sampling = SamplingConfig(temperature=0.6, top_p=0.95, top_k=20)
    stop = ("</analyze>\n", "</output>\n")
    base = 1
    words = WORDS
    stops_at_error = False

    async def write(self, chain: ChainText, writer: Writer, shares: Shares | None = None) -> WrittenCritiques:
        steps, total = len(chain.steps), 0
        votes = [WrittenCritique(turns=(), finish=Finish.STOP)] * writer.votes
        if writer.whole_chains and writer.prompt(self._shortest(chain), "") is None:
            return WrittenCritiques(critiques=_ended(votes, Finish.TOO_LONG), left_out=steps)
        messages: Messages = [{"role": "system", "content": _SYSTEM}]
        for number in range(steps):
            messages = [*messages, {"role": "user", "content": _user(chain, number)}]
            opening = self._opening(number)
            prompt = writer.prompt(messages, opening)
            if prompt is None:
                cut = _ended(votes, Finish.TOO_LONG)
                return WrittenCritiques(critiques=cut, left_out=steps - number, tokens=total)
            analysed = await writer.write(chain, prompt, writer.votes)
            if failed(analysed):
                return WrittenCritiques(critiques=_ended(votes, Finish.ENGINE_FAILED), failed=True, left_out=steps)
            critiques = [opening + ended(completion.text) + _JUDGEMENT for completion in analysed]
            judged = await asyncio.gather(
                *(_judgement(chain, writer, messages, critique, shares) for critique in critiques)
            )
            total += tokens(analysed) + sum(tokens(each.written) for each in judged if each.written)
            turns = [critique + each.text for critique, each in zip(critiques, judged, strict=True)]
            of_votes = zip(votes, turns, analysed, judged, strict=True)
            votes = [
                _grown(vote, turn, analysis, each, with_share=shares is not None)
                for vote, turn, analysis, each in of_votes
            ]
            messages = [*messages, {"role": "assistant", "content": turns[0]}]
        return WrittenCritiques(critiques=votes, tokens=total)

    def verdict(self, turns: Sequence[str], finish: Finish, steps: int) -> Reading:
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
    return _Judgement(text=written[0].text, written=written)


def _grown(
    vote: WrittenCritique, turn: str, analysis: Completion, judged: _Judgement, *, with_share: bool
) -> WrittenCritique:
    """A critique with one more turn."""
    asked = (analysis, *judged.written)
    return WrittenCritique(
        turns=(*vote.turns, turn),
        finish=asked[-1].finish if with_share or judged.written else Finish.TOO_LONG,
        n_tokens=vote.n_tokens + sum(completion.n_tokens for completion in asked),
        n_prompt_tokens=vote.n_prompt_tokens + sum(len(each.request.prefix.prompt_ids) for each in asked),
        shares=(*vote.shares, judged.share) if with_share else (),
    )


def _ended(votes: Sequence[WrittenCritique], finish: Finish) -> list[WrittenCritique]:
    return [replace(vote, finish=finish) for vote in votes]


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
