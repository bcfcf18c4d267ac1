r"""Compares answers without algebra: equal spelling, number, words or polynomial, item by item. Pure and exact.

The README of graders has the rules. What they do not decide is None here, which does not mean that the answer is wrong.

This module also decides which texts computer algebra may not read: its grammar reads words as products of letters, "5 6" as a
sum, "1e5" as 5e, 52_8 as 52, a:b as a, 2^2^3 from the left, and drops the names after \triangle and the prime of x'.
"""

import re
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache

from pipeline.core.records import Verdict
from pipeline.graders.math import phrases
from pipeline.graders.math.choices import may_have_parts, paired
from pipeline.graders.math.exact import (
    COUNTED,
    DEGREE,
    DIRECTIONS,
    Exact,
    convert_unit,
    decimal_comma,
    exact_value,
    is_money,
    number_before_letter,
    trailing_unit,
    with_point,
    without_unit,
)
from pipeline.graders.math.expression import Expression, close, equal, expression, is_undefined, rounds_to
from pipeline.graders.math.extract import unwrap
from pipeline.graders.math.forms import Form, FormKind, is_label, read_form
from pipeline.graders.math.labels import FUNCTIONS
from pipeline.graders.math.measures import parts_of_ratio, proportional, same_angle
from pipeline.graders.math.normal import normal_form
from pipeline.graders.math.ratio import constant
from pipeline.graders.math.rounding import FLOAT_NOISE, is_long, is_rounding
from pipeline.graders.math.structure import Leaf, same_form

LARGE_POWER = 2**40
LETTERS = "ABCDEFGHIJ"

# Words state the number after them only if they end with a verb: "Hillary has 7", but not "the square of 7".
_STATEMENT = re.compile(
    r"(?:[A-Za-z][a-z'-]*,? ){0,10}"
    r"(?:is|are|was|were|has|have|had|gets?|got|makes?|made|takes?|took|needs?|equals?|costs?|gives?|spends?|spent|earns?|earned"
    r"|paid|pays|sold|sells|bought|buys|ate|eats|left|total of|requires?|required|lasts?|lasted|weighs?|contains?|holds?"
    r"|(?:will|must|can|would|should|to) (?:be|have|need|take|get|make|cost|pay|earn|spend"
    r"|sell|buy|eat|use|read|last|meet after|meet in)"
    r"|(?:meets?|met|arrives?|arrived|finish(?:es|ed)?|ends?|ended) (?:after|in)"
    r"|(?:they|we|you|I) (?:need|take|have|get|make|pay|spend))"
    r"(?: (?:him|her|them|us|me|you|[A-Z][a-z]{1,20})(?! and\b))?"
    r"(?: (?:(?:only|just|exactly|about|a total of) )?(?=[-+$£€]?[\d.\\])|(?=[$£€]))",
    re.IGNORECASE,
)
_NEGATION = re.compile(r"\b(?:not|no|never|cannot|or|if|than|neither|without|except)\b|n't\b", re.IGNORECASE)
LONGEST_PRODUCT = 2

_COMMAND = re.compile(r"\\[A-Za-z]+")
_WORD = re.compile(r"[A-Za-z]{3,}")
_MISREAD = re.compile(
    r"[<>].*\b(?:and|or)\b|\d \d|\d[eE][+-]?\d|\d_|:|'|\^-?(?:\d+|[A-Za-z]|\\[A-Za-z]+)\^"
    r"|\\(?:overline|triangle|angle|square|vec|hat|widehat|bar|overrightarrow|parallel|perp|cong|mathbb|neg|[lc]?dots)"
)
_BRACE = re.compile(r"\^?\{|\}")
_MATHEMATICS = re.compile(r"[\d\\=^+*/<>]")
_CHAIN = re.compile(r"\\approx|\\doteq|\\simeq")
_SHORT_SCRIPT = re.compile(r"([_^])([A-Za-z0-9])(?![A-Za-z0-9])")
_LOG_OF_NO_BASE = re.compile(r"\\log(?![A-Za-z_])")


