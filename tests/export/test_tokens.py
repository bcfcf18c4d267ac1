"""The tokenizer of the checks gives the tokenizer's own tokens, and a clear error if it cannot be used."""

from pathlib import Path
from typing import Any

import pytest

from pipeline.core.errors import UsageError
from pipeline.export.formats.base import Encoder
from pipeline.export.formats.tokens import load_encoder


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
