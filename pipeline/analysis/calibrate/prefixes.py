"""Matches step scores with the rollouts of a run: which prefixes have both, and why the others do not count. Pure.

A chain of the scores is the chain of the run with the same problem and steps; white space is ignored. A prefix that several
chains share counts once, because its rollouts are stored once.

Only rollouts of the prefix itself are evidence about its V: origin `measured`. A value that neighbours imply is none. The
end of a chain has no rollouts, but an outcome; ends are kept apart, because a score of a finished answer is another question
than one of a step on the way.

Every prefix counts once, however many rollouts it has. The mean of `value` over prefixes is then unbiased for their mean V,
also where an estimator gave more rollouts to some prefixes because of their outcomes. Weights by rollouts would not be.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
import polars as pl

from pipeline.analysis.agree.human import ModelChain, key_of_texts, text_key
from pipeline.analysis.comparison import Flags, mean, wilson
from pipeline.core.ids import content_id
from pipeline.core.records import Origin
from pipeline.core.statistics import Floats, Interval, Ints

COLUMNS = (
    "problem", "steps", "prefix_ids", "origin", "unbiased_value", "unbiased_rollouts", "outcome", "estimator", "policy",
)  # fmt: skip
"""The columns of `labels` that are read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trials:
    """One entry per distinct prefix. `scores`: from 0 to 1. `values`: an unbiased estimate of V for each, such as correct /
    graded of a fixed number of rollouts, `rollouts` (at least 1). `steps`: the number of steps, from 1. `problems`: numbers
    of the problems, see `folds_of`."""

    scores: Floats
    values: Floats
    rollouts: Ints
    steps: Ints
    problems: Ints

    def __len__(self) -> int:
        return len(self.scores)

    def part(self, chosen: Flags | Ints) -> "Trials":
        """The prefixes for which `chosen` is true, or with these indices. Their problems are numbered from 0 again, in the same
        order."""
        return Trials(
            scores=self.scores[chosen],
            values=self.values[chosen],
            rollouts=self.rollouts[chosen],
            steps=self.steps[chosen],
            problems=np.unique(self.problems[chosen], return_inverse=True)[1],
        )

    @property
    def n_problems(self) -> int:
        return len(np.unique(self.problems))


def mean_value(trials: Trials, apart: Floats | None = None) -> Interval:
    """The mean value, or the mean of `apart`, which is the values less something known. Its interval is the jackknife's over
    problems. It is not narrower than Wilson's for all rollouts together, because values that are all 0 do not prove that V is
    0. 0 to 1 about a single problem."""
    numbers = trials.values if apart is None else apart
    found = mean(trials.problems, numbers)
    center, n_rollouts = float(trials.values.mean()), int(trials.rollouts.sum())
    least = wilson(round(center * n_rollouts), n_rollouts)
    assert found.value is not None
    assert least.low is not None
    assert least.high is not None
    if found.low is None or found.high is None:
        return Interval(value=found.value, low=found.value - center, high=found.value - center + 1)
    low = min(found.low, found.value - max(0.0, center - least.low))
    return Interval(value=found.value, low=low, high=max(found.high, found.value + max(0.0, least.high - center)))


def folds_of(problems: Ints, folds: int) -> Ints:
    """The fold of each prefix: problem 0 is in fold 0, problem 1 in fold 1 and so on. A problem is in one fold, with all its
    chains; whoever numbers the problems by their hash makes folds that do not depend on the order of files."""
    return problems % folds


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


class _Fate(StrEnum):
    """What becomes of a step of a matched chain."""

    COUNTS = "prefixes"
    REPEATED = "repeated"
    END = "ends"
    UNSCORED = "unscored"
    UNSAMPLED = "unsampled"
    BIASED = "biased"


_STEPS = {
    **{"fate": pl.String, "given": pl.Float64, "score": pl.Float64, "value": pl.Float64},
    **{"rollouts": pl.Int64, "step": pl.Int64, "key": pl.String},
}
"""The columns of the steps of matched chains. `given`: the score in the file; `score`: the model's own. `key`: what stands for
the problem."""


def match_prefixes(scored: Iterable[ModelChain], rows: Iterable[Mapping[str, Any]]) -> ScoredPrefixes:
    """The prefixes with scores and rollouts. `rows`: of `labels`, with COLUMNS."""
    by_text = {text_key(each): each for each in scored}
    steps: list[tuple[object, ...]] = []
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
            steps.extend(_prefixes(by_text[key], row, content_id("fold", key[0]), seen))
    found = pl.DataFrame(steps, schema=_STEPS, orient="row")
    # By the hash of their problems, so that folds do not depend on the order of the run.
    found = found.with_columns(problem=pl.col("key").rank("dense").cast(pl.Int64) - 1)
    fates = Counter(found["fate"])
    used = found.filter(fate=_Fate.COUNTS)
    calibrated = any(each.raw is not None for each in by_text.values())
    return ScoredPrefixes(
        trials=_trials(used),
        calibrated=used["given"].to_numpy(writable=True) if calibrated else None,
        ends=_trials(found.filter(pl.col("score").is_not_null(), fate=_Fate.END)),
        counts=PrefixCounts(
            scored=len(by_text),
            matched=len(matched),
            not_in_run=len(by_text) - len(matched),
            labelled=labelled,
            chains=chains,
            not_scored=labelled - chains,
            problems=used["key"].n_unique(),
            steps=found.height,
            rollouts=int(used["rollouts"].sum()),
            **{fate.value: fates[fate] for fate in _Fate},
        ),
        policy=policy,
        estimator=estimator,
    )


def _prefixes(scored: ModelChain, row: Mapping[str, Any], key: str, seen: set[str]) -> Iterator[tuple[object, ...]]:
    """Every step of a chain of the run, with the columns of `_STEPS`. Adds the prefixes that count to `seen`."""
    for at, prefix in enumerate(row["prefix_ids"]):
        value, rollouts, own = row["unbiased_value"][at], row["unbiased_rollouts"][at], scored.own[at]
        fate = _fate(row["origin"][at], own, value, rollouts, repeated=prefix in seen)
        if fate is _Fate.COUNTS:
            seen.add(prefix)
        if fate is _Fate.END:
            value, rollouts = float(row["outcome"]), 1
        yield fate, scored.values[at], own, value or 0.0, rollouts or 0, at + 1, key


def _fate(origin: str, score: float | None, value: float | None, rollouts: int | None, *, repeated: bool) -> _Fate:
    if origin == Origin.TERMINAL:
        return _Fate.END
    if origin != Origin.MEASURED:
        return _Fate.UNSAMPLED
    if value is None or not rollouts:
        return _Fate.BIASED
    if repeated:
        return _Fate.REPEATED
    return _Fate.UNSCORED if score is None else _Fate.COUNTS


def _trials(found: pl.DataFrame) -> Trials:
    fields = {"scores": "score", "values": "value", "rollouts": "rollouts", "steps": "step", "problems": "problem"}
    return Trials(**{field: found[name].to_numpy(writable=True) for field, name in fields.items()})
