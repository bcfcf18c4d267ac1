"""Generates the reference of all settings from the schemas: for `--help-all`, `conf/README.md` and `conf/GROUP/README.md`.

    python -m pipeline.cli.reference

writes the files. A test fails if one of them does not match the schemas.
"""

import ast
import dataclasses
import inspect
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cache
from itertools import dropwhile, takewhile
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin

from pipeline.cli import COMMANDS
from pipeline.cli.command import Command
from pipeline.cli.defaults import Defaults, OtherDefault, defaults_of
from pipeline.cli.options import conf_folder, options_of, usual_options
from pipeline.config.changes import Change
from pipeline.config.fields import FREE, RELABEL, Mark, SettingInfo, default_of, describe_settings
from pipeline.core.formatting import listed
from pipeline.runtime.objects import REGISTRIES

NO_DEFAULT = "???"
"""The default of a required setting."""
_INTRODUCTION = """\
# Settings

This page lists the settings of every command; a group of settings, such as `policy`, has a page of its own. `python -m
pipeline.cli.reference` generates these pages from the schemas. `python -m pipeline COMMAND --help-all` prints all settings of
one command, `python -m pipeline COMMAND --cfg job` the values that it would run with.

A setting is written `key=value`. `group=option` sets all values of the file `group/option.yaml` in this folder. A setting with
the default `???` is required. Options and files of settings of your own are in a folder of yours, see [Settings of your
own](../pipeline/cli/README.md#settings-of-your-own).

The column *default* has the value that a command uses where nothing is given: each group then has the option marked
*(default)* on its page. Other options of a group may set other values; these follow with the option. A long value is cut
(`...`), and `--cfg job` prints all of it.

**F** marks a setting that does not belong to a run's identity: it may differ between starts of a run. **R** marks a setting
that `relabel` or `regrade` may change on a finished run. All other settings of `label` are fixed for a run.
"""
_GROUP_INTRODUCTION = """\
# Settings of `{section}`

[All settings](../README.md) explains the marks **F** and **R**. `python -m pipeline.cli.reference` generates this page.
"""
INDEX = "README.md"
_CUT = "..."
_MOST_CHARACTERS = 60
"""Of a value in a table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One setting: its dotted key, its possible values in words, its default in YAML, and its meaning.

    `of`: the implementations that have it, where not all of its section have. `choices`: all values, where they are names.
    `others`: its values with options of groups that are not the usual ones.
    """

    key: str
    values: str
    default: str
    meaning: str
    marks: frozenset[Mark]
    of: tuple[str, ...] = ()
    choices: tuple[str, ...] = ()
    others: tuple[OtherDefault, ...] = ()


def settings(schema: Any, prefix: str = "") -> tuple[Setting, ...]:
    """The settings of a section and of its subsections, in the order of the schema."""
    found: list[Setting] = []
    for each in describe_settings(schema):
        key = f"{prefix}{each.name}"
        if dataclasses.is_dataclass(each.kind):
            inner = settings(each.kind, f"{key}.")
            found += [dataclasses.replace(setting, marks=setting.marks | each.marks) for setting in inner]
        else:
            meaning = _meanings(schema).get(each.name) or _kind_meaning(each.kind)
            found.append(
                Setting(
                    key=key,
                    values=_values(each),
                    default=_written(default_of(schema, each.name)),
                    meaning=meaning,
                    marks=each.marks,
                    choices=_choices(each.kind),
                )
            )
    return tuple(found)


def section_settings(section: str, plugins: bool) -> list[Setting]:
    """The settings of a section with a choice of implementations: first the shared ones, then those of each implementation.

    `plugins`: include installed plug-ins.
    """
    base, registry = REGISTRIES[section]
    shared = settings(base, f"{section}.")
    keys = {setting.key for setting in shared}
    own: dict[Setting, list[str]] = {}
    schemas = registry.our_settings()
    if plugins:
        schemas |= {name: registry.settings(name) for name in registry.names() if name not in registry.ours}
    for name, schema in schemas.items():
        for setting in settings(schema, f"{section}."):
            if setting.key not in keys:
                own.setdefault(setting, []).append(name)
    return [*shared, *(dataclasses.replace(setting, of=tuple(names)) for setting, names in own.items())]


def command_settings(command: Command, *, plugins: bool = False) -> Iterator[tuple[str, Sequence[Setting]]]:
    """Pairs of section and settings. The command's own settings come first, with an empty section name. `plugins`: include
    installed plug-ins.

    Raises UsageError for a plug-in that cannot be used.
    """
    defaults = defaults_of(command, plugins=plugins)
    for section, found in _schema_settings(command, plugins):
        yield section, [_with_default(setting, defaults) for setting in found]


def _with_default(setting: Setting, defaults: Defaults) -> Setting:
    found = defaults.of(setting.key, setting.of)
    return dataclasses.replace(setting, default=_short(found[0]), others=found[1]) if found else setting


