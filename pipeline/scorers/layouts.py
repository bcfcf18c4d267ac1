"""A chain as published code lays it out: pieces of tokens in order, some of which hold the token at which a step is read. Pure.

The layouts of models that others have trained are built of these pieces. Which token belongs to which step is known because the
layout places it, never by a search for the tag: a text that holds the tag adds no step.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from pipeline.core.errors import UsageError
from pipeline.data.prompts import Encode
from pipeline.scorers.encoding import EncodedChain


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """Tokens. `read`: the index in `ids` of the token at which a step is read; -1: the last token of what stands before the
    piece; None: no step is read here."""

    ids: Sequence[int]
    read: int | None = None


def laid_out(pieces: Iterable[Piece], *, steps: int, max_length: int) -> EncodedChain:
    """The chain of `steps` steps whose pieces these are, in at most `max_length` tokens.

    A chain that fits has all its tokens, also those after the last step is read. One that does not fit ends with the token at
    which its last fitting step is read; `ids` is empty if no step fits.
    """
    ids: list[int] = []
    ends: list[int] = []
    for piece in pieces:
        if piece.read is not None:
            ends.append(len(ids) + piece.read)
        ids += piece.ids
    if len(ids) > max_length:
        ends = [end for end in ends if end < max_length]
        ids = ids[: ends[-1] + 1] if ends else []
    return EncodedChain(ids=tuple(ids), ends=tuple(ends), left_out=steps - len(ends))


def following(encode: Encode, before: str) -> Encode:
    """An `Encode` for texts that stand after `before`, which ends with a token of its own. The tokens of `before` are not among
    the result.

    Some tokenizers put a blank before every text that they get. It is not wanted in the middle of a chain.
    """
    (known,) = encode([before])
    size = len(known)

    def encode_rest(texts: Sequence[str]) -> Sequence[Sequence[int]]:
        together = encode([before + text for text in texts])
        if all(list(ids[:size]) == list(known) for ids in together):
            return [ids[size:] for ids in together]
        alone = encode(texts)
        return [
            ids[size:] if list(ids[:size]) == list(known) else rest for ids, rest in zip(together, alone, strict=True)
        ]

    return encode_rest


def tag_id(tokenizer: Any, setting: str, tag: str, *, after: str = "") -> int:
    """The token of a tag which stands after the text `after`. Raises UsageError where it is several tokens, or none."""
    before, together = whole_ids(tokenizer, after) if after else [], whole_ids(tokenizer, after + tag)
    found = together[len(before) :]
    if together[: len(before)] != before or len(found) != 1:
        raise UsageError(
            f"{setting}={tag!r} is not one token in this model's tokenizer, but {max(0, len(together) - len(before))}: give "
            "the text that the model was trained with, or choose the scorer of its format"
        )
    return int(found[0])


def check_apart(tokenizer: Any, setting: str, tag: str) -> None:
    """Raise UsageError for a tag that is a token of the vocabulary like others: such a token merges with the text beside it."""
    if tag not in tokenizer.get_added_vocab():
        raise UsageError(
            f"{setting}={tag!r} is an ordinary token of this model's tokenizer, which merges with the text beside it: give the "
            "tag that was added to the tokenizer for the model's training, or choose the scorer of its format"
        )


def word_ids(tokenizer: Any, words: Sequence[tuple[str, str]]) -> list[int]:
    """The token of each word, given as (setting, word). Raises UsageError where a word is not one token, or where two are the
    same."""
    ids = [tag_id(tokenizer, setting, word) for setting, word in words]
    check_different(words, ids)
    return ids


def check_different(words: Sequence[tuple[str, str]], ids: Sequence[int]) -> None:
    """Raise UsageError where words, given as (setting, word), have a token in common."""
    if len(set(ids)) < len(ids):
        given = " and ".join(f"{setting}={word!r}" for setting, word in words)
        raise UsageError(f"{given} begin with the same token in this model's tokenizer: give words that it keeps apart")


def check_same(
    found: Sequence[int], expected: Sequence[int], *, model: str, decode: Callable[[list[int]], str], what: str
) -> None:
    """Raise UsageError where a layout gives other tokens than the tokenizer gives for the whole text of a sample chain."""
    if list(found) == list(expected):
        return
    at = next((at for at, (one, other) in enumerate(zip(found, expected, strict=False)) if one != other), len(found))
    raise UsageError(
        f"the tokenizer of {model} merges {what} with the text beside it: in a sample chain it makes "
        f"{decode(list(expected[at : at + 1]))!r} where the layout needs {decode(list(found[at : at + 1]))!r}: give the texts "
        "that the model was trained with, or choose the scorer of its format"
    )


def whole_ids(tokenizer: Any, text: str, *, special: bool = False) -> list[int]:
    """The tokens of a whole text in which special tokens count as such, as published code makes them. `special`: with the
    tokens that the tokenizer puts around a text."""
    found: list[int] = tokenizer(text, add_special_tokens=special, verbose=False)["input_ids"]
    return list(found)
