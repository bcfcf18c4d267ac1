r"""Reads plain numbers in digits or English words as exact fractions, and recognizes the unit after a number. Pure.

It reads 1,234.5  1 000  -3/4  \frac{3}{4}  1 1/2  1\frac{1}{2}  1.5e-3  1.5\times10^{-3}  10^{6}  0.1\overline{6}  two thirds
$5  50%  12 cm  7 nickels  3 hours 30 minutes  90^\circ  3 million  1.234,5. It does not read 5x  2k  7 pm  5 or 6  0,111.
"""

import re
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise

from pipeline.data.numbers import NUMBER_WORDS, SCALES, number_in_words
from pipeline.data.units import UNITS, convert
from pipeline.graders.math.limits import MAX_DIGITS

MAX_POWER = 400
COUNTED = "of"
DEGREE = "degree"
DIRECTIONS = frozenset({"north", "south", "east", "west", "left", "right", "up", "down"})
MAX_UNIT_WORDS = 4

_WHOLE = r"(?:[1-9]\d{0,2}(?:,\d{3})+|[1-9]\d?(?:,\d{2})+,\d{3}|[1-9]\d{0,2}(?: \d{3})+|\d+)"
_DECIMAL = rf"(?:{_WHOLE}(?:\.\d*)?|\.\d+)"
_SIGNED = rf"[+-]?{_DECIMAL}"
_NUMBER = re.compile(
    rf"(?P<sign>[+-]?)(?:"
    rf"(?P<lead>\d+)(?:(?: |\+)?\\frac\{{(?P<mixtop>\d+)\}}\{{(?P<mixlow>\d+)\}}| (?P<plaintop>\d+)/(?P<plainlow>\d+))"
    rf"|\\frac\{{(?P<top>{_SIGNED})\}}\{{(?P<low>{_SIGNED})\}}"
    rf"|(?P<over>{_DECIMAL})/(?P<under>{_DECIMAL})"
    rf"|(?P<head>\d*\.\d*)\\(?:overline|bar)\{{(?P<cycle>\d+)\}}"
    rf"|(?P<base>\d+)\^(?:\{{(?P<power>[+-]?\d+)\}}|(?P<digit>\d+))"
    rf"|(?P<mantissa>{_DECIMAL})(?:[eE](?P<exponent>[+-]?\d+)"
    rf"|(?:\\times|\\cdot|\*|x) ?10\^(?:[{{(](?P<ten>[+-]?\d+)[}})]|(?P<tendigit>-?\d{{1,3}})))?"
    rf")"
)
# 01/02 is a date.
_LEADING_ZERO = re.compile(r"[+-]?(?:0\d+/|\d+/0\d)")
# 1.234,5 and 1.234.567 are only possible in European notation.
_EUROPEAN = re.compile(r"[+-]?[1-9]\d{0,2}(?:(?:[. ]\d{3})+,\d+|(?:\.\d{3}){2,})(?![\d.,])")
_TO_POINT = str.maketrans({".": "", " ": "", ",": "."})
_COMMA_DECIMAL = re.compile(r"[+-]?(?:0|[1-9]\d*),\d+")
_SURE_COMMA_DECIMAL = re.compile(r"[+-]?0,\d{2,}")
_COMMA_WITH_UNIT = re.compile(
    r"(?P<before>[$€£¥₹]? ?)[+-]?(?:0|[1-9]\d{0,20}),(?P<places>\d{1,20})(?P<after> ?[^\d.,;]{0,40})"
)
_CURRENCY = re.compile(r"^([+-]?)\s*(?:US)?[$£€¥₹]\s*|^([+-]?)\s*(?:Rs\.?|USD|EUR|GBP)\s*(?=\d)")
_NEGATIVE = re.compile(r"^(?:negative|minus)\s+(?=[\d.\\])", re.IGNORECASE)
_LETTERS = re.compile(r"[A-Za-z]+(?:[ -][A-Za-z]+)*")
_MONEY_UNITS = {"$": "dollar", "€": "euro", "£": "pound", "¥": "yen", "₹": "rupee"}
_MONEY = re.compile(r"[$€£¥₹]")
_APPROXIMATE = re.compile(r"^(?:approximately|about|around|exactly|the(?= \d)|\\approx)\s*", re.IGNORECASE)
_PERCENT = re.compile(r"^ ?(?:%|percent(?:age)?\b|per cent\b|pct\b)(?: points?$)?", re.IGNORECASE)
_UNIT = re.compile(r"^ ?(?P<name>[A-Za-z][A-Za-z'-]*(?:[ /][A-Za-z][A-Za-z'-]*)*)(?:\^\{?[23]\}?)?$")
_TRAILING_UNIT = re.compile(
    r"(?<=[\w})]) (?:[A-Za-z]{2,}(?:[ /][A-Za-z]+)*)(?:\^\{?[23]\}?)?$|(?<=[\d})])(?:cm|mm|km|ft|kg|mph)(?:\^\{?[23]\}?)?$"
)
_SCALE = re.compile(rf"^ ?({'|'.join(SCALES)})\b", re.IGNORECASE)
_NO_UNITS = (
    "and or to of out over under plus minus times divided by mod am pm is are if sin cos tan log ln pi infinity i e th st nd "
    "rd not no less more than base squared cubed factorial choose remainder modulo below above"
)
_NOT_UNITS = NUMBER_WORDS.union(_NO_UNITS.split())
_GLUED = re.compile(r"\d+(?:\.\d+)?[mgshL]")
_DEGREES = re.compile(r"\^\\circ(?: ?([CF]))?")
# 6th, 6^{th} and 1/6th.
_ORDINAL = re.compile(r"[ -]?(?:\^ ?\{? ?)?(?:st|nd|rd|th)s?\b(?: ?\})?")
_GLOSS = re.compile(r"([A-Za-z][A-Za-z -]{1,99}?) ?\(([\d.,]{1,40})\)")
# A remark such as "(seven)" after a number is ignored.
_REMARK = re.compile(r" ?\([A-Za-z][A-Za-z -]*\)$")
_UNIT_WORDS = re.compile(
    r"(?:(square|sq|cubic|cu) )?([A-Za-z]+)(?:\^\{?([23])\}?)?(?: ?(?:/| per ) ?([A-Za-z]+)(?:\^\{?([23])\}?)?)?",
    re.IGNORECASE,
)
_SPREAD = re.compile(r"(\S+(?: \S+){0,2}) (\S+) and (an? (?:half|quarter|third))", re.IGNORECASE)
_PART = re.compile(r"(\d+(?:\.\d+)?) ?([A-Za-z]+)(?:,? and ?| ?,)? ?")


