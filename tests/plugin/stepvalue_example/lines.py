"""An export format: a problem with its good steps as one text, and how many of them are good."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar

import pyarrow as pa
from annotated_types import Ge

from pipeline.config.fields import Settings
from pipeline.export.base import LayoutExporter
from pipeline.export.example import TrainingExample
from pipeline.export.formats.base import Format, FormatError, Marks, Row, no_steps, not_of_tokens
from pipeline.export.settings import TargetKind


@dataclass(kw_only=True, slots=True)
class LinesConfig(Settings):
    SECTION: ClassVar[str] = "lines"
    indent: Annotated[int, Ge(0)] = 0
    """Blanks in front of each step."""


def _row(example: TrainingExample, marks: Marks) -> Row:
    good = [step for step, target in zip(example.steps, example.targets, strict=True) if target]
    return {"text": marks.separator.join([example.problem, *good]), "good": len(good)}


def _schema(_target: TargetKind) -> pa.Schema:
    columns: list[tuple[str, pa.DataType]] = [("text", pa.string()), ("good", pa.int64())]
    return pa.schema(columns)


def _offences(example: TrainingExample, _marks: Marks) -> Iterator[FormatError]:
    return no_steps(example)


class Lines(LayoutExporter):
    Config = LinesConfig

    def layout_for(self, own: Any) -> Format:
        def indented(example: TrainingExample, marks: Marks) -> Row:
            return _row(replace(example, steps=[" " * own.indent + step for step in example.steps]), marks)

        return replace(self.layout, row=indented)


LINES = Lines(
    Format(
        targets=(TargetKind.hard,),
        row=_row,
        schema=_schema,
        offences=_offences,
        token_offences=not_of_tokens,
        ignores=True,
        marks=Marks(separator="\n"),
    )
)
