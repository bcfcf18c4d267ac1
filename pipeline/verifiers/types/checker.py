"""Mypy, with the types of the standard library loaded once. Each program is checked in a fork of that, which then ends.

So a check depends on its program alone, whatever was checked before, and costs milliseconds. The fork is confined as programs
are (`graders.code.sandbox`): it reads no file of the user's, writes none, and has limits of memory and processor time.
Covered: settings of a user or a project, plug-ins, caches and installed packages are never read. A program is text in memory,
and is not run. What crashes mypy, or takes it too long, ends the fork.
"""

import contextlib
import gc
import hashlib
import json
import math
import os
import select
import signal
import time
from typing import Final

from mypy import build
from mypy.fscache import FileSystemCache
from mypy.modulefinder import BuildSource, FindModuleCache, SearchPaths
from mypy.options import Options
from mypy.server.update import FineGrainedBuildManager

from pipeline.graders.code.sandbox import Limits, confine
from pipeline.verifiers.types.modules import MODULES

PROGRAM: Final = "program"
PATH: Final = "program.py"
_MOST_ANSWER = 1_000_000


class _Memory(FileSystemCache):
    """Files, of which the program's is in memory."""

    program = b""

    def stat_or_none(self, path: str) -> os.stat_result | None:
        return os.stat(os.devnull) if path == PATH else super().stat_or_none(path)

    def isfile(self, path: str) -> bool:
        return path == PATH or super().isfile(path)

    def exists(self, path: str, real_only: bool = False) -> bool:
        return not real_only if path == PATH else super().exists(path, real_only)

    def read(self, path: str) -> bytes:
        return self.program if path == PATH else super().read(path)

    def hash_digest(self, path: str) -> str:
        return hashlib.sha1(self.program).hexdigest() if path == PATH else super().hash_digest(path)


class TypeChecker:
    """Mypy, ready to check programs one by one."""

    def __init__(self) -> None:
        self._files = _Memory()
        self._files.program = "".join(f"import {name}\n" for name in sorted(MODULES)).encode()
        result = build.build(
            [BuildSource(PATH, PROGRAM, None)], _options(), alt_lib_path="/nonexistent", fscache=self._files
        )
        if result.errors:
            raise RuntimeError(f"mypy does not know the standard library: {result.errors[0]}")
        manager = result.manager
        nowhere = SearchPaths((), (), (), manager.search_paths.typeshed_path)
        manager.search_paths = nowhere
        manager.find_module_cache = FindModuleCache(nowhere, self._files, manager.options)
        self._server = FineGrainedBuildManager(result)
        # Else the next text would not be read.
        self._server.flush_cache()
        gc.collect()
        gc.freeze()
        # Silence would be taken for a program without errors.
        if not self.messages("x: int = ''", seconds=60.0, memory_bytes=2**32):
            raise RuntimeError("mypy does not see an error of types")

    def messages(self, source: str, *, seconds: float, memory_bytes: int) -> list[str] | None:
        """What mypy says of a program. None: it does not end within the limits."""
        reading, writing = os.pipe()
        parent = os.getpid()
        pid = os.fork()
        if pid == 0:
            with contextlib.suppress(BaseException):
                self._answer(source, writing, parent, seconds, memory_bytes)
            os._exit(1)
        os.close(writing)
        try:
            answer = _read(reading, seconds)
        finally:
            os.close(reading)
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        try:
            found = json.loads(answer)
        except ValueError:
            return None
        return [str(line) for line in found] if isinstance(found, list) else None

    def _answer(self, source: str, writing: int, parent: int, seconds: float, memory_bytes: int) -> None:
        limits = Limits(memory_bytes=memory_bytes, cpu_seconds=math.ceil(seconds), file_bytes=0, folder=None)
        confine(limits, parent)
        self._files.flush()
        self._files.program = source.encode("utf-8", "replace")
        data = memoryview(json.dumps(self._server.update([(PROGRAM, PATH)], [])).encode())
        while data:
            data = data[os.write(writing, data) :]
        os._exit(0)


def _read(reading: int, seconds: float) -> bytes:
    """What comes until the end. Empty where that takes too long, or is too much."""
    deadline = time.monotonic() + seconds
    poller = select.poll()
    poller.register(reading, select.POLLIN)
    pieces: list[bytes] = []
    while poller.poll(max(0.0, deadline - time.monotonic()) * 1000):
        piece = os.read(reading, 65536)
        if not piece:
            return b"".join(pieces)
        pieces.append(piece)
        if sum(map(len, pieces)) > _MOST_ANSWER:
            break
    return b""


def _options() -> Options:
    """Options of mypy that fit notebooks: names may get another type, and None may be the default of anything."""
    options = Options()
    options.cache_dir = os.devnull
    options.incremental = True
    options.fine_grained_incremental = True
    options.use_fine_grained_cache = False
    options.local_partial_types = True
    options.allow_redefinition = True
    options.implicit_optional = True
    options.ignore_missing_imports = True
    options.no_site_packages = True
    options.python_executable = None
    options.plugins = []
    # What mypy does not look at must not be silent.
    options.warn_unreachable = True
    options.show_traceback = True
    options.raise_exceptions = True
    options.error_summary = False
    options.pretty = False
    return options
