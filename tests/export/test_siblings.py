"""Pairs of siblings, ends of chains and nested trees, of trees that Hypothesis grows."""

import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.export.formats.omegaprm import nested
from pipeline.export.formats.ppm import differ_by, ppm_pairs
from pipeline.export.formats.siblings import NO_END, ends, sibling_pairs
from pipeline.export.formats.tree_pairs import tree_pair_row, tree_pair_schema, tree_pairs
from pipeline.export.settings import PairReader, PairSpan, PpmConfig, PreferenceConfig
from pipeline.storage.stored_trees import ProblemTree
from pipeline.trees.posterior import Posterior, posteriors, probabilities_better
from pipeline.trees.tree import NO_PARENT, RolloutTree
from tests.trees.growing import PROBLEM, at, chain, grown, rollout

SEPARATOR = "\n"
steps = st.lists(st.sampled_from("abc"), min_size=1, max_size=4)
trees = st.builds(
    lambda chains, rollouts: grown(
        [chain(*given_steps, outcome=outcome) for given_steps, outcome in chains],
        [
            rollout("|".join(chains[which % len(chains)][0][:depth]), "\n".join(written), verdict, number)
            for number, (which, depth, written, verdict) in enumerate(rollouts)
        ],
    ),
    st.lists(st.tuples(steps, st.sampled_from([True, False, None])), min_size=1, max_size=4),
    st.lists(
        st.tuples(st.integers(0, 3), st.integers(0, 3), steps, st.sampled_from(["correct", "incorrect", "timeout"])),
        max_size=25,
    ),
)


def problem_of(tree: RolloutTree) -> ProblemTree:
    return ProblemTree(problem=PROBLEM, gold_answer="5", source_ids=(), tree=tree)


def below(tree: RolloutTree, node: int) -> Iterator[int]:
    yield node
    for child in tree.nodes[node].children:
        yield from below(tree, child)


@given(trees, st.sampled_from([0.5, 0.7, 0.9, 1.0]), st.sampled_from([0.0, 0.2, 0.6]))
def test_every_pair_is_of_siblings_that_are_surely_so_far_apart(
    tree: RolloutTree, certainty: float, margin: float
) -> None:
    values = posteriors(tree, 1.0)
    sets = list(tree.sibling_sets())
    for nodes, pairs in zip(sets, sibling_pairs(tree, values, certainty=certainty, margin=margin), strict=True):
        better = probabilities_better([values[node] for node in nodes])
        for pair in pairs:
            assert {pair.better, pair.worse} <= set(nodes)
            assert pair.certainty == better[nodes.index(pair.better), nodes.index(pair.worse)] >= certainty - 1e-9
            assert pair.margin == values[pair.better].mean - values[pair.worse].mean > 0
            assert pair.margin >= margin - 1e-9
        texts = [frozenset(tree.nodes[node].text for node in (pair.better, pair.worse)) for pair in pairs]
        assert all(len(both) == 2 for both in texts)
        assert len(set(texts)) == len(texts)
        assert pairs == sorted(pairs, key=lambda pair: -pair.margin)
        wanted = {
            frozenset((tree.nodes[one].text, tree.nodes[other].text))
            for row, one in enumerate(nodes)
            for column, other in enumerate(nodes)
            if tree.nodes[one].text != tree.nodes[other].text
            and better[row, column] >= certainty
            and values[one].mean - values[other].mean >= max(margin, 1e-6)
        }
        assert wanted <= set(texts), "no pair is lost"


@given(trees)
def test_an_end_is_a_chain_below_with_that_outcome_and_the_one_that_most_rollouts_wrote(tree: RolloutTree) -> None:
    for outcome in (True, False):
        found = ends(tree, outcome=outcome)
        for node, end in enumerate(found):
            able = [
                each for each in below(tree, node) if tree.nodes[each].ended and tree.nodes[each].outcome is outcome
            ]
            assert (end == NO_END) is (not able)
            if able:
                most = max(tree.nodes[each].passed.graded for each in able)
                assert end == min(each for each in able if tree.nodes[each].passed.graded == most)


