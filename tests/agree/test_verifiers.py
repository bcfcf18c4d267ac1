"""`agree` on a run that verifiers have checked: precision and recall by people."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from pipeline.__main__ import main
from pipeline.analysis.agree.human import ChainPair, goods_until
from pipeline.analysis.agree.verifiers import agreement
from tests.agree.pairs import human, labelled
from tests.conftest import write_rows
from tests.runtime.checking.runs import checked, rows, settings, sums
from tests.runtime.checking.runs import labelled as labelled_run


def pair(chain_id: str, error: int, steps: int) -> ChainPair:
    return ChainPair(human=human(goods_until(error, steps)), labelled=labelled([0.5] * steps, chain_id=chain_id))


def test_only_steps_that_people_label_count() -> None:
    pairs = [pair("a", 1, 4), pair("b", -1, 3), pair("c", 0, 2)]
    verdicts = {("a", 1): "holds", ("a", 2): "refuted", ("a", 3): "refuted", ("b", 2): "refuted", ("c", 1): "holds"}
    found = agreement("own", verdicts, pairs, 0.95)
    assert (found.steps, found.bad) == (2 + 3 + 1, 2)
    assert (found.refuted, found.refuted_bad, found.holds, found.holds_bad) == (2, 1, 2, 1)
    assert (found.precision, found.recall) == (0.5, 0.5)
    assert found.precision_low is not None
    assert found.precision_high is not None
    assert 0 < found.precision_low < 0.5 < found.precision_high < 1


def test_a_verifier_that_refutes_nothing_has_no_precision() -> None:
    found = agreement("own", {}, [pair("b", -1, 3)], 0.95)
    assert (found.precision, found.precision_low, found.recall) == (None, None, None)


def test_agree_prints_what_verifiers_add(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run_dir = labelled_run(tmp_path, 9, sums)
    checked(replace(settings(run_dir), checks=["arithmetic", "algebra"]))
    people = [{**row, "label": 1 if number % 2 == 0 else -1} for number, row in enumerate(rows(9, sums))]
    data, out = write_rows(tmp_path / "people.jsonl", people), tmp_path / "agreement.json"
    assert main(["agree", f"run_dir={run_dir}", f"data.path={data}", "resamples=100", f"out={out}"]) == 0
    algebra, arithmetic = json.loads(out.read_text())["verifiers"]
    # Chains 0, 3 and 6 have a false sum in their second step, of which people call those of even chains bad.
    assert (arithmetic["refuted"], arithmetic["refuted_bad"]) == (3, 2)
    assert arithmetic["recall"] == pytest.approx(2 / 5)
    assert (algebra["refuted"], algebra["precision"]) == (0, None)
    said = capsys.readouterr().out
    assert "Verifiers: of 22 steps with a human label 5 are bad (23 %)" in said
    assert "0.67" in next(line for line in said.splitlines() if line.startswith("arithmetic "))
