"""`judge`: every chain of a run has each of its votes once, whatever dies in between, and a later start does what is new."""

from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from pipeline.__main__ import main
from pipeline.core.errors import UsageError
from pipeline.runtime.chain_run.estimate import estimate
from pipeline.runtime.judging.task import JudgeTask
from pipeline.storage.location import storage_at
from pipeline.storage.stored_critiques import JUDGE_RUNS, critique_counts
from tests.runtime.judging.runs import NAME, VOTES, frame, judged, labelled, settings, stored

pytestmark = pytest.mark.slow

CHAINS = 23


@pytest.fixture
def run_dir(tmp_path: Path) -> Path:
    return labelled(tmp_path, CHAINS)


def test_the_votes_are_those_of_the_oracle(run_dir: Path) -> None:
    """A perfect judge names the first step whose true value is not above the threshold."""
    judged(settings(run_dir, exact=1.0, early=0.0, late=0.0, false_alarm=0.0))
    judge = stored(run_dir)
    counts = critique_counts(judge)
    assert (counts.chains, counts.critiques, counts.unanimous) == (CHAINS, CHAINS * VOTES, CHAINS)
    assert sum(counts.kinds.values()) == counts.critiques


def test_several_judges_stand_in_one_run(run_dir: Path) -> None:
    storage = storage_at(str(run_dir))
    assert JUDGE_RUNS.names(storage) == []
    with pytest.raises(UsageError, match=r"has no judge dry: make one: judge run_dir="):
        JUDGE_RUNS.read(storage, NAME)
    judged(settings(run_dir))
    judged(settings(run_dir, name="other", seed=5))
    assert JUDGE_RUNS.names(storage) == [NAME, "other"]
    assert (
        not frame(run_dir).select("row", "vote", "text").equals(frame(run_dir, "other").select("row", "vote", "text"))
    )
    assert stored(run_dir).digest != stored(run_dir, "other").digest
    with pytest.raises(UsageError, match="has no judge othr: did you mean other"):
        JUDGE_RUNS.read(storage, "othr")
    with pytest.raises(UsageError, match="is no name of a judge"):
        JUDGE_RUNS.at(storage, "../x")


def test_a_run_in_which_nothing_is_labelled_yet_is_refused(run_dir: Path) -> None:
    for record in (run_dir / "commits").glob("unit-*"):
        record.unlink()
    with pytest.raises(UsageError, match="no chain is labelled yet: start `label` on it again"):
        judged(replace(settings(run_dir), partial=True))
    assert JUDGE_RUNS.names(storage_at(str(run_dir))) == []


def test_answers_are_kept_from_a_judge_unless_it_may_see_them(run_dir: Path) -> None:
    judged(settings(run_dir))
    config = settings(run_dir, name="open")
    judged(replace(config, judge=replace(config.judge, show_answer=True)))
    hidden, shown = (
        pl.read_parquet(run_dir / "judges" / name / "chains" / "*.parquet").sort("row") for name in (NAME, "open")
    )
    assert "gold_answers" not in hidden.columns
    assert shown["gold_answers"].to_list() == [[str(number + 1)] for number in range(CHAINS)]


def test_an_estimate_counts_the_votes_and_writes_nothing(run_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = estimate(JudgeTask(settings(run_dir, tokens_per_second=100_000)))
    critiques = found.tables["critiques"]
    assert (found.sample.chains, found.sampled, critiques.num_rows) == (CHAINS, CHAINS, CHAINS * VOTES)
    assert found.seconds >= sum(each or 0 for each in critiques["n_tokens"].to_pylist()) / 100_000 * 0.9
    words = ["judge", f"run_dir={run_dir}", "judge=lab", "judge.name=a", "judge.lab.unparseable=1", "--estimate"]
    assert main(words) == 0
    said = capsys.readouterr().out
    assert said.startswith(f"{CHAINS} chains with ")
    assert "4 votes each" in said
    assert f"no verdict, because it is not in the wanted form: {CHAINS * 4} critiques" in said
    assert JUDGE_RUNS.names(storage_at(str(run_dir))) == []


def test_a_judge_that_writes_with_no_model_needs_no_policy(run_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["judge", f"run_dir={run_dir}", "judge.name=a", "judge=oracle", "--cfg", "job"]) == 0
    assert "policy:\n  kind: oracle" in capsys.readouterr().out
