"""Judges an equation: it holds, it is false, or it is doubtful. Pure.

It is false only if both sides differ in each way that people may mean it: with or without conversion of units, for each meaning
of percent, as a running calculation (5 + 3 = 8 * 2 = 16), without precedence of operators, rounded, or with a factor between
units that is not written, of percent or of counts, which words of the sentence may stand for.
"""

from dataclasses import replace
from fractions import Fraction
from functools import partial
from itertools import combinations, product

from pipeline.data.numbers import Fit
from pipeline.data.units import UNITS
from pipeline.verifiers.arithmetic.equations import Equation
from pipeline.verifiers.arithmetic.values import (
    CONVERTED,
    OTHERWISE_CONVERTED,
    PERCENTS,
    USUAL,
    Meaning,
    Node,
    Rounded,
    UnreadableError,
    Value,
    fit,
    last_digit,
    maybe_rounded,
    value_of,
)
from pipeline.verifiers.arithmetic.words import words_of

# Words that may stand for a factor which is not written. An equation that is wrong by this factor is doubtful.
_FACTORS = {
    word: [int(factor) for factor in factors.split("|")]
    for line in (
        "100 % percent percentage cents cent ¢ penny pennies $ hundred hundreds", "12 dozen dozens", "20 score", "144 gross",
        "2 pair pairs couple couples both twice double half weekend weekends", "4|25 quarter quarters", "10 dime dimes",
        "10 ten tens decade", "5 nickel nickels weekday weekdays", "1000 thousand thousands k", "1000000 million millions",
        "1000000000 billion", "1000|2000 ton tons", "8|5 workday workdays", "60 mph", "1024|1048576 kb mb gb tb",
    )
    for factors, *words in (line.split(),)
    for word in words
}  # fmt: skip
_TIMES = (5, 7, 8, 12, 24, 28, 30, 31, 52, 60, 365, 366, 3600, 1440, 4)
"""Factors between units of time, with those of working weeks and days and of rough months."""
_HOUR, _CLOCK, _CENT = UNITS["hour"], 12, Fraction(1, 100)
_AVERAGES = words_of("average averages mean midpoint")
_SCORES = words_of("won win wins lost lose score scores scored record beat beats goals games match led leads series")
_SUMS = ("+", "-", "sum")
_MOST_TRIED = 24
_UNUSUAL = (Meaning(from_left=True), Meaning(mixed_is_product=True), Meaning(nested=True), Meaning(unusual=True))


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


Judgement = tuple[Fit, Fraction, Fraction]
"""How both sides agree, and what they really are where they do not, in the unit of the right side."""
_ZERO, _ONE = Fraction(0), Fraction(1)
_DOUBTFUL: Judgement = (Fit.DOUBTFUL, _ZERO, _ZERO)
_CLASH: Judgement = (Fit.APART, _ZERO, _ZERO)
"""False as it is written, by a factor that it may leave out: 1 hour = 60 hours."""


def judge(equation: Equation, words: frozenset[str], *, loosely: bool) -> Judgement:
    """The judgement on an equation. `words`: those of its sentence, in small letters. `loosely`: the text rounds numbers."""
    left, right = equation.left.node, equation.right.node
    if _is_label(equation):
        return _DOUBTFUL
    ours, theirs = _worth(left), _worth(right)
    if ours is None or theirs is None or _is_conversion(left, right):
        found = _by_conversion(equation)
        return _in_its_unit(left, right) if found is Fit.APART else (found, _ZERO, _ZERO)
    percent = any(each.percent for each in (*left.numbers(), *right.numbers()))
    found = Fit.EQUAL if ours == theirs and not percent else _best_fit(equation, loosely)
    words |= {"percent"} if percent else set()
    if found is Fit.EQUAL and _renames(left, right):
        return _CLASH
    if found is not Fit.DOUBTFUL and (found is Fit.EQUAL or _lacks_factor(equation, ours, theirs, words)):
        if _by_conversion(equation) is Fit.APART or (percent and found is Fit.APART):
            return _CLASH  # 3 * 10 minutes = 30 hours, 20% of 50 = 1000
        return (found, _ZERO, _ZERO) if found is Fit.EQUAL else _DOUBTFUL
    if found is Fit.APART and _is_meant_otherwise(equation, ours, theirs, words):
        return _DOUBTFUL
    if found is not Fit.APART:
        return found, _ZERO, _ZERO
    return _in_its_unit(left, right) if _mixes_units(left, right) else (Fit.APART, ours.number, theirs.number)


