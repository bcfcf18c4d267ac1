"""Judges an equation: it holds, it is false, or it is doubtful. Pure.

It is false only if both sides differ in each way that people may mean it: with or without conversion of units, for each meaning
of percent, as a running calculation (5 + 3 = 8 * 2 = 16), without precedence of operators, rounded, or with a factor between
units that is not written, of percent or of counts, which words of the sentence may stand for.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from itertools import combinations

from pipeline.data.numbers import Fit
from pipeline.data.units import UNITS
from pipeline.verifiers.arithmetic.equations import Equation
from pipeline.verifiers.arithmetic.rounding import fit, last_digit, maybe_rounded
from pipeline.verifiers.arithmetic.values import (
    CONVERTED,
    USUAL,
    Meaning,
    Node,
    Percent,
    UnreadableError,
    Value,
    value_of,
)

# Words that may stand for a factor which is not written. An equation that is wrong by this factor is doubtful.
_FACTORS = {
    word: [int(factor) for factor in factors.split("|")]
    for line in (
        "100 % percent percentage cents cent ¢ penny pennies $ hundred hundreds", "12 dozen dozens", "20 score", "144 gross",
        "2 pair pairs couple couples both twice double half weekend weekends", "4|25 quarter quarters", "10 dime dimes decade",
        "5 nickel nickels weekday weekdays", "1000 thousand thousands k", "1000000 million millions", "1000000000 billion",
        "1000|2000 ton tons", "8|5 workday workdays", "60 mph",
    )
    for factors, *words in (line.split(),)
    for word in words
}  # fmt: skip
_TIMES = (5, 7, 8, 12, 24, 28, 30, 31, 52, 60, 365, 366, 3600, 1440, 4)
"""Factors between units of time, with those of working weeks and days and of rough months."""
_WORKING_HOURS = 12
_GROUP = 3
"""Digits of a group."""
_MOST_TRIED = 24
_OTHER_MEANINGS = (
    Meaning(from_left=True),
    Meaning(mixed_is_product=True),
    Meaning(nested=True),
    Meaning(signed_base=True),
)


def hidden_factors(words: frozenset[str]) -> frozenset[Fraction]:
    """Factors that these words of a sentence may stand for, as conversions that are not written do."""
    found = {Fraction(factor) for word in words for factor in _FACTORS.get(word, ())}
    here = {UNITS[word] for word in words - {"in"} if word in UNITS}
    for unit in here:
        if unit.quantity in ("time", "years"):
            found.update(map(Fraction, _TIMES))
        else:
            sizes = {each.size / unit.size for each in UNITS.values() if each.quantity == unit.quantity} - {1}
            found.update(max(size, 1 / size) for size in sizes)
    return frozenset(found)


@dataclass(frozen=True, slots=True)
class Judgement:
    """How both sides agree. `left` and `right`: what they really are where they do not, in the unit of the right side."""

    fit: Fit
    left: Fraction = Fraction(0)
    right: Fraction = Fraction(0)


_DOUBTFUL = Judgement(Fit.DOUBTFUL)


def judge(equation: Equation, words: frozenset[str], *, loosely: bool) -> Judgement:
    """The judgement on an equation. `words`: those of its sentence, in small letters. `loosely`: the text rounds numbers."""
    left, right = equation.left.node, equation.right.node
    if _is_label(equation):
        return _DOUBTFUL
    try:
        ours, theirs = value_of(left).number, value_of(right).number
    except UnreadableError:
        return _judge_amounts(equation)
    if ours == theirs:
        return Judgement(Fit.EQUAL)
    if _is_conversion(left, right):
        return _judge_amounts(equation)
    found = _best_fit(equation, loosely)
    if found is not Fit.APART:
        return Judgement(found)
    return _DOUBTFUL if _is_meant_otherwise(equation, words) else _apart(equation, ours, theirs)


def _apart(equation: Equation, ours: Fraction, theirs: Fraction) -> Judgement:
    """The judgement on a false equation. Where units mix, what the left side is depends on them."""
    left, right = equation.left.node, equation.right.node
    if not _mixes_units(left, right):
        return Judgement(Fit.APART, ours, theirs)
    if not right.is_number or len(right.above) != 1 or right.below:
        return _DOUBTFUL
    try:
        in_base, other = value_of(left, CONVERTED), value_of(right, CONVERTED)
    except UnreadableError:
        return _DOUBTFUL
    same = in_base.powers == other.powers
    return Judgement(Fit.APART, in_base.number / right.above[0].size, theirs) if same else _DOUBTFUL


def _is_label(equation: Equation) -> bool:
    """Whether a lone number on the left side may be something else than what is equated: a price, a count, a name.

    It is judged in a chain, at the start of a formula, as a conversion of units and as a fraction: 0.75 = 3/4."""
    left, right = equation.left.node, equation.right.node
    if equation.chained or not left.is_number:
        return False
    if equation.displayed and not left.above and not left.nouns:
        return False
    if _is_conversion(left, right):
        return False
    fraction = right.kind == "/" and all(part.is_number for part in right.parts)
    return not (
        equation.begins
        and not (left.above or left.nouns)
        and (fraction or (right.is_number and left.percent != right.percent))
    )


def _is_conversion(left: Node, right: Node) -> bool:
    """Whether both sides are amounts in different units of one quantity: 2 hours = 120 minutes."""
    if not all(each.is_number or each.kind == "sum" for each in (left, right)):
        return False
    ours, theirs = (each.parts[0] if each.parts else each for each in (left, right))
    if any(len(each.above) != 1 or each.below or each.money for each in (ours, theirs)):
        return False
    return ours.above[0].quantity == theirs.above[0].quantity and (
        ours.above[0] != theirs.above[0] or bool(left.parts) or bool(right.parts)
    )


def _best_fit(equation: Equation, loosely: bool) -> Fit:
    """The best agreement over the meanings of percent and of words such as million, and over conversions of units."""
    left, right = equation.left.node, equation.right.node
    found = Fit.APART
    for ours, theirs in _meanings(left, right):
        try:
            fits = _fit_both(equation, ours, theirs, loosely)
        except UnreadableError:
            continue
        if fits is Fit.EQUAL:
            return Fit.EQUAL
        if fits is Fit.DOUBTFUL:
            found = Fit.DOUBTFUL
    converts = _by_conversion(equation)
    return converts if converts is Fit.EQUAL else found


def _fit_both(equation: Equation, ours: Meaning, theirs: Meaning, loosely: bool) -> Fit:
    left, right = equation.left.node, equation.right.node
    rounded = partial(maybe_rounded, loosely=loosely)
    one, other = value_of(left, ours, rounded), value_of(right, theirs, rounded)
    found = fit(one, other, last_digit(right, theirs), about=equation.about, divided=_divides(left))
    unit = last_digit(left, ours) if left.places else None
    if found is Fit.EQUAL or unit is None:
        return found
    back = fit(other, one, unit, about=equation.about, divided=_divides(right))
    return back if back is Fit.EQUAL or found is Fit.APART else found


def _meanings(left: Node, right: Node) -> Iterator[tuple[Meaning, Meaning]]:
    ours, theirs = _side_meanings(left), _side_meanings(right)
    return ((one, other) for one in ours for other in theirs)


def _side_meanings(node: Node) -> list[Meaning]:
    numbers = node.numbers()
    percents = list(Percent) if any(each.percent for each in numbers) else [Percent.HUNDREDTHS]
    scaled = (True, False) if any(each.scale != 1 for each in numbers) else (True,)
    return [Meaning(percent=percent, scaled=each) for percent in percents for each in scaled]


def _by_conversion(equation: Equation) -> Fit:
    """How both sides agree in the same units. DOUBTFUL if they cannot be converted."""
    left, right = equation.left.node, equation.right.node
    try:
        ours, theirs = value_of(left, CONVERTED), value_of(right, CONVERTED)
    except UnreadableError:
        return Fit.DOUBTFUL
    if ours.powers != theirs.powers or not ours.powers:
        return Fit.DOUBTFUL
    number = right.parts[-1] if right.kind == "sum" else right
    unit = last_digit(number)
    unit = unit * number.above[0].size if unit is not None and len(number.above) == 1 and not number.below else None
    found = fit(ours, theirs, unit, about=equation.about, divided=True)
    near = unit is not None and abs(ours.number - theirs.number) < unit
    return Fit.DOUBTFUL if found is not Fit.EQUAL and near else found


def _judge_amounts(equation: Equation) -> Judgement:
    """The judgement where units decide: 2 hours = 120 minutes, and amounts such as 2 hours 30 minutes."""
    left, right = equation.left.node, equation.right.node
    found = _by_conversion(equation)
    if found is not Fit.APART:
        return Judgement(found)
    if not right.is_number or len(right.above) != 1 or right.below or _is_working_time(left, right):
        return _DOUBTFUL
    return Judgement(Fit.APART, value_of(left, CONVERTED).number / right.above[0].size, value_of(right).number)


def _is_meant_otherwise(equation: Equation, words: frozenset[str]) -> bool:
    """Whether an equation whose sides differ may be meant in another way."""
    left, right = equation.left.node, equation.right.node
    ours, theirs = value_of(left).number, value_of(right).number
    if equation.signed is not None and _agree(equation.signed, right):
        return True
    if _is_running(equation, ours) or _is_read_otherwise(left, right):
        return True
    whole = right.is_number and right.places == 0 and theirs.denominator == 1
    if _divides(left) and whole and ours.denominator != 1 and abs(ours - theirs) < 1:
        return True
    if _is_exchange(left, right) or any(_is_share_of_sum(side) or _is_date(side) for side in (left, right)):
        return True
    if _mixes_units(left, right):
        converts = _by_conversion(equation)
        if converts is Fit.EQUAL or (converts is Fit.DOUBTFUL and (_adds(left) or _adds(right))):
            return True
    if _may_group_digits(left, right) or _may_be_range(left, ours, theirs):
        return True
    if not ours or not theirs:
        return False
    ratio = abs(ours / theirs)
    factors = hidden_factors(words | _unit_names(left, right))
    if _divides(left) or _divides(right):
        # Half a dozen is written 1/2 dozen, which reads as 1/24.
        factors |= {factor * factor for factor in factors}
    return any(_nearly(ratio, factor) or _nearly(1 / ratio, factor) for factor in factors)


def _may_group_digits(left: Node, right: Node) -> bool:
    """Whether both sides agree if points group digits, as many languages write them: 1.500 + 500 = 2.000."""
    return any(map(_has_group, (*left.numbers(), *right.numbers()))) and _agree(_grouped(left), _grouped(right))


def _has_group(node: Node) -> bool:
    return node.places == _GROUP and 1 <= node.value < 10**_GROUP


def _grouped(node: Node) -> Node:
    value = node.value * 10**_GROUP if _has_group(node) else node.value
    return replace(node, value=value, parts=tuple(map(_grouped, node.parts)))


def _may_be_range(left: Node, ours: Fraction, theirs: Fraction) -> bool:
    """Whether the left side may be from one number to another, and the right one counts them: pages 3-5 = 3 pages."""
    return left.kind == "-" and ours < 0 and theirs == 1 - ours


def _nearly(ratio: Fraction, factor: Fraction) -> bool:
    return abs(ratio - factor) * 1000 < factor


def _unit_names(left: Node, right: Node) -> frozenset[str]:
    return frozenset("percent" for node in (*left.numbers(), *right.numbers()) if node.percent)


def _is_running(equation: Equation, ours: Fraction) -> bool:
    """Whether the right side goes on with the left one: 5 + 3 = 8 * 2."""
    for prefix in equation.right.prefixes[:_MOST_TRIED]:
        try:
            number = value_of(prefix)
        except UnreadableError:
            continue
        if fit(Value(ours), number, last_digit(prefix), about=equation.about, divided=True) is Fit.EQUAL:
            return True
    return False


def _is_read_otherwise(left: Node, right: Node) -> bool:
    """Whether both sides agree if operators have no precedence, if 3 / 1/4 is 3 / (1/4), if -3^2 is 9, or if a mixed
    number is a product."""
    return any(
        _agree(left, right, ours, theirs)
        for other in _OTHER_MEANINGS
        for ours, theirs in ((other, USUAL), (USUAL, other), (other, other))
    )


def _agree(left: Node, right: Node, ours: Meaning = USUAL, theirs: Meaning = USUAL) -> bool:
    try:
        return value_of(left, ours).number == value_of(right, theirs).number
    except UnreadableError:
        return False


def _divides(node: Node) -> bool:
    return _has(node, "/")


def _adds(node: Node) -> bool:
    return _has(node, "+") or _has(node, "-") or _has(node, "sum")


def _has(node: Node, kind: str) -> bool:
    return any(each.kind == kind for each in node.nodes())


def _is_share_of_sum(node: Node) -> bool:
    """Whether a sum has a share in it, which may be a share of the sum: half of 5 + 3."""
    return _adds(node) and any(each.share for each in node.nodes())


def _is_date(node: Node) -> bool:
    """Whether it is 12/25/2020."""
    if not node.parts or not node.kind == node.parts[0].kind == "/":
        return False
    return all(each.is_number for each in (*node.parts[0].parts, node.parts[1]))


def _is_exchange(left: Node, right: Node) -> bool:
    """Whether a sum of different things is worth something else: 2 apples + 3 oranges = $7."""
    if not _adds(left):
        return False
    terms = left.numbers()
    things = [each.nouns for each in terms if each.nouns]
    if not things:
        return False
    measured = any(each.above for each in terms) or any(each.above for each in right.numbers())
    return measured or any(not one & other for one, other in combinations(things[:_MOST_TRIED], 2))


def _mixes_units(left: Node, right: Node) -> bool:
    """Whether two units of one quantity occur."""
    units = {unit for node in (*left.numbers(), *right.numbers()) for unit in (*node.above, *node.below)}
    return len({unit.quantity for unit in units}) < len(units)


def _is_working_time(left: Node, right: Node) -> bool:
    """Whether a conversion may be of working days or weeks: 1 week = 5 days, 2 days = 16 hours."""
    if not (left.above and right.above and left.value and right.value):
        return False
    ratio = max(left.value, right.value) / min(left.value, right.value)
    names = {left.above[0].name, right.above[0].name}
    return (names == {"day", "h"} and ratio <= _WORKING_HOURS) or (names == {"week", "day"} and ratio in (5, 6))
