"""Settings as words of a command line, in Hydra's grammar. Pure."""

import re
from collections.abc import Iterable

_PLAIN = re.compile(r"[A-Za-z_/][A-Za-z0-9_./:+-]*(?:=[A-Za-z0-9_./:+,=-]*)?")
"""Texts that need no quotes. With a `=` in it, a text is one value in spite of commas, but not in a list."""
_NO_TEXTS = frozenset({"null", "true", "false", "inf", "nan"})


def quote(text: str, mark: str = "'") -> str:
    """A text quoted for Hydra's grammar: quotes in it, and backslashes before a quote or at the end, are escaped."""
    return (
        mark + re.sub(rf"(\\*)({mark}|\Z)", lambda found: found[1] * 2 + (f"\\{mark}" if found[2] else ""), text) + mark
    )


def setting_word(key: str, value: object) -> str:
    """A setting with its value, in quotes if it needs them. None is written as an empty text."""
    return f"{key}={'' if value is None else _value_word(value)}"


def texts_word(key: str, texts: Iterable[str]) -> str:
    """A setting that is a list of texts, in double quotes where they need some: a shell quotes the whole word with single
    ones."""
    words = [text if _is_plain(text) and "=" not in text else quote(text, '"') for text in texts]
    return f"{key}=[{','.join(words)}]"


def _value_word(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, list):
        return f"[{','.join(quote(each) if isinstance(each, str) and '=' in each else _value_word(each) for each in value)}]"
    if isinstance(value, str):
        return value if _is_plain(value) else quote(value)
    return str(value).lower() if isinstance(value, bool) else str(value)


def _is_plain(text: str) -> bool:
    return _PLAIN.fullmatch(text) is not None and text.lower() not in _NO_TEXTS
