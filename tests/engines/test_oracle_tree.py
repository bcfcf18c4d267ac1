"""The tree of the oracle: its values are exact, its chains are drawn by their probabilities, and its texts name their path."""

import asyncio
import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chi2

from pipeline.config.oracle_world import World
from pipeline.core.ids import content_id
from pipeline.core.records import Completion, Finish, Problem, Request, Verdict
from pipeline.engines.oracle import OracleConfig, OracleEngine
from pipeline.engines.oracle_tree import Shape, Tree
from pipeline.graders.math.compare import quick_verdict
from pipeline.graders.math.extract import final_answer
from tests.engines.openai_engines import drained
from tests.engines.test_oracle import GOLDS, SEVEN
from tests.engines.test_oracle import requests as requests_after
from tests.oracles.leaves import all_leaves
from tests.settings import policy_settings

pytestmark = pytest.mark.slow

UNKNOWN = Problem(problem_id="u", text="Who knows?", golds=())
RARE = 1e-6
"""A correct oracle fails a test of frequencies this seldom. The draws are fixed, so it never does by chance again."""

seeds = st.integers(-5, 2**40)
shapes = st.builds(
    Shape,
    spread=st.floats(0, 1),
    depth=st.integers(1, 7),
    branching=st.integers(2, 6),
    mean=st.floats(0.05, 0.95),
    early=st.sampled_from([0.0, 0.2, 0.7, 1.0]),
)


def tree_of(seed: int = 0, **own: Any) -> Tree:
    return Tree(seed, Shape(**own))


def engine(seed: int = 0, **own: Any) -> OracleEngine:
    return OracleEngine(policy_settings("oracle", oracle=OracleConfig(seed=seed, world=World.tree)), Shape(**own))


def requests(count: int, text: str = "", problem: Problem = SEVEN, **more: Any) -> list[Request]:
    return requests_after(count, content_id("prefix", problem.problem_id, text), problem, text, **more)


def completions(oracle: OracleEngine, asked: Sequence[Request], *, keep_tokens: bool = False) -> list[Completion]:
    return asyncio.run(drained(oracle, asked, keep_tokens=keep_tokens))


def texts_of(tree: Tree, problem: Problem, path: tuple[int, ...]) -> list[str]:
    return [tree.step(problem, path[: at + 1]) for at in range(len(path))]


def misfit(counts: Counter[Any], expected: dict[Any, float]) -> float:
    """The probability of counts that fit these probabilities as badly (chi-square). Rare ones count as one."""
    total = counts.total()
    assert set(counts) <= {key for key, share in expected.items() if share > 0}
    often = {key for key, share in expected.items() if share * total >= 10}
    rare = sum(share for key, share in expected.items() if key not in often)
    cells = [(counts[key], expected[key] * total) for key in often]
    if rare * total >= 10:
        cells.append((total - sum(seen for seen, _ in cells), rare * total))
    return float(chi2.sf(sum((seen - fair) ** 2 / fair for seen, fair in cells), len(cells) - 1))


@given(seeds, shapes, st.text(max_size=5), st.data())
def test_the_value_of_every_prefix_is_the_mean_of_those_after_it(
    seed: int, shape: Shape, problem_id: str, data: st.DataObject
) -> None:
    tree = Tree(seed, shape)
    path: tuple[int, ...] = ()
    while children := tree.children(problem_id, path):
        value = tree.value(problem_id, path)
        assert len(children) == shape.branching
        assert all(child.probability >= 0 for child in children)
        assert sum(child.probability for child in children) == pytest.approx(1, abs=1e-12)
        assert sum(child.probability * child.value for child in children) == pytest.approx(value, abs=1e-12)
        for child in children:
            assert child.value in (0.0, 1.0) if child.last else abs(child.value - value) <= shape.spread + 1e-12
            assert 0 <= child.value <= 1
        assert len({child.last for child in children}) == 1
        if 1e-9 < value < 1 - 1e-9 and children[0].last:
            assert {child.value for child in children} == {0.0, 1.0}
        path = (*path, data.draw(st.integers(0, shape.branching - 1)))
        assert tree.value(problem_id, path) == children[path[-1]].value
    assert 1 <= len(path) <= shape.depth
    assert shape.early or len(path) == shape.depth


@pytest.mark.parametrize("own", [{}, {"depth": 1}, {"depth": 4, "branching": 5, "early": 0.3}, {"spread": 1.0}])
@pytest.mark.parametrize("problem", [SEVEN, UNKNOWN])
def test_the_right_leaves_under_a_prefix_have_its_value_as_their_probability(
    own: dict[str, Any], problem: Problem
) -> None:
    tree = tree_of(**own)
    for path in [(), *tree.drawn(problem.problem_id, (), "some chain")]:
        leaves = list(all_leaves(tree, problem, path))
        assert sum(leaf.probability for leaf in leaves) == pytest.approx(1, abs=1e-12)
        right = sum(leaf.probability for leaf in leaves if leaf.right)
        assert right == pytest.approx(tree.value(problem.problem_id, path), abs=1e-12)
        for leaf in leaves:
            assert leaf.path[: len(path)] == path
            assert leaf.right == (leaf.answer == tree.right_answer(problem))
            assert leaf.answer == tree.answer(problem, leaf.path)


