"""What readers of pairs read, and what they misread, whatever the pairs were found in.

Sources of the rules:

- TRL 1.13.0, `trl/trainer/dpo_trainer.py`, `_prepare_dataset` and `DataCollatorForPreference`: `prompt`, `prompt + chosen` and
  `prompt + rejected` are tokenized as whole texts, the latter two with an end-of-text token. The answer begins after as many
  tokens as the prompt has. The end beyond `max_length` is cut; pairs whose prompt alone is that long are dropped.
- Step-DPO (Lai et al. 2024, arXiv 2406.18629), `train.py`: its template around `prompt`, then `initial_reason_steps` unchanged,
  then `chosen` or `rejected`; no end-of-text token (`stepdpo_trainer.py`).
"""

from collections.abc import Iterator, Sequence

import pyarrow as pa

from pipeline.export.formats.base import Encoder, FormatError, Row
from pipeline.export.settings import PairReader, PairSpan, PreferenceConfig

SEPARATOR = "\n"
MAX_LENGTH = 1024
"""`DPOConfig.max_length`."""
ROUNDING = 1e-9
"""The largest rounding error of a difference of two values."""
Columns = list[tuple[str, pa.DataType]]


def pair_span(config: PreferenceConfig) -> PairSpan:
    """The span of a pair's texts: the setting, or the default of the reader."""
    return config.span or (PairSpan.rest if config.reader is PairReader.trl else PairSpan.step)


def followed(steps: Sequence[str], separator: str) -> str:
    """Steps before others, each followed by the separator."""
    return "".join(step + separator for step in steps)


def prompt_part(problem: str, before: str, reader: PairReader, separator: str) -> Row:
    """The columns of a row that its reader puts before both texts. `before`: the steps before, as `followed` joins them."""
    if reader is PairReader.trl:
        return {"prompt": problem + separator + before, "problem": problem}
    return {"prompt": problem, "initial_reason_steps": before}


def pair_columns(reader: PairReader) -> Columns:
    """The columns that all pairs have for a reader, in their order."""
    second = "problem" if reader is PairReader.trl else "initial_reason_steps"
    return [
        ("prompt", pa.string()),
        (second, pa.string()),
        ("chosen", pa.string()),
        ("rejected", pa.string()),
        ("answer", pa.string()),
        ("chosen_value", pa.float64()),
        ("rejected_value", pa.float64()),
        ("step", pa.int32()),
        ("problem_id", pa.string()),
    ]


def separator_errors(role: str, steps: Sequence[str], separator: str) -> Iterator[FormatError]:
    """The reader takes a separator within a step for the end of a step. `steps`: all up to the one that the pair is about."""
    number = next((number for number, step in enumerate(steps, start=1) if separator in step), None)
    if separator and number is not None:
        detail = f"step {number} of the {role} chain contains the separator {separator!r}"
        yield FormatError(kind="separator_in_step", detail=detail, fatal=False)


def pair_token_errors(row: Row, encoder: Encoder, max_length: int | None) -> Iterator[FormatError]:
    """Errors in the tokens of a row for TRL. `max_length`: the largest number of tokens that its trainer uses."""
    prompt = encoder.ids(str(row["prompt"]))
    begin = 1 if encoder.bos is not None else 0
    for role in ("chosen", "rejected"):
        whole = encoder.ids(f"{row['prompt']}{row[role]}")
        if whole[: len(prompt)] != prompt:
            detail = f"the tokens of the prompt change when {role} follows, so the answer begins at another token"
            yield FormatError(kind="boundary", detail=detail, fatal=True)
        length = begin + len(whole) + 1
        if max_length is not None and length > max_length:
            detail = f"prompt and {role} have {length} tokens, with special tokens, but the trainer uses {max_length}"
            yield FormatError(kind="too_long", detail=detail, fatal=False)
