"""Rollouts that are under way: tells which problems have all that was asked for in their last round."""

import asyncio
from collections.abc import Iterable

from pipeline.estimate.tree import Tree
from pipeline.records import Request
from pipeline.run.rounds import Round


class Arrivals:
    """Rounds are announced with `expect`, rollouts with `take`."""

    def __init__(self) -> None:
        self._tree_of: dict[str, Tree] = {}
        self._left: dict[Tree, int] = {}
        self._complete: list[Tree] = []
        self._some = asyncio.Event()

    def expect(self, rounds: Iterable[Round]) -> None:
        for each in rounds:
            self._left[each.tree] = len(each.missing)
            self._tree_of.update((prefix, each.tree) for prefix, _ in each.missing)

    def take(self, request: Request) -> None:
        tree = self._tree_of[request.prefix.prefix_id]
        self._left[tree] -= 1
        if not self._left[tree]:
            self._complete.append(tree)
            self._some.set()

    def complete(self) -> list[Tree]:
        """The problems whose last round has become complete since the last call."""
        self._some.clear()
        complete, self._complete = self._complete, []
        return complete

    async def wait(self) -> None:
        """Return when a problem's round is complete."""
        await self._some.wait()
