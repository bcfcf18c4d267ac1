"""Hugging Face tokenizers for the checks of rows. No code of a model is run."""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from pipeline.core.errors import UsageError
from pipeline.core.missing_models import load_failure
from pipeline.export.formats.base import Encoder

_MAX_CAUSE_CHARACTERS = 300
_MAX_MARK_CHARACTERS = 64
"""Tokens of texts up to this length are cached, because they recur in every row, such as placeholders."""
_MARKS_KEPT = 1024


class HfEncoder:
    """A Hugging Face tokenizer as `Encoder`."""

    def __init__(self, tokenizer: Any, name: str) -> None:
        self._tokenizer = tokenizer
        self._name = name
        self._short = lru_cache(_MARKS_KEPT)(self._encoded)
        known = {str(token) for token in tokenizer.added_tokens_decoder.values() if token.special}
        special = sorted((token for token in known | {*tokenizer.all_special_tokens} if token.strip()), key=len)[::-1]
        self._special = re.compile("|".join(map(re.escape, special)) or r"(?!)")

    @property
    def bos(self) -> int | None:
        bos: int | None = self._tokenizer.bos_token_id
        return bos

    def ids(self, text: str) -> list[int]:
        return list(self._short(text) if len(text) <= _MAX_MARK_CHARACTERS else self._encoded(text))

    def special_in(self, text: str) -> str | None:
        found = self._special.search(text)
        return found and found.group()

    def chat(self, messages: list[dict[str, str]]) -> list[int]:
        try:
            text = self._tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=False)
        except Exception as error:  # templates are programs and can raise anything
            raise UsageError(
                f"the chat template of tokenizer={self._name} fails on a row: {_cause(error)}; name a tokenizer whose "
                "template accepts this format's roles, or leave tokenizer out"
            ) from error
        return list(self._encoded(text))

    def _encoded(self, text: str) -> Sequence[int]:
        # verbose=False: no warning for a text longer than the model's context, because the checks look for such texts
        ids: Sequence[int] = self._tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"]
        return ids


def load_encoder(name: str) -> Encoder:
    """Load the tokenizer of a local folder or a Hugging Face name. Raises UsageError if it cannot be loaded."""
    try:
        from transformers import AutoTokenizer
    except ImportError as error:
        raise UsageError(
            f"tokenizer={name} needs transformers: install the cpu, gpu or openai extra, see the README ({error})"
        ) from error
    try:
        return HfEncoder(AutoTokenizer.from_pretrained(name, trust_remote_code=False), name)
    except Exception as error:  # transformers, the hub and their parsers have no common base
        raise UsageError(
            f"tokenizer={name} cannot be loaded: {load_failure(error)}; give a local folder or a Hugging Face name"
        ) from error


def _cause(error: Exception) -> str:
    return " ".join(str(error).split())[:_MAX_CAUSE_CHARACTERS]