def _schema_settings(command: Command, plugins: bool) -> Iterator[tuple[str, Sequence[Setting]]]:
    """As `command_settings`, with the defaults of the schemas."""
    sections: list[tuple[str, Sequence[Setting]]] = []
    for each in describe_settings(command.schema):
        if not dataclasses.is_dataclass(each.kind):
            continue
        if each.kind is Change:
            may_change = [setting for setting in section_settings(each.name, plugins) if RELABEL in setting.marks]
            sections.append((each.name, [dataclasses.replace(setting, default="null") for setting in may_change]))
        elif each.name in REGISTRIES:
            sections.append((each.name, section_settings(each.name, plugins)))
        else:
            sections.append((each.name, settings(each.kind, f"{each.name}.")))
    if command.chooses is not None:
        _, registry = command.chooses
        schemas = list(registry.our_settings().values())
        if plugins:
            schemas += [
                found for name in registry.names() if name not in registry.ours and (found := registry.settings(name))
            ]
        sections += [(schema.SECTION, settings(schema, f"{schema.SECTION}.")) for schema in schemas]
    # Every key of a section contains a dot.
    yield "", [setting for setting in settings(command.schema) if "." not in setting.key]
    yield from sections


def section_meanings(command: Command) -> dict[str, str]:
    """Section -> what it is for, of the sections of a command."""
    return _meanings(command.schema)


def as_text(command: Command, width: int = 100) -> str:
    """All settings of a command for a terminal, one paragraph each."""
    lines: list[str] = []
    for section, found in command_settings(command, plugins=True):
        lines += [f"{section}:" if section else f"settings of {command.name}:", ""]
        for setting in found:
            of = f" ({listed(setting.of)} only)" if setting.of else ""
            lines.append(f"  {setting.key} = {setting.default}{of}")
            text = ". ".join(text for text in (setting.values, setting.meaning) if text)
            text += "".join(map(_other_default, setting.others))
            lines += textwrap.wrap(text, width, initial_indent="      ", subsequent_indent="      ")
        lines.append("")
    return "\n".join(lines)


def _other_default(other: OtherDefault) -> str:
    """A sentence on the value with other options, after a blank."""
    *first, last = other.options
    options = f"{', '.join(first)} or {last}" if first else last
    value = _short(other.value)
    return f" With {other.group}={options}: {value}{'' if value.endswith(_CUT) else '.'}"


def pages() -> dict[str, str]:
    """Path below `conf/` -> text. A group has a page in its folder; all other settings are on the page of `conf/`."""
    commands = ""
    found_in: dict[str, dict[tuple[Setting, ...], _Variant]] = {}
    for command in COMMANDS.values():
        schemas = _schema_settings(command, plugins=False)
        for (section, found), (_, plain) in zip(command_settings(command), schemas, strict=True):
            if section:
                # Commands with other usual options share a table; the first one's defaults are in it.
                variant = found_in.setdefault(section, {}).setdefault(tuple(plain), _Variant(found=found))
                variant.names.append(command.name)
            else:
                commands += (
                    f"\n## `{command.name}`\n\n{command.summary[:1].upper()}{command.summary[1:]}.\n\n{_table(found)}"
                )
    made: dict[str, str] = {}
    rows = others = ""
    for section, variants in found_in.items():
        used = ", ".join(f"`{name}`" for variant in variants.values() for name in variant.names)
        tables = ""
        for variant in variants.values():
            names = ", ".join(f"`{name}`" for name in variant.names)
            tables += f"\n## Section `{section}` of {names}\n\n{_table(variant.found, section)}"
        if (conf_folder() / section).is_dir():
            page = f"{section}/{INDEX}"
            options = f"\n## Options\n\n{_options(section)}"
            made[page] = f"{_GROUP_INTRODUCTION.format(section=section)}{options}{tables}"
            rows += f"| [`{section}`]({page}) | {_cell(_section_meaning(section))} | {used} |\n"
        else:
            others += tables
    groups = f"\n## Groups\n\n| group | is for | used by |\n|---|---|---|\n{rows}"
    return {INDEX: f"{_INTRODUCTION}{groups}{commands}{others}", **made}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Variant:
    """A section's settings, and the commands that have them."""

    found: Sequence[Setting]
    names: list[str] = dataclasses.field(default_factory=list)


def _section_meaning(section: str) -> str:
    """What a group of settings is for, from the first command that has it."""
    return next(found for command in COMMANDS.values() if (found := section_meanings(command).get(section)))


def _options(section: str) -> str:
    """A table of the options of a group: the purpose of each, and the settings that it sets."""
    usual: dict[str, list[str]] = {}
    for command in COMMANDS.values():
        if section in (options := usual_options(command)):
            usual.setdefault(options[section], []).append(command.name)
    rows = []
    for file in sorted((conf_folder() / section).glob("*.yaml")):
        sets = "; ".join(f"`{key}: {_short(value)}`" for key, value in options_of(file, section).items())
        mark = _default_mark(usual, file.stem)
        rows.append(f"| `{section}={file.stem}`{mark} | {_cell(_comment(file))} | {_cell(sets)} |\n")
    return "".join(["| option | is for | sets |\n|---|---|---|\n", *rows])


