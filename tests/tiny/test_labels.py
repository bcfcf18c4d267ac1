"""The whole real path on the tiny policy, tokeniser, vLLM, checker and estimator, against what its prefixes are worth."""

from pathlib import Path

import polars as pl
import pytest

from pipeline.__main__ import compose_label
from pipeline.audit.run import audit
from pipeline.changes import AuditConfig
from tests.run.in_process import label_in_process
from tests.tiny.compared import implausible, told, truth
from tests.tiny.policy import OVERRIDES, TRUTH

pytestmark = [pytest.mark.model, pytest.mark.filterwarnings("ignore")]


def test_labels_agree_with_what_2000_rollouts_of_every_prefix_say(tmp_path: Path) -> None:
    run_dir = tmp_path / "run"
    asked = ["estimator=pooled", f"data.path={TRUTH}", f"run_dir={run_dir}"]
    done = label_in_process(compose_label([*OVERRIDES, *asked]))
    known = truth()
    found = told(pl.read_parquet(run_dir / "labels" / "*.parquet"))
    assert implausible(found, known) == []

    log, totals = pl.read_parquet(run_dir / "rollouts" / "*.parquet"), done.totals
    assert found.correct.sum() == (log["verdict"] == "correct").sum() == totals.correct
    assert found.graded.sum() == totals.correct + totals.incorrect + totals.no_answer
    assert found.graded.sum() + totals.ungraded == log.height == totals.rollouts
    assert found.tokens.sum() == log["n_tokens"].sum() == totals.tokens

    report = audit(AuditConfig(run_dir=str(run_dir)))
    assert report.sound, report.findings