@dataclass(frozen=True, slots=True)
class Exact:
    """A number and how it was written. `unit` is the normalized unit or None. `decimal`: written with a decimal point.

    `places` is the number of digits after the point, zeros at the end included. None for powers of ten, fractions and
    multipliers such as "million".
    """

    value: Fraction
    percent: bool = False
    unit: str | None = None
    decimal: bool = False
    places: int | None = None


@lru_cache(maxsize=8192)
def exact_value(normal: str) -> Exact | None:
    """Read a normal form as one plain number. None if it is, or may be, something else."""
    if normal.isascii() and normal.isdigit():
        return Exact(Fraction(int(normal))) if len(normal) <= MAX_DIGITS else None
    if normal[:1].isalpha() and _LETTERS.fullmatch(normal):
        return _in_words(normal)
    text = _CURRENCY.sub(r"\1\2", _NEGATIVE.sub("-", _APPROXIMATE.sub("", normal)))
    if text != normal and (money := _MONEY.search(normal)):
        exact = exact_value(text)
        return replace(exact, unit=exact.unit or _MONEY_UNITS[money.group()]) if exact else None
    gloss = _GLOSS.fullmatch(text)
    if gloss:
        named, written = _in_words(gloss[1]), exact_value(gloss[2])
        return written if named and written and named.value == written.value else None
    match = _EUROPEAN.match(text)
    if match:
        text = text[: match.end()].translate(_TO_POINT) + text[match.end() :]
    match = _NUMBER.match(text)
    if match is None or not match.group():
        return None
    value = _value(match)
    rest = text[match.end() :]
    if value is None or (rest and rest[0] in "0123456789.,") or _LEADING_ZERO.match(text):
        return None
    decimal = "." in match.group() and match["cycle"] is None
    plain = decimal and match["mantissa"] and match.end("mantissa") == match.end()
    places = len(match["mantissa"].rpartition(".")[2]) if plain else None
    if not decimal and (ordinal := _ORDINAL.match(rest)):
        rest = rest[ordinal.end() :]
    if percent := _PERCENT.match(rest):
        tail = rest[percent.end() :].strip()
        return None if tail and not _unit(" " + tail) else Exact(value, percent=True, decimal=decimal)
    if scale := _SCALE.match(rest):
        value, rest, places = value * SCALES[scale.group(1).lower()], rest[scale.end() :], None
    rest = _REMARK.sub("", rest)
    unit = None
    if degrees := _DEGREES.fullmatch(rest):
        unit = f"{DEGREE} {degrees[1]}" if degrees[1] else DEGREE
    elif rest.strip():
        unit = _MONEY_UNITS.get(rest.strip()) or _unit(rest)
        if unit is None:
            return _compound(text) or _in_words(text)
    return Exact(value, unit=unit, decimal=decimal, places=places)


