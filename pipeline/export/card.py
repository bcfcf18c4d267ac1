"""The data card of an export: what is in it, for people and for `datasets.load_dataset(FOLDER)`."""

from collections.abc import Mapping
from dataclasses import asdict
from enum import Enum
from pathlib import Path

from pipeline.config.recorded import Settings, flat
from pipeline.export.base import Plan
from pipeline.export.exported import Exported, FileCounts, Reason
from pipeline.export.settings import ExportConfig

CARD = "README.md"
_MARK = "Step labels exported by stepvalue"
_HEAD_BYTES = 4096


def is_card(path: Path) -> bool:
    """Whether a file is a card that an export has written."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return _MARK.encode() in file.read(_HEAD_BYTES)


def card(config: ExportConfig, plan: Plan, exported: Exported, made_with: Settings) -> str:
    """The text of the card, in Markdown with the front matter that names the data files."""
    front = "".join(f"  - split: {name.partition('.')[0]}\n    path: {name}\n" for name in exported.files)
    asked = {key: value for name, part in asdict(config).items() for key, value in flat(name, part).items()}
    return (
        f"---\nconfigs:\n- config_name: default\n  data_files:\n{front}---\n\n"
        f"# {_MARK}\n\n"
        f"Layout `{config.format}`{_marks(plan)}. Labels are Monte Carlo estimates: see `policy` and the settings below. "
        "The problems' and chains' own licence holds for the texts.\n\n"
        "| file | rows | problems | labels | good | bad | neutral | undecided |\n|---|---|---|---|---|---|---|---|\n"
        + "".join(_row(name, counts) for name, counts in exported.files.items())
        + _reasons("Left out", exported.left_out)
        + _reasons("Kept, though the trainer misreads them", exported.kept)
        + (f"\n{exported.owed:,} units of the run were not labelled yet.\n" if exported.owed else "")
        + "\n## Settings of the export\n\n"
        + _settings(asked)
        + "\n## Settings of the labels\n\n"
        + _settings(made_with)
    )


def _row(name: str, counts: FileCounts) -> str:
    labels = counts.labels
    kinds = (labels.good, labels.bad, labels.neutral, labels.unlabelled)
    numbers = (counts.rows, len(counts.problems), labels.total, *kinds)
    return f"| `{name}` | " + " | ".join(f"{number:,}" for number in numbers) + " |\n"


def _reasons(title: str, found: Mapping[str, Reason]) -> str:
    return (
        "".join([f"\n{title}:\n\n", *(f"- {kind}: {reason.count:,}\n" for kind, reason in found.items())])
        if found
        else ""
    )


def _settings(settings: Settings) -> str:
    return "".join(f"- `{key}`: `{_plain(value)}`\n" for key, value in settings.items() if value not in (None, [], ""))


def _plain(value: object) -> str:
    return repr(value.value if isinstance(value, Enum) else value).replace("`", "'")


def _marks(plan: Plan) -> str:
    named = (("separator", plan.marks.separator), ("placeholder", plan.marks.placeholder))
    return "".join(f", {name} `{mark!r}`" for name, mark in named if mark)
