"""Judged scores as tables of texts and lines of remarks, for the page and for the terminal."""

from collections.abc import Iterator, Sequence

from rich.console import Console

from pipeline.analysis.agree.classes import DIMENSIONS, ClassResult
from pipeline.analysis.agree.human import UNMODIFIED, Unusable
from pipeline.analysis.agree.judge import ScoreAgreement, Unmatched
from pipeline.analysis.agree.judged import How, MethodResult, SubsetResult
from pipeline.analysis.agree.rulings import Bin
from pipeline.analysis.agree.step_scores import StepFigures, name_of_lengths
from pipeline.analysis.report.page import Table
from pipeline.analysis.report.rich_tables import print_tables, widen
from pipeline.analysis.report.terminal import print_lines
from pipeline.core.formatting import format_count, format_percent, printable
from pipeline.core.statistics import Interval

SHOWN_ROWS = 3
"""Rows of a kind that are listed, such as unusable ones. The JSON report lists more."""
SHOWN_SUBSETS = 4
"""With more subsets the table of methods shows their mean alone, so that it fits a terminal."""
_HOW = {
    How.fixed: "fixed",
    How.dev: "chosen on {dev}",
    How.best: "upper bound",
    How.baseline: "baseline",
}


def print_scores(console: Console, report: ScoreAgreement) -> None:
    """Print what was compared, then the tables."""
    widen(console)
    print_lines(console, [*count_lines(report), *listed(report)])
    print_lines(console, [f"note      {line}" for line in remarks(report)])
    print_tables(console, titled_tables(report))


def titled_tables(report: ScoreAgreement) -> Iterator[tuple[str, Table]]:
    """The tables of the terminal, in order."""
    people = report.main.total
    right = report.main.right_answers
    yield f"First errors, {report.main.name} ({how(report, report.main)})", subsets_table(report)
    yield "F1 by the way the threshold is chosen, and of methods that know no scores", methods_table(report)
    yield (
        f"Position of the first error in {format_count(people.erroneous, 'chain')}; 'right answer': errors found, of "
        f"{right.wrong_process:,} in {format_count(right.chains, 'chain')} with a right answer",
        shift_table(report),
    )
    yield "Single steps with a human label", steps_table(report)
    yield "Share of steps that people call good, by score", curve_table("score", report.steps.bins)
    yield "Scores by position in the chain", positions_table(report)
    yield f"Scores by length of the chain, {report.main.name}", lengths_table(report)
    yield "Where the lowest score of a chain lies", lowest_table(report)
    if report.classes is not None:
        yield f"Classes of errors, score > {report.classes.threshold:.4g}", classes_table(report)


def count_lines(report: ScoreAgreement) -> list[str]:
    """What was read and what of it is compared."""
    counts = report.counts
    files = "" if len(report.files) == 1 else f" ({len(report.files):,} files)"
    lines = [
        f"scores    {report.scores}{files}: {format_count(counts.scored, 'chain')}, {counts.not_by_people:,} without a human "
        f"label; by {report.model or 'a model without a name'}",
        f"humans    {report.data}: {format_count(counts.rows, 'row')} = {counts.judged:,} judged + {counts.cut:,} with missing "
        f"scores + {counts.unmatched:,} not in the scores + {counts.repeated:,} repeated + {counts.unusable:,} unusable",
    ]
    if counts.originals:
        lines.append(
            f"          original processes: {counts.originals_judged:,} of {counts.originals:,} are scored, as class "
            f"{UNMODIFIED}"
        )
    return lines


def listed(report: ScoreAgreement) -> list[str]:
    """The first rows that are unusable or not in the other file."""
    counts = report.counts
    return [
        *_few("unusable", [f"{_place(row)}: {row.detail}" for row in report.unusable], counts.unusable),
        *_few("unscored", [f"{_place(row)}: {printable(row.problem)}" for row in report.unmatched], counts.unmatched),
    ]


def remarks(report: ScoreAgreement) -> list[str]:
    """What a reader must know before the figures."""
    counts, main = report.counts, report.main
    lines = []
    if report.calibrated:
        lines.append(
            "the scores are calibrated: they estimate V, the probability that a policy ends the chain right, not whether "
            "people call the step correct"
        )
    for reason in dict.fromkeys(report.undefined.values()):
        names = ", ".join(name for name, why in report.undefined.items() if why == reason)
        lines.append(f"F1 is not defined for {names}: {reason}")
    if not report.main.by_subset and report.main.total.f1.value is None:
        lines.append("F1 is not defined: the chains are all with or all without an error")
    if report.dev is not None:
        best = main.by_subset[report.dev].best
        assert best is not None
        ties = f", and {format_count(best.others, 'other range')} with the same F1" if best.others else ""
        lines.append(
            f"the threshold is the middle of the best range on {report.dev}, {best.low:.4g} to {best.high:.4g}{ties}; the "
            f"mean is over {', '.join(main.mean_of) or 'no subset, because there is no other one'}"
        )
    if counts.cut:
        missed = report.cut_as_missed
        assert missed is not None
        lines.append(
            f"{format_count(counts.cut, 'chain')} with {format_count(counts.cut_steps, 'step')} without a score "
            f"{'is' if counts.cut == 1 else 'are'} in no figure below; F1 over all chains, if what was not scored counts as "
            f"missed: {interval(missed.f1)}"
        )
    if counts.open:
        lines.append(f"the ratings of {format_count(counts.open, 'chain')} leave the first error open: left out of F1")
    lines.extend(
        f"{format_count(number, 'row')} {what if number == 1 else many}"
        for number, what, many in (
            (counts.contradicting, "has another label than an earlier one", "have other labels than earlier ones"),
            (counts.other_text, "has an id of the scores, but another text", "have ids of the scores, but other texts"),
            (counts.repeated_scores, "of scores repeats an earlier one", "of scores repeat earlier ones"),
        )
        if number
    )  # fmt: skip
    return lines


