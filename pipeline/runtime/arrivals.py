"""Rollouts that are under way: which of a prefix, and which problems have all that was asked for in their last round."""

import asyncio
from collections.abc import Iterable

from pipeline.core.records import Request
from pipeline.estimators.tree import Tree
from pipeline.runtime.rounds import Round


class Arrivals:
    """Rounds are announced with `expect`, rollouts with `take`."""

    def __init__(self) -> None:
        self._tree_of: dict[str, Tree] = {}
        self._left: dict[Tree, int] = {}
        self._under_way: dict[str, set[int]] = {}
        self._complete: list[Tree] = []
        self._some = asyncio.Event()

    def expect(self, rounds: Iterable[Round]) -> None:
        for each in rounds:
            self._left[each.tree] = len(each.missing)
            for prefix, issue in each.missing:
                self._tree_of[prefix] = each.tree
                self._under_way.setdefault(prefix, set()).add(issue)

    def take(self, request: Request) -> None:
        prefix_id = request.prefix.prefix_id
        tree = self._tree_of[prefix_id]
        self._under_way[prefix_id].discard(request.issue_index)
        self._left[tree] -= 1
        if not self._left[tree]:
            self._complete.append(tree)
            self._some.set()

    def under_way(self, prefix_id: str) -> list[int]:
        """Issue indices of a prefix's rollouts that have not come in."""
        return sorted(self._under_way.get(prefix_id, ()))

    @property
    def any_complete(self) -> bool:
        return bool(self._complete)

    def complete(self) -> list[Tree]:
        """The problems whose last round has become complete since the last call."""
        self._some.clear()
        complete, self._complete = self._complete, []
        return complete

    async def wait(self) -> None:
        """Return when a problem's round is complete."""
        await self._some.wait()
