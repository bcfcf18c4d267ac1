r"""Cuts the text of a step into numbers, operators, relations, words and what separates them. Pure, linear time.

Reads plain text and LaTeX. What has no plain meaning here becomes a BAD token, so that no part of a formula is taken for the
whole of it: the 2 of x^2, the 3 of 2:3, the 5 of 1,5.
"""

import re
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

MOST_DIGITS = 60
"""A longer number is not read."""


class TokenKind:
    """The kinds of tokens. No enumeration: each token is compared with several, and members of one are slow to look up."""

    NUMBER: Final = "number"
    OPERATOR: Final = "operator"
    OPEN: Final = "open"
    CLOSE: Final = "close"
    RELATION: Final = "relation"
    WORD: Final = "word"
    PERCENT: Final = "percent"
    FACTORIAL: Final = "factorial"
    FUNCTION: Final = "function"
    BREAK: Final = "break"
    """What ends an expression: punctuation, implication arrows."""
    DELIMITER: Final = "delimiter"
    r"""\( and its like. Ends an expression, unless it stands beside a relation."""
    LINE: Final = "line"
    BAD: Final = "bad"


@dataclass(slots=True)
class Token:
    """A piece of text. `text` of operators and relations is their plain form. `glued`: no blank stands before it.

    `value`, `places` (digits after the point) and `money` are for numbers. `match`: the place of the other bracket, or -1."""

    kind: str
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

OF = "of"
"""The sign of multiplication in 20% of 50."""
EQUAL, ABOUT, OTHER = "=", "≈", "<"
"""The plain forms of relations. OTHER is any that is not judged."""
ENDS = frozenset({TokenKind.NUMBER, TokenKind.CLOSE, TokenKind.PERCENT, TokenKind.FACTORIAL})
"""What an operand ends with."""
_TOKEN = re.compile(
    r"""
    (?:[^\S\n]+|\\[;:!,\ ]|&|~(?!=))*
    (?:(?P<word>[^\W\d_]{2,}(?:'[^\W\d_]+|-[^\W\d_]{2,})*|[^\W\d_](?:'[^\W\d_]+)?)
  | (?P<number>(?:\$\ ?)?(?:\d+(?:,\d+)*(?:\.\d+)*|\.\d+))
  | (?P<command>\\[A-Za-z]+)
  | (?P<line>\n\s*|\\\\\s*)
  | (?P<symbol>[-=]{1,3}>|={1,3}|[~!:<>]=|\*\*|\$\$|\.+|\\.|.)
  | \Z)
    """,
    re.VERBOSE | re.DOTALL,
)
_WORD_GROUP, _NUMBER_GROUP = _TOKEN.groupindex["word"], _TOKEN.groupindex["number"]
_SYMBOLS_OF: dict[str, tuple[str, ...]] = {
    TokenKind.OPEN: ("(", "[", "{"),
    TokenKind.CLOSE: (")", "]", "}"),
    TokenKind.FACTORIAL: ("!",),
    TokenKind.DELIMITER: ("\\(", "\\)", "\\[", "\\]", "$", "$$"),
    TokenKind.BREAK: (
        *("=>", "==>", "===>", "->", "-->", "--->", "→", "⇒", "⟹", "∴", ";", ":", ",", ".", '"', "“", "”", "—"),
        *("\\quad", "\\qquad"),
        *("\\implies", "\\Rightarrow", "\\Longrightarrow", "\\rightarrow", "\\therefore", "\\because", "\\to", "\\iff"),
    ),
}  # fmt: skip
_PLAIN_FORMS: dict[str, dict[str, tuple[str, ...]]] = {
    TokenKind.OPERATOR: {
        "+": ("+",), "-": ("−", "–"), "^": ("^",), "*": ("*", "×", "·", "⋅", "∙", "∗", "\\times", "\\cdot", "\\ast"),
        "/": ("/", "÷", "∕", "⁄", "\\div"),
    },
    TokenKind.RELATION: {
        EQUAL: ("=", "==", "==="),
        ABOUT: ("≈", "≅", "≃", "∼", "~=", "\\approx", "\\simeq", "\\doteq"),
        OTHER: (
            *("<", ">", "<=", ">=", ":=", "!=", "≤", "≥", "≠", "≡", "\\le", "\\leq", "\\ge", "\\geq", "\\ne", "\\neq"),
            *("\\equiv", "\\lt", "\\gt", "\\propto", "\\sim", "\\cong", "\\in"),
        ),
    },
    TokenKind.FUNCTION: {"frac": ("\\frac", "\\dfrac", "\\tfrac", "\\cfrac"), "sqrt": ("\\sqrt",)},
}  # fmt: skip
_FIXED = {said: (kind, said) for kind, symbols in _SYMBOLS_OF.items() for said in symbols} | {
    said: (kind, form) for kind, forms in _PLAIN_FORMS.items() for form, symbols in forms.items() for said in symbols
}
"""What is read in the same way wherever it stands: its kind and its plain form."""
_PLAIN_NUMBER = re.compile(r"(?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]*)(?:\.[0-9]+)?")
_MOST_WORDS_KEPT = 12
_PROSE = re.compile(r" (?:[A-Za-z]{2,}[,.;]? ){4,}(?=(?:[A-Za-z]{2,} ){4})")
_PAIR = 2
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
    while (match := _TOKEN.match(text, at)) is not None and (group := match.lastindex) is not None:
        start, end = match.span(group)
        said = text[start:end]
        glued = start == at > 0
        words = words + 1 if group == _WORD_GROUP else 0
        if group == _NUMBER_GROUP:
            before = _number(said, start, end, glued, before, text[end : end + 2])
        elif group == _WORD_GROUP:
            ordinal = glued and before is not None and before.kind is TokenKind.NUMBER and said in _ORDINALS
            before = Token(TokenKind.BAD if ordinal else TokenKind.WORD, said, start, end, glued)
        elif said == "!=" and glued and before is not None and before.kind is TokenKind.NUMBER:
            # 3!=6 is a factorial where the number touches it.
            found.append(Token(TokenKind.FACTORIAL, "!", start, start + 1, True))
            before = Token(TokenKind.RELATION, EQUAL, start + 1, end, True)
        elif (fixed := _FIXED.get(said)) is not None:
            before = Token(fixed[0], fixed[1], start, end, glued)
        else:
            before = _symbol(said, start, end, glued, before, text[end : end + 2])
        found.append(before)
        at = end
        if words > _MOST_WORDS_KEPT and (prose := _PROSE.match(text, at)) is not None:
            # Words far from any number. A few stay on both sides.
            before = Token(TokenKind.BREAK, "", at, prose.end(), False)
            found.append(before)
            at, words = prose.end(), 0
    return found


