"""Matches step scores with the rollouts of a run: which prefixes have both, and why the others do not count. Pure.

A chain of the scores is the chain of the run with the same problem and steps; white space is ignored. A prefix that several
chains share counts once, because its rollouts are stored once.

Only rollouts of the prefix itself are evidence about its V: origin `measured`. A value that neighbours imply is none. The
end of a chain has no rollouts, but an outcome; ends are kept apart, because a score of a finished answer is another question
than one of a step on the way.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np

from pipeline.analysis.agree.human import ModelChain, key_of_texts, text_key
from pipeline.analysis.calibrate.trials import Trials
from pipeline.core.ids import content_id
from pipeline.core.records import Origin
from pipeline.core.statistics import Floats

COLUMNS = (
    "problem", "steps", "prefix_ids", "origin", "unbiased_value", "unbiased_rollouts", "outcome", "estimator", "policy",
)  # fmt: skip
"""The columns of `labels` that are read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PrefixCounts:
    """`scored` chains of the scores = `matched` + `not_in_run`; `labelled` chains of the run = `chains` + `not_scored`. A
    text can be several chains of the run, with different known answers.

    `steps` of these `chains` = `prefixes`, which count, + `repeated` in another chain + `ends` with an outcome + `unscored` +
    `unsampled`, without graded rollouts of their own, + `biased`, whose number of rollouts depends on outcomes in a way that
    the estimator has no unbiased value for.
    """

    scored: int
    matched: int
    not_in_run: int
    labelled: int
    chains: int
    not_scored: int
    problems: int
    steps: int
    prefixes: int
    repeated: int
    ends: int
    unscored: int
    unsampled: int
    biased: int
    rollouts: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoredPrefixes:
    """`trials`: the prefixes that count, with the model's own scores. `calibrated`: the scores in the file, where these are
    calibrated. `ends`: the last steps of chains with an outcome, which is their value."""

    trials: Trials
    calibrated: Floats | None
    ends: Trials
    counts: PrefixCounts
    policy: str
    estimator: str


class _Fate(Enum):
    """What becomes of a step of a matched chain."""

    counts = "prefixes"
    repeated = "repeated"
    end = "ends"
    unscored = "unscored"
    unsampled = "unsampled"
    biased = "biased"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Prefix:
    """A step of a matched chain. `given`: its score in the file; `score`: the model's own. `key`: what stands for its
    problem."""

    fate: _Fate
    given: float | None
    score: float | None
    value: float
    rollouts: int
    step: int
    key: str


def match_prefixes(scored: Iterable[ModelChain], rows: Iterable[Mapping[str, Any]]) -> ScoredPrefixes:
    """The prefixes with scores and rollouts. `rows`: of `labels`, with COLUMNS."""
    by_text = {text_key(each): each for each in scored}
    found: list[_Prefix] = []
    seen: set[str] = set()
    matched: set[tuple[str, ...]] = set()
    labelled = chains = 0
    policy = estimator = ""
    for row in rows:
        labelled += 1
        policy, estimator = row["policy"], row["estimator"]
        key = key_of_texts(row["problem"], row["steps"])
        if key in by_text:
            matched.add(key)
            chains += 1
            found.extend(_prefixes(by_text[key], row, content_id("fold", key[0]), seen))
    fates = Counter(each.fate for each in found)
    used = [each for each in found if each.fate is _Fate.counts]
    # By their hash, so that folds do not depend on the order of the run.
    numbers = {key: number for number, key in enumerate(sorted({each.key for each in found}))}
    ends = [each for each in found if each.fate is _Fate.end and each.score is not None]
    calibrated = any(each.raw is not None for each in by_text.values())
    return ScoredPrefixes(
        trials=_trials(used, numbers),
        calibrated=np.array([each.given for each in used], dtype=np.float64) if calibrated else None,
        ends=_trials(ends, numbers),
        counts=PrefixCounts(
            scored=len(by_text),
            matched=len(matched),
            not_in_run=len(by_text) - len(matched),
            labelled=labelled,
            chains=chains,
            not_scored=labelled - chains,
            problems=len({each.key for each in used}),
            steps=len(found),
            rollouts=sum(each.rollouts for each in used),
            **{fate.value: fates[fate] for fate in _Fate},
        ),
        policy=policy,
        estimator=estimator,
    )


def _prefixes(scored: ModelChain, row: Mapping[str, Any], key: str, seen: set[str]) -> Iterator[_Prefix]:
    """Every step of a chain of the run. Adds the prefixes that count to `seen`."""
    for at, prefix in enumerate(row["prefix_ids"]):
        value, origin = row["unbiased_value"][at], row["origin"][at]
        fate = _fate(origin, scored.own[at], value, row["unbiased_rollouts"][at], repeated=prefix in seen)
        if fate is _Fate.counts:
            seen.add(prefix)
        yield _Prefix(
            fate=fate,
            given=scored.values[at],
            score=scored.own[at],
            value=float(row["outcome"]) if fate is _Fate.end else (value or 0.0),
            rollouts=1 if fate is _Fate.end else (row["unbiased_rollouts"][at] or 0),
            step=at + 1,
            key=key,
        )


def _fate(origin: str, score: float | None, value: float | None, rollouts: int | None, *, repeated: bool) -> _Fate:
    if origin == Origin.TERMINAL:
        return _Fate.end
    if origin != Origin.MEASURED:
        return _Fate.unsampled
    if value is None or not rollouts:
        return _Fate.biased
    if repeated:
        return _Fate.repeated
    return _Fate.unscored if score is None else _Fate.counts


def _trials(found: Sequence[_Prefix], numbers: Mapping[str, int]) -> Trials:
    return Trials(
        scores=np.array([each.score for each in found], dtype=np.float64),
        values=np.array([each.value for each in found], dtype=np.float64),
        rollouts=np.array([each.rollouts for each in found], dtype=np.int64),
        steps=np.array([each.step for each in found], dtype=np.int64),
        problems=np.array([numbers[each.key] for each in found], dtype=np.int64),
    )
