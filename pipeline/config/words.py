"""Settings as words of a command line, in Hydra's grammar. Pure."""

import re

_PLAIN = re.compile(r"[A-Za-z_/][A-Za-z0-9_./:+-]*(?:=[A-Za-z0-9_./:+,=-]*)?")
"""Texts that need no quotes. With a `=` in it, a text is one value in spite of commas, but not in a list."""
_NO_TEXTS = frozenset({"null", "true", "false", "inf", "nan"})


def quote(text: str, mark: str = "'") -> str:
    """A text quoted for Hydra's grammar: quotes in it, and backslashes before a quote or at the end, are escaped."""
    return (
        mark + re.sub(rf"(\\*)({mark}|\Z)", lambda found: found[1] * 2 + (f"\\{mark}" if found[2] else ""), text) + mark
    )


def setting_word(key: str, value: object, mark: str = "'") -> str:
    """A setting with its value, in quotes if it needs them: double ones (`mark`) for a word that a shell puts into single ones.
    None is written as an empty text."""
    return f"{key}={'' if value is None else _value_word(value, mark)}"


def _value_word(value: object, mark: str) -> str:
    if value is None:
        return "null"
    if isinstance(value, list):
        words = [
            quote(each, mark) if isinstance(each, str) and "=" in each else _value_word(each, mark) for each in value
        ]
        return f"[{','.join(words)}]"
    if isinstance(value, str):
        return value if _PLAIN.fullmatch(value) and value.lower() not in _NO_TEXTS else quote(value, mark)
    return str(value).lower() if isinstance(value, bool) else str(value)
