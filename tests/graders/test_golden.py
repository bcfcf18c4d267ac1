from pathlib import Path

import pytest

from pipeline.graders.base import Checker
from tests.deadlines import bounded
from tests.graders.dev_files import FOLDER, REQUIRED, canaries, cases_of, judge, meets, score

pytestmark = pytest.mark.skipif(not FOLDER.exists(), reason="the audited answers are not beside this checkout")


@pytest.mark.parametrize("name", REQUIRED)
def test_audited_answers_are_judged_as_people_judged_them(
    checker: Checker, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    cases = cases_of(name)
    with bounded(60.0):
        outcomes = [judge(checker, case) for case in cases]
    result = score(outcomes)
    assert meets(result, REQUIRED[name]), result
    assert canaries(cases, tmp_path) == []
