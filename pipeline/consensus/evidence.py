"""What Monte Carlo and other witnesses say of a chain. Pure.

Places of a chain of K steps are the entries of a tuple of K + 1 numbers: index j < K means that the first error is step j + 1,
index K that no step has an error.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

ROUNDING = 1e-6
"""By how much the probabilities of a claim may exceed the sum 1."""


@dataclass(frozen=True, slots=True)
class PositionClaim:
    """Votes for the place of the first error. `votes`: K + 1 weights, each the number of votes for a place or their probability
    mass. Votes that name no place are left out. All 0: the witness says nothing."""

    votes: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class StepClaim:
    """A verdict on each step. `steps`: 1 where the step holds, 0 where it is refuted, None where that is unknown. `proved`: the
    indices of steps, from 0, on which the verdict is a proof. It is taken as it is; how reliable the others are is learned."""

    steps: tuple[int | None, ...]
    proved: frozenset[int] = frozenset()


Claim = PositionClaim | StepClaim


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainEvidence:
    """All that is said of a chain of K steps.

    `steps`: K. `outcome`: whether its final answer is correct. `monte_carlo`: K + 1 probabilities of the place of the first
    error according to Monte Carlo alone (see `monte_carlo`); what they lack to 1 says nothing. None: it says nothing at all.
    `witnesses`: claims by name of the witness; a witness that is absent says nothing. `truth`: the place that people name, K
    for none; nothing is learned from it. None: unknown.
    """

    steps: int
    outcome: bool | None = None
    monte_carlo: tuple[float, ...] | None = None
    witnesses: Mapping[str, Claim] = field(default_factory=dict)
    truth: int | None = None


def impossible_places(chain: ChainEvidence) -> set[int]:
    """The places that proofs rule out: a step that holds is not the first error, and the first error is not after a refuted
    step."""
    found: set[int] = set()
    for claim in chain.witnesses.values():
        if isinstance(claim, StepClaim):
            for at in claim.proved:
                found.update({at} if claim.steps[at] else range(at + 1, chain.steps + 1))
    return found


def check(evidence: Sequence[ChainEvidence]) -> None:
    """Raises ValueError, which names the chain by its number from 0, for claims that are not about its steps."""
    for number, chain in enumerate(evidence):
        if wrong := _wrong(chain):
            raise ValueError(f"chain {number}: {wrong}")


def wrong_claim(claim: Claim, steps: int) -> str:
    """What is wrong with a claim about a chain with this number of steps, or an empty text."""
    if isinstance(claim, StepClaim):
        if len(claim.steps) != steps:
            return f"verdicts on {len(claim.steps)} of {steps} steps"
        if not all(step in (0, 1, None) for step in claim.steps):
            return "a verdict other than 1, 0 and None"
        proofs = all(0 <= at < steps and claim.steps[at] is not None for at in claim.proved)
        return "" if proofs else "a proof of a step without a verdict"
    if len(claim.votes) != steps + 1:
        return f"votes for {len(claim.votes)} of {steps + 1} places"
    if not all(math.isfinite(votes) and votes >= 0 for votes in claim.votes):
        return "a number of votes that is negative or not finite"
    return ""


def _wrong(chain: ChainEvidence) -> str:
    if chain.steps < 1:
        return "a chain without steps"
    if chain.monte_carlo is not None:
        found = chain.monte_carlo
        if len(found) != chain.steps + 1:
            return f"Monte Carlo: {len(found)} probabilities for {chain.steps + 1} places"
        if not all(math.isfinite(p) and p >= 0 for p in found) or math.fsum(found) > 1 + ROUNDING:
            return "Monte Carlo: not probabilities with a sum of at most 1"
    for name, claim in chain.witnesses.items():
        if wrong := wrong_claim(claim, chain.steps):
            return f"witness {name}: {wrong}"
    return ""
