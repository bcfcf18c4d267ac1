"""Golden rows for quantities: lengths, masses, areas, volumes, speeds, angles, durations, times of day, money.

A unit's size is written here as an exact number of the smallest unit of its kind, so a conversion is a product of fractions.
"""

import random
from collections.abc import Iterator
from fractions import Fraction

from tests.graders.golden.numbers import decimal_text
from tests.graders.golden.rows import Row, row, some

# Kind -> unit -> (size, other names).
_UNITS: dict[str, dict[str, tuple[int, tuple[str, ...]]]] = {
    "length": {
        "mm": (1, ("millimeters", "millimetres")),
        "cm": (10, ("centimeters", "centimetres")),
        "m": (1000, ("meters", "metres")),
        "km": (1_000_000, ("kilometers", "kilometres")),
    },
    "length in inches": {"in": (1, ("inches",)), "ft": (12, ("feet",)), "yd": (36, ("yards",))},
    "mass": {"mg": (1, ("milligrams",)), "g": (1000, ("grams",)), "kg": (1_000_000, ("kilograms",))},
    "weight": {"oz": (1, ("ounces",)), "lb": (16, ("pounds",))},
    "duration": {
        "s": (1, ("seconds",)),
        "min": (60, ("minutes",)),
        "h": (3600, ("hours",)),
        "days": (86_400, ("days",)),
    },
    "volume": {"mL": (1, ("milliliters", "millilitres", "ml")), "L": (1000, ("liters", "litres"))},
}
_LAYOUTS = (
    "{n} {u}",
    "{n}\\text{{ {u}}}",
    "{n} \\text{{ {u}}}",
    "{n}\\,\\text{{{u}}}",
    "{n}\\ \\mathrm{{{u}}}",
    "{n}~\\text{{{u}}}",
)
_THINGS = [
    "apples", "marbles", "tickets", "coins", "pages", "students", "bottles", "trees", "stamps", "boxes", "eggs",
    "chairs", "points", "votes", "cards",
]  # fmt: skip


def measures(chance: random.Random) -> Iterator[Row]:
    """All rows of this module."""
    for _ in range(30):
        yield _quantity(chance)
    for _ in range(12):
        yield _power(chance)
    for _ in range(7):
        yield _speed(chance)
    for _ in range(9):
        yield _angle(chance)
    for _ in range(12):
        yield _counted(chance)
    for _ in range(15):
        yield _money(chance)
    for _ in range(12):
        yield _clock(chance)
    for _ in range(12):
        yield _duration(chance)


def _value(chance: random.Random) -> Fraction:
    return Fraction(chance.randrange(3, 400), chance.choice((1, 1, 1, 2, 5)))


def _laid_out(chance: random.Random, number: str, unit: str) -> str:
    return chance.choice(_LAYOUTS).format(n=number, u=unit)


def _quantity(chance: random.Random) -> Row:
    kind = chance.choice(tuple(_UNITS))
    units = _UNITS[kind]
    unit = chance.choice(tuple(units))
    size, names = units[unit]
    value = _value(chance)
    n = decimal_text(value)
    right = [layout.format(n=n, u=name) for layout in _LAYOUTS[:3] for name in (unit, *names)]
    right += [layout.format(n=n, u=unit) for layout in _LAYOUTS[3:]]
    right = [*some(chance, right, 4), n]
    wrong = [_laid_out(chance, decimal_text(value + 1), unit), _laid_out(chance, decimal_text(value * 10), names[0])]
    wrong += [decimal_text(value + 2), f"-{n} {unit}"]
    for other, (other_size, other_names) in units.items():
        if other == unit:
            continue
        wrong.append(_laid_out(chance, n, chance.choice((other, *other_names))))
        converted = value * size / other_size
        if (converted * 10_000).denominator == 1:
            right.append(_laid_out(chance, decimal_text(converted), chance.choice((other, *other_names))))
        off = value * other_size / size
        if (off * 10_000).denominator == 1:
            wrong.append(_laid_out(chance, decimal_text(off), other))
    return row("unit", f"{n} \\text{{ {unit}}}", right, some(chance, wrong, 4))


