"""P(good) against P(bad) of two words as the next token after a prompt, asked of servers.

The score is the two-way softmax over the words' log-probabilities. A word that a server does not list among the most likely
ones is asked for alone, which makes vLLM state its log-probability too.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pipeline.engines.openai.questions import Question, Questions
from pipeline.engines.openai.readings import MOST_BYTES, NextToken, next_token, next_token_body
from pipeline.engines.openai.wire import COMPLETIONS
from pipeline.scorers.readouts import TokenPair

_IMPOSSIBLE = -9999.0
"""What vLLM writes for the log-probability of what cannot be: JSON has no infinity."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WordScore:
    """`score`: None if the servers do not state both words. `computed`: tokens that they computed, as far as they say."""

    score: float | None
    computed: int


def word_question(
    questions: Questions, ids: Sequence[int], tokens: Sequence[int], *, name: str, home: str
) -> Question[NextToken]:
    """The request for log-probabilities of `tokens` after a prompt. `name`, `home`: see `Question`."""
    model = questions.model
    return Question(
        name=name,
        home=home,
        path=COMPLETIONS,
        body=next_token_body(model, ids, tokens, extensions=questions.servers.extensions),
        limit=MOST_BYTES,
        read=lambda raw: next_token(raw, model),
    )


async def read_words(
    questions: Questions, tokenizer: Any, pair: TokenPair, ids: Sequence[int], *, name: str, home: str
) -> WordScore:
    """The score after a prompt of token ids. `tokenizer`: has the texts of the words' tokens, by which some servers list them.

    Raises ServerError if the servers refuse the prompt, and EngineDied."""
    found = await questions.ask(word_question(questions, ids, (pair.good, pair.bad), name=name, home=home))
    computed = len(ids) - (found.cached or 0)

    async def stated(token: int) -> float | None:
        nonlocal computed
        text = tokenizer.decode([token])
        if (listed := found.of(token, text)) is not None:
            return listed
        alone = await questions.ask(word_question(questions, ids, (token,), name=name, home=home))
        computed += len(ids) - (alone.cached or 0)
        return alone.of(token, text)

    good, bad = await stated(pair.good), await stated(pair.bad)
    if good is None or bad is None or max(good, bad) <= _IMPOSSIBLE:
        return WordScore(score=None, computed=computed)
    return WordScore(score=pair.score((good, bad)), computed=computed)
