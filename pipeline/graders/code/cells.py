"""The confined processes of a notebook: one runs its cells, another judges each test of a problem by itself against them.

Cells run in order, in one module. Examples in the docstrings of a cell, and its functions `test...` without parameters, run
after it. The process of the cells may state anything, so what it states may be used against them, and never for them.
Tests of a problem run in a process of their own, as with `runs.run_tests`: the cells see calls with plain arguments. Counted
are tests that compare a result with a value that is written out. `objects` says that the cells' process may have decided
something: whether its own objects are equal or true, or what is in an argument.
"""

import ast
import io
import json
import operator
import traceback
from collections.abc import Iterator, Sequence
from contextlib import redirect_stdout, suppress
from functools import partial
from itertools import islice
from types import CodeType, FunctionType, ModuleType
from typing import Any, NoReturn

from pipeline.graders.code import runs
from pipeline.graders.code.examples import DocExample, examples_in, literal
from pipeline.graders.code.output import close
from pipeline.graders.code.wire import OtherSideEndedError, Peer, Remote, builtin_names, text_of

MAX_SHOWN = 200
"""Characters of a value or a message that are stated."""
MAX_TESTS = 200
"""Examples and test functions of a cell that are run."""
_TAKES_MORE = 0x04 | 0x08
"""Flags of a function with *arguments or **names."""
_VAGUE = ("...", " at 0x", "<")
"""In what an example is said to print: the value is not written out."""
_DECISIONS = frozenset({"bool", "same", "isinstance"})
_COMPARISONS = {"Eq": operator.eq, "Lt": operator.lt, "LtE": operator.le, "Gt": operator.gt, "GtE": operator.ge}
RELATIVE = 1e-2
"""A number that is off by less may be rounded."""
MAX_TEXT = 10_000


def run_cells() -> None:
    """Run the cells in order, and after each its tests. State the first that fails.

    The first cell is not a step's, and has no tests. A test of a cell before the last that is nearly right does not count.
    """
    cells = runs.read_content()["cells"]
    own = len(cells) - 1
    module = runs.new_module("__main__")
    runs.announce()
    # What the notebook may put in their place later.
    say, end = json.dumps, runs.state
    passed = 0
    for number, source in enumerate(cells):
        failure = _failure(source, _file(number), cells, module)
        if failure is not None:
            end(say({"cell": number} | failure))
        for outcome in islice(_tests(number, cells, module), MAX_TESTS if number else 0):
            if outcome and (number == own or not outcome.get("near")):
                end(say({"cell": number} | outcome))
            passed += number == own and outcome is not None
    end(say({"tests": passed}))


def serve_cells() -> None:
    """Run the cells and execute the operations that the tests of another process request."""
    content = runs.read_content()
    module = runs.new_module("__main__")
    peer = Peer(runs.Descriptor.READING, runs.Descriptor.WRITING, lambda *_: True)
    assert peer.export(runs.Lookup(module)) == 0
    runs.announce()
    for number, source in enumerate(content["cells"]):
        exec(runs.compiled(source, _file(number)), module.__dict__)
    peer.serve()


def _file(number: int) -> str:
    return f"<cell {number}>"


def _failure(source: str, name: str, cells: Sequence[str], module: ModuleType) -> dict[str, Any] | None:
    """What goes wrong when a cell runs. None: nothing."""
    try:
        code = runs.compiled(source, name)
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
        "bases": builtin_names(error),
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
    for frame, line in traceback.walk_tb(error.__traceback__):
        name = frame.f_code.co_filename
        if name.startswith("<cell ") and name[6:-1].isdigit():
            yield int(name[6:-1]), line


def _compared(source: str, line: int, module: ModuleType) -> dict[str, Any]:
    """The left side of the first comparison `value == wanted` in an assertion at the top level that does not hold, and whether
    the assertion holds if sides that are nearly equal count as equal, or as different."""
    found: dict[str, Any] = {}
    asserts = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Assert)]
    for node in (each.test for each in asserts if each.lineno <= line <= (each.end_lineno or line)):
        for part in ast.walk(node):
            match part:
                case ast.Compare(left=left, ops=[ast.Eq()], comparators=[right]) if not found:
                    with suppress(Exception):
                        value, wanted = (_value(side, module.__dict__) for side in (left, right))
                        if value != wanted:
                            found |= {"shown": ast.unparse(left)[:MAX_SHOWN], "value": _shown(repr(value))}
        with suppress(Exception):
            if not _value(node, module.__dict__):
                ways = [module.__dict__ | {_Nearly.NAME: partial(_nearly, favour)} for favour in (True, False)]
                nearly = ast.fix_missing_locations(_Nearly().visit(node))
                found["near"] = any(_value(nearly, names) for names in ways)
    return found


