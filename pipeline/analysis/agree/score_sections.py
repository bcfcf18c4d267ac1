"""What is shown of judged scores: remarks, key figures, and sections of tables and charts."""

from collections.abc import Iterable, Iterator, Sequence

from pipeline.analysis.agree.classes import DIMENSIONS, ClassResult
from pipeline.analysis.agree.human import UNMODIFIED, Unusable
from pipeline.analysis.agree.judge import ScoreAgreement, Unmatched
from pipeline.analysis.agree.judged import How, MethodResult, SubsetResult
from pipeline.analysis.agree.rulings import FirstErrorScores, FirstErrorShift
from pipeline.analysis.agree.steps import Bin, LengthFigures, PositionFigures, StepFigures
from pipeline.analysis.settings import AgreeConfig
from pipeline.core.formatting import format_count, format_percent, format_span, printable
from pipeline.core.statistics import Interval
from pipeline.display.columns import cells, heads, table_of
from pipeline.display.document import (
    BY_LABEL,
    Axis,
    Chart,
    ChartKind,
    Colour,
    Figure,
    Line,
    Mark,
    Page,
    Scale,
    Section,
    Table,
    sentence,
    there,
)
from pipeline.display.numbers import count, interval, key_figure, number, percent, percents
from pipeline.display.page import foot

KIND = "scores judged by people's labels"
SHOWN_ROWS = 3
"""Rows of a kind that are listed, such as unusable ones. The JSON report lists more."""
SHOWN_SUBSETS = 4
"""With more subsets the table of methods shows their mean alone, so that it fits a terminal."""
_MOST = 40
"""Subsets or classes that a chart shows at most."""
_HOW = {
    How.fixed: "fixed",
    How.dev: "chosen on {dev}",
    How.best: "upper bound",
    How.baseline: "baseline",
}


def page_of(report: ScoreAgreement, config: AgreeConfig) -> Page:
    """The page, whose sections are also what the terminal shows."""
    main, baseline = report.main, _best_baseline(report)
    scores, humans = (line.partition(" ")[2].strip() for line in count_lines(report)[:2])
    given = {"scores": config.scores, "data.layout": config.data.layout.value, "data.path": config.data.path}
    return Page(
        title=report.model or report.scores,
        kind=KIND,
        verdict=(
            f"On {format_count(report.counts.judged, 'chain')} with human labels the scores find first errors with F1 "
            f"{interval(_f1(main))}; the best method that knows no scores, `{baseline.name}`, has {interval(_f1(baseline))}. A "
            f"good step scores above a bad one in {percent(report.steps.auc.value)} of pairs. {_advice(main, baseline)}"
        ),
        details=(("scores", scores), ("human labels", humans), ("threshold", f"{main.name}, {how(report, main)}")),
        notes=tuple(map(sentence, remarks(report))),
        figures=_figures(report),
        sections=sections(report),
        foot=foot("agree", {**given, "threshold": config.threshold, "dev": config.dev}),
    )


def lines(report: ScoreAgreement) -> list[str]:
    """What was compared, and what a reader must know of it."""
    return [*count_lines(report), *listed(report), *(f"note      {remark}" for remark in remarks(report))]


def sections(report: ScoreAgreement) -> tuple[Section, ...]:
    """The tables and charts, in order."""
    people, right, f1 = report.main.total, report.main.right_answers, _f1_chart(report)
    bound = _thresholds(report)
    subsets = report.steps_by_subset if len(report.steps_by_subset) > 1 else {}
    found = [
        Section(
            anchor="first-errors",
            heading="First errors",
            intro="A step is called good if its score is above the threshold; the first other step is the error. Error "
            "accuracy: the same first error in chains where people find one. Correct accuracy: none in the others. F1 is their "
            "harmonic mean (ProcessBench, arXiv 2412.06559).",
            charts=there(f1),
            tables=(_subsets(report), *(() if f1 else (_methods(report),)), *((bound,) if bound.rows else ())),
        ),
        Section(
            anchor="position-of-errors",
            heading="Where errors are put",
            intro=f"Of {format_count(people.erroneous, 'chain')} in which people find an error: is the first one that the "
            "scores show too early, exact, too late or missed? The last two columns: errors found, of "
            f"{right.wrong_process:,} that people find in {format_count(right.chains, 'chain')} with a right answer.",
            tables=(shift_table(((each.name, each) for each in report.methods), "right answer", "exactly"),),
        ),
        Section(
            anchor="steps",
            heading="Single steps",
            intro="Steps with a human label. AUC: how often a good step scores above a bad one. Brier score and ECE are 0 for "
            "scores that are the probability that a step is good, and sure of it. Brier skill is above 0 where scores say more "
            "than how many steps are good.",
            charts=there(_reliability_chart(report)),
            tables=(table_of("steps of", StepFigures, {**subsets, "all chains": report.steps}),),
        ),
        Section(
            anchor="bias",
            heading="Position and length",
            intro="A score that falls along the chain, or whose lowest value is often the last step's, may follow position or "
            "outcome instead of errors. A last step with far more than its share of the lowest scores can also be a step too "
            "many: a text that ended in its separator.",
            charts=there(_position_chart(report), _length_chart(report)),
            tables=(_lowest(report),),
        ),
    ]
    if report.classes is not None:
        found.append(
            Section(
                anchor="classes",
                heading="Classes of errors",
                intro="PRMBench (arXiv 2501.03124): all steps count, also those after the first error. Dimensions are means of "
                f"classes. A good step scores above {report.classes.threshold:.4g}.",
                charts=there(_class_chart(report)),
                tables=(_classes(report),),
            )
        )
    return tuple(found)


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


