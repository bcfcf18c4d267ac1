"""The checker as the rest of the pipeline sees it: text in, `Grade` out, whatever the text holds.

Covered: an answer that would stall, crash or exhaust algebra costs its child process, never the caller. The
caller waits for at most the deadline per gold answer, counted from the moment a ready child has the task. Usable from
any thread.
Not covered: algebra that is wrong. A verdict that is not CORRECT or INCORRECT says why, and is never turned into one.
"""

import json
import os
import re
import select
import subprocess
import sys
import time
from pathlib import Path

import pipeline
from pipeline.config.choices import Fallback
from pipeline.core.errors import StepvalueError
from pipeline.core.records import Grade, Verdict
from pipeline.graders.base import MAX_ANSWER_KEPT, of_any
from pipeline.graders.math import compare, extract, limits
from pipeline.graders.math.normal import normal_form
from pipeline.graders.process_pool import PooledChecker, VerdictCache
from pipeline.graders.settings import MathConfig

START_SECONDS = 120.0
TASKS_PER_CHILD = 5_000

NO_ANSWER = Grade(verdict=Verdict.NO_ANSWER, answer="", ms=0.0)

_PACKAGE_ROOT = str(Path(pipeline.__file__).resolve().parent.parent)
_INHERITED = ("LD_LIBRARY_PATH", "SYSTEMROOT", "TMPDIR", "COVERAGE_PROCESS_START")


