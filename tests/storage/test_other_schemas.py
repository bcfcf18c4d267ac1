"""A run that was written with another schema is refused in one line, by every command that reads it."""

import json
from pathlib import Path

import pytest

from pipeline.__main__ import main
from pipeline.core.tables import SCHEMA_VERSION
from pipeline.storage.run_record import encode_identity
from tests.conftest import write_rows
from tests.runtime.in_process import label_in_process
from tests.settings import compose_label

COMMANDS = ("status", "audit", "report", "relabel", "regrade", "export format=trl out=x")


@pytest.mark.parametrize("schema", [SCHEMA_VERSION - 1, SCHEMA_VERSION + 1])
def test_other_schemas_are_refused(schema: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows: list[dict[str, object]] = [{"problem": "1 + 1?", "answer": "2", "steps": ["1 + 1 = 2.", "The answer is 2."]}]
    data, run_dir = write_rows(tmp_path / "rows.jsonl", rows), tmp_path / "run"
    label = [f"data.path={data}", f"run_dir={run_dir}", "run.report=false", "policy=oracle", "sampling.rollouts=2"]
    label_in_process(compose_label(label))
    found = json.loads((run_dir / "run.json").read_text(encoding="utf-8"))
    found.pop("check")
    (run_dir / "run.json").write_bytes(encode_identity({**found, "schema": schema}))
    for command in COMMANDS:
        capsys.readouterr()
        assert main([*command.split(), f"run_dir={run_dir}"]) == 2
        shown = capsys.readouterr()
        assert (shown.out, shown.err.count("\n")) == ("", 1)
        assert f"was written with schema {schema}" in shown.err
        assert "use the version that wrote it" in shown.err
