"""The report of a calibration: how far scores and calibrated scores are from rollouts, and what a reader must know of it. Pure.

Every prefix counts once. `value` is an unbiased estimate of its V from its rollouts, see `prefixes`.

- Bias: mean prediction minus mean value. Above 0, predictions are too high.
- Brier score: the mean of (outcome - prediction)^2 over rollouts (Brier 1950). Even a perfect prediction has V (1 - V).
- Log loss: the mean of -log P(outcome) over rollouts, with predictions cut to [`LEAST`, 1 - `LEAST`].
- ECE: see `calibration_error`. Rollouts are few, so bins of perfect predictions have a distance, too. That part is removed: the
  distance d of a bin with standard error s becomes 2 d - E|N(d, s^2)|, the normal correction of Kumar, Liang and Ma (2019,
  arXiv 1909.10155). Some of it stays: among perfect predictions about half.

Intervals have problems as sampling units: the jackknife for means, the bootstrap for the ECE. Resampling adds noise to an ECE
again. So its lower end is a percentile of an estimate whose mean is 0 for perfect predictions: the ECE whose signs come from
one half of the problems and its distances from the other, averaged over all halves. Its upper end is a percentile of the same
estimate for the noise of the data alone.
"""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Annotated, Any

import numpy as np
from scipy.special import ndtr

from pipeline.analysis.calibrate.fit import MapChoice, brier_losses
from pipeline.analysis.calibrate.prefixes import PrefixCounts, Trials, mean_value
from pipeline.analysis.comparison import RESAMPLES, binned, bootstrap, calibration_error, mean, sums_of, within
from pipeline.core.formatting import format_count
from pipeline.core.statistics import Floats, Interval, share
from pipeline.display.columns import Column
from pipeline.scorers.calibration import Calibration

FEW_PROBLEMS = 50
"""With fewer, a remark says that the intervals are rough."""
LEAST = 1e-6
_MOST_DRAWS = 2**25
"""Problems times resamples: of very many problems fewer resamples are drawn, so that an ECE takes seconds at most."""
_FEWEST_RESAMPLES = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class ReliabilityBin:
    """Prefixes with predictions in [`low`, `high`), the last bin including its end. `value`: their mean value with its
    interval."""

    low: float
    high: float
    prefixes: Annotated[int, Column("prefixes")]
    prediction: Annotated[float, Column("mean score", 3)]
    value: Annotated[Interval, Column("mean V", 3)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reliability:
    """`prediction` and `value`: means over prefixes. `ece_uncorrected`: with the noise of rollouts. `bins`: those with
    prefixes."""

    prefixes: Annotated[int, Column("prefixes")]
    problems: int
    prediction: Annotated[float, Column("mean", 3)]
    value: Annotated[float, Column("mean V", 3)]
    bias: Annotated[Interval, Column("too high by", 3, "+")]
    ece: Annotated[Interval, Column("ECE", 3)]
    ece_uncorrected: float
    brier: Annotated[Interval, Column("Brier score", 3)]
    log_loss: Annotated[Interval, Column("log loss", 3)]
    bins: tuple[ReliabilityBin, ...]


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


def reliability(predicted: Floats, trials: Trials, n_bins: int) -> Reliability:
    """The figures of predictions, one per prefix. There must be at least one."""
    plain = calibration_error(predicted, trials.values, n_bins)
    assert plain is not None
    return Reliability(
        prefixes=len(trials),
        problems=trials.n_problems,
        prediction=float(predicted.mean()),
        value=float(trials.values.mean()),
        bias=mean(trials.problems, predicted - trials.values),
        ece=_ece(predicted, trials, plain, n_bins),
        ece_uncorrected=plain,
        brier=mean(trials.problems, brier_losses(predicted, trials.values)),
        log_loss=mean(trials.problems, _log_losses(predicted, trials.values)),
        bins=tuple(
            ReliabilityBin(
                low=low,
                high=high,
                prefixes=int(held.sum()),
                prediction=float(predicted[held].mean()),
                value=within(mean_value(trials.part(held)), 0, 1),
            )
            for low, high, held in binned(predicted, n_bins)
        ),
    )


def _log_losses(predicted: Floats, values: Floats) -> Floats:
    inner = np.clip(predicted, LEAST, 1 - LEAST)
    return np.asarray(-values * np.log(inner) - (1 - values) * np.log1p(-inner))


def _ece(predicted: Floats, trials: Trials, plain: float, n_bins: int) -> Interval:
    """The corrected ECE with its interval. `plain`: the one without a correction."""
    apart = predicted - trials.values
    columns = [apart * held for _, _, held in binned(predicted, n_bins)]
    sums = sums_of(trials.problems, [np.ones(len(trials)), *columns])
    n_problems, total = len(sums), sums[:, 0].sum()
    distance = np.abs(sums[:, 1:].sum(axis=0))
    if n_problems < 2:
        return Interval(value=plain)
    variance = sums[:, 1:].var(axis=0, ddof=1) * n_problems
    value = min(1.0, max(0.0, float((2 * distance - _folded_mean(distance, variance)).sum() / total)))
    resamples = max(_FEWEST_RESAMPLES, min(RESAMPLES, _MOST_DRAWS // n_problems))

    def estimates(noise: float) -> Interval:
        def statistic(found: Floats) -> Floats:
            return share(_of_halves(found[..., 1:], noise * variance).sum(axis=-1), found[..., 0])

        return bootstrap(sums, statistic, resamples=resamples)

    low, high = estimates(2).low, estimates(1).high
    if low is None or high is None:
        return Interval(value=value)
    return Interval(value=value, low=max(0.0, min(low, value)), high=min(1.0, max(high, value)))


def _of_halves(sums: Floats, variance: Floats) -> Floats:
    """|sum| with the sign of one half of the problems and the amount of the other, averaged over all halves, for a sum that
    is normal with this variance. The halves are (S + D) / 2 and (S - D) / 2 with D ~ N(0, variance); if |D| < |S| they have
    the same sign and give |S|, otherwise -|D|."""
    distance, sd = np.abs(sums), np.sqrt(variance)
    z = share(distance, np.broadcast_to(sd, distance.shape))
    same = np.where(sd > 0, 2 * ndtr(z) - 1, 1.0)
    return np.asarray(distance * same - 2 * sd * np.where(sd > 0, _density(z), 0.0))


def _folded_mean(center: Floats, variance: Floats) -> Floats:
    """E|N(center, variance)|."""
    sd = np.sqrt(variance)
    z = share(center, sd)
    spread = 2 * sd * _density(z) + center * (2 * ndtr(z) - 1)
    return np.where(sd > 0, spread, center)


def _density(z: Floats) -> Floats:
    return np.asarray(np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi))


def figures_of(report: CalibrationReport) -> dict[str, Any]:
    """The figures as JSON has them: the report without the calibration."""
    kept = {name: value for name, value in asdict(report).items() if name not in ("calibration", "target")}
    return {**kept, "remarks": list(report.remarks)}


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
