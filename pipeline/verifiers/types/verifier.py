"""The verifier `types`: a step of Python is refuted by an error of types that mypy finds in it and that is a sure mistake.

It never proves a whole step: what has the right types may compute the wrong value.
"""

import ast
import importlib.metadata
import importlib.util
import re
import sys
from collections import Counter

from pipeline.core.errors import UsageError
from pipeline.verifiers.base import UNKNOWN, Finding, StepInContext, StepVerdict, Verifier
from pipeline.verifiers.code.failures import may_go_wrong
from pipeline.verifiers.programs import NotProgram, Program, program_of, why_named
from pipeline.verifiers.sentences import finding, in_a_line, unknown
from pipeline.verifiers.settings import TypesConfig
from pipeline.verifiers.types.messages import (
    SURE_CODES,
    TypeMistake,
    UnreadableMessage,
    is_sure,
    mistakes_in,
    undefined_name,
)
from pipeline.verifiers.types.modules import unknown_import
from pipeline.verifiers.types.process import messages_of
from pipeline.verifiers.types.sources import Source, source_of

_QUOTED = re.compile(r'"(\w+)')
_REMEDY = "needs the package mypy: pip install 'stepvalue[types]', or '.[types]' in a checkout"


class Types(Verifier):
    """Steps of Python with annotations, checked by mypy together with all Python before them."""

    Config = TypesConfig
    settings: TypesConfig

    def __init__(self, settings: TypesConfig) -> None:
        """Raises UsageError without the package mypy."""
        super().__init__(settings)
        if missing := self.missing(settings):
            raise UsageError(f"the verifier types {missing}")

    @classmethod
    def missing(cls, settings: TypesConfig) -> str:
        return "" if importlib.util.find_spec("mypy") is not None else _REMEDY

    @classmethod
    def inputs(cls, settings: TypesConfig) -> dict[str, str]:
        """The versions of mypy and Python, on which findings depend."""
        try:
            mypy = importlib.metadata.version("mypy")
        except importlib.metadata.PackageNotFoundError:
            mypy = "missing"
        return {"mypy": mypy, "python": ".".join(map(str, sys.version_info[:2]))}

    def verify(self, step: StepInContext) -> Finding:
        if len(step.step) > self.settings.most_characters or not step.step.strip():
            return UNKNOWN
        try:
            program = program_of(step)
            return UNKNOWN if program is None else self._finding(program)
        except NotProgram as reason:
            return unknown(f"not read: {reason}")
        except RecursionError:
            return unknown("too deep to be looked at")

    def _finding(self, program: Program) -> Finding:
        if program.given.tree is None:
            return unknown(f"the problem's own code is not read: {program.given.mistake}")
        for number, cell in enumerate(program.steps, start=1):
            if cell is None:
                continue
            if cell.tree is None:
                own = number == len(program.steps)
                verdict = StepVerdict.REFUTED if own else StepVerdict.UNKNOWN
                return finding(verdict, cell.mistake if own else f"step {number} goes wrong before it: {cell.mistake}")
            if missing := unknown_import(cell.tree):
                return unknown(f"step {number} imports {missing}, whose types are not known")
        source = source_of(program)
        messages = messages_of(source.text, self.settings)
        if messages is None:
            return unknown("mypy does not end within its limits")
        try:
            return self._judged(mistakes_in(messages), source, program)
        except UnreadableMessage as message:
            return unknown(f"mypy does not read it: {message}")

    def _judged(self, mistakes: list[TypeMistake], source: Source, program: Program) -> Finding:
        own = [mistake for mistake in mistakes if mistake.line >= source.first]
        sure = [
            mistake for mistake in own if is_sure(mistake, source.place(mistake.line)) and not _given(mistake, program)
        ]
        earlier = [mistake for mistake in mistakes if mistake.line < source.first and mistake.code in SURE_CODES]
        if sure and (doubt := _why_meant(sure, program)):
            return unknown(f"{_said(sure[0], source)}; but {doubt}")
        if sure and earlier:
            return unknown(f"{_said(sure[0], source)}; but there are errors before the step")
        if sure:
            return finding(StepVerdict.REFUTED, "; ".join(_said(mistake, source) for mistake in sure[:3]))
        if own:
            return unknown(f"may be legal: {_said(own[0], source)}")
        if not source.typed or source.ignores:
            return unknown("a comment hides errors of types" if source.ignores else "nothing has a type")
        noun = "annotation" if source.typed == 1 else "annotated parts"
        return finding(StepVerdict.HOLDS, f"mypy finds no error in {source.typed} {noun}")


def _why_meant(mistakes: list[TypeMistake], program: Program) -> str:
    """Why errors may be meant, or may be none when the program runs. Empty: they are mistakes."""
    if may_go_wrong(program):
        return "the step's words may mean it to go wrong"
    bound: Counter[str] = Counter()
    for tree in filter(None, program.trees):
        for node in ast.walk(tree):
            match node:
                case ast.Try() | ast.With() | ast.AsyncWith():
                    return "the program may expect exceptions"
                case ast.Global() | ast.Nonlocal():
                    return "functions set names of the program"
                case ast.Attribute(value=ast.Name(id=name), ctx=ast.Store()) if name not in ("self", "cls"):
                    return "the program sets attributes"
                case ast.FunctionDef(name=name, decorator_list=[]) | ast.ClassDef(name=name):
                    bound[name] += 1
                case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                    bound[name] += 2
                case ast.Name(id=name, ctx=ast.Store()):
                    bound[name] += 1
    again = {name for name, times in bound.items() if times > 1}
    named = {word for each in mistakes for word in _QUOTED.findall(each.text)}
    return "a name gets another meaning" if named & again else ""


def _given(mistake: TypeMistake, program: Program) -> bool:
    """Whether an error is about a name that may be given in words or imported elsewhere."""
    name = undefined_name(mistake)
    hides = re.search(
        r"\b(?:globals|exec|setattr)\b|import \*", "\n".join(cell.source for cell in program.steps if cell)
    )
    return bool(name) and (hides is not None or bool(why_named(name, program)))


def _said(mistake: TypeMistake, source: Source) -> str:
    line = in_a_line(source.line(mistake.line), 100)
    return f"{mistake.text} [{mistake.code}], at line {mistake.line - source.first + 1}: `{line}`"