def subsets_table(report: ScoreAgreement) -> Table:
    """The main method by subset."""
    main = report.main
    rows = [_subset_row(name, each, dev=name == report.dev) for name, each in main.by_subset.items()]
    rows.append(_subset_row("all chains", main.total))
    if len(main.by_subset) > 1:
        rows.append(("mean", "", "", "", "", interval(main.mean)))
    if main.mean_with_dev is not None:
        rows.append((f"mean with {report.dev}", "", "", "", "", interval(main.mean_with_dev)))
    heads = ("subset", "with error", "without", "error accuracy", "correct accuracy", "F1")
    return Table(heads=heads, rows=tuple(rows))


def methods_table(report: ScoreAgreement) -> Table:
    """All methods, with the F1 of each subset if there are few."""
    names = list(report.main.by_subset)
    shown = names if 1 < len(names) <= SHOWN_SUBSETS else []
    many = len(names) > 1

    def row(method: MethodResult) -> tuple[str, ...]:
        by_subset, dev = method.by_subset, report.dev if method.how is How.dev else None
        each = (
            number(by_subset[name].f1.value if name in by_subset else None) + ("*" if name == dev else "")
            for name in shown
        )
        return (
            method.name,
            how(report, method),
            # Thresholds that are best on each subset bound no figure of all chains together.
            "-" if method.how is How.best and many else interval(method.total.f1),
            *each,
            *([interval(method.mean)] if many else []),
            count(method.uncertain),
        )

    return Table(
        heads=("first error by", "threshold", "F1 of all", *shown, *(["mean"] if many else []), "uncertain"),
        rows=tuple(map(row, report.methods)),
        caption="* the threshold was chosen on this subset; all means leave it out" if report.dev in shown else "",
        words=2,
    )


def thresholds_table(report: ScoreAgreement) -> Table:
    """The best threshold of each subset."""
    (bound,) = (method for method in report.methods if method.how is How.best)
    rows = [
        (name, f"{best.threshold:.4f}", f"{best.low:.4f} to {best.high:.4f}", f"{best.others:,}", interval(each.f1))
        for name, each in bound.by_subset.items()
        if (best := each.best) is not None
    ]
    return Table(heads=("subset", "best threshold", "range", "other ranges", "F1"), rows=tuple(rows))


def shift_table(report: ScoreAgreement) -> Table:
    rows = []
    for method in report.methods:
        shift, right = method.shift, method.right_answers
        rows.append(
            (
                method.name,
                *map(count, (shift.early, shift.exact, shift.late, shift.missed, shift.uncertain)),
                "-" if shift.mean is None else f"{shift.mean:+.2f}",
                f"{count(right.found)}/{right.wrong_process}",
                f"{count(right.found_exactly)}/{right.wrong_process}",
            )
        )
    heads = ("first error by", "early", "exact", "late", "missed", "uncertain", "mean shift", "right answer", "exactly")
    return Table(heads=heads, rows=tuple(rows))


def steps_table(report: ScoreAgreement) -> Table:
    named = report.steps_by_subset if len(report.steps_by_subset) > 1 else {}
    rows = [_steps_row(name, each) for name, each in named.items()]
    return Table(
        heads=("steps of", "good", "bad", "AUC", "Brier score", "ECE"),
        rows=(*rows, _steps_row("all chains", report.steps)),
    )


def curve_table(name: str, bins: Sequence[Bin]) -> Table:
    """The share of steps that people call good, by bin of scores or values. `name`: of the bins."""
    rows = tuple(
        (f"{found.low:.2f}-{found.high:.2f}", number(found.mean_value), f"{found.steps:,}", number(found.good),
         f"{found.good_low:.2f}-{found.good_high:.2f}")
        for found in bins
    )  # fmt: skip
    return Table(heads=(name, "mean", "steps", "good", "interval"), rows=rows)