def _default_mark(usual: Mapping[str, Sequence[str]], option: str) -> str:
    """What a table says beside an option that commands take by default. `usual`: such options, and the commands."""
    if option not in usual:
        return ""
    if usual[option] is max(usual.values(), key=len):
        return " (default)"
    return f" (default of {', '.join(f'`{name}`' for name in usual[option])})"


def _table(found: Sequence[Setting], section: str = "") -> str:
    rows = []
    for setting in found:
        cells = (
            f"`{setting.key}`",
            setting.values,
            _defaults_cell(setting, section),
            f"Of {listed(setting.of)}. {setting.meaning}" if setting.of else setting.meaning,
            _marks(setting),
        )
        rows.append(f"| {' | '.join(map(_cell, cells))} |\n")
    return "".join(["| key | values | default | meaning | |\n|---|---|---|---|---|\n", *rows])


def _defaults_cell(setting: Setting, section: str) -> str:
    """The default, and the values with other options. Options of another group than the section have the group's name."""
    parts = [f"`{setting.default}`"]
    for each in setting.others:
        named = [option if each.group == section else f"{each.group}={option}" for option in each.options]
        parts.append(f"`{_short(each.value)}` with {', '.join(f'`{name}`' for name in named)}")
    return "; ".join(parts)


def _marks(setting: Setting) -> str:
    return " ".join(letter for letter, mark in (("F", FREE), ("R", RELABEL)) if mark in setting.marks)


def _comment(file: Path) -> str:
    """The first paragraph of comments of a file."""
    lines = (line for line in file.read_text("utf-8").splitlines() if not line.startswith("# @"))
    said = takewhile(lambda line: line.startswith("#"), dropwhile(lambda line: not line, lines))
    return " ".join(line.lstrip("# ") for line in said)


def _values(setting: SettingInfo) -> str:
    kind = setting.kind
    null = ""
    if get_origin(kind) in (Union, UnionType):
        kind = next(each for each in get_args(kind) if each is not NoneType)
        null = ", or null"
    words = f"{_kind(kind)}{f', {setting.wanted}' if setting.wanted else ''}"
    return words + null


def _choices(kind: Any) -> tuple[str, ...]:
    """All values of a setting that takes one of a few."""
    kinds = get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)
    values: list[object] = []
    for each in kinds:
        if isinstance(each, type) and issubclass(each, Enum):
            values += list(each)
        elif each is bool:
            values += [True, False]
    return tuple(_written(value) for value in [*values, *([None] if values and NoneType in kinds else [])])


def _kind(kind: Any) -> str:
    if kind is Any:
        return "a text, or a list of texts"
    if get_origin(kind) is list:
        (inner,) = get_args(kind)
        return "a list of sections" if dataclasses.is_dataclass(inner) else f"a list of {_PLURAL[inner]}"
    if get_origin(kind) is dict:
        return "names with values"
    if isinstance(kind, type) and issubclass(kind, Enum):
        return " ".join(str(member.value) for member in kind)
    return _NAMES.get(kind, str(kind))


_NAMES: dict[Any, str] = {bool: "true or false", int: "whole number", float: "number", str: "text"}
_PLURAL: dict[Any, str] = {int: "whole numbers", float: "numbers", str: "texts"}


def _kind_meaning(kind: Any) -> str:
    for each in (kind, *get_args(kind)):
        if isinstance(each, type) and issubclass(each, Enum):
            return " ".join((each.__doc__ or "").split())
    return ""


def _written(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case Enum():
            return str(value.value)
        case str():
            return value if value and value.isprintable() and value == value.strip() else repr(value)
        case list():
            return f"[{', '.join(_written(each) for each in value)}]"
    return str(value)


def _short(value: object) -> str:
    text = _written(value)
    return text if len(text) <= _MOST_CHARACTERS else text[: _MOST_CHARACTERS - len(_CUT)] + _CUT


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


@cache
def _meanings(schema: type) -> dict[str, str]:
    """Name -> the docstring of a field, for a dataclass and those that it extends."""
    found: dict[str, str] = {}
    for each in reversed(schema.__mro__):
        if not dataclasses.is_dataclass(each):
            continue
        (made,) = ast.parse(textwrap.dedent(inspect.getsource(each))).body
        assert isinstance(made, ast.ClassDef)
        for field, text in zip(made.body, made.body[1:], strict=False):
            if isinstance(field, ast.AnnAssign) and isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant):
                assert isinstance(field.target, ast.Name)
                found[field.target.id] = " ".join(str(text.value.value).split())
    return found


if __name__ == "__main__":
    for name, text in pages().items():
        (conf_folder() / name).write_text(text, "utf-8")
