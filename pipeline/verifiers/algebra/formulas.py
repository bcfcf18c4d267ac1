r"""Finds equations with unknowns in a text, and reads their sides with the exact algebra of the answer checker. Pure.

A side is a run of symbols between words, punctuation and relations. It is read as a whole or not at all, within the limits of
the checker: nothing is evaluated, powers and polynomials have a largest size.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from pipeline.graders.math.expression import Expression, expression
from pipeline.graders.math.limits import exceeded_limit
from pipeline.graders.math.normal import normal_form
from pipeline.verifiers.arithmetic.tokens import EQUAL, Kind, Token, tokens_of
from pipeline.verifiers.arithmetic.words import CHANGERS, CONTINUERS

MOST_EQUATIONS = 60
"""In one text; later ones are not read."""
_MOST_TOKENS = 120
_SYMBOLS = frozenset(
    {
        "number",
        "operator",
        "open",
        "close",
        "function",
        "bad",
        "factorial",
        "percent",
    }
)
_ARTICLES = frozenset({"a", "A", "I"})
_PAIR = 2
_CHANGERS_AFTER = (CONTINUERS | {"mod", "remainder"}) - {"or", "to", "by"}


@dataclass(frozen=True, slots=True)
class Side:
    """A side of an equation, as it is written and as it is read. `places`: digits after the point of a plain decimal."""

    text: str
    read: Expression
    places: int


@dataclass(frozen=True, slots=True)
class Formula:
    """Two neighbours in a chain of equal sides, and where they stand in the text. `length`: how many sides the chain has."""

    left: Side
    right: Side
    start: int
    end: int
    length: int

    @property
    def variables(self) -> frozenset[str]:
        return self.left.read.variables | self.right.read.variables

    def __str__(self) -> str:
        return f"{self.left.text} = {self.right.text}"


def formulas_of(text: str) -> list[Formula]:
    """The equations of a text that `plain` has prepared, whose sides can both be read, in their order."""
    tokens = tokens_of(text)
    found: list[Formula] = []
    tried = 0
    for chain in _chains(tokens):
        tried += len(chain) - 1
        if tried > MOST_EQUATIONS:
            break
        sides = [_side(text, tokens, begin, end) for begin, end in chain]
        for at, (left, right) in enumerate(pairwise(sides)):
            if left is not None and right is not None:
                start, end = tokens[chain[at][0]].start, tokens[chain[at + 1][1] - 1].end
                found.append(Formula(left, right, start, end, len(chain)))
    return found


def _chains(tokens: Sequence[Token]) -> Iterator[list[tuple[int, int]]]:
    """For each chain of equal sides where each of them begins and ends."""
    at = 0
    while at < len(tokens):
        if tokens[at].kind != "relation" or tokens[at].text != EQUAL:
            at += 1
            continue
        chain = [(_back(tokens, at), at)]
        while at < len(tokens) and tokens[at].kind == "relation" and tokens[at].text == EQUAL:
            end = _ahead(tokens, at + 1)
            chain.append((at + 1, end))
            at = end
        yield chain


def _back(tokens: Sequence[Token], at: int) -> int:
    place, least = at, max(0, at - _MOST_TOKENS)
    while place > least and _is_symbol(tokens, place - 1):
        opener = tokens[place - 1]
        if opener.kind == "open" and opener.match >= at:
            break
        place -= 1
    return place


def _ahead(tokens: Sequence[Token], at: int) -> int:
    place, most = at, min(len(tokens), at + _MOST_TOKENS)
    while place < most and _is_symbol(tokens, place):
        closer = tokens[place]
        if closer.kind == "close" and 0 <= closer.match < at:
            break
        place += 1
    return place


def _is_symbol(tokens: Sequence[Token], at: int) -> bool:
    token = tokens[at]
    if token.kind in _SYMBOLS:
        return True
    if token.kind != "word":
        return False
    if len(token.text) == 1:
        return token.text not in _ARTICLES or _has_neighbour(tokens, at)
    before = tokens[at - 1] if at else None
    return (
        len(token.text) == _PAIR
        and token.glued
        and before is not None
        and before.kind in ("number", "close")
    )


def _has_neighbour(tokens: Sequence[Token], at: int) -> bool:
    """Whether a letter that is also a word stands beside an operator or a relation, or touches a number."""
    around = [tokens[place] for place in (at - 1, at + 1) if 0 <= place < len(tokens)]
    glued = tokens[at].glued and at > 0 and tokens[at - 1].kind == "number"
    return glued or any(each.kind in ("operator", "relation") for each in around)


def _side(text: str, tokens: Sequence[Token], begin: int, end: int) -> Side | None:
    if not 0 < end - begin < _MOST_TOKENS:
        return None
    first, last = tokens[begin], tokens[end - 1]
    before = tokens[begin - 1] if begin else None
    after = tokens[end] if end < len(tokens) else None
    if before is not None and before.kind == "word" and _is_changed(first, before):
        return None
    if last.kind == "operator" or (after is not None and _changes(after)):
        return None
    written = text[first.start : last.end]
    normal = normal_form(written)
    if not normal or exceeded_limit(normal) is not None:
        return None
    read = expression(normal)
    if read is None or not read.canonical:
        return None
    return Side(" ".join(written.split()), read, last.places if begin + 1 == end else 0)


def _is_changed(first: Token, word: Token) -> bool:
    """Whether a side is only part of something: a sign after a word may be a dash or an operator, "twice x" is not x."""
    return first.kind == "operator" or first.glued or word.text.lower() in CHANGERS


def _changes(after: Token) -> bool:
    """Whether the token after a side may change it: x = 2 times y, x = 5\\%."""
    return after.kind == "word" and (after.glued or after.text.lower() in _CHANGERS_AFTER)