class _Child:
    """One process of `pipeline.graders.math.child`, started when first needed and replaced after it was lost."""

    def __init__(self, config: MathConfig) -> None:
        self._config = config
        self._tasks = 0
        self.process: subprocess.Popen[bytes] | None = None

    def ask(self, task: dict[str, str]) -> Verdict:
        """The child's verdict on one task; TIMEOUT or CRASHED where it gave none. Raises if no child can be started."""
        process = self.process
        if process is None or process.poll() is not None or self._tasks >= TASKS_PER_CHILD:
            self.kill()
            process = self._start_again()
        self._tasks += 1
        try:
            assert process.stdin is not None
            process.stdin.write(json.dumps(task).encode() + b"\n")
            reply = _read_line(process, self._config.deadline_seconds)
        except TimeoutError:
            self.kill()
            return Verdict.TIMEOUT
        except (OSError, ValueError):
            reply = b""
        if not reply:
            self.kill()
            return Verdict.CRASHED
        return Verdict(json.loads(reply)["verdict"])

    def _start_again(self) -> subprocess.Popen[bytes]:
        """A child that is killed before it is ready, for want of memory for one, gets one more chance."""
        try:
            return self._start()
        except StepvalueError:
            return self._start()

    def _start(self) -> subprocess.Popen[bytes]:
        config = self._config
        # A relative entry would be looked up in whatever directory the child starts in.
        paths = [_PACKAGE_ROOT, *filter(os.path.isabs, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
        environment = {name: os.environ[name] for name in _INHERITED if name in os.environ}
        arguments = [str(config.memory_mib), str(config.deadline_seconds), str(config.relative_tolerance)]
        # -P: a file in the working directory must not be imported instead of a library.
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "pipeline.graders.math.child", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            cwd="/",
            start_new_session=True,
            env=environment | {"PYTHONPATH": os.pathsep.join(paths)},
        )
        self.process, self._tasks = process, 0
        try:
            ready = _read_line(process, START_SECONDS)
        except (TimeoutError, OSError):
            ready = b""
        if not ready:
            self.kill()
            raise StepvalueError(
                f"the answer checker's process does not start; run `{sys.executable} -m pipeline.graders.math.child"
                f" {' '.join(arguments)}` to see why (grader.memory_mib={config.memory_mib} may be too little)"
            )
        return process

    def kill(self) -> None:
        process, self.process = self.process, None
        if process is None:
            return
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()


def _read_line(process: subprocess.Popen[bytes], seconds: float) -> bytes:
    """One line from the child, b"" if it ended. Raises TimeoutError after `seconds`."""
    assert process.stdout is not None
    descriptor = process.stdout.fileno()
    # Not select(): a worker with many open files has descriptors above its limit of 1024.
    poller = select.poll()
    poller.register(descriptor, select.POLLIN)
    deadline = time.monotonic() + seconds
    line = b""
    while not line.endswith(b"\n"):
        if not poller.poll(max(0.0, deadline - time.monotonic()) * 1000):
            raise TimeoutError
        piece = os.read(descriptor, 4096)
        if not piece:
            return b""
        line += piece
    return line


def _bare(answer: str) -> str:
    """An answer without what people and models wrap around it. One over the limits stays what it is."""
    answer = answer.strip()
    if answer.isalnum() or len(answer) > limits.MAX_CHARS:
        return answer
    return (extract.final_answer(answer) if "\\boxed" in answer else None) or extract.unwrap(answer)


class MathChecker(PooledChecker[_Child]):
    """Grades answers. Holds up to `config.processes` children, started when the first answer needs algebra."""

    Config = MathConfig

    @classmethod
    def ending(cls, config: MathConfig) -> extract.AnswerSeen:
        return extract.AnswerSeen(pattern=re.compile(config.answer_pattern) if config.answer_pattern else None)

    @classmethod
    def ends_by_default(cls, config: MathConfig) -> bool:
        return config.answer_pattern is None

    def __init__(self, config: MathConfig) -> None:
        super().__init__([_Child(config) for _ in range(config.processes)])
        self._config = config
        self._pattern = re.compile(config.answer_pattern) if config.answer_pattern else None
        self._cache: VerdictCache[tuple[tuple[str, ...], str]] = VerdictCache()

    def final_answer(self, text: str, *, complete: bool = True) -> str | None:
        """The answer that a text states, by the settings of this checker.

        Of a text that was cut short (`complete` false) only an explicit statement counts, never `grader.fallback`, and only
        with something behind it: "the answer is 12" may have been on its way to 125.
        """
        if not complete:
            return self.stated_answer(text, complete=False)
        return extract.final_answer(text, pattern=self._pattern, fallback=self._config.fallback)

    def stated_answer(self, text: str, *, complete: bool = True) -> str | None:
        """The answer that a text marks as its final one, never what `grader.fallback` would take."""
        answer = extract.final_answer(text, pattern=self._pattern, fallback=Fallback.none)
        return None if not complete and answer is not None and text.endswith(answer) else answer

    def grade_answer(self, golds: tuple[str, ...], answer: str) -> Grade:
        """The verdict on a bare answer. Waits at most the deadline per gold."""
        return self.quick_answer(golds, answer) or self._slow_answer(golds, answer)

    def parses(self, gold: str) -> bool:
        """Whether answers can be compared with `gold`: a number, words, a letter, or LaTeX that is read whole."""
        if not compare.gold_form(gold) or limits.exceeded_limit(gold):
            return False
        return compare.is_plain(gold) or self._ask({"parse": gold}) is Verdict.CORRECT

    def quick_answer(self, golds: tuple[str, ...], answer: str | None) -> Grade | None:
        """The verdict of `grade_answer` where it takes microseconds; None where a child must decide."""
        if answer is None:
            return NO_ANSWER
        if len(golds) == 1 and not self._config.relative_tolerance and len(answer) <= limits.MAX_DIGITS:
            # Quicker than the memo.
            began = time.perf_counter()
            plain = compare.glance(golds[0], answer)
            if plain is not None:
                return Grade(verdict=plain, answer=answer, ms=(time.perf_counter() - began) * 1000)
        answer = _bare(answer)
        if not answer:
            return NO_ANSWER
        key = (golds, answer)
        known = self._cache.get(key)
        if known is not None:
            return known
        began = time.perf_counter()
        verdict = self._quick_verdict(golds, answer)
        return None if verdict is None else self._remember(key, verdict, began)

    def _quick_verdict(self, golds: tuple[str, ...], answer: str) -> Verdict | None:
        if limits.exceeded_limit(answer):
            return Verdict.OVER_LIMIT
        tolerance = self._config.relative_tolerance
        verdicts = {compare.quick_verdict(gold, answer, relative_tolerance=tolerance) for gold in golds}
        if None not in verdicts or Verdict.CORRECT in verdicts:
            return of_any(verdicts)
        return None if normal_form(answer) else Verdict.NO_ANSWER

    def _slow_answer(self, golds: tuple[str, ...], answer: str) -> Grade:
        answer = _bare(answer)
        began = time.perf_counter()
        tolerance = self._config.relative_tolerance
        verdicts: set[Verdict | None] = set()
        for gold in golds:
            verdict = compare.quick_verdict(gold, answer, relative_tolerance=tolerance)
            if verdict is None:
                over = limits.exceeded_limit(gold)
                verdict = Verdict.OVER_LIMIT if over else self._ask({"gold": gold, "answer": answer})
            verdicts.add(verdict)
            if verdict is Verdict.CORRECT:
                break
        return self._remember((golds, answer), of_any(verdicts), began)

    def _ask(self, task: dict[str, str]) -> Verdict:
        with self._child() as child:
            return child.ask(task)

    def _remember(self, key: tuple[tuple[str, ...], str], verdict: Verdict, began: float) -> Grade:
        grade = Grade(verdict=verdict, answer=key[1][:MAX_ANSWER_KEPT], ms=(time.perf_counter() - began) * 1000)
        # A crash may be the machine's doing, so the next such answer is tried again. A text of any length would fill memory.
        if verdict is not Verdict.CRASHED and len(key[1]) <= MAX_ANSWER_KEPT:
            self._cache.keep(key, grade)
        return grade