def _worth(node: Node, meaning: Meaning = USUAL, *rounded: Rounded) -> Value | None:
    try:
        return value_of(node, meaning, *rounded)
    except UnreadableError:
        return None


def _in_its_unit(left: Node, right: Node) -> Judgement:
    """The judgement on a false equation whose left side depends on the unit of the right one."""
    ours, other, theirs = _worth(left, CONVERTED), _worth(right, CONVERTED), _worth(right)
    single = right.is_number and len(right.above) == 1 and not right.below
    if not single or ours is None or other is None or theirs is None or ours.powers != other.powers:
        return _DOUBTFUL
    return Fit.APART, ours.number / right.above[0].size, theirs.number


def _is_label(equation: Equation) -> bool:
    """Whether a lone number on the left side may be something else than what is equated: a price, a count, a name.

    It is judged in a chain, at the start of a formula, as a conversion of units and as a fraction: 0.75 = 3/4."""
    left, right = equation.left.node, equation.right.node
    named = bool(left.above or left.nouns)
    if equation.chained or not left.is_number or (equation.displayed and not named) or _is_conversion(left, right):
        return False
    judged = _is_fraction(right) or (right.is_number and left.percent != right.percent)
    return named or not equation.begins or not judged


def _is_fraction(node: Node) -> bool:
    return node.kind == "/" and all(part.is_number for part in node.parts)


def _is_conversion(left: Node, right: Node) -> bool:
    """Whether both sides are amounts in different units of one quantity: 2 hours = 120 minutes."""
    amounts = all(each.is_number or each.kind == "sum" for each in (left, right))
    numbers = (*left.numbers(), *right.numbers())
    plain = not any(each.below or each.money or (each.above and each.nouns) for each in numbers)
    return amounts and plain and _mixes_units(left, right)


def _best_fit(equation: Equation, loosely: bool) -> Fit:
    """The best agreement over the meanings of percent and of words such as million, and over conversions of units."""
    left, right = equation.left.node, equation.right.node
    rounded = partial(maybe_rounded, loosely=loosely)
    found = {_by_conversion(equation)} & {Fit.EQUAL}
    for ours, theirs in product(_meanings(left, right), _meanings(right, left)):
        one, other = _worth(left, ours, rounded), _worth(right, theirs, rounded)
        if one and other:
            fits = fit(one, other, last_digit(right, theirs), about=equation.about, divided=_has(left, "/"))
            found.add(Fit.DOUBTFUL if fits is Fit.EQUAL and not _is_consistent(left, right, ours, theirs) else fits)
        if one and other and (left.places or left.percent):
            found.add(fit(other, one, last_digit(left, ours), about=equation.about, divided=_has(right, "/")))
    return next((fits for fits in (Fit.EQUAL, Fit.DOUBTFUL) if fits in found), Fit.APART)


def _is_consistent(left: Node, right: Node, ours: Meaning, theirs: Meaning) -> bool:
    """Whether percent means one thing on both sides, as it does not in 25% of 80 = 20% and 3 + 4 = 7%."""
    numbers, plain = left.numbers(), theirs.percent == "plain"
    wholes = [each.parts[1] for each in left.nodes() if each.share and right.percent]
    if any(not part.percent for whole in wholes for part in whole.numbers()):
        return False
    if any(each.percent for each in numbers):
        if ours.percent == "plain" and not all(each.percent for each in numbers) and left.kind in "+-":
            return False
        return not right.percent or plain == (ours.percent == "plain")
    return not plain or any(each.value == 100 or each.value.denominator != 1 for each in numbers)


