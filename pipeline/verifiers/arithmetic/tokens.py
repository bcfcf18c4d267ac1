r"""Cuts the text of a step into numbers, operators, relations, words and what separates them. Pure, linear time.

Reads plain text and LaTeX. What has no plain meaning here becomes a BAD token, so that no part of a formula is taken for the
whole of it: the 2 of x^2, the 3 of 2:3, the 5 of 1,5.
"""

import re
from dataclasses import dataclass
from enum import Enum, auto
from fractions import Fraction

from pipeline.verifiers.arithmetic.words import DETERMINERS, FRACTIONS

MOST_DIGITS = 60
"""A longer number is not read."""


class Kind(Enum):
    NUMBER = auto()
    OPERATOR = auto()
    OPEN = auto()
    CLOSE = auto()
    RELATION = auto()
    WORD = auto()
    PERCENT = auto()
    FACTORIAL = auto()
    FUNCTION = auto()
    BREAK = auto()
    """What ends an expression: punctuation, implication arrows."""
    DELIMITER = auto()
    r"""\( and its like. Ends an expression, unless it stands beside a relation."""
    LINE = auto()
    BAD = auto()


@dataclass(slots=True)
class Token:
    """A piece of text. `text` of operators and relations is their plain form. `glued`: no blank stands before it.

    `value`, `places` (digits after the point) and `money` are for numbers. `match`: the place of the other bracket, or -1."""

    kind: Kind
    text: str
    start: int
    end: int
    glued: bool = False
    value: Fraction = Fraction(0)
    places: int = 0
    money: bool = False
    match: int = -1


_FLAT = re.compile(
    r"\\(?:text(?:bf|it|rm|normal|sf|tt)?|mathrm|mathbf|mathit|mathsf|mbox|hbox|operatorname\*?|emph|bm|f?boxed)\s*\{([^{}]*)\}"
)
_LAYOUT = re.compile(r"\\(?:left|right|[bB]igg?[lr]?|displaystyle|textstyle|boxed|underline)(?![A-Za-z])")
_SHORT_FRACTION = re.compile(r"\\[dtc]?frac\s*(?:(\d)|\{([^{}]*)\})\s*(?:(\d)|(?=\{))")
_THIN = re.compile(r"(?<=\d)(?:\{,\}|\\,|,\\!|\\ )(?=\d{3}(?!\d))")
_DEGREES = re.compile(r"\^\s*\{?\s*\\circ\s*\}?|°")
_VULGAR = {"½": "1/2", "¼": "1/4", "¾": "3/4", "⅓": "1/3", "⅔": "2/3"}
_SYMBOLS = str.maketrans(
    {**{mark: f" {plain}" for mark, plain in _VULGAR.items()}, "²": "^2", "³": "^3", "\u00a0": " ", "’": "'", "％": "%"}
)

