"""Retired words do not come back: `make lint` runs this.

It looks at every name of the code, word by word (`unit_journal`, `JournalFile`). For RETIRED_TEXTS it also looks at every
docstring, comment and message of the package, at its scripts, styles and templates, and at all Markdown and YAML of the
repository. In Markdown it skips what is quoted as code, so that a document can name what something was called before.
"""

import ast
import io
import re
import sys
import tokenize
from collections.abc import Collection, Iterator, Sequence
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
RETIRED_TEXTS = {
    "so many": "the number, or as many as",
    "anew": "again",
    "door": "extension point",
    "doors": "extension points",
    **{word: RETIRED[word] for word in ("undecided", "offending", "learnt", "told", "tells", "telling", "gathered")},
    **{word: RETIRED[word] for word in ("crew", "journal", "shelf", "leftovers", "beliefs", "greeting", "memo")},
}
"""What no text has -> what the project says in its place. Words of RETIRED that have another, plain meaning in a sentence are
not here: "by hand", "a fact"."""
BY_HAND = ("by_hand", "computed")
"""What a person has worked out is no worker's handle."""
_PARTS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_TEXTS = re.compile(rf"(?<![\w.])({'|'.join(f'{text}|{text.capitalize()}' for text in RETIRED_TEXTS)})(?!\w|\[|\.\w)")
"""A text with a retired word. A module's path (`core.doors`), an attribute (`{door.noun}`)
and a quoted annotation (`"Door[T]"`) are names, not texts."""
_CODE = re.compile(r"^( *)(```+|~~~+).*?^\1\2|`[^`]*`", re.DOTALL | re.MULTILINE)
PACKAGE = "pipeline"
"""Its texts are looked at too. Tests write what users do, old words among it."""
DOCUMENTS = ("*.md", "*.yaml", "*.yml")
DOCUMENT_FOLDERS = (".ci", "conf", "docker", PACKAGE, "tests")
SCRIPTS = ("*.js", "*.css", "*.html")
"""Files of the pages that `report` writes."""
OLD_RUNS = "tests/guard/before"
"""Run directories that earlier versions wrote."""
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
        yield from _found(path, line, text, old)


def retired_texts(path: Path) -> Iterator[str]:
    """Every retired text of a file that is not Python, as `FILE:LINE: ...`."""
    text = path.read_text("utf-8")
    if path.suffix == ".md":
        # Lines keep their numbers.
        text = _CODE.sub(lambda code: "\n" * code[0].count("\n"), text)
    yield from _found(path, 1, text)


def _found(path: Path, first: int, text: str, but: Collection[str] = ()) -> Iterator[str]:
    for match in _TEXTS.finditer(text):
        if match[0].lower() not in but:
            line = first + text.count("\n", 0, match.start())
            yield f"{path}:{line}: {match[0]!r} is retired: the project says {RETIRED_TEXTS[match[0].lower()]}"


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
    return sorted(path for path in found if not path.is_relative_to(root / OLD_RUNS))


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
    found += [line for path in documents(root) for line in retired_texts(path)]
    print("\n".join(found) if found else "No retired word in names and texts.")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main([PACKAGE, "tests"]))
