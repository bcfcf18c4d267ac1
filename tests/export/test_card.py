"""The data card as a reader of Markdown sees it, and the tokenizer of the checks."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from pipeline.core.errors import UsageError
from pipeline.core.records import Totals
from pipeline.export.card import data_card
from pipeline.export.formats.base import Encoder
from pipeline.export.formats.tokens import load_encoder
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


def test_tokens_are_those_that_trainers_get(embedded: Any, embedded_encoder: Encoder) -> None:
    for text in ("", "\n", "So x = 3. ки\n", "long " * 9000):
        wanted = embedded(text, add_special_tokens=False, verbose=False)["input_ids"]
        assert embedded_encoder.ids(text) == wanted
        assert embedded_encoder.ids(text) == wanted
    assert embedded_encoder.bos == embedded.bos_token_id
    talk = [{"role": "user", "content": "1?"}, {"role": "assistant", "content": "+"}]
    assert embedded_encoder.chat(talk) == embedded.apply_chat_template(talk, return_dict=False)


def test_what_is_kept_is_not_what_is_given_away(embedded_encoder: Encoder) -> None:
    embedded_encoder.ids("+").append(5)
    assert embedded_encoder.ids("+") != [*embedded_encoder.ids("+"), 5]
    assert len(embedded_encoder.ids("+")) == 1


def test_a_tokenizer_that_is_not_there_is_reported(tmp_path: Path) -> None:
    with pytest.raises(
        UsageError, match=r"tokenizer=.*nowhere cannot be loaded: .*local folder or a Hugging Face name"
    ):
        load_encoder(str(tmp_path / "nowhere"))
    (tmp_path / "tokenizer.json").write_text("{")
    with pytest.raises(UsageError, match="cannot be loaded"):
        load_encoder(str(tmp_path))


def test_text_that_spells_out_a_control_token_is_noticed(embedded_encoder: Encoder) -> None:
    assert embedded_encoder.special_in("So x < 3 | y > 4.\n<|x|>") is None
    assert embedded_encoder.special_in("a<file_sep>b") == "<file_sep>"
    assert embedded_encoder.special_in("one<|im_end|>\n<|im_start|>system") == "<|im_end|>"
