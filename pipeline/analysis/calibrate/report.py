"""The report of a calibration, and what a reader must know of it. Pure."""

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from enum import Enum
from typing import Any

from pipeline.analysis.calibrate.fit import MapChoice
from pipeline.analysis.calibrate.prefixes import PrefixCounts
from pipeline.analysis.calibrate.reliability import Reliability
from pipeline.core.formatting import format_count
from pipeline.scorers.calibration import Calibration

FEW_PROBLEMS = 50
"""With fewer, a remark says that the intervals are rough."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BeforeAfter:
    """Reliability of the model's own scores, and of calibrated ones on problems that the maps were not fitted to."""

    name: str
    before: Reliability
    after: Reliability


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationReport:
    """The calibration, and how good it is.

    `owed_units`: units of the run that are not labelled yet. `groups`: by steps. `ends`: last steps of chains with an outcome,
    to which no map is fitted; None without any. `given`: the scores in the file, where they were calibrated before.
    """

    calibration: Calibration
    target: str
    scores: str
    files: tuple[str, ...]
    folds: int
    owed_units: int
    counts: PrefixCounts
    choice: MapChoice
    total: BeforeAfter
    groups: tuple[BeforeAfter, ...]
    ends: BeforeAfter | None
    given: Reliability | None

    @property
    def remarks(self) -> tuple[str, ...]:
        """What a reader must know before the figures."""
        return tuple(_remarks(self))


def figures_of(report: CalibrationReport) -> dict[str, Any]:
    """The figures as JSON has them: the report without the calibration."""
    kept = {name: value for name, value in asdict(report).items() if name not in ("calibration", "target")}
    found = json.loads(json.dumps(kept | {"remarks": report.remarks}, default=_plain))
    assert isinstance(found, dict)
    return found


def _plain(value: object) -> object:
    if isinstance(value, Enum):
        return value.value
    raise TypeError(f"{type(value)} has no form in JSON")


def _remarks(report: CalibrationReport) -> Iterator[str]:
    counts, made = report.counts, report.calibration.made_from
    if not made.model:
        yield "the scores do not say which model made them: `score` applies this calibration only with other_model=true"
    if report.owed_units:
        yield f"the run is unfinished: {format_count(report.owed_units, 'unit')} without labels"
    if counts.unsampled:
        share = counts.unsampled / (counts.steps - counts.ends)
        yield (
            f"{counts.unsampled:,} prefixes ({share:.0%} of those before the ends) have no graded rollouts of their own. Where "
            f"the estimator ({made.estimator}) left them out because of outcomes, the others may not stand for all: "
            "estimator=fixed samples every prefix"
        )
    if counts.biased:
        yield f"{counts.biased:,} prefixes have rollouts, but no unbiased value: they are left out"
    if counts.unscored:
        yield f"{counts.unscored:,} prefixes have no score, because they do not fit into the model: they are left out"
    if counts.not_in_run:
        yield (
            f"{counts.not_in_run:,} of the {format_count(counts.scored, 'chain')} of the scores are not in the run, and "
            f"{counts.not_scored:,} of the {counts.labelled:,} of the run are not in the scores"
        )
    if counts.problems < FEW_PROBLEMS:
        yield f"{format_count(counts.problems, 'problem')} only: all intervals are rough"
    if report.given is not None:
        yield "the scores in the file are calibrated already; this calibration is of the model's own ones, raw_step_scores"
    if report.choice.best is not report.choice.kind:
        yield "the scores stay as they are: no map predicts unseen problems reliably better"
