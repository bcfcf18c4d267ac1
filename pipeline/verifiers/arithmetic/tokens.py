r"""Cuts the text of a step into numbers, operators, relations, words and what separates them. Pure, linear time.

Reads plain text and LaTeX, and words for operators and relations. What has no plain meaning here becomes a bad token, so that
no part of a formula is taken for the whole of it: the 2 of x^2, the 3 of 2:3, the 5 of 1,5.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, get_args

from pipeline.data.numbers import number_in_words
from pipeline.verifiers.arithmetic.words import DETERMINERS

MOST_DIGITS = 60
"""A longer number is not read."""
Kind = Literal[
    "number", "operator", "open", "close", "relation", "word", "percent", "factorial", "function", "break", "delimiter", "line",
    "bad", "end",
]  # fmt: skip
r"""The kinds of tokens. `break`: what ends an expression, such as points. `delimiter`: \( and its like, which end it unless
they stand beside a relation. `end`: what stands before and after all tokens."""


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


_END = Token("end", "", 0, 0)
_FLAT = re.compile(
    r"\\(?:text(?:bf|it|rm|normal|sf|tt)?|mathrm|mathbf|mathit|mathsf|mbox|hbox|operatorname\*?|emph|bm|f?boxed)\s*\{([^{}]*)\}"
)
_LAYOUT = re.compile(r"\\(?:left|right|[bB]igg?[lr]?|displaystyle|textstyle|boxed|underline)(?![A-Za-z])")
_SHORT_FRACTION = re.compile(r"\\[dtc]?frac\s*(?:(\d)|\{([^{}]*)\})\s*(?:(\d)|(?=\{))")
_THIN = re.compile(r"(?<=\d)(?:\{,\}|\\,|,\\!|\\ )(?=\d{3}(?!\d))")
_DEGREES = re.compile(r"\^\s*\{?\s*\\circ\s*\}?|°")
_SYMBOLS = str.maketrans({"²": "^2", "³": "^3", "\u00a0": " ", "’": "'", "％": "%"}) | str.maketrans(
    {"½": " 1/2", "¼": " 1/4", "¾": " 3/4", "⅓": " 1/3", "⅔": " 2/3"}
)
OF = "of"
"""The sign of multiplication in 20% of 50."""
EQUAL, ABOUT, OTHER = "=", "≈", "<"
"""The plain forms of relations. OTHER is any that is not judged."""
ENDS: frozenset[Kind] = frozenset({"number", "close", "percent", "factorial"})
"""What an operand ends with."""
_TOKEN = re.compile(
    r"""
    (?:[^\S\n]+|\\[;:!,\ ]|&|~(?!=))*
    (?:(?P<word>[^\W\d_]{2,}(?:'[^\W\d_]+|-[^\W\d_]{2,})*|[^\W\d_](?:'[^\W\d_]+)?)
  | (?P<number>(?:\$\ ?)?(?:0[xXbBoO][\da-fA-F]+|\d{1,3}(?:,\ \d{3})+(?!\d)|\d+(?:[.,]\d+)*|\.\d+))
  | (?P<command>\\[A-Za-z]+)
  | (?P<line>\n\s*|\\\\\s*)
  | (?P<symbol>[-=]{1,3}>|={1,3}|[~!:<>]=|\*\*|\$\$|\.+|\\.|.)
  | \Z)
    """,
    re.VERBOSE | re.DOTALL,
)
_WORD_GROUP, _NUMBER_GROUP = _TOKEN.groupindex["word"], _TOKEN.groupindex["number"]
# Kind, plain form where it has one, and the symbols that are read so wherever they stand.
_TABLE = r"""
open : ( [ {
close : ) ] }
factorial : !
delimiter : \( \) \[ \] $ $$
break : => ==> ===> -> --> ---> → ⇒ ⟹ ∴ ; : , . " “ ” — \quad \qquad \implies \Rightarrow \Longrightarrow \rightarrow \therefore
break : \because \to \iff
operator + +
operator - − –
operator ^ ^
operator * * × · ⋅ ∙ ∗ \times \cdot \ast
operator / / ÷ ∕ ⁄ \div
relation = = == ===
relation ≈ ≈ ≅ ≃ ∼ ~= \approx \simeq \doteq
relation < < > <= >= := != ≤ ≥ ≠ ≡ \le \leq \ge \geq \ne \neq \equiv \lt \gt \propto \sim \cong \in
function frac \frac \dfrac \tfrac \cfrac
function sqrt \sqrt
"""
_KINDS: dict[str, Kind] = {kind: kind for kind in get_args(Kind)}
_FIXED = {
    said: (_KINDS[kind], said if form == ":" else form)
    for kind, form, *symbols in map(str.split, _TABLE.strip().splitlines())
    for said in symbols
}
_PLAIN_NUMBER = re.compile(r"(?!0[0-9])(?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]*)(?:\.[0-9]+)?")
_MOST_WORDS_KEPT = 12
_PROSE = re.compile(r" (?:[A-Za-z]{2,}[,.;]? ){4,}(?=(?:[A-Za-z]{2,} ){4})")
_PROPORTION = re.compile(r":\d")
_WORD_OPERATORS = {"plus": "+", "minus": "-", "times": "*", "divided": "/", "multiplied": "*"}
_PAIRS = {")": "(", "]": "[", "}": "{"}


def token_at(tokens: Sequence[Token], place: int) -> Token:
    """The token at a place, or the one of kind `end` where there is none."""
    return tokens[place] if 0 <= place < len(tokens) else _END


def plain(text: str) -> str:
    r"""The text without LaTeX that only lays it out: \text{}, \left, \boxed. Spans of tokens are of this text."""
    if "\\" in text or "{,}" in text:
        text = text.replace("\\$", "$").replace("\\%", "%")
        text = _FLAT.sub(r" \1 ", _THIN.sub("", text).replace("{,}", ","))
        text = _SHORT_FRACTION.sub(_fraction, _LAYOUT.sub(" ", text))
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
    """The tokens of a text, each read by itself and by its neighbours in the text."""
    found: list[Token] = []
    words = at = 0
    before = _END
    while (match := _TOKEN.match(text, at)) is not None and (group := match.lastindex) is not None:
        start, end = match.span(group)
        said, glued = text[start:end], start == at > 0
        words = words + 1 if group == _WORD_GROUP else 0
        after_number = glued and before.kind == "number"
        if group == _NUMBER_GROUP:
            before = _number(said, start, end, glued, before, text)
        elif group == _WORD_GROUP:
            ordinal = after_number and said in ("st", "nd", "rd", "th")
            before = Token("bad" if ordinal else "word", said, start, end, glued)
        elif said == "!=" and after_number:
            # 3!=6 is a factorial where the number touches it.
            found.append(Token("factorial", "!", start, start + 1, True))
            before = Token("relation", EQUAL, start + 1, end, True)
        else:
            kind, form = _FIXED.get(said) or _symbol(said, glued, before, text[end : end + 2])
            before = Token(kind, form, start, end, glued)
        found.append(before)
        at = end
        if words > _MOST_WORDS_KEPT and (prose := _PROSE.match(text, at)) is not None:
            # Words far from any number. A few stay on both sides.
            before = Token("break", "", at, prose.end())
            found.append(before)
            at, words = prose.end(), 0
    return found


def _symbol(said: str, glued: bool, before: Token, following: str) -> tuple[Kind, str]:
    """The kind and the form of a symbol whose neighbours decide what it is."""
    if said[0] == "\n" or said[:2] == "\\\\":
        return "line", "\n"
    if said == "**":
        # Markdown's bold, or a power.
        power = glued and before.kind in ENDS and following[:1].isdigit()
        return ("operator", "^") if power else ("break", said)
    if said == "-":
        # A 10-minute call.
        joins = glued and before.kind == "number" and re.fullmatch(r"[^\W\d_]{2}", following)
        return "word" if joins else "operator", said
    if said == "%":
        # 17 % 5 and 17%5 are remainders.
        return "bad" if (following if glued else following.strip())[:1].isdigit() else "percent", said
    return "bad", said


def _number(said: str, start: int, end: int, glued: bool, before: Token, text: str) -> Token:
    money, digits = said[0] == "$", said.lstrip("$ ")
    touched = glued and not money and before.kind in ("word", "bad", "number")
    touched = touched and not (before.glued and before.text in ("x", "X"))
    ratio = _PROPORTION.match(text, end) or (glued and before.glued and before.text == ":")
    if touched or ratio or len(digits) > MOST_DIGITS or not _PLAIN_NUMBER.fullmatch(digits):
        return Token("bad", said, start, end, glued)
    whole, _, decimals = digits.replace(",", "").partition(".")
    value = Fraction(int(whole + decimals), 10 ** len(decimals)) if decimals else Fraction(int(whole))
    return Token("number", said, start, end, glued, value, len(decimals), money)


def _joined(tokens: list[Token]) -> list[Token]:
    """The tokens with words for operators and relations read, comments in brackets and what stands at relations left out."""
    found: list[Token] = []
    at = 0
    while at < len(tokens):
        token, used = tokens[at], 1
        last = found[-1] if found else _END
        if token.kind == "word":
            token, used = _word(tokens, at, found)
        elif token.kind in ("delimiter", "line") and (
            last.kind == "relation"
            or (last.kind == "operator" and token_at(found, len(found) - 2).kind in (*ENDS, "word"))
        ):
            # An expression goes on over a line or a formula after a relation, or after an operator that is no dash.
            at += 1
            continue
        elif (
            token.kind == "operator"
            and last.kind == "delimiter"
            and (token.text in "*/" or token_at(tokens, at + 1).kind == "delimiter")
        ):
            # An operator between two formulas makes them one: $3$ * $5$.
            found.pop()
        elif token.kind == "open" and (end := _comment(tokens, at, last)):
            at = end
            continue
        if token.kind == "relation":
            # A chain goes on over the end of a line or a formula if the next one begins with a relation.
            while found and found[-1].kind in ("delimiter", "line"):
                found.pop()
        found.append(token)
        at += used
    return found


def _word(tokens: list[Token], at: int, found: list[Token]) -> tuple[Token, int]:
    """What a word is read as, and how many tokens that takes."""
    token, before, following = tokens[at], token_at(found, len(found) - 1), token_at(tokens, at + 1)
    word, after = token.text.lower(), following.text.lower()
    operand = before.kind in (*ENDS, "word")
    if word == "x" and operand and _multiplies(token, before, following):
        return Token("operator", "*", token.start, token.end, token.glued), 1
    part = (number_in_words(word) or number_in_words(f"one {word}")) if after == "of" else None
    if part and part < 1 and _operand_after(tokens, at + 2):
        return _part(token, part, found), 1
    if word in ("percent", "per-cent") and before.kind == "number":
        return Token("percent", "%", token.start, token.end), 1
    if word == "of" and _is_share(found) and (place := _operand_after(tokens, at + 1)):
        return Token("operator", OF, token.start, token.end), place - at
    if word == "equals":
        return Token("relation", EQUAL, token.start, token.end), 1
    if word == "is" and after == "equal" and token_at(tokens, at + 2).text.lower() == "to":
        return Token("relation", EQUAL, token.start, tokens[at + 2].end), 3
    if operand and (sign := _WORD_OPERATORS.get(word)):
        by = word in ("divided", "multiplied")
        number = token_at(tokens, at + 1 + by).kind == "number" and (not by or after == "by")
        if number and (word != "times" or before.kind in ENDS):
            return Token("operator", sign, token.start, following.end if by else token.end), 1 + by
    return token, 1


def _multiplies(token: Token, before: Token, following: Token) -> bool:
    """Whether an x is a multiplication sign: between numbers, with a blank on both sides or on none. Else it is an unknown."""
    if following.kind not in ("number", "function") and (following.kind != "open" or following.glued):
        return False
    if not token.glued:
        return not following.glued or following.money
    return before.kind in ENDS if following.glued else before.kind == following.kind == "number"


def _part(token: Token, value: Fraction, found: list[Token]) -> Token:
    """A fraction in words, such as half or third, with the count before it: 3 quarters, a third."""
    start, glued = token.start, False
    if found and found[-1].kind == "word" and (counted := number_in_words(f"{found[-1].text} {token.text}")):
        start, value = found.pop().start, counted
    if found and found[-1].kind == "number" and not found[-1].places and not found[-1].money:
        count = found.pop()
        start, glued, value = count.start, count.glued, count.value * value
    return Token("number", token.text, start, token.end, glued, value)


def _is_share(found: list[Token]) -> bool:
    """Whether the last tokens are a percentage or a fraction, so that "of" means times."""
    last = token_at(found, len(found) - 1)
    if last.kind == "number":
        return (last.value.denominator != 1 and not last.places) or token_at(found, len(found) - 2).text == "/"
    return last.kind == "percent" or (last.kind == "close" and last.text == "}")


def _operand_after(tokens: list[Token], at: int) -> int:
    """The place of the number at this place, or after articles there; 0 if there is none."""
    end = at + 3
    while at < end and token_at(tokens, at).text.lower() in DETERMINERS:
        at += 1
    return at if token_at(tokens, at).kind in ("number", "open", "function") else 0


def _comment(tokens: list[Token], at: int, before: Token) -> int:
    """The place after a remark in brackets, such as "(initially infected)"; 0 if it is something else."""
    end = at + 1
    while end - at <= 8 and token_at(tokens, end).kind == "word" and tokens[end].text.lower() != "mod":
        end += 1
    remark = token_at(tokens, end).kind == "close" and any(len(each.text) > 1 for each in tokens[at + 1 : end])
    apart = not tokens[at].glued and tokens[at].text != "{" and before.kind in (*ENDS, "word")
    return end + 1 if remark and apart else 0


def _matched(tokens: list[Token]) -> list[Token]:
    """The tokens with matched brackets. A bracket without another one ends an expression."""
    opened: list[int] = []
    for at, token in enumerate(tokens):
        if token.kind == "open":
            opened.append(at)
        elif token.kind == "close" and opened and tokens[opened[-1]].text == _PAIRS[token.text]:
            token.match = opened.pop()
            tokens[token.match].match = at
        elif token.kind in ("break", "line") and token.text in (".", ";", "\n"):
            opened.clear()
    for token in tokens:
        if token.kind == "line" or (token.kind in ("open", "close") and token.match < 0):
            token.kind = "break"
    return tokens
