"""Templates that the verifier of arithmetic was written with."""

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


def _sum_of_eggs(numbers: Numbers) -> PlantedStep:
    a, b, c = (numbers.randint(3, 400) for _ in range(3))
    text = f"Altogether, the three farms have {a} + {b} + {c} = @ eggs."
    return _planted(SUM, text, another(numbers, a + b + c), a + b + c)


def _difference(numbers: Numbers) -> PlantedStep:
    a, b = numbers.randint(200, 900), numbers.randint(3, 190)
    text = f"She then has {a} marbles - {b} marbles = @ marbles left."
    return _planted(SUM, text, another(numbers, a - b), a - b)


def _sum_in_latex(numbers: Numbers) -> PlantedStep:
    a, b = numbers.randint(1000, 9000), numbers.randint(100, 999)
    text = f"So the total is \\[ {a:,} + {b} = @. \\]"
    return _planted(SUM, text, f"{another(numbers, a + b):,}", f"{a + b:,}")


def _money_sum(numbers: Numbers) -> PlantedStep:
    a, b = (Fraction(numbers.randint(100, 5000), 100) for _ in range(2))
    text = f"Together they paid ${amount(a)} + ${amount(b)} = $@."
    return _planted(SUM, text, another_amount(numbers, a + b), amount(a + b))


def _product(numbers: Numbers) -> PlantedStep:
    a, b = numbers.randint(3, 60), numbers.randint(3, 40)
    text = f"He buys {a} boxes * {b} pens/box = @ pens."
    return _planted(PRODUCT, text, another(numbers, a * b), a * b)


def _product_with_x(numbers: Numbers) -> PlantedStep:
    a, b = numbers.randint(3, 60), numbers.randint(3, 40)
    text = f"In {a} weeks she earns ${b} x {a} = $@."
    return _planted(PRODUCT, text, another(numbers, a * b), a * b)


def _quotient(numbers: Numbers) -> PlantedStep:
    b, c = numbers.randint(2, 30), numbers.randint(4, 90)
    text = f"Each of them gets {b * c} / {b} = @ cookies."
    return _planted(PRODUCT, text, another(numbers, c), c)


def _percentage(numbers: Numbers) -> PlantedStep:
    percent, whole = numbers.choice([5, 10, 15, 20, 25, 30, 40, 60, 75]), 20 * numbers.randint(2, 60)
    text = f"The discount is {percent}% of {whole} = @."
    return _planted(PRODUCT, text, another(numbers, percent * whole // 100), percent * whole // 100)


def _calculator_mark(numbers: Numbers) -> PlantedStep:
    a, b = numbers.randint(3, 60), numbers.randint(3, 40)
    text = f"They drove {a}*{b} = <<{a}*{b}=@>>@ miles."
    return _planted(PRODUCT, text, another(numbers, a * b), a * b)


def _fraction(numbers: Numbers) -> PlantedStep:
    bottom, part = numbers.randint(2, 9), numbers.randint(3, 50)
    text = f"A part of them is red: \\(\\frac{{1}}{{{bottom}}} \\times {bottom * part} = @\\)."
    return _planted(PRODUCT, text, another(numbers, part), part)


def _chain(numbers: Numbers) -> PlantedStep:
    a, b, c = (numbers.randint(3, 40) for _ in range(3))
    text = f"The cost is {a} * {b} + {c} = {a * b} + {c} = @ dollars."
    return _planted(PRODUCT, text, another(numbers, a * b + c), a * b + c)


def _hours(numbers: Numbers) -> PlantedStep:
    hours = numbers.randint(2, 30)
    text = f"The whole trip takes {hours} hours = @ minutes."
    return _planted(CONVERSION, text, another(numbers, 60 * hours), 60 * hours)


def _feet(numbers: Numbers) -> PlantedStep:
    feet = numbers.randint(2, 90)
    text = f"The rope is {feet} feet * 12 inches/foot = @ inches long."
    return _planted(CONVERSION, text, another(numbers, 12 * feet), 12 * feet)


def _kilometres(numbers: Numbers) -> PlantedStep:
    km = numbers.randint(2, 60)
    text = f"In metres that is {km} km = @ m."
    return _planted(CONVERSION, text, numbers.choice([km * 100, km * 1000 + 10, km * 10_000, km * 60]), km * 1000)


def _copied_result(numbers: Numbers) -> PlantedStep:
    a, b, c = numbers.randint(12, 90), numbers.randint(12, 90), numbers.randint(2, 9)
    text = f"First, {a} + {b} = {a + b}. So they need ({a} + {b}) * {c} = @ * {c} seats."
    return _planted(COPIED, text, miscopied(numbers, a + b), a + b)


def _copied_operand(numbers: Numbers) -> PlantedStep:
    a, b = numbers.randint(103, 999), numbers.randint(12, 99)
    text = f"There are @ + {b} = {a + b} people on the train."
    return _planted(COPIED, text, miscopied(numbers, a), a)


TEMPLATES: tuple[Template, ...] = (
    _sum_of_eggs,
    _product,
    _hours,
    _copied_result,
    _difference,
    _product_with_x,
    _feet,
    _copied_operand,
    _sum_in_latex,
    _quotient,
    _kilometres,
    _money_sum,
    _percentage,
    _calculator_mark,
    _fraction,
    _chain,
)
