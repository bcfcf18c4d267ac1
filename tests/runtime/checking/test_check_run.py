"""`check`: every step of a run has one finding, whatever dies in between, and a later start does what is new."""

from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from pipeline.__main__ import main
from pipeline.analysis.checks import check_summary
from pipeline.core.errors import PluginError, RunConflict, UsageError
from pipeline.core.tables import FINDINGS
from pipeline.storage.location import storage_at
from pipeline.storage.stored_findings import CHECK_RUNS
from pipeline.verifiers.base import Fault
from tests.conftest import write_rows
from tests.runtime.checking.runs import NAME, checked, frame, labelled, orders, rows, settings, sums
from tests.runtime.without_ray import without_ray

pytestmark = pytest.mark.slow

CHAINS = 23
STEPS = sum(len(orders(number)) for number in range(CHAINS))


@pytest.fixture
def run_dir(tmp_path: Path) -> Path:
    return labelled(tmp_path, CHAINS)


def test_every_step_has_a_finding_in_the_order_of_the_input(run_dir: Path) -> None:
    found = checked(settings(run_dir))[NAME]
    got = frame(run_dir)
    assert got.columns == FINDINGS.schema.names
    assert got.select("row", "step_index").rows() == [
        (number, at) for number in range(CHAINS) for at in range(1, len(orders(number)) + 1)
    ]
    chains = pl.read_parquet(run_dir / "labels" / "*.parquet")
    assert set(got["chain_id"]) == set(chains["chain_id"])
    wanted = {"right": "holds", "wrong": "refuted", "unclear": "unknown"}
    said = [(wanted[word], at, number) for number in range(CHAINS) for at, word in enumerate(orders(number))]
    for row, (verdict, at, number) in zip(got.iter_rows(named=True), said, strict=True):
        evidence = {"holds": f"after {at} steps", "refuted": f"problem {number}", "unknown": ""}[verdict]
        covers = "whole" if verdict == "holds" else "part"
        assert (row["verdict"], row["covers"], row["evidence"], row["fault"]) == (verdict, covers, evidence, None)
    tally = found.tally
    assert (tally["chains"], tally["steps"], found.units) == (CHAINS, STEPS, 5)
    counted = dict(got["verdict"].value_counts().iter_rows())
    assert (tally["refuted"], tally["holds"], tally["unknown"]) == (
        counted["refuted"],
        counted["holds"],
        counted["unknown"],
    )


def test_verifiers_keep_their_findings_beside_each_other(run_dir: Path) -> None:
    storage = storage_at(str(run_dir))
    assert CHECK_RUNS.names(storage) == []
    with pytest.raises(UsageError, match=r"has no checks by arithmetic: check it: check run_dir="):
        CHECK_RUNS.read(storage, "arithmetic")
    checked(settings(run_dir))
    before = frame(run_dir)
    found = checked(replace(settings(run_dir), checks=["arithmetic", "algebra"]))
    assert list(found) == ["arithmetic", "algebra"]
    assert CHECK_RUNS.names(storage) == ["algebra", "arithmetic", NAME]
    assert frame(run_dir).equals(before)
    assert frame(run_dir, "algebra").height == STEPS
    with pytest.raises(UsageError, match="has no checks by algebr: did you mean algebra"):
        CHECK_RUNS.read(storage, "algebr")
    with pytest.raises(UsageError, match="has a name that no folder can have"):
        CHECK_RUNS.at(storage, "../x")


