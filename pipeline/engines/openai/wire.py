"""Requests to an OpenAI-compatible completions server, its valid answers, and the classification of its errors. Pure.

Answers are untrusted: their size is limited before they are read, every type is checked, and a server's texts are cut and
stripped of control characters before they are shown.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from email.utils import mktime_tz, parsedate_tz
from enum import Enum, auto
from typing import Any

from pipeline.config.label import SamplingConfig
from pipeline.core.records import Finish

COMPLETIONS = "/completions"
MODELS = "/models"
MAX_MODELS_BYTES = 4 * 1024 * 1024
FIRST_PAUSE_SECONDS = 0.5
LONGEST_PAUSE_SECONDS = 30.0
LONGEST_ASKED_PAUSE_SECONDS = 120.0
"""Longest accepted `Retry-After` of a server."""
_SPARE_BYTES = 1024 * 1024
_BYTES_PER_TOKEN = 1024
"""Per token of an answer: its text may be 128 characters, each escaped in six bytes, and its id is listed too."""
_BYTES_PER_PROMPT_ID = 16
_MAX_ID = 2**31 - 1
_MAX_SHOWN_CHARACTERS = 200
_FINISHES = {"stop": Finish.STOP, "length": Finish.LENGTH, "content_filter": Finish.ENGINE_FAILED}
_ALL_TOKENS = -1
"""The value of top_k for all tokens in vLLM and SGLang."""


class ErrorKind(Enum):
    """What a failure says about the request and about its server."""

    REFUSED = auto()
    """The server rejects this request but serves others."""
    BUSY = auto()
    """The server accepts no more requests now."""
    FAULT = auto()
    """This try failed. The request or the server may be the cause."""
    DROPPED = auto()
    """The connection broke, so the server may have failed."""
    GONE = auto()
    """The server no longer serves. The request is not the cause."""


class ServerError(Exception):
    """A request got no answer. The text never contains the key. `wait`: seconds to wait that the server asked for."""

    def __init__(self, kind: ErrorKind, text: str, *, status: int = 0, wait: float | None = None) -> None:
        super().__init__(text)
        self.kind = kind
        self.status = status
        self.wait = wait


class BadAnswer(Exception):
    """An answer that is invalid for the wanted model. The text names the fault."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """One completion of an answer. It ends with the stop text that ended it, if the server returns or names that. `token_ids`:
    the generated tokens. None where the server does not return them."""

    text: str
    finish: Finish
    token_ids: tuple[int, ...] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """Completions with their total number of generated tokens and of cached prompt tokens (None: not reported)."""

    choices: tuple[Choice, ...]
    generated: int | None
    cached: int | None


class Wire:
    """Builds requests and parses answers for one model and one set of sampling settings."""

    def __init__(self, model: str, sampling: SamplingConfig, *, extensions: bool) -> None:
        self._model = model
        self._max_tokens = sampling.max_tokens
        self._stop = tuple(sampling.stop)
        self._extensions = extensions
        # Every field is sent: a server takes missing ones from the model's generation_config.json.
        fields: dict[str, object] = {
            "model": model,
            "temperature": sampling.temperature,
            "top_p": sampling.top_p,
            "presence_penalty": 0.0,
            "frequency_penalty": 0.0,
            "stream": False,
        }
        if extensions:
            fields |= {
                "top_k": sampling.top_k or _ALL_TOKENS,
                "min_p": sampling.min_p,
                "repetition_penalty": 1.0,
                "skip_special_tokens": True,
                "return_token_ids": True,
            }
        self._fields: Mapping[str, object] = fields

    def body(
        self, prompt_ids: Sequence[int], n: int, *, max_tokens: int | None = None, stop: Sequence[str] = ()
    ) -> bytes:
        """A request for `n` completions of a prompt with at most `max_tokens` tokens each (None: the setting), which end at the
        texts of `stop` and of the settings."""
        asked: dict[str, object] = {"prompt": list(prompt_ids), "n": n, "max_tokens": max_tokens or self._max_tokens}
        if stop or self._stop:
            asked["stop"] = [*self._stop, *stop]
            if self._extensions:
                asked |= {"include_stop_str_in_output": True, "no_stop_trim": True}  # the names in vLLM and in SGLang
        return json.dumps({**self._fields, **asked}, separators=(",", ":")).encode()

    def max_bytes(self, prompt_ids: Sequence[int], n: int) -> int:
        """The largest size of an answer to such a request in bytes."""
        return _SPARE_BYTES + n * (self._max_tokens * _BYTES_PER_TOKEN + len(prompt_ids) * _BYTES_PER_PROMPT_ID)

    def answer(self, raw: bytes, n: int, *, stop: Sequence[str] = ()) -> Answer:
        """Parse an answer with 1 to `n` completions. `stop`: as in `body`. Raises BadAnswer."""
        fields = as_object(parsed(raw), "the answer")
        refuse_other_model(fields, self._model)
        choices = as_list(fields.get("choices"), "choices")
        if not 1 <= len(choices) <= n:
            raise BadAnswer(f"it returns {len(choices)} choices for a request of {n}")
        usage = fields.get("usage")
        usage = {} if usage is None else as_object(usage, "usage")
        return Answer(
            choices=tuple(self._choice(choice, stop) for choice in choices),
            generated=as_count(usage.get("completion_tokens"), "completion_tokens", n * self._max_tokens),
            cached=cached_tokens(fields),
        )

    def _choice(self, value: object, stop: Sequence[str]) -> Choice:
        fields = as_object(value, "a choice")
        text, reason = fields.get("text"), fields.get("finish_reason")
        if not isinstance(text, str) or not _is_unicode(text):
            raise BadAnswer("a choice has no text")
        finish = _FINISHES.get(reason) if isinstance(reason, str) else None
        if finish is None:
            raise BadAnswer(f"a choice ended with finish_reason={printable_value(reason)}")
        if finish is Finish.ENGINE_FAILED:
            return Choice(text="", finish=finish, token_ids=())
        ids = fields.get("token_ids")
        # vLLM and SGLang name the stop text also where they were not asked to return it.
        for reached in (fields.get("stop_reason"), fields.get("matched_stop")):
            if isinstance(reached, str) and reached in (*self._stop, *stop) and not text.endswith(reached):
                text += reached
        return Choice(text=text, finish=finish, token_ids=None if ids is None else self._token_ids(ids))

    def _token_ids(self, value: object) -> tuple[int, ...]:
        ids = as_list(value, "token_ids")
        if len(ids) > self._max_tokens:
            raise BadAnswer(f"a choice has {len(ids)} tokens, more than max_tokens={self._max_tokens}")
        if not all(type(each) is int and 0 <= each <= _MAX_ID for each in ids):
            raise BadAnswer("token_ids contains values that are not token ids")
        return tuple(ids)


def contexts(raw: bytes) -> dict[str, int | None]:
    """The models that a server lists, with their context lengths in tokens (None: not stated). Raises BadAnswer."""
    found = {}
    for each in as_list(as_object(parsed(raw), "the answer").get("data"), "data"):
        card = as_object(each, "a model")
        name = card.get("id")
        if not isinstance(name, str):
            raise BadAnswer("a model has no name")
        found[name] = as_count(card.get("max_model_len"), "max_model_len", _MAX_ID)
    return found


def error_text(raw: bytes) -> str:
    """The message of an error response, in printable form. Empty where there is none."""
    try:
        text: Any = _json(raw)
        for key in ("error", "message", "detail"):
            if isinstance(text, dict) and text.get(key):
                text = text[key]
    except (ValueError, RecursionError):
        return _begin(raw)
    return printable_value(text) if text else ""


def printable_value(value: object) -> str:
    """A server's value as one short line without control characters."""
    text = value if isinstance(value, str) else json.dumps(value)
    line = " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())
    return line if len(line) <= _MAX_SHOWN_CHARACTERS else line[: _MAX_SHOWN_CHARACTERS - 4] + " ..."


