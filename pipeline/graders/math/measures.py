r"""Compares angles and ratios of numbers and expressions: 60^\circ, \frac{\pi}{3} radians, 3:4, 1:\sqrt{2}. Pure.

A size with pi and no unit is in radians. Any other size without a unit has the unit of the other side, so 60 is neither
\frac{\pi}{3} nor \frac{\pi}{3} radians.
Ratios are equal if they are proportional. The ratio of two parts is also their quotient. A ratio may name its parts, as in
boys:girls = 3:4, and then the names decide the order.
"""

import re

from pipeline.graders.math.expression import Expression, all_of, equal, expression

_DEGREES = re.compile(r"\^\\circ$| ?degrees?$")
_RADIANS = re.compile(r" ?(?:radians?|rad)$")
_FUNCTION = re.compile(r"\\(?:sin|cos|tan|cot|sec|csc|arc|angle)")
_UNITS = ("\\circ", "degree", "degrees", "radian", "radians", "rad")


def same_angle(wanted: str, given: str) -> bool | None:
    """Whether two normal forms are the same angle. None if neither names a unit of angles, or if it cannot be decided."""
    if not (wanted.endswith(_UNITS) or given.endswith(_UNITS)):
        return None
    (size, unit), (other_size, other_unit) = _angle(wanted), _angle(given)
    left, right = _in_radians(size, unit or other_unit), _in_radians(other_size, other_unit or unit)
    return equal(left, right) if left and right else None


def _in_radians(size: Expression | None, unit: str | None) -> Expression | None:
    half_turn = expression("\\frac{\\pi}{180}") if unit == "degrees" else None
    return _product(size, half_turn) if size and half_turn else size


def _angle(normal: str) -> tuple[Expression | None, str | None]:
    """The size of an angle and its unit, or None for the unit of the other side."""
    if _FUNCTION.search(normal):
        return None, None
    size, degrees = _DEGREES.subn("", normal)
    size, radians = _RADIANS.subn("", size)
    unit = "degrees" if degrees else "radians" if radians or "\\pi" in size else None
    return expression(size.strip()), unit


MAX_PARTS = 6

_NAMES = re.compile(r" ?: ?| to ")
# 1:02 is a time of day.
_TIME = re.compile(r":0\d")


def proportional(wanted: str, given: str) -> bool | None:
    """Whether two normal forms are the same ratio. None if neither is a ratio or a part cannot be compared."""
    if _TIME.search(f"{wanted} {given}"):
        return False if ":" in wanted and ":" in given else None
    left, right = parts_of_ratio(wanted), parts_of_ratio(given)
    if left is None or right is None:
        return _is_quotient(left or right, given if left else wanted)
    if len(left) != len(right):
        return False
    pairs = zip(left[1:], right[1:], strict=True)
    return all_of(equal(_product(one, right[0]), _product(two, left[0])) for one, two in pairs)


def in_order_of(names: str, other_names: str, ratio: str) -> str | None:
    """The ratio of the other names in the order of these names. None if it has no such order, as for other names."""
    wanted, given, parts = _NAMES.split(names), _NAMES.split(other_names), ratio.split(":")
    if len(wanted) < 2 or sorted(wanted) != sorted(given) or len(set(given)) != len(given) or len(parts) != len(given):
        return None
    named = dict(zip(given, parts, strict=True))
    return ":".join(named[name] for name in wanted)


def names_parts(label: str) -> bool:
    """Whether a label names the parts of a ratio: boys:girls, boys to girls."""
    return len(_NAMES.split(label)) > 1


def parts_of_ratio(normal: str) -> list[Expression] | None:
    texts = _NAMES.split(normal)
    if not 2 <= len(texts) <= MAX_PARTS:
        return None
    parts = [read for text in texts if (read := expression(text)) is not None and read.ratio.top]
    return parts if len(parts) == len(texts) else None


def _is_quotient(parts: list[Expression] | None, other: str) -> bool | None:
    quotient = expression(other) if parts and len(parts) == 2 and ":" not in other else None
    return equal(parts[0], _product(quotient, parts[1])) if parts and quotient else None


def _product(one: Expression, two: Expression) -> Expression:
    return Expression(one.ratio * two.ratio, one.values | two.values)
