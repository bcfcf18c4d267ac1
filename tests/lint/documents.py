"""What is wrong in the Markdown documents: commands, `make` targets, settings, links and tables that name what is not there.

Each check takes a document and returns a line for each fault. It looks at the form of external links only, and does not see
whether a sentence is true.
"""

import contextlib
import difflib
import io
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from urllib.parse import unquote, urlsplit

from pipeline.__main__ import main
from pipeline.cli import COMMANDS
from pipeline.cli.complete import SHELLS
from pipeline.cli.options import groups
from pipeline.cli.reference import command_settings
from pipeline.runtime.objects import REGISTRIES

ROOT = Path(__file__).parents[2]
HISTORY = "CHANGELOG.md"
"""Its commands and links are those of earlier versions."""
PLACEHOLDERS = frozenset({"key", "group", "setting", "experiment"})
"""`key=value` and its like speak of no setting, `experiment=NAME` of a file of the user's own."""

_FENCE = re.compile(r"^\s*(`{3,}|~{3,})(.*)$")
_SPAN = re.compile(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)", re.DOTALL)
_LINK = re.compile(r"\]\(\s*<?([^)\s>]*)>?(?:\s+\"[^\"]*\")?\s*\)")
_MODULE_LINK = re.compile(r"\[`[^`]*`\]\([^)]*(?:\.py|/)\)")
_REFERENCE = re.compile(r"^ {0,3}\[([^\]]+)\]:\s*<?(\S+?)>?(?:\s+\".*\")?\s*$", re.MULTILINE)
_USED_REFERENCE = re.compile(r"\]\[([^\]]+)\]")
_HTML_LINK = re.compile(r"<(?:a|img|source)\b[^>]*?\b(?:href|src|srcset)=[\"']([^\"']*)[\"']")
_HTML_ANCHOR = re.compile(r"<[a-z]+\b[^>]*?\b(?:id|name)=[\"']([^\"']+)[\"']")
_AUTOLINK = re.compile(r"<(https?:[^>\s]*)>")
_HOST = re.compile(r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)+", re.IGNORECASE)
_KEY = re.compile(r"[a-z_][a-z0-9_]*(?:\.[a-z_][a-z0-9_]*)*")
_CALL = re.compile(r"python -m pipeline (.*)|(?:^|[\s;&|(])stepvalue ((?:[a-z]|-).*)")
_MAKE = re.compile(r"(?:^|&&|;|\$) *make ([^#;&|]*)")
_OPERATORS = frozenset({"|", "||", "&", "&&", ";", ">", ">>", "<", "(", ")", ">&"})
_FILE_ENDINGS = frozenset(
    {"css", "csv", "html", "js", "json", "jsonl", "lock", "md", "parquet", "py", "txt", "yaml", "yml"}
)
_NEARLY = 0.85
_TABLE_KEY = re.compile(r"`([a-z_.]+)=`")
_EXAMPLES = re.compile(r'^\s*"?([a-z_]+)"?\s*[:=] "[\w.]+:\w+"', re.MULTILINE)


