"""What the settings of every run over the chains of a run have."""

from dataclasses import dataclass, field
from typing import Annotated

from pipeline.config.fields import FREE, Settings
from pipeline.config.label import ClusterConfig, RunConfig


@dataclass(kw_only=True, slots=True)
class TaskConfig(Settings):
    run_dir: str = "???"
    """The run directory whose chains are used."""
    partial: Annotated[bool, FREE] = False
    """Also accept an unfinished run, and use the chains that it has."""
    estimate: Annotated[bool, FREE] = False
    """Only say how many chains there are, and how long they would take: a sample of them is tried, and nothing is written."""
    run: RunConfig = field(default_factory=RunConfig)
    """How the chains are divided into units, retried and stored."""
    cluster: ClusterConfig = field(default_factory=ClusterConfig)
    """The Ray cluster and the workers."""
