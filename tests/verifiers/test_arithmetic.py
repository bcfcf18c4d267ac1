"""The verifier of arithmetic: what it finds, and what it leaves alone because it may be meant in another way."""

from collections.abc import Callable
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.verifiers.base import MOST_EVIDENCE, Covers, StepVerdict
from tests.verifiers.planted import development
from tests.verifiers.planted.errors import KINDS, planted_steps
from tests.verifiers.steps import finding, verdict

FOUND = {
    "a sum": ("3 + 5 = 8", "3 + 5 = 9"),
    "no blanks": ("He needs 12-5*2=2 more.", "He needs 12-5*2=3 more."),
    "words before and after": (
        "In 2 years, Peter will be 24 + 2 = 26 years old",
        "In 2 years, Peter will be 24 + 2 = 27 years old",
    ),
    "words between": ("So 70 blue houses +90 green houses = 160", "So 70 blue houses +90 green houses = 150"),
    "long words between": ("10 rows of corn stalks * 9 cobs each = 90 cobs", "10 rows of corn stalks * 9 cobs each = 80 cobs"),
    "a chain": ("2 * 3 + 4 = 6 + 4 = 10", "2 * 3 + 4 = 6 + 4 = 11"),
    "a chain that is false inside": ("(12 + 8) * 3 = 20 * 3 = 60", "(12 + 8) * 3 = 28 * 3 = 84"),
    "brackets": ("(5 + 3) * 2 = 16", "(5 + 3) * 2 = 15"),
    "a product without a sign": ("2(3+4) = 14 and (2)(5) = 10", "2(3+4) = 15"),
    "an x": ("Camille saw 3 x 4 = 12 robins, 5x3=15 crows", "Camille saw 3 x 4 = 13 robins"),
    "other signs": ("12 × 5 ÷ 2 − 3 = 27", "12 × 5 ÷ 2 − 3 = 28"),
    "a joined difference": ("120-45 = 75, (3-5)^2 = 4, 1-1/4 = 3/4", "1-1/4 = 1/2"),
    "a factor without a unit": ("3 hours * 60 = 180 minutes, 120 seconds / 60 = 2 minutes", "120 seconds / 60 = 1 minute"),
    "a dash": ("15 gallons – 3 gallons = 12 gallons", "15 gallons – 3 gallons = 11 gallons"),
    "thousands": ("1,200 + 300 = 1,500", "1,200 + 300 = 1,600"),
    "thousands in LaTeX": ("1{,}200 + 300 = 1{,}500", "1{,}200 + 300 = 1{,}600"),
    "money": ("$1.25 x 4 = $5", "$1.25 x 4 = $6"),
    "money and counts": ("20 melons * $2/melon = $40 in melons", "20 melons * $2/melon = $50 in melons"),
    "cents": ("50 cents + 50 cents = $1", "50 cents + 60 cents = 120 cents"),
    "a percentage": ("20% of 50 = 10", "20% of 50 = 11"),
    "a percentage in words": ("20 percent of the 50 students = 10", "20 percent of the 50 students = 12"),
    "sums of percentages": ("100% - 30% = 70%", "100% - 30% = 60%"),
    "a share as a percentage": ("3/4 * 100 = 75%, 5/20 = 25%", "5/20 = 26%"),
    "less by a percentage": ("$100 - 20% = $80", "$100 - 20% = $70"),
    "a fraction of": ("2/3 of 24 liters = 16 liters", "2/3 of 24 liters = 18 liters"),
    "a fraction in words": ("Half of 30 = 15, two-thirds of 9 = 6, three fourths of 16 = 12", "three fourths of 16 = 13"),
    "what somebody counts": ("He wrote 2 + 3 = 5 letters, had 2 + 3 = 5 pens", "He wrote 2 + 3 = 6 letters"),
    "a mixed number": ("2 1/2 + 1 = 3 1/2", "2 1/2 + 1 = 4 1/2"),
    "a vulgar fraction": ("1 – ¾ = ¼ of it", "1 – ¾ = ½ of it"),
    "powers": ("2^3 + 3**2 = 17, 5² = 25", "2^3 + 3**2 = 18"),
    "roots of squares": ("\\sqrt{16} + 2 = 6", "\\sqrt{16} + 2 = 7"),
    "factorials": ("5! = 120", "5! = 100"),
    "fractions in LaTeX": ("\\frac{1}{2} \\times 30 = 15", "\\dfrac12 \\cdot 30 = 16"),
    "texts in LaTeX": ("\\[6 \\text{ eggs} \\div 3 = 2 \\text{ eggs}\\]", "6 \\text{ eggs} \\div 3 = 3 \\text{ eggs}"),
    "a box": ("5000 + 10000 = \\boxed{15000}", "5000 + 10000 = \\boxed{16000}"),
    "formulas that make one": ("$3$ * $5$ = $15$", "$3$ * $5$ = $16$"),
    "lines": ("\\[ 4 \\times 3 \\\\ = 12 \\]", "\\[ 4 \\times 3 \\\\ = 13 \\]"),
    "aligned": ("7 + 8 &= 10 + 5 \\\\ &= 15", "7 + 8 &= 10 + 5 \\\\ &= 16"),
    "a list": ("- 3 + 5 = 8", "- 3 + 5 = 9"),
    "words for signs": ("5 plus 3 equals 8", "5 times 3 is equal to 16"),
    "a mark": ("He has 3+5=<<3+5=8>>8 eggs.", "He has 3+5=<<3+5=9>>9 eggs."),
    "a copied digit after a mark": ("He has 13+5=<<13+5=18>>18 eggs.", "He has 13+5=<<13+5=18>>81 eggs."),
    "an hour in minutes": ("2 hours = 120 minutes", "2 hours = 110 minutes"),
    "minutes per hour": ("3 hours * 60 minutes/hour = 180 minutes", "3 hours * 60 minutes/hour = 190 minutes"),
    "feet": ("3 feet = 36 inches", "3 feet = 30 inches"),
    "km": ("5 km = 5000 m", "5 km = 500 m"),
    "hours and minutes": ("3 hours and 30 minutes = 210 minutes", "3 hours and 30 minutes = 330 minutes"),
    "speeds": ("90 minutes * 2 miles/hour = 3 miles", "90 minutes * 2 miles/hour = 4 miles"),
    "squares of units": ("9cm * 9cm = 81cm^2", "9cm * 9cm = 80cm^2"),
    "large words": ("3 million / 2 = 1.5 million", "3 million / 2 = 1.6 million"),
    "powers of ten": ("1.5 * 10^3 = 1500", "1.5 * 10^3 = 150"),
    "a rounding": ("1/3 = 0.33", "1/3 = 0.34"),
    "a rounded percentage": ("1/3 = 33%", "1/3 = 35%"),
    "about": ("10/3 ≈ 3.3 and 31 * 29 is about 900 or 31 * 29 \\approx 900", "10/3 ≈ 5"),
    "a fraction as a decimal": ("0.75 = 3/4", "0.75 = 4/5"),
    "a lone number in a formula": ("\\( 72 = 3^2 \\cdot 8 \\)", "\\( 72 = 3^2 \\cdot 9 \\)"),
}  # fmt: skip

