"""Labels by consensus of a run that verifiers have checked."""

from pathlib import Path

import polars as pl
import pytest

from pipeline.analysis.audit.run import audit
from pipeline.config.changes import AuditConfig
from pipeline.config.check import CheckRunConfig
from pipeline.config.choices import ConsensusHow
from pipeline.core.errors import UsageError
from pipeline.core.records import ChainText
from pipeline.storage.location import storage_at
from pipeline.storage.stored_findings import CHECK_RUNS
from pipeline.witnesses.base import WitnessSource
from pipeline.witnesses.checks import ChecksWitness
from tests.audit.runs import copied, labels
from tests.conftest import write_rows
from tests.relabel.test_consensus import consensus
from tests.runtime.checking.runs import QUICK, checked, labelled, settings, sums
from tests.runtime.in_process import label_in_process
from tests.settings import compose_label

pytestmark = pytest.mark.slow
CHAINS = 60


def chain(chain_id: str, *steps: str) -> ChainText:
    return ChainText(chain_id=chain_id, problem_id="", problem="", steps=steps, prefix_ids=steps)


def checked_run(folder: Path, rows: list[dict[str, object]], verifier: str) -> Path:
    path, made = write_rows(folder / "rows.jsonl", rows), folder / "run"
    given = [f"data.path={path}", f"run_dir={made}", "policy=oracle", "sampling.rollouts=4"]
    label_in_process(compose_label([*given, "estimator=fixed", "run.unit_problems=10"]))
    checked(CheckRunConfig(run_dir=str(made), checks=[verifier], processes=1, run=QUICK))
    return made


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with a false sum in the second step of every third chain, which ends wrong, checked by `arithmetic`."""
    rows: list[dict[str, object]] = [
        {"problem": f"What is {number} + 3?", "answer": str(number + 3), "steps": sums(number), "id": f"r{number}"}
        for number in range(CHAINS)
    ]
    return checked_run(tmp_path_factory.mktemp("sums"), rows, "arithmetic")


@pytest.fixture
def run_dir(finished: Path, tmp_path: Path) -> Path:
    return copied(finished, tmp_path)


def test_refuted_steps_become_bad_without_a_judge(run_dir: Path) -> None:
    consensus(run_dir, witnesses=None)
    found = labels(run_dir).sort("source_id")
    assert found["label_rule"].unique().to_list() == ["consensus:posterior@0.95(checks:arithmetic)"]
    for row in found.to_dicts():
        false = int(row["source_id"][1:]) % 3 == 0
        (opinion,) = row["opinions"]
        assert (opinion["witness"], opinion["steps"]) == ("checks:arithmetic", [None, 0 if false else None, None])
        assert (row["p_error_free"][1] < 0.05) is false
        assert (row["label"][1] == 0) is false
    assert not audit(AuditConfig(run_dir=str(run_dir))).findings
    before = found["p_error_free"].to_list()
    consensus(run_dir, witnesses=[])
    assert labels(run_dir).sort("source_id")["p_error_free"].to_list() != before


def test_filters_keep_chains_whose_first_error_a_verifier_refutes(run_dir: Path) -> None:
    with pytest.raises(UsageError, match=r"consensus\.witnesses=\[checks:arithmetic\]"):
        consensus(run_dir, ConsensusHow.side, ["arithmetic"])
    consensus(run_dir, ConsensusHow.side, ["checks:arithmetic"])
    kept = labels(run_dir).filter(pl.col("left_out").is_null())
    refuted = [int(source[1:]) % 3 == 0 for source in kept["source_id"]]
    assert all(refuted)


def test_what_holds_as_a_whole_holds(tmp_path: Path) -> None:
    run_dir = labelled(tmp_path, 12)
    checked(settings(run_dir))
    findings = labels(run_dir)
    check = CHECK_RUNS.read(storage_at(str(run_dir)), "obedient")
    witness = ChecksWitness(WitnessSource(run_dir=str(run_dir), kind="checks", source="obedient"))
    assert "obedient checked 12 chains" in witness.about()
    assert check.tally["holds"] > 0
    for chain_id, steps in findings.select("chain_id", "steps").iter_rows():
        claim = witness.claim(chain(chain_id, *steps))
        assert claim is not None
        assert claim.steps == tuple({"wrong": 0, "right": 1}.get(step) for step in steps)
    assert witness.claim(chain("other", "right")) is None


def test_proofs_decide(tmp_path: Path) -> None:
    """Step 2 of every second chain does not follow, whatever Monte Carlo says of its prefixes."""
    pytest.importorskip("z3")
    formal = "(declare-const a Int)\n(assert (> a 3))"
    rows: list[dict[str, object]] = [
        {
            "problem": formal,
            "answer": str(number),
            "steps": ["(assert (> a 2))", f"(assert (> a {3 + number % 2}))", f"The answer is {number}."],
            "id": str(number),
        }
        for number in range(12)
    ]
    run_dir = checked_run(tmp_path, rows, "z3")
    consensus(run_dir, witnesses=None)
    for row in labels(run_dir).to_dicts():
        first, second, _ = row["p_error_free"]
        assert first == 1
        if int(row["source_id"]) % 2:
            assert second == 0
            assert row["label"][:2] == [1, 0]
        else:
            assert second == 1
    assert not audit(AuditConfig(run_dir=str(run_dir))).findings


def test_a_part_that_holds_says_nothing(run_dir: Path) -> None:
    witness = ChecksWitness(WitnessSource(run_dir=str(run_dir), kind="checks", source="arithmetic"))
    assert CHECK_RUNS.read(storage_at(str(run_dir)), "arithmetic").tally["holds"] > 0
    claims = [witness.claim(chain(chain_id, "", "", "")) for chain_id in labels(run_dir)["chain_id"]]
    assert {step for claim in claims if claim is not None for step in claim.steps} == {0, None}


def test_checks_that_are_not_done_are_refused(run_dir: Path) -> None:
    with pytest.raises(UsageError, match=r"has no checks by algebra: .*arithmetic"):
        consensus(run_dir, witnesses=["checks:algebra"])
    with pytest.raises(UsageError, match="name the verifier, as in checks:arithmetic"):
        consensus(run_dir, witnesses=["checks"])
    for record in (run_dir / "checks" / "arithmetic" / "commits").glob("unit-*"):
        record.unlink()
        break
    with pytest.raises(UsageError, match=r"checks:arithmetic has not checked all chains yet .* start `check"):
        consensus(run_dir, witnesses=None)
