"""The process of a problem's tests, each judged by itself, against the cells of a notebook in another process.

It states how many tests pass, the first that fails with the value that it found, and what makes this doubtful. The cells see
calls with plain arguments, as with `runs.run_tests`: they cannot read the tests or state anything.

Counted are tests that compare a result with a value that is written out. `objects` says that the cells' process may have
decided something: whether its own objects are equal or true, or what is in an argument.
"""

import ast
import importlib
import json
from typing import Any, NoReturn

from pipeline.graders.code.nearness import near
from pipeline.graders.code.runs import (
    OTHER_SIDE_ENDED,
    Descriptor,
    announce,
    new_module,
    read_content,
    served_to_program,
    state,
)
from pipeline.graders.code.suite import names_used
from pipeline.graders.code.wire import OtherSideEndedError, Peer, Remote

MAX_SHOWN = 200
_DECISIONS = frozenset({"bool", "same", "isinstance"})


class _WatchedPeer(Peer):
    """A peer that notes what the other side decides and raises. `objects`: results that stay in the other process."""

    decided = raised = False
    objects = 0

    def ask(self, operation: str, target: Remote, *arguments: Any, **named: Any) -> Any:
        self.decided = self.decided or operation in _DECISIONS
        before = [repr(value) for value in arguments if isinstance(value, list | dict | set)]
        self.raised = False
        result = super().ask(operation, target, *arguments, **named)
        after = [repr(value) for value in arguments if isinstance(value, list | dict | set)]
        self.decided = self.decided or before != after
        self.objects += operation != "get" and isinstance(result, Remote)
        return result

    def _raise(self, name: object, text: object) -> NoReturn:
        self.raised = True
        super()._raise(name, text)


def run_cases() -> None:
    """Judge each test of the content, up to the first that fails, and state what was found."""
    cases = read_content()["cases"]
    announce()
    peer = _WatchedPeer(Descriptor.READING, Descriptor.WRITING, served_to_program)
    found: dict[str, Any]
    try:
        found = _judged(cases, peer)
    except OtherSideEndedError:
        found = {"ended": True}
    state(json.dumps(found), OTHER_SIDE_ENDED if peer.ended else 0)


def _judged(cases: list[dict[str, str]], peer: _WatchedPeer) -> dict[str, Any]:
    module = new_module("tests")
    program = Remote(peer, 0)
    names = names_used(ast.parse("\n".join(case["source"] for case in cases)))
    for name in names.modules:
        module.__dict__[name] = importlib.import_module(name)
    for name in names.program:
        module.__dict__[name] = program.name(name)
    # The functions themselves are no results.
    peer.objects = 0
    judge = _Judge(module.__dict__, names.program, peer)
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
                    values = [self._value(side) for side in sides]
                    value, wanted = values if asked[0] else reversed(values)
                    if bool(values[0] == values[1]) if isinstance(test.ops[0], ast.Eq) else values[0] is values[1]:
                        self._count(wanted)
                        return None
                    return self._wrong(sides[not asked[0]], value, wanted)
            case ast.UnaryOp(op=ast.Not(), operand=operand) if self._asks(operand):
                return self._truth(operand, wanted=False)
            case ast.Call() if self._asks(test):
                return self._truth(test, wanted=True)
        if bool(self._value(test)):
            return None
        return {"value": "false"}

    def _truth(self, node: ast.expr, *, wanted: bool) -> dict[str, Any] | None:
        value = self._value(node)
        if bool(value) is wanted:
            if isinstance(value, bool):
                self._count(value)
            return None
        return self._wrong(node, value, wanted)

    def _example(self, case: dict[str, str]) -> dict[str, Any] | None:
        """What goes wrong with an example of use that prints its value."""
        try:
            node = ast.parse(case["source"], mode="eval").body
        except SyntaxError:
            exec(compile(case["source"], "<test>", "exec"), self._names)
            return {"doubt": "what is printed is not looked at"} if case["wanted"] else None
        value = self._value(node)
        if not case["wanted"] or case.get("raises") is not None:
            return None
        shown = repr(value)
        try:
            wanted = ast.literal_eval(case["wanted"])
        except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
            if shown.split() == case["wanted"].split() and not isinstance(value, Remote):
                self.passed += 1
                return None
            return {"value": shown[:MAX_SHOWN], "doubt": "the expected output is no plain value"}
        if type(value) is type(wanted) and value == wanted:
            self.passed += 1
            if self._asks(node):
                self._count(wanted)
            return None
        return self._wrong(node, value, wanted)

    def _wrong(self, node: ast.expr, value: Any, wanted: Any) -> dict[str, Any]:
        """A result that is not the wanted one."""
        found = {"shown": ast.unparse(node)[:MAX_SHOWN], "value": repr(value)[:MAX_SHOWN]}
        if value is None and wanted is not None:
            return found | {"doubt": "it may print its result"}
        if isinstance(value, Remote):
            return found | {"doubt": "the result is an object"}
        return found | ({"doubt": "the result is nearly right"} if near(value, wanted) else {})

    def _count(self, wanted: Any) -> None:
        self.counted += 1
        self.wanted.add(repr(wanted)[:MAX_SHOWN])

    def _asks(self, node: ast.expr) -> bool:
        """Whether an expression needs the program."""
        return any(isinstance(part, ast.Name) and part.id in self._of_program for part in ast.walk(node))

    def _value(self, node: ast.expr) -> Any:
        return eval(compile(ast.Expression(node), "<test>", "eval"), self._names)  # noqa: S307  in a confined process
