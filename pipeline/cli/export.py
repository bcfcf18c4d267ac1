"""The command `export`: writes the labels of a run for a trainer and prints what was written."""

from typing import TYPE_CHECKING

from pipeline.cli.command import Command, Here, write_lines
from pipeline.export.registry import EXPORTS
from pipeline.export.settings import ExportConfig

if TYPE_CHECKING:
    from pipeline.export.result import ExportResult


def _show(_config: ExportConfig, exported: "ExportResult") -> None:
    from pipeline.export.result import result_lines

    write_lines(result_lines(exported))


EXPORT = Command(
    name="export",
    summary="write labels in the format of a trainer, checked by its rules",
    about=(
        "export: write the labels of a run as a trainer's training data, into a folder with a data card. Every chain is "
        "first checked as the trainer would read it."
    ),
    examples=(
        "export run_dir=out format=trl out=data/trl tokenizer=Qwen/Qwen3-8B",
        "export run_dir=out format=openrlhf target=soft out=soft",
        "export run_dir=out format=qwen out=data/qwen min_p_outcome=0.1",
        "export run_dir=out format=trl out=data/trl push_to_hub=my-name/my-steps hub.license=cc-by-4.0",
        "export run_dir=out format=preference out=data/pairs 'decontaminate.paths=[math500.jsonl]'",
    ),
    notes="""\
Where labels would be misplaced or lost, nothing is written, and a list names the chains; invalid=drop leaves them out.
With a tokenizer, lengths and placeholders are checked too. The printed target says whether values or labels were
written, and a warning where they teach little.
""",
    most_used=("run_dir", "format", "out", "target", "validation", "tokenizer", "decontaminate.paths"),
    schema=ExportConfig,
    run=Here(finds="pipeline.export.run:export", shows=_show),
    flags=("partial", "overwrite"),
    chooses=("format", EXPORTS),
)
