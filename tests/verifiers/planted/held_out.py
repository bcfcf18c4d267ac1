"""Templates that nobody looked at while the verifier of arithmetic was written. They measure it, so do not tune it to them.

They were looked at once: the README of verifiers says what was found then and what was repaired after it."""

from fractions import Fraction

from tests.verifiers.planted.errors import (
    CONVERSION,
    COPIED,
    PRODUCT,
    SUM,
    Numbers,
    PlantedStep,
    Template,
    amount,
    another,
    another_amount,
    miscopied,
)


def _planted(kind: str, template: str, wrong: object, right: object) -> PlantedStep:
    return PlantedStep(kind=kind, wrong=template.replace("@", str(wrong)), right=template.replace("@", str(right)))


def _weekly_total(numbers: Numbers) -> PlantedStep:
    days = [numbers.randint(4, 60) for _ in range(5)]
    text = f"From Monday to Friday the baker sold {' + '.join(map(str, days))} = @ loaves, which is the weekly total."
    return _planted(SUM, text, another(numbers, sum(days)), sum(days))


def _remaining_distance(numbers: Numbers) -> PlantedStep:
    whole, done, more = numbers.randint(300, 999), numbers.randint(20, 140), numbers.randint(20, 140)
    text = f"The remaining distance is {whole} km − {done} km − {more} km = @ km."
    return _planted(SUM, text, another(numbers, whole - done - more), whole - done - more)


def _sum_in_words(numbers: Numbers) -> PlantedStep:
    a, b = numbers.randint(11, 700), numbers.randint(11, 700)
    text = f"Since {a} plus {b} equals @, the library now has that many books."
    return _planted(SUM, text, another(numbers, a + b), a + b)


def _bill(numbers: Numbers) -> PlantedStep:
    meal, drink, tip = (Fraction(numbers.randint(100, 6000), 100) for _ in range(3))
    text = f"The bill is \\(\\${amount(meal)} + \\${amount(drink)} + \\${amount(tip)} = \\$@\\)."
    return _planted(SUM, text, another_amount(numbers, meal + drink + tip), amount(meal + drink + tip))


def _change(numbers: Numbers) -> PlantedStep:
    paid, price = numbers.choice([20, 50, 100]), Fraction(numbers.randint(150, 1990), 100)
    text = f"- Change: ${paid} - ${amount(price)} = $@"
    return _planted(SUM, text, another_amount(numbers, paid - price), amount(paid - price))


def _aligned_sum(numbers: Numbers) -> PlantedStep:
    a, b, c = (numbers.randint(5, 800) for _ in range(3))
    text = f"We add them up:\n\\begin{{align*}}\n{a} + {b} + {c} &= {a + b} + {c} \\\\\n&= @\n\\end{{align*}}"
    return _planted(SUM, text, another(numbers, a + b + c), a + b + c)


def _area(numbers: Numbers) -> PlantedStep:
    a, b = numbers.randint(3, 80), numbers.randint(3, 80)
    text = f"Therefore, the area of the garden is $A = {a} \\times {b} = @$ square feet."
    return _planted(PRODUCT, text, another(numbers, a * b), a * b)


def _salary(numbers: Numbers) -> PlantedStep:
    rate, hours, weeks = numbers.randint(9, 40), numbers.randint(3, 40), numbers.randint(2, 12)
    text = f"**Step 3:** In {weeks} weeks he makes ${rate}/hour × {hours} hours/week × {weeks} weeks = $@."
    right = rate * hours * weeks
    return _planted(PRODUCT, text, f"{another(numbers, right):,}", f"{right:,}")


def _share_of_class(numbers: Numbers) -> PlantedStep:
    bottom = numbers.choice([3, 4, 5, 8])
    top, part = numbers.randint(2, bottom - 1), numbers.randint(3, 30)
    text = f"{top}/{bottom} of the {bottom * part} students = @ students ride the bus."
    return _planted(PRODUCT, text, another(numbers, top * part), top * part)


def _price_after_discount(numbers: Numbers) -> PlantedStep:
    percent, price = numbers.choice([10, 20, 30, 40, 60, 70]), 10 * numbers.randint(3, 90)
    right = price * (100 - percent) // 100
    text = f"After the discount it costs {price} × (1 - 0.{percent // 10}) = @ euros."
    return _planted(PRODUCT, text, another(numbers, right), right)


def _equal_groups(numbers: Numbers) -> PlantedStep:
    size, count = numbers.randint(3, 40), numbers.randint(3, 60)
    text = f"So there are \\frac{{{size * count}}}{{{size}}} = @ groups."
    return _planted(PRODUCT, text, another(numbers, count), count)


