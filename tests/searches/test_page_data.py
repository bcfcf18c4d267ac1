"""The data of the page: what a large tree loses, what a long text loses, and which problems have a tree."""

import base64
import gzip
import json
import re
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.analysis.browser import parts, searches
from pipeline.analysis.browser.searches import WEAK, build_search_browser, kept_places, problem_json
from pipeline.analysis.searches.trees import SearchedProblem, answers_of
from pipeline.display.document import Inset
from tests.searches.trees import grown_tree, written_problem


@given(st.integers(0, 10_000), st.integers(1, 120), st.integers(1, 60))
def test_a_pruned_tree_keeps_the_path_and_what_was_visited_most(seed: int, samples: int, most: int) -> None:
    tree = grown_tree(seed, samples)
    kept = kept_places(tree, most)
    assert kept[0] == 0
    assert kept == sorted(set(kept))
    assert len(kept) - 1 == min(len(tree.nodes) - 1, max(most, len(tree.path)))
    assert all(tree.nodes[at].parent in kept for at in kept[1:])
    assert set(tree.path) <= set(kept)
    lost = [node.visits for at, node in enumerate(tree.nodes) if at not in kept]
    assert not lost or max(lost) <= min(tree.nodes[at].visits for at in kept if not tree.nodes[at].on_path)


@given(st.integers(0, 10_000), st.integers(2, 120))
def test_a_tree_without_some_steps_says_so_and_keeps_its_shape(seed: int, samples: int) -> None:
    tree = grown_tree(seed, samples)
    with patch.object(searches, "kept_places", lambda tree: kept_places(tree, 1)):
        (found,) = json.loads(
            problem_json(
                SearchedProblem(search=written_problem([["a"]]).search, tree=tree, answers=()), characters=1_000
            )
        )["trees"]
    kept = kept_places(tree, 1)
    assert found["texts"] == [tree.nodes[at].text for at in kept]
    assert [kept[parent] if parent >= 0 else None for parent in found["parents"]] == [
        tree.nodes[at].parent for at in kept
    ]
    assert [kept[at] for at in found.get("chosen", [])] == list(tree.path)
    assert "weak" not in found or kept[found["weak"]] == tree.weakest
    assert ("with few visits not shown" in found["summary"]) == (len(kept) < len(tree.nodes))


@given(st.integers(0, 10_000), st.integers(0, 60))
def test_the_page_has_the_tree_as_it_is(seed: int, samples: int) -> None:
    tree = grown_tree(seed, samples)
    problem = SearchedProblem(search=written_problem([["a"]]).search, tree=tree, answers=())
    (found,) = json.loads(problem_json(problem, 1_000))["trees"] or [{}]
    assert bool(found) == (len(tree.nodes) > 1)
    if not found:
        return
    assert found["parents"] == [-1 if node.parent is None else node.parent for node in tree.nodes]
    assert found["texts"] == [node.text for node in tree.nodes]
    assert found["values"] == [None if node.score is None else round(node.score, 3) for node in tree.nodes]
    assert found["visits"] == [node.visits for node in tree.nodes]
    assert all(f"{node.tokens} token" in tail for node, tail in zip(tree.nodes, found["tails"], strict=True))
    verdicts = {"correct": "r", "incorrect": "w"}
    ends = {str(at): [verdicts[str(n.verdict)], n.answer] for at, n in enumerate(tree.nodes) if n.ends}
    weak = tree.weakest is not None and (tree.nodes[tree.weakest].score or 0.0) < WEAK
    assert {at: end[:2] for at, end in found.get("ends", {}).items()} == ends
    assert found.get("chosen", []) == list(tree.path)
    assert found.get("weak") == (tree.weakest if weak else None)
    assert found["summary"].endswith(f"; {samples} tokens were generated after steps that were kept")


def test_long_texts_are_cut_and_say_so() -> None:
    (found,) = json.loads(problem_json(written_problem([["x" * 5_000]]), 100))["trees"]
    assert found["texts"][1] == f"{'x' * 100} ... (5,000 characters, full text in samples/*.parquet)"


def test_equal_answers_are_counted_together() -> None:
    rows: list[dict[str, Any]] = [
        {"final_answer": "7", "score": 0.5, "verdict": "correct", "chosen": False},
        {"final_answer": None, "score": None, "verdict": "no_answer", "chosen": False},
        {"final_answer": "7", "score": 0.25, "verdict": "correct", "chosen": True},
        {"final_answer": "5", "score": None, "verdict": "incorrect", "chosen": False},
    ]
    found = answers_of(rows)
    assert found[0] == ("7", 2, 0.5, 0.75, "correct", True)
    assert sorted(found[1:], key=str) == sorted(
        [(None, 1, None, None, "no_answer", False), ("5", 1, None, None, "incorrect", False)], key=str
    )


def unpacked(browser: Inset) -> tuple[dict[str, list[Any]], list[Any]]:
    found = dict(re.findall(r'id="(browser-[\w-]+)">([^<]*)<', browser.data))
    texts = {name: json.loads(gzip.decompress(base64.b64decode(data))) for name, data in found.items()}
    index = texts.pop("browser-index")
    return index, [texts[f"browser-entries-{number}"] for number in range(len(texts))]


@pytest.mark.parametrize("block_bytes", [1, 2_000, 10**9])
def test_the_index_says_where_each_problem_is(block_bytes: int) -> None:
    problems = [written_problem([[f"a {row}\n", "b"]], row) for row in range(7)]
    with patch.object(parts, "BLOCK_BYTES", block_bytes):
        browser = build_search_browser([problems[:3], problems[3:]], 7, 100)
    index, blocks = unpacked(browser)
    assert index["ids"] == [problem.search["problem_id"] for problem in problems]
    assert index["starts"] == [sum(map(len, blocks[:number])) for number in range(len(blocks))]
    for row, found in enumerate(found for block in blocks for found in block):
        assert found["trees"][0]["texts"] == ["", f"a {row}", "b"]


def test_a_page_lists_at_most_as_many_problems_as_asked_and_always_the_same() -> None:
    problems = [written_problem([["a"]], row) for row in range(50)]
    first, second = (build_search_browser([problems], 50, 10) for _ in range(2))
    assert first == second
    index, _ = unpacked(first)
    places = [int(name.removeprefix("problem-")) for name in index["ids"]]
    assert places == sorted(places)
    assert len(places) == 10
    assert "lists 10 of the run's 50 problems" in first.html


def test_where_trees_do_not_fit_problems_are_listed_without_one() -> None:
    random_texts = [
        [f"{row} " + "".join(chr(33 + (row * 7919 + at * 104729) % 90) for at in range(1_500)), "b"]
        for row in range(60)
    ]
    problems = [written_problem([steps], row) for row, steps in enumerate(random_texts)]
    with patch.object(parts, "DATA_BYTES", 12_000), patch.object(parts, "BLOCK_BYTES", 1):
        browser = build_search_browser([problems], 60, 100)
    index, blocks = unpacked(browser)
    assert len(index["ids"]) == 60
    shown = [row for row, found in enumerate(found for block in blocks for found in block) if found]
    assert 0 < len(shown) < 60
    assert min(shown) < 10
    assert max(shown) >= 50
    assert sum(len(data) for data in re.findall(r">([^<]*)<", browser.data)) < 3 * 12_000
    assert f"has the trees of {len(shown)} of them" in browser.html
