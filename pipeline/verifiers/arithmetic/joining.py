"""Reads words that stand for operators and relations, leaves out what only lays formulas out, and matches brackets. Pure."""

from fractions import Fraction

from pipeline.verifiers.arithmetic.tokens import ENDS, EQUAL, OF, Token, TokenKind, cut
from pipeline.verifiers.arithmetic.words import DETERMINERS, FRACTIONS

_WORD_OPERATORS = {"plus": "+", "minus": "-", "times": "*"}
_WORDS_BY = {"divided": "/", "multiplied": "*"}
_READ = frozenset({"x", "percent", "per-cent", "of", "equals", "is", *_WORD_OPERATORS, *_WORDS_BY, *FRACTIONS})
"""Words that may be part of an expression."""
_WORD = TokenKind.WORD


def tokens_of(text: str) -> list[Token]:
    """The tokens of a text that `plain` has prepared, with words for operators read as such, and brackets matched."""
    return _matched(_joined(cut(text)))


def _joined(tokens: list[Token]) -> list[Token]:
    """The tokens with words for operators and relations read, comments in brackets and what stands at relations left out."""
    found: list[Token] = []
    at = 0
    while at < len(tokens):
        token = tokens[at]
        if token.kind is _WORD:
            if token.text.lower() not in _READ:
                found.append(token)
                at += 1
                continue
            read, used = _word(tokens, at, found)
            if read is not None:
                if read.kind is TokenKind.RELATION:
                    _drop_before(found)
                found.append(read)
            at += used
            continue
        if token.kind is TokenKind.RELATION:
            _drop_before(found)
        elif token.kind in (TokenKind.DELIMITER, TokenKind.LINE) and found and _goes_on(found):
            at += 1
            continue
        elif token.kind is TokenKind.OPERATOR and _joins(tokens, at, found):
            found.pop()
        elif token.kind is TokenKind.OPEN and (end := _comment(tokens, at, found)):
            at = end
            continue
        found.append(token)
        at += 1
    return found


def _drop_before(found: list[Token]) -> None:
    """A chain goes on over the end of a line or a formula if the next one begins with a relation."""
    while found and found[-1].kind in (TokenKind.DELIMITER, TokenKind.LINE):
        found.pop()


def _goes_on(found: list[Token]) -> bool:
    """Whether an expression goes on over the end of a line or a formula: after a relation, or an operator that is no dash."""
    if found[-1].kind is TokenKind.OPERATOR:
        return len(found) > 1 and found[-2].kind in (*ENDS, TokenKind.WORD)
    return found[-1].kind is TokenKind.RELATION


def _joins(tokens: list[Token], at: int, found: list[Token]) -> bool:
    """Whether an operator between two formulas makes them one: $3$ * $5$."""
    if not found or found[-1].kind is not TokenKind.DELIMITER:
        return False
    return tokens[at].text in "*/" or any(each.kind is TokenKind.DELIMITER for each in tokens[at + 1 : at + 2])


def _word(tokens: list[Token], at: int, found: list[Token]) -> tuple[Token | None, int]:
    """What a word is read as, and how many tokens that takes."""
    token = tokens[at]
    word = token.text.lower()
    following = tokens[at + 1] if at + 1 < len(tokens) else None
    before = found[-1] if found else None
    if word == "x":
        return _times(token, before, following), 1
    if (
        word in FRACTIONS
        and following is not None
        and following.text.lower() == "of"
        and _operand_after(tokens, at + 2)
    ):
        return _part(token, FRACTIONS[word], found), 1
    if word in ("percent", "per-cent") and before is not None and before.kind is TokenKind.NUMBER:
        return Token(TokenKind.PERCENT, "%", token.start, token.end), 1
    if word == "of" and before is not None and _is_share(found) and (skipped := _operand_after(tokens, at + 1)):
        return Token(TokenKind.OPERATOR, OF, token.start, token.end), skipped - at
    if word == "equals":
        return Token(TokenKind.RELATION, EQUAL, token.start, token.end), 1
    if word == "is" and [each.text.lower() for each in tokens[at + 1 : at + 3]] == ["equal", "to"]:
        return Token(TokenKind.RELATION, EQUAL, token.start, tokens[at + 2].end), 3
    if before is not None and before.kind in (*ENDS, TokenKind.WORD) and following is not None:
        if word in _WORD_OPERATORS and following.kind is TokenKind.NUMBER and (before.kind in ENDS or word != "times"):
            return Token(TokenKind.OPERATOR, _WORD_OPERATORS[word], token.start, token.end), 1
        if (
            word in _WORDS_BY
            and following.text.lower() == "by"
            and at + 2 < len(tokens)
            and tokens[at + 2].kind is TokenKind.NUMBER
        ):
            return Token(TokenKind.OPERATOR, _WORDS_BY[word], token.start, following.end), 2
    return token, 1


