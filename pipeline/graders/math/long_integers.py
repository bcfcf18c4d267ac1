"""Compares integers of thousands of digits as texts. Pure, linear time: no such integer is ever converted to a number."""

import re

from pipeline.graders.math.limits import MAX_DIGITS

MAX_INTEGER_DIGITS = 20_000

_INTEGER = re.compile(r"[+-]?(?:[0-9]+|[0-9]{1,3}(?:,[0-9]{3})+)")
_WRAP = " \t\r\n$"


def is_long_integer(text: str) -> bool:
    """Whether a text is an integer with more digits than other comparisons read, and not too many for this one."""
    return len(text) > MAX_DIGITS and _digits(text) is not None


def same_long_integer(gold: str, answer: str) -> bool | None:
    """Whether two integers are equal. None if neither is long, or if one of the texts is no integer."""
    if len(gold) <= MAX_DIGITS and len(answer) <= MAX_DIGITS:
        return None
    wanted, given = _digits(gold), _digits(answer)
    return None if wanted is None or given is None else wanted == given


def _digits(text: str) -> str | None:
    """The digits of an integer with its sign, without leading zeros and separators. None for other texts."""
    if len(text) > 2 * MAX_INTEGER_DIGITS:
        return None
    text = text.strip(_WRAP).removesuffix(".")
    if not _INTEGER.fullmatch(text):
        return None
    digits = text.lstrip("+-").replace(",", "").lstrip("0")
    if len(digits) > MAX_INTEGER_DIGITS:
        return None
    return f"-{digits}" if digits and text.startswith("-") else digits