def remarks(report: ScoreAgreement) -> Iterator[str]:
    """What a reader must know before the figures."""
    counts, main = report.counts, report.main
    if report.calibrated:
        yield (
            "the scores are calibrated: they estimate V, the probability that a policy ends the chain right, not whether "
            "people call the step correct"
        )
    for reason in dict.fromkeys(report.undefined.values()):
        names = ", ".join(name for name, why in report.undefined.items() if why == reason)
        yield f"F1 is not defined for {names}: {reason}"
    if not report.main.by_subset and report.main.total.f1.value is None:
        yield "F1 is not defined: the chains are all with or all without an error"
    if report.dev is not None:
        best = main.by_subset[report.dev].best
        assert best is not None
        ties = f", and {format_count(best.others, 'other range')} with the same F1" if best.others else ""
        yield (
            f"the threshold is the middle of the best range on {report.dev}, {best.low:.4g} to {best.high:.4g}{ties}; the "
            f"mean is over {', '.join(main.mean_of) or 'no subset, because there is no other one'}"
        )
    if counts.cut:
        missed = report.cut_as_missed
        assert missed is not None
        yield (
            f"{format_count(counts.cut, 'chain')} with {format_count(counts.cut_steps, 'step')} without a score "
            f"{'is' if counts.cut == 1 else 'are'} in no figure below; F1 over all chains, if what was not scored counts as "
            f"missed: {interval(missed.f1)}"
        )
    if counts.open:
        yield f"the ratings of {format_count(counts.open, 'chain')} leave the first error open: left out of F1"
    yield from (
        f"{format_count(number, 'row')} {what if number == 1 else many}"
        for number, what, many in (
            (counts.contradicting, "has another label than an earlier one", "have other labels than earlier ones"),
            (counts.other_text, "has an id of the scores, but another text", "have ids of the scores, but other texts"),
            (counts.repeated_scores, "of scores repeats an earlier one", "of scores repeat earlier ones"),
        )
        if number
    )  # fmt: skip


def _subsets(report: ScoreAgreement) -> Table:
    """The main method by subset."""
    main = report.main
    named = {f"{name} (dev)" if name == report.dev else name: each for name, each in main.by_subset.items()}
    rows = [(name, *cells(each)) for name, each in {**named, "all chains": main.total}.items()]
    if len(main.by_subset) > 1:
        rows.append(("mean", "", "", "", "", interval(main.mean)))
    if main.mean_with_dev is not None:
        rows.append((f"mean with {report.dev}", "", "", "", "", interval(main.mean_with_dev)))
    return Table(heads=("subset", *heads(SubsetResult)), rows=tuple(rows))


def _methods(report: ScoreAgreement) -> Table:
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


def _thresholds(report: ScoreAgreement) -> Table:
    """The best threshold of each subset."""
    (bound,) = (method for method in report.methods if method.how is How.best)
    rows = [
        (name, f"{best.threshold:.4f}", f"{best.low:.4f} to {best.high:.4f}", f"{best.others:,}", interval(each.f1))
        for name, each in bound.by_subset.items()
        if (best := each.best) is not None
    ]
    return Table(heads=("subset", "best threshold", "range", "other ranges", "F1"), rows=tuple(rows))


