"""The reference of settings: all of them, each with its meaning, and the file in `conf/` is what the schemas say."""

from pathlib import Path

import pytest
import yaml

from pipeline.__main__ import main
from pipeline.cli import COMMANDS
from pipeline.cli.reference import as_markdown, command_settings
from tests.conftest import ROOT
from tests.guard.lines import REQUIRED, dotted


def test_the_file_is_what_the_schemas_say() -> None:
    made = "make it anew: python -m pipeline.cli.reference > conf/README.md"
    assert (ROOT / "conf" / "README.md").read_text("utf-8") == as_markdown(), made


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
    text = as_markdown()
    for file in Path(ROOT, "conf").glob("*/*.yaml"):
        assert f"| `{file.parent.name}={file.stem}` |" in text
