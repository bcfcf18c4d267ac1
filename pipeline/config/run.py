"""Settings of how a run is carried out, on what, and of what is told about its cost. Part of those in `label`."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

from annotated_types import Ge, Gt
from annotated_types import Interval as Range

from pipeline.config.choices import Tracker
from pipeline.config.fields import Settings, check


@dataclass(kw_only=True, slots=True)
class RunConfig(Settings):
    SECTION: ClassVar[str] = "run"
    unit_problems: Annotated[int, Range(ge=1, le=10_000)] = 32
    """Problems per unit: the grain of scheduling, retry and commit."""
    units_in_flight: Annotated[int, Range(ge=1, le=1000)] = 64
    """Units a worker holds at once at most. It takes another one when fewer requests wait for its engine than keep it busy."""
    flush_seconds: Annotated[float, Range(gt=0, le=86_400)] = 30.0
    """How long finished rollouts wait at most to be committed: what a crash can cost."""
    attempts: Annotated[int, Ge(1)] = 3
    """How often a unit is tried with others before it is taken apart to find the request that engines die of."""
    max_failures: Annotated[int, Ge(1)] = 100
    """Workers that may fail, and requests that may be written off, before the run gives up."""
    lock: bool = True
    """false: for a file system without `flock`; results are right with two drivers too, but work is done twice.

    Not so in an object store that refuses no name twice: there, see to it that one driver works."""
    start_timeout_seconds: Annotated[float, Gt(0)] = 1800.0
    """How long the cluster may take to give a worker its resources and the worker to load its model."""
    stall_seconds: Annotated[float, Gt(0)] = 600.0
    """A worker that generates no token for so long is taken for hung and replaced."""
    progress_seconds: Annotated[float, Gt(0)] = 5.0
    show_chains: Annotated[int, Ge(0)] = 4
    """How many chains are printed at the end."""
    report: bool = True
    """Whether `label` writes report.html at the end."""
    track: Tracker = Tracker.none
    """Where the course of the run is sent too."""


@dataclass(kw_only=True, slots=True)
class ClusterConfig(Settings):
    SECTION: ClassVar[str] = "cluster"
    address: str | None = None
    """None: a private Ray on this machine, loopback only; `auto` or an address: join that cluster."""
    workers: Annotated[int | None, Ge(1)] = None
    """None: as many as the GPUs of the cluster have room for, for a GPU policy, else 1."""
    cpus_per_worker: Annotated[float | None, Gt(0)] = None
    gpus_per_worker: Annotated[float | None, Ge(0)] = None


@dataclass(kw_only=True, slots=True)
class PlanConfig(Settings):
    """What `plan` measures and assumes; the price is for `label` too.

    A device is a GPU; of a worker without one, the worker itself; with policy=openai, what a URL stands for.
    """

    SECTION: ClassVar[str] = "plan"
    out: str = "plan.json"
    gpu_hour_price: Annotated[float | None, Ge(0)] = None
    """What a device costs per hour, in any currency; null: money is not told."""
    gpus: Annotated[int | None, Ge(1)] = None
    """Devices that the wall time is told for; null: as many as `label` would take."""
    pilot: bool = True
    """false: no policy is loaded, and what a pilot would measure is taken from the three settings below."""
    pilot_problems: Annotated[int, Range(ge=2, le=10_000)] = 16
    """Problems, drawn at random, whose chains are labelled to see what they cost."""
    seed: int = 0
    """Of that draw, and of what is simulated."""
    completion_tokens: Annotated[int | None, Ge(1)] = None
    """Without a pilot: mean length of a completion; null: half of sampling.max_tokens."""
    success_rate: Annotated[float, Range(ge=0, le=1)] = 0.5
    """Without a pilot: mean success rate of all prefixes."""
    tokens_per_second: Annotated[float | None, Gt(0)] = None
    """Without a pilot: of one worker; null: half of what its device allows, where that is known."""

    def check(self) -> None:
        check(bool(self.out.strip()), "plan.out", repr(self.out), "the name of a file")
