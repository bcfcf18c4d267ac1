"""What is said to an OpenAI-compatible completions server, what its answers may be, and what it means when there is none. Pure.

Answers are hostile: their size is bounded before they are read, every type is checked, and texts of a server are cut and
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
"""Of a server that says when to come back."""
_SPARE_BYTES = 1024 * 1024
_BYTES_PER_TOKEN = 1024
"""Of an answer: a token's text may be 128 blanks or letters, each escaped in six bytes, and its id stands beside it."""
_BYTES_PER_PROMPT_ID = 16
_MAX_ID = 2**31 - 1
_MAX_SHOWN_CHARACTERS = 200
_FINISHES = {"stop": Finish.STOP, "length": Finish.LENGTH, "content_filter": Finish.ENGINE_FAILED}
_ALL_TOKENS = -1
"""top_k for all tokens, as both vLLM and SGLang write it."""


class ErrorKind(Enum):
    """What a failed request says of itself and of its server."""

    REFUSED = auto()
    """The server does not want this request, and serves others."""
    BUSY = auto()
    """The server wants nothing more now."""
    FAULT = auto()
    """This try failed; whose fault it is, is not known."""
    DROPPED = auto()
    """This try failed with its connection: so may its server."""
    GONE = auto()
    """The server does not serve any more; the request has nothing to do with it."""


class ServerError(Exception):
    """Why a request has no answer, in words that hold no key. `wait`: seconds that the server asked for."""

    def __init__(self, kind: ErrorKind, text: str, *, status: int = 0, wait: float | None = None) -> None:
        super().__init__(text)
        self.kind = kind
        self.status = status
        self.wait = wait


