"""The command `grow`: measures prefixes that the rollouts of a run wrote, and adds them to its labels."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pipeline.cli.command import Command, interruptible, write_lines
from pipeline.cli.label import LABELLING, check_contradictions, with_report
from pipeline.cli.workers import Work
from pipeline.config.grow import GrowConfig
from pipeline.core.formatting import format_count

if TYPE_CHECKING:
    from pipeline.runtime.grow import Grown, PlannedGrowth
    from pipeline.storage.stored_run import GrownCounts


UNSPENT = 0.05
"""Share of the budget that may be left over without a word: costs are estimates."""


def _estimate(config: GrowConfig) -> list[str]:
    from pipeline.runtime.grow import planned_growth

    return _planned_lines(planned_growth(config), config)


def _ended(config: GrowConfig, grown: "Grown") -> bool:
    from rich.console import Console

    from pipeline.analysis.report.terminal import print_summary

    if grown.planned is not None:
        write_lines(_planned_lines(grown.planned, config))
    write_lines(_promoted_lines(grown, config))
    console = Console(highlight=False)
    print_summary(console, grown.summary)
    with interruptible():
        with_report(config, grown.summary, console)
    return True


def _returned(config: GrowConfig, grown: "Grown") -> "GrownCounts":
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
    ended=_ended,
    estimate=_estimate,
    returned=_returned,
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
