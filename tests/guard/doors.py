"""The doors into the program: commands in a process of their own, and a Ray head that they join."""

import contextlib
import json
import os
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent
START_SECONDS = 90.0
BATCH_SECONDS = 280.0


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What a command came to."""

    code: int
    out: str
    err: str


@dataclass(frozen=True, kw_only=True)
class Part:
    """Commands to be run in a folder, and what is to be made of their answers once all are there.

    Many parts share a process, for it takes longer to start than most commands do.
    """

    folder: Path
    commands: Sequence[str]
    collect: Callable[[Sequence[Answer]], dict[str, Any]]


@dataclass(frozen=True, kw_only=True)
class Doors:
    """Runs commands; `label` joins the Ray cluster at `address`."""

    address: str
    environment: Mapping[str, str]

    def run(self, folder: Path, commands: Sequence[str]) -> list[Answer]:
        """The commands in turn, in `folder`, written as in a shell."""
        words = [self._words(shlex.split(command)) for command in commands]
        with tempfile.TemporaryDirectory() as aside:
            answers = Path(aside) / "answers.json"
            ended = subprocess.run(
                [sys.executable, "-m", "tests.guard.batch", str(answers)],
                cwd=folder,
                env={**os.environ, **self.environment},
                input=json.dumps(words),
                capture_output=True,
                text=True,
                timeout=BATCH_SECONDS,
                check=False,
            )
            if ended.returncode:
                raise RuntimeError(f"the commands were not run: {ended.stderr[-2000:]}")
            return [Answer(**answer) for answer in json.loads(answers.read_text(encoding="utf-8"))]

    def run_parts(self, parts: Mapping[str, Part]) -> dict[str, dict[str, Any]]:
        """What becomes of each part."""
        lines = [line for part in parts.values() for line in (f"cd {part.folder}", *part.commands)]
        answers = iter(self.run(ROOT, lines))
        found = {}
        for name, part in parts.items():
            next(answers)
            found[name] = part.collect([next(answers) for _ in part.commands])
        return found

    def _words(self, words: list[str]) -> list[str]:
        return [*words, f"cluster.address={self.address}"] if words[0] == "label" else words


@contextlib.contextmanager
def opened() -> Iterator[Doors]:
    """Doors with a Ray head behind them, on the loopback interface."""
    port = _free_port()
    environment = {
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN": "stepvalue-guard-" + "0" * 32,
        "PYTHONPATH": str(ROOT),
    }
    with tempfile.TemporaryDirectory(prefix="sv-guard-", dir="/tmp") as folder:  # Ray's sockets want a short path
        command = [
            str(Path(sys.executable).with_name("ray")), "start", "--head", "--block", "--disable-usage-stats",
            "--node-ip-address=127.0.0.1", f"--port={port}", "--include-dashboard=false",
            f"--dashboard-agent-listen-port={_free_port()}", "--num-cpus=2", "--object-store-memory=100000000",
            f"--temp-dir={folder}",
        ]  # fmt: skip
        with (Path(folder) / "head.log").open("wb") as log:
            head = subprocess.Popen(
                command,
                env={**os.environ, **environment},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        try:
            _wait_for(port)
            yield Doors(address=f"127.0.0.1:{port}", environment=environment)
        finally:
            head.send_signal(signal.SIGTERM)
            try:
                head.wait(20)
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(head.pid, signal.SIGKILL)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait_for(port: int) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    raise TimeoutError(f"nothing listens on port {port}")
