"""A calibration: maps from the step scores of one model to V, the probability that one policy ends a chain right. Pure.

`calibrate` makes it from rollouts, and `score` applies it. V_k = P(correct final answer | problem, steps 1..k) under the policy
that made the rollouts. It is not the probability that people call step k correct: a correct step of a problem that the policy
cannot solve has a low V. A calibration for one policy does not hold for another one.

There is a map for each group of step positions. A map is a line through knots, which covers all scores from 0 to 1 and never
falls. So the order of scores at one position stays.

Not covered: how a calibration is made (`analysis.calibrate`), and where its file is (`calibration_file`).
"""

import json
import math
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from enum import StrEnum
from itertools import pairwise
from typing import Any, NoReturn

from pipeline.core.errors import InputError
from pipeline.core.shown import Shown
from pipeline.core.statistics import Interval

FORMAT = "stepvalue calibration"
"""The value of the key `format`, which distinguishes such files from others."""
VERSION = 1
TARGET = "V_k = P(correct final answer | problem, steps 1..k) under the policy; not P(people call step k correct)"
"""What calibrated scores estimate. The file says it."""
MAX_KNOTS = 10_000
"""The most knots of a map in a file."""
_REMEDY = "make it again with `python -m pipeline calibrate`"


class MapKind(StrEnum):
    """How scores become probabilities."""

    identity = "identity"
    """As they are: no other map predicts rollouts of unseen problems better."""
    beta = "beta"
    """Beta calibration, a smooth curve with three parameters (Kull et al. 2017, AISTATS)."""
    isotonic = "isotonic"
    """Isotonic regression, any rising curve (Zadrozny and Elkan 2002, KDD)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MadeFrom:
    """What a calibration was made from.

    `model`: what scored the steps. `policy`, `estimator`: of the run with the rollouts. `prefixes`: distinct prefixes with a
    score and rollouts of their own; `rollouts`: the graded ones that count. `stepvalue`: the version that made it.
    """

    model: str
    policy: str
    run_dir: str
    estimator: str
    chains: int
    problems: int
    prefixes: int
    rollouts: int
    stepvalue: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PositionMap:
    """The map for steps `first` to `last`, counted from 1; `last` None: all later steps too. `prefixes`: how many it is from.

    One entry per knot: `scores` rise from 0 to 1, `values` never fall, and lie between `low` and `high`, the ends of the
    interval of V at this score.
    """

    first: int
    last: int | None
    prefixes: int
    scores: tuple[float, ...]
    values: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Calibration(Shown):
    """`kind`: of all maps. `confidence`: the nominal coverage of the intervals. `maps`: in the order of steps, without gaps."""

    kind: MapKind
    confidence: float
    made_from: MadeFrom
    maps: tuple[PositionMap, ...]

    def apply(self, step_scores: Sequence[float | None]) -> list[float | None]:
        """V of each step of a chain from the scores of all its steps, the first step first. None stays None. Raises ValueError
        for a score that is not between 0 and 1."""
        found: list[float | None] = []
        for each in self.maps:
            scores, values = each.scores, each.values
            found += [
                None if score is None else _on_line(scores, values, score)
                for score in step_scores[each.first - 1 : each.last]
            ]
        return found

    def estimate(self, step: int, score: float) -> Interval:
        """V of one step with its interval. `step`: counted from 1. Raises ValueError as `apply` does, and for a step below
        1."""
        if step < 1:
            raise ValueError(f"steps are counted from 1, so there is no step {step}")
        each = next(each for each in self.maps if each.last is None or step <= each.last)
        return Interval(
            value=_on_line(each.scores, each.values, score),
            low=_on_line(each.scores, each.low, score),
            high=_on_line(each.scores, each.high, score),
        )

    @property
    def highest(self) -> float:
        """The highest V that a score can have."""
        return max(max(each.values) for each in self.maps)

    def _shown_lines(self) -> Iterator[str]:
        made = self.made_from
        yield f"Calibration({self.kind.value}, {len(self.maps)} groups of steps)"
        yield f"scores of {made.model} -> {TARGET}"
        yield f"policy {made.policy}; {made.prefixes:,} prefixes of {made.problems:,} problems, {made.rollouts:,} rollouts"


def encode(calibration: Calibration, figures: Mapping[str, Any]) -> str:
    """The content of the file: JSON, with `figures` about how good the calibration is, for readers."""
    head = {"format": FORMAT, "version": VERSION, "target": TARGET}
    return json.dumps(
        head | asdict(calibration) | {"kind": calibration.kind.value, "figures": figures},
        indent=1,
        ensure_ascii=False,
        allow_nan=False,
    )


def decode(text: str | bytes, place: str) -> Calibration:
    """The inverse of `encode`, without the figures. Raises InputError, which names `place` and the remedy, for anything
    else."""
    try:
        return _calibration(json.loads(text, parse_constant=_no_number))
    except RecursionError:
        reason = "it is nested too deeply"
    except ValueError as error:
        reason = str(error)
    raise InputError(f"{place} is no calibration: {reason}; {_REMEDY}")


def _on_line(scores: Sequence[float], values: Sequence[float], score: float) -> float:
    if not 0.0 <= score <= 1.0:
        raise ValueError(f"a score is between 0 and 1, not {score!r}")
    above = bisect_right(scores, score)
    if above == len(scores):
        return values[-1]
    left, low, high = scores[above - 1], values[above - 1], values[above]
    # Rounding may lead beyond the next knot.
    return min(high, low + (score - left) / (scores[above] - left) * (high - low))


def _calibration(found: Any) -> Calibration:
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise ValueError(f"it has no key format with the value {FORMAT!r}")
    if found.get("version") != VERSION:
        raise ValueError(f"its version is {found.get('version')!r:.40}, and this version of stepvalue reads {VERSION}")
    kinds = [kind.value for kind in MapKind]
    kind = found.get("kind")
    if kind not in kinds:
        raise ValueError(f"kind is {kind!r:.40}, not one of {', '.join(kinds)}")
    confidence = _finite(found.get("confidence"), "confidence")
    if not 0 < confidence < 1:
        raise ValueError(f"confidence is {confidence:g}, not between 0 and 1")
    listed = found.get("maps")
    if not isinstance(listed, list) or not listed:
        raise ValueError("maps is not a list of maps")
    maps = tuple(map(_position_map, listed))
    if maps[0].first != 1 or maps[-1].last is not None:
        raise ValueError("its maps do not cover all steps from the first one on")
    for one, following in pairwise(maps):
        if one.last is None or following.first != one.last + 1:
            raise ValueError(f"the map for steps from {following.first} on does not follow the one before")
    return Calibration(kind=MapKind(kind), confidence=confidence, made_from=_made_from(found), maps=maps)


def _made_from(found: dict[str, Any]) -> MadeFrom:
    made = found.get("made_from")
    if not isinstance(made, dict):
        raise ValueError("made_from is missing")
    read: dict[str, Any] = {
        each.name: _text(made, each.name) if each.type is str else _count(made, each.name) for each in fields(MadeFrom)
    }
    return MadeFrom(**read)


def _position_map(found: Any) -> PositionMap:
    if not isinstance(found, dict):
        raise ValueError("a map is not an object")
    first, last = _count(found, "first"), None if found.get("last") is None else _count(found, "last")
    if first < 1 or (last is not None and last < first):
        raise ValueError(f"a map is for steps {first} to {last}")
    knots = {name: _numbers(found, name) for name in ("scores", "values", "low", "high")}
    scores, values, low, high = knots.values()
    where = f"the map for steps from {first} on"
    if len({len(scores), len(values), len(low), len(high)}) > 1 or not 2 <= len(scores) <= MAX_KNOTS:
        raise ValueError(f"{where} does not have 2 to {MAX_KNOTS:,} knots with all their numbers")
    if scores[0] != 0 or scores[-1] != 1 or any(one >= following for one, following in pairwise(scores)):
        raise ValueError(f"{where} does not have scores that rise from 0 to 1")
    if any(one > following for line in (values, low, high) for one, following in pairwise(line)):
        raise ValueError(f"{where} falls")
    if not all(0 <= under <= value <= over <= 1 for under, value, over in zip(low, values, high, strict=True)):
        raise ValueError(f"{where} has values outside their intervals, or beyond 0 to 1")
    return PositionMap(first=first, last=last, prefixes=_count(found, "prefixes"), **knots)


def _text(found: Mapping[str, Any], name: str) -> str:
    value = found.get(name)
    if not isinstance(value, str):
        raise ValueError(f"{name} is not a text")
    return value


def _count(found: Mapping[str, Any], name: str) -> int:
    value = found.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ValueError(f"{name} is not a count")
    return value


def _numbers(found: Mapping[str, Any], name: str) -> tuple[float, ...]:
    listed = found.get(name)
    if not isinstance(listed, list):
        raise ValueError(f"{name} is not a list of numbers")
    return tuple(_finite(each, name) for each in listed)


def _finite(value: Any, name: str) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise ValueError(f"{name} holds {value!r:.40}, which is no number")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise ValueError(f"{name} holds a number that is too large")
    return number


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"it holds {name}, which is no number")
