"""Checks at the start that a server is OpenAI-compatible, serves the wanted model, and accepts the requests of a run.

A mistake of the user raises PolicyError, which names the server and the remedy. A server that is unreachable now raises
ServerError and may recover.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from pipeline.core.errors import PlaceError, PolicyError, said
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
from pipeline.engines.settings import OpenAiConfig

PROBE_TEXT = "1"
PROBE_TOKENS = 8
_NAMED_MODELS = 5
_KEY_STATUSES = (401, 403)
_NO_ROUTE_STATUSES = (301, 302, 303, 307, 308, 404, 405)


@dataclass(frozen=True, slots=True, kw_only=True)
class Handshake:
    """A server's answer: the context length of its model in tokens (None: not stated), or the reason why it is unreachable."""

    context: int | None = None
    server_error: str = ""


async def perform_handshakes(
    connection: Http, servers: OpenAiConfig, model: str, wire: Wire, tokenizer: Tokenizer
) -> list[Handshake]:
    """Check all servers concurrently, also whether they generate text. Raises PolicyError for a mistake, and PlaceError where
    no server is reachable."""

    async def probe(at: int) -> None:
        await _probe(connection, at, servers, wire, tokenizer)

    return await handshakes(connection, servers, model, COMPLETIONS, probe)


async def handshakes(
    connection: Http,
    servers: OpenAiConfig,
    model: str,
    path: str,
    probe: Callable[[int], Awaitable[None]],
    *,
    models: str = MODELS,
) -> list[Handshake]:
    """Check all servers concurrently: their list of models at the path `models`, then `probe(at)` of server `at`, which asks at
    `path`. Raises PolicyError for a mistake, and PlaceError where no server is reachable."""
    found = await asyncio.gather(
        *(_handshake(connection, at, servers, model, probe, models) for at in range(len(servers.urls)))
    )
    if all(handshake.server_error for handshake in found):
        raise PlaceError(
            f"no server of {servers.SECTION}.urls is reachable: {found[0].server_error}; start one, or correct the URL (the "
            f"part before {path})"
        )
    return list(found)


async def _handshake(
    connection: Http, at: int, servers: OpenAiConfig, model: str, probe: Callable[[int], Awaitable[None]], models: str
) -> Handshake:
    try:
        context = await model_context(connection, at, servers, model, models)
        await probe(at)
    except ServerError as server_error:
        return Handshake(server_error=str(server_error))
    return Handshake(context=context)


async def model_context(connection: Http, at: int, servers: OpenAiConfig, model: str, path: str = MODELS) -> int | None:
    """The context length of the model on a server, from its list of models at `path`. None where the server does not state it.
    Raises ServerError, PolicyError."""
    url, section = servers.urls[at], servers.SECTION.partition(".")[0]
    try:
        served = contexts(await connection.get(at, path, limit=MAX_MODELS_BYTES))
    except BadAnswer as error:
        raise PolicyError(f"{url} is not the base URL of an OpenAI-compatible server: {path}: {error}") from error
    except ServerError as server_error:
        raise config_error(server_error, servers, at, path) or server_error from server_error
    if model not in served:
        names = ", ".join(map(printable_value, list(served)[:_NAMED_MODELS])) or "none"
        raise PolicyError(
            f"{url} does not serve {section}.model={model}, it serves {names}: set {section}.model to the server's name of the "
            f"model, and {section}.tokenizer to its tokenizer"
        )
    return served[model]


async def _probe(connection: Http, at: int, servers: OpenAiConfig, wire: Wire, tokenizer: Tokenizer) -> None:
    url, section = servers.urls[at], servers.SECTION.partition(".")[0]
    prompt = tokenizer.encode(PROBE_TEXT)
    body = wire.body(prompt, 1, max_tokens=PROBE_TOKENS)
    try:
        raw = await connection.post(at, COMPLETIONS, body, limit=wire.max_bytes(prompt, 1))
        (choice,) = wire.answer(raw, 1).choices
    except BadAnswer as error:
        raise PolicyError(f"{url}{COMPLETIONS} is not usable: {error}") from error
    except ServerError as server_error:
        raise config_error(server_error, servers, at, COMPLETIONS) or server_error from server_error
    if choice.token_ids is None:
        return
    ours = tokenizer.decode(choice.token_ids)
    if not _letters(ours).startswith(_letters(choice.text)):
        raise PolicyError(
            f"{section}.tokenizer is not the tokenizer of the model at {url}: it decodes the generated tokens to "
            f"{printable_value(ours)!r}, the server to {printable_value(choice.text)!r}; set it to the model's own"
        )


def _letters(text: str) -> str:
    """The part of a text on which all ways of decoding agree: no whitespace and no incomplete characters."""
    return "".join(text.replace("\ufffd", "").split())


def config_error(server_error: ServerError, servers: OpenAiConfig, at: int, path: str) -> PolicyError | None:
    """The mistake in the settings that an error of server `at` at the start points to. None where there is none."""
    section, url = servers.SECTION, servers.urls[at]
    if server_error.status in _KEY_STATUSES:
        return PolicyError(
            f"{server_error}: set the environment variable that {section}.api_key_env names to a key that {url} accepts, "
            "on the machines of the workers"
        )
    if server_error.status in _NO_ROUTE_STATUSES:
        return PolicyError(
            f"{server_error}: {section}.urls takes the part of the URL before {path}, usually http://HOST:PORT/v1"
        )
    if server_error.kind is ErrorKind.REFUSED:
        return PolicyError(
            f"{server_error}: the server does not accept token-id prompts with these settings (for a server that rejects "
            f"unknown fields, set {section}.extensions=false)"
        )
    return None


def context_for(contexts: Sequence[int], wanted: int | None, max_tokens: int) -> int:
    """The context length to use, from the servers' values and the setting. Raises PolicyError where they conflict."""
    if not contexts and wanted is None:
        raise PolicyError(
            *said("the server does not state the model's context length: set {policy.max_model_len} to the largest "),
            "number of tokens of prompt and completion together",
        )
    least = min(contexts, default=wanted or 0)
    if wanted is not None and least < wanted:
        raise PolicyError(
            f"the model's context on a server is {least} tokens, less than ",
            *said(
                "{policy.max_model_len}={wanted}: lower the setting, or serve the model with a longer context",
                wanted=wanted,
            ),
        )
    context = least if wanted is None else wanted
    if max_tokens >= context:
        raise PolicyError(
            f"the model's context of {context} tokens is too short for a prompt: lower ",
            *said("{sampling.max_tokens}={wanted}", wanted=max_tokens),
        )
    return context
