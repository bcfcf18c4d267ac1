"""The count of distinct prompt tokens agrees with a trie."""

from hypothesis import example, given
from hypothesis import strategies as st

from pipeline.core.records import Prefix, Problem, Request
from pipeline.runtime.distinct_prompts import DistinctPrompts, distinct_tokens

STEMS = st.lists(st.integers(0, 2), max_size=12)
PROMPTS = st.lists(st.builds(lambda stem, rest: stem + rest, STEMS, STEMS), max_size=12)


def trie_edges(prompts: list[list[int]]) -> int:
    root: dict[int, object] = {}
    edges = 0
    for prompt in prompts:
        node = root
        for token in prompt:
            if token not in node:
                node[token] = {}
                edges += 1
            node = node[token]  # type: ignore[assignment]
    return edges


@given(PROMPTS)
@example([[0, 1, 2], [0, 1], [0, 1, 2], [], [1]])
def test_every_edge_of_the_trie_counts_once(prompts: list[list[int]]) -> None:
    assert distinct_tokens(prompts) == trie_edges(prompts)
    assert distinct_tokens(map(tuple, reversed(prompts + prompts))) == trie_edges(prompts)


def request(name: str, prompt: list[int]) -> Request:
    prefix = Prefix(prefix_id=name, step_index=0, text="", prompt_ids=tuple(prompt))
    return Request(
        request_id=name, issue_index=0, problem=Problem(problem_id="p", text="?", golds=("1",)), prefix=prefix
    )


@given(st.lists(st.integers(0, 9), max_size=5), st.lists(st.lists(STEMS, min_size=1, max_size=4), max_size=5))
def test_what_all_prompts_begin_with_counts_once_over_units(header: list[int], units: list[list[list[int]]]) -> None:
    prompts = DistinctPrompts()
    whole = [[[*header, 10 + number, *rest] for rest in unit] for number, unit in enumerate(units)]
    for number, unit in enumerate(whole):
        for twice in (0, 1):
            prompts.ask(
                f"unit{number}", [request(f"{number}-{at}", prompt) for at, prompt in list(enumerate(unit))[twice:]]
            )
        assert prompts.tokens == trie_edges([prompt for before in whole[:number] for prompt in before])
        prompts.end(f"unit{number}")
    assert prompts.tokens == trie_edges([prompt for unit in whole for prompt in unit])
