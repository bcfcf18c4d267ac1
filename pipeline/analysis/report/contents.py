"""The content of the page of one run, in its order."""

import shlex
from collections.abc import Iterator, Sequence

import polars as pl

from pipeline.analysis.report import aggregates, charts
from pipeline.analysis.report.consensus import consensus_figure, consensus_section
from pipeline.analysis.report.plan_check import PlannedAmount
from pipeline.analysis.report.run_data import EXAMPLES, RunData
from pipeline.analysis.report.run_report import TEXT, RunReport, last_activity, missing_costs, unlikely_text
from pipeline.analysis.report.warnings import warning_lines
from pipeline.config.recorded_settings import PLUGIN
from pipeline.config.words import setting_word
from pipeline.core.forecast import Forecast
from pipeline.core.formatting import (
    format_count,
    format_number,
    format_percent,
    format_range,
    format_verdict_counts,
    listed,
)
from pipeline.display.document import Figure, Inset, Page, Section, Table, sentence, there
from pipeline.display.embedded import shortened
from pipeline.display.numbers import number
from pipeline.display.page import format_time
from pipeline.storage.location import last_part
from pipeline.storage.starts import cost_of

KIND = "report"


def build_page(read: RunReport, *, inset: Inset | None, request: str, foot: tuple[str, ...]) -> Page:
    """The page. `request`: see `request_text`; empty for none."""
    found = read.found
    agreed = consensus_section(found.consensus, found.reliabilities) if found.consensus else None
    sections = (_values(found), agreed, _planned(found, read.planned_amounts), _rejects(found))
    own = [sentence(words) for words in (*found.made_up_opinions, found.capped) if words]
    own += [f"{words}." for words in (*warning_lines(found.steps, found.repeats), *missing_costs(found))]
    settings = {key: value for key, value in found.settings.items() if "." in key and value is not None}
    words = (setting_word(key, value, '"') for key, value in settings.items() if not key.endswith(f".{PLUGIN}"))
    command = " \\\n  ".join(["python -m pipeline label INPUT run_dir=OUT", *map(shlex.quote, words)])
    asked = [("One request, after the first step of a chain", request)] if request else []
    return Page(
        title=last_part(found.run.storage.run_dir),
        kind=KIND,
        verdict=_verdict(found, len(read.notes) + len(own)),
        details=_details(found),
        notes=(*read.notes, *own),
        figures=tuple(_figures(found)),
        sections=tuple(section for section in sections if section),
        inset=inset,
        copies=(("The command with all settings", command), *asked),
        foot=foot,
    )


def _verdict(found: RunData, remarks: int) -> str:
    """What was labelled, whether to trust it, and what to do next."""
    if not found.run.units:
        return (
            "No row of the input can be labelled: every row read so far was rejected (see Rejects), or `label` was stopped "
            "while it read them."
        )
    if not found.totals.chains and not found.run.unfinished:
        return "There is no chain: every row was rejected, or none of the sampled chains was kept. See Rejects."
    by_label = dict(aggregates.label_counts(found.steps).group_by("label").agg(pl.sum("steps")).iter_rows())
    counts = [f"{by_label[name]:,} {name}" for name in aggregates.LABELS.values() if by_label.get(name)]
    steps = f": of their steps {listed(counts)}" if counts else ""
    chains, problems = format_count(found.totals.chains, "chain"), format_count(found.totals.problems, "problem")
    said = [f"{chains} of {problems} {'is' if found.totals.chains == 1 else 'are'} labelled{steps}."]
    if not found.totals.chains:
        said = ["Nothing is labelled yet."]
    if found.made_up:
        said.append(sentence(found.made_up))
    if found.run.unfinished:
        last = last_activity(found)
        said.append(f"{found.run.owed}{', and what is below is about the others' * bool(found.totals.chains)}.")
        said += [sentence(last)] if last else []
        said.append("Finish the run with `label`, then write this page again.")
    elif remarks:
        said.append(f"Read {'the remark' if remarks == 1 else f'the {remarks} remarks'} below before you use them.")
    elif not found.made_up:
        said.append(
            "No check of this page speaks against them: `export` them, or compare them with people's by `agree`."
        )
    return " ".join(said)


