"""vLLM's own server on this machine, for tests of what talks to servers."""

import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from pipeline.engines.vllm import reaper
from pipeline.engines.vllm.guard import mark_of_this_process
from tests.tiny.policy import ASSET

KEY = "sk-Secret-of-the-tests-0123456789"
NAME = "tiny-as-served"
START_SECONDS = 300


class VllmServer:
    """vLLM's own server in a process of its own, with a model folder and more `arguments`. Whatever becomes of this process, a
    guard ends it."""

    def __init__(self, log: Path, model: Path = ASSET, arguments: Sequence[str] = ()) -> None:
        self._served = ["--model", str(model), *arguments]
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self._port = int(probe.getsockname()[1])
        self.url = f"http://127.0.0.1:{self._port}/v1"
        self._log = log
        self._guard: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        mark = mark_of_this_process()
        self._guard = subprocess.Popen(
            [sys.executable, "-I", reaper.__file__, mark], stdin=subprocess.PIPE, start_new_session=True, env={}
        )
        environment = {
            "VLLM_API_KEY": KEY, "VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_CPU_OMP_THREADS_BIND": "nobind",
            "OMP_NUM_THREADS": "1", "VLLM_NO_USAGE_STATS": "1", "HF_HUB_OFFLINE": "1",
            "VLLM_WORKER_MULTIPROC_METHOD": "spawn", "SPT_NOENV": "1", reaper.MARK: mark,
        }  # fmt: skip
        # `vllm serve` is this module behind a command line that vllm-cpu's package name breaks.
        command = [
            sys.executable, "-m", "vllm.entrypoints.openai.api_server", *self._served,
            "--served-model-name", NAME, "--host", "127.0.0.1", "--port", str(self._port), "--dtype", "float32",
            "--enforce-eager", "--max-num-seqs", "64", "--enable-prompt-tokens-details",
        ]  # fmt: skip
        with self._log.open("ab") as log:
            process = subprocess.Popen(
                command, env={**os.environ, **environment}, stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        deadline = time.monotonic() + START_SECONDS
        while not self._answers():
            assert process.poll() is None, self._log.read_text()[-3000:]
            assert time.monotonic() < deadline, self._log.read_text()[-3000:]
            time.sleep(0.2)

    def kill(self) -> None:
        """SIGKILL to all of its processes."""
        guard, self._guard = self._guard, None
        if guard is not None:
            assert guard.stdin is not None
            guard.stdin.close()
            guard.wait(60)

    def _answers(self) -> bool:
        asked = urllib.request.Request(f"{self.url}/models", headers={"Authorization": f"Bearer {KEY}"})
        with suppress(urllib.error.URLError, OSError):
            return NAME.encode() in urllib.request.urlopen(asked, timeout=5).read()
        return False


@contextmanager
def serving(log: Path, model: Path = ASSET, *arguments: str) -> Iterator[VllmServer]:
    made = VllmServer(log, model, arguments)
    try:
        made.start()
        yield made
    finally:
        made.kill()
