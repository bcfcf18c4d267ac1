"""`push_to_hub`: what is refused before, what is uploaded, and what is left where the hub refuses; against a stand-in."""

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from pipeline.__main__ import main
from pipeline.analysis.report.run import report
from pipeline.analysis.settings import ReportConfig
from pipeline.core.errors import UploadError, UsageError
from pipeline.engines.registry import made_up_text
from pipeline.export.card import TAGS
from pipeline.export.result import CARD, ExportResult, result_lines
from pipeline.export.run import _made_with, export
from pipeline.export.settings import ExportConfig, HubConfig
from pipeline.storage.location import storage_at
from pipeline.storage.stored_run import readable_run
from tests.export.hub import StandIn, stand_in
from tests.export.rows import lines
from tests.runtime.adaptive import settings, sums
from tests.runtime.in_process import label_in_process

pytestmark = pytest.mark.slow

TOKEN = "hf_not_a_real_token_1234567890"
NAME = "somebody/my-steps"


@pytest.fixture(scope="module")
def run_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("run")
    asked = ["estimator=fixed", "sampling.rollouts=4", "policy.prompt.system='Be `brief`.\n# <script>'"]
    label_in_process(settings(folder, sums(4, chains=2), *asked))
    return folder / "run"


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[StandIn]:
    with stand_in() as server:
        monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", server.endpoint)
        monkeypatch.setattr("huggingface_hub.get_token", lambda: TOKEN)
        monkeypatch.setattr("huggingface_hub._commit_api.is_xet_available", lambda: False)
        # It tries again what failed with 500, after seconds.
        without_sleep = SimpleNamespace(**vars(time) | {"sleep": lambda _: None})
        monkeypatch.setattr("huggingface_hub.utils._http.time", without_sleep)
        yield server


def pushed(run_dir: Path, out: Path, **asked: Any) -> ExportResult:
    return export(ExportConfig(run_dir=str(run_dir), format="trl", out=str(out), **{"push_to_hub": NAME, **asked}))


def test_the_rows_and_the_card_are_on_the_hub_as_they_are_here(run_dir: Path, tmp_path: Path, hub: StandIn) -> None:
    hub.large = {"train.jsonl"}
    done = pushed(run_dir, tmp_path / "out", validation=0.3)
    assert done.address == f"{hub.endpoint}/datasets/{NAME}"
    assert hub.private == {NAME: True}
    assert hub.files == {name: (tmp_path / "out" / name).read_bytes() for name in (CARD, *done.files)}
    assert set(done.files) == {"train.jsonl", "validation.jsonl"}
    assert sum("/commit/" in call for call in hub.calls) == 1
    # Objects go to an address that the server has named, without the token.
    assert hub.tokens <= {f"Bearer {TOKEN}", None}


def test_lists_that_name_chains_and_paths_stay_here(run_dir: Path, tmp_path: Path, hub: StandIn) -> None:
    pushed(run_dir, tmp_path / "out", min_p_outcome=0.3, hub=HubConfig(private=False))
    assert (tmp_path / "out" / "left_out.jsonl").is_file()
    assert set(hub.files) == {CARD, "train.jsonl"}
    assert str(tmp_path) not in hub.files[CARD].decode()
    assert hub.private == {NAME: False}


@pytest.mark.parametrize(("path", "status", "words"), [
    ("/api/repos/create", 401, "the token is not valid there"),
    ("/api/repos/create", 403, "give it write access to the data sets of somebody, or push to an owner where it has that"),
    ("/api/datasets", 403, "write access to the data sets of somebody"),
    ("/api/repos/create", 404, "there is no owner somebody"),
    ("/api/datasets", 500, "HfHubHTTPError"),
    ("/api/repos/create", 0, "Error"),
    (f"/api/datasets/{NAME}/commit", 0, "Error"),
])  # fmt: skip
def test_a_hub_that_refuses_costs_no_export(
    run_dir: Path, tmp_path: Path, hub: StandIn, path: str, status: int, words: str
) -> None:
    hub.refuses = {path: status}
    with pytest.raises(UploadError, match=words) as raised:
        pushed(run_dir, tmp_path / "out")
    said = str(raised.value)
    assert f"{tmp_path / 'out'} holds the whole export" in said
    assert "start the same command with overwrite=true" in said
    assert f"the data set {NAME} could not be pushed to {hub.endpoint}: " in said
    assert TOKEN not in said
    assert "\n" not in said
    assert hub.files == {}
    hub.refuses = {}
    assert pushed(run_dir, tmp_path / "out", overwrite=True).address
    assert set(hub.files) == {CARD, "train.jsonl"}