def _symbol(said: str, start: int, end: int, glued: bool, before: Token | None, following: str) -> Token:
    """A token whose neighbours decide what it is, or a BAD one."""
    after_operand = glued and before is not None and before.kind in ENDS
    if said[0] == "\n" or said[:2] == "\\\\":
        return Token(TokenKind.LINE, "\n", start, end, glued)
    if said == "**":
        # Markdown's bold, or a power.
        power = after_operand and following[:1].isdigit()
        return Token(TokenKind.OPERATOR if power else TokenKind.BREAK, "^" if power else said, start, end, glued)
    if said == "-":
        # A 10-minute call.
        joins = glued and before is not None and before.kind is TokenKind.NUMBER and len(following) == _PAIR
        return Token(TokenKind.WORD if joins and following.isalpha() else TokenKind.OPERATOR, said, start, end, glued)
    if said == "%":
        # 17 % 5 and 17%5 are remainders.
        remainder = following[:1].isdigit() or (not glued and following.strip()[:1].isdigit())
        return Token(TokenKind.BAD if remainder else TokenKind.PERCENT, said, start, end, glued)
    return Token(TokenKind.BAD, said, start, end, glued)


def _number(said: str, start: int, end: int, glued: bool, before: Token | None, following: str) -> Token:
    money = said[0] == "$"
    digits = said.lstrip("$ ")
    touched = (
        glued and before is not None and before.kind in (TokenKind.WORD, TokenKind.BAD, TokenKind.NUMBER) and not money
    )
    proportion = len(following) == _PAIR and following[0] == ":" and following[1].isdigit()
    ratio = before is not None and before.text == ":" and glued and before.glued
    if touched and before is not None and before.kind is TokenKind.WORD and before.text in ("x", "X") and before.glued:
        touched = False
    if touched or proportion or ratio or len(digits) > MOST_DIGITS or _PLAIN_NUMBER.fullmatch(digits) is None:
        return Token(TokenKind.BAD, said, start, end, glued)
    whole, _, decimals = digits.replace(",", "").partition(".")
    value = Fraction(int(whole + decimals), 10 ** len(decimals)) if decimals else Fraction(int(whole))
    return Token(TokenKind.NUMBER, said, start, end, glued, value, len(decimals), money)
