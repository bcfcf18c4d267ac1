"""Rollouts and chains of a problem become one tree: who is counted where, what is joined, and what is left out."""

from collections.abc import Sequence
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.core.records import UNGRADED, Verdict
from pipeline.trees.tree import NO_PARENT, RolloutTree, StepLabel, Tally, WrittenRollout, by_count, most_counted
from tests.trees.growing import at, chain, grown, line_cut, rollout

CHAINS = [chain("a", "b", "end"), chain("a", "x", "y", "stop", outcome=False), chain("a", "b", "open", outcome=None)]
PREFIXES = ["", "a", "a|b", "a|x", "a|x|y", "a|b|open", "unknown"]
LINES = ("a", "b", "x", "y", " b ", "", "end")
verdicts = st.sampled_from([verdict.value for verdict in Verdict])
finishes = st.sampled_from(["stop", "stop", "length", "abort", "too_long", "engine_failed"])
texts = st.lists(st.sampled_from(LINES), max_size=5).map("\n".join)


@st.composite
def logs(draw: st.DrawFn) -> list[WrittenRollout]:
    return [
        rollout(
            draw(st.sampled_from(PREFIXES)),
            draw(texts),
            draw(verdicts),
            number,
            finish=draw(finishes),
            round=draw(st.integers(0, 2)),
            n_tokens=draw(st.integers(0, 9)),
        )
        for number in range(draw(st.integers(0, 25)))
    ]


def counted(tally: Tally) -> int:
    return tally.graded + tally.ungraded


def seen(tree: RolloutTree) -> dict[tuple[tuple[str, ...], bool], tuple[object, ...]]:
    """What a tree says of each node, whatever its place."""
    return {
        (tuple(tree.steps(place)), node.ended): (
            node.outcome, node.label, node.source, sorted(node.prefix_ids),
            *(str(tally) for tally in (node.issued, node.fair_issued, node.passed, node.fair_passed)),
        )
        for place, node in enumerate(tree.nodes)
    }  # fmt: skip


@given(logs())
def test_each_rollout_is_counted_once_at_each_node_of_its_path(log: list[WrittenRollout]) -> None:
    tree, cut = grown(CHAINS, log), line_cut()
    written = [each for each in log if each.finish in ("stop", "length") and each.prefix_id != "unknown"]
    assert sum(counted(node.issued) for node in tree.nodes) == len(written) == tree.rollouts
    assert tree.tokens == sum(each.n_tokens for each in written)
    steps = 0
    for each in written:
        before = f"{each.prefix_id.split('|')[-1]}\n" if each.prefix_id and each.prefix_id != "a|b|open" else ""
        found = cut(before or ("open" if each.prefix_id else ""), each.text)
        steps += len(found) if each.finish == "stop" else max(0, len(found) - 1)
    assert sum(counted(node.passed) for node in tree.nodes) == steps


@given(logs(), st.sampled_from([None, 0, 1, 2]))
def test_no_child_has_more_rollouts_than_its_parent_and_all_counts_hold(
    log: list[WrittenRollout], fair: int | None
) -> None:
    tree = grown(CHAINS, log, fair)
    for place, node in enumerate(tree.nodes):
        assert all(tree.nodes[child].parent == place and child > place for child in node.children)
        passing = sum(counted(tree.nodes[child].passed) for child in node.children)
        assert passing <= counted(node.issued) + counted(node.passed)
        for tally, part in ((node.issued, node.fair_issued), (node.passed, node.fair_passed)):
            assert 0 <= tally.correct <= tally.graded
            assert part.correct <= tally.correct
            assert part.graded <= tally.graded
            assert part == tally or fair is not None
            assert counted(part) == 0 or fair != 0
        assert not (node.ended and node.children)
        assert node.depth == len(tree.path(place))
        assert (node.parent == NO_PARENT) == (place == 0)


