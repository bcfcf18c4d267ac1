"""Factors that words of a sentence may stand for: of units of measure, of percent, of counts. Pure."""

from fractions import Fraction

from pipeline.data.units import UNITS

# Words that may stand for a factor which is not written. An equation that is wrong by this factor is doubtful.
_FACTORS: dict[str, tuple[int, ...]] = {
    "%": (100,), "percent": (100,), "percentage": (100,), "cents": (100,), "cent": (100,), "¢": (100,), "penny": (100,),
    "pennies": (100,), "$": (100,), "dozen": (12,), "dozens": (12,), "pair": (2,), "pairs": (2,), "couple": (2,),
    "couples": (2,), "both": (2,), "twice": (2,), "double": (2,), "half": (2,), "score": (20,), "gross": (144,),
    "quarter": (4, 25), "quarters": (4, 25), "dime": (10,), "dimes": (10,), "nickel": (5,), "nickels": (5,),
    "hundred": (100,), "hundreds": (100,), "thousand": (1000,), "thousands": (1000,), "k": (1000,), "million": (10**6,),
    "millions": (10**6,), "billion": (10**9,), "ton": (1000, 2000), "tons": (1000, 2000), "weekday": (5,),
    "weekdays": (5,), "weekend": (2,), "weekends": (2,), "workday": (8, 5), "workdays": (8, 5), "decade": (10,),
    "mph": (60,),
}  # fmt: skip
_TIMES = (5, 7, 8, 12, 24, 28, 30, 31, 52, 60, 365, 366, 3600, 1440, 4)
"""Factors between units of time, with those of working weeks and days and of rough months."""


def hidden_factors(words: frozenset[str]) -> frozenset[Fraction]:
    """Factors that these words of a sentence may stand for, as conversions that are not written do."""
    found = {Fraction(factor) for word in words for factor in _FACTORS.get(word, ())}
    quantities = {UNITS[word].quantity for word in words if word in UNITS}
    if quantities & {"time", "years"}:
        found.update(map(Fraction, _TIMES))
    for quantity in quantities - {"time", "years"}:
        sizes = {unit.size for unit in UNITS.values() if unit.quantity == quantity}
        here = {UNITS[word].size for word in words if word in UNITS and UNITS[word].quantity == quantity}
        found.update(max(one, other) / min(one, other) for one in here for other in sizes if one != other)
    return frozenset(found)
