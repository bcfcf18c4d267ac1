"""Settings from the command line, as Hydra's grammar reads them."""

from hydra.core.override_parser.overrides_parser import OverridesParser
from hypothesis import given
from hypothesis import strategies as st

from pipeline.cli.overrides import quote

texts = st.text(
    st.characters(exclude_categories=("Cs", "Cc")) | st.sampled_from("'\"\\,[]{}=<>|$:# "), min_size=1, max_size=12
)


@given(texts)
def test_any_text_can_be_quoted(text: str) -> None:
    assert OverridesParser.create().parse_override(f"placeholder={quote(text)}").value() == text
