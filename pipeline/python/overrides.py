"""Settings of a Python call as settings of the command line. They are composed and checked as those are.

{"sampling.temperature": 0.8, "policy": {"model": "org/name"}} -> ["sampling.temperature=0.8", "policy.model='org/name'"]
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from os import PathLike
from typing import Any

from pipeline.config.words import quote
from pipeline.core.errors import UsageError

_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*")
_SHOWN = 60
"""Characters of a value that a message quotes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """A setting by its dotted key. `said`: how the call gave it, for messages."""

    key: str
    value: object
    said: str


def settings_in(settings: Mapping[str, Any]) -> Iterator[Setting]:
    """The settings of keyword arguments, in order. Keys may have dots, and values may be mappings of further keys.

    Raises UsageError, which names the key, for one that is no name.
    """
    for name, value in settings.items():
        yield from _flat((name,), value)


def overrides_of(settings: Iterable[Setting]) -> list[str]:
    """One `key=value` for each setting, in order.

    Raises UsageError for a value that no setting can have, and for a setting that is given twice with different values.
    """
    found: dict[str, tuple[Setting, str]] = {}
    for each in settings:
        text = written(each.key, each.value)
        before, known = found.setdefault(each.key, (each, text))
        if text != known:
            raise UsageError(f"{each.key} is given twice, as {before.said} and as {each.said}: leave one of them out")
    return [f"{key}={text}" for key, (_, text) in found.items()]


def policy_settings(policy: object, options: Collection[str]) -> Iterable[Setting]:
    """The settings that `policy=` of a Python call stands for: see `model_settings`."""
    return model_settings("policy", policy, options)


def model_settings(section: str, given: object, options: Collection[str]) -> Iterable[Setting]:
    """The settings that an argument stands for which names a model, such as `scorer=`.

    A mapping holds settings of the section. A text is one of `options` (`oracle`), else the name or folder of a model.
    """
    if given is None:
        return []
    if isinstance(given, Mapping):
        return settings_in({section: given})
    key = section if given in options else f"{section}.model"
    return [Setting(key=key, value=given, said=said(section, given))]


def said(name: str, value: object) -> str:
    """A keyword argument as it is written in Python; of a long value, the beginning."""
    text = repr(value)
    text = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
    return f"{name}={text}" if name.isidentifier() else f"{{{name!r}: {text}}}"


def written(key: str, value: object) -> str:
    """A value in the grammar of the command line. Raises UsageError, which names the key."""
    if value is None:
        return "null"
    if isinstance(value, Enum):
        return written(key, value.value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(float(value) if isinstance(value, float) else int(value))  # of NumPy's subclasses too
    if isinstance(value, str):
        return quote(value)
    if isinstance(value, PathLike):
        return quote(str(value))
    if isinstance(value, list | tuple):
        return f"[{','.join(written(key, each) for each in value)}]"
    if hasattr(value, "item"):  # a scalar of NumPy
        return written(key, value.item())
    raise UsageError(
        f"{key}: a setting is text, a number, true or false, None, or a list of them, not {type(value).__name__}"
    )


def _flat(names: tuple[object, ...], value: object) -> Iterator[Setting]:
    *above, name = names
    if not isinstance(name, str) or not _KEY.fullmatch(name):
        before = "".join(f"{each}." for each in above)
        raise UsageError(f"{before}{name!r} is no name of a setting: write for example 'sampling.temperature'")
    if isinstance(value, Mapping):
        for inner, part in value.items():
            yield from _flat((*names, inner), part)
        return
    first, *inner_names = map(str, names)
    nested: object = value
    for each in reversed(inner_names):
        nested = {each: nested}
    yield Setting(key=".".join([first, *inner_names]), value=value, said=said(first, nested))
