"""Layouts whose readers are scripts that cannot be installed. Each script's rule is restated in a few lines with its source."""

import re
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.config.choices import Layout
from pipeline.config.label import DataConfig
from pipeline.core.errors import UsageError
from pipeline.data.jsonl import UnusableRowError
from pipeline.data.layouts import Fields, read_fields
from pipeline.export.base import LayoutExporter
from pipeline.export.example import StepTarget, TrainingExample
from pipeline.export.formats.annotated import PRM800K, PROCESSBENCH
from pipeline.export.formats.base import Encoder, Format, Marks
from pipeline.export.formats.numbered import MATH_SHEPHERD, OPENR, RENUMBERED
from pipeline.export.formats.placeholders import QWEN, messages
from pipeline.export.formats.plain import ORM
from pipeline.export.formats.stepwise import RLHFLOW, SCAN
from pipeline.export.registry import EXPORTS, exporter_for
from pipeline.export.settings import FileType, TargetKind
from tests.export.examples import cut_near, example, examples, kinds, lost, marks_of
from tests.export.rows import loaded, settings

pytestmark = pytest.mark.slow

binary = st.sampled_from([1, 0])
probabilities = st.floats(0, 1, allow_subnormal=False)


def own_reader(layout: Layout, row: dict[str, Any]) -> Fields:
    return read_fields({**row, "answer": "7"}, DataConfig(layout=layout), lambda text: None)


def found(layout: Format, row: Any, encoder: Encoder, max_length: int | None = None, **marks: str) -> list[str]:
    return [offence.kind for offence in layout.token_offences(row, marks_of(layout, **marks), encoder, max_length)]


# Math-Shepherd


def trl_math_shepherd(row: dict[str, str]) -> tuple[str, list[str], list[bool]]:
    """huggingface/trl, examples/datasets/math_shepherd.py at 0ad367a, `process_example`."""
    text = row["input"].replace("ки", "ⶻ")
    marks = [match.start() for match in re.finditer("ⶻ", text)]
    assert all(row["label"][mark] in "+-" for mark in marks)
    labels = [row["label"][mark] == "+" for mark in marks]
    pieces = [text[begin:end] for begin, end in zip([0, *marks], [*marks, None], strict=True)][:-1]
    prompt, steps = pieces[0], [piece[1:].strip() for piece in pieces[1:]]
    if prompt.startswith(RENUMBERED):
        labels = labels[1:]
    else:
        prompt, first = prompt.split("Step 1:")
        steps = ["Step 1:" + first.rstrip(), *steps]
    assert len(steps) == len(labels)
    return prompt.strip(), steps, labels


def openr_math_shepherd(row: dict[str, str]) -> tuple[str, list[str], list[str]] | None:
    """openreasoner/openr, preprocess/src/preprocessors/math_shepherd.py at 164eeef; None if it leaves the row out."""
    if row["input"].count("Step 1: ") != 1:
        return None
    (problem, steps), (_, signs) = (_openr_steps(row[name]) for name in ("input", "label"))
    labels = [sign[-1] if sign[-1] in "+-" else "" for sign in signs]
    return None if "" in labels else (problem, [step[: step.find("ки")].strip() for step in steps], labels)


def _openr_steps(text: str) -> tuple[str, list[str]]:
    problem, solution = text.split("Step 1: ")
    return problem.strip(), [step.strip() for step in re.sub(r"Step \d*:", "च", solution).split("च")]


@given(chain=examples(binary))
def test_three_readers_of_math_shepherd_find_the_same_steps(chain: TrainingExample) -> None:
    row: Any = MATH_SHEPHERD.row(chain, MATH_SHEPHERD.marks)
    offences = kinds(MATH_SHEPHERD, chain)
    if ("problem_end", True) in offences:
        return
    prompt, steps, labels = trl_math_shepherd(row)
    assert prompt == chain.problem
    assert labels == [target == 1 for target in chain.targets]
    assert own_reader(Layout.math_shepherd, row).steps == steps
    openr = openr_math_shepherd(row)
    assert (openr is None) == (("number_in_step", False) in offences)
    if openr is not None:
        assert openr == (
            chain.problem,
            [re.sub(r"^Step \d+: *", "", step).strip() for step in steps],
            ["+" if target else "-" for target in chain.targets],
        )


def test_a_step_keeps_the_number_that_it_has() -> None:
    steps = [
        "## Step 1: add",
        "Step 2: go on",
        "**Step 3:** so",
        "**Step 4: End**\nIt is 7.",
        "step 5 : 7",
        "Steps end.",
    ]
    row = MATH_SHEPHERD.row(example([1] * 6, problem="Q", steps=steps), MATH_SHEPHERD.marks)
    assert row["input"] == (
        "Q Step 1: add ки\nStep 2: go on ки\nStep 3: so ки\nStep 4: **End**\nIt is 7. ки\nStep 5: 7 ки\nStep 6: Steps end. ки"
    )


