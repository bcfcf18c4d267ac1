"""The checker on kinds of answers with many near misses: see `near_misses/README.md`."""

from collections import Counter
from pathlib import Path

import pytest

from pipeline.core.records import Verdict
from pipeline.graders.base import Checker
from tests.deadlines import bounded
from tests.graders.dev_files import judge
from tests.graders.golden.rows import Row, cases_of, read, row

pytestmark = pytest.mark.slow

FOLDER = Path(__file__).parent / "near_misses"
ROWS = [(path.stem, found) for path in sorted(FOLDER.glob("*.jsonl")) for found in read(path.stem, FOLDER)]
LEAST_ANSWERS = 20


@pytest.mark.parametrize(("name", "found"), ROWS, ids=[f"{found.kind}: {found.gold}" for _, found in ROWS])
def test_each_answer_gets_its_verdict(checker: Checker, name: str, found: Row) -> None:
    cases = [case for _, case in cases_of([found], extracts=name == "outputs")]
    wrong = [
        (case.prediction, verdict)
        for case in cases
        if ((verdict := judge(checker, case).verdict) == Verdict.CORRECT) is not case.expected
    ]
    assert wrong == []


def test_a_kind_has_many_answers_and_at_least_half_of_them_are_wrong() -> None:
    right, wrong = Counter[str](), Counter[str]()
    for _, found in ROWS:
        assert row(found.kind, found.gold, found.right, found.wrong) == found
        right[found.kind] += len(found.right)
        wrong[found.kind] += len(found.wrong)
    for kind in right | wrong:
        assert right[kind] + wrong[kind] >= LEAST_ANSWERS, kind
        assert wrong[kind] >= right[kind], kind


PIECES = [
    "1^{", "1^9 ", "2^3 3^2 ", "1:", "a : b = ", "f_1(x) = 2x, ", "a) 3 ", "\n(a) \\boxed{3}", "A) 3 ", "\nA) 3\nB) 4",
    "x=2, ", "3,50 EUR ", "0.2857142857", "3, 5, ", "^\\circ", "rad", "the number of ", "**Answer:**\nThe number ",
    "there are 12 ways ", "I cannot ", "not enough information ", "<|im_end|>", "</s>", "if ", "2^33", "2^33^",
    "2^{3}^", "f(x)=x, ", "f(\\theta)=\\theta", "xy=", "\\frac{x}{y}=", "x=2 or ", "(1) 3 ", "(1) \\boxed{3} ",
    "\na) 3", "\n(1) 3", "the number which ", "12 thousand ", "I am not sure ", "cannot be ", "so we ", "stuck. ",
    "<|im_start|>user\n", "<|im_start|>", "<s>", "<s></s>", "[INST] ", "\nUser: ", "\n\nHuman: a\n\nAssistant: ",
    "\n### Human:", "it is not ", "not the a ", "not a a ", "\\boxed{5} is wrong ", "twice \\boxed{5}, ",
    "we reject $5$ ", "(A) or ", "2x=", "3x + 1 = ", "1/0+", "\n\nQuestion: ", "Answer:\n- 5\n", "Answer:\n1. 5\n",
    "\n- 5", "**5** ", "my attempt failed ", "dead end ", "at first ", "I can only only ", "12 cases to check ",
    "<|EOT|>",
]  # fmt: skip


@pytest.mark.parametrize("piece", PIECES)
def test_a_hundred_thousand_characters_are_read_in_linear_time(checker: Checker, piece: str) -> None:
    text = piece * (100_000 // len(piece))
    golds = ("5", "a) 3 b) 5", "boys : girls = 3 : 4", text)
    for output in (text, f"So it is 5. {text}", f"The answer is {text}", f"\\boxed{{{text}}}", f"{text}So it is 5."):
        with bounded():
            checker.grade(golds[:3], output)
    with bounded():
        for gold in golds:
            checker.quick_answer((gold,), text)
            checker.quick_answer((text,), gold)
