"""The program of a chain as one text for mypy, and where in it the step stands. Pure.

A function or class that is defined again leaves its earlier place, because a notebook uses the last one.
"""

import ast
import re
from dataclasses import dataclass

from pipeline.verifiers.programs import Program
from pipeline.verifiers.types.messages import LineContext

_INLINE_SETTINGS = re.compile(r"#\s*mypy\s*:", re.IGNORECASE)
_IGNORED = re.compile(r"#\s*type\s*:\s*ignore", re.IGNORECASE)
_DEFINES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A program for mypy. The step's lines are those from `first` on, counted from 1."""

    text: str
    first: int
    step: ast.Module
    functions: frozenset[str]
    typed: int
    """Functions and variables of the step with an annotation."""
    ignores: bool
    """Whether a comment of the step hides errors."""

    def place(self, line: int) -> LineContext:
        """What stands in a line of the program, which is one of the step."""
        own = line - self.first + 1
        nodes = [node for node in ast.walk(self.step) if _stands_at(node, own)]
        bodies = (*_FUNCTIONS, ast.Lambda)
        return LineContext(
            in_function=any(isinstance(node, bodies) for node in nodes),
            annotates=any(isinstance(node, ast.AnnAssign) and node.value is not None for node in nodes),
            functions=self.functions,
        )

    def line(self, number: int) -> str:
        """A line of the program."""
        lines = self.text.split("\n")
        return lines[number - 1].strip() if 0 < number <= len(lines) else ""


def source_of(program: Program) -> Source:
    """The text of a program whose cells all have trees."""
    cells = [cell for cell in (program.given, *program.steps) if cell is not None and cell.tree is not None]
    step = cells[-1].tree
    assert step is not None
    later: set[str] = set()
    texts: list[str] = []
    functions: dict[str, int] = {}
    for cell in reversed(cells):
        assert cell.tree is not None
        texts.append(_without(cell.source, cell.tree, later))
        for node in cell.tree.body:
            if isinstance(node, _DEFINES) and node.name not in later:
                plain = isinstance(node, _FUNCTIONS) and not node.decorator_list
                functions[node.name] = functions.get(node.name, 0) + (1 if plain else 2)
        later |= {node.name for node in cell.tree.body if isinstance(node, _DEFINES)}
    texts.reverse()
    own = texts.pop()
    before = "\n".join(texts)
    text = f"{before}\n{own}" if texts else own
    return Source(
        text=_INLINE_SETTINGS.sub("# :", text),
        first=before.count("\n") + 2 if texts else 1,
        step=step,
        functions=frozenset(name for name, count in functions.items() if count == 1),
        typed=sum(_is_typed(node) for node in ast.walk(step)),
        ignores=_IGNORED.search(own) is not None or "no_type_check" in own,
    )


def _without(source: str, tree: ast.Module, names: set[str]) -> str:
    """A source with empty lines in place of definitions of these names."""
    lines = source.split("\n")
    for node in tree.body:
        if isinstance(node, _DEFINES) and node.name in names:
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            for number in range(first - 1, node.end_lineno or node.lineno):
                lines[number] = ""
    return "\n".join(lines)


def _stands_at(node: ast.AST, line: int) -> bool:
    first, last = getattr(node, "lineno", None), getattr(node, "end_lineno", None)
    return first is not None and last is not None and first <= line <= last


def _is_typed(node: ast.AST) -> bool:
    match node:
        case ast.AnnAssign():
            return True
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
            return node.returns is not None or any(each.annotation is not None for each in arguments)
    return False
