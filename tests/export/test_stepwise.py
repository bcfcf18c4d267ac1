"""TRL, axolotl and OpenRLHF find every label at the end of its step, and checks foretell which labels a cut loses."""

import math
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from pipeline.export.example import TrainingExample
from pipeline.export.formats.base import Encoder, Format, Marks
from pipeline.export.formats.placeholders import OPENRLHF, PLACEHOLDER
from pipeline.export.formats.stepwise import AXOLOTL, IGNORED, TRL, training_yaml
from pipeline.export.settings import FileType, TargetKind
from tests.export.consumers import axolotl_config, axolotl_strategy, openrlhf_dataset, openrlhf_loss, trl_prm_trainer
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


CHAIN = example([1, None, 0], steps=["Take 3 + 4.", "é", "so it is 8"])


@pytest.fixture(scope="module")
def reader() -> Any:
    return openrlhf_dataset()


def read_with(reader: Any, rows: Any, tokenizer: Any, max_length: int = 4096, placeholder: str = PLACEHOLDER) -> Any:
    names = SimpleNamespace(
        input_key="input", label_key="value", placeholder_token=placeholder, reward_tokens=["+", "-"]
    )
    return reader(rows, tokenizer, max_length, SimpleNamespace(args=names))


def columns(chain: TrainingExample) -> dict[str, list[object]]:
    return {name: [value] for name, value in OPENRLHF.row(chain, OPENRLHF.marks).items()}


def label_places(item: Any, tokenizer: Any) -> list[tuple[str, str]]:
    """For each labelled placeholder: the text since the previous one, and the token of the label."""
    ids, _, labels = (part[0].tolist() for part in item)
    ends = [place for place, label in enumerate(labels) if label != -100]
    begins = [0, *(end + 1 for end in ends)]
    return [
        (tokenizer.decode(ids[begin:end], clean_up_tokenization_spaces=False).strip(), tokenizer.decode([labels[end]]))
        for begin, end in zip(begins, ends, strict=False)
    ]


def expected_places(chain: TrainingExample) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    text = f"{chain.problem} "
    for step, target in zip(chain.steps, chain.targets, strict=True):
        text += step
        if target is not None:
            found.append((text.strip(), "+" if target else "-"))
            text = ""
        text += "\n"
    return found


@pytest.mark.parametrize("file", FileType)
def test_each_label_is_read_at_its_placeholder(reader: Any, marked: Any, file: FileType, tmp_path: Path) -> None:
    chains = [CHAIN, example([0])]
    data = read_with(reader, written(chains, OPENRLHF, file, tmp_path), marked)
    assert [label_places(data[index], marked) for index in range(len(data))] == [expected_places(c) for c in chains]


@given(chain=examples(hard).filter(lambda chain: any(t is not None for t in chain.targets)), data=st.data())
def test_what_is_lost_is_foretold(
    reader: Any, marked: Any, marked_encoder: Encoder, chain: TrainingExample, data: st.DataObject
) -> None:
    item = read_with(reader, columns(chain), marked)[0]
    whole = label_places(item, marked)
    assert whole == expected_places(chain)
    cut = cut_near(data, [place for place, label in enumerate(item[2][0].tolist()) if label != -100])
    kept = label_places(read_with(reader, columns(chain), marked, max_length=cut)[0], marked)
    assert kept == whole[: len(kept)]
    offences = list(OPENRLHF.token_offences(OPENRLHF.row(chain, OPENRLHF.marks), OPENRLHF.marks, marked_encoder, cut))
    assert lost(offences, len(whole)) == len(whole) - len(kept)
    assert not any(offence.fatal for offence in offences)


def test_the_loss_is_about_the_labels(reader: Any, marked: Any) -> None:
    import torch

    plus, minus, mark = (marked.convert_tokens_to_ids(token) for token in ("+", "-", PLACEHOLDER))
    data = read_with(reader, columns(CHAIN), marked)
    ids, _, labels = data.collate_fn([data[0]])
    loss = openrlhf_loss()(mark, [plus, minus])
    logits = torch.zeros(*ids.shape, len(marked))
    assert loss(ids, logits, labels).item() == pytest.approx(math.log(2))
    logits.scatter_(2, labels.clamp(min=0).unsqueeze(2), 50.0)
    assert loss(ids, logits, labels).item() == pytest.approx(0)


def test_probabilities_stop_the_released_version(reader: Any, marked: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    data = read_with(reader, columns(example([0.75, None, 0.25])), marked)
    with pytest.raises(RuntimeError, match="dtypes match, got Long for the destination and Float"):
        data[0]
    integers = torch.full_like
    monkeypatch.setattr(torch, "full_like", lambda like, value: integers(like, value, dtype=torch.float))
    ids, _, labels = data[0]
    assert labels[labels != -100].tolist() == [0.75, 0.25]
    plus, minus, mark = (marked.convert_tokens_to_ids(token) for token in ("+", "-", PLACEHOLDER))
    logits = torch.zeros(*ids.shape, len(marked))
    logits[..., plus] = math.log(3)  # a probability of 3/4
    wanted = -(math.log(0.75) + math.log(0.25)) / 2
    assert openrlhf_loss()(mark, [plus, minus])(ids, logits, labels).item() == pytest.approx(wanted)


def test_a_placeholder_of_several_tokens_is_reported(embedded_encoder: Encoder) -> None:
    row = OPENRLHF.row(CHAIN, OPENRLHF.marks)
    (offence,) = OPENRLHF.token_offences(row, OPENRLHF.marks, embedded_encoder, None)
    assert (offence.kind, offence.fatal) == ("not_one_token", True)
    assert "2 tokens" in offence.detail


def test_a_placeholder_that_merges_in_context_is_reported(
    reader: Any, embedded: Any, embedded_encoder: Encoder
) -> None:
    marks = Marks(separator="\n", placeholder="@")
    row = OPENRLHF.row(CHAIN, marks)
    read = read_with(reader, {name: [value] for name, value in row.items()}, embedded, placeholder="@")[0]
    assert label_places(read, embedded) == [], "the reader finds no placeholder, and says nothing"
    (offence,) = OPENRLHF.token_offences(row, marks, embedded_encoder, None)
    assert (offence.kind, offence.fatal) == ("placeholder_count", True)
    blank = Marks(separator="\n", placeholder=" @")
    assert not list(OPENRLHF.token_offences(OPENRLHF.row(CHAIN, blank), blank, embedded_encoder, None))


def test_a_placeholder_inside_a_text_is_reported() -> None:
    assert kinds(OPENRLHF, example([1], steps=["три яблоки"])) == [("mark_in_text", True)]
    assert kinds(OPENRLHF, example([1], problem="ки?")) == [("mark_in_text", True)]
    assert kinds(OPENRLHF, example([1], steps=["ки"]), placeholder=" ки") == [("mark_in_text", True)]
    assert kinds(OPENRLHF, CHAIN) == []
