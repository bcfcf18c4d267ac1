"""Answers are found where texts state them, the words beside a value that deny it count, and a statement may be complete."""

import re
from collections.abc import Iterable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pipeline.config.choices import Fallback
from pipeline.core.errors import StepvalueError
from pipeline.graders.math import denials
from pipeline.graders.math.denials import is_denied
from pipeline.graders.math.extract import AnswerSeen, final_answer
from pipeline.graders.math.fallback_answer import closing_statement, last_number
from pipeline.graders.math.limits import exceeded_limit
from pipeline.graders.math.pool import MathChecker
from pipeline.graders.math.wording import read_phrases
from tests.deadlines import bounded
from tests.settings import grader_settings

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


ANSWERED = AnswerSeen()
CHECKER = MathChecker(grader_settings(fallback=Fallback.last_number))


@pytest.mark.parametrize(
    "text",
    [
        "The answer is 27.\n",
        "So it is 27.\n#### 27\n",
        "Thus \\boxed{27}.\n",
        "\\[ \\fbox{\\frac{1}{2}} \\]\n\n",
        "**Answer:** 27\n",
        "# Answer\n27\n",
        "The final answer is:\n\\[\n27\n\\]\n",
        "The answer is yes.\n",
        "The answer is New York.\n",
        "Answer: (B)\n",
        "答案是 5\n",
        "<answer>5</answer>\n",
        "The answer is 27 shells in all.\n",
        "The answer is $\\{ 1, 2, 3, 4, 5, 6 \\}$.\n",
        "The answer is 27.\n\nProblem: Ann has 3",
        "The answer is 27.\r\n",
    ],
)
def test_complete(text: str) -> None:
    assert ANSWERED.complete(text)
    assert any(map(ANSWERED.may_state, text.splitlines()))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n",
        "The answer is 27.",
        "Thus \\boxed{27",
        "Thus \\boxed{27\n",
        "\\boxed{3} or\n",
        "\\boxed{3},\n",
        "27\n",
        "A: 27\n",
        "#### Step 1\n",
        "####\n",
        "The answer is\n",
        "Answer:\n",
        "The final answer is:\n\\[\n27\n",
        "The answer is obtained as follows:\n",
        "The answer is the sum of the two\n",
        "The answer must be between 4 and 2 km an hour.\n",
        "<think>The answer is 27.\n",
        "She has 27 shells.\n",
        "Answer:\n- 27\n",
        "Answer:\n1. 27\n2. 28\n",
    ],
)
def test_not_complete(text: str) -> None:
    assert not ANSWERED.complete(text)


def test_a_pattern_of_the_grader_comes_first() -> None:
    answered = AnswerSeen(pattern=re.compile(r"#([0-9]+)"))
    assert answered.may_state("12*3=36")
    assert answered.complete("12*3=36\n#36\n")
    assert not answered.complete("12*3=36\n#36")
    assert not answered.complete("12*3=36\n")


def test_a_pattern_that_only_the_end_of_a_text_matches_is_never_complete() -> None:
    assert not AnswerSeen(pattern=re.compile(r"([0-9]+)\s*$")).complete("12 * 3 = 36\n")


LINES = st.sampled_from(
    [
        "The answer is 27.", "#### 72", "#### Step 1", "\\boxed{5}", "\\boxed{", "}", "so 3 * 4 = 12", "Answer:", "27",
        "A: 27", "the answer is about 3 because", "\\[", "27", "\\]", "", "  ", "Wait, actually it is 6.", "<answer>7",
        "</answer>", "<think>", "</think>", "答案是 5", "Final Answer", "**The answer is**", "is red", "x = 4,", "Problem: 9",
    ]
)  # fmt: skip
TEXTS = st.lists(LINES | st.text(max_size=6), max_size=8).map("\n".join)


@given(TEXTS, st.sampled_from(["", "So it was.", "Next\nProblem"]))
@example("The answer is 27.\n", "")
def test_the_text_up_to_there_is_graded_as_one_that_goes_on(text: str, more: str) -> None:
    """A text that ends after the line has the same answer as one that the token limit cuts there. No fallback is used."""
    cut = text[: text.rfind("\n") + 1]
    if ANSWERED.complete(text):
        answer = CHECKER.final_answer(cut)
        assert answer is not None
        assert answer == CHECKER.stated_answer(cut, complete=False)
        assert answer == CHECKER.stated_answer(cut + "\n" + more)
        assert ANSWERED.complete(cut)


@given(TEXTS, st.integers(0, 60))
def test_no_line_before_the_first_that_may_state_an_answer_completes_one(text: str, end: int) -> None:
    if ANSWERED.complete(text[:end]):
        assert any(map(ANSWERED.may_state, text[:end].split("\n")[:-1]))