@dataclass(frozen=True)
class Document:
    """A Markdown document: where it is, relative to `root`, and its text."""

    path: Path
    text: str
    root: Path = ROOT

    @cached_property
    def _parts(self) -> tuple[list[str], str]:
        """The blocks of code, and the text without them and without comments."""
        blocks: list[str] = []
        prose: list[str] = []
        fence, block = "", list[str]()
        for line in self.text.splitlines():
            found = _FENCE.match(line)
            if fence:
                if found and found[1].startswith(fence) and not found[2].strip():
                    blocks.append("\n".join(block))
                    fence, block = "", []
                else:
                    block.append(line)
            elif found and "`" not in found[2]:
                fence = found[1]
                prose.append("")
            else:
                prose.append(line)
        return blocks, re.sub(r"<!--.*?-->", "", "\n".join(prose), flags=re.DOTALL)

    @property
    def blocks(self) -> list[str]:
        return self._parts[0]

    @property
    def prose(self) -> str:
        return self._parts[1]

    @cached_property
    def spans(self) -> list[str]:
        """What stands in backticks within the text, but for names of modules and folders that are links to them.

        No span goes beyond a paragraph.
        """
        paragraphs = re.split(r"\n\s*\n", _MODULE_LINK.sub("", self.prose))
        return [" ".join(found[2].split()) for part in paragraphs for found in _SPAN.finditer(part)]

    @cached_property
    def anchors(self) -> set[str]:
        """What a link may end in behind the #, as code hosts make it of headings."""
        seen: dict[str, int] = {}
        found = set(_HTML_ANCHOR.findall(self.prose))
        for line in self.prose.splitlines():
            if heading := re.match(r"^ {0,3}#{1,6}\s+(.*?)\s*#*$", line):
                slug = slug_of(heading[1])
                again = seen.get(slug, 0)
                seen[slug] = again + 1
                found.add(f"{slug}-{again}" if again else slug)
        return found


def documents(root: Path = ROOT) -> list[Document]:
    """All Markdown documents but HISTORY and those in folders that git ignores."""
    ignored = {line.rstrip("/") for line in (root / ".gitignore").read_text("utf-8").splitlines() if line.endswith("/")}
    return [
        read(path.relative_to(root), root)
        for path in sorted(root.rglob("*.md"))
        if path.name != HISTORY
        and not any(Path(part).match(name) for part in path.relative_to(root).parts for name in ignored)
    ]


def read(path: Path, root: Path = ROOT) -> Document:
    return Document(path=path, text=(root / path).read_text("utf-8"), root=root)


def slug_of(heading: str) -> str:
    """The anchor of a heading: its text in small letters, without punctuation, with hyphens for blanks."""
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", heading)
    text = re.sub(r"[^\w\- ]", "", re.sub(r"(?<![\w`])[*_]+|[*_]+(?![\w`])", "", text).lower())
    return text.replace(" ", "-")


def wrong_commands(document: Document) -> list[str]:
    """Calls of the command line, in blocks of code or in backticks, that the command line refuses."""
    return [f"{call}: {said}" for call in dict.fromkeys(_calls(document)) if (said := _refusal(call))]


def _calls(document: Document) -> Iterator[str]:
    for block in document.blocks:
        for line in block.replace("\\\n", " ").splitlines():
            for call in _CALL.finditer(line):
                yield (call[1] or call[2]).strip()
    for span in document.spans:
        if (inline := re.match(r"(?:python -m pipeline|stepvalue) (.+)", span)) and "..." not in span:
            yield inline[1]


@cache
def _refusal(call: str) -> str:
    """What the command line says against a call; nothing where it takes it."""
    try:
        words = _words(call)
    except ValueError as error:
        return str(error)
    if not words or words[0].isupper() or words[0] in ("-h", "--help", "--version", "help"):
        return ""
    if words[0] == "completion":
        return "" if words[1:] in [[shell] for shell in (*SHELLS, "-h")] else f"there are {', '.join(SHELLS)}"
    said, errors = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(errors):
        if words[0] in COMMANDS and COMMANDS[words[0]].continues:
            # It reads the settings of a run that is not there.
            words = [word for word in words if not word.startswith("run_dir=")]
        main([*words, "--cfg", "job"])
    return errors.getvalue().strip()


