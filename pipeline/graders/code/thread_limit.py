"""Holds the number of threads of a confined process at every moment: the kernel asks `ThreadLimit` before each new thread.

The confined process installs a filter (`listen`) that stops it in each system call `clone`, and sends the listener to the
process that watches it. That one counts the living threads and lets the call go on, or answers EAGAIN. `syscalls` refuses every
other way to a new thread. No memory and no argument of the caller is read, so nothing can be changed between the decision and
the call. A caller that is killed or interrupted before it has its answer starts nothing.
Not covered: kernels before Linux 5.5, and containers that listen to system calls themselves. `listen` returns false there.
"""

import ctypes
import errno
import fcntl
import os
import platform
import socket
import struct
import time
from contextlib import suppress
from functools import cache

from pipeline.graders.code.syscalls import ARCHITECTURES, listening_program

MAX_THREADS = 64
"""Limit of the threads of a process, the first one included."""
PATIENCE_SECONDS = 0.02
"""How long a request beyond the limit waits for a thread that is about to end."""

LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.syscall.restype = ctypes.c_long
_SECCOMP = (317, 277)
_SET_MODE_FILTER, _GET_NOTIF_SIZES = 1, 3
_NEW_LISTENER = 1 << 3
_FIRST_VERSION = (5, 5)
"""The first kernel that lets a call go on after its listener was asked (SECCOMP_USER_NOTIF_FLAG_CONTINUE)."""
STEP_BYTES = 8
_REQUEST_BYTES, _REPLY_BYTES, _DATA_BYTES = 80, 24, 64
_RECEIVE, _SEND = 0xC0502100, 0xC0182101
_GO_ON = 1
_STATE, _THREADS = 0, 17
"""Places in /proc/PID/stat after the name."""
_ASLEEP = (b"S", b"T", b"t", b"Z", b"X")


