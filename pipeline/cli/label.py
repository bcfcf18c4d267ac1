"""The command `label`: checks the settings, starts or joins Ray, labels the steps, and prints the result."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

from pipeline.cli.command import Command, interruptible
from pipeline.cli.workers import Work
from pipeline.config.label import LabelConfig
from pipeline.core.output import say

if TYPE_CHECKING:
    from rich.console import Console

    from pipeline.core.progress import Summary
    from pipeline.runtime.driver import LabelTask
    from pipeline.runtime.worker_handle import WorkerPool


def policy_name(config: LabelConfig) -> str:
    """What the workers load, for people: the model, or the policy if it has none."""
    return str(getattr(config.policy, "model", "") or config.policy.implementation)


def check_contradictions(config: LabelConfig) -> None:
    """Raise UsageError for settings that contradict each other: sampling.stop_at_answer where the policy and the grader do not
    support it, and cluster.gpus_per_worker that is too small for the policy."""
    if config.sampling.stop_at_answer:
        from pipeline.runtime.answer_ending import stops_at_answer

        stops_at_answer(config)
    if config.cluster.gpus_per_worker is not None:
        from pipeline.engines.registry import policy_for
        from pipeline.runtime.placement import check_settings

        check_settings(config.cluster, policy_for(config.policy))


def _ended(config: LabelConfig, summary: "Summary") -> bool:
    from rich.console import Console

    from pipeline.analysis.report.run_data import first_chains, rejected_rows
    from pipeline.analysis.report.terminal import SHOWN_REJECTS, print_chains, print_rejects, print_summary
    from pipeline.storage.location import storage_at

    console = Console(highlight=False)
    storage = storage_at(summary.run_dir)
    if summary.totals.rejected:
        print_rejects(console, rejected_rows(storage, SHOWN_REJECTS), storage.run_dir)
    if config.run.show_chains:
        if summary.first_new:
            console.print("\nof what is new:")
        print_chains(console, first_chains(storage, config.run.show_chains, summary.first_new))
        console.print()
    print_summary(console, summary)
    with interruptible():
        with_report(config, summary, console)
    return True


def with_report(config: LabelConfig, summary: "Summary", console: "Console | None" = None) -> "Summary":
    """The same summary, after the page is written, where the settings want one. Its lines are printed to the console, if one is
    given."""
    from rich.console import Console

    from pipeline.analysis.report.run_report import end_with_report
    from pipeline.storage.location import storage_at

    changed = summary.units_done_now > 0
    end_with_report(
        console or Console(quiet=True), storage_at(summary.run_dir), page=config.run.report, changed=changed
    )
    return summary


@contextmanager
def ray_label_workers(task: "LabelTask", check: Callable[[], None]) -> Iterator["WorkerPool"]:
    """The workers of `label` and `grow`, as Ray actors, after a look at their machines. What is wrong there is printed, and no
    reason to stop: a worker that cannot start says so itself. `check` is called while nodes are waited for."""
    from pipeline.preflight.nodes import joined_nodes, this_machine
    from pipeline.preflight.run import node_warnings
    from pipeline.runtime.actors import ray_workers

    with ray_workers(task, check) as pool:
        config = task.config
        look = this_machine if config.cluster.address is None else partial(joined_nodes, check=check)
        for warning in node_warnings(config, look):
            say(f"warning: {warning}")
        yield pool


LABELLING: "Work[LabelConfig, Summary]" = Work(
    run="pipeline.runtime.driver:LabelTask",
    ended=_ended,
    returned=with_report,
    shown=lambda config: (config.plan.gpu_hour_price, policy_name(config)),
    workers=ray_label_workers,
)
LABEL = Command(
    name="label",
    summary="label the steps of reasoning chains; start it again to continue",
    about=(
        "label: sample completions from every step prefix, check their answers, and write P(correct | prefix) as "
        "Parquet. Start it again on the same run_dir to continue."
    ),
    examples=(
        "label data=sample run_dir=runs/sample",
        "label data.path=my.jsonl policy.model=Qwen/Qwen3-8B run_dir=out",
        "label --multirun data=sample estimator.threshold=0.3,0.5 sampling.temperature=0.7,1.0 run_dir=sweep",
        "label data=gsm8k data.path=hf://openai/gsm8k/main:train policy.model=Qwen/Qwen3-8B \\\n"
        "      cluster.address=auto cluster.workers=8 run_dir=/shared/run",
    ),
    most_used=("data.path", "data", "policy.model", "policy", "run_dir", "sampling.rollouts", "estimator", "grader"),
    schema=LabelConfig,
    sweeps=True,
    check=check_contradictions,
    run=LABELLING,
    work=LABELLING,
)
