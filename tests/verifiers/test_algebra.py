"""The verifier of algebra: identities that are claimed, and solutions of the equations before them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.verifiers.base import MOST_EVIDENCE, Covers, StepVerdict
from tests.verifiers.steps import finding, verdict

HOLDS = {
    "an identity": "Expanding, (x+1)^2 = x^2 + 2x + 1.",
    "an identity that nobody announces": "(x+1)(x-1) = x^2 - 1",
    "an identity with fractions": "\\(\\frac{x^2 - 1}{x - 1} = x + 1\\)",
    "two unknowns": "\\[ (a+b)^2 - (a-b)^2 = 4ab \\]",
    "a solution": "2x + 3 = 7, so x = 2.",
    "a solution as a fraction": "\\[ 3B + 6 = 28 \\] \\[ 3B = 22 \\] \\[ B = \\frac{22}{3} \\]",
    "a solution that is rounded": "3B = 22, so B = 7.33",
    "two solutions": "x^2 = 4 \\implies x = 2 \\text{ or } x = -2",
    "one of two solutions": "x^2 = 9, therefore x = 3",
    "the unknown on the right": "12 = 4x, which simplifies to 3 = x",
    "a unit": "5x=20, so x=4 stakes",
}
REFUTED = {
    "a slip": "Expanding, (x+1)^2 = x^2 + 2x + 2.",
    "a sign": "We expand \\((x-3)(x+4) = x^2 + x + 12\\).",
    "a slip in a chain": "x(x+2) + 1 = x^2 + 2x + 1 = (x+1)^2 = x^2 + 3x + 1",
    "a wrong solution": "2x + 3 = 7, so x = 3.",
    "a wrong solution in words": "Solving \\(2x + 3 = 7\\) gives \\(x = 5\\).",
    "a wrong line": "\\[ 2(x-1) = 10 \\] \\[ 2x - 2 = 10 \\] \\[ 2x = 12 \\] \\[ x = 7 \\]",
    "a line that was wrong before": "\\[ 2x + 3 = 7 \\] \\[ 2x = 5 \\] \\[ x = 2.5 \\]",
    "a wrong rounding": "3B = 22, so B = 7.43",
    "a wrong root": "x^2 = 4 \\implies x = 3",
    "a quotient": "x/2 = 8, therefore x = 4",
}
LEFT_ALONE = {
    "an equation": "(x+1)^2 = x^2 + 1",
    "an equation that is expanded": "We expand the equation: (x-3)(x+4) = x^2 - x - 12.",
    "an equation in a chain": "x^2 + 3x = x(x+3) = 2x + 6",
    "another equation after a word": "Simplifying the left side gives x^2 + 5x = 3x + 6.",
    "a definition": "f = 2x + 1 and y = 3x",
    "a supposition": "Suppose 2x + 3 = 7, so x = 3.",
    "a trial": "2x + 3 = 7. Try x = 3.",
    "a condition": "If x = 3 then 2x + 3 = 7, or x = 4.",
    "a denial": "2x + 3 = 7, so x = 3 is not a solution.",
    "a case": "2x + 3 = 7. When x = 0 it fails.",
    "a case of two": "x - 4 = 0 or x - 8 = 0, so x = 4 or x = 8",
    "a rounding of a root": "x^2 = 2 \\implies x = 1.41",
    "a whole number of things": "3B = 22, so B = 7",
    "two unknowns": "x + y = 5, so x = 3",
    "another unknown": "2x = 10, so y = 4",
    "a function": "f(x) = 3, so x = 4",
    "a root that is lost": "\\sqrt{x} = -2, so x = 4",
    "other words between": "2x = 10 minutes later the train leaves; in the morning x = 4",
    "congruences": "2x = 3 \\pmod 5, so x = 4",
    "a tower": "9^{9^{9}}x = 3, so x = 1",
}


@pytest.mark.parametrize("step", HOLDS.values(), ids=HOLDS)
def test_what_holds(step: str) -> None:
    found = finding("algebra", step)
    assert found.verdict is StepVerdict.HOLDS, found
    assert found.covers is Covers.PART


@pytest.mark.parametrize("step", REFUTED.values(), ids=REFUTED)
def test_what_is_refuted(step: str) -> None:
    found = finding("algebra", step)
    assert found.verdict is StepVerdict.REFUTED, found
    assert found.evidence


@pytest.mark.parametrize("step", LEFT_ALONE.values(), ids=LEFT_ALONE)
def test_what_is_left_alone(step: str) -> None:
    assert finding("algebra", step).verdict is not StepVerdict.REFUTED


def test_an_identity_that_is_denied_does_not_hold() -> None:
    assert verdict("algebra", "It is false that (x+1)^2 = x^2 + 2x + 1.") == "unknown"


def test_evidence_says_what_is_wrong() -> None:
    assert (
        finding("algebra", "2x + 3 = 7, so x = 3.").evidence == "x = 3: with x = 3 the sides of 2x + 3 = 7 are 9 and 7"
    )
    said = finding("algebra", "Expanding, (x+1)^2 = x^2 + 3x + 1.").evidence
    assert said == "(x+1)^2 = x^2 + 3x + 1: the two sides differ by -x"
    assert finding("algebra", "2x + 3 = 7, so x = 2.").evidence == "x = 2 solves 2x + 3 = 7"


@pytest.mark.parametrize(
    ("before", "step", "wanted"),
    [
        ("Therefore 5x = 20.", "So x = 4.", "holds"),
        ("Therefore 5x = 20.", "So x = 5.", "refuted"),
        ("5x = 20", "Dividing both sides by 5, x = 3.", "refuted"),
        ("Therefore 5x = 20.", "x = 5", "unknown"),
        ("Therefore 5x = 20.", "The age of his brother is x = 5.", "unknown"),
        ("Therefore 5x = 20, and we think of the brother next.", "So x = 5.", "unknown"),
    ],
)
def test_an_equation_of_the_step_before_is_solved_where_words_say_so(before: str, step: str, wanted: str) -> None:
    assert verdict("algebra", step, earlier=("x = 9 is old", before)) == wanted
    assert verdict("algebra", step, earlier=(before, "Then he goes home.")) == "unknown"


@given(st.integers(-9, 9), st.integers(-9, 9), st.integers(-9, 9).filter(bool))
def test_products_are_expanded(a: int, b: int, off: int) -> None:
    left = f"(x {a:+d})(x {b:+d})"
    assert verdict("algebra", f"Expanding, {left} = x^2 {a + b:+d}x {a * b:+d}.") == "holds"
    assert verdict("algebra", f"Expanding, {left} = x^2 {a + b:+d}x {a * b + off:+d}.") in ("refuted", "unknown")


@given(st.integers(2, 99), st.integers(-99, 99), st.integers(-99, 99), st.integers(-20, 20).filter(bool))
def test_linear_equations_are_solved(a: int, b: int, root: int, off: int) -> None:
    equation = f"{a}n {b:+d} = {a * root + b}"
    assert verdict("algebra", f"{equation}, so n = {root}.") == "holds"
    assert verdict("algebra", f"{equation}, so n = {root + off}.") == "refuted"


@given(st.text(alphabet="0123xyab+-*/=()[]{}^_., \\n\n" + "so", max_size=60))
def test_any_text_gets_a_finding(text: str) -> None:
    first = finding("algebra", text, earlier=(text,))
    assert finding("algebra", text, earlier=(text,)) == first
    assert len(first.evidence) <= MOST_EVIDENCE
