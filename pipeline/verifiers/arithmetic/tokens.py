r"""Cuts the text of a step into numbers, operators, relations, words and what separates them. Pure, linear time.

Reads plain text and LaTeX. What has no plain meaning here becomes a BAD token, so that no part of a formula is taken for the
whole of it: the 2 of x^2, the 3 of 2:3, the 5 of 1,5.
"""

import re
from dataclasses import dataclass
from enum import Enum, auto
from fractions import Fraction

MOST_DIGITS = 60
"""A longer number is not read."""


class TokenKind(Enum):
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

    kind: TokenKind
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
_WORD, _NUMBER = TokenKind.WORD, TokenKind.NUMBER
_KINDS = {
    "open": TokenKind.OPEN, "close": TokenKind.CLOSE, "factorial": TokenKind.FACTORIAL, "delimiter": TokenKind.DELIMITER,
    "break": TokenKind.BREAK, "line": TokenKind.LINE, "bad": TokenKind.BAD,
}  # fmt: skip
OF = "of"
"""The sign of multiplication in 20% of 50."""
EQUAL, ABOUT, OTHER = "=", "≈", "<"
"""The plain forms of relations. OTHER is any that is not judged."""
ENDS = frozenset({TokenKind.NUMBER, TokenKind.CLOSE, TokenKind.PERCENT, TokenKind.FACTORIAL})
"""What an operand ends with."""
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


def cut(text: str) -> list[Token]:
    """The tokens of a text that `plain` has prepared, each read by itself and by its neighbours in the text."""
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
            if before.kind is TokenKind.BAD and before.text == "!=":
                # 3!=6 is a factorial where the number touches it.
                found.append(Token(TokenKind.FACTORIAL, "!", before.start, before.start + 1, True))
                before = Token(TokenKind.RELATION, EQUAL, before.start + 1, before.end, True)
        found.append(before)
        at = match.end()
        if words > _MOST_WORDS_KEPT and (prose := _PROSE.match(text, at)) is not None:
            # Words far from any number. A few stay on both sides.
            before = Token(TokenKind.BREAK, "", at, prose.end(), False)
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
            return Token(TokenKind.BAD if said in _ORDINALS else TokenKind.WORD, said, start, end, glued)
        case "command":
            return _command(said, start, end, glued)
        case "relation":
            if said == "!=" and glued and before is not None and before.kind is TokenKind.NUMBER:
                return Token(TokenKind.BAD, said, start, end, glued)
            plain_form = ABOUT if said in _APPROXIMATE else EQUAL if set(said) == {"="} else OTHER
            return Token(TokenKind.RELATION, plain_form, start, end, glued)
        case "operator":
            return _operator(said, start, end, glued, before, following)
        case "percent":
            # 17 % 5 and 17%5 are remainders.
            return Token(
                TokenKind.BAD if _is_remainder(following, glued) else TokenKind.PERCENT, "%", start, end, glued
            )
    return Token(_KINDS[group], "\n" if group == "line" else said, start, end, glued)


def _number(said: str, start: int, end: int, glued: bool, before: Token | None, following: str) -> Token:
    money = said[0] == "$"
    digits = said.lstrip("$ ")
    touched = (
        glued and before is not None and before.kind in (TokenKind.WORD, TokenKind.BAD, TokenKind.NUMBER) and not money
    )
    proportion = len(following) == 2 and following[0] == ":" and following[1].isdigit()
    ratio = before is not None and before.text == ":" and glued and before.glued
    if touched and before is not None and before.kind is TokenKind.WORD and before.text in ("x", "X") and before.glued:
        touched = False
    if touched or proportion or ratio or len(digits) > MOST_DIGITS or _PLAIN_NUMBER.fullmatch(digits) is None:
        return Token(TokenKind.BAD, said, start, end, glued)
    whole, _, decimals = digits.replace(",", "").partition(".")
    value = Fraction(int(whole + decimals), 10 ** len(decimals)) if decimals else Fraction(int(whole))
    return Token(TokenKind.NUMBER, said, start, end, glued, value, len(decimals), money)


def _command(said: str, start: int, end: int, glued: bool) -> Token:
    if said in _COMMANDS:
        return Token(TokenKind.OPERATOR, _COMMANDS[said], start, end, glued)
    if said in _FUNCTIONS:
        return Token(TokenKind.FUNCTION, _FUNCTIONS[said], start, end, glued)
    if said in _APPROXIMATE or said in _OTHER_RELATIONS:
        return Token(TokenKind.RELATION, ABOUT if said in _APPROXIMATE else OTHER, start, end, glued)
    return Token(TokenKind.BREAK if said in _BREAKS else TokenKind.BAD, said, start, end, glued)


def _operator(said: str, start: int, end: int, glued: bool, before: Token | None, following: str) -> Token:
    if said == "**" and not (before is not None and before.kind in ENDS and glued and following[:1].isdigit()):
        # Markdown's bold.
        return Token(TokenKind.BREAK, said, start, end, glued)
    if (
        said == "-"
        and glued
        and before is not None
        and before.kind is TokenKind.NUMBER
        and following.isalpha()
        and len(following) == 2
    ):
        # A 10-minute call.
        return Token(TokenKind.WORD, said, start, end, glued)
    return Token(TokenKind.OPERATOR, _OPERATORS.get(said, said), start, end, glued)


def _is_remainder(following: str, glued: bool) -> bool:
    return following[:1].isdigit() or (not glued and following.strip()[:1].isdigit())
