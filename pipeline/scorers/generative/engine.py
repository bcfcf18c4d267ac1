"""The scoring engine of models that judge in words: prompts go to an engine of a policy, and its texts become votes.

Chains are judged independently, so as many prompts as the engine takes are under way at once.
"""

import asyncio
from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from pipeline.core.errors import EngineDied, PolicyError
from pipeline.core.ids import content_id, rollout_id
from pipeline.core.records import ChainText, Completion, Prefix, Problem, Request
from pipeline.engines.base import Engine
from pipeline.engines.openai.http import Http
from pipeline.engines.openai.questions import Questions
from pipeline.engines.openai.wire import COMPLETIONS, BadAnswer, ServerError
from pipeline.scorers.base import FAILED, StepScores, unscored
from pipeline.scorers.generative.base import Messages, Style, Written
from pipeline.scorers.generative.scorer import own_names
from pipeline.scorers.generative.votes import step_scores
from pipeline.scorers.readouts import TokenPair
from pipeline.scorers.served_settings import GenerativeConfig, VerdictRead
from pipeline.scorers.words import Words, read_words, word_question


@runtime_checkable
class OpensTurns(Protocol):
    """A tokenizer that encodes the begin of the assistant's turn together with the conversation, as published code does. Where
    a tokenizer does not, the begin is encoded alone."""

    def encode_opened(self, messages: Messages, opening: str) -> list[int]: ...


class GenerativeEngine:
    """See the module. `newest_only`: see `Scorer.engine`."""

    def __init__(
        self, settings: GenerativeConfig, style: Style, text_engine: Engine, *, newest_only: bool = False
    ) -> None:
        self._settings = settings
        self._style = style
        self._text_engine = text_engine
        self._newest_only = newest_only
        self._questions: Questions | None = None
        self._under_way: set[str] = set()
        self.votes = settings.votes
        named = settings.model if settings.revision is None else f"{settings.model}@{settings.revision}"
        # What vLLM serves here has no name before it is loaded.
        self.model = f"{text_engine.policy or named}:{settings.style.value}"

    @property
    def capacity(self) -> int:
        return max(1, self._text_engine.capacity // self.votes)

    async def start(self) -> None:
        try:
            with own_names():
                await self._text_engine.start()
                if self._settings.verdict is VerdictRead.probability:
                    await self._start_questions()
        except PolicyError:
            await self.close()
            raise

    async def score(self, chains: Sequence[ChainText]) -> Sequence[StepScores]:
        tasks = [asyncio.ensure_future(self._scores(chain)) for chain in chains]
        try:
            with own_names():
                return await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()

    async def close(self) -> None:
        questions, self._questions = self._questions, None
        if questions is not None:
            await questions.close()
        await self._text_engine.close()

    def prompt(self, messages: Messages, opening: str) -> tuple[int, ...] | None:
        """See `Writer.prompt`."""
        tokenizer = self._text_engine.tokenizer
        if isinstance(tokenizer, OpensTurns):
            ids = tokenizer.encode_opened(messages, opening)
        else:
            ids = tokenizer.encode_chat(messages) + (tokenizer.encode(opening) if opening else [])
        fits = len(ids) + self._settings.max_tokens <= self._text_engine.max_model_len
        return tuple(ids) if fits else None

    async def write(self, chain: ChainText, prompt: tuple[int, ...], votes: int) -> Written:
        """See `Writer.write`."""
        problem = Problem(problem_id=chain.problem_id, text=chain.problem, golds=())
        prefix_id = self._free_id(prompt)
        prefix = Prefix(prefix_id=prefix_id, step_index=len(chain.steps), text="", prompt_ids=prompt)
        requests = [
            Request(request_id=rollout_id(prefix_id, index), issue_index=index, problem=problem, prefix=prefix)
            for index in range(votes)
        ]
        done: dict[int, Completion] = {}
        try:
            async for batch in self._text_engine.generate(requests):
                done |= {completion.request.issue_index: completion for completion in batch}
        finally:
            self._under_way.discard(prefix_id)
        return Written(prompt=prompt, completions=tuple(done[index] for index in range(votes)))

    async def probability(
        self, chain: ChainText, prompt: tuple[int, ...], text: str, words: tuple[str, str]
    ) -> float | None:
        """See `Writer.probability`."""
        if self._questions is None:
            raise EngineDied("the scoring engine is not running")
        good, bad = ([*prompt, *self._text_engine.tokenizer.encode(text + word)] for word in words)
        shared = next((at for at, (one, other) in enumerate(zip(good, bad, strict=False)) if one != other), None)
        if shared is None or shared < len(prompt):
            return None
        decode = self._text_engine.tokenizer.decode
        pair = Words(
            pair=TokenPair(good=good[shared], bad=bad[shared]), good=decode([good[shared]]), bad=decode([bad[shared]])
        )
        try:
            read = await read_words(self._questions, pair, good[:shared], name=chain.chain_id, home=chain.problem_id)
        except ServerError:
            return None
        return read.score

    async def _scores(self, chain: ChainText) -> StepScores:
        steps = len(chain.steps)
        judged = await self._style.judge(chain, self)
        if judged.failed:
            return unscored(steps, FAILED)
        found = step_scores(judged, steps)
        return _newest(found) if self._newest_only else found

    async def _start_questions(self) -> None:
        own = self._settings
        questions = Questions(own.openai, own.model)
        first, second = (self._text_engine.tokenizer.encode(digit)[-1] for digit in "12")
        question = word_question(questions, (first,), (first, second), name="a sample", home="")

        async def probe(connection: Http, at: int) -> None:
            try:
                question.read(await connection.post(at, question.path, question.body, limit=question.limit))
            except BadAnswer as error:
                raise PolicyError(f"{own.openai.urls[at]}{COMPLETIONS} states no probabilities: {error}") from error

        await questions.start(COMPLETIONS, probe)
        self._questions = questions

    def _free_id(self, prompt: tuple[int, ...]) -> str:
        """An id of the prompt that no request under way has: equal chains may be scored at once."""
        again = 0
        while (found := content_id("critique", ",".join(map(str, prompt)), str(again))) in self._under_way:
            again += 1
        self._under_way.add(found)
        return found


def _newest(found: StepScores) -> StepScores:
    """The scores with that of the last step alone."""
    missing = (None,) * (len(found.scores) - 1)
    fault = found.fault if found.scores[-1:] == (None,) else ""
    return StepScores(
        scores=(*missing, *found.scores[-1:]),
        positions=found.positions,
        reliability=found.reliability,
        fault=fault,
        n_tokens=found.n_tokens,
        n_computed=found.n_computed,
    )