def test_what_math_shepherds_readers_would_misread_is_reported() -> None:
    assert kinds(MATH_SHEPHERD, example([1], steps=["яблоки"])) == [("mark_in_text", True)]
    assert kinds(MATH_SHEPHERD, example([1], problem="ⶻ?")) == [("mark_in_text", True)]
    assert kinds(MATH_SHEPHERD, example([1, 1], steps=["so", "as Step 2: said"])) == [("number_in_step", False)]
    parker = example([1, 0], problem="Parker has 2.")
    assert kinds(MATH_SHEPHERD, parker) == [("first_step_lost", False)]
    read: Any = MATH_SHEPHERD.row(parker, MATH_SHEPHERD.marks)
    assert trl_math_shepherd(read)[2] == [False]
    for unclear in (
        example([1], problem="Go on from Step 1: 3"),
        example([1], steps=["Step 2: add"]),
        example([1, 1], steps=["add", "as Step 1: said"]),
    ):
        assert kinds(MATH_SHEPHERD, unclear) == [("problem_end", True)]
        row = MATH_SHEPHERD.row(unclear, MATH_SHEPHERD.marks)
        with pytest.raises(UnusableRowError, match="the end of the problem is unclear"):
            own_reader(Layout.math_shepherd, row)


def test_math_shepherds_tag_has_to_be_a_token(embedded_encoder: Encoder, marked_encoder: Encoder) -> None:
    row = MATH_SHEPHERD.row(example([1, 0]), MATH_SHEPHERD.marks)
    assert found(MATH_SHEPHERD, row, embedded_encoder) == ["not_one_token"]
    assert found(MATH_SHEPHERD, row, marked_encoder) == []
    assert found(MATH_SHEPHERD, row, marked_encoder, 15) == ["all_labels_lost"]


# OpenR


def openr_labels(row: Any, encode: Any, max_length: int) -> list[tuple[int, str]]:
    """openreasoner/openr, prm/code/finetune_qwen.py at 882cec5, `preprocess_function`: places of labels in the row's tokens."""
    tag = encode(" \n\n\n\n\n")[-1]
    ids = encode(f"{row['question']} {row['process']}")[:max_length]
    places = [place for place, token in enumerate(ids) if token == tag]
    labels = row["label"][: len(places)]
    assert len(places) == len(labels)
    return list(zip(places, labels, strict=True))


@given(chain=examples(binary), data=st.data())
def test_openr_finds_a_tag_for_each_label(
    embedded: Any, embedded_encoder: Encoder, chain: TrainingExample, data: st.DataObject
) -> None:
    row: Any = OPENR.row(chain, OPENR.marks)
    if found(OPENR, row, embedded_encoder):
        # Line ends of the texts themselves can come out as the tag.
        tag = embedded_encoder.ids(" \n\n\n\n\n")[-1]
        assert embedded_encoder.ids(f"{row['question']} {row['process']}").count(tag) != len(chain.targets)
        return
    whole = openr_labels(row, embedded_encoder.ids, 10**6)
    ids = embedded_encoder.ids(f"{row['question']} {row['process']}")
    begins = [0, *(place + 1 for place, _ in whole)]
    texts = [
        embedded.decode(ids[begin:end], clean_up_tokenization_spaces=False).strip()
        for begin, (end, _) in zip(begins, whole, strict=False)
    ]
    assert [text.endswith(step) for text, step in zip(texts, chain.steps, strict=True)] == [True] * len(chain.steps)
    assert [label for _, label in whole] == ["+" if target else "-" for target in chain.targets]
    cut = cut_near(data, [place for place, _ in whole])
    kept = openr_labels(row, embedded_encoder.ids, cut)
    offences = list(OPENR.token_offences(row, OPENR.marks, embedded_encoder, cut))
    assert lost(offences, len(whole)) == len(whole) - len(kept)


def test_what_openr_would_misread_is_reported(embedded_encoder: Encoder, tiny_encoder: Encoder) -> None:
    assert kinds(OPENR, example([1], steps=["a\n\n\n\n\nb"])) == [("mark_in_text", True)]
    assert kinds(OPENR, example([1, 0])) == []
    row = OPENR.row(example([1, 0]), OPENR.marks)
    assert row["process"] == ("Step 1: We add 1 and go on. \n\n\n\n\n Step 2: We add 2 and go on. \n\n\n\n\n")
    assert found(OPENR, row, embedded_encoder) == []
    assert found(OPENR, row, tiny_encoder) == ["not_one_token"]


# SCAN