def _details(found: RunData) -> tuple[tuple[str, str], ...]:
    state = found.run.owed if found.run.unfinished else "finished" if found.run.units else "no row can be labelled"
    makers = found.makers.select("policy", "estimator", pl.col("label_rule").alias("label rule"))
    details = [
        ("state", state),
        *((each.name, ", ".join(dict.fromkeys(map(str, each)))) for each in makers if len(each)),
    ]
    edition, command = found.run.edition, found.run.edition_command
    if edition and command:
        details.append(("labels", f"edition {edition.number}, made by {command}"))
    if found.starts:
        first, last = found.starts[0], max(found.starts, key=lambda start: start.at)
        hosts = ", ".join(dict.fromkeys(start.host for start in found.starts))
        details += [
            ("when", f"{format_time(first.began_at)} to {format_time(last.at)} UTC"),
            ("starts", f"{len(found.starts)} on {hosts}"),
        ]
    return tuple(details)


def _figures(found: RunData) -> Iterator[Figure]:
    totals, whole = found.totals, aggregates.in_all(found.steps)
    by_outcome = dict(aggregates.outcome_counts(found.chains).iter_rows())
    outcomes = ", ".join(f"{by_outcome[name]:,} {name}" for name in aggregates.OUTCOMES if name in by_outcome)
    given = f"{found.given_outcomes:,} of them as the data say" if found.given_outcomes else ""
    promoted = f"{totals.promoted:,} promoted by grow" if totals.promoted else ""
    before_ends = whole.steps - whole.ends
    unfinished = f"; {found.unfinished.rollouts:,} more in unfinished units" if found.unfinished.rollouts else ""
    yield Figure(
        name="Rows",
        value=format_number(totals.rows),
        reading=f"{totals.used:,} used + {totals.rejected:,} rejected",
    )
    yield Figure(
        name="Chains",
        value=format_number(totals.chains),
        reading="; ".join(filter(None, [outcomes, given, promoted, format_count(totals.problems, "problem")])),
    )
    yield Figure(
        name="Labelled steps",
        value=format_number(whole.labelled),
        reading=f"of {before_ends:,}; {whole.uncertain:,} uncertain"
        + (f" ({format_percent(whole.uncertain / before_ends)})" if whole.uncertain else "")
        + (f"; not counted: {format_count(whole.ends, 'last step')} of chains" if whole.ends else ""),
    )
    if found.consensus:
        yield consensus_figure(found.consensus)
    yield Figure(
        name="Rollouts",
        value=format_number(totals.rollouts),
        reading=f"{format_verdict_counts(totals)}{unfinished}",
    )
    yield Figure(name="Tokens", value=format_number(totals.tokens), reading=_token_note(found, whole.labelled))
    means = (whole.mean_right, whole.mean_wrong)
    if aggregates.has_graded(found.steps) and means != (None, None):
        yield Figure(
            name="Mean value",
            value=" / ".join(map(number, means)),
            reading="of the steps of right / wrong chains, last steps left out",
        )
    if found.starts:
        spent = cost_of(found.starts)
        unpriced = f" (without {spent.unpriced:,} that have no price)" if spent.unpriced else ""
        yield Figure(
            name="Device hours",
            value=format_number(spent.device_hours, 2),
            reading=f"{format_count(len(found.starts), 'start')} of `label`"
            + ("" if spent.money is None else f"; cost {format_number(spent.money, 2)}{unpriced}"),
        )


def _token_note(found: RunData, labelled: int) -> str:
    totals = found.totals
    parts = [f"{totals.tokens / totals.chains:,.0f} per chain"] if totals.chains else []
    parts += [f"{totals.tokens / labelled:,.0f} per labelled step"] if labelled else []
    parts += [f"{totals.solution_tokens:,} more in sampled chains"] if totals.solution_tokens else []
    return "; ".join(parts)


