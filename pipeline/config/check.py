"""Schema of `check`: which chains are checked, and by which verifiers."""

from dataclasses import dataclass, field
from typing import Annotated

from annotated_types import Interval as Range

from pipeline.config.fields import FREE, Settings
from pipeline.config.label import ClusterConfig, DataConfig, GraderConfig, RunConfig
from pipeline.config.verify import VerifierConfig, check_distinct


@dataclass(kw_only=True, slots=True)
class CheckRunConfig(Settings):
    """All settings of `check`. Chains come from `run_dir`, or from `data.path`."""

    run_dir: str = "???"
    """The run directory whose chains are checked; with `data.path`, a folder for the findings. They go to `checks/` in it."""
    checks: Annotated[list[str] | None, FREE] = None
    """The verifiers. null: the one that `verifier` names. Those that have checked this run before are kept."""
    verifier: VerifierConfig = field(default_factory=VerifierConfig)
    """The settings of one of the verifiers. The others have their default settings."""
    processes: Annotated[int | None, Range(ge=1, le=256), FREE] = None
    """Processes of each worker in which a verifier is asked. null: one for each of the worker's cores."""
    data: DataConfig = field(default_factory=lambda: DataConfig(path=""))
    """The layout of the rows of `data.path`."""
    grader: GraderConfig = field(default_factory=GraderConfig)
    """The grader for chains of `data.path` with a known answer."""
    partial: Annotated[bool, FREE] = False
    """Also accept an unfinished run, and check the chains that it has."""
    estimate: Annotated[bool, FREE] = False
    """Only say how many chains there are, and how long they would take: a sample of them is checked, and nothing is written."""
    run: RunConfig = field(default_factory=RunConfig)
    """How the chains are divided into units, retried and stored."""
    cluster: ClusterConfig = field(default_factory=ClusterConfig)
    """The Ray cluster and the workers."""

    @property
    def names(self) -> list[str]:
        """The verifiers."""
        return [self.verifier.kind] if self.checks is None else self.checks

    def check(self) -> None:
        if not self.names:
            raise ValueError("checks=[]: name at least one verifier, such as checks=[arithmetic,algebra]")
        check_distinct(self.names)