def _power(chance: random.Random) -> Row:
    n = decimal_text(_value(chance))
    unit, name = chance.choice(
        (("cm", "centimeters"), ("m", "meters"), ("km", "kilometers"), ("in", "inches"), ("ft", "feet"))
    )
    other = {"cm": "m", "m": "cm", "km": "m", "in": "ft", "ft": "in"}[unit]
    power, word = chance.choice(((2, "square"), (3, "cubic")))
    right = [
        f"{n}",
        f"{n} {unit}^{power}",
        f"{n}\\text{{ {unit}}}^{power}",
        f"{n} \\text{{ {unit}}}^{{{power}}}",
        f"{n} {word} {name}",
        f"{n}\\text{{ {word} {name}}}",
        f"{n}\\,\\mathrm{{{unit}}}^{{{power}}}",
        f"{n} {unit}{'²' if power == 2 else '³'}",
    ]
    wrong = [
        f"{n}\\text{{ {unit}}}^{5 - power}",
        f"{n} {'cubic' if word == 'square' else 'square'} {name}",
        f"{n}\\text{{ {other}}}^{power}",
        f"{n}1\\text{{ {unit}}}^{power}",
        f"{n}^{power}\\text{{ {unit}}}",
        f"\\frac{{{n}}}{{2}}\\text{{ {unit}}}^{power}",
    ]
    return row("area or volume", f"{n}\\text{{ {unit}}}^{power}", some(chance, right, 5), some(chance, wrong, 4))


def _speed(chance: random.Random) -> Row:
    n = decimal_text(_value(chance))
    unit, forms, other = chance.choice(
        (
            ("m/s", ("m/s", "meters per second", "metres per second", "meters/second"), "km/h"),
            ("km/h", ("km/h", "kilometers per hour", "kilometres per hour"), "m/s"),
            ("mph", ("mph", "miles per hour", "miles/hour"), "km/h"),
        )
    )
    right = [f"{n} {form}" for form in forms] + [f"{n}\\text{{ {form}}}" for form in forms] + [n]
    wrong = [f"{n} {other}", f"{n}\\text{{ {other}}}", f"2{n}\\text{{ {unit}}}", f"1{n} {unit}", f"-{n} {unit}"]
    return row("speed", f"{n}\\text{{ {unit}}}", some(chance, right, 4), some(chance, wrong, 3))


def _angle(chance: random.Random) -> Row:
    n = chance.randrange(4, 360)
    right = [
        f"{n}",
        f"{n}°",
        f"{n}^{{\\circ}}",
        f"{n} degrees",
        f"{n}\\text{{ degrees}}",
        f"{n}^\\circ",
        f"{n} ^ \\circ",
        f"{n}º",
    ]
    right += [f"\\angle A = {n}^\\circ", f"x = {n}^\\circ", f"{n}.0^\\circ"]
    wrong = [f"{360 - n}^\\circ" if n != 180 else "181^\\circ", f"{n + 1}^\\circ", f"{n}0°", f"-{n}^\\circ", f"{n}\\pi"]
    wrong += [f"{n - 1} degrees", f"\\frac{{{n}}}{{2}}^\\circ"]
    return row("angle", f"{n}^\\circ", some(chance, right, 5), some(chance, wrong, 3))


def _counted(chance: random.Random) -> Row:
    n, thing = chance.randrange(2, 3000), chance.choice(_THINGS)
    other = chance.choice([name for name in _THINGS if name != thing])
    gold, right = str(n), [f"{n} {thing}", f"{n}\\text{{ {thing}}}", f"{n} \\text{{{thing}}}", f"{n}~\\text{{{thing}}}"]
    wrong = [f"{n + 1} {thing}", f"{n}0\\text{{ {thing}}}", f"{2 * n} {thing}", f"{n - 1}\\text{{ {thing}}}"]
    if chance.randrange(2):
        gold = f"{n}\\text{{ {thing}}}"
        right.append(str(n))
        wrong += [str(n + 10), f"{n} {other}"]
    return row("counted things", gold, some(chance, right, 3), some(chance, wrong, 3))


