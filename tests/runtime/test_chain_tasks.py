"""What `judge`, `check`, `score` and `search` have in common: every chain once, whatever happens in between, and a later start
does what is new. An audit proves the folders that are in a run."""

import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from pipeline.__main__ import main
from pipeline.analysis.audit.run import audit
from pipeline.config.changes import AuditConfig
from pipeline.core.errors import EngineDied, Interrupted, RunConflict, StoreError, UsageError
from pipeline.core.progress import Status
from pipeline.core.records import ChainText, Tally
from pipeline.runtime.checking.children import StepChecker
from pipeline.storage.commits import UNIT
from pipeline.storage.location import storage_at
from pipeline.storage.shards import read_shard
from pipeline.storage.stored_findings import finding_tally
from pipeline.verifiers.base import CheckedStep, Fault
from tests.audit.forger import Change, Forger, first, one_less, one_more
from tests.plugin.installed import distribution, installed
from tests.runtime.chain_tasks import AUDITED, CHECK, COUNT, JUDGE, ON_RUNS, QUICK, SCORE, TASKS, Task

pytestmark = pytest.mark.slow

CHAINS = 23
UNITS = 5


@pytest.fixture(scope="module", autouse=True)
def _with_plugin(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    points = {"stepvalue.tasks": {COUNT.command: "tests.runtime.chain_tasks:_Count"}}
    with installed(distribution(tmp_path_factory.mktemp("site"), "stepvalue-tokens", "1.0", points)):
        yield


@pytest.fixture(scope="module", params=TASKS, ids=lambda task: task.command)
def task(request: pytest.FixtureRequest) -> Task:
    found: Task = request.param
    return found


@pytest.fixture(scope="module")
def given(task: Task, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return task.prepared(tmp_path_factory.mktemp("given"), CHAINS)


@pytest.fixture(scope="module")
def calm(task: Task, given: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run to which nothing happened."""
    run_dir = copied(given, tmp_path_factory.mktemp("calm"))
    task.start(run_dir)
    return run_dir


@pytest.fixture(scope="module")
def expected(task: Task, calm: Path) -> pl.DataFrame:
    return task.rows(calm)


@pytest.fixture
def run_dir(given: Path, tmp_path: Path) -> Path:
    """With everything yet to do."""
    return copied(given, tmp_path)


@pytest.fixture
def finished(calm: Path, tmp_path: Path) -> Path:
    return copied(calm, tmp_path)


def copied(run_dir: Path, folder: Path) -> Path:
    shutil.copytree(run_dir.parent, folder, dirs_exist_ok=True)
    return folder / run_dir.name


def only(*tasks: Task) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("task", tasks, ids=lambda task: task.command, indirect=True)


def test_every_chain_is_done_once_and_a_later_start_does_nothing(
    task: Task, run_dir: Path, expected: pl.DataFrame
) -> None:
    found = task.start(run_dir)
    assert (found.tally[task.over], found.added[task.over]) == (CHAINS, CHAINS)
    assert (found.units, found.units_done_now) == (UNITS, UNITS)
    got = task.rows(run_dir)
    assert got.equals(expected)
    assert set(got["row"]) == set(range(CHAINS))
    assert not got.select(task.keys).is_duplicated().any()
    assert got.equals(got.sort(task.keys))
    again = task.start(run_dir)
    assert (again.units_done_now, again.added, again.tally) == (0, Tally(), found.tally)


def test_an_interrupted_run_goes_on_with_what_is_left(task: Task, run_dir: Path, expected: pl.DataFrame) -> None:
    run = replace(QUICK, units_in_flight=1, progress_seconds=0.001)

    def stop_early(status: Status) -> None:
        if 0 < status.units_done < status.units:
            raise Interrupted("enough")

    with pytest.raises(Interrupted):
        task.start(run_dir, run, stop_early, workers=1, **task.slow)
    done = len(list((task.place(run_dir) / task.table).iterdir()))
    assert 0 < done < UNITS
    with pytest.raises(UsageError, match=rf"units? (is|are) unfinished: finish the run with `{task.command}`"):
        task.rows(run_dir)
    assert task.partial is None or 0 < task.partial(run_dir) < expected.height
    assert task.start(run_dir, run, workers=1, **task.slow).units_done_now == UNITS - done
    assert task.rows(run_dir).equals(expected)


@only(*ON_RUNS)
def test_what_a_slow_unit_has_is_committed_while_it_is_in_work(
    task: Task, run_dir: Path, expected: pl.DataFrame
) -> None:
    """A crash in the middle of a unit loses at most what came in in run.flush_seconds."""
    run = replace(QUICK, unit_problems=CHAINS, flush_seconds=0.05)
    flushed = task.place(run_dir) / "flushed"

    def stop_early(_: Status) -> None:
        if flushed.is_dir() and len(list(flushed.glob(f"{task.table}-*"))) >= 2:
            raise Interrupted("enough")

    with pytest.raises(Interrupted):
        task.start(run_dir, run, stop_early, workers=1, **task.slow)
    found = task.start(run_dir, run, workers=1, **task.slow)
    assert 0 < found.added[task.counts] < found.tally[task.counts] == expected.height
    assert task.rows(run_dir).equals(expected)


def test_other_settings_are_refused_by_name_and_nothing_changes(
    task: Task, finished: Path, expected: pl.DataFrame
) -> None:
    with pytest.raises(RunConflict, match=task.refused):
        task.start(finished, **task.other)
    assert task.rows(finished).equals(expected)


def test_chains_that_are_new_are_done_alone(task: Task, finished: Path, expected: pl.DataFrame) -> None:
    task.prepared(finished.parent, CHAINS + 3)
    found = task.start(finished)
    assert (found.added[task.over], found.tally[task.over]) == (3, CHAINS + 3)
    assert task.rows(finished)[: expected.height].equals(expected)
    assert task.start(finished).added[task.over] == 0


@pytest.mark.parametrize("folder", ["table", "chains"])
def test_damage_is_found_and_made_again(folder: str, task: Task, finished: Path, expected: pl.DataFrame) -> None:
    name = task.table if folder == "table" else folder
    victim = sorted((task.place(finished) / name).iterdir())[0]
    victim.write_bytes(victim.read_bytes()[:-9])
    if folder == "table":
        with pytest.raises((StoreError, pl.exceptions.PolarsError)):
            task.rows(finished)
    assert task.start(finished).damaged == (f"{name}/{victim.name}",)
    assert task.rows(finished).equals(expected)


@pytest.mark.parametrize("fault", ["fail_after", "hang_after"])
@only(JUDGE, SCORE)
def test_an_engine_that_dies_or_hangs_is_replaced(
    fault: str, task: Task, run_dir: Path, expected: pl.DataFrame
) -> None:
    own: dict[str, Any] = {fault: 7}
    task.start(run_dir, replace(QUICK, stall_seconds=0.3, attempts=3), **own)
    assert task.rows(run_dir).equals(expected)


@only(JUDGE, CHECK, SCORE)
def test_a_chain_that_kills_every_engine_is_written_off_alone(
    task: Task, run_dir: Path, expected: pl.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    poison, checked = expected.filter(pl.col("row") == 9)["chain_id"][0], StepChecker.checked

    def checked_or_dead(self: StepChecker, chain: ChainText) -> tuple[CheckedStep, ...]:
        if chain.chain_id == poison:
            raise EngineDied("a worker died")
        return checked(self, chain)

    monkeypatch.setattr(StepChecker, "checked", checked_or_dead)
    own = {} if task is CHECK else {"poison": poison}
    found = task.start(run_dir, **own)
    got, lost = task.rows(run_dir), pl.col("chain_id") == poison
    assert got.select(task.keys).equals(expected.select(task.keys))
    assert got.filter(~lost).equals(expected.filter(~lost))
    said, failed = {JUDGE: ("reading", "failed"), SCORE: ("fault", "failed"), CHECK: ("fault", Fault.LOST)}[task]
    assert found.tally["engine_failed"] == got.filter(pl.col(said) == failed).height == got.filter(lost).height


@only(*ON_RUNS)
def test_runs_without_labels_and_other_folders_are_refused(task: Task, finished: Path, tmp_path: Path) -> None:
    nothing = tmp_path / "nothing"
    with pytest.raises(UsageError, match="does not contain a run: give a directory that `label` has written"):
        task.start(nothing)
    assert not nothing.exists()
    own = task.place(finished)
    with pytest.raises(UsageError, match=rf"is a run of `{task.command}`: give a directory that `label` has written"):
        task.start(own)
    shutil.rmtree(own)
    for record in (finished / "commits").glob("unit-*"):
        record.unlink()
    with pytest.raises(UsageError, match="units are unfinished: finish the run with `label`"):
        task.start(finished)
    assert not own.exists()


@only(*ON_RUNS)
def test_new_labels_of_the_same_chains_change_nothing(task: Task, finished: Path, expected: pl.DataFrame) -> None:
    assert main(["relabel", f"run_dir={finished}", "estimator.rule=threshold", "estimator.threshold=0.4"]) == 0
    assert task.start(finished).added[task.over] == 0
    assert task.rows(finished).equals(expected)


@only(JUDGE, CHECK)
def test_status_tells_of_what_is_in_a_run_and_names_what_is_broken(
    task: Task, finished: Path, expected: pl.DataFrame, capsys: pytest.CaptureFixture[str]
) -> None:
    own, stated = task.place(finished), task.stated.format(expected.height, CHAINS)
    assert main(["status", f"run_dir={own}"]) == 0
    said = capsys.readouterr().out
    assert "state     finished: all units are finished" in said
    assert f"{task.table:<10}{stated.replace(f' {task.table}', '')}\n" in said
    assert main(["status", f"run_dir={finished}", "json=true"]) == 0
    (found,) = json.loads(capsys.readouterr().out)[f"{task.command}s"]
    assert (found["name"], found["status"]["command"], found["status"]["units_done"]) == (own.name, task.command, UNITS)
    assert "samples" not in found["status"]["condition"]["seen"]["start"]
    record = own.with_name("broken") / "run.json"
    record.parent.mkdir()
    record.write_text("{}")
    assert main(["status", f"run_dir={finished}"]) == 0
    said = capsys.readouterr().out
    assert f"{task.command + 's':<10}broken: cannot be read: " in said
    assert f"          {own.name}: finished, {stated} ({UNITS} of {UNITS} units)" in said
    assert main(["audit", f"run_dir={finished}"]) == 1


@only(*ON_RUNS)
def test_a_run_in_an_object_store_has_them_too(task: Task, run_dir: Path, tmp_path: Path) -> None:
    where = f"memory://{tmp_path.name}/run"
    for file in run_dir.rglob("[!.]*"):
        if file.is_file():
            storage_at(where).create(str(file.relative_to(run_dir)), file.read_bytes())
    config = replace(task.settings(run_dir, replace(QUICK, lock=False)), run_dir=where)
    assert task.run(config, lambda _: None).tally[task.over] == CHAINS
    report = audit(AuditConfig(run_dir=where))
    assert report.sound, report
    assert report.orphans.foreign == ()
    assert len(task.audited(report)) == 1
    assert task is CHECK or main(["regrade", f"run_dir={where}", "lock=false"]) == 0


MISTAKES: dict[Task, list[tuple[list[str], str]]] = {
    JUDGE: [
        (["judge=oracle"], "judge.name is not set"),
        (
            ["judge=oracle", "judge.name=Not-Mine"],
            "judge.name='Not-Mine' is out of range: it must be 1 to 64 lower-case",
        ),
        (["judge.name=a"], "policy=hf needs policy.model=NAME_OR_FOLDER"),
        (["judge.name=a", "policy=embedded"], "policy=embedded is too small a model for a judge"),
        (["judge.name=a", "policy.model=/no/such"], "the folder policy.model=/no/such does not exist"),
        (["judge.name=a", "policy=openai", "policy.model=x"], "policy=openai needs policy.openai.urls"),
        (["judge.name=a", "policy.modl=x"], "there is no setting policy.modl: did you mean policy.model"),
        (["judge.name=a", "judge.policy=hf"], "there is no setting judge.policy: did you mean policy?"),
        (["judge.name=a", "judge.policy.model=x"], "there is no setting judge.policy.model: did you mean policy.model"),
    ],
    CHECK: [
        (["checks=[]"], "checks=[]: name at least one verifier, such as checks=[arithmetic,algebra]"),
        (["checks=arithmetic"], "checks is a list, write checks=[arithmetic]"),
        (["checks=[arithmetics]"], "checks=[arithmetics]: there is no such verifier here: did you mean arithmetic?"),
        (["checks=[algebra,algebra]"], "a verifier is named twice"),
        (
            ["checks=[arithmetic,algebra]", "verifier.deadline_seconds=3"],
            "this is a setting of one verifier: say of wh",
        ),
        (["checks=[arithmetic]", "verifier=algebra"], "verifier=algebra is none of checks=[arithmetic]"),
        (["verifier.deadline_seconds=0"], "verifier.deadline_seconds=0.0 is out of range"),
        (["verifier=z4"], "verifier=z4: there is no such option"),
        (["data.path=rows.jsonl"], "is a run: leave data.path out to check its chains"),
    ],
    SCORE: [
        (["scorer=oracle", "out=a.csv"], "out=a.csv: scores are written to a file that ends in .parquet or .jsonl"),
        (["scorer=oracle", "out=a.parquet", "other_model=true"], "other_model has no effect without a calibration"),
    ],
}


@pytest.mark.parametrize(
    ("task", "words", "said"),
    [(task, *each) for task, all_of in MISTAKES.items() for each in all_of],
    indirect=["task"],
)
def test_mistakes_are_named(
    task: Task, words: list[str], said: str, run_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = sorted(run_dir.rglob("*"))
    assert main([task.command, f"run_dir={run_dir}", *words]) == 2
    assert said in capsys.readouterr().err
    assert sorted(run_dir.rglob("*")) == before


@only(*AUDITED)
def test_an_audit_proves_a_run_with_what_is_in_it(task: Task, calm: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert task.findings(calm) == []
    if task in ON_RUNS:
        assert main(["audit", f"run_dir={calm}"]) == 0
        said = capsys.readouterr().out
        word = "task" if task is COUNT else task.command
        assert f"{word:<11}{task.place(calm)}\n" in said
        assert said.endswith(f"sound      the run and its 1 {word} are finished and nothing is wrong\n")
    assert main(["audit", f"run_dir={task.place(calm)}"]) == 0
    assert capsys.readouterr().out.endswith(task.sound)


@pytest.mark.parametrize("folder", ["table", "chains", "commits"])
@only(*AUDITED)
def test_an_audit_finds_damaged_and_missing_files(folder: str, task: Task, finished: Path) -> None:
    victim = sorted((task.place(finished) / (task.table if folder == "table" else folder)).iterdir())[-1]
    kept = victim.read_bytes()
    victim.write_bytes(kept[:-9])
    assert task.findings(finished)
    victim.unlink()
    assert not audit(AuditConfig(run_dir=str(task.audited_dir(finished)))).sound
    victim.write_bytes(kept)
    assert task.findings(finished) == []


@only(*ON_RUNS)
def test_what_is_unfinished_is_not_sound(task: Task, finished: Path, capsys: pytest.CaptureFixture[str]) -> None:
    next((task.place(finished) / "commits").glob("unit-*")).unlink()
    assert main(["audit", f"run_dir={finished}"]) == 1
    said = capsys.readouterr().out
    assert f"1 of {UNITS} units is unfinished: start `{task.command}` with the same settings again" in said


@only(*ON_RUNS)
def test_pruning_a_run_prunes_what_is_in_it(task: Task, finished: Path) -> None:
    waste = task.place(finished) / task.table / f"{task.table}-{'a' * 20}-{'b' * 12}.parquet"
    waste.write_bytes(b"waste")
    foreign = task.place(finished) / "notes.txt"
    foreign.write_text("mine")
    (own,) = task.audited(audit(AuditConfig(run_dir=str(finished), prune=True)))
    assert (own.pruned, own.orphans.foreign) == (1, ("notes.txt",))
    assert not waste.exists()
    assert foreign.exists()


def forge(task: Task, run_dir: Path, change: Change, *, recount: bool) -> None:
    """Change a file of the table, and the record that names it, with their checksums and, with `recount`, counts."""
    forger = Forger(task.place(run_dir))
    forger.change(UNIT, task.table, change)
    if recount:
        whole = forger.last(UNIT, task.table)
        forger.write(replace(whole, tally=finding_tally(read_shard(forger.storage, whole.shards[0]))))


FORGERIES: dict[Task, dict[str, tuple[Change, str]]] = {
    JUDGE: {
        "a vote is left out": (one_less, "vote 0 on chain"),
        "a vote is there twice": (one_more, "is there twice"),
        "another judge": (first(judge="me"), "is none of"),
        "another text": (first(text="\\boxed{-1}"), "is read otherwise now than in the record"),
        "other tokens": (first(n_tokens=10_000), "its totals are wrong: tokens is"),
    },
    SCORE: {
        "a chain is left out": (one_less, "is missing"),
        "a chain is there twice": (one_more, "is there twice"),
        "another chain": (first(problem="other"), "is none of the unit's"),
        "a score that does not follow": (first(score_min=0.999), "do not follow from those of its steps"),
        "a score of the wrong aggregation": (first(score=2.0), "do not follow from those of its steps"),
        "other tokens": (first(n_tokens=10_000), "its totals are wrong: tokens is"),
    },
    CHECK: {
        "a finding is left out": (one_less, "is missing"),
        "a finding is there twice": (one_more, "is there twice"),
        "another chain": (first(chain_id="e" * 20), "is none of the unit's"),
        "another verifier": (first(verifier="other"), "is none of the unit's"),
        "a step that is not there": (first(step_index=99), "is none of the unit's"),
        "a verdict without evidence": (
            first(lambda row: row["verdict"] == "refuted", evidence=""),
            "is impossible: refuted",
        ),
        "a verdict with a fault": (
            first(lambda row: row["verdict"] == "holds", fault="deadline"),
            "is impossible: holds, whole, fault deadline",
        ),
        "a fault that there is none of": (first(fault="boredom"), "is impossible"),
        "a verdict that there is none of": (first(verdict="perhaps"), "is impossible: perhaps"),
        "other totals": (first(lambda row: row["verdict"] == "refuted", verdict="unknown"), "refuted is"),
    },
}
EACH = [
    pytest.param(task, change, said, id=f"{task.command}: {name}")
    for task, forgeries in FORGERIES.items()
    for name, (change, said) in forgeries.items()
]


@pytest.mark.parametrize(("task", "change", "said"), EACH, indirect=["task"])
def test_what_a_forger_changes_is_found(task: Task, change: Change, said: str, finished: Path) -> None:
    forge(task, finished, change, recount=task is CHECK and said != "refuted is")
    found = task.findings(finished)
    assert any(said in each.fault for each in found), found
    assert main(["audit", f"run_dir={task.audited_dir(finished)}"]) == 1
