"""Settings from the command line, checked before Hydra sees them: a typo is one line with the nearest right key."""

import dataclasses
import difflib
import re
from collections.abc import Callable, Mapping, Sequence
from types import NoneType
from typing import Any, get_args, get_origin, get_type_hints

from pipeline.core.errors import UsageError

_BY_GROUP = {"policy.kind": "policy=embedded, policy=hf, policy=openai or policy=oracle"}
_IMPLIED = {"policy.model": "policy=hf"}
"""Naming a model means serving it: `policy.model=X` alone chooses the policy that does."""


def check_overrides(parsed: Sequence[Any], schema: type, groups: Mapping[str, Sequence[str]]) -> list[str]:
    """The overrides to compose with, from Hydra's parsed ones. Raises UsageError for keys and options that do not exist."""
    keys = setting_keys(schema)
    lists = _keys_of(schema, lambda kind: get_origin(kind) is list)
    for override in parsed:
        key = override.key_or_group
        if override.is_sweep_override():
            raise UsageError(f"{override.input_line}: one value at a time; put quotes around a value with commas")
        if override.is_add() or override.is_force_add() or override.is_delete():
            raise UsageError(f"{override.input_line}: settings are written key=value, without a sign in front")
        if key in groups:
            option = str(override.value())
            if option not in groups[key]:
                raise UsageError(f"{key}={option}: there is no such option, choose from {', '.join(groups[key])}")
        elif key in _BY_GROUP and key in keys:
            raise UsageError(
                f"{override.input_line}: write {_BY_GROUP[key]}, which brings the settings that belong to it"
            )
        elif key not in keys:
            raise UsageError(f"there is no setting {key}{_nearest(key, [*keys, *groups])}")
        elif key in lists and not isinstance(override.value(), list):
            raise UsageError(
                f"{override.input_line}: {key} is a list, write {key}=[{override.input_line.partition('=')[2]}]"
            )
    lines = [str(override.input_line) for override in parsed]
    named = {override.key_or_group for override in parsed}
    return lines + [group for key, group in _IMPLIED.items() if key in named and group.partition("=")[0] not in named]


def setting_keys(schema: type, prefix: str = "") -> list[str]:
    """All dotted keys of a schema, sections included."""
    keys = []
    hints = get_type_hints(schema)
    for field in dataclasses.fields(schema):
        key = f"{prefix}{field.name}"
        keys.append(key)
        if dataclasses.is_dataclass(hints[field.name]):
            keys.extend(setting_keys(hints[field.name], f"{key}."))
    return keys


def text_keys(schema: type) -> set[str]:
    """The dotted keys of settings that are texts, also those that may be null."""
    return _keys_of(schema, lambda kind: kind is str or set(get_args(kind)) == {str, NoneType})


def open_keys(schema: type) -> set[str]:
    """The dotted keys of settings that are a text or a list of texts."""
    return _keys_of(schema, lambda kind: kind is Any)


def quoted(text: str) -> str:
    """A text as Hydra's grammar takes any: in quotes, with those in it and backslashes before them or at the end escaped."""
    return "'" + re.sub(r"(\\*)('|$)", lambda found: found[1] * 2 + ("\\'" if found[2] else ""), text) + "'"


def first_line(error: BaseException) -> str:
    """The first line of an error's message."""
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)


def _keys_of(schema: type, wanted: Callable[[Any], bool], prefix: str = "") -> set[str]:
    found = set()
    for name, kind in get_type_hints(schema).items():
        if dataclasses.is_dataclass(kind):
            assert isinstance(kind, type)
            found |= _keys_of(kind, wanted, f"{prefix}{name}.")
        elif wanted(kind):
            found.add(f"{prefix}{name}")
    return found


def _nearest(key: str, keys: Sequence[str]) -> str:
    near = difflib.get_close_matches(key, keys, n=1, cutoff=0.5)
    if not near:
        last = key.rpartition(".")[2]
        near = [known for known in keys if known.rpartition(".")[2] == last][:1]
    return f": did you mean {near[0]}?" if near else "; --cfg job prints all there are"