def shift_table(named: Iterable[tuple[str, MethodResult | FirstErrorScores]], *ends: str) -> Table:
    """Where each of the `named` methods puts first errors. `ends`: heads of the columns of errors found in chains with a right
    answer: all of them, and those at the same step."""
    rows = []
    for name, each in named:
        right = each.right_answers
        found = (f"{count(errors)}/{right.wrong_process}" for errors in (right.found, right.found_exactly)[: len(ends)])
        rows.append((name, *cells(each.shift), *found))
    return Table(heads=("first error by", *heads(FirstErrorShift), *ends), rows=tuple(rows))


def curve_table(name: str, bins: Sequence[Bin]) -> Table:
    """The share of steps that people call good, by bin of scores or values. `name`: of the bins."""
    rows = tuple(
        (f"{found.low:.2f}-{found.high:.2f}", number(found.mean_value), f"{found.steps:,}", number(found.good),
         f"{found.good_low:.2f}-{found.good_high:.2f}")
        for found in bins
    )  # fmt: skip
    return Table(heads=(name, "mean", "steps", "good", "interval"), rows=rows)


def _lengths(report: ScoreAgreement) -> Table:
    rows = []
    for found in report.by_length:
        name = format_span(found.first, found.last)
        each = report.results_by_length.get(name)
        rows.append((name, *cells(found), *(("-",) * 3 if each is None else cells(each)[2:])))
    return Table(heads=("steps", *heads(LengthFigures), *heads(SubsetResult)[2:]), rows=tuple(rows))


def _lowest(report: ScoreAgreement) -> Table:
    """Where the lowest scores lie, and how scores go with position and length."""
    found, trend = report.lowest_on_last, report.trends
    position, length = (number(each, sign="+") for each in (trend.score_and_position, trend.lowest_and_length))
    rows = (
        (f"on the last step, of {format_count(found.chains, 'chain')} with at least 2 steps", percents(found.share)),
        ("... if every step were equally likely", percent(found.by_chance)),
        (f"... of the {found.correct_chains:,} chains without an error", percents(found.correct)),
        ("rank correlation of score and position, good steps", position),
        ("rank correlation of lowest score and number of steps, chains without an error", length),
    )
    return Table(heads=("lowest score", ""), rows=rows)


def _classes(report: ScoreAgreement) -> Table:
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


def _class_cells(found: ClassResult) -> tuple[str, ...]:
    good, bad = found.true_good + found.false_bad, found.true_bad + found.false_good
    figures = map(interval, (found.f1, found.negative_f1, found.prm_score))
    return (f"{found.chains:,}", f"{good:,}", f"{bad:,}", *figures)


def _few(name: str, rows: list[str], total: int) -> list[str]:
    more = [f"          ... and {total - SHOWN_ROWS:,} more"] if total > SHOWN_ROWS else []
    return [f"{name:<9} {row}" for row in rows[:SHOWN_ROWS]] + more


def _place(row: Unusable | Unmatched) -> str:
    return f"{row.location.file}, line {row.location.line}"


def _advice(main: MethodResult, baseline: MethodResult) -> str:
    own, without = _f1(main), _f1(baseline).value
    if own.value is None or without is None:
        return "F1 is not defined here: judge them on chains with and without an error."
    if own.low is None or own.low <= without:
        return "They are not surely better than that: do not choose or train by them."
    return "Choose among candidates by `select`, or make them probabilities by `calibrate`."


def _f1(method: MethodResult) -> Interval:
    """The mean over subsets, where there are several."""
    return method.mean if len(method.mean_of) > 1 else method.total.f1


def _best_baseline(report: ScoreAgreement) -> MethodResult:
    of_baselines = (each for each in report.methods if each.how is How.baseline)
    return max(of_baselines, key=lambda each: each.total.f1.value or 0.0)


def _f1_chart(report: ScoreAgreement) -> Chart | None:
    """F1 of each subset: the chosen threshold, the upper bound and the best baseline."""
    names = [name for name, each in report.main.by_subset.items() if each.f1.value is not None]
    if not names or len(names) > _MOST:
        return None
    (bound,) = (method for method in report.methods if method.how is How.best)
    baseline = _best_baseline(report)
    methods = {"chosen": report.main, "upper bound": bound, "best baseline": baseline}
    return Chart(
        title="F1 by the way the threshold is chosen, and of methods that know no scores",
        reading=f"Chosen: {report.main.name} ({how(report, report.main)}). Upper bound: the best threshold of each subset on "
        f"itself, which no user reaches. Best baseline: {baseline.name}, without scores. Bars are "
        f"{format_percent(report.confidence)} intervals.",
        kind=ChartKind.points,
        marks=tuple(
            Mark.of(name, method.by_subset[name].f1, group)
            for group, method in methods.items()
            for name in names
            if name in method.by_subset and method.by_subset[name].f1.value is not None
        ),
        x=Axis(scale=Scale.names),
        y=Axis(title="F1"),
        groups={"chosen": Colour.accent, "upper bound": Colour.right, "best baseline": Colour.wrong},
        numbers=_methods(report),
    )