@given(logs(), st.randoms(use_true_random=False))
def test_the_order_of_rollouts_does_not_matter(log: list[WrittenRollout], random: Random) -> None:
    mixed = list(log)
    random.shuffle(mixed)
    assert seen(grown(CHAINS, mixed)) == seen(grown(CHAINS, log))
    assert grown(CHAINS, mixed) is not None
    assert [node.text for node in grown(CHAINS, mixed).nodes] == [node.text for node in grown(CHAINS, log).nodes]


def test_equal_texts_are_one_node_whatever_their_tokens_and_white_space() -> None:
    tokens = [["", "1", "12", "123"], ["", "9", "98", "987"]]
    value = StepLabel(value=0.5, correct=1, rollouts=2, label=1)
    other = StepLabel(value=0.75, correct=3, rollouts=4, label=1)
    chains = [
        chain("a", "b", "end", ids=ids, labels=[StepLabel(), label, StepLabel(), StepLabel()])
        for ids, label in zip(tokens, (value, other), strict=True)
    ]
    tree = grown(chains, [rollout("1", "b\nend"), rollout("9", "  b\n\nend", number=1)])
    assert [node.text for node in tree.nodes] == ["", "a", "b", "end"]
    first = tree.nodes[at(tree, "a")]
    assert (first.prefix_ids, first.issued.correct) == (("1", "9"), 2)
    assert first.label == StepLabel(value=0.75, correct=4, rollouts=6, label=1)
    assert tree.nodes[at(tree, "a", "b")].passed.correct == 2
    assert tree.joined == 3
    differing = [chains[0], chain("a", "b", "end", ids=tokens[1], labels=[StepLabel(), other._replace(label=0)] * 2)]
    assert grown(differing).nodes[1].label == StepLabel(value=0.75, correct=4, rollouts=6, label=None)


def test_a_chain_that_ends_and_one_that_goes_on_are_two_nodes() -> None:
    log = [rollout("a", "b", "incorrect"), rollout("a", "b\nend", number=1), rollout("a", "b\nmore\n", number=2)]
    tree = grown([chain("a", "b", "end")], log)
    ends, goes_on = tree.nodes[at(tree, "a", "b", ended=True)], tree.nodes[at(tree, "a", "b")]
    assert (ends.outcome, ends.value, ends.passed.graded) == (False, 0.0, 1)
    assert (goes_on.outcome, goes_on.passed.graded, goes_on.prefix_ids) == (None, 2, ("a|b",))
    assert tree.nodes[at(tree, "a", "b", "more", ended=True)].outcome is True


@pytest.mark.parametrize("turned", [False, True])
def test_a_prefix_that_one_chain_ends_with_and_another_goes_on_from_has_rollouts_of_the_latter(turned: bool) -> None:
    """A chain whose text ends with a line end has, as a whole, the id of the prefix of a longer one."""
    labels = [StepLabel(), StepLabel(), StepLabel(value=0.25, rollouts=4, correct=1), StepLabel()]
    chains = [chain("a", "b", outcome=False), chain("a", "b", "c", labels=labels)]
    tree = grown(chains[::-1] if turned else chains, [rollout("a|b", "c"), rollout("a|b", "d", number=1)])
    ends, goes_on = tree.nodes[at(tree, "a", "b", ended=True)], tree.nodes[at(tree, "a", "b")]
    assert (ends.value, counted(ends.issued), ends.children) == (0.0, 0, [])
    assert (goes_on.value, goes_on.issued.correct, len(goes_on.children)) == (0.25, 2, 2)


def test_what_goes_on_after_the_end_of_a_chain_is_no_trial_of_that_chain() -> None:
    """The last step of a chain whose answer could not be graded at first has rollouts."""
    tree = grown([chain("a", "b", outcome=False)], [rollout("a|b", "c")])
    assert counted(tree.nodes[at(tree, "a", "b", ended=True)].issued) == 0
    goes_on = tree.nodes[at(tree, "a", "b")]
    assert (goes_on.issued.correct, goes_on.prefix_ids, goes_on.label) == (1, ("a|b",), None)


