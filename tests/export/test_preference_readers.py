"""format=preference: pairs of a real run, its chains without a pair, and pairs as the readers of trainers see them."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest

from pipeline.export.example import LabelCounts
from pipeline.export.formats.base import Row
from pipeline.export.formats.preference import NO_PAIR, PairRows, pair_row, pair_schema
from pipeline.export.registry import plan_of
from pipeline.export.result import LEFT_OUT
from pipeline.export.settings import DecontaminateConfig, FileType, NeutralSteps, PairReader, PairSpan, PreferenceConfig
from pipeline.export.targets import LabelRow
from tests.export.encoders import Characters
from tests.export.rows import exported, label_row, lines, loaded, pairs_of
from tests.export.rows import settings as asked
from tests.library import Library

STEPS = {
    True: ["He has 4 + 3 = 7.", "Half of 7 is 3.5.", "The answer is 3.5."],
    False: ["He has 4 + 3 = 7.", "Half of 7 is 4."],
}
PROBLEM = "He has 4 and gets 3. What is half of {what} he has?"


def chain(outcome: bool) -> LabelRow:
    steps = STEPS[outcome]
    ids = ["sum", *(f"{outcome}{number}" for number in range(len(steps) - 1))]
    labels = [1, *([int(outcome)] * (len(steps) - 1))]
    return label_row(
        labels, chain_id=f"{outcome}", problem=PROBLEM, gold_answer="3.5", outcome=outcome, steps=steps,
        prefix_ids=ids, value=[float(label) for label in labels],
    )  # fmt: skip


def rows(reader: PairReader) -> list[Row]:
    found = pairs_of([chain(True), chain(False)], PreferenceConfig(reader=reader))
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


PREFERENCE = "preference"


@pytest.fixture(scope="module")
def run_dir(library: Library, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """30 problems with four chains of three steps, which differ from the second step on, in units of ten problems."""
    return library.copy("many", tmp_path_factory.mktemp("run"))


def test_pairs_of_a_run_are_steps_of_two_of_its_chains(run_dir: Path, tmp_path: Path) -> None:
    step = PreferenceConfig(reader=PairReader.step_dpo)
    done = exported(run_dir, tmp_path / "out", PREFERENCE, own=step, file=FileType.parquet)
    chains = {row["chain_id"]: row for row in pl.read_parquet(run_dir / "labels" / "*.parquet").iter_rows(named=True)}
    pairs = pl.read_parquet(tmp_path / "out/train.parquet").to_dicts()
    assert len(pairs) == done.files["train.parquet"].rows > 10
    for pair in pairs:
        good, bad = chains[pair["chosen_chain_id"]], chains[pair["rejected_chain_id"]]
        index = pair["step"] - 1
        assert (pair["prompt"], pair["answer"]) == (good["problem"], good["gold_answer"])
        assert pair["initial_reason_steps"] == "".join(f"{text}\n" for text in good["steps"][:index])
        assert good["steps"][:index] == bad["steps"][:index]
        assert (pair["chosen"], pair["rejected"]) == (good["steps"][index], bad["steps"][index])
        assert (good["label"][index], bad["label"][index]) == (1, 0)
        assert (pair["chosen_value"], pair["rejected_value"]) == (good["value"][index], bad["value"][index])
    in_pairs = {pair[name] for pair in pairs for name in ("chosen_chain_id", "rejected_chain_id")}
    gone = lines(tmp_path / "out" / LEFT_OUT)
    assert {left["chain_id"] for left in gone} == set(chains) - in_pairs
    assert (done.chains, done.steps) == (120, 360)


def test_a_chain_is_left_out_once_however_many_pairs_it_is_in(run_dir: Path, tmp_path: Path) -> None:
    listed = tmp_path / "listed.txt"
    listed.write_text("What is 3 + 3 + 1?\n")
    everything = PreferenceConfig(margin=0.01, span=PairSpan.step)
    exported(run_dir, tmp_path / "all", PREFERENCE, own=everything)
    done = exported(
        run_dir, tmp_path / "out", PREFERENCE, own=everything, decontaminate=DecontaminateConfig(paths=[str(listed)])
    )
    assert "What is 3 + 3 + 1?" in (tmp_path / "all/train.jsonl").read_text()
    assert "What is 3 + 3 + 1?" not in (tmp_path / "out/train.jsonl").read_text()
    gone = (tmp_path / "out" / LEFT_OUT).read_text().splitlines()
    assert len(set(gone)) == len(gone)
    assert 1 <= done.left_out["contaminated"].count <= 4


def maker(**changes: Any) -> PairRows:
    made = plan_of(asked(PREFERENCE, **changes), Characters()).make
    assert isinstance(made, PairRows)
    return made


def test_values_are_best_estimates_and_labels_those_of_the_threshold() -> None:
    good = label_row([1], chain_id="good", steps=["A"], value=[0.3], unbiased_value=[0.6])
    bad = label_row([1], chain_id="bad", steps=["B"], value=[0.1], unbiased_value=[0.2], outcome=False)
    assert [made.left_out for made in maker()([good, bad])] == [NO_PAIR, NO_PAIR]
    (made,) = maker(threshold=0.25)([good, bad])
    assert made.row is not None
    assert (made.row["chosen_value"], made.row["rejected_value"]) == (0.3, 0.1)
    assert made.labels == LabelCounts(good=1, bad=1)


def test_a_neutral_step_is_what_it_is_said_to_be() -> None:
    chains = [
        label_row([2], chain_id="n", steps=["A"], outcome=False),
        label_row([1], chain_id="g", steps=["B"], outcome=True),
    ]
    assert all(made.left_out for made in maker()(chains))
    (made,) = maker(neutral=NeutralSteps.negative)(chains)
    assert made.row is not None
    assert (made.row["chosen"], made.row["rejected"]) == ("B", "A")


def test_tokens_are_looked_at_where_the_prompt_is_the_whole_one() -> None:
    chains = [label_row([1], chain_id="g", steps=["A"]), label_row([0], chain_id="b", steps=["B"], outcome=False)]
    (made,) = maker(max_length=5)(chains)
    assert [offence.kind for offence in made.offences] == ["too_long", "too_long"]
    (made,) = maker(max_length=5, own=PreferenceConfig(reader=PairReader.step_dpo))(chains)
    assert not made.offences