def _values(found: RunData) -> Section | None:
    steps = found.steps
    graded = aggregates.has_graded(steps)
    valued, chains = (steps, found.chains) if graded else (steps.clear(), found.chains.clear())
    counted = aggregates.unlikely_outcomes(found.chains)
    unlikely = f" {unlikely_text(counted)}: lucky answers and slips at the end." if counted.chains else ""
    drawn = there(
        charts.values(aggregates.value_counts(valued), "value"),
        charts.by_position(aggregates.value_by_position(valued)),
        charts.drops(aggregates.drop_counts(chains)),
        charts.labels(aggregates.label_counts(steps)),
        charts.uncertain(aggregates.uncertain_by_position(steps)),
        charts.widths(aggregates.widths(steps)),
        charts.verdicts(aggregates.verdict_counts(found.log)),
        charts.truncation(aggregates.truncated_by_position(steps)),
    )
    if not drawn:
        return None
    return Section(
        anchor="values",
        heading="Values, labels and rollouts",
        intro="The value of a step is the share of the policy's continuations from this step that reach the correct answer. "
        "The values shown are best estimates, the column value of labels/. The outcome of a chain is right or wrong by the "
        "answer it states; where it states none, by what the data say of it. It is open where the answer cannot be graded, and "
        "where there is neither. The last step of a right or wrong chain takes its value and label from the outcome. It says "
        f"nothing about the policy, and is left out unless a figure says otherwise.{unlikely}",
        charts=drawn,
    )


def _planned(found: RunData, plan: Sequence[PlannedAmount]) -> Section | None:
    if not plan or found.plan is None:
        return None
    verdicts = {None: "", True: "inside", False: "outside"}
    rows = tuple(
        (
            each.name,
            verdicts[None if found.run.unfinished else each.inside],
            "-" if each.planned is None else format_number(each.planned.expected, each.digits),
            "-" if each.planned is None else format_range(each.planned.low, each.planned.high, each.digits),
            "-" if each.actual is None else format_number(each.actual, each.digits),
            number(each.ratio),
        )
        for each in plan
    )
    unfinished = " Committed rollouts of unfinished units are included." if found.unfinished.rollouts else ""
    made_at, so_far = found.plan.made_at.replace("T", " "), " so far" if found.run.unfinished else ""
    heads = ("amount", "in the range", "planned", "range", "actual", "actual / planned")
    return Section(
        anchor="planned",
        heading="Planned and actual",
        intro=f"The plan of {made_at}, and the run{so_far}. Tokens include those of sampled chains.{unfinished}"
        f"{_prices(found, found.plan)}",
        tables=(Table(heads=heads, rows=rows, words=2),),
    )


def _prices(found: RunData, plan: Forecast) -> str:
    """A sentence on the prices that money uses, if other prices than the plan's are used."""
    if plan.gpu_hour_price is None:
        return ""
    of_starts = {start.price for start in found.starts if start.price is not None} - {plan.gpu_hour_price}
    own = " and ".join(f"{price:,g}" for price in sorted(of_starts))
    count = cost_of(found.starts).unpriced
    used = f", starts of the run use {own}" if own else ""
    unpriced = f"; starts without a price ({count:,}) use the plan's" if count else ""
    return f" Money: the plan uses {plan.gpu_hour_price:,g} per device hour{used}{unpriced}." if own or count else ""


def _rejects(found: RunData) -> Section | None:
    if found.reject_counts.is_empty():
        return None
    counts = Table(
        heads=("reason", "rejected", "count"),
        rows=tuple(
            (reason.replace("_", " "), "single prefixes" if of_prefix else "whole rows", f"{count:,}")
            for of_prefix, reason, count in found.reject_counts.iter_rows()
        ),
        words=2,
    )
    total = found.reject_counts["rejects"].sum()
    shown = f"all {total:,}" if total <= EXAMPLES else f"the first {EXAMPLES:,} of {total:,}; rejects/*.parquet has all"
    columns = ("file", "line", "source_id", "reason", "detail")
    words = Table(
        caption=f"Details: {shown}.",
        heads=("file", "line", "id", "reason", "what to do"),
        rows=tuple(
            (file[:TEXT], f"{line:,}", (source or "")[:TEXT], reason.replace("_", " "), shortened(detail, TEXT))
            for file, line, source, reason, detail in found.rejects.select(*columns).iter_rows()
        ),
        words=5,
    )
    return Section(
        anchor="rejects",
        heading="Rejects",
        intro="Rows that could not be used, and single prefixes that could not be measured in chains that were labelled.",
        tables=(counts, words),
    )
