"""The verifier `code`: a step of Python is refuted if it raises or fails a test, and holds if it passes the problem's tests.

What a step's own process states may refute it, and never proves it: only tests of the problem do, and they run in a process of
their own. Tests that steps write prove a part, because whoever writes a function wrongly may write its tests wrongly.
"""

import ast
import sys
from collections.abc import Sequence
from functools import lru_cache

from pipeline.verifiers.base import UNKNOWN, Covers, Finding, StepInContext, StepVerdict, Verifier
from pipeline.verifiers.code.failures import OTHER_ANSWERS, whose, why_blamed, why_doubtful, why_of_another
from pipeline.verifiers.code.judged import completes, why_part
from pipeline.verifiers.code.names import ends_open
from pipeline.verifiers.code.outside import outside
from pipeline.verifiers.code.sandboxed import NoOutcome, Outcome, Sandbox
from pipeline.verifiers.code.stated import Case, StatedTests, stated_tests
from pipeline.verifiers.programs import NotProgram, Program, program_of
from pipeline.verifiers.sentences import finding, in_a_line, unknown
from pipeline.verifiers.settings import CodeConfig

_CACHED = 512


class Code(Verifier):
    """Steps that are Python functions or cells of a notebook, run in the sandbox of `grader=code`."""

    Config = CodeConfig
    settings: CodeConfig

    def __init__(self, settings: CodeConfig) -> None:
        super().__init__(settings)
        self._sandbox = Sandbox(settings)
        # The same runs are needed again for the next step of a chain.
        self._judged = lru_cache(_CACHED)(self._sandbox.judge)

    @classmethod
    def inputs(cls, settings: CodeConfig) -> dict[str, str]:
        """The version of Python, on which the outcome of a program may depend."""
        return {"python": ".".join(map(str, sys.version_info[:2]))}

    def verify(self, step: StepInContext) -> Finding:
        if len(step.step) > self.settings.most_characters or not step.step.strip():
            return UNKNOWN
        try:
            program = program_of(step)
            return UNKNOWN if program is None else self._finding(program)
        except NotProgram as reason:
            return unknown(f"not read: {reason}")
        except NoOutcome as reason:
            return unknown(str(reason))
        except RecursionError:
            return unknown("too deep to be looked at")

    def _finding(self, program: Program) -> Finding:
        own = len(program.steps)
        for number, tree in enumerate(program.trees):
            if tree is not None and (reason := outside(tree)):
                which = whose(number) if number < own else "the program"
                return unknown(f"{which} depends on more than its text: {reason}")
        tests = stated_tests(program.problem)
        outcome = self._sandbox.run(program.sources)
        at = outcome.stated.get("cell")
        at = max(0, min(at, own)) if isinstance(at, int) else None
        if at is not None and at < own:
            return unknown(f"{whose(at)} goes wrong before it: {_said(outcome, at, program.sources)}")
        if tests is not None and (earlier := self._first_failing(program, tests)):
            return unknown(earlier)
        if at is not None:
            said = _said(outcome, at, program.sources)
            return _unless(why_doubtful(outcome, program) or why_of_another(outcome, program), said)
        found = self._by_problem(program, tests) if tests is not None else None
        return found or _by_itself(outcome, program)

    def _first_failing(self, program: Program, tests: StatedTests) -> str:
        """Which earlier step fails a test of the problem, in words. Empty: none, or one that may be right and is not needed."""
        is_fresh = completes(program, tests) and not why_blamed(tests.names, program)
        for number in range(1, len(program.steps)):
            before = program.up_to(number)
            if before.steps[-1] is None or not completes(before, tests):
                continue
            outcome = self._judged(before.sources, tests.cases)
            doubted = is_fresh and not outcome.has("ended") and self._why_not_failed(outcome, before, tests)
            if (outcome.has("case") or outcome.has("ended")) and not doubted:
                return f"step {number} goes wrong before it: {_failure(outcome, tests)}"
        return ""

    def _by_problem(self, program: Program, tests: StatedTests) -> Finding | None:
        """What the tests of the problem say of a step. None: nothing."""
        if not completes(program, tests):
            return None
        outcome = self._judged(program.sources, tests.cases)
        if outcome.has("ended"):
            return unknown("the program ends its process in a test")
        if "case" in outcome.stated:
            return _unless(self._why_not_failed(outcome, program, tests), _failure(outcome, tests))
        if not (passed := outcome.number("passed")):
            return None
        said = f"passes {_count(passed)} of the problem"
        if part := why_part(program, tests) or self._why_weak(outcome):
            return finding(StepVerdict.HOLDS, f"{said}; {part}")
        return finding(StepVerdict.HOLDS, said, Covers.WHOLE)

    def _why_not_failed(self, outcome: Outcome, program: Program, tests: StatedTests) -> str:
        """Why a test of the problem that fails does not refute a step. Empty: it does."""
        if "doubt" in outcome.stated:
            return outcome.text("doubt") or "an exception was expected"
        if outcome.has("objects"):
            return "objects of the program take part in the tests"
        if OTHER_ANSWERS.search(program.problem):
            return "the problem may have other answers"
        if ends_open(program.cell.tree.body[-1]):
            return "its last function may go on in a later step"
        raised = Outcome({name: outcome.text(name) for name in ("error", "text")})
        return why_doubtful(raised, program) or why_blamed(tests.names, program)

    def _why_weak(self, outcome: Outcome) -> str:
        """Why passed tests do not prove a function. Empty: they do."""
        least = self.settings.least_tests
        if outcome.has("objects"):
            return "objects of the program take part in them"
        if outcome.number("counted") < least or outcome.number("distinct") < min(2, least):
            return f"too few to prove it: {outcome.number('distinct')} different values in {_count(outcome.number('counted'))}"
        return ""


