"""The ids of a search follow from the problem and the draws, and equal prefixes have equal ids."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from pipeline.searches.base import Node, Sample
from pipeline.searches.log import node_id, prefix_id, root_of

texts = st.lists(st.text(max_size=8), max_size=4)


ROOT = root_of("p")


def test_ids_stay_the_same_from_version_to_version() -> None:
    sample = Sample(node=ROOT, draw=3, steps=2).key
    assert (ROOT.node_id, ROOT.prefix_id, sample, node_id(sample, 1)) == (
        "327853239575233c03a1",
        "a6d7eafddec4d16a9c84",
        "953f12cd37e336bf1370",
        "dba81077a6e138ae4b9c",
    )


@given(texts, texts)
def test_prefixes_are_equal_exactly_when_their_trimmed_steps_are(one: list[str], other: list[str]) -> None:
    def words(steps: list[str]) -> list[str]:
        return [step.strip() for step in steps if step.strip()]

    assert (prefix_id("p", one) == prefix_id("p", other)) == (words(one) == words(other))


@given(texts)
def test_a_prefix_belongs_to_one_problem(steps: list[str]) -> None:
    assert prefix_id("p", steps) != prefix_id("q", steps)


def test_no_two_ids_of_a_search_are_equal() -> None:
    made: Counter[str] = Counter()
    for problem in ("p", "q"):
        root = root_of(problem)
        made.update([root.node_id, root.prefix_id])
        for draw in range(3):
            for steps in range(3):
                sample = Sample(node=root, draw=draw, steps=steps).key
                made.update([sample, *(node_id(sample, index) for index in range(3))])
    assert set(made.values()) == {1}


def test_an_answer_that_became_another_text_has_other_successors() -> None:
    def after(text: str) -> str:
        drawn = node_id(Sample(node=ROOT, draw=0).key, 0)
        node = Node(node_id=drawn, parent=ROOT, depth=1, text=text, prefix_id=prefix_id("p", [text]))
        return Sample(node=node, draw=0).key

    assert after("one") == after("one\n") != after("other")
