"""A confined process tries each action that the sandbox forbids, and no process of a run is left behind."""

import json
import platform
import struct
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import psutil
import pytest

from pipeline.graders.code.syscalls import ARCHITECTURES, filter_program, listening_program
from tests.graders.conftest import HAS_LANDLOCK

CONFINED = """
import ctypes, json, os, sys
from pipeline.graders.code import sandbox
{before}
done = sandbox.confine(os.getppid(), memory_bytes=2**30, cpu_seconds=10, file_bytes=2**20, folder={folder!r})
def attempt(code):
    try:
        exec(code, {{"os": os, "libc": libc, "check": check}})
    except OSError as error:
        return error.errno
    return 0
libc = ctypes.CDLL(None, use_errno=True)
def check(result):
    if result < 0:
        raise OSError(ctypes.get_errno(), "")
results = [attempt(code) for code in {codes!r}]
print(json.dumps(["system_calls" in done, "files" in done, results]), flush=True)
"""
ALLOWED = 0
NOT_PERMITTED = 1
NOT_THERE = 38
DENIED = 13


def confined(codes: list[str], folder: Path | None, before: str = "") -> tuple[bool, bool, list[int]]:
    """The error numbers of attempts in a confined process. 0: the attempt succeeded."""
    source = CONFINED.format(before=before, folder=folder and str(folder), codes=codes)
    run = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, timeout=60, check=True)
    return tuple(json.loads(run.stdout))


pytestmark = pytest.mark.usefixtures("code_checker")


REFUSED_CALLS = [
    "import socket; socket.socket()", "import socket; socket.socket(socket.AF_UNIX)",
    "import socket; socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)", "os.fork()",
    "os.posix_spawn('/bin/true', ['true'], {})", "os.execv('/bin/true', ['true'])", "os.kill(os.getppid(), 0)",
    "os.kill(1, 0)", "os.kill(-1, 0)", "os.kill(os.getpid(), 9)", "os.killpg(os.getppid(), 0)",
    "import signal, threading; signal.pthread_kill(threading.get_ident(), 9)",
    "import fcntl; fcntl.fcntl(0, fcntl.F_SETOWN, os.getppid())", "import fcntl; fcntl.ioctl(0, 0x8901, b'1234')",
    "import resource; resource.prlimit(os.getppid(), resource.RLIMIT_CPU)", "os.setpriority(os.PRIO_PROCESS, 0, 5)",
    "os.sched_setaffinity(0, {0})", "os.setsid()", "os.setuid(os.getuid())", "os.chroot('.')", "os.chmod('.', 0o700)",
    "os.chown('.', -1, -1)", "os.utime('.')", "os.symlink('a', 'b')", "os.link('a', 'b')",
    "os.mkfifo('p')", "os.truncate('a', 0)", "os.memfd_create('m')", "os.pidfd_open(os.getppid())",
    "check(libc.ptrace(16, os.getppid(), 0, 0))", "check(libc.mount(b'a', b'/mnt', b'tmpfs', 0, 0))",
    "check(libc.umount(b'/proc'))", "check(libc.unshare(0x10000000))", "check(libc.setns(0, 0))",
    "check(libc.prctl(4, 1, 0, 0, 0))", "check(libc.personality(0x40000))", "check(libc.shmget(0, 4096, 0o1600))",
    "check(libc.process_vm_readv(os.getppid(), None, 0, None, 0, 0))", "check(libc.inotify_init())",
    "check(libc.reboot(0))",
]  # fmt: skip
ALLOWED_CALLS = [
    "import threading; t = threading.Thread(target=print, kwargs={'end': '', 'flush': True}); t.start(); t.join()",
    "import socket; a, b = socket.socketpair(); a.send(b'x'); assert b.recv(1) == b'x'",
    "import asyncio; asyncio.run(asyncio.sleep(0))",
    "import select; select.poll().poll(1)",
    "import random, time, decimal, hashlib, sqlite3, zoneinfo; time.sleep(0.001); random.random(); os.urandom(8)",
    "import signal; signal.signal(signal.SIGUSR1, lambda *_: 0); os.kill(os.getpid(), signal.SIGUSR1)",
    "import resource; resource.setrlimit(resource.RLIMIT_STACK, resource.getrlimit(resource.RLIMIT_STACK))",
    "os.listdir('.'); os.getcwd(); os.cpu_count()",
    "open(os.devnull).read(); os.mkdir('d'); os.makedirs('e/f'); os.rename('d', 'e/d'); os.rmdir('e/d'); os.chdir('e')",
]