LEFT_ALONE = {
    "a definition": "x = 5 and n=12",
    "a letter": "2x + 3 = 9, 3*m + 10 = 5, 4n = 9",
    "a letter before": "x - 3 = 9, x^2 + 3 = 9, x4 + 3 = 9, a_1 + 3 = 9",
    "a letter after": "3 + 4 = 8x, 3 + 4 = 8 - x",
    "a letter that touches a fraction": "\\frac{1}{3}Bh = 5",
    "a name": "Cost + 3 = 9, Total 5 = 9",
    "a lone price": "The caps: $2 = 2 * 12 + 1, $1.60 = .25*1.50",
    "a part of a word": "12 eggs = 3 * 5",
    "a function": "f(2) + 3 = 7, gcd(12, 18) + 1 = 8, log 2 + 3 = 9, \\log 2 + 3 = 9, |3| + 1 = 9",
    "a part of a sum": "the sum of 3 and 4 = 7, the average (3 + 4) = 3.5, twice 3 + 4 = 14, the square of 3 + 4 = 49",
    "a share of a sum": "half of 5 + 3 = 4, 50% of 5 + 3 = 4",
    "a question": "What is 3 + 5 = ? Or 3 + 5 = ___. Is 3 + 5 = 9?",
    "a denial": "3 + 5 is not equal to 9. It is not that 3 + 5 = 9. 3 + 5 ≠ 9, 3 + 5 != 9, 3+5!=9, 3 + 5 \\neq 9",
    "a supposition": "Suppose that 3 + 5 = 9.",
    "a contradiction": "Then 3 + 5 = 9, a contradiction.",
    "a contradiction later": "This gives 3 + 5 = 9. That is impossible.",
    "a mistake taken back": "3 + 5 = 9. Wait, this is wrong: 3 + 5 = 8.",
    "a remainder": "17 % 5 = 3, 17 mod 5 = 3, 3 * 5 = 1 (mod 7), 17 / 5 = 4 remainder 2, 17/5 = 4 R 2",
    "another base": "In base 7, 3 + 5 = 11.",
    "a ratio": "The ratio is 3:4 = 5, 2 : 3 = 9",
    "a date": "On 12/25/2020 = 5 and 10:30 + 2:00 = 11",
    "a label": "Day 3 - 5 + 2 = 9 eggs, Step 1/2 = 4",
    "an inequality": "3 < 4 = 2 + 3, 5 <= 6 = 9",
    "a series": "1 + 2 + ... + 10 = 56, 1 + 2 + \\cdots + 10 = 56",
    "a decimal comma": "1,5 * 2 = 4",
    "strange thousands": "1,00,000 + 1 = 5",
    "a running calculation": "The total was 5 + 3 = 8 * 2 - 1",
    "no precedence": "2 + 3 * 5 = 25",
    "a quotient of a fraction": "There are 3/ 1/4 = 12 quarters",
    "a mixed number or a product": "2\\frac{1}{2} = 1",
    "a rounding": "2/3 = 0.66, 7/2 = 4 and 7/2 = 3, 1.67 * 60 = 100",
    "rounded to the nearest": "17 * 3 = 50, rounded to the nearest ten",
    "different things": "2 apples + 3 oranges = $7, 5 cats + 3 dogs = 10",
    "a conversion that is not written": "20 minutes * 6 = 2 hours and 15*4 = 1 hour, 30 + 2 hours = 150 minutes",
    "cents that are not written": "5 * 50 = $2.50",
    "working days": "1 week = 5 days, 1 day = 8 hours",
    "an amount that goes on": "7 / 2 = 3 and a half, 9 / 2 = 4 and 1/2, 2 + 3 = 3 squared",
    "two numbers without a sign": "2400 / 200 = 13 200-kilobyte videos",
    "a factorial or an exclamation": "3 + 4 = 8!",
    "no value": "1/0 = 5, 0/0 = 1, 0^0 = 1",
    "a square of a negative number": "-3^2 = 9",
    "a clock": "9 am + 4 hours = 1 pm, and at 11 pm it is 11 + 2 = 1",
    "an inclusive count": "Pages 10 to 20 are 20 - 10 = 11 pages, inclusive.",
    "a remark": "see (2) 5 + 3 = 9 2",
}  # fmt: skip