# The parser of regular expressions: a test that knows each alternative of a pattern also knows those that are added to it.
PARSER = import_module("re._parser")
EMPTY = {"AT", "ASSERT", "ASSERT_NOT"}
WORD_CHARACTERS = {"CATEGORY_DIGIT": "7", "CATEGORY_WORD": "w", "CATEGORY_SPACE": " "}


def texts_of(pattern: re.Pattern[str]) -> list[str]:
    """Texts that a pattern may match: each of its alternatives in one of them at least, beside the first of the others."""
    return list(dict.fromkeys(_sequence(PARSER.parse(pattern.pattern, pattern.flags))))


def _sequence(items: Iterable[Any]) -> Iterator[str]:
    parts = [list(_item(str(operator), argument)) for operator, argument in items]
    first = [part[0] for part in parts]
    for place, part in enumerate(parts):
        for text in part:
            yield "".join([*first[:place], text, *first[place + 1 :]])
    if not parts:
        yield ""


def _item(operator: str, argument: Any) -> Iterator[str]:
    if operator == "LITERAL":
        yield chr(argument)
    elif operator == "IN":
        yield from (text for each in argument for text in _item(str(each[0]), each[1]))
    elif operator == "RANGE":
        yield chr(argument[0])
    elif operator == "CATEGORY":
        yield WORD_CHARACTERS[str(argument)]
    elif operator == "BRANCH":
        yield from (text for branch in argument[1] for text in _sequence(branch))
    elif operator == "SUBPATTERN":
        yield from _sequence(argument[3])
    elif operator in ("MAX_REPEAT", "MIN_REPEAT"):
        least, _, inside = argument
        yield from (text * max(least, 1) for text in _sequence(inside))
        yield from ([""] if least == 0 else [])
    else:
        assert operator in EMPTY, f"{operator}: say here which text it matches"
        yield ""


def matched(pattern: re.Pattern[str], least: int) -> list[str]:
    """The texts of a pattern that it matches: at least `least` of them, which are most."""
    found = [text for text in texts_of(pattern) if pattern.search(text)]
    assert len(found) >= least
    return found


def test_every_denial_before_a_value_passes_the_quick_look_for_words() -> None:
    """The quick look knows a word of each alternative of the patterns."""
    assert [text for text in matched(denials._BEFORE, 150) if not is_denied(text, "")] == []
    assert [text for text in matched(denials._SUPPOSE, 5) if not is_denied(text, "")] == []
    assert [text for text in matched(denials._IF, 8) if not is_denied(f"{text} it is ", "then")] == []


def test_every_denial_after_a_value_is_seen() -> None:
    """What comes after a value is looked at only if it begins with one of a few characters."""
    assert [text for text in matched(denials._AFTER, 150) if not is_denied("", text)] == []


@pytest.mark.parametrize("mark", ["", "*", "**", "(", "[", '"', "\u2014", "`", "~"])
@pytest.mark.parametrize(
    "denial", ["not ", "twice ", "rather than ", "n't ", "we dismisses ", "WE RULED OUT ", "ISN'T "]
)
def test_the_mark_before_a_denial_hides_nothing(mark: str, denial: str) -> None:
    assert is_denied(f"It is {mark}{denial}", "")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("begun = ", "cannot be read"),
        ("five = 5", "`five` must be a text"),
        ("blank = ' '", "`blank` must be a text"),
        ("more = 'in all|in .+'", "`more`: 'in all|in .+': write a phrase whose repeats are bounded"),
        ("open = 'in (all'", "`open`: 'in (all': missing )"),
        ("named = 'in <all>'", "there is no key `all`"),
        ("group = '(in) all'", "write (?:...) for (...)"),
        ("none = 'in all||in sum'", "a phrase is empty"),
    ],
)
def test_a_damaged_file_of_phrases_is_named_with_its_entry(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "xx.toml"
    path.write_text(text)
    with pytest.raises(StepvalueError, match=re.escape(f"{path}: ") + ".*" + re.escape(words)):
        read_phrases(tmp_path)
    path.write_text("adverbs = 'vraiment'")
    (tmp_path / "en.toml").write_text("adverb = 'really'")
    with pytest.raises(StepvalueError, match=re.escape(f"{path}: nothing reads the key `adverbs`")):
        read_phrases(tmp_path)
    (tmp_path / "en.toml").unlink()
    path.write_text("one = '<two>'\ntwo = '<one>'")
    with pytest.raises(StepvalueError, match="name each other"):
        read_phrases(tmp_path)