def test_calls_that_are_refused_and_calls_that_are_not(tmp_path: Path) -> None:
    filtered, _, results = confined([*REFUSED_CALLS, *ALLOWED_CALLS], tmp_path)
    assert filtered
    expected = dict.fromkeys(REFUSED_CALLS, NOT_PERMITTED) | dict.fromkeys(ALLOWED_CALLS, ALLOWED)
    assert dict(zip(expected, results, strict=True)) == expected | {"os.pidfd_open(os.getppid())": NOT_THERE}


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the numbers are those of x86-64")
def test_calls_by_number_are_refused_too(tmp_path: Path) -> None:
    numbers = {"clone3": 435, "io_uring_setup": 425, "bpf": 321, "keyctl": 250, "vfork": 58, "open_by_handle_at": 304}
    x32_getpid = 0x40000000 | 39
    codes = [f"check(libc.syscall({number}, 0, 0, 0, 0, 0))" for number in (*numbers.values(), x32_getpid)]
    results = confined(codes, tmp_path)[2]
    assert results == [NOT_THERE, NOT_THERE, *[NOT_PERMITTED] * 4, NOT_THERE]


@pytest.mark.skipif(not HAS_LANDLOCK, reason="this kernel has no Landlock")
def test_files_are_read_where_python_lives_and_written_in_the_folder_only(tmp_path: Path) -> None:
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    inside.mkdir()
    outside.write_text("secret")
    codes = {
        "open('a', 'w').write('x'); assert open('a').read() == 'x'; os.rename('a', 'b'); os.remove('b')": ALLOWED,
        f"open({str(outside)!r}).read()": DENIED,
        f"open({str(outside)!r}, 'w')": DENIED,
        f"open({str(outside)!r}, 'a')": DENIED,
        f"os.open({str(outside)!r}, os.O_RDONLY | os.O_TRUNC)": DENIED,
        f"open({str(tmp_path / 'new')!r}, 'w')": DENIED,
        f"os.listdir({str(tmp_path)!r})": DENIED,
        f"os.remove({str(outside)!r})": DENIED,
        f"os.rename({str(outside)!r}, 'c')": DENIED,
        f"os.chdir({str(tmp_path)!r}); open('outside').read()": DENIED,
        "open('/etc/passwd').read()": DENIED,
        "open('/proc/self/environ').read()": DENIED,
        "open(f'/proc/{os.getppid()}/environ').read()": DENIED,
        "open('/dev/tty')": DENIED,
        "open('/tmp/stepvalue-escape', 'w')": DENIED,
    }
    _, files, results = confined(list(codes), inside)
    assert files
    assert dict(zip(codes, results, strict=True)) == codes
    assert outside.read_text() == "secret"


@pytest.mark.parametrize("version", [0, 2])
def test_without_a_landlock_that_guards_truncation_nothing_can_be_written(tmp_path: Path, version: int) -> None:
    (tmp_path / "a").write_text("kept")
    codes = [
        "open('a', 'w')",
        "open('b', 'w')",
        "os.open('a', os.O_RDONLY | os.O_TRUNC)",
        "os.open('a', os.O_RDWR)",
        "os.remove('a')",
        "os.rename('a', 'b')",
        "check(libc.truncate(b'a', 0))",
        "check(libc.creat(b'a', 0o600))",
    ]
    before = f"offered = min({version}, sandbox.landlock_version())\nsandbox.landlock_version = lambda: offered"
    filtered, files, results = confined([*codes, "open('a').read()"], tmp_path, before)
    assert (filtered, files) == (True, version > 0 and HAS_LANDLOCK)
    assert results == [*[NOT_PERMITTED] * len(codes), ALLOWED]
    assert (tmp_path / "a").read_text() == "kept"


