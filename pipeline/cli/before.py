"""The commands that look before `label` works: `doctor` and `plan`."""

from contextlib import ExitStack, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from pipeline.cli.command import Command, interruptible, write_out
from pipeline.cli.label import check_contradictions
from pipeline.cli.workers import set_up_ray
from pipeline.config.label import LabelConfig
from pipeline.core.errors import Interrupted, PolicyError, UsageError
from pipeline.core.forecast import MARK, encode_forecast
from pipeline.core.formatting import printable
from pipeline.storage.outputs import atomic_file, check_output_file, refuse_foreign, refuse_overwriting

if TYPE_CHECKING:
    from pipeline.preflight.machine import Nodes
    from pipeline.preflight.run import LookAtNodes


_WIDTH = 15


def _doctor(config: LabelConfig) -> int:
    set_up_ray(config.cluster.address)
    from pipeline.preflight.checks import Finding, Level, counted
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
    from pipeline.preflight.machine import joined_nodes, this_machine

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


def _plan(config: LabelConfig) -> int:
    if config.budget is not None:
        raise UsageError("budget= is a setting of `label`: `plan` writes the file for it")
    out = Path(config.plan.out)
    check_output_file("plan.out", out)
    refuse_foreign("plan.out", out, MARK, "plan")
    set_up_ray(config.cluster.address)
    from pipeline.analysis.plan.render import plan_parts
    from pipeline.analysis.plan.run import plan, proposed_setting
    from pipeline.data.rows import input_files
    from pipeline.display.live import LiveView
    from pipeline.display.terminal import show, terminal
    from pipeline.engines.hub import hub_asked_once
    from pipeline.engines.registry import policy_for
    from pipeline.runtime.actors import ray_workers
    from pipeline.runtime.stop import stoppable

    refuse_overwriting({"plan.out": out}, input_files(config.data.path))
    try:
        with stoppable() as stop, LiveView(terminal(), config.plan.gpu_hour_price) as view, ExitStack() as hub:
            with suppress(PolicyError):  # the plan says why the policy cannot be loaded
                if policy_for(config.policy).needs(1.0).hub_names:
                    hub.enter_context(hub_asked_once())
            made_at = datetime.now(UTC).isoformat(timespec="seconds")
            forecast = plan(
                config,
                lambda pilot: ray_workers(pilot, stop.check),
                view,
                stop,
                made_at=made_at,
            )
            proposal = proposed_setting(config)
    except Interrupted as error:
        raise Interrupted("interrupted; nothing was written: start the same command again") from error
    with atomic_file(out) as file:
        file.write(encode_forecast(forecast))
    show(plan_parts(forecast, out, proposal))
    return 0


PLAN = Command(
    name="plan",
    summary="estimate what `label` with the same settings would cost",
    about=(
        "plan: label a few problems of an input to measure their cost, and forecast the cost of the whole run in "
        "rollouts, tokens, hours and money. Its settings are those of `label`."
    ),
    examples=(
        "plan data.path=my.jsonl policy.model=Qwen/Qwen3-8B plan.gpu_hour_price=2.5",
        "label data.path=my.jsonl policy.model=Qwen/Qwen3-8B budget=plan.json",
    ),
    notes="""\
It writes nothing but plan.json (plan.out). With plan.pilot=false, or where the policy cannot be loaded here, the cost rests
on plan.completion_tokens, plan.success_rate and plan.tokens_per_second.
""",
    most_used=("data.path", "data", "policy.model", "policy", "plan.gpus", "plan.gpu_hour_price", "plan.out"),
    schema=LabelConfig,
    check=check_contradictions,
    run=_plan,
)
