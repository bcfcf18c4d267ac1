"""Units of measure, by quantity, with their exact sizes, and words that multiply a number. Pure."""

from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True, slots=True)
class Unit:
    """A unit. Units of one quantity can be converted; `size` is relative to the others of the quantity."""

    quantity: str
    size: Fraction


# Quantity -> names of one unit -> its size. Only what is exact: a month has no fixed number of weeks, so it goes with years.
_TABLE: dict[str, dict[str, int | Fraction]] = {
    "time": {
        "second seconds sec secs s": 1,
        "minute minutes min mins": 60,
        "hour hours hr hrs h": 3600,
        "day days": 86_400,
        "week weeks": 604_800,
    },
    "years": {"month months": 1, "year years yr yrs": 12, "decade decades": 120, "century centuries": 1200},
    "metric length": {
        "millimeter millimeters millimetre millimetres mm": 1,
        "centimeter centimeters centimetre centimetres cm": 10,
        "meter meters metre metres m": 1000,
        "kilometer kilometers kilometre kilometres km kms": 1_000_000,
    },
    "length": {"inch inches": 1, "foot feet ft": 12, "yard yards yd yds": 36, "mile miles mi": 63_360},
    "metric mass": {
        "milligram milligrams mg": 1,
        "gram grams g": 1000,
        "kilogram kilograms kilo kilos kg kgs": 1_000_000,
    },
    "weight": {"ounce ounces oz": 1, "pound pounds lb lbs": 16},
    "metric volume": {
        "milliliter milliliters millilitre millilitres ml": 1,
        "liter liters litre litres l": 1000,
    },
    "volume": {"cup cups": 1, "pint pints": 2, "quart quarts": 4, "gallon gallons": 16},
    "spoons": {"teaspoon teaspoons tsp": 1, "tablespoon tablespoons tbsp": 3},
    "money": {"cent cents ¢": 1, "dollar dollars": 100},
    "data": {"kb": 1, "mb": 1000, "gb": 1_000_000},
}
UNITS = {
    name: Unit(quantity, Fraction(size))
    for quantity, units in _TABLE.items()
    for names, size in units.items()
    for name in names.split()
}
DOLLAR = UNITS["dollar"]

SCALES = {
    "dozen": 12, "dozens": 12, "hundred": 100, "thousand": 1000, "million": 10**6, "billion": 10**9, "trillion": 10**12,
}  # fmt: skip
"""Words after a number that multiply it."""
