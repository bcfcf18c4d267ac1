import pytest

from pipeline.graders.math.limits import MAX_CHARS, MAX_DIGITS, exceeded_limit

OVER = [
    ("x" * (MAX_CHARS + 1), "characters"),
    ("1" * (MAX_DIGITS + 1), "digits"),
    ("a" + "1" * (MAX_DIGITS + 1), "digits"),
    ("{" * 30 + "5" + "}" * 30, "depth"),
    ("1e999999999", "exponent"),
    ("1E+99999999", "exponent"),
    ("2^{99999999}", "exponent"),
    ("2**99999999", "exponent"),
    ("9^{9^{9^9}}", "tower"),
    ("9 ^ ( 9 ^ 9 )", "tower"),
    ("9999!", "factorial"),
    ("10^9!", "factorial"),
    ("(10^9)!", "factorial"),
    ("x^" * 30 + "x", "powers"),
]
WITHIN = [
    "",
    "5",
    "x^{2}",
    "2^{2005}",
    "10^{100}",
    "10!",
    "\\frac{1}{2004}",
    "e^{x^2}",
    "x^{2^3}",
    "1.5e-3",
    "(n-1)!",
    "\ud800",
    "²" * 3,
]


@pytest.mark.parametrize(("answer", "name"), OVER)
def test_what_is_over_a_limit_is_named(answer: str, name: str) -> None:
    assert exceeded_limit(answer) == name


@pytest.mark.parametrize("answer", WITHIN)
def test_ordinary_answers_are_within(answer: str) -> None:
    assert exceeded_limit(answer) is None