def scan_scores(row: Any, encode: Any, max_length: int) -> list[tuple[int, float]]:
    """yyDing1/SCAN-PRM, src/train_prm/prm_dataset.py at f33fdc7, `__getitem__`: places of scores in the row's tokens."""
    scores = [-100.0] * len(encode(row["question"] + "\n\n"))
    for step, score in zip(row["steps"], row["scores"], strict=True):
        scores += [-100.0] * len(encode(step)) + [score]
    return [(place, score) for place, score in enumerate(scores[:max_length]) if score != -100]


@given(chain=examples(probabilities), data=st.data())
def test_scan_loses_what_is_foretold(embedded_encoder: Encoder, chain: TrainingExample, data: st.DataObject) -> None:
    row = SCAN.row(chain, SCAN.marks)
    whole = scan_scores(row, embedded_encoder.ids, 10**6)
    assert [score for _, score in whole] == chain.targets
    cut = cut_near(data, [place for place, _ in whole])
    kept = scan_scores(row, embedded_encoder.ids, cut)
    offences = list(SCAN.token_offences(row, SCAN.marks, embedded_encoder, cut))
    assert lost(offences, len(chain.steps)) == len(chain.steps) - len(kept)


def test_scan_separates_by_blank_lines() -> None:
    assert kinds(SCAN, example([0.5], steps=["a\n\nb"])) == [("separator_in_step", False)]
    assert kinds(SCAN, example([0.5]), separator="\n") == [("other_separator", True)]
    assert SCAN.row(example([1, 0]), SCAN.marks)["scores"] == [1.0, 0.0]


# Qwen


def test_qwens_chat_has_a_placeholder_for_each_label(marked: Any, marked_encoder: Encoder) -> None:
    """The model card of Qwen/Qwen2.5-Math-PRM-7B: rewards are read where the chat's token is `<extra_0>`."""
    row: Any = QWEN.row(example([1, 0, 1]), QWEN.marks)
    answer = "<extra_0>".join(row["response"]) + "<extra_0>"
    talk = messages(row, QWEN.marks)
    assert [turn["role"] for turn in talk] == ["system", "user", "assistant"]
    assert (talk[0]["content"], talk[1]["content"], talk[2]["content"]) == (row["system"], "What is 3 + 4?", answer)
    ids = marked_encoder.chat(talk)
    assert ids.count(marked.encode("<extra_0>")[0]) == len(row["labels"])
    assert found(QWEN, row, marked_encoder) == []
    assert found(QWEN, row, marked_encoder, 10) == ["all_labels_lost"]


def test_what_is_in_the_way_of_qwens_placeholder_is_reported(embedded_encoder: Encoder, tiny_encoder: Encoder) -> None:
    row = QWEN.row(example([0.5]), QWEN.marks)
    assert row["labels"] == [0.5]
    assert found(QWEN, row, embedded_encoder) == ["not_one_token"]
    assert kinds(QWEN, example([1], steps=["so <extra_0>"])) == [("mark_in_text", True)]
    with pytest.raises(UsageError, match="chat template"):
        list(QWEN.token_offences(row, Marks(placeholder="+"), tiny_encoder, None))


# RLHFlow


def rlhflow_talk(problem: str, steps: Sequence[str]) -> list[str]:
    """RLHFlow/RLHF-Reward-Modeling, math-rm/prm_evaluate.py at 5b2a281, `select_sample`: the user's turns."""
    return [f"{problem} {step}" if number == 0 else step for number, step in enumerate(steps)]


def test_rlhflow_is_reported_a_step_a_turn(embedded_encoder: Encoder) -> None:
    chain = example([1, 1, 0])
    row: Any = RLHFLOW.row(chain, RLHFLOW.marks)
    turns = row["conversations"]
    assert [turn["role"] for turn in turns] == ["user", "assistant"] * 3
    assert [turn["content"] for turn in turns[::2]] == rlhflow_talk(chain.problem, list(chain.steps))
    assert [turn["content"] for turn in turns[1::2]] == ["+", "+", "-"]
    tokens = len(embedded_encoder.chat(turns))
    assert found(RLHFLOW, row, embedded_encoder, tokens) == []
    assert found(RLHFLOW, row, embedded_encoder, tokens - 1) == ["too_long"]


# PRM800K


def trl_prm800k(row: Any) -> list[tuple[list[str], list[bool]]]:
    """huggingface/trl, examples/datasets/prm800k.py at 0ad367a, `process_example`."""
    outputs: list[tuple[list[str], list[bool]]] = []
    texts: list[str] = []
    labels: list[bool] = []
    for step in row["label"]["steps"]:
        for number, completion in enumerate(step["completions"]):
            if number != step["chosen_completion"]:
                outputs.append(([*texts, completion["text"]], [*labels, completion["rating"] == 1]))
        chosen = step["completions"][step["chosen_completion"]]
        texts.append(chosen["text"])
        labels.append(chosen["rating"] == 1)
    return [*outputs, (texts, labels)]


