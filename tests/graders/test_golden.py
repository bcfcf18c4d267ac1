from pathlib import Path

import pytest

from pipeline.graders.base import Checker
from pipeline.graders.registry import checker_for
from tests.deadlines import bounded
from tests.graders.dev_files import FOLDER, REQUIRED, REQUIRED_OF_OTHERS, canaries, cases_of, judge, meets, score
from tests.settings import grader_settings

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


@pytest.mark.parametrize("name", REQUIRED_OF_OTHERS)
def test_other_checkers_judge_as_people_judged(name: str, request: pytest.FixtureRequest) -> None:
    checker = request.getfixturevalue("code_checker") if name == "code" else checker_for(grader_settings(name))
    result = score([judge(checker, case) for case in cases_of("reports", name)])
    assert meets(result, REQUIRED_OF_OTHERS[name]), result
