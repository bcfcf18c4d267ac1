"""Finds rollouts that reproduce the next steps of a chain token for token. They also count as rollouts of a longer prefix.

Whether a rollout reproduces a step is determined before its outcome, so it is an unbiased trial of the longer prefix.

Not covered: a step whose tokens in the chain differ from those that the policy writes for the same text; the rollout then does
not count as reproducing the step. After a reproduced step, a rollout has fewer than `sampling.max_tokens` tokens left: the
tokens of the step are already used.
"""

from collections.abc import Iterable, Mapping, Sequence

from pipeline.core.records import Prefix
from pipeline.estimators.tree import ROOT, Tree

_Step = tuple[tuple[int, ...], str]
"""The tokens after a prefix, and the id of the longer prefix that they lead to."""


class PrefixMatcher:
    """The steps from prefix to prefix in the trees of some problems."""

    def __init__(self, trees: Iterable[Tree], prefixes: Mapping[str, Prefix]) -> None:
        self._next_steps: dict[str, list[_Step]] = {}
        for tree in trees:
            for prefix_id, parent in zip(tree.prefix_ids, tree.parents.tolist(), strict=True):
                if parent != ROOT:
                    self._add(prefixes[tree.prefix_ids[parent]], prefixes[prefix_id])
        for steps in self._next_steps.values():
            # If one step begins with another, the shorter one is tried first: a rollout with the longer one contains it too.
            steps.sort(key=lambda step: (len(step[0]), step[1]))

    def _add(self, before: Prefix, after: Prefix) -> None:
        length = len(before.prompt_ids)
        if length < len(after.prompt_ids) and after.prompt_ids[:length] == before.prompt_ids:
            self._next_steps.setdefault(before.prefix_id, []).append((after.prompt_ids[length:], after.prefix_id))

    def reached_prefix(self, prefix_id: str, token_ids: Sequence[int]) -> str | None:
        """The longest prefix that a rollout of `prefix_id` with these tokens reproduces; None if that is not a longer one."""
        at, begin = prefix_id, 0
        while (step := self._taken(at, token_ids, begin)) is not None:
            begin, at = begin + len(step[0]), step[1]
        return at if begin else None

    def _taken(self, prefix_id: str, token_ids: Sequence[int], begin: int) -> _Step | None:
        for step in self._next_steps.get(prefix_id, ()):
            tokens = step[0]
            begins_alike = begin < len(token_ids) and token_ids[begin] == tokens[0]
            if begins_alike and tuple(token_ids[begin : begin + len(tokens)]) == tokens:
                return step
        return None