def _in_words(phrase: str) -> Exact | None:
    """The number in a phrase such as "seven", "seven apples", "1 and a half hours" or "an hour and a half"."""
    if len(phrase) > MAX_DIGITS:
        return None
    number = number_in_words(phrase, ordinals=True)
    if number is not None:
        return Exact(number)
    if spread := _SPREAD.fullmatch(phrase):
        phrase = f"{spread[1]} and {spread[3]} {spread[2]}"
    words = phrase.split(" ")
    for at in range(len(words) - 1, max(0, len(words) - 1 - MAX_UNIT_WORDS), -1):
        number, thing = number_in_words(" ".join(words[:at])), " ".join(words[at:])
        if number is not None:
            unit = _unit(f" {thing}")
            return Exact(number, unit=unit) if unit else None
    return None


def unit_named(words: str) -> str | None:
    """The normalized name of a unit, such as `cm^2` for "square centimeters", or `m/s^2`. None if a part is not known."""
    match = _UNIT_WORDS.fullmatch(words.strip())
    if match is None:
        return None
    squared, above, power, below, below_power = match.groups()
    if above == "mph":
        above, below = "mi", "h"
    first, second = UNITS.get(above), UNITS.get(below or "")
    if first is None or (below and second is None):
        return None
    power = power or {"s": "2", "c": "3"}.get((squared or "")[:1])
    return "".join(
        [
            first.name,
            f"^{power}" if power else "",
            f"/{second.name}" if second else "",
            f"^{below_power}" if below_power else "",
        ]
    )


def decimal_comma(normal: str, *, sure: bool) -> Fraction | None:
    """The value of 2,5 as a European decimal, or None. It may also be a list, so the caller uses this as a second reading.

    With `sure`, only texts that nobody writes as a list are read: 0,111.
    """
    written = (_SURE_COMMA_DECIMAL if sure else _COMMA_DECIMAL).fullmatch(normal) and len(normal) <= MAX_DIGITS
    return Fraction(normal.replace(",", ".")) if written and not re.fullmatch(_WHOLE, normal.lstrip("+-")) else None


def with_point(normal: str) -> str:
    """A number with a decimal comma and a known unit or currency, as 3,50 EUR, with a decimal point. Other texts as they are.

    3,500 EUR stays, because its comma separates thousands, and so does 3, 50 EUR.
    """
    match = _COMMA_WITH_UNIT.fullmatch(normal)
    if match is None or len(match["places"]) == 3 or not (match["before"] or match["after"].strip()):
        return normal
    pointed = normal.replace(",", ".")
    number = exact_value(pointed)
    return pointed if number and number.unit and not number.unit.startswith(COUNTED) else normal


def is_money(normal: str) -> bool:
    """Whether a text is an amount of money."""
    number = exact_value(normal)
    return number is not None and (number.unit == "cent" or number.unit in _MONEY_UNITS.values())


def convert_unit(number: Exact, unit: str) -> Fraction | None:
    """The value of a number in another unit of the same quantity, or None if it cannot be converted."""
    have, want = UNITS.get(number.unit or ""), UNITS.get(unit)
    return convert(number.value, have, want) if have and want else None


