"""Settings of commands that read what others have written: `status`, `report`, `select` and `agree`. Pure."""

from dataclasses import dataclass, field
from enum import Enum
from typing import Annotated, Any

from annotated_types import Ge
from annotated_types import Interval as Range

from pipeline.config.choices import Aggregation, ValueColumn
from pipeline.config.fields import Settings, check
from pipeline.config.label import DataConfig

EIGHTHS = tuple(eighth / 8 for eighth in range(8))
RUNS = 2
"""Run directories that `report` tells of side by side, at most."""


@dataclass(kw_only=True, slots=True)
class StatusConfig(Settings):
    """Everything `status` needs."""

    run_dir: str = "???"
    """The run directory, also of a run that is at work."""
    json: bool = False
    """One JSON object instead of lines for people."""


@dataclass(kw_only=True, slots=True)
class ReportConfig(Settings):
    """Everything `report` needs."""

    run_dir: Any = "???"
    """A folder or a URL, as `label` takes it; or a list of two, which are compared. A tuple of texts from then on."""
    out: str | None = None
    """null: report.html in the run directory; of two, compare.html in the current folder."""
    planned: str | None = None
    """The plan.json that the run is held against; null: that of the run directory, if it has one."""
    chains: Annotated[int, Range(ge=0, le=100_000)] = 10_000
    """That can be looked at in the page, at most; of more, so many are drawn."""

    def check(self) -> None:
        given = self.run_dir if isinstance(self.run_dir, list | tuple) else [self.run_dir]
        texts = all(isinstance(name, str) and name.strip() for name in given)
        check(texts, "run_dir", repr(self.run_dir), "a folder or URL, or a list of two; put quotes around a number")
        check(1 <= len(given) <= RUNS, "run_dir", repr(self.run_dir), "one folder or URL, or a list of two")
        self.run_dir = tuple(given)
        check(self.out is None or bool(self.out.strip()), "out", repr(self.out), "the name of a file, or null")
        check(
            self.planned is None or bool(self.planned.strip()),
            "planned",
            repr(self.planned),
            "the name of a file, or null",
        )


@dataclass(kw_only=True, slots=True)
class SelectConfig(Settings):
    """Everything `select` needs."""

    scores: str = "???"
    """What `score` has written with a process reward model, one row per candidate."""
    outcome_scores: str | None = None
    """The same chains scored by an outcome reward model, whose last score counts."""
    run_dir: str | None = None
    """The run that sampled the candidates: a chain that it drew several times, and scores hold once, is as many of them."""
    n: Annotated[list[int], Ge(1)] = field(default_factory=lambda: [1, 2, 4, 8, 16])
    """Numbers of candidates per problem that the best is chosen of."""
    aggregation: Aggregation | None = None
    """null: as the file was scored, its column `score`."""
    out: str | None = None
    """A JSON file for the figures; null: they are printed only."""
    best: str | None = None
    """A JSONL file for the best chain of every problem."""
    seed: Annotated[int, Ge(0)] = 0
    """Of the subsets that votes are taken of, and of the bootstrap."""

    def check(self) -> None:
        check(bool(self.n), "n", self.n, "a list of numbers that are at least 1")
        for key, path in (("scores", self.scores), ("outcome_scores", self.outcome_scores), ("run_dir", self.run_dir)):
            if path is not None and not path.strip():
                raise ValueError(f"{key} is empty: give {key}=PATH")
        for key, path in (("out", self.out), ("best", self.best)):
            if path is not None and not path.strip():
                raise ValueError(f"{key} is empty: give {key}=FILE, or leave it out")


class Neutral(Enum):
    """What a neutral step is taken for: PRM800K's rating 0, and a run's label 2."""

    good = "good"
    """No error: so Lightman et al. (2023, appendix F) score PRM800K's."""
    bad = "bad"
    ignored = "ignored"
    """Unknown: left out, and with it whatever of its chain depends on it."""


@dataclass(kw_only=True, slots=True)
class AgreeConfig(Settings):
    """Everything `agree` needs. `data` is the file with people's labels; its answers are not read."""

    run_dir: str = "???"
    """The run directory whose labels are compared."""
    data: DataConfig = field(default_factory=DataConfig)
    """The layout of the file with people's labels."""
    column: str | None = None
    """Where people's label stands: the first wrong step counted from 0, or -1 for none; or a rating (1, 0, -1) per step.
    null: `label` or `first_error`; the ratings or tags of data.layout=prm800k and math_shepherd."""
    soft: ValueColumn | None = None
    """null: `value` for labels of estimator=fixed, else `posterior_mean`."""
    thresholds: Annotated[list[float], Range(ge=0, lt=1)] = field(default_factory=lambda: list(EIGHTHS))
    """A step is good if its value is above it."""
    neutral: Neutral = Neutral.good
    """What a neutral step counts as."""
    bins: Annotated[int, Range(ge=1, le=100)] = 10
    """Of the reliability curve."""
    confidence: Annotated[float, Range(gt=0, lt=1)] = 0.95
    """Of the intervals."""
    resamples: Annotated[int, Range(ge=100, le=100_000)] = 2000
    """Of chains, for the intervals; they are drawn with `seed`."""
    seed: Annotated[int, Ge(0)] = 0
    """Decides which chains are drawn."""
    partial: bool = False
    """Compare what an unfinished run has so far."""
    out: str | None = None
    """A JSON file with all figures."""

    def check(self) -> None:
        check(self.out is None or self.out != "", "out", "''", "the name of a file, or null")
