"""The system calls that a confined program may make, as bytes of a seccomp filter for the kernel. Pure: it installs nothing.

Every call that is not listed is refused: network sockets, new processes, other programs, signals to other processes, mounts,
name spaces, tracing, kernel interfaces. Calls that a later kernel adds are not listed, so they are refused too.
Covered: Linux on x86-64 and aarch64. Not covered: arguments behind pointers. The filter cannot decide which file is opened.
"""

import errno
import struct

ARCHITECTURES = ("x86_64", "aarch64")
_AUDIT_ARCH = (0xC000003E, 0xC00000B7)
_X32_BIT = 0x40000000
_FIRST_RECENT = 424
"""Calls from this number on are so recent that the C library tests whether they exist. They are refused with ENOSYS."""

# Name: number on x86-64, number on aarch64 (None: the call does not exist there).
_ALLOWED: dict[str, tuple[int, int | None]] = {
    "read": (0, 63), "write": (1, 64), "readv": (19, 65), "writev": (20, 66), "pread64": (17, 67), "pwrite64": (18, 68),
    "preadv": (295, 69), "pwritev": (296, 70), "close": (3, 57), "close_range": (436, 436), "lseek": (8, 62),
    "dup": (32, 23), "dup2": (33, None), "dup3": (292, 24), "pipe": (22, None), "pipe2": (293, 59), "fsync": (74, 82),
    "fdatasync": (75, 83), "flock": (73, 32), "fstat": (5, 80), "stat": (4, None), "lstat": (6, None),
    "newfstatat": (262, 79), "statx": (332, 291), "statfs": (137, 43), "fstatfs": (138, 44), "access": (21, None),
    "faccessat": (269, 48), "faccessat2": (439, 439), "readlink": (89, None), "readlinkat": (267, 78),
    "getdents64": (217, 61), "getcwd": (79, 17), "chdir": (80, 49), "fchdir": (81, 50), "umask": (95, 166),
    "fadvise64": (221, 223), "mmap": (9, 222), "munmap": (11, 215), "mprotect": (10, 226), "mremap": (25, 216),
    "madvise": (28, 233), "brk": (12, 214), "msync": (26, 227), "futex": (202, 98), "futex_waitv": (449, 449),
    "set_robust_list": (273, 99), "get_robust_list": (274, 100), "set_tid_address": (218, 96), "rseq": (334, 293),
    "membarrier": (324, 283), "sched_yield": (24, 124), "sched_getaffinity": (204, 123), "rt_sigaction": (13, 134),
    "rt_sigprocmask": (14, 135), "rt_sigreturn": (15, 139), "rt_sigsuspend": (130, 133), "rt_sigpending": (127, 136),
    "rt_sigtimedwait": (128, 137), "sigaltstack": (131, 132), "pause": (34, None), "alarm": (37, None),
    "setitimer": (38, 103), "getitimer": (36, 102), "restart_syscall": (219, 128), "select": (23, None),
    "pselect6": (270, 72), "poll": (7, None), "ppoll": (271, 73), "epoll_create": (213, None),
    "epoll_create1": (291, 20), "epoll_ctl": (233, 21), "epoll_wait": (232, None), "epoll_pwait": (281, 22),
    "eventfd2": (290, 19), "nanosleep": (35, 101), "clock_nanosleep": (230, 115), "clock_gettime": (228, 113),
    "clock_getres": (229, 114), "gettimeofday": (96, 169), "time": (201, None), "times": (100, 153),
    "getrusage": (98, 165), "sysinfo": (99, 179), "uname": (63, 160), "getpid": (39, 172), "getppid": (110, 173),
    "gettid": (186, 178), "getuid": (102, 174), "geteuid": (107, 175), "getgid": (104, 176), "getegid": (108, 177),
    "getgroups": (115, 158), "getpgid": (121, 155), "getpgrp": (111, None), "getsid": (124, 156),
    "getresuid": (118, 148), "getresgid": (120, 150), "getrlimit": (97, 163),
    "getcpu": (309, 168), "getrandom": (318, 278), "getpriority": (140, 141), "sched_getparam": (143, 121),
    "sched_getscheduler": (145, 120), "wait4": (61, 260), "waitid": (247, 95), "exit": (60, 93), "exit_group": (231, 94),
    "arch_prctl": (158, None), "sendto": (44, 206), "recvfrom": (45, 207), "shutdown": (48, 210),
}  # fmt: skip
_CHANGING_FILES: dict[str, tuple[int, int | None]] = {
    "ftruncate": (77, 46), "unlink": (87, None), "unlinkat": (263, 35), "rename": (82, None), "renameat": (264, 38),
    "renameat2": (316, 276), "mkdir": (83, None), "mkdirat": (258, 34), "rmdir": (84, None),
}  # fmt: skip

_CLONE = (56, 220)
_CLONE_THREAD = 0x10000
_SIGKILL = 9
_RLIMIT_STACK = 3
_AF_UNIX = 1
_SOCK_STREAM = 1
_SOCK_TYPE_MASK = 0xF
_PRCTL = (15, 16, 0x53564D41)
"""PR_SET_NAME, PR_GET_NAME, PR_SET_VMA (the C library names its heaps)."""
_FCNTL = (0, 1, 2, 3, 4, 5, 6, 7, 36, 37, 38, 1030, 1032)
"""Commands for duplicates, flags, locks and the size of a pipe, but none that send signals."""
_IOCTL = (0x5401, 0x5413, 0x541B, 0x5421, 0x5450, 0x5451)
"""TCGETS, TIOCGWINSZ, FIONREAD, FIONBIO, FIONCLEX, FIOCLEX."""
_WRITING_FLAGS = 0o1 | 0o2 | 0o100 | 0o1000
"""O_WRONLY, O_RDWR, O_CREAT, O_TRUNC."""

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _AND, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x54, 0x06
_ALLOW, _KILL, _ASK = 0x7FFF0000, 0x80000000, 0x7FC00000
_NUMBER_OFFSET, _ARCH_OFFSET, _ARGUMENTS_OFFSET = 0, 4, 16

