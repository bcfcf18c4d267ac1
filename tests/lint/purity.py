"""The import rule of pure modules: one whose docstring says "Pure" does no input or output, nor do those that it imports."""

import ast
import re
from pathlib import Path

from grimp import ImportGraph
from importlinter.contracts.forbidden import ForbiddenContract
from importlinter.domain import fields
from importlinter.domain.contract import ContractCheck
from importlinter.domain.imports import ModuleExpression

ROOT = Path(__file__).parents[2]
MARK = re.compile(r"\bPure\b")


class PureContract(ForbiddenContract):
    """A contract of the type `forbidden` whose source modules are those with the mark."""

    type_name = "pure"
    source_modules = fields.SetField(subfield=fields.ModuleExpressionField(), required=False)

    def check(self, graph: ImportGraph, verbose: bool) -> ContractCheck:
        pure = {ModuleExpression(name) for name in graph.modules if _says_pure(name)}
        self.source_modules = pure  # type: ignore[assignment]
        return super().check(graph, verbose)


def _says_pure(name: str) -> bool:
    file = ROOT / f"{name.replace('.', '/')}.py"
    text = file.read_text("utf-8") if file.is_file() else ""
    return bool(MARK.search(text) and MARK.search(ast.get_docstring(ast.parse(text)) or ""))
