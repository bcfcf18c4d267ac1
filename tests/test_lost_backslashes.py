"""Backslashes that JSON took are put back where that is certain, alike in `label` and `grade`; other texts stay as they are."""

import json
from pathlib import Path
from typing import Any

import pytest

from pipeline.config.label import DataConfig
from pipeline.core.records import InputRow, RowLocation
from pipeline.data.lost_backslashes import mended
from pipeline.data.problems import read_row
from pipeline.graders.lines import read_case
from tests.deadlines import bounded

ROWS = [json.loads(line) for line in Path(__file__).with_name("lost_backslashes.jsonl").open()]
AT = RowLocation(file="f", line=1)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: ascii(row["text"]))
def test_a_lost_backslash_is_put_back_or_refused(row: dict[str, Any]) -> None:
    text, wanted, answer = row["text"], row["mended"], row["kind"] == "answer"
    for given in [{"answer": text}] if answer else [{"problem": text}, {"steps": [text, "b"]}, {"solution": text}]:
        found = read_row({"problem": "p", "answer": "1", **given}, AT, DataConfig(), lambda text: None)
        if isinstance(found, InputRow):
            read = found.problem.golds[0] if answer else found.solution.text if found.solution else found.problem.text
            assert read.removesuffix("\nb") == (wanted.strip() if answer else wanted)
            assert found.mended is (wanted != text)
        else:
            assert wanted is None
            assert "before letters; write \\\\" in found.detail
    if answer:
        case = read_case(1, json.dumps({"gold": text, "prediction": "5"}).encode())
        assert (case.asked and case.asked.golds) == (wanted and (wanted.strip(),))


@pytest.mark.parametrize("unit", ["\frac", "$\nu", "\tan ", "\n\nu$", "\tx$", "$\tan", "\\(\nu", "\bz", "\r"])
def test_hostile_repetition_takes_linear_time(unit: str) -> None:
    with bounded():
        mended(unit * (100_000 // len(unit)), answer=True)