_Code = list[tuple[int, int, int, int]]


def _refuse(code: int) -> tuple[int, int, int, int]:
    return (_RETURN, 0, 0, 0x00050000 | code)


def _argument(index: int, half: int = 0) -> tuple[int, int, int, int]:
    """Load the low 32 bits of an argument, or the high ones. The kernel reads only the low ones of all but pointers."""
    return (_LOAD, 0, 0, _ARGUMENTS_OFFSET + 8 * index + 4 * half)


def _one_of(index: int, values: tuple[int, ...], mask: int | None = None) -> _Code:
    masked = [] if mask is None else [(_AND, 0, 0, mask)]
    tests = [(_EQUAL, len(values) - position, 0, value) for position, value in enumerate(values)]
    return [_argument(index), *masked, *tests, _refuse(errno.EPERM)]


def _only_if(index: int, test: int, value: int, result: int) -> _Code:
    """Refuse the call unless a test of an argument has this result, 1 or 0."""
    return [_argument(index), (test, result, 1 - result, value), _refuse(errno.EPERM)]


def _only_the_stack(index: int, limit: int) -> _Code:
    """Programs raise the limit of their stack to recurse deeply. Other limits stay as they are, and the call seems to succeed:
    with a limit on its processor time a program could have the kernel kill it, and so choose its verdict. `limit`: the argument
    that points to the new limit; where it is null, nothing is changed."""
    return [
        _argument(index), (_EQUAL, 5, 0, _RLIMIT_STACK),
        _argument(limit), (_EQUAL, 0, 2, 0),
        _argument(limit, 1), (_EQUAL, 1, 0, 0),
        _refuse(0),
    ]  # fmt: skip


def _guarded(pid: int, *, writing: bool) -> list[tuple[tuple[int, int], tuple[_Code, ...]]]:
    """The calls that are allowed if their arguments pass all checks: their numbers, and the checks."""
    return [
        ((257, 56), () if writing else (_only_if(2, _ANY_BIT, _WRITING_FLAGS, 0),)),  # openat
        (_CLONE, (_only_if(0, _ANY_BIT, _CLONE_THREAD, 1),)),  # clone
        ((62, 129), (_one_of(0, (pid,)), _only_if(1, _EQUAL, _SIGKILL, 0))),  # kill
        ((234, 131), (_one_of(0, (pid,)), _only_if(2, _EQUAL, _SIGKILL, 0))),  # tgkill
        ((157, 167), (_one_of(0, _PRCTL),)),  # prctl
        ((72, 25), (_one_of(1, _FCNTL),)),  # fcntl
        ((16, 29), (_one_of(1, _IOCTL),)),  # ioctl
        ((160, 164), (_only_the_stack(0, 1),)),  # setrlimit
        ((302, 261), (_one_of(0, (0, pid)), _only_the_stack(1, 2))),  # prlimit64
        # asyncio needs a socket pair. Datagram sockets are refused, because they can send to the sockets of other processes.
        ((53, 199), (_one_of(0, (_AF_UNIX,)), _one_of(1, (_SOCK_STREAM,), _SOCK_TYPE_MASK))),  # socketpair
    ]  # fmt: skip


def filter_program(machine: str, pid: int, *, writing: bool) -> bytes:
    """The filter for the process `pid`, as an array of `struct sock_filter`.

    If `writing` is false, no file anywhere can be opened for writing, created, renamed or removed. Raises ValueError for a
    machine that is not in `ARCHITECTURES`.
    """
    which = ARCHITECTURES.index(machine)
    code: _Code = [
        (_LOAD, 0, 0, _ARCH_OFFSET),
        (_EQUAL, 1, 0, _AUDIT_ARCH[which]),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, _NUMBER_OFFSET),
        (_AT_LEAST, 0, 1, _X32_BIT),
        _refuse(errno.ENOSYS),
    ]
    allowed = _ALLOWED | (_CHANGING_FILES if writing else {})
    for each in allowed.values():
        if (number := each[which]) is not None:
            code += [(_EQUAL, 0, 1, number), (_RETURN, 0, 0, _ALLOW)]
    for numbers, checks in _guarded(pid, writing=writing):
        block = [*(step for check in checks for step in check), (_RETURN, 0, 0, _ALLOW)]
        code += [(_EQUAL, 0, len(block), numbers[which]), *block]
    return _packed([*code, (_AT_LEAST, 0, 1, _FIRST_RECENT), _refuse(errno.ENOSYS), _refuse(errno.EPERM)])


def listening_program(machine: str) -> bytes:
    """A filter that asks its listener before each `clone`, and leaves all else to `filter_program`, whose refusals come first.

    Raises ValueError like `filter_program`.
    """
    which = ARCHITECTURES.index(machine)
    return _packed(
        [
            (_LOAD, 0, 0, _ARCH_OFFSET),
            (_EQUAL, 0, 3, _AUDIT_ARCH[which]),
            (_LOAD, 0, 0, _NUMBER_OFFSET),
            (_EQUAL, 0, 1, _CLONE[which]),
            (_RETURN, 0, 0, _ASK),
            (_RETURN, 0, 0, _ALLOW),
        ]
    )


def _packed(code: _Code) -> bytes:
    return b"".join(struct.pack("=HBBI", *step) for step in code)
