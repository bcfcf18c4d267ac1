"""Pairs as TRL's DPOTrainer and Step-DPO's `train.py` read them, and as `datasets` loads them."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from pipeline.export.formats.base import Row
from pipeline.export.formats.preference import BranchPoint, pair_row, pair_schema, preference_pairs
from pipeline.export.settings import FileType, PairReader, PreferenceConfig
from tests.export.rows import loaded

STEPS = {
    True: ["He has 4 + 3 = 7.", "Half of 7 is 3.5.", "The answer is 3.5."],
    False: ["He has 4 + 3 = 7.", "Half of 7 is 4."],
}
PROBLEM = "He has 4 and gets 3. What is half of {what} he has?"


def chain(outcome: bool) -> BranchPoint:
    steps = STEPS[outcome]
    ids = ["root", "sum", *(f"{outcome}{number}" for number in range(len(steps) - 1))]
    labels = [1, *([int(outcome)] * (len(steps) - 1))]
    return BranchPoint(
        chain_id=f"{outcome}", problem_id="p", problem=PROBLEM, gold_answer="3.5", outcome=outcome, steps=steps,
        prefix_ids=ids, scores=[float(label) for label in labels], labels=labels,
    )  # fmt: skip


def rows(reader: PairReader) -> list[Row]:
    found = preference_pairs([chain(True), chain(False)], PreferenceConfig(reader=reader), "\n")
    return [pair_row(pair, reader, "\n") for pair in found]


@pytest.mark.parametrize("file", FileType)
@pytest.mark.parametrize("reader", PairReader)
def test_datasets_loads_the_rows_as_they_were(reader: PairReader, file: FileType, tmp_path: Path) -> None:
    assert loaded(rows(reader), pair_schema(reader), file, tmp_path).to_list() == rows(reader)


def test_step_dpo_puts_its_template_between_problem_and_steps() -> None:
    """Source: Step-DPO `train.py` at 1f504ead, `apply_step_wise_chat_template`, qwen2-boxed, shortened: the problem goes
    through `str.format`, and the previous steps follow the template unchanged."""
    template = "{instruction}\nPlease reason step by step.<|im_end|>\n<|im_start|>assistant\n"
    (found,) = rows(PairReader.step_dpo)
    prompt = template.format(instruction=found["prompt"])
    assert f"{prompt}{found['initial_reason_steps']}{found['chosen']}" == (
        f"{PROBLEM}\nPlease reason step by step.<|im_end|>\n<|im_start|>assistant\nHe has 4 + 3 = 7.\nHalf of 7 is 3.5."
    )
    assert found["rejected"] == "Half of 7 is 4."


def test_trl_tokenises_and_collates_the_pairs(tmp_path: Path) -> None:
    trl = pytest.importorskip("trl.trainer.dpo_trainer")
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    texts = [str(found[name]) for found in rows(PairReader.trl) for name in ("prompt", "chosen", "rejected")]
    vocabulary = {character: number for number, character in enumerate(sorted({*"".join(texts)}), start=1)}
    characters = Tokenizer(models.WordLevel({"<end>": 0, **vocabulary}, unk_token="<end>"))
    characters.pre_tokenizer = pre_tokenizers.Split("", "isolated")
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=characters, eos_token="<end>")
    data = loaded(rows(PairReader.trl), pair_schema(PairReader.trl), FileType.parquet, tmp_path)
    settings = SimpleNamespace(dataset_num_proc=None, max_length=200, truncation_mode="keep_start")
    prepared = trl.DPOTrainer._prepare_dataset(
        SimpleNamespace(_tokenizer=tokenizer), data, tokenizer, settings, "train"
    )

    def text(ids: list[int]) -> str:
        return "".join(tokenizer.convert_ids_to_tokens(ids))

    (found,) = prepared
    assert text(found["prompt_ids"]) == f"{PROBLEM}\nHe has 4 + 3 = 7.\n"
    assert text(found["chosen_ids"]) == "Half of 7 is 3.5.\nThe answer is 3.5.<end>"
    assert text(found["rejected_ids"]) == "Half of 7 is 4.<end>"
    batch = trl.DataCollatorForPreference(pad_token_id=0, max_length=200)([found])
    masked = batch["input_ids"][0][batch["completion_mask"][0].bool()]
    assert text(masked.tolist()) == "Half of 7 is 3.5.\nThe answer is 3.5.<end>"