@pytest.mark.parametrize("right", [each[0] for each in FOUND.values()], ids=FOUND)
def test_true_equations_hold_and_cover_a_part(right: str) -> None:
    found = finding("arithmetic", right)
    assert found.verdict is StepVerdict.HOLDS, found
    assert found.covers is Covers.PART
    assert found.evidence


@pytest.mark.parametrize("wrong", [each[1] for each in FOUND.values()], ids=FOUND)
def test_a_false_equation_refutes(wrong: str) -> None:
    found = finding("arithmetic", wrong)
    assert found.verdict is StepVerdict.REFUTED, found
    assert " is " in found.evidence
    assert ", not " in found.evidence


@pytest.mark.parametrize("step", LEFT_ALONE.values(), ids=LEFT_ALONE)
def test_what_may_be_meant_otherwise_is_not_refuted(step: str) -> None:
    assert finding("arithmetic", step).verdict is not StepVerdict.REFUTED


def test_evidence_says_what_it_really_is() -> None:
    assert (
        finding("arithmetic", "He paid $20 - $13.00 = $6.00.").evidence
        == "$20 - $13.00 = $6.00: $20 - $13.00 is 7, not $6.00"
    )
    assert (
        finding("arithmetic", "2 hours = 110 minutes").evidence
        == "2 hours = 110 minutes: 2 hours is 120, not 110 minutes"
    )
    assert finding("arithmetic", "\\(19 = 5 \\times 4\\)").evidence == "19 = 5 \\times 4: 5 \\times 4 is 20, not 19"
    assert finding("arithmetic", "5/3 + 1/3 = 3").evidence == "5/3 + 1/3 = 3: 5/3 + 1/3 is 2, not 3"
    assert finding("arithmetic", "1/3 + 1/7 = 0.6").evidence.endswith("is 10/21, not 0.6")
    assert finding("arithmetic", "3 * 0.25 = 0.85").evidence.endswith("is 0.75, not 0.85")
    assert finding("arithmetic", "3 - 5 = 2").evidence.endswith("is -2, not 2")


