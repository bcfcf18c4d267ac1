"""Hugging Face tokenizers for the checks of rows. No code that comes with a model is run."""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from pipeline.core.errors import UsageError
from pipeline.export.formats.base import Encoder

_MAX_CAUSE_CHARACTERS = 300
_MAX_MARK_CHARACTERS = 64
"""Texts up to this length, such as placeholders, recur in every row; what they are is kept."""
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
        except Exception as error:  # templates are programs of their authors, which raise what they like
            raise UsageError(
                f"the chat template of tokenizer={self._name} does not take a row: {_cause(error)}; name a tokenizer whose "
                "template takes this format's roles, or leave tokenizer out"
            ) from error
        return list(self._encoded(text))

    def _encoded(self, text: str) -> Sequence[int]:
        # verbose: a text longer than the model's context is what is looked for here, no reason for a warning
        ids: Sequence[int] = self._tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"]
        return ids


def load_encoder(name: str) -> Encoder:
    """The tokenizer of a local folder or a Hugging Face name. Raises UsageError where it cannot be loaded here."""
    try:
        from transformers import AutoTokenizer
    except ImportError as error:
        raise UsageError(
            f"tokenizer={name} needs transformers: install the cpu, gpu or openai extra as the README says ({error})"
        ) from error
    try:
        return HfEncoder(AutoTokenizer.from_pretrained(name, trust_remote_code=False), name)
    except Exception as error:  # transformers, the hub and their parsers have no common base
        raise UsageError(
            f"tokenizer={name} cannot be loaded: {_cause(error)}; give a local folder or a Hugging Face name"
        ) from error


def _cause(error: Exception) -> str:
    return " ".join(str(error).split())[:_MAX_CAUSE_CHARACTERS]
