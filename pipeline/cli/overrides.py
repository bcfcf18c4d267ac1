"""What a command line may contain: the schema of its command, with the settings of the implementations that are chosen.

Settings are checked by it before Hydra reads them: a typo gives one line with the nearest existing key."""

import dataclasses
import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from types import NoneType
from typing import Any, get_args, get_origin, get_type_hints

from pipeline.cli.command import Command
from pipeline.cli.options import implementation_of, named_implementation, usual_options
from pipeline.cli.own_settings import OwnSettings
from pipeline.config.changes import Change, change_type
from pipeline.config.fields import REFUSED, ChosenSettings, Mark, SettingInfo, Settings, describe_settings
from pipeline.config.recorded_settings import RUN_RECORD, refuse_missing
from pipeline.core.errors import UnknownSetting, UsageError
from pipeline.core.formatting import listed
from pipeline.core.suggestions import choice_hint, nearest_keys
from pipeline.data.rows import names_input
from pipeline.runtime.objects import REGISTRIES


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """The implementations that have a setting which the `chosen` one of a section lacks. `refused`: giving it is an error."""

    section: str
    names: tuple[str, ...]
    chosen: str
    refused: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Sections:
    """What a command line may contain: the settings of `schema`, the options of `groups`, and settings of implementations that
    are not chosen (`elsewhere`)."""

    schema: type
    groups: Mapping[str, Sequence[str]]
    elsewhere: Mapping[str, Owner]


def check_overrides(parsed: Sequence[Any], known: Sections) -> tuple[list[str], list[str]]:
    """The overrides to compose, from those that Hydra has parsed, and remarks on overrides that are left out because they have
    no effect.

    Raises UsageError for keys and options that do not exist.
    """
    keys = marks_of(known.schema)
    lists, named = _keys_of(known.schema, _is_list), _names_of(known.schema)
    lines, remarks = [], []
    for override in parsed:
        key = override.key_or_group
        line = str(override.input_line)
        if override.is_sweep_override():
            raise UsageError(
                f"{line}: one value at a time; put quotes around a value with commas, and for a run with each of several "
                "values add --multirun to `label`"
            )
        if override.is_add() or override.is_force_add() or override.is_delete():
            raise UsageError(f"{line}: settings are written key=value, without a sign in front")
        if key in known.groups:
            option, options = str(override.value()), known.groups[key]
            if option not in options:
                path = f"; for a file give {key}.path={option}" if f"{key}.path" in keys and names_input(option) else ""
                raise UsageError(f"{key}={option}: there is no such option, {choice_hint(option, options)}{path}")
        elif key in known.elsewhere:
            remarks += _without_effect(line, override.value(), known.elsewhere[key])
            continue
        elif f"{key}.".startswith(named):
            line = f"++{line}"  # the sign lets Hydra add names
        elif key not in keys:
            raise _unknown(key, [*keys, *known.elsewhere, *known.groups])
        elif key in lists and override.value() is not None and not isinstance(override.value(), list):
            raise UsageError(f"{line}: {key} is a list, write {key}=[{line.partition('=')[2]}]")
        lines.append(line)
    return lines, remarks


def check_values(found: OwnSettings, known: Sections, *, strict: bool = False) -> OwnSettings:
    """The settings to compose, without those that have no effect, and remarks on these. `strict`: these are an error.

    Raises UsageError, with the place of the settings, for keys that do not exist.
    """
    keys = marks_of(known.schema)
    lists, named = _keys_of(known.schema, _is_list), _names_of(known.schema)
    sections = {key[:end] for key in keys for end in range(len(key)) if key[end] == "."}
    kept: dict[str, object] = {}
    without: dict[Owner, list[str]] = {}
    for key, value in found.values.items():
        if key in known.elsewhere:
            owner = known.elsewhere[key]
            if value not in (None, "", []):
                if owner.refused or strict:
                    raise UsageError(f"{found.place}: {key}={value} is for {_said(owner)}: leave one of them out")
                without.setdefault(owner, []).append(key)
        elif key not in keys and not key.startswith(named):
            raise _unknown(key, [*keys, *known.elsewhere, *known.groups], f"{found.place}: ")
        elif key in sections:
            if value is not None:
                raise UsageError(f"{found.place}: {key} is a section: give its settings below it, not {value}")
        elif key in lists and value is not None and not isinstance(value, list) and "${" not in str(value):
            raise UsageError(f"{found.place}: {key} is a list, write {key.rpartition('.')[2]}: [{value}]")
        else:
            kept[key] = value
    lost = [f"{found.place}: without effect, for {_said(owner)}: {', '.join(each)}" for owner, each in without.items()]
    return replace(found, values=kept, remarks=(*found.remarks, *lost))


def _said(owner: Owner) -> str:
    owners = listed([f"{owner.section}={name}" for name in owner.names])
    return f"{owners}, not for {owner.section}={owner.chosen}"


def _without_effect(line: str, value: object, owner: Owner) -> list[str]:
    owners = listed([f"{owner.section}={name}" for name in owner.names])
    if isinstance(value, dict):
        raise UsageError(f"{line}: give the settings of a section one by one; this section belongs to {owners}")
    if owner.refused and value not in (None, "", []):
        raise UsageError(f"{line} is for {_said(owner)}: leave one of them out")
    return [f"{line} has no effect: it is a setting of {owners}, not of {owner.section}={owner.chosen}"]


def marks_of(schema: type, prefix: str = "") -> dict[str, frozenset[Mark]]:
    """The marks of all settings of a schema, by dotted key, sections included."""
    return {key: each.marks for key, each in _all_settings(schema, prefix)}