_TOKEN = re.compile(
    r"""
    (?:[^\S\n]+|\\[;:!,\ ]|&|~(?!=))*
    (?:(?P<line>\n\s*|\\\\\s*)
  | (?P<number>(?:\$\ ?)?(?:\d+(?:,\d+)*(?:\.\d+)*|\.\d+))
  | (?P<word>[^\W\d_]{2,}(?:'[^\W\d_]+|-[^\W\d_]{2,})*|[^\W\d_](?:'[^\W\d_]+)?)
  | (?P<command>\\[A-Za-z]+)
  | (?P<delimiter>\\[()\[\]]|\${1,2})
  | (?P<break>[-=]{1,3}>|[→⇒⟹∴;:"“”—]|,|\.(?!\d|\.))
  | (?P<relation>~=|!=|:=|<=|>=|={1,3}|[<>≈≅≃≤≥≠≡∼])
  | (?P<operator>\*\*|[-+*/^×·⋅∙∗÷∕⁄−–])
  | (?P<open>[(\[{])
  | (?P<close>[)\]}])
  | (?P<percent>\\?%)
  | (?P<factorial>!)
  | (?P<bad>\\.|\.+|.)
  | \Z)
    """,
    re.VERBOSE | re.DOTALL,
)
_OPERATORS = {
    "×": "*",
    "·": "*",
    "⋅": "*",
    "∙": "*",
    "∗": "*",
    "÷": "/",
    "∕": "/",
    "⁄": "/",
    "−": "-",
    "–": "-",
    "**": "^",
}
_COMMANDS = {"\\times": "*", "\\cdot": "*", "\\ast": "*", "\\div": "/"}
_FUNCTIONS = {"\\frac": "frac", "\\dfrac": "frac", "\\tfrac": "frac", "\\cfrac": "frac", "\\sqrt": "sqrt"}
_APPROXIMATE = frozenset({"≈", "≅", "≃", "∼", "~=", "\\approx", "\\simeq", "\\doteq"})
_OTHER_RELATIONS = frozenset(
    {
        "\\le",
        "\\leq",
        "\\ge",
        "\\geq",
        "\\ne",
        "\\neq",
        "\\equiv",
        "\\lt",
        "\\gt",
        "\\propto",
        "\\sim",
        "\\cong",
        "\\in",
    }
)
_BREAKS = frozenset(
    {
        "\\quad",
        "\\qquad",
        "\\implies",
        "\\Rightarrow",
        "\\Longrightarrow",
        "\\rightarrow",
        "\\therefore",
        "\\because",
        "\\to",
        "\\iff",
    }
)
_PLAIN_NUMBER = re.compile(r"(?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]*)(?:\.[0-9]+)?")
_MOST_WORDS_KEPT = 12
_PROSE = re.compile(r" (?:[A-Za-z]{2,}[,.;]? ){4,}(?=(?:[A-Za-z]{2,} ){4})")
_WORD, _NUMBER = Kind.WORD, Kind.NUMBER
_KINDS = {
    "open": Kind.OPEN, "close": Kind.CLOSE, "factorial": Kind.FACTORIAL, "delimiter": Kind.DELIMITER, "break": Kind.BREAK,
    "line": Kind.LINE, "bad": Kind.BAD,
}  # fmt: skip
OF = "of"
"""The sign of multiplication in 20% of 50."""
EQUAL, ABOUT, OTHER = "=", "≈", "<"
"""The plain forms of relations. OTHER is any that is not judged."""
_ENDS = frozenset({Kind.NUMBER, Kind.CLOSE, Kind.PERCENT, Kind.FACTORIAL})
_WORD_OPERATORS = {"plus": "+", "minus": "-", "times": "*"}
_WORDS_BY = {"divided": "/", "multiplied": "*"}
_READ = frozenset({"x", "percent", "per-cent", "of", "equals", "is", *_WORD_OPERATORS, *_WORDS_BY, *FRACTIONS})
"""Words that may be part of an expression."""
_ORDINALS = frozenset({"st", "nd", "rd", "th"})


def plain(text: str) -> str:
    r"""The text without LaTeX that only lays it out: \text{}, \left, \boxed. Spans of tokens are of this text."""
    if "\\" in text or "{,}" in text:
        text = text.replace("\\$", "$").replace("\\%", "%")
        text = _THIN.sub("", text).replace("{,}", ",")
        text = _FLAT.sub(r" \1 ", text)
        text = _LAYOUT.sub(" ", text)
        text = _SHORT_FRACTION.sub(_fraction, text)
    if not text.isascii() or "\\circ" in text:
        text = _DEGREES.sub(" degrees ", text).translate(_SYMBOLS)
    return text


def _fraction(match: re.Match[str]) -> str:
    top, group, bottom = match.groups()
    return rf"\frac{{{top if group is None else group}}}" + ("" if bottom is None else f"{{{bottom}}}")


def tokens_of(text: str) -> list[Token]:
    """The tokens of a text that `plain` has prepared, with words for operators read as such, and brackets matched."""
    return _matched(_joined(_cut(text)))


def _cut(text: str) -> list[Token]:
    found: list[Token] = []
    words = at = 0
    before: Token | None = None
    while (match := _TOKEN.match(text, at)) is not None and (group := match.lastgroup) is not None:
        start = match.start(group)
        glued = start == at and at > 0
        if group == "word" and (not glued or before is None or before.kind is not _NUMBER):
            before = Token(_WORD, match.group(group), start, match.end(), glued)
            words += 1
        else:
            before = _token(group, match, text, glued=glued, before=before)
            words = 0
            if before.kind is Kind.BAD and before.text == "!=":
                # 3!=6 is a factorial where the number touches it.
                found.append(Token(Kind.FACTORIAL, "!", before.start, before.start + 1, True))
                before = Token(Kind.RELATION, EQUAL, before.start + 1, before.end, True)
        found.append(before)
        at = match.end()
        if words > _MOST_WORDS_KEPT and (prose := _PROSE.match(text, at)) is not None:
            # Words far from any number. A few stay on both sides.
            before = Token(Kind.BREAK, "", at, prose.end(), False)
            found.append(before)
            at, words = prose.end(), 0
    return found


def _token(group: str, match: re.Match[str], text: str, *, glued: bool, before: Token | None) -> Token:
    start, end = match.span(group)
    said = match.group(group)
    following = text[end : end + 2]
    match group:
        case "number":
            return _number(said, start, end, glued, before, following)
        case "word":
            return Token(Kind.BAD if said in _ORDINALS else Kind.WORD, said, start, end, glued)
        case "command":
            return _command(said, start, end, glued)
        case "relation":
            if said == "!=" and glued and before is not None and before.kind is Kind.NUMBER:
                return Token(Kind.BAD, said, start, end, glued)
            plain_form = ABOUT if said in _APPROXIMATE else EQUAL if set(said) == {"="} else OTHER
            return Token(Kind.RELATION, plain_form, start, end, glued)
        case "operator":
            return _operator(said, start, end, glued, before, following)
        case "percent":
            # 17 % 5 and 17%5 are remainders.
            return Token(Kind.BAD if _is_remainder(following, glued) else Kind.PERCENT, "%", start, end, glued)
    return Token(_KINDS[group], "\n" if group == "line" else said, start, end, glued)


