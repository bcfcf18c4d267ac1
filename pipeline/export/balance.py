"""Selects the chains to leave out so that good and bad chains, or their steps, have about equal numbers. Pure.

A hash of seed and chain_id decides which surplus chains are left out, so the order of the chains does not matter. Whole chains
are left out, never single steps. A chain without a labelled step counts as a chain without a bad step.
"""

from collections.abc import Callable, Iterable, Sequence

from pipeline.core.errors import UsageError
from pipeline.core.ids import content_id
from pipeline.export.example import LabelCounts
from pipeline.export.settings import Balance

EXACT_STEPS = 4096
"""The last surplus steps, up to this number, are balanced as exactly as whole chains allow; the ones before in hash order."""


Counted = tuple[str, LabelCounts]
"""The id of a chain, and how many labels its steps have."""


def chains_to_drop(chains: Iterable[Counted], balance: Balance, seed: int) -> frozenset[str]:
    """The chain_ids to leave out. Raises UsageError if one of the two sides is empty, because nothing would be left."""
    match balance:
        case Balance.none:
            return frozenset()
        case Balance.chains:
            return _balanced(list(chains), seed, "chain", lambda labels: -1 if labels.bad else 1)
        case Balance.steps:
            return _balanced(list(chains), seed, "step", lambda labels: labels.good - labels.bad)


def _balanced(chains: list[Counted], seed: int, what: str, surplus: Callable[[LabelCounts], int]) -> frozenset[str]:
    total = sum(surplus(labels) for _, labels in chains)
    side = 1 if total > 0 else -1
    _refuse_one_sided(chains, what)
    candidates = [(name, weight) for name, labels in chains if (weight := surplus(labels) * side) > 0]
    candidates.sort(key=lambda candidate: (content_id(str(seed), candidate[0]), candidate[0]))
    chosen = _nearest([weight for _, weight in candidates], total * side)
    return frozenset(candidates[index][0] for index in chosen)


def _refuse_one_sided(chains: Sequence[Counted], what: str) -> None:
    bad = any(labels.bad for _, labels in chains)
    good = any(labels.good if what == "step" else not labels.bad for _, labels in chains)
    if chains and not (good and bad):
        lacking = ("good step" if what == "step" else "chain without a bad step") if not good else "bad step"
        raise UsageError(f"balance={what}s would leave out everything: there is no {lacking}. Export with balance=none")


def _nearest(weights: Sequence[int], target: int) -> list[int]:
    """Indices of weights (all above 0) whose sum is nearest to `target`; of two equally near sums, the smaller.

    Weights are taken in order until `target` is within EXACT_STEPS. The rest is a subset-sum search; reachable sums are stored
    as bits.
    """
    chosen: list[int] = []
    rest: list[int] = []
    for index, weight in enumerate(weights):
        if target - weight >= EXACT_STEPS:
            chosen.append(index)
            target -= weight
        else:
            rest.append(index)
    return chosen + _exactly(weights, rest, target)


def _exactly(weights: Sequence[int], indices: Sequence[int], target: int) -> list[int]:
    limit = target + max((weights[index] for index in indices), default=0)
    mask = (1 << limit + 1) - 1
    reachable = 1
    grown: list[tuple[int, int]] = []
    for index in indices:
        if reachable >> target & 1:
            break
        more = (reachable | reachable << weights[index]) & mask
        if more != reachable:
            grown.append((index, reachable))
            reachable = more
    total = next(
        candidate
        for distance in range(limit + 1)
        for candidate in (target - distance, target + distance)
        if candidate >= 0 and reachable >> candidate & 1
    )
    chosen: list[int] = []
    for index, before in reversed(grown):
        if not before >> total & 1:
            chosen.append(index)
            total -= weights[index]
    return chosen