def _percent_in_words(numbers: Numbers) -> PlantedStep:
    percent, whole = numbers.choice([5, 15, 25, 35, 45, 80]), 20 * numbers.randint(2, 80)
    text = f"He saves {percent} percent of ${whole} = $@ each month."
    return _planted(PRODUCT, text, another(numbers, percent * whole // 100), percent * whole // 100)


def _brackets(numbers: Numbers) -> PlantedStep:
    a, b, c = numbers.randint(2, 20), numbers.randint(2, 30), numbers.randint(2, 30)
    text = f"Now compute {a}({b} + {c}) = @."
    return _planted(PRODUCT, text, another(numbers, a * (b + c)), a * (b + c))


def _square(numbers: Numbers) -> PlantedStep:
    side = numbers.randint(4, 40)
    text = f"The floor is a square, so its area is {side}^2 = @ square metres."
    return _planted(PRODUCT, text, another(numbers, side * side), side * side)


def _days(numbers: Numbers) -> PlantedStep:
    days = numbers.randint(2, 40)
    text = f"The candle burns for {days} days × 24 hours/day = @ hours."
    return _planted(CONVERSION, text, another(numbers, 24 * days), 24 * days)


def _pounds(numbers: Numbers) -> PlantedStep:
    pounds = numbers.randint(2, 60)
    text = f"Because a pound has 16 ounces, {pounds} pounds = @ ounces."
    return _planted(CONVERSION, text, another(numbers, 16 * pounds), 16 * pounds)


def _seconds(numbers: Numbers) -> PlantedStep:
    minutes = numbers.randint(2, 90)
    text = f"We convert the time: {60 * minutes} seconds / 60 = @ minutes."
    return _planted(CONVERSION, text, another(numbers, minutes), minutes)


def _kilograms(numbers: Numbers) -> PlantedStep:
    tenths = numbers.randint(11, 95)
    text = f"Its mass is {tenths // 10}.{tenths % 10} kg = @ g."
    return _planted(
        CONVERSION, text, numbers.choice([tenths * 10, tenths * 100 + 100, tenths * 100 - 50]), tenths * 100
    )


def _mixed_time(numbers: Numbers) -> PlantedStep:
    hours, minutes = numbers.randint(1, 9), numbers.randint(5, 55)
    right = 60 * hours + minutes
    text = f"The film lasts {hours} hours and {minutes} minutes = @ minutes."
    return _planted(CONVERSION, text, numbers.choice([right + 1, right - 10, right + 40, 100 * hours + minutes]), right)


def _coins(numbers: Numbers) -> PlantedStep:
    dollars = numbers.randint(3, 60)
    text = f"She changes ${dollars} into cents: {dollars} dollars * 100 cents/dollar = @ cents."
    return _planted(CONVERSION, text, another(numbers, 100 * dollars), 100 * dollars)


def _copied_after_mark(numbers: Numbers) -> PlantedStep:
    a, b = numbers.randint(11, 90), numbers.randint(11, 90)
    text = f"The farmer picked {a}+{b}=<<{a}+{b}={a + b}>>@ pumpkins."
    return _planted(COPIED, text, miscopied(numbers, a + b), a + b)


def _copied_in_next_line(numbers: Numbers) -> PlantedStep:
    a, b, c = numbers.randint(12, 60), numbers.randint(3, 9), numbers.randint(12, 90)
    text = f"Cost of tickets = {a} * {b} = {a * b}\nTotal cost = {a} * {b} + {c} = @ + {c} = {a * b + c}"
    return _planted(COPIED, text, miscopied(numbers, a * b), a * b)


def _copied_factor(numbers: Numbers) -> PlantedStep:
    a, b = numbers.randint(12, 98), numbers.randint(3, 30)
    text = f"Every box has {a} screws, so {b} boxes have \\[ @ \\cdot {b} = {a * b} \\] screws."
    return _planted(COPIED, text, miscopied(numbers, a), a)


def _copied_price(numbers: Numbers) -> PlantedStep:
    a, b = numbers.randint(1000, 9800), numbers.randint(100, 990)
    text = f"The car and the trailer cost ${a:,} + ${b:,} = ${a + b:,}; with the fee of $25 that is $@ + $25 = ${a + b + 25:,}."
    return _planted(COPIED, text, f"{miscopied(numbers, a + b):,}", f"{a + b:,}")


TEMPLATES: tuple[Template, ...] = (
    _weekly_total,
    _area,
    _days,
    _copied_after_mark,
    _remaining_distance,
    _salary,
    _pounds,
    _copied_in_next_line,
    _sum_in_words,
    _share_of_class,
    _seconds,
    _copied_factor,
    _bill,
    _price_after_discount,
    _kilograms,
    _copied_price,
    _change,
    _equal_groups,
    _mixed_time,
    _aligned_sum,
    _percent_in_words,
    _coins,
    _brackets,
    _square,
)