RIGHT_ONES = {
    "long sums": f"{'+'.join(['1'] * 41)}=41|{' + '.join(map(str, range(1, 42)))} = 861|{'+'.join(['1/3'] * 60)}=20",
    "words for factors": "1/2 dozen = 6 eggs|1/2 of a dozen = 6|3/2 dozen = 18|The house costs $3/4 million = $750,000",
    "grouped digits": "Er hat 1.500 + 500 = 2.000 Euro|12.000 - 500 = 11.500|120 * 120 = 14, 400|So 14, 400 / 80 = 180",
    "other languages": "5 + 3 = 9 ist falsch|Supongamos que 5 + 3 = 9|如果 5 + 3 = 9|Пусть 5 + 3 = 9",
    "units of two sizes": "4 GB = 4096 MB|4 GB = 4000 MB|2 TB + 512 GB = 2560 GB|1 week = 40 hours|3 tbsp = 12 tsp",
    "other numerals": "0x10 = 16|16 = 0x10|0xFF - 1 = 254|0900-0130 = 0730 hours|1.234,56 + 1 = 1.235,56",
    "mixed numbers": "1-1/2 cups = 1.5 cups|2-1/2 * 2 = 5|1–1/2 = 1.5|1-3/4 + 1/4 = 2|1-1/2 + 1-1/2 = 3|1-1/2 = 0.5",
    "ranges": "10-12 hours = 11 hours on average|10 - 12 hours = 11 hours|5-7 days * 2 = 12 days|2-3 dozen = 24-36",
    "more ranges": "$20-$30 = $25|5% - 10% = 7.5%|10-12 = 3 numbers|9-5 = 8 hours|Questions 1-5 = 10 points|on day 1 * 2 = 20",
    "different things": "3 pairs - 1 = 5 shoes|2 pairs + 1 = 5|2 bags + 3 bags = 50 marbles|3 hours - 30 = 2.5 hours",
    "shares": "3/8 is equal to $375|1/3 of Solomon = 66/3|1/2 a cup = 4 ounces|40% = 20 students|1% equals $165/110",
    "rounded percentages": "33% = 1/3|66% = 2/3|13% = 1/8|33% = 33/100 = 1/3|1 - 33% = 2/3|43% = 6/14 = 3/7|33% * 3 = 100%",
    "brackets": "($5) + $8 = $3|0.(6) = 2/3|0.1(6) = 1/6|0.\\overline{6} = 2/3|1 : 4 = 25%|5 ^ 3 = 6|Python 3.9 + 0.1 = 3.10",
    "pairs": "7-5 = 6 on average|They won 3-1 = 4 games|1 hour class = 50 minutes|2 hour lessons = 90 minutes|66% of 300 = 200",
    "counts before": "3 bags of 4 + 2 = 14|Two packs of 12 - 1 = 23|10 bags at $3 + $2 = $32|3 trips of 2 km + 1 km = 7 km",
    "units by case": "4 Gb = 512 MB|1 Mg = 1000 kg|2 MB = 16 Mb",
    "unknowns and orders": "8/3 = 24/Y|5 bags / 15 minutes = 8 bags / Y|6/2*3 = 1|$10 / 3 = $3.34|In Boolean algebra 1 + 1 = 1",
}  # fmt: skip


@pytest.mark.parametrize("steps", RIGHT_ONES.values(), ids=RIGHT_ONES)
def test_right_steps_that_were_refuted_once_are_not(steps: str) -> None:
    assert [step for step in steps.split("|") if verdict("arithmetic", step) == "refuted"] == []