class BadAnswer(Exception):
    """An answer that no server of the wanted model gives, and what is wrong with it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """One completion of an answer. `token_ids`: the generated tokens, None where the server does not tell them."""

    text: str
    finish: Finish
    token_ids: tuple[int, ...] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """Completions, and what the server says of all of them together: tokens it made, prompt tokens that it had in its cache."""

    choices: tuple[Choice, ...]
    generated: int | None
    cached: int | None


class Wire:
    """Requests for one model under one way of sampling."""

    def __init__(self, model: str, sampling: SamplingConfig, *, extensions: bool) -> None:
        self._model = model
        self._max_tokens = sampling.max_tokens
        # All of it is said: what is not, a server takes from the model's generation_config.json.
        fields: dict[str, object] = {
            "model": model,
            "temperature": sampling.temperature,
            "top_p": sampling.top_p,
            "presence_penalty": 0.0,
            "frequency_penalty": 0.0,
            "stream": False,
        }
        if sampling.stop:
            fields["stop"] = list(sampling.stop)
        if extensions:
            fields |= {
                "top_k": sampling.top_k or _ALL_TOKENS,
                "min_p": sampling.min_p,
                "repetition_penalty": 1.0,
                "skip_special_tokens": True,
                "return_token_ids": True,
            }
            if sampling.stop:
                fields |= {"include_stop_str_in_output": True, "no_stop_trim": True}  # vLLM's name of it and SGLang's
        self._fields: Mapping[str, object] = fields

    def body(self, prompt_ids: Sequence[int], n: int, *, max_tokens: int | None = None) -> bytes:
        """A request for `n` completions of a prompt, of at most `max_tokens` (by default those of the settings) each."""
        asked = {"prompt": list(prompt_ids), "n": n, "max_tokens": max_tokens or self._max_tokens}
        return json.dumps({**self._fields, **asked}, separators=(",", ":")).encode()

    def max_bytes(self, prompt_ids: Sequence[int], n: int) -> int:
        """What an answer to such a request may take."""
        return _SPARE_BYTES + n * (self._max_tokens * _BYTES_PER_TOKEN + len(prompt_ids) * _BYTES_PER_PROMPT_ID)

    def answer(self, raw: bytes, n: int) -> Answer:
        """The 1 to `n` completions of an answer. Raises BadAnswer."""
        fields = _object(_parsed(raw), "the answer")
        named = fields.get("model")
        if named is not None and named != self._model:
            raise BadAnswer(f"it answers as another model, {printable_value(named)}")
        choices = _list(fields.get("choices"), "choices")
        if not 1 <= len(choices) <= n:
            raise BadAnswer(f"it gives {len(choices)} choices where {n} were asked for")
        usage = fields.get("usage")
        usage = {} if usage is None else _object(usage, "usage")
        details = usage.get("prompt_tokens_details")
        details = {} if details is None else _object(details, "prompt_tokens_details")
        return Answer(
            choices=tuple(self._choice(choice) for choice in choices),
            generated=_count(usage.get("completion_tokens"), "completion_tokens", n * self._max_tokens),
            cached=_count(details.get("cached_tokens"), "cached_tokens", _MAX_ID),
        )

    def _choice(self, value: object) -> Choice:
        fields = _object(value, "a choice")
        text, reason = fields.get("text"), fields.get("finish_reason")
        if not isinstance(text, str) or not _is_unicode(text):
            raise BadAnswer("a choice has no text")
        finish = _FINISHES.get(reason) if isinstance(reason, str) else None
        if finish is None:
            raise BadAnswer(f"a choice ended with finish_reason={printable_value(reason)}")
        if finish is Finish.ENGINE_FAILED:
            return Choice(text="", finish=finish, token_ids=())
        ids = fields.get("token_ids")
        return Choice(text=text, finish=finish, token_ids=None if ids is None else self._token_ids(ids))

    def _token_ids(self, value: object) -> tuple[int, ...]:
        ids = _list(value, "token_ids")
        if len(ids) > self._max_tokens:
            raise BadAnswer(f"a choice has {len(ids)} tokens, more than max_tokens={self._max_tokens}")
        if not all(type(each) is int and 0 <= each <= _MAX_ID for each in ids):
            raise BadAnswer("token_ids are no token ids")
        return tuple(ids)


def contexts(raw: bytes) -> dict[str, int | None]:
    """The models that a server names, each with its context in tokens where it tells it. Raises BadAnswer."""
    found = {}
    for each in _list(_object(_parsed(raw), "the answer").get("data"), "data"):
        card = _object(each, "a model")
        name = card.get("id")
        if not isinstance(name, str):
            raise BadAnswer("a model has no name")
        found[name] = _count(card.get("max_model_len"), "max_model_len", _MAX_ID)
    return found


def error_text(raw: bytes) -> str:
    """What a server says in an answer that is an error, in a form to be shown; empty where it says nothing."""
    try:
        text: Any = json.loads(raw)
        for key in ("error", "message", "detail"):
            if isinstance(text, dict) and text.get(key):
                text = text[key]
    except (ValueError, RecursionError):
        text = raw.decode("utf-8", "replace")
    return printable_value(text) if text else ""


def printable_value(value: object) -> str:
    """A value that a server sent, in one short line without control characters."""
    text = value if isinstance(value, str) else json.dumps(value)
    line = " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())
    return line if len(line) <= _MAX_SHOWN_CHARACTERS else line[: _MAX_SHOWN_CHARACTERS - 4] + " ..."


_KINDS = {
    **dict.fromkeys((400, 413, 414, 422), ErrorKind.REFUSED),
    **dict.fromkeys((429, 503), ErrorKind.BUSY),
    # A route, a key or a model that was there at the start; or a proxy that has lost its server.
    **dict.fromkeys((301, 302, 303, 307, 308, 401, 403, 404, 405, 502), ErrorKind.GONE),
}


def error_kind(status: int) -> ErrorKind:
    """What a status other than 200 means."""
    return _KINDS.get(status, ErrorKind.FAULT)


def retry_after_seconds(headers: Mapping[str, str], now: float) -> float | None:
    """Seconds that `Retry-After` asks for, as a number or as a date; `now` is the Unix time. None where it does not say."""
    asked = headers.get("Retry-After", "").strip()
    try:
        date = parsedate_tz(asked)
        seconds = mktime_tz(date) - now if date else float(asked)
    except (ValueError, OverflowError):
        return None
    # A comparison with something that is no number is false.
    return min(seconds, LONGEST_ASKED_PAUSE_SECONDS) if seconds >= 0 else None


def pause(failures: int, draw: float) -> float:
    """Seconds until the next try after so many failures in a row: doubling, and anything from half to all of that.

    `draw` is uniform in [0, 1): requests that failed together do not come back together.
    """
    longest = FIRST_PAUSE_SECONDS * 2.0 ** min(failures - 1, 32)
    return min(longest, LONGEST_PAUSE_SECONDS) * (0.5 + 0.5 * draw)


def _parsed(raw: bytes) -> object:
    try:
        parsed: object = json.loads(raw)
    except (ValueError, RecursionError) as error:
        begin = printable_value(raw[:_MAX_SHOWN_CHARACTERS].decode("utf-8", "replace"))
        raise BadAnswer(f"it does not answer in JSON: {begin}") from error
    return parsed


def _object(value: object, name: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise BadAnswer(f"{name} is no object")
    return value


def _list(value: object, name: str) -> list[Any]:
    if not isinstance(value, list):
        raise BadAnswer(f"{name} is no list")
    return value


def _count(value: object, name: str, most: int) -> int | None:
    if value is None:
        return None
    if type(value) is not int or not 0 <= value <= most:
        raise BadAnswer(f"{name} is {printable_value(value)}")
    return value


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
