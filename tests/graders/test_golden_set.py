"""The checker on the golden set, which is in the repository: see `golden/README.md`."""

from contextlib import nullcontext
from pathlib import Path

import pytest

from pipeline.graders.base import Checker
from pipeline.graders.registry import checker_for
from tests.deadlines import bounded
from tests.graders.dev_files import Bar, canaries, meets, score
from tests.graders.golden.__main__ import FILES, figures_of, judged
from tests.graders.golden.rows import FOLDER, read, row
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
