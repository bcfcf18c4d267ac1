"""Settings as a run directory records them: dotted keys with plain values, and the way back to the schemas of `config`."""

import dataclasses
from collections.abc import Mapping
from enum import Enum
from typing import Any, TypeVar, get_type_hints

Settings = Mapping[str, object]
T = TypeVar("T")


def flat(key: str, value: object) -> dict[str, object]:
    """A setting or a section of settings, under its dotted name."""
    if isinstance(value, dict):
        return {name: plain for part, inner in value.items() for name, plain in flat(f"{key}.{part}", inner).items()}
    if isinstance(value, Enum):
        return {key: value.value}
    return {key: value}


def given(section: str, change: Any) -> dict[str, object]:
    """What a change of a section names: its settings that are not None. An empty text takes a setting away."""
    named = {
        key: None if value == "" else value for key, value in dataclasses.asdict(change).items() if value is not None
    }
    return flat(section, named)


def section(settings: Settings, name: str, schema: type[T]) -> T:
    """A section without inner sections; what was not recorded has its default. Raises ValueError for what cannot be."""
    kinds = get_type_hints(schema)
    values = {}
    for key, value in settings.items():
        at, _, setting = key.rpartition(".")
        if at == name:
            if setting not in kinds:
                raise ValueError(f"{key} is not a setting of this version")
            kind = kinds[setting]
            values[setting] = kind(value) if isinstance(kind, type) and issubclass(kind, Enum) else value
    return schema(**values)
