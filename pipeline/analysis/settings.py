"""Settings of the commands `status`, `chains`, `report`, `select`, `agree` and `calibrate`, which read the files of other
commands. Pure."""

import math
from dataclasses import dataclass, field
from enum import Enum
from typing import Annotated, Any

from annotated_types import Ge
from annotated_types import Interval as Range

from pipeline.config.choices import Aggregation, ValueColumn
from pipeline.config.fields import Settings, check, default_of
from pipeline.config.label import DataConfig

BINS = 10
"""Of reliability curves and of the ECE."""
EIGHTHS = tuple(eighth / 8 for eighth in range(8))
FIXED_THRESHOLD = 0.5
DEV = "dev"
"""Stands for the best threshold on a subset that another setting names."""
RUNS = 2
"""The largest number of run directories that `report` compares."""


@dataclass(kw_only=True, slots=True)
class StatusConfig(Settings):
    """All settings of `status`."""

    run_dir: str = "???"
    """The run directory. The run may be in progress."""
    json: bool = False
    """Print one JSON object instead of text."""


@dataclass(kw_only=True, slots=True)
class ChainsConfig(Settings):
    """All settings of `chains`."""

    run_dir: str = "???"
    """The run directory. The run may be in progress."""
    where: str | None = None
    """Which chains: a condition in SQL on drop, rise, lowest, n_steps and the columns of labels. null: all."""
    limit: Annotated[int, Ge(1)] = 10
    """How many chains are printed."""


@dataclass(kw_only=True, slots=True)
class ReportConfig(Settings):
    """All settings of `report`."""

    run_dir: Any = "???"
    """The run directory, or a list of two run directories to compare. Each is a folder or a URL, as for `label`."""
    out: str | None = None
    """The page to write. null: report.html in the run directory, or compare.html in the current folder for two runs."""
    planned: str | None = None
    """The plan.json whose forecast is compared with the run. null: the one in the run directory, if there is one."""
    chains: Annotated[int, Range(ge=0, le=100_000)] = 10_000
    """The largest number of chains that the page contains, or of problems of a run of `search`. A larger run shows a random
    sample of this size."""
    tree: str | None = None
    """A problem whose rollout tree is shown on a page of its own, in place of the report: the id of a row, a problem_id, or the
    text of the problem. The page is tree-PROBLEM_ID.html in the run directory, or `out`. null: the report."""

    def check(self) -> None:
        given = self.run_dir if isinstance(self.run_dir, list | tuple) else [self.run_dir]
        texts = all(isinstance(name, str) and name.strip() for name in given)
        check(texts, "run_dir", repr(self.run_dir), "a folder or URL, or a list of two; put quotes around a number")
        check(1 <= len(given) <= RUNS, "run_dir", repr(self.run_dir), "one folder or URL, or a list of two")
        self.run_dir = tuple(given)  # from here on always a tuple
        check(self.out is None or bool(self.out.strip()), "out", repr(self.out), "the name of a file, or null")
        named = self.tree is None or bool(self.tree.strip())
        check(named, "tree", repr(self.tree), "the id of a row, a problem_id or the text of a problem, or null")
        check(self.tree is None or len(given) == 1, "tree", repr(self.tree), "null with two run directories")
        check(
            self.planned is None or bool(self.planned.strip()),
            "planned",
            repr(self.planned),
            "the name of a file, or null",
        )


@dataclass(kw_only=True, slots=True)
class SelectConfig(Settings):
    """All settings of `select`."""

    scores: str | None = None
    """The file that `score` wrote with a process reward model, one row per candidate; or a run of `score` or of `search`."""
    searches: Any = None
    """Instead of scores: a run of `search`, or a list of runs on the same problems, to compare. The first one of independent,
    scored chains is what the others are compared with: the best of as many of its chains as cost the same."""
    outcome_scores: str | None = None
    """The scores of the same chains by an outcome reward model. The score of the last step counts."""
    run_dir: str | None = None
    """The run that sampled the candidates. A chain that it drew several times then counts several times; the scores hold it
    once."""
    n: Annotated[list[int] | None, Ge(1)] = None
    """Numbers of candidates per problem from which the best is chosen. null: 1, 2, 4, 8 and 16."""
    aggregation: Aggregation | None = None
    """How step scores make the score of a chain. null: as `score` aggregated them, column `score` of the file."""
    out: str | None = None
    """A JSON file for the figures. null: they are only printed."""
    best: str | None = None
    """A JSONL file for the best chain of every problem."""
    seed: Annotated[int, Ge(0)] = 0
    """The seed of the bootstrap and of the random subsets that vote."""

    def check(self) -> None:
        check(self.n is None or bool(self.n), "n", self.n, "a list of numbers that are at least 1")
        named = ("scores", "outcome_scores", "run_dir")
        for key, path in ((key, getattr(self, key)) for key in named):
            if path is not None and not path.strip():
                raise ValueError(f"{key} is empty: give {key}=PATH")
        if self.searches is not None:
            given = self.searches if isinstance(self.searches, list | tuple) else [self.searches]
            texts = bool(given) and all(isinstance(name, str) and name.strip() for name in given)
            check(
                texts, "searches", repr(self.searches), "a folder or URL, or a list of them; put quotes around a number"
            )
            self.searches = tuple(given)  # from here on always a tuple
        if bool(self.scores) == bool(self.searches):
            raise ValueError(
                "give either scores=FILE, to compare ways to choose, or searches=[RUN,...], to compare runs of `search`"
            )
        for name in _SELECT_OF_SCORES if self.searches else ():
            if getattr(self, name) != default_of(SelectConfig, name):
                raise ValueError(f"{name} is a setting for scores=...: leave it out")
        for key, path in (("out", self.out), ("best", self.best)):
            if path is not None and not path.strip():
                raise ValueError(f"{key} is empty: give {key}=FILE, or leave it out")


