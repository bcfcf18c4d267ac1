"""Retired words do not come back: `make lint` runs this.

It looks at every name of the code, word by word (`unit_journal`, `JournalFile`), at every docstring, comment and message of the
package and of its tests, at the scripts, styles and templates of pages, and at all Markdown and YAML of the repository. In
Markdown it skips what is quoted as code, so that a document can name what something was called before.

A word is found with the endings -s and -ed too: `journals` and `journaled` are `journal`. Other forms are words of their own.
"""

import ast
import io
import re
import sys
import tokenize
from collections.abc import Collection, Iterator
from pathlib import Path

RETIRED = {
    "told": "what is done: printed, reported, stated",
    "tells": "print, report, send",
    "telling": "heartbeat",
    "hand": "worker handle; for the verb: give",
    "crew": "scheduler",
    "room": "backpressure, capacity, slots",
    "journal": "unit log",
    "standing": "resolved",
    "shelf": "verifier",
    "shelves": "verifiers",
    "greeting": "handshake",
    "trouble": "server error",
    "memo": "cache",
    "leftover": "orphan",
    "learnt": "learned",
    "beliefs": "posterior",
    "gathered": "loaded, collected",
    "undecided": "uncertain for a label, spent for a budget",
    "offending": "invalid",
    "so many": "the number, or as many as",
    "anew": "again",
    "door": "extension point",
}
"""A word that neither names nor texts have -> what the project says in its place."""
RETIRED_NAMES = {"tell": "print, report, send", "fact": "rollout outcome"}
"""Words that only names do not have. A sentence may: "to tell apart", "a new fact is a new field"."""
PLAIN_NAMES = ("facts", "PolicyFacts", "Facts", "FactsConfig", "FactsChecker", "verify_facts")
"""Names with another, plain meaning: what is known of a policy before it is loaded, and what a table of facts holds."""
RETIRED_TYPES = ("Place", "Example", "Kind", "Planned", "Compared", "LabelledChain", "Spent", "Counted", "Draw")
"""Names of types that meant several things: a type says what it is of (`RowLocation`, `TrainingExample`)."""
_PARTS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")


def _pattern(words: Collection[str]) -> str:
    """What a person works out "by hand" is no worker handle. A phrase may go over the end of a line."""
    forms = "|".join(words).replace(" ", r"\s+")
    return rf"(?<!by )(?P<word>{forms})(?:s|e?d)?"


_NAME = re.compile(rf"\b{_pattern([*RETIRED, *RETIRED_NAMES])}\b")
_TEXT = re.compile(rf"(?<![\w.]){_pattern(RETIRED)}(?!\w|\[|\.\w)", re.IGNORECASE)
"""A module's path (`core.doors`) and a quoted annotation (`"Door[T]"`) are names, not texts."""
_CODE = re.compile(r"^( *)(```+|~~~+).*?^\1\2|`[^`]*`", re.DOTALL | re.MULTILINE)
PACKAGE = "pipeline"
FOLDERS = (PACKAGE, "tests")
DOCUMENTS = ("*.md", "*.yaml", "*.yml")
DOCUMENT_FOLDERS = (".ci", "conf", "docker", *FOLDERS)
SCRIPTS = ("*.js", "*.css", "*.html")
"""Files of the pages that `report` writes."""
KEPT = {
    "pipeline/verifiers/algebra/verifier.py": ("hand",),
    "pipeline/verifiers/arithmetic/words.py": ("room",),
    "pipeline/verifiers/facts/claims.py": ("told",),
    "tests/guard/runs.py": ("told",),
    "tests/lint/test_retired_words.py": tuple(RETIRED),
    "tests/guard/capabilities.py": ("told", "hand"),
}
"""Modules whose texts have words of files on disk or of models, and the tests of this check."""


def retired_words(path: Path) -> Iterator[str]:
    """Every retired word of a module, as `FILE:LINE: ...`."""
    source = path.read_text("utf-8")
    found = [(1, path.stem), *names(ast.parse(source))]
    for line, name in sorted(set(found)):
        if name in PLAIN_NAMES:
            continue
        for match in _NAME.finditer(" ".join(parts_of(name))):
            word = match["word"]
            yield f"{path}:{line}: {name} holds the retired word {word!r}: the project says {_substitute(word)}"
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ClassDef) and node.name in RETIRED_TYPES:
            yield f"{path}:{node.lineno}: {node.name} is retired, for it meant several things: say what it is of"
    kept = next((words for name, words in KEPT.items() if path.as_posix().endswith(name)), ())
    for line, text in texts(source):
        yield from _found(path, line, text, kept)


def retired_texts(path: Path) -> Iterator[str]:
    """Every retired text of a file that is not Python, as `FILE:LINE: ...`."""
    text = path.read_text("utf-8")
    if path.suffix == ".md":
        # Lines keep their numbers.
        text = _CODE.sub(lambda code: "\n" * code[0].count("\n"), text)
    yield from _found(path, 1, text)


def _found(path: Path, first: int, text: str, kept: Collection[str] = ()) -> Iterator[str]:
    for match in _TEXT.finditer(text):
        word = " ".join(match["word"].lower().split())
        if word not in kept:
            line = first + text.count("\n", 0, match.start())
            yield f"{path}:{line}: {match[0]!r} is retired: the project says {_substitute(word)}"


def _substitute(word: str) -> str:
    return {**RETIRED, **RETIRED_NAMES}[word]


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


def documents(root: Path) -> list[Path]:
    """The files that are not Python and whose texts are looked at."""
    found = {path for pattern in DOCUMENTS for path in root.glob(pattern)}
    for folder in DOCUMENT_FOLDERS:
        found |= {path for pattern in DOCUMENTS for path in (root / folder).rglob(pattern)}
    found |= {path for pattern in SCRIPTS for path in (root / PACKAGE).rglob(pattern)}
    return sorted(found)


def main() -> int:
    """Print what is found; 1 if anything is."""
    root = Path(__file__).parents[2]
    found = [
        line
        for folder in FOLDERS
        for path in sorted((root / folder).rglob("*.py"))
        if path != Path(__file__)
        for line in retired_words(path)
    ]
    found += [line for path in documents(root) for line in retired_texts(path)]
    print("\n".join(found) if found else "No retired word in names and texts.")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
