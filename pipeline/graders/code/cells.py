"""The confined process of a notebook: its cells run in order, in one module, and what goes wrong in one of them is stated.

Covered: an exception is stated with its cell, its line and its class; of an assertion that fails, the value that it compares;
examples in the docstrings of a cell, and its functions `test...` without parameters, run after it.
Not covered: forgery. The process that states is that of the cells, so what it states may be used against them, and never for
them. `cases` has tests that cells cannot touch.
"""

import ast
import builtins
import io
import json
from collections.abc import Iterator, Sequence
from contextlib import redirect_stdout, suppress
from types import CodeType, FunctionType, ModuleType
from typing import Any, NoReturn

from pipeline.graders.code.examples import DocExample, examples_in
from pipeline.graders.code.nearness import near, near_texts
from pipeline.graders.code.runs import Descriptor, Lookup, announce, new_module, read_content, state
from pipeline.graders.code.wire import Peer

MAX_SHOWN = 200
"""Characters of a value or a message that are stated."""
MAX_TESTS = 200
"""Examples and test functions of a cell that are run."""
_TAKES_MORE = 0x04 | 0x08
"""Flags of a function with *arguments or **names."""
_VAGUE = ("...", " at 0x", "<")
"""In what an example is said to print: the value is not written out."""


def run_cells() -> None:
    """Run the cells in order, and after each its tests and assertions of earlier ones `again`. State the first that fails.

    `given`: how many cells are not a step's, and have no tests. A test of a cell before the last that is nearly right, or an
    assertion that cannot be run any more, does not count.
    """
    content = read_content()
    cells, own = content["cells"], len(content["cells"]) - 1
    module = new_module("__main__")
    announce()
    # What the notebook may put in their place later.
    say, end = json.dumps, _end
    passed = 0
    for number, source in enumerate(cells):
        failure = _failure(source, _file(number), cells, module)
        if failure is not None:
            end(say({"cell": number} | failure))
        for outcome in _tests(number, cells, module) if number >= content["given"] else ():
            if outcome and (number == own or not outcome.get("near")):
                end(say({"cell": number} | outcome))
            passed += number == own
        for place, assertion in enumerate(content["again"][number]):
            failure = _failure(assertion, f"<again {place}>", cells, module)
            if failure is not None and "AssertionError" in failure.get("bases", ()):
                end(say({"cell": number, "again": place} | _compared(assertion, 1, module) | failure))
    end(say({"tests": passed}))


def serve_cells() -> None:
    """Run the cells and execute the operations that the tests of another process request."""
    content = read_content()
    module = new_module("__main__")
    peer = Peer(Descriptor.READING, Descriptor.WRITING, lambda *_: True)
    assert peer.export(Lookup(module)) == 0
    announce()
    for number, source in enumerate(content["cells"]):
        exec(_compiled(source, _file(number)), module.__dict__)
    peer.serve()


def _compiled(source: str, name: str) -> Any:
    return compile(source, name, "exec", dont_inherit=True)


def _file(number: int) -> str:
    return f"<cell {number}>"


def _end(statement: str) -> NoReturn:
    state(statement)


def _failure(source: str, name: str, cells: Sequence[str], module: ModuleType) -> dict[str, Any] | None:
    """What goes wrong when a cell runs. None: nothing."""
    try:
        code = _compiled(source, name)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        return {
            "error": "SyntaxError" if isinstance(error, SyntaxError) else type(error).__name__,
            "text": _shown(getattr(error, "msg", None) or error),
            "line": getattr(error, "lineno", None) or 0,
        }
    try:
        exec(code, module.__dict__)
    except BaseException as error:  # noqa: BLE001  whatever a cell raises
        return _raised(error, cells, module)
    return None


def _raised(error: BaseException, cells: Sequence[str], module: ModuleType) -> dict[str, Any]:
    """What is stated of an exception: the names of its built-in classes, and where cells raised it."""
    frames = list(_frames(error))
    found: dict[str, Any] = {
        "error": type(error).__name__,
        "bases": [kind.__name__ for kind in type(error).__mro__ if getattr(builtins, kind.__name__, None) is kind],
        "text": _shown(error),
        "line": frames[-1][1] if frames else 0,
        "of": frames[-1][0] if frames else None,
        "depth": len(frames),
    }
    if isinstance(error, AssertionError) and len(frames) == 1:
        found |= _compared(cells[found["of"]], found["line"], module)
    return found


