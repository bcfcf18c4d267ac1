"""Finds the equations in tokens: for each sign of equality the expressions on both sides, where both can be read as a whole.

An expression is never cut out of a larger one. On the left it begins after a word or punctuation, and not after an operator; on
the right it ends before them. Pure; the work is bounded by the budget.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from pipeline.data.numbers import NUMBER_WORDS, number_in_words
from pipeline.data.units import UNITS
from pipeline.verifiers.arithmetic import words
from pipeline.verifiers.arithmetic.expressions import Budget, Reader, Reading
from pipeline.verifiers.arithmetic.tokens import ABOUT, OTHER, Token, token_at
from pipeline.verifiers.arithmetic.values import Node

MOST_BEFORE = 80
"""Tokens of a left side."""
_BOUNDARIES = frozenset({"break", "delimiter", "relation", "end"})
_BEFORE_ALL = _BOUNDARIES | {"open"}
_NEAR = 3
_MOST_COUNTED = 7
_CASED = frozenset(name for name, unit in UNITS.items() if unit.quantity.startswith(("metric", "data")))
_OPERATIONS = words.words_of(
    "divided multiplied divide multiply dividing multiplying times increased decreased reduced"
)
_AFTER_AND = words.words_of("a one half quarter two three five seven")


@dataclass(frozen=True, slots=True)
class Equation:
    """Two sides that are said to be equal, and where they stand in the text: `middle` to `after` is the relation.

    `chained`: the left side is the right side of the equation before. `displayed`: it begins a formula. `begins`: nothing
    stands before it in its clause. `about`: they are said to be about equal. `count`: how many things the words right before
    it speak of, 1 where they give no number: 3 bags of 4 + 2 = 14 apples."""

    left: Reading
    right: Reading
    start: int
    middle: int
    after: int
    end: int
    about: bool
    chained: bool
    begins: bool
    displayed: bool
    count: Fraction
    others: tuple[tuple[Reading | None, Reading | None], ...]
    """Other readings of both sides, None for any number: with the dash of a list as a sign, or hyphens that join numbers."""


def equations_of(tokens: Sequence[Token], budget: Budget) -> list[Equation]:
    """The equations that can be read, in their order."""
    found: list[Equation] = []
    # The right side before, and where the left side of a relation after it begins.
    before, first = None, 0
    for at, token in enumerate(tokens):
        if token.kind != "relation":
            continue
        if budget.spent:
            break
        hedged = token_at(tokens, at + 1).text.lower() in words.HEDGES
        right = Reader(tokens, at + 1 + hedged, len(tokens), budget, strict=False).read()
        if right is None or token.text == OTHER or not _ends(tokens, right.end):
            before = None
            continue
        chained = before is not None and before.end == at
        left = (first, before) if before is not None and chained else _left(tokens, at, budget)
        before, first = right, at + 1 + hedged
        if left is None or _is_cased(tokens[left[0] : right.end]):
            continue
        start, reading = left
        previous, others = token_at(tokens, start - 1), list[tuple[Reading | None, Reading | None]]()
        earlier, word = (token_at(tokens, start - back).text.lower() for back in (2, 1))
        if (earlier, word) == ("to", "the") or (word.removesuffix("s") in words.LABELS and not reading.node.is_number):
            others.append((None, None))
        parts = [int(each.text.partition(".")[2] or 0) for each in tokens[start : right.end] if each.kind == "number"]
        version = previous.text != word and word not in words.NEVER_UNITS and parts[-1] == sum(parts[:-1]) > 9
        ratio = previous.text == ":" and not previous.glued and token_at(tokens, start - 2).kind == "number"
        if version or (ratio and reading.node.is_number):
            others.append((None, None))  # Python 3.9 + 0.1 = 3.10, 1 : 4 = 25%
        if previous.kind == "operator":
            others.append((Reader(tokens, start - 1, at, budget).read() or reading, right))
        if any(each.text == "-" and each.glued for each in tokens[start : right.end]):
            theirs = Reader(tokens, at + 1 + hedged, len(tokens), budget, strict=False, hyphened=True).read()
            others.append((Reader(tokens, start, at, budget, hyphened=True).read(), theirs))
        spans = (tokens[start].start, token.start, token.end, tokens[right.end - 1].end)
        about, displayed = token.text == ABOUT or hedged, previous.text in ("\\(", "\\[")
        begins = previous.kind in _BOUNDARIES
        found.append(
            Equation(reading, right, *spans, about, chained, begins, displayed, _count(tokens, start), tuple(others))
        )
    return found


def _is_cased(tokens: Sequence[Token]) -> bool:
    """Whether units differ in more than their names say, as only the case of a letter says: 4 Gb = 512 MB, 1 Mg = 1000 kg."""
    units = {
        each.text for each in tokens if each.kind == "word" and len(each.text) == 2 and each.text.lower() in _CASED
    }
    return len(units) > 1 and any(not (each.islower() or each.isupper() or each in UNITS) for each in units)


def _count(tokens: Sequence[Token], start: int) -> Fraction:
    """The number of things that the words right before an expression speak of."""
    for place in range(start - 2, start - _MOST_COUNTED, -1):
        token = token_at(tokens, place)
        number = token.value if token.kind == "number" else number_in_words(token.text)
        if number or token_at(tokens, place + 1).kind != "word":
            return Fraction(number or 1)
    return Fraction(1)


def _ends(tokens: Sequence[Token], at: int) -> bool:
    """Whether an expression can end before this place."""
    token, following = token_at(tokens, at), token_at(tokens, at + 1)
    if token.kind == "open":
        return not token.glued
    if token.kind == "operator":
        return token.text == "-" and following.kind == "word" and len(following.text) > 1
    if token.kind == "word":
        return _ends_before_word(tokens, at)
    return token.kind in _BOUNDARIES or token.kind == "close"


def _ends_before_word(tokens: Sequence[Token], at: int) -> bool:
    """Whether no word after a number changes it: not 3 and a half, 3 times 5, 3 remainder 2, 3 hours and 20 minutes."""
    for place in range(at, at + _NEAR):
        token, following = token_at(tokens, place), token_at(tokens, place + 1)
        if token.kind != "word":
            return True
        word = token.text.lower()
        if word == "and":
            # 3 and 5 = 5 is a list.
            listed = any(each.kind == "relation" for each in tokens[place + 1 : place + 8])
            number = following.kind in ("number", "function") and not listed
            return following.text.lower() not in _AFTER_AND and not number
        letter = place == at and len(word) == 1 and (token.glued or word != "a")
        continues = word in words.CONTINUERS and following.kind in ("number", "open", "function")
        if letter or continues or word in words.FOLLOWERS:
            return False
    return True


def _left(tokens: Sequence[Token], at: int, budget: Budget) -> tuple[int, Reading] | None:
    """The side before a relation and where it begins."""
    boundary = _boundary(tokens, at)
    place = boundary + 1
    while place < at:
        token = tokens[place]
        signed = token.text == "-" and place == boundary + 1 and token_at(tokens, boundary).kind in _BEFORE_ALL
        if signed and not tokens[place + 1].glued:
            place, boundary = place + 1, boundary + 1
            continue
        if (signed or token.kind in ("number", "function", "open")) and _can_begin(tokens, place, boundary):
            reading = Reader(tokens, place, at, budget).read()
            if reading is not None and reading.end == at:
                return (place, reading) if _is_untouched(tokens, place, reading.node) else None
            if budget.spent:
                return None
        place = max(place, token.match if token.kind == "open" else -1) + 1
    return None


def _boundary(tokens: Sequence[Token], at: int) -> int:
    """The place of what ends the clause before a relation; -1 for the start of the text. Where the clause is longer than
    `MOST_BEFORE` tokens, the place of a word in it: what is cut is no expression."""
    place = at - 1
    while place > max(-1, at - MOST_BEFORE):
        token = tokens[place]
        if token.kind in _BOUNDARIES or token.kind == "open":
            return place
        place = token.match - 1 if token.kind == "close" and token.match >= 0 else place - 1
    while 0 <= place < at - 1 and tokens[place].kind != "word":
        place += 1
    return max(place, -1)


def _can_begin(tokens: Sequence[Token], place: int, boundary: int) -> bool:
    before, opened = token_at(tokens, place - 1), token_at(tokens, place - 2)
    if place == boundary + 1:
        # A bracket may belong to a function, a factor or a sum: f(3 + 4 = 7), 2(3 = 3), 5 + (3 + 4 = 12.
        touched = before.kind == "open" and before.glued and opened.kind in ("word", "number", "bad", "function")
        touched |= before.text in ("(", ".") and opened.kind == "operator"
        touched |= before.text == "." and before.glued and opened.kind == "number" and tokens[place].glued  # 0.(6)
        return not touched and (before.kind == "operator" or before.kind in _BEFORE_ALL)
    word = before.text.lower()
    return before.kind == "word" and not tokens[place].glued and (len(word) > 1 or word in ("a", "i"))


def _is_untouched(tokens: Sequence[Token], place: int, node: Node) -> bool:
    """Whether no word before an expression makes it a part of something else: twice 5 + 3, the sum of 5 and 3."""
    before, other = token_at(tokens, place - 1), token_at(tokens, place - 2)
    if before.kind != "word":
        return True
    word, earlier = before.text.lower(), other.text.lower()
    if (
        word in words.CHANGERS
        or (word == "by" and earlier in _OPERATIONS)
        or (word == "and" and earlier in NUMBER_WORDS)
    ):
        return False
    if tokens[place].kind == "open" and node.grouped:
        # The average (3 + 4) is not 7.
        return False
    if word == "of" and place > 1:
        return other.kind == "word" and earlier not in words.CHANGERS_OF
    earlier_number = any(token_at(tokens, place - ahead).kind in ("number", "close", "percent") for ahead in (2, 3))
    if word == "and" and earlier_number:
        amount = any(each.above and not each.money for each in node.numbers())
        return not (node.is_number or amount or _begins_with_fraction(node))
    return True


def _begins_with_fraction(node: Node) -> bool:
    while len(node.parts) > 1 and node.parts[0].parts:
        node = node.parts[0]
    return node.kind == "/"