def _value_of(outcome: Outcome) -> str:
    return f": {outcome.text('shown')} is {outcome.text('value')}" if outcome.has("shown") else ""


def _by_itself(outcome: Outcome, program: Program) -> Finding:
    """What the tests that a step writes say of it, all of which pass."""
    tests = sum(isinstance(node, ast.Assert) for node in program.cell.tree.body) + max(0, outcome.number("tests"))
    if not tests:
        return unknown("runs without an error, and nothing tests it")
    return finding(StepVerdict.HOLDS, f"passes {_count(tests)} of its own")


def _said(outcome: Outcome, cell: int, sources: Sequence[str]) -> str:
    """What goes wrong in a cell, in words."""
    error, text, value = outcome.text("error"), outcome.text("text"), outcome.text("value")
    raised = f"{error}: {text}" if text else error
    if outcome.has("test"):
        shown = outcome.text("test")
        if outcome.has("shown"):
            return f"its own test {shown} fails{_value_of(outcome)}"
        if error:
            return f"its own test {shown} raises {raised}"
        return f"its own test {shown} gives {value or 'nothing'}, not {outcome.text('wanted')}"
    place = outcome.stated.get("of")
    lines = sources[place if isinstance(place, int) and 0 <= place < len(sources) else cell].split("\n")
    number = outcome.number("line")
    line = in_a_line(lines[number - 1]) if 0 < number <= len(lines) else ""
    if error == "AssertionError" and line.startswith("assert"):
        return f"{line} fails{_value_of(outcome)}"
    return f"{raised}, at `{line}`" if line else raised


def _failure(outcome: Outcome, tests: StatedTests) -> str:
    """A test of the problem that fails, in words."""
    number = outcome.number("case")
    case = tests.cases[number] if 0 <= number < len(tests.cases) else Case("")
    said = f"the problem's test {in_a_line(case.source)}"
    if outcome.has("ended"):
        return f"{said} ends the program"
    if error := outcome.text("error"):
        return f"{said} raises {error}: {outcome.text('text')}"
    if case.wanted:
        return f"{said} gives {outcome.text('value')}, not {in_a_line(case.wanted)}"
    return f"{said} fails{_value_of(outcome) or ': it is false'}"


def _count(tests: int) -> str:
    return f"{tests} test" if tests == 1 else f"{tests} tests"


def _unless(doubt: str, said: str) -> Finding:
    return unknown(f"{said}; but {doubt}") if doubt else finding(StepVerdict.REFUTED, said)
