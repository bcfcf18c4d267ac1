"""Numbers with units as people write them, and how two of them agree. Exact and pure; bounded by the length of a text."""

import re
from dataclasses import dataclass, replace
from fractions import Fraction

from pipeline.data.facts.names import normal_name
from pipeline.data.numbers import MOST_WORDS, SCALES, Fit, last_place, number_in_words
from pipeline.data.units import UNITS, Unit, convert

LONGEST_NUMBER = 60
"""Characters. A longer text is no number."""
LARGEST_POWER = 60
NEAR = Fraction(1, 100)
"""A measured value that is off by this share, without a tolerance, may be another measurement."""
FAR = Fraction(1, 4)
"""A number that is said to be approximate is wrong if it is off by more than this share."""
_NUMBER = re.compile(
    r"(?P<sign>[-+−–]?)\s?(?P<dollar>\$?)(?P<digits>\d{1,3}(?:,\d{3})+|\d{1,30})(?P<decimals>\.\d{1,30})?"
    r"(?:\s?(?:×|x|\*|·|\\times|\\cdot)\s?10\s?(?:\^|\*\*)\s?\{?(?P<power>[-−]?\d{1,3})\}?|[eE](?P<e>[-+]?\d{1,3}))?"
    r"(?![\d])\s?(?P<scale>hundred|thousand|million|billion|trillion|dozen)?\b"
    r"(?P<unit>.{0,40})",
    re.IGNORECASE | re.DOTALL,
)
_MAY_BEGIN = re.compile(r"[-+−–$\dzotfsenahm]", re.IGNORECASE)
_EXACT = re.compile(r"\d{1,2}|[12]\d{3}")
"""A number that is rarely rounded: a small one, or a year."""
_UNIT = re.compile(r"[^\d.,;:!?()]{0,40}\d?")
_TOLERANCE = re.compile(r"\s*(?:±|\+/-|\+-)?\s*(\d{1,12}(?:\.\d{1,12})?(?:[eE]-?\d{1,2})?)\s*(%?)\s*")
_SHARE = re.compile(r"\d{1,60}(?:\.\d{1,60})?\s?%?")
_PLUS_MINUS = re.compile(r"\s*(?:±|\+/-|\\pm)\s*")


@dataclass(frozen=True, slots=True)
class Tolerance:
    """How far a number may be off: by a number in the unit of the known value, or by a share of it."""

    size: Fraction = Fraction(0)
    relative: bool = False