def positions_table(report: ScoreAgreement) -> Table:
    rows = tuple(
        (
            f"{found.low:.1f}-{found.high:.1f}",
            f"{found.steps:,}",
            number(found.mean),
            number(found.mean_good),
            number(found.mean_bad),
            f"{found.good:,}",
            f"{found.bad:,}",
            interval(found.auc),
        )
        for found in report.by_position
    )
    heads = ("part of the chain", "steps", "mean", "mean of good", "mean of bad", "good", "bad", "AUC")
    return Table(heads=heads, rows=rows)


def lengths_table(report: ScoreAgreement) -> Table:
    rows = []
    for found in report.by_length:
        name = name_of_lengths(found.first, found.last)
        each = report.results_by_length.get(name)
        rows.append(
            (
                name,
                f"{found.chains:,}",
                number(found.mean),
                number(found.lowest),
                number(found.lowest_correct),
                *(("-",) * 3 if each is None else _accuracies(each)),
            )
        )
    heads = (
        "steps", "chains", "mean", "mean lowest", "... without error", "error accuracy", "correct accuracy", "F1",
    )  # fmt: skip
    return Table(heads=heads, rows=tuple(rows))


def lowest_table(report: ScoreAgreement) -> Table:
    """Where the lowest scores lie, and how scores go with position and length."""
    found, trend = report.lowest_on_last, report.trends
    chance = "-" if found.by_chance is None else format_percent(found.by_chance)
    rows = (
        (f"on the last step, of {format_count(found.chains, 'chain')} with at least 2 steps", _percents(found.share)),
        ("... if every step were equally likely", chance),
        (f"... of the {found.correct_chains:,} chains without an error", _percents(found.correct)),
        ("rank correlation of score and position, good steps", _signed(trend.score_and_position)),
        (
            "rank correlation of lowest score and number of steps, chains without an error",
            _signed(trend.lowest_and_length),
        ),
    )
    return Table(heads=("lowest score", ""), rows=rows)


def classes_table(report: ScoreAgreement) -> Table:
    """PRMBench's classes, the dimensions that they form, and the total."""
    classes = report.classes
    assert classes is not None
    dimension_of = {name: dimension for dimension, names in DIMENSIONS.items() for name in names}
    rows = [(name, dimension_of.get(name, "-"), *_class_cells(each)) for name, each in classes.by_class.items()]
    rows.extend(
        ("mean of classes", name, "", "", "", "", "", number(score))
        for name, score in classes.dimensions.items()
        if score is not None
    )
    rows.append((f"all but {UNMODIFIED}", "", *_class_cells(classes.total)))
    return Table(
        heads=("class", "dimension", "chains", "good", "bad", "F1", "negative F1", "PRMScore"),
        rows=tuple(rows),
        words=2,
    )


def how(report: ScoreAgreement, method: MethodResult) -> str:
    """How the threshold of a method was chosen, in words."""
    return _HOW[method.how].format(dev=report.dev)


def number(value: float | None) -> str:
    """A figure with two decimals; a dash without one."""
    return "-" if value is None else f"{value:.2f}"


def interval(figure: Interval) -> str:
    """A figure with its interval, such as `0.52 (0.44-0.60)`."""
    return number(figure.value) + ("" if figure.low is None else f" ({figure.low:.2f}-{figure.high:.2f})")


def count(number: float) -> str:
    """A count; an expected value that is not whole has one decimal."""
    return f"{number:,.0f}" if abs(number - round(number)) < 1e-9 else f"{number:,.1f}"


def _subset_row(name: str, found: SubsetResult, *, dev: bool = False) -> tuple[str, ...]:
    return (f"{name} (dev)" if dev else name, f"{found.erroneous:,}", f"{found.correct:,}", *_accuracies(found))


def _accuracies(found: SubsetResult) -> tuple[str, str, str]:
    return interval(found.error_accuracy), interval(found.correct_accuracy), interval(found.f1)


def _steps_row(name: str, found: StepFigures) -> tuple[str, ...]:
    figures = (interval(found.auc), interval(found.brier), number(found.ece))
    return (name, f"{found.good:,}", f"{found.bad:,}", *figures)


def _class_cells(found: ClassResult) -> tuple[str, ...]:
    good, bad = found.true_good + found.false_bad, found.true_bad + found.false_good
    figures = map(interval, (found.f1, found.negative_f1, found.prm_score))
    return (f"{found.chains:,}", f"{good:,}", f"{bad:,}", *figures)


def _few(name: str, rows: list[str], total: int) -> list[str]:
    more = [f"          ... and {total - SHOWN_ROWS:,} more"] if total > SHOWN_ROWS else []
    return [f"{name:<9} {row}" for row in rows[:SHOWN_ROWS]] + more


def _place(row: Unusable | Unmatched) -> str:
    return f"{row.location.file}, line {row.location.line}"


def _signed(value: float | None) -> str:
    return "-" if value is None else f"{value:{'+' if round(value, 2) else ''}z.2f}"


def _percents(figure: Interval) -> str:
    if figure.value is None:
        return "-"
    reach = "" if figure.low is None or figure.high is None else f" ({100 * figure.low:.0f}-{100 * figure.high:.0f})"
    return format_percent(figure.value) + reach
