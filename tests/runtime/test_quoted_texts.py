"""Texts of the data stand in no message and no reject, but quoted in short where they are at fault."""

import json
from pathlib import Path
from typing import Any

import pytest

from pipeline.__main__ import main
from pipeline.core.errors import InputError
from pipeline.core.records import RejectReason
from tests.runtime.in_process import label_in_process
from tests.runtime.test_worker import tables
from tests.settings import compose_label

pytestmark = pytest.mark.slow

LONG = "sentinel" * 1250
CONTEXT = 30_000
MAX_CHARS = 60_000
MOST_CHARACTERS = 500
QUOTED = "sentinel" * 13
"""A message quotes fewer characters of a text in a row than these 104."""

GOOD: dict[str, Any] = {"problem": LONG, "answer": "3", "steps": [LONG, f"{LONG} The answer is 3."], "right": None}
BAD: dict[RejectReason, list[bytes | dict[str, Any]]] = {
    RejectReason.NOT_UTF8: [f'{{"problem": "{LONG}'.encode() + b'\xff"}'],
    RejectReason.NOT_JSON: [f'{{"problem": "{LONG}'.encode(), LONG.encode(), f'{{"{LONG}": {"9" * 10_000}}}'.encode()],
    RejectReason.NOT_A_ROW: [json.dumps(LONG).encode(), json.dumps([LONG]).encode()],
    RejectReason.MISSING_PROBLEM: [{**GOOD, "problem": ""}, {**GOOD, "problem": [LONG]}, {LONG: LONG, "right": None}],
    RejectReason.MISSING_ANSWER: [{**GOOD, "answer": {LONG: LONG}}, {**GOOD, "answer": [LONG, None]}],
    RejectReason.UNPARSEABLE_ANSWER: [{**GOOD, "answer": f"\\frac{{{LONG}"}, {**GOOD, "answer": "\\frac{\x01" * 5000}],
    RejectReason.NO_STEPS: [{**GOOD, "steps": []}],
    RejectReason.BAD_STEPS: [{**GOOD, "steps": LONG}, {**GOOD, "steps": [LONG, {LONG: LONG}]}],
    RejectReason.BAD_TEXT: [{**GOOD, "problem": f"{LONG}\x00"}, {**GOOD, "id": f"{LONG}\x00"}],
    RejectReason.BAD_OUTCOME: [{**GOOD, "right": LONG}, {LONG: LONG, "x" + LONG: LONG}],
    RejectReason.TOO_LARGE: [{**GOOD, "problem": LONG * 7}, {**GOOD, "steps": [LONG] * 300}],
    RejectReason.DUPLICATE: [{**GOOD, "id": "again"}],
    RejectReason.ID_CONFLICT: [{**GOOD, "id": LONG, "problem": f"Another {LONG}"}],
    RejectReason.CONTEXT: [{**GOOD, "problem": LONG * 5}],
    RejectReason.FILTERED: [{"problem": f"Alone: {LONG}", "answer": "3", "right": None}],
}  # fmt: skip


OF_OTHER_ROWS = (RejectReason.DUPLICATE, RejectReason.ID_CONFLICT, RejectReason.CONTEXT, RejectReason.FILTERED)
"""Reasons that a row has beside others, or that are known late."""


def write_lines(path: Path, rows: list[bytes | dict[str, Any]]) -> Path:
    path.write_bytes(b"".join((row if isinstance(row, bytes) else json.dumps(row).encode()) + b"\n" for row in rows))
    return path


def words(data: Path) -> list[str]:
    return [
        f"data.path={data}", f"data.max_chars={MAX_CHARS}", "policy=oracle", f"policy.max_model_len={CONTEXT}",
        "data.columns.outcome=right",
        "sampling.solutions=1", "sampling.keep=mixed", "sampling.max_tokens=100", "sampling.rollouts=1",
    ]  # fmt: skip


def test_no_reject_quotes_more_than_a_short_part_of_a_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = write_lines(tmp_path / "rows.jsonl", [{**GOOD, "id": LONG}, *(row for rows in BAD.values() for row in rows)])
    label_in_process(compose_label([*words(data), f"run_dir={tmp_path / 'run'}"]))
    rejects = tables(tmp_path / "run", "rejects").sort("line")
    assert set(rejects["reason"]) == {reason.value for reason in RejectReason}
    for detail in rejects["detail"]:
        assert QUOTED not in detail
        assert len(detail) < MOST_CHARACTERS
    for start in (tmp_path / "run" / "starts").iterdir():
        assert QUOTED not in start.read_text()
    printed = capsys.readouterr()
    assert QUOTED not in printed.out + printed.err


@pytest.mark.parametrize(
    ("reason", "row"),
    [(reason, row) for reason, rows in BAD.items() if reason not in OF_OTHER_ROWS for row in rows],
    ids=lambda given: given.value if isinstance(given, RejectReason) else "",
)
def test_no_message_quotes_more_than_a_short_part_of_a_text(
    reason: RejectReason, row: bytes | dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A reject is printed where no row can be used."""
    data = write_lines(tmp_path / "rows.jsonl", [row])
    assert main(["plan", *words(data)]) == InputError.exit_code
    printed = capsys.readouterr().err
    assert f"none of the 1 rows of {data} can be used: {data}:1: " in printed
    assert QUOTED not in printed
    assert len(printed) < MOST_CHARACTERS + 3 * len(str(data))
