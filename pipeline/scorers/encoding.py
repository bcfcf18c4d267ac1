"""Encodes a chain for a model: the problem and the steps as pieces, each followed by the separator. Pure.

The pieces are tokenized one by one. So a step has the same tokens in every chain, in training and in scoring, and its last
token is its own. The model scores the step at that token.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from pipeline.core.errors import UsageError
from pipeline.data.prompts import Encode, encoder

SEPARATOR_KEY = "stepvalue_separator"
"""The key in a model's config.json for the text after the problem and after every step in training."""
STEPS_KEY = "stepvalue_steps"
"""The key in a model's config.json for how the texts of training were divided into steps: `DataConfig.steps`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EncodedChain:
    """`ends`: the index in `ids` of the token at which each step is read, which is its last one unless a scorer says otherwise.
    `left_out`: number of last steps that are not in `ids`."""

    ids: tuple[int, ...]
    ends: tuple[int, ...]
    left_out: int

    def newest(self) -> "EncodedChain":
        """The chain up to the end of its last step, with this end alone; with none if the last step is left out. A causal model
        reads nothing of what stands after it."""
        if self.left_out or not self.ends:
            return replace(self, ends=())
        return replace(self, ids=self.ids[: self.ends[-1] + 1], ends=self.ends[-1:])


def encode_chain(
    encode: Encode, problem: str, steps: Sequence[str], *, separator: str, bos: int | None, max_length: int
) -> EncodedChain:
    """The chain in at most `max_length` tokens: `bos` if there is one, the problem, and as many whole steps as fit.

    The chain also ends before a step without any token. `ids` is empty if not even the problem fits.
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


def check_separator(tokenizer: Any, separator: str) -> None:
    """Raise UsageError for a separator without any token: an empty step would have no last token."""
    if not encoder(tokenizer)([separator])[0]:
        raise UsageError(
            f"separator={separator!r} has no token in this model's tokenizer: choose another, such as '\\n' or ' ;'"
        )


def pad_id_of(tokenizer: Any) -> int:
    """The token for padding. Any token works, because the attention mask hides it."""
    for token in (tokenizer.pad_token_id, tokenizer.eos_token_id):
        if token is not None:
            return int(token)
    return 0
