"""Units of measure, by quantity, with their exact sizes: the one table for graders, verifiers and tables of facts. Pure."""

from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True, slots=True)
class Unit:
    """A unit by its shortest name. A value is `value * size + shift` in the unit that its quantity is measured in.

    Metric units and others of the same kind are different quantities, because people convert them roughly."""

    name: str
    quantity: str
    size: Fraction = Fraction(1)
    shift: Fraction = Fraction(0)


# Quantity -> names of one unit, the shortest first -> its size. `*` is an s that may be there. Only what is exact: a month has
# no fixed number of weeks, so it goes with years.
_TABLE: dict[str, dict[str, int]] = {
    "time": {"s second* sec*": 1, "min mins minute*": 60, "h hr* hour*": 3600, "day*": 86_400, "week*": 604_800},
    "years": {"month*": 1, "year* yr*": 12, "decade*": 120, "century centuries": 1200},
    "metric length": {
        "mm millimeter* millimetre*": 1, "cm centimeter* centimetre*": 10, "m meter* metre*": 1000,
        "km kms kilometer* kilometre*": 10**6,
    },
    "length": {"in inch inches": 1, "ft foot feet": 12, "yd* yard*": 36, "mi mile*": 63_360},
    "metric mass": {"mg milligram*": 1, "g gram*": 1000, "kg* kilogram* kilo*": 10**6, "tonne*": 10**9},
    "weight": {"oz ounce*": 1, "pound* lb* GBP": 16},
    "metric volume": {"ml mL milliliter* millilitre*": 1, "l L liter* litre*": 1000},
    "volume": {"cup*": 1, "pint*": 2, "quart*": 4, "gallon* gal": 16},
    "spoons": {"tsp teaspoon*": 1, "tbsp tablespoon*": 3},
    "money": {"cent* ¢": 1, "dollar* USD": 100},
    "data": {"kb": 1, "mb": 1000, "gb": 10**6, "tb": 10**9},
    "energy": {"J joule*": 1, "kJ kilojoule*": 1000},
    "power": {"W watt*": 1, "kW kilowatt*": 1000},
    "pressure": {"Pa pascal*": 1, "kPa kilopascal*": 1000},
    "temperature": {"K kelvin*": 1},
} | {name.partition(" ")[0]: {name: 1} for name in (
    "degree*", "radian* rad", "euro* EUR", "N newton*", "V volt*", "Hz hertz", "mol mole*", "ohm*", "acre*", "mph",
)}  # fmt: skip
_JOINED = {
    "length": ("metric length", Fraction("25.4")),
    "weight": ("metric mass", Fraction("28349.523125")),
    "volume": ("metric volume", Fraction("236.5882365")),
}


UNITS = {
    name.removesuffix("*") + end: Unit(names.split()[0].removesuffix("*"), quantity, Fraction(size))
    for quantity, units in _TABLE.items()
    for names, size in units.items()
    for name in names.split()
    for end in ("", "s")[: 1 + name.endswith("*")]
}
"""Units by all their names. Case counts: K is no k."""
DOLLAR = UNITS["dollar"]
CONVENTIONS: tuple[dict[str, int], ...] = (
    {"mb": 1024, "gb": 1024**2, "tb": 1024**3}, {"tbsp": 4}, {"pound": 12},
    *({"day": hours * 3600, "week": days * hours * 3600} for hours in (24, *range(4, 13)) for days in (7, 6, 5)),
)  # fmt: skip
"""Sizes that people also give to units, by the shortest names: powers of 1024, Australian spoons, troy pounds, working time."""


def measured(number: Fraction, unit: Unit) -> tuple[Fraction, str]:
    """The number in the unit that its quantity is measured in, metric or not, and that quantity. Equal for equal amounts."""
    quantity, size = _JOINED.get(unit.quantity, (unit.quantity, Fraction(1)))
    return number * unit.size * size + unit.shift, quantity


def convert(number: Fraction, have: Unit, want: Unit) -> Fraction | None:
    """The number in another unit, metric or not; None where the units are of different quantities."""
    (amount, quantity), (start, other) = measured(number, have), measured(Fraction(0), want)
    return (amount - start) / (measured(Fraction(1), want)[0] - start) if quantity == other else None
