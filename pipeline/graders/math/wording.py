"""The phrases by which texts state, deny and refuse answers, from the files of `languages`, one per language.

A file has keys with lines. A line is one or several phrases, split by `|`: regular expressions, with `<name>` for the phrases
of that key. All repeats are bounded, so that each search takes linear time. Languages add to each other's keys.
Raises StepvalueError at import for a damaged file, with its path and the entry.
"""

import re
import tomllib
from collections.abc import Collection
from importlib.resources import files
from importlib.resources.abc import Traversable

from pipeline.core.errors import StepvalueError

FIRST = "en.toml"
_NAME = re.compile(r"(?<!P)<(\w+)>")
_UNBOUNDED = re.compile(r"(?<!\\)(?:[*+]|\{\d*,\})(?![^\[\]]*\])")


def read_phrases(folder: Traversable) -> dict[str, str]:
    """For each key a pattern of one of its phrases, without groups that count."""
    lines: dict[str, list[str]] = {}
    paths = [path for path in folder.iterdir() if path.name.endswith(".toml")]
    # The first file has every key.
    known: Collection[str] = ()
    for path in sorted(paths, key=lambda path: (path.name != FIRST, path.name)):
        try:
            keys = tomllib.loads(path.read_text("utf-8"))
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            raise StepvalueError(f"{path}: phrases cannot be read: {error}") from error
        for key, value in keys.items():
            if not isinstance(value, str) or not value.strip():
                raise StepvalueError(f"{path}: `{key}` must be a text with one phrase or more on each line")
            if known and key not in known:
                raise StepvalueError(f"{path}: nothing reads the key `{key}`; {FIRST} has those that are read")
            for line in value.strip("\n").split("\n"):
                _check(f"{path}: `{key}`: {line!r}", line, keys.keys())
            lines.setdefault(key, []).extend(value.strip("\n").split("\n"))
        known = keys if path.name == FIRST else known

    def pattern(key: str) -> str:
        return f"(?:{_NAME.sub(lambda found: pattern(found[1]), '|'.join(lines[key]))})"

    try:
        return {key: pattern(key) for key in lines}
    except RecursionError:
        raise StepvalueError(f"{folder}: phrases that name each other have no end") from None


def _check(where: str, line: str, keys: Collection[str]) -> None:
    if unknown := set(_NAME.findall(line)) - set(keys):
        raise StepvalueError(f"{where}: there is no key `{min(unknown)}`")
    if "||" in line or "|" in (line[:1], line[-1:]):
        raise StepvalueError(f"{where}: a phrase is empty")
    if _UNBOUNDED.search(line) or not line.strip():
        raise StepvalueError(f"{where}: write a phrase whose repeats are bounded, such as {{0,9}}")
    try:
        groups = re.compile(_NAME.sub("x", line)).groups
    except re.error as error:
        raise StepvalueError(f"{where}: {error}") from error
    if groups:
        raise StepvalueError(f"{where}: write (?:...) for (...)")


_FOLDER = files(__package__) / "languages"
PHRASES = read_phrases(_FOLDER)


def phrase(template: str, flags: re.RegexFlag = re.NOFLAG) -> re.Pattern[str]:
    """A template compiled with the phrases of the keys that it names: `<solve>`."""
    try:
        return re.compile(_NAME.sub(lambda found: PHRASES[found[1]], template), flags)
    except KeyError as error:
        raise StepvalueError(f"{_FOLDER}: no file has the key {error}") from None
