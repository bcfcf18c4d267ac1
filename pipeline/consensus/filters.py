"""Consensus filters: chains are kept if Monte Carlo and all witnesses agree, and left out with a reason if not. Pure.

`exact` keeps the labels of chains on which both name the same first error, or both none (Zhang et al. 2025, arXiv 2501.07301).
`side` asks only whether there is an error, and keeps the labels of steps that both judge alike.

A witness's vote is that of most of its votes. Two places with most votes are no majority.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise

from pipeline.consensus.evidence import Claim, PositionClaim, StepClaim

_TIE = 1e-9
NEGATIVE, POSITIVE = 0, 1


class LeftOut(StrEnum):
    """Why a chain has no labels."""

    MC_UNCERTAIN = "mc_uncertain"
    NO_WITNESS = "no_witness"
    NO_MAJORITY = "no_majority"
    MC_ALONE = "mc_alone"
    WITNESS_ALONE = "witness_alone"
    OTHER_STEP = "other_step"
    WITNESSES_DIFFER = "witnesses_differ"
    NO_STEP = "no_step"


@dataclass(frozen=True, slots=True)
class Filtered:
    """`labels`: the labels that a chain keeps, None for each step if it is left out. `left_out`: why."""

    labels: tuple[int | None, ...]
    left_out: LeftOut | None = None


def first_error(labels: Sequence[int | None]) -> int | None:
    """The index of the first 0 among labels; their number if there is none; None if an uncertain label decides that."""
    for index, label in enumerate(labels):
        if label is None:
            return None
        if label == NEGATIVE:
            return index
    return len(labels)


def majority(claim: PositionClaim) -> int | None:
    """The place with most votes (see `evidence`); None without votes, or if two places have most."""
    return _most(claim.votes)


def exact(labels: Sequence[int | None], claims: Mapping[str, Claim]) -> Filtered:
    """The labels by Monte Carlo if their first error is that of all witnesses. A witness that checks steps names a first error
    if it knows all steps before it."""
    ours = first_error(labels)
    if ours is None:
        return _left_out(labels, LeftOut.MC_UNCERTAIN)
    places = []
    for claim in claims.values():
        if isinstance(claim, PositionClaim) and any(claim.votes):
            place = majority(claim)
            if place is None:
                return _left_out(labels, LeftOut.NO_MAJORITY)
            places.append(place)
        elif isinstance(claim, StepClaim) and (known := first_error(claim.steps)) is not None:
            places.append(known)
    if not places:
        return _left_out(labels, LeftOut.NO_WITNESS)
    if any(one != other for one, other in pairwise(places)):
        return _left_out(labels, LeftOut.WITNESSES_DIFFER)
    if places[0] == ours:
        return Filtered(tuple(labels))
    if places[0] == len(labels):
        return _left_out(labels, LeftOut.MC_ALONE)
    return _left_out(labels, LeftOut.WITNESS_ALONE if ours == len(labels) else LeftOut.OTHER_STEP)


def side(labels: Sequence[int | None], claims: Mapping[str, Claim]) -> Filtered:
    """The labels by Monte Carlo of the steps that all witnesses with a verdict on them judge alike, if all agree on whether the
    chain has an error. A witness that names a first error judges the steps before it good, and is silent on those after it."""
    if NEGATIVE not in labels and None in labels:
        return _left_out(labels, LeftOut.MC_UNCERTAIN)
    ours = NEGATIVE in labels
    sides, verdicts = [], []
    for claim in claims.values():
        if isinstance(claim, PositionClaim):
            if not any(claim.votes):
                continue
            errors, none = sum(claim.votes[:-1]), claim.votes[-1]
            if abs(errors - none) <= _TIE * (errors + none):
                return _left_out(labels, LeftOut.NO_MAJORITY)
            sides.append(errors > none)
            verdicts.append(_by_position(claim))
        elif NEGATIVE in claim.steps or None not in claim.steps:
            sides.append(NEGATIVE in claim.steps)
            verdicts.append(claim.steps)
    if not sides:
        return _left_out(labels, LeftOut.NO_WITNESS)
    if any(one != other for one, other in pairwise(sides)):
        return _left_out(labels, LeftOut.WITNESSES_DIFFER)
    if sides[0] != ours:
        return _left_out(labels, LeftOut.MC_ALONE if ours else LeftOut.WITNESS_ALONE)
    kept = tuple(
        label if (said := {v[step] for v in verdicts} - {None}) and said == {label} else None
        for step, label in enumerate(labels)
    )
    return Filtered(kept) if any(label is not None for label in kept) else _left_out(labels, LeftOut.NO_STEP)


def _by_position(claim: PositionClaim) -> tuple[int | None, ...]:
    steps = len(claim.votes) - 1
    errors, none = sum(claim.votes[:-1]), claim.votes[-1]
    if none > errors:
        return (POSITIVE,) * steps
    place = _most(claim.votes[:-1])
    if place is None:
        before = next(step for step, votes in enumerate(claim.votes) if votes > 0)
        return (POSITIVE,) * before + (None,) * (steps - before)
    return (POSITIVE,) * place + (NEGATIVE,) + (None,) * (steps - place - 1)


def _most(votes: Sequence[float]) -> int | None:
    most = max(votes)
    places = [place for place, count in enumerate(votes) if count >= most * (1 - _TIE)]
    return places[0] if most > 0 and len(places) == 1 else None


def _left_out(labels: Sequence[int | None], why: LeftOut) -> Filtered:
    return Filtered((None,) * len(labels), why)