def test_where_no_folder_is_given_nothing_can_be_written(tmp_path: Path) -> None:
    target = tmp_path / "a"
    results = confined([f"open({str(target)!r}, 'w')", "open('x', 'w')"], None)[2]
    assert results == [NOT_PERMITTED, NOT_PERMITTED]


def test_a_confined_process_has_no_privileges_and_an_empty_environment(tmp_path: Path) -> None:
    before = "import os\nstatus = os.open('/proc/self/status', os.O_RDONLY)"
    source = CONFINED.format(before=before, folder=str(tmp_path), codes=[])
    source += "print(os.pread(status, 10000, 0).decode())\nprint('variables', len(os.environ))"
    run = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, timeout=60, check=True)
    status = dict(line.split(":\t", 1) for line in run.stdout.splitlines() if ":\t" in line)
    assert int(status["CapEff"], 16) == int(status["CapPrm"], 16) == 0
    assert (status["NoNewPrivs"], status["Seccomp"]) == ("1", "2")
    assert "variables 0" in run.stdout


@pytest.mark.parametrize("machine", ARCHITECTURES)
@pytest.mark.parametrize(
    "make",
    [
        partial(filter_program, pid=4711, writing=True),
        partial(filter_program, pid=4711, writing=False),
        listening_program,
    ],
    ids=["writing", "reading", "listening"],
)
def test_filters_are_well_formed(machine: str, make: Callable[[str], bytes]) -> None:
    """The kernel demands of a filter that all jumps stay inside it and that every path ends in a verdict."""
    code = list(struct.iter_unpack("=HBBI", make(machine)))
    jumps, returns = (0x15, 0x35, 0x45), 0x06
    assert len(code) < 4096
    assert code[-1][0] == returns
    for place, (operation, yes, no, _) in enumerate(code):
        assert operation in (*jumps, returns, 0x20, 0x54)
        if operation in jumps:
            assert max(place + 1 + yes, place + 1 + no) < len(code)


def test_an_unknown_machine_has_no_filter() -> None:
    with pytest.raises(ValueError, match="not in tuple"):
        filter_program("riscv64", 1, writing=True)


LEAVES_PROCESSES = """
import ctypes, os, sys, time
from pipeline.graders.code.wire import ProgramTask
from pipeline.graders.code.child import Watched, watch
ctypes.CDLL(None).prctl(36, ctypes.c_ulong(1), ctypes.c_ulong(0), ctypes.c_ulong(0), ctypes.c_ulong(0))
reported_in, reported_out = os.pipe()
ready, announce = os.pipe2(os.O_NONBLOCK)
pid = os.fork()
if pid == 0:
    os.setsid()
    for _ in range(3):
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                os.setsid()
            os.write(reported_out, b"%d " % os.getpid())
            time.sleep(300)
    os.write(announce, b"1")
    {end}
    os._exit(7)
while len((reported := locals().get("reported", b"") + os.read(reported_in, 100)).split()) < 6:
    pass
task = ProgramTask(kind="script", cpu_seconds=9, wall_seconds=0.3, memory_bytes=0)
report = watch(task, [Watched(pid)], sys.argv[1], reported_in, ready)
print(report.began, report.status, report.late, reported.decode())
"""


@pytest.mark.parametrize(("end", "expected"), [("pass", "True 7 False"), ("time.sleep(300)", "True None True")])
def test_processes_left_behind_are_ended(tmp_path: Path, end: str, expected: str) -> None:
    source = LEAVES_PROCESSES.replace("{end}", end)
    run = subprocess.run(
        [sys.executable, "-c", source, str(tmp_path)], capture_output=True, text=True, timeout=60, check=True
    )
    assert run.stdout.startswith(expected)
    pids = list(map(int, run.stdout.split()[3:]))
    assert len(pids) == 6
    assert [pid for pid in pids if psutil.pid_exists(pid)] == []
