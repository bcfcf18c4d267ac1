"""Rollouts and chains of a problem become one tree: how texts are cut, who is counted where, and what posteriors follow."""

from collections.abc import Sequence
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.config.choices import Splitter
from pipeline.config.label import DataConfig
from pipeline.core.records import UNGRADED, Verdict
from pipeline.data.steps import split, step_texts
from pipeline.trees.cut import StepCut, step_cut
from pipeline.trees.posterior import (
    USUAL_STRENGTH,
    MeasuredStep,
    Posterior,
    learned_strength,
    posteriors,
    probabilities_better,
    strength_after,
)
from pipeline.trees.tree import NO_PARENT, RolloutTree, StepLabel, Tally, WrittenRollout, by_count, most_counted
from tests import strategies as our
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


def cut_by(splitter: Splitter) -> StepCut:
    return step_cut(DataConfig(path="rows.jsonl", splitter=splitter))


@given(our.texts, st.sampled_from([each for each in Splitter if each is not Splitter.regex]))
def test_a_rollout_of_the_bare_problem_is_cut_like_a_chain(text: str, splitter: Splitter) -> None:
    found = cut_by(splitter)("", text)
    assert [step.text for step in found] == [step for step in step_texts(text, split(text, splitter)) if step]


@given(our.texts, our.texts, st.sampled_from([each for each in Splitter if each is not Splitter.regex]))
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


strengths = st.floats(0.1, 100.0)


@given(logs(), strengths)
def test_the_mean_of_what_is_not_known_is_between_0_and_1(log: list[WrittenRollout], strength: float) -> None:
    tree = grown(CHAINS, log)
    for node, found in zip(tree.nodes, posteriors(tree, strength), strict=True):
        if node.ended and node.outcome is not None:
            assert found.mean == node.outcome
        else:
            assert 0 < found.mean < 1
            assert found.a + found.b >= node.graded
        assert 0 <= found.above(0.5) <= 1


@given(st.integers(0, 8), st.integers(0, 8), strengths)
def test_more_correct_rollouts_make_a_node_better(correct: int, wrong: int, strength: float) -> None:
    def mean(more: int) -> float:
        said = ["correct"] * (correct + more) + ["incorrect"] * (wrong + 1 - more)
        log = [rollout("a", f"x\n{number}", verdict, number) for number, verdict in enumerate(said)]
        log += [rollout("a", "b\nz", "incorrect", 100), rollout("a", "b\nz", "correct", 101)]
        tree = grown([chain("a", "b", "end")], log)
        return posteriors(tree, strength)[at(tree, "a", "x")].mean

    assert mean(1) > mean(0)


def test_rollouts_through_a_node_are_not_counted_twice() -> None:
    """All rollouts of a node's parent go through the node, so its prior follows from the prior of the parent alone."""
    log = [rollout("a", "b\nc", number=number) for number in range(6)]
    tree = grown([chain("a", "b", "end")], log)
    found = posteriors(tree, 2.0)
    root, first, second = (found[at(tree, *steps)] for steps in ((), ("a",), ("a", "b")))
    assert root == Posterior(0.5, 0.5)
    assert first == Posterior(0.25 + 6, 0.25)
    assert second == pytest.approx((1 / 7 + 6, 1 / 7))


@given(st.floats(0.3, 20.0), st.floats(0.3, 20.0), st.floats(0.1, 50.0))
def test_the_prior_after_a_step_has_the_variance_of_the_parent_and_of_the_step(
    a: float, b: float, strength: float
) -> None:
    """Beta(s V, s (1 - V)) has the second moment V (s V + 1) / (s + 1); its expectation over V of Beta(a, b) is exact."""
    mean = a / (a + b)
    of_square = mean * (a + 1) / (a + b + 1)
    second = (strength * of_square + mean) / (strength + 1)
    prior = strength_after(a + b, strength)
    assert mean * (prior * mean + 1) / (prior + 1) == pytest.approx(second, rel=1e-9)


def test_what_comes_late_in_a_wrong_rollout_is_lost_rather_surely() -> None:
    log = [rollout("a", "b\nc\nd\ne\nf", "incorrect")]
    tree = grown([chain("a", "z", "end")], log)
    found = posteriors(tree, 1.0)
    means = [found[at(tree, "a", *steps)].mean for steps in ("b", "bc", "bcd", "bcde")]
    assert means == sorted(means, reverse=True)
    assert means[-1] < means[0] / 3


nodes = st.builds(Posterior, st.floats(0.05, 60.0), st.floats(0.05, 60.0)) | st.sampled_from(
    [Posterior(1.0, 0.0), Posterior(0.0, 1.0)]
)


@given(st.lists(nodes, min_size=1, max_size=6))
def test_one_of_two_nodes_is_better_with_probabilities_that_add_up(found: list[Posterior]) -> None:
    better = probabilities_better(found)
    assert np.allclose(better + better.T, 1.0)
    assert (better >= -1e-12).all()
    assert np.allclose(np.diag(better), 0.5)


@given(nodes, st.floats(0.0, 1.0))
def test_the_probability_to_be_above_a_threshold_falls_with_it(node: Posterior, threshold: float) -> None:
    assert 0.0 <= node.above(threshold) <= 1.0
    assert node.above(threshold) >= node.above(min(1.0, threshold + 0.1)) - 1e-12


def test_probabilities_are_those_of_samples() -> None:
    random = np.random.default_rng(3)
    found = [Posterior(2.0, 3.0), Posterior(7.0, 4.0), Posterior(0.5, 0.5), Posterior(3.0, 1.5), Posterior(0.0, 1.0)]
    draws = [random.beta(node.a, node.b, 200_000) if node.a else np.zeros(200_000) for node in found]
    better = probabilities_better(found)
    for one, row in enumerate(draws):
        for other, column in enumerate(draws):
            if one != other:
                assert better[one, other] == pytest.approx(float((row > column).mean()), abs=0.05)


def test_values_that_hardly_differ_count_as_equal() -> None:
    better = probabilities_better([Posterior(1.0, 0.0), Posterior(1e4, 1.0), Posterior(30.0, 10.0)])
    assert better[0, 1] == pytest.approx(0.5, abs=0.01)
    assert better[0, 2] == pytest.approx(1.0, abs=0.01)


@pytest.mark.parametrize("strength", [0.5, 2.0, 10.0])
def test_the_strength_of_simulated_steps_is_found(strength: float) -> None:
    random = np.random.default_rng(17)
    before = random.uniform(0.05, 0.95, 4_000)
    values = random.beta(strength * before, strength * (1 - before))
    counted = random.binomial(4_000, before), random.binomial(16, values)
    found = learned_strength(
        MeasuredStep(int(above), 4_000, int(correct), 16) for above, correct in zip(*counted, strict=True)
    )
    assert strength / 1.3 < found < strength * 1.3


def test_few_measured_steps_have_the_usual_strength() -> None:
    some = [MeasuredStep(4, 8, 0, 8)] * 29
    assert learned_strength([]) == learned_strength(some) == USUAL_STRENGTH
    assert learned_strength([*some, MeasuredStep(4, 8, 0, 0), MeasuredStep(0, 0, 4, 8)]) == USUAL_STRENGTH
    assert learned_strength([*some, MeasuredStep(4, 8, 8, 8)]) < USUAL_STRENGTH
