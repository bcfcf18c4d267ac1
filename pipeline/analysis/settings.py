"""Settings of `agree`."""

from dataclasses import dataclass, field
from enum import Enum

from pipeline.config.choices import ValueColumn
from pipeline.config.fields import check
from pipeline.config.label import DataConfig

EIGHTHS = tuple(eighth / 8 for eighth in range(8))


class Neutral(Enum):
    """What a neutral step is taken for: PRM800K's rating 0, and a run's label 2."""

    good = "good"
    """No error: so Lightman et al. (2023, appendix F) score PRM800K's."""
    bad = "bad"
    ignored = "ignored"
    """Unknown: left out, and with it whatever of its chain depends on it."""


@dataclass(kw_only=True, slots=True)
class AgreeConfig:
    """Everything `agree` needs. `data` is the file with people's labels; its answers are not read."""

    run_dir: str = "???"
    data: DataConfig = field(default_factory=DataConfig)
    column: str | None = None
    """Where people's label stands: the first wrong step counted from 0, or -1 for none; or a rating (1, 0, -1) per step.
    null: `label` or `first_error`; the ratings or tags of data.layout=prm800k and math_shepherd."""
    soft: ValueColumn | None = None
    """null: `value` for labels of estimator=fixed, else `posterior_mean`."""
    thresholds: list[float] = field(default_factory=lambda: list(EIGHTHS))
    """A step is good if its value is above it."""
    neutral: Neutral = Neutral.good
    bins: int = 10
    """Of the reliability curve."""
    confidence: float = 0.95
    """Of the intervals."""
    resamples: int = 2000
    """Of chains, for the intervals; they are drawn with `seed`."""
    seed: int = 0
    partial: bool = False
    """Compare what an unfinished run has so far."""
    out: str | None = None
    """A JSON file with all figures."""

    def __post_init__(self) -> None:
        check(all(0 <= t < 1 for t in self.thresholds), "thresholds", self.thresholds, "at least 0 and below 1 each")
        check(1 <= self.bins <= 100, "bins", self.bins, "1 to 100")
        check(0 < self.confidence < 1, "confidence", self.confidence, "above 0 and below 1")
        check(100 <= self.resamples <= 100_000, "resamples", self.resamples, "100 to 100000")
        check(self.seed >= 0, "seed", self.seed, "0 or more")
        check(self.out is None or self.out != "", "out", "''", "the name of a file, or null")
