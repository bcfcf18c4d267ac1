"""The program of the guard process: it ends an engine's processes when their owner ends in any way. See `guard`.

It waits until its owner's end of a pipe closes, which the kernel guarantees, and then kills every process with the owner's mark
in its environment and removes their shared memory. It is run as a file, in an interpreter that sees no other module of this
package. Linux only.

Shared memory outlives the processes that made it: 160 MiB for an engine on a CPU. Its names are read from the processes while
they live, and kept in a file beside it, so that the next engine can remove it where this process was killed too.

What an engine's processes registered with multiprocessing and did not remove, such as semaphores, is known to the owner's
*tracker* alone, a process that removes it when its owner and the engine have ended. So a tracker is not killed while its owner
lives, and then has some time for its work.
"""

import contextlib
import os
import re
import select
import signal
import stat
import sys
import time
from collections.abc import Iterable
from pathlib import Path

MARK = "STEPVALUE_ENGINE_OWNER"
SHARED_MEMORY = Path("/dev/shm")
NAMES = "stepvalue-engine-"
"""The beginning of the name of the file with the names of shared memory; the mark follows."""
_LOOK_SECONDS = 0.02
_LEARN_SECONDS = 5.0
TRACKER_SECONDS = 2.0
"""How long a tracker has for its work when its owner has ended."""
_TRACKER = b"multiprocessing.resource_tracker"
"""In the command of trackers."""
_MAPPED = re.compile(rf" {SHARED_MEMORY}/(?P<name>[\w.-]+)$", re.MULTILINE)


def process_marks() -> dict[int, str]:
    """The marks of this user's processes by pid. A process that is ending has no mark any more."""
    name = f"{MARK}=".encode()
    found = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            with contextlib.suppress(OSError):
                if folder.stat().st_uid == os.geteuid():
                    for entry in (folder / "environ").read_bytes().split(b"\0"):
                        if entry.startswith(name):
                            found[int(folder.name)] = entry.removeprefix(name).decode(errors="replace")
    return found


def marked_processes(mark: str) -> list[int]:
    """The pids of this user's processes with this mark."""
    return [pid for pid, carried in process_marks().items() if carried == mark]


def processes_to_end(mark: str) -> list[int]:
    """The pids of this user's processes with this mark, but for the tracker of an owner that lives."""
    return [pid for pid in marked_processes(mark) if not (is_tracker(pid) and _parent(pid) == _owner(mark))]


def is_tracker(pid: int) -> bool:
    """Whether a process is one that removes what multiprocessing left. False if there is none."""
    with contextlib.suppress(OSError):
        return _TRACKER in Path(f"/proc/{pid}/cmdline").read_bytes()
    return False


def shared_memory_of(pids: Iterable[int]) -> set[str]:
    """The names of the shared memory that processes have mapped."""
    found: set[str] = set()
    for pid in pids:
        with contextlib.suppress(OSError):
            maps = Path(f"/proc/{pid}/maps").read_text(errors="replace")
            found.update(match["name"] for match in _MAPPED.finditer(maps))
    return found


def remove_shared_memory(names: Iterable[str]) -> None:
    """Remove shared memory of this user. Names of anything else, or of nothing, are passed over."""
    for name in names:
        path = SHARED_MEMORY / name
        with contextlib.suppress(OSError):
            if path.parent == SHARED_MEMORY and _is_own_file(path):
                path.unlink()


def names_kept_in(path: Path) -> list[str]:
    """The names in a file that `_keep` has written. Empty for a file of somebody else, and for none."""
    with contextlib.suppress(OSError):
        if _is_own_file(path):
            return path.read_text(errors="replace").split()
    return []


def _is_own_file(path: Path) -> bool:
    found = path.lstat()
    return stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid()


def _parent(pid: int) -> int | None:
    """The pid of the parent, which is another one after the parent's end. None if the process has ended."""
    with contextlib.suppress(OSError):
        return int(Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()[1])
    return None


def _owner(mark: str) -> int:
    return int(mark.split("-")[1])


def _keep(path: Path, names: Iterable[str]) -> None:
    with contextlib.suppress(OSError):
        new = path.with_name(f"{path.name}.new")
        new.unlink(missing_ok=True)
        descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        with os.fdopen(descriptor, "w") as file:
            file.write("\n".join(sorted(names)))
        new.rename(path)


def _reap(mark: str) -> None:
    kept, names = SHARED_MEMORY / f"{NAMES}{mark}", set[str]()
    while not select.select([sys.stdin], [], [], _LEARN_SECONDS)[0]:
        if new := shared_memory_of(marked_processes(mark)) - names:
            names |= new
            _keep(kept, names)
    names |= shared_memory_of(marked_processes(mark))
    # A process may start while its parent is being killed: repeat until none is found.
    patience = time.monotonic() + TRACKER_SECONDS
    while pids := processes_to_end(mark):
        for pid in pids:
            if is_tracker(pid) and time.monotonic() < patience:
                continue
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(_LOOK_SECONDS)
    remove_shared_memory([*names, kept.name])


if __name__ == "__main__":
    for ignored in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(ignored, signal.SIG_IGN)
    # A worker of Ray that ends kills its children, so this must not be one of them.
    if os.fork() == 0:
        _reap(sys.argv[1])
