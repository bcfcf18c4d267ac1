"""HTTP to the servers of a policy or a scorer: the only file that imports aiohttp. A call tries once and raises `ServerError`
on failure.

The key is sent in one header and appears nowhere else. Redirects are not followed, proxies from the environment are not used,
cookies are not kept, and reading stops at a limit.
"""

import re
import time
from collections.abc import Mapping, Sequence

import aiohttp

from pipeline.core.errors import PolicyError
from pipeline.core.split_secrets import between_in_json
from pipeline.engines.openai.wire import ErrorKind, ServerError, error_kind, error_text, retry_after_seconds
from pipeline.engines.settings import DEFAULT_KEY_VARIABLE, OpenAiConfig

CONNECT_SECONDS = 10.0
IDLE_SECONDS = 4.0
"""How long an idle connection is kept: less than the five seconds after which vLLM's and SGLang's HTTP server closes it."""
SECRET_CHARACTERS = 16
"""Keys of at least this length count as secret. They do not occur in a text by chance."""
_MAX_COMPLAINT_BYTES = 64 * 1024
_MASK = b"***"
_MOST_BACKSLASHES = 32
"""Texts within texts double them at each level."""
_BACKSLASHES = rb"\\{1,%d}" % _MOST_BACKSLASHES
_BETWEEN = between_in_json(_BACKSLASHES)
_VISIBLE = re.compile(rb"[ -\[\]-~]*")


class Key:
    """An API key (or an empty one) whose value is never printed."""

    __slots__ = ("_value", "_written")

    def __init__(self, value: str) -> None:
        self._value = value
        self._written = re.compile(_BETWEEN.join(map(_written, value.encode())))

    def __repr__(self) -> str:
        return "Key(***)"

    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self._value}"} if self._value else {}

    def redact(self, content: bytes) -> bytes:
        """A server's answer with the key masked, since the server may repeat it, also in the escapes of JSON and of JSON within
        a text of JSON, and with white space or characters beyond ASCII inside."""
        if not self._value:
            return content
        if _VISIBLE.fullmatch(content) and self._value.encode() not in content.translate(None, b" "):
            return content
        return self._written.sub(_MASK, content)

    def redact_if_secret(self, content: bytes) -> bytes:
        """Like `redact`, for an answer that is parsed. A short key, such as EMPTY, may occur by chance and is not masked."""
        return self.redact(content) if len(self._value) >= SECRET_CHARACTERS else content


def _written(byte: int) -> bytes:
    """A pattern for the ways in which JSON writes a character of ASCII. Texts within texts have several backslashes."""
    escape = _BACKSLASHES + rb"u00(?i:%02x)" % byte
    plain = re.escape(bytes([byte]))
    own = rb"\\{0,%d}" % _MOST_BACKSLASHES if byte in b'/"\\' else b""
    return b"(?:" + escape + b"|" + own + plain + b")"


def key_from(environment: Mapping[str, str], servers: OpenAiConfig) -> Key:
    """The key in the environment variable that the settings name. A missing OPENAI_API_KEY means no key; any other missing
    variable: PolicyError."""
    variable = servers.api_key_env
    value = environment.get(variable, "").strip()
    if not value and variable != DEFAULT_KEY_VARIABLE:
        raise PolicyError(
            f"{servers.SECTION}.api_key_env={variable}, but that variable is not set on the worker's machine: set it there, or "
            "omit the setting for servers that need no key"
        )
    if not (value.isascii() and value.isprintable() and " " not in value):
        raise PolicyError(
            f"the variable {variable} contains characters that a key cannot have: set it to the key alone"
        )
    return Key(value)


class Http:
    """Connections to servers, which are numbered from 0. Create it in the event loop that uses it.

    A request takes at most `timeout_seconds` of the settings, and its answer has at most `limit` bytes. `get` and `post` raise
    ServerError. `urls`: base URLs in the place of those of the settings.
    """

    def __init__(self, servers: OpenAiConfig, key: Key, *, urls: Sequence[str] = ()) -> None:
        self._urls = [url.rstrip("/") for url in urls or servers.urls]
        self._key = key
        self._section = servers.SECTION
        self._timeout_seconds = timeout_seconds = servers.timeout_seconds
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=IDLE_SECONDS),
            timeout=aiohttp.ClientTimeout(total=timeout_seconds, sock_connect=min(CONNECT_SECONDS, timeout_seconds)),
            cookie_jar=aiohttp.DummyCookieJar(),
            headers={"Content-Type": "application/json", "Accept-Encoding": "identity"},
            auto_decompress=False,
            trust_env=False,
        )

    async def get(self, at: int, path: str, *, limit: int) -> bytes:
        return await self._asked("GET", at, path, None, limit)

    async def post(self, at: int, path: str, body: bytes, *, limit: int) -> bytes:
        return await self._asked("POST", at, path, body, limit)

    async def close(self) -> None:
        await self._session.close()

    async def _asked(self, method: str, at: int, path: str, body: bytes | None, limit: int) -> bytes:
        url = self._urls[at] + path
        try:
            async with self._session.request(
                method, url, data=body, headers=self._key.headers(), allow_redirects=False
            ) as response:
                if response.status != 200:
                    raise await self._server_error(url, response)
                content, is_whole = await _content(response, limit)
                if not is_whole:
                    raise ServerError(ErrorKind.FAULT, f"{url} sent more than {limit} bytes")
                return self._key.redact_if_secret(content)
        except aiohttp.ConnectionTimeoutError as error:
            raise ServerError(
                ErrorKind.GONE, f"{url} did not accept a connection within {CONNECT_SECONDS:g} s"
            ) from error
        except TimeoutError as error:
            text = f"{url} did not answer within {self._section}.timeout_seconds={self._timeout_seconds:g}"
            raise ServerError(ErrorKind.FAULT, text) from error
        except aiohttp.ClientConnectorError as error:
            # From None: an exception of aiohttp may contain the request with its headers.
            raise ServerError(ErrorKind.GONE, f"no server answers at {url}: {error}") from None
        except (aiohttp.ClientError, OSError) as error:
            text = f"{url} broke off its answer: {type(error).__name__}"
            raise ServerError(ErrorKind.DROPPED, text) from None

    async def _server_error(self, url: str, response: aiohttp.ClientResponse) -> ServerError:
        status = response.status
        words, _ = await _content(response, _MAX_COMPLAINT_BYTES)
        said = error_text(self._key.redact(words))
        text = f"{url} answered with status {status}{': ' if said else ''}{said}"
        return ServerError(
            error_kind(status), text, status=status, wait=retry_after_seconds(response.headers, time.time())
        )


async def _content(response: aiohttp.ClientResponse, limit: int) -> tuple[bytes, bool]:
    """The body, cut to `limit` bytes, and whether it is complete."""
    content = bytearray()
    async for chunk in response.content.iter_any():
        content += chunk
        if len(content) > limit:
            return bytes(content[:limit]), False
    return bytes(content), True
