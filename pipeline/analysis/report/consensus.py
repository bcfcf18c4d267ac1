"""The section of a run's page about labels by consensus: what was kept, what was left out, and who agrees with whom."""

from collections.abc import Iterator, Sequence

from pipeline.analysis.report.charts import left_out
from pipeline.consensus.confusion import Way
from pipeline.consensus.kept import (
    DIFFICULTY,
    GROUPINGS,
    OUTCOME,
    PLACE,
    SUBSET,
    ConsensusSummary,
    reason_text,
    steps_text,
)
from pipeline.consensus.reliability import WORDS, Reliability
from pipeline.core.formatting import format_percent
from pipeline.display.document import Figure, Section, Table, sentence, there

_READINGS = {
    OUTCOME: "Share of the chains without labels by consensus, by the outcome of the chain.",
    PLACE: "The same by where Monte Carlo alone places the first error: no error, a third of the chain, or unknown where a "
    "step before any bad one has no label.",
    DIFFICULTY: "The same by the share of rollouts of the bare problem that are correct, as estimated: a low value is a hard "
    "problem. Where the bars of low values are longer, the kept chains have fewer hard problems than the run.",
    SUBSET: "The same by the part of the data that the ids of rows name.",
}


def consensus_section(found: ConsensusSummary, learned: Sequence[Reliability]) -> Section:
    disagree = "a chain" if found.disagree == 1 else f"{found.disagree:,} chains"
    return Section(
        anchor="consensus",
        heading="Consensus",
        intro="These labels are by consensus of Monte Carlo and other witnesses. A chain is left out where they do not "
        "agree, or where no label of a step is certain enough: it has no labels. "
        f"Of {disagree} a witness names another first error than Monte Carlo, or one of the two names none; the list of chains "
        f"can show these alone. {sentence(steps_text(found))}",
        charts=there(*(left_out(found.groups.get(name, ()), name, _READINGS[name]) for name in GROUPINGS)),
        tables=(*_tables(found), *([_reliabilities(learned)] if learned else [])),
    )


def consensus_figure(found: ConsensusSummary) -> Figure:
    """The share of chains that is kept."""
    return Figure(
        name="Labels by consensus",
        value=format_percent(found.kept / found.chains),
        reading=f"{found.kept:,} of {found.chains:,} chains; {found.disagree:,} with a witness that disagrees",
    )


def _tables(found: ConsensusSummary) -> Iterator[Table]:
    if found.reasons:
        yield Table(
            heads=("why chains are left out", "chains", "share of all"),
            rows=tuple(
                (reason_text(reason), f"{count:,}", format_percent(count / found.chains))
                for reason, count in found.reasons.items()
            ),
        )
    if found.witnesses:
        yield Table(
            caption="First errors of Monte Carlo and of each witness: the place that most of its votes name. Early and "
            "late: it names an earlier or a later step. Alone: only one of the two names an error.",
            heads=(
                *("witness", "both none", "same step", "early", "late", "witness alone"),
                *("MC alone", "unknown", "silent", "same"),
            ),
            rows=tuple(
                (
                    each.name,
                    *map("{:,}".format, (each.both_none, each.same_step, each.earlier, each.later)),
                    *map("{:,}".format, (each.witness_only, each.mc_only, each.unknown, each.silent)),
                    format_percent(each.same / each.compared) if each.compared else "-",
                )
                for each in found.witnesses
            ),
        )
    if found.checked:
        yield Table(
            caption="Steps that programs have checked. Errors: the share of the refuted steps that have an error or follow "
            "one, by the consensus. As a whole: a part that holds says nothing of its step.",
            heads=("witness", "refuted", "errors", "hold as a whole"),
            rows=tuple(
                (
                    each.name,
                    f"{each.refuted:,}",
                    "-" if not each.refuted or each.errors is None else format_percent(each.errors / each.refuted),
                    f"{each.holds:,}",
                )
                for each in found.checked
            ),
        )


def _reliabilities(learned: Sequence[Reliability]) -> Table:
    ways = (Way.EXACT, Way.EARLY, Way.LATE, Way.NONE, Way.ALARM)
    return Table(
        caption="How reliable Monte Carlo and each witness are, learned from this run: of chains with a first error, and of "
        "chains without one, how often it names that step, an earlier or a later one, none, or some step. Monte Carlo names "
        "the step at which it sees the value fall, whatever its labels are. In brackets 95 % intervals. With fewer than 300 "
        "chains much of this is what is usual, and not learned from the run.",
        heads=("", "answer", "in truth", "chains, about", *(WORDS[way] for way in ways)),
        rows=tuple(
            (row.witness, row.answer, row.truth, f"{row.chains:,}", *(row.says.get(way, "-") for way in ways))
            for row in learned
        ),
        words=3,
    )