class _Nearly(ast.NodeTransformer):
    """Makes calls of comparisons, also of those in `all(...)`, for which both sides may be nearly equal."""

    NAME = "<nearly>"

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        self.generic_visit(node)
        signs = [type(sign).__name__ for sign in node.ops]
        values = [ast.Constant(" ".join(signs)), node.left, *node.comparators]
        return ast.Call(ast.Name(self.NAME, ast.Load()), values, []) if _COMPARISONS.keys() >= {*signs} else node


def _nearly(favour: bool, signs: str, *values: Any) -> bool:
    return all(
        favour if left != right and near(left, right) else bool(_COMPARISONS[sign](left, right))
        for sign, left, right in zip(signs.split(), values, values[1:], strict=False)
    )


def _value(node: ast.expr, names: dict[str, Any]) -> Any:
    return eval(compile(ast.Expression(node), "<value>", "eval"), names)  # noqa: S307  in a confined process


def _tests(number: int, cells: Sequence[str], module: ModuleType) -> Iterator[dict[str, Any] | None]:
    """For each test of a cell what goes wrong. Empty: nothing. None: it is no test."""
    own = [value for value in list(module.__dict__.values()) if _is_of(value, number)]
    for value in own:
        names = dict(module.__dict__)
        for example in _examples(value):
            yield _example_failure(example, names, cells)
    for value in own:
        if isinstance(value, FunctionType) and _is_test(value.__name__, value.__code__):
            name = value.__name__
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
    # A function that prints and returns nothing may go on in a later cell.
    vague = example.exception is not None or not got or any(mark in example.wanted for mark in _VAGUE)
    return shown | {
        "error": "", "value": _shown(got.strip()), "wanted": _shown(example.wanted.strip()),
        "near": vague or near_texts(example.wanted, got),
    }  # fmt: skip


def _shown(value: object) -> str:
    text = text_of(value)
    return text if len(text) <= MAX_SHOWN else text[: MAX_SHOWN - 3] + "..."


class _WatchedPeer(Peer):
    """A peer that notes what the other side decides and raises. `objects`: results that stay in the other process."""

    decided = raised = False
    objects = 0

    def ask(self, operation: str, target: Remote, *arguments: Any, **named: Any) -> Any:
        self.decided = self.decided or operation in _DECISIONS
        given = [value for value in arguments if isinstance(value, list | dict | set)]
        before = repr(given)
        self.raised = False
        result = super().ask(operation, target, *arguments, **named)
        self.decided = self.decided or repr(given) != before
        self.objects += operation != "get" and isinstance(result, Remote)
        return result

    def _raise(self, name: object, text: object) -> NoReturn:
        self.raised = True
        super()._raise(name, text)


def run_cases() -> None:
    """Judge each test of the content, up to the first that fails, and state what was found."""
    cases = runs.read_content()["cases"]
    runs.announce()
    peer = _WatchedPeer(runs.Descriptor.READING, runs.Descriptor.WRITING, runs.served_to_program)
    found: dict[str, Any] = {"ended": True}
    with suppress(OtherSideEndedError):
        found = _judged(cases, peer)
    runs.state(json.dumps(found), runs.OTHER_SIDE_ENDED if peer.ended else 0)


def _judged(cases: list[dict[str, str]], peer: _WatchedPeer) -> dict[str, Any]:
    tests = ast.parse("\n".join(case["source"] for case in cases))
    judge = _Judge(*runs.names_of_tests(tests, Remote(peer, 0)), peer)
    # The functions themselves are no results.
    peer.objects = 0
    for number, case in enumerate(cases):
        failure = judge.failure(case)
        if failure is not None or peer.ended:
            ended = {"ended": True} if peer.ended else {}
            return (failure or {}) | ended | {"case": number, "objects": peer.objects > 0}
    return {
        "passed": judge.passed,
        "counted": judge.counted,
        "distinct": len(judge.wanted),
        "objects": peer.decided or peer.objects > 0,
    }