def test_hostile_steps_are_unknown_and_cost_no_other_step_its_finding(tmp_path: Path) -> None:
    hostile = ("sleep", "exit", "fill", "descend", "x" * 300)
    steps = [*(word for each in hostile for word in ("right", each)), "print", "right"]
    run_dir = labelled(tmp_path, 1, lambda _: steps)
    found = checked(settings(run_dir, deadline_seconds=1.0, most_characters=200))[NAME]
    got = frame(run_dir)
    faults = dict(zip(steps, got["fault"], strict=True))
    assert {word: faults[word] for word in hostile} == {
        "sleep": Fault.DEADLINE,
        "exit": Fault.CRASHED,
        "fill": Fault.MEMORY,
        "descend": Fault.CRASHED,
        "x" * 300: Fault.TOO_LONG,
    }
    assert set(got.filter(pl.col("fault").is_not_null())["verdict"]) == {"unknown"}
    right = got.filter(pl.Series(steps) == "right")
    assert right["evidence"].to_list() == [f"after {at - 1} steps" for at in right["step_index"]]
    tally = found.tally
    assert [tally[name] for name in ("deadline", "memory", "crashed", "too_long", "unknown", "holds")] == [
        1,
        1,
        2,
        1,
        1,
        6,
    ]
    said = "\n".join(check_summary(storage_at(str(run_dir)), NAME).lines())
    assert "0 refuted, 6 hold (6 as a whole), 6 unknown: a verdict on 50 % of the steps" in said
    assert "unknown, because the verifier took longer than verifier.deadline_seconds: 1 step" in said
    assert "unknown, because the verifier's process died of the step, or the verifier failed: 2 steps" in said


@pytest.mark.parametrize(
    ("step", "said"),
    [
        ("raise", r"verifier obedient of object .*Obedient.* failed in verify: ValueError: not my day"),
        ("lie", r"verifier obedient of object .*Obedient.* failed in verify: it says refuted without any evidence"),
    ],
)
def test_a_verifier_that_fails_is_named_and_the_others_are_kept(step: str, said: str, tmp_path: Path) -> None:
    run_dir = labelled(tmp_path, 3, lambda number: ["right", step if number == 1 else "wrong"])
    with pytest.raises(PluginError, match=said):
        checked(replace(settings(run_dir), checks=["arithmetic", NAME, "algebra"]))
    assert frame(run_dir, "arithmetic").height == 6
    assert CHECK_RUNS.names(storage_at(str(run_dir))) == ["arithmetic", NAME]


def test_rows_without_a_run_are_checked_with_or_without_an_answer_and_proved_in_their_own_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = rows(7, sums)
    del given[3]["answer"]
    given.append({"problem": "no chain", "answer": "1"})
    path = write_rows(tmp_path / "rows.jsonl", given)
    config = replace(settings(tmp_path / "out"), checks=["arithmetic"])
    config = replace(config, data=replace(config.data, path=str(path)))
    words = [f"data.path={path}", f"run_dir={tmp_path}/out", "checks=[arithmetic,algebra]", "--estimate"]
    assert main(["check", *words]) == 0
    said = capsys.readouterr().out
    assert all(f"7 chains with 21 steps to check by {name}\n" in said for name in ("arithmetic", "algebra"))
    assert "left out  1 row, the first: " in said
    assert not (tmp_path / "out").exists()
    found = checked(config)["arithmetic"]
    assert (found.tally["chains"], found.tally["steps"], found.tally["rejected"]) == (7, 21, 1)
    got = frame(tmp_path / "out", "arithmetic")
    refuted = got.filter(pl.col("verdict") == "refuted")
    assert refuted.select("row", "step_index").rows() == [(0, 2), (3, 2), (6, 2)]
    assert refuted["evidence"][0] == "0 + 3 = 4: 0 + 3 is 3, not 4"
    assert checked(config)["arithmetic"].added["chains"] == 0
    assert check_summary(storage_at(str(tmp_path / "out")), "arithmetic").against is None
    assert main(["audit", f"run_dir={tmp_path}/out/checks/arithmetic"]) == 0
    capsys.readouterr()
    for command in ("audit", "status"):
        assert main([command, f"run_dir={tmp_path}/out"]) == 2
        assert f"give their folder, run_dir={tmp_path}/out/checks/VERIFIER" in capsys.readouterr().err
    write_rows(tmp_path / "rows.jsonl", given[1:])
    with pytest.raises(RunConflict, match="has findings of other chains"):
        checked(config)


