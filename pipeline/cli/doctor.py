"""The command `doctor`: checks the machines, the model and the run directory before a run."""

from typing import TYPE_CHECKING

from pipeline.cli.command import Command, interruptible, write_out
from pipeline.cli.label import check_contradictions
from pipeline.cli.workers import set_up_ray
from pipeline.config.label import LabelConfig
from pipeline.core.formatting import printable

if TYPE_CHECKING:
    from pipeline.preflight.nodes import Nodes
    from pipeline.preflight.run import LookAtNodes

_WIDTH = 15


def _doctor(config: LabelConfig) -> int:
    set_up_ray(config.cluster.address)
    from pipeline.preflight.findings import Finding, Level, counted
    from pipeline.preflight.run import preflight

    findings: list[Finding] = []
    with interruptible():
        for finding in preflight(config, _look_at_nodes(config)):
            findings.append(finding)
            write_out(f"{finding.level.value:<8} {finding.check:<{_WIDTH}} {printable(finding.text)}\n")
            if finding.remedy:
                write_out(f"{'':<8} {'':<{_WIDTH}} remedy: {printable(finding.remedy)}\n")
    write_out(f"{', '.join(counted(findings)) or 'all is well'}\n")
    return int(any(finding.level is Level.FAILED for finding in findings))


def _look_at_nodes(config: LabelConfig) -> "LookAtNodes":
    """At every node of the cluster, or at this machine alone, for which Ray is not started."""
    from pipeline.preflight.nodes import joined_nodes, this_machine

    if config.cluster.address is None:
        return this_machine
    from pipeline.runtime.connection import cluster

    def look(paths: tuple[str, ...], models: tuple[str, ...]) -> "Nodes":
        with cluster(config.cluster):
            return joined_nodes(paths, models)

    return look


DOCTOR = Command(
    name="doctor",
    summary="check machines, model and run_dir before `label`",
    about=(
        "doctor: look at every node, the model and the run directory that `label` with the same settings would use, and "
        "say what is wrong and what helps."
    ),
    examples=(
        "doctor policy.model=Qwen/Qwen3-8B run_dir=out",
        "doctor policy.model=Qwen/Qwen3-8B cluster.address=auto run_dir=/shared/run",
    ),
    notes="""\
Its settings are those of `label`. It loads no model and changes nothing. Without cluster.address it looks at this machine
alone. A check fails where no place is left that can do the work; where some can, it is a warning. Exit code 1: a check has
failed.
""",
    most_used=("policy.model", "policy", "cluster.address", "run_dir"),
    schema=LabelConfig,
    check=check_contradictions,
    run=_doctor,
)