def test_amounts_that_differ_do_not_hold() -> None:
    units = (
        "100 cents = 100 dollars|5 * 20 cents = $100|3 * 10 minutes = 30 hours|10 cm + 5 cm = 15 m|$2 - 50 cents = $1"
    )
    others = "90 minutes = 1 hour|20% of 50 = 1000|20% * 50 = 1000|50% = 50|0.5 = 0.5%|100 + 10% = 100.1"
    percents = "25% of 80 = 20%|20% of 5 = 100%|1/4 of 80 = 20%|5% + 5 = 10|3 + 4 = 7%"
    kinds = "10 kg - 3 = 7 liters|5 m + 2 = 7 s|3 dogs + 2 dogs = 5 cats|5 apples + 3 = 8 dollars|2 + 2 = 4 apples = 4 oranges"
    parts = "60 minutes = 1 hour = 60 hours|12 inches = 1 foot = 12 feet|20% of 50 = 10 and 10% of 50 = 500"
    assert [
        step
        for step in f"{units}|{others}|{percents}|{kinds}|{parts}".split("|")
        if verdict("arithmetic", step) == "holds"
    ] == []


@pytest.mark.parametrize("result", [4, 5])
def test_an_equation_that_is_mentioned_is_no_claim(result: int) -> None:
    before = "It is false that @|I doubt that @|One cannot conclude that @|Suppose that @|He denies that @|False: @|\\neg (@)"
    after = '@ is false|The claim @ is false|@ does not hold|@ never holds|"@" is wrong|That @ is a lie|@, a contradiction|@?'
    others = 'If @, then 4 = 5|Let @|Neither @ nor 1 = 2|Es ist falsch, dass @|Il est faux que @|The student wrote "@"'
    worlds = "In a world where @, all is well|Had it been @|Were @|Provided @|Unless @, we go|Option A: @|Let a * b = a + b: @"
    reports = "He answered @.|Bob's answer: @|His answer was @|One might write @|The misprint reads @|Original: @. Corrected: 5"
    denials = (
        "The equation @ fails|It's false: @|It is a lie that @|By no means is @|Não é verdade que @|Non è vero che @"
    )
    later = (
        "@. This is false.|@. However, that is wrong|@, which is not right|~~@~~|<del>@</del>|\\cancel{@}|@, he lied"
    )
    steps = f"{before}|{after}|{others}|{worlds}|{reports}|{denials}|{later}".replace("@", f"2 + 2 = {result}").split(
        "|"
    )
    assert [step for step in steps if verdict("arithmetic", step) != "unknown"] == []


def test_words_after_an_equation_that_deny_nothing_leave_it_a_claim() -> None:
    steps = "3^2 + 4^2 = 5^2, which is a right angle.|2 + 2 = 4. This is not all.|He has 3 bags of 4 + 2 = 6 apples"
    assert [step for step in steps.split("|") if verdict("arithmetic", step) != "holds"] == []
    assert verdict("arithmetic", "He has 3 bags of 4 + 2 = 15 apples") == "refuted"


def test_evidence_says_what_mixed_units_are() -> None:
    found = finding("arithmetic", "2 hours + 30 minutes = 2.3 hours")
    assert found.evidence.endswith("2 hours + 30 minutes is 2.5, not 2.3 hours")


def test_evidence_of_many_equations_is_short() -> None:
    found = finding("arithmetic", "; ".join(f"{number} + 1 = {number + 1}" for number in range(100)))
    assert found.evidence == "0 + 1 = 1; 1 + 1 = 2; 2 + 1 = 3; and 97 more"


def test_evidence_of_long_equations_is_short() -> None:
    sums = " + ".join(["1234567"] * 80)
    assert len(finding("arithmetic", f"{sums} = {1234567 * 80 + 1}").evidence) < MOST_EVIDENCE
    assert len(finding("arithmetic", f"2^190 * {sums} = 5").evidence) < MOST_EVIDENCE


def test_equations_of_the_problem_are_quoted_without_harm() -> None:
    problem = "Tom claims that 2 + 2 = 5 in his world. What is 3 + 3 there?"
    assert verdict("arithmetic", "In his world 2 + 2 = 5.", problem=problem) == "unknown"
    puzzle = "If 2 + 3 = 10 and 7 + 2 = 63, what is 6 + 5?"
    assert verdict("arithmetic", "So 6 + 5 = 66.", problem=puzzle) == "unknown"
    assert verdict("arithmetic", "So 6 + 5 = 66.", problem="What is 6 + 5?") == "refuted"