@given(trees, st.sampled_from(PairSpan), st.integers(1, 3))
def test_texts_of_a_pair_are_a_step_or_go_on_to_the_end_that_it_claims(
    tree: RolloutTree, span: PairSpan, most: int
) -> None:
    values = posteriors(tree, 1.0)
    config = PreferenceConfig(certainty=0.6, span=span, pairs_per_branch=most)
    found = list(tree_pairs(problem_of(tree), values, config))
    known = {(tuple(tree.steps(node)), each.outcome) for node, each in enumerate(tree.nodes) if each.ended}
    per_prefix: dict[tuple[str, ...], int] = {}
    for pair in found:
        assert pair.chosen[0] == tree.nodes[pair.found.better].text != pair.rejected[0]
        assert pair.rejected[0] == tree.nodes[pair.found.worse].text
        assert pair.before == tree.steps(tree.nodes[pair.found.better].parent)
        if span is PairSpan.rest:
            assert ((*pair.before, *pair.chosen), True) in known
            assert ((*pair.before, *pair.rejected), False) in known
        else:
            assert len(pair.chosen) == len(pair.rejected) == 1
        per_prefix[tuple(pair.before)] = per_prefix.get(tuple(pair.before), 0) + 1
        for reader in PairReader:
            row = tree_pair_row(pair, problem_of(tree), values, reader, SEPARATOR)
            assert list(row) == tree_pair_schema(reader).names
    assert all(count <= most for count in per_prefix.values())


def small() -> RolloutTree:
    """After the problem: `a`, right in four of four rollouts, two of them by `a b`; `c`, wrong in four of four; `d`, which has
    none."""
    return grown(
        [chain("a", "b", outcome=True), chain("d", "e", outcome=None)],
        [
            *(rollout("", "a\nb", "correct", number) for number in range(2)),
            *(rollout("", "a\nx", "correct", number) for number in range(2, 4)),
            *(rollout("", "c\ny", "incorrect", number) for number in range(4, 8)),
        ],
    )


def test_each_reader_gets_what_it_joins_itself_and_the_evidence() -> None:
    tree = small()
    values = posteriors(tree, 1.0)
    (pair,) = (
        pair for pair in tree_pairs(problem_of(tree), values, PreferenceConfig(certainty=0.95)) if pair.chosen[0] == "a"
    )
    row = tree_pair_row(pair, problem_of(tree), values, PairReader.trl, SEPARATOR)
    good, bad = at(tree, "a"), at(tree, "c")
    assert {name: row[name] for name in row if name not in ("margin", "certainty")} == {
        "prompt": f"{PROBLEM}\n", "problem": PROBLEM, "chosen": "a\nb", "rejected": "c\ny", "answer": "5",
        "chosen_value": values[good].mean, "rejected_value": values[bad].mean, "step": 1, "problem_id": PROBLEM,
        "chosen_correct": 4, "chosen_rollouts": 4, "rejected_correct": 0, "rejected_rollouts": 4,
    }  # fmt: skip
    assert row["margin"] == values[good].mean - values[bad].mean
    step_dpo = tree_pair_row(pair, problem_of(tree), values, PairReader.step_dpo, SEPARATOR)
    assert (step_dpo["prompt"], step_dpo["initial_reason_steps"]) == (PROBLEM, "")


@given(trees, st.sampled_from([0.5, 0.8]), st.sampled_from([0.0, 0.25]))
def test_pairs_of_a_prefix_weigh_one_at_most_for_the_trainer(
    tree: RolloutTree, certainty: float, margin: float
) -> None:
    """Source: rStar `train/rm.py`: a pair weighs 1 / (pos_count neg_count)."""
    values = posteriors(tree, 1.0)
    weights: dict[int, Fraction] = {}
    for pair in ppm_pairs(tree, values, PpmConfig(certainty=certainty, margin=margin)):
        parent = tree.nodes[pair.pos].parent
        assert parent == tree.nodes[pair.neg].parent
        assert values[pair.pos].mean - values[pair.neg].mean >= margin - 1e-9
        assert any(tree.nodes[node].outcome is True for node in below(tree, pair.pos) if tree.nodes[node].ended)
        assert any(tree.nodes[node].outcome is False for node in below(tree, pair.neg) if tree.nodes[node].ended)
        assert 1 <= pair.pos_count <= 4
        assert 1 <= pair.neg_count <= 4
        assert min(pair.pos_count, pair.neg_count) <= 2
        weights[parent] = weights.get(parent, Fraction(0)) + Fraction(1, pair.pos_count * pair.neg_count)
    assert all(weight <= 1 for weight in weights.values())


