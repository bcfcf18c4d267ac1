"""Templates that the verifier of arithmetic was written with."""

from collections.abc import Callable
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


def _drawn(kind: str, *ranges: tuple[int, int], says: Callable[..., tuple[str, int]]) -> Template:
    """`says`: of numbers from these ranges, the step with @ for its result, and the right result."""

    def planted(numbers: Numbers) -> PlantedStep:
        text, right = says(*(numbers.randint(*each) for each in ranges))
        return _planted(kind, text, another(numbers, right), right)

    return planted


def _sum_in_latex(numbers: Numbers) -> PlantedStep:
    a, b = numbers.randint(1000, 9000), numbers.randint(100, 999)
    text = f"So the total is \\[ {a:,} + {b} = @. \\]"
    return _planted(SUM, text, f"{another(numbers, a + b):,}", f"{a + b:,}")


def _money_sum(numbers: Numbers) -> PlantedStep:
    a, b = (Fraction(numbers.randint(100, 5000), 100) for _ in range(2))
    text = f"Together they paid ${amount(a)} + ${amount(b)} = $@."
    return _planted(SUM, text, another_amount(numbers, a + b), amount(a + b))


def _percentage(numbers: Numbers) -> PlantedStep:
    percent, whole = numbers.choice([5, 10, 15, 20, 25, 30, 40, 60, 75]), 20 * numbers.randint(2, 60)
    text = f"The discount is {percent}% of {whole} = @."
    return _planted(PRODUCT, text, another(numbers, percent * whole // 100), percent * whole // 100)


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
    _drawn(SUM, *[(3, 400)] * 3, says=lambda a, b, c: (
        f"Altogether, the three farms have {a} + {b} + {c} = @ eggs.", a + b + c
    )),
    _drawn(PRODUCT, (3, 60), (3, 40), says=lambda a, b: (f"He buys {a} boxes * {b} pens/box = @ pens.", a * b)),
    _drawn(CONVERSION, (2, 30), says=lambda hours: (f"The whole trip takes {hours} hours = @ minutes.", 60 * hours)),
    _copied_result,
    _drawn(SUM, (200, 900), (3, 190), says=lambda a, b: (f"She then has {a} marbles - {b} marbles = @ marbles left.", a - b)),
    _drawn(PRODUCT, (3, 60), (3, 40), says=lambda a, b: (f"In {a} weeks she earns ${b} x {a} = $@.", a * b)),
    _drawn(CONVERSION, (2, 90), says=lambda feet: (f"The rope is {feet} feet * 12 inches/foot = @ inches long.", 12 * feet)),
    _copied_operand,
    _sum_in_latex,
    _drawn(PRODUCT, (2, 30), (4, 90), says=lambda b, c: (f"Each of them gets {b * c} / {b} = @ cookies.", c)),
    _kilometres,
    _money_sum,
    _percentage,
    _drawn(PRODUCT, (3, 60), (3, 40), says=lambda a, b: (f"They drove {a}*{b} = <<{a}*{b}=@>>@ miles.", a * b)),
    _drawn(PRODUCT, (2, 9), (3, 50), says=lambda bottom, part: (
        f"A part of them is red: \\(\\frac{{1}}{{{bottom}}} \\times {bottom * part} = @\\).", part
    )),
    _drawn(PRODUCT, *[(3, 40)] * 3, says=lambda a, b, c: (
        f"The cost is {a} * {b} + {c} = {a * b} + {c} = @ dollars.", a * b + c
    )),
)  # fmt: skip
