import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.config.choices import Fallback
from pipeline.graders.math.extract import final_answer
from pipeline.graders.math.fallback_answer import closing_statement, last_number
from pipeline.graders.math.limits import exceeded_limit
from tests.deadlines import bounded

STATED = [
    ("The answer is 7.", "7"),
    ("The answer is 3.5.", "3.5"),
    ("The answer is $1,234 dollars.", "1,234 dollars"),
    ("the answer is: $\\frac{1}{2}$.", "\\frac{1}{2}"),
    ("Final Answer: The final answer is $5$. I hope it is correct.", "5"),
    ("The answer is: $x = 5.$ I hope it is correct.", "x = 5"),
    ("The answer to your question is 12.", "12"),
    ('The answer is "no".', "no"),
    ("The answer is 5, since x is 2.", "5"),
    ("Therefore the correct answer is (B).", "(B)"),
    ("ANSWER: B", "B"),
    ("**Answer:** $898$", "898"),
    ("### Final Answer\n\n**12 cm**", "12 cm"),
    ("# Answer\n\nHillary has 7 nickels.", "Hillary has 7 nickels"),
    ("Answer \\[ \n 9 \n \\]", "9"),
    ("so \\boxed{42}.", "42"),
    ("so $\\boxed{\\frac{1}{\\sqrt{2}}}$", "\\frac{1}{\\sqrt{2}}"),
    ("so \\fbox{$7$}", "7"),
    ("so \\boxed 5", "5"),
    ("\\boxed{\\text{The answer is } 5}", "\\text{The answer is } 5"),
    ("\\boxed{3}. Wait, no: \\boxed{4}", "4"),
    ("\\boxed{3} and $\\boxed{4}$", "3, 4"),
    ("\\boxed{3}. So the answer is 4.", "4"),
    ("The answer is 4. So \\boxed{3}", "3"),
    ("#### 72", "72"),
    ("#### 72\nThe answer is: 73", "73"),
    ("The answer is 1.\n#### 1,000", "1,000"),
    ("\\boxed{5}\n#### Step 4: verify\nIt holds.", "5"),
    ("Q: how many?\nA: 7,000", "7,000"),
    ("The answer is 5. I am sure that my answer is correct.", "5"),
    ("The answer is 103 ки", "103"),
    ("so \\boxed{5}. The answer is in the box.", "5"),
    ("Answer: let us see how many pears she has left. The answer is 3.", "3"),
    ("$1,000.99", "1,000.99"),
    ("42", "42"),
]
CUT = [
    ("The answer is 12. The answer is 1", "12"),
    ("So \\boxed{42}. Thus the answer is 4", "42"),
    ("#### 120\n#### 12", "120"),
    ("**Answer:** 31\n\n**Answer:** 3", "31"),
    ("<answer>45</answer> <answer>4", "45"),
    ("The answer is 12. So we are done. Is it 12", "12"),
    ("The answer is $\\frac{3}{4}$. The answer is $\\frac{3", "\\frac{3}{4}"),
    ("The answer is 42. So \\boxed{4", "42"),
    ("The answer is 3.5. The answer is 3.", "3.5"),
    ("The answer is 12.", "12"),
    ("The answer is 12", None),
    ("The answer is 1,", None),
    ("The answer is 12. The answer is 13", None),
    ("So \\boxed{42}. Hmm, the answer is 5", None),
    ("The answer is 12. Wait, actually the answer is 1", None),
    ("\\boxed{4", None),
]
UNSTATED = [
    "", " ", "\0", "I cannot answer this.", "so \\boxed{12", "\\boxed{}", "####", "The answer is", "We get 5 apples.",
    "Answer: let us first see how many pears there are.",
]  # fmt: skip
HOSTILE = {
    "mentions": "answer " * 150_000,
    "statements": "the answer is " * 70_000,
    "boxes": "\\boxed{" * 150_000,
    "closed boxes": "$\\boxed{1}," * 90_000,
    "braces": "{" * 1_000_000,
    "hashes": "####" * 250_000,
    "spaces": " " * 1_000_000,
    "digits": "1" * 1_000_000,
    "commas": "1," * 500_000,
    "backslashes": "\\" * 1_000_000,
    "clause": "answer to " + "x" * 1_000_000,
    "trailing spaces": "answer is" + " " * 1_000_000,
    "lines": "\nA: " * 250_000,
    "newlines": "answer \n" * 120_000,
    "minus": "-" * 1_000_000,
    "surrogates": "\ud800" * 1_000_000,
}
PIECES = [
    "a <think> ", "<a:think>\n", "`</think>` ", "<|channel|>analysis<|message|>", "\\boxed{}", "\\boxed ", "<answer></answer>",
    "####\n", "answer is neither 4 nor ", "the answer is 5, a, ", "answer is ```\n", "The answer is 5.\nQuestion: is it? No, ",
    "\n**Problem 2**", "$\\square$ ", "✅", '{"answer": 5}', "5 - ", "i am not ", "so we ", "answer isn't 5 but ",
]  # fmt: skip
HOSTILE.update({piece: piece * (1_000_000 // len(piece)) for piece in PIECES})


@pytest.mark.parametrize(("text", "answer"), STATED)
def test_the_stated_answer_is_found(text: str, answer: str) -> None:
    assert final_answer(text) == answer
    assert final_answer("She has 3 pears. " + text if text[0].isupper() else text) == answer


@pytest.mark.parametrize(("text", "answer"), CUT)
def test_a_cut_text_keeps_the_statement_that_its_last_one_repeats(text: str, answer: str | None) -> None:
    assert final_answer(text, complete=False, fallback=Fallback.closing_statement) == answer


@pytest.mark.parametrize("text", UNSTATED)
def test_no_statement_is_no_answer(text: str) -> None:
    assert final_answer(text) is None


def test_the_last_number_counts_only_when_asked_for() -> None:
    text = "We have 12 pears, and 15-3 = -1,234.50, as said."
    assert final_answer(text) is None
    assert final_answer(text, fallback=Fallback.last_number) == "-1,234.50"
    assert final_answer("15-3", fallback=Fallback.last_number) is not None
    assert final_answer("no number", fallback=Fallback.last_number) is None
    assert final_answer("The answer is 7, not 8.", fallback=Fallback.last_number) is not None


def test_a_pattern_comes_before_the_markers() -> None:
    pattern = re.compile(r"<final>(.*?)</final>")
    assert final_answer("<final>5</final> <final>$6$</final> \\boxed{7}", pattern=pattern) == "6"
    assert final_answer("\\boxed{7}", pattern=pattern) == "7"


@pytest.mark.parametrize("fallback", Fallback)
@pytest.mark.parametrize("name", HOSTILE)
def test_a_megabyte_takes_milliseconds(name: str, fallback: Fallback) -> None:
    with bounded():  # measured: 4 ms at most on an idle core
        final_answer(HOSTILE[name], fallback=fallback)


def test_ten_thousand_nested_braces_are_an_answer_over_the_limit() -> None:
    answer = final_answer("\\boxed{" + "{" * 10_000 + "5" + "}" * 10_001)
    assert answer is not None
    assert exceeded_limit(answer)


FRAGMENTS = st.sampled_from(
    [
        "\\boxed{", "}", "{", "\\fbox", "####", "the answer is ", "Answer: ", "\n", "$", "\\(", "\\)", "**", "A: ", ".", "5",
        "\\frac", "<think>", "</think>", "\nQuestion: ", "<answer>", ", in total", "not 4, but ", "✅", "```",
    ]
)  # fmt: skip


@given(
    st.one_of(st.text(), st.lists(FRAGMENTS | st.text(max_size=3), max_size=30).map("".join)), st.sampled_from(Fallback)
)
def test_any_text_is_survived(text: str, fallback: Fallback) -> None:
    answer = final_answer(text, fallback=fallback)
    assert answer is None or answer.strip()


@given(st.text(alphabet="Sherwon pqy,;\n", max_size=200), st.integers(-(10**12), 10**12))
def test_what_comes_before_the_last_statement_does_not_matter(before: str, number: int) -> None:
    for statement in (f"\\boxed{{{number}}}", f"#### {number}", f"The answer is {number}.", f"**Answer:** ${number}$"):
        assert final_answer(f"\\boxed{{1}} {before} x. {statement}") == str(number)


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


CLOSING_PIECES = st.sampled_from(["$", "\\(", "\\)", "**", " is ", "= ", "5", "\n", "x", "."])


@given(st.one_of(st.text(max_size=200), st.lists(CLOSING_PIECES, max_size=20).map("".join)))
def test_it_never_raises(text: str) -> None:
    for found in (closing_statement(text), last_number(text)):
        assert found is None or found.strip()


@pytest.mark.parametrize("piece", ["$", "**", "1", "1 a", "\\)", "= ", "is ", "(A)", "<<", "a1 "])
def test_long_lines_are_read_in_linear_time(piece: str) -> None:
    closing_statement(piece * 400_000)
