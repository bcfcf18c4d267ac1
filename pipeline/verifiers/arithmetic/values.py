"""What an expression is worth, as an exact fraction, in each way that people mean it. Pure; numbers have a largest size.

20 % is 0.2 in "20% of 50", 20 in "20% + 30% = 50%" and a fifth of the number before it in "50 - 20% = 40". Units are left out,
or all numbers are converted to the same units.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto
from fractions import Fraction

from pipeline.verifiers.arithmetic.nodes import Node, UnreadableError

MOST_BITS = 2_000
MOST_POWER = 200
MOST_FACTORIAL = 30
_HUNDRED = 100
_ZERO = Fraction(0)


class Percent(Enum):
    """What a percentage means."""

    HUNDREDTHS = auto()
    PLAIN = auto()
    RELATIVE = auto()


@dataclass(frozen=True, slots=True)
class Meaning:
    """A way to read expressions. `scaled`: million and its like multiply. `from_left`: operators have no precedence.
    `nested`: 3 / 1/4 is 3 / (1/4). `signed_base`: -3^2 is 9."""

    percent: Percent = Percent.HUNDREDTHS
    scaled: bool = True
    from_left: bool = False
    mixed_is_product: bool = False
    nested: bool = False
    signed_base: bool = False


USUAL = Meaning()
Dimensions = tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Value:
    """A number, and how far off it may be because numbers in it are rounded."""

    number: Fraction
    radius: Fraction = _ZERO


def exact(_node: Node) -> Fraction:
    """No number is rounded."""
    return _ZERO


def value_of(node: Node, meaning: Meaning = USUAL, rounded: Callable[[Node], Fraction] = exact) -> Value:
    """The value without units. `rounded`: how far off a number may be as it is written.

    Raises UnreadableError for what has no value, is too large, or makes no sense without units."""
    if meaning.from_left and node.kind in "+-*/":
        return _from_left(node, meaning, rounded)
    match node.kind:
        case "number":
            factor = _factor(node, meaning)
            return Value(node.value * factor, rounded(node) * factor)
        case "negative":
            inner = value_of(node.parts[0], meaning, rounded)
            if meaning.signed_base and node.parts[0].kind == "^" and value_of(node.parts[0].parts[1]).number % 2 == 0:
                return inner
            return Value(-inner.number, inner.radius)
        case "+" | "-" | "*" | "/":
            left, right = node.parts
            if meaning.nested and node.kind == left.kind == "/" and not left.grouped:
                left, right = left.parts[0], Node("/", (left.parts[1], right), grouped=True)
            return _operate(
                node.kind, value_of(left, meaning, rounded), right, value_of(right, meaning, rounded), meaning, node
            )
        case "^":
            base, exponent = (value_of(part, meaning, rounded) for part in node.parts)
            if base.radius or exponent.radius:
                raise UnreadableError
            return Value(_power(base.number, exponent.number))
        case "!":
            return Value(_factorial(value_of(node.parts[0], meaning).number))
        case "sqrt":
            return Value(_root(value_of(node.parts[0], meaning).number))
    raise UnreadableError


def converted(node: Node, meaning: Meaning = USUAL) -> tuple[Fraction, Dimensions]:
    """The value with all numbers in the base units of their quantities, and the powers of these quantities.

    Raises UnreadableError as `value_of` does, and for sums of different quantities."""
    match node.kind:
        case "number":
            number, powers = node.value * _factor(node, meaning), dict[str, int]()
            for units, sign in ((node.above, 1), (node.below, -1)):
                for unit in units:
                    number = number * unit.size if sign > 0 else number / unit.size
                    powers[unit.quantity] = powers.get(unit.quantity, 0) + sign
            return number, _dimensions(powers)
        case "negative":
            number, dimensions = converted(node.parts[0], meaning)
            return -number, dimensions
        case "sum":
            return sum((converted(part, meaning)[0] for part in node.parts), _ZERO), converted(node.parts[0], meaning)[
                1
            ]
        case "+" | "-" | "*" | "/":
            return _operate_converted(node, meaning)
    number = value_of(node, meaning).number
    if any(each.above or each.below for each in node.numbers()):
        raise UnreadableError
    return number, ()


def _factor(node: Node, meaning: Meaning) -> Fraction:
    factor = Fraction(node.scale if meaning.scaled else 1)
    return factor / _HUNDRED if node.percent and meaning.percent is not Percent.PLAIN else factor


def _operate(kind: str, left: Value, node: Node, right: Value, meaning: Meaning, whole: Node) -> Value:
    a, b = left.number, right.number
    if kind in "+-":
        if meaning.percent is Percent.RELATIVE and node.kind == "number" and node.percent:
            b *= a
        return Value(_limited(a + b if kind == "+" else a - b), left.radius + right.radius)
    if whole.mixed and not meaning.mixed_is_product:
        return Value(a + b)
    if kind == "*":
        return Value(_limited(a * b), abs(a) * right.radius + abs(b) * left.radius)
    if not b:
        raise UnreadableError
    quotient = _limited(a / b)
    return Value(quotient, (left.radius + abs(quotient) * right.radius) / abs(b))


def _operate_converted(node: Node, meaning: Meaning) -> tuple[Fraction, Dimensions]:
    (a, ours), (b, theirs) = (converted(part, meaning) for part in node.parts)
    if node.kind in "+-":
        if ours != theirs:
            raise UnreadableError
        return _limited(a + b if node.kind == "+" else a - b), ours
    if node.mixed and not meaning.mixed_is_product:
        return a + b, ours
    if node.kind == "/" and not b:
        raise UnreadableError
    powers, sign = dict(ours), 1 if node.kind == "*" else -1
    for quantity, power in theirs:
        powers[quantity] = powers.get(quantity, 0) + sign * power
    return _limited(a * b if node.kind == "*" else a / b), _dimensions(powers)


def _dimensions(powers: dict[str, int]) -> Dimensions:
    return tuple(sorted((quantity, power) for quantity, power in powers.items() if power))


def _from_left(node: Node, meaning: Meaning, rounded: Callable[[Node], Fraction]) -> Value:
    """The value if one operation is done after the other, as on a simple calculator."""
    plain = Meaning(percent=meaning.percent, scaled=meaning.scaled)
    terms = list(_in_order(node))
    total = value_of(terms[0][1], plain, rounded)
    for operator, term in terms[1:]:
        total = _operate(operator, total, term, value_of(term, plain, rounded), plain, term)
    return total


def _in_order(node: Node) -> "list[tuple[str, Node]]":
    """The operators and operands as they are written. Brackets stay what they are."""
    found: list[tuple[str, Node]] = []
    open_ones: list[tuple[str, Node]] = [("", node)]
    while open_ones:
        operator, each = open_ones.pop()
        if each.kind in "+-*/" and (each is node or not each.grouped) and not each.mixed:
            open_ones.append((each.kind, each.parts[1]))
            open_ones.append((operator, each.parts[0]))
        else:
            found.append((operator, each))
    return found


def _limited(number: Fraction) -> Fraction:
    if number.numerator.bit_length() + number.denominator.bit_length() > MOST_BITS:
        raise UnreadableError
    return number


def _power(base: Fraction, exponent: Fraction) -> Fraction:
    if exponent.denominator != 1 or abs(exponent) > MOST_POWER or (not base and exponent <= 0):
        raise UnreadableError
    bits = base.numerator.bit_length() + base.denominator.bit_length()
    if bits * abs(exponent) > MOST_BITS:
        raise UnreadableError
    return Fraction(base ** int(exponent))


def _factorial(number: Fraction) -> Fraction:
    if number.denominator != 1 or not 0 <= number <= MOST_FACTORIAL:
        raise UnreadableError
    return Fraction(math.factorial(int(number)))


def _root(number: Fraction) -> Fraction:
    """The square root of a square. Raises UnreadableError for other numbers."""
    if number < 0:
        raise UnreadableError
    top, bottom = math.isqrt(number.numerator), math.isqrt(number.denominator)
    if top * top != number.numerator or bottom * bottom != number.denominator:
        raise UnreadableError
    return Fraction(top, bottom)
