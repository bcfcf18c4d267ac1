"""A model is downloaded once per node, whatever the number of workers that ask for it at the same time.

vLLM takes a lock around the download, and huggingface_hub one around each file. The hub here is a server on this machine. Not
covered: file systems without locks, and downloads by Xet, which this hub does not offer.
"""

import hashlib
import json
import os
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

MODEL = "some/model"
COMMIT = "0" * 40
FILES = {"config.json": b'{"model_type": "llama"}', "model.safetensors": os.urandom(1 << 16)}
PATIENCE_SECONDS = 90.0
"""How long the hub holds the weights back until every worker has asked for the list of files."""
HELD_SECONDS = 2.0
"""How long it holds them back after that: time to ask for the same file."""
WORKERS = 2
SECONDS = 280

pytestmark = pytest.mark.nightly


class Hub(ThreadingHTTPServer):
    """Serves MODEL as the hub does, and counts the bodies that it sends."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.sent: Counter[str] = Counter()
        self.workers: set[str] = set()
        self.others: list[str] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    server: Hub
    protocol_version = "HTTP/1.1"

    def do_HEAD(self) -> None:
        self._answer(with_body=False)

    def do_GET(self) -> None:
        self._answer(with_body=True)

    def log_message(self, *_: object) -> None: ...

    def _answer(self, *, with_body: bool) -> None:
        if token := self.headers.get("Authorization"):  # redirects are followed without
            self.server.workers.add(token)
        path = self.path.partition("?")[0]
        name = path.rpartition("/")[2]
        if path.startswith(f"/{MODEL}/resolve/") and name in FILES:
            body, headers = (
                FILES[name],
                {"X-Repo-Commit": COMMIT, "ETag": f'"{hashlib.sha256(FILES[name]).hexdigest()}"'},
            )
            if with_body:
                self.server.sent[name] += 1
                if name.endswith(".safetensors"):
                    self._wait()
        elif path.startswith(f"/api/models/{MODEL}/tree/"):
            rows = [{"type": "file", "path": each, "size": len(data), "oid": COMMIT} for each, data in FILES.items()]
            body, headers = json.dumps(rows).encode(), {"Content-Type": "application/json"}
        elif path.startswith(f"/api/models/{MODEL}"):
            about = {"id": MODEL, "sha": COMMIT, "siblings": [{"rfilename": each} for each in FILES]}
            body, headers = json.dumps(about).encode(), {"Content-Type": "application/json"}
        else:
            self.server.others.append(path)
            self.send_response(404)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        self.send_response(200)
        for header, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(header, value)
        self.end_headers()
        if with_body:
            self.wfile.write(body)

    def _wait(self) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while len(self.server.workers) < WORKERS and time.monotonic() < deadline:
            time.sleep(0.05)
        time.sleep(HELD_SECONDS)


@pytest.fixture
def hub() -> Iterator[Hub]:
    with Hub() as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def download(hub: Hub, home: Path) -> list[str]:
    """The folders in which WORKERS processes have the weights, which they ask for as vLLM's engine does."""
    code = (
        "from vllm.model_executor.model_loader.weight_utils import download_weights_from_hf\n"
        f"print('folder', download_weights_from_hf({MODEL!r}, None, ['*.safetensors', '*.bin']))"
    )
    own = {name: value for name, value in os.environ.items() if not name.startswith(("HF_", "HUGGINGFACE"))}
    hub_only = {"HF_ENDPOINT": hub.url, "HF_HOME": str(home), "HF_HUB_DISABLE_XET": "1"}
    # Longer than the hub holds the weights back, or a client would give up and ask again.
    hub_only |= {"HF_HUB_DOWNLOAD_TIMEOUT": str(SECONDS), "HF_HUB_ETAG_TIMEOUT": str(SECONDS)}
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", code],
            env={**own, **hub_only, "HF_TOKEN": f"hf_worker{number}"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for number in range(WORKERS)
    ]
    folders = []
    for process in processes:
        output, errors = process.communicate(timeout=SECONDS)
        assert process.returncode == 0, errors
        folders.append(output.rpartition("folder ")[2].strip())
    return folders


@pytest.mark.timeout(2 * SECONDS)
def test_workers_of_a_node_download_a_model_once(hub: Hub, tmp_path: Path) -> None:
    pytest.importorskip("vllm")
    (folder,) = set(download(hub, tmp_path))
    assert (Path(folder) / "model.safetensors").read_bytes() == FILES["model.safetensors"]
    assert len(hub.workers) == WORKERS, "all asked at the same time"
    assert hub.sent["model.safetensors"] == 1, hub.sent
