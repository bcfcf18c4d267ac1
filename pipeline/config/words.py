"""Settings as words of a command line, in Hydra's grammar. Pure."""

import re

_PLAIN = re.compile(r"[A-Za-z_/][A-Za-z0-9_./:+-]*(?:=[A-Za-z0-9_./:+,=-]*)?")
"""Texts that need no quotes. With a `=` in it, a text is one value in spite of commas."""
_NO_TEXTS = frozenset({"null", "true", "false", "inf", "nan"})


def quote(text: str) -> str:
    """A text quoted for Hydra's grammar: quotes in it, and backslashes before a quote or at the end, are escaped."""
    return "'" + re.sub(r"(\\*)('|\Z)", lambda found: found[1] * 2 + ("\\'" if found[2] else ""), text) + "'"


def setting_word(key: str, value: object) -> str:
    """A setting with its value, in quotes if it needs them. None is written as an empty text."""
    return f"{key}={'' if value is None else _value_word(value)}"


def _value_word(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, list):
        return f"[{','.join(map(_value_word, value))}]"
    if isinstance(value, str):
        plain = _PLAIN.fullmatch(value) and value.lower() not in _NO_TEXTS
        return value if plain else quote(value)
    return str(value).lower() if isinstance(value, bool) else str(value)
