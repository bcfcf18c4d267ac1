"""Confines a process permanently before it runs a program. Linux only, without root rights and without helper programs.

Always enforced: limits (rlimits); an empty environment; no other descriptors; no capabilities, no new privileges, and death
when the parent dies. With seccomp: what `syscalls` lists. Where the kernel asks before each new thread (`thread_limit`), the
parent decides about it. With Landlock: files are read only where Python and the system's libraries are installed, and written
only in the given folder. If Landlock is missing or too old to prevent truncation, seccomp refuses all writing. If it is
missing, the program can read everything that the account can read, the memory of its other processes in /proc included.
Not covered: bugs of the kernel; side channels such as time and load; names, sizes and dates of all files, which stay visible;
the program's own process, where the program can do anything. It runs under the operator's account, without name spaces.
"""

import ctypes
import os
import platform
import resource
import signal
import socket
import struct
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from pipeline.graders.code.syscalls import ARCHITECTURES, filter_program
from pipeline.graders.code.thread_limit import LIBC, MAX_THREADS, STEP_BYTES, listen

MAX_DESCRIPTORS = 32
LANDLOCK_WITH_TRUNCATION = 3
READABLE = ("/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib", "/usr/share/zoneinfo", "/etc/ld.so.cache",
            "/etc/localtime", "/dev/null", "/dev/zero", "/dev/urandom", "/dev/random")  # fmt: skip

_SMALL_STACK_BYTES = 2**16
_OPEN_TO_ALL = "/proc/self/stat"
_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_SECCOMP, _PR_SET_NO_NEW_PRIVS = 1, 4, 22, 38
_SECCOMP_MODE_FILTER = 2
_CAPABILITY_VERSION = 0x20080522
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_PATH_BENEATH = 1
_WRITE_FILE, _READ_FILE, _READ_DIR, _REMOVE_DIR, _REMOVE_FILE = 1 << 1, 1 << 2, 1 << 3, 1 << 4, 1 << 5
_MAKE_DIR, _MAKE_REG, _REFER, _TRUNCATE = 1 << 7, 1 << 8, 1 << 13, 1 << 14
_FILE_RIGHTS_BY_VERSION = (1 << 13, 1 << 14, 1 << 15, 1 << 15, 1 << 16)
"""For each version of Landlock, the bit after the last right that it supports."""
_NETWORK_RIGHTS, _SCOPES = 0b11, 0b11


def confine(
    parent: int, *, memory_bytes: int, cpu_seconds: int, file_bytes: int, folder: str | None, wire: int | None = None
) -> set[str]:
    """Restrict this process, which must have one thread, as far as the machine can. Returns the protections in effect, by
    name: system_calls, files, threads.

    `folder` is its working folder, the only one where it may write. None: no folder. `wire` is a socket whose other end belongs
    to the `ThreadLimit` of the process; it is closed. None: no such limit.
    Raises OSError or ValueError if a limit that every Linux supports cannot be set. Ends the process if `parent` has died.
    """
    os.chdir(folder or "/")
    os.environ.clear()
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)
    _prctl(_PR_SET_DUMPABLE, 0)
    _prctl(_PR_SET_NO_NEW_PRIVS, 1)
    _limit(resource.RLIMIT_CORE, 0)
    _limit(resource.RLIMIT_AS, memory_bytes)
    _limit(resource.RLIMIT_FSIZE, file_bytes)
    _limit(resource.RLIMIT_NOFILE, MAX_DESCRIPTORS)
    # The soft limit sends a signal, which a program can ignore. The hard limit kills.
    _limit(resource.RLIMIT_CPU, cpu_seconds, cpu_seconds + 1)
    version = landlock_version()
    files = version > 0 and _restrict_files(version, folder)
    if LIBC.capset(struct.pack("=Ii", _CAPABILITY_VERSION, 0), bytes(24)) != 0:
        raise OSError(ctypes.get_errno(), "capset")
    writing = folder is not None and files and version >= LANDLOCK_WITH_TRUNCATION
    threads = wire is not None and listen(wire)
    if wire is not None:
        os.close(wire)
    filtered = platform.machine() in ARCHITECTURES and _filter_calls(writing=writing)
    if not filtered:
        # This limit counts all processes and threads of the account, so the only useful value is 0. Root is exempt.
        _limit(resource.RLIMIT_NPROC, 0)
    return _named(system_calls=filtered, files=files, threads=filtered and threads)


def _named(**protections: bool) -> set[str]:
    return {name for name, holds in protections.items() if holds}


def effective() -> set[str]:
    """The protections in effect, found by trying to open a socket, to fork, to read a file that anyone may read, and to start
    as many threads as possible."""
    return _named(
        system_calls=_refused(socket.socket) and _refused(_fork),
        files=_refused(lambda: os.close(os.open(_OPEN_TO_ALL, os.O_RDONLY))),
        threads=_count_startable_threads() == MAX_THREADS - 1,
    )


