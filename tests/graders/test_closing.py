import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.graders.math.fallback_answer import closing_statement, last_number

CLOSED = [
    ("First 3.\nSo she has 5 apples.", "5 apples"),
    ("Here is a matrix: $ \\begin{pmatrix}0 & 0\\end{pmatrix} $", "\\begin{pmatrix}0 & 0\\end{pmatrix}"),
    ("We find that $x \\lt 3$.", "x \\lt 3"),
    ("so the area is $\\frac{1}{2}(10)(3)=15$ square centimeters.", "\\frac{1}{2}(10)(3)=15"),
    ("Hence\n\\[\nx = 9\n\\]", "x = 9"),
    ("Both fit, so it must be option (C).", "C"),
    ("That makes **12 cm**", "12 cm"),
    ("Thus it is 2^10.", "2^10"),
    ("There is no solution.", "no solution"),
    ("She makes 9 * 2 = $<<9*2=18>>18 every day.", "18 every day"),
    ("Yes.", "Yes"),
]
OPEN = [
    "",
    "It cannot be 5.",
    "So it isn't 7 at all.",
    "I do not know.",
    "It holds for all of them, as was to be shown.",
    "\n\n",
]


@pytest.mark.parametrize(("text", "answer"), CLOSED)
def test_what_a_closing_line_comes_down_to(text: str, answer: str) -> None:
    assert closing_statement(text) == answer


@pytest.mark.parametrize("text", OPEN)
def test_a_text_that_closes_on_nothing(text: str) -> None:
    assert closing_statement(text) is None


@given(
    st.integers(0, 10**9), st.sampled_from(["So there are {} of them.", "That is {}", "x = {}.", "It takes {} days!"])
)
def test_a_number_at_the_end_is_found(number: int, sentence: str) -> None:
    said = closing_statement("Let us see.\n" + sentence.format(number))
    assert said is not None
    assert last_number(said) == str(number)


PIECES = st.sampled_from(["$", "\\(", "\\)", "**", " is ", "= ", "5", "\n", "x", "."])


@given(st.one_of(st.text(max_size=200), st.lists(PIECES, max_size=20).map("".join)))
def test_it_never_raises(text: str) -> None:
    for found in (closing_statement(text), last_number(text)):
        assert found is None or found.strip()


@pytest.mark.parametrize("piece", ["$", "**", "1", "1 a", "\\)", "= ", "is ", "(A)", "<<", "a1 "])
def test_long_lines_are_read_in_linear_time(piece: str) -> None:
    closing_statement(piece * 400_000)