def test_a_tree_follows_from_its_settings_and_the_problem_alone() -> None:
    problems = [f"p{number}" for number in range(50)]
    walked = tree_of()
    for each in problems[:5]:  # in another order, and with more of the tree
        list(all_leaves(walked, Problem(problem_id=each, text="?", golds=("1",))))
    for each in reversed(problems):
        for path in tree_of().drawn(each, (), each):
            assert walked.children(each, path) == tree_of().children(each, path)
    values = [tree_of(seed=seed).value(each, (0,)) for seed in (0, 1) for each in problems]
    assert len(set(values)) > 90


def test_a_tree_that_had_to_forget_its_nodes_is_the_same() -> None:
    tree = tree_of(branching=2)
    before = [tree.children("p7", (0,) * depth) for depth in range(6)]
    for number in range(70_000):
        tree.value(str(number))
    assert [tree.children("p7", (0,) * depth) for depth in range(6)] == before


@given(seeds, shapes, st.integers(0, 99), st.sampled_from([0, 20, 64]), st.sampled_from([SEVEN, UNKNOWN]), st.data())
def test_the_path_is_read_back_from_the_texts(
    seed: int, shape: Shape, chain: int, width: int, problem: Problem, data: st.DataObject
) -> None:
    tree = Tree(seed, shape, width)
    paths = list(tree.drawn(problem.problem_id, (), str(chain)))
    steps = texts_of(tree, problem, paths[-1])
    assert all(step.endswith(".\n") and step.count("\n") == 1 and len(step) >= width for step in steps[:-1])
    assert "\n" not in steps[-1]
    assert final_answer(steps[-1]) == tree.answer(problem, paths[-1])
    for length, path in enumerate(paths, 1):
        some = steps[:length]
        trimmed = [step.strip() for step in some]
        assert tree.path_of(problem.problem_id, some) == path
        assert tree.path_of(problem.problem_id, trimmed) == path
        for written in ("".join(some), "\n".join(trimmed), "\n\n".join(trimmed) + "\n"):
            assert tree.path_in(problem.problem_id, written) == path
    cut = data.draw(st.integers(1, len(steps[0]) - 3))
    assert tree.path_in(problem.problem_id, steps[0][:-3][:cut].rstrip(".")) is None
    assert tree.path_in(problem.problem_id, "") == ()


@pytest.mark.parametrize(
    "text",
    [
        "Add seven.",
        "Step 2: branch a.",
        "Step 1: branch d.",
        "Step 1: branch a",
        "Step 1: branch",
        "Step 1: branch a. The answer is 7.",
        "Step 1: branch a.\nStep 3: branch a.",
        "Step 1: branch a.\nStep 2: branch a. The answer is 7.\nStep 3: branch a.",
        "Step 1: branch a.\nStep 2: branch a.",
        "step 1: branch a.",
        "Step 01: branch a.",
        "Step 1: branch a. And so on.",
        "Step 1: branch a. The answer is\n7.",
        "Step 9999999999999999999999999999: branch a.",
    ],
)
def test_texts_that_are_not_of_the_tree_have_no_path_and_are_continued_as_in_the_flat_world(text: str) -> None:
    assert tree_of(depth=2).path_in("p7", text) is None
    (asked,) = requests(1, text)
    (found,) = completions(engine(depth=2), [asked])
    (flat,) = completions(OracleEngine(policy_settings("oracle")), [asked])
    assert found.text == f"\n{flat.text}"
    assert found.n_tokens == len(found.text.encode())


@pytest.mark.parametrize("golds", [*GOLDS, ("None  of these",), ("two\nlines",)])
def test_right_chains_state_the_known_answer_and_wrong_ones_a_few_others(golds: tuple[str, ...]) -> None:
    problem = Problem(problem_id="p", text="?", golds=golds)
    tree = tree_of(depth=5, branching=4)
    stated: dict[bool, Counter[str]] = {True: Counter(), False: Counter()}
    for leaf in all_leaves(tree, problem):
        stated[leaf.right][leaf.answer] += 1
        assert final_answer(tree.step(problem, leaf.path)) == leaf.answer
    assert list(stated[True]) == [" ".join(golds[0].split())]
    assert len(stated[False]) == 4
    for answer in stated[False]:
        assert all(quick_verdict(gold, answer) is not Verdict.CORRECT for gold in golds)
    (_, common), *others = stated[False].most_common()
    wrong = stated[False].total()
    assert abs(common - wrong / 2) < 5 * math.sqrt(wrong) / 2
    assert all(count < common for _, count in others)


def test_problems_without_a_known_answer_have_one_that_the_world_makes_up() -> None:
    tree = tree_of()
    problems = [Problem(problem_id=str(number), text="?", golds=()) for number in range(200)]
    answers = [tree.right_answer(problem) for problem in problems]
    assert answers == [tree_of().right_answer(problem) for problem in problems]
    assert len(set(answers)) > 50
    assert all(final_answer(f"The answer is {answer}.") == answer for answer in answers)


