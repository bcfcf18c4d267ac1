"""What the confined processes of a code problem do: run the program, serve its functions, run the tests beside them.

The descriptors of each are fixed. The program never sees the tests: it gets standard input, or calls with plain arguments.
The tests' process holds the statement of what came of them, which the program has no descriptor for.
"""

import ast
import atexit
import builtins
import gc
import importlib
import json
import os
import sys
import threading
from contextlib import suppress
from enum import IntEnum
from types import ModuleType
from typing import Any, NoReturn

from pipeline.graders.code.output import same_value
from pipeline.graders.code.sandbox import effective
from pipeline.graders.code.suite import holds_tests, names_used
from pipeline.graders.code.wire import Peer, Remote, Statement


class Descriptor(IntEnum):
    """What each number means in a process of `child`, standard streams aside."""

    CONTENT = 3
    READY = 4
    READING = 5
    WRITING = 6
    STATEMENT = 7


OTHER_SIDE_ENDED = 1
"""Exit code of the tests' process where the program ended before it."""

FLUSH_FAILED = 120
"""The interpreter's own exit code for output that could not be written."""

_PROGRAM = "program.py"
_SERVED_TO_PROGRAMS = frozenset({"call", "iter", "next", "len", "str", "repr", "bool", "same"})
_SERVED_OF_INSTANCES = frozenset({"get", "set", "item"})


def probe() -> None:
    """State what this confined process is kept from."""
    _announce()
    found = effective()
    _state(" ".join(name for name in ("system_calls", "files") if getattr(found, name)))


def run_program() -> None:
    """Run the program as a script, and end as a script ends."""
    content = _content()
    module = _module("__main__")
    _announce()
    code = 0
    try:
        exec(_compiled(content["program"]), module.__dict__)
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:  # noqa: BLE001  like the interpreter
        code = 1
    _finish(module, code)


def serve_program() -> None:
    """Load the program as a module and do what the tests ask of it."""
    content = _content()
    module = _module("program")
    peer = Peer(Descriptor.READING, Descriptor.WRITING, lambda *_: True)
    assert peer.export(_Lookup(module)) == 0
    _announce()
    # A prompt that is cut short is no fault of the program.
    with suppress(Exception):
        exec(_compiled(content["prelude"]), module.__dict__)
    exec(_compiled(content["program"]), module.__dict__)
    peer.serve()


def run_tests() -> None:
    """Run a suite against the program of the other process, state what came of it, and end."""
    suite = _content()
    _announce()
    peer = Peer(Descriptor.READING, Descriptor.WRITING, _served_to_program)
    try:
        passed = _passes(suite, peer)
    except _UnreadableError:
        _state(Statement.UNREADABLE)
    except BaseException:  # noqa: BLE001  whatever the tests raise, they did not pass
        passed = False
    # A bare `except` in the tests may have swallowed the program's end.
    _state(Statement.PASSED if passed and not peer.ended else Statement.FAILED, OTHER_SIDE_ENDED if peer.ended else 0)


def read_tests() -> None:
    """State whether test source is Python that holds a test: PASSED or UNREADABLE."""
    suite = _content()
    _announce()
    try:
        _parsed(suite)
    except _UnreadableError:
        _state(Statement.UNREADABLE)
    _state(Statement.PASSED)


class _UnreadableError(Exception):
    """The test source is no Python, or asserts nothing."""


class _Lookup:
    """The first object of a program that the tests know: its names."""

    def __init__(self, module: ModuleType) -> None:
        self._names = module.__dict__

    def name(self, name: str) -> Any:
        """A global of the program. Raises NameError."""
        if name not in self._names:
            raise NameError(name)
        return self._names[name]

    def function(self, name: str) -> Any:
        """A method of a new `Solution`, else a global function. Raises NameError."""
        solution = self._names.get("Solution")
        if isinstance(solution, type) and hasattr(solution, name):
            return getattr(solution(), name)
        return self.name(name)


def _passes(suite: dict[str, Any], peer: Peer) -> bool:
    program = Remote(peer, 0)
    if "calls" in suite:
        function = program.function(suite["function"])
        return all(
            same_value(wanted, function(*arguments), tolerance=suite["tolerance"])
            for arguments, wanted in suite["calls"]
        )
    tree = _parsed(suite)
    module = _module("tests")
    names = names_used(tree)
    for name in names.modules:
        module.__dict__[name] = importlib.import_module(name)
    for name in names.program - {"candidate"}:
        try:
            module.__dict__[name] = program.name(name)
        except NameError:
            continue  # the tests themselves say so if they need it
    entry_point = suite["entry_point"]
    if entry_point is not None:
        module.__dict__["candidate"] = program.name(entry_point)
    exec(compile(tree, "tests.py", "exec", dont_inherit=True), module.__dict__)
    if entry_point is not None and "check" in module.__dict__:
        module.__dict__["check"](module.__dict__["candidate"])
    return True


def _parsed(suite: dict[str, Any]) -> ast.Module:
    try:
        tree: ast.Module = ast.parse(suite["source"])
        compile(tree, "tests.py", "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise _UnreadableError from error
    if not holds_tests(tree, entry_point=suite["entry_point"]):
        raise _UnreadableError
    return tree


def _served_to_program(operation: str, target: Any, arguments: tuple[Any, ...]) -> bool:
    """A program may call and iterate over what it was given, and use public attributes of objects of the tests' classes.

    Nothing else: a function's attributes lead to everything in this process.
    """
    if operation in _SERVED_TO_PROGRAMS:
        return True
    own = type(target).__module__ == "tests" and operation in _SERVED_OF_INSTANCES
    return own and (operation == "item" or (isinstance(arguments[0], str) and not arguments[0].startswith("_")))


def _content() -> dict[str, Any]:
    with open(Descriptor.CONTENT, "rb") as stream:
        stream.seek(0)
        content: dict[str, Any] = json.load(stream)
    return content


def _module(name: str) -> ModuleType:
    module = ModuleType(name)
    module.__dict__["__builtins__"] = builtins
    sys.modules[name] = module
    sys.argv[:] = [_PROGRAM]
    return module


def _finish(module: ModuleType, code: int) -> NoReturn:
    """What the interpreter does at its end for a program to notice; the rest of it takes longer than most programs."""
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and not thread.daemon:
            thread.join()
    with suppress(BaseException):
        atexit._run_exitfuncs()
    try:
        _flush()
        # Files that the program has left open are written when they are forgotten.
        module.__dict__.clear()
        gc.collect()
        _flush()
    except BaseException:  # noqa: BLE001  a program may put anything in the place of its standard output
        code = code or FLUSH_FAILED
    os._exit(code & 0xFF)


def _flush() -> None:
    for stream in (sys.stdout, sys.__stdout__):
        if stream is not None and not stream.closed:
            stream.flush()


def _compiled(source: str) -> Any:
    return compile(source, _PROGRAM, "exec", dont_inherit=True)


def _announce() -> None:
    """Tell that this process is confined and has begun: what goes wrong from here on is its content's doing."""
    os.write(Descriptor.READY, b"1")
    os.close(Descriptor.READY)


def _state(statement: str, code: int = 0) -> NoReturn:
    os.write(Descriptor.STATEMENT, statement.encode())
    os._exit(code)
