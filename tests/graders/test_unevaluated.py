import pytest
from hypothesis import given
from hypothesis import strategies as st
from sympy import Float, Integer, Number, sympify

from pipeline.graders.math.child import number

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
