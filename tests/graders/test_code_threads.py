"""Programs that start threads behind Python's back, thousands in a moment: the limit of threads holds at every moment."""

import json
import os
import platform
import socket
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from pipeline.config.choices import Sandbox
from pipeline.core.errors import StepvalueError
from pipeline.core.records import Verdict
from pipeline.graders.code import child_process, thread_limit
from pipeline.graders.code.checker import CodeChecker
from pipeline.graders.code.thread_limit import MAX_THREADS, listen
from tests.graders.conftest import code_config, keeper_of

pytestmark = pytest.mark.slow

Maker = Callable[..., CodeChecker]

ALLOWED = 80
QUICK_TRIES = 4
TRIES = 500
"""Of all attacks together."""
PRINTS = json.dumps({"inputs": [""], "outputs": ["done"]})

# Each thread lives for 15 milliseconds, which is less than the time between two looks at a program.
FROM_C = """
import ctypes, mmap, threading, time
libc = ctypes.CDLL(None)
libc.clone.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p]
function = ctypes.cast(libc.usleep, ctypes.c_void_p)
size, count = 2**14, 2000
stacks = mmap.mmap(-1, size * count)
base = ctypes.addressof(ctypes.c_char.from_buffer(stacks))
def start(first):
    for n in range(first, count, {starters}):
        libc.clone(function, base + size * (n + 1) - 64, 0x50f00, 15000)
starters = [threading.Thread(target=start, args=(n,)) for n in range({starters})]
for starter in starters: starter.start()
for starter in starters: starter.join()
time.sleep(0.1)
print('done')
"""
# Clones twice, sleeps for 5 milliseconds and ends; each new thread does the same. It never touches its stack.
MACHINE_CODE = """
import ctypes, mmap, time
code = bytes.fromhex('41bc02000000' 'b838000000' 'bf000f0500' '31f6' '31d2' '4531d2' '4531c0' '0f05' '85c0' '74e0'
    '41ffcc' '75e1' 'b823000000' '488d3d0d000000' '31f6' '0f05' 'b83c000000' '31ff' '0f05')
code = code + bytes(8) + (5_000_000).to_bytes(8, 'little')
page = mmap.mmap(-1, 4096, prot=7)
page.write(code)
stack = mmap.mmap(-1, 2**16)
address, top = (ctypes.addressof(ctypes.c_char.from_buffer(m)) for m in (page, stack))
libc = ctypes.CDLL(None)
libc.clone.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p]
for n in range(20):
    libc.clone(address, top + 2**16 - 64, 0x50f00, None)
    time.sleep(0.01)
print('done')
"""
# Signals interrupt the calls, before and after they are answered.
SIGNALS = (
    "import signal\nsignal.signal(signal.SIGALRM, lambda *_: None)\nsignal.setitimer(signal.ITIMER_REAL, 1e-4, 1e-4)\n"
)
ATTACKS = {
    "one starter": FROM_C.format(starters=1),
    "eight starters": FROM_C.format(starters=8),
    "signals": SIGNALS + FROM_C.format(starters=8),
}
if platform.machine() == "x86_64":
    ATTACKS["every thread starts two"] = MACHINE_CODE


class Watcher:
    """Looks at the processes of a checker's child without a pause. `most`: the most threads that one of them had at a look."""

    def __init__(self, checker: CodeChecker) -> None:
        self._parent = keeper_of(checker).pid
        self._others: set[str] = set()
        self.most = self.looks = 0
        self.ended = False

    def watch(self) -> None:
        while not self.ended:
            here = set(filter(str.isdigit, os.listdir("/proc")))
            self._others &= here
            for pid in here - self._others:
                with suppress(OSError):
                    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
                    if int(fields[1]) == self._parent:
                        self.most = max(self.most, int(fields[17]))
                        self.looks += 1
                    else:
                        self._others.add(pid)


@contextmanager
def watched(checker: CodeChecker) -> Iterator[Watcher]:
    watcher = Watcher(checker)
    thread = threading.Thread(target=watcher.watch)
    thread.start()
    try:
        yield watcher
    finally:
        watcher.ended = True
        thread.join()


