"""HTTP to a proof server. One that is not reachable, fails or is busy is asked again a little later.

Covered: limits of the time of a whole exchange, whatever the server sends, and of the size of an answer; no redirects, no
proxies, no cookies. Not covered: keys.
"""

import socket
import threading
import time
from contextlib import closing, suppress
from http.client import HTTPConnection, HTTPException, HTTPSConnection, InvalidURL
from queue import Empty, SimpleQueue
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
    said: SimpleQueue[tuple[int, bytes] | Exception] = SimpleQueue()
    opened: list[socket.socket] = []
    is_over = threading.Event()

    def exchange() -> None:
        try:
            with closing(kind(parts.hostname or "", parts.port, timeout=seconds)) as connection:
                connection.connect()
                opened.append(connection.sock)
                if is_over.is_set():
                    return
                connection.request("POST", parts.path.rstrip("/") + path, body, {"Content-Type": "application/json"})
                response = connection.getresponse()
                said.put((response.status, response.read(MOST_BYTES + 1)))
        except Exception as error:  # noqa: BLE001  it is raised again below
            said.put(error)

    # In a thread: a time limit of a socket is one for each of its reads, and none for the name of a host.
    threading.Thread(target=exchange, daemon=True).start()
    try:
        answer = said.get(timeout=seconds)
        if isinstance(answer, Exception):
            raise answer
        status, content = answer
    except (TimeoutError, Empty) as error:
        raise _Failed(f"it did not answer within {seconds:g} s") from error
    except (InvalidURL, ValueError) as error:
        raise _Failed(str(error), is_final=True) from error
    except (OSError, HTTPException) as error:
        raise _Failed(f"it does not answer: {str(error) or type(error).__name__}") from error
    finally:
        is_over.set()
        for each in opened:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
    if len(content) > MOST_BYTES:
        raise _Failed(f"it sent more than {MOST_BYTES >> 20} MiB", is_final=True)
    if status != 200:
        shown = " ".join(content.decode(errors="replace").split())[:_SHOWN]
        raise _Failed(f"it answered with status {status}: {shown}", is_final=status not in _BUSY)
    return content
