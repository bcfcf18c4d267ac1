"""The reference of settings: all of them, each with its meaning, and the pages in `conf/` are what the schemas say."""

import pytest
import yaml

from pipeline.__main__ import main
from pipeline.cli import COMMANDS
from pipeline.cli.reference import command_settings, pages
from tests.conftest import ROOT
from tests.guard.lines import REQUIRED, dotted

CONF = ROOT / "conf"
LONGEST = 350
"""Lines of a page, so that it can be read."""


def test_the_pages_are_what_the_schemas_say() -> None:
    stored = {path.relative_to(CONF).as_posix(): path.read_text("utf-8") for path in CONF.rglob("*.md")}
    assert stored == pages(), "generate them again: python -m pipeline.cli.reference"
    assert max(len(text.splitlines()) for text in stored.values()) <= LONGEST


@pytest.mark.parametrize("name", COMMANDS)
def test_every_setting_of_a_command_is_on_a_page(name: str) -> None:
    rows = "".join(pages().values())
    for _, found in command_settings(COMMANDS[name]):
        for setting in found:
            assert f"| `{setting.key}` | {setting.values} | `{setting.default}` |".replace("||", "|") in rows


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
        assert f"| `{file.parent.name}={file.stem}` |" in made[f"{file.parent.name}/README.md"]