def _words(call: str) -> list[str]:
    """The words of a call up to its end in the shell; variables have a value."""
    lexer = shlex.shlex(re.sub(r"\$\{?\w+\}?", "x", call), posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    words: list[str] = []
    for word in lexer:
        if word in _OPERATORS:
            if word[0] in "<>" and words[-1:] in (["1"], ["2"]):
                words.pop()
            break
        if word not in ("...", "…"):
            words.append(word)
    return words


def wrong_targets(document: Document) -> list[str]:
    """Targets and variables of `make` that the Makefile does not have."""
    text = (document.root / "Makefile").read_text("utf-8")
    targets = {name for line in re.findall(r"^([a-z][\w -]*):(?!=)", text, re.MULTILINE) for name in line.split()}
    variables = set(re.findall(r"\$\(([A-Z_]+)\)", text))
    lines = [line for block in document.blocks for line in block.splitlines()]
    lines += [span for span in document.spans if span.startswith("make ")]
    faults = []
    for line in lines:
        for found in _MAKE.finditer(line):
            for word in found[1].split():
                name, equals, _ = word.partition("=")
                if equals and name.isupper() and name not in variables:
                    faults.append(f"make has no variable {name}: {line.strip()}")
                elif not equals and re.fullmatch(r"[a-z][\w-]*", word) and word not in targets:
                    faults.append(f"make has no target {word}: {line.strip()}")
    return faults


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What may be given on a command line: choices of a key, none where it takes any value."""

    choices: dict[str, set[str]]
    sections: set[str]
    last: set[str]


@cache
def known() -> Known:
    """All settings and groups of all commands. Examples of documents are options too."""
    choices: dict[str, set[str]] = {}
    for command in COMMANDS.values():
        for _, found in command_settings(command):
            for setting in found:
                choices.setdefault(setting.key, set()).update(setting.choices)
        for group, options in groups(command).items():
            choices.setdefault(group, set()).update(options)
        if command.chooses is not None:
            choices[command.chooses[0]] = {*command.chooses[1].names()}
    examples = _EXAMPLES.findall((ROOT / "tests" / "plugin" / "pyproject.toml").read_text("utf-8"))
    for section, (base, registry) in REGISTRIES.items():
        choices[section].update({*registry.names(), *examples})
        choices[f"{section}.{base.CHOSEN_BY}"] = {*registry.names(), *examples}
    choices["format"].update(examples)
    sections = {key[:end] for key in choices for end in range(len(key)) if key[end] == "."}
    return Known(choices=choices, sections=sections, last={key.rpartition(".")[2] for key in choices})


def wrong_settings(document: Document) -> list[str]:
    """Settings in backticks, `section.key` or `key=value`, that no command has, and values that are no choice of theirs."""
    faults = []
    for span in dict.fromkeys(document.spans):
        words = span.split()
        if len(words) > 1 and not all(re.match(rf"{_KEY.pattern}=", word) for word in words):
            continue
        faults += [said for word in words if (said := _wrong_setting(word.strip("'\"")))]
    return faults


def _wrong_setting(word: str) -> str:
    key, equals, value = word.partition("=")
    if not _KEY.fullmatch(key):
        return ""
    settings = known()
    if key in settings.choices:
        choices = settings.choices[key]
        given = re.fullmatch(r"[a-z][a-z0-9_]*", value)
        return f"{word}: {key} has no choice {value}" if equals and choices and given and value not in choices else ""
    head, dot, rest = key.partition(".")
    if equals and not dot:
        return "" if key in settings.last or key in PLACEHOLDERS else f"{word}: there is no setting {key}"
    if not dot or key in settings.sections or rest in _FILE_ENDINGS:
        return ""
    near = difflib.get_close_matches(key, settings.choices, n=1, cutoff=_NEARLY)
    return f"{word}: there is no setting {key}" if equals or near or head in settings.sections else ""


def wrong_links(document: Document) -> list[str]:
    """Links to files and anchors that are not there, and external links that cannot be any."""
    # A link's text may be code, its target is none.
    prose = _SPAN.sub(lambda found: re.sub(r"\S", "x", found[2]), document.prose)
    defined = dict(_REFERENCE.findall(prose))
    targets = [*_LINK.findall(prose), *_HTML_LINK.findall(prose), *_AUTOLINK.findall(prose), *defined.values()]
    faults = [f"[{name}] is not defined" for name in _USED_REFERENCE.findall(prose) if name not in defined]
    return faults + [said for target in dict.fromkeys(targets) if (said := _wrong_link(document, target))]


def _wrong_link(document: Document, target: str) -> str:
    if re.match(r"[a-z][a-z0-9+.-]*:", target, re.IGNORECASE):
        return "" if _is_url(target) else f"{target}: this is no address"
    name, _, anchor = target.partition("#")
    if not name:
        return "" if anchor in document.anchors else f"{target}: there is no such heading"
    path = (document.root / document.path.parent / unquote(name)).resolve()
    if not path.is_relative_to(document.root.resolve()) or not path.exists():
        return f"{target}: there is no such file"
    if anchor and (path.suffix != ".md" or anchor not in read(path, document.root).anchors):
        return f"{target}: there is no such heading"
    return ""


def _is_url(target: str) -> bool:
    try:
        parts = urlsplit(target)
        port = parts.port
    except ValueError:
        return False
    if parts.scheme == "mailto":
        return bool(re.fullmatch(r"[^@\s]+@[^@\s]+", parts.path) and _HOST.fullmatch(parts.path.partition("@")[2]))
    named = parts.hostname is not None and bool(_HOST.fullmatch(parts.hostname))
    return parts.scheme in ("http", "https") and named and port in (None, 80, 443) and parts.username is None


def wrong_tables(document: Document) -> list[str]:
    """Tables of implementations and choices, whose first heading is `key=`, that lack one or have one that is not there.

    A table may leave out `none`. What stands in brackets beside a name does not count.
    """
    faults = []
    for key, names in tables(document):
        allowed = _exact_names(key)
        if not allowed:
            faults.append(f"{key}=: there is no such group, or it has no choices")
        elif not any({*names, "none"} == {*each, "none"} and len(names) == len(set(names)) for each in allowed):
            lacking, unknown = sorted(allowed[0] - set(names)), sorted(set(names) - allowed[0])
            faults.append(f"{key}=: the table lacks {lacking}, has {unknown} too much, or names one twice")
    return faults


def tables(document: Document) -> Iterator[tuple[str, list[str]]]:
    """Each table that names implementations: the key of its first heading, and what stands in backticks below."""
    lines = document.prose.splitlines()
    for number, line in enumerate(lines[1:], start=1):
        first = lines[number - 1].strip().removeprefix("|").split("|")[0].strip()
        if re.match(r"^\s*\|?\s*:?-+", line) and (heading := _TABLE_KEY.fullmatch(first)):
            names = []
            for row in lines[number + 1 :]:
                if not row.lstrip().startswith("|"):
                    break
                cell = re.sub(r"\(.*?\)", "", row.strip().removeprefix("|").split("|")[0])
                names += [found[2].removeprefix(f"{heading[1]}=") for found in _SPAN.finditer(cell)]
            yield heading[1], [name for name in names if re.fullmatch(r"\w+", name)]


def _exact_names(key: str) -> list[set[str]]:
    """What a table of a key has to name, all of it: options of a group, or built-in implementations of an extension point."""
    found: list[set[str]] = []
    for command in COMMANDS.values():
        if command.chooses is not None and command.chooses[0] == key:
            found.append(set(command.chooses[1].ours))
        options = groups(command).get(key)
        if options:
            plugins = set() if key not in REGISTRIES else set(REGISTRIES[key][1].names()) - set(REGISTRIES[key][1].ours)
            found.append(set(options) - plugins)
        for _, settings in command_settings(command):
            found += [{*setting.choices} - {"null"} for setting in settings if setting.key == key and setting.choices]
    if key in REGISTRIES:
        found.append(set(REGISTRIES[key][1].ours))
    return found


CHECKS = (wrong_commands, wrong_targets, wrong_settings, wrong_links, wrong_tables)
