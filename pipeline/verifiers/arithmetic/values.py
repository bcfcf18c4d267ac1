"""Expressions of plain numbers with units, as trees, and what they are worth in each way that people mean them. Exact and pure.

20 % is 0.2 in "20% of 50", 20 in "20% + 30% = 50%" and a fifth of the number before it in "50 - 20% = 40". Units are left out,
or all numbers are converted to the same units.
"""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from enum import Enum, auto
from fractions import Fraction

from pipeline.data.units import Unit

Powers = frozenset[tuple[str, int]]
_NO_POWERS: Powers = frozenset()
_ONE = Fraction(1)
MOST_BITS = 2_000
MOST_POWER = 200
MOST_FACTORIAL = 30


class UnreadableError(ValueError):
    """The tokens are no expression that is read here, or it has no value."""


@dataclass(slots=True)
class Node:
    """An expression. `kind` is an operator (+ - * / ^), `negative`, `!`, `sqrt`, `number`, or `sum`: parts of one quantity.

    Of numbers: `above` and `below` are units, known ones only, `nouns` the words of other ones, and `scale` a word such
    as million. `mixed`: a number and a fraction without a sign between, which may be a mixed number or a product. `grouped`: it
    stood in brackets, or as a fraction. `share`: a product with the word "of"."""

    kind: str
    parts: "tuple[Node, ...]" = ()
    value: Fraction = Fraction(0)
    places: int = 0
    percent: bool = False
    money: bool = False
    scale: int = 1
    above: tuple[Unit, ...] = ()
    below: tuple[Unit, ...] = ()
    nouns: frozenset[str] = frozenset()
    mixed: bool = False
    grouped: bool = False
    share: bool = False

    @property
    def is_number(self) -> bool:
        """Whether it is one number without any operation."""
        return self.kind == "number" or (self.kind == "negative" and self.parts[0].kind == "number")

    def nodes(self) -> "list[Node]":
        """It and all expressions in it."""
        found = [self]
        for node in found:
            found.extend(node.parts)
        return found

    def numbers(self) -> "list[Node]":
        """All numbers in it."""
        return [node for node in self.nodes() if node.kind == "number"]


class Percent(Enum):
    """What a percentage means."""

    HUNDREDTHS = auto()
    PLAIN = auto()
    RELATIVE = auto()


@dataclass(frozen=True, slots=True)
class Meaning:
    """A way to read expressions. `scaled`: million and its like multiply. `from_left`: operators have no precedence.
    `nested`: 3 / 1/4 is 3 / (1/4). `signed_base`: -3^2 is 9. `converts`: numbers are in the base units of their quantities."""

    percent: Percent = Percent.HUNDREDTHS
    scaled: bool = True
    from_left: bool = False
    mixed_is_product: bool = False
    nested: bool = False
    signed_base: bool = False
    converts: bool = False


Rounded = Callable[[Node], Fraction]
"""How far off a number may be as it is written."""
USUAL = Meaning()
CONVERTED = Meaning(converts=True)


def _exact(_node: Node) -> Fraction:
    return Fraction(0)


@dataclass(frozen=True, slots=True)
class Value:
    """A number, how far off it may be because numbers in it are rounded, and the powers of its quantities if converted."""

    number: Fraction
    radius: Fraction = Fraction(0)
    powers: Powers = _NO_POWERS