def _reliability_chart(report: ScoreAgreement) -> Chart:
    """Share of steps that people call good against mean score."""
    bins = report.steps.bins
    return Chart(
        title="Share of steps that people call good, by score",
        reading="Are scores probabilities? The share of each bin of scores, with its interval. On the dashed line they are; "
        "below, scores are too high. A model that was trained on rollouts predicts the end of the chain, which is another "
        "question.",
        kind=ChartKind.points,
        marks=tuple(Mark(x=each.mean_value, y=each.good, low=each.good_low, high=each.good_high) for each in bins),
        x=Axis(title="mean score of the bin"),
        y=Axis(title="share of good steps"),
        line=Line.diagonal,
        numbers=curve_table("score", bins),
    )


def _position_chart(report: ScoreAgreement) -> Chart:
    """Mean score of good and bad steps by part of the chain."""
    parts = {f"{found.low:.1f}-{found.high:.1f}": found for found in report.by_position}
    return Chart(
        title="Score by position",
        reading="Mean score of the steps that people call good and bad, by fifth of the chain. The distance between the lines "
        "is what the scores know.",
        kind=ChartKind.lines,
        marks=tuple(
            Mark(x=(each.low + each.high) / 2, y=mean, group=label)
            for each in report.by_position
            for label, mean in (("good", each.mean_good), ("bad", each.mean_bad))
            if mean is not None
        ),
        x=Axis(title="position in the chain"),
        y=Axis(title="mean score"),
        groups={name: BY_LABEL[name] for name in ("good", "bad")},
        numbers=table_of("part of the chain", PositionFigures, parts),
    )


def _length_chart(report: ScoreAgreement) -> Chart:
    """Mean of the lowest score of a chain by its number of steps."""
    return Chart(
        title="Lowest score by length",
        reading="Mean of the lowest score of a chain, by its number of steps. One threshold for all lengths flags more of the "
        "long chains without an error where this line falls.",
        kind=ChartKind.lines,
        marks=tuple(
            Mark(x=format_span(each.first, each.last), y=mean, group=kind)
            for each in report.by_length
            for kind, mean in (("without an error", each.lowest_correct), ("all", each.lowest))
            if mean is not None
        ),
        x=Axis(title="steps of the chain", scale=Scale.names),
        y=Axis(title="mean lowest score"),
        groups={"without an error": Colour.right, "all": Colour.text},
        numbers=_lengths(report),
    )


def _class_chart(report: ScoreAgreement) -> Chart | None:
    assert report.classes is not None
    by_class = {
        name: each.prm_score for name, each in report.classes.by_class.items() if each.prm_score.value is not None
    }
    if len(by_class) > _MOST:
        return None
    return Chart(
        title="PRMScore by class",
        reading="Mean of the F1 of good steps and the F1 of bad steps, as PRMBench defines it. A class without a bad step has "
        "its F1.",
        kind=ChartKind.points,
        marks=tuple(Mark.of(name, score) for name, score in by_class.items()),
        x=Axis(scale=Scale.names),
        y=Axis(title="PRMScore"),
        sideways=True,
        numbers=_classes(report),
    )


def _figures(report: ScoreAgreement) -> tuple[Figure, ...]:
    main, steps, lowest = report.main, report.steps, report.lowest_on_last
    many, f1 = len(main.mean_of) > 1, _f1(main)
    chance = "" if lowest.by_chance is None else f"{format_percent(lowest.by_chance)} by chance"
    figures = [
        key_figure("Mean F1" if many else "F1", f1, "not defined" if f1.low is None else None),
        key_figure("AUC of steps", steps.auc),
        key_figure("Brier score", steps.brier, "" if steps.ece is None else f"ECE {steps.ece:.2f}"),
        Figure(name="Lowest on last step", value=percent(lowest.share.value), reading=chance),
    ]
    if report.classes is not None:
        figures.insert(1, key_figure("PRMScore", report.classes.total.prm_score))
    right = main.right_answers
    if right.wrong_process:
        reading = f"of {format_count(right.wrong_process, 'right answer')} with a wrong step found"
        figures.append(Figure(name="Right answers", value=percent(right.found / right.wrong_process), reading=reading))
    return tuple(figures)