def most_threads(checker: CodeChecker, program: str, tries: int) -> int:
    """The most threads that a watcher sees in this number of runs of a program. It may pass if it waits for its threads."""
    with watched(checker) as watcher:
        verdicts = Counter(checker.grade_answer((PRINTS,), f"{program}\n# {n}").verdict.value for n in range(tries))
    print(f"{watcher.most} threads at most in {tries} tries and {watcher.looks} looks: {dict(verdicts)}")
    assert watcher.looks > tries * 5
    assert verdicts.keys() <= {Verdict.INCORRECT.value, Verdict.CORRECT.value}
    return watcher.most


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.nightly if name in ("one starter", "signals") else ()) for name in ATTACKS],
)
def test_threads_that_come_and_go_between_looks_are_never_too_many(own_checker: Maker, name: str) -> None:
    checker = own_checker(cpu_seconds=10.0, deadline_seconds=30.0)
    assert MAX_THREADS // 2 < most_threads(checker, ATTACKS[name], QUICK_TRIES) <= ALLOWED


@pytest.mark.nightly
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", ATTACKS)
def test_threads_are_never_too_many_in_hundreds_of_tries(own_checker: Maker, name: str) -> None:
    checker = own_checker(cpu_seconds=10.0, deadline_seconds=30.0)
    assert most_threads(checker, ATTACKS[name], TRIES // len(ATTACKS)) <= ALLOWED


BATCHES = f"""
import threading
threading.stack_size(2**16)
for _ in range(10):
    barrier = threading.Barrier({MAX_THREADS})
    threads = [threading.Thread(target=barrier.wait) for _ in range({{count}})]
    for thread in threads: thread.start()
    barrier.wait()
    for thread in threads: thread.join()
print('done')
"""


def test_as_many_threads_as_allowed_may_be_started_again_and_again(code_checker: CodeChecker) -> None:
    program = BATCHES.format(count=MAX_THREADS - 1)
    assert code_checker.grade_answer((PRINTS,), program).verdict is Verdict.CORRECT


def test_one_thread_more_is_refused_and_the_program_incorrect(code_checker: CodeChecker) -> None:
    program = (
        "import threading\nend = threading.Event()\nthreading.stack_size(2**16)\nfor _ in range({count}):\n"
        "    threading.Thread(target=end.wait, daemon=True).start()\nprint('done')"
    )
    allowed, more = (program.format(count=count) for count in (MAX_THREADS - 1, MAX_THREADS))
    assert code_checker.grade_answer((PRINTS,), allowed).verdict is Verdict.CORRECT
    assert code_checker.grade_answer((PRINTS,), more).verdict is Verdict.INCORRECT


@pytest.mark.parametrize("release", ["5.4.0-150-generic", "4.18.0-553.el8.x86_64", "4.4.0", "unknown"])
def test_a_kernel_that_does_not_ask_is_recognized(monkeypatch: pytest.MonkeyPatch, release: str) -> None:
    monkeypatch.setattr(platform, "release", lambda: release)
    monkeypatch.setattr(thread_limit, "prepare", thread_limit.prepare.__wrapped__)
    ours, theirs = socket.socketpair()
    with ours, theirs:
        assert not listen(theirs.fileno())
        ours.setblocking(False)
        with pytest.raises(BlockingIOError):
            ours.recv(1)


def test_where_the_kernel_does_not_ask_looks_alone_hold_the_limit(
    code_checker: CodeChecker, own_checker: Maker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(child_process, "_CHILD", "tests.graders.old_kernel")
    with pytest.raises(StepvalueError, match=r"more than 64 at any moment.*grader\.sandbox=standard"):
        CodeChecker(code_config(sandbox=Sandbox.full))
    checker = own_checker(sandbox=Sandbox.standard)
    assert checker.grade_answer((PRINTS,), "print('done')").verdict is Verdict.CORRECT
    waits = (
        "import threading\nthreading.stack_size(2**16)\n"
        "for _ in range(70): threading.Thread(target=threading.Event().wait, daemon=True).start()\nthreading.Event().wait()"
    )
    assert checker.grade_answer((PRINTS,), waits).verdict is Verdict.INCORRECT
