"""Text of a completion from all its tokens at once, as an incremental detokenizer would have written it. Pure.

Many tokenizers drop the blank before the first word they decode, so a completion is decoded behind the last tokens of its
prompt. Bytes at the end that are no whole character are no text.

Not covered: a prompt that ends within a character, and bytes further ahead that are no character at all. There the text holds
replacement characters, not always the same ones.
"""

from collections.abc import Callable, Sequence

CONTEXT_TOKENS = 5
"""Of the prompt; as many as vLLM takes."""
MAX_MORE = 3
"""Tokens that are added in front where the first one lies within a character, which has up to four bytes."""
MAX_DROPPED = 8
"""Tokens at the end that are tried without: those of a character, and special ones that may stand between them."""
_BROKEN = "\ufffd"

Decode = Callable[[Sequence[int]], str]
"""Text of token ids, special tokens left out."""


def completion_text(decode: Decode, prompt_ids: Sequence[int], token_ids: Sequence[int]) -> str:
    """What `token_ids` say behind `prompt_ids`; empty where they hold no whole character."""
    context, before = _context(decode, prompt_ids)
    whole = ""
    for dropped in range(min(MAX_DROPPED, len(token_ids)) + 1):
        whole = decode([*context, *token_ids[: len(token_ids) - dropped]])
        if not whole.endswith(_BROKEN):
            break
    text = whole[len(before) :] if whole.startswith(before) else decode(token_ids)
    return text.rstrip(_BROKEN)


def _context(decode: Decode, prompt_ids: Sequence[int]) -> tuple[list[int], str]:
    """The last tokens of the prompt and their text."""
    for count in range(CONTEXT_TOKENS, CONTEXT_TOKENS + MAX_MORE + 1):
        context = list(prompt_ids[-count:])
        text = decode(context)
        if _BROKEN not in text:
            break
    return context, text
