"""Expressions are compared exactly: against evaluation without sympy, over rewritings, and without any exception."""

from fractions import Fraction

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from sympy import Float, Integer, Number, sympify

from pipeline.graders.math.child import number
from pipeline.graders.math.equations import same_zeros, scale_sign
from pipeline.graders.math.expression import close, equal, expression
from pipeline.graders.math.ratio import rational_power

SMALL = st.integers(-30, 30)
ATOMS = st.one_of(
    SMALL.map(lambda n: f"({n})"),
    st.sampled_from(
        ["x", "y", "a_1", "\\pi", "i", "e", "\\sqrt{2}", "\\sqrt{12}", "\\sqrt[3]{5}", "\\frac{2}{3}", "0.25"]
    ),
)


def _combined(parts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        st.tuples(parts, parts).map(lambda ab: f"({ab[0]}+{ab[1]})"),
        st.tuples(parts, parts).map(lambda ab: f"({ab[0]}-{ab[1]})"),
        st.tuples(parts, parts).map(lambda ab: f"{ab[0]}\\cdot {ab[1]}"),
        st.tuples(parts, st.integers(0, 3)).map(lambda an: f"({an[0]})^{{{an[1]}}}"),
        st.tuples(parts, st.integers(1, 9)).map(lambda an: f"\\frac{{{an[0]}}}{{{an[1]}}}"),
    )


TEXTS = st.recursive(ATOMS, _combined, max_leaves=6)
MARKS = (
    "\\frac", "{", "}", "(", ")", "^", "_", "1", "x", "\\sqrt", "[", "]", "\\sin", "!", "|", "/", "-", "+", ".",
    "\\pi", "\\binom", "\\log", "\\infty", "\\circ", "e", "i", "0", " ", ",",
)  # fmt: skip
SOUP = st.lists(st.sampled_from(MARKS), max_size=14).map("".join)


def decided(left: str, right: str) -> bool | None:
    a, b = expression(left), expression(right)
    return None if a is None or b is None else equal(a, b)


@given(TEXTS, TEXTS, TEXTS)
def test_the_laws_of_algebra_hold(a: str, b: str, c: str) -> None:
    assume(all(expression(text) is not None for text in (a, b, c)))
    for left, right in [
        (f"({a})+({b})", f"({b})+({a})"),
        (f"({a})({b})", f"({b})\\cdot({a})"),
        (f"({a})(({b})+({c}))", f"({a})({b})+({a})({c})"),
        (f"({a})-({b})", f"-(({b})-({a}))"),
        (f"(({a})+({b}))^2", f"({a})^2+2({a})({b})+({b})^2"),
    ]:
        assert decided(left, right) in (True, None)
        assert decided(left, left) is True


@given(TEXTS, TEXTS)
def test_equality_is_symmetric_and_a_shift_is_seen(a: str, b: str) -> None:
    assume(expression(a) is not None and expression(b) is not None)
    assert decided(a, b) == decided(b, a)
    assert decided(f"({a})+1", a) is False


@given(st.fractions(max_denominator=50), st.fractions(max_denominator=50), st.integers(2, 200))
def test_roots_are_reduced(a: Fraction, b: Fraction, root: int) -> None:
    assume(b)
    left = f"\\frac{{{a.numerator}+\\sqrt{{{root}}}}}{{{b.numerator}}}"
    right = f"\\frac{{2({a.numerator})+\\sqrt{{{4 * root}}}}}{{2({b.numerator})}}"
    assert decided(left, right) is True
    assert decided(left, f"{right}+\\frac{{1}}{{10^{{30}}}}") is False


@given(
    st.fractions(min_value=Fraction(1, 1000), max_value=1000, max_denominator=1000),
    st.fractions(-3, 3, max_denominator=6),
)
def test_a_power_of_a_root_is_the_base(base: Fraction, power: Fraction) -> None:
    assume(power)
    root = rational_power(base, power)
    assert root is not None
    assert (root**power.denominator).rational() == base**power.numerator


@given(st.one_of(SOUP, st.text(max_size=20)))
def test_reading_never_raises(text: str) -> None:
    read = expression(text)
    if read is not None:
        assert equal(read, read) is True


@pytest.mark.parametrize(
    ("left", "right", "verdict"),
    [
        ("\\frac{1}{1+2i}", "\\frac{1}{5}-\\frac{2}{5}i", True),
        ("\\frac{1}{\\sqrt{3}+1}", "\\frac{\\sqrt{3}-1}{2}", True),
        ("\\frac{x^2-1}{x-1}", "x+1", True),
        ("8^{2005}", "2^{2005}", False),
        ("1-\\frac{1}{e}", "1+\\frac{1}{e}", False),
        ("\\frac{1}{2^{99}}", "\\frac{1}{2^{98}}", False),
        ("\\frac{1}{2004!}", "\\frac{1}{2006!}", None),
        ("\\cos\\frac{\\pi}{3}", "\\frac{1}{2}", True),
        ("\\tan 45^\\circ", "1", True),
        ("\\sin 210^\\circ", "-\\frac{1}{2}", True),
        ("\\cos x", "\\sin x", False),
        ("\\sin^2 x+\\cos^2 x", "1", None),
        ("\\log 2", "\\ln 2", None),
        ("\\log_2 8", "3", True),
        ("\\log_3 8", "2", False),
        ("x^{2/3}", "x^{3/2}", False),
        ("\\sqrt[3]{-8}", "-2", True),
        ("\\sqrt{-4}", "2i", True),
        ("|x-1|", "|1-x|", None),
        ("x^{2}y", "yx^2", True),
        ("\\infty", "5", False),
        ("\\binom{5}{2}", "5\\cdot 2", True),
    ],
)
def test_by_example(left: str, right: str, verdict: bool | None) -> None:
    assert decided(left, right) is verdict


