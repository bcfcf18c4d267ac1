"""An S3-compatible server on the loopback interface, in a thread of the test's process, that misbehaves on request."""

import logging
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.request import Request, urlopen

HONEST = "honest"
DEAF = "deaf"
"""A bucket in which the server ignores conditions of a put, as some S3-compatible ones do."""

Wsgi = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]


@dataclass
class ObjectServer:
    """`written` and `deleted`: paths of all requests that had this effect, in order; `refused`: of puts for a name that was
    taken. `lost_answers`: the number of the next puts that take effect and are answered with an error."""

    port: int = 0
    written: list[str] = field(default_factory=list)
    deleted: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    lost_answers: int = 0

    @property
    def environment(self) -> dict[str, str]:
        return {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{self.port}",
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_EC2_METADATA_DISABLED": "true",
            "AWS_MAX_ATTEMPTS": "2",
        }

    def watched(self, application: Wsgi) -> Wsgi:
        """The application, one request at a time, since moto looks for a name and writes it in two steps."""
        turn = threading.Lock()

        def serve(request: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
            with turn:
                if request["PATH_INFO"].startswith(f"/{DEAF}/"):
                    request.pop("HTTP_IF_NONE_MATCH", None)
                status, headers, body = _answered(application, request)
                self._note(request["REQUEST_METHOD"], request["PATH_INFO"], status[:3])
                if request["REQUEST_METHOD"] == "PUT" and status.startswith("2") and self.lost_answers:
                    self.lost_answers -= 1
                    status, headers, body = "500 INTERNAL SERVER ERROR", [("Content-Length", "0")], b""
            start(status, headers)
            return [body]

        return serve

    def _note(self, method: str, path: str, status: str) -> None:
        match method, status:
            case "PUT", "200":
                self.written.append(path)
            case "PUT", "412":
                self.refused.append(path)
            case "DELETE", "204":
                self.deleted.append(path)


@contextmanager
def object_server() -> Iterator[ObjectServer]:
    """The server with its two buckets, empty."""
    from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
    from werkzeug.serving import make_server

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ObjectServer()
    application = server.watched(DomainDispatcherApplication(create_backend_app))
    http = make_server("127.0.0.1", 0, application, threaded=True)
    server.port = http.server_port
    thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    for bucket in (HONEST, DEAF):
        urlopen(Request(f"http://127.0.0.1:{server.port}/{bucket}", method="PUT")).close()
    try:
        yield server
    finally:
        http.shutdown()
        thread.join()
        http.server_close()


def _answered(application: Wsgi, request: dict[str, Any]) -> tuple[str, list[tuple[str, str]], bytes]:
    answer: list[Any] = []
    chunks = application(request, lambda status, headers, _=None: answer.extend((status, headers)))
    body = b"".join(chunks)
    return answer[0], answer[1], body