def _number(said: str, start: int, end: int, glued: bool, before: Token | None, following: str) -> Token:
    money = said[0] == "$"
    digits = said.lstrip("$ ")
    touched = glued and before is not None and before.kind in (Kind.WORD, Kind.BAD, Kind.NUMBER) and not money
    proportion = len(following) == 2 and following[0] == ":" and following[1].isdigit()
    ratio = before is not None and before.text == ":" and glued and before.glued
    if touched and before is not None and before.kind is Kind.WORD and before.text in ("x", "X") and before.glued:
        touched = False
    if touched or proportion or ratio or len(digits) > MOST_DIGITS or _PLAIN_NUMBER.fullmatch(digits) is None:
        return Token(Kind.BAD, said, start, end, glued)
    whole, _, decimals = digits.replace(",", "").partition(".")
    value = Fraction(int(whole + decimals), 10 ** len(decimals)) if decimals else Fraction(int(whole))
    return Token(Kind.NUMBER, said, start, end, glued, value, len(decimals), money)


def _command(said: str, start: int, end: int, glued: bool) -> Token:
    if said in _COMMANDS:
        return Token(Kind.OPERATOR, _COMMANDS[said], start, end, glued)
    if said in _FUNCTIONS:
        return Token(Kind.FUNCTION, _FUNCTIONS[said], start, end, glued)
    if said in _APPROXIMATE or said in _OTHER_RELATIONS:
        return Token(Kind.RELATION, ABOUT if said in _APPROXIMATE else OTHER, start, end, glued)
    return Token(Kind.BREAK if said in _BREAKS else Kind.BAD, said, start, end, glued)


def _operator(said: str, start: int, end: int, glued: bool, before: Token | None, following: str) -> Token:
    if said == "**" and not (before is not None and before.kind in _ENDS and glued and following[:1].isdigit()):
        # Markdown's bold.
        return Token(Kind.BREAK, said, start, end, glued)
    if (
        said == "-"
        and glued
        and before is not None
        and before.kind is Kind.NUMBER
        and following.isalpha()
        and len(following) == 2
    ):
        # A 10-minute call.
        return Token(Kind.WORD, said, start, end, glued)
    return Token(Kind.OPERATOR, _OPERATORS.get(said, said), start, end, glued)


def _is_remainder(following: str, glued: bool) -> bool:
    return following[:1].isdigit() or (not glued and following.strip()[:1].isdigit())


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
                if read.kind is Kind.RELATION:
                    _drop_before(found)
                found.append(read)
            at += used
            continue
        if token.kind is Kind.RELATION:
            _drop_before(found)
        elif token.kind in (Kind.DELIMITER, Kind.LINE) and found and _goes_on(found):
            at += 1
            continue
        elif token.kind is Kind.OPERATOR and _joins(tokens, at, found):
            found.pop()
        elif token.kind is Kind.OPEN and (end := _comment(tokens, at, found)):
            at = end
            continue
        found.append(token)
        at += 1
    return found


def _drop_before(found: list[Token]) -> None:
    """A chain goes on over the end of a line or a formula if the next one begins with a relation."""
    while found and found[-1].kind in (Kind.DELIMITER, Kind.LINE):
        found.pop()


def _goes_on(found: list[Token]) -> bool:
    """Whether an expression goes on over the end of a line or a formula: after a relation, or an operator that is no dash."""
    if found[-1].kind is Kind.OPERATOR:
        return len(found) > 1 and found[-2].kind in (*_ENDS, Kind.WORD)
    return found[-1].kind is Kind.RELATION


