r"""Compares angles and ratios of numbers and expressions: 60^\circ, \frac{\pi}{3} radians, 3:4, 1:\sqrt{2}. Pure.

A size with pi and no unit is in radians. Any other size without a unit has the unit of the other side, so 60 is neither
\frac{\pi}{3} nor \frac{\pi}{3} radians.
Ratios are equal if they are proportional. The ratio of two parts is also their quotient. A ratio may name its parts, as in
boys:girls = 3:4, and then the names decide the order.
"""

import re
from dataclasses import dataclass
from enum import Enum, auto

from pipeline.graders.math.expression import Expression, equal, expression

_DEGREES = re.compile(r"\^\\circ$| ?degrees?$")
_RADIANS = re.compile(r" ?(?:radians?|rad)$")
_FUNCTION = re.compile(r"\\(?:sin|cos|tan|cot|sec|csc|arc|angle)")
_UNITS = ("\\circ", "degree", "degrees", "radian", "radians", "rad")


class _Unit(Enum):
    DEGREES = auto()
    RADIANS = auto()


@dataclass(frozen=True, slots=True)
class _Angle:
    size: Expression
    unit: _Unit | None
    has_pi: bool


def same_angle(wanted: str, given: str) -> bool | None:
    """Whether two normal forms are the same angle. None if neither names a unit of angles, or if it cannot be decided."""
    if not (wanted.endswith(_UNITS) or given.endswith(_UNITS)):
        return None
    left, right = _angle(wanted), _angle(given)
    if left is None or right is None or (left.unit is None and right.unit is None):
        return None
    units = _unit(left, right), _unit(right, left)
    if units[0] is units[1]:
        return equal(left.size, right.size)
    degrees, radians = (left, right) if units[0] is _Unit.DEGREES else (right, left)
    half_turn = expression("\\frac{\\pi}{180}")
    assert half_turn is not None
    return equal(Expression(degrees.size.ratio * half_turn.ratio, degrees.size.values | half_turn.values), radians.size)


def _unit(angle: _Angle, other: _Angle) -> _Unit | None:
    if angle.unit is not None:
        return angle.unit
    return _Unit.RADIANS if angle.has_pi else other.unit


def _angle(normal: str) -> _Angle | None:
    if _FUNCTION.search(normal):
        return None
    unit = None
    size = _DEGREES.sub("", normal)
    if size != normal:
        unit = _Unit.DEGREES
    elif (size := _RADIANS.sub("", normal)) != normal:
        unit = _Unit.RADIANS
    read = expression(size.strip())
    return None if read is None else _Angle(read, unit, "\\pi" in size)


MAX_PARTS = 6

_NAMES = re.compile(r" ?: ?| to ")
# 1:02 is a time of day.
_TIME = re.compile(r":0\d")


def is_ratio(normal: str) -> bool:
    """Whether a normal form is a ratio that can be compared."""
    return _parts(normal) is not None


def proportional(wanted: str, given: str) -> bool | None:
    """Whether two normal forms are the same ratio. None if neither is a ratio or a part cannot be compared."""
    if _TIME.search(f"{wanted} {given}"):
        return False if ":" in wanted and ":" in given else None
    left, right = _parts(wanted), _parts(given)
    if left is None or right is None:
        return _is_quotient(left or right, given if left else wanted)
    if len(left) != len(right):
        return False
    results = [
        equal(_product(one, right[0]), _product(two, left[0])) for one, two in zip(left[1:], right[1:], strict=True)
    ]
    if False in results:
        return False
    return None if None in results else True


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


def _parts(normal: str) -> list[Expression] | None:
    texts = _NAMES.split(normal)
    if not 2 <= len(texts) <= MAX_PARTS:
        return None
    parts = [read for text in texts if (read := expression(text)) is not None and read.ratio.top]
    return parts if len(parts) == len(texts) else None


def _is_quotient(parts: list[Expression] | None, other: str) -> bool | None:
    quotient = expression(other) if parts and len(parts) == 2 and ":" not in other else None
    return None if parts is None or quotient is None else equal(parts[0], _product(quotient, parts[1]))


def _product(one: Expression, two: Expression) -> Expression:
    return Expression(one.ratio * two.ratio, one.values | two.values)
