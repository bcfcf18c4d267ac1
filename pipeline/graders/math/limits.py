"""Size limits of mathematical answers. Each limit has a name, and an answer over a limit is never parsed.

The limits reject what is known to stall computer algebra (power towers, huge exponents and factorials, deep nesting). An answer
within the limits can still be slow, so `pool` also has a deadline. Longer integers are compared as texts, never as numbers.
"""

import math
import re

from pipeline.graders.math.powers import separate, shorten

MAX_CHARS = 512
MAX_DEPTH = 20
MAX_DIGITS = 200
MAX_INTEGER_DIGITS = 20_000
MAX_EXPONENT = 10_000
MAX_SCIENTIFIC = 999
MAX_FACTORIAL = 1_000
MAX_READ_FACTORIAL = 170
MAX_EXPONENT_FACTORIAL = 6
MAX_POWERS = 24
MAX_ITEMS = 64
MAX_CELLS = 100
MAX_TERMS = 400
MAX_COEFFICIENT_BITS = 40_000
MAX_EXPANDED_POWER = 24

_INTEGER = re.compile(r"[+-]?(?:[0-9]+|[0-9]{1,3}(?:,[0-9]{3})+)")
_DIGITS = re.compile(rf"\d{{{MAX_DIGITS + 1}}}")
_EXPONENT = re.compile(r"(?:\^|\*\*)[{(+-]*(\d+)")
_TOWER = re.compile(r"(?:\^|\*\*)[{(+-]*(\d+)[})]*(?:\^|\*\*)[{(+-]*(\d+)")
_SCIENTIFIC = re.compile(r"[\d.][eE][+-]?0*(\d+)")
_FACTORIAL = re.compile(r"(\d+)[})]*!")
_EXPONENT_FACTORIAL = re.compile(r"(?:\^|\*\*)[{(+-]*(\d+)[})]*!")
_FACTORIAL_OF_EXPRESSION = re.compile(r"[})!]!")
# A blank between two digits stays, because 3^2 2^3 is no tower.
_BLANKS = re.compile(r"(?<!\d)\s+|\s+(?!\s|\d)")
_BRACKETS = re.compile(r"[{(\[]|[})\]]")


def exceeded_limit(answer: str) -> str | None:
    """The name of the limit that `answer` exceeds, or None. Takes linear time and never raises."""
    if len(answer) > MAX_CHARS:
        return "characters"
    if answer.isdigit():
        return "digits" if len(answer) > MAX_DIGITS else None
    if _DIGITS.search(answer):
        return "digits"
    if _depth(answer) > MAX_DEPTH:
        return "depth"
    if _SCIENTIFIC.search(answer) and any(_above(digits, MAX_SCIENTIFIC) for digits in _SCIENTIFIC.findall(answer)):
        return "exponent"
    if "^" in answer or "**" in answer or "!" in answer:
        answer = shorten(separate(answer))
        return _powers_exceeded("".join(answer.split()), _BLANKS.sub("", answer))
    return None


def _powers_exceeded(dense: str, spaced: str) -> str | None:
    """The limit that the powers of an answer without blanks exceed. In `spaced` the blanks between two digits are kept."""
    if dense.count("^") + dense.count("**") > MAX_POWERS:
        return "powers"
    if any(_above(digits, MAX_EXPONENT) for digits in _EXPONENT.findall(dense)):
        return "exponent"
    # Each level of a tower overlaps the next, so the search restarts one character after each match.
    position = 0
    while match := _TOWER.search(spaced, position):
        base, exponent = match.groups()
        if int(base) > 1 and int(exponent) * math.log10(int(base)) > math.log10(MAX_EXPONENT):
            return "tower"
        position = match.start() + 1
    powered = "^" in dense or "**" in dense
    factorial = (
        any(_above(digits, MAX_FACTORIAL) for digits in _FACTORIAL.findall(dense))
        or any(_above(digits, MAX_EXPONENT_FACTORIAL) for digits in _EXPONENT_FACTORIAL.findall(dense))
        or (_FACTORIAL_OF_EXPRESSION.search(dense) and (powered or "!!" in dense or ")!)!" in dense))
    )
    return "factorial" if factorial else None


def _above(digits: str, limit: int) -> bool:
    return len(digits.lstrip("0")) > len(str(limit)) or int(digits) > limit


def _depth(answer: str) -> int:
    depth = deepest = 0
    for bracket in _BRACKETS.findall(answer):
        depth = depth + 1 if bracket in "{([" else max(depth - 1, 0)
        deepest = max(deepest, depth)
    return deepest


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
    text = text.strip(" \t\r\n$").removesuffix(".")
    if not _INTEGER.fullmatch(text):
        return None
    digits = text.lstrip("+-").replace(",", "").lstrip("0")
    if len(digits) > MAX_INTEGER_DIGITS:
        return None
    return f"-{digits}" if digits and text.startswith("-") else digits
