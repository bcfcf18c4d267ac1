"""What stands in the page of one run, in which order. Pure."""

from collections.abc import Sequence
from datetime import UTC, datetime

import polars as pl

from pipeline.analysis.report import figures, sums
from pipeline.analysis.report.gathered import EXAMPLES, Gathered
from pipeline.analysis.report.page import Figure, Inset, Page, Section, Table, Tile
from pipeline.analysis.report.planned import Compared, course, device_hours, money, unpriced
from pipeline.analysis.report.reading import TEXT, cut, last_end, missing_costs
from pipeline.analysis.report.sums import by_value
from pipeline.core.forecast import Forecast
from pipeline.core.words import figure, percent, ranged

KIND = "report"


def page_of(
    found: Gathered, plan: Sequence[Compared], *, banners: Sequence[str], inset: Inset | None, foot: Sequence[str]
) -> Page:
    """The page; `banners` stand before its own."""
    sections = (_values(found), _rollouts(found), _planned(found, plan), _rejects(found))
    return Page(
        title=found.place,
        kind=KIND,
        facts=_facts(found),
        banners=(*banners, *_banners(found), *(f"{words}." for words in missing_costs(found))),
        tiles=tuple(_tiles(found)),
        sections=tuple(section for section in sections if section),
        inset=inset,
        foot=tuple(foot),
    )


def _facts(found: Gathered) -> tuple[tuple[str, str], ...]:
    def made(column: str) -> str:
        return ", ".join(dict.fromkeys(str(value) for value in found.makers[column])) or "-"

    facts = [
        ("state", _state(found)),
        ("policy", made("policy")),
        ("estimator", made("estimator")),
        ("label rule", made("label_rule")),
    ]
    if found.edition is not None:
        facts.append(("labels", f"edition {found.edition}, made from the run's rollouts later"))
    if found.starts:
        first, last = found.starts[0], max(found.starts, key=lambda start: start.at)
        hosts = ", ".join(dict.fromkeys(start.host for start in found.starts))
        count = len(found.starts)
        facts += [
            ("when", f"{moment(first.began_at)} to {moment(last.at)} UTC"),
            ("starts", f"{count} on {hosts}"),
        ]
    return tuple(facts)


