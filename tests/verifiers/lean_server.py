"""A stand-in for a Kimina Lean Server. It judges texts by rules of a test, in the form of the server's answers.

The form follows the server's models (`CheckRequest`, `CheckResponse`, version 2.0.0) and the messages of Lean's REPL, as their
sources describe them; the texts of messages are Lean's. No test asks a real server.
"""

import json
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Judge = Callable[[str], dict[str, Any]]
"""From the text of a snippet, without what asks for axioms, to a result without its id. `axioms`: those to list for a name.
`listed`: what it says of axioms instead."""
CLOSING = re.compile(r"stepvalue_[0-9a-f]{32}\b")
"""The axiom that closes any goal. In texts of tests it is GOAL."""


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


def core(code: str) -> str:
    """A text without its axiom and what asks for axioms at its end."""
    lines = [line for line in code.split("\n") if not line.startswith(("axiom stepvalue_", "#print axioms "))]
    return CLOSING.sub("GOAL", "\n".join(lines))


def listed(name: str, *axioms: str) -> str:
    """What `#print axioms` says of a name."""
    said = f"depends on axioms: [{', '.join(axioms)}]" if axioms else "does not depend on any axioms"
    return f"'{name}' {said}"


def _judged(judge: Judge, code: str) -> dict[str, Any]:
    """A result, and what a Lean says of axioms in a text that it can read to its end."""
    if code.startswith("#eval Lean.versionString"):
        return VERSION
    result = dict(judge(core(code)))
    asked = re.findall(r"^#print axioms (.+)$", code, re.MULTILINE)
    if not asked or "env" not in result.get("response", {}):
        return result
    closing, listing = asked[-1], result.pop("axioms", {})
    usual = ["propext", *([closing] if f"exact {closing} _" in code else [])]
    usually = [listed(name, *([name] if name == closing else listing.get(name, usual))) for name in asked]
    replies = [each.replace("GOAL", closing) for each in result.pop("listed", usually)]
    said = messages(*(("info", reply) for reply in replies))["response"].get("messages", [])
    return {"response": {**result["response"], "messages": [*result["response"].get("messages", []), *said]}}
