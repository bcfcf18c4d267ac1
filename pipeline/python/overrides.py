"""Settings of a Python call as settings of the command line. Pure: they are composed and checked as those are.

{"sampling.temperature": 0.8, "policy": {"model": "org/name"}} -> ["sampling.temperature=0.8", "policy.model='org/name'"]
"""

import re
from collections.abc import Collection, Iterator, Mapping
from enum import Enum
from os import PathLike
from typing import Any

from pipeline.config.words import quote
from pipeline.core.errors import UsageError

_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*")
MODEL = "policy.model"


def overrides_of(settings: Mapping[str, Any]) -> list[str]:
    """One `key=value` for each setting, in the given order. Keys may have dots, and values may be mappings of further keys.

    Raises UsageError, which names the key, for a key that is no name and for a value that no setting can have.
    """
    return [f"{key}={written(key, value)}" for key, value in _flat("", settings)]


def policy_overrides(policy: object, options: Collection[str]) -> Mapping[str, object]:
    """The settings that `policy=` of a Python call stands for.

    A mapping holds settings of the policy. A text is one of `options` (`oracle`), else the name or folder of a model.
    """
    if policy is None:
        return {}
    is_model = not isinstance(policy, Mapping) and policy not in options
    return {MODEL if is_model else "policy": policy}


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


def _flat(prefix: str, settings: Mapping[str, Any]) -> Iterator[tuple[str, object]]:
    for name, value in settings.items():
        if not isinstance(name, str) or not _KEY.fullmatch(name):
            raise UsageError(f"{prefix}{name!r} is no name of a setting: write for example 'sampling.temperature'")
        if isinstance(value, Mapping):
            yield from _flat(f"{prefix}{name}.", value)
        else:
            yield f"{prefix}{name}", value
