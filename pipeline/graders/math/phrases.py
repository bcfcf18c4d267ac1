"""Compares answers that are not mathematics: choice letters, words, clock times, numerals in a stated base. Pure.

Words are compared as words, never as products of symbols: "east" is not "seat". Each comparison returns True or False if it is
certain, and None if the answers are not of its kind.
"""

import re
from functools import lru_cache

from pipeline.graders.math.choices import has_more_choices

_CHOICE = re.compile(
    r"(?:(?:[Tt]he )?(?:correct )?(?:[Oo]ption|[Cc]hoice|[Aa]nswer)(?: is)?:?(?: |(?=\()))?\(?([A-Ja-j])\)?"
)
_CHOICE_WITH_TEXT = re.compile(
    r"(?:(?:[Oo]ption|[Cc]hoice)(?: |(?=\()))?(?:\(([A-Ja-j])\)[.:]?|([A-J])[).:])[ ]*([\\\w$(+.-].*)", re.DOTALL
)
_HEDGED = re.compile(
    r"(?:(?:[Oo]ption|[Cc]hoice)(?: |(?=\())?)?\(?[A-J]\)?[).:]? ?(?:,? ?(?:or|and|nor|wait|not|but)\b|\?"
    r"|(?:is|are) (?:wrong|incorrect|not|false)\b|I (?:do not|don't) know|I am not sure|I'm not sure)"
)
_WORDS = re.compile(r"[A-Za-z][A-Za-z]+(?:[ '/-]+[A-Za-z]+)*|[A-Za-z](?:[ '-]+[A-Za-z]+)+")
# A name that contains a number: June 20, Chapter 12, 3rd.
_NUMBERED = re.compile(
    r"[A-Za-z]{3,}(?: [A-Za-z]{3,})? \d{1,4}(?:st|nd|rd|th)?|\d{1,4}(?:st|nd|rd|th)(?: [A-Za-z]{3,}){0,2}"
)
_ORDINAL = re.compile(r"(?<=\d)(?:st|nd|rd|th)\b")
_ARTICLE = re.compile(r"^(?:a|an|the|it is|it's|they are|there (?:is|are|exists?)) ")
_BASED = re.compile(r"([0-9A-Z]+)(?:_\{?(\d+)\}?| ?\(?(?:in )?base (\d+)\)?)")
_NUMERAL = re.compile(r"(?=.*\d)[0-9A-Z]+")
_CLOCK = re.compile(r"(\d{1,2})(?::(\d{2}))?(?::(\d{2}))? ?([ap]\.?m\b\.?)?", re.IGNORECASE)
_NAMED_TIMES = {"noon": "12:00 pm", "12 noon": "12:00 pm", "midnight": "12:00 am", "12 midnight": "12:00 am"}
# A date, a telephone number or a page number: the signs between the digits are not operators.
_LITERAL = re.compile(r"\d{1,4}([-/.])\d{1,2}\1\d{1,4}|0\d[-/]\d{1,4}|\d{1,4}[-/]0\d|\d{3}-\d{4}")
_NAMED = re.compile(r"\\(triangle|angle|square|overline|vec|overrightarrow|widehat|hat|bar)\{? ?([A-Za-z]{1,6}'*)\}?")
_LETTERS = re.compile(r"[A-J]{2,8}")
_LETTER_LIST = re.compile(r"\(?[A-J]\)?(?:(?: ?[,;&] ?(?:and )?| and )\(?[A-J]\)?)+")
_SHORT_WORDS = frozenset({"no", "on", "yes", "up", "or", "is", "ne", "nw", "se", "sw", "ok"})
_MATHEMATICAL = frozenset(
    {"pi", "infinity", "inf", "infty", "oo", "nan", "i", "e", "ln", "log", "sin", "cos", "tan", "sqrt", "exp"}
)
_VOWELS = frozenset("aeiouy")
_SYNONYMS = {
    word: words[0]
    for words in (
        ("yes", "true", "correct"),
        ("no", "false", "incorrect"),
        ("no solution", "no solutions", "no real solution", "no real solutions", "no solution exists", "no solutions exist",
         "no such number", "no such numbers exist", "no roots", "no real roots", "empty set", "empty", "no valid solution"),
        ("undefined", "not defined", "does not exist", "dne", "doesn't exist", "not exist", "no limit"),
        ("infinitely many", "infinitely many solutions", "infinite solutions", "infinite number of solutions",
         "infinitely many values", "an infinite number of solutions", "infinite"),
    )
    for word in words
}  # fmt: skip


def is_phrase(normal: str) -> bool:
    """Whether an answer is of a kind that this module compares."""
    written = any(pattern.fullmatch(normal) for pattern in (_CHOICE, _LITERAL, _NAMED, _LETTER_LIST))
    return written or bool(numeral(normal) or time_of_day(normal) or words(normal))


