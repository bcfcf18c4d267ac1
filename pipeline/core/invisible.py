"""Characters that nobody sees: control and format characters, variation selectors, fillers, tags. Pure.

A text that a stranger sends may have them inside a secret, so that it is not found, while people read and copy it as it is.
"""

import re
from collections.abc import Iterator, Sequence, Set

RANGES = (
    (0x00, 0x1F), (0x7F, 0x9F), (0xAD, 0xAD), (0x34F, 0x34F), (0x600, 0x605), (0x61C, 0x61C), (0x6DD, 0x6DD), (0x70F, 0x70F),
    (0x890, 0x891), (0x8E2, 0x8E2), (0x115F, 0x1160), (0x17B4, 0x17B5), (0x180B, 0x180F), (0x200B, 0x200F), (0x2028, 0x202E),
    (0x2060, 0x206F), (0x2800, 0x2800), (0x3164, 0x3164), (0xFE00, 0xFE0F), (0xFEFF, 0xFEFF), (0xFFA0, 0xFFA0),
    (0xFFF0, 0xFFFB), (0x110BD, 0x110BD), (0x110CD, 0x110CD), (0x13430, 0x1343F), (0x1BCA0, 0x1BCA3), (0x1D173, 0x1D17A),
    (0xE0000, 0xE0FFF),
)  # fmt: skip
"""The first and the last code point of each range."""
_DIGITS = 4
r"""Of an escape such as \u200b. Characters above U+FFFF take two escapes."""

_MATCHED = "[" + "".join(f"{re.escape(chr(low))}-{re.escape(chr(high))}" for low, high in RANGES) + "]"


def broken(secret: str) -> re.Pattern[str]:
    """A pattern for a text that looks like a secret: with any number of invisible characters between its own."""
    return re.compile(f"{_MATCHED}*?".join(map(re.escape, secret)))


def in_utf8() -> bytes:
    """A pattern for one of these characters in UTF-8."""
    return _one_of({chr(point).encode() for point in _points()})


def in_json(backslashes: bytes) -> bytes:
    r"""A pattern for one of these characters as an escape of JSON: \n, \u200b, \udb40\udd00. `backslashes`: a pattern for \."""
    escapes = {chr(point).encode("utf-16-be").hex().encode() for point in _points()}
    single = _one_of({escape for escape in escapes if len(escape) == _DIGITS})
    pairs = _one_of({escape[:_DIGITS] + b"u" + escape[_DIGITS:] for escape in escapes if len(escape) > _DIGITS})
    return b"(?:%s(?:[nrtbf]|(?i:u%s|u%s)))" % (backslashes, single, pairs.replace(b"u", backslashes + b"u"))


def _points() -> Iterator[int]:
    return (point for low, high in RANGES for point in range(low, high + 1))


def _one_of(texts: Set[bytes]) -> bytes:
    """A short pattern for one of several texts of which none begins with another one: equal ends are written once."""
    if texts == {b""}:
        return b""
    ends: dict[bytes, set[bytes]] = {}
    for text in texts:
        ends.setdefault(text[:1], set()).add(text[1:])
    begins: dict[bytes, list[bytes]] = {}
    for begin, rest in sorted(ends.items()):
        begins.setdefault(_one_of(rest), []).append(begin)
    return b"(?:" + b"|".join(_any_byte(first) + end for end, first in begins.items()) + b")"


def _any_byte(letters: Sequence[bytes]) -> bytes:
    escaped = [re.escape(letter) for letter in letters]
    return escaped[0] if len(escaped) == 1 else b"[" + b"".join(escaped) + b"]"