def text_keys(schema: type) -> set[str]:
    """The dotted keys of text settings, including those that may be null."""
    return _keys_of(schema, lambda kind: kind is str or set(get_args(kind)) == {str, NoneType})


def open_keys(schema: type) -> set[str]:
    """The dotted keys of settings that are a text or a list of texts."""
    return _keys_of(schema, lambda kind: kind is Any)


def _names_of(schema: type) -> tuple[str, ...]:
    """What keys begin with that are names of the user's own, below a setting that is a mapping."""
    return tuple(f"{key}." for key in _keys_of(schema, lambda kind: get_origin(kind) is dict))


def _is_list(kind: Any) -> bool:
    """Whether a setting is a list, which may be null."""
    return list in (get_origin(kind), *map(get_origin, get_args(kind)))


def _keys_of(schema: type, wanted: Callable[[Any], bool]) -> set[str]:
    return {key for key, each in _all_settings(schema) if wanted(each.kind)}


def _all_settings(schema: Any, prefix: str = "") -> Iterator[tuple[str, SettingInfo]]:
    """All settings of a schema by dotted key, sections before those in them."""
    for each in describe_settings(schema):
        key = f"{prefix}{each.name}"
        yield key, each
        if dataclasses.is_dataclass(each.kind):
            yield from _all_settings(each.kind, f"{key}.")


def _unknown(key: str, keys: Sequence[str], place: str = "") -> UsageError:
    if near := nearest_keys(key, keys):
        return UsageError(f"{place}there is no setting {key}: did you mean {' or '.join(near)}?")
    return UnknownSetting(f"{place}there is no setting ", key, "; conf/README.md and --help-all explain all settings")


def sections_of(command: Command, kind: type) -> list[str]:
    """The sections of a command with a choice of implementations, or (kind Change) whose settings may be changed later."""
    hints = get_type_hints(command.schema)
    wanted = {section: (base if kind is ChosenSettings else kind) for section, (base, _) in REGISTRIES.items()}
    return [section for section, base in wanted.items() if hints.get(section) is base]


def chosen_implementation(command: Command, section: str, written: Mapping[str, str]) -> str:
    """Which implementation a section is for: the one that is named, else the default."""
    named = named_implementation(section, written)
    return implementation_of(section, usual_options(command)[section]) if named is None else named


def refuse_missing_plugins(written: Mapping[str, str], sections: Collection[str]) -> None:
    """Raise UsageError if an option names a plug-in that made the run directory but is not installed here."""
    unknown = [section for section in sections if written.get(section, "") not in ("", *REGISTRIES[section][1].names())]
    record = Path(written.get("run_dir", "")) / RUN_RECORD
    if not unknown or not record.is_file():
        return
    with suppress(ValueError):  # a damaged record is reported when the run directory is opened
        recorded = json.loads(record.read_text("utf-8"))
        for section in unknown:
            base, registry = REGISTRIES[section]
            if recorded.get(f"{section}.{base.CHOSEN_BY}") == written[section]:
                refuse_missing(recorded, base, registry)


def schema_for(command: Command, chosen: Mapping[str, str], own: type[Settings] | None) -> type:
    """The command's schema with the settings of the chosen implementations. `own`: those that a setting names, as a section of
    their own."""
    kinds: dict[str, type] = {section: REGISTRIES[section][1].settings(name) for section, name in chosen.items()}
    kinds |= {section: change_type(*REGISTRIES[section]) for section in sections_of(command, Change)}
    if own:
        kinds[own.SECTION] = own
    if not kinds:
        return command.schema
    return _with_sections(command.schema, tuple(kinds.items()))


@cache
def _with_sections(schema: type, kinds: tuple[tuple[str, type], ...]) -> type:
    """One type for the same settings, so that Hydra, which reads a new type in 20 ms, has it already."""
    fields = [(name, kind, dataclasses.field(default_factory=kind)) for name, kind in kinds]
    return dataclasses.make_dataclass(schema.__name__, fields, bases=(schema,), kw_only=True, slots=True)


def settings_elsewhere(section: str, chosen: str) -> dict[str, Owner]:
    """Settings that others of our implementations have, but not the chosen one."""
    _, registry = REGISTRIES[section]
    own = marks_of(registry.settings(chosen), f"{section}.")
    found: dict[str, Owner] = {}
    for name, settings in registry.our_settings().items():
        for key, marks in marks_of(settings, f"{section}.").items():
            if key not in own:
                owner = found.get(key)
                names = (*owner.names, name) if owner else (name,)
                refused = REFUSED in marks or (owner is not None and owner.refused)
                found[key] = Owner(section=section, names=names, chosen=chosen, refused=refused)
    return found


def own_elsewhere(command: Command, written: Mapping[str, str]) -> dict[str, Owner]:
    """The settings of those of our implementations that the command line does not name."""
    if command.chooses is None:
        return {}
    key, registry = command.chooses
    chosen = written.get(key, "")
    return {
        setting: Owner(section=key, names=(name,), chosen=chosen, refused=False)
        for name, settings in registry.our_settings(named=True).items()
        if name != chosen
        for setting in marks_of(settings, f"{settings.SECTION}.")
    }


def texts_elsewhere(section: str) -> set[str]:
    """Keys of text settings of all our implementations."""
    registry = REGISTRIES[section][1]
    return {f"{section}.{key}" for settings in registry.our_settings().values() for key in text_keys(settings)}