def _money(chance: random.Random) -> Row:
    cents = chance.randrange(5, 300_000)
    if cents % 10 == 0:
        cents += 5
    dollars = f"{cents // 100}.{cents % 100:02d}"
    swapped = f"{cents // 100}.{cents % 10}{cents % 100 // 10}"
    grouped = f"{cents // 100:,}.{cents % 100:02d}"
    right = [
        f"\\${dollars}",
        dollars,
        f"{dollars} dollars",
        f"\\${grouped}",
        f"{dollars}\\text{{ dollars}}",
        f"{cents} cents",
    ]
    right += [f"\\$ {dollars}", f"\\text{{\\${dollars}}}", f"USD {dollars}", f"{dollars} USD"]
    wrong = [
        f"\\${dollars}5",
        f"{cents + 1} cents",
        f"\\${cents}",
        f"{dollars} cents",
        f"-\\${dollars}",
        f"\\$1{dollars}",
    ]
    wrong += [f"€{dollars}", f"\\${cents // 100}"]
    if swapped != dollars:
        wrong.append(f"\\${swapped}")
    return row("money", f"\\${dollars}", some(chance, right, 5), some(chance, wrong, 4))


def _clock(chance: random.Random) -> Row:
    hour, minute, half = chance.randrange(1, 12), chance.randrange(0, 60), chance.choice("ap")
    text = f"{hour}:{minute:02d}"
    other = "p" if half == "a" else "a"
    full = f"{hour + (12 if half == 'p' else 0):02d}:{minute:02d}"
    right = [text, f"{text} {half.upper()}M", f"{text} {half}.m.", f"{text}{half}m", f"{text}\\text{{ {half}.m.}}"]
    right += [f"{hour:02d}:{minute:02d} {half.upper()}M", f"{text} \\text{{ {half.upper()}M}}"]
    if half == "p":
        right.append(full)
    wrong = [f"{text} {other}.m.", f"{text}\\text{{ {other.upper()}M}}", f"{hour}:{(minute + 1) % 60:02d} {half}.m."]
    wrong += [
        f"{hour + 1}:{minute:02d} {half}.m.",
        f"{hour}:{(minute + 30) % 60:02d}",
        f"{hour} {half}.m." if minute else "13:01",
    ]
    return row("time of day", f"{text}\\text{{ {half}.m.}}", some(chance, right, 5), some(chance, wrong, 4))


def _duration(chance: random.Random) -> Row:
    hours, minutes = chance.randrange(1, 9), chance.choice((6, 12, 15, 18, 24, 30, 36, 42, 45, 48, 54))
    total = 60 * hours + minutes
    parts = f"{hours} hour{'s' if hours > 1 else ''} {minutes} minutes"
    right = [
        f"{total} minutes",
        f"{decimal_text(Fraction(total, 60))} hours",
        parts.replace(" hour", "\\text{ hour", 1),
    ]
    right = [
        *right[:2],
        f"{total}\\text{{ minutes}}",
        f"{decimal_text(Fraction(total, 60))}\\text{{ h}}",
        f"{total} min",
    ]
    right += [f"{hours} hours and {minutes} minutes", f"{hours} h {minutes} min", f"{total * 60} seconds"]
    wrong = [
        f"{total + 1} minutes",
        f"{hours}.{minutes:02d} hours",
        f"{hours} hours {minutes + 1} minutes",
        f"{minutes} minutes",
    ]
    wrong += [f"{hours + 1} hours {minutes} minutes", f"{total} hours", f"{hours} hours", f"{total} seconds"]
    if Fraction(f"{hours}.{minutes:02d}") == Fraction(total, 60):
        wrong.pop(1)
    return row("duration", parts, some(chance, right, 4), some(chance, wrong, 4))