def test_prm800ks_readers_find_the_chain() -> None:
    chain = example([1, 2, None, 0, 1])
    row: Any = PRM800K.row(chain, PRM800K.marks)
    assert [step["completions"][0]["rating"] for step in row["label"]["steps"]] == [1, 0, None, -1, 1]
    assert trl_prm800k(row) == [(list(chain.steps), [True, False, False, False, True])]
    own = own_reader(Layout.prm800k, row)
    assert (own.problem, own.answer, own.steps) == (chain.problem, "7", list(chain.steps))


def test_openr_can_read_what_is_not_known_of_prm800k() -> None:
    """openreasoner/openr, preprocess/src/data_types/prm800k.py at 642c6da: required fields."""
    row: Any = PRM800K.row(example([1]), PRM800K.marks)
    assert UUID(row["labeler"]).int == 0
    assert datetime.strptime(row["timestamp"], "%Y-%m-%dT%H:%M:%S.%f").year == 1970
    assert type(row["label"]["total_time"]) is int
    assert all(type(row[name]) is bool for name in ("is_quality_control_question", "is_initial_screening_question"))


@pytest.mark.parametrize(
    ("targets", "outcome", "reason"),
    [([1, 0], True, "found_error"), ([1, 1], True, "solution"), ([1, None], False, "give_up"), ([1], None, "give_up")],
)
def test_prm800ks_finish_is_what_is_known(targets: list[int | None], outcome: bool | None, reason: str) -> None:
    row: Any = PRM800K.row(example(targets, outcome=outcome), PRM800K.marks)
    assert row["label"]["finish_reason"] == reason


# ProcessBench and outcomes


@pytest.mark.parametrize(("targets", "label"), [([1, 0, 1], 1), ([0], 0), ([1, 1], -1), ([1, 0, None], 1)])
def test_processbench_counts_from_nought(targets: list[int | None], label: int) -> None:
    chain = example(targets, outcome=True)
    row = PROCESSBENCH.row(chain, PROCESSBENCH.marks)
    assert (row["label"], row["final_answer_correct"]) == (label, True)
    assert kinds(PROCESSBENCH, chain) == []
    assert own_reader(Layout.processbench, row).steps == list(chain.steps)


@pytest.mark.parametrize("targets", [[None, 0], [1, None], [None]])
def test_an_unknown_first_error_is_reported(targets: list[int | None]) -> None:
    assert kinds(PROCESSBENCH, example(targets)) == [("first_error_unknown", True)]


def test_outcomes_are_about_whole_solutions(tiny_encoder: Encoder) -> None:
    row = ORM.row(example([None, None], problem="1+1", steps=["1", "2"], outcome=True), ORM.marks)
    assert row == {"prompt": "1+1", "response": "1\n2", "label": 1}
    assert found(ORM, row, tiny_encoder, 6) == []
    assert found(ORM, row, tiny_encoder, 5) == ["end_lost"]
    assert found(ORM, row, tiny_encoder) == []
    assert ORM.row(example([1]), ORM.marks)["label"] == 0
    assert kinds(ORM, example([1], outcome=None)) == [("no_outcome", True)]


FORMATS: dict[str, Format] = {
    name: exporter.layout
    for name in EXPORTS.ours
    if isinstance(exporter := exporter_for(settings(name)), LayoutExporter)
}
TARGETS: dict[TargetKind, list[StepTarget]] = {
    TargetKind.hard: [1, 1, 0],
    TargetKind.soft: [1.0, 0.25, 0.0],
    TargetKind.counts: [(3, 3), (1, 4), (0, 2)],
}
CASES = [(name, target) for name, layout in FORMATS.items() for target in layout.targets]


@pytest.mark.parametrize(("name", "target"), CASES, ids=str)
def test_datasets_reads_the_same_from_jsonl_and_parquet(name: str, target: TargetKind, tmp_path: Path) -> None:
    layout = FORMATS[name]
    given = TARGETS[target]
    some = [*given[:1], None, *given[1:]] if layout.ignores else given
    chains = [example(given, outcome=True), example(some, problem='é\n"?"', final_answer=None)]
    rows = [layout.row(chain, layout.marks) for chain in chains]
    for file in FileType:
        assert loaded(rows, layout.schema(target), file, tmp_path).to_list() == rows


@pytest.mark.parametrize("name", FORMATS, ids=str)
def test_every_format_reports_a_chain_without_steps_and_nothing_of_a_plain_one(name: str) -> None:
    layout = FORMATS[name]
    assert ("no_steps", True) in kinds(layout, example([]))
    assert kinds(layout, example(TARGETS[layout.targets[0]])) == []
