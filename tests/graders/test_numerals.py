from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.data.numbers import number_in_words

SMALL = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen"
    " nineteen"
)
TENS = "twenty thirty forty fifty sixty seventy eighty ninety"


def in_words(number: int) -> str:
    if number < 20:
        return SMALL.split()[number]
    if number < 100:
        tens = TENS.split()[number // 10 - 2]
        return f"{tens}-{in_words(number % 10)}" if number % 10 else tens
    if number < 1000:
        rest = f" and {in_words(number % 100)}" if number % 100 else ""
        return f"{in_words(number // 100)} hundred{rest}"
    rest = f" {in_words(number % 1000)}" if number % 1000 else ""
    return f"{in_words(number // 1000)} thousand{rest}"


@given(st.integers(0, 999_999))
def test_every_number_is_read_back(number: int) -> None:
    assert number_in_words(in_words(number)) == number
    assert number_in_words(in_words(number).upper()) == number


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("half", Fraction(1, 2)),
        ("a half", Fraction(1, 2)),
        ("two thirds", Fraction(2, 3)),
        ("three-quarters", Fraction(3, 4)),
        ("a quarter of a million", Fraction(250_000)),
        ("one and a half dozen", Fraction(18)),
        ("minus two and a half", Fraction(-5, 2)),
    ],
)
def test_parts(text: str, value: Fraction) -> None:
    assert number_in_words(text) == value


@pytest.mark.parametrize(
    "text", ["third", "hundred", "and", "thousand", "sixth", "five twenty", "twenty third", "", "six eggs"]
)
def test_what_names_no_number(text: str) -> None:
    assert number_in_words(text) is None


@given(
    st.lists(
        st.sampled_from([*SMALL.split(), *TENS.split(), "hundred", "thousand", "and", "half", "third", "x", "-"]),
        max_size=14,
    )
)
def test_it_never_raises(words: list[str]) -> None:
    number_in_words(" ".join(words))