@pytest.mark.parametrize(("good", "bad", "counts"), [(3, 3, (2, 2)), (1, 5, (1, 4)), (5, 1, (4, 1)), (1, 1, (1, 1))])
def test_the_counts_are_those_of_steps_that_are_paired_before_any_is_left_out(
    good: int, bad: int, counts: tuple[int, int]
) -> None:
    """Source: rStar `extra_rm_file.py`: two of each side; if one has one alone, up to four of the other."""
    chains = [chain(f"right {number}", outcome=True) for number in range(good)]
    tree = grown([*chains, *(chain(f"wrong {number}", outcome=False) for number in range(bad))])
    pairs = list(ppm_pairs(tree, posteriors(tree, 1.0), PpmConfig()))
    assert {(pair.pos_count, pair.neg_count) for pair in pairs} == {counts}
    assert len(pairs) == counts[0] * counts[1]
    assert not list(ppm_pairs(tree, posteriors(tree, 1.0), PpmConfig(edit_distance=20)))


def edits(one: str, other: str) -> int:
    if not one or not other:
        return len(one) + len(other)
    here = edits(one[1:], other[1:]) + (one[0] != other[0])
    return min(here, edits(one[1:], other) + 1, edits(one, other[1:]) + 1)


@given(st.text("ab", max_size=5), st.text("ab", max_size=5), st.integers(0, 6))
def test_edit_distance_is_that_of_the_definition(one: str, other: str, least: int) -> None:
    assert differ_by(one, other, least) is (edits(one, other) >= least)


def as_read(node: dict[str, Any], tree: RolloutTree, values: Sequence[Posterior], place: int) -> None:
    """Walk as OpenR's `get_text_with_labels` writes."""
    ours = tree.nodes[place]
    assert node.keys() == {"text", "mc_value", "children"}
    assert node["text"] == (PROBLEM if ours.parent == NO_PARENT else ours.text)
    if ours.ended and ours.outcome is not None:
        assert node["mc_value"] == float(ours.outcome)
    elif ours.issued.graded:
        assert node["mc_value"] == ours.issued.correct / ours.issued.graded
    else:
        assert node["mc_value"] == values[place].mean
    for child, below_it in zip(node["children"], ours.children, strict=True):
        as_read(child, tree, values, below_it)


@given(trees)
def test_a_nested_tree_has_every_node_in_its_place(tree: RolloutTree) -> None:
    values = posteriors(tree, 1.0)
    as_read(json.loads(nested(problem_of(tree), values)), tree, values, 0)


def test_texts_of_a_nested_tree_are_escaped() -> None:
    tree = grown([chain('say "a\\b"\t', outcome=True)])
    read = json.loads(nested(replace(problem_of(tree), problem='é "?"\n'), posteriors(tree, 1.0)))
    assert (read["text"], read["children"][0]["text"]) == ('é "?"', 'say "a\\b"\t')


def test_a_chain_of_thousands_of_steps_is_written() -> None:
    count = 3_000
    tree = grown([chain(*("s" for _ in range(count)), outcome=True)])
    values = posteriors(tree, 1.0)
    text = nested(problem_of(tree), values)
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(20_000)
    try:
        node = json.loads(text)
    finally:
        sys.setrecursionlimit(before)
    depth = 0
    while node["children"]:
        (node,) = node["children"]
        depth += 1
    assert (depth, node["mc_value"]) == (count, 1.0)
    assert ends(tree, outcome=True)[0] == count