_KINDS = {
    **dict.fromkeys((400, 413, 414, 422), ErrorKind.REFUSED),
    **dict.fromkeys((429, 503), ErrorKind.BUSY),
    # A route, a key or a model was valid at the start and is not now, or a proxy has lost its server.
    **dict.fromkeys((301, 302, 303, 307, 308, 401, 403, 404, 405, 502), ErrorKind.GONE),
}


def error_kind(status: int) -> ErrorKind:
    """The kind of error of an HTTP status other than 200."""
    return _KINDS.get(status, ErrorKind.FAULT)


def retry_after_seconds(headers: Mapping[str, str], now: float) -> float | None:
    """The seconds of `Retry-After`, a number or a date. `now` is the Unix time. None where it is missing or invalid."""
    asked = headers.get("Retry-After", "").strip()
    try:
        date = parsedate_tz(asked)
        seconds = mktime_tz(date) - now if date else float(asked)
    except (ValueError, OverflowError):
        return None
    # A comparison with NaN is false.
    return min(seconds, LONGEST_ASKED_PAUSE_SECONDS) if seconds >= 0 else None


def pause(failures: int, draw: float) -> float:
    """Seconds until the next try after `failures` failures in a row: a pause that doubles, times a random factor in [0.5, 1).

    `draw` is uniform in [0, 1), so requests that fail together are not retried together.
    """
    longest = FIRST_PAUSE_SECONDS * 2.0 ** min(failures - 1, 32)
    return min(longest, LONGEST_PAUSE_SECONDS) * (0.5 + 0.5 * draw)


