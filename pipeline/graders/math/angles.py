r"""Compares angles of which at least one names its unit: 60^\circ, \frac{\pi}{3} radians, \frac{\pi}{3}. Pure.

A size with pi and no unit is in radians. Any other size without a unit has the unit of the other side, so 60 is neither
\frac{\pi}{3} nor \frac{\pi}{3} radians.
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
