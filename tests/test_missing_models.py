"""Models that are not there: the message names the setting and the remedy, and a folder is missed before anything starts."""

from pathlib import Path

import pytest
from huggingface_hub.errors import HFValidationError, LocalEntryNotFoundError

from pipeline.__main__ import main
from pipeline.core.errors import UsageError
from pipeline.core.missing_models import load_failure, refuse_missing_folder


@pytest.mark.parametrize("name", ["/none/such", "./none", "~/none/such/model", "a/b/c"])
def test_a_path_without_a_folder_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match=rf"the folder policy\.model={name} does not exist: give a folder or a"):
        refuse_missing_folder("policy.model", name)


def test_a_folder_and_hugging_face_names_pass(tmp_path: Path) -> None:
    for name in (str(tmp_path), "gpt2", "Qwen/Qwen3-8B"):
        refuse_missing_folder("model", name)


def test_faults_of_the_hub_are_stated_in_our_words() -> None:
    unreachable = OSError("We couldn't connect to 'https://huggingface.co'")
    unreachable.__cause__ = LocalEntryNotFoundError("no file")
    assert load_failure(unreachable) == "there is no such folder here, and the Hugging Face Hub cannot be reached"
    assert "cannot be a Hugging Face name" in load_failure(HFValidationError("Repo id must use alphanumeric chars"))
    assert load_failure(ValueError("Unrecognized\n model.")) == "Unrecognized model"


@pytest.mark.parametrize(
    ("arguments", "setting"),
    [
        (["label", "data=sample", "policy.model=/none/such", "run_dir=run"], "policy.model"),
        (["plan", "data=sample", "policy.model=/none/such"], "policy.model"),
        (["train", "model=/none/such", "run_dir=run", "out=prm"], "model"),
        (["score", "model=/none/such", "run_dir=run", "out=scores.parquet"], "scorer.model"),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_a_missing_folder_is_wrong_usage_and_nothing_is_written(
    arguments: list[str],
    setting: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 2
    line = f"stepvalue: the folder {setting}=/none/such does not exist: give a folder or a Hugging Face name\n"
    assert capsys.readouterr().err == line
    assert list(tmp_path.iterdir()) == []