def verdict_by_spelling(gold: str, answer: str) -> Verdict | None:
    """CORRECT for equal spelling, a verdict for two whole numbers or choice letters, else None. Takes less than 1 us."""
    if gold == answer and gold:
        return Verdict.CORRECT
    if gold.isdigit() and answer.isdigit() and gold.isascii() and answer.isascii():
        return Verdict.CORRECT if gold.lstrip("0") == answer.lstrip("0") else Verdict.INCORRECT
    if gold in LETTERS and answer in LETTERS and gold and answer:
        return Verdict.INCORRECT
    return None


def quick_verdict(gold: str, answer: str, *, relative_tolerance: float = 0.0) -> Verdict | None:
    """The verdict if it is certain without algebra, UNPARSEABLE if algebra cannot read the pair, else None."""
    plain = verdict_by_spelling(gold, answer)
    if plain is not None:
        return plain
    pairs = paired(unwrap(gold), answer) if may_have_parts(gold, answer) else None
    if pairs is not None:
        return of_all([quick_verdict(*pair, relative_tolerance=relative_tolerance) for pair in pairs])
    wanted, given = gold_form(gold), normal_form(answer)
    if wanted == given:
        return Verdict.CORRECT if wanted else None
    if not wanted or not given:
        return None
    right = same_answer(wanted, given, relative_tolerance)
    if right is None:
        by_value = expression(without_unit(wanted)) and expression(without_unit(given))
        return None if by_value else without_algebra(wanted, given)
    if not right and is_undefined(without_unit(wanted)):
        # Nothing is compared with a gold that has no value.
        return Verdict.UNPARSEABLE
    return Verdict.CORRECT if right else Verdict.INCORRECT


def of_all(verdicts: Sequence[Verdict | None]) -> Verdict | None:
    """The verdict on an answer whose parts have these verdicts. It is CORRECT if all are, and INCORRECT if there are none."""
    if not verdicts or Verdict.INCORRECT in verdicts:
        return Verdict.INCORRECT
    return next((verdict for verdict in verdicts if verdict is not Verdict.CORRECT), Verdict.CORRECT)


# All rollouts of a problem are compared with the same gold.
@lru_cache(maxsize=4096)
def gold_form(gold: str) -> str:
    """The normal form of a gold, without wrappers."""
    return normal_form(unwrap(gold))


def is_plain(gold: str) -> bool:
    """Whether this module can read a gold completely: numbers, words, letters, and structures of these."""
    return _is_read(read_form(gold_form(gold)))


def _is_read(form: Form) -> bool:
    if form.kind is FormKind.EXPRESSION:
        text = form.text
        return bool(
            exact_value(text) or expression(without_unit(text)) or phrases.is_phrase(text) or parts_of_ratio(text)
        )
    has_items = bool(form.items) or form.kind is FormKind.SET
    return has_items and all(_is_read(item) for item in form.items if not is_label(item.text))


def same_answer(wanted: str, given: str, tolerance: float, leaf: Leaf | None = None) -> bool | None:
    """Compare two normal forms. `leaf` compares their smallest parts, by default without algebra.

    1,234 is read as one number and then as two; 0,5 is read as two numbers and then as one. The second reading is used if the
    first one does not match.
    """
    pointed = with_point(wanted) if "," in wanted else wanted
    if "," in given:
        given = with_point(given)
    if pointed != wanted:
        as_number = same_answer(pointed, given, tolerance, leaf)
        # "3,5 cm" may also be a list. An amount of money is none.
        if as_number or is_money(pointed):
            return as_number
    right, number = exact_value(wanted), exact_value(given)
    if right and number:
        return _same_number(right, number, tolerance)
    chosen = _same_choice(wanted, given, lambda one, other: same_answer(one, other, tolerance, leaf))
    if chosen is None:
        chosen = phrases.same_letters(wanted, given)
    if chosen is not None:
        return chosen
    decide = leaf or (lambda one, other: same_expression(one, other, tolerance))
    first = same_form(read_form(wanted), read_form(given), decide)
    if first or ("," not in wanted and "," not in given):
        return first
    comma, point = (decimal_comma(wanted, sure=True), number) if number else (decimal_comma(given, sure=False), right)
    if comma is not None and point is not None and point.decimal and comma == point.value:
        return True
    return same_form(read_form(wanted, thousands=False), read_form(given, thousands=False), decide) or first


