r"""Equality that needs no algebra: same spelling, same number, same words. Pure, microseconds, exact.

What it holds to:
- numbers are equal as fractions, never as floats: 1/3 is not 0.333333 unless a relative tolerance is asked for;
- "50%" equals "50" (the sign is often left out) and "0.5" (the same number), but "50%" never equals "0.5%";
- a unit behind a number is ignored, unless both sides name different well-known units;
- words are compared as words, never as products of symbols: "east" is not "seat".
Anything else is None: undecided here, not wrong.
"""

import re
from functools import lru_cache

from pipeline.grading.exact import Exact, exact_value
from pipeline.grading.normal import normal_form
from pipeline.records import Verdict

__all__ = ["is_plain", "normal_form", "quick_verdict"]

_CHOICE = re.compile(r"(?:[Oo]ption |[Cc]hoice )?\(?([A-Ja-j])\)?")
_CHOICE_WITH_TEXT = re.compile(r"(?:\(([A-J])\)|([A-J])[).:])[ \\\w$(-].*", re.DOTALL)
_WORDS = re.compile(r"[A-Za-z][A-Za-z]+(?:[ '-]+[A-Za-z]+)*|[A-Za-z](?:[ '-]+[A-Za-z]+)+")
_SENTENCE = re.compile(r"(?:[A-Za-z][a-z'-]*,? ){1,10}(?=[-+$£€]?[\d.\\])")
_NOT_A_STATEMENT = re.compile(
    r"\b(?:not|or|and|no|less|more|than|least|most|between|if|over|out|root|negative|minus|half|step|part|case|question|problem|example|equation)\b",
    re.I,
)
_ARTICLE = re.compile(r"^(?:a|an|the) ")
_LABEL = re.compile(r"^([A-Za-z](?:_(?:\w|\{\w+\}))?) ?= ?(?=[^=])")
_BASED = re.compile(r"([0-9A-Z]+)_\{?(\d+)\}?")
_CLOCK = re.compile(r"(\d{1,9}):(\d{1,9})")
_SHORT_WORDS = frozenset({"no", "on", "yes", "up", "or", "is", "ne", "nw", "se", "sw", "ok"})
_MATHEMATICAL = frozenset({"pi", "infinity", "inf", "infty", "oo", "nan", "i", "e", "ln", "log", "sin", "cos", "tan"})
_VOWELS = frozenset("aeiouy")


def quick_verdict(gold: str, answer: str, *, relative_tolerance: float = 0.0) -> Verdict | None:
    """CORRECT or INCORRECT where that is certain without algebra, else None."""
    if gold == answer and gold:
        return Verdict.CORRECT
    if gold.isdigit() and answer.isdigit() and gold.isascii() and answer.isascii() and not relative_tolerance:
        return Verdict.CORRECT if gold.lstrip("0") == answer.lstrip("0") else Verdict.INCORRECT
    wanted, given = _gold_form(gold), normal_form(answer)
    if wanted == given:
        return Verdict.CORRECT if wanted else None
    if not wanted or not given:
        return None
    right = _equal(wanted, given, relative_tolerance)
    return None if right is None else Verdict.CORRECT if right else Verdict.INCORRECT


# Every rollout of a problem asks for the same gold.
_gold_form = lru_cache(maxsize=4096)(normal_form)


def is_plain(gold: str) -> bool:
    """Whether a gold answer is one this module decides on: a number, a word or a choice letter."""
    normal = normal_form(gold)
    return bool(
        exact_value(normal) or any(form.fullmatch(normal) for form in (_CHOICE, _BASED, _CLOCK)) or _words(normal)
    )


def _equal(wanted: str, given: str, tolerance: float) -> bool | None:
    wanted_label, given_label = _LABEL.match(wanted), _LABEL.match(given)
    if wanted_label and given_label and wanted_label.group(1) != given_label.group(1):
        return None
    right = exact_value(wanted[wanted_label.end() :] if wanted_label else wanted)
    number = exact_value(given[given_label.end() :] if given_label else given)
    if right and not number:
        number = _number_of_sentence(given)
    if right and number:
        return _same_number(right, number, tolerance)
    choice = _CHOICE.fullmatch(wanted)
    if choice:
        return _same_choice(choice.group(1), given, number)
    words, said = _words(wanted), _words(given)
    if words and said:
        return _same_words(words, said)
    if right:
        other = _CHOICE.fullmatch(given)
        return False if (said and said not in _MATHEMATICAL) or (other and other.group(1) not in "ei") else None
    if words and number:
        return None if words in _MATHEMATICAL else False
    return _same_marks(wanted, given)


def _number_of_sentence(given: str) -> Exact | None:
    """The number of "Hillary has 7 nickels": words, one number, and at most its unit."""
    match = _SENTENCE.match(given)
    if match is None or _NOT_A_STATEMENT.search(match.group()):
        return None
    return exact_value(given[match.end() :])


def _same_number(right: Exact, number: Exact, tolerance: float) -> bool | None:
    if right.unit and number.unit and right.unit != number.unit:
        return False if right.value == number.value else None
    values = {number.value}
    wanted = {right.value}
    if right.percent != number.percent:
        values |= {number.value / 100} if number.percent else set()
        wanted |= {right.value / 100} if right.percent else set()
    if values & wanted:
        return True
    if tolerance and (right.decimal or number.decimal):
        return any(abs(a - b) <= tolerance * max(abs(a), abs(b)) for a in values for b in wanted)
    return False


def _same_choice(letter: str, given: str, number: Exact | None) -> bool | None:
    match = _CHOICE.fullmatch(given) or _CHOICE_WITH_TEXT.fullmatch(given)
    if match:
        return letter.upper() == next(group for group in match.groups() if group).upper()
    if (number and letter not in "ei") or (_words(given) and given.lower() not in _MATHEMATICAL):
        return False
    return None


def _words(normal: str) -> str | None:
    """The words of a plainly textual answer, folded; None if it may be mathematics."""
    if not _WORDS.fullmatch(normal):
        return None
    folded = re.sub(r"[ '-]+", " ", normal.lower())
    folded = _ARTICLE.sub("", folded)
    return None if folded in _MATHEMATICAL else folded


def _same_words(words: str, said: str) -> bool | None:
    if words == said:
        return True
    # Letters in another order may be a product ("xy" and "yx") where they are no word.
    spelled = words in _SHORT_WORDS or (len(words) > 2 and bool(_VOWELS & set(words)))
    return None if not spelled and sorted(words) == sorted(said) else False


def _same_marks(wanted: str, given: str) -> bool | None:
    """Numerals of a named base, and clock times or ratios, are compared mark by mark."""
    based, other = _BASED.fullmatch(wanted), _BASED.fullmatch(given)
    if based and other:
        return based.groups() == other.groups()
    clock, hour = _CLOCK.fullmatch(wanted), _CLOCK.fullmatch(given)
    if clock and hour:
        a, b, c, d = (int(text) for text in (*clock.groups(), *hour.groups()))
        return (a, b) == (c, d) or (None if a * d == b * c else False)
    return None
