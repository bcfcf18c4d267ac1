"""Grades a file of JSON lines: writes each line with its verdict, in the same order.

Verdicts that take microseconds are made in this process. The others are made by `grader.processes` threads, each of which waits
for a child process. An output file appears under its name when it is complete. Lines to standard output or a pipe are flushed
at once.
"""

import contextlib
import signal
import sys
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import lru_cache
from pathlib import Path
from typing import IO, Generic, TypeVar

from pipeline.cli.command import drop_rest, interrupt_on
from pipeline.config.label import GradeConfig
from pipeline.core.errors import InputError, Interrupted, StoreError, UsageError
from pipeline.core.records import Verdict
from pipeline.data.jsonl import numbered_lines
from pipeline.data.rows import blame, open_lines
from pipeline.graders.base import Checker
from pipeline.graders.lines import Case, Result, finish_line, gold_error, read_case, summary
from pipeline.graders.question import at_once, in_time
from pipeline.graders.registry import checker_for
from pipeline.storage.outputs import atomic_file

STANDARD = "-"
GOLDS_REMEMBERED = 4096
_PACKED = (".gz", ".zst")
MAX_WAITING = 10_000
MAX_WAITING_BYTES = 64 * 2**20
"""The sum of the sizes that are given with the results. One more result may wait."""
T = TypeVar("T")


class _Account:
    """Counts of the lines written so far. `first_error`: of the first line with an error."""

    def __init__(self) -> None:
        self.verdicts: Counter[Verdict | None] = Counter()
        self.errors = self.mended = 0
        self.first_error = ""

    def add(self, result: Result) -> None:
        self.verdicts[result.verdict] += 1
        self.mended += result.mended
        if result.error:
            self.errors += 1
            self.first_error = self.first_error or result.error


def grade_lines(config: GradeConfig) -> int:
    """Grade a file and print a summary on standard error. Returns exit code 0, also if the reader of a pipe has closed it.

    Raises InputError if the input cannot be read or some of its lines have errors (the others are graded), UsageError and
    StoreError for an output that cannot be written, and Interrupted.
    """
    began = time.monotonic()
    account = _Account()
    try:
        with interrupt_on(signal.SIGTERM), _input(config) as stream, _output(config) as write:

            def emit(result: Result) -> None:
                write(result.text)
                account.add(result)

            _grade(stream, config, emit)
    except BrokenPipeError:
        return 0
    except KeyboardInterrupt as error:
        done = account.verdicts.total()
        raise Interrupted(f"interrupted after {done:,} lines; start the same command again") from error
    sys.stderr.write(summary(account.verdicts, time.monotonic() - began, account.mended) + "\n")
    if account.errors:
        raise InputError(
            f"{account.errors:,} of {account.verdicts.total():,} lines have an error, the first: {account.first_error}"
        )
    return 0


def _grade(stream: IO[bytes], config: GradeConfig, emit: Callable[[Result], None]) -> None:
    with checker_for(config.grader) as checker, _threads(config.grader.processes) as threads:
        parses = lru_cache(maxsize=GOLDS_REMEMBERED)(checker.parses)
        in_order = InOrder(emit)
        for number, line in _numbered(stream, config.input):
            case, size = read_case(number, line), len(line or b"")
            grade = at_once(checker, case.asked) if case.asked else None
            if case.error or (grade and grade.verdict is not Verdict.UNPARSEABLE):
                in_order.put(finish_line(case, grade), size)
            else:
                in_order.put_later(threads.submit(_slowly, checker, parses, case), size)
        in_order.finish()


