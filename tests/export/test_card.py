"""The data card as a reader of Markdown sees it: values stand in it letter by letter, whatever they hold."""

import json

from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from pipeline.core.records import Totals
from pipeline.export.card import data_card
from pipeline.export.registry import plan_of
from pipeline.export.result import ExportResult
from pipeline.export.settings import ExportConfig

HOSTILE = [
    "it's `x`",
    '"quoted"',
    "``",
    "`a``b`",
    "a\\`",
    "<b>x</b>",
    "*a* [b](c)",
    " a ",
    "\u202eevil",
    "a\n# b",
    "{}",
    "|",
]


def codes(card: str) -> list[str]:
    """The contents of all code spans of a rendered card."""
    tokens = MarkdownIt("commonmark").parse(card.split("\n---\n", 1)[1])
    return [part.content for token in tokens for part in token.children or () if part.type == "code_inline"]


def card_of(model: str) -> str:
    config = ExportConfig(run_dir=f"runs/{model.replace('/', '-')}", format="trl", out="out")
    result = ExportResult(out="out", chains=1, steps=1, files={}, left_out={}, kept={}, owed=0)
    return data_card(
        config, plan_of(config, None), result, {"policy.model": model, "policy.kind": "hf"}, "a rule", Totals()
    )


@given(st.sampled_from(HOSTILE) | st.text(st.characters(exclude_categories=["Cs"]), min_size=1))
def test_names_of_models_and_runs_render_letter_by_letter(name: str) -> None:
    card = card_of(name)
    shown = codes(card)
    for value in (name, name.replace("/", "-")):
        assert {value, json.dumps(value), json.dumps(value, ensure_ascii=False)} & set(shown)
    # Nothing of it is markup, and nobody has to trust characters that cannot be seen.
    assert len(card.splitlines()) == len(card_of("plain").splitlines())
    assert all(text.isprintable() for text in shown)


def test_plain_names_have_no_quotes() -> None:
    assert "- Policy: `Qwen/Qwen3-8B`; " in card_of("Qwen/Qwen3-8B")