@lru_cache(maxsize=8192)
def words(normal: str) -> str | None:
    """The words of a textual answer in lower case, without article, with synonyms replaced. None if it may be mathematics.

    Letters of which none is a word stay as they are written.
    """
    if normal in ("\\emptyset", "\\{\\}"):
        return "no solution"
    if _NUMBERED.fullmatch(normal):
        return _ORDINAL.sub("", normal.lower())
    if not _WORDS.fullmatch(normal):
        return None
    if not any(map(_is_word, re.split(r"[ '/-]+", normal))):
        # Letters are symbols: R-r is neither r-R nor RR.
        return normal
    folded = re.sub(r"[ '-]+", " ", normal.lower())
    folded = _ARTICLE.sub("", folded)
    return None if folded in _MATHEMATICAL else _SYNONYMS.get(folded, folded)


def _is_word(letters: str) -> bool:
    """Whether letters are a word, in one of the ways in which words are written, and no symbols side by side."""
    written = letters in (letters.lower(), letters.upper(), letters.capitalize())
    folded = letters.lower()
    return written and (folded in _SHORT_WORDS or (len(folded) > 2 and bool(_VOWELS & set(folded))))


def same_words(wanted: str, given: str) -> bool | None:
    """Compare two answers in words."""
    left, right = words(wanted), words(given)
    if not left or not right:
        return None
    # Letters that are not a word may be a product, so another order may be equal ("xy" and "yx").
    spelled = left.islower() and _is_word(left)
    return left == right or (None if not spelled and sorted(left) == sorted(right) else False)


def choice(normal: str) -> tuple[str, str]:
    """The letter of a choice, and its text as in "(B) 12" or "B. the second". Both are empty for other answers."""
    bare, match = _CHOICE.fullmatch(normal), _CHOICE_WITH_TEXT.fullmatch(normal)
    if bare:
        return bare[1].upper(), ""
    return ((match[1] or match[2]).upper(), match[3]) if match and not has_more_choices(match[3]) else ("", "")


def hedges(normal: str) -> bool:
    """Whether an answer that begins with a choice goes on with another one, or takes it back: "(B) or (C)", "B is wrong"."""
    return _HEDGED.match(normal) is not None


def same_letters(wanted: str, given: str) -> bool | None:
    """Compare several choices: AC, "A and C", A,C."""
    sides = wanted, given
    if not any(map(_LETTER_LIST.fullmatch, sides)):
        return None
    if not all(_LETTER_LIST.fullmatch(text) or _LETTERS.fullmatch(text) for text in sides):
        return None
    return set(re.findall("[A-J]", wanted)) == set(re.findall("[A-J]", given))


def same_literal(wanted: str, given: str) -> bool | None:
    """Compare dates and similar literals character by character, and names such as \\angle ABC, which may also be reversed.

    The corners of a triangle may have any order.
    """
    left, right = _NAMED.fullmatch(wanted), _NAMED.fullmatch(given)
    if left and right:
        if left[1] == right[1] == "triangle" and sorted(left[2]) == sorted(right[2]):
            return True
        return left[1] == right[1] and left[2] in (right[2], right[2][::-1])
    return wanted == given if _LITERAL.fullmatch(wanted) or _LITERAL.fullmatch(given) else None


def same_numeral(wanted: str, given: str) -> bool | None:
    """Compare numerals in a stated base digit by digit. If one side leaves out the base, the base of the other side applies."""
    left, right = numeral(wanted), numeral(given)
    if (left or right) and _BASED.fullmatch(wanted) and _BASED.fullmatch(given):
        # 4343_4 is not a numeral, because the digit 4 does not exist in base 4. It equals no numeral.
        return left == right
    for based, other in ((left, given), (right, wanted)):
        if based and _NUMERAL.fullmatch(other):
            return based[0] == other
    return None


def numeral(normal: str) -> tuple[str, int] | None:
    """The digits and base of 1A_{16}. None if a digit is too large for the base, as in CO_2."""
    match = _BASED.fullmatch(normal)
    if match is None:
        return None
    digits, base = match.group(1), int(match.group(2) or match.group(3))
    return (digits, base) if 2 <= base <= 36 and all(int(digit, 36) < base for digit in digits) else None


def same_time(wanted: str, given: str) -> bool | None:
    """Compare times of day. If one side leaves out am or pm, that of the other side applies."""
    left, right = time_of_day(wanted), time_of_day(given)
    if left is None or right is None:
        return None
    return left[0] == right[0] and (left[1] == right[1] or "" in (left[1], right[1]))


def time_of_day(normal: str) -> tuple[int, str] | None:
    """Seconds since midnight or noon, and "a" or "p" (am, pm), or "" if that is not known. None if it is not a time of day."""
    match = _CLOCK.fullmatch(_NAMED_TIMES.get(normal.lower(), normal))
    if match is None or (match.group(2) is None and match.group(4) is None):
        return None
    hours, minutes, seconds = (int(part or 0) for part in match.groups()[:3])
    if minutes > 59 or seconds > 59 or hours > 24:
        return None
    half = (match.group(4) or "").lower()[:1]
    if not half and hours % 24 in (0, *range(13, 24)):
        half = "p" if hours % 24 else "a"
    return (hours % 12 * 60 + minutes) * 60 + seconds, half
