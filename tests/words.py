"""Retired words do not come back: `make lint` runs this.

It looks at every name, word by word (`unit_journal`, `JournalFile`), and for RETIRED_TEXTS at every docstring, comment and
message.
"""

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator, Sequence
from pathlib import Path

RETIRED = {
    "told": "what is done: printed, reported, stated",
    "tell": "print, report, send",
    "tells": "print, report, send",
    "telling": "heartbeat",
    "hand": "worker handle",
    "hands": "worker handle",
    "crew": "scheduler",
    "room": "backpressure, capacity, slots",
    "journal": "unit buffer",
    "standing": "resolved",
    "shelf": "verifier",
    "greeting": "handshake",
    "trouble": "server error",
    "memo": "cache",
    "leftovers": "orphans",
    "learnt": "learned",
    "fact": "rollout outcome",
    "beliefs": "posterior",
    "gathered": "loaded, collected",
    "undecided": "uncertain for a label, spent for a budget",
    "offending": "invalid",
}
"""A word that no name of the project has -> what the project says in its place."""
RETIRED_TYPES = ("Place", "Example", "Kind", "Planned", "Compared", "LabelledChain", "Spent", "Counted", "Draw")
"""Names of types that meant several things: a type says what it is of (`RowLocation`, `TrainingExample`)."""
RETIRED_TEXTS = ("undecided", "offending", "so many")
BY_HAND = ("by_hand", "computed")
"""What a person has worked out is no worker's handle."""
_PARTS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_TEXTS = re.compile(r"\b(" + "|".join(f"{text}|{text.capitalize()}" for text in RETIRED_TEXTS) + r")\b")
PACKAGE = "pipeline"
"""Its texts are looked at too. Tests write what users do, old words among it."""
ON_DISK = {"undecided", "offending"}
"""Words that run directories and older command lines have: the modules in OLD_NAMES may hold them."""
OLD_NAMES = ("config/renamed.py", "storage/commits.py", "estimators/labels.py")


def retired_words(path: Path, *, with_texts: bool = True) -> Iterator[str]:
    """Every retired word of a module, as `FILE:LINE: ...`."""
    source = path.read_text("utf-8")
    found = [(1, path.stem), *names(ast.parse(source))]
    for line, name in sorted(set(found)):
        for word in parts_of(name.replace(*BY_HAND)):
            if word in RETIRED:
                yield f"{path}:{line}: {name} holds the retired word {word!r}: the project says {RETIRED[word]}"
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ClassDef) and node.name in RETIRED_TYPES:
            yield f"{path}:{node.lineno}: {node.name} is retired, for it meant several things: say what it is of"
    if not with_texts:
        return
    old = ON_DISK if str(path).endswith(OLD_NAMES) else set()
    for line, text in texts(source):
        for word in _TEXTS.findall(text):
            if word.lower() not in old:
                yield f"{path}:{line}: {word!r} is retired: see tests/words.py"


def parts_of(name: str) -> list[str]:
    """The words of a name, in lower case."""
    return [part.lower() for part in _PARTS.findall(name)]


def names(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """All names that a module gives or uses, with their lines."""
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield node.lineno, name
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name) | ast.alias(name=name):
                yield node.lineno, name
            case ast.keyword(arg=str(name), value=value):
                yield value.lineno, name


def texts(source: str) -> Iterator[tuple[int, str]]:
    """All texts and comments of a module, with the lines that they begin in."""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type in (tokenize.STRING, tokenize.COMMENT):
            yield token.start[0], token.string


def main(folders: Sequence[str]) -> int:
    """Print what is found; 1 if anything is."""
    root = Path(__file__).parents[1]
    found = [
        line
        for folder in folders
        for path in sorted((root / folder).rglob("*.py"))
        if path != Path(__file__)
        for line in retired_words(path, with_texts=folder == PACKAGE)
    ]
    print("\n".join(found) if found else "No retired word in names and texts.")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main([PACKAGE, "tests"]))
