"""Fits a calibration to trials: groups of steps, the kind of map, the maps, their intervals, and predictions of unseen
problems. Pure.

**Groups.** Steps 1, 2, 3 and so on have maps of their own where there are enough prefixes; steps with fewer are pooled with the
next ones, the last ones with those before.

**The kind** is one for all groups. Beta calibration and isotonic regression predict each problem from the others. The better
one, by its Brier score, is taken if the score of the identity is reliably worse: if the interval of the difference, with
problems as sampling units, is above 0. Otherwise scores stay as they are, because a map that is not needed only adds noise.

**Predictions of unseen problems** come from the whole procedure, choice of the kind included, on the other problems.

**Intervals** of V at a score: the mean of value minus beta curve among the nearest prefixes by score (WINDOW_SHARE of the
group, at least WINDOW), with its interval (`prefixes.mean_value`), added to the curve. So they are about E(V | score), whatever
the kind of map is, and are wider than those of a curve whose form is known to be right. Where necessary they are widened to
hold the map and to rise.

Not covered: scores that fall where V rises. A map never falls, so such scores become nearly constant.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pipeline.analysis.calibrate.maps import Curve, fit_curve
from pipeline.analysis.calibrate.prefixes import Trials, folds_of, mean_value
from pipeline.analysis.comparison import mean
from pipeline.core.statistics import Floats, Interval, Ints
from pipeline.scorers.calibration import MapKind, PositionMap

WINDOW = 50
"""Least number of prefixes that an interval is made from, where the group has as many."""
WINDOW_SHARE = 1 / 20
"""More of them make intervals narrower, and wrong where the true curve bends: with a fifth of 10,000, 70 of 100 held a curve
with two bends, with a twentieth 94."""
_QUANTILES = 20
"""Equal parts of the scores at whose ends every map has knots, for its intervals."""
_CANDIDATES = (MapKind.beta, MapKind.isotonic)


@dataclass(frozen=True, slots=True, kw_only=True)
class StepGroup:
    """Steps `first` to `last`, counted from 1; `last` None: all later steps too."""

    first: int
    last: int | None

    @property
    def name(self) -> str:
        if self.last is None:
            return f"{self.first}+"
        return str(self.first) if self.first == self.last else f"{self.first}-{self.last}"

    def of(self, trials: Trials) -> Trials:
        """The trials in this group."""
        return trials.part(self.holds(trials.steps))

    def holds(self, steps: Ints) -> NDArray[np.bool_]:
        """Whether each step is in this group."""
        within = steps >= self.first
        return within if self.last is None else within & (steps <= self.last)


@dataclass(frozen=True, slots=True, kw_only=True)
class MapChoice:
    """Which kind of map is taken. `best`: of those that change scores. `gain`: how much smaller its Brier score is than that of
    the scores, on problems that it was not fitted to."""

    kind: MapKind
    best: MapKind
    gain: Interval


@dataclass(frozen=True, slots=True, kw_only=True)
class Maps:
    """A curve for each group of steps."""

    groups: tuple[StepGroup, ...]
    curves: tuple[Curve, ...]

    def at(self, trials: Trials) -> Floats:
        """The value of every prefix by its score and step."""
        found = np.empty(len(trials))
        for group, curve in zip(self.groups, self.curves, strict=True):
            held = group.holds(trials.steps)
            found[held] = curve.at(trials.scores[held])
        return found


def step_groups(steps: Ints, least: int) -> list[StepGroup]:
    """The groups of steps with at least `least` prefixes each, if there are as many at all."""
    counts = np.bincount(steps)
    firsts, in_group = [1], 0
    for step in range(1, len(counts)):
        in_group += int(counts[step])
        if in_group >= least and counts[step + 1 :].sum() >= least:
            firsts.append(step + 1)
            in_group = 0
    lasts = [*(first - 1 for first in firsts[1:]), None]
    return [StepGroup(first=first, last=last) for first, last in zip(firsts, lasts, strict=True)]


def fit_maps(kind: MapKind, groups: Sequence[StepGroup], trials: Trials) -> Maps:
    """A curve of this kind for each group."""
    return Maps(groups=tuple(groups), curves=tuple(fit_curve(kind, group.of(trials)) for group in groups))


def choose(groups: Sequence[StepGroup], trials: Trials, folds: int) -> MapChoice:
    """The kind of map, by cross-fitting over problems."""
    losses = {}
    for kind in _CANDIDATES:
        maps = [fit_maps(kind, groups, rest) for rest in _rests(trials, folds)]
        losses[kind] = brier_losses(_predicted(maps, trials), trials.values)
    best = min(_CANDIDATES, key=lambda kind: float(losses[kind].mean()))
    gain = mean(trials.problems, brier_losses(trials.scores, trials.values) - losses[best])
    reliable = gain.low is not None and gain.low > 0
    return MapChoice(kind=best if reliable else MapKind.identity, best=best, gain=gain)


def cross_fitted(groups: Sequence[StepGroup], trials: Trials, folds: int, others: Trials) -> tuple[Floats, Floats]:
    """What the procedure predicts for each prefix from the problems in the other folds; the same for `others`, prefixes of
    the same problems that nothing is fitted to."""
    maps = [fit_maps(choose(groups, rest, folds).kind, groups, rest) for rest in _rests(trials, folds)]
    return _predicted(maps, trials), _predicted(maps, others)


def brier_losses(predicted: Floats, values: Floats) -> Floats:
    """For each prefix the mean of (outcome - predicted)^2 over its rollouts, whose outcomes are 1 or 0 and have the mean
    `values`.

    Its expectation is (V - predicted)^2 + V (1 - V). The second part is the same for all predictions.
    """
    return predicted**2 - 2 * predicted * values + values


def position_maps(maps: Maps, trials: Trials) -> list[PositionMap]:
    """The maps with their intervals, in the form of the file."""
    return [
        _position_map(group, curve, group.of(trials)) for group, curve in zip(maps.groups, maps.curves, strict=True)
    ]


def _rests(trials: Trials, folds: int) -> list[Trials]:
    """For each fold the prefixes of the others."""
    return [trials.part(folds_of(trials.problems, folds) != out) for out in range(folds)]


def _predicted(maps: Sequence[Maps], trials: Trials) -> Floats:
    """What the maps of each fold predict for the prefixes in it."""
    found = np.empty(len(trials))
    for out, each in enumerate(maps):
        held_out = folds_of(trials.problems, len(maps)) == out
        found[held_out] = each.at(trials.part(held_out))
    return found


def _position_map(group: StepGroup, curve: Curve, trials: Trials) -> PositionMap:
    quantiles = np.quantile(trials.scores, np.linspace(0, 1, _QUANTILES + 1))
    knots = np.unique(np.concatenate((curve.scores, quantiles)))
    values = curve.at(knots)
    low, high = _intervals(trials, knots)
    # From the right and from the left: an end that falls is moved outwards.
    low = np.minimum.accumulate(np.minimum(low, values)[::-1])[::-1]
    high = np.maximum.accumulate(np.maximum(high, values))
    return PositionMap(
        first=group.first,
        last=group.last,
        prefixes=len(trials),
        scores=tuple(knots.tolist()),
        values=tuple(values.tolist()),
        low=tuple(np.clip(low, 0, 1).tolist()),
        high=tuple(np.clip(high, 0, 1).tolist()),
    )


def _intervals(trials: Trials, knots: Floats) -> tuple[Floats, Floats]:
    """The ends of the interval of V at each knot."""
    ordered = trials.part(np.argsort(trials.scores, kind="stable"))
    curve = fit_curve(MapKind.beta, trials)
    apart = ordered.values - curve.at(ordered.scores)
    size = min(len(trials), max(WINDOW, round(WINDOW_SHARE * len(trials))))
    # The middle of the prefixes with this very score, where there are some.
    middle = (np.searchsorted(ordered.scores, knots, "left") + np.searchsorted(ordered.scores, knots, "right")) // 2
    starts = np.clip(middle - size // 2, 0, len(trials) - size).tolist()
    windows = {start: np.arange(start, start + size) for start in starts}
    found = {start: mean_value(ordered.part(at), apart[at]) for start, at in windows.items()}
    ends = np.array([(found[start].low, found[start].high) for start in starts])
    return curve.at(knots) + ends[:, 0], curve.at(knots) + ends[:, 1]