class _Judge:
    def __init__(self, names: dict[str, Any], of_program: frozenset[str], peer: _WatchedPeer) -> None:
        self._names, self._of_program, self._peer = names, of_program, peer
        self.passed = self.counted = 0
        self.wanted: set[str] = set()

    def failure(self, case: dict[str, str]) -> dict[str, Any] | None:
        """What goes wrong with a test. None: nothing."""
        self._peer.raised = False
        expected = case.get("raises")
        try:
            failure = self._example(case) if "wanted" in case else self._statement(case["source"])
        except Exception as error:  # noqa: BLE001  whatever a test raises
            name = type(error).__name__
            if expected is not None and self._peer.raised:
                # A class that the cells define arrives as its built-in base class.
                return None if name == expected else {"doubt": f"it raises {name}", "error": name}
            here = {} if self._peer.raised else {"doubt": f"the test itself raises {name}"}
            return {"error": name, "text": str(error)[:MAX_SHOWN]} | here
        if expected is not None:
            return {"value": "no exception", "doubt": ""}
        return failure

    def _statement(self, source: str) -> dict[str, Any] | None:
        tree = ast.parse(source)
        for node in tree.body:
            if not isinstance(node, ast.Assert):
                exec(compile(ast.Module([node], []), "<test>", "exec"), self._names)
                continue
            failure = self._assertion(node.test)
            if failure is not None:
                return failure
            self.passed += 1
        return None

    def _assertion(self, test: ast.expr) -> dict[str, Any] | None:
        """What goes wrong with an assertion. One of the form `result == value` is counted."""
        match test:
            case ast.Compare(left=left, ops=[ast.Eq() | ast.Is()], comparators=[right]):
                sides = (left, right)
                asked = [self._asks(side) for side in sides]
                if asked in ([True, False], [False, True]):
                    values = [_value(side, self._names) for side in sides]
                    value, wanted = values if asked[0] else reversed(values)
                    holds = bool(values[0] == values[1]) if isinstance(test.ops[0], ast.Eq) else values[0] is values[1]
                    return self._compared(sides[not asked[0]], value, wanted, holds, counts=True)
            case ast.UnaryOp(op=ast.Not(), operand=node) | (ast.Call() as node) if self._asks(node):
                value, wanted = _value(node, self._names), node is test
                return self._compared(node, value, wanted, bool(value) is wanted, counts=isinstance(value, bool))
        return None if bool(_value(test, self._names)) else {"value": "false"}

    def _example(self, case: dict[str, str]) -> dict[str, Any] | None:
        """What goes wrong with an example of use that prints its value."""
        try:
            node = ast.parse(case["source"], mode="eval").body
        except SyntaxError:
            exec(compile(case["source"], "<test>", "exec"), self._names)
            return {"doubt": "what is printed is not looked at"} if case["wanted"] else None
        value = _value(node, self._names)
        if not case["wanted"] or case.get("raises") is not None:
            return None
        found = literal(case["wanted"]) if "..." not in case["wanted"] else []
        if not found:
            shown = repr(value)
            if shown.split() == case["wanted"].split() and not isinstance(value, Remote):
                self.passed += 1
                return None
            return {"value": shown[:MAX_SHOWN], "doubt": "the expected output is no plain value"}
        wanted = found[0]
        holds = type(value) is type(wanted) and bool(value == wanted)
        self.passed += holds
        return self._compared(node, value, wanted, holds, counts=self._asks(node))

    def _compared(self, node: ast.expr, value: Any, wanted: Any, holds: bool, *, counts: bool) -> dict[str, Any] | None:
        """What goes wrong where a result is not the wanted one. One that is `counts` if the program had to compute it."""
        if holds:
            self.counted += counts
            self.wanted |= {repr(wanted)[:MAX_SHOWN]} if counts else set()
            return None
        found = {"shown": ast.unparse(node)[:MAX_SHOWN], "value": repr(value)[:MAX_SHOWN]}
        if value is None and wanted is not None:
            return found | {"doubt": "it may print its result"}
        if isinstance(value, Remote):
            return found | {"doubt": "the result is an object"}
        return found | ({"doubt": "the result is nearly right"} if near(value, wanted) else {})

    def _asks(self, node: ast.expr) -> bool:
        """Whether an expression needs the program."""
        return any(isinstance(part, ast.Name) and part.id in self._of_program for part in ast.walk(node))


def near(value: Any, wanted: Any) -> bool:
    """Whether two plain values differ in rounding, in the type of numbers or in the order of items alone."""
    if isinstance(wanted, bool) or isinstance(value, bool):
        return bool(value == wanted)
    if isinstance(wanted, int | float) and isinstance(value, int | float):
        exact = isinstance(wanted, int) and isinstance(value, int)
        digits = len(repr(wanted).partition(".")[2])
        rounded = close(value, wanted, relative=RELATIVE, absolute=1e-6) or (digits and round(value, digits) == wanted)
        return bool(value == wanted or (rounded and not exact))
    if isinstance(wanted, list | tuple) and isinstance(value, list | tuple) and len(value) == len(wanted):
        return all(map(near, value, wanted))
    if isinstance(wanted, dict) and isinstance(value, dict) and value.keys() == wanted.keys():
        return all(near(value[key], wanted[key]) for key in wanted)
    if isinstance(wanted, str) and isinstance(value, str):
        return " at 0x" in value or " ".join(value.split()).lower() == " ".join(wanted.split()).lower()
    try:
        # A class may get its equality later.
        return bool(value == wanted) or (value is not None and getattr(type(value), "__eq__", None) is object.__eq__)
    except Exception:  # noqa: BLE001  an object of a program may raise
        return True


def near_texts(wanted: str, found: str) -> bool:
    """Whether what is printed differs in these ways alone, or is no plain value."""
    if len(wanted) > MAX_TEXT or len(found) > MAX_TEXT:
        return True
    value, right = ((literal(text.strip()) or [None])[0] for text in (found, wanted))
    if right is None or value is None:
        return near(found, wanted) or (right is None and wanted.strip() != "None")
    # 1,000 is written for 1000.
    return near(value, right) or found.replace(",", "").split() == wanted.replace(",", "").split()
