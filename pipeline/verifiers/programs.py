"""The Python in a problem and its steps: each step is a cell of a notebook, or has none. Pure, and runs nothing.

A cell is the Python blocks of a step, joined, or a step that is Python as a whole: where it defines, imports or asserts
something, so that an equation such as `x = 5` is no cell.
"""

import ast
import re
import sys
import textwrap
import typing
from dataclasses import dataclass
from functools import lru_cache

from pipeline.verifiers.base import StepInContext
from pipeline.verifiers.reading import NotRead, blocks_in

LANGUAGES = frozenset({"python", "py", "python3", "py3"})
MOST_SOURCE = 100_000
"""Characters of a program. With more a step is unknown."""
MOST_CELLS = 500
_MAGIC = re.compile(r"\s*(?:[%!]\S|[\w.]+\?{1,2}\s*$)")
_FRAGMENT = re.compile(r"\s*(?:else|elif|except|finally|case)\b")
_NEWER = re.compile(
    r"^\s*(?:(?:async\s+)?def\s+\w+\[|class\s+\w+\[|type\s+\w+\s*(?:\[.*\])?\s*=)|\bt[\"']", re.MULTILINE
)
"""Syntax that a newer Python may have than the one that reads it."""
_OF_FRAGMENTS = (
    "outside function", "outside loop", "not properly in loop", "unexpected indent", "unindent does not match", "f-string"
)  # fmt: skip
_OF_PYTHON_2 = ("Missing parentheses in call to", "leading zeros in decimal", "multiple exception types must be")
_USUAL = frozenset({"np", "pd", "plt", "sns", "tf", "torch", "numpy", "pandas", "display", "get_ipython"})
_MAKES_PYTHON = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom, ast.Assert)
_GIVES = (*_MAKES_PYTHON[:-1], ast.Assign, ast.AnnAssign)


class NotProgram(Exception):
    """Why a program cannot be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """The Python of a step and the words around it. `tree`: None where the Python has a `mistake`, in words."""

    source: str
    words: str
    tree: ast.Module | None
    mistake: str = ""

    @property
    def comments(self) -> str:
        """The comments in the source. A `#` in a text counts as one."""
        return "\n".join(line.partition("#")[2] for line in self.source.split("\n") if "#" in line)


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """What a problem gives, and the cells of the steps up to the one that is looked at: None for a step without Python."""

    problem: str
    given: Cell
    steps: tuple[Cell | None, ...]

    @property
    def cell(self) -> Cell:
        """The cell of the step that is looked at."""
        last = self.steps[-1]
        assert last is not None
        return last

    @property
    def trees(self) -> list[ast.Module | None]:
        """The syntax trees of what the problem gives, and of each step. None where there is none."""
        return [self.given.tree, *(None if cell is None else cell.tree for cell in self.steps)]

    def up_to(self, number: int) -> "Program":
        """The program as it is after step `number`, from 1."""
        return Program(problem=self.problem, given=self.given, steps=self.steps[:number])


def program_of(step: StepInContext) -> Program | None:
    """The program up to a step. None if the step has no Python. Raises NotProgram."""
    texts = (*step.earlier, step.step)
    if len(texts) > MOST_CELLS or len(step.problem) + sum(map(len, texts)) > MOST_SOURCE:
        raise NotProgram("the program is too long")
    if _cell(step.step, bare=True) is None:
        return None
    cells: list[Cell | None] = []
    for number, text in enumerate(step.earlier, start=1):
        try:
            cells.append(_cell(text, bare=True))
        except NotProgram as reason:
            raise NotProgram(f"step {number} is not read: {reason}") from reason
    # After steps with blocks, a step is Python only in blocks.
    cells.append(_cell(step.step, bare=not any("```" in text for text in step.earlier)))
    if cells[-1] is None:
        return None
    return Program(problem=step.problem, given=_given(step.problem), steps=tuple(cells))


def tree_of(source: str) -> ast.Module:
    """The syntax tree of Python. Raises SyntaxError."""
    try:
        return ast.parse(source)
    except (ValueError, RecursionError, MemoryError) as error:
        raise SyntaxError("too deep, or not text") from error


def why_named(name: str, program: Program) -> str:
    """Why a name that is not defined may be given. Empty: it cannot."""
    if name in sys.stdlib_module_names or name in _USUAL or name in typing.__all__:
        return f"{name} may be imported where it is used"
    words = "\n".join((program.problem, *(cell.words for cell in program.steps if cell is not None)))
    return f"{name} may be given in words" if re.search(rf"(?<!\w){re.escape(name)}(?!\w)", words) else ""


@lru_cache(maxsize=512)
def _cell(text: str, *, bare: bool) -> Cell | None:
    """The cell of a step, None if it has no Python. Raises NotProgram."""
    if "```" not in text:
        return _bare(text) if bare else None
    try:
        found = blocks_in(text, LANGUAGES)
    except NotRead as error:
        raise NotProgram("a block of Python does not end") from error
    if found is None:
        return None
    texts, words = found
    sessions = [part for part in texts if part.lstrip().startswith(">>>")]
    blocks = [textwrap.dedent(part) for part in texts if part not in sessions and part.strip()]
    if not blocks:
        return None
    source, words = "\n".join(blocks), "\n".join((words, *sessions))
    try:
        return Cell(source=source, words=words, tree=tree_of(source))
    except SyntaxError as error:
        if doubt := _doubt(source, error):
            raise NotProgram(doubt) from error
        mistake = f"SyntaxError: {error.msg} (line {error.lineno or 0})"
        return Cell(source=source, words=words, tree=None, mistake=mistake)


def _bare(text: str) -> Cell | None:
    source = textwrap.dedent(text)
    try:
        tree = tree_of(source)
    except SyntaxError:
        return None
    is_python = any(isinstance(node, _MAKES_PYTHON) for node in tree.body)
    return Cell(source=source, words="", tree=tree) if is_python else None


def _doubt(source: str, error: SyntaxError) -> str:
    """Why Python that cannot be read may be right in its place. Empty: it cannot."""
    if any(map(_MAGIC.match, source.split("\n"))):
        return "a notebook's own commands"
    if error.msg.startswith("too deep"):
        return error.msg
    if any(mark in error.msg for mark in _OF_FRAGMENTS) or _FRAGMENT.match(source) or source[:1] in " \t":
        return "a fragment of Python"
    if any(mark in error.msg for mark in _OF_PYTHON_2) or _NEWER.search(source):
        return "another version of Python"
    if re.search(r"^\s*\.\.\.|<\w[\w ]*>|…|\[your|\bYOUR\b", source, re.MULTILINE):
        return "Python with gaps"
    return ""


@lru_cache(maxsize=64)
def _given(problem: str) -> Cell:
    """What a problem defines: imports, definitions and assignments of its blocks. Without a tree where one cannot be read."""
    try:
        cell = _cell(problem, bare=True)
        if cell is None:
            return Cell(source="", words=problem, tree=ast.Module([], []))
        if cell.tree is None:
            raise NotProgram(cell.mistake)
        source = ast.unparse(ast.Module([node for node in cell.tree.body if isinstance(node, _GIVES)], []))
        # The lines of the tree are those of the source.
        return Cell(source=source, words=cell.words, tree=tree_of(source))
    except NotProgram as reason:
        mistake = str(reason)
    except (RecursionError, SyntaxError):
        mistake = "too deep"
    return Cell(source="", words=problem, tree=None, mistake=mistake)
