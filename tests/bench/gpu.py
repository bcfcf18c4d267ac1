"""`make bench-gpu MODEL=...`: the first half hour on a GPU, unattended: one table and one JSON file in `OUT`.

MODEL is one of `architectures/`, which is given random weights and a small tokenizer, so that nothing is downloaded; or a
Hugging Face name or a local folder, with its own weights. Random weights give random text of the full length. Without an
NVIDIA GPU it is a trial on the CPU, with little work and no bound.

It uses one GPU, whatever the machine has. Each part (see `gpu_parts`) is a process of its own, with a time limit: one that
fails, hangs or is killed does not end the others, and the table says why. Not covered: several GPUs and several nodes.
"""

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import psutil

from pipeline.engines.detected_hardware import is_cpu_build
from tests.bench.gpu_parts import PARTS, Part
from tests.bench.gpu_table import JSON, TEXT, Result, State, table, write
from tests.bench.gpu_work import ON_CPU, ON_GPU, Job, gpu_name, job, shipped
from tests.bench.results import FLAG, origin, printed
from tests.checkout import ROOT

MINUTES = 30.0
TAIL = 2000
"""Characters of a part's output that are kept where it gives no reason itself."""
GRACE_SECONDS = 10.0


def main() -> int:
    asked = _arguments().parse_args()
    gpu = gpu_name()
    if gpu and is_cpu_build():
        print(
            "this Python has vLLM's CPU build: make an environment for the GPU as tests/bench/README.md says, and name it, "
            "GPU_PYTHON=ENVIRONMENT/bin/python",
            file=sys.stderr,
        )
        return 2
    one_gpu(gpu)
    with printed(f"bench-gpu {asked.model}", record=asked.record):
        results = measure(asked.model, gpu, asked.out, minutes=asked.minutes, parts=asked.parts)
    return int(any(result.state in (State.FAILED, State.WRONG) for result in results))


def _arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="make bench-gpu", description="The first half hour on a GPU.")
    parser.add_argument("model", help=f"{', '.join(shipped())}, a Hugging Face name or a folder")
    parser.add_argument("--out", type=Path, default=Path("runs/bench-gpu"), help=f"folder for {TEXT} and {JSON}")
    parser.add_argument("--minutes", type=float, default=MINUTES, help="after which no part begins or goes on")
    parser.add_argument("--parts", nargs="+", choices=[part.name for part in PARTS], help="these alone")
    parser.add_argument(FLAG, action="store_true", help="append the table to tests/bench/RESULTS.md")
    return parser


def one_gpu(gpu: str | None) -> None:
    """Let this process and its children see one GPU: the first of those that they may see."""
    if gpu:
        os.environ["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"  # as nvidia-smi counts them
        os.environ["CUDA_VISIBLE_DEVICES"] = os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0]


def measure(
    name: str, gpu: str | None, out: Path, *, minutes: float = MINUTES, parts: Sequence[str] | None = None
) -> list[Result]:
    """All parts, or those named, within `minutes`. Prints the table and writes both files."""
    deadline = time.monotonic() + 60 * minutes
    where = origin()
    results: list[Result] = []
    with tempfile.TemporaryDirectory(prefix="stepvalue-bench-", ignore_cleanup_errors=True) as work:
        made = job(name, Path(work), gpu, ON_GPU if gpu else ON_CPU)
        weights = ", random weights," if made.random_weights else ""
        model = f"{name}{weights} on {gpu or 'the CPU: no NVIDIA GPU was found'}"
        print(model, flush=True)
        for part in PARTS:
            if parts is None or part.name in parts:
                left = deadline - time.monotonic()
                results.append(isolated(part, made, results, min(part.limit_seconds, left)))
                for line in table(results[-1:]):
                    print(line, flush=True)
                write(out, where, model, results)
    print(f"\n{out / TEXT} and {out / JSON} hold this")
    return results


def isolated(part: Part, made: Job, before: Sequence[Result], seconds: float) -> Result:
    """A part in a process of its own, which ends after `seconds` with all that it started."""
    if seconds <= 0:
        return Result(part=part.name, state=State.SKIPPED, why="no time was left: --minutes")
    made.save(made.folder / "job.json")
    (made.folder / "before.jsonl").write_text("".join(result.to_json() + "\n" for result in before))
    command = [sys.executable, "-m", "tests.bench.gpu_parts", str(made.folder), part.name]
    return ended(part.name, command, made.folder / f"{part.name}.json", made.folder / f"{part.name}.log", seconds)


def ended(
    part: str,
    command: Sequence[str],
    result: Path,
    log: Path,
    seconds: float,
    clock: Callable[[], float] = time.monotonic,
) -> Result:
    """What the command writes to `result`; else why it did not."""
    began = clock()
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    try:
        code: int | None = process.wait(seconds)
    except subprocess.TimeoutExpired:
        code = None
    finally:
        _end(process)
    took = clock() - began
    if result.is_file():
        return Result.from_json(result.read_text("utf-8"))
    tail = log.read_text("utf-8", errors="replace")[-TAIL:]
    how = f"did not end within {seconds:.0f} s" if code is None else f"ended with {_code(code)}"
    return Result(part=part, state=State.FAILED, seconds=took, why=f"{how}; its last words: {tail}")


def _code(code: int) -> str:
    return f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"


def _end(process: "subprocess.Popen[bytes]") -> None:
    """End what is left of a part: first as a user would, so that its engines release the device."""
    with suppress(psutil.Error):
        family = psutil.Process(process.pid).children(recursive=True)
        for member in family:
            with suppress(psutil.Error):
                member.terminate()
        _, left = psutil.wait_procs(family, GRACE_SECONDS)
        for member in left:
            with suppress(psutil.Error):
                member.kill()
    # Its group, which it leads: what it has started itself, also where it is gone. Engines end with their owners.
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


if __name__ == "__main__":
    sys.exit(main())
