"""Cuts a text at its first mark of an end of turn, because what follows belongs to another turn. Pure, linear time."""

import re

_END = re.compile(
    r"<(?:\|(?:im_end|eot_id|eom_id|endoftext|end_of_text|end_of_turn|end|eot|return|end▁of▁sentence)\|"
    r"|｜(?:end▁of▁sentence|end_of_sentence|User)｜|end_of_turn|eos|EOS|/s)>"
)
_STRUCK = "<s>"
_SAME_TURN = "<|start|>assistant"
"""After this, the final channel of the same turn follows."""


def first_turn(text: str) -> str:
    """The text before its first mark of an end of turn. Marks at the very beginning are skipped."""
    start = 0
    for mark in _END.finditer(text):
        if text.startswith(_SAME_TURN, mark.end()):
            continue
        if mark.group() == "</s>" and _STRUCK in text[start : mark.start()].lstrip():
            # <s>5</s> strikes a text out, in the language of web pages.
            continue
        if text[start : mark.start()].strip():
            return text[start : mark.start()]
        start = mark.end()
    return text[start:]
