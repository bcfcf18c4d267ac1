"""The search and stopping rules of published labellers, from their descriptions, on the same rollouts as ours.

fixed         Math-Shepherd (arXiv 2312.08935): N rollouts of every prefix, c/n
shrunk        the same, drawn towards the mean of all by the Beta prior that fits the run: what sharing must beat to be sharing
wald          c/n once the Wald interval is narrower than 2h (an interval that VinePPO logs, arXiv 2410.01679); biased
first_zero    SCAN (arXiv 2509.16548): N rollouts per step from the left until none is right; what is behind counts as 0
omega_prm     OmegaPRM as in OpenR (arXiv 2406.06592, k = 16): of chains with a wrong answer, binary search for the first prefix
              without a right rollout
epic_prm      EpicPRM (arXiv 2503.02382): the number of rollouts from a pilot of 72 on the bare problem; of chains with a wrong
              answer, binary search for the first prefix worth less than half of the problem, from an adaptive first probe

The searches label rather than value. As the estimate of a prefix that they do not sample counts that of the nearest sampled one
before it; behind a found error that is 0 with OmegaPRM and SCAN. EpicPRM weighs rollouts by perplexity and skips problems with
fewer than ten right ones, which is not done here; its pilot serves several chains of a problem, where there is one here.
"""

import math
from collections.abc import Callable, Iterator, Mapping

import numpy as np
import numpy.typing as npt

from tests.synthetic.chains import Chains
from tests.synthetic.measured import Measured, right_of, sampled
from tests.synthetic.rollouts import RIGHT, UNGRADED, Rollouts

Peer = Callable[[Chains, Rollouts], Measured]

OMEGA_ROLLOUTS = 16
ZERO_ROLLOUTS = 8
EPIC_PILOT = 72
EPIC_WANTED = 10
EPIC_FEWEST = 16
EPIC_GRAIN = 8
WALD_FEWEST = 4
WALD_MOST = 64
WALD_Z = 1.96


def fixed(rollouts: int) -> Peer:
    def measure(chains: Chains, drawn: Rollouts) -> Measured:
        return sampled(drawn.first(rollouts), np.full(chains.states.shape, rollouts))

    return measure


def shrunk(rollouts: int) -> Peer:
    def measure(chains: Chains, drawn: Rollouts) -> Measured:
        raw = fixed(rollouts)(chains, drawn)
        outcomes = drawn.first(rollouts).outcomes[:, :, :rollouts]
        right, graded = (outcomes == RIGHT).sum(axis=2), (outcomes != UNGRADED).sum(axis=2)
        mean = right.sum() / graded.sum()
        both = (right * (right - 1)).sum() / (graded * (graded - 1)).sum()
        weight = max(0.0, (mean - both) / (both - mean**2))
        return Measured(values=(right + weight * mean) / (graded + weight), rollouts=raw.rollouts, tokens=raw.tokens)

    return measure


def wald(half_width: float) -> Peer:
    def measure(chains: Chains, drawn: Rollouts) -> Measured:
        block = drawn.first(WALD_MOST)
        right = (block.outcomes == RIGHT).cumsum(axis=2)
        graded = (block.outcomes != UNGRADED).cumsum(axis=2)
        share = right / np.maximum(graded, 1)
        narrow = WALD_Z * np.sqrt(share * (1 - share) / np.maximum(graded, 1)) < half_width
        done = narrow & (graded >= WALD_FEWEST)
        done[:, :, WALD_MOST - 1 :] = True
        return sampled(block, done.argmax(axis=2) + 1)

    return measure


def first_zero(chains: Chains, drawn: Rollouts) -> Measured:
    block = drawn.first(ZERO_ROLLOUTS)
    solved = (block.outcomes[:, :, :ZERO_ROLLOUTS] == RIGHT).any(axis=2)
    before = np.cumprod(solved, axis=1)
    reached = np.concatenate([np.ones((chains.count, 1), dtype=bool), before[:, :-1] > 0], axis=1)
    return sampled(block, np.where(reached, ZERO_ROLLOUTS, 0))


def omega_prm(chains: Chains, drawn: Rollouts) -> Measured:
    block = drawn.first(OMEGA_ROLLOUTS)
    counts = np.zeros_like(chains.states)
    counts[:, 0] = OMEGA_ROLLOUTS
    for chain in np.flatnonzero(~chains.outcomes):
        for probe in _halving(chains.steps, block.outcomes[chain]):
            counts[chain, probe] = OMEGA_ROLLOUTS
    return sampled(block, counts)


def _halving(steps: int, outcomes: npt.NDArray[np.int8]) -> Iterator[int]:
    good, bad = 0, steps
    while bad - good > 1:
        probe = (good + bad) // 2
        yield probe
        if right_of(outcomes[probe], OMEGA_ROLLOUTS):
            good = probe
        else:
            bad = probe


def epic_prm(chains: Chains, drawn: Rollouts) -> Measured:
    block = drawn.first(EPIC_PILOT)
    counts = np.zeros_like(chains.states)
    counts[:, 0] = EPIC_PILOT
    for chain in np.flatnonzero(~chains.outcomes):
        rollouts = _rollouts_wanted(block.outcomes[chain, 0])
        for probe in _adaptive_halving(chains.steps, block.outcomes[chain], rollouts):
            counts[chain, probe] = rollouts
    return sampled(block, counts)


def _rollouts_wanted(pilot: npt.NDArray[np.int8]) -> int:
    """The least number, in eights, with EPIC_WANTED of the pilot's correct ones among them."""
    enough = np.flatnonzero((pilot[:EPIC_PILOT] == RIGHT).cumsum() >= EPIC_WANTED)
    if not enough.size:
        return EPIC_PILOT
    return max(EPIC_FEWEST, math.ceil((int(enough[0]) + 1) / EPIC_GRAIN) * EPIC_GRAIN)


def _adaptive_halving(steps: int, outcomes: npt.NDArray[np.int8], rollouts: int) -> Iterator[int]:
    root = right_of(outcomes[0], EPIC_PILOT) / EPIC_PILOT
    left, right = 1, steps - 1
    shift = right // 4 * ((round(5 * root) >= 5) - (round(5 * root) < 2)) if right >= 4 else 0
    while left <= right:
        probe = min(right, max(left, (left + right) // 2 + shift))
        yield probe
        if right_of(outcomes[probe], rollouts) / rollouts < root / 2:
            right = probe - 1
        else:
            left = probe + 1
        shift = 0


PEERS: Mapping[str, Peer] = {
    **{f"fixed N={rollouts}": fixed(rollouts) for rollouts in (4, 8, 16, 32)},
    **{f"shrunk N={rollouts}": shrunk(rollouts) for rollouts in (4, 8, 16)},
    **{f"wald h={half_width:g}": wald(half_width) for half_width in (0.35, 0.25, 0.2)},
    "first_zero N=8": first_zero,
    "omega_prm k=16": omega_prm,
    "epic_prm": epic_prm,
}