def test_a_hub_says_itself_why_it_refuses_and_no_password_is_shown(
    run_dir: Path, tmp_path: Path, hub: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub.refuses = {"/api/repos/create": 403}
    with_password = hub.endpoint.replace("//", "//me:secret@")
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", with_password)
    with pytest.raises(UploadError) as raised:
        pushed(run_dir, tmp_path / "out")
    assert f"could not be pushed to {hub.endpoint}: " in str(raised.value)
    assert "(HTTP 403, 'no, <b>never</b>')" in str(raised.value)
    assert "secret" not in str(raised.value)


def test_an_upload_through_xet_that_breaks_off_costs_no_export(
    run_dir: Path, tmp_path: Path, hub: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Large files go through Xet where its package is installed. The stand-in has none, which ends the upload."""
    pytest.importorskip("hf_xet")
    monkeypatch.setattr("huggingface_hub._commit_api.is_xet_available", lambda: True)
    hub.large = {"train.jsonl"}
    with pytest.raises(UploadError, match=r"xet-write-token") as raised:
        pushed(run_dir, tmp_path / "out")
    assert f"{tmp_path / 'out'} holds the whole export" in str(raised.value)
    assert TOKEN not in str(raised.value)
    assert hub.files == {}
    monkeypatch.setattr("huggingface_hub._commit_api.is_xet_available", lambda: False)
    assert pushed(run_dir, tmp_path / "out", overwrite=True).address


@pytest.mark.parametrize(
    ("license", "hint"),
    [
        ("foo", "the Hub knows no such licence, the nearest of the"),
        ("CC-BY-4.0", "did you mean cc-by-4.0"),
        ("apache2.0", "did you mean apache-2.0"),
        ("", "the Hub knows no such licence"),
    ],
)
def test_a_licence_that_the_hub_does_not_know_is_refused_with_a_hint(license: str, hint: str) -> None:
    with pytest.raises(ValueError, match=f"hub.license={license}: ") as raised:
        HubConfig(license=license)
    assert hint in str(raised.value)
    assert "other is for a licence that it does not list" in str(raised.value)
    assert HubConfig(license="other").license == "other"


def test_without_a_token_nothing_is_exported(
    run_dir: Path, tmp_path: Path, hub: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("huggingface_hub.get_token", lambda: None)
    with pytest.raises(UsageError, match=r"no token .*hf auth login"):
        pushed(run_dir, tmp_path / "out")
    assert not (tmp_path / "out").exists()
    assert hub.calls == []


@pytest.mark.parametrize(
    "name", ["steps", "a/b/c", "a/..", "-a/b", "a/b--c", "a/b.git", "", "a/b c", "https://x/y", "a/" + "b" * 97]
)
def test_a_name_that_is_none_is_refused(name: str) -> None:
    with pytest.raises(
        ValueError, match=r"push_to_hub=.* is no name of a data set: write OWNER/NAME, such as my-name/my-steps"
    ):
        ExportConfig(push_to_hub=name)


def test_the_command_prints_the_address_or_fails_with_1(
    run_dir: Path, tmp_path: Path, hub: StandIn, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["export", f"run_dir={run_dir}", "format=trl", f"out={tmp_path / 'out'}", f"push_to_hub={NAME}"]
    assert main(words) == 0
    assert capsys.readouterr().out.splitlines()[-1] == f"{hub.endpoint}/datasets/{NAME}"
    hub.refuses = {"/api/repos": 401}
    assert main([*words, "overwrite=true"]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert "(HTTP 401, " in line


def test_the_card_says_all_and_means_what_it_says(run_dir: Path, tmp_path: Path) -> None:
    export(
        ExportConfig(
            run_dir=str(run_dir), format="trl", out=str(tmp_path / "out"), min_p_outcome=0.01,
            hub=HubConfig(license="cc-by-4.0"),
        )
    )  # fmt: skip
    card = (tmp_path / "out" / CARD).read_text()
    front, body = card.removeprefix("---\n").split("\n---\n", 1)
    found = yaml.safe_load(front)
    assert found["license"] == "cc-by-4.0"
    assert found["tags"] == [*TAGS, "trl"]
    assert found["size_categories"] == ["n<1K"]
    assert found["configs"][0]["data_files"] == [{"split": "train", "path": "train.jsonl"}]
    for words in (
        "- Policy: `oracle`", "- Prompt: ", "- Sampling: ", "temperature `1.0`", "- Estimator: `fixed`",
        "- Label rule: ", "a step is bad", "- Checker: `math`", "## Figures of the run", "rollouts: ", "## Known biases",
        "## Filters", "`min_p_outcome`: `0.01`",
    ):  # fmt: skip
        assert words in body
    rows = lines(tmp_path / "out" / "train.jsonl")
    assert not [row for row in rows if any(text in card for text in (row["prompt"], *row["completions"]))]
    # A text of a setting is code on one line, whatever it holds.
    (prompt,) = [line for line in body.splitlines() if line.startswith("- Prompt: ")]
    assert r'``"Be `brief`.\n# <script>"``' in prompt
    assert not [line for line in body.splitlines() if line.startswith("# <script>")]


def test_the_card_lists_the_settings_of_input_policy_and_labels_without_folders(run_dir: Path) -> None:
    run = readable_run(storage_at(str(run_dir)), partial=False)
    local = {"policy.model": "/home/me/models/mine", "policy.tokenizer": "org/name"}
    found = _made_with(replace(run, identity={**run.identity, **local}))
    wanted = {key for key in run.identity if key.startswith(("data.", "policy.", "sampling."))} | run.settings.keys()
    assert found.keys() == wanted | {"sampling.rollouts", *local}
    assert {"data.layout", "policy.oracle.seed", "estimator.rule"} <= found.keys()
    assert (found["policy.model"], found["policy.tokenizer"]) == ("mine", "org/name")


def test_made_up_values_are_said_to_be_made_up(run_dir: Path, tmp_path: Path) -> None:
    done = export(ExportConfig(run_dir=str(run_dir), format="trl", out=str(tmp_path / "out")))
    said = "the values are made up, for a demonstration or a test: the oracle draws them"
    assert [line for line in result_lines(done) if line.startswith("policy    ") and said in line]
    card = (tmp_path / "out" / CARD).read_text()
    # Before anything that a reader might believe.
    assert card.index(f"**T{said[1:]}") < card.index("| file | rows")
    assert [
        line for line in report(ReportConfig(run_dir=[str(run_dir)])) if line.startswith("policy    ") and said in line
    ]
    assert f"T{said[1:]}" in (run_dir / "report.html").read_text()


def test_values_of_a_policy_with_a_model_or_of_an_unknown_one_are_not() -> None:
    for kind in ("embedded", "hf", "openai"):
        assert made_up_text({"policy.kind": kind}) == ""
    assert made_up_text({"policy.kind": "not_installed_here"}) == ""
    # A plug-in that took the name of ours.
    assert made_up_text({"policy.kind": "oracle", "policy.plugin": "other 1.0 (other:Oracle)"}) == ""
    assert made_up_text({"policy.kind": "oracle"})


def test_the_card_names_the_rollouts_asked_for_and_those_measured(run_dir: Path, tmp_path: Path) -> None:
    export(ExportConfig(run_dir=str(run_dir), format="trl", out=str(tmp_path / "out")))
    card = (tmp_path / "out" / CARD).read_text()
    (sampling,) = [line for line in card.splitlines() if line.startswith("- Sampling: ")]
    assert "rollouts `4`" in sampling
    totals = next(line for line in card.splitlines() if line.startswith("- 4 problems, 8 chains, "))
    prefixes = int(totals.split()[5])
    rollouts = int(next(line for line in card.splitlines() if " rollouts: " in line).split()[1].replace(",", ""))
    assert f"- on average {rollouts / prefixes:.1f} rollouts for each prefix, measured" in card
