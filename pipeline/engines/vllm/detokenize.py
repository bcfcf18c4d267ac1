"""The text of a completion, decoded from all its tokens at once, and the stop at its final answer. Pure.

The text equals that of an incremental detokenizer. Many tokenizers drop the space before the first word that they decode, so a
completion is decoded together with the last tokens of its prompt. Incomplete characters at the end are removed. Not covered: a
prompt that ends within a character, and invalid bytes before the end. There the text contains replacement characters, which
may differ from those of an incremental detokenizer.

A completion stops when it has stated its final answer. After each engine step, vLLM's front end asks the detokenizer of a
request whether a stop text was reached; if so, it finishes the request and makes the engine drop it. `stop_at_answers` wraps
that detokenizer. Most tokens cost one look-up. The texts of a line's tokens are read once per line, and the whole text only
from the first line on that may state an answer.

Nothing here imports vLLM. The parts of vLLM used here are checked before the first request.
"""

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from pipeline.core.errors import PolicyError
from pipeline.graders.base import Ending

CONTEXT_TOKENS = 5
"""Prompt tokens to decode with; the same number as in vLLM."""
MAX_MORE = 3
"""Further prompt tokens where the first one begins within a character, which has up to four bytes."""
MOST_CONTEXT = CONTEXT_TOKENS + MAX_MORE
MAX_DROPPED = 8
"""Most tokens to drop at the end: those of an incomplete character and special tokens between them."""
STOP_REASON = "answer"
_UPDATE = ["self", "new_token_ids", "stop_terminated"]
BROKEN = "\ufffd"

Decode = Callable[[Sequence[int]], str]
"""The text of token ids without special tokens."""


def completion_text(decode: Decode, prompt_ids: Sequence[int], token_ids: Sequence[int]) -> str:
    """The text of `token_ids` after `prompt_ids`. Empty where they form no complete character."""
    text = ""
    for dropped in range(min(MAX_DROPPED, len(token_ids)) + 1):
        text = text_after(decode, prompt_ids, token_ids[: len(token_ids) - dropped])
        if not text.endswith(BROKEN):
            break
    return text.rstrip(BROKEN)


def text_after(decode: Decode, prompt_ids: Sequence[int], token_ids: Sequence[int]) -> str:
    """The text of `token_ids` after `prompt_ids`. An incomplete character at its end is a replacement character."""
    context, before = _context(decode, prompt_ids)
    whole = decode([*context, *token_ids])
    return whole[len(before) :] if whole.startswith(before) else decode(token_ids)


def _context(decode: Decode, prompt_ids: Sequence[int]) -> tuple[list[int], str]:
    """The last tokens of the prompt and their text."""
    for count in range(CONTEXT_TOKENS, CONTEXT_TOKENS + MAX_MORE + 1):
        context = list(prompt_ids[-count:])
        text = decode(context)
        if BROKEN not in text:
            break
    return context, text


class AnswerStop:
    """Detects whether tokens state a final answer. `decode` gives their text. One instance serves all requests of an engine."""

    def __init__(self, answered: Ending, decode: Decode) -> None:
        self.answered = answered
        self.decode = decode
        self.texts = _Texts(decode)

    def may_state(self, ids: Sequence[int]) -> bool:
        """Whether a line may state an answer, judged from the texts of its single tokens."""
        line = "".join(map(self.texts.__getitem__, ids))
        return self.answered.may_state(line) or BROKEN in line


class _Texts(dict[int, str]):
    """A cache of the text of each single token."""

    def __init__(self, decode: Decode) -> None:
        super().__init__()
        self._decode = decode

    def __missing__(self, token_id: int) -> str:
        text = self[token_id] = self._decode((token_id,))
        return text


class StoppingDetokenizer:
    """A detokenizer of vLLM that also stops at the answer. Everything else is delegated to `inner`."""

    __slots__ = ("_inner", "_may_state", "_read", "_stop", "_texts", "_update")

    def __init__(self, inner: Any, stop: AnswerStop) -> None:
        self._inner = inner
        self._update = inner.update
        self._stop = stop
        self._texts = stop.texts
        self._read = 0
        self._may_state = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def update(self, new_token_ids: list[int], stop_terminated: bool) -> str | None:
        """The stop text that was reached, if any. Tokens from the same step as the answer's last token are kept."""
        stopped: str | None = self._update(new_token_ids, stop_terminated)
        for token_id in new_token_ids:
            if "\n" in self._texts[token_id] and stopped is None and not stop_terminated:
                return STOP_REASON if self._stated(len(new_token_ids)) else None
        return stopped

    def _stated(self, n_new: int) -> bool:
        stop, ids = self._stop, self._inner.output_token_ids
        self._may_state = self._may_state or stop.may_state(ids[self._read :])
        # The tokens that end one line may begin the next.
        self._read = len(ids) - n_new
        return self._may_state and stop.answered.complete(stop.decode(ids))


def stop_at_answers(engine: Any, detokenizer: type, stop: AnswerStop) -> None:
    """Make an `AsyncLLM` end every completion at its answer. `detokenizer` is the class of its detokenizers.

    Raises PolicyError where this version of vLLM does not support it.
    """
    processor = getattr(engine, "output_processor", None)
    states = getattr(processor, "request_states", None)
    add = getattr(processor, "add_request", None)
    update = getattr(detokenizer, "update", None)
    known = callable(update) and list(inspect.signature(update).parameters) == _UPDATE
    if not isinstance(states, dict) or not callable(add) or not known or not hasattr(detokenizer, "output_token_ids"):
        raise PolicyError(
            "stopping at the final answer does not work with this version of vLLM: set sampling.stop_at_answer=false, or "
            "install the version that the extras cpu and gpu pin"
        )

    def add_stopping(request: Any, *others: Any, **more: Any) -> None:
        add(request, *others, **more)
        state = states[request.request_id]
        state.detokenizer = StoppingDetokenizer(state.detokenizer, stop)

    processor.add_request = add_stopping  # type: ignore[union-attr]
