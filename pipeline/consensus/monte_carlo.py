"""The place of the first error according to Monte Carlo alone: where a chain's value falls to the threshold. Pure.

A policy that cannot solve the problem from its start loses at every prefix, whatever the steps are. So the probability that
the bare problem is lost says nothing about steps: with it Monte Carlo is silent, and the probabilities of the places have the
rest of 1 as their sum. Bayes' rule asks for this if the policy's weakness and the place of an error are independent.

The values mean another thing after a right answer. There the end of the chain is not lost, and what is known jointly
(`place_of_loss`) says "no error" of each right chain, without evidence. So for right chains it is the first fall that counts
(`place_of_fall`), even if the chain recovers from it.
"""

from collections.abc import Sequence

ALL = 1 - 1e-9
"""From this probability on that the bare problem is lost, Monte Carlo says nothing at all."""


def monte_carlo_claim(
    outcome: bool | None, p_above: Sequence[float | None], p_lost: Sequence[float | None] | None = None
) -> tuple[float, ...] | None:
    """K + 1 probabilities of the places of the first error, with the sum 1 - P(silent); None if Monte Carlo says nothing.

    `p_above`: for the bare problem and each of the K steps, P(V > threshold). `p_lost`: the same of `StepValue.p_lost`, if the
    estimator knows it. Both are the last step's outcome at the end of a chain with an outcome.
    """
    if outcome is not True and p_lost is not None:
        known = [p for p in p_lost if p is not None]
        if len(known) == len(p_lost):
            return place_of_loss(known[0], known[1:])
    known = [p for p in p_above if p is not None]
    return place_of_fall(known[0], known[1:]) if len(known) == len(p_above) else None


def place_of_loss(root: float, steps: Sequence[float]) -> tuple[float, ...] | None:
    """The place from which on the value stays at the threshold or below. `root`, `steps`: the probabilities that this is so
    from the bare problem on, and from each step on; they never decrease along a chain, up to rounding.

    None if the bare problem is certainly lost. Raises ValueError for what is no probability.
    """
    _check([root, *steps])
    if root >= ALL:
        return None
    lost, places = root, []
    for step in steps:
        places.append(max(0.0, step - lost))
        lost = max(lost, step)
    return (*places, 1 - lost)


def place_of_fall(root: float, steps: Sequence[float]) -> tuple[float, ...] | None:
    """The first step after which the value is at the threshold or below, if values of different prefixes are independent.
    `root`, `steps`: P(V > threshold) of the bare problem and after each step.

    None if the bare problem is certainly lost. Raises ValueError for what is no probability.
    """
    _check([root, *steps])
    if 1 - root >= ALL:
        return None
    high, places = root, []
    for above in steps:
        places.append(high * (1 - above))
        high *= above
    return (*places, high)


def _check(found: Sequence[float]) -> None:
    if not all(0 <= p <= 1 for p in found):
        raise ValueError(f"probabilities must be from 0 to 1, not {list(found)}")
    if len(found) < 2:
        raise ValueError("a chain without steps")
