"""The place of the first error according to Monte Carlo alone: where a chain's value falls to the threshold. Pure.

A policy that cannot solve the problem from its start loses at every prefix, whatever the steps are. So the probability that
the bare problem is lost says nothing about steps: with it Monte Carlo is silent, and the probabilities of the places have the
rest of 1 as their sum. Bayes' rule asks for this if the policy's weakness and the place of an error are independent.

In most chains the error is where the value falls and stays low until the end. In chains with a right answer the end is not
low, so that this would say "no error" of each of them, without evidence. There the first fall counts, even if the chain
recovers.

Some estimators know how the values of a chain depend on each other (`place_of_loss`, `place_of_fall`). Others know each value
by itself; then values are high or low, and change seldom: a Markov chain of two states (`place_of_change`).
"""

import math
from collections.abc import Sequence

ALL = 1 - 1e-9
"""From this probability on that the bare problem is lost, Monte Carlo says nothing at all."""
_LOW_AT_FIRST, _FALLS, _RECOVERS = 0.1, 1.0, 0.05
"""Of the Markov chain: probabilities that the first value is low and that a low one becomes high; how often a high one becomes
low along a chain."""
_LEAST, _NEVER = 1e-12, -1e9


def monte_carlo_claim(
    outcome: bool | None,
    p_above: Sequence[float | None],
    p_lost: Sequence[float | None] | None = None,
    prior: float = 0.5,
) -> tuple[float, ...] | None:
    """K + 1 probabilities of the places of the first error, with the sum 1 - P(silent); None if Monte Carlo says nothing.

    `p_above`: for the bare problem and each of the K steps, P(V > threshold); at the end of a chain with an outcome it is that.
    `p_lost`: the same of `StepValue.p_lost`, if the estimator knows how values depend on each other. `prior`: P(V > threshold)
    before any rollout, if it does not. Raises ValueError for what is no probability.
    """
    above = [p for p in p_above if p is not None]
    lost = [] if p_lost is None else [p for p in p_lost if p is not None]
    if len(lost) == len(p_above) and outcome is not True:
        return place_of_loss(lost)
    if len(above) < len(p_above):
        return None
    return place_of_fall(above) if len(lost) == len(p_above) else place_of_change(outcome, above, prior)


def place_of_loss(lost: Sequence[float]) -> tuple[float, ...] | None:
    """The place from which on the value stays at the threshold or below. `lost`: of the bare problem and of each step, the
    probability that this is so from there on; it never decreases along a chain, up to rounding.

    None if the bare problem is certainly lost. Raises ValueError for what is no probability.
    """
    _check(lost)
    before, places = lost[0], []
    if before >= ALL:
        return None
    for now in lost[1:]:
        places.append(max(0.0, now - before))
        before = max(before, now)
    return (*places, 1 - before)


def place_of_fall(above: Sequence[float]) -> tuple[float, ...] | None:
    """The first step after which the value is at the threshold or below. `above`: P(V > threshold) of the bare problem and
    after each step, from an estimator that knows their dependence. Values of one chain rise and fall together, so the
    probability of a fall up to a step is that of the most probable one.

    None if the bare problem is certainly lost. Raises ValueError for what is no probability.
    """
    _check(above)
    lost = [1 - above[0]]
    for p in above[1:]:
        lost.append(max(lost[-1], 1 - p))
    return place_of_loss(lost)


def place_of_change(outcome: bool | None, above: Sequence[float], prior: float) -> tuple[float, ...] | None:
    """The place of the last fall, after a right answer that of the first one, if values are a Markov chain of two states (high
    and low). `above`: P(V > threshold) of the bare problem and after each step, each by its own rollouts. `prior`: the same
    before any rollout.

    None if the bare problem is certainly lost, or all values are above the threshold, or none. Raises ValueError for what is no
    probability.
    """
    _check([*above, prior])
    if not 1 - ALL < prior < ALL:
        return None
    steps = len(above) - 1
    fall, stays = min(_FALLS / steps, 0.5), 1 - _RECOVERS
    odds = prior / (1 - prior)
    high = [max(p, _LEAST) for p in above]
    low = [max((1 - p) * odds, _LEAST) for p in above]
    if outcome is not None:
        high[-1], low[-1] = (1.0, 0.0) if outcome else (0.0, 1.0)
    logs = _first_falls(high, low, fall) if outcome else _last_falls(high, low, fall, stays)
    most = max(logs)
    shares = [math.exp(log - most) for log in logs]
    total = math.fsum(shares)
    if shares[-1] >= ALL * total:
        return None
    return tuple(share / total for share in shares[:-1])


def _last_falls(high: Sequence[float], low: Sequence[float], fall: float, stays: float) -> list[float]:
    """Logarithms of the weights of each step as the last fall, of none, and of a chain that is low from its start."""
    stays_low = [0.0] * (len(low) + 1)
    for at in range(len(low) - 1, 0, -1):
        stays_low[at] = stays_low[at + 1] + _log(low[at]) + math.log(stays)
    found = []
    up, down, scale = (1 - _LOW_AT_FIRST) * high[0], _LOW_AT_FIRST * low[0], 0.0
    lost = _log(down) + stays_low[1]
    for at in range(1, len(low)):
        # The first low value has come from a high one, so it has not stayed low.
        found.append(_log(up * fall / stays) + scale + stays_low[at])
        up, down = (
            (up * (1 - fall) + down * (1 - stays)) * high[at],
            (up * fall + down * stays) * low[at],
        )
        total = up + down
        up, down, scale = up / total, down / total, scale + math.log(total)
    return [*found, _log(up) + scale, lost]


def _first_falls(high: Sequence[float], low: Sequence[float], fall: float) -> list[float]:
    """The same of each step as the first fall."""
    # What comes after each prefix, given that it is high, and that it is low.
    later = [(0.0, 0.0)]
    for at in range(len(low) - 1, 0, -1):
        up, down = later[-1]
        up, down = up + _log(high[at]), down + _log(low[at])
        later.append((_added(up, 1 - fall, down, fall), _added(up, _RECOVERS, down, 1 - _RECOVERS)))
    later.reverse()
    found, so_far = [], _log((1 - _LOW_AT_FIRST) * high[0])
    for at in range(1, len(low)):
        found.append(so_far + math.log(fall) + _log(low[at]) + later[at][1])
        so_far += math.log(1 - fall) + _log(high[at])
    return [*found, so_far, _log(_LOW_AT_FIRST * low[0]) + later[0][1]]


def _added(one: float, its: float, other: float, others: float) -> float:
    """log(its exp(one) + others exp(other))."""
    most = max(one, other)
    return most + math.log(its * math.exp(one - most) + others * math.exp(other - most))


def _log(share: float) -> float:
    return math.log(share) if share > 0 else _NEVER


def _check(found: Sequence[float]) -> None:
    if not all(0 <= p <= 1 for p in found):
        raise ValueError(f"probabilities must be from 0 to 1, not {list(found)}")
    if len(found) < 2:
        raise ValueError("a chain without steps")