def value_of(node: Node, meaning: Meaning = USUAL, rounded: Rounded = _exact) -> Value:
    """What an expression is worth. `rounded`: how far off a number may be as it is written.

    Raises UnreadableError for what has no value, is too large, makes no sense without units, or adds different quantities."""
    if meaning.from_left and node.kind in "+-*/":
        plain = replace(meaning, from_left=False)
        (_, begin), *others = _in_order(node)
        total = value_of(begin, plain, rounded)
        for operator, term in others:
            total = _operated(operator, total, value_of(term, plain, rounded), plain, term)
        return total
    if node.kind == "number":
        return _number(node, meaning, rounded)
    if node.kind == "sum":
        if not meaning.converts:
            raise UnreadableError
        parts = [value_of(part, meaning) for part in node.parts]
        return Value(sum((part.number for part in parts), Fraction(0)), powers=parts[0].powers)
    if meaning.nested and node.kind == node.parts[0].kind == "/" and not node.parts[0].grouped:
        top, middle = node.parts[0].parts
        node = Node("/", (top, Node("/", (middle, node.parts[1]), grouped=True)))
    first, *rest = [value_of(part, meaning, rounded) for part in node.parts]
    if node.kind == "negative":
        base = node.parts[0]
        even = meaning.signed_base and base.kind == "^" and value_of(base.parts[1]).number % 2 == 0
        return first if even else replace(first, number=-first.number)
    if node.mixed and not meaning.mixed_is_product:
        return Value(first.number + rest[0].number, powers=first.powers)
    if node.kind in "+-*/":
        return _operated(node.kind, first, rest[0], meaning, node.parts[1])
    if any(each.powers or each.radius for each in (first, *rest)):
        raise UnreadableError
    if node.kind == "^":
        return Value(_power(first.number, rest[0].number))
    return Value(_factorial(first.number) if node.kind == "!" else _root(first.number))


def _number(node: Node, meaning: Meaning, rounded: Rounded) -> Value:
    factor, powers = Fraction(node.scale) if meaning.scaled and node.scale != 1 else _ONE, _NO_POWERS
    if node.percent and meaning.percent is not Percent.PLAIN:
        factor /= 100
    if meaning.converts:
        for units, sign in ((node.above, 1), (node.below, -1)):
            for unit in units:
                factor *= unit.size**sign
                powers = _times(powers, {(unit.quantity, 1)}, sign)
    return Value(node.value * factor if factor != 1 else node.value, rounded(node) * factor, powers)


def _operated(kind: str, left: Value, right: Value, meaning: Meaning, node: Node) -> Value:
    """Two values with an operator between them. `node`: the right one."""
    a, b = left.number, right.number
    if kind in "+-":
        if left.powers != right.powers:
            raise UnreadableError
        if meaning.percent is Percent.RELATIVE and node.kind == "number" and node.percent:
            b *= a
        return Value(_limited(a + b if kind == "+" else a - b), left.radius + right.radius, left.powers)
    powers = _times(left.powers, right.powers, 1 if kind == "*" else -1)
    if kind == "*":
        return Value(_limited(a * b), abs(a) * right.radius + abs(b) * left.radius, powers)
    if not b:
        raise UnreadableError
    quotient = _limited(a / b)
    return Value(quotient, (left.radius + abs(quotient) * right.radius) / abs(b), powers)


def _times(powers: Powers, others: Iterable[tuple[str, int]], sign: int) -> Powers:
    found = dict(powers)
    for quantity, power in others:
        found[quantity] = found.get(quantity, 0) + sign * power
    return frozenset(each for each in found.items() if each[1]) if found else powers


def _in_order(node: Node) -> Iterator[tuple[str, Node]]:
    """The operators and operands as they are written. Brackets stay what they are."""
    open_ones: list[tuple[str, Node]] = [("", node)]
    while open_ones:
        operator, each = open_ones.pop()
        if each.kind in "+-*/" and (each is node or not each.grouped) and not each.mixed:
            open_ones += [(each.kind, each.parts[1]), (operator, each.parts[0])]
        else:
            yield operator, each


def _limited(number: Fraction) -> Fraction:
    if number.numerator.bit_length() + number.denominator.bit_length() > MOST_BITS:
        raise UnreadableError
    return number


def _power(base: Fraction, exponent: Fraction) -> Fraction:
    bits = (base.numerator.bit_length() + base.denominator.bit_length()) * abs(exponent)
    too_large = abs(exponent) > MOST_POWER or bits > MOST_BITS
    if exponent.denominator != 1 or too_large or (not base and exponent <= 0):
        raise UnreadableError
    return Fraction(base ** int(exponent))


def _factorial(number: Fraction) -> Fraction:
    if number.denominator != 1 or not 0 <= number <= MOST_FACTORIAL:
        raise UnreadableError
    return Fraction(math.factorial(int(number)))


def _root(number: Fraction) -> Fraction:
    """The square root of a square. Raises UnreadableError for other numbers."""
    root = Fraction(math.isqrt(abs(number.numerator)), math.isqrt(number.denominator))
    if root * root != number:
        raise UnreadableError
    return root
