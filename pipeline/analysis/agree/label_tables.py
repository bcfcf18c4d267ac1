"""What is shown of the agreement of labels with people: lines of counts, and sections of tables."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from pipeline.analysis.agree.run import Agreement, MethodComparison
from pipeline.analysis.agree.score_sections import SHOWN_SUBSETS, curve_table, shift_table
from pipeline.analysis.agree.steps import StepLabels
from pipeline.analysis.agree.verifiers import VerifierAgreement
from pipeline.core.formatting import format_count, format_percent
from pipeline.core.statistics import Interval
from pipeline.display.columns import table_of
from pipeline.display.document import Table
from pipeline.display.numbers import NONE, count, interval, number, reach

SHOWN_UNUSABLE = 5


def tables(report: Agreement) -> Iterator[Table]:
    """The tables of first errors, their position, single steps and the reliability curve."""
    people = report.rulings[0].first_errors.total
    right = report.rulings[0].first_errors.right_answers
    if people.erroneous or people.correct:
        title = (
            f"First error: humans find one in {format_count(people.erroneous, 'chain')} and none in {people.correct:,}"
        )
        yield _f1_table(report.rulings, title)
        if report.kept:
            kept = report.kept[0].first_errors.total
            title = (
                f"The same of the {format_count(kept.erroneous + kept.correct, 'chain')} that consensus keeps: "
                f"{kept.erroneous:,} with an error, {kept.correct:,} without"
            )
            yield _f1_table(report.kept, title)
        title = (
            f"Position of the first error in {format_count(people.erroneous, 'chain')}; 'correct answer': errors found, of "
            f"{right.wrong_process:,} that humans find in {format_count(right.chains, 'chain')} with a correct answer"
        )
        shifts = ((each.name, each.first_errors) for each in _rows(report.rulings))
        yield replace(shift_table(shifts, "correct answer"), title=title)
    steps = {each.name: each.steps for each in _rows(report.rulings) if each.steps is not None}
    title = "Single steps, without the steps after the first human error"
    yield table_of("steps by", StepLabels, steps, title=title)
    if report.verifiers:
        yield _verifier_table(report.verifiers)
    curve = report.reliability
    caption = (
        f"AUC {interval(curve.auc)}, {interval(curve.sampled_auc)} without last steps valued by their own answer; expected "
        f"calibration error (ECE) {number(curve.ece)}"
    )
    title = f"Share of steps that humans call good, by {report.made.soft}"
    yield replace(curve_table("value", curve.bins), title=title, caption=caption)


def count_lines(report: Agreement) -> Iterator[str]:
    counts, made = report.counts, report.made
    yield (
        f"humans    {report.data}: {format_count(counts.rows, 'row')} = {counts.compared:,} compared "
        f"+ {counts.unmatched:,} not in the run + {counts.repeated:,} repeated + {counts.unusable:,} unusable"
    )
    yield (
        f"labels    {report.run_dir}: {format_count(counts.labelled, 'chain')}, "
        f"{counts.not_by_people:,} without a human label; {made.estimator}, {made.policy}"
    )
    kept = f"consensus keeps {counts.kept or 0:,} of {counts.compared:,} compared chains"
    contradicting = format_count(counts.contradicting, "repeated row")
    remarks = (
        (made.capped, made.capped),
        (counts.kept is not None, f"{kept}; the others are left out, and uncertain below"),
        (report.owed_units, f"the run is not finished; unfinished units: {report.owed_units:,}"),
        (counts.contradicting, f"another label than the first row, which counts: {contradicting}"),
        (counts.other_text, f"an id that is in the run, but another text: {format_count(counts.other_text, 'row')}"),
        (counts.open, f"ratings that leave the first error open: {format_count(counts.open, 'chain')}"),
    )
    yield from (f"          {remark}" for holds, remark in remarks if holds)
    for row in report.unusable[:SHOWN_UNUSABLE]:
        yield f"unusable  {row.location.file}, line {row.location.line}: {row.detail}"
    if counts.unusable > SHOWN_UNUSABLE:
        yield f"          ... and {counts.unusable - SHOWN_UNUSABLE:,} more"


def _rows(rulings: Sequence[MethodComparison]) -> list[MethodComparison]:
    """The methods. Neighbouring thresholds with equal results share one row."""
    rows: list[MethodComparison] = []
    for ruling in rulings:
        before = rows[-1] if rows else None
        if before and before.threshold is not None and _figures(before) == _figures(ruling):
            rows[-1] = replace(before, name=f"{before.name.partition(' to ')[0]} to {ruling.threshold:g}")
        else:
            rows.append(ruling)
    return rows


def _figures(ruling: MethodComparison) -> tuple[object, ...]:
    return ruling.threshold is None, ruling.first_errors, ruling.steps


def _f1_table(rulings: Sequence[MethodComparison], title: str) -> Table:
    subsets = list(rulings[0].first_errors.by_subset)
    shown = subsets if 1 < len(subsets) <= SHOWN_SUBSETS else []
    rows = []
    for ruling in _rows(rulings):
        errors = ruling.first_errors
        total = errors.total
        rows.append(
            (
                ruling.name,
                number(total.f1.value),
                reach(total.f1) or NONE,
                number(total.found),
                number(total.cleared),
                *(number(errors.by_subset[name].f1.value) for name in shown),
                *([number(errors.mean.value if errors.mean else None)] if shown else []),
                count(errors.uncertain),
            )
        )
    heads = ("first error by", "F1", "interval", "found", "cleared", *shown, *(["mean"] if shown else []), "uncertain")
    return Table(title=title, heads=heads, rows=tuple(rows))


def _verifier_table(verifiers: Sequence[VerifierAgreement]) -> Table:
    rows = tuple(
        (
            found.name,
            f"{found.refuted:,}",
            f"{found.refuted_bad:,}",
            number(found.precision),
            reach(Interval(value=found.precision, low=found.precision_low, high=found.precision_high)) or NONE,
            number(found.recall),
            f"{found.holds:,}",
            f"{found.holds_bad:,} ({format_percent(found.holds_bad / found.holds if found.holds else 0.0)})",
        )
        for found in verifiers
    )
    heads = ("verifier", "refuted", "bad of these", "precision", "interval", "recall", "hold", "bad of these")
    one = verifiers[0]
    title = (
        f"Verifiers: of {format_count(one.steps, 'step')} with a human label {one.bad:,} are bad "
        f"({format_percent(one.bad / one.steps if one.steps else 0.0)})"
    )
    return Table(title=title, heads=heads, rows=rows)
