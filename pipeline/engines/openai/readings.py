"""Requests that read a served model at one token, and their valid answers: the log-probabilities of the next token from
`/completions`, and the classes that vLLM's `/pooling` and `/classify` return. Pure.

Formats: OpenAI's completions API with `logprobs`, and `vllm/entrypoints/pooling/{pooling,classify}/protocol.py` of vLLM.
Answers are untrusted, as in `wire`.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pipeline.engines.openai.wire import (
    BadAnswer,
    as_list,
    as_number,
    as_object,
    cached_tokens,
    parsed,
    refuse_other_model,
)

POOLING = "/pooling"
CLASSIFY = "/classify"
TOP = 5
"""Most likely tokens whose log-probability is asked for: the most that OpenAI's API gives."""
TOKEN_ID = "token_id:"
"""What vLLM writes before the id of a token, where it is asked for ids."""
MOST_BYTES = 64 * 1024
"""Largest answer with the log-probabilities of one token, or with the classes of one text."""
_BYTES_PER_NUMBER = 32
_MOST_LISTED = 256
_EPSILON = 1e-3
"""What a server may be off by when it computes in few bits."""
_BIAS = 100
"""OpenAI's largest `logit_bias`. The same for both words, so it leaves their odds as they are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NextToken:
    """Log-probabilities of the next token, by what the server calls it: `token_id:7`, or its text. `cached`: prompt tokens from
    the server's cache (None: not reported)."""

    logprobs: Mapping[str, float]
    cached: int | None

    def of(self, token: int, text: str) -> float | None:
        """That of a token, by its id or its text. None where it is not listed."""
        found = self.logprobs.get(f"{TOKEN_ID}{token}")
        return self.logprobs.get(text) if found is None else found


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassRows:
    """Probabilities of classes: a row for each token, or for each tag. `cached`: as in `NextToken`."""

    rows: tuple[tuple[float, ...], ...]
    cached: int | None


def next_token_body(model: str, prompt: Sequence[int], tokens: Sequence[int], *, extensions: bool) -> bytes:
    """A request for the next token after a prompt of token ids, which is to be one of `tokens`, with log-probabilities.

    vLLM gives those of the model as it is, whatever is allowed, and always that of the token it chose. Other servers change
    them by the same amount for all of `tokens`.
    """
    fields: dict[str, object] = {
        "model": model,
        "prompt": list(prompt),
        "max_tokens": 1,
        "n": 1,
        "temperature": 0.0,
        "top_p": 1.0,
        "presence_penalty": 0.0,
        "frequency_penalty": 0.0,
        "logprobs": TOP,
        "stream": False,
    }
    if extensions:
        fields |= {
            "allowed_token_ids": list(tokens),
            "return_tokens_as_token_ids": True,
            "skip_special_tokens": False,
            "repetition_penalty": 1.0,
        }
    else:
        fields["logit_bias"] = {str(token): _BIAS for token in tokens}
    return _written(fields)


def next_token(raw: bytes, model: str) -> NextToken:
    """Read an answer to `next_token_body`. Raises BadAnswer."""
    fields = as_object(parsed(raw), "the answer")
    refuse_other_model(fields, model)
    choices = as_list(fields.get("choices"), "choices")
    if len(choices) != 1:
        raise BadAnswer(f"it returns {len(choices)} choices for a request of 1")
    logprobs = as_object(as_object(choices[0], "a choice").get("logprobs"), "logprobs")
    found: dict[str, float] = {}
    top = as_list(logprobs.get("top_logprobs") or [{}], "top_logprobs")
    for name, value in _limited(as_object(top[0], "top_logprobs"), "top_logprobs").items():
        found[name] = as_number(value, "a log-probability", -math.inf, _EPSILON)
    names, values = (as_list(logprobs.get(key), key) for key in ("tokens", "token_logprobs"))
    if len(names) != 1 or len(values) != 1 or not isinstance(names[0], str):
        raise BadAnswer(f"it has log-probabilities of {len(values)} tokens for a request of 1")
    found[names[0]] = as_number(values[0], "a log-probability", -math.inf, _EPSILON)
    return NextToken(logprobs=found, cached=cached_tokens(fields))


def pooling_body(model: str, ids: Sequence[int]) -> bytes:
    """A request for the classes of every token of a text."""
    return _written({**_classes_of(model, ids), "task": "token_classify", "encoding_format": "float"})


def classify_body(model: str, ids: Sequence[int]) -> bytes:
    """A request for the classes of the last token of a text."""
    return _written(_classes_of(model, ids))


def _classes_of(model: str, ids: Sequence[int]) -> dict[str, object]:
    return {"model": model, "input": list(ids), "add_special_tokens": False, "use_activation": True}


def pooling_bytes(tokens: int, classes: int) -> int:
    """The largest size of an answer to `pooling_body` in bytes."""
    return MOST_BYTES + tokens * (classes + 1) * _BYTES_PER_NUMBER


def pooled(raw: bytes, model: str, classes: int) -> ClassRows:
    """Read an answer to `pooling_body`: probabilities of `classes` classes. Raises BadAnswer."""
    fields = as_object(parsed(raw), "the answer")
    found = as_list(_only(fields, model).get("data"), "data")
    rows = tuple(_row(row, classes) for row in found)
    return ClassRows(rows=rows, cached=cached_tokens(fields))


def classified(raw: bytes, model: str, classes: int) -> ClassRows:
    """Read an answer to `classify_body`: one row. Raises BadAnswer."""
    fields = as_object(parsed(raw), "the answer")
    row = _row(_only(fields, model).get("probs"), classes)
    return ClassRows(rows=(row,), cached=cached_tokens(fields))


def _only(fields: Mapping[str, Any], model: str) -> dict[str, Any]:
    refuse_other_model(fields, model)
    data = as_list(fields.get("data"), "data")
    if len(data) != 1:
        raise BadAnswer(f"it has {len(data)} results for one text")
    return as_object(data[0], "a result")


def _row(value: object, classes: int) -> tuple[float, ...]:
    """A row of probabilities. A server that returns logits, or another number of classes, would give wrong scores."""
    row = as_list(value, "a row of classes")
    if len(row) != classes:
        raise BadAnswer(f"it has {len(row)} classes, and the model's format has {classes}")
    shares = tuple(min(1.0, as_number(share, "a probability", 0.0, 1.0 + _EPSILON)) for share in row)
    if classes > 1 and abs(math.fsum(shares) - 1.0) > classes * _EPSILON:
        raise BadAnswer(f"its probabilities of the classes add up to {math.fsum(shares):g}, not to 1")
    return shares


def _limited(fields: dict[str, Any], name: str) -> dict[str, Any]:
    if len(fields) > _MOST_LISTED:
        raise BadAnswer(f"{name} lists {len(fields)} tokens")
    return fields


def _written(fields: Mapping[str, object]) -> bytes:
    return json.dumps(fields, separators=(",", ":")).encode()
