"""Settings of a user's own: a folder of files, files in it, and the record of the run that a command continues."""

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from hydra.core.override_parser.overrides_parser import OverridesParser
from hypothesis import given, settings
from hypothesis import strategies as st
from omegaconf import OmegaConf

from pipeline.__main__ import main
from pipeline.cli.compose import compose
from pipeline.cli.label import GROW, LABEL
from pipeline.cli.own_settings import Given, flat, nested
from pipeline.config.label import LabelConfig
from pipeline.config.words import quote, setting_word
from pipeline.core.errors import UsageError
from pipeline.data.rows import GIVEN_FILE, GIVEN_FOLDER, is_given
from pipeline.runtime.grow import label_part
from pipeline.runtime.state import identity, start_settings
from pipeline.storage.local import LocalStorage
from pipeline.storage.run_record import claim
from pipeline.storage.starts import write_start
from tests.conftest import ROOT
from tests.settings import compose_label
from tests.storage.test_starts import start

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("ours_alone")]

Printed = pytest.CaptureFixture[str]
SERVER = "policy.openai.urls=[http://127.0.0.1:8000/v1]"


def printed(capsys: Printed, *arguments: str) -> tuple[dict[str, Any], str]:
    """The settings of a command line, and its remarks."""
    assert main([*arguments, "--cfg", "job"]) == 0, capsys.readouterr().err
    shown = capsys.readouterr()
    found = yaml.safe_load(shown.out)
    assert isinstance(found, dict)
    return found, shown.err


