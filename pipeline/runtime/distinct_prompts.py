"""Counts the distinct prompt tokens of a run: those that an engine with a prefix cache must compute. Pure."""

from collections.abc import Iterable, Sequence

from pipeline.core.records import Request


def distinct_tokens(prompts: Iterable[Sequence[int]]) -> int:
    """Number of distinct prompt tokens: a beginning that several prompts share counts once. It is the number of edges of the
    prompts' trie."""
    total = 0
    before: tuple[int, ...] = ()
    for prompt in sorted(map(tuple, prompts)):
        total += len(prompt) - _common(before, prompt)
        before = prompt
    return total


class DistinctPrompts:
    """Counts the distinct prompt tokens of the units that an engine serves.

    Units contain different problems, so the prompts of two units share only the beginning that all prompts share. `tokens`
    counts the units that have ended.
    """

    def __init__(self) -> None:
        self._of_unit: dict[str, dict[str, tuple[int, ...]]] = {}
        self._known: tuple[int, ...] = ()
        self.tokens = 0

    def ask(self, unit_id: str, requests: Iterable[Request]) -> None:
        prompts = self._of_unit.setdefault(unit_id, {})
        for request in requests:
            prompts[request.prefix.prefix_id] = request.prefix.prompt_ids

    def end(self, unit_id: str) -> None:
        self.add(list(self._of_unit.pop(unit_id, {}).values()))

    def add(self, prompts: Sequence[tuple[int, ...]]) -> None:
        """Count the prompts of a unit, all at once."""
        if prompts:
            self.tokens += distinct_tokens([self._known, *prompts]) - len(self._known)
            self._known = self._known or prompts[0]


def _common(first: tuple[int, ...], second: tuple[int, ...]) -> int:
    """Length of the longest common beginning. The common case that one begins with the other is fast."""
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
