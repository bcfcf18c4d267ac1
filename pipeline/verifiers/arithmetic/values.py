"""Expressions of plain numbers with units, as trees, and what they are worth in each way that people mean them. Exact and pure.

20 % is 0.2 in "20% of 50", 20 in "20% + 30% = 50%" and a fifth of the number before it in "50 - 20% = 40". Units are left out,
or all numbers are converted to the same units.

Whether a number that is written stands for an exact one is judged by its digits: 0.33 is 1/3 and 0.34 is not. 0.66 for 2/3 is
cut off, 3 for 7/2 may be rounded in a way that the text gives: both are doubtful.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction

from pipeline.data.numbers import Fit, last_place
from pipeline.data.units import CONVENTIONS, Unit
from pipeline.graders.math.rounding import decimal_places
from pipeline.verifiers.arithmetic.words import words_of

Powers = frozenset[tuple[str, int]]
_NO_POWERS: Powers = frozenset()
_ONE = Fraction(1)
MOST_BITS = 2_000
MOST_POWER = 200
MOST_FACTORIAL = 30
NEAR = Fraction(1, 20)
"""A number that is said to be approximate may be off by this share."""
FAR = Fraction(1, 4)
"""It is wrong if it is off by more than this share."""
_EXACT_TAILS = frozenset({"125", "375", "625", "875"})
_REPEATING = words_of("33 66 67 16 17 83 11 22 44 55 56 77 78 88 89 14 29 28 43 42 57 71 86 85")
_CUT = words_of("66 16 88 55 77 28 42 85")
_THIRDS, _SIXTHS = words_of("33 66 67"), words_of("16 17 83")
_FEWEST_PLACES = 2
_GROUP = 3
FLOAT_DIGIT = Fraction(1, 10**10)
FLOAT_NOISE = Fraction(1, 10**12)
"""A number with more digits than FLOAT_DIGIT may be what a computer printed, off by this share."""


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


PERCENTS = ("hundredths", "plain", "relative")
"""What a percentage may mean."""


@dataclass(frozen=True, slots=True)
class Meaning:
    """A way to read expressions. `scaled`: million and its like multiply. `from_left`: operators have no precedence.
    `nested`: 3 / 1/4 is 3 / (1/4), and 6/2*3 is 6/(2*3). `unusual`: -3^2 is 9, 1.500 is 1500, as in many
    languages, ($5) is -$5, and 0.1(6) is 1/6. `mixed_is_product`: also, 5 ^ 3 is of bits. `sizes`: numbers are in base units,
    with sizes of units that are not those of the table."""

    percent: str = "hundredths"
    scaled: bool = True
    from_left: bool = False
    mixed_is_product: bool = False
    nested: bool = False
    unusual: bool = False
    sizes: Mapping[str, int] | None = None


Rounded = Callable[[Node], Fraction]
"""How far off a number may be as it is written."""
USUAL = Meaning()
CONVERTED = Meaning(sizes={})
OTHERWISE_CONVERTED = tuple(Meaning(sizes=each) for each in CONVENTIONS)


@dataclass(frozen=True, slots=True)
class Value:
    """A number, how far off it may be because numbers in it are rounded, and the powers of its quantities if converted."""

    number: Fraction
    radius: Fraction = Fraction(0)
    powers: Powers = _NO_POWERS


def value_of(node: Node, meaning: Meaning = USUAL, rounded: Rounded = lambda _: Fraction(0)) -> Value:
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
        found = _number(node, meaning, rounded)
        return replace(found, number=-found.number) if meaning.unusual and node.grouped else found
    if node.kind == "sum":
        if meaning.sizes is None:
            raise UnreadableError
        parts = [value_of(part, meaning) for part in node.parts]
        return Value(sum((part.number for part in parts), Fraction(0)), powers=parts[0].powers)
    if meaning.nested and node.kind in "*/" and node.parts[0].kind == "/" and not node.parts[0].grouped:
        top, middle = node.parts[0].parts
        node = Node("/", (top, Node(node.kind, (middle, node.parts[1]), grouped=True)))
    first, *rest = [value_of(part, meaning, rounded) for part in node.parts]
    if meaning.unusual and node.kind == "*" and node.parts[0].places and node.parts[1].grouped and rest[0].number < 0:
        digits = -rest[0].number
        return Value(first.number + digits / (10 ** len(str(digits)) - 1) / 10 ** node.parts[0].places)
    if node.kind == "negative":
        base = node.parts[0]
        even = meaning.unusual and base.kind == "^" and value_of(base.parts[1]).number % 2 == 0
        return first if even else replace(first, number=-first.number)
    if node.mixed and not meaning.mixed_is_product:
        return Value(first.number + rest[0].number, powers=first.powers)
    if node.kind in "+-*/":
        return _operated(node.kind, first, rest[0], meaning, node.parts[1])
    if any(each.powers or each.radius for each in (first, *rest)):
        raise UnreadableError
    if node.kind == "^":
        bits = int(first.number) ^ int(rest[0].number)
        return Value(Fraction(bits) if meaning.mixed_is_product else _power(first.number, rest[0].number))
    return Value(_factorial(first.number) if node.kind == "!" else _root(first.number))


def _number(node: Node, meaning: Meaning, rounded: Rounded) -> Value:
    factor, powers = Fraction(node.scale) if meaning.scaled and node.scale != 1 else _ONE, _NO_POWERS
    if node.percent and meaning.percent != "plain":
        factor /= 100
    if meaning.unusual and node.places == _GROUP and 1 <= node.value < 10**_GROUP:
        factor *= 10**_GROUP
    if meaning.sizes is not None:
        for units, sign in ((node.above, 1), (node.below, -1)):
            for unit in units:
                factor *= Fraction(meaning.sizes.get(unit.name, unit.size)) ** sign
                powers = _times(powers, {(unit.quantity, 1)}, sign)
    return Value(node.value * factor if factor != 1 else node.value, rounded(node) * factor, powers)


def _operated(kind: str, left: Value, right: Value, meaning: Meaning, node: Node) -> Value:
    """Two values with an operator between them. `node`: the right one."""
    a, b = left.number, right.number
    if kind in "+-":
        if left.powers != right.powers:
            raise UnreadableError
        if meaning.percent == "relative" and node.kind == "number" and node.percent:
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
    root = Fraction(math.isqrt(abs(number.numerator)), math.isqrt(number.denominator))
    if root * root != number:
        raise UnreadableError
    return root


def last_digit(node: Node, meaning: Meaning = USUAL) -> Fraction | None:
    """The worth of the last digit of a number that is written as one: of 0.25 it is 0.01. None for other expressions."""
    if node.kind == "negative":
        return last_digit(node.parts[0], meaning)
    if node.kind == "number" and (node.value.denominator == 1 or node.places):
        unit = Fraction(node.scale if meaning.scaled else 1, 10**node.places)
        return unit / 100 if node.percent and meaning.percent != "plain" else unit
    if node.kind == "*" and node.parts[0].kind == "number" and node.parts[1].kind == "^":
        part, power = last_digit(node.parts[0], meaning), node.parts[1]
        return part * value_of(power).number if part is not None and power.parts[0].value == 10 else None
    return None


def fit(one: Value, other: Value, unit: Fraction | None, *, about: bool, divided: bool) -> Fit:
    """How two values agree, the other one written with a last digit worth `unit` (None: not as a number).

    `about`: the text says that it is approximate. `divided`: the one is a quotient, which may be rounded to a whole number.
    """
    distance = abs(one.number - other.number)
    if not distance or (unit is not None and unit < FLOAT_DIGIT and distance <= FLOAT_NOISE * abs(one.number)):
        return Fit.EQUAL
    slack = one.radius + (other.radius if unit is None else 0)
    if about:
        digit = _last_nonzero(other.number) if unit is not None else Fraction(0)
        size = abs(one.number)
        if distance <= max(digit / 2, NEAR * size) + slack:
            return Fit.EQUAL
        return Fit.DOUBTFUL if distance <= max(digit, FAR * size) + slack else Fit.APART
    if unit is not None and unit != 1:
        cut = distance < unit and abs(other.number) < abs(one.number)
        if distance < unit / 2 or (distance == unit / 2 and not cut):
            return Fit.EQUAL
        return Fit.DOUBTFUL if cut or distance <= slack + unit / 2 else Fit.APART
    if unit is not None and one.number.denominator != 1:
        if decimal_places(one.number) is None and distance <= unit / 2:
            return Fit.EQUAL
        near = distance < unit and (divided or distance <= unit / 2)
        return Fit.DOUBTFUL if near or (slack and distance <= slack + unit / 2) else Fit.APART
    return Fit.DOUBTFUL if distance <= slack else Fit.APART


def _last_nonzero(number: Fraction) -> Fraction:
    """The worth of the last digit of a number that is not zero: of 2,300 it is 100."""
    if number and number.denominator == 1:
        return Fraction(last_place(str(number)))
    places = decimal_places(number)
    return Fraction(0) if places is None else Fraction(1, 10**places)


def maybe_rounded(node: Node, *, loosely: bool) -> Fraction:
    """How far off a number may be as it is written: half a unit of its last digit if it looks like a rounding, else 0.

    `loosely`: the text speaks of approximate numbers, so any decimal may be one."""
    tail = f"{node.value.numerator * 10**node.places // node.value.denominator % 1000:03d}"
    repeats = tail[1:] in (_THIRDS if node.money else _REPEATING if node.places else _THIRDS | _SIXTHS)
    long = node.places > _FEWEST_PLACES and tail not in _EXACT_TAILS and not tail.endswith("0")
    looks = node.places + 2 * node.percent >= _FEWEST_PLACES and (loosely or repeats or long)
    # 66% may be 2/3.
    return Fraction(1 + (tail[1:] in _CUT), 2 * 10**node.places) if looks else Fraction(0)