def refused(capsys: Printed, *arguments: str) -> str:
    """The one line that a wrong command line is answered with."""
    assert main([*arguments, "--cfg", "job"]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.count("\n") == 1, shown.err
    return shown.err


def write(folder: Path, files: Mapping[str, str]) -> str:
    """The option that names a folder with these files."""
    for name, text in files.items():
        file = folder / f"{name}.yaml"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return f"--config-dir={folder}"


@pytest.mark.parametrize(
    "arguments",
    [
        ["label", "policy=oracle", "data.path=x", "sampling.temperature=0.3", "policy.oracle.seed=7"],
        ["label", "policy=hf", "policy.model=a/b", "policy.dtype=float16", "sampling.stop=['a','b: c']"],
        ["label", "policy=openai", "policy.model=m", SERVER, "policy.prompt.template='x {problem} \\n'"],
        ["label", "data=sample", "policy=embedded", "sampling.temperature=0.1"],
        ["label"],
        ["label", "data=gsm8k", "data.path=x", "estimator=bisect", "estimator.confidence=0.9", "grader=code"],
        ["export", "run_dir=x", "format=preference", "out=y", "preference.reader=step_dpo"],
        ["export", "run_dir=x", "format=openrlhf", "out=y", "placeholder=ки"],
        ["score", "model=x", "out=y", "data.path=z"],
        ["agree", "run_dir=x", "data=prm800k"],
        ["status", "run_dir=x"],
    ],
    ids=" ".join,
)
def test_what_cfg_prints_is_a_file_of_settings(arguments: list[str], tmp_path: Path, capsys: Printed) -> None:
    """Also under the name of the command, which is that of a file of ours."""
    command = arguments[0]
    assert main([*arguments, "--cfg", "job"]) == 0
    text = capsys.readouterr().out
    for name in ("my", command):
        folder = write(tmp_path, {name: text})
        assert main([command, folder, "--config-name", name, "--cfg", "job"]) == 0
        shown = capsys.readouterr()
        assert (shown.out, shown.err) == (text, "")


@pytest.mark.parametrize("spelling", [["--config-dir", "{}"], ["--config-dir={}"], ["-cd", "{}"], ["-cd={}"]])
def test_a_folder_adds_options_to_groups(spelling: list[str], tmp_path: Path, capsys: Printed) -> None:
    write(
        tmp_path,
        {
            "policy/mine": "defaults: [hf]\nmodel: a/b\nmax_model_len: 4096\n",
            "estimator/quick": "name: fixed\nthreshold: 0.2\n",
        },
    )
    words = ["label", *(word.format(tmp_path) for word in spelling), "policy=mine", "estimator=quick", "data.path=x"]
    found, said = printed(capsys, *words, "policy.max_model_len=77")
    wanted, _ = printed(
        capsys,
        *["label", "policy=hf", "policy.model=a/b", "policy.max_model_len=77", "data.path=x"],
        *["estimator.name=fixed", "estimator.threshold=0.2"],
    )
    assert found["policy"] == wanted["policy"]
    assert (found["estimator"]["name"], found["estimator"]["threshold"]) == ("fixed", 0.2)
    assert said == ""


def test_an_option_of_ours_is_replaced_by_one_of_the_same_name(tmp_path: Path, capsys: Printed) -> None:
    folder = write(tmp_path, {"sampling/default": "rollouts: 31\n", "data/gsm8k": "path: mine.jsonl\n"})
    found, said = printed(capsys, "label", folder)
    assert found["sampling"]["rollouts"] == 31
    assert said == f"stepvalue: {tmp_path}/sampling/default.yaml takes the place of sampling=default of stepvalue\n"
    assert printed(capsys, "label")[0]["sampling"]["rollouts"] == 8


@pytest.mark.parametrize(
    ("header", "sign"), [("", ""), ("# @package _global_\n", "+"), ("# A comment.\n# @package _global_\n\n", "")]
)
def test_an_experiment_changes_settings_and_options(header: str, sign: str, tmp_path: Path, capsys: Printed) -> None:
    text = (
        f"{header}defaults:\n  - override /policy: oracle\n  - override /estimator: fixed\nsampling: {{rollouts: 5}}\n"
    )
    folder = write(tmp_path, {"experiment/one": text})
    found, said = printed(capsys, "label", folder, f"{sign}experiment=one", "data.path=x")
    assert (
        found == printed(capsys, "label", "policy=oracle", "estimator=fixed", "sampling.rollouts=5", "data.path=x")[0]
    )
    found, said = printed(
        capsys, "label", folder, "experiment=one", "sampling.rollouts=6", "estimator=bisect", "data.path=x"
    )
    assert said == ""
    assert found["sampling"]["rollouts"] == 6
    assert found["estimator"]["name"] == "bisect"


@pytest.mark.parametrize(
    "text",
    [
        "policy: hf\npolicy.model: q\n",
        "policy: {kind: hf, model: q}\n",
        "policy: {model: q}\n",
        "policy.kind: hf\npolicy.model: q\n",
        "defaults: [policy: hf, _self_]\npolicy: {model: q}\n",
        "defaults: [override policy: hf]\npolicy: {model: q}\n",
        "defaults: [label, override /policy: hf, _self_]\npolicy: {model: q}\n",
        "defaults: [label_schema, /base]\npolicy: {model: q}\nsampling:\n",
    ],
)
def test_a_file_chooses_a_policy_as_a_command_line_does(text: str, tmp_path: Path, capsys: Printed) -> None:
    folder = write(tmp_path, {"my": text, "base": "policy: hf\n"})
    found, said = printed(capsys, "label", folder, "-cn", "my", "data.path=x")
    assert (found, said) == printed(capsys, "label", "policy=hf", "policy.model=q", "data.path=x")


def test_files_name_other_files_and_later_ones_win(tmp_path: Path, capsys: Printed) -> None:
    folder = write(
        tmp_path,
        {
            "base": "sampling: {rollouts: 1, temperature: 0.1, top_p: 0.1, max_tokens: 1}\npolicy: oracle\n",
            "my": "defaults: [base, _self_, experiment: e]\nsampling: {rollouts: 2, temperature: 0.2, top_p: 0.2}\n",
            "experiment/e": "defaults: [more]\nsampling: {rollouts: 3, temperature: 0.3}\n",
            "experiment/more": "sampling: {rollouts: 9, solutions: 7}\n",
            "experiment/other": "sampling: {rollouts: 6}\n",
        },
    )
    line = ["label", folder, "--config-name", "my", "data.path=x"]
    found, _ = printed(capsys, *line, "sampling.rollouts=4")
    sampling = found["sampling"]
    assert [sampling[key] for key in ("rollouts", "temperature", "top_p", "max_tokens", "solutions")] == [
        4,
        0.3,
        0.2,
        1,
        7,
    ]
    assert found["policy"]["kind"] == "oracle"
    found, _ = printed(capsys, *line, "experiment=other")
    assert [found["sampling"][key] for key in ("rollouts", "temperature", "solutions")] == [6, 0.2, 4]


def test_another_implementation_leaves_out_the_settings_of_the_one_in_the_file(tmp_path: Path, capsys: Printed) -> None:
    folder = write(
        tmp_path, {"my": "policy: {kind: hf, model: q, max_model_len: 99}\nestimator: {name: pooled, target_sd: 0.2}\n"}
    )
    line = ["label", folder, "--config-name=my", "data.path=x"]
    found, said = printed(capsys, *line, "policy=oracle", "estimator.name=fixed")
    assert found["policy"] == printed(capsys, "label", "policy=oracle")[0]["policy"]
    assert "target_sd" not in found["estimator"]
    assert f"{tmp_path}/my.yaml: its settings of policy have no effect, for policy=oracle is chosen instead" in said
    assert f"{tmp_path}/my.yaml: its settings of estimator have no effect, for estimator=fixed" in said
    found, said = printed(capsys, *line, "policy=hf")
    assert (found["policy"]["max_model_len"], said) == (99, "")


def test_a_format_of_another_file_keeps_its_settings_out(tmp_path: Path, capsys: Printed) -> None:
    folder = write(tmp_path, {"my": "format: preference\npreference: {margin: 0.5}\nrun_dir: x\nout: y\n"})
    assert printed(capsys, "export", folder, "--config-name", "my")[0]["preference"]["margin"] == 0.5
    found, said = printed(capsys, "export", folder, "--config-name", "my", "format=trl")
    assert "preference" not in found
    assert said.endswith("without effect, for format=preference, not for format=trl: preference.margin\n")


def test_interpolations_are_resolved(tmp_path: Path, capsys: Printed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLACE", "there")
    text = "run_dir: runs/${oc.env:PLACE}-${sampling.rollouts}\ndata: {path: '${run_dir}/x'}\npolicy: oracle\n"
    folder = write(tmp_path, {"my": text})
    found, _ = printed(capsys, "label", folder, "--config-name", "my", "sampling.rollouts=3")
    assert found["run_dir"] == "runs/${oc.env:PLACE}-${sampling.rollouts}"
    (tmp_path / "again.yaml").write_text(yaml.safe_dump(found))
    assert printed(capsys, "label", folder, "--config-name", "again")[0] == found


MISTAKES: list[tuple[dict[str, str], list[str], list[str]]] = [
    ({"my": "sampling: {rolouts: 3}"}, [], ["my.yaml: there is no setting sampling.rolouts: did you mean sampling.rollouts?"]),
    ({"my": "- a"}, [], ["my.yaml: this is no YAML mapping"]),
    ({"my": "a: b: c"}, [], ["my.yaml: this file cannot be read as YAML"]),
    ({"my": "sampling: {}\nsampling: {rollouts: 1}"}, [], ["my.yaml: ", "duplicate key sampling"]),
    ({"my": "sampling: 5"}, [], ["my.yaml: sampling is a section: give its settings below it, not 5"]),
    ({"my": "sampling: {stop: x}"}, [], ["my.yaml: sampling.stop is a list, write stop: [x]"]),
    ({"my": "sampling: {rollouts: many}"}, [], ["my.yaml: sampling.rollouts: Value 'many'", "Integer"]),
    ({"my": "sampling: {rollouts: 0}"}, [], ["my.yaml: sampling.rollouts=0 is out of range: it must be 1 to 99999"]),
    ({"my": "sampling: {rollouts: 5}"}, ["sampling.rollouts=0"], ["stepvalue: sampling.rollouts=0 is out of range"]),
    ({"my": "policy: {oracle: {_target_: os.system}}"}, [], ["my.yaml: _target_ names code to run"]),
    ({"my": "policy: {prompt: {examples: [{_target_: os.system}]}}"}, [], ["my.yaml: _target_ names code to run"]),
    ({"my": "policy: gpt"}, [], ["my.yaml: policy=gpt: there is no such option, choose from embedded, hf, "]),
    ({"my": "policy: {kind: gpt}"}, [], ["my.yaml: policy.kind=gpt: there is no such name, choose from embedded, hf, "]),
    ({"my": "policy: {kind: '${run_dir}'}"}, [], ["my.yaml: policy.kind: ${run_dir} is looked up before", "write the name"]),
    ({"my": "run_dir: ${nothing}"}, [], ["my.yaml: run_dir: Interpolation key 'nothing' not found"]),
    ({"my": "run_dir: ${nothing"}, [], ["my.yaml: run_dir: "]),
    ({"my": "policy: {openai: {urls: [http://h/v1]}}"}, [], ["my.yaml: policy.openai.urls=", "is for policy=openai, not for"]),
    ({"my": "defaults: [my]"}, [], ["my.yaml -> ", "my.yaml: each file names the next one in its defaults"]),
    ({"my": "defaults: [base]"}, [], ["base.yaml: there is no such file, choose from my"]),
    ({"my": "defaults: [override /polcy: hf]"}, [], ["my.yaml: defaults: there is no group polcy, did you mean policy?"]),
    ({"my": "defaults: [override /policy: hff]"}, [], ["my.yaml: policy=hff: there is no such option, did you mean hf?"]),
    ({"my": "defaults: [override /policy: hf]\npolicy: {kind: oracle}"}, [], ["policy.kind=oracle contradicts policy=hf"]),
    ({"my": "defaults: [override /policy: [hf]]"}, [], ["my.yaml: defaults: override /policy: ['hf'] is not the name of an"]),
    ({"my": "defaults: {policy: hf}"}, [], ["my.yaml: defaults is a list"]),
    ({"my": "defaults: [[x]]"}, [], ["my.yaml: defaults: ['x'] is neither the name of a file nor"]),
    ({"my": "# @package policy\nmodel: x"}, [], ["my.yaml: its first line makes it a part of policy"]),
    ({"other": ""}, [], ["my.yaml: there is no such file, choose from other"]),
    ({"my": "", "experiment/e": ""}, ["experiment=f"], ["experiment/f.yaml: there is no such file, choose from e"]),
    ({"my": ""}, ["experiment=f"], ["experiment/f.yaml: there is no such file, nor any other *.yaml in "]),
    ({"my": "", "experiment/e": ""}, ["experiment=e,e"], ["experiment=e,e: name one experiment"]),
    ({"my": "", "policy/p": "kind: hf\nmodell: m"}, ["policy=p"], ["policy/p.yaml: there is no setting policy.modell"]),
    ({"my": "", "policy/p": "kind: oracle\nmodel: m"}, ["policy=p"], ["policy/p.yaml: policy.model=m is for policy=hf and"]),
    ({"my": "", "policy/p": "max_model_len: 99"}, ["policy=p"], ["it does not say which policy", "add kind: NAME"]),
    ({"my": "", "policy/p": "kind: oracle\nmax_model_len: x"}, ["policy=p"], ["p.yaml: policy.max_model_len: Value 'x'"]),
    ({"my": "", "policy/p": "kind: {_target_: x}"}, ["policy=p"], ["policy/p.yaml: _target_ names code"]),
    ({"my": "", "policy/p": "defaults: [hff]"}, ["policy=p"], ["In 'policy/p': Could not load 'policy/hff', did you mean hf?"]),
    ({"my": "", "policy/hf": "defaults: [hf]"}, ["policy=hf"], ["an option names itself in its defaults list"]),
    ({"my": "", "policy/p": "defaults: [override /estimator: fixed]"}, ["policy=p"], ["choose estimator in an experiment"]),
]  # fmt: skip


@pytest.mark.parametrize(("files", "words", "said"), MISTAKES, ids=lambda value: str(value)[:50])
def test_a_mistake_in_a_file_is_one_line_with_its_name(
    files: dict[str, str], words: list[str], said: list[str], tmp_path: Path, capsys: Printed
) -> None:
    line = refused(capsys, "label", write(tmp_path, files), "--config-name", "my", "data.path=x", *words)
    assert all(part in line for part in said), line


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["label", "--config-dir", "nowhere"], "--config-dir nowhere: there is no such folder"),
        (
            ["label", "--config-name", "run_dir=x"],
            "--config-name is followed by the setting run_dir=x: write --config-name NAME",
        ),
        (["label", "--config-name", "my"], "--config-name my needs the folder of the file too: --config-dir FOLDER"),
        (["label", "experiment=e"], "experiment=e needs the folder of your settings: --config-dir FOLDER"),
        (["label", "--config-dir"], "--config-dir takes a value: --config-dir FOLDER"),
        (["label", "--config-dir="], "--config-dir takes a value: --config-dir FOLDER"),
    ],
)
def test_what_is_not_there_is_named(arguments: list[str], said: str, capsys: Printed) -> None:
    assert said in refused(capsys, *arguments)