@pytest.mark.parametrize(
    "problem", ["Work in base 8.", "What is the remainder when 5 is divided by 3?", "The operation * is defined by ..."]
)
def test_problems_of_other_arithmetic_are_left_alone(problem: str) -> None:
    assert verdict("arithmetic", "So 6 + 5 = 13.", problem=problem) == "unknown"


def test_a_step_without_equations_is_unknown() -> None:
    for step in ("", "So she has 5 apples.", "=", "= 5", "5 =", "5 = = 5", "a = b"):
        assert finding("arithmetic", step).verdict is StepVerdict.UNKNOWN, step
        assert not finding("arithmetic", step).evidence


def test_a_long_step_is_unknown() -> None:
    assert verdict("arithmetic", "3 + 5 = 9. " + "a" * 19_000) == "refuted"
    assert verdict("arithmetic", "3 + 5 = 9. " + "a" * 20_000) == "unknown"


_SIGNS: dict[str, tuple[str, ...]] = {
    "+": ("+",),
    "-": ("-", "−", "–"),
    "*": ("*", "×", "\\times", "\\cdot", "x", "·"),
    "/": ("/", "÷", "\\div"),
}
_OPERATIONS: dict[str, Callable[[Fraction, Fraction], Fraction]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
}


@st.composite
def terms(draw: st.DrawFn, depth: int = 3) -> tuple[str, Fraction]:
    """An expression and its value, with a bracket around everything that has an operation."""
    if depth == 0 or draw(st.booleans()):
        number = draw(st.integers(0, 10**6))
        text = draw(st.sampled_from([str(number), f"{number:,}"]))
        return text, Fraction(number)
    sign = draw(st.sampled_from(sorted(_OPERATIONS)))
    (left, a), (right, b) = draw(terms(depth=depth - 1)), draw(terms(depth=depth - 1))
    shown = draw(st.sampled_from(_SIGNS[sign]))
    return f"({left} {shown} {right})", _OPERATIONS[sign](a, b)


@given(terms(), st.integers(-50, 50).filter(bool), st.sampled_from(["", "So he has ", "Thus, in total, "]))
def test_expressions_are_worth_what_they_are(term: tuple[str, Fraction], off: int, before: str) -> None:
    text, value = term
    right, wrong = f"{before}1 * {text} = {value}", f"{before}1 * {text} = {value + off}"
    assert verdict("arithmetic", right) == "holds"
    assert verdict("arithmetic", wrong) == "refuted"


@given(st.integers(1, 5000), st.integers(1, 200), st.integers(1, 5))
def test_roundings_hold_by_the_digits_written(top: int, bottom: int, places: int) -> None:
    exact = Fraction(top, bottom)
    unit = Fraction(1, 10**places)
    near = Fraction(int(exact / unit + Fraction(1, 2))) * unit
    shown = f"{float(near):.{places}f}"
    assert verdict("arithmetic", f"{top} / {bottom} = {shown}") == "holds"
    assert verdict("arithmetic", f"{top} / {bottom} = {float(near + 3 * unit):.{places}f}") == "refuted"


@given(st.text(alphabet="0123456789+-*/=()[]{}<>$%.,:;!?^_|&~x \\n\n" + "abefo≈×÷−½", max_size=60))
def test_any_text_gets_a_finding(text: str) -> None:
    first = finding("arithmetic", text)
    assert finding("arithmetic", text) == first
    assert len(first.evidence) <= MOST_EVIDENCE


@given(st.text(max_size=80))
def test_any_characters_get_a_finding(text: str) -> None:
    finding("arithmetic", f"{text} 3 + 4 = 7 {text}")


def test_planted_errors_of_development_are_found() -> None:
    kinds = dict.fromkeys(KINDS, 0)
    for each in planted_steps(development.TEMPLATES, 800, seed=7):
        assert verdict("arithmetic", each.right) == "holds", each
        kinds[each.kind] += verdict("arithmetic", each.wrong) == "refuted"
    assert sum(kinds.values()) >= 0.95 * 800
    assert all(kinds.values())