@pytest.mark.parametrize(
    "text",
    ["1/2x", "2\\frac{1}{2}", "x2", "f(2)", "cat", "5 6", "1e5", "(1", "1)", "", "x^", "1,2", "a=b", "\\frac{1}{0}"],
)
def test_what_has_two_meanings_or_none_is_not_read(text: str) -> None:
    assert expression(text) is None


@pytest.mark.parametrize(
    "text", ["2^{10000}", "(x+y+z+1)^{24}", "9^{9^{9}}", "170!", "10^{-9999}", "\\frac{1}{" * 18 + "x" + "}" * 18]
)
def test_large_ones_stay_cheap(text: str) -> None:
    read = expression(text)
    assert read is None or equal(read, read) is True


def test_equations_are_compared_up_to_a_factor() -> None:
    def zeros(left: str, right: str) -> bool | None:
        a, b = expression(left), expression(right)
        assert a is not None
        assert b is not None
        return same_zeros(a, b)

    assert zeros("2x+3y-6", "12-4x-6y") is True
    assert zeros("\\sqrt{2}x-2", "x-\\sqrt{2}") is True
    assert zeros("xy-1", "y-\\frac{1}{x}") is True
    assert zeros("x^2-4", "x-2") is False
    assert zeros("\\sin x", "2\\sin x") is None


@pytest.mark.parametrize(
    ("left", "right", "same"),
    [
        ("xy", "x", False),
        ("x^2", "x", True),
        ("xy^2", "yx", True),
        ("y-2", "xy-2x", False),
        ("\\frac{x}{y}-1", "x-y", False),
        ("\\frac{x-1}{x}", "x-1", True),
        ("\\frac{x^2}{x}", "x", False),
        ("y-\\frac{x}{x^2-1}", "y(x^2-1)-x", True),
        ("y-\\frac{x-1}{x^2-1}", "y(x^2-1)-x+1", False),
        ("\\frac{2}{x}+\\frac{1}{y}", "\\frac{4}{x}+\\frac{2}{y}", True),
        ("x^{-1}y-1", "y-x", False),
    ],
)
def test_a_factor_that_can_be_zero_changes_the_solutions(left: str, right: str, same: bool) -> None:
    a, b = expression(left), expression(right)
    assert a is not None
    assert b is not None
    assert same_zeros(a, b) is same
    assert same_zeros(b, a) is same


def test_a_power_of_a_variable_is_no_factor_of_an_inequality() -> None:
    x, square = expression("x"), expression("x^2")
    assert x
    assert square
    assert scale_sign(x, square) == 0


def test_the_sign_of_a_factor_and_nearness() -> None:
    x, minus, other, near = (expression(text) for text in ("x-1", "2-2x", "x-2", "\\pi"))
    assert x
    assert minus
    assert other
    assert near
    assert (scale_sign(x, minus), scale_sign(x, x), scale_sign(x, other)) == (-1, 1, 0)
    third = expression("3.14159")
    assert third
    assert close(near, third, 1e-5) is True
    assert close(near, third, 1e-7) is False
    assert close(x, third, 1e-5) is None


DIGITS = st.text("0123456789", min_size=1, max_size=40)
WHOLE = st.integers(0, 10**40).map(str)
DECIMALS = st.one_of(
    st.tuples(WHOLE, DIGITS).map(".".join),
    DIGITS.map(".{}".format),
    st.tuples(WHOLE, DIGITS, st.integers(-300, 300)).map(lambda parts: "{}.{}E{}".format(*parts)),
    st.tuples(WHOLE, st.integers(-300, 300)).map(lambda parts: "{}e{}".format(*parts)),
)


def same(left: Number, right: Number) -> bool:
    return (
        bool(left == right)
        and type(left) is type(right)
        and getattr(left, "_prec", None) == getattr(right, "_prec", None)
    )


@given(st.one_of(WHOLE, DECIMALS))
def test_a_numeral_is_what_sympy_would_have_evaluated_it_to(numeral: str) -> None:
    assert same(number(numeral), sympify(numeral))


@given(DIGITS)
def test_leading_zeros_mean_nothing(digits: str) -> None:
    assert same(number(digits), Integer(int(digits)))
    assert same(number(f"{digits}.5"), Float(f"{digits}.5"))


@pytest.mark.parametrize(
    "text",
    [
        "",
        ".",
        "e5",
        "1+1",
        "x",
        "1e",
        "--1",
        "nan",
        "inf",
        "0x10",
        "1_000",
        "1,000",
        "٣",
        "1j",
        " 1",
        "__import__('os')",
    ],
)
def test_what_is_no_numeral_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a numeral"):
        number(text)
