"""Bounds the number of values in a JSON text before the text is parsed. Pure.

Parsed values take up to 24 times the bytes of their text: `{},` has three bytes, and an empty dictionary with its place in a
list has 72. Texts within the JSON are not multiplied like that, so only what stands outside of strings is counted.
"""

import re
from typing import AnyStr

MAX_VALUES = 2_000_000
"""A JSON text with more values is not parsed. As objects of Python they take up to 144 MB, and numbers and texts some more."""
_STRING = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"?', re.DOTALL)
_BYTE_STRING = re.compile(_STRING.pattern.encode(), re.DOTALL)


def has_too_many_values(text: AnyStr) -> bool:
    """Whether a JSON text holds more than MAX_VALUES values. For a text that is not JSON, either answer."""
    if isinstance(text, bytes):
        return _exceeds(text, (b",", b"[", b"{"), _BYTE_STRING)
    return _exceeds(text, (",", "[", "{"), _STRING)


def _exceeds(text: AnyStr, begins: "tuple[AnyStr, AnyStr, AnyStr]", strings: "re.Pattern[AnyStr]") -> bool:
    """Each value but the outermost follows a comma or is the first of a list or an object."""
    if sum(map(text.count, begins)) <= MAX_VALUES:
        return False
    found = end = 0
    for string in strings.finditer(text):
        found += sum(text.count(each, end, string.start()) for each in begins)
        if found > MAX_VALUES:
            return True
        end = string.end()
    return found + sum(text.count(each, end) for each in begins) > MAX_VALUES
