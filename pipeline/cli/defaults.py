"""The value that each setting of a command has where none is given, and its value with each option of each group.

They come from the schemas and from the files in `conf/`. Hydra composes the same values for a run (`compose`), but it loads
slowly, so help and the pages of settings do not use it. A test compares both.
"""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pipeline.cli.command import Command
from pipeline.cli.options import conf_folder, implementation_of, offered_groups, options_of, usual_options
from pipeline.config.changes import Change
from pipeline.config.fields import default_of, describe_settings
from pipeline.config.recorded_settings import flatten_settings
from pipeline.runtime.objects import REGISTRIES


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherDefault:
    """The value of a setting with these options of a group, in place of its default."""

    group: str
    options: tuple[str, ...]
    value: object


@dataclass(frozen=True, slots=True, kw_only=True)
class Defaults:
    """`usual`: dotted key -> value without any option. `by_option`: (group, option) -> the values with that option alone.
    `options`: the option of each group that is taken where none is named. `open`: groups of implementations of which none is
    taken then."""

    usual: Mapping[str, object]
    by_option: Mapping[tuple[str, str], Mapping[str, object]]
    options: Mapping[str, str]
    open: frozenset[str]

    def of(self, key: str, implementations: tuple[str, ...]) -> tuple[object, tuple[OtherDefault, ...]] | None:
        """The default of a setting, and others with options of groups. `implementations`: those that have it, where not all of
        its section have it. If the usual one is not among them, the default is that of the first option that is. None if there
        is no such option."""
        section = key.partition(".")[0]

        def fits(group: str, option: str) -> bool:
            return group != section or not implementations or implementation_of(group, option) in implementations

        names = section in REGISTRIES and key == f"{section}.{REGISTRIES[section][0].CHOSEN_BY}"
        chosen = self.options.get(section)
        usual = (names or section not in self.open) if chosen is None else fits(section, chosen)
        found = {
            named: values[key]
            for named, values in self.by_option.items()
            if key in values and fits(*named) and (usual or named[0] == section)
        }
        if usual and key in self.usual:
            value = self.usual[key]
        elif found:
            value = next(iter(found.values()))
        else:
            return None
        # That an option sets its own name is no news.
        return value, () if names else _grouped(found, value)


def defaults_of(command: Command, *, plugins: bool) -> Defaults:
    """`plugins`: include installed plug-ins. Raises UsageError for a plug-in that cannot be used."""
    options = {group: option for group, option in usual_options(command).items() if option != "None"}
    chosen = {each.name for each in describe_settings(command.schema) if each.kind is not Change}
    unnamed = frozenset((chosen & REGISTRIES.keys() & usual_options(command).keys()) - options.keys())
    by_option = {
        (group, option): _values(command, {**options, group: option})
        for group, names in offered_groups(command).items()
        for option in names
        if group in {*options, *unnamed} and (plugins or (conf_folder() / group / f"{option}.yaml").is_file())
    }
    return Defaults(usual=_values(command, options), by_option=by_option, options=options, open=unnamed)


def _values(command: Command, options: Mapping[str, str]) -> dict[str, object]:
    """Dotted key -> value, with these options of the groups."""
    values: dict[str, object] = {}
    for each in describe_settings(command.schema):
        if each.kind is Change:
            continue
        if each.name in REGISTRIES and each.name in options:
            registry = REGISTRIES[each.name][1]
            name = implementation_of(each.name, options[each.name])
            values |= _schema_values(registry.our_settings().get(name) or registry.settings(name), each.name)
        elif dataclasses.is_dataclass(each.kind):
            values |= _schema_values(each.kind, each.name)
    for group, option in options.items():
        file = conf_folder() / group / f"{option}.yaml"
        values |= options_of(file, group) if file.is_file() else {}
    return values


def _schema_values(schema: Any, section: str) -> dict[str, object]:
    """Dotted key -> default, of a dataclass or of an instance that is the default of a setting."""
    found: dict[str, object] = {}
    for field in dataclasses.fields(schema):
        made = default_of(schema, field.name)
        key = f"{section}.{field.name}"
        found |= _schema_values(made, key) if dataclasses.is_dataclass(made) else flatten_settings(key, made)
    return found


def _grouped(found: Mapping[tuple[str, str], object], usual: object) -> tuple[OtherDefault, ...]:
    """The values that differ from the usual one. Options of a group that have the same value are together."""
    groups: dict[tuple[str, str], OtherDefault] = {}
    for (group, option), value in found.items():
        if value != usual:
            same = groups.get((group, repr(value)))
            options = (*same.options, option) if same else (option,)
            groups[group, repr(value)] = OtherDefault(group=group, options=options, value=value)
    return tuple(groups.values())
