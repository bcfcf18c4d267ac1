"""Settings of `report`."""

from dataclasses import dataclass
from typing import Any

from pipeline.config.fields import check

RUNS = 2
"""Run directories that are told of side by side, at most."""


@dataclass(kw_only=True, slots=True)
class ReportConfig:
    """Everything `report` needs."""

    run_dir: Any = "???"
    """A folder or a URL, as `label` takes it; or a list of two, which are compared. A tuple of texts from then on."""
    out: str | None = None
    """null: report.html in the run directory; of two, compare.html in the current folder."""
    planned: str | None = None
    """The plan.json that the run is held against; null: that of the run directory, if it has one."""
    chains: int = 10_000
    """That can be looked at in the page, at most; of more, so many are drawn."""

    def __post_init__(self) -> None:
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
        check(0 <= self.chains <= 100_000, "chains", self.chains, "0 to 100000")
