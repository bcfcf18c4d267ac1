"""The command line: every file of `conf/` composes, every mistake is one line that says what to do, nothing starts for it."""

import json
import os
from pathlib import Path

import pytest
import ray
import yaml

import pipeline
from pipeline.__main__ import main
from pipeline.cli import COMMANDS
from pipeline.cli.compose import compose
from pipeline.cli.opinions import CHECK
from pipeline.cli.search import SEARCH
from pipeline.config.choices import Layout, PromptStyle, Splitter
from pipeline.config.label import GradeConfig, LabelConfig
from pipeline.core.tables import SCHEMA_VERSION
from pipeline.engines.registry import ENGINES
from pipeline.engines.settings import HfConfig
from pipeline.judges.registry import JUDGES
from pipeline.pickers.registry import PICKERS
from pipeline.scorers.registry import SCORERS
from pipeline.searches.registry import SEARCHES
from pipeline.storage.local import LocalStorage
from pipeline.storage.run_record import claim
from pipeline.verifiers.registry import VERIFIERS
from tests.settings import compose_label

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("ours_alone")]

CONF = Path(__file__).parents[1] / "conf"
OPTIONS = sorted((path.parent.name, path.stem) for path in CONF.glob("*/*.yaml"))
LABEL_GROUPS = set(LabelConfig.__dataclass_fields__) - {"run_dir", "budget", "limit"}
FILLED = ["data.path=x", "run_dir=x"]
SERVER = "policy.openai.urls=[http://127.0.0.1:8000/v1]"

Printed = pytest.CaptureFixture[str]


def refused(capsys: Printed, *arguments: str) -> str:
    """The one line that a wrong command line is answered with."""
    assert main(arguments) == 2
    shown = capsys.readouterr()
    assert shown.err.endswith("\n")
    assert shown.err.count("\n") == 1
    assert shown.err.startswith("stepvalue: ")
    assert "Traceback" not in shown.err + shown.out
    return shown.err.removeprefix("stepvalue: ").rstrip("\n")


@pytest.mark.parametrize(
    "arguments", [["-h"], ["label", "-h"], ["status", "--cfg", "job"], ["status"], ["status", "json=true"], ["audit"]]
)
def test_nobody_who_reads_the_output_is_no_traceback(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Printed
) -> None:
    claim(LocalStorage(tmp_path), {"schema": SCHEMA_VERSION, "staged_input": "a" * 20}, alone=True)
    reader, writer = os.pipe()
    os.close(reader)
    with open(writer, "w") as unread, monkeypatch.context() as patched:
        patched.setattr("sys.stdout", unread)
        with pytest.raises(SystemExit) as ended:
            main([*arguments, f"run_dir={tmp_path}"] if "-h" not in arguments else arguments)
    assert ended.value.code == 1
    assert capsys.readouterr().err == ""


def test_the_version_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"stepvalue {pipeline.__version__}\n"


def test_conf_holds_a_group_for_every_section_and_every_policy() -> None:
    assert {option for group, option in OPTIONS if group == "policy"} == set(ENGINES.ours)
    assert {option for group, option in OPTIONS if group == "scorer"} == set(SCORERS.ours)
    assert {option for group, option in OPTIONS if group == "judge"} == set(JUDGES.ours)
    assert {option for group, option in OPTIONS if group == "verifier"} == set(VERIFIERS.ours)
    assert {option for group, option in OPTIONS if group == "search"} == set(SEARCHES.ours)
    assert {option for group, option in OPTIONS if group == "grow"} == set(PICKERS.ours)
    assert {group for group, _ in OPTIONS} == {*LABEL_GROUPS, "scorer", "judge", "verifier", "search", "grow"}
    assert sorted(path.name for path in CONF.glob("*.yaml")) == [f"{name}.yaml" for name in sorted(COMMANDS)]


@pytest.mark.parametrize(
    ("given", "same"),
    [
        (["search.method=mcts", "search.exploration=2"], ["search=mcts", "search.exploration=2"]),
        (["search.method=best_of_n"], []),
        (["search=dvts", "search.method='dvts'"], ["search=dvts"]),
        (["scorer.kind=oracle", "policy.kind=oracle"], ["scorer=oracle", "policy=oracle"]),
    ],
)
def test_the_name_of_an_implementation_chooses_its_option(given: list[str], same: list[str]) -> None:
    common = ["scorer.model=x", "data=sample", "run_dir=x"]
    common = [word for word in common if word != "scorer.model=x" or "scorer.kind=oracle" not in given]
    assert compose(SEARCH, [*given, *common]).settings() == compose(SEARCH, [*same, *common]).settings()


