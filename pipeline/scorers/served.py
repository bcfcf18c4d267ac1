"""The scoring engine of a served model. Chains are written here, in the model's tokens; servers compute the numbers:

- `completions`: a request for each step, with the chain up to the token at which the step is read; see `words`.
- `pooling`: a request for each chain; vLLM's `token_classify` gives the classes at every token, or at every tag.
- `classify`: a request for each step; the classes of its last token.

Steps of a chain, and chains of a problem, go to one server: its cache then holds what they have in common.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from pipeline.core.errors import EngineDied, PolicyError, UsageError
from pipeline.core.records import ChainText
from pipeline.engines.openai.handshake import config_error
from pipeline.engines.openai.http import Http
from pipeline.engines.openai.questions import Question, Questions
from pipeline.engines.openai.readings import (
    CLASSIFY,
    MOST_BYTES,
    POOLING,
    ClassRows,
    classified,
    classify_body,
    pooled,
    pooling_body,
    pooling_bytes,
)
from pipeline.engines.openai.wire import COMPLETIONS, BadAnswer, ErrorKind, ServerError
from pipeline.scorers.base import FAILED, UNREADABLE, StepScores, unscored
from pipeline.scorers.encoding import EncodedChain
from pipeline.scorers.model import ModelScorer, Prepared, Reading, all_of, scores_at
from pipeline.scorers.readouts import Classes, TokenPair
from pipeline.scorers.served_settings import OpenAiScorerConfig, ServedApi
from pipeline.scorers.words import WordScore, read_words, word_question

_PATHS = {ServedApi.completions: COMPLETIONS, ServedApi.pooling: POOLING, ServedApi.classify: CLASSIFY}
_STARTED_WITH = {
    ServedApi.completions: "vllm serve MODEL",
    ServedApi.pooling: "vllm serve MODEL --runner pooling --pooler-config.task token_classify",
    ServedApi.classify: "vllm serve MODEL --runner pooling --pooler-config.task classify",
}
_NO_ROUTE = 404
_SAMPLE_TOKENS = 512


class ServedEngine:
    """See the module. `layout`: the scorer whose format the model has. `newest_only`: see `Scorer.engine`."""

    def __init__(self, settings: OpenAiScorerConfig, layout: ModelScorer, *, newest_only: bool = False) -> None:
        self._settings = settings
        self._layout = layout
        self._newest_only = newest_only
        self._started: _Started | None = None
        self.model = f"{settings.model}:openai"
        self.capacity = len(settings.openai.urls) * settings.openai.connections

    async def start(self) -> None:
        own = self._settings
        prepared = await asyncio.to_thread(self._layout.prepared)
        api = _chosen_api(own, prepared.reading)
        questions = Questions(own.openai, own.model, at_root=api is not ServedApi.completions)
        started = _Started(questions, api, prepared)
        sample = prepared.reading.encode("1 + 1 = ?", ("2",), _SAMPLE_TOKENS)
        await questions.start(_PATHS[api], lambda connection, at: started.probe(connection, at, sample))
        limits = [prepared.max_length, *([] if questions.context is None else [questions.context])]
        # A server refuses a prompt after which not even one token fits.
        started.prepared = replace(prepared, max_length=min(limits) - (api is ServedApi.completions))
        self._started = started

    async def score(self, chains: Sequence[ChainText]) -> Sequence[StepScores]:
        started = self._started
        if started is None:
            raise EngineDied("the scoring engine is not running")
        encoded = started.prepared.encoded(chains, newest_only=self._newest_only)
        return await all_of([started.scores(*pair) for pair in zip(chains, encoded, strict=True)])

    async def close(self) -> None:
        started, self._started = self._started, None
        if started is not None:
            await started.questions.close()


class _Started:
    """Servers, and how their model is read."""

    def __init__(self, questions: Questions, api: ServedApi, prepared: Prepared) -> None:
        self.questions = questions
        self.prepared = prepared
        self._api = api
        readout = prepared.reading.readout
        self._pair = readout if isinstance(readout, TokenPair) else None
        self._classes = readout.count if isinstance(readout, Classes) else 1

    async def probe(self, connection: Http, at: int, sample: EncodedChain) -> None:
        """Ask server `at` for a short chain. Raises PolicyError for a mistake of the settings or of how it was started."""
        servers, question = self.questions.servers, self._question(sample, name="a sample", home="")
        where = f"{servers.urls[at]}: {question.path}"
        try:
            question.read(await connection.post(at, question.path, question.body, limit=question.limit))
        except BadAnswer as error:
            raise PolicyError(f"{where} is not usable: {error}") from error
        except ServerError as error:
            if error.status == _NO_ROUTE or error.kind is ErrorKind.REFUSED:
                raise PolicyError(
                    f"{error}: scorer.api={self._api.value} needs a server that was started like "
                    f"`{_STARTED_WITH[self._api]}`, at scorer.openai.urls=[http://HOST:PORT/v1]"
                ) from error
            raise config_error(error, servers, at, question.path) or error from error

    async def scores(self, chain: ChainText, encoded: EncodedChain) -> StepScores:
        """The scores of a chain. FAILED where the servers refuse it."""
        steps = len(chain.steps)
        if not encoded.ends:
            return scores_at(encoded, (), steps)
        try:
            if self._api is ServedApi.pooling:
                return await self._pooled(chain, encoded)
            found = await all_of([self._at_end(chain, encoded, end) for end in encoded.ends])
        except ServerError:
            return unscored(steps, FAILED)
        return _step_scores(encoded, found, steps)

    async def _pooled(self, chain: ChainText, encoded: EncodedChain) -> StepScores:
        found = await self.questions.ask(self._question(encoded, name=chain.chain_id, home=chain.problem_id))
        computed = len(encoded.ids) - (found.cached or 0)
        return scores_at(encoded, [self._share(row) for row in found.rows], len(chain.steps), computed)

    async def _at_end(self, chain: ChainText, encoded: EncodedChain, end: int) -> WordScore:
        part = EncodedChain(ids=encoded.ids[: end + 1], ends=(end,), left_out=0)
        if self._pair is not None:
            tokenizer, name, home = self.prepared.tokenizer, chain.chain_id, chain.problem_id
            return await read_words(self.questions, tokenizer, self._pair, part.ids, name=name, home=home)
        found = await self.questions.ask(self._question(part, name=chain.chain_id, home=chain.problem_id))
        return WordScore(score=self._share(found.rows[0]), computed=len(part.ids) - (found.cached or 0))

    def _question(self, chain: EncodedChain, *, name: str, home: str) -> Question[Any]:
        """A request for all ends of a chain (pooling), or for its last token."""
        model, ids = self.questions.model, chain.ids
        if self._pair is not None:
            return word_question(self.questions, ids, (self._pair.good, self._pair.bad), name=name, home=home)
        if self._api is ServedApi.classify:
            return Question(
                name=name,
                home=home,
                path=CLASSIFY,
                body=classify_body(model, ids),
                limit=MOST_BYTES,
                read=lambda raw: classified(raw, model, self._classes),
            )
        return Question(
            name=name,
            home=home,
            path=POOLING,
            body=pooling_body(model, ids),
            limit=pooling_bytes(len(ids), self._classes),
            read=lambda raw: _at_ends(pooled(raw, model, self._classes), chain),
        )

    def _share(self, row: Sequence[float]) -> float:
        """The score of a row of probabilities: servers have applied the softmax, or the sigmoid of one number."""
        readout = self.prepared.reading.readout
        return row[readout.good] if isinstance(readout, Classes) else row[0]


def _chosen_api(own: OpenAiScorerConfig, reading: Reading) -> ServedApi:
    """How the servers are asked. Raises UsageError for a way that the layout does not have."""
    of_words = isinstance(reading.readout, TokenPair)
    if own.api is None:
        return ServedApi.completions if of_words else ServedApi.pooling
    if of_words != (own.api is ServedApi.completions):
        how = "as the next token of a language model" if of_words else "from a head with classes"
        fitting = "completions" if of_words else "pooling or classify"
        raise UsageError(f"scorer.layout={own.layout} is read {how}: set scorer.api={fitting}, not {own.api.value}")
    return own.api


def _at_ends(found: ClassRows, chain: EncodedChain) -> ClassRows:
    """The rows at the ends of a chain's steps, of an answer with a row for each token, or for each tag."""
    if len(found.rows) == len(chain.ends):
        return found
    if len(found.rows) == len(chain.ids):
        return ClassRows(rows=tuple(found.rows[end] for end in chain.ends), cached=found.cached)
    raise BadAnswer(
        f"it has {len(found.rows)} rows for a text of {len(chain.ids)} tokens with {len(chain.ends)} steps: it reads other "
        "tags than scorer.layout says"
    )


def _step_scores(encoded: EncodedChain, found: Sequence[WordScore], steps: int) -> StepScores:
    """The scores of a chain whose ends were asked for one by one."""
    made = scores_at(encoded, [each.score or 0.0 for each in found], steps)
    first, unread = steps - encoded.left_out - len(found), any(each.score is None for each in found)
    scores = (*made.scores[:first], *(each.score for each in found), *made.scores[first + len(found) :])
    return replace(
        made,
        scores=scores,
        fault=made.fault or (UNREADABLE if unread else ""),
        n_computed=sum(each.computed for each in found),
    )
