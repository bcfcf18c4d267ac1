"""Numbers in English words: "twenty-five", "one hundred and five", "two thirds", "half". Pure."""

from fractions import Fraction

_SMALL = (
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
    "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
)  # fmt: skip
_TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_UNITS = {word: value for value, word in enumerate(_SMALL)} | {word: 10 * tens for tens, word in enumerate(_TENS, 2)}
_SCALES = {"thousand": 10**3, "million": 10**6, "billion": 10**9}
_PARTS = {
    "half": 2, "halves": 2, "third": 3, "thirds": 3, "quarter": 4, "quarters": 4, "fourth": 4, "fourths": 4, "fifth": 5,
    "fifths": 5, "sixth": 6, "sixths": 6, "seventh": 7, "sevenths": 7, "eighth": 8, "eighths": 8, "ninth": 9, "ninths": 9,
    "tenth": 10, "tenths": 10, "hundredth": 100, "hundredths": 100,
}  # fmt: skip
MAX_WORDS = 12
# "third" alone is a place in a row.
_ALONE = frozenset({"half", "quarter"})


def number_in_words(text: str) -> Fraction | None:
    """The number that a phrase in letters, blanks and hyphens names, else None."""
    words = [word for word in text.lower().replace("-", " ").split() if word != "and"]
    if not 0 < len(words) <= MAX_WORDS:
        return None
    parts = _PARTS.get(words[-1])
    if parts is None:
        whole = _whole(words)
        return None if whole is None else Fraction(whole)
    counted = [word for word in words[:-1] if word not in ("a", "an")]
    if not counted:
        return Fraction(1, parts) if len(words) > 1 or words[-1] in _ALONE else None
    count = _whole(counted)
    return None if count is None or "and" in text.lower().split() else Fraction(count, parts)


def _whole(words: list[str]) -> int | None:
    total = group = 0
    last = 0
    for word in words:
        if word in _UNITS:
            value = _UNITS[word]
            # "twenty five" adds up; "five five" and "five twenty" are no numbers.
            if last and not (last >= 20 and value < 10 and value and last % 10 == 0):
                return None
            group += value
            last = value or 1
        elif word == "hundred" and 0 < group < 20:
            group *= 100
            last = 0
        elif word in _SCALES and group:
            total += group * _SCALES[word]
            group = last = 0
        else:
            return None
    return total + group
