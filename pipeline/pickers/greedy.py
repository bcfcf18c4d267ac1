"""Takes picks one after the other by gain per cost, where a pick changes the gains of others. Pure."""

import heapq
from collections.abc import Callable, Iterable, Iterator, Sequence

from pipeline.pickers.base import Pick


def greedy(
    candidates: Iterable[int],
    costs: Sequence[float],
    gain: Callable[[int], float],
    take: Callable[[int], Iterable[int]],
    least: float = 0.0,
) -> Iterator[Pick]:
    """The candidates by gain per cost, the best first; equal ones in their order. Those with a gain of at most `least` are left
    out.

    `gain`: of a candidate, after all picks so far. `take`: notes a pick, and returns the candidates whose gains it changes.
    """
    gains = {node: gain(node) for node in candidates}
    heap = [(-worth / costs[node], node, worth) for node, worth in gains.items() if worth > least]
    heapq.heapify(heap)
    while heap:
        _, node, worth = heapq.heappop(heap)
        if gains.get(node) != worth:
            continue
        yield Pick(node, worth)
        del gains[node]
        for other in take(node):
            if other in gains and (now := gain(other)) != gains[other]:
                gains[other] = now
                if now > least:
                    heapq.heappush(heap, (-now / costs[other], other, now))
