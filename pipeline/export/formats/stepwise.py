r"""Stepwise supervision: a list of steps with one label each, which the trainer puts on the separator after the step.

**TRL.** Source of the rules of its PRMTrainer: `trl/experimental/prm/prm_trainer.py`, `tokenize_row`, TRL 1.13.0. Prompt and
steps are tokenized one by one, and each step is followed by the separator. The label, cast with `int()`, is put on the
separator's last token. A value of 0.99 would become 0, so there are no soft targets. The loss ignores the label -100.

**axolotl.** TRL's rows and a configuration file. Source of the rules: `axolotl/prompt_strategies/stepwise_supervised.py`,
axolotl 0.19.0, which tokenizes as TRL does. Its configuration parses every data set as an `SFTDataset`
(`axolotl/utils/schemas/datasets.py`), which has no `step_separator`. The key is dropped silently, and steps are always
separated by a newline. So no other separator is possible.

**SCAN.** A score for every step, trained with binary cross entropy. Source of the rules: `src/train_prm/prm_dataset.py` and
`prm_trainer.py` of yyDing1/SCAN-PRM (commit f33fdc7). Problem and steps are tokenized one by one, without a token in front. A
step's score is put on the last token of the `\n\n` after it. Its evaluation counts a score of 0.5 as good. A row is cut at
`--max_length`, 8,192 in its script.

**RLHFlow.** Conversations for its generative PRM: each step is a turn of the user, and its label is the answer. Source of the
rules: `math-rm/README.md`, `math-rm/llama-3.1-prm.yaml` and `math-rm/prm_evaluate.py` of RLHFlow/RLHF-Reward-Modeling (commits
002679a and 5b2a281). The first turn is the problem, a blank and the first step. axolotl trains on the answers only and leaves
out conversations longer than `sequence_len`.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from pipeline.export.base import LayoutExporter, Plan
from pipeline.export.example import TrainingExample
from pipeline.export.formats.base import (
    Encoder,
    Format,
    FormatError,
    Marks,
    Row,
    columns,
    labels_lost,
    no_steps,
    separator_in_step,
    too_long,
)
from pipeline.export.settings import ExportConfig, FileType, TargetKind

IGNORED = -100
TRL_MAX_LENGTH = 1024
"""`PRMConfig.max_length`."""


def stepwise_row(example: TrainingExample, _marks: Marks) -> Row:
    """A row with the columns `prompt`, `completions` and `labels`."""
    return {
        "prompt": example.problem,
        "completions": list(example.steps),
        "labels": [IGNORED if target is None else target for target in example.targets],
    }


def stepwise_tokens(row: Row, marks: Marks, encoder: Encoder, max_length: int | None) -> Iterator[FormatError]:
    """Errors: labels after the cut, and a separator without a token for the label."""
    between = len(encoder.ids(marks.separator))
    if not between:
        detail = f"the separator {marks.separator!r} has no token: choose one that the tokenizer does not drop"
        yield FormatError(kind="no_separator_token", detail=detail, fatal=True)
        return
    if max_length is None:
        return
    prompt, steps, labels = row["prompt"], row["completions"], row["labels"]
    assert isinstance(prompt, str)
    assert isinstance(steps, list)
    assert isinstance(labels, list)
    end = len(encoder.ids(prompt)) + (encoder.bos is not None)
    kept = 0
    for step, label in zip(steps, labels, strict=True):
        end += len(encoder.ids(step)) + between
        kept += label != IGNORED and end <= max_length
    yield from labels_lost(len(labels) - labels.count(IGNORED), kept, max_length)


def _offences(example: TrainingExample, marks: Marks) -> Iterator[FormatError]:
    yield from no_steps(example)
    yield from separator_in_step(example, marks)


def _with_separator(trainer: str, separator: str) -> Callable[[TrainingExample, Marks], Iterator[FormatError]]:
    """A check of texts for a trainer that supports only this separator."""

    def offences(example: TrainingExample, marks: Marks) -> Iterator[FormatError]:
        if marks.separator != separator:
            detail = f"{trainer} always puts {separator!r} between steps: leave separator out"
            yield FormatError(kind="other_separator", detail=detail, fatal=True)
        yield from _offences(example, marks)

    return offences


TRL = Format(
    targets=(TargetKind.hard,),
    row=stepwise_row,
    schema=columns(("prompt", pa.string()), ("completions", pa.list_(pa.string())), ("labels", pa.list_(pa.int64()))),
    offences=_offences,
    token_offences=stepwise_tokens,
    ignores=True,
    marks=Marks(separator="\n"),
    max_length=TRL_MAX_LENGTH,
)


CONFIGURATION = "axolotl.yaml"
"""The configuration file next to the files of rows."""
AXOLOTL_SEPARATOR = "\n"
AXOLOTL_MAX_LENGTH = 2048
"""`sequence_len` of the configuration below. axolotl's default, 512, would cut most chains."""
BASE_MODEL = "Qwen/Qwen2.5-3B"
"""The model of axolotl's example."""
_LOADERS = {FileType.jsonl: "json", FileType.json: "json", FileType.parquet: "parquet"}


