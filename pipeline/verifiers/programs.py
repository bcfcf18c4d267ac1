"""The Python in a problem and its steps: each step is a cell of a notebook, or has none. Pure, and runs nothing.

A cell is the Python blocks of a step, joined, or a step that is Python as a whole: where it defines, imports or asserts
something, so that an equation such as `x = 5` is no cell.
"""

import ast
import textwrap
from dataclasses import dataclass, replace
from functools import lru_cache

from pipeline.verifiers.base import StepInContext
from pipeline.verifiers.reading import NotRead, blocks_in

LANGUAGES = frozenset({"python", "py", "python3", "py3"})
MOST_SOURCE = 100_000
"""Characters of a program. With more a step is unknown."""
MOST_CELLS = 500
_MAKES_PYTHON = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom, ast.Assert)
_GIVES = (*_MAKES_PYTHON[:-1], ast.Assign, ast.AnnAssign)


class NotProgram(Exception):
    """Why a program cannot be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """The Python of a step and the words around it. `mistake`: why the Python of a problem is not read, in words."""

    source: str
    words: str
    tree: ast.Module
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
    words: str
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
        return [None if cell is None else cell.tree for cell in (self.given, *self.steps)]

    @property
    def sources(self) -> tuple[str, ...]:
        """The source of what the problem gives, and of each step. Empty where there is none."""
        return tuple("" if cell is None else cell.source for cell in (self.given, *self.steps))

    def up_to(self, number: int) -> "Program":
        """The program as it is after step `number`, from 1."""
        return replace(self, steps=self.steps[:number])


def program_of(step: StepInContext) -> Program | None:
    """The program up to a step. None if the step has no Python. Raises NotProgram."""
    texts = (*step.earlier, step.step)
    if len(texts) > MOST_CELLS or len(step.problem) + sum(map(len, texts)) > MOST_SOURCE:
        raise NotProgram("the program is too long")
    # After steps with blocks, a step is Python only in blocks.
    own = _cell(step.step, bare=not any("```" in text for text in step.earlier))
    if own is None:
        return None
    cells: list[Cell | None] = []
    for number, text in enumerate(step.earlier, start=1):
        try:
            cells.append(_cell(text, bare=True))
        except NotProgram as reason:
            raise NotProgram(f"step {number} is not read: {reason}") from reason
    cells.append(own)
    words = "\n".join(text if cell is None else cell.words for text, cell in zip(texts, cells, strict=True))
    return Program(problem=step.problem, given=_given(step.problem), words=words, steps=tuple(cells))


def tree_of(source: str) -> ast.Module:
    """The syntax tree of Python. Raises SyntaxError."""
    try:
        return ast.parse(source)
    except (ValueError, RecursionError, MemoryError) as error:
        raise SyntaxError("too deep, or not text") from error


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
        # A later step may continue it; pseudocode, other languages and newer versions of Python are no mistakes.
        raise NotProgram(f"{error.msg} (line {error.lineno or 0})") from error


def _bare(text: str) -> Cell | None:
    source = textwrap.dedent(text)
    try:
        tree = tree_of(source)
    except SyntaxError:
        return None
    is_python = any(isinstance(node, _MAKES_PYTHON) for node in tree.body)
    return Cell(source=source, words="", tree=tree) if is_python else None


@lru_cache(maxsize=64)
def _given(problem: str) -> Cell:
    """What a problem defines: imports, definitions and assignments of its blocks. Nothing where they cannot be read."""
    try:
        cell = _cell(problem, bare=True)
        if cell is None:
            return Cell(source="", words=problem, tree=ast.Module([], []))
        source = ast.unparse(ast.Module([node for node in cell.tree.body if isinstance(node, _GIVES)], []))
        # The lines of the tree are those of the source.
        return Cell(source=source, words=cell.words, tree=tree_of(source))
    except (NotProgram, RecursionError, SyntaxError) as reason:
        return Cell(source="", words=problem, tree=ast.Module([], []), mistake=str(reason))
