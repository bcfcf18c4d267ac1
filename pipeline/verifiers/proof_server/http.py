"""HTTP to a proof server. One that is not reachable, fails or is busy is asked again a little later.

Covered: limits of time and of the size of an answer; no redirects, no proxies, no cookies. Not covered: keys.
"""

import time
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from urllib.parse import urlsplit

from pipeline.core.errors import EngineDied

TRIES = 4
FIRST_WAIT_SECONDS = 0.5
"""Before the second try. It doubles for each further one."""
MOST_BYTES = 8 << 20
_SHOWN = 200
_BUSY = frozenset({408, 425, 429, 500, 502, 503, 504})
"""Statuses of a server that may answer later."""


class _Failed(Exception):
    """A try failed. `is_final`: another one would, too."""

    def __init__(self, why: str, *, is_final: bool = False) -> None:
        super().__init__(why)
        self.is_final = is_final


def post(url: str, path: str, body: bytes, seconds: float) -> bytes:
    """The answer to a request. Raises EngineDied, which names the URL."""
    wait = FIRST_WAIT_SECONDS
    for number in range(1, TRIES + 1):
        try:
            return _tried(url, path, body, seconds)
        except _Failed as failed:
            if failed.is_final or number == TRIES:
                tries = "" if failed.is_final else f" ({TRIES} tries)"
                raise EngineDied(
                    f"proof server {url}: {failed}{tries}: start it, or correct verifier.url; then start the same command "
                    "again, which goes on"
                ) from failed
        time.sleep(wait)
        wait *= 2
    raise AssertionError("the last try raises")


def _tried(url: str, path: str, body: bytes, seconds: float) -> bytes:
    parts = urlsplit(url)
    kind = HTTPSConnection if parts.scheme == "https" else HTTPConnection
    deadline = time.monotonic() + seconds
    try:
        connection = kind(parts.hostname or "", parts.port, timeout=seconds)
    except HTTPException as error:
        raise _Failed(str(error), is_final=True) from error
    try:
        connection.request("POST", parts.path.rstrip("/") + path, body, {"Content-Type": "application/json"})
        response = connection.getresponse()
        content = b""
        while piece := response.read1(1 << 16):
            content += piece
            if len(content) > MOST_BYTES:
                raise _Failed(f"it sent more than {MOST_BYTES >> 20} MiB", is_final=True)
            if time.monotonic() > deadline:
                raise TimeoutError
    except TimeoutError as error:
        raise _Failed(f"it did not answer within {seconds:g} s") from error
    except (OSError, HTTPException) as error:
        raise _Failed(f"it does not answer: {str(error) or type(error).__name__}") from error
    finally:
        connection.close()
    if response.status != 200:
        said = " ".join(content.decode(errors="replace").split())[:_SHOWN]
        raise _Failed(f"it answered with status {response.status}: {said}", is_final=response.status not in _BUSY)
    return content
