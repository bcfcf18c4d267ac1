"""The checker on kinds of answers with many near misses: see `near_misses/README.md`."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from pipeline.core.records import Verdict
from pipeline.graders.base import Checker
from pipeline.graders.registry import checker_for
from tests.graders.dev_files import judge
from tests.graders.golden.rows import Row, cases_of, read, row
from tests.settings import grader_settings

FOLDER = Path(__file__).parent / "near_misses"
ROWS = [(path.stem, found) for path in sorted(FOLDER.glob("*.jsonl")) for found in read(path.stem, FOLDER)]
LEAST_ANSWERS = 20


@pytest.fixture(scope="module")
def checker() -> Iterator[Checker]:
    with checker_for(grader_settings()) as open_checker:
        yield open_checker


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