def _meanings(node: Node, other: Node) -> list[Meaning]:
    numbers = node.numbers()
    percents = list(PERCENTS if any(each.percent for each in numbers) else PERCENTS[:1])
    mixed = any(
        len({one.percent for one in each.parts if one.is_number}) > 1 for each in node.nodes() if each.kind in "+-"
    )
    # 20% of 50 is never 1000, 50% never 50, and 100 + 10% hardly 100.1.
    plain = not _has(node, "*", "/") and not (node.is_number and other.is_number)
    percents = [each for each in percents if each != "plain" or plain][mixed:]
    scaled = (True, False) if any(each.scale != 1 for each in numbers) else (True,)
    return [Meaning(percent=percent, scaled=each) for percent in percents for each in scaled]


def _by_conversion(equation: Equation, meaning: Meaning = CONVERTED) -> Fit:
    """How both sides agree in the same units. DOUBTFUL if not at all, by another convention or by a factor without a unit."""
    left, right = equation.left.node, equation.right.node
    ours, theirs = _worth(left, meaning), _worth(right, meaning)
    if ours is None or theirs is None or ours.powers != theirs.powers or not ours.powers:
        return Fit.DOUBTFUL
    number = right.parts[-1] if right.kind == "sum" else right
    unit = last_digit(number) if len(number.above) == 1 and not number.below else None
    size = number.above[0].size if unit is not None else 1
    ours, theirs = (replace(each, number=each.number / size) for each in (ours, theirs))
    found = fit(ours, theirs, unit, about=equation.about, divided=False)
    off = abs(ours.number - theirs.number)
    if unit is not None and 0 < off < unit <= 2 * abs(ours.number):
        return found if found is Fit.EQUAL and unit != 1 else Fit.DOUBTFUL
    if found is Fit.APART and meaning is CONVERTED:
        bare = [each.value for each in left.numbers() if not each.above]
        ways = ((ours.number, theirs.number), (theirs.number, ours.number))
        factored = any(abs(large - each * small) < _CENT * abs(large) for each in bare for large, small in ways)
        if factored or any(_by_conversion(equation, each) is Fit.EQUAL for each in OTHERWISE_CONVERTED):
            return Fit.DOUBTFUL
    return found


def _is_meant_otherwise(equation: Equation, one: Value, other: Value, words: frozenset[str]) -> bool:
    """Whether an equation whose sides differ may be meant in another way."""
    left, right, about = equation.left.node, equation.right.node, equation.about
    ours, theirs, sides = one.number, other.number, (left, right)
    whole = right.is_number and right.places == 0 and theirs.denominator == 1 and ours.denominator != 1
    hundredths = right.money or (left.kind == "/" and left.parts[1].value == 100)
    start = _worth(left.parts[0]) if left.kind == "-" and left.parts[1].is_number else None
    return bool(
        ours == theirs  # 100 + 10% = 100.1
        or _holds_counted(equation, ours, theirs)  # 3 bags of 4 + 2 = 14 apples
        or any(one is None or other is None or _agree(one.node, other.node) for one, other in equation.others)
        or any(  # 5 + 3 = 8 * 2
            (first := _worth(each)) and fit(one, first, last_digit(each), about=about, divided=True) is Fit.EQUAL
            for each in equation.right.prefixes[:_MOST_TRIED]
        )
        # No precedence of operators, 3 / 1/4 as 3 / (1/4), -3^2 as 9, a mixed number as a product, 1.500 as 1500.
        or any(_agree(*sides, *ways) for each in _UNUSUAL for ways in product((each, USUAL), repeat=2))
        or (_has(left, "/") and abs(ours - theirs) < (1 if whole else _CENT if hundredths else 0))
        or _counts_otherwise(left, right, theirs)
        # Half of 5 + 3 may be a share of the sum.
        or any(_has(side, *_SUMS) and any(each.share for each in side.nodes()) for side in sides)
        or any(side.kind == "/" and _is_fraction(side.parts[0]) for side in sides)  # 12/25/2020
        # Pages 3-5 = 3 pages, 10 - 12 hours = 11 hours; 9 - 5 = 8 hours, 9 + 8 = 5 hours.
        or (start and ours < 0 and (theirs == 1 - ours or 0 <= theirs - start.number <= -ours))
        # 7-5 = 6 on average, they won 3-1 = 4 games.
        or (start and words & _AVERAGES and start.number >= theirs >= start.number - ours)
        or (start and words & _SCORES and equation.others and theirs == 2 * start.number - ours)
        or (_HOUR in right.above and {"+": ours - theirs, "-": ours + theirs}.get(left.kind) == _CLOCK)
        or (_mixes_units(left, right) and _by_conversion(equation) is not Fit.APART)
    )


