"""Which blocks of prompts an engine has computed already: vLLM's prefix cache without its memory of completions."""

from collections import OrderedDict

BLOCK = 16
"""Tokens of a block: only whole ones are shared."""
_REMEMBERED = 4096


class PrefixCache:
    """Holds the `blocks` used last, of `size` tokens each. A block is known by all that stands before it."""

    def __init__(self, blocks: int, size: int = BLOCK) -> None:
        self._most = blocks
        self._size = size
        self._blocks: OrderedDict[int, None] = OrderedDict()
        self._of_prefix: dict[str, list[int]] = {}

    def computed(self, prefix_id: str, prompt_ids: tuple[int, ...]) -> int:
        """How many tokens of a prompt have to be computed, whose blocks are there from now on.

        At least one is: what stands behind the last block that may be shared.
        """
        blocks = self._of_prefix.get(prefix_id)
        if blocks is None:
            if len(self._of_prefix) >= _REMEMBERED:
                self._of_prefix.clear()
            blocks = self._of_prefix[prefix_id] = _chained(prompt_ids, self._size)
        known = 0
        for block in blocks:
            if block not in self._blocks:
                break
            known += 1
        for block in blocks:
            self._blocks[block] = None
            self._blocks.move_to_end(block)
        while len(self._blocks) > self._most:
            self._blocks.popitem(last=False)
        return len(prompt_ids) - self._size * known


def _chained(prompt_ids: tuple[int, ...], size: int) -> list[int]:
    """A number for each whole block that leaves a token behind it."""
    blocks: list[int] = []
    before = 0
    for start in range(0, len(prompt_ids) - size, size):
        before = hash((before, prompt_ids[start : start + size]))
        blocks.append(before)
    return blocks
