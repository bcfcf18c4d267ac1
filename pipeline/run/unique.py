"""How much of a run's prompts has to be computed, where an engine keeps what it has computed. Pure."""

from collections.abc import Iterable, Sequence


def unique_tokens(prompts: Iterable[Sequence[int]]) -> int:
    """Tokens that no other prompt begins with, each counted once: the number of edges of the prompts' trie."""
    total = 0
    before: tuple[int, ...] = ()
    for prompt in sorted(map(tuple, prompts)):
        total += len(prompt) - _common(before, prompt)
        before = prompt
    return total


def computed_in_blocks(prompts: Iterable[Sequence[int]], block: int) -> int:
    """Tokens that are computed where whole blocks of so many are found again, for prompts in this order.

    That is vLLM's rule with a cache that forgets nothing. A prompt's last token is never found, so that what stands behind its
    last whole block, or all of that block, is computed for every request: half a block on average.
    """
    blocks: dict[tuple[int, tuple[int, ...]], int] = {}
    total = 0
    for prompt in map(tuple, prompts):
        before, found, whole = 0, 0, True
        for start in range(0, len(prompt) - block + 1, block):
            name = (before, prompt[start : start + block])
            whole = whole and name in blocks and start + block < len(prompt)
            found += block * whole
            before = blocks.setdefault(name, len(blocks) + 1)
        total += len(prompt) - found
    return total


def _common(first: tuple[int, ...], second: tuple[int, ...]) -> int:
    """Length of the longest beginning that both have; at once where one begins with the other."""
    low, high = 0, min(len(first), len(second))
    if first[:high] == second[:high]:
        return high
    while low < high - 1:
        middle = (low + high) // 2
        if first[low:middle] == second[low:middle]:
            low = middle
        else:
            high = middle
    return low
