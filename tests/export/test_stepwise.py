"""TRL and axolotl find every label at the end of its step, and the check predicts which labels a cut loses."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from pipeline.export.example import TrainingExample
from pipeline.export.formats.base import Encoder, Format, Marks
from pipeline.export.formats.stepwise import AXOLOTL, IGNORED, TRL, training_yaml
from pipeline.export.settings import FileType, TargetKind
from tests.export.consumers import axolotl_config, axolotl_strategy, trl_prm_trainer
from tests.export.examples import cut_near, example, examples, kinds, lost
from tests.export.rows import loaded

pytestmark = pytest.mark.slow

CHAINS = (
    example([1, None, 0], steps=["Take 3 + 4.\nThat is 7.", "é ки", "so it is 8"]),
    example([1], problem="Was $x$?\n\nSay it.", steps=["$x$"]),
)
SEPARATORS = ("\n", "\n\n", " ки\n")
hard = st.sampled_from([1, 0, None])


@pytest.fixture(scope="module")
def prm_trainer() -> Any:
    with pytest.MonkeyPatch.context() as patch:
        return trl_prm_trainer(patch)


@pytest.fixture(scope="module")
def axolotl_reader() -> Any:
    return axolotl_strategy()


def tokenized(trainer: Any, row: dict[str, Any], tokenizer: Any, separator: str, max_length: int | None) -> Any:
    return trainer.tokenize_row(
        row,
        tokenizer=tokenizer,
        step_separator=separator,
        max_length=max_length,
        max_completion_length=None,
        train_on_last_step_only=False,
        is_eval=False,
    )


def step_ends(read: Any, tokenizer: Any) -> list[tuple[str, int]]:
    """For each label that counts: the text since the previous one, and the label."""
    ends = [place for place, label in enumerate(read["labels"]) if label != IGNORED]
    begins = [0, *(end + 1 for end in ends)]
    return [
        (tokenizer.decode(read["input_ids"][begin : end + 1], clean_up_tokenization_spaces=False), read["labels"][end])
        for begin, end in zip(begins, ends, strict=False)
    ]


def expected_ends(chain: TrainingExample, front: str, separator: str) -> list[tuple[str, int]]:
    """The same from the example. A step without a label belongs to the text of the next labelled step."""
    found: list[tuple[str, int]] = []
    text = front + chain.problem
    for step, target in zip(chain.steps, chain.targets, strict=True):
        text += step + separator
        if target is not None:
            assert isinstance(target, int)
            found.append((text, target))
            text = ""
    return found


def written(chains: Sequence[TrainingExample], layout: Format, file: FileType, folder: Path) -> Any:
    rows = [layout.row(chain, layout.marks) for chain in chains]
    return loaded(rows, layout.schema(TargetKind.hard), file, folder)


@pytest.mark.parametrize("file", FileType)
def test_trl_finds_each_label_where_its_step_ends(
    prm_trainer: Any, embedded: Any, file: FileType, tmp_path: Path
) -> None:
    for chain, row in zip(CHAINS, written(CHAINS, TRL, file, tmp_path), strict=True):
        read = tokenized(prm_trainer, row, embedded, "\n", 1024)
        assert step_ends(read, embedded) == expected_ends(chain, embedded.bos_token, "\n")


@given(chain=examples(hard), separator=st.sampled_from(SEPARATORS), data=st.data())
def test_what_trl_loses_is_foretold(
    prm_trainer: Any,
    embedded: Any,
    embedded_encoder: Encoder,
    chain: TrainingExample,
    separator: str,
    data: st.DataObject,
) -> None:
    marks = Marks(separator=separator)
    row = TRL.row(chain, marks)
    whole = tokenized(prm_trainer, row, embedded, separator, None)
    assert step_ends(whole, embedded) == expected_ends(chain, embedded.bos_token, separator)
    assert not list(TRL.token_offences(row, marks, embedded_encoder, None))
    max_length = cut_near(data, [place for place, label in enumerate(whole["labels"]) if label != IGNORED])
    cut = tokenized(prm_trainer, row, embedded, separator, max_length)
    missing = len(step_ends(whole, embedded)) - len(step_ends(cut, embedded))
    labels = sum(target is not None for target in chain.targets)
    offences = list(TRL.token_offences(row, marks, embedded_encoder, max_length))
    assert lost(offences, labels) == missing
    assert not any(offence.fatal for offence in offences)


def test_trl_would_make_a_negative_of_a_probability(prm_trainer: Any, embedded: Any) -> None:
    row = {**TRL.row(example([1, 0]), TRL.marks), "labels": [0.99, 0.2]}
    assert [label for _, label in step_ends(tokenized(prm_trainer, row, embedded, "\n", None), embedded)] == [0, 0]
    assert TargetKind.soft not in TRL.targets


def test_a_tokenizer_without_a_first_token_has_space_for_one_more(tiny_encoder: Encoder) -> None:
    chain = example([1], problem="1+1", steps=["2"])
    row = TRL.row(chain, TRL.marks)
    assert not list(TRL.token_offences(row, TRL.marks, tiny_encoder, 5))
    (offence,) = TRL.token_offences(row, TRL.marks, tiny_encoder, 4)
    assert (offence.kind, offence.fatal) == ("all_labels_lost", False)


def test_a_separator_inside_a_step_is_reported() -> None:
    assert kinds(TRL, CHAINS[0]) == [("separator_in_step", False)]
    assert kinds(TRL, CHAINS[0], separator="\n\n") == []


@given(chain=examples(hard), max_length=st.integers(1, 120))
def test_axolotl_reads_as_trl_does(
    prm_trainer: Any, axolotl_reader: Any, embedded: Any, chain: TrainingExample, max_length: int
) -> None:
    row = AXOLOTL.row(chain, AXOLOTL.marks)
    read = axolotl_reader(embedded, max_length, step_separator="\n").tokenize_prompt(row)
    ours = tokenized(prm_trainer, row, embedded, "\n", max_length)
    assert (read["input_ids"], read["labels"]) == (ours["input_ids"], ours["labels"])


def test_axolotl_takes_the_configuration(tmp_path: Path) -> None:
    train, validation = str(tmp_path / "train: 1.parquet"), str(tmp_path / "validation.parquet")
    text = training_yaml(
        train=train, validation=validation, file=FileType.parquet, model="some/model", sequence_len=None
    )
    config = axolotl_config()(**yaml.safe_load(text)).model_dump(exclude_none=True)
    assert config["process_reward_model"]
    assert (config["base_model"], config["num_labels"]) == ("some/model", 2)
    assert config["sequence_len"] == AXOLOTL.max_length
    for data_set, path in zip((*config["datasets"], *config["test_datasets"]), (train, validation), strict=True):
        assert (data_set["path"], data_set["type"], data_set["ds_type"]) == (path, "stepwise_supervised", "parquet")


def test_axolotl_takes_no_other_separator() -> None:
    text = training_yaml(train="t.jsonl", validation=None, file=FileType.jsonl, model=None, sequence_len=512)
    config = yaml.safe_load(text)
    assert "test_datasets" not in config
    config["datasets"][0]["step_separator"] = "\n\n"
    read = axolotl_config()(**config).model_dump(exclude_none=True)
    assert "step_separator" not in read["datasets"][0], "axolotl reads the key now: allow other separators"
    assert kinds(AXOLOTL, example([1]), separator="\n\n") == [("other_separator", True)]
    assert kinds(AXOLOTL, example([1])) == []
