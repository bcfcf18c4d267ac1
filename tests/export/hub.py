"""A stand-in for the Hugging Face Hub on the loopback interface: data sets, commits and files of a git LFS server."""

import base64
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class StandIn(ThreadingHTTPServer):
    """`refuses`: path prefix -> HTTP status; 0 breaks the connection. `large`: names that go through LFS."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.refuses: dict[str, int] = {}
        self.large: set[str] = set()
        self.calls: list[str] = []
        self.tokens: set[str | None] = set()
        self.private: dict[str, bool] = {}
        self.files: dict[str, bytes] = {}
        self.objects: dict[str, bytes] = {}

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    server: StandIn

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if not self._refused():
            self._answer(200, self._made(body))

    def do_PUT(self) -> None:
        self.do_POST()

    def do_GET(self) -> None:
        self._answer(404, {"error": "not found"})

    def log_message(self, *_arguments: object) -> None:
        pass

    def _refused(self) -> bool:
        self.server.calls.append(self.path)
        self.server.tokens.add(self.headers.get("Authorization"))
        for prefix, status in self.server.refuses.items():
            if self.path.startswith(prefix):
                if status:
                    self._answer(status, {"error": "no, <b>never</b>"})
                else:
                    self.connection.close()
                return True
        return False

    def _made(self, body: bytes) -> Any:
        server = self.server
        if self.command == "PUT":
            server.objects[self.path.rpartition("/")[2]] = body
            return {}
        if self.path == "/api/repos/create":
            asked = json.loads(body)
            name = f"{asked['organization']}/{asked['name']}"
            assert asked["type"] == "dataset"
            server.private.setdefault(name, asked.get("visibility") == "private" or bool(asked.get("private")))
            return {"url": f"{server.endpoint}/datasets/{name}", "name": name}
        if self.path == "/api/validate-yaml":
            assert json.loads(body)["content"].startswith("---\n")
            return {"errors": [], "warnings": []}
        if "/preupload/" in self.path:
            paths = {each["path"]: each["path"] in server.large for each in json.loads(body)["files"]}
            modes = {path: "lfs" if large else "regular" for path, large in paths.items()}
            return {
                "files": [{"path": path, "uploadMode": mode, "shouldIgnore": False} for path, mode in modes.items()]
            }
        if self.path.endswith("/info/lfs/objects/batch"):
            wanted = json.loads(body)["objects"]
            for each in wanted:
                each["actions"] = {"upload": {"href": f"{server.endpoint}/objects/{each['oid']}"}}
            return {"transfer": "basic", "objects": wanted}
        assert "/commit/" in self.path, self.path
        for line in body.splitlines():
            part = json.loads(line)
            value = part["value"]
            if part["key"] == "file":
                server.files[value["path"]] = base64.b64decode(value["content"])
            if part["key"] == "lfsFile":
                server.files[value["path"]] = server.objects[value["oid"]]
        data_set = "/".join(self.path.split("/")[2:5])
        url = f"{server.endpoint}/{data_set}/commit/{'0' * 40}"
        return {"commitOid": "0" * 40, "commitUrl": url, "success": True}

    def _answer(self, status: int, content: Any) -> None:
        body = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@contextmanager
def stand_in() -> Iterator[StandIn]:
    server = StandIn()
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
