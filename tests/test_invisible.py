"""Characters that nobody sees, in the ways in which they are sent."""

import json
import re
import sys
import unicodedata

import pytest

from pipeline.core.invisible import RANGES, broken, in_json, in_utf8

POINTS = [point for low, high in RANGES for point in range(low, high + 1)]
SEEN = "aZ7-_.:/ é漢€😀"


def test_every_control_and_format_character_is_invisible() -> None:
    found = {point for point in range(sys.maxunicode + 1) if unicodedata.category(chr(point)) in ("Cc", "Cf")}
    assert found <= set(POINTS)


def test_each_is_matched_as_a_whole_and_no_other_character_is() -> None:
    raw, escaped = re.compile(in_utf8()), re.compile(in_json(rb"\\{1,32}"))
    for point in POINTS:
        assert raw.fullmatch(chr(point).encode())
        if point >= 0x80 or point < 0x20:
            assert escaped.fullmatch(json.dumps(chr(point))[1:-1].encode()), hex(point)
    for letter in SEEN:
        assert not raw.search(letter.encode())
        assert not escaped.search(f"\\u{ord(letter):04x}".encode() if ord(letter) < 0x10000 else b"\\ud83d\\ude00")


@pytest.mark.parametrize(
    "inside", ["\u200b", "\u00ad", "\ufeff", "\ufe0f", "\x00", "\x1b", "\u2060\u200d", "\U000e0100", "\n"]
)
def test_a_broken_secret_is_found(inside: str) -> None:
    assert broken("sk-123").sub("***", f"a{inside} {inside.join('sk-123')} b") == f"a{inside} *** b"


def test_a_text_with_seen_characters_between_is_another_text() -> None:
    assert not any(broken("sk-123").search(letter.join("sk-123")) for letter in SEEN)
