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
from pipeline.graders.line_process import START_SECONDS, LineChild, Process, read_line, write_line
from pipeline.graders.process_pool import ChildPool
from pipeline.runtime.objects import objects_here, packed
from pipeline.verifiers.base import CheckedStep, Covers, Fault, Finding, StepVerdict

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


class _Child(LineChild):
    """A process of `checking.child`."""

    def __init__(self, settings: VerifierConfig, sent: bytes) -> None:
        self._settings = settings
        self._sent = sent
        self._chain = ""
        self._closed = False
        self.steps = 0
        arguments = [str(settings.memory_mib), str(settings.deadline_seconds)]
        not_started = PlaceError(
            f"the process of the verifier {settings.kind} does not start: run `{sys.executable} -m {_MODULE} "
            f"{' '.join(arguments)} </dev/null` to see why (verifier.memory_mib={settings.memory_mib} may be too small)"
        )
        environment = {"PYTHONHASHSEED": "0"}
        super().__init__(_MODULE, arguments, STEPS_PER_CHILD, not_started, environment=environment, paths=sys.path)

    def checked(self, chain: ChainText) -> Iterator[CheckedStep]:
        for at, step in enumerate(chain.steps):
            if len(step) > self._settings.most_characters:
                yield CheckedStep(fault=Fault.TOO_LONG)
            else:
                yield self._checked(chain, at)
            self.steps += 1

    def is_ready(self, process: Process) -> bool:
        self._refuse_closed()
        write_line(process, self._sent)
        reply = read_line(process, START_SECONDS)
        if reply and (error := json.loads(reply).get("error")):
            self.kill()
            raise PluginError(error)
        return bool(reply)

    def interrupt(self) -> None:
        """Kill the process while another thread waits for it, and start no other."""
        self._closed = True
        process = self.process
        if process is not None and process.returncode is None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)

    def _refuse_closed(self) -> None:
        if self._closed:
            raise StepvalueError("this check is closed")

    def _checked(self, chain: ChainText, at: int) -> CheckedStep:
        def task() -> bytes:
            known = self.tasks and self._chain == chain.chain_id
            texts = {} if known else {"problem": chain.problem, "steps": chain.steps}
            return json.dumps({"at": at, **texts}).encode()

        try:
            reply = self.ask(task, self._settings.deadline_seconds)
        except TimeoutError:
            return CheckedStep(fault=Fault.DEADLINE)
        if not reply:
            self._refuse_closed()
            return CheckedStep(fault=Fault.CRASHED)
        self._chain = chain.chain_id
        return self._read(json.loads(reply))

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
