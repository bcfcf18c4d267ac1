"""Which rollouts reproduce the next steps of a chain token for token: from there on they are rollouts of a longer prefix too.

Whether a rollout takes a step is decided before its outcome, so those that do are fair trials of the prefix behind the step.

Not covered: a step that stands in a chain in other tokens than the policy wrote. A rollout that writes the same text is then
one that went elsewhere. What a rollout may still write after a step is less than `sampling.max_tokens` by that step's tokens.
"""

from collections.abc import Iterable, Mapping, Sequence

from pipeline.core.records import Prefix
from pipeline.estimators.tree import ROOT, Tree

_Step = tuple[tuple[int, ...], str]
"""Tokens behind a prefix, and the prefix that they lead to."""


class PrefixMatcher:
    """The steps from prefix to prefix of some problems."""

    def __init__(self, trees: Iterable[Tree], prefixes: Mapping[str, Prefix]) -> None:
        self._behind: dict[str, list[_Step]] = {}
        for tree in trees:
            for prefix_id, parent in zip(tree.prefix_ids, tree.parents.tolist(), strict=True):
                if parent != ROOT:
                    self._add(prefixes[tree.prefix_ids[parent]], prefixes[prefix_id])
        for steps in self._behind.values():
            # Of two steps that begin alike the shorter one is taken: every rollout that takes the longer one takes it too.
            steps.sort(key=lambda step: (len(step[0]), step[1]))

    def _add(self, before: Prefix, after: Prefix) -> None:
        length = len(before.prompt_ids)
        if length < len(after.prompt_ids) and after.prompt_ids[:length] == before.prompt_ids:
            self._behind.setdefault(before.prefix_id, []).append((after.prompt_ids[length:], after.prefix_id))

    def reached(self, prefix_id: str, token_ids: Sequence[int]) -> str | None:
        """The last prefix that a rollout of this one came by with these tokens; None where it did not take a whole step."""
        at, begin = prefix_id, 0
        while (step := self._taken(at, token_ids, begin)) is not None:
            begin, at = begin + len(step[0]), step[1]
        return at if begin else None

    def _taken(self, prefix_id: str, token_ids: Sequence[int], begin: int) -> _Step | None:
        for step in self._behind.get(prefix_id, ()):
            tokens = step[0]
            begins_alike = begin < len(token_ids) and token_ids[begin] == tokens[0]
            if begins_alike and tuple(token_ids[begin : begin + len(tokens)]) == tokens:
                return step
        return None
