from hypothesis import given
from hypothesis import strategies as st

from pipeline.core.records import ChainShape, Counts, Finish, RolloutOutcome, Trials, Verdict
from pipeline.estimators.pooled.forest import forest_of
from pipeline.estimators.tree import ROOT, UNKNOWN, Tree, tree_of, trials_of
from tests.estimators.pooled import chain, seen, straight

texts = st.lists(st.lists(st.sampled_from("ab"), min_size=1, max_size=5).map("".join), min_size=1, max_size=5)


def parents(tree: Tree) -> dict[str, str | None]:
    above = [None if parent == ROOT else tree.prefix_ids[parent] for parent in tree.parents.tolist()]
    return dict(zip(tree.prefix_ids, above, strict=True))


def cut(text: str, draw: st.DrawFn) -> ChainShape:
    ends = draw(st.sets(st.integers(1, len(text) - 1))) if len(text) > 1 else set()
    return chain("", *(text[:end] for end in sorted({*ends, len(text)})), outcome=draw(st.sampled_from([True, None])))


@st.composite
def cuts(draw: st.DrawFn) -> list[ChainShape]:
    """Chains over only two letters. Therefore many share a beginning and are split differently. A prefix id is its text."""
    return [cut(text, draw) for text in draw(texts)]


def test_equal_prefixes_are_one_node_and_chains_share_what_it_costs() -> None:
    tree = tree_of([chain("0", "a", "ab", prices=(3, 2, 1, 0)), chain("0", "a", "ac", outcome=False), chain("0", "b")])
    assert parents(tree) == {"0": None, "a": "0", "b": "0", "ab": "a", "ac": "a"}
    assert dict(zip(tree.prefix_ids, tree.shares.tolist(), strict=True)) == {
        "0": 1 / 3,
        "a": 1 / 2,
        "b": 1,
        "ab": 1,
        "ac": 1,
    }
    assert [tree.prefix_ids[end] for end in tree.ends] == ["ab", "ac", "b"]
    assert tree.right.tolist() == [1, 0, 1]


def test_where_chains_cut_a_text_differently_the_parent_is_the_one_with_most_steps_before_it() -> None:
    coarse, fine = chain("", "ab", "abcd"), chain("", "a", "ab", "abc", "abcd")
    for together in ([coarse, fine], [fine, coarse]):
        tree = tree_of(together)
        assert parents(tree) == {"": None, "a": "", "ab": "a", "abc": "ab", "abcd": "abc"}
        assert sorted(len(path) for path in tree.paths) == [3, 5]


def test_a_chain_that_is_a_prefix_of_another() -> None:
    short, long = chain("0", "a", outcome=None), chain("0", "a", "ab", outcome=False)
    tree = tree_of([short, long])
    assert parents(tree) == {"0": None, "a": "0", "ab": "a"}
    assert [path.tolist() for path in tree.paths] == [[0, 1], [0, 1, 2]]
    assert tree.right.tolist() == [UNKNOWN, 0]


def test_of_a_chain_of_one_step_only_the_bare_problem_is_measured() -> None:
    tree = tree_of([chain("0")])
    assert (tree.prefix_ids, tree.ends.tolist(), tree.right.tolist()) == (("0",), [0], [1])


def test_five_hundred_steps_and_a_closed_prefix() -> None:
    tree = tree_of([straight("p", 500)], closed={"p7", "elsewhere"})
    assert tree.parents.tolist() == [ROOT, *range(499)]
    assert [tree.prefix_ids[node] for node in tree.closed.nonzero()[0]] == ["p7"]


@given(cuts())
def test_a_node_stands_behind_its_parent_and_paths_go_down(chains: list[ChainShape]) -> None:
    tree = tree_of(chains)
    for node, parent in enumerate(tree.parents.tolist()):
        assert tree.depths[node] == (0 if parent == ROOT else tree.depths[parent] + 1)
        assert parent == ROOT or tree.prefix_ids[node].startswith(tree.prefix_ids[parent])
    for shape, path in zip(chains, tree.paths, strict=True):
        assert [tree.prefix_ids[node] for node in path] == list(
            shape.prefix_ids if shape.outcome is None else shape.prefix_ids[:-1]
        )
        assert (tree.depths[path[1:]] > tree.depths[path[:-1]]).all()
    assert len(set(tree.prefix_ids)) == len(tree.prefix_ids)


@given(cuts(), cuts())
def test_a_forest_is_its_trees_side_by_side(left: list[ChainShape], right: list[ChainShape]) -> None:
    trees = [
        tree_of(left),
        tree_of([ChainShape(prefix_ids=tuple(f"2{p}" for p in c.prefix_ids), outcome=c.outcome) for c in right]),
    ]
    sampled = {
        prefix: seen(place % 3, 2 + place, tokens=place)
        for tree in trees
        for place, prefix in enumerate(tree.prefix_ids[::2])
    }
    forest = forest_of(trees, sampled)
    assert sorted(node for numbers in forest.numbers for node in numbers.tolist()) == list(range(len(forest.parents)))
    ends: list[int] = []
    for tree, numbers in zip(trees, forest.numbers, strict=True):
        above = [ROOT if parent == ROOT else numbers[parent] for parent in tree.parents]
        assert forest.parents[numbers].tolist() == above
        for prefix, node in zip(tree.prefix_ids, numbers.tolist(), strict=True):
            counts = sampled[prefix].counts if prefix in sampled else None
            counted = (forest.correct[node], forest.graded[node], forest.issued[node], forest.tokens[node])
            assert counted == (
                (counts.correct, counts.graded, counts.graded, counts.tokens) if counts else (0, 0, 0, 0)
            )
        ends += numbers[tree.ends].tolist()
    assert forest.ends.tolist() == ends
    for depth, (level, forks) in enumerate(zip(forest.levels, forest.forks, strict=True)):
        above = forest.parents[level].tolist()
        assert forks == (depth > 0 and len(set(above)) < len(above))


def test_trials_end_at_a_gap_and_are_graded_only_where_there_is_a_verdict() -> None:
    def rollout(issue: int, verdict: Verdict, *, round_: int = 0, finish: Finish = Finish.STOP) -> RolloutOutcome:
        return RolloutOutcome(
            prefix_id="p", issue_index=issue, round=round_, reached_prefix_id=None, finish=finish, n_tokens=10, verdict=verdict
        )  # fmt: skip

    log = [
        rollout(5, Verdict.CORRECT, round_=1),
        rollout(3, Verdict.NO_ANSWER, round_=1, finish=Finish.LENGTH),
        rollout(1, Verdict.TIMEOUT),
        rollout(0, Verdict.CORRECT),
        rollout(2, Verdict.INCORRECT),
    ]
    assert trials_of(log) == {
        "p": Trials(
            outcomes=(True, None, False, False),
            rounds=(3, 1),
            reached=(None,) * 4,
            counts=Counts(correct=1, graded=3, ungraded=1, truncated=1, tokens=40),
        )
    }
