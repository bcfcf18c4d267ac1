"""Chains are matched by their texts, and every row without a match is counted."""

from hypothesis import given
from hypothesis import strategies as st

from pipeline.analysis.agree.human import match, subsets
from pipeline.data.layouts import MAX_SUBSETS
from tests.agree.pairs import human, labelled, pair


def test_texts_decide_but_for_white_space() -> None:
    people = [human([True, True], problem="What is\n 1?", steps=["a  b", "c"], source_id="x")]
    matched = match(people, [labelled([1, 1], problem="What is 1?", steps=["a b", "c"], source_id="y")])
    assert len(matched.pairs) == 1
    assert (matched.unmatched_human, matched.unmatched_labelled, matched.other_text) == (0, 0, 0)


def test_steps_cut_elsewhere_are_another_chain_and_an_id_proves_nothing() -> None:
    people = [human([True], steps=["a b"], source_id="x"), human([True], steps=["z"], source_id=None)]
    matched = match(people, [labelled([1, 1], steps=["a", "b"], source_id="x"), labelled([1], steps=["q"])])
    assert matched.pairs == ()
    assert (matched.unmatched_human, matched.unmatched_labelled, matched.other_text) == (2, 2, 1)


def test_an_id_decides_between_equal_texts() -> None:
    ours = [labelled([0], source_id="x"), labelled([1], source_id="y")]
    assert match([human([True], source_id="y")], ours).pairs[0].labelled is ours[1]
    assert match([human([True], source_id="z")], ours).pairs[0].labelled is ours[0]
    assert match([human([True], source_id="z")], ours).unmatched_labelled == 1


def test_the_first_word_of_people_about_a_chain_counts() -> None:
    people = [human([True]), human([False]), human([True])]
    matched = match(people, [labelled([1])])
    assert [found.human for found in matched.pairs] == people[:1]
    assert (matched.repeated, matched.contradicting) == (2, 1)


@given(st.lists(st.integers(0, 4)), st.lists(st.integers(0, 4)))
def test_every_row_is_counted_once(people: list[int], ours: list[int]) -> None:
    matched = match([human([True], steps=[str(n)]) for n in people], [labelled([1], steps=[str(n)]) for n in ours])
    assert len(matched.pairs) + matched.unmatched_human + matched.repeated == len(people)
    assert len(matched.pairs) + matched.unmatched_labelled == len(ours)
    assert len(matched.pairs) == len(set(people) & set(ours))


def test_subsets_are_what_ids_begin_with() -> None:
    ids = ["gsm8k-40", "gsm8k-7", "math-12", "MATH/test/5", "uuid", None, "7"]
    assert subsets([pair(-1, [1], source_id=name) for name in ids]) == [
        "gsm8k", "gsm8k", "math", "MATH/test", None, None, None,
    ]  # fmt: skip
    many = [pair(-1, [1], source_id=f"{letter}-1") for letter in "abcdefghijklm"]
    assert len(many) > MAX_SUBSETS
    assert set(subsets(many)) == {None}
