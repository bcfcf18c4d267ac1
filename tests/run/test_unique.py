"""Tokens that an engine computes once where prompts begin alike, against a trie and against a cache of blocks."""

from hypothesis import example, given
from hypothesis import strategies as st

from pipeline.run.unique import computed_in_blocks, unique_tokens

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
    assert unique_tokens(prompts) == trie_edges(prompts)
    assert unique_tokens(map(tuple, reversed(prompts + prompts))) == trie_edges(prompts)


@given(PROMPTS, st.integers(1, 5))
@example([[0, 1, 2, 3]] * 3, 2)
@example([[0, 1], [0, 1, 2], [0, 1]], 2)
def test_whole_blocks_are_computed_once_and_what_is_behind_them_always(prompts: list[list[int]], block: int) -> None:
    cached: set[tuple[int, ...]] = set()
    computed = 0
    for prompt in prompts:
        known = 0
        while known + block < len(prompt) and tuple(prompt[: known + block]) in cached:
            known += block
        computed += len(prompt) - known
        cached |= {tuple(prompt[:end]) for end in range(block, len(prompt) + 1, block)}
    assert computed_in_blocks(prompts, block) == computed >= unique_tokens(prompts)
