"""Records from their JSON values, as files that others may have changed hold them. Pure."""

import json
import math
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Any, get_args, get_origin, get_type_hints

_hints = cache(get_type_hints)
_SHOWN_CHARS = 40
_WORDS: Mapping[Any, str] = {
    int: "a whole number of 0 or more",
    float: "a number of 0 or more",
    str: "a text",
    bool: "true or false",
}


def record_of(kind: Any, value: Any, where: str) -> Any:
    """A record of the dataclass `kind` from its JSON value, whose numbers are 0 or more. `where`: what a message calls it.

    Raises ValueError for a value of another form; the message names the wrong part."""
    if not isinstance(value, dict):
        raise ValueError(f"{where} should be an object")
    hints = _hints(kind)
    needed = {part.name for part in fields(kind) if part.default is MISSING}
    for name in sorted(value.keys() - hints.keys()):
        raise ValueError(f"{where} has a part {name!r} that this version does not know")
    for name in sorted(needed - value.keys()):
        raise ValueError(f"{where} lacks the part {name!r}")
    return kind(**{name: _value(hints[name], part, f"{where}: {name}") for name, part in value.items()})


def _value(kind: Any, value: Any, where: str) -> Any:
    """A JSON value as the type that a field's annotation names: a record, a tuple, a mapping by name, or a plain value."""
    if kind is object:
        return value
    if isinstance(kind, UnionType):
        (inner,) = (each for each in get_args(kind) if each is not NoneType)
        return None if value is None else _value(inner, value, where)
    if is_dataclass(kind):
        return record_of(kind, value, where)
    if hasattr(kind, "_fields") and isinstance(value, list) and len(value) == len(kind._fields):
        return kind(*(_value(hint, part, where) for hint, part in zip(_hints(kind).values(), value, strict=True)))
    if get_origin(kind) is tuple and isinstance(value, list):
        return tuple(_value(get_args(kind)[0], part, where) for part in value)
    if get_origin(kind) is Mapping and isinstance(value, dict):
        return {name: _value(get_args(kind)[1], part, f"{where}.{name}") for name, part in value.items()}
    if kind in (int, float) and _is_amount(value, kind):
        return value
    if kind in (str, bool) and isinstance(value, kind):
        return value
    wanted = _WORDS.get(kind, "a list or an object")
    raise ValueError(f"{where} is {json.dumps(value)[:_SHOWN_CHARS]}, and should be {wanted}")


def _is_amount(value: Any, kind: type) -> bool:
    whole = isinstance(value, int) and not isinstance(value, bool)
    return (whole or (kind is float and isinstance(value, float) and math.isfinite(value))) and value >= 0
