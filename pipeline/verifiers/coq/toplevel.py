"""A process of Coq's toplevel that is given sentences one at a time.

Covered: no user's settings, no environment, and a working folder that no longer exists; limits of memory, and of processor time
for each sentence; no file can be written, nor a core dump; a sentence that is late, or that prints too much, ends the process.
It is in the process group of its parent, and ends when its input does. Not covered: what else the account may read, since
sentences that read files do not get here (`commands`).
"""

import math
import os
import re
import resource
import secrets
import select
import shutil
import subprocess
import tempfile
import time
import weakref
from contextlib import suppress
from functools import cache

from pipeline.graders.line_child import limit
from pipeline.graders.line_process import end, write_line
from pipeline.verifiers.coq.replies import Reply, Said, end_of, reply
from pipeline.verifiers.coq.session import Ended

PROGRAM = "coqtop"
SEARCHED = "/usr/local/bin:/usr/bin:/bin"
"""Where the program is looked for, on each machine and in each process alike."""
REMEDY = "apt-get install coq"
START_SECONDS = 30.0
CPU_SLACK_SECONDS = 2
_QUIET = "Set Silent. Set Printing Width 100000."
"""Goals are not printed, and what is printed is not broken into lines."""
MOST_OUTPUT = 1 << 20
"""Bytes that Coq may print about a sentence."""
_VERSION = re.compile(r"version (\S+)")


def program() -> str | None:
    """The path of `coqtop`, None if there is none."""
    return shutil.which(PROGRAM, path=SEARCHED)


@cache
def version(path: str) -> str:
    """What the program says its version is, empty if it does not."""
    try:
        said = subprocess.run(
            [path, "--version"], capture_output=True, text=True, timeout=START_SECONDS, env={}, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    found = _VERSION.search(said.stdout)
    return found[1].rstrip(",") if found else ""


class Toplevel:
    """A running toplevel. `state`: the number of the state that it is in. Raises Ended if it does not start."""

    def __init__(self, path: str, memory_mib: int) -> None:
        folder = tempfile.mkdtemp(prefix="stepvalue-coq-")
        self._process = subprocess.Popen(
            [path, "-q", "-emacs", "-color", "no", "-w", "none"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            bufsize=0,
            cwd=folder,
            env={"HOME": folder, "LANG": "C.UTF-8", "LC_ALL": "C.UTF-8"},
        )
        self._end = weakref.finalize(self, end, self._process)
        self.state = 0
        try:
            self._limit(resource.RLIMIT_CORE, 0)
            self._limit(resource.RLIMIT_FSIZE, 0)
            self._limit(resource.RLIMIT_AS, memory_mib << 20)
            # The first number may be any; what is asked for does not exist.
            self.state = self._asked(_QUIET, START_SECONDS, before=-1).state
        except BaseException:
            self.close()
            raise
        finally:
            # The process stays in it, and nothing is left of it if this one is killed.
            shutil.rmtree(folder, ignore_errors=True)

    def ask(self, sentence: str, seconds: float) -> Reply:
        """What Coq says of a sentence, which has no line end. Raises Ended."""
        try:
            found = self._asked(sentence, seconds, before=self.state)
        except Ended:
            self.close()
            raise
        self.state = found.state
        return found

    def back_to(self, state: int, seconds: float) -> bool:
        """Go back to an earlier state. Returns whether it is there. Raises Ended."""
        if state == self.state:
            return True
        try:
            self.state = self._asked(f"BackTo {state}.", seconds, before=-1).state
        except Ended:
            self.close()
            raise
        return self.state == state

    def close(self) -> None:
        """End the process. It has no children."""
        self._end()

    def _asked(self, sentence: str, seconds: float, before: int) -> Reply:
        nonce = f"stepvalue_{secrets.token_hex(8)}"
        self._limit_processor(seconds)
        try:
            write_line(self._process, f"{sentence}\nCheck {nonce}.".encode())
        except OSError as error:
            raise Ended("Coq has ended") from error
        found = reply(self._read_until(end_of(nonce), seconds).decode(errors="replace"), nonce, before)
        if found is None:
            raise Ended("Coq gave no prompt")
        return found if before >= 0 else Reply(said=Said.ACCEPTED, state=found.state, proof=found.proof)

    def _read_until(self, end: re.Pattern[bytes], seconds: float) -> bytes:
        deadline = time.monotonic() + seconds
        assert self._process.stdout is not None
        descriptor = self._process.stdout.fileno()
        poller = select.poll()
        poller.register(descriptor, select.POLLIN)
        said = b""
        # The end is short, so that it is looked for in the last part only.
        while not end.search(said[-2_000:]):
            if len(said) > MOST_OUTPUT:
                raise Ended(f"Coq printed more than {MOST_OUTPUT >> 20} MiB")
            if not poller.poll(max(0.0, deadline - time.monotonic()) * 1000):
                raise Ended(f"Coq took more than {seconds:g} s", is_late=True)
            piece = os.read(descriptor, 65536)
            if not piece:
                raise Ended("Coq has ended, perhaps for lack of memory")
            said += piece
        return said

    def _limit(self, kind: int, value: int) -> None:
        limit(kind, value, self._process.pid)

    def _limit_processor(self, seconds: float) -> None:
        """Of the next sentence, so that a process whose parent has died does not run on."""
        with suppress(OSError, ValueError):
            with open(f"/proc/{self._process.pid}/stat", encoding="ascii", errors="replace") as file:
                fields = file.read().rpartition(")")[2].split()
            used = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
            self._limit(resource.RLIMIT_CPU, math.ceil(used + seconds) + CPU_SLACK_SECONDS)
