"""Settings as a run directory records them: dotted keys with plain values, and the way back to the schemas of `config`."""

import dataclasses
from collections.abc import Collection, Mapping
from enum import Enum
from typing import Any, TypeVar, get_type_hints

from pipeline.config.fields import ChosenSettings, as_type, describe_settings
from pipeline.config.renamed import current_settings
from pipeline.core.doors import Door
from pipeline.core.errors import UsageError

Settings = Mapping[str, object]
_PLUGIN = "plugin"
"""Beside the settings of an implementation of others: which one it is, see `core.doors`."""
T = TypeVar("T")
C = TypeVar("C", bound=ChosenSettings)


def flatten_settings(key: str, value: object) -> dict[str, object]:
    """A setting or a section of settings, under its dotted name."""
    if isinstance(value, dict):
        return {
            name: plain
            for part, inner in value.items()
            for name, plain in flatten_settings(f"{key}.{part}", inner).items()
        }
    if isinstance(value, Enum):
        return {key: value.value}
    return {key: value}


def given_settings(section: str, change: Any) -> dict[str, object]:
    """What a change of a section names: its settings that are not None. An empty text takes a setting away."""
    named = {
        key: None if value == "" else value for key, value in dataclasses.asdict(change).items() if value is not None
    }
    return flatten_settings(section, named)


def chosen_settings(settings: Settings, base: type[C], door: Door[Any]) -> C:
    """A section behind a door, as the settings of the implementation that it names; what was not recorded has its default.

    Raises ValueError for what cannot be, UsageError where the implementation is not here.
    """
    refuse_missing(settings, base, door)
    name = str(settings.get(f"{base.SECTION}.{base.CHOSEN_BY}", base.usual()))
    schema: type[C] = door.settings(name)
    # Records also name settings that the others of ours have.
    others = {each.name for own in door.our_settings().values() for each in describe_settings(own)}
    return settings_section(settings, base.SECTION, schema, ignored={*others, _PLUGIN})


def refuse_missing(settings: Settings, base: type[ChosenSettings], door: Door[Any]) -> None:
    """Raise UsageError where what was recorded is a plug-in's that is not installed here, or only in another version."""
    by = f"{base.SECTION}.{base.CHOSEN_BY}"
    name, plugin = str(settings.get(by, base.usual())), settings.get(f"{base.SECTION}.{_PLUGIN}")
    if plugin and name not in door.names():
        raise UsageError(f"{by}={name} is one of {plugin}, which is not installed here: install it, in that version")
    if plugin and plugin != str(door.plugin(name)):
        raise UsageError(
            f"{by}={name} is one of {plugin}, and {door.plugin(name)} is installed here: install the former"
        )


def complete_settings(settings: C, door: Door[Any]) -> C:
    """Settings as those of the implementation that they name, with its defaults for what their base does not know.

    Raises UsageError where there is none such here, ValueError where it does not take them.
    """
    schema: type[C] = door.settings(settings.chosen)
    return as_type(settings, schema)


def settings_section(settings: Settings, name: str, schema: type[T], ignored: Collection[str] = ()) -> T:
    """A section without inner sections; what was not recorded has its default. Raises ValueError for what cannot be.

    Settings in `ignored` may be there without being any of the schema's.
    """
    kinds = get_type_hints(schema)
    values = {}
    for key, value in current_settings("", settings).items():
        at, _, setting = key.rpartition(".")
        if at == name:
            if setting not in kinds:
                if setting in ignored:
                    continue
                raise ValueError(f"{key} is not a setting of this version")
            kind = kinds[setting]
            values[setting] = kind(value) if isinstance(kind, type) and issubclass(kind, Enum) else value
    return schema(**values)