def _frames(error: BaseException) -> Iterator[tuple[int, int]]:
    """The cell and the line of each place that an exception came through, outermost first."""
    place = error.__traceback__
    while place is not None:
        name = place.tb_frame.f_code.co_filename
        if name.startswith("<cell ") and name[6:-1].isdigit():
            yield int(name[6:-1]), place.tb_lineno
        place = place.tb_next


def _compared(source: str, line: int, module: ModuleType) -> dict[str, Any]:
    """The value on the left side of an assertion `value == wanted` at the top level, and whether it is nearly right."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Assert(test=ast.Compare(left=left, ops=[ast.Eq()], comparators=[right])) if (
                node.lineno <= line <= (node.end_lineno or line)
            ):
                with suppress(Exception):
                    value, wanted = (_value(side, module) for side in (left, right))
                    return {
                        "shown": ast.unparse(left)[:MAX_SHOWN],
                        "value": _shown(repr(value)),
                        "near": near(value, wanted),
                    }
            case _:
                pass
    return {}


def _value(node: ast.expr, module: ModuleType) -> Any:
    return eval(compile(ast.Expression(node), "<value>", "eval"), module.__dict__)  # noqa: S307  in a confined process


def _tests(number: int, cells: Sequence[str], module: ModuleType) -> Iterator[dict[str, Any]]:
    """For each test of a cell an empty mapping if it passes, else what goes wrong."""
    own = [value for value in list(module.__dict__.values()) if _is_of(value, number)]
    tests = 0
    for value in own:
        examples = _examples(value)
        names = dict(module.__dict__)
        for example in examples[: MAX_TESTS - tests]:
            tests += 1
            outcome = _example_failure(example, names, cells)
            if outcome is not None:
                yield outcome
    for value in own:
        name = getattr(value, "__name__", "")
        if isinstance(value, FunctionType) and _is_test(name, value.__code__) and tests < MAX_TESTS:
            tests += 1
            try:
                value()
            except BaseException as error:  # noqa: BLE001  whatever a test raises
                yield {"test": f"{name}()"} | _raised(error, cells, module)
            else:
                yield {}


def _is_of(value: object, number: int) -> bool:
    """Whether a cell defines a function or class."""
    if isinstance(value, FunctionType):
        return value.__code__.co_filename == _file(number)
    functions = vars(value).values() if isinstance(value, type) and value.__module__ == "__main__" else ()
    return any(isinstance(each, FunctionType) and each.__code__.co_filename == _file(number) for each in functions)


def _is_test(name: str, code: CodeType) -> bool:
    takes = code.co_argcount + code.co_kwonlyargcount or code.co_flags & _TAKES_MORE
    return not takes and (name == "test" or name.startswith("test_"))


def _examples(value: Any) -> list[DocExample]:
    texts = [value.__doc__]
    if isinstance(value, type):
        texts += [each.__doc__ for each in vars(value).values() if isinstance(each, FunctionType)]
    return [example for text in texts if isinstance(text, str) for example in examples_in(text)]


def _example_failure(example: DocExample, names: dict[str, Any], cells: Sequence[str]) -> dict[str, Any] | None:
    """What goes wrong with an example of a docstring. Empty: nothing. None: it is no test."""
    printed = io.StringIO()
    shown = {"test": _shown(" ".join(example.source.split()))}
    try:
        with redirect_stdout(printed):
            exec(compile(example.source, "<example>", "single", dont_inherit=True), names)
    except BaseException as error:  # noqa: BLE001  whatever an example raises
        raised = _raised(error, cells, ModuleType("none"))
        if example.exception is not None:
            return {} if example.exception == type(error).__name__ else shown | raised | {"near": True}
        # An example may need what its docstring leaves out.
        return shown | raised | {"near": not raised["depth"] or isinstance(error, NameError)}
    got = printed.getvalue()
    if not example.wanted:
        return None
    if got.split() == example.wanted.split():
        return {}
    vague = example.exception is not None or any(mark in example.wanted for mark in _VAGUE)
    return shown | {
        "error": "", "value": _shown(got.strip()), "wanted": _shown(example.wanted.strip()),
        "near": vague or near_texts(example.wanted, got),
    }  # fmt: skip


def _shown(value: object) -> str:
    try:
        text = str(value)
    except Exception:  # noqa: BLE001  the `__str__` of a cell's exception may raise
        return ""
    return text if len(text) <= MAX_SHOWN else text[: MAX_SHOWN - 3] + "..."