def _times(token: Token, before: Token | None, following: Token | None) -> Token:
    """An x is a multiplication sign between numbers, with a blank on both sides or on none; else it is an unknown."""
    if before is not None and following is not None:
        after = following.kind in (TokenKind.NUMBER, TokenKind.FUNCTION) or (
            following.kind is TokenKind.OPEN and not following.glued
        )
        spaced = not token.glued and (not following.glued or following.money)
        dense = token.glued and following.glued and before.kind in ENDS
        near = (
            token.glued
            and before.kind is TokenKind.NUMBER
            and not following.glued
            and following.kind is TokenKind.NUMBER
        )
        if after and before.kind in (*ENDS, TokenKind.WORD) and (spaced or dense or near):
            return Token(TokenKind.OPERATOR, "*", token.start, token.end, token.glued)
    return token


def _part(token: Token, value: Fraction, found: list[Token]) -> Token:
    """A fraction in words, such as half or third, with the count before it: 3 quarters, a third."""
    while found and found[-1].kind is TokenKind.WORD and found[-1].text.lower() in ("a", "one", "an"):
        token = Token(TokenKind.WORD, token.text, found.pop().start, token.end)
    if found and found[-1].kind is TokenKind.NUMBER and found[-1].places == 0 and not found[-1].money:
        count = found.pop()
        return Token(TokenKind.NUMBER, token.text, count.start, token.end, count.glued, count.value * value)
    return Token(TokenKind.NUMBER, token.text, token.start, token.end, False, value)


def _is_share(found: list[Token]) -> bool:
    """Whether the last tokens are a percentage or a fraction, so that "of" means times."""
    last = found[-1]
    if last.kind is TokenKind.PERCENT or (last.kind is TokenKind.CLOSE and last.text == "}"):
        return True
    if last.kind is not TokenKind.NUMBER:
        return False
    return (last.value.denominator != 1 and not last.places) or [each.text for each in found[-2:-1]] == ["/"]


def _operand_after(tokens: list[Token], at: int) -> int:
    """The place of the number at this place, or after articles there; 0 if there is none."""
    end = min(len(tokens), at + 3)
    while at < end and tokens[at].kind is TokenKind.WORD and tokens[at].text.lower() in DETERMINERS:
        at += 1
    return at if at < len(tokens) and tokens[at].kind in (TokenKind.NUMBER, TokenKind.OPEN, TokenKind.FUNCTION) else 0


def _comment(tokens: list[Token], at: int, found: list[Token]) -> int:
    """The place after a remark in brackets, such as "(initially infected)"; 0 if it is something else."""
    if tokens[at].glued or tokens[at].text == "{" or not found or found[-1].kind not in (*ENDS, TokenKind.WORD):
        return 0
    end = at + 1
    while (
        end < len(tokens) and end - at <= 8 and tokens[end].kind is TokenKind.WORD and tokens[end].text.lower() != "mod"
    ):
        end += 1
    closed = end < len(tokens) and tokens[end].kind is TokenKind.CLOSE
    return end + 1 if closed and end > at + 1 and any(len(each.text) > 1 for each in tokens[at + 1 : end]) else 0


_PAIRS = {")": "(", "]": "[", "}": "{"}


def _matched(tokens: list[Token]) -> list[Token]:
    """The tokens with matched brackets. A bracket without another one ends an expression."""
    opened: list[int] = []
    for at, token in enumerate(tokens):
        if token.kind is _WORD:
            continue
        if token.kind is TokenKind.OPEN:
            opened.append(at)
        elif token.kind is TokenKind.CLOSE and opened and tokens[opened[-1]].text == _PAIRS[token.text]:
            token.match = opened.pop()
            tokens[token.match].match = at
        elif token.kind in (TokenKind.BREAK, TokenKind.LINE) and token.text in (".", ";", "\n"):
            opened.clear()
    for token in tokens:
        if token.kind is TokenKind.LINE or (token.kind in (TokenKind.OPEN, TokenKind.CLOSE) and token.match < 0):
            token.kind = TokenKind.BREAK
    return tokens
