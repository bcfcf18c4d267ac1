"""Each published format gives the tokens of the published code for ordinary texts, and no text can add a step or a turn."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.config.score import ScorerConfig
from pipeline.data.prompts import plain_encoder
from pipeline.scorers.layouts import following
from pipeline.scorers.model import Reading
from pipeline.scorers.settings import FoverConfig, MathShepherdConfig, QwenConfig, RlhflowConfig, SkyworkConfig
from tests.scorers import reference
from tests.scorers.loaded import encoded, reading
from tests.scorers.published import (
    PROBLEM,
    STEPS,
    llama_tokenizer,
    mistral_tokenizer,
    qwen_tokenizer,
    skywork_tokenizer,
)

LONG = 1_000_000


@dataclass(frozen=True)
class Layout:
    """`read`: the text of the token at which steps are read."""

    tokenizer: Callable[[], Any]
    settings: ScorerConfig
    published: Callable[[Any, str, Sequence[str]], list[int]]
    read: str


LAYOUTS = {
    "qwen": Layout(qwen_tokenizer, QwenConfig(model="m"), reference.qwen_ids, "<extra_0>"),
    "math_shepherd": Layout(mistral_tokenizer, MathShepherdConfig(model="m"), reference.math_shepherd_ids, "ки"),
    "rlhflow": Layout(llama_tokenizer, RlhflowConfig(model="m"), reference.rlhflow_ids, "\n\n"),
    "fover": Layout(llama_tokenizer, FoverConfig(model="m"), reference.fover_ids, "\n\n"),
    "skywork": Layout(skywork_tokenizer, SkyworkConfig(model="m"), reference.skywork_ids, "\n"),
}
by_layout = pytest.mark.parametrize("name", LAYOUTS)

words = st.lists(
    st.sampled_from(
        [
            "There",
            " are",
            "18",
            ".",
            "\n",
            "\n\n",
            "  ",
            " ",
            "é",
            "\\boxed{",
            "}",
            "+",
            "-",
            "ки",
            "руки",
            "<",
            "|",
            "ß𝄞",
        ]
    ),
    max_size=12,
).map("".join)
steps_of = st.lists(words.map(str.strip).filter(bool), min_size=1, max_size=5)
SPECIAL = [
    *("<extra_0>", "<|im_end|>", "<|im_start|>", "<|endoftext|>", "<|eot_id|>", "<|start_header_id|>"),
    *(
        "<|begin_of_text|>",
        "<s>",
        "</s>",
        " ки",
        "ки\n",
        "\n",
        "\n\n",
        "<|im_start|>assistant\n",
        "+",
        "correct",
        "{step}",
    ),
    *("\ue0000\ue001", "\u2003", "{{ bos_token }}", "{problem}", "%s"),
]
hostile = st.lists(st.sampled_from([*SPECIAL, "a", " 1 ", ""]), max_size=8).map("".join)


@cache
def prepared(name: str) -> tuple[Any, Reading]:
    layout = LAYOUTS[name]
    tokenizer = layout.tokenizer()
    return tokenizer, reading(layout.settings, tokenizer)


@by_layout
def test_a_usual_chain_has_the_tokens_of_the_published_code(name: str) -> None:
    tokenizer, read = prepared(name)
    found = read.encode(PROBLEM, STEPS, LONG)
    assert list(found.ids) == LAYOUTS[name].published(tokenizer, PROBLEM, STEPS)
    assert [tokenizer.decode([found.ids[end]]).strip(" ") for end in found.ends] == [LAYOUTS[name].read] * 3
    assert found.left_out == 0


@by_layout
@given(problem=words, steps=steps_of)
def test_texts_without_special_tokens_have_the_tokens_of_the_published_code(
    name: str, problem: str, steps: list[str]
) -> None:
    tokenizer, read = prepared(name)
    assert list(read.encode(problem, steps, LONG).ids) == LAYOUTS[name].published(tokenizer, problem, steps)


@by_layout
@given(problem=hostile, steps=st.lists(hostile, min_size=1, max_size=5))
def test_a_text_adds_no_step_and_no_special_token(name: str, problem: str, steps: list[str]) -> None:
    tokenizer, read = prepared(name)
    found = read.encode(problem, steps, LONG)
    usual = read.encode("1", ["2"] * len(steps), LONG)
    special = set(tokenizer.all_special_ids) | set(tokenizer.get_added_vocab().values())
    assert [token for token in found.ids if token in special] == [token for token in usual.ids if token in special]
    assert len(found.ends) == len(steps)
    assert list(found.ends) == sorted(set(found.ends))
    assert {found.ids[end] for end in found.ends} == {usual.ids[end] for end in usual.ends}


@by_layout
@given(problem=hostile, steps=st.lists(hostile, min_size=1, max_size=4), further=hostile)
def test_a_step_reads_the_same_whatever_follows(name: str, problem: str, steps: list[str], further: str) -> None:
    _, read = prepared(name)
    shorter, longer = read.encode(problem, steps, LONG), read.encode(problem, [*steps, further], LONG)
    assert longer.ends[:-1] == shorter.ends
    assert longer.ids[: shorter.ends[-1] + 1] == shorter.ids[: shorter.ends[-1] + 1]


@by_layout
@given(problem=words, steps=steps_of, share=st.floats(0, 1.2))
def test_what_does_not_fit_are_whole_steps_at_the_end(name: str, problem: str, steps: list[str], share: float) -> None:
    _, read = prepared(name)
    whole = read.encode(problem, steps, LONG)
    max_length = max(1, int(share * len(whole.ids)))
    found = read.encode(problem, steps, max_length)
    assert len(found.ids) <= max_length
    assert found.ids == whole.ids[: len(found.ids)]
    assert found.ends == tuple(end for end in whole.ends if end < max_length)
    assert found.left_out == len(steps) - len(found.ends)
    assert bool(found.ids) == bool(found.ends)


@by_layout
def test_an_empty_step_has_a_place_of_its_own(name: str) -> None:
    tokenizer, read = prepared(name)
    found = read.encode(PROBLEM, ["First.", "", "Last."], LONG)
    assert len(found.ends) == 3
    assert found.ends[0] < found.ends[1] < found.ends[2]
    if name != "math_shepherd":
        published = LAYOUTS[name].published(tokenizer, PROBLEM, ["First.", "", "Last."])
        assert list(found.ids) == published


@by_layout
def test_a_chain_without_steps_has_no_place_to_read(name: str) -> None:
    _, read = prepared(name)
    found = read.encode(PROBLEM, [], LONG)
    assert (found.ends, found.left_out) == ((), 0)


def test_a_text_that_ends_in_the_separator_makes_no_further_step() -> None:
    tokenizer, read = prepared("skywork")
    ended, plain = (read.encode(PROBLEM, [f"Two.{end}", f"Three.{end}{end}"], LONG) for end in ("\n", ""))
    assert ended == plain
    assert list(plain.ids) == reference.skywork_ids(tokenizer, PROBLEM, ["Two.", "Three."])
    for name, separator in (("qwen", "<extra_0>"), ("math_shepherd", " ки")):
        _, read = prepared(name)
        assert len(read.encode(PROBLEM, [f"Two.{separator}", f"Three.{separator}"], LONG).ends) == 2


def test_a_step_of_several_lines_is_read_at_its_last_line() -> None:
    tokenizer, read = prepared("skywork")
    steps = ["One:\n1\n\n2", "Three."]
    found = read.encode(PROBLEM, steps, LONG)
    ids, flags = reference.prepare_input(tokenizer, PROBLEM, steps)
    places = [index for index, flag in enumerate(flags) if flag]
    assert list(found.ids) == ids
    assert found.ends == (places[3], places[4])


def test_a_template_that_removes_blanks_does_so_and_another_keeps_them() -> None:
    problem, steps = "  2 + 2? ", [" 4 ", "\n\nSo 4.\n"]
    for name in ("qwen", "rlhflow", "fover"):
        tokenizer, read = prepared(name)
        assert list(read.encode(problem, steps, LONG).ids) == LAYOUTS[name].published(tokenizer, problem, steps)


def test_an_added_token_that_is_not_special_stays_text_in_a_text() -> None:
    tokenizer = qwen_tokenizer(tag_is_special=False)
    tag = tokenizer.convert_tokens_to_ids("<extra_0>")
    found = encoded(QwenConfig(model="m"), tokenizer, "A <extra_0> b", ["c<extra_0><extra_0>", "d"])
    assert [index for index, token in enumerate(found.ids) if token == tag] == list(found.ends)
    assert tokenizer.decode(found.ids).count("<extra_0>") == 5


def test_the_first_turn_of_fover_is_what_its_repository_says_and_another_may_be_given() -> None:
    tokenizer = llama_tokenizer()
    text = tokenizer.decode(encoded(FoverConfig(model="m"), tokenizer, "1+1?", ["{problem}", "2"]).ids)
    assert reference.FOVER_TEMPLATE.format(problem="1+1?", first_step="{problem}") in text
    own = FoverConfig(model="m", first_turn=r"Q: {problem}\nA: {step}!", good="yes", bad="no")
    text = tokenizer.decode(encoded(own, tokenizer, "{step}", ["2", "3"]).ids)
    assert "Q: {step}\nA: 2!<|eot_id|>" in text
    assert text.endswith("\n\n3<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\nyes<|eot_id|>")


@pytest.mark.parametrize(("kind", "make"), [("llama", llama_tokenizer), ("qwen", qwen_tokenizer)])
def test_fover_is_read_where_its_repository_reads_it(kind: str, make: Callable[[], Any]) -> None:
    tokenizer = make()
    found = encoded(FoverConfig(model="m"), tokenizer, PROBLEM, STEPS)
    assert list(found.ids) == reference.fover_ids(tokenizer, PROBLEM, STEPS)
    assert list(found.ends) == reference.fover_positions(tokenizer, found.ids, kind)
    assert len(found.ends) == 3


def test_steps_are_numbered_where_that_is_asked_for() -> None:
    tokenizer = mistral_tokenizer()
    steps = ["One.", "Step 2: Two.", "Three"]
    plain = encoded(MathShepherdConfig(model="m"), tokenizer, "1?", steps)
    numbered = encoded(MathShepherdConfig(model="m", numbered=True), tokenizer, "1?", steps)
    assert tokenizer.decode(plain.ids) == "<s> 1? One. ки\nStep 2: Two. ки\nThree ки"
    assert tokenizer.decode(numbered.ids) == "<s> 1? Step 1: One. ки\nStep 2: Two. ки\nStep 3: Three ки"


def test_a_system_turn_may_be_given() -> None:
    tokenizer = llama_tokenizer()
    settings = RlhflowConfig(model="m", system="Judge all steps.")
    text = tokenizer.decode(encoded(settings, tokenizer, "1?", ["2"]).ids)
    assert "26 Jul 2024\n\nJudge all steps.<|eot_id|><|start_header_id|>user" in text


@given(st.lists(hostile, max_size=4))
def test_a_text_after_another_has_the_tokens_that_it_has_there(texts: list[str]) -> None:
    tokenizer = prepared("math_shepherd")[0]
    encode = plain_encoder(tokenizer)
    later = following(encode, "1. ки")
    for text, ids in zip(texts, later(texts), strict=True):
        (together,) = encode(["1. ки" + text])
        if list(together[:3]) == list(encode(["1. ки"])[0]):
            assert list(together) == [*encode(["1. ки"])[0], *ids]
        else:
            assert list(ids) == list(encode([text])[0])


def test_where_the_text_before_merges_the_rest_is_tokenized_alone() -> None:
    tokenizer = mistral_tokenizer(words=["▁кит"])
    later = following(plain_encoder(tokenizer), "1. ки")
    merged, plain = later(["т\n", "\n"])
    assert tokenizer.decode(merged).strip() == "т"
    assert tokenizer.convert_ids_to_tokens(plain) == ["<0x0A>"]
