"""Stepwise supervision of axolotl: TRL's rows, with a configuration beside them.

Source of the rules: `axolotl/prompt_strategies/stepwise_supervised.py`, axolotl 0.19.0, which tokenises as TRL does. Its
configuration takes every data set for an `SFTDataset` (`axolotl/utils/schemas/datasets.py`), which has no `step_separator`:
the key is dropped without a word, and steps are always separated by a line end. So no other separator can be asked for.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

from pipeline.export.base import LayoutExporter, Plan
from pipeline.export.example import Example
from pipeline.export.formats.base import Format, Marks, Offence
from pipeline.export.formats.checks import no_steps, separator_in_step
from pipeline.export.formats.trl import stepwise_row, stepwise_schema, stepwise_tokens
from pipeline.export.settings import ExportConfig, FileType, Target

CONFIGURATION = "axolotl.yaml"
"""Beside the files of rows."""
SEPARATOR = "\n"
MAX_LENGTH = 2048
"""`sequence_len` of the configuration below; axolotl's own, 512, would cut most chains."""
BASE_MODEL = "Qwen/Qwen2.5-3B"
"""The one of axolotl's own example."""
_LOADERS = {FileType.jsonl: "json", FileType.json: "json", FileType.parquet: "parquet"}


def training_yaml(
    *, train: str, validation: str | None, file: FileType, model: str | None, sequence_len: int | None
) -> str:
    """The text of a configuration for `axolotl train`, on files at these paths. `sequence_len`: in tokens."""
    return (
        f"base_model: {json.dumps(model or BASE_MODEL)}\n"
        "model_type: AutoModelForTokenClassification\n"
        "num_labels: 2\n"
        "process_reward_model: true\n\n"
        f"datasets:\n{_data_set(train, file)}"
        + (f"test_datasets:\n{_data_set(validation, file)}" if validation else "")
        + f"\nsequence_len: {sequence_len or MAX_LENGTH}\n"
        "sample_packing: false\n"
        "remove_unused_columns: false\n"
        "micro_batch_size: 1\n"
        "gradient_accumulation_steps: 8\n"
        "num_epochs: 1\n"
        "optimizer: adamw_torch\n"
        "lr_scheduler: cosine\n"
        "learning_rate: 1.0e-5\n"
        "warmup_ratio: 0.05\n"
        "bf16: auto\n"
        "gradient_checkpointing: true\n"
        "logging_steps: 10\n"
        "output_dir: ./prm\n"
    )


def _data_set(path: str, file: FileType) -> str:
    return f"  - path: {json.dumps(path)}\n    ds_type: {_LOADERS[file]}\n    type: stepwise_supervised\n    split: train\n"


def _offences(example: Example, marks: Marks) -> Iterator[Offence]:
    if marks.separator != SEPARATOR:
        detail = f"axolotl would put {SEPARATOR!r} between its steps, whatever is asked for: leave separator out"
        yield Offence(kind="other_separator", detail=detail, fatal=True)
    yield from no_steps(example)
    yield from separator_in_step(example, marks)


AXOLOTL = Format(
    targets=(Target.hard,),
    row=stepwise_row,
    schema=stepwise_schema,
    offences=_offences,
    token_offences=stepwise_tokens,
    ignores=True,
    marks=Marks(separator=SEPARATOR),
    max_length=MAX_LENGTH,
)


class AxolotlExporter(LayoutExporter):
    """With a configuration for training beside the rows."""

    def beside(self, config: ExportConfig, plan: Plan, files: Mapping[str, Path]) -> dict[str, str]:
        paths = {split: str(path) for split, path in files.items()}
        text = training_yaml(
            train=paths["train"],
            validation=paths.get("validation"),
            file=plan.file,
            model=config.tokenizer,
            sequence_len=config.max_length,
        )
        return {CONFIGURATION: text}


AXOLOTL_EXPORTER = AxolotlExporter(AXOLOTL)
