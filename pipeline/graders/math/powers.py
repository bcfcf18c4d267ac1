r"""Rewrites powers that need no evaluation: 2^33^2 is 2^{3}3^{2}, and 1^{9^{9^9}} is 1. Pure.

LaTeX raises one digit as an exponent without braces. 2^10 is what people type for 2^{10}, so the exponent of a last or only
power keeps its digits, and a run that ends in such a power has two meanings: 2^33^25. It stays, and so do 2^10^2 and 2**33**2.
A tower a^{b^{c}} of whole numbers with a level of 0 or 1 is shortened there. A base of 0 or 1 may have more levels without
braces, because both readings of 1^9^9 are 1. 0^0 and towers with signs, letters or fractions stay.
"""

import re

MAX_LEVELS = 24
MAX_TOWERS = 200
MAX_RUN = 24
MAX_BLANKS = 8

_RUN = re.compile(
    rf"[\w)}}\]](?:\^\d[1-9]\d{{0,40}}(?=\^)){{1,{MAX_RUN}}}\^(?:\{{|[0-9A-Za-z](?!\d|\s{{0,2}}\^))", re.ASCII
)
_EXPONENT = re.compile(r"\^(\d)([1-9]\d*)(?=\^)")
# After a digit, letter, point, comma, bracket or power sign, a number is a part of something else.
_TOWER = re.compile(
    rf"(?<![\w.,)\]}}!'^])(?P<base>\d{{1,40}})(?P<above>(?:\s{{0,2}}(?:\^|\*\*)\s{{0,2}}\{{?\d{{1,40}}(?!\d)){{1,{MAX_LEVELS}}})"
    rf"(?P<close>\}}{{0,{MAX_LEVELS}}})(?!\s{{0,2}}(?:[\w.!^{{(\\]|\*\*))"
)
_NOT_BEFORE = re.compile(r"(?:[\w.,)\]}!'^]|\*\*|\A)\s+\Z|\*\*\Z")
_LEVEL = re.compile(r"(\{?)(\d+)")
_MANY = 2


def separate(text: str) -> str:
    """The text with braces around the first digit of each exponent that LaTeX would raise alone. Takes linear time."""
    if "^" not in text or "**" in text:
        return text
    return _RUN.sub(lambda run: _EXPONENT.sub(r"^{\1}\2", run.group()), text)


def shorten(text: str) -> str:
    """The text with each level of a tower that is 0 or 1 replaced by that number. Takes linear time."""
    return _TOWER.sub(_shortened, text, count=MAX_TOWERS)


def _shortened(tower: re.Match[str]) -> str:
    before = tower.string[max(0, tower.start() - MAX_BLANKS) : tower.start()]
    numbers = [tower["base"], *(number for _, number in _LEVEL.findall(tower["above"]))]
    braces = [bool(brace) for brace, _ in _LEVEL.findall(tower["above"])]
    closed = len(tower["close"]) - sum(braces)
    if closed < 0 or _NOT_BEFORE.search(before) or not (all(braces[:-1]) or _is_bare(numbers, braces)):
        return tower.group()
    value, short = min(int(numbers[-1]), _MANY), ""
    for number in reversed(numbers[:-1]):
        base = min(int(number), _MANY)
        if base == value == 0:
            return tower.group()
        value = 1 if base == 1 or value == 0 else base
        short = str(value) if value != _MANY else short and f"{number}^{{{short}}}"
    return (f"({short})" if value != _MANY else short or tower.group().removesuffix("}" * closed)) + "}" * closed


def _is_bare(numbers: list[str], braces: list[bool]) -> bool:
    """Whether a base of 0 or 1 has positive levels without braces. LaTeX prints 1^99^9 as a product."""
    one_digit = all(len(number) == 1 or number[1] == "0" for number in numbers[1:-1])
    return not any(braces) and int(numbers[0]) < _MANY and one_digit and all(int(number) for number in numbers[1:])
