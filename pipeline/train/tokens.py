"""A model's tokenizer, as `text` wants it."""

from collections.abc import Sequence
from typing import Any

from pipeline.core.errors import UsageError
from pipeline.train.text import Encode


def encoder(tokenizer: Any) -> Encode:
    """Token ids of several texts. What looks like a special token in a text is text."""

    def encode(texts: Sequence[str]) -> Sequence[Sequence[int]]:
        found = tokenizer(list(texts), add_special_tokens=False, split_special_tokens=True, verbose=False)
        return found["input_ids"]  # type: ignore[no-any-return]

    return encode


def check_separator(tokenizer: Any, separator: str) -> None:
    """Raise UsageError for a separator that the tokenizer makes nothing of: steps would have no end of their own."""
    if not encoder(tokenizer)([separator])[0]:
        raise UsageError(
            f"separator={separator!r} is no token of this model's tokenizer: choose another, such as separator='\\n' or "
            "separator=' ;'"
        )


def pad_id_of(tokenizer: Any) -> int:
    """What fills rows up; the attention mask covers it, so that any token will do."""
    for token in (tokenizer.pad_token_id, tokenizer.eos_token_id):
        if token is not None:
            return int(token)
    return 0
