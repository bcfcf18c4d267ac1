"""Where the targets of training data are, and what a user should know before training on them: few steps have a target, nearly
all have the same, or the labels 0 only repeat outcomes. `export` and `train` count what they take; the report says the same of
a run. Pure.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from pipeline.core.formatting import format_count
from pipeline.core.records import Origin
from pipeline.estimators.labels import NEGATIVE

HALF = 0.5
"""Fewer inner steps with a target than this share, or more labels 0 at ends of chains, are worth a warning."""
EXTREME = 0.05
"""Targets whose mean is at most this, or at least 1 minus this, do not tell right steps from wrong ones."""
LEAST_TARGETS = 20
"""Of fewer inner steps with a target, or labels 0, nothing is said: a handful may be alike, or ends, by chance."""


MORE_ZEROS = "make more labels 0 with `relabel`: another estimator.rule, or a higher estimator.threshold"


class TargetPlaces(NamedTuple):
    """The end of a chain has the chain's own outcome as target; all other steps are inner steps.

    `inner`: number of inner steps; `known`: those with a target; `good`: the sum of these targets, at most 1 each. `bad`:
    labels 0 of all steps, for hard targets; `bad_at_ends`: those at ends. `implied`: steps that `are_left_out`. A NamedTuple,
    because one is made for every chain and it is fast.
    """

    inner: int = 0
    known: int = 0
    good: float = 0.0
    bad: int = 0
    bad_at_ends: int = 0
    implied: int = 0


NO_PLACES = TargetPlaces()


def are_left_out(origins: Sequence[str], *, grown: bool) -> list[bool]:
    """For each step of a chain, whether it has no target although its value may be known: the steps of a promoted chain that
    their neighbours alone imply. The chain was picked for the outcomes of rollouts, so what it implies is biased."""
    return [grown and origin == Origin.IMPLIED.value for origin in origins]


def left_out_text(implied: int) -> str:
    """How many steps `are_left_out`, for the screen and the data card."""
    return f"{format_count(implied, 'step')} of chains that `grow` promoted without a target: nothing was sampled there"


def target_places(
    targets: Sequence[object], origins: Sequence[str], *, hard: bool, grown: bool = False
) -> TargetPlaces:
    """The places of the targets of one chain. A step without a target has None. `origins`: the column `origin` of the steps;
    those beyond the last target do not count. `hard`: the targets are labels. `grown`: `grow` promoted the chain."""
    ends = [origin == Origin.TERMINAL.value for origin in origins[: len(targets)]]
    inner = [target for target, end in zip(targets, ends, strict=True) if not end]
    bad = targets.count(NEGATIVE) if hard else 0
    return TargetPlaces(
        inner=len(inner),
        known=len(inner) - inner.count(None),
        good=sum(map(_good, inner)),
        bad=bad,
        bad_at_ends=bad - inner.count(NEGATIVE) if hard else 0,
        implied=sum(are_left_out(origins[: len(targets)], grown=grown)),
    )


def _good(target: object) -> float:
    """A label, a value, or correct and graded rollouts, as a number from 0 to 1; 0 for none."""
    match target:
        case int() | float():
            return min(target, 1)
        case (int(correct), int(rollouts)):
            return correct / rollouts
        case _:
            return 0.0


def total_places(places: Iterable[TargetPlaces]) -> TargetPlaces:
    """The sums of counts."""
    return TargetPlaces(*map(sum, zip(NO_PLACES, *places, strict=True)))


def place_warnings(places: TargetPlaces, *, what: str, instead: str) -> Iterator[str]:
    """Sentences for the screen and the data card; nothing where there is nothing to warn of. `what`: the target in a word, such
    as `label`. `instead`: a sentence without a full stop that names a better target."""
    if places.known < HALF * places.inner:
        yield (
            f"few inner steps have a {what}: {places.known:,} of {places.inner:,}. Inner steps are all but the ends of chains, "
            f"which repeat outcomes. Trainers learn nothing from a step without a {what}. {instead}"
        )
    mean = places.good / max(places.known, 1)
    if places.known >= LEAST_TARGETS and not EXTREME < mean < 1 - EXTREME:
        yield (
            f"nearly all targets of {format_count(places.known, 'inner step')} are {'0' if mean < HALF else '1'} (mean "
            f"{mean:.2f}), and a model learns nothing about steps from them. `report` says how many rollouts are correct "
            "and by which rule steps are labelled"
        )
    if not places.inner and places.bad >= LEAST_TARGETS:
        yield "no chain has a step before its last one: all labels only repeat outcomes. Label chains of several steps"
    elif words := mostly_ends(places.bad_at_ends, places.bad):
        yield f"{words}. {instead}, or {MORE_ZEROS}"


def mostly_ends(at_ends: int, zeros: int) -> str:
    """A sentence without a full stop where most of the labels 0 are at ends of chains; empty where they are not."""
    if zeros < LEAST_TARGETS or at_ends <= HALF * zeros:
        return ""
    return (
        f"{at_ends:,} of {format_count(zeros, 'label')} 0 belong to last steps and only repeat the outcome of their chain. "
        "Trainers learn little from them about where errors are"
    )