def same_expression(wanted: str, given: str, tolerance: float) -> bool | None:
    """Compare two normal forms, each of which is one number, one expression or one phrase."""
    if wanted == given:
        return True
    right, number = exact_value(wanted), exact_value(given)
    if right and not number:
        number = _number_of_sentence(given)
    if right and number:
        return _same_number(right, number, tolerance)
    if right and right.unit is None and number_before_letter(given) == right.value:
        # For the gold 5, "5m" means five metres, not five times m.
        return True
    for same in (
        phrases.same_literal, phrases.same_numeral, phrases.same_time, proportional, phrases.same_words, same_angle
    ):  # fmt: skip
        decided = same(wanted, given)
        if decided is not None:
            return decided
    units = trailing_unit(wanted), trailing_unit(given)
    if all(units) and units[0] != units[1]:
        return False
    left, other = _expression_of(wanted, right), _expression_of(given, number)
    if left and other:
        same_value = equal(left, other)
        decimal = long_decimal(right, given) or long_decimal(number, wanted)
        if decimal is not None and not same_value:
            return rounds_to(other if right else left, decimal)
        if tolerance and not same_value and ((right and right.decimal) or (number and number.decimal)):
            return close(left, other, tolerance) or same_value
        return same_value
    if (left and is_undefined(without_unit(given))) or (other and is_undefined(without_unit(wanted))):
        return False
    # Words on one side and a number or expression on the other differ. Two letters may be a product, so they stay open.
    phrase, said = phrases.words(wanted), phrases.words(given)
    spoken = (phrase if number or other else None) or (said if right or left else None)
    return False if spoken and len(spoken) > LONGEST_PRODUCT else None


def long_decimal(number: Exact | None, other: str) -> Exact | None:
    """A long decimal if the other side is written without a decimal point, else None."""
    plain = number and number.decimal and not number.percent and "." not in other and is_long(number)
    return number if plain else None


def _expression_of(normal: str, number: Exact | None) -> Expression | None:
    if number and not number.percent:
        return Expression(constant(number.value), {})
    return expression(without_unit(normal))


def _number_of_sentence(given: str) -> Exact | None:
    """The number in a sentence such as "Hillary has 7 nickels": words, one number, and at most its unit."""
    match = _STATEMENT.match(given)
    if match is None or _NEGATION.search(match.group()):
        return None
    return exact_value(given[match.end() :])


def _same_number(right: Exact, number: Exact, tolerance: float) -> bool:
    if right.unit and number.unit and right.unit != number.unit and _are_comparable(right.unit, number.unit):
        return convert_unit(number, right.unit) == right.value
    one_percent = right.percent != number.percent
    if one_percent and (right.unit or number.unit):
        # 50 kg and 50 degrees are no percentages.
        return False
    given, wanted = (
        {each.value, each.value / 100} if one_percent and each.percent else {each.value} for each in (number, right)
    )
    if given & wanted:
        return True
    for decimal, other in ((right, number), (number, right)):
        rounded = decimal.decimal and (is_rounding(decimal, other.value) or _is_float(other, decimal))
        if rounded and not one_percent:
            return True
    limit = Fraction(tolerance) if right.decimal or number.decimal else 0
    return bool(limit) and any(abs(a - b) <= limit * max(abs(a), abs(b)) for a in given for b in wanted)


