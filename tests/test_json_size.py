"""The bound on the number of values agrees with a count after parsing, whatever the texts within the JSON are."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.core import json_size
from pipeline.core.json_size import has_too_many_values

VALUES = st.recursive(
    st.none() | st.integers(-9, 9) | st.text(alphabet='a,[{"\\é', max_size=6),
    lambda inner: (
        st.lists(inner, max_size=6) | st.dictionaries(st.text(alphabet='b,"\\', max_size=3), inner, max_size=6)
    ),
    max_leaves=30,
)


def count(value: Any) -> int:
    """The values within a value. An empty list or object counts as one, for what it would hold."""
    if isinstance(value, list | dict):
        inner = value.values() if isinstance(value, dict) else value
        return max(1, len(value)) + sum(map(count, inner))
    return 0


@given(VALUES, st.integers(0, 30), st.booleans())
def test_the_bound_is_the_number_of_values(value: Any, most: int, ascii_only: bool) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(json_size, "MAX_VALUES", most)
        expected = count(value) > most
        assert has_too_many_values(text) is expected
        assert has_too_many_values(text.encode()) is expected


@given(st.text(alphabet='[]{},:"\\ a', max_size=40))
def test_texts_that_are_not_json_get_an_answer(text: str) -> None:
    assert has_too_many_values(text) is False


def test_commas_of_a_long_text_do_not_count() -> None:
    assert not has_too_many_values(json.dumps("," * 3_000_000))
    assert has_too_many_values("[" + "{}," * 3_000_000 + "{}]")
