"""An export format of your own: rows with the number of good steps of a chain.

    python -m pipeline.examples.export_format

labels two chains in the folder `exported` and writes their rows into `counted`. The oracle stands in for a model.
"""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, ClassVar

import pyarrow as pa
from annotated_types import Ge

from pipeline import label
from pipeline.config.fields import Settings
from pipeline.export.base import LayoutExporter
from pipeline.export.example import TrainingExample
from pipeline.export.formats.base import Format, Marks, Row, columns
from pipeline.export.settings import TargetKind


@dataclass(kw_only=True, slots=True)
class GoodStepsConfig(Settings):
    SECTION: ClassVar[str] = "counted"
    most: Annotated[int, Ge(1)] = 100
    """Good steps beyond are not counted."""


def _row(example: TrainingExample, _marks: Marks) -> Row:
    return {"problem": example.problem, "good": sum(target == 1 for target in example.targets)}


class GoodSteps(LayoutExporter):
    Config = GoodStepsConfig

    def layout_for(self, own: Any) -> Format:
        def limited(example: TrainingExample, marks: Marks) -> Row:
            made = _row(example, marks)
            return {**made, "good": min(own.most, made["good"])}

        return replace(self.layout, row=limited)


GOOD_STEPS = GoodSteps(
    Format(
        targets=(TargetKind.hard,),
        row=_row,
        schema=columns(("problem", pa.string()), ("good", pa.int64())),
        ignores=True,
    )
)


ROWS = [
    {"problem": "What is 2 + 3 + 4?", "answer": "9", "steps": ["2 + 3 = 5.", "5 + 4 = 9.", "The answer is 9."]},
    {"problem": "What is 2 + 3 + 4?", "answer": "9", "steps": ["2 + 3 = 6.", "6 + 4 = 10.", "The answer is 10."]},
]


def main() -> None:
    """Label, export, and show the rows."""
    run = label(ROWS, policy="oracle", estimator="fixed", run_dir="exported")
    exported = run.export(GOOD_STEPS, "counted", counted={"most": 2})
    print((Path(exported.out) / "train.jsonl").read_text("utf-8"))


if __name__ == "__main__":
    main()