EXACT = Tolerance()


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number with its unit. `digit`: the worth of its last digit that counts, 100 for 1,700. `unit`: the normal form of the
    text after it, empty without one."""

    number: Fraction
    digit: Fraction
    unit: str = ""


def _measures() -> dict[str, Unit]:
    """The units by the normal forms of their names, with areas, speeds and degrees of temperature."""
    found = {normal_name(name): unit for name, unit in UNITS.items()}
    for name, unit in UNITS.items():
        if (metres := convert(Fraction(1), unit, UNITS["mm"])) is not None:
            area = Unit("", "area", metres * metres)
            forms = (f"{name}2", f"{name}^2", f"{name}²", f"square {name}", f"sq {name}")
            found |= dict.fromkeys(map(normal_name, forms), area)
            for short, long, seconds in (("s", "second", 1), ("h", "hour", 3600)):
                speed = Unit("", "speed", metres / seconds)
                found |= {f"{name}/{short}": speed, f"{name} per {long}": speed, f"{name} / {short}": speed}
    found |= {"mph": found["mile per hour"], "km/hr": found["km/h"], "kph": found["km/h"]}
    celsius = Unit("", "temperature", shift=Fraction("273.15"))
    fahrenheit = Unit("", "temperature", Fraction(5, 9), Fraction("273.15") - Fraction(160, 9))
    for names, unit in (
        ("°c|c|celsius|degrees celsius|degree celsius|degrees c|centigrade", celsius),
        ("°f|f|fahrenheit|degrees fahrenheit|degree fahrenheit|degrees f", fahrenheit),
        ("°", UNITS["degree"]), ("%|percent", Unit("%", "share")), ("$", UNITS["dollar"]),
        ("metric tons|metric ton", UNITS["tonne"]),
    ):  # fmt: skip
        found |= dict.fromkeys(names.split("|"), unit)
    return found


MEASURES = _measures()


def read_quantity(text: str) -> Quantity | None:
    """A text that is a number with or without a unit, and nothing else; None for other texts. `1.4 million km2`, `eight`."""
    text = text.strip().strip("*").replace("\\,", " ").replace("{,}", ",").rstrip(".")
    if len(text) > LONGEST_NUMBER or not _MAY_BEGIN.match(text):
        return None
    written = _NUMBER.fullmatch(text)
    found = _number(written) if written else _in_words(text)
    if found is None or not _UNIT.fullmatch(found.unit.strip()):
        return None
    return found if found.unit == "$" else replace(found, unit=read_unit(found.unit))


def _in_words(text: str) -> Quantity | None:
    """The longest number in words at the beginning of a text, with the rest as its unit. A share such as "half" is none: it may
    be a share of something."""
    words = text.split(" ")
    for at in range(min(len(words), MOST_WORDS), 0, -1):
        number = number_in_words(" ".join(words[:at]))
        if number is not None and (abs(number) >= 1 or not number):
            return Quantity(number, Fraction(1 if number < 100 else last_place(str(number))), " ".join(words[at:]))
    return None


def read_unit(text: str) -> str:
    """The normal form of the text of a unit."""
    unit = normal_name(text)
    return unit if unit in MEASURES or not unit.startswith("\\") else ""


def _number(found: re.Match[str]) -> Quantity | None:
    digits, decimals = found["digits"].replace(",", ""), found["decimals"] or ""
    power = int((found["power"] or found["e"] or "0").replace("−", "-"))
    unit, before = found["unit"], found.string[: found.start("unit")]
    joined = unit[:1].isalpha() and before[-1].isalpha()
    if abs(power) > LARGEST_POWER or (found["dollar"] and unit.strip()) or joined:
        return None
    unit = found["dollar"] or unit
    factor = Fraction(10) ** power * SCALES.get((found["scale"] or "").lower(), 1)
    number = Fraction(digits + decimals) * factor * (-1 if found["sign"] in {"-", "−", "–"} else 1)
    if decimals:
        return Quantity(number, factor / 10 ** (len(decimals) - 1), unit)
    exact = _EXACT.fullmatch(found[0].strip()) or not number
    return Quantity(number, factor if exact else factor * last_place(digits), unit)


def read_tolerance(text: str) -> Tolerance | None:
    """A tolerance as a table has it: `5`, `0.01`, `1%`, `±2`. None if a text is none."""
    found = _TOLERANCE.fullmatch(text)
    if found is None:
        return None
    size = Fraction(found[1])
    return Tolerance(size / 100, relative=True) if found[2] else Tolerance(size)


def split_tolerance(text: str) -> tuple[str, Tolerance]:
    """What a text like `8849 ± 5 m` or `3.7 ± 1%` says of its tolerance, and the text without it."""
    sign = _PLUS_MINUS.search(text)
    share = _SHARE.match(text, sign.end()) if sign else None
    tolerance = read_tolerance(share[0]) if share else None
    if sign is None or share is None or tolerance is None:
        return text, EXACT
    return f"{text[: sign.start()]} {text[share.end() :]}".strip(), tolerance


def fit_of(claimed: Quantity, known: Quantity, tolerance: Tolerance = EXACT, *, loosely: bool = False) -> Fit:
    """How a claimed number agrees with a known one. `loosely`: the claim says that it is approximate.

    Numbers in different units are converted; other units are doubtful, and a unit where the known number has none. A number
    without a unit can agree with one that has a unit, and is never apart from it. A rounding of the known number is doubtful,
    or equal where the claim is approximate.
    """
    number, digit, converted = claimed.number, claimed.digit, False
    one, other = MEASURES.get(claimed.unit), MEASURES.get(known.unit)
    if claimed.unit != known.unit and (one is None or one != other):
        changed = convert(number, one, other) if one and other else None
        if claimed.unit and changed is None:
            return Fit.DOUBTFUL
        if one and other and changed is not None:
            digit, converted = (convert(number + digit, one, other) or changed) - changed, True
            number = changed
    off = abs(number - known.number)
    if off <= tolerance.size * (abs(known.number) if tolerance.relative else 1):
        return Fit.EQUAL
    if off < digit or (off < known.digit and known.number.denominator != 1):
        return Fit.EQUAL if loosely and 2 * off <= digit else Fit.DOUBTFUL
    if not claimed.unit and known.unit:
        return Fit.DOUBTFUL
    share = off / abs(known.number) if known.number else Fraction(1)
    measured = bool(known.unit) or known.number.denominator != 1
    if (share <= FAR and loosely) or ((converted or (measured and tolerance == EXACT)) and share <= NEAR):
        return Fit.DOUBTFUL
    return Fit.APART