@pytest.mark.parametrize("given", [0, 2])
@pytest.mark.parametrize("one_by_one", [False, True], ids=["whole chains", "step by step"])
def test_chains_are_drawn_by_their_probabilities(given: int, one_by_one: bool) -> None:
    tree = Tree(3, Shape(depth=4), 20)
    start = list(tree.drawn("p7", (), "given"))[given - 1] if given else ()
    before = "".join(texts_of(tree, SEVEN, start))
    oracle, n = engine(depth=4, seed=3), 6000 if one_by_one else 20_000
    if one_by_one:
        ended: list[str] = []
        begun = Counter({before: n})
        while begun:
            asked = [each for text, count in begun.items() for each in requests(count, text, stop=("\n",))]
            made = [each.request.prefix.text + each.text for each in completions(oracle, asked)]
            ended += [text for text in made if not text.endswith("\n")]
            begun = Counter(text for text in made if text.endswith("\n"))
    else:
        ended = [before + each.text for each in completions(oracle, requests(n, before))]
    leaves = {leaf.path: leaf for leaf in all_leaves(tree, SEVEN, start)}
    counts = Counter(tree.path_in("p7", text) for text in ended)
    assert counts.total() == n
    assert misfit(counts, {path: leaf.probability for path, leaf in leaves.items()}) > RARE
    value = tree.value("p7", start)
    right = sum(text.endswith("The answer is 7.") for text in ended)
    assert abs(right - n * value) <= 5 * math.sqrt(n * value * (1 - value))


@given(
    seeds,
    shapes,
    st.integers(0, 99),
    st.lists(st.sampled_from(["\n", "Step", "branch", " is", "nowhere", "3", "."]), max_size=3).map(tuple),
    st.none() | st.integers(1, 120),
    st.sampled_from([World.tree, World.flat]),
)
def test_a_completion_ends_at_the_first_stop_text_or_the_limit(
    seed: int, shape: Shape, number: int, stop: tuple[str, ...], limit: int | None, kind: World
) -> None:
    oracle = OracleEngine(policy_settings("oracle", oracle=OracleConfig(seed=seed, world=kind)), shape)
    plain = requests(number + 1)[-1:]
    asked = requests(number + 1, stop=stop, max_tokens=limit)[-1:]
    (whole,), (found,) = completions(oracle, plain), completions(oracle, asked, keep_tokens=True)
    assert whole.text.startswith(found.text)
    # All but the last character: a stop text may end with it.
    assert all(each not in found.text[:-1] for each in stop)
    assert limit is None or found.n_tokens <= limit
    assert found.token_ids == tuple(found.text.encode())
    if kind is World.tree:
        assert found.n_tokens == len(found.text.encode())
    if found.finish is Finish.LENGTH:
        assert limit == found.n_tokens < whole.n_tokens
    elif found.text != whole.text:
        assert found.text.endswith(stop)
        assert found.n_tokens <= whole.n_tokens
    else:
        assert found.finish is Finish.STOP
        assert found.n_tokens == whole.n_tokens


def test_a_limit_cuts_no_character() -> None:
    problem = Problem(problem_id="p", text="?", golds=("٣٣٣",))
    (whole,) = completions(engine(depth=1, mean=0.95), requests(1, problem=problem))
    assert whole.text.endswith(" ٣٣٣.")
    bytes_before = len(whole.text[:-4].encode())
    for more in range(7):
        asked = requests(1, problem=problem, max_tokens=bytes_before + more)
        (found,) = completions(engine(depth=1, mean=0.95), asked, keep_tokens=True)
        assert found.text == whole.text[: len(whole.text) - 4 + more // 2]
        assert found.n_tokens == len(found.token_ids) == len(found.text.encode())
        assert found.finish is Finish.LENGTH


def test_a_completion_ends_where_the_context_is_full() -> None:
    (asked,) = requests(1)
    (whole,) = completions(engine(), [asked])
    for context in (30, 45, 1000):
        policy = policy_settings("oracle", oracle=OracleConfig(world=World.tree), max_model_len=context)
        (found,) = completions(OracleEngine(policy), [asked])
        assert found.text == whole.text[: context - 1]
        assert found.finish is (Finish.STOP if context == 1000 else Finish.LENGTH)


def test_after_the_end_of_a_chain_nothing_is_written_and_a_step_without_a_line_end_is_ended_first() -> None:
    oracle = engine()
    (chain,) = completions(oracle, requests(1))
    (after,) = completions(oracle, requests(1, chain.text))
    assert (after.text, after.n_tokens, after.finish) == ("", 0, Finish.STOP)
    first = chain.text.partition("\n")[0]
    assert completions(oracle, requests(1, first))[0].text.startswith("\nStep 2: ")
    assert completions(oracle, requests(1, f"{first}\n"))[0].text.startswith("Step 2: ")
