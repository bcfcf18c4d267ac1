"""Different things have different ids, and no text of the input or of a model becomes part of a file name."""

import re
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.core.ids import MAX_NUMBER, content_id, record_name, record_parts, rollout_id, shard_name
from tests import strategies as our

HEX = "0123456789abcdef"
PARTS = st.lists(our.any_text, max_size=4).map(tuple)


@given(PARTS, PARTS)
def test_different_tuples_have_different_ids(left: tuple[str, ...], right: tuple[str, ...]) -> None:
    assert (content_id(*left) == content_id(*right)) == (left == right)


@given(our.any_text, st.data())
def test_where_a_text_is_cut_into_parts_matters(text: str, data: st.DataObject) -> None:
    first, second = sorted(data.draw(st.tuples(*[st.integers(0, len(text))] * 2)))
    ids = {content_id(text), content_id(text[:first], text[first:]), content_id(text[:first], text[first:], "")}
    assert len(ids) == 3
    assert first == second or content_id(text[:first], text[first:]) != content_id(text[:second], text[second:])


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (("a", "bc"), ("ab", "c")),
        (("a", ""), ("a",)),
        (("", "a"), ("a", "")),
        ((), ("",)),
        (("a\x01\0\0\0\0\0\0\0b",), ("a", "b")),
        (("\ud800",), ("?",)),
        (("\ud800",), ("�",)),
        (("é",), ("e\u0301",)),
    ],
)
def test_look_alikes_are_reported_apart(left: tuple[str, ...], right: tuple[str, ...]) -> None:
    assert content_id(*left) != content_id(*right)


@given(PARTS)
def test_an_id_is_twenty_hexadecimal_digits(parts: tuple[str, ...]) -> None:
    assert re.fullmatch(r"[0-9a-f]{20}", content_id(*parts))


def test_ids_stay_what_they_are_from_release_to_release() -> None:
    # Stored run directories are found by these: a change here orphans them.
    assert content_id("prefix", "p", "") == "0811b2fa1ff5537e32df"


@given(our.hex_ids, st.integers(0, 99_999), st.integers(0, 99_999))
def test_rollout_ids_sort_by_issue_and_never_clash(prefix_id: str, left: int, right: int) -> None:
    assert (rollout_id(prefix_id, left) < rollout_id(prefix_id, right)) == (left < right)
    assert (rollout_id(prefix_id, left) == rollout_id(prefix_id, right)) == (left == right)
    assert rollout_id(prefix_id, left).startswith(f"{prefix_id}-")


@given(our.hex_ids, st.text(alphabet=HEX, min_size=64, max_size=64), st.integers(0, MAX_NUMBER))
def test_file_names_of_ids(unit_id: str, sha256: str, number: int) -> None:
    assert shard_name("labels", unit_id, sha256) == f"labels-{unit_id}-{sha256[:12]}.parquet"
    assert record_parts(record_name("unit", unit_id, number)) == ("unit", unit_id, number)


@given(our.any_text, our.any_text, our.any_text, st.integers())
def test_a_file_name_is_harmless_or_refused(kind: str, unit_id: str, sha256: str, number: int) -> None:
    makers = (partial(shard_name, kind, unit_id, sha256), partial(record_name, kind, unit_id, number))
    for make in makers:
        try:
            name = make()
        except ValueError:
            continue
        assert re.fullmatch(r"[a-z]+-[0-9a-f]{20}-[0-9a-f]{5,12}\.(parquet|json)", name, re.ASCII)


UNIT = "0" * 20
SHA = "f" * 64


@pytest.mark.parametrize(
    ("kind", "unit_id", "sha256"),
    [
        ("../labels", UNIT, SHA),
        ("", UNIT, SHA),
        ("labels", "../../etc/passwd", SHA),
        ("labels", f"{UNIT}0", SHA),
        ("labels", UNIT[:-1], SHA),
        ("labels", UNIT.replace("0", "A"), SHA),
        ("labels", UNIT.replace("0", "٣"), SHA),
        ("labels", UNIT, ""),
        ("labels", UNIT, "short"),
        ("labels", UNIT, "/" * 64),
        ("labels\0", UNIT, SHA),
        ("labels\n", UNIT, SHA),
    ],
)
def test_what_is_no_id_never_becomes_a_file_name(kind: str, unit_id: str, sha256: str) -> None:
    with pytest.raises(ValueError, match="unsafe file name"):
        shard_name(kind, unit_id, sha256)


@pytest.mark.parametrize("number", [-1, MAX_NUMBER + 1])
def test_a_chain_has_no_further_numbers(number: int) -> None:
    with pytest.raises(ValueError, match="unsafe file name"):
        record_name("unit", UNIT, number)


@pytest.mark.parametrize(
    "name", ["", "run.json", f"unit-{UNIT}.json", f"labels-{UNIT}-{SHA[:12]}.parquet", "notes.json"]
)
def test_other_names_are_no_records(name: str) -> None:
    assert record_parts(name) is None
