"""Rows of code problems from the file to labels: test suites in every form are read, checked, and run against the chains."""

import json
from pathlib import Path
from typing import Any

import pytest

from pipeline.config.label import DataConfig
from pipeline.core.errors import StepvalueError
from pipeline.core.records import InputRow, Reject, RejectReason, RowLocation
from pipeline.data.problems import read_row
from pipeline.graders.registry import checker_for
from pipeline.storage.local import LocalStorage
from tests.conftest import write_rows
from tests.runtime.test_worker import chain, label_all, staged, tables
from tests.settings import compose_label, grader_settings

pytestmark = pytest.mark.slow

ASSERTS = ["assert square(2) == 4", "assert square(3) == 9"]
STREAMS = {"inputs": ["2\n"], "outputs": ["4\n"]}
RIGHT = "I write a function.\n```python\ndef square(x):\n    return x * x\n```\nDone."
WRONG = RIGHT.replace("x * x", "x + x")
SUITES = ["data.answer_is_suite=true", "grader=code"]


@pytest.fixture(autouse=True)
def _confined() -> None:
    try:
        checker_for(grader_settings("code")).close()
    except StepvalueError as error:
        pytest.skip(str(error))


@pytest.mark.parametrize("answer", [ASSERTS, {"test_list": ASSERTS}, "\n".join(ASSERTS), json.dumps(ASSERTS)])
def test_chains_of_code_are_labelled(tmp_path: Path, answer: Any) -> None:
    rows = [{"id": name, "problem": "Square?", "answer": answer, "solution": text} for name, text in
            (("right", RIGHT), ("wrong", WRONG), ("none", "I do not know."))]  # fmt: skip
    _, totals, found = label_all(tmp_path, rows, *SUITES)
    labels = found["labels"]
    assert totals.used == 3
    assert chain(labels, "right")["outcome"] is True
    assert chain(labels, "right")["value"][-1] == 1.0
    assert chain(labels, "right")["final_answer"] == "def square(x):\n    return x * x"
    assert chain(labels, "wrong")["outcome"] is False
    assert chain(labels, "none")["outcome"] is None
    assert set(found["rollouts"]["verdict"]) <= {"correct", "incorrect", "no_answer"}


def test_every_form_of_a_suite_is_taken_in_and_what_is_none_is_rejected(tmp_path: Path) -> None:
    good = [ASSERTS, STREAMS, json.dumps(STREAMS), [{"input": "2", "output": "4"}], "assert square(2) == 4"]
    bad = ["42", "assert (", {"inputs": []}, ["square(2)"], {}, []]
    rows: list[dict[str, object]]
    rows = [{"problem": f"Problem {number}", "answer": answer} for number, answer in enumerate([*good, *bad])]
    path = write_rows(tmp_path / "rows.jsonl", rows)
    config = compose_label(
        [f"data.path={path}", f"run_dir={tmp_path / 'run'}", "policy=oracle", "estimator=fixed", *SUITES]
    )
    commit = staged(LocalStorage(tmp_path / "run"), config)
    rejects = tables(tmp_path / "run", "rejects")
    assert (commit.totals.used, commit.totals.rejected) == (len(good), len(bad))
    assert sorted(rejects["line"]) == list(range(len(good) + 1, len(rows) + 1))
    assert set(rejects["reason"]) == {"unparseable_answer", "missing_answer"}
    assert any("with grader=code a test suite" in detail for detail in rejects["detail"])


@pytest.mark.parametrize(("preset", "row"), [
    ("mbpp", {"task_id": 2, "prompt": "Square?", "test_list": ASSERTS, "code": "-"}),
    ("apps", {"problem_id": 3, "question": "Square?", "input_output": json.dumps(STREAMS)}),
])  # fmt: skip
def test_presets_read_their_data_sets(preset: str, row: dict[str, Any]) -> None:
    data = compose_label([f"data={preset}", "data.path=x", "grader=code"]).data
    read = read_row(row, RowLocation(file="f", line=1), data, lambda text: text)
    assert isinstance(read, InputRow)
    assert read.solution is None
    assert json.loads(read.problem.golds[0]) == (ASSERTS if preset == "mbpp" else STREAMS)


def test_a_list_is_one_suite_only_on_demand() -> None:
    row = {"problem": "p", "answer": ASSERTS}
    for suite, golds in ((True, 1), (False, 2)):
        read = read_row(row, RowLocation(file="f", line=1), DataConfig(answer_is_suite=suite), lambda text: text)
        assert isinstance(read, InputRow)
        assert len(read.problem.golds) == golds
    data = DataConfig(answer_is_suite=True)
    unwritable = read_row({"problem": "p", "answer": [object()]}, RowLocation(file="f", line=1), data, str)
    assert isinstance(unwritable, Reject)
    assert unwritable.reason is RejectReason.MISSING_ANSWER
