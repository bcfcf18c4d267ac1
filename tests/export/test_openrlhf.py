"""OpenRLHF reads each label at the placeholder of its step, and rows that prevent that are reported."""

import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.export.example import TrainingExample
from pipeline.export.formats.base import Encoder, Marks
from pipeline.export.formats.placeholders import OPENRLHF, PLACEHOLDER
from pipeline.export.settings import FileType
from tests.export.consumers import openrlhf_dataset, openrlhf_loss
from tests.export.examples import cut_near, example, examples, kinds, lost
from tests.export.test_stepwise import written

pytestmark = pytest.mark.slow

hard = st.sampled_from([1, 0, None])
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