def _compound(text: str) -> Exact | None:
    """Read "3 hours 30 minutes", descending units of one quantity, as a number in the first unit."""
    parts = _PART.findall(text)
    if not 2 <= len(parts) <= MAX_UNIT_WORDS or _PART.sub("", text):
        return None
    units = [UNITS[name] for _, name in parts if name in UNITS]
    if len(units) < len(parts) or any(a.quantity != b.quantity or a.size <= b.size for a, b in pairwise(units)):
        return None
    total = sum((Fraction(number) * unit.size for (number, _), unit in zip(parts, units, strict=True)), Fraction(0))
    return Exact(total / units[0].size, unit=units[0].name)


def number_before_letter(normal: str) -> Fraction | None:
    """The number in "5m", where the letter may be a unit or a factor. None for other texts."""
    return Fraction(normal[:-1]) if _GLUED.fullmatch(normal) and len(normal) <= MAX_DIGITS else None


def without_unit(normal: str) -> str:
    """An expression without the unit words after it: `2\\pi cm` gives `2\\pi`. A single letter stays: it may be a factor."""
    match = _TRAILING_UNIT.search(normal)
    return normal[: match.start()] if match and _unit(match.group()) else normal


def trailing_unit(normal: str) -> str | None:
    """The known unit after an expression, as `unit_named` writes it, or None."""
    match = _TRAILING_UNIT.search(normal)
    return unit_named(match.group()) if match else None


def _unit(rest: str) -> str | None:
    """The normalized unit that the words after a number name. None if they may be something else.

    Counted things cannot be converted, but apples are not oranges. Metres times seconds are `m s`, which is not m/s.
    """
    match = _UNIT.match(rest)
    # "5x" and "5m" may be products; "5cm", "5 m" and "5 nickels" are not.
    if match is None or len(rest) == 1:
        return None
    words = re.split(r"[ /]", match.group("name"))
    if len(words) > MAX_UNIT_WORDS or any(word.lower() in _NOT_UNITS for word in words):
        return None
    named = all(word in UNITS or word in ("per", "square", "cubic", "sq", "cu") for word in words)
    if not named and (not rest.startswith(" ") or any(len(word) < 3 and word not in UNITS for word in words)):
        return None
    known = unit_named(rest)
    if known is None and len(words) > 1 and all(word in UNITS for word in words):
        return " ".join(UNITS[word].name for word in words)
    return known or " ".join([COUNTED, *(word.removesuffix("s") for word in re.findall(r"[a-z]+", rest.lower()))])


def _value(match: re.Match[str]) -> Fraction | None:
    part = {name: text for name, text in match.groupdict().items() if text}
    if any(len(text) > MAX_DIGITS for text in part.values()):
        return None
    sign = -1 if part.get("sign") == "-" else 1
    if "lead" in part:
        top, low = part.get("mixtop") or part["plaintop"], part.get("mixlow") or part["plainlow"]
        return sign * (int(part["lead"]) + Fraction(int(top), int(low))) if int(low) else None
    if "top" in part or "over" in part:
        below = _decimal(part.get("low") or part["under"])
        return sign * _decimal(part.get("top") or part["over"]) / below if below else None
    if "cycle" in part:
        head = part["head"]
        places = len(head) - head.index(".") - 1
        cycle = Fraction(int(part["cycle"]), (10 ** len(part["cycle"]) - 1) * 10**places)
        return sign * ((_decimal(head) if head != "." else Fraction(0)) + cycle)
    if "base" in part:
        power = _power(part.get("power") or part["digit"])
        base = int(part["base"])
        return None if power is None or (base == 0 and power <= 0) or base > 10**6 else sign * Fraction(base) ** power
    power = _power(part.get("exponent") or part.get("ten") or part.get("tendigit") or "0")
    return None if power is None else sign * _decimal(part["mantissa"]) * Fraction(10) ** power


def _power(text: str) -> int | None:
    return int(text) if len(text) <= 5 and abs(int(text)) <= MAX_POWER else None


def _decimal(text: str) -> Fraction:
    return Fraction(text.replace(",", "").replace(" ", "").rstrip(".") or "0")