def test_the_last_step_of_a_rollout_that_a_limit_ended_is_no_node() -> None:
    tree = grown([chain("a", "b", "end")], [rollout("a", "b\nx\nha", "no_answer", finish="length")])
    assert [node.text for node in tree.nodes] == ["", "a", "b", "end", "x"]
    node = tree.nodes[at(tree, "a", "b", "x")]
    assert (node.ended, node.passed.graded, node.passed.correct) == (False, 1, 0)
    assert tree.nodes[at(tree, "a")].issued.graded == 1


@pytest.mark.parametrize("finish", ["abort", "too_long", "engine_failed"])
def test_rollouts_that_were_not_written_out_are_left_out(finish: str) -> None:
    tree = grown([chain("a", "b", "end")], [rollout("a", "x\ny", "incorrect", finish=finish)])
    assert len(tree.nodes) == 4
    assert (tree.rollouts, tree.tokens, tree.nodes[1].graded) == (0, 0, 0)


@pytest.mark.parametrize("verdict", sorted(UNGRADED))
def test_ungraded_rollouts_are_counted_apart(verdict: str) -> None:
    log = [rollout("a", "x\ny", verdict), rollout("a", "x\nz", number=1)]
    tree = grown([chain("a", "b", "end")], log)
    node = tree.nodes[at(tree, "a", "x")]
    assert (node.passed.graded, node.passed.ungraded, node.passed.correct) == (1, 1, 1)
    assert (tree.nodes[1].graded, tree.nodes[1].issued.ungraded) == (1, 1)
    assert tree.nodes[at(tree, "a", "x", "y", ended=True)].outcome is None
    again = grown([chain("a", "b", "end")], [*log, rollout("a", "x\ny", "incorrect", number=2)])
    assert again.nodes[at(again, "a", "x", "y", ended=True)].outcome is False


def test_the_source_of_a_node_is_where_its_text_stands() -> None:
    log = [rollout("a", "b\n\n  x \nlast", number=number) for number in (2, 1)]
    tree = grown([chain("a", "b", "end")], log)
    for steps, ended in ((("a", "b"), False), (("a", "b", "x"), False), (("a", "b", "x", "last"), True)):
        source = tree.nodes[at(tree, *steps, ended=ended)].source
        assert source is not None
        assert (source.rollout_id, source.prefix_id, source.steps) == ("a/1", "a", len(steps) - 1)
        assert log[1].text[: source.end].strip().endswith(steps[-1])
    assert tree.nodes[1].source is None


def test_sets_of_siblings_are_the_steps_after_one_prefix() -> None:
    tree = grown(CHAINS)
    found = [[tree.nodes[place].text for place in places] for places in tree.sibling_sets()]
    assert sorted(found) == [["b", "x"], ["end", "open"]]


def test_only_the_first_rounds_are_fair_where_the_estimator_looked_at_outcomes() -> None:
    log = [rollout("a", "x\ny", number=number, round=number) for number in range(3)]
    expected: Sequence[tuple[int | None, int]] = [(None, 3), (0, 0), (1, 1), (2, 2)]
    for fair, graded in expected:
        tree = grown([chain("a", "b", "end")], log, fair)
        node = tree.nodes[at(tree, "a", "x")]
        assert (node.passed.graded, node.fair_passed.graded, tree.nodes[1].fair_issued.graded) == (3, graded, graded)


@given(logs(), st.integers(0, 12))
def test_the_part_that_a_reader_sees_first_has_the_parents_of_its_nodes(log: list[WrittenRollout], most: int) -> None:
    tree = grown(CHAINS, log)
    places = most_counted(tree, most)
    assert places == sorted(set(places))
    assert len(places) == min(most, len(tree.nodes))
    assert all(tree.nodes[place].parent in {NO_PARENT, *places} for place in places)
    assert most_counted(tree, len(tree.nodes)) == list(range(len(tree.nodes)))
    for node in tree.nodes:
        counts = [tree.nodes[place].graded for place in by_count(tree, node.children)]
        assert counts == sorted(counts, reverse=True)
