"""`calibrate` where the truth is known: the ECE of unseen problems before and after, what it does to right scores, and
how often its intervals hold V."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from pipeline.analysis.calibrate.fit import Maps, choose, cross_fitted, fit_maps, position_maps, step_groups
from pipeline.analysis.calibrate.reliability import reliability
from pipeline.core.statistics import Floats
from pipeline.scorers.calibration import MapKind
from tests.calibrate.known import (
    Curve,
    Sample,
    bent,
    honest,
    overconfident,
    sample,
    shifted,
    squared_error,
    true_ece,
)

CURVES: dict[str, Curve] = {"overconfident": overconfident, "shifted": shifted, "bent": bent}
PROBLEMS = (50, 300, 2_000)
"""With two chains of four steps each: 400, 2,400 and 16,000 prefixes."""
SEEDS, LARGE = 100, 1_000
SEEDS_OF_RIGHT_SCORES = 400
FOLDS, LEAST = 5, 200
CHAIN, CHAINS = 10, 20_000


@dataclass(frozen=True, slots=True)
class _Found:
    kind: MapKind
    before: float
    after: float
    cost: float
    estimate: float
    held_ece: bool
    held_v: float


def calibrate() -> None:
    print("\ncalibrate: goals: ECE of unseen problems at most 0.03 from 0.15; right scores never worse")
    for problems in PROBLEMS:
        for name, curve in CURVES.items():
            found = list(_samples(curve, problems, SEEDS if problems < LARGE else SEEDS // 5))
            _say(f"{8 * problems:,} prefixes, {name}", found)
    for problems in PROBLEMS[:2]:
        found = list(_samples(honest, problems, SEEDS_OF_RIGHT_SCORES))
        _say(f"{8 * problems:,} prefixes, right scores", found)
        costs = [each.cost for each in found]
        print(
            f"    a map is taken in {sum(each.kind is not MapKind.identity for each in found)} of {len(found)} samples; mean "
            f"squared error: {np.mean(costs):.1e} on average, {max(costs):.1e} at worst"
        )


def _say(what: str, found: list[_Found]) -> None:
    after = [each.after for each in found]
    kinds = ", ".join(f"{kind.value} {count}" for kind, count in Counter(each.kind for each in found).most_common())
    print(
        f"  {what}: ECE {np.mean([each.before for each in found]):.3f} -> {np.mean(after):.4f}, worst {max(after):.4f} of "
        f"{len(found)}; estimated {np.mean([each.estimate for each in found]):.4f}, interval held "
        f"{100 * np.mean([each.held_ece for each in found]):.0f} %; intervals of V held "
        f"{100 * np.mean([each.held_v for each in found]):.1f} %; {kinds}"
    )


def _samples(curve: Curve, problems: int, seeds: int) -> Iterator[_Found]:
    for seed in range(seeds):
        found, unseen = sample(curve, seed, problems=problems), sample(curve, 10_000 + seed, problems=LARGE)
        maps, kind = _fitted(found)
        after = maps.at(unseen.trials)
        groups = maps.groups
        estimate = reliability(cross_fitted(groups, found.trials, FOLDS, unseen.trials)[0], found.trials, 10).ece
        truth = true_ece(after, unseen.truth)
        assert estimate.value is not None
        yield _Found(
            kind=kind,
            before=true_ece(unseen.trials.scores, unseen.truth),
            after=truth,
            cost=squared_error(after, unseen.truth) - squared_error(unseen.trials.scores, unseen.truth),
            estimate=estimate.value,
            held_ece=(estimate.low or 0) <= truth <= (1 if estimate.high is None else estimate.high),
            held_v=_held(maps, found, curve),
        )


def _fitted(found: Sample) -> tuple[Maps, MapKind]:
    groups = step_groups(found.trials.steps, LEAST)
    kind = choose(groups, found.trials, FOLDS).kind
    return fit_maps(kind, groups, found.trials), kind


def _held(maps: Maps, found: Sample, curve: Curve) -> float:
    """How many intervals of knots among the scores hold E(V | score)."""
    held: list[Floats] = []
    for group, made in zip(maps.groups, position_maps(maps, found.trials), strict=True):
        scores, knots = group.of(found.trials).scores, np.array(made.scores)
        truth = np.clip(curve(knots), 1e-3, 1 - 1e-3)
        inner = (knots >= scores.min()) & (knots <= scores.max())
        held.append(((np.array(made.low) <= truth) & (truth <= np.array(made.high)))[inner].astype(float))
    return float(np.concatenate(held).mean())
