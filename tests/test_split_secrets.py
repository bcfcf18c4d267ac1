"""Secrets that a text holds in pieces, in the ways in which such texts are sent."""

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.core.split_secrets import between_in_json, split

SEEN = [chr(point) for point in range(0x21, 0x7F)]
OTHER = [
    " ", "\n", "\t", "\x00", "\x1b", "\x7f", "\u00a0", "\u00ad", "\u0301", "\u200b", "\u2009", "\u202f", "\u3000", "\ue000",
    "\ufe0f", "\ufeff", "\U00016fe4", "\U000e0100", "é", "漢", "😀",
]  # fmt: skip
JSON = re.compile(between_in_json(rb"\\{1,32}"))


@given(st.lists(st.sampled_from(OTHER) | st.characters(min_codepoint=0x80), min_size=1, max_size=3).map("".join))
def test_a_split_secret_is_found(inside: str) -> None:
    assert split("sk-123").sub("***", f"a{inside} {inside.join('sk-123')} b") == f"a{inside} *** b"


@given(st.sampled_from(OTHER) | st.characters(min_codepoint=0x80, exclude_categories=["Cs"]), st.booleans())
def test_each_other_character_is_matched_as_json_writes_it(letter: str, as_ascii: bool) -> None:
    assert JSON.fullmatch(json.dumps(letter, ensure_ascii=as_ascii)[1:-1].encode())


def test_half_a_pair_of_surrogates_is_matched() -> None:
    assert JSON.fullmatch(rb"\ud83d")
    assert JSON.fullmatch(rb"\\uDE00")


@pytest.mark.parametrize("letter", SEEN)
def test_a_text_with_visible_ascii_between_is_another_text(letter: str) -> None:
    assert not split("sk~123").search(letter.join("sk~123"))
    assert not JSON.fullmatch(letter.encode())
    assert not JSON.fullmatch(f"\\u{ord(letter):04x}".encode())
    assert not JSON.fullmatch(f"\\u{ord(letter):04X}".encode())
