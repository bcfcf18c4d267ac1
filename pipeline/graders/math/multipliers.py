"""Words after a number that make it another number: "12 thousand" is 12,000. Pure."""

import re

from pipeline.data.numbers import SCALES

_MULTIPLIER = re.compile(rf"[$* ]{{0,4}}\b({'|'.join(SCALES)})\b", re.IGNORECASE)
_CHANGE = re.compile(
    r"[$* ]{0,4}\b(?:factorial|squared|cubed|times|plus|minus|choose|divided|multiplied|tens|dozens|hundreds|thousands|millions"
    r"|billions|and a|to the power|per ?cent|percentage|halves|thirds|fifths|sixths|sevenths|eighths|ninths|tenths|hundredths"
    r"|thousandths)\b",
    re.IGNORECASE,
)


def with_multiplier(number: str, rest: str) -> str | None:
    """The number with the word that multiplies it at the beginning of the rest. None if another word changes the number."""
    if match := _MULTIPLIER.match(rest):
        return f"{number} {match.group(1).lower()}"
    return None if _CHANGE.match(rest) else number
