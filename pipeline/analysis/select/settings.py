"""Settings of `select`."""

from dataclasses import dataclass, field

from pipeline.config.choices import Aggregation
from pipeline.config.fields import check


@dataclass(kw_only=True, slots=True)
class SelectConfig:
    """Everything `select` needs."""

    scores: str = "???"
    """What `score` has written with a process reward model, one row per candidate."""
    outcome_scores: str | None = None
    """The same chains scored by an outcome reward model, whose last score counts."""
    run_dir: str | None = None
    """The run that sampled the candidates: a chain that it drew several times, and scores hold once, is as many of them."""
    n: list[int] = field(default_factory=lambda: [1, 2, 4, 8, 16])
    aggregation: Aggregation | None = None
    """null: as the file was scored, its column `score`."""
    out: str | None = None
    """A JSON file for the figures; null: they are printed only."""
    best: str | None = None
    """A JSONL file for the best chain of every problem."""
    seed: int = 0
    """Of the subsets that votes are taken of, and of the bootstrap."""

    def __post_init__(self) -> None:
        check(bool(self.n) and min(self.n, default=0) >= 1, "n", self.n, "a list of numbers that are at least 1")
        check(self.seed >= 0, "seed", self.seed, "0 or more")
        for key, path in (("scores", self.scores), ("outcome_scores", self.outcome_scores), ("run_dir", self.run_dir)):
            if path is not None and not path.strip():
                raise ValueError(f"{key} is empty: give {key}=PATH")
        for key, path in (("out", self.out), ("best", self.best)):
            if path is not None and not path.strip():
                raise ValueError(f"{key} is empty: give {key}=FILE, or leave it out")