RUNS = [
    ["policy=oracle", "policy.oracle.seed=5", "sampling.temperature=0.3", "estimator=fixed"],
    ["policy=hf", "policy.model=a/b", "estimator=first_success", "sampling.stop=[x]", "run.unit_problems=7"],
    ["policy=openai", "policy.model=m", SERVER, "estimator=bisect", "data.columns.problem=q"],
    ["policy=embedded", "grader=code", "grader.timeout_is=ungraded", "policy.prompt.style=plain"],
    ["policy=hf", "policy.model=a/b", "policy.prompt.style=plain", "data=gsm8k"],
]


def grown(run_dir: Path, *words: str) -> LabelConfig:
    """The settings with which `grow` continues a run."""
    return label_part(compose(GROW, [f"run_dir={run_dir}", *words]).settings())


@pytest.mark.parametrize("run", RUNS, ids=" ".join)
def test_a_record_alone_has_what_determines_the_labels(run: Sequence[str], tmp_path: Path) -> None:
    recorded = identity(compose_label([*run, "data.path=x"]), "digest")
    claim(LocalStorage(tmp_path), recorded)
    servers = [word for word in run if word == SERVER]
    assert identity(grown(tmp_path, *servers), "digest") == recorded


def started(run_dir: Path, config: LabelConfig, **changes: Any) -> None:
    """Record a run with these settings, and a start of it."""
    storage, recorded = LocalStorage(run_dir), identity(config, "digest")
    claim(storage, recorded)
    write_start(storage, start(settings=start_settings(config, recorded), ended="done", **changes))


