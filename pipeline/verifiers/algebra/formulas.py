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
from pipeline.verifiers.arithmetic.tokens import EQUAL, Token, token_at, tokens_of
from pipeline.verifiers.arithmetic.words import CHANGERS, CONTINUERS

MOST_EQUATIONS = 60
"""In one text; later ones are not read."""
_MOST_TOKENS = 120
_SYMBOLS = frozenset({"number", "operator", "open", "close", "function", "bad", "factorial", "percent"})
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
        if not _equals(tokens, at):
            at += 1
            continue
        begin = at
        while begin > max(0, at - _MOST_TOKENS) and _is_symbol(tokens, begin - 1):
            if tokens[begin - 1].kind == "open" and tokens[begin - 1].match >= at:
                break
            begin -= 1
        chain = [(begin, at)]
        while _equals(tokens, at):
            end = begin = at + 1
            while end < begin + _MOST_TOKENS and _is_symbol(tokens, end):
                if tokens[end].kind == "close" and 0 <= tokens[end].match < begin:
                    break
                end += 1
            chain.append((begin, end))
            at = end
        yield chain


def _equals(tokens: Sequence[Token], at: int) -> bool:
    token = token_at(tokens, at)
    return token.kind == "relation" and token.text == EQUAL


def _is_symbol(tokens: Sequence[Token], at: int) -> bool:
    token, before, after = (token_at(tokens, place) for place in (at, at - 1, at + 1))
    if token.kind != "word":
        return token.kind in _SYMBOLS
    touches = token.glued and before.kind == "number"
    if len(token.text) == 1:
        # A letter that is also a word stands beside an operator or a relation, or touches a number.
        return token.text not in "aAI" or touches or not {before.kind, after.kind}.isdisjoint(("operator", "relation"))
    return len(token.text) == 2 and (touches or (token.glued and before.kind == "close"))


def _side(text: str, tokens: Sequence[Token], begin: int, end: int) -> Side | None:
    if not 0 < end - begin < _MOST_TOKENS:
        return None
    first, last = tokens[begin], tokens[end - 1]
    before, after = token_at(tokens, begin - 1), token_at(tokens, end)
    # A sign after a word may be a dash or an operator, "twice x" is not x, nor are "2 times y" and "5\\%" what they begin with.
    changed = first.kind == "operator" or first.glued or before.text.lower() in CHANGERS
    goes_on = after.glued or after.text.lower() in _CHANGERS_AFTER
    if (before.kind == "word" and changed) or last.kind == "operator" or (after.kind == "word" and goes_on):
        return None
    written = text[first.start : last.end]
    normal = normal_form(written)
    read = expression(normal) if normal and exceeded_limit(normal) is None else None
    if read is None or not read.canonical:
        return None
    return Side(" ".join(written.split()), read, last.places if begin + 1 == end else 0)
