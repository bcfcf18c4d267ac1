"""The child process that asks a verifier about steps. It reads one line per task and writes one JSON result per line.

The first line holds the settings of the verifier, and the objects that a Python call gave. Then:

    {"problem": "...", "steps": ["...", "..."], "at": 0}  ->  {"verdict": "holds", "covers": "part", "evidence": "1+1=2"}
    {"at": 1}                                             ->  {"fault": "memory"}

A task without steps is about a step of the same chain as the task before. A plug-in that raises is an `error`, as is
what a verifier raises on purpose, and ends the run; what a step costs in memory or depth is a fault of the step.

Covered: see `graders.line_child`; a child whose parent has died ends within a second, with all that it started, unless code
that is not Python holds it, and then at its limit of processor time. Not covered: wall time, which the parent limits.
"""

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import ExitStack

from pipeline.config.verify import VerifierConfig
from pipeline.core.errors import PluginError, StepvalueError
from pipeline.graders.line_child import limit_next_task, lines, results_alone
from pipeline.runtime.objects import Packed, offered
from pipeline.verifiers.base import Fault, StepInContext, Verifier
from pipeline.verifiers.registry import verifier_for

PARENT_CHECK_SECONDS = 0.5


def found_at(verifier: Verifier, problem: str, steps: Sequence[str], at: int) -> dict[str, str]:
    """The result for step `at`, from 0, of the protocol."""
    step = StepInContext(problem=problem, earlier=tuple(steps[:at]), step=steps[at])
    try:
        found = verifier.verify(step)
        return {"verdict": found.verdict.value, "covers": found.covers.value, "evidence": found.evidence}
    except PluginError as error:
        if (fault := _fault_of(error.__cause__)) is not None:
            return {"fault": fault.value}
        return {"error": str(error)}
    except StepvalueError as error:
        # What a verifier asks does not answer: that is no fault of a step.
        return {"error": str(error)}
    except Exception as error:  # noqa: BLE001  one step must not end a run of millions; the fault is counted and printed
        return {"fault": (_fault_of(error) or Fault.CRASHED).value}


def _fault_of(error: BaseException | None) -> Fault | None:
    """What a step costs that its verifier did not expect."""
    if isinstance(error, MemoryError):
        return Fault.MEMORY
    return Fault.CRASHED if isinstance(error, RecursionError) else None


def _end_with_parent(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(PARENT_CHECK_SECONDS)
    # This process leads its group, in which are the processes that a verifier has started.
    os.killpg(os.getpid(), signal.SIGKILL)


def main(memory_mib: int, cpu_seconds: float) -> None:
    """Serve tasks until standard input ends or the parent has died."""
    threading.Thread(target=_end_with_parent, args=(os.getppid(),), daemon=True).start()
    results = results_alone(memory_mib)
    asked = lines()

    def reply(result: dict[str, str]) -> None:
        os.write(results, json.dumps(result).encode() + b"\n")

    with ExitStack() as stack:
        try:
            objects, settings = Packed.of_line(next(asked)).unpacked()
            assert isinstance(settings, VerifierConfig)
            stack.enter_context(offered(objects))
            verifier = verifier_for(settings)
        except StepvalueError as error:
            reply({"error": str(error)})
            return
        reply({"ready": "true"})
        problem = ""
        steps: list[str] = []
        for line in asked:
            task = json.loads(line)
            problem, steps = task.get("problem", problem), task.get("steps", steps)
            limit_next_task(cpu_seconds)
            reply(found_at(verifier, problem, steps, task["at"]))


if __name__ == "__main__":
    main(int(sys.argv[1]), float(sys.argv[2]))
