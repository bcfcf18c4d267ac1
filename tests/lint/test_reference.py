"""The reference of settings: all of them, each with its meaning, and the pages in `conf/` are what the schemas say."""

import re

import pytest
import yaml

from pipeline.__main__ import main
from pipeline.cli import COMMANDS
from pipeline.cli.defaults import defaults_of
from pipeline.cli.options import groups
from pipeline.cli.reference import NO_DEFAULT, command_settings, pages, section_meanings
from pipeline.runtime.objects import REGISTRIES
from tests.conftest import ROOT
from tests.guard.lines import REQUIRED, dotted
from tests.lint.documents import known

CONF = ROOT / "conf"
LONGEST = 370
"""Lines of a page, so that it can be read."""


def test_the_pages_are_what_the_schemas_say() -> None:
    stored = {path.relative_to(CONF).as_posix(): path.read_text("utf-8") for path in CONF.rglob("*.md")}
    assert stored == pages(), "generate them again: python -m pipeline.cli.reference"
    assert max(len(text.splitlines()) for text in stored.values()) <= LONGEST


@pytest.mark.parametrize("name", COMMANDS)
def test_every_setting_of_a_command_is_on_a_page(name: str) -> None:
    rows = "".join(pages().values()).splitlines()
    # The table of options says which option a command takes by default.
    by_option = {f"{section}.{base.CHOSEN_BY}" for section, (base, _) in REGISTRIES.items()}
    for _, found in command_settings(COMMANDS[name]):
        for setting in (each for each in found if each.key not in by_option):
            found_in = [row for row in rows if row.startswith(f"| `{setting.key}` | {setting.values} | ")]
            assert any(f"`{setting.default}`" in row.split(" | ")[2] for row in found_in), setting.key


@pytest.mark.parametrize("name", COMMANDS)
def test_every_setting_is_there_with_its_meaning(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    printed = [setting for _, found in command_settings(COMMANDS[name]) for setting in found]
    assert main([name, *REQUIRED[name].split(), "--cfg", "job"]) == 0
    composed = dotted(yaml.safe_load(capsys.readouterr().out))
    # A list of sections is one setting.
    assert set(composed) <= {setting.key for setting in printed}
    assert [setting.key for setting in printed if not setting.meaning] == []
    assert main([name, "--help-all"]) == 0
    shown = capsys.readouterr().out
    assert all(f"  {setting.key} = " in shown for setting in printed)


def test_an_option_reports_what_its_file_sets() -> None:
    made = pages()
    for file in CONF.glob("*/*.yaml"):
        assert f"| `{file.parent.name}={file.stem}`" in made[f"{file.parent.name}/README.md"]


NEEDED = {
    "policy=hf": ["policy.model=m"],
    "policy=openai": ["policy.model=m", "policy.openai.urls=[http://host:8000/v1]"],
}
OPTIONS = [(name, "") for name in COMMANDS] + [
    ("label", f"{group}={option}") for group, options in groups(COMMANDS["label"]).items() for option in options
]


@pytest.mark.parametrize(("name", "option"), OPTIONS)
def test_a_default_is_the_value_that_a_command_composes(
    name: str, option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A required setting is left out: it has no value, or an empty one that the implementation refuses."""
    group, _, chosen = option.partition("=")
    defaults = defaults_of(COMMANDS[name], plugins=True)
    values = defaults.by_option[group, chosen] if option else defaults.usual
    given = [*REQUIRED[name].split(), *NEEDED.get(option, [])]
    assert main([name, *([option] if option else []), *given, "--cfg", "job"]) == 0
    composed = dotted(yaml.safe_load(capsys.readouterr().out))
    left_out = {word.partition("=")[0] for word in given} | {key for key in values if values[key] == NO_DEFAULT}
    assert {key: composed.get(key) for key in values if key not in left_out} == {
        key: value for key, value in values.items() if key not in left_out
    }


@pytest.mark.parametrize(
    ("key", "cell"),
    [
        ("estimator.rule", "`lasting_drop`; `any` with `bisect`, `first_success`"),
        ("run.unit_problems", "`4`; `32` with `policy=hf`, `policy=openai`, `policy=oracle`"),
        ("policy.openai.choices", "`1`"),
        ("grader.suite_seconds", "`120.0`"),
    ],
)
def test_a_page_has_the_default_and_the_values_of_other_options(key: str, cell: str) -> None:
    rows = "".join(pages().values()).splitlines()
    (row, *_) = [row for row in rows if row.startswith(f"| `{key}` | ")]
    assert row.split(" | ")[2] == cell


def test_an_option_that_commands_take_by_default_is_marked() -> None:
    made = pages()
    for group, option, mark in (
        ("estimator", "pooled", " (default)"),
        ("policy", "embedded", " (default)"),
        ("policy", "hf", " (default of `judge`)"),
        ("data", "rows", " (default)"),
        ("data", "processbench", " (default of `agree`)"),
        ("data", "sample", " (default of `doctor`)"),
    ):
        assert f"| `{group}={option}`{mark} | " in made[f"{group}/README.md"]


def test_all_help_has_the_default_and_the_values_of_other_options(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["label", "--help-all"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert " estimator.rule = lasting_drop any threshold " in text
    assert " How values become labels. With estimator=bisect or first_success: any. " in text


NO_SETTINGS = re.compile(r"[\w.]+\.(json|jsonl|html|py|md|parquet|yaml|gz|zst)")


@pytest.mark.parametrize("name", COMMANDS)
def test_a_dotted_name_in_help_is_a_setting(name: str) -> None:
    """Users do not know the modules of this package."""
    command = COMMANDS[name]
    texts = [command.summary, command.about, command.notes, *section_meanings(command).values()]
    texts += [setting.meaning for _, found in command_settings(command) for setting in found]
    every = known()
    names = {word for text in texts for word in re.findall(r"(?<![\w./-])[a-z_]+(?:\.[a-z_]+)+(?![\w.]*\w)", text)}
    assert {word for word in names if not NO_SETTINGS.fullmatch(word)} <= every.choices.keys() | every.sections
