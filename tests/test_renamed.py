"""Settings that were renamed: the old name works for one version, with a hint, and what was recorded with it is read."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.__main__ import compose_label, main
from pipeline.cli import COMMANDS
from pipeline.cli.overrides import marks_of
from pipeline.config.choices import AfterError
from pipeline.config.label import EstimatorConfig
from pipeline.config.recorded_settings import settings_section
from pipeline.config.renamed import KEYS, current_overrides, current_settings
from pipeline.estimators.labels import rule_name
from pipeline.runtime.objects import REGISTRIES
from pipeline.storage.commits import UNIT, Commit, CommitState, encode_commit
from tests.conftest import write_rows
from tests.runtime.in_process import label_in_process


@pytest.mark.parametrize(("command", "old", "new"), [(c, o, n) for c, names in KEYS.items() for o, n in names.items()])
def test_a_new_name_is_a_setting_and_the_old_one_is_none(command: str, old: str, new: str) -> None:
    settings = marks_of(COMMANDS[command].schema)
    for section in settings.keys() & REGISTRIES.keys():
        for own in REGISTRIES[section][1].our_settings().values():
            settings |= marks_of(own, f"{section}.")
    assert new in settings
    assert old not in settings


def test_an_old_name_works_and_says_the_new_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows: list[dict[str, object]] = [{"problem": "1 + 1?", "answer": "2", "steps": ["1 + 1 = 2.", "The answer is 2."]}]
    data = write_rows(tmp_path / "rows.jsonl", rows)
    run = [f"run_dir={tmp_path / 'run'}", "run.report=false", "policy=oracle", "sampling.rollouts=2"]
    label_in_process(compose_label([f"data.path={data}", *run, "estimator=fixed"]))
    export = ["export", run[0], "format=parquet", f"out={tmp_path / 'out'}", "target=hard"]
    assert main([*export, "undecided=drop", "offending=drop"]) == 0
    hints = capsys.readouterr().err
    assert "undecided=drop is now called uncertain=drop" in hints
    assert "offending=drop is now called invalid=drop" in hints
    assert main(["relabel", run[0], "estimator.after_error=undecided"]) == 0
    assert "estimator.after_error=undecided is now called estimator.after_error=uncertain" in capsys.readouterr().err


def test_the_hint_comes_with_the_printed_settings_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        main(["export", "run_dir=x", "format=trl", "out=y", "undecided=drop", "neutral='undecided'", "--cfg", "job"])
        == 0
    )
    printed = capsys.readouterr()
    assert "uncertain: drop" in printed.out
    assert "neutral: uncertain" in printed.out
    assert printed.err.count("is now called") == 2


def test_names_of_today_bring_no_hint() -> None:
    given_words = ["uncertain=drop", "neutral=uncertain", "format=trl", "data.path=undecided"]
    assert current_overrides("export", given_words) == (given_words, [])
    assert current_overrides("label", ["warmup=1"]) == (["warmup=1"], [])


@given(st.lists(st.text(max_size=20), max_size=5))
def test_nothing_else_is_touched(words: list[str]) -> None:
    others = [word for word in words if word.partition("=")[0] not in KEYS["train"]]
    assert current_overrides("train", others)[0] == [
        word if word != "neutral=undecided" else "neutral=uncertain" for word in others
    ]


def test_what_was_recorded_with_old_names_is_read() -> None:
    found = settings_section({"estimator.after_error": "undecided"}, "estimator", EstimatorConfig)
    assert found.after_error is AfterError.uncertain
    assert current_settings("train", {"warmup": 0.1, "neutral": "undecided", "seed": 1}) == {
        "warmup_ratio": 0.1,
        "neutral": "uncertain",
        "seed": 1,
    }
    for recorded in (None, "posterior_mean", "value"):
        assert current_settings("train", {"soft": recorded}) == {"soft": "value"}
    assert current_settings("train", {"soft": "unbiased_value"}) == {"soft": "unbiased_value"}


def test_run_directories_keep_their_names() -> None:
    record = json.loads(encode_commit(Commit(kind=UNIT, sequence_id="0" * 20, number=0, state=CommitState.PART)))
    assert {"chain_id", "goal", "learnt_from"} <= set(record)
    assert "undecided" in record["totals"]
    assert rule_name(EstimatorConfig(after_error=AfterError.uncertain)).endswith(",undecided_after_error")