def test_the_default_is_the_embedded_model_with_its_prompt() -> None:
    config = compose_label(["data=sample", "run_dir=x"])
    assert config.policy.kind == "embedded"
    assert config.data.path == "sample"
    assert config.policy.prompt.style is PromptStyle.chat
    assert len(config.policy.prompt.examples) == 3
    assert all(example.problem and example.solution for example in config.policy.prompt.examples)


def test_presets_read_their_data_sets() -> None:
    gsm8k = compose_label(["data=gsm8k", *FILLED]).data
    assert (gsm8k.columns.problem, gsm8k.columns.answer, gsm8k.columns.solution) == ("question", "answer", "answer")
    assert gsm8k.answer_in_text
    assert compose_label(["data=math", *FILLED]).data.splitter is Splitter.sentence
    for layout in (Layout.prm800k, Layout.processbench, Layout.math_shepherd, Layout.prmbench):
        assert compose_label([f"data={layout.value}", *FILLED]).data.layout is layout


def test_a_relative_table_is_that_of_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers have other working folders, and so have later commands on the run."""
    monkeypatch.chdir(tmp_path)
    graders = [compose_label([*FILLED, "grader=facts", f"grader.table={name}"]).grader for name in ("a.csv", "sample")]
    verifier = compose(CHECK, ["run_dir=x", "checks=[facts]", "verifier.table=a.csv"]).settings().verifier
    assert [each.table for each in (*graders, verifier)] == [str(tmp_path / "a.csv"), "sample", str(tmp_path / "a.csv")]


def test_a_path_alone_is_the_input_or_the_run_directory(tmp_path: Path) -> None:
    assert compose_label(["[a.csv,b/*.parquet]", "run_dir=x"]).data.path == "[a.csv,b/*.parquet]"
    assert compose_label([str(tmp_path), "run_dir=x"]).data.path == str(tmp_path)
    assert compose(COMMANDS["status"], [str(tmp_path)]).settings().run_dir == str(tmp_path)


def test_naming_a_model_chooses_the_policy_that_serves_it() -> None:
    config = compose_label(["policy.model=org/name", "data.path=x", "run_dir=x"])
    assert isinstance(config.policy, HfConfig)
    assert (config.policy.kind, config.policy.model) == ("hf", "org/name")
    assert "boxed" in config.policy.prompt.instruction
    assert config.policy.prompt.examples == []
    assert compose_label(["policy=oracle", *FILLED]).policy.kind == "oracle"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["lable"], ["there is no command 'lable'", "did you mean label?", f"{', '.join(COMMANDS)}, completion ("]),
        (["label", "checks=[arithmetic]", *FILLED], ["there is no setting checks of `label`: it is one of `check`"]),
        (["grade", "procceses=2"], ["no setting procceses", "did you mean grader.processes?"]),
        (["grade", "output=''"], ["output is empty: give output=FILE"]),
        (["grade", "input=null"], ["input"]),
        (["grade", "policy.kind=oracle"], ["no setting policy.kind"]),
        (["label", "data.path=null"], ["data.path"]),
        (["label", "policy.prompt=null", *FILLED], ["policy.prompt"]),
        (["label", "sampling={rollouts: 3}"], ["no such option, choose from default"]),
        (
            ["label", "data=my.csv", *FILLED],
            ["data=my.csv: there is no such option", "for a file give data.path=my.csv"],
        ),
        (["label", "my.csv", "run_dir=x"], ["data.path: there is no file or folder my.csv"]),
        (["label", "mine", *FILLED], ["'mine' cannot be read: settings are written key=value"]),
        (["search", "search.method=baem"], ["search=baem: there is no such option, did you mean beam?"]),
        (["label", "policy=openai", SERVER, *FILLED], ["policy.model"]),
        (["label", "policy=openai", "policy.base_url=x", *FILLED], ["did you mean policy.openai.urls?"]),
        (
            ["label", "policy=hf", "policy.model=x", "policy.tokenizer=y", *FILLED],
            ["policy.tokenizer=y is for policy=openai"],
        ),
        (
            [
                "label",
                "policy=openai",
                "policy.model=x",
                SERVER,
                "policy.openai.extensions=false",
                "sampling.top_k=5",
                *FILLED,
            ],
            ["sampling.top_k=5", "policy.openai.extensions=true"],
        ),
        *(
            (
                [command, "policy=oracle", f"{key}={count}", "sampling.temperature=0", *more],
                [f"{key}={count} with sampling.temperature=0 are equal {what}: leave ", f"out, or set {key}=1"],
            )
            for command, key, count, what, *more in (
                ("label", "sampling.rollouts", 8, "rollouts", *FILLED),
                ("plan", "sampling.rollouts", 2, "rollouts", "data.path=x"),
                ("search", "search.n", 2, "chains", "search=majority", *FILLED),
            )
        ),
        (
            ["label", "policy=oracle", "estimator=pooled", "sampling.rollouts=1", "sampling.temperature=0", *FILLED],
            ["estimator.name=pooled samples some prefixes several times", "set estimator=fixed"],
        ),
        (["label", "++sampling.rollouts=1"], ["without a sign in front"]),
        (["label", "~policy"], ["~policy: settings are written key=value"]),
        (["label", "sampling.rollouts=range(1,5)"], ["one value at a time"]),
        (["label", "policy=oracle,hf"], ["one value at a time"]),
        (["label", "sampling.stop=["], ["settings are written key=value"]),
        (["label", "data.path=a\nb"], ["settings are written key=value"]),
        (
            ["label", "--multrun"],
            [
                "there is no option --multrun: did you mean --multirun? Settings are written key=value",
                "--multirun, --config-dir, --config-name, -h, --help-all and --cfg",
            ],
        ),
        (["label", "--prune"], ["there is no option --prune: settings are written"]),
        (["label", "--rollouts", "4"], ["did you mean sampling.rollouts=...? Settings are written"]),
        (["label", "--run-dir=x"], ["did you mean run_dir=x? Settings are written"]),
        (["export", "--overwrit"], ["did you mean --overwrite?"]),
        (["audit", "prune=perhaps", "run_dir=x"], ["prune", "perhaps", "bool"]),
        (["regrade", "run_dir=x", "grader.answer_pattern='('"], ["grader.answer_pattern is not a regular expression"]),
        (["label", "--cfg", "hydra"], ["--cfg job"]),
        (["label", "hydra.run.dir=x"], ["no setting hydra.run.dir"]),
        (["label", "hydra/launcher=joblib"], ["no setting hydra/launcher"]),
        (["label", "run_dir=${nothing}", "data.path=x"], ["run_dir", "nothing"]),
        (["label", "data.path=${data.path}", "run_dir=x"], ["data.path"]),
        (["label", "_target_=os.system"], ["no setting _target_"]),
        (["label", "policy._target_=os.system"], ["no setting policy._target_"]),
        (["label", "policy.oracle={_target_: os.system}", *FILLED], ["_target_"]),
        (["label", "policy.prompt.examples=[{_target_: os.system}]", *FILLED], ["_target_"]),
        (["label", "+policy._target_=os.system"], ["without a sign in front"]),
        (["label", "policy.kind.__class__=x"], ["no setting policy.kind.__class__"]),
    ],
    ids=lambda value: " ".join(value)[:60].encode("ascii", "replace").decode() if isinstance(value, list) else None,
)
def test_a_mistake_is_one_line_that_names_it(arguments: list[str], said: list[str], capsys: Printed) -> None:
    """Others, word for word, are in `tests/guard/stored/refused.json`."""
    line = refused(capsys, *arguments)
    assert all(part in line for part in said), line


def test_markup_in_an_argument_is_shown_as_it_is(capsys: Printed) -> None:
    assert "'[red]x[/red]'" in refused(capsys, "[red]x[/red]")
    assert "nofile[/]" in refused(capsys, "label", "policy=oracle", "data.path='nofile[/]'", "run_dir=x")


def test_help_needs_nothing_and_names_everything(capsys: Printed) -> None:
    for word in ("-h", "--help", "help"):
        assert main([word]) == 0
        assert "label" in capsys.readouterr().out
    assert main(["label", "--help-all"]) == 0
    shown = capsys.readouterr()
    assert shown.err == ""
    for group, option in (pair for pair in OPTIONS if pair[0] in LABEL_GROUPS):
        (line,) = [line for line in shown.out.splitlines() if line.startswith(f"  {group} ")]
        assert option in line.split()[1:]
    assert "python -m pipeline label" in shown.out
    assert main(["label", "policy=oracle", "--help"]) == 0
    assert "python -m pipeline label" in capsys.readouterr().out


def test_no_command_is_wrong_usage_and_shows_the_help(capsys: Printed) -> None:
    assert main([]) == 2
    assert "usage:" in capsys.readouterr().out


@pytest.mark.parametrize("ask", [["--cfg", "job"], ["-c", "job"], ["--cfg=job"]])
def test_cfg_prints_the_settings_that_would_run(ask: list[str], capsys: Printed) -> None:
    assert main(["label", "sampling.rollouts=17", "data=gsm8k", *ask]) == 0
    shown = capsys.readouterr()
    settings = yaml.safe_load(shown.out)
    assert shown.err == ""
    assert settings["sampling"]["rollouts"] == 17
    assert settings["data"]["columns"]["problem"] == "question"
    assert settings["run_dir"] is None
    assert settings.keys() == set(LabelConfig.__dataclass_fields__)


def test_grade_explains_itself_with_its_own_groups_and_settings(capsys: Printed) -> None:
    assert main(["grade", "--help-all"]) == 0
    shown = capsys.readouterr().out
    assert "python -m pipeline grade input=" in shown
    assert "  grader     code default" in shown
    assert "\n  policy " not in shown
    assert main(["grade", "grader.processes=3", "output=x.jsonl", "--cfg", "job"]) == 0
    settings = yaml.safe_load(capsys.readouterr().out)
    assert settings.keys() == set(GradeConfig.__dataclass_fields__)
    assert (settings["input"], settings["output"], settings["grader"]["processes"]) == ("-", "x.jsonl", 3)


def test_a_flag_is_a_setting_and_stands_in_the_help(capsys: Printed) -> None:
    assert main(["audit", "--prune", "run_dir=x", "--cfg", "job"]) == 0
    assert yaml.safe_load(capsys.readouterr().out) == {"run_dir": "x", "prune": True, "lock": True}
    assert main(["audit", "-h"]) == 0
    assert "options: --prune, --cfg job" in capsys.readouterr().out
    assert main(["audit", "--help-all"]) == 0
    shown = capsys.readouterr().out
    assert "  --prune              prune=true\n" in shown
    assert "groups" not in shown
    assert main(["relabel", "--help-all"]) == 0
    assert "--prune" not in capsys.readouterr().out


@pytest.mark.parametrize(("group", "option"), [("grader", "code"), ("grader", "default"), ("estimator", "fixed")])
def test_groups_can_be_chosen_for_a_change(group: str, option: str, capsys: Printed) -> None:
    assert main(["regrade", "run_dir=x", f"{group}={option}", "--cfg", "job"]) == 0
    settings = yaml.safe_load(capsys.readouterr().out)
    written = yaml.safe_load((CONF / group / f"{option}.yaml").read_text())
    assert {name: settings[group][name] for name in written} == written
    assert all(value is None for name, value in settings[group].items() if name not in written)


def files(folder: Path) -> dict[str, bytes | None]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() if path.is_file() else None for path in folder.rglob("*")
    }


def label(data: Path, run_dir: Path) -> list[str]:
    return ["label", "policy=oracle", f"data.path={data}", f"run_dir={run_dir}"]


GOOD = json.dumps({"problem": "1+1?", "answer": "2", "steps": ["It is 2."]})


def test_a_missing_input_is_named(tmp_path: Path, capsys: Printed) -> None:
    line = refused(capsys, *label(tmp_path / "rows.jsonl", tmp_path / "run"))
    assert f"there is no file or folder {tmp_path / 'rows.jsonl'}" in line
    assert files(tmp_path) == {}
    assert not ray.is_initialized()


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("rows.csv", "problem,answer\n", "rows.csv holds no rows"),
        ("rows.tsv", "problem\tanswer\n", "rows.tsv must end in one of .jsonl"),
        ("rows.jsonl", "", "rows.jsonl holds no rows"),
        ("rows.jsonl", "\n \n", "rows.jsonl holds no rows"),
    ],
)
def test_an_input_without_rows_or_of_another_kind_is_named(
    name: str, content: str, said: str, tmp_path: Path, capsys: Printed
) -> None:
    (tmp_path / name).write_text(content)
    assert said in refused(capsys, *label(tmp_path / name, tmp_path / "run"))
    assert name != "rows.tsv" or not (tmp_path / "run").exists()
    assert not ray.is_initialized()


def test_where_nothing_can_be_used_the_first_lines_and_reasons_are_reported(tmp_path: Path, capsys: Printed) -> None:
    rows = ["{", json.dumps({"question": "1+1?", "answer": "2"}), json.dumps({"problem": "1+1?", "steps": ["2"]})]
    (tmp_path / "rows.jsonl").write_text("\n".join(rows))
    line = refused(capsys, *label(tmp_path / "rows.jsonl", tmp_path / "run"))
    assert "none of the 3 rows" in line
    assert "rows.jsonl:1: The line is not JSON" in line
    assert "rows.jsonl:2: " in line
    assert "problem" in line
    assert not ray.is_initialized()


@pytest.mark.parametrize("command", ["label", "plan"])
def test_greedy_decoding_writes_one_chain_of_a_row_without_a_chain(
    command: str, tmp_path: Path, capsys: Printed
) -> None:
    rows = [GOOD, json.dumps({"problem": "2+2?", "answer": "4"})]
    (tmp_path / "rows.jsonl").write_text("\n".join(rows))
    greedy = ["estimator=fixed", "sampling.temperature=0", "sampling.rollouts=1"]
    assert main([command, *label(tmp_path / "rows.jsonl", tmp_path / "run")[1:], *greedy]) == 2
    said = capsys.readouterr().err
    assert "rows.jsonl:2 has no chain: sampling.solutions=4 with sampling.temperature=0 are equal chains" in said
    assert not ray.is_initialized()


def test_a_mended_input_can_use_the_run_dir_of_the_broken_one(tmp_path: Path, capsys: Printed) -> None:
    """The second start gets as far as its own mistake: the first has not taken the directory for itself."""
    (tmp_path / "rows.jsonl").write_text("{")
    refused(capsys, *label(tmp_path / "rows.jsonl", tmp_path / "run"))
    (tmp_path / "rows.jsonl").write_text("[")
    assert "none of the 1 rows" in refused(capsys, *label(tmp_path / "rows.jsonl", tmp_path / "run"))


@pytest.mark.parametrize(
    ("theirs", "run_dir", "said"),
    [
        ("notes.txt", "notes.txt", "run_dir={}/notes.txt"),
        ("notes.txt", "notes.txt/deeper", "run_dir={}/notes.txt"),
        ("home/thesis.tex", "home", "contains other files (thesis.tex"),
        ("home/labels/a.parquet", "home", "contains other files (labels"),
    ],
)
def test_a_run_dir_that_is_a_file_or_has_other_files_is_left_alone(
    theirs: str, run_dir: str, said: str, tmp_path: Path, capsys: Printed
) -> None:
    (tmp_path / "rows.jsonl").write_text(GOOD)
    (tmp_path / theirs).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / theirs).write_text("mine")
    before = files(tmp_path)
    assert said.format(tmp_path) in refused(capsys, *label(tmp_path / "rows.jsonl", tmp_path / run_dir))
    assert files(tmp_path) == before
    assert not ray.is_initialized()


@pytest.mark.parametrize("mark", ["<|fim_pad|>", "<extra_0>", "ки", "[PRM]", "日", "{x}", "\\n\\n", "a'b"])
def test_a_setting_that_is_a_text_takes_any(mark: str, capsys: Printed) -> None:
    assert main(["export", "--cfg", "job", "run_dir=x", "format=openrlhf", "out=y", f"placeholder={mark}"]) == 0
    assert yaml.safe_load(capsys.readouterr().out)["placeholder"] == mark