def _holds_counted(equation: Equation, ours: Fraction, theirs: Fraction) -> bool:
    """Whether the count before an equation is a factor of its first term or of its left side."""
    first = equation.left.node
    while first.kind in ("+", "-") and not first.grouped:
        first = first.parts[0]
    begin = _worth(first)
    return begin is not None and theirs in (ours + (equation.count - 1) * begin.number, ours * equation.count)


def _lacks_factor(equation: Equation, one: Value, other: Value, words: frozenset[str]) -> bool:
    """Whether both sides differ by a factor that words of the sentence may stand for."""
    sides = equation.left.node, equation.right.node
    ratio = abs(one.number / other.number) if one.number and other.number else _ONE
    factors = hidden_factors(words)
    if any(_has(side, "/") for side in sides):
        # Half a dozen is written 1/2 dozen, which reads as 1/24.
        factors |= {factor * factor for factor in factors}
    return any(abs(each - factor) * 1000 < factor for factor in factors for each in (ratio, 1 / ratio))


def _agree(left: Node, right: Node, ours: Meaning = USUAL, theirs: Meaning = USUAL) -> bool:
    one, other = _worth(left, ours), _worth(right, theirs)
    return one is not None and one == other


def _has(node: Node, *kinds: str) -> bool:
    return any(each.kind in kinds for each in node.nodes())


def _counts_otherwise(left: Node, right: Node, amount: Fraction) -> bool:
    """Whether different things are counted: 2 apples + 3 oranges = $7, 3 pairs - 1 = 5 shoes, 3 hours - 30 = 2.5 hours."""
    terms = left.numbers()
    things = [each.nouns for each in terms if each.nouns]
    measured = any(each.above for each in (*terms, *right.numbers()))
    different = any(not one & other for one, other in combinations(things[:_MOST_TRIED], 2))
    ours, theirs = (
        {kind for each in side for kind in (*each.nouns, *(unit.quantity for unit in each.above))}
        for side in (terms, right.numbers())
    )
    counts = any(noun in _FACTORS or f"{noun}s" in _FACTORS for noun in ours - theirs)
    bare = measured and not right.money and not all(each.above or each.places for each in terms)
    plain = not _has(left, "*", "/")
    counts |= plain and len({unit.quantity for each in terms for unit in each.above}) > 1
    if _has(left, *_SUMS) and ((things and (measured or different)) or counts or (bare and amount.denominator != 1)):
        return True
    share = left.percent or (_is_fraction(left) and left.parts[0].value < left.parts[1].value)
    unlike = (ours and theirs and plain) or (share and (ours or theirs or amount >= 1))
    return bool(unlike) and ours.isdisjoint(theirs)


def _kinds(node: Node) -> frozenset[str]:
    """What a number counts or measures."""
    return node.nouns.union(unit.quantity for unit in node.above)


def _renames(left: Node, right: Node) -> bool:
    """Whether all that is added is of one kind, and the result of another: 3 dogs + 2 dogs = 5 cats."""
    ours, theirs = {kind for each in left.numbers() if (kind := _kinds(each))}, _kinds(right)
    return len(ours) == 1 and bool(theirs) and theirs.isdisjoint(*ours) and not (right.percent or _has(left, "*", "/"))


def _mixes_units(left: Node, right: Node) -> bool:
    """Whether two units of one quantity occur."""
    units = {unit for node in (*left.numbers(), *right.numbers()) for unit in (*node.above, *node.below)}
    return len({unit.quantity for unit in units}) < len(units)
