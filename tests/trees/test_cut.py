"""The text of a rollout is cut into the steps that it adds to its prefix."""

from hypothesis import given
from hypothesis import strategies as st

from pipeline.config.choices import Splitter
from pipeline.config.label import DataConfig
from pipeline.data.steps import split, step_texts
from pipeline.trees.cut import StepCut, step_cut
from tests.strategies import texts


def cut_by(splitter: Splitter) -> StepCut:
    return step_cut(DataConfig(path="rows.jsonl", splitter=splitter))


@given(texts, st.sampled_from([each for each in Splitter if each is not Splitter.regex]))
def test_a_rollout_of_the_bare_problem_is_cut_like_a_chain(text: str, splitter: Splitter) -> None:
    found = cut_by(splitter)("", text)
    assert [step.text for step in found] == [step for step in step_texts(text, split(text, splitter)) if step]


@given(texts, texts, st.sampled_from([each for each in Splitter if each is not Splitter.regex]))
def test_steps_and_what_is_between_them_are_the_text(before: str, text: str, splitter: Splitter) -> None:
    found = cut_by(splitter)(before, text)
    begin = 0
    for step in found:
        assert text[begin : step.end].strip() == step.text != ""
        begin = step.end
    assert not text[begin:].strip()


def test_a_prefix_is_not_joined_with_what_follows_it() -> None:
    assert [step.text for step in cut_by(Splitter.newline)("We add", " 3.\nSo 5.")] == ["3.", "So 5."]
    assert [step.text for step in cut_by(Splitter.sentence)("We add.", " So 5. Then 6.")] == ["So 5.", "Then 6."]


def test_a_text_without_a_step_has_none() -> None:
    for text in ("", " \n\n\t"):
        assert cut_by(Splitter.newline)("We add.\n", text) == ()


def test_a_known_text_is_not_cut_again() -> None:
    cut = cut_by(Splitter.newline)
    assert cut("a\n", "b\nc") is cut("a\n", "b\nc")
