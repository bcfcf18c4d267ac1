"""Numbers in English words, as exact fractions: twenty-one, two thirds, three and a half, half a dozen, two point five. Pure.

An ordinal is read only where it is asked for, and "third" alone never: it may be 3 or 1/3. A list such as "five and ten", and
"a hundred and a half", which may be 150, are no numbers.
"""

import re
from enum import Enum, auto
from fractions import Fraction


class Fit(Enum):
    """How a number that is claimed agrees with a known one."""

    EQUAL = auto()
    DOUBTFUL = auto()
    APART = auto()


MOST_WORDS = 12
_SMALL = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen "
    "nineteen"
)
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
_NAMED = {word: value for value, word in enumerate(_SMALL.split())} | {
    word: 10 * tens for tens, word in enumerate(_TENS.split(), 2)
}
SCALES = {"dozen": 12, "hundred": 100, "thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12}
"""Words after a number that multiply it."""
_IRREGULAR = {
    "one": "first", "two": "second", "three": "third", "five": "fifth", "eight": "eighth", "nine": "ninth", "twelve": "twelfth",
}  # fmt: skip
_ORDINALS = {
    _IRREGULAR.get(word) or word.removesuffix("y") + ("ieth" if word[-1] == "y" else "th"): word
    for word in (*_NAMED, "hundred", "thousand", "million", "billion")
}
_SIZES = _NAMED | SCALES
_ONE_PART = {"half": 2, "quarter": 4} | {name: _SIZES[word] for name, word in _ORDINALS.items() if _SIZES[word] > 2}
PARTS = _ONE_PART | {f"{name}s": size for name, size in _ONE_PART.items()} | {"halves": 2}
"""Words for parts of one, such as `thirds`, and how many of them make one."""
NUMBER_WORDS = frozenset({*_NAMED, *SCALES, *(f"{word}s" for word in SCALES), *PARTS, "tens"})
_ARTICLES = frozenset({"a", "an"})
_DIGITS = re.compile(r"\d{1,30}(?:\.\d{1,30})?")


def last_place(digits: str) -> int:
    """The worth of the last digit of a whole number that is not zero: of 1700 it is 100."""
    return int(10 ** (len(digits) - len(digits.rstrip("0"))))


def number_in_words(text: str, *, ordinals: bool = False) -> Fraction | None:
    """The number that a text names as a whole, or None. `ordinals`: "the sixth" is 6. `1 and a half` may begin with digits."""
    words = text.lower().replace("-", " ").split()
    if not 0 < len(words) <= MOST_WORDS or words[-1] == "and":
        return None
    if words[0] in ("minus", "negative"):
        number = number_in_words(" ".join(words[1:]))
        return None if number is None else -number
    number = _fraction(words)
    if number is None and words[-1] in SCALES and (part := _fraction(words[:-1])) is not None:
        number = part * SCALES[words[-1]]
    # An article alone is the name of a choice, or the begin of a phrase.
    if number is None and not (len(words) == 1 and words[0] in _ARTICLES):
        number = _whole(words)
    if number is None and ordinals:
        *before, last = words[words[0] == "the" :] or [""]
        if last != ("second" if before else "third") and last in _ORDINALS:
            number = _whole([*before, _ORDINALS[last]])
    return number


def _before_article(words: list[str]) -> list[str]:
    """What stands before "of a" in "a quarter of a million"."""
    while len(words) > 1 and words[-1] in {"of", *_ARTICLES}:
        words = words[:-1]
    return words


def _fraction(words: list[str]) -> Fraction | None:
    """Two thirds, three and a half, two point five. None for whole numbers."""
    words = _before_article(words)
    if "point" in words[1:-1]:
        at = words.index("point")
        places = [_NAMED.get(word, 10) for word in words[at + 1 :]]
        whole = _whole(words[:at]) if max(places) < 10 else None
        return None if whole is None else whole + Fraction(int("".join(map(str, places))), 10 ** len(places))
    if "and" not in words[1:]:
        return _part(words)
    at = len(words) - 1 - words[::-1].index("and")
    count, part = words[:at], _part(words[at + 1 :])
    if part is None or part >= 1 or count[-1] in SCALES:
        return None
    whole = Fraction(count[0]) if len(count) == 1 and _DIGITS.fullmatch(count[0]) else _whole(count)
    return None if whole is None else whole + part


def _part(words: list[str]) -> Fraction | None:
    size = PARTS.get(words[-1]) if words else None
    counted = [word for word in words[:-1] if word not in _ARTICLES]
    if size is None or (not counted and len(words) == 1 and words[-1] not in ("half", "quarter")):
        return None
    count = _whole(counted) if counted else Fraction(1)
    # "twenty third" is an ordinal; "twenty thirds" are parts.
    return None if count is None or (words[-1] in _ONE_PART and count >= 20) else count / size


def _whole(words: list[str]) -> Fraction | None:
    total = group = last = 0
    for at, word in enumerate(words):
        value = _NAMED.get(word)
        if value is not None:
            # "twenty five" is a sum; "five five" and "five twenty" are not numbers.
            if last and not (last >= 20 and 0 < value < 10 and last % 10 == 0):
                return None
            group, last = group + value, value or 1
        elif word in _ARTICLES and at == 0:
            group = 1
        elif (word == "hundred" and 0 < group < 20) or (word == "dozen" and group and word == words[-1]):
            group, last = group * SCALES[word], 0
        elif word in SCALES and group and SCALES[word] >= 1000:
            total, group, last = total + group * SCALES[word], 0, 0
        elif word != "and" or at == 0:
            return None
    return Fraction(total + group)
