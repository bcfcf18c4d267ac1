"""Schemas of `score`: where chains come from, what scores their steps, and where the scores go.

A scorer is a section with several implementations, like the policy (see `core.registry`). The class here holds the settings
that all scorers share.
"""

from dataclasses import dataclass, field
from typing import Annotated, ClassVar

from pipeline.config.choices import Aggregation
from pipeline.config.fields import BY_GROUP, FREE, ChosenSettings, Settings, check
from pipeline.config.label import ClusterConfig, DataConfig, GraderConfig, RunConfig

_OTHER_FILES = tuple(
    f".{kind}"
    for kind in ("csv", "tsv", "json", "jsnl", "jsonlines", "ndjson", "txt", "parq", "pq", "arrow", "gz", "zst")
)
"""Endings of `out` that mean a file, of a kind that is not written."""


@dataclass(kw_only=True, slots=True)
class ScorerConfig(ChosenSettings):
    """The settings that all scorers share; see `scorers.registry`."""

    SECTION: ClassVar[str] = "scorer"
    CHOSEN_BY: ClassVar[str] = "kind"
    kind: Annotated[str, BY_GROUP] = "own"
    """The kind of process reward model, given as scorer=NAME."""


@dataclass(kw_only=True, slots=True)
class ScoreConfig(Settings):
    """All settings of `score`. Chains come from `run_dir` or from `data.path`."""

    out: str = "???"
    """Where the scores go: a file ending in .parquet or .jsonl, or a folder. A folder is a run directory: Ray workers write to
    it, and the same command continues there."""
    run_dir: str | None = None
    """The run directory whose chains are scored."""
    data: DataConfig = field(default_factory=lambda: DataConfig(path=""))
    """The layout of the rows of `data.path`."""
    grader: GraderConfig = field(default_factory=GraderConfig)
    """The grader for chains of `data.path` with a known answer."""
    scorer: ScorerConfig = field(default_factory=ScorerConfig)
    """The model that scores the steps."""
    aggregation: Aggregation = Aggregation.last
    """How step scores make the score of a chain. For models trained on Monte Carlo values, the last step's score works best
    (arXiv:2501.07301)."""
    calibration: Annotated[str | None, FREE] = None
    """The file of a calibration, as `calibrate` writes it. Step scores then are V under its policy. null: the model's own
    scores."""
    other_model: Annotated[bool, FREE] = False
    """Also apply a calibration that was made for scores of a model with another name."""
    partial: Annotated[bool, FREE] = False
    """Also accept an unfinished run, and score the chains that it has."""
    estimate: Annotated[bool, FREE] = False
    """Only say how many chains there are, and how long they would take: a sample of them is scored, and nothing is written."""
    run: RunConfig = field(default_factory=RunConfig)
    """With out=FOLDER: how the chains are divided into units, retried and stored."""
    cluster: ClusterConfig = field(default_factory=ClusterConfig)
    """With out=FOLDER: the Ray cluster and the workers."""

    def check(self) -> None:
        check_calibration(self.calibration, other_model=self.other_model)
        if self.out.lower().endswith(_OTHER_FILES):
            raise ValueError(
                f"out={self.out}: scores are written to a file that ends in .parquet or .jsonl, or to a folder"
            )
        if bool(self.run_dir) == bool(self.data.path):
            raise ValueError("give either run_dir=FOLDER, to score a run's chains, or data.path=FILE, for other chains")


def check_calibration(calibration: str | None, *, other_model: bool) -> None:
    """Raise ValueError for a calibration without a name, and for `other_model` without a calibration."""
    named = calibration is None or bool(calibration.strip())
    check(named, "calibration", repr(calibration), "the name of a file, or null")
    if other_model and calibration is None:
        raise ValueError("other_model has no effect without a calibration: give calibration=FILE, or leave it out")