def _count_startable_threads() -> int:
    """The number of threads that can live beside this one, at most `MAX_THREADS`."""
    end = threading.Event()
    started: list[threading.Thread] = []
    before = threading.stack_size(_SMALL_STACK_BYTES)
    with suppress(RuntimeError):
        while len(started) < MAX_THREADS:
            thread = threading.Thread(target=end.wait)
            thread.start()
            started.append(thread)
    threading.stack_size(before)
    end.set()
    for thread in started:
        thread.join()
    return len(started)


def empty_folder(folder: str) -> None:
    """Remove the folders of programs in a folder. Programs may make them too deep to go down, so what is in each is moved up.

    Raises OSError, for example while a process is being killed."""
    name = f"{folder}/{time.monotonic_ns()}-"
    number = 0
    while outer := [entry.path for entry in os.scandir(folder)]:
        for path in outer:
            os.chmod(path, 0o700)
            with os.scandir(path) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        number += 1
                        # Who moves a folder must be able to write to it.
                        os.chmod(entry.path, 0o700)
                        os.rename(entry.path, f"{name}{number}")
                    else:
                        os.unlink(entry.path)
            os.rmdir(path)


def _refused(attempt: Callable[[], object]) -> bool:
    try:
        attempt()
    except OSError as error:
        return isinstance(error, PermissionError)
    return False


def _fork() -> None:
    if os.fork() == 0:
        os._exit(0)


def landlock_version() -> int:
    """The version of Landlock in the kernel, 0 if there is none."""
    return max(0, _syscall(_CREATE_RULESET, None, 0, 1))


def _limit(kind: int, soft: int, hard: int | None = None) -> None:
    """Set a limit permanently, at most the hard limit of this process."""
    given = resource.getrlimit(kind)[1]
    ceiling = soft if hard is None else hard
    ceiling = ceiling if given == resource.RLIM_INFINITY else min(ceiling, given)
    resource.setrlimit(kind, (min(soft, ceiling), ceiling))


def _restrict_files(version: int, folder: str | None) -> bool:
    rights = _FILE_RIGHTS_BY_VERSION[min(version, len(_FILE_RIGHTS_BY_VERSION)) - 1] - 1
    attributes = struct.pack("=QQQ", rights, _NETWORK_RIGHTS, _SCOPES)
    ruleset = _syscall(_CREATE_RULESET, attributes, 8 if version < 4 else 16 if version < 6 else 24, 0)
    if ruleset < 0:
        return False
    python = (str(Path(os.__file__).parent), f"{sys.base_prefix}/{sys.platlibdir}")
    for path in (*READABLE, *python):
        _allow(ruleset, path, _READ_FILE | _READ_DIR)
    _allow(ruleset, os.devnull, _READ_FILE | _WRITE_FILE)
    if folder is not None:
        writing = _WRITE_FILE | _REMOVE_FILE | _REMOVE_DIR | _MAKE_REG | _MAKE_DIR | _REFER | _TRUNCATE
        _allow(ruleset, folder, (_READ_FILE | _READ_DIR | writing) & rights)
    restricted = _syscall(_RESTRICT_SELF, ruleset, 0) == 0
    os.close(ruleset)
    return restricted


def _allow(ruleset: int, path: str, rights: int) -> None:
    """Permit access to a path. It stays forbidden if it does not exist or the kernel rejects it."""
    try:
        handle = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    allowed = rights if os.path.isdir(path) else rights & (_READ_FILE | _WRITE_FILE)
    _syscall(_ADD_RULE, ruleset, _PATH_BENEATH, struct.pack("=Qi", allowed, handle), 0)
    os.close(handle)


def _filter_calls(*, writing: bool) -> bool:
    code = filter_program(platform.machine(), os.getpid(), writing=writing)
    buffer = ctypes.create_string_buffer(code, len(code))
    program = ctypes.create_string_buffer(struct.pack("@HP", len(code) // STEP_BYTES, ctypes.addressof(buffer)))
    arguments = map(ctypes.c_ulong, (_SECCOMP_MODE_FILTER, ctypes.addressof(program), 0, 0))
    return int(LIBC.prctl(_PR_SET_SECCOMP, *arguments)) == 0


def _prctl(option: int, value: int) -> None:
    if LIBC.prctl(option, *map(ctypes.c_ulong, (value, 0, 0, 0))) != 0:
        raise OSError(ctypes.get_errno(), f"prctl {option}")


def _syscall(number: int, *arguments: int | bytes | None) -> int:
    plain = (ctypes.c_long(value) if isinstance(value, int) else value for value in arguments)
    return int(LIBC.syscall(ctypes.c_long(number), *plain))