@pytest.mark.parametrize("run", RUNS, ids=" ".join)
def test_a_run_is_continued_by_its_directory_alone(
    run: Sequence[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    freely = ["sampling.rollouts=3", "run.lock=false", "cluster.workers=2", "plan.gpu_hour_price=1.5"]
    monkeypatch.chdir(tmp_path)
    config = compose_label([*run, *freely, "data.path=rows/*.jsonl"])
    started(tmp_path / "old", config)
    monkeypatch.chdir("/")
    data = replace(config.data, path=f"{tmp_path}/rows/*.jsonl")
    assert grown(tmp_path / "old") == replace(config, run_dir=f"{tmp_path}/old", data=data)


def test_the_last_start_that_ended_well_is_continued(tmp_path: Path) -> None:
    base = ["policy=oracle", "data.path=/x"]
    for at, (rollouts, ended) in enumerate([(3, "done"), (5, "done"), (7, "failed")]):
        config = compose_label([*base, f"sampling.rollouts={rollouts}"])
        storage, recorded = LocalStorage(tmp_path), identity(config, "digest")
        claim(storage, recorded)
        write_start(storage, start(1.8e9 + at, settings=start_settings(config, recorded), ended=ended))
    found = grown(tmp_path)
    assert (found.sampling.rollouts, found.data.path) == (5, "/x")


def test_rows_of_a_python_call_keep_a_name_of_such_rows(tmp_path: Path) -> None:
    started(tmp_path, compose_label(["policy=oracle", f"data.path=/tmp/{GIVEN_FOLDER}x/{GIVEN_FILE}"]))
    assert is_given(grown(tmp_path).data.path)


def test_the_command_line_and_files_win_over_the_run_that_is_continued(tmp_path: Path) -> None:
    run = ["policy=oracle", "estimator=bisect", "sampling.temperature=0.3", "sampling.top_p=0.5"]
    started(tmp_path / "old", compose_label([*run, "data.path=/x", "sampling.rollouts=3"]))
    write(tmp_path, {"experiment/e": "sampling: {top_p: 0.7}"})
    line = [f"run_dir={tmp_path}/old", "experiment=e", "data=sample", "sampling.temperature=0.4", "estimator=fixed"]
    made = compose(GROW, line, Given(folder=tmp_path))
    found = made.settings()
    assert (found.sampling.temperature, found.sampling.top_p, found.sampling.rollouts) == (0.4, 0.7, 3)
    assert (found.estimator.name, found.policy.kind, found.data.path) == ("fixed", "oracle", "sample")
    assert any(
        "its settings of estimator have no effect, for estimator=fixed is chosen instead" in each
        for each in made.remarks
    )


keys = st.from_regex(re.compile(r"[a-z]{1,3}"), fullmatch=True)
contents = st.recursive(
    st.none() | st.integers() | st.text() | st.lists(st.integers()),
    lambda inner: st.dictionaries(keys, inner, min_size=1),
    max_leaves=8,
)


@given(st.dictionaries(keys, contents))
def test_dotted_keys_hold_what_nested_ones_do(content: dict[str, Any]) -> None:
    assert nested(flat(content)) == content


@settings(max_examples=8)
@given(
    st.sampled_from([0.125, 0.25, 1.0]),
    st.integers(1, 99_999),
    st.sampled_from(["fixed", "bisect", "pooled", "first_success"]),
    st.text(st.characters(exclude_categories=("Cs", "Cc"), exclude_characters="$\\"), min_size=1),
)
def test_any_settings_survive_a_file(
    tmp_path_factory: pytest.TempPathFactory, temperature: float, rollouts: int, estimator: str, text: str
) -> None:
    folder = tmp_path_factory.mktemp("own")
    content = {
        "policy": {"kind": "oracle", "prompt": {"instruction": text}},
        "sampling": {"temperature": temperature, "rollouts": rollouts},
        "estimator": estimator,
    }
    # As PyYAML writes it, `0E0` without quotes would be a number for Hydra.
    (folder / "my.yaml").write_text(OmegaConf.to_yaml(content))
    made = compose(LABEL, ["data.path=x"], Given(folder=folder, name="my")).settings()
    assert made.policy.prompt.instruction == text
    assert (made.sampling.temperature, made.sampling.rollouts) == (temperature, rollouts)
    assert made.estimator.name == estimator


def test_a_plain_command_reads_no_file_of_a_user(monkeypatch: pytest.MonkeyPatch) -> None:
    def read(file: Path) -> object:
        raise AssertionError(f"{file} is read")

    monkeypatch.setattr("pipeline.cli.compose.read_yaml", read)
    assert compose_label(["policy=oracle", "data.path=x"]).policy.kind == "oracle"


def test_the_example_of_the_document_composes(capsys: Printed) -> None:
    text = (ROOT / "pipeline" / "cli" / "README.md").read_text("utf-8")
    lines = [line for line in text.splitlines() if line.startswith("python -m pipeline label --config-dir tests/own")]
    assert len(lines) >= 3
    for line in lines:
        found, _ = printed(capsys, *shlex.split(line.partition(" >")[0])[3:])
        assert found["policy"]["model"] == "Qwen/Qwen2.5-Math-7B-Instruct"


def test_an_experiment_without_a_name_is_refused() -> None:
    with pytest.raises(UsageError, match="name one experiment"):
        compose_label(["experiment="])


texts = st.text(
    st.characters(exclude_categories=("Cs", "Cc")) | st.sampled_from("'\"\\,[]{}=<>|$:# "), min_size=1, max_size=12
)


@given(texts)
def test_any_text_can_be_quoted(text: str) -> None:
    assert OverridesParser.create().parse_override(f"placeholder={quote(text)}").value() == text


@given(
    st.text(st.characters(exclude_categories=("Cs", "Cc"), exclude_characters="$"))
    | st.sampled_from(["1e5", "inf", "a=1,b"])
)
def test_a_text_setting_survives_as_a_word(text: str) -> None:
    made = compose_label(["data.path=x", "policy=oracle", setting_word("policy.prompt.instruction", text)])
    assert made.policy.prompt.instruction == text


@pytest.mark.parametrize(
    ("value", "word"),
    [
        (None, "a="),
        (True, "a=true"),
        (0.3, "a=0.3"),
        ("any", "a=any"),
        ("null", "a='null'"),
        (["x", "y, z", None, 1], "a=[x,'y, z',null,1]"),
    ],
)
def test_a_setting_as_a_word(value: object, word: str) -> None:
    assert setting_word("a", value) == word
