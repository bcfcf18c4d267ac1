"""Settings of how a run is carried out, on what, and of what is told about its cost. Part of those in `config`."""

from dataclasses import dataclass

from pipeline.config.choices import Tracker
from pipeline.config.ranges import check


@dataclass(kw_only=True, slots=True)
class RunConfig:
    unit_problems: int = 32
    """Problems per unit: the grain of scheduling, retry and commit."""
    units_in_flight: int = 64
    """Units a worker holds at once at most. It takes another one when fewer requests wait for its engine than keep it busy."""
    flush_seconds: float = 30.0
    """How long finished rollouts wait at most to be committed: what a crash can cost."""
    attempts: int = 3
    """How often a unit is tried with others before it is taken apart to find the request that engines die of."""
    max_failures: int = 100
    """Workers that may fail, and requests that may be written off, before the run gives up."""
    lock: bool = True
    """false: for a file system without `flock`; results are right with two drivers too, but work is done twice.

    Not so in an object store that refuses no name twice: there, see to it that one driver works."""
    start_timeout_seconds: float = 1800.0
    """How long the cluster may take to give a worker its resources and the worker to load its model."""
    stall_seconds: float = 600.0
    """A worker that generates no token for so long is taken for hung and replaced."""
    progress_seconds: float = 5.0
    show_chains: int = 4
    """How many chains are printed at the end."""
    report: bool = True
    """Whether `label` writes report.html at the end."""
    track: Tracker = Tracker.none
    """Where the course of the run is sent too."""

    def __post_init__(self) -> None:
        check(1 <= self.unit_problems <= 10_000, "run.unit_problems", self.unit_problems, "1 to 10000")
        check(1 <= self.units_in_flight <= 1000, "run.units_in_flight", self.units_in_flight, "1 to 1000")
        check(0 < self.flush_seconds <= 86_400, "run.flush_seconds", self.flush_seconds, "above 0, at most 86400")
        check(self.attempts >= 1, "run.attempts", self.attempts, "at least 1")
        check(self.max_failures >= 1, "run.max_failures", self.max_failures, "at least 1")
        check(self.start_timeout_seconds > 0, "run.start_timeout_seconds", self.start_timeout_seconds, "above 0")
        check(self.stall_seconds > 0, "run.stall_seconds", self.stall_seconds, "above 0")
        check(self.progress_seconds > 0, "run.progress_seconds", self.progress_seconds, "above 0")
        check(self.show_chains >= 0, "run.show_chains", self.show_chains, "0 or more")


@dataclass(kw_only=True, slots=True)
class ClusterConfig:
    address: str | None = None
    """None: a private Ray on this machine, loopback only; `auto` or an address: join that cluster."""
    workers: int | None = None
    """None: as many as the GPUs of the cluster have room for, for a GPU policy, else 1."""
    cpus_per_worker: float | None = None
    gpus_per_worker: float | None = None

    def __post_init__(self) -> None:
        check(self.workers is None or self.workers >= 1, "cluster.workers", self.workers, "at least 1")
        check(
            self.cpus_per_worker is None or self.cpus_per_worker > 0,
            "cluster.cpus_per_worker",
            self.cpus_per_worker,
            "above 0",
        )
        check(
            self.gpus_per_worker is None or self.gpus_per_worker >= 0,
            "cluster.gpus_per_worker",
            self.gpus_per_worker,
            "0 or more",
        )


@dataclass(kw_only=True, slots=True)
class PlanConfig:
    """What `plan` measures and assumes; the price is for `label` too.

    A device is a GPU; of a worker without one, the worker itself; with policy=openai, what a URL stands for.
    """

    out: str = "plan.json"
    gpu_hour_price: float | None = None
    """What a device costs per hour, in any currency; null: money is not told."""
    gpus: int | None = None
    """Devices that the wall time is told for; null: as many as `label` would take."""
    pilot: bool = True
    """false: no policy is loaded, and what a pilot would measure is taken from the three settings below."""
    pilot_problems: int = 16
    """Problems, drawn at random, whose chains are labelled to see what they cost."""
    seed: int = 0
    """Of that draw, and of what is simulated."""
    completion_tokens: int | None = None
    """Without a pilot: mean length of a completion; null: half of sampling.max_tokens."""
    success_rate: float = 0.5
    """Without a pilot: mean success rate of all prefixes."""
    tokens_per_second: float | None = None
    """Without a pilot: of one worker; null: half of what its device allows, where that is known."""

    def __post_init__(self) -> None:
        check(bool(self.out.strip()), "plan.out", repr(self.out), "the name of a file")
        price, length, speed = self.gpu_hour_price, self.completion_tokens, self.tokens_per_second
        check(price is None or price >= 0, "plan.gpu_hour_price", price, "0 or more")
        check(self.gpus is None or self.gpus >= 1, "plan.gpus", self.gpus, "at least 1")
        check(2 <= self.pilot_problems <= 10_000, "plan.pilot_problems", self.pilot_problems, "2 to 10000")
        check(length is None or length >= 1, "plan.completion_tokens", length, "at least 1")
        check(0 <= self.success_rate <= 1, "plan.success_rate", self.success_rate, "between 0 and 1")
        check(speed is None or speed > 0, "plan.tokens_per_second", speed, "above 0")
