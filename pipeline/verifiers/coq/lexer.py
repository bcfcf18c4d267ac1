"""Cuts a text of Coq into sentences, so that Coq gets one at a time, and ends it where it is ended here. Pure.

A sentence ends with a period before white space. A period that might end one in another way is not read: `auto.-intros.` would
be two sentences for Coq. Comments are left out, and a sentence is one line.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from pipeline.verifiers.reading import NotRead

MOST_SENTENCES = 2_000
MOST_IN_SENTENCE = 20_000
"""Characters of a sentence."""
_BLANK = " \t\r\n"
_FOCUS = re.compile(r"[{}]|-+|\++|\*+|(?:\d+|\[[A-Za-z_]\w*\])[ \t]*:[ \t]*\{")
"""What stands alone and has no period: braces, bullets, and a brace for a goal that is named."""
_WORD = re.compile(r"[^\W\d][\w']*(?:\.[^\W\d][\w']*)*")
_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_STRING = re.compile(r'"(?:[^"\r\n]|"")*"')
_MARKS = frozenset("∀∃→↔∧∨¬≠≤≥×∈∉⊆∪∩∘≡≈∅⊢⊥⊤ℕℤℚℝαβγδεζηθλμξπρστφχψωΓΔΘΛΞΠΣΦΨΩ")
"""What may stand in a sentence beside ASCII. Coq and Unicode divide others into letters, digits and signs in their own ways,
and some look like Latin letters."""
_COMMENT_PART = re.compile(r'\(\*|\*\)|"(?:[^"]|"")*"')


@dataclass(frozen=True, slots=True)
class Sentence:
    """`text`: as Coq gets it. `tokens`: words with their dots, numbers, strings in quotes, and single other characters."""

    text: str
    tokens: tuple[str, ...]

    @property
    def words(self) -> frozenset[str]:
        """The words without their dots."""
        return frozenset(part for token in self.tokens if _WORD.fullmatch(token) for part in token.split("."))


def sentences(text: str) -> list[Sentence]:
    """The sentences of a text. Raises NotRead where its end or theirs is not sure."""
    found = list(_sentences(text))
    if len(found) > MOST_SENTENCES:
        raise NotRead(f"more than {MOST_SENTENCES:,} sentences")
    return found


def _sentences(text: str) -> Iterator[Sentence]:
    at = _after_blanks(text, 0)
    while at < len(text):
        if alone := _FOCUS.match(text, at):
            yield Sentence(text=alone[0], tokens=tuple(alone[0].replace(" ", "")))
            at = alone.end()
        else:
            tokens, at = _tokens(text, at)
            yield tokens
        at = _after_blanks(text, at)


def _tokens(text: str, at: int) -> tuple[Sentence, int]:
    """The sentence that begins at a place, and where the next one may."""
    pieces: list[str] = []
    tokens: list[str] = []
    begin = at
    while at < len(text):
        if at - begin > MOST_IN_SENTENCE:
            raise NotRead(f"a sentence of more than {MOST_IN_SENTENCE:,} characters")
        after = _after_blanks(text, at)
        if after > at:
            pieces.append(" ")
            at = after
            continue
        if text[at] == ".":
            if at + 1 == len(text) or text[at + 1] in _BLANK:
                return Sentence(text="".join(pieces).strip() + ".", tokens=tuple(tokens)), at + 1
            if not text.startswith(".(", at) or text.startswith(".(*", at):
                raise NotRead("a period that may or may not end a sentence")
        found = _WORD.match(text, at) or _NUMBER.match(text, at)
        if text[at] == '"' and not (found := _STRING.match(text, at)):
            raise NotRead("a string that does not end in its line")
        token = found[0] if found else _character(text[at])
        if not all(map(_character, token)):
            raise NotRead("a character that is not read")
        pieces.append(token)
        tokens.append(token)
        at += len(token)
        if token[0].isdecimal() and at < len(text) and (text[at] == "'" or text[at].isalnum() or text[at] == "_"):
            raise NotRead("a number that touches a word, which Coq may cut in two")
    raise NotRead("it ends in the middle of a sentence")


def _character(character: str) -> str:
    """A character that may stand in a sentence. Raises NotRead for others, such as white space that Coq may not take for it."""
    if not (" " <= character <= "~" or character in _MARKS):
        raise NotRead(f"the character {character!a}")
    return character


def _after_blanks(text: str, at: int) -> int:
    """Where white space and comments end that begin at a place."""
    while at < len(text):
        if text[at] in _BLANK:
            at += 1
        elif text.startswith("(*", at):
            at = _after_comment(text, at)
        else:
            break
    return at


def _after_comment(text: str, at: int) -> int:
    """Comments nest, and a string in one ends no comment."""
    depth = 0
    for part in _COMMENT_PART.finditer(text, at):
        depth += {"(*": 1, "*)": -1}.get(part[0], 0)
        if depth == 0:
            return part.end()
    raise NotRead("a comment that does not end")
