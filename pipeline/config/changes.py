"""Schemas of the commands that work on a finished run: what is to be changed about its labels, and what is left as it is."""

from dataclasses import asdict, dataclass, field
from typing import Any

from pipeline.config.choices import AfterError, EstimatorName, Fallback, GraderKind, Interval, LabelRule, Sandbox
from pipeline.config.label import EstimatorConfig, GraderConfig


@dataclass(kw_only=True, slots=True)
class EstimatorChange:
    """Settings of the estimator for stored rollouts; null: as the current labels were made. See `EstimatorConfig`,
    whose other settings only say what is sampled."""

    name: EstimatorName | None = None
    interval: Interval | None = None
    confidence: float | None = None
    rule: LabelRule | None = None
    threshold: float | None = None
    certainty: float | None = None
    neutral: float | None = None
    after_error: AfterError | None = None
    successes: int | None = None
    batch: int | None = None

    def __post_init__(self) -> None:
        EstimatorConfig(**_named(self))


@dataclass(kw_only=True, slots=True)
class GraderChange:
    """Settings of the checker for stored completions; null: as the current verdicts were made. See `GraderConfig`."""

    kind: GraderKind | None = None
    fallback: Fallback | None = None
    answer_pattern: str | None = None
    """Empty: none."""
    relative_tolerance: float | None = None
    deadline_seconds: float | None = None
    memory_mib: int | None = None
    processes: int | None = None
    cpu_seconds: float | None = None
    suite_seconds: float | None = None
    sandbox: Sandbox | None = None

    def __post_init__(self) -> None:
        GraderConfig(**_named(self))


@dataclass(kw_only=True, slots=True)
class RelabelConfig:
    """Everything `relabel` needs."""

    run_dir: str = "???"
    lock: bool = True
    """false: for a file system without `flock`; see to it then that nothing else works on the run directory."""
    estimator: EstimatorChange = field(default_factory=EstimatorChange)


@dataclass(kw_only=True, slots=True)
class RegradeConfig:
    """Everything `regrade` needs."""

    run_dir: str = "???"
    lock: bool = True
    """As in `RelabelConfig`."""
    grader: GraderChange = field(default_factory=GraderChange)
    estimator: EstimatorChange = field(default_factory=EstimatorChange)


@dataclass(kw_only=True, slots=True)
class AuditConfig:
    """Everything `audit` needs."""

    run_dir: str = "???"
    prune: bool = False
    """Remove what no record needs, if nothing is wrong."""
    lock: bool = True
    """As in `RelabelConfig`; taken for `prune` alone."""


def _named(change: EstimatorChange | GraderChange) -> dict[str, Any]:
    return {name: value for name, value in asdict(change).items() if value not in (None, "")}