def training_yaml(
    *, train: str, validation: str | None, file: FileType, model: str | None, sequence_len: int | None
) -> str:
    """The text of a configuration for `axolotl train` with files at these paths. `sequence_len`: in tokens."""
    return (
        f"base_model: {json.dumps(model or BASE_MODEL)}\n"
        "model_type: AutoModelForTokenClassification\n"
        "num_labels: 2\n"
        "process_reward_model: true\n\n"
        f"datasets:\n{_data_set(train, file)}"
        + (f"test_datasets:\n{_data_set(validation, file)}" if validation else "")
        + f"\nsequence_len: {sequence_len or AXOLOTL_MAX_LENGTH}\n"
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


AXOLOTL = replace(
    TRL,
    offences=_with_separator("axolotl", AXOLOTL_SEPARATOR),
    marks=Marks(separator=AXOLOTL_SEPARATOR),
    max_length=AXOLOTL_MAX_LENGTH,
)


class AxolotlExporter(LayoutExporter):
    """Exports TRL's rows and a configuration for training."""

    def additional_files(self, config: ExportConfig, plan: Plan, files: Mapping[str, Path]) -> dict[str, str]:
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


SCAN_SEPARATOR = "\n\n"
SCAN_MAX_LENGTH = 8192


def _scan_row(example: TrainingExample, _marks: Marks) -> Row:
    scores = [float(target) for target in example.targets if isinstance(target, int | float)]
    return {"question": example.problem, "steps": list(example.steps), "scores": scores}


def _scan_token_offences(row: Row, _marks: Marks, encoder: Encoder, max_length: int | None) -> Iterator[FormatError]:
    if max_length is None:
        return
    question, steps = row["question"], row["steps"]
    assert isinstance(question, str)
    assert isinstance(steps, list)
    end = len(encoder.ids(question + SCAN_SEPARATOR))
    kept = 0
    for step in steps:
        end += len(encoder.ids(step)) + 1
        kept += end <= max_length
    yield from labels_lost(len(steps), kept, max_length)


SCAN = Format(
    targets=(TargetKind.soft, TargetKind.hard),
    row=_scan_row,
    schema=columns(("question", pa.string()), ("steps", pa.list_(pa.string())), ("scores", pa.list_(pa.float64()))),
    offences=_with_separator("SCAN", SCAN_SEPARATOR),
    token_offences=_scan_token_offences,
    marks=Marks(separator=SCAN_SEPARATOR),
    max_length=SCAN_MAX_LENGTH,
)


RLHFLOW_MAX_LENGTH = 8192
"""`sequence_len` of llama-3.1-prm.yaml."""
_TURNS = pa.list_(pa.struct([("role", pa.string()), ("content", pa.string())]))


def _conversation_row(example: TrainingExample, _marks: Marks) -> Row:
    turns: list[dict[str, str]] = []
    before = f"{example.problem} "
    for step, target in zip(example.steps, example.targets, strict=True):
        turns.append({"role": "user", "content": before + step})
        turns.append({"role": "assistant", "content": "+" if target else "-"})
        before = ""
    return {"conversations": turns}


def _conversation_token_offences(
    row: Row, _marks: Marks, encoder: Encoder, max_length: int | None
) -> Iterator[FormatError]:
    turns = row["conversations"]
    assert isinstance(turns, list)
    return too_long(len(encoder.chat(turns)), max_length)


RLHFLOW = Format(
    targets=(TargetKind.hard,),
    row=_conversation_row,
    schema=columns(("conversations", _TURNS)),
    token_offences=_conversation_token_offences,
    max_length=RLHFLOW_MAX_LENGTH,
)
