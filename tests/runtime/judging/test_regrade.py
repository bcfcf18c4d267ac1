"""`regrade` reads critiques again, and what other commands say of a judge."""

import json
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from pipeline.__main__ import main
from pipeline.analysis.audit.findings import Check
from pipeline.core.errors import RunConflict, UsageError
from pipeline.core.records import Finish, Reading, ReadingKind
from pipeline.core.tables import SCHEMA_VERSION
from pipeline.engines.oracle import OraclePolicyConfig
from pipeline.judges.oracle import OracleJudge
from pipeline.judges.settings import JudgeParser, ModelJudgeConfig
from tests.runtime.chain_tasks import JUDGE
from tests.runtime.judging.runs import NAME, VOTES, frame, judged, labelled, settings, stored

pytestmark = pytest.mark.slow

CHAINS = 9


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    run_dir = labelled(tmp_path_factory.mktemp("proof"), CHAINS)
    judged(settings(run_dir, unparseable=0.1))
    return run_dir


@pytest.fixture
def run_dir(made: Path, tmp_path: Path) -> Path:
    shutil.copytree(made, tmp_path / "run")
    return tmp_path / "run"


def stricter(judge: OracleJudge, turns: Sequence[str], finish: Finish, steps: int) -> Reading:
    """A parser for which an index is no verdict, but the words are."""
    if "no error" in turns[-1]:
        return Reading(kind=ReadingKind.NO_ERROR)
    return Reading(kind=ReadingKind.UNPARSEABLE)


def test_regrade_reads_critiques_again_where_the_parser_reads_otherwise(
    run_dir: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    before, digest = frame(run_dir), stored(run_dir).digest
    assert main(["regrade", f"run_dir={run_dir}"]) == 0
    assert (
        f"judge {NAME}: {CHAINS * VOTES} critiques read again, and all say what they said before"
        in capsys.readouterr().out
    )
    assert stored(run_dir).edition is None
    errors = before.filter(pl.col("reading") == ReadingKind.ERROR.value).height
    assert errors > 0
    with monkeypatch.context() as patched:
        patched.setattr(OracleJudge, "read", stricter)
        assert {each.check for each in JUDGE.findings(run_dir)} == {Check.CRITIQUES}
        assert all("`regrade`" in each.remedy for each in JUDGE.findings(run_dir))
        assert main(["regrade", f"run_dir={run_dir}"]) == 0
        said = capsys.readouterr().out
        assert f"{CHAINS * VOTES} critiques read again, {errors} readings changed" in said
        assert JUDGE.findings(run_dir) == []
        after = frame(run_dir)
        assert after.drop("reading", "first_error").equals(before.drop("reading", "first_error"))
        assert set(after["reading"]) == {ReadingKind.NO_ERROR.value, ReadingKind.UNPARSEABLE.value}
        assert after["first_error"].null_count() == after.height
        judge = stored(run_dir)
        assert judge.edition is not None
        assert judge.edition.number == 0
        assert judge.digest != digest
        assert pl.read_parquet(run_dir / "judges" / NAME / "readings" / "*.parquet").height == CHAINS * VOTES
    # With the parser of before, all of them change back, in the next edition.
    assert main(["regrade", f"run_dir={run_dir}"]) == 0
    assert frame(run_dir).equals(before)
    assert JUDGE.findings(run_dir) == []
    edition = stored(run_dir).edition
    assert edition is not None
    assert edition.number == 1


def test_new_chains_make_the_readings_of_the_log_count_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run_dir = labelled(tmp_path, CHAINS)
    judged(settings(run_dir))
    with monkeypatch.context() as patched:
        patched.setattr(OracleJudge, "read", stricter)
        assert main(["regrade", f"run_dir={run_dir}"]) == 0
    before = stored(run_dir)
    assert before.edition is not None
    labelled(tmp_path, CHAINS + 3)
    judged(settings(run_dir))
    assert stored(run_dir).edition is None
    assert stored(run_dir).digest != before.digest
    assert JUDGE.findings(run_dir) == []


def test_a_judge_that_cannot_be_read_again_does_not_stop_the_others(
    run_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record = run_dir / "judges" / "broken" / "run.json"
    record.parent.mkdir()
    record.write_text(json.dumps({"schema": SCHEMA_VERSION}))
    assert main(["regrade", f"run_dir={run_dir}"]) == 0
    said = capsys.readouterr().out
    assert "judge broken: not read again: " in said
    assert f"judge {NAME}: {CHAINS * VOTES} critiques read again" in said


def test_a_judge_with_a_template_of_the_users_own_is_proved_without_the_file(made: Path, tmp_path: Path) -> None:
    shutil.copytree(made, run_dir := tmp_path / "run")
    shutil.rmtree(run_dir / "judges")
    file = tmp_path / "template.txt"
    file.write_text("{problem}\n\n{steps}\n\nWhich step is wrong? End with its number, or with none.")
    judge = ModelJudgeConfig(
        name="mine", votes=2, template_file=str(file), parser=JudgeParser.last_line_index, index_base=1
    )
    judged(replace(settings(run_dir), judge=judge, policy=OraclePolicyConfig()))
    file.unlink()
    assert JUDGE.findings(run_dir) == []
    assert main(["regrade", f"run_dir={run_dir}"]) == 0
    assert JUDGE.findings(run_dir) == []
    with pytest.raises(UsageError, match="template"):
        judged(replace(settings(run_dir), judge=judge, policy=OraclePolicyConfig()))
    file.write_text("{problem}\n\n{steps}\n\nWhich step is wrong?")
    with pytest.raises(RunConflict, match=r"judge\.template_file \(content\) was"):
        judged(replace(settings(run_dir), judge=judge, policy=OraclePolicyConfig()))
