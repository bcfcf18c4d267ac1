"""A stand-in for a Kimina Lean Server. It judges texts by rules of a test, in the form of the server's answers.

The form follows the server's models (`CheckRequest`, `CheckResponse`, version 2.0.0) and the messages of Lean's REPL, as their
sources describe them; the texts of messages are Lean's. No test asks a real server.
"""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Judge = Callable[[str], dict[str, Any]]
"""From the text of a snippet to a result without its id."""


@dataclass
class Server:
    """`asked`: the requests so far. `replies`: raw answers that go out first, one for each request: a status and a body."""

    url: str
    asked: list[dict[str, Any]] = field(default_factory=list)
    replies: list[tuple[int, bytes]] = field(default_factory=list)

    @property
    def codes(self) -> list[str]:
        return [snippet["code"] for request in self.asked for snippet in request["snippets"]]


def messages(*said: tuple[str, str], sorries: int = 0) -> dict[str, Any]:
    """A response of the REPL with messages, each a severity and a text."""
    place = {"pos": {"line": 1, "column": 0}, "endPos": {"line": 1, "column": 7}}
    response: dict[str, Any] = {"env": 0}
    if said:
        response["messages"] = [{"severity": severity, **place, "data": text} for severity, text in said]
    if sorries:
        response["sorries"] = [{**place, "goal": "⊢ 1 = 1", "proofState": at} for at in range(sorries)]
    return {"time": 0.01, "response": response}


def error(text: str) -> dict[str, Any]:
    return messages(("error", text))


SORRY = messages(("warning", "declaration uses 'sorry'"), sorries=1)
CLEAN = messages()
VERSION = messages(("info", '"4.21.0"\n'))


@contextmanager
def serving(judge: Judge) -> Iterator[Server]:
    """A server on a port of this machine, for as long as the context lasts."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            server.asked.append(body)
            status, content = server.replies.pop(0) if server.replies else (200, self._results(body))
            with suppress(ConnectionError):  # The client may be gone.
                self.send_response(status if self.path == "/api/check" else 404)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

        def _results(self, body: dict[str, Any]) -> bytes:
            results = [{"id": each["id"], **_judged(judge, each["code"])} for each in body["snippets"]]
            return json.dumps({"results": results}).encode()

        def log_message(self, format: str, *args: object) -> None:
            return

    listening = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server = Server(url=f"http://127.0.0.1:{listening.server_port}")
    thread = threading.Thread(target=listening.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        listening.shutdown()
        listening.server_close()
        thread.join()


def _judged(judge: Judge, code: str) -> dict[str, Any]:
    return VERSION if code.startswith("#eval Lean.versionString") else judge(code)
