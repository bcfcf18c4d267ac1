"""Generates the reference of what Python users call from signatures and docstrings.

    python -m pipeline.python.reference

writes REFERENCE.md of this folder. A test fails if it does not match the docstrings.
"""

import dataclasses
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pipeline
from pipeline.python.directory import RunDirectory

PAGE = Path(__file__).with_name("REFERENCE.md")
_INTRODUCTION = """\
# Reference of the Python functions

`python -m pipeline.python.reference` generates this page from the docstrings. [In Python](README.md) shows how they are used,
[the settings](../../conf/README.md) what `**settings` takes.
"""
_ARGS = re.compile(r"^Args:\n((?:[ ]{4}.*\n|\n)*)", re.MULTILINE)
_ARGUMENT = re.compile(r"^ {4}(\*{0,2}\w+): ((?:.*\n)(?: {8}.*\n)*)", re.MULTILINE)
_MODULE = re.compile(r"\b(?:pipeline|polars|pathlib|collections|typing)(?:\.\w+)*\.(?=\w)")


def page() -> str:
    """The page. It has each function that `pipeline` offers, and each class that one of them returns, with its members."""
    functions = [name for name in pipeline.__all__ if not isinstance(getattr(pipeline, name), type)]
    return "\n".join(
        [
            _INTRODUCTION,
            *(_function(name, getattr(pipeline, name), level=2) for name in sorted(functions)),
            *(_class(kind) for kind in _classes()),
        ]
    )


def _classes() -> tuple[type, ...]:
    from pipeline.analysis.chains import Chains
    from pipeline.analysis.searches.trees import ProblemTree
    from pipeline.core.progress import RelabelResult, Summary
    from pipeline.export.result import ExportResult
    from pipeline.python.solved import Alternative, Solved, SolvedStep
    from pipeline.python.tree import LabelledTree

    runs = (pipeline.Run, Chains, LabelledTree, Summary, RelabelResult, ExportResult)
    return (*runs, Solved, SolvedStep, Alternative, pipeline.SearchRun, ProblemTree)


def _class(kind: type) -> str:
    parts = [f"## `{kind.__name__}`\n", _text(kind)]
    if dataclasses.is_dataclass(kind):
        rows = [f"| `{each.name}` | {_cell(_kind(each.type))} |" for each in dataclasses.fields(kind)]
        parts.append("\n".join(["| field | type |", "|---|---|", *rows, ""]))
    parts += [_member(name, value) for name, value in _members(kind)]
    return "\n".join(parts)


def _members(kind: type) -> Iterator[tuple[str, Any]]:
    inherited = vars(RunDirectory) if issubclass(kind, RunDirectory) else {}
    for name, value in {**vars(kind), **inherited}.items():
        if not name.startswith("_") and (inspect.isfunction(value) or isinstance(value, property)) and _text(value):
            yield name, value


def _member(name: str, value: Any) -> str:
    if isinstance(value, property):
        return f"### `{name}`\n\n{_text(value)}"
    return _function(name, value, level=3)


def _function(name: str, function: Any, *, level: int) -> str:
    signature = inspect.signature(function)
    parameters = [
        each.replace(annotation=inspect.Parameter.empty)
        for each in signature.parameters.values()
        if each.name != "self"
    ]
    call = str(signature.replace(parameters=parameters, return_annotation=inspect.Signature.empty))
    returns = "" if signature.return_annotation is inspect.Signature.empty else _kind(signature.return_annotation)
    gives = f" → `{returns}`" if returns else ""
    return f"{'#' * level} `{name}{call}`{gives}\n\n{_text(function)}"


def _text(thing: Any) -> str:
    """A docstring as Markdown: its arguments become a list."""
    text = inspect.getdoc(thing) or ""
    if text and not text.endswith("\n"):
        text += "\n"

    def listed(found: "re.Match[str]") -> str:
        items = [(name, " ".join(words.split())) for name, words in _ARGUMENT.findall(found[1])]
        return "".join(f"- `{name}`: {words}\n" for name, words in items) + "\n"

    return _ARGS.sub(listed, text)


def _kind(annotation: Any) -> str:
    text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    return _MODULE.sub("", text).strip("'\"").replace('"', "")


def _cell(text: str) -> str:
    return "`" + text.replace("|", "\\|") + "`"


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
