"""The commands `label`, which labels the steps of chains, and `grow`, which measures prefixes that the rollouts of a run wrote
and adds them to its labels."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

from pipeline.cli.command import Command, interruptible, write_lines
from pipeline.cli.workers import Work
from pipeline.config.grow import GrowConfig
from pipeline.config.label import LabelConfig
from pipeline.core.formatting import format_count
from pipeline.core.output import say

if TYPE_CHECKING:
    from pipeline.core.progress import Summary
    from pipeline.runtime.driver import LabelTask
    from pipeline.runtime.grow import Grown, PlannedGrowth
    from pipeline.runtime.worker_handle import WorkerPool
    from pipeline.storage.stored_run import GrownCounts

UNSPENT = 0.05
"""Share of the budget that may be left over without a word: costs are estimates."""


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
    from pipeline.analysis.chains import chain_tables
    from pipeline.analysis.report.run_data import first_chains, rejected_rows
    from pipeline.analysis.report.run_lines import SHOWN_REJECTS, reject_lines
    from pipeline.display.terminal import show
    from pipeline.storage.location import storage_at

    storage = storage_at(summary.run_dir)
    if summary.totals.rejected:
        show(reject_lines(rejected_rows(storage, SHOWN_REJECTS), storage.run_dir))
    if config.run.show_chains:
        if summary.first_new:
            show(["\nof what is new:"])
        show([*chain_tables(first_chains(storage, config.run.show_chains, summary.first_new)), ""])
    return _summarized(config, summary)


def _summarized(config: LabelConfig, summary: "Summary") -> bool:
    from pipeline.analysis.report.run_lines import summary_lines
    from pipeline.display.terminal import show

    show(summary_lines(summary))
    with interruptible():
        show(_reported(config, summary))
    return True


def _reported(config: LabelConfig, summary: "Summary") -> Iterator[str]:
    """The lines of the report. The page is written too, where the settings want one."""
    from pipeline.analysis.report.run import ending_lines
    from pipeline.storage.location import storage_at

    changed = summary.units_done_now > 0
    return ending_lines(storage_at(summary.run_dir), page=config.run.report, changed=changed)


def with_report(config: LabelConfig, summary: "Summary") -> "Summary":
    """The same summary, after the page is written, where the settings want one."""
    for _ in _reported(config, summary):
        pass
    return summary


@contextmanager
def ray_label_workers(task: "LabelTask", check: Callable[[], None]) -> Iterator["WorkerPool"]:
    """The workers of `label` and `grow`, as Ray actors, after a look at their machines. What is wrong there is printed, and no
    reason to stop: a worker that cannot start says so itself. `check` is called while nodes are waited for."""
    from pipeline.preflight.machine import joined_nodes, this_machine
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


def _growth_estimate(config: GrowConfig) -> list[str]:
    from pipeline.runtime.grow import planned_growth

    return _planned_lines(planned_growth(config), config)


def _growth_ended(config: GrowConfig, grown: "Grown") -> bool:
    if grown.planned is not None:
        write_lines(_planned_lines(grown.planned, config))
    write_lines(_promoted_lines(grown, config))
    return _summarized(config, grown.summary)


def _growth_returned(config: GrowConfig, grown: "Grown") -> "GrownCounts":
    with_report(config, grown.summary)
    return grown.counts


def _planned_lines(planned: "PlannedGrowth", config: GrowConfig) -> list[str]:
    harvest, counts = planned.harvest, planned.harvest.counts
    lines = [
        f"harvest   {format_count(counts.rollouts, 'rollout')} wrote {counts.nodes:,} different prefixes; "
        f"{counts.measured:,} of them are measured, {counts.ended:,} end a chain, {counts.candidates:,} can be measured",
        f"growth    grow={config.grow.pick} begins with {format_count(planned.picks, 'prefix')} in "
        f"{format_count(len(planned.allotments), 'problem')}, for about {planned.cost:,} {config.grow.budget_unit.value}",
    ]
    if counts.joined:
        lines.append(f"joined    {format_count(counts.joined, 'prefix')} with the text of another one and other tokens")
    if harvest.fair is not None:
        which = "those of later rounds" if harvest.fair else "they were stopped by outcomes, so all of them"
        lines.append(
            f"evidence  the number of rollouts depended on outcomes: {which} say what to measure, and are no unbiased "
            "trials of what they pass through"
        )
    return lines


def _promoted_lines(grown: "Grown", config: GrowConfig) -> Iterator[str]:
    from pipeline.runtime.grow import check_budget, spent

    counts, unit = grown.counts, config.grow.budget_unit
    yield (
        f"promoted  {format_count(counts.promoted, 'prefix')} in all growths, with "
        f"{format_count(counts.rollouts, 'rollout')} and {counts.tokens:,} tokens: the chains with `grown` in labels"
    )
    left = check_budget(config.grow) - spent(counts, unit)
    if left < 0:
        yield (
            f"exceeded  grow.budget by {-left:,} {unit.value}: rollouts were longer than those that wrote the prefixes, by "
            "which their cost was estimated"
        )
    if left > UNSPENT * check_budget(config.grow):
        yield (
            f"unspent   {left:,} {unit.value} of grow.budget: grow={config.grow.pick} found no other prefix that it can pay "
            "and that is worth a measurement"
        )
    yield (
        "export    promoted chains have no end; pairs of siblings come from `export format=preference "
        "preference.siblings=rollouts` and from format=ppm"
    )


GROWING: Work[GrowConfig, "Grown"] = Work(
    run="pipeline.runtime.grow:grow",
    ended=_growth_ended,
    estimate=_growth_estimate,
    returned=_growth_returned,
    shown=LABELLING.shown,
    workers=LABELLING.workers,
)
GROW = Command(
    name="grow",
    summary="measure prefixes that the rollouts of a run wrote, and label them",
    about=(
        "grow: the rollouts of a run contain many steps that have no label. The best of them are promoted: rollouts from there "
        "measure their values, and their chains join the labels."
    ),
    examples=(
        "grow run_dir=out grow.budget=100000",
        "grow run_dir=out grow.budget=20000 grow.budget_unit=rollouts grow.pick=errors",
        "grow run_dir=out grow.budget=100000 --estimate",
    ),
    notes="""\
All other settings are those of the run; what may differ from start to start, such as cluster.workers, may be given. The run
must have the tokens of its rollouts (sampling.store_tokens=true). The same command goes on after an interruption. For more,
give a larger grow.budget: it is that of all growths of the run together.

Which prefixes, and how many, is decided before their rollouts are issued, and rollouts that led to a promotion never count in
unbiased_value.

--estimate says what the rollouts wrote, and in how many problems something would be measured; it loads no model.
""",
    most_used=("run_dir", "grow.budget", "grow.budget_unit", "grow", "grow.rollouts"),
    schema=GrowConfig,
    flags=("estimate",),
    continues=True,
    check=check_contradictions,
    run=GROWING,
    work=GROWING,
)
