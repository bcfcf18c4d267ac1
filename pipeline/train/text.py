"""What a model reads of a chain: the problem and the steps as pieces, each with the separator behind it; and its tokenizer, as
that wants it. Pure.

The pieces are tokenised one by one, so that a step has the same tokens in whatever chain it stands, in training and in
scoring, and always ends with one of its own: that is where the model says what the step is worth.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from pipeline.core.errors import UsageError

Encode = Callable[[Sequence[str]], Sequence[Sequence[int]]]
"""Token ids of each of several texts, without any that a tokenizer adds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EncodedChain:
    """`ends`: where in `ids` the last token of each step stands. `left_out`: steps at the end of which there is nothing."""

    ids: tuple[int, ...]
    ends: tuple[int, ...]
    left_out: int


def encode_chain(
    encode: Encode, problem: str, steps: Sequence[str], *, separator: str, bos: int | None, max_length: int
) -> EncodedChain:
    """The chain in at most `max_length` tokens, `bos` in front if there is one: whole steps, as many as fit.

    A step that the tokenizer makes nothing of has no end of its own, and the chain ends before it. Where not even the problem
    fits, `ids` is empty.
    """
    head, *pieces = encode([text + separator for text in (problem, *steps)])
    ids = [*([] if bos is None else [bos]), *head]
    if len(ids) > max_length:
        return EncodedChain(ids=(), ends=(), left_out=len(steps))
    ends: list[int] = []
    for piece in pieces:
        if not piece or len(ids) + len(piece) > max_length:
            break
        ids += piece
        ends.append(len(ids) - 1)
    return EncodedChain(ids=tuple(ids), ends=tuple(ends), left_out=len(steps) - len(ends))


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
