"""What `grader.unreadable_is` makes of answers that cannot be read or compared."""

from collections.abc import Iterator

import pytest

from pipeline.config.choices import UnreadableIs
from pipeline.core.records import Verdict
from pipeline.graders.base import Checker
from pipeline.graders.registry import checker_for
from tests.settings import grader_settings

UNREAD = ["\\boxed{@@}", "\\boxed{x+}", "\\boxed{??@}", "\\boxed{\\foo{x}}", "\\boxed{\\log x}"]
TOO_LARGE = ["\\boxed{9^{9^{9^9}}}", f"\\boxed{{{'x' * 600}}}", "#### " + "(" * 100_000]
READABLE = ["5", "x+1", "\\sin x"]
UNREADABLE = "\\frac{1}{"


@pytest.fixture(scope="module")
def strict() -> Iterator[Checker]:
    with checker_for(grader_settings(unreadable_is=UnreadableIs.wrong, deadline_seconds=20.0)) as made:
        yield made


@pytest.mark.parametrize("text", [*UNREAD, *TOO_LARGE])
@pytest.mark.parametrize("gold", READABLE)
def test_an_answer_that_cannot_be_read_is_wrong_if_the_setting_says_so(
    checker: Checker, strict: Checker, gold: str, text: str
) -> None:
    assert strict.grade((gold,), text).verdict is Verdict.INCORRECT
    assert strict.grade((gold, "7"), text).verdict is Verdict.INCORRECT
    expected = Verdict.OVER_LIMIT if text in TOO_LARGE else Verdict.UNPARSEABLE
    assert checker.grade((gold,), text).verdict is expected


def test_a_known_answer_that_cannot_be_read_leaves_it_ungraded(strict: Checker) -> None:
    assert strict.grade((UNREADABLE,), "\\boxed{@@}").verdict is Verdict.UNPARSEABLE
    assert strict.grade(("5", UNREADABLE), "\\boxed{@@}").verdict is Verdict.UNPARSEABLE
    assert strict.grade(("9^{9^{9^9}}",), "\\boxed{@@}").verdict is Verdict.OVER_LIMIT


def test_other_answers_keep_their_verdicts(checker: Checker, strict: Checker) -> None:
    cases = [
        ("5", "\\boxed{5}"),
        ("5", "\\boxed{6}"),
        ("\\sin 2x", "\\boxed{2\\sin x\\cos x}"),
        ("5", "I do not know."),
    ]
    for each in (checker, strict):
        found = [each.grade((gold,), text).verdict for gold, text in cases]
        assert found == [Verdict.CORRECT, Verdict.INCORRECT, Verdict.CORRECT, Verdict.NO_ANSWER]


def test_the_verdict_is_known_at_once_when_it_comes_again(strict: Checker) -> None:
    assert strict.quick(("6",), UNREAD[0]) is None
    strict.grade(("6",), UNREAD[0])
    again = strict.quick(("6",), UNREAD[0])
    assert again is not None
    assert again.verdict is Verdict.INCORRECT
