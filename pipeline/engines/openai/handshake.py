"""The first words with a server: whether it is one, serves the wanted model, and takes the requests that a run will make.

What can only be a mistake of the user is a PolicyError that names the server and the remedy; a server that cannot be reached
now is Trouble, and may come back.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from pipeline.core.errors import PolicyError
from pipeline.data.prompts import Tokenizer
from pipeline.engines.openai.http import Http
from pipeline.engines.openai.wire import (
    COMPLETIONS,
    MAX_MODELS_BYTES,
    MODELS,
    BadAnswer,
    ErrorKind,
    ServerError,
    Wire,
    contexts,
    printable_value,
)

PROBE_TEXT = "1"
PROBE_TOKENS = 8
_NAMED_MODELS = 5
_KEY_STATUSES = (401, 403)
_NO_ROUTE_STATUSES = (301, 302, 303, 307, 308, 404, 405)


@dataclass(frozen=True, slots=True, kw_only=True)
class Handshake:
    """What a server said: its model's context in tokens, where it tells it; or why it cannot be reached, in `server_error`."""

    context: int | None = None
    server_error: str = ""


async def shake_hands(
    connection: Http, urls: Sequence[str], model: str, wire: Wire, tokenizer: Tokenizer
) -> list[Handshake]:
    """Greet all servers at once. Raises PolicyError for a mistake, and where none of them can be reached."""
    found = await asyncio.gather(
        *(_shake_hands_with(connection, at, url, model, wire, tokenizer) for at, url in enumerate(urls))
    )
    if all(handshake.server_error for handshake in found):
        raise PolicyError(
            f"no server of policy.openai.urls serves now: {found[0].server_error}; start one, or correct the URL (what stands in "
            f"front of {COMPLETIONS})"
        )
    return list(found)


async def _shake_hands_with(
    connection: Http, at: int, url: str, model: str, wire: Wire, tokenizer: Tokenizer
) -> Handshake:
    try:
        context = await model_context(connection, at, url, model)
        await _probe(connection, at, url, wire, tokenizer)
    except ServerError as server_error:
        return Handshake(server_error=str(server_error))
    return Handshake(context=context)


async def model_context(connection: Http, at: int, url: str, model: str) -> int | None:
    """The context of the model on a server that names it; None where it does not tell. Raises Trouble and PolicyError."""
    try:
        served = contexts(await connection.get(at, MODELS, limit=MAX_MODELS_BYTES))
    except BadAnswer as error:
        raise PolicyError(f"{url} is no OpenAI-compatible server, or not its base URL: {error} at {MODELS}") from error
    except ServerError as server_error:
        raise _config_error(server_error, url, MODELS) or server_error from server_error
    if model not in served:
        names = ", ".join(map(printable_value, list(served)[:_NAMED_MODELS])) or "none"
        raise PolicyError(
            f"{url} does not serve policy.model={model} but {names}: give the name as the server has it, and the tokenizer as "
            "policy.tokenizer"
        )
    return served[model]


async def _probe(connection: Http, at: int, url: str, wire: Wire, tokenizer: Tokenizer) -> None:
    prompt = tokenizer.encode(PROBE_TEXT)
    body = wire.body(prompt, 1, max_tokens=PROBE_TOKENS)
    try:
        raw = await connection.post(at, COMPLETIONS, body, limit=wire.max_bytes(prompt, 1))
        (choice,) = wire.answer(raw, 1).choices
    except BadAnswer as error:
        raise PolicyError(f"{url}{COMPLETIONS} is not usable: {error}") from error
    except ServerError as server_error:
        raise _config_error(server_error, url, COMPLETIONS) or server_error from server_error
    if choice.token_ids is None:
        return
    ours = tokenizer.decode(choice.token_ids)
    if not _letters(ours).startswith(_letters(choice.text)):
        raise PolicyError(
            f"policy.tokenizer is not the tokenizer of the model at {url}: of the tokens that it generated, the one makes "
            f"{printable_value(ours)!r}, the other {printable_value(choice.text)!r}; set it to that model's"
        )


def _letters(text: str) -> str:
    """What every way of decoding makes of the same tokens: without blanks, and without letters that are not complete."""
    return "".join(text.replace("\ufffd", "").split())


def _config_error(server_error: ServerError, url: str, path: str) -> PolicyError | None:
    if server_error.status in _KEY_STATUSES:
        return PolicyError(
            f"{server_error}: put a key that {url} accepts into the environment variable that policy.openai.api_key_env names, "
            "where the workers run"
        )
    if server_error.status in _NO_ROUTE_STATUSES:
        return PolicyError(
            f"{server_error}: policy.openai.urls takes what stands in front of {path}, mostly http://HOST:PORT/v1"
        )
    if server_error.kind is ErrorKind.REFUSED:
        return PolicyError(
            f"{server_error}: the server does not take completions of token ids with these settings (a server that refuses unknown "
            "fields wants policy.openai.extensions=false)"
        )
    return None


def context_for(contexts: Sequence[int], wanted: int | None, max_tokens: int) -> int:
    """The context to plan with, of those that servers tell and the one of the settings. Raises PolicyError where they clash."""
    if not contexts and wanted is None:
        raise PolicyError(
            "the server does not tell the model's context: set policy.max_model_len to the tokens that prompt and completion "
            "may have together"
        )
    least = min(contexts, default=wanted or 0)
    if wanted is not None and least < wanted:
        raise PolicyError(
            f"the model's context is {least} tokens on a server, shorter than policy.max_model_len={wanted}: lower that, or "
            "serve the model with a longer context"
        )
    context = least if wanted is None else wanted
    if max_tokens >= context:
        raise PolicyError(
            f"the model's context of {context} tokens leaves no room for a prompt: lower sampling.max_tokens={max_tokens}"
        )
    return context