def _is_float(fraction: Exact, decimal: Exact) -> bool:
    """Whether a fraction is a float close to a decimal, over the power of two that a program writes."""
    bottom = fraction.value.denominator
    is_power = bottom >= LARGE_POWER and not bottom & (bottom - 1)
    return is_power and abs(fraction.value - decimal.value) <= FLOAT_NOISE * abs(decimal.value)


def _are_comparable(unit: str, other: str) -> bool:
    """Whether two units are both known, or both count things whose names share no word: apples and oranges."""
    if DEGREE in (unit, other) and unit.startswith(DEGREE) and other.startswith(DEGREE):
        # The scale of a temperature may be left out.
        return False
    counted = [name.startswith(COUNTED) for name in (unit, other)]
    if all(counted):
        ways = [DIRECTIONS.intersection(name.split()) for name in (unit, other)]
        # 5 m north is not 5 m south.
        opposite = all(ways) and ways[0] != ways[1]
        return opposite or set(unit.split()) & set(other.split()) == {COUNTED}
    return not any(counted)


def _same_choice(wanted: str, given: str, same: Leaf) -> bool | None:
    """Compare a choice letter with a letter, with a letter and its text, or with something else. `same` compares values."""
    (letter, text), (answered, said) = phrases.choice(wanted), phrases.choice(given)
    if not letter:
        # "(B) 12" states 12.
        return same(wanted, normal_form(said)) if said and not phrases.hedges(given) else None
    if phrases.hedges(given):
        return False
    if text and not answered:
        return same(normal_form(text), given)
    if answered:
        left, right = (exact_value(normal_form(each)) for each in (text, said))
        if left and right and left.value != right.value:
            return False
        sure = text or said or wanted.isupper() or given.isupper() or wanted == given
        return answered == letter if sure else None
    if letter in ("E", "I"):
        return None
    return False if letter not in given.upper() or exact_value(given) or phrases.words(given) else None


def for_grammar(normal: str) -> str | None:
    """The LaTeX of a normal form for the grammar of computer algebra, or None if the grammar would misread it."""
    text = without_unit(_CHAIN.split(normal)[0].strip()).removesuffix("%").strip()
    words = _has_words(text) and "\\begin{" not in text
    if not text or "%" in text or words or _MISREAD.search(text) or _has_double_power(text):
        return None
    return _SHORT_SCRIPT.sub(r"\1{\2}", text)


def _has_double_power(text: str) -> bool:
    """Whether a power follows an exponent in braces: 2^{3}^2 may mean two things."""
    if "}^" not in text:
        return False
    opened: list[bool] = []
    for brace in _BRACE.finditer(text):
        if brace.group() != "}":
            opened.append(brace.group() == "^{")
        elif opened and opened.pop() and text.startswith("^", brace.end()):
            return True
    return False


def without_algebra(wanted: str, given: str) -> Verdict | None:
    """The verdict on two normal forms if algebra cannot read one of them, or None if it may read both.

    It is INCORRECT if the gold contains words, or if the gold does not and the answer consists of words. Otherwise it is
    UNPARSEABLE.
    """
    if not {read_form(wanted).kind, read_form(given).kind} <= {FormKind.EXPRESSION, FormKind.RELATION}:
        return None
    if for_grammar(wanted) is None:
        return Verdict.INCORRECT if _has_words(wanted) else Verdict.UNPARSEABLE
    if for_grammar(given) is None:
        return Verdict.INCORRECT if _WORD.search(given) and not _MATHEMATICS.search(given) else Verdict.UNPARSEABLE
    # A log without a base may have base 10 or e.
    ambiguous = bool(_LOG_OF_NO_BASE.search(wanted)) != bool(_LOG_OF_NO_BASE.search(given))
    return Verdict.UNPARSEABLE if ambiguous else None


def _has_words(text: str) -> bool:
    return any(word.lower() not in FUNCTIONS for word in _WORD.findall(_COMMAND.sub(" ", text)))
