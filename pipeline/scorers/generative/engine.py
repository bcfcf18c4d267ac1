"""The scoring engine of models that judge in words: prompts go to an engine of a policy, and its texts become votes.

Chains are judged independently, so as many prompts as the engine takes are under way at once.
"""

from collections.abc import Sequence
from dataclasses import replace

from pipeline.core.errors import EngineDied, PolicyError, named
from pipeline.core.records import ChainText
from pipeline.engines.base import Engine
from pipeline.engines.openai.http import Http
from pipeline.engines.openai.questions import Questions
from pipeline.engines.openai.wire import COMPLETIONS, BadAnswer, ServerError
from pipeline.judges.templates.base import Template, Writer
from pipeline.scorers.base import FAILED, StepScores, unscored
from pipeline.scorers.generative.scorer import OWN_NAMES
from pipeline.scorers.generative.votes import step_scores, vote_of
from pipeline.scorers.model import all_of
from pipeline.scorers.readouts import TokenPair
from pipeline.scorers.served_settings import GenerativeConfig, VerdictRead
from pipeline.scorers.words import read_words, word_question


class GenerativeEngine:
    """See the module. `newest_only`: see `Scorer.engine`."""

    def __init__(
        self, settings: GenerativeConfig, style: Template, text_engine: Engine, *, newest_only: bool = False
    ) -> None:
        self._settings = settings
        self._style = style
        self._text_engine = text_engine
        self._newest_only = newest_only
        self._questions: Questions | None = None
        self._writer = Writer(text_engine, votes=settings.votes, max_tokens=settings.max_tokens, whole_chains=False)
        named = settings.model if settings.revision is None else f"{settings.model}@{settings.revision}"
        # What vLLM serves here has no name before it is loaded.
        self.model = f"{text_engine.policy or named}:{settings.style.value}"

    @property
    def capacity(self) -> int:
        return self._writer.capacity

    async def start(self) -> None:
        try:
            with named(OWN_NAMES):
                await self._text_engine.start()
                if self._settings.verdict is VerdictRead.probability:
                    await self._start_questions()
        except PolicyError:
            await self.close()
            raise

    async def score(self, chains: Sequence[ChainText]) -> Sequence[StepScores]:
        with named(OWN_NAMES):
            return await all_of(map(self._scores, chains))

    async def close(self) -> None:
        questions, self._questions = self._questions, None
        if questions is not None:
            await questions.close()
        await self._text_engine.close()

    async def _share(
        self, chain: ChainText, prompt: tuple[int, ...], text: str, words: tuple[str, str]
    ) -> float | None:
        """See `templates.base.Shares`."""
        if self._questions is None:
            raise EngineDied("the scoring engine is not running")
        good, bad = ([*prompt, *self._text_engine.tokenizer.encode(text + word)] for word in words)
        shared = next((at for at, (one, other) in enumerate(zip(good, bad, strict=False)) if one != other), None)
        if shared is None or shared < len(prompt):
            return None
        pair, tokenizer = TokenPair(good=good[shared], bad=bad[shared]), self._text_engine.tokenizer
        try:
            read = await read_words(
                self._questions, tokenizer, pair, good[:shared], name=chain.chain_id, home=chain.problem_id
            )
        except ServerError:
            return None
        return read.score

    async def _scores(self, chain: ChainText) -> StepScores:
        steps = len(chain.steps)
        shares = self._share if self._settings.verdict is VerdictRead.probability else None
        written = await self._style.write(chain, self._writer, shares)
        if written.failed:
            return unscored(steps, FAILED)
        votes = [vote_of(each, self._style, steps - written.left_out) for each in written.critiques]
        found = step_scores(votes, steps, left_out=written.left_out, tokens=written.tokens)
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


def _newest(found: StepScores) -> StepScores:
    """The scores with that of the last step alone."""
    newest = found.scores[-1:]
    scores = (*(None,) * (len(found.scores) - 1), *newest)
    return replace(found, scores=scores, fault=found.fault if newest == (None,) else "")