class InOrder(Generic[T]):
    """Calls `emit` with every result in the order of `put` and `put_later`, one call at a time.

    Results may be computed out of order. The thread that finishes the next result emits it, together with the known results
    after it. So a producer that waits for input does not delay results. The number and the bytes of waiting results are
    bounded. A failure is raised in the thread that puts. Only one thread may put.
    """

    def __init__(self, emit: Callable[[T], None]) -> None:
        self._emit = emit
        self._changed = threading.Condition()
        self._waiting: deque[tuple[Future[T], int]] = deque()
        self._bytes = 0
        self._failure: BaseException | None = None

    def put(self, result: T, size: int) -> None:
        """Add a known result. Raises the error that `emit` or an earlier result has raised."""
        known: Future[T] = Future()
        known.set_result(result)
        self.put_later(known, size)

    def put_later(self, result: "Future[T]", size: int) -> None:
        """Add a result that becomes known later. Blocks while too many results wait. Raises like `put`."""
        with self._changed:
            self._waiting.append((result, size))
            self._bytes += size
        result.add_done_callback(self._advance)
        self._wait_until(lambda: len(self._waiting) <= MAX_WAITING and self._bytes <= MAX_WAITING_BYTES)

    def finish(self) -> None:
        """Wait until all results are emitted. Raises like `put`."""
        self._wait_until(lambda: not self._waiting)

    def _wait_until(self, reached: Callable[[], bool]) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._failure is not None or reached())
        if self._failure is not None:
            raise self._failure

    def _advance(self, _known: "Future[T]") -> None:
        with self._changed:
            try:
                while self._failure is None and self._waiting and self._waiting[0][0].done():
                    result, size = self._waiting.popleft()
                    self._bytes -= size
                    self._emit(result.result())
            except BaseException as error:  # noqa: BLE001 - an executor drops the errors of callbacks; `put` raises them instead
                self._failure = error
            self._changed.notify_all()


def _slowly(checker: Checker, parses: Callable[[str], bool], case: Case) -> Result:
    """The result of a line that needs a child process: its verdict, or the error of one that cannot be graded."""
    assert case.asked is not None
    grade = in_time(checker, case.asked)
    if grade.verdict is not Verdict.UNPARSEABLE:
        return finish_line(case, grade)
    unread = [gold for gold in case.asked.golds if not parses(gold)]
    return finish_line(case, grade, gold_error(case, unread) if unread else "")


@contextlib.contextmanager
def _threads(count: int) -> Iterator[ThreadPoolExecutor]:
    threads = ThreadPoolExecutor(count)
    try:
        yield threads
    finally:
        # After a failure the waiting grades are not needed; running ones end at the checker's deadline.
        threads.shutdown(cancel_futures=True)


@contextlib.contextmanager
def _input(config: GradeConfig) -> Iterator[IO[bytes]]:
    if config.input == STANDARD:
        if sys.stdin is None:
            raise UsageError("standard input is closed: give input=FILE")
        yield sys.stdin.buffer
        return
    path = Path(config.input)
    if path.is_dir():
        raise UsageError(f"input={path} is a folder: name one file of JSON lines")
    if not path.exists():
        raise InputError(f"input={path}: there is no such file; relative names are relative to {Path.cwd()}")
    with blame("input", path):
        stream = open_lines(path)
    with stream:
        yield stream


def _numbered(stream: IO[bytes], name: str) -> Iterator[tuple[int, bytes | None]]:
    with blame("input", name):
        yield from numbered_lines(stream)


@contextlib.contextmanager
def _output(config: GradeConfig) -> Iterator[Callable[[bytes], None]]:
    if config.output == STANDARD:
        if sys.stdout is None:
            raise UsageError("standard output is closed: give output=FILE")
        yield _writing(sys.stdout.buffer, "standard output")
        return
    path = Path(config.output).resolve()
    _check_output(path, config)
    if path.exists() and not path.is_file():
        # A device or a pipe is written to directly, because renaming a file to its name would replace it.
        with path.open("wb") as stream:
            yield _writing(stream, str(path))
        return
    with atomic_file(path) as file:
        yield _writing(file, str(path), at_once=False)


def _check_output(path: Path, config: GradeConfig) -> None:
    if path.is_dir():
        raise UsageError(f"output={config.output} is a folder: name a file in it")
    if path.suffix.lower() in _PACKED:
        raise UsageError(f"output={config.output}: output is never compressed; choose a name without {path.suffix}")
    if config.input != STANDARD and path == Path(config.input).resolve():
        raise UsageError(f"output={config.output} is the input: name another file")


def _writing(stream: IO[bytes], name: str, *, at_once: bool = True) -> Callable[[bytes], None]:
    """Writes to a stream, whose errors name it. `at_once`: each text is flushed; after an error, nothing of it is left."""

    def write(text: bytes) -> None:
        try:
            stream.write(text)
            if at_once:
                stream.flush()
        except OSError as error:
            if at_once:
                drop_rest(stream)
            if isinstance(error, BrokenPipeError):
                raise
            raise StoreError(
                f"output: {name} cannot be written: {error.strerror or error}; free space or permit writing, then start again"
            ) from error

    return write