def _json(raw: bytes) -> Any:
    """As UTF-8, and as nothing else: the key is masked in UTF-8, and `json.loads` of bytes would read UTF-16 and UTF-32 too.

    Raises ValueError.
    """
    return json.loads(raw.decode("utf-8"))


def _begin(raw: bytes) -> str:
    """The begin of an answer that is not JSON. Of other encodings than UTF-8, where no key is masked, nothing is shown."""
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError:
        text = "\0"
    return "text that is not UTF-8" if "\0" in text else printable_value(text[:_MAX_SHOWN_CHARACTERS])


def parsed(raw: bytes) -> object:
    """The JSON of an answer. Raises BadAnswer."""
    try:
        content: object = _json(raw)
    except (ValueError, RecursionError) as error:
        raise BadAnswer(f"its answer is not JSON: {_begin(raw)}") from error
    return content


def as_object(value: object, name: str) -> dict[str, Any]:
    """A value that must be an object. Raises BadAnswer."""
    if not isinstance(value, dict):
        raise BadAnswer(f"{name} is not an object")
    return value


def as_list(value: object, name: str) -> list[Any]:
    """A value that must be a list. Raises BadAnswer."""
    if not isinstance(value, list):
        raise BadAnswer(f"{name} is not a list")
    return value


def as_count(value: object, name: str, most: int) -> int | None:
    """A value that must be a number from 0 to `most`, or null. Raises BadAnswer."""
    if value is None:
        return None
    if type(value) is not int or not 0 <= value <= most:
        raise BadAnswer(f"{name} is {printable_value(value)}")
    return value


def as_number(value: object, name: str, least: float, most: float) -> float:
    """A value that must be a number from `least` to `most`, and no NaN. Raises BadAnswer."""
    if type(value) not in (int, float) or not least <= value <= most:  # type: ignore[operator]
        raise BadAnswer(f"{name} is {printable_value(value)}, not a number from {least:g} to {most:g}")
    return float(value)  # type: ignore[arg-type]


def refuse_other_model(fields: Mapping[str, Any], model: str) -> None:
    """Raise BadAnswer where an answer names another model."""
    named = fields.get("model")
    if named is not None and named != model:
        raise BadAnswer(f"it answers for another model, {printable_value(named)}")


def cached_tokens(fields: Mapping[str, Any]) -> int | None:
    """The cached prompt tokens that an answer reports (None: not reported). Raises BadAnswer."""
    usage = fields.get("usage")
    usage = {} if usage is None else as_object(usage, "usage")
    details = usage.get("prompt_tokens_details")
    details = {} if details is None else as_object(details, "prompt_tokens_details")
    return as_count(details.get("cached_tokens"), "cached_tokens", _MAX_ID)


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