def moment(seconds: float) -> str:
    """A point in time, given in seconds since 1970, as date and minute in UTC."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M")


def _state(found: Gathered) -> str:
    if not found.units:
        return "no row in work"
    if found.owed:
        return f"{found.owed:,} of {found.units:,} units are owed"
    return "finished"


def _banners(found: Gathered) -> list[str]:
    if not found.units:
        return [
            "No row of the input is in work: none of those read so far could be used (see Rejects), or `label` was stopped "
            "while it read them."
        ]
    if found.owed:
        return [
            f"{found.owed:,} of {found.units:,} units are owed: everything below is about the other "
            f"{found.units - found.owed:,}. {_sentence(last_end(found))}Finish the run with `label`, then write this "
            "page again."
        ]
    if not found.totals.chains:
        return ["There is no chain: every row was rejected, or none of the sampled chains was kept. See Rejects."]
    return []


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:].removesuffix('.')}. " if text else ""


def _tiles(found: Gathered) -> list[Tile]:
    totals, whole = found.totals, sums.in_all(found.steps)
    by_outcome = dict(sums.outcome_counts(found.chains).iter_rows())
    outcomes = ", ".join(f"{by_outcome[name]:,} {name}" for name in sums.OUTCOMES if name in by_outcome)
    parts = [
        (totals.correct, "correct"),
        (totals.incorrect, "incorrect"),
        (totals.no_answer, "without an answer"),
        (totals.ungraded, "ungraded"),
    ]
    before_ends = whole.steps - whole.ends
    aborted = [(totals.aborted, "stopped")] if totals.aborted else []
    unfinished = (
        f"; {found.unfinished.rollouts:,} more of units that are not whole" if found.unfinished.rollouts else ""
    )
    tiles = [
        Tile(name="Rows", value=figure(totals.rows), note=f"{totals.used:,} used + {totals.rejected:,} rejected"),
        Tile(
            name="Chains",
            value=figure(totals.chains),
            note=f"{outcomes}; {totals.problems:,} problems" if outcomes else f"{totals.problems:,} problems",
        ),
        Tile(
            name="Labelled steps",
            value=figure(whole.labelled),
            note=f"of {before_ends:,}; {whole.undecided:,} undecided"
            + (f" ({percent(whole.undecided / before_ends)})" if whole.undecided else "")
            + (f"; {whole.ends:,} ends of chains are not counted" if whole.ends else ""),
        ),
        Tile(
            name="Rollouts",
            value=figure(totals.rollouts),
            note=" + ".join(f"{count:,} {name}" for count, name in [*parts, *aborted]) + unfinished,
        ),
        Tile(name="Tokens", value=figure(totals.tokens), note=_token_note(found, whole.labelled)),
    ]
    if whole.mean_right is not None or whole.mean_wrong is not None:
        means = [("right", whole.mean_right), ("wrong", whole.mean_wrong)]
        tiles.append(
            Tile(
                name="Mean value",
                value=" / ".join("-" if mean is None else f"{mean:.2f}" for _, mean in means),
                note=f"of the steps of right / wrong chains, without their ends; {_shown(found)}",
            )
        )
    if (hours := device_hours(found.starts)) is not None:
        paid = money(found.starts)
        tiles.append(
            Tile(
                name="Device hours",
                value=figure(hours, 2),
                note=f"{len(found.starts):,} start{'s' if len(found.starts) > 1 else ''} of label"
                + ("" if paid is None else f"; {figure(paid, 2)} in money{_without_price(found)}"),
            )
        )
    return tiles


def _without_price(found: Gathered) -> str:
    count = unpriced(found.starts)
    return f" ({count:,} without a price)" if count else ""


def _token_note(found: Gathered, labelled: int) -> str:
    totals = found.totals
    parts = [f"{totals.tokens / totals.chains:,.0f} a chain"] if totals.chains else []
    parts += [f"{totals.tokens / labelled:,.0f} a labelled step"] if labelled else []
    parts += [f"{totals.solution_tokens:,} more in sampled chains"] if totals.solution_tokens else []
    return "; ".join(parts)


def _shown(found: Gathered) -> str:
    return "the unbiased estimate" if by_value(found.makers["estimator"]) else "posterior means"


def _values(found: Gathered) -> Section | None:
    steps = found.steps
    return _section(
        "values",
        "Values and labels",
        f"A value is the share of the policy's continuations that end right. Shown: {_shown(found)}. The end of a chain with "
        "an outcome has that for its value and label: it says nothing of the policy, and is left out unless said otherwise.",
        figures.values(sums.value_counts(steps), "value"),
        figures.by_place(sums.value_by_place(steps)),
        figures.drops(sums.drop_counts(found.chains)),
        figures.labels(sums.label_counts(steps)),
        figures.undecided(sums.undecided_by_place(steps)),
        figures.widths(sums.widths(steps)),
    )


def _rollouts(found: Gathered) -> Section | None:
    points = course(found.starts)
    return _section(
        "rollouts",
        "Rollouts",
        "What was sampled from the prefixes, and what became of it.",
        figures.verdicts(sums.verdict_counts(found.log)),
        figures.truncation(sums.truncated_by_place(found.steps)),
        figures.speed(points),
        figures.load(points),
    )


def _section(anchor: str, heading: str, intro: str, *charts: Figure | None) -> Section | None:
    there = tuple(chart for chart in charts if chart)
    return Section(anchor=anchor, heading=heading, intro=intro, figures=there) if there else None


def _planned(found: Gathered, plan: Sequence[Compared]) -> Section | None:
    if not plan or found.plan is None:
        return None
    rows = []
    for each in plan:
        planned = each.planned
        verdict = {None: "", True: "inside", False: "outside"}[None if found.owed else each.inside]
        rows.append(
            (
                each.name,
                verdict,
                "-" if planned is None else figure(planned.expected, each.digits),
                "-" if planned is None else ranged(planned.low, planned.high, each.digits),
                "-" if each.actual is None else figure(each.actual, each.digits),
                "-" if each.ratio is None else f"{each.ratio:.2f}",
            )
        )
    unfinished = ", with those of units that are not whole" if found.unfinished.rollouts else ""
    made_at = found.plan.made_at.replace("T", " ")
    heads = ("", "in the range", "planned", "range", "came to", "over planned")
    return Section(
        anchor="planned",
        heading="Planned and actual",
        intro=f"The plan of {made_at}, and what the run came to{' so far' if found.owed else ''}. Rollouts and tokens "
        f"are those of rollouts and of sampled chains together{unfinished}.{_prices(found, found.plan)}",
        tables=(Table(heads=heads, rows=tuple(rows), words=2),),
    )


def _prices(found: Gathered, plan: Forecast) -> str:
    """Which prices money goes by, where that is not the plan's alone."""
    if plan.gpu_hour_price is None:
        return ""
    of_starts = {start.price for start in found.starts if start.price is not None} - {plan.gpu_hour_price}
    own = " and ".join(f"{price:,g}" for price in sorted(of_starts))
    told = f" Money: the plan counts {plan.gpu_hour_price:,g} for a device hour"
    if own:
        told += f", starts of the run {own}"
    count = unpriced(found.starts)
    if count:
        told += f"; starts without a price ({count:,}) go by the plan's"
    return f"{told}." if own or count else ""


def _rejects(found: Gathered) -> Section | None:
    if found.reject_counts.is_empty():
        return None
    counts = Table(
        heads=("reason", "of", "how many"),
        rows=tuple(
            (reason.replace("_", " "), "single prefixes" if of_prefix else "whole rows", f"{count:,}")
            for of_prefix, reason, count in found.reject_counts.iter_rows()
        ),
        words=2,
    )
    total = found.reject_counts["rejects"].sum()
    shown = (
        f"all {total:,}" if total <= EXAMPLES else f"the first {EXAMPLES:,} of {total:,}; all are in rejects/*.parquet"
    )
    words = Table(
        caption=f"In words: {shown}.",
        heads=("file", "line", "id", "reason", "what to do"),
        rows=tuple(
            (
                row["file"],
                f"{row['line']:,}",
                row["source_id"] or "",
                row["reason"].replace("_", " "),
                cut(row["detail"]),
            )
            for row in found.rejects.with_columns(pl.col("file", "source_id").str.slice(0, TEXT)).iter_rows(named=True)
        ),
        words=5,
    )
    return Section(
        anchor="rejects",
        heading="Rejects",
        intro="Rows that could not be used, and single prefixes that could not be measured, though their chain is.",
        tables=(counts, words),
    )