def listen(wire: int) -> bool:
    """Let each new thread of this process, which must have one, wait for the answer of a `ThreadLimit`.

    `wire` is one end of a socket pair, over which the listening descriptor is sent. Returns whether the kernel can do this.
    """
    if (prepared := prepare()) is None:
        return False
    number, code = prepared
    buffer = ctypes.create_string_buffer(code, len(code))
    program = ctypes.create_string_buffer(struct.pack("@HP", len(code) // STEP_BYTES, ctypes.addressof(buffer)))
    listener = _seccomp(number, _SET_MODE_FILTER, _NEW_LISTENER, ctypes.addressof(program))
    if listener < 0:
        return False
    # From here on new threads wait for an answer, so an error that follows must end the process: it is not caught.
    end = socket.socket(fileno=wire)
    socket.send_fds(end, [b"1"], [listener])
    end.detach()
    os.close(listener)
    return True


@cache
def prepare() -> tuple[int, bytes] | None:
    """What `listen` needs, found once: the number of the system call and the filter. None if the kernel cannot do this."""
    machine = platform.machine()
    if machine not in ARCHITECTURES or not _is_supported(_SECCOMP[ARCHITECTURES.index(machine)]):
        return None
    return _SECCOMP[ARCHITECTURES.index(machine)], listening_program(machine)


def count_threads(pid: int) -> int:
    """The number of threads of a process. Unlike the list in its `task` folder, the kernel's count misses none that churn.

    Raises OSError if the process has ended or is hidden.
    """
    return int(stat_of(f"/proc/{pid}/stat")[_THREADS])


class ThreadLimit:
    """Answers the requests of one process for new threads.

    A thread that was granted counts from then on, though the kernel has yet to make it: its starter is in `_starting` until it
    asks again, has ended or sleeps elsewhere. So the threads that live and those that begin are never more than `MAX_THREADS`.
    A request beyond that waits up to `patience_seconds`, because threads that end may still be counted.
    """

    def __init__(self, pid: int, wire: int, *, patience_seconds: float = PATIENCE_SECONDS) -> None:
        self._pid = pid
        self._patience_seconds = patience_seconds
        self._is_listening = False
        self._starting: set[int] = set()
        # Of each caller that waits the kernel's number of its call, and the time of its first arrival.
        self._waiting: dict[int, tuple[int, float]] = {}
        self.descriptor: int | None = wire
        """Where requests arrive; first the wire over which the process sends the listening descriptor. None: no more come."""
        self.exceeded = False
        """Whether a request was refused."""

    def receive(self) -> None:
        """Take one request, or the listening descriptor. Never waits if `descriptor` is ready for reading."""
        assert self.descriptor is not None
        if not self._is_listening:
            self._begin(self.descriptor)
            return
        data = bytearray(_REQUEST_BYTES)
        with suppress(OSError):  # the caller was killed, or interrupted by a signal
            fcntl.ioctl(self.descriptor, _RECEIVE, data)
            number, caller = struct.unpack_from("=QI", data)
            self._starting.discard(caller)
            self._waiting[caller] = number, self._waiting.get(caller, (0, time.monotonic()))[1]

    def answer(self) -> None:
        """Answer the requests for which there is a slot, and refuse those that have waited too long."""
        full = False
        for caller, (number, since) in list(self._waiting.items()):
            full = full or not self._has_capacity()
            if not full:
                if self._reply(number, 0, _GO_ON):
                    self._starting.add(caller)
            elif time.monotonic() - since >= self._patience_seconds:
                self.exceeded = self._reply(number, -errno.EAGAIN, 0) or self.exceeded
            else:
                continue
            del self._waiting[caller]

    def close(self) -> None:
        """Close the descriptor. The kernel refuses requests from then on."""
        if self.descriptor is not None:
            os.close(self.descriptor)
        self.descriptor = None

    def _begin(self, wire: int) -> None:
        self._is_listening, self.descriptor = True, None
        with socket.socket(fileno=wire) as end, suppress(OSError):
            for descriptor in socket.recv_fds(end, 1, 1)[1]:
                self.descriptor = descriptor

    def _reply(self, number: int, error: int, flags: int) -> bool:
        """Whether the caller still waits for its answer. It does not if it was killed, or interrupted by a signal."""
        with suppress(OSError):
            if self.descriptor is not None:
                fcntl.ioctl(self.descriptor, _SEND, struct.pack("=QqiI", number, 0, error, flags))
                return True
        return False

    def _has_capacity(self) -> bool:
        """Whether one more thread may begin. False also if the threads cannot be counted."""
        with suppress(OSError):
            if count_threads(self._pid) + len(self._starting) < MAX_THREADS:
                return True
            # First who has finished, then the count: whoever finishes between the two counts twice, and nobody not at all.
            self._starting = {caller for caller in self._starting if self._may_be_starting(caller)}
            return count_threads(self._pid) + len(self._starting) < MAX_THREADS
        return False

    def _may_be_starting(self, caller: int) -> bool:
        """Whether a thread may still be inside the call that was granted. The call itself runs, or sleeps without signals."""
        with suppress(OSError):
            return stat_of(f"/proc/{self._pid}/task/{caller}/stat")[_STATE] not in _ASLEEP
        return False


def stat_of(path: str) -> list[bytes]:
    """What the kernel says of a process or thread after its name. Raises OSError."""
    with open(path, "rb") as stream:
        # The name in parentheses may contain any character, including a parenthesis.
        return stream.read().rpartition(b")")[2].split()


def _is_supported(number: int) -> bool:
    version = tuple(int(part) for part in platform.release().split("-")[0].split(".")[:2] if part.isdigit())
    sizes = ctypes.create_string_buffer(6)
    return (
        version >= _FIRST_VERSION
        and _seccomp(number, _GET_NOTIF_SIZES, 0, ctypes.addressof(sizes)) == 0
        and struct.unpack("=HHH", sizes.raw) == (_REQUEST_BYTES, _REPLY_BYTES, _DATA_BYTES)
    )


def _seccomp(number: int, operation: int, flags: int, address: int) -> int:
    return int(LIBC.syscall(*map(ctypes.c_ulong, (number, operation, flags, address))))
