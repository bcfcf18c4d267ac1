"""The sentence around a place of a text, and texts in one short line for evidence. Pure, bounded."""

LONGEST_SHOWN = 160
_REACH = 400
"""Characters on both sides of an equation that may belong to its sentence."""
_ENDS = (". ", "? ", "! ", "\n", ".\n")


def sentence_around(text: str, start: int, end: int) -> str:
    """The sentence or line that a part of a text stands in."""
    low, high = max(0, start - _REACH), min(len(text), end + _REACH)
    begin = max((at + len(mark) for mark in _ENDS if (at := text.rfind(mark, low, start)) >= 0), default=low)
    ends = [at + 1 for mark in _ENDS if (at := text.find(mark, end - 1, high)) >= 0]
    return text[begin : min(ends, default=high)]


def in_a_line(text: str, longest: int = LONGEST_SHOWN) -> str:
    """A text without line ends, cut where it is too long."""
    line = " ".join(text.split())
    return line if len(line) <= longest else f"{line[: longest - 3]}..."
