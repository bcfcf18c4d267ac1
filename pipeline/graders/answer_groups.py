"""Groups final answers that are equal, for votes. Pure, linear time.

Two answers are equal here if they have the same content: equal numbers of the same unit and the same name, the same choice, the
same words, or the same structure of these. Nothing that one answer leaves out is taken from another one, as a grader does it:
0.5, 50 and 50% differ, and so do 5, 5 cm and x = 5. So the group of an answer does not depend on the other answers.
Covered: numbers, units that can be converted, lists without order, expressions by their value at one point (10 digits).
Not covered: what different structures say in common, as an inequality and an interval do. Such answers are two groups.
"""

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from fractions import Fraction
from functools import lru_cache

from pipeline.data.units import UNITS, measured
from pipeline.graders.math.exact import Exact, exact_value, trailing_unit, with_point, without_unit
from pipeline.graders.math.expression import INFINITY, expression
from pipeline.graders.math.extract import unwrap
from pipeline.graders.math.forms import Form, FormKind, read_form, split_label
from pipeline.graders.math.labels import plain_label
from pipeline.graders.math.limits import exceeded_limit
from pipeline.graders.math.normal import normal_form
from pipeline.graders.math.phrases import choice, numeral, time_of_day, words
from pipeline.graders.math.rounding import FLOAT_NOISE

SIGNIFICANT_DIGITS = 10
MOST_BELOW = 1_000
"""A decimal as programs print it is the fraction with a small denominator that it is so near: 0.30000000000000004 is 3/10."""
NO_VALUE = 1e-12
"""A sum that is smaller than this share of its terms is zero."""


def answer_groups(answers: Sequence[str | None]) -> list[int | None]:
    """A number for every answer, the same for equal answers; None for no answer. The order of answers does not matter."""
    contents = [None if answer is None or not answer.strip() else content(answer) for answer in answers]
    numbers: dict[Hashable, int] = {}
    return [None if each is None else numbers.setdefault(each, len(numbers)) for each in contents]


@lru_cache(maxsize=8192)
def content(answer: str) -> Hashable:
    """What an answer states. Equal answers have equal contents."""
    normal = normal_form(unwrap(answer))
    return normal if exceeded_limit(normal) else _of_text(normal)


def _of_text(normal: str) -> Hashable:
    if exact_value(normal):
        return _of_expression(normal)
    letter, text = choice(normal)
    if letter and (text or len(normal) > 1 or normal.isupper()):
        return ("choice", letter, _of_text(normal_form(text))) if text else ("choice", letter)
    return _of_form(read_form(with_point(normal)))


def _of_form(form: Form) -> Hashable:
    named = split_label(form)
    if named:
        return "name", plain_label(named[0]), _of_form(read_form(named[1]))
    items = map(_of_form, form.items)
    match form.kind:
        case FormKind.EXPRESSION:
            return _of_expression(form.text)
        case FormKind.LIST | FormKind.SET:
            return "values", _counted(items)
        case FormKind.UNION:
            return "union", _counted(items)
        case _:
            return form.kind.name, form.marks, tuple(items)


def _counted(contents: Iterable[Hashable]) -> Hashable:
    return frozenset(Counter(contents).items())


def _of_expression(text: str) -> Hashable:
    number = exact_value(text)
    if number:
        return ("percent", number.value) if number.percent else _in_base_unit(number)
    said = numeral(text) or time_of_day(text) or words(text)
    read = None if said or INFINITY in text else expression(without_unit(text))
    if read is None:
        return said or text
    unit = trailing_unit(text)
    rational = read.ratio.rational()
    if rational is not None:
        return rational, unit
    found = read.value()
    if found is None:
        return text
    value, scale = found
    digits = [f"{part:.{SIGNIFICANT_DIGITS - 1}e}" for part in (value.real, value.imag)]
    return tuple(Fraction(each) if abs(float(each)) > NO_VALUE * scale else 0 for each in digits), unit


def _in_base_unit(number: Exact) -> Hashable:
    if number.unit in UNITS:
        return measured(number.value, UNITS[number.unit])
    plain = number.value.limit_denominator(MOST_BELOW)
    is_noise = number.decimal and abs(number.value - plain) <= FLOAT_NOISE * abs(plain)
    return plain if is_noise else number.value, number.unit
