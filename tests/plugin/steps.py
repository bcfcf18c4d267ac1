"""A task of a plug-in: it counts the rows of labels of a run, without workers."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Annotated, Any

import polars as pl

from pipeline.config.fields import FREE, Settings
from pipeline.config.label import ClusterConfig, RunConfig
from pipeline.core.errors import UsageError
from pipeline.core.progress import Summary
from pipeline.core.records import Totals


@dataclass(kw_only=True, slots=True)
class CountConfig(Settings):
    """All settings of `count`."""

    run_dir: str = "???"
    """The run directory whose chains are counted."""
    longest: int = 100
    """The most steps that a chain may have."""
    estimate: Annotated[bool, FREE] = False
    """Only say how many chains there are."""
    run: RunConfig = field(default_factory=RunConfig)
    """How the chains are divided into units."""
    cluster: ClusterConfig = field(default_factory=ClusterConfig)
    """The Ray cluster and the workers."""


class Count:
    settings = CountConfig
    summary = "count the chains of a run"
    examples = ("count run_dir=out", "count run_dir=out --estimate")

    def estimate(self, config: CountConfig) -> Iterator[str]:
        yield f"{_chains(config).height} chains to count"

    def run(self, config: CountConfig, _hiring: Any, _watch: Any, _stop: Any) -> Summary:
        found = _chains(config)
        if found["steps"].list.len().max() > config.longest:  # type: ignore[operator]
            raise UsageError(f"longest={config.longest}: a chain has more steps")
        totals = Totals(chains=found.height)
        return Summary(
            run_dir=config.run_dir, totals=totals, units=1, units_done_now=1, now=totals, seconds_starting=0.0,
            seconds_working=2.0,
        )  # fmt: skip

    def lines(self, config: CountConfig, found: Summary) -> Iterator[str]:
        yield f"counted {found.totals.chains} chains of at most {config.longest} steps"


COUNT = Count()


def _chains(config: CountConfig) -> pl.DataFrame:
    return pl.read_parquet(f"{config.run_dir}/labels/*.parquet")
