"""Finds the equations in tokens: for each sign of equality the expressions on both sides, where both can be read as a whole.

An expression is never cut out of a larger one. On the left it begins after a word or punctuation, and not after an operator; on
the right it ends before them. Pure; the work is bounded by the budget.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from pipeline.verifiers.arithmetic.expressions import Budget, Reader, Reading
from pipeline.verifiers.arithmetic.values import Node, UnreadableError
from pipeline.verifiers.arithmetic.tokens import ABOUT, OTHER, Token
from pipeline.verifiers.arithmetic.words import CHANGERS, CHANGERS_OF, CONTINUERS, FOLLOWERS, HEDGES, LABELS, words_of

MOST_BEFORE = 80
"""Tokens of a left side."""
_BOUNDARIES = frozenset({"break", "delimiter", "relation"})
_OPENING_DELIMITERS = frozenset({"\\(", "\\["})
_NEAR = 3
_OPERATIONS = words_of("divided multiplied divide multiply dividing multiplying times increased decreased reduced")


@dataclass(frozen=True, slots=True)
class Equation:
    """Two sides that are said to be equal, and where they stand in the text: `middle` to `after` is the relation.

    `chained`: the left side is the right side of the equation before. `displayed`: it begins a formula. `begins`: nothing
    stands before it in its clause. `about`: they are said to be about equal."""

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
    signed: Node | None
    """The left side with a sign, where a dash and a blank stand before it as before an item of a list."""


def equations_of(tokens: Sequence[Token], budget: Budget) -> list[Equation]:
    """The equations that can be read, in their order."""
    found: list[Equation] = []
    before: tuple[int, Reading] | None = None
    """The place of the relation after the last right side that was read up to there, and that side."""
    first = 0
    for at, token in enumerate(tokens):
        if token.kind != "relation":
            continue
        if budget.spent:
            break
        right, hedged = _right(tokens, at, budget)
        if token.text != OTHER and right is not None:
            chained = before is not None and before[0] == at
            left = (first, before[1]) if chained and before is not None else _left(tokens, at, budget)
            if left is not None:
                start, reading = left
                previous = tokens[start - 1] if start else None
                displayed = previous is not None and previous.text in _OPENING_DELIMITERS
                found.append(
                    Equation(
                        left=reading,
                        right=right,
                        start=tokens[start].start,
                        middle=token.start,
                        after=token.end,
                        end=tokens[right.end - 1].end,
                        about=token.text == ABOUT or hedged,
                        chained=chained,
                        begins=previous is None or previous.kind in _BOUNDARIES,
                        displayed=displayed,
                        signed=_signed(tokens, start, at, budget),
                    )
                )
        ends_at = right.end if right is not None else -1
        before = (ends_at, right) if right is not None and token.text != OTHER else None
        first = at + 1 if not hedged else at + 2
    return found


def _right(tokens: Sequence[Token], at: int, budget: Budget) -> tuple[Reading | None, bool]:
    """The side after a relation, and whether a word before it says that it is approximate."""
    begin = at + 1
    hedged = begin < len(tokens) and tokens[begin].kind == "word" and tokens[begin].text.lower() in HEDGES
    begin += hedged
    try:
        reading = Reader(tokens, begin, len(tokens), budget, strict=False).read()
    except UnreadableError:
        return None, hedged
    return (reading if _ends(tokens, reading.end) else None), hedged


def _ends(tokens: Sequence[Token], at: int) -> bool:
    """Whether an expression can end before this place."""
    if at >= len(tokens):
        return True
    token = tokens[at]
    following = tokens[at + 1] if at + 1 < len(tokens) else None
    match token.kind:
        case "relation" | "break" | "delimiter" | "close":
            return True
        case "open":
            return not token.glued
        case "operator":
            return (
                token.text == "-"
                and following is not None
                and following.kind == "word"
                and len(following.text) > 1
            )
        case "word":
            return _ends_before_word(tokens, at)
    return False


def _ends_before_word(tokens: Sequence[Token], at: int) -> bool:
    """Whether no word after a number changes it: not 3 and a half, 3 times 5, 3 remainder 2, 3 hours and 20 minutes."""
    for place in range(at, min(at + _NEAR, len(tokens))):
        if tokens[place].kind != "word":
            return True
        word = tokens[place].text.lower()
        following = tokens[place + 1] if place + 1 < len(tokens) else None
        if word == "and":
            return not _goes_on_after_and(tokens, place)
        if place == at and len(word) == 1 and (tokens[place].glued or word not in "a"):
            return False
        if word in FOLLOWERS:
            return False
        if (
            word in CONTINUERS
            and following is not None
            and following.kind in ("number", "open", "function")
        ):
            return False
    return True


def _goes_on_after_and(tokens: Sequence[Token], at: int) -> bool:
    following = [each.text.lower() for each in tokens[at + 1 : at + 4]]
    if not following:
        return False
    if following[0] in ("a", "one", "half", "quarter", "two", "three", "five", "seven"):
        return True
    return tokens[at + 1].kind in ("number", "function") and not any(
        token.kind == "relation" for token in tokens[at + 1 : at + 8]
    )


def _left(tokens: Sequence[Token], at: int, budget: Budget) -> tuple[int, Reading] | None:
    """The side before a relation and where it begins."""
    boundary = _boundary(tokens, at)
    place = boundary + 1
    while place < at:
        token = tokens[place]
        opens = token.kind in ("number", "function", "open")
        signed = token.text == "-" and place == boundary + 1 and _begins(tokens, boundary)
        if signed and not tokens[place + 1].glued:
            place += 1
            boundary += 1
            continue
        if (opens or signed) and _can_begin(tokens, place, boundary):
            try:
                reading = Reader(tokens, place, at, budget, strict=True).read()
            except UnreadableError:
                if budget.spent:
                    return None
            else:
                if reading.end == at:
                    return (place, reading) if _is_untouched(tokens, place, reading.node) else None
        place = token.match + 1 if token.kind == "open" and token.match > place else place + 1
    return None


def _signed(tokens: Sequence[Token], start: int, at: int, budget: Budget) -> Node | None:
    if not start or tokens[start - 1].kind != "operator":
        return None
    try:
        return Reader(tokens, start - 1, at, budget, strict=True).read().node
    except UnreadableError:
        return None


def _boundary(tokens: Sequence[Token], at: int) -> int:
    """The place of what ends the clause before a relation; -1 for the start of the text. Where the clause is longer than
    `MOST_BEFORE` tokens, the place of a word in it: what is cut is no expression."""
    place = at - 1
    least = max(-1, at - MOST_BEFORE)
    while place > least:
        token = tokens[place]
        if token.kind in _BOUNDARIES or (token.kind == "open"):
            return place
        place = token.match - 1 if token.kind == "close" and token.match >= 0 else place - 1
    if place < 0:
        return -1
    while place < at - 1 and tokens[place].kind != "word":
        place += 1
    return place


def _begins(tokens: Sequence[Token], boundary: int) -> bool:
    return boundary < 0 or tokens[boundary].kind in _BOUNDARIES or tokens[boundary].kind == "open"


def _can_begin(tokens: Sequence[Token], place: int, boundary: int) -> bool:
    if place == boundary + 1:
        item = boundary >= 0 and tokens[boundary].kind == "operator"
        return (item or _begins(tokens, boundary)) and not _touches(tokens, place)
    before = tokens[place - 1]
    return (
        before.kind == "word"
        and not tokens[place].glued
        and len(before.text) > (before.text.lower() not in ("a", "i"))
    )


def _touches(tokens: Sequence[Token], place: int) -> bool:
    """Whether a bracket before an expression belongs to a function or a factor: f(3 + 4 = 7), 2(3 = 3)."""
    if not place or tokens[place - 1].kind != "open":
        return False
    opener = tokens[place - 1]
    return (
        opener.glued
        and place > 1
        and tokens[place - 2].kind in ("word", "number", "bad", "function")
    )


def _is_untouched(tokens: Sequence[Token], place: int, node: Node) -> bool:
    """Whether no word before an expression makes it a part of something else: twice 5 + 3, the sum of 5 and 3."""
    words = [tokens[each] for each in range(max(0, place - _NEAR), place)]
    if not words or words[-1].kind != "word":
        return True
    last = words[-1].text.lower()
    if last in CHANGERS or (last == "by" and len(words) > 1 and words[-2].text.lower() in _OPERATIONS):
        return False
    if tokens[place].kind == "open" and node.grouped:
        # The average (3 + 4) is not 7.
        return False
    if last == "of" and len(words) > 1:
        other = words[-2]
        return other.kind == "word" and other.text.lower() not in CHANGERS_OF
    if last in LABELS and not node.is_number:
        following = tokens[place + 1] if place + 1 < len(tokens) else None
        return following is None or following.text not in ("-", "/")
    if last == "and" and any(
        each.kind in ("number", "close", "percent") for each in words[:-1]
    ):
        return not (
            node.is_number
            or any(each.above and not each.money for each in node.numbers())
            or _begins_with_fraction(node)
        )
    return True


def _begins_with_fraction(node: Node) -> bool:
    while len(node.parts) > 1 and node.parts[0].parts:
        node = node.parts[0]
    return node.kind == "/"
