"""The command `label`: checks the settings, starts or joins Ray, labels the steps, and prints the result."""

import os
import secrets
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from pipeline.cli.command import Command, interruptible
from pipeline.config.label import LabelConfig
from pipeline.core.output import say

if TYPE_CHECKING:
    from pipeline.core.progress import Summary
    from pipeline.runtime.worker_handle import Watcher, WorkerPool


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


def label_run(config: LabelConfig, watch: "Watcher") -> "Summary":
    """Label with this machine's own Ray, or the cluster of the settings, until it is done or a signal comes.

    Raises what `pipeline.runtime.driver.label` raises.
    """
    set_up_ray(config.cluster.address)
    from pipeline.runtime.driver import label
    from pipeline.runtime.stop import stoppable

    with stoppable() as stop:
        return label(config, partial(ray_label_workers, check=stop.check), watch, stop)


def _label(config: LabelConfig) -> int:
    set_up_ray(config.cluster.address)
    print_labelling(config, label_run)
    return 0


def print_labelling(config: LabelConfig, label: "Callable[[LabelConfig, Watcher], Summary]") -> None:
    """Let `label` label, show its progress, and print what came out. Raises as it does."""
    from rich.console import Console

    from pipeline.analysis.report.run_data import first_chains, rejected_rows
    from pipeline.analysis.report.run_report import end_with_report
    from pipeline.analysis.report.terminal import (
        SHOWN_REJECTS,
        LiveView,
        print_chains,
        print_rejects,
        print_summary,
    )
    from pipeline.storage.location import storage_at

    console = Console(highlight=False)
    with LiveView(console, config.plan.gpu_hour_price, policy_name(config)) as view:
        summary = label(config, view)
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
        end_with_report(console, storage, page=config.run.report, changed=summary.units_done_now > 0)


@contextmanager
def ray_label_workers(config: LabelConfig, check: Callable[[], None]) -> Iterator["WorkerPool"]:
    """The workers of `label` and `grow`, as Ray actors, after a look at their machines. What is wrong there is printed, and no
    reason to stop: a worker that cannot start says so itself. `check` is called while nodes are waited for."""
    from pipeline.preflight.nodes import joined_nodes, this_machine
    from pipeline.preflight.run import node_warnings
    from pipeline.runtime.actors import ray_workers
    from pipeline.runtime.chain_run.task import workload_of
    from pipeline.runtime.driver import LabelTask

    with ray_workers(workload_of(LabelTask(config)), check) as pool:
        look = this_machine if config.cluster.address is None else partial(joined_nodes, check=check)
        for warning in node_warnings(config, look):
            say(f"warning: {warning}")
        yield pool


def set_up_ray(address: str | None) -> None:
    """Set the environment variables that Ray reads when it is imported."""
    if "ray" in sys.modules:
        return
    if address is not None:
        # Ray 2.60 makes clusters that require a token, but its clients do not send the token that they have.
        names = {"RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"}
        if names & os.environ.keys() or (Path.home() / ".ray" / "auth_token").exists():
            os.environ.setdefault("RAY_AUTH_MODE", "token")
        return
    # Ray has no setting on Linux to listen on 127.0.0.1 only, but it does so if it assumes that no cluster is possible.
    os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"
    # Without a token here, Ray would make one and leave it in the user's home folder.
    if "RAY_AUTH_MODE" not in os.environ:
        os.environ.update(RAY_AUTH_MODE="token", RAY_AUTH_TOKEN=secrets.token_hex(32))


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
    most_used=(
        "data.path",
        "data",
        "policy.model",
        "policy",
        "run_dir",
        "sampling.rollouts",
        "estimator",
        "grader",
    ),
    schema=LabelConfig,
    sweeps=True,
    check=check_contradictions,
    run=_label,
)