def test_the_summary_compares_with_the_labels_of_the_run(tmp_path: Path) -> None:
    run_dir = labelled(tmp_path, 9, sums)
    checked(replace(settings(run_dir), checks=["arithmetic"]))
    summary = check_summary(storage_at(str(run_dir)), "arithmetic")
    counts = summary.counts
    assert (counts.chains, counts.steps, counts.refuted, counts.holds, counts.unknown) == (9, 27, 3, 6, 18)
    assert [(at.first, at.last, at.steps, at.refuted) for at in counts.by_position] == [
        (1, 1, 9, 0),
        (2, 2, 9, 3),
        (3, 3, 9, 0),
    ]
    labels = pl.concat(pl.read_parquet(each) for each in (run_dir / "labels").iterdir())
    steps = labels.with_columns(step_index=pl.int_ranges(1, 4, dtype=pl.Int32)).explode("label", "value", "step_index")
    both = steps.join(frame(run_dir, "arithmetic"), on=["chain_id", "step_index"]).drop_nulls("label")
    assert summary.against is not None
    for found, verdict in ((summary.against.refuted, "refuted"), (summary.against.holds, "holds")):
        wanted = both.filter(pl.col("verdict") == verdict)
        assert (found.steps, found.bad) == (wanted.height, (wanted["label"] == 0).sum())
        assert found.mean_value == pytest.approx(wanted["value"].mean())
    assert summary.against.every.steps == both.height
    assert "bad (" in repr(summary)


def test_settings_are_those_of_the_verifier_that_is_named(run_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["checks=[algebra]"], ["verifier=algebra"], ["checks=[arithmetic,algebra]", "verifier=algebra"]):
        assert main(["check", f"run_dir={run_dir}", *words, "verifier.deadline_seconds=9", "--cfg", "job"]) == 0
        assert (
            "verifier:\n  kind: algebra\n  most_characters: 20000\n  deadline_seconds: 9.0" in capsys.readouterr().out
        )


def test_the_chains_that_an_unfinished_run_has_are_checked(run_dir: Path) -> None:
    kept = sorted((run_dir / "commits").glob("unit-*"))
    for record in kept[1:]:
        record.unlink()
    config = settings(run_dir)
    with pytest.raises(UsageError, match="are unfinished: finish the run with `label`"):
        checked(config)
    found = checked(replace(config, partial=True))[NAME]
    assert 0 < found.tally["chains"] < CHAINS
    assert check_summary(storage_at(str(run_dir)), NAME).counts.chains == found.tally["chains"]


def test_a_verifier_that_lacks_something_is_named_and_the_others_go_on(
    run_dir: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pipeline.verifiers.coq.toplevel.SEARCHED", "/nowhere")
    with without_ray():
        assert main(["check", f"run_dir={run_dir}", "checks=[coq,arithmetic,proof_server]"]) == 1
    said = capsys.readouterr()
    assert "arithmetic: checked" in said.out
    for verb in ("is left out", "has checked nothing"):
        assert f"stepvalue: coq {verb}: it needs coqtop: apt-get install coq" in said.err
        assert (
            f"stepvalue: proof_server {verb}: it needs verifier=proof_server verifier.url=http://HOST:PORT" in said.err
        )
    assert CHECK_RUNS.names(storage_at(str(run_dir))) == ["arithmetic"]
    assert main(["check", f"run_dir={run_dir}", "checks=[coq]"]) == 2
    assert "checks=[coq]: it needs coqtop: apt-get install coq" in capsys.readouterr().err
    with pytest.raises(UsageError, match=r"checks=\[coq\]: it needs coqtop"):
        checked(replace(settings(run_dir), checks=["arithmetic", "coq"]))
