"""Asks a verifier about the steps of chains, in child processes that are killed when they are late.

Covered: a step that hangs, crashes or fills the memory of its child is a fault of that step and costs no other step its
finding. A child that ends without a reply is asked again, because somebody else may have killed it. Usable from any thread; one
chain is asked about by one thread.
"""

import json
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import suppress

from pipeline.config.verify import VerifierConfig
from pipeline.core.errors import PlaceError, PluginError, StepvalueError
from pipeline.core.records import ChainText
from pipeline.graders.line_process import Process, end, read_line, start_module, write_line
from pipeline.graders.process_pool import ChildPool
from pipeline.runtime.objects import objects_here, packed
from pipeline.verifiers.base import CheckedStep, Covers, Fault, Finding, StepVerdict

START_SECONDS = 120.0
START_TRIES = 3
ASK_TRIES = 2
STEPS_PER_CHILD = 50_000
"""A new process now and then keeps what a verifier forgets to free within bounds."""
_MODULE = "pipeline.runtime.checking.child"


class StepChecker:
    """A verifier in up to `processes` child processes, each started when it is first needed."""

    def __init__(self, settings: VerifierConfig, processes: int) -> None:
        sent = packed(objects_here(), settings).line
        self._children = [_Child(settings, sent) for _ in range(processes)]
        self._pool = ChildPool(self._children, "this check")

    @property
    def steps(self) -> int:
        """The number of steps looked at so far."""
        return sum(child.steps for child in self._children)

    def start(self) -> None:
        """Start one of the processes. Raises PlaceError if that is not possible here, and PluginError."""
        with self._pool.child() as child:
            child.start()

    def checked(self, chain: ChainText) -> tuple[CheckedStep, ...]:
        """What the verifier says of each step. Raises PluginError where a plug-in fails, PlaceError if no process starts, and
        StepvalueError after `close`."""
        with self._pool.child() as child:
            return tuple(child.checked(chain))

    def close(self) -> None:
        """End the processes. Threads that still ask get a StepvalueError."""
        for child in self._children:
            child.interrupt()
        self._pool.close()


class _Child:
    """One process of `checking.child`. It is started when first needed and replaced after it ends."""

    def __init__(self, settings: VerifierConfig, sent: bytes) -> None:
        self._settings = settings
        self._sent = sent
        self._chain: str | None = None
        self._steps_of_process = 0
        self._closed = False
        self.steps = 0
        self.process: Process | None = None

    def checked(self, chain: ChainText) -> Iterator[CheckedStep]:
        for at, step in enumerate(chain.steps):
            if len(step) > self._settings.most_characters:
                yield CheckedStep(fault=Fault.TOO_LONG)
            else:
                yield self._ask(chain, at)
            self.steps += 1

    def start(self) -> Process:
        """The process, started if there is none. Tries again if it ends before it is ready, for example for lack of memory."""
        if self.process is not None and self._steps_of_process >= STEPS_PER_CHILD:
            self.kill()
        for _ in range(START_TRIES):
            if self._closed:
                raise StepvalueError("this check is closed")
            if self.process is None:
                self._start()
            if self.process is not None:
                return self.process
        raise PlaceError(
            f"the process of the verifier {self._settings.kind} does not start: run `{sys.executable} -m {_MODULE} "
            f"{' '.join(self._arguments)} </dev/null` to see why (verifier.memory_mib={self._settings.memory_mib} may be too "
            "small)"
        )

    def kill(self) -> None:
        process, self.process = self.process, None
        if process is not None:
            end(process)

    def interrupt(self) -> None:
        """Kill the process while another thread waits for it, and start no other."""
        self._closed = True
        process = self.process
        if process is not None and process.returncode is None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)

    @property
    def _arguments(self) -> list[str]:
        return [str(self._settings.memory_mib), str(self._settings.deadline_seconds)]

    def _start(self) -> None:
        process = start_module(_MODULE, self._arguments, environment={"PYTHONHASHSEED": "0"}, paths=sys.path)
        self.process, self._chain, self._steps_of_process = process, None, 0
        try:
            write_line(process, self._sent)
            reply = read_line(process, START_SECONDS)
        except OSError:
            reply = b""
        if not reply:
            self.kill()
        elif error := json.loads(reply).get("error"):
            self.kill()
            raise PluginError(error)

    def _ask(self, chain: ChainText, at: int) -> CheckedStep:
        for _ in range(ASK_TRIES):
            process = self.start()
            task: dict[str, object] = {"at": at}
            if self._chain != chain.chain_id:
                task |= {"problem": chain.problem, "steps": chain.steps}
            try:
                write_line(process, json.dumps(task).encode())
                reply = read_line(process, self._settings.deadline_seconds)
            except TimeoutError:
                self.kill()
                return CheckedStep(fault=Fault.DEADLINE)
            except OSError:
                reply = b""
            if reply:
                self._chain = chain.chain_id
                self._steps_of_process += 1
                return self._read(json.loads(reply))
            self.kill()
        if self._closed:
            raise StepvalueError("this check is closed")
        return CheckedStep(fault=Fault.CRASHED)

    def _read(self, result: dict[str, str]) -> CheckedStep:
        if "error" in result:
            raise PluginError(result["error"])
        if "fault" in result:
            # What filled its memory may still be there.
            self.kill()
            return CheckedStep(fault=Fault(result["fault"]))
        return CheckedStep(
            finding=Finding(
                verdict=StepVerdict(result["verdict"]), covers=Covers(result["covers"]), evidence=result["evidence"]
            )
        )
