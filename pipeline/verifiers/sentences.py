"""The sentence around a place of a text, texts in one short line, and findings with such a line as evidence. Pure, bounded."""

from collections.abc import Sequence

from pipeline.verifiers.base import UNKNOWN, Covers, Finding, StepVerdict

LONGEST_SHOWN = 160
LONGEST_EVIDENCE = 600
MOST_SHOWN = 3
_REACH = 400
"""Characters on both sides of an equation that may belong to its sentence, in whole blocks, so that neighbours share it."""
_ENDS = (". ", "? ", "! ", "\n", ".\n")


def sentence_around(text: str, start: int, end: int) -> str:
    """The sentence or line that a part of a text stands in."""
    low, high = max(0, start // _REACH - 1) * _REACH, min(len(text), (end // _REACH + 2) * _REACH)
    begin = max((at + len(mark) for mark in _ENDS if (at := text.rfind(mark, low, start)) >= 0), default=low)
    ends = [at + 1 for mark in _ENDS if (at := text.find(mark, end - 1, high)) >= 0]
    return text[begin : min(ends, default=high)]


def in_a_line(text: str, longest: int = LONGEST_SHOWN) -> str:
    """A text without line ends, cut where it is too long."""
    line = " ".join(text.split())
    return line if len(line) <= longest else f"{line[: longest - 3]}..."


def finding(verdict: StepVerdict, evidence: str, covers: Covers = Covers.PART) -> Finding:
    """A finding with evidence in one line of at most `LONGEST_EVIDENCE` characters."""
    return Finding(verdict=verdict, evidence=in_a_line(evidence, LONGEST_EVIDENCE), covers=covers)


def unknown(reason: str) -> Finding:
    """A step is unknown for a reason that a user may want to know."""
    return finding(StepVerdict.UNKNOWN, reason)


def several(texts: Sequence[str]) -> str:
    """The first of several texts, and how many more there are."""
    more = f"; and {len(texts) - MOST_SHOWN} more" if len(texts) > MOST_SHOWN else ""
    return "; ".join(texts[:MOST_SHOWN]) + more


def holding(held: Sequence[str]) -> Finding:
    """The finding on a step of which these statements hold: a part, or unknown where there are none."""
    return Finding(verdict=StepVerdict.HOLDS, evidence=several([*map(in_a_line, held)])) if held else UNKNOWN
