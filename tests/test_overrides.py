"""Settings from the command line, as Hydra's grammar reads them."""

import pytest
from hydra.core.override_parser.overrides_parser import OverridesParser
from hypothesis import given
from hypothesis import strategies as st

from pipeline.__main__ import compose_label
from pipeline.config.words import quote, setting_word

pytestmark = pytest.mark.slow

texts = st.text(
    st.characters(exclude_categories=("Cs", "Cc")) | st.sampled_from("'\"\\,[]{}=<>|$:# "), min_size=1, max_size=12
)


@given(texts)
def test_any_text_can_be_quoted(text: str) -> None:
    assert OverridesParser.create().parse_override(f"placeholder={quote(text)}").value() == text


@given(
    st.text(st.characters(exclude_categories=("Cs", "Cc"), exclude_characters="$"))
    | st.sampled_from(["1e5", "inf", "a=1,b"])
)
def test_a_text_setting_survives_as_a_word(text: str) -> None:
    made = compose_label(["data.path=x", "policy=oracle", setting_word("policy.prompt.instruction", text)])
    assert made.policy.prompt.instruction == text


@pytest.mark.parametrize(
    ("value", "word"),
    [
        (None, "a="),
        (True, "a=true"),
        (0.3, "a=0.3"),
        ("any", "a=any"),
        ("null", "a='null'"),
        (["x", "y, z", None, 1], "a=[x,'y, z',null,1]"),
    ],
)
def test_a_setting_as_a_word(value: object, word: str) -> None:
    assert setting_word("a", value) == word
