"""The roles of the confined processes of a code problem: run the program, serve its functions, run the tests, compare outputs.

Each role has fixed descriptors. The program never sees the tests: it gets standard input, or calls with plain arguments. Only
the process of the tests has the descriptor to which their result is written.
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

from pipeline.graders.code.composition import composed
from pipeline.graders.code.output import same_output, same_value
from pipeline.graders.code.sandbox import effective
from pipeline.graders.code.suite import holds_tests, names_used
from pipeline.graders.code.wire import Peer, Remote, Statement, text_pieces

PROGRAM_FILE = "program.py"
OTHER_SIDE_ENDED = 1
"""Exit code of the tests' process if the program's process ended first."""

FLUSH_FAILED = 120
"""The exit code that the Python interpreter uses if output could not be written."""

MAX_HEAD_BYTES = 256
"""Limit of the first line of what a comparison reads."""

_SERVED_TO_PROGRAMS = frozenset({"call", "iter", "next", "len", "str", "repr", "bool", "same"})
_SERVED_OF_INSTANCES = frozenset({"get", "set", "item"})


class Descriptor(IntEnum):
    """The descriptors of a process of `child`, except the standard streams."""

    CONTENT = 3
    READY = 4
    READING = 5
    WRITING = 6
    STATEMENT = 7
    WIRE = 8
    """Of `thread_limit`. It is closed before a role begins."""


def read_content() -> dict[str, Any]:
    with open(Descriptor.CONTENT, "rb") as stream:
        stream.seek(0)
        content: dict[str, Any] = json.load(stream)
    return content


def new_module(name: str) -> ModuleType:
    module = ModuleType(name)
    module.__dict__.update(__builtins__=builtins, __file__=f"{os.getcwd()}/{PROGRAM_FILE}")
    # `site` would define these. They are often the last line of a program.
    builtins.__dict__.update(exit=_exit, quit=_exit)
    sys.modules[name] = module
    sys.argv[:] = [PROGRAM_FILE]
    return module


def _exit(code: object = None) -> NoReturn:
    raise SystemExit(code)


def announce() -> None:
    """Report that this process is confined and has begun. From here on, every failure is caused by the content that it runs."""
    os.write(Descriptor.READY, b"1")
    os.close(Descriptor.READY)


def state(statement: str, code: int = 0) -> NoReturn:
    os.write(Descriptor.STATEMENT, statement.encode())
    os._exit(code)


def probe() -> None:
    """State which protections are in effect in this confined process."""
    announce()
    state(" ".join(effective()))


def run_program() -> None:
    """Run the program as a script, and exit with the code of a script."""
    content = read_content()
    module = new_module("__main__")
    announce()
    code = 0
    try:
        _run(content, module, called=False)
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:  # noqa: BLE001  like the interpreter
        code = 1
    _finish(module, code)


def serve_program() -> None:
    """Load the program as a module and execute the operations that the tests request."""
    content = read_content()
    module = new_module("program")
    peer = Peer(Descriptor.READING, Descriptor.WRITING, lambda *_: True)
    assert peer.export(Lookup(module)) == 0
    announce()
    # A faulty prompt, for example one that was cut short, is not the program's fault.
    with suppress(Exception):
        exec(compiled(content["prelude"]), module.__dict__)
    _run(content, module, called=True)
    peer.serve()


def _run(content: dict[str, Any], module: ModuleType, *, called: bool) -> None:
    """Run a program. What is left out where it fails belongs to blocks before it."""
    before, program = composed(content["program"], content.get("prelude", ""), called=called)
    for statement in before:
        with suppress(Exception, SystemExit):
            exec(compiled(ast.Module([statement], [])), module.__dict__)
    exec(compiled(program), module.__dict__)


def compiled(source: str | ast.Module, name: str = PROGRAM_FILE) -> Any:
    return compile(source, name, "exec", dont_inherit=True)


def run_tests() -> None:
    """Run a suite against the program in the other process, state the result, and exit."""
    suite = read_content()
    announce()
    peer = Peer(Descriptor.READING, Descriptor.WRITING, served_to_program)
    try:
        passed = _passes(suite, peer)
    except BaseException:  # noqa: BLE001  any exception means that the tests did not pass
        passed = False
    # A bare `except` in the tests may have hidden that the program has ended.
    state(Statement.PASSED if passed and not peer.ended else Statement.FAILED, OTHER_SIDE_ENDED if peer.ended else 0)


def read_tests() -> None:
    """State whether test source is valid Python with a test in it: PASSED or UNREADABLE."""
    suite = read_content()
    announce()
    _parsed(suite)
    state(Statement.PASSED)


def compare_output() -> None:
    """State whether the output of a program, in the standard input, is the expected one: PASSED or FAILED."""
    head = os.pread(Descriptor.CONTENT, MAX_HEAD_BYTES, 0).partition(b"\n")[0]
    announce()
    same = same_output(
        text_pieces(Descriptor.CONTENT, len(head) + 1, errors="surrogatepass"),
        text_pieces(0),
        tolerance=json.loads(head)["tolerance"],
    )
    state(Statement.PASSED if same else Statement.FAILED)


class Lookup:
    """The first object that the tests can access. It gives access to the names of the program."""

    def __init__(self, module: ModuleType) -> None:
        self._names = module.__dict__

    def name(self, name: str) -> Any:
        """A global of the program. Raises NameError."""
        if name not in self._names:
            raise NameError(name)
        return self._names[name]

    def function(self, name: str) -> Any:
        """A method of a new `Solution` object, or a global function that is defined after it or alone. Raises NameError."""
        solution = self._names.get("Solution")
        if isinstance(solution, type) and hasattr(solution, name):
            owners = (self._names.get(name), getattr(solution, name))
            lines = [getattr(getattr(owner, "__code__", None), "co_firstlineno", 0) for owner in owners]
            if lines[0] <= lines[1]:
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
    entry_point = suite["entry_point"]
    names, _ = names_of_tests(tree, program)
    if entry_point is not None:
        names["candidate"] = program.name(entry_point)
    exec(compiled(tree, "tests.py"), names)
    if entry_point is not None and "check" in names:
        names["check"](names["candidate"])
    return True


def names_of_tests(tree: ast.Module, program: Remote) -> tuple[dict[str, Any], frozenset[str]]:
    """The globals of a new module of tests: what they use of modules and of the program. And the names of the program."""
    values = new_module("tests").__dict__
    of_program, modules = names_used(tree)
    for name in modules:
        values[name] = importlib.import_module(name)
    for name in of_program:
        with suppress(NameError):  # if the tests need the name, they raise NameError themselves
            values[name] = program.name(name)
    return values, of_program


def _parsed(suite: dict[str, Any]) -> ast.Module:
    """The test source. States UNREADABLE, and exits, if it is not valid Python or asserts nothing."""
    try:
        tree: ast.Module = ast.parse(suite["source"])
        compiled(tree, "tests.py")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        state(Statement.UNREADABLE)
    return tree if holds_tests(tree, entry_point=suite["entry_point"]) else state(Statement.UNREADABLE)


def served_to_program(operation: str, target: Any, arguments: tuple[Any, ...]) -> bool:
    """Whether the program may do this with an object of the tests.

    It may call, iterate over, print and compare the objects that it was given. If the class of an object is defined in the
    tests, the program may also read its items, and read and set its public attributes. Everything else is refused, because the
    attributes of a function lead to everything in this process.
    """
    if operation in _SERVED_TO_PROGRAMS:
        return True
    own = type(target).__module__ == "tests" and operation in _SERVED_OF_INSTANCES
    return own and (operation == "item" or (isinstance(arguments[0], str) and not arguments[0].startswith("_")))


def _finish(module: ModuleType, code: int) -> NoReturn:
    """Do the part of the interpreter's shutdown that programs can observe. A full shutdown takes longer than most programs."""
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and not thread.daemon:
            thread.join()
    with suppress(BaseException):
        atexit._run_exitfuncs()
    try:
        _flush()
        # Files that the program left open are flushed when they are collected.
        module.__dict__.clear()
        gc.collect()
        _flush()
    except BaseException:  # noqa: BLE001  a program may replace its standard output with any object
        code = code or FLUSH_FAILED
    os._exit(code & 0xFF)


def _flush() -> None:
    for stream in (sys.stdout, sys.__stdout__):
        if stream is not None and not stream.closed:
            stream.flush()