class Neutral(Enum):
    """How a neutral step counts: PRM800K's rating 0 or a run's label 2."""

    good = "good"
    """No error, as Lightman et al. (2023, appendix F) count PRM800K's neutral steps."""
    bad = "bad"
    ignored = "ignored"
    """Unknown: the step is left out, and so is the first error of its chain if it depends on the step."""


@dataclass(kw_only=True, slots=True)
class AgreeConfig(Settings):
    """All settings of `agree`. `data` is the file with human labels; its answers are not read."""

    run_dir: str | None = None
    """The run directory whose labels are compared."""
    scores: str | None = None
    """Instead of run_dir: the file of step scores that are judged, as `score` writes it, or a folder of such files."""
    data: DataConfig = field(default_factory=DataConfig)
    """The layout of the file with human labels."""
    column: str | None = None
    """The column with the human label. It holds the first wrong step, counted from 0, or -1 for none; or a rating (1, 0, -1)
    for each step. null: `label` or `first_error`; the ratings or tags for data.layout=prm800k and math_shepherd."""
    soft: ValueColumn = ValueColumn.value
    """Of a run: the column of step values. value: to choose by and to search. unbiased_value: noisier. p_no_drop: to point at
    errors. p_error_free: the same, of labels by consensus."""
    thresholds: Annotated[list[float], Range(ge=0, lt=1)] = field(default_factory=lambda: list(EIGHTHS))
    """Of a run: each threshold is compared with the human labels. A step is good if its value is above it."""
    threshold: str = str(FIXED_THRESHOLD)
    """Of scores: a step is good if its score is above it. A number, or dev: the one with the highest F1 on the subset `dev`."""
    dev: str | None = None
    """With threshold=dev: the subset on which the threshold is chosen, such as gsm8k. The mean over subsets leaves it out."""
    neutral: Neutral = Neutral.good
    """How a neutral step counts."""
    resamples: Annotated[int, Range(ge=100, le=100_000)] = 2000
    """Number of bootstrap samples of chains, for the intervals."""
    partial: bool = False
    """Also accept an unfinished run, and compare the labels that it has."""
    out: str | None = None
    """A JSON file with all figures."""
    page: str | None = None
    """Of scores: an HTML page with the figures. null: beside `out`, with its name and .html; without `out`, none."""

    def check(self) -> None:
        for key, path in (("out", self.out), ("page", self.page), ("dev", self.dev)):
            wanted = "the name of a subset, or null" if key == "dev" else "the name of a file, or null"
            check(path is None or bool(path.strip()), key, repr(path), wanted)
        if bool(self.run_dir) == bool(self.scores):
            raise ValueError(
                "give either run_dir=FOLDER, to compare a run's labels, or scores=FILE, to judge step scores"
            )
        for name in _OF_A_RUN if self.scores else _OF_SCORES:
            if getattr(self, name) != default_of(AgreeConfig, name):
                raise ValueError(f"{name} is a setting for {'run_dir' if self.scores else 'scores'}=...: leave it out")
        if self.scores:
            self._check_threshold()

    @property
    def fixed_threshold(self) -> float | None:
        """The threshold on scores, or None where it is chosen on the subset `dev`."""
        return None if self.threshold == DEV else float(self.threshold)

    def _check_threshold(self) -> None:
        try:
            fixed = self.fixed_threshold
        except ValueError:
            fixed = math.nan
        wanted = "a number that is at least 0 and below 1, or dev"
        check(fixed is None or 0 <= fixed < 1, "threshold", self.threshold, wanted)
        if (self.threshold == DEV) != (self.dev is not None):
            raise ValueError(
                "threshold=dev needs the subset on which it is chosen, such as dev=gsm8k"
                if self.dev is None
                else f"dev={self.dev} needs threshold=dev, which chooses the threshold on that subset"
            )


@dataclass(kw_only=True, slots=True)
class CalibrateConfig(Settings):
    """All settings of `calibrate`."""

    scores: str = "???"
    """The file of step scores, as `score` writes it, or a folder of such files."""
    run_dir: str = "???"
    """The run directory with fresh rollouts of the policy in use, for the chains of the scores."""
    out: str = "???"
    """The JSON file for the calibration and its figures; `score calibration=FILE` applies it."""
    page: str | None = None
    """An HTML page with the figures. null: beside `out`, with its name and .html."""
    group_prefixes: Annotated[int, Ge(1)] = 200
    """Number of prefixes from which a step position has a map of its own. Positions with fewer are pooled with the next
    ones."""
    least_prefixes: Annotated[int, Ge(1)] = 200
    """With fewer prefixes in all, there is no calibration."""
    folds: Annotated[int, Range(ge=2, le=20)] = 5
    """Number of parts of the problems. Each part is predicted from the others, to judge the calibration and to choose its
    form."""
    partial: bool = False
    """Also accept an unfinished run, and use the rollouts of the labels that it has."""

    def check(self) -> None:
        for key, path in (("scores", self.scores), ("run_dir", self.run_dir), ("out", self.out)):
            check(bool(path.strip()), key, repr(path), "a name")
        check(self.page is None or bool(self.page.strip()), "page", repr(self.page), "the name of a file, or null")


_SELECT_OF_SCORES = ("outcome_scores", "run_dir", "n", "aggregation", "best")
_OF_A_RUN = ("soft", "thresholds", "partial")
_OF_SCORES = ("threshold", "dev", "page")
