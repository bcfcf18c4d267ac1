"""The shipped factual questions, labelled and checked: right and wrong claims come out as the rows mark them."""

from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from pipeline.core.errors import InputError, RunConflict
from pipeline.verifiers.settings import FactsConfig
from tests.conftest import write_rows
from tests.runtime.checking.runs import checked, frame, rows, settings
from tests.runtime.in_process import label_in_process
from tests.settings import compose_label
from tests.verifiers.facts.tables import write_jsonl

pytestmark = pytest.mark.slow

KIND = "facts"


def test_the_shipped_questions_are_labelled_and_checked(tmp_path: Path) -> None:
    run_dir = tmp_path / "run"
    label_in_process(compose_label([
        "data=facts", "grader=facts", "policy=oracle", f"run_dir={run_dir}", "sampling.rollouts=2", "estimator=fixed",
    ]))  # fmt: skip
    labels = pl.read_parquet(run_dir / "labels" / "*.parquet")
    right = dict(labels.select("source_id", "outcome").iter_rows())
    assert len(right) == 100
    assert sum(bool(outcome) for outcome in right.values()) == 50
    checked(replace(settings(run_dir), checks=[KIND], verifier=FactsConfig()))
    first = frame(run_dir, KIND).filter(pl.col("step_index") == 1)
    names = dict(labels.select("chain_id", "source_id").iter_rows())
    said = {names[chain]: verdict for chain, verdict in first.select("chain_id", "verdict").iter_rows()}
    assert said == {name: "holds" if outcome else "refuted" for name, outcome in right.items()}


def test_another_content_of_a_table_is_another_check(tmp_path: Path) -> None:
    data = write_rows(tmp_path / "rows.jsonl", rows(2, lambda _: ["The capital of Peru is Lima."]))
    table = write_jsonl(tmp_path / "table.jsonl", [{"entity": "Peru", "attribute": "capital", "value": "Lima"}])
    config = settings(tmp_path / "run")
    config = replace(
        config, data=replace(config.data, path=str(data)), checks=[KIND], verifier=FactsConfig(table=str(table))
    )
    checked(config)
    assert frame(tmp_path / "run", KIND)["verdict"].to_list() == ["holds", "holds"]
    write_jsonl(table, [{"entity": "Peru", "attribute": "capital", "value": "Cusco", "source": "an old map"}])
    with pytest.raises(RunConflict, match=r"verifier\.table \(content\)"):
        checked(config)
    with pytest.raises(InputError, match=r"verifier\.table: .* cannot be read"):
        checked(replace(config, verifier=FactsConfig(table=str(tmp_path / "missing.csv"))))
