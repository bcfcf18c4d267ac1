"""`regrade grader.unreadable_is=wrong`: rollouts whose answers cannot be read become incorrect, and their labels follow."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from pipeline.__main__ import main
from pipeline.config.fields import as_type
from pipeline.core.records import Completion, Request, Verdict
from pipeline.engines.oracle import OracleEngine, OraclePolicyConfig
from pipeline.storage.commits import EDITION, record_sequences
from pipeline.storage.local import LocalStorage
from pipeline.storage.stored_run import finished_run
from tests.audit.runs import config, copied, files
from tests.conftest import write_rows
from tests.runtime.in_process import label_in_process

pytestmark = pytest.mark.slow

UNREAD = {"unparseable": "\\boxed{5_}", "over_limit": "\\boxed{9^{9^{9^9}}}"}
SETTING = "grader.unreadable_is"


class UnreadableEngine(OracleEngine):
    """Of the oracle's wrong answers, two in three cannot be read."""

    async def generate(
        self, requests: Sequence[Request], *, keep_tokens: bool = False
    ) -> AsyncIterator[Sequence[Completion]]:
        async for group in super().generate(requests, keep_tokens=keep_tokens):
            yield [self._spoiled(completion) for completion in group]

    def _spoiled(self, completion: Completion) -> Completion:
        gold = completion.request.problem.golds[0]
        kinds = [*UNREAD.values(), None]
        answer = kinds[completion.request.issue_index % len(kinds)]
        if answer is None or completion.text.endswith(f" {gold}."):
            return completion
        return replace(completion, text=f"So the work is done.\n{answer}")


def rows() -> list[dict[str, object]]:
    """Chains that end with the gold, with another number, and with what cannot be read, of problems with readable golds."""
    ends = ["The answer is {gold}.", "The answer is {wrong}.", *UNREAD.values()]
    return [
        {
            "id": f"{number}-{place}",
            "problem": f"What is {number} + {number} + 1?",
            "answer": str(2 * number + 1),
            "steps": [
                f"{number} + {number} = {2 * number}.",
                f"One more makes {2 * number + 1}.",
                end.replace("{gold}", str(2 * number + 1)).replace("{wrong}", str(2 * number + 3)),
            ],
        }
        for number in range(3, 9)
        for place, end in enumerate(ends)
    ]


def labelled(folder: Path, *overrides: str) -> Path:
    folder.mkdir(exist_ok=True)
    write_rows(folder / "rows.jsonl", rows())
    settings = config(folder, "sampling.rollouts=8", *overrides)
    label_in_process(settings, engine=UnreadableEngine(as_type(settings.policy, OraclePolicyConfig)))
    return folder / "run"


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return labelled(tmp_path_factory.mktemp("finished"))


@pytest.fixture
def run_dir(finished: Path, tmp_path: Path) -> Path:
    return copied(finished, tmp_path)


def command(name: str, run_dir: Path, *settings: str) -> None:
    assert main([name, f"run_dir={run_dir}", *settings]) == 0


def table(run_dir: Path, name: str, key: str) -> pl.DataFrame:
    return pl.read_parquet(run_dir / name / "*.parquet").sort(key)


def label_files(run_dir: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (run_dir / "labels").iterdir()}


def current_verdicts(run_dir: Path) -> pl.DataFrame:
    """What the newest edition's verdict files say."""
    (editions,) = record_sequences(LocalStorage(run_dir), EDITION)
    parts = [shard.file for shard in editions.commits[-1].shards if shard.table == "verdicts"]
    return pl.concat([pl.read_parquet(run_dir / part) for part in parts]).sort("rollout_id")


def test_verdicts_and_labels_follow_the_setting_and_audit_proves_them(
    run_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log, before = table(run_dir, "rollouts", "rollout_id"), table(run_dir, "labels", "source_id")
    unread = log.filter(pl.col("verdict").is_in([*UNREAD]))
    assert set(unread["verdict"]) == {*UNREAD}
    assert {Verdict.CORRECT, Verdict.INCORRECT} <= set(log["verdict"])

    command("regrade", run_dir, f"{SETTING}=wrong")
    said = " ".join(capsys.readouterr().out.split())
    assert finished_run(LocalStorage(run_dir)).settings[SETTING] == "wrong"

    verdicts = current_verdicts(run_dir)
    assert verdicts["rollout_id"].equals(log["rollout_id"])
    assert verdicts["answer"].equals(log["answer"])
    expected = log.select(
        pl.when(pl.col("verdict").is_in([*UNREAD]))
        .then(pl.lit("incorrect"))
        .otherwise(pl.col("verdict"))
        .alias("verdict")
    )
    assert verdicts["verdict"].to_list() == expected["verdict"].to_list()
    assert f"verdicts {unread.height} of {log.height} changed" in said

    after = table(run_dir, "labels", "source_id")
    for old, new in zip(before.iter_rows(named=True), after.iter_rows(named=True), strict=True):
        unreadable_end = old["source_id"].endswith(("-2", "-3"))
        assert (old["outcome"] is None) is unreadable_end
        assert new["outcome"] is (False if unreadable_end else old["outcome"])
        steps = range(len(old["value"]))
        inner = [step for step in steps if old["origin"][step] == "measured" == new["origin"][step]]
        assert len(inner) >= 2
        for step in inner:
            assert new["n_correct"][step] == old["n_correct"][step]
            assert new["n_ungraded"][step] == 0
            assert new["n_rollouts"][step] == old["n_rollouts"][step] + old["n_ungraded"][step]
            assert (new["value"][step] < old["value"][step]) is (old["n_ungraded"][step] > 0 < old["n_correct"][step])
    assert before["n_ungraded"].list.sum().sum() > 0
    assert label_files(run_dir) == label_files(labelled(tmp_path / "fresh", f"{SETTING}=wrong"))
    command("audit", run_dir)


def test_it_can_be_taken_back_and_repeated(run_dir: Path) -> None:
    own, log = label_files(run_dir), table(run_dir, "rollouts", "rollout_id")
    command("regrade", run_dir, f"{SETTING}=wrong")
    wrong, written = label_files(run_dir), files(run_dir)
    assert wrong != own
    command("regrade", run_dir, f"{SETTING}=wrong")
    assert files(run_dir) == written
    command("regrade", run_dir, f"{SETTING}=ungraded")
    assert label_files(run_dir) == own
    verdicts = current_verdicts(run_dir)
    assert verdicts.equals(log.select(verdicts.columns))
    command("audit", run_dir)
    command("regrade", run_dir, f"{SETTING}=wrong")
    assert label_files(run_dir) == wrong
    command("audit", run_dir)
