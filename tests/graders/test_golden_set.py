"""The checker on `golden/README.md`, the golden set, and on answers with near misses, `near_misses/README.md`."""

from collections import Counter
from contextlib import nullcontext
from pathlib import Path

import pytest

from pipeline.core.records import Verdict
from pipeline.graders.base import Checker
from pipeline.graders.registry import checker_for
from tests.deadlines import bounded
from tests.graders.dev_files import Bar, canaries, judge, meets, score
from tests.graders.golden.__main__ import FILES, figures_of, judged
from tests.graders.golden.rows import FOLDER, Row, cases_of, read, row
from tests.settings import grader_settings

pytestmark = pytest.mark.slow

# Every file but the gaps has the bar of the audited outputs, or what was reached where that is less.
REQUIRED = {
    "answers": Bar(accuracy=99.85, false_positives=0.03),
    "answers_by_hand": Bar(accuracy=99.85, false_positives=0.03),
    "outputs": Bar(accuracy=99.4, false_positives=1.0),
    "outputs_by_hand": Bar(accuracy=99.4, false_positives=0.0),
    "adversarial": Bar(accuracy=99.85, false_positives=0.0),
    "gaps": Bar(accuracy=63.0, false_positives=6.5),
}
LEAST_CASES = 6_000
MOST_BYTES = 300_000


@pytest.mark.parametrize("name", FILES)
def test_answers_are_judged_as_is_known_beforehand(
    checker: Checker, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    # Some of these answers take as long as the deadline is.
    short = checker_for(grader_settings(deadline_seconds=1.0)) if name == "adversarial" else nullcontext(checker)
    with short as asked, bounded(60.0):
        outcomes = [outcome for _, outcome in judged(name, asked)]
    result = score(outcomes)
    print(figures_of(name, result))
    assert meets(result, REQUIRED[name]), figures_of(name, result)
    assert canaries([outcome.case for outcome in outcomes], tmp_path) == []


def test_every_file_is_read_and_the_set_is_large_and_its_folder_small() -> None:
    assert {path.stem for path in FOLDER.glob("*.jsonl")} == set(FILES)
    assert sum(len(found.right) + len(found.wrong) for name in FILES for found in read(name)) >= LEAST_CASES
    assert sum(path.stat().st_size for path in FOLDER.iterdir() if path.is_file()) <= MOST_BYTES


def test_no_answer_is_both_right_and_wrong() -> None:
    for name in FILES:
        for found in read(name):
            assert row(found.kind, found.gold, found.right, found.wrong) == found
    with pytest.raises(ValueError, match="both right and wrong"):
        row("integer", "5", ["5.0"], ["5.0", "6"])


NEAR_MISSES = Path(__file__).parent / "near_misses"
ROWS = [(path.stem, found) for path in sorted(NEAR_MISSES.glob("*.jsonl")) for found in read(path.stem, NEAR_MISSES)]
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