def _joins(tokens: list[Token], at: int, found: list[Token]) -> bool:
    """Whether an operator between two formulas makes them one: $3$ * $5$."""
    if not found or found[-1].kind is not Kind.DELIMITER:
        return False
    return tokens[at].text in "*/" or any(each.kind is Kind.DELIMITER for each in tokens[at + 1 : at + 2])


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
    if word in ("percent", "per-cent") and before is not None and before.kind is Kind.NUMBER:
        return Token(Kind.PERCENT, "%", token.start, token.end), 1
    if word == "of" and before is not None and _is_share(found) and (skipped := _operand_after(tokens, at + 1)):
        return Token(Kind.OPERATOR, OF, token.start, token.end), skipped - at
    if word == "equals":
        return Token(Kind.RELATION, EQUAL, token.start, token.end), 1
    if word == "is" and [each.text.lower() for each in tokens[at + 1 : at + 3]] == ["equal", "to"]:
        return Token(Kind.RELATION, EQUAL, token.start, tokens[at + 2].end), 3
    if before is not None and before.kind in (*_ENDS, Kind.WORD) and following is not None:
        if word in _WORD_OPERATORS and following.kind is Kind.NUMBER and (before.kind in _ENDS or word != "times"):
            return Token(Kind.OPERATOR, _WORD_OPERATORS[word], token.start, token.end), 1
        if (
            word in _WORDS_BY
            and following.text.lower() == "by"
            and at + 2 < len(tokens)
            and tokens[at + 2].kind is Kind.NUMBER
        ):
            return Token(Kind.OPERATOR, _WORDS_BY[word], token.start, following.end), 2
    return token, 1


def _times(token: Token, before: Token | None, following: Token | None) -> Token:
    """An x is a multiplication sign between numbers, with a blank on both sides or on none; else it is an unknown."""
    if before is not None and following is not None:
        after = following.kind in (Kind.NUMBER, Kind.FUNCTION) or (following.kind is Kind.OPEN and not following.glued)
        spaced = not token.glued and (not following.glued or following.money)
        dense = token.glued and following.glued and before.kind in _ENDS
        near = token.glued and before.kind is Kind.NUMBER and not following.glued and following.kind is Kind.NUMBER
        if after and before.kind in (*_ENDS, Kind.WORD) and (spaced or dense or near):
            return Token(Kind.OPERATOR, "*", token.start, token.end, token.glued)
    return token


def _part(token: Token, value: Fraction, found: list[Token]) -> Token:
    """A fraction in words, such as half or third, with the count before it: 3 quarters, a third."""
    while found and found[-1].kind is Kind.WORD and found[-1].text.lower() in ("a", "one", "an"):
        token = Token(Kind.WORD, token.text, found.pop().start, token.end)
    if found and found[-1].kind is Kind.NUMBER and found[-1].places == 0 and not found[-1].money:
        count = found.pop()
        return Token(Kind.NUMBER, token.text, count.start, token.end, count.glued, count.value * value)
    return Token(Kind.NUMBER, token.text, token.start, token.end, False, value)


def _is_share(found: list[Token]) -> bool:
    """Whether the last tokens are a percentage or a fraction, so that "of" means times."""
    last = found[-1]
    if last.kind is Kind.PERCENT or (last.kind is Kind.CLOSE and last.text == "}"):
        return True
    if last.kind is not Kind.NUMBER:
        return False
    return (last.value.denominator != 1 and not last.places) or [each.text for each in found[-2:-1]] == ["/"]


def _operand_after(tokens: list[Token], at: int) -> int:
    """The place of the number at this place, or after articles there; 0 if there is none."""
    end = min(len(tokens), at + 3)
    while at < end and tokens[at].kind is Kind.WORD and tokens[at].text.lower() in DETERMINERS:
        at += 1
    return at if at < len(tokens) and tokens[at].kind in (Kind.NUMBER, Kind.OPEN, Kind.FUNCTION) else 0


def _comment(tokens: list[Token], at: int, found: list[Token]) -> int:
    """The place after a remark in brackets, such as "(initially infected)"; 0 if it is something else."""
    if tokens[at].glued or tokens[at].text == "{" or not found or found[-1].kind not in (*_ENDS, Kind.WORD):
        return 0
    end = at + 1
    while end < len(tokens) and end - at <= 8 and tokens[end].kind is Kind.WORD and tokens[end].text.lower() != "mod":
        end += 1
    closed = end < len(tokens) and tokens[end].kind is Kind.CLOSE
    return end + 1 if closed and end > at + 1 and any(len(each.text) > 1 for each in tokens[at + 1 : end]) else 0


_PAIRS = {")": "(", "]": "[", "}": "{"}


def _matched(tokens: list[Token]) -> list[Token]:
    """The tokens with matched brackets. A bracket without another one ends an expression."""
    opened: list[int] = []
    for at, token in enumerate(tokens):
        if token.kind is _WORD:
            continue
        if token.kind is Kind.OPEN:
            opened.append(at)
        elif token.kind is Kind.CLOSE and opened and tokens[opened[-1]].text == _PAIRS[token.text]:
            token.match = opened.pop()
            tokens[token.match].match = at
        elif token.kind in (Kind.BREAK, Kind.LINE) and token.text in (".", ";", "\n"):
            opened.clear()
    for token in tokens:
        if token.kind is Kind.LINE or (token.kind in (Kind.OPEN, Kind.CLOSE) and token.match < 0):
            token.kind = Kind.BREAK
    return tokens
