"""The page of judged scores, with the parts and the machinery of the report's page: one file that loads nothing."""

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt

from pipeline.analysis.agree.judge import ScoreAgreement
from pipeline.analysis.agree.judged import How, MethodResult
from pipeline.analysis.agree.score_tables import (
    classes_table,
    count_lines,
    curve_table,
    how,
    interval,
    lengths_table,
    lowest_table,
    methods_table,
    positions_table,
    remarks,
    shift_table,
    steps_table,
    subsets_table,
    thresholds_table,
)
from pipeline.analysis.agree.step_scores import name_of_lengths
from pipeline.analysis.report.page import (
    ACCENT,
    BY_LABEL,
    BY_OUTCOME,
    TEXT,
    Figure,
    Page,
    Section,
    Table,
    Tile,
    chart_of,
    diagonal,
    ends,
    figure_tile,
    foot,
    html,
    rows_of,
    scale,
    sentence,
)
from pipeline.analysis.settings import AgreeConfig
from pipeline.core.formatting import format_count, format_percent

KIND = "scores judged by people's labels"
_LARGE = 300
_MOST = 40
"""Subsets or classes that a chart shows at most."""
_BY_METHOD = {"chosen": ACCENT, "upper bound": BY_OUTCOME["right"], "best baseline": BY_OUTCOME["wrong"]}


def page_of(report: ScoreAgreement, config: AgreeConfig) -> bytes:
    """The content of the file."""
    main = report.main
    return html(
        Page(
            title=report.model or report.scores,
            kind=KIND,
            details=(
                ("scores", count_lines(report)[0].removeprefix("scores").strip()),
                ("human labels", count_lines(report)[1].removeprefix("humans").strip()),
                ("threshold", f"{main.name}, {how(report, main)}"),
            ),
            banners=tuple(map(sentence, remarks(report))),
            tiles=_tiles(report),
            sections=(
                _first_errors(report),
                Section(
                    anchor="position-of-errors",
                    heading="Where errors are put",
                    intro="Of chains in which people find an error: is the first one that the scores show too early, exact, "
                    "too late or missed? The last two columns are chains with a right answer in which people find an error.",
                    tables=(shift_table(report),),
                ),
                Section(
                    anchor="steps",
                    heading="Single steps",
                    intro="Steps with a human label. AUC: how often a good step scores above a bad one. Brier score and ECE "
                    "are 0 for scores that are the probability that a step is good, and sure of it.",
                    figures=_some(reliability_figure(report)),
                    tables=(steps_table(report),),
                ),
                Section(
                    anchor="bias",
                    heading="Position and length",
                    intro="A score that falls along the chain, or whose lowest value is often the last step's, may follow "
                    "position or outcome instead of errors. A last step with far more than its share of the lowest scores "
                    "can also be a step too many: a text that ended in its separator.",
                    figures=_some(position_figure(report), length_figure(report)),
                    tables=(lowest_table(report),),
                ),
                *_classes(report),
            ),
            foot=foot(
                "agree",
                {
                    "scores": config.scores, "data.layout": config.data.layout.value, "data.path": config.data.path,
                    "threshold": config.threshold, "dev": config.dev,
                },
            ),
        )
    )  # fmt: skip


def f1_figure(report: ScoreAgreement) -> Figure | None:
    """F1 of each subset: the chosen threshold, the upper bound and the best baseline."""
    names = [name for name, each in report.main.by_subset.items() if each.f1.value is not None]
    if not names or len(names) > _MOST:
        return None
    bound = next(method for method in report.methods if method.how is How.best)
    methods = {"chosen": report.main, "upper bound": bound, "best baseline": _best_baseline(report)}

    def cell(method: MethodResult, name: str) -> str:
        return interval(method.by_subset[name].f1) if name in method.by_subset else "-"

    rows = [
        {"subset": name, "method": label, **ends(method.by_subset[name].f1)}
        for label, method in methods.items()
        for name in names
        if name in method.by_subset and method.by_subset[name].f1.value is not None
    ]
    x = alt.X("subset:N", title=None, sort=None, axis=alt.Axis(labelAngle=0))
    y = alt.Y("value:Q", title="F1", scale=alt.Scale(domain=[0, 1]))
    base = alt.Chart(rows_of(rows)).encode(
        x=x,
        xOffset=alt.XOffset("method:N", sort=list(methods)),
        color=alt.Color("method:N", scale=scale(_BY_METHOD, set(_BY_METHOD)), sort=list(methods)),
    )
    rules = base.mark_rule(strokeWidth=2).encode(y=alt.Y("low:Q", title="F1"), y2="high:Q")
    points = base.mark_point(filled=True, size=70, opacity=1).encode(y=y)
    return Figure(
        title="F1 by subset",
        reading=f"Chosen: {report.main.name} ({how(report, report.main)}). Upper bound: the best threshold of each subset "
        "on itself, "
        f"which no user reaches. Best baseline: {_best_baseline(report).name}, without scores. Bars are "
        f"{format_percent(report.confidence)} intervals.",
        chart=chart_of(rules + points, height=_LARGE),
        numbers=Table(
            heads=("subset", *methods),
            rows=tuple(
                (name, *(cell(method, name) for method in methods.values())) for name in names
            ),
        ),
    )  # fmt: skip


def reliability_figure(report: ScoreAgreement) -> Figure | None:
    """Share of steps that people call good against mean score."""
    if not report.steps.bins:
        return None
    rows = [
        {"score": found.mean_value, "good": found.good, "low": found.good_low, "high": found.good_high}
        for found in report.steps.bins
    ]
    unit = alt.Scale(domain=[0, 1])
    base = alt.Chart(rows_of(rows)).encode(x=alt.X("score:Q", title="mean score of the bin", scale=unit))
    rules = base.mark_rule(color=ACCENT, strokeWidth=2).encode(y=alt.Y("low:Q", scale=unit), y2="high:Q")
    points = base.mark_point(filled=True, color=ACCENT, size=70, opacity=1).encode(
        y=alt.Y("good:Q", title="share of good steps", scale=unit)
    )
    return Figure(
        title="Are scores probabilities?",
        reading="Share of the steps in each bin of scores that people call good, with its interval. On the dashed line, "
        "scores are probabilities; below, they are too high. A model that was trained on rollouts predicts the end of the "
        "chain, which is another question.",
        chart=chart_of(diagonal() + rules + points, height=_LARGE),
        numbers=curve_table("score", report.steps.bins),
    )


def position_figure(report: ScoreAgreement) -> Figure | None:
    """Mean score of good and bad steps by part of the chain."""
    rows = [
        {"at": (found.low + found.high) / 2, "label": label, "score": mean}
        for found in report.by_position
        for label, mean in (("good", found.mean_good), ("bad", found.mean_bad))
        if mean is not None
    ]
    if not rows:
        return None
    x = alt.X("at:Q", title="position in the chain", scale=alt.Scale(domain=[0, 1]))
    chart = _lines(rows, x, "mean score", "label", BY_LABEL, {"good": [1, 0], "bad": [6, 3]})
    return Figure(
        title="Score by position",
        reading="Mean score of the steps that people call good and bad, by fifth of the chain. The distance between the "
        "lines is what the scores know.",
        chart=chart_of(chart),
        numbers=positions_table(report),
    )


def length_figure(report: ScoreAgreement) -> Figure | None:
    """Mean of the lowest score of a chain by its number of steps."""
    rows = [
        {"steps": name_of_lengths(found.first, found.last), "chains": kind, "score": mean}
        for found in report.by_length
        for kind, mean in (("all", found.lowest), ("without an error", found.lowest_correct))
        if mean is not None
    ]
    colours = {"all": TEXT, "without an error": BY_OUTCOME["right"]}
    x = alt.X("steps:O", title="steps of the chain", sort=None, axis=alt.Axis(labelAngle=0))
    chart = _lines(rows, x, "mean lowest score", "chains", colours, {"all": [6, 3], "without an error": [1, 0]})
    return Figure(
        title="Lowest score by length",
        reading="Mean of the lowest score of a chain, by its number of steps. One threshold for all lengths flags more of "
        "the long chains without an error where this line falls.",
        chart=chart_of(chart),
        numbers=lengths_table(report),
    )


def class_figure(report: ScoreAgreement) -> Figure | None:
    classes = report.classes
    if classes is None:
        return None
    rows = [
        {"class": name, **ends(each.prm_score)}
        for name, each in classes.by_class.items()
        if each.prm_score.value is not None
    ]
    if not 0 < len(rows) <= _MOST:
        return None
    base = alt.Chart(rows_of(rows)).encode(
        y=alt.Y("class:N", title=None, sort=None, axis=alt.Axis(labelFontSize=12, labelColor=TEXT, minExtent=120))
    )
    unit = alt.Scale(domain=[0, 1])
    rules = base.mark_rule(color=ACCENT, strokeWidth=2).encode(
        x=alt.X("low:Q", title="PRMScore", scale=unit), x2="high:Q"
    )
    points = base.mark_point(filled=True, color=ACCENT, size=70, opacity=1).encode(x=alt.X("value:Q", scale=unit))
    return Figure(
        title="PRMScore by class",
        reading="Mean of the F1 of good steps and the F1 of bad steps, as PRMBench defines it. A class without a bad step "
        "has its F1.",
        chart=chart_of(rules + points, height=60 + 26 * len(rows)),
        numbers=classes_table(report),
    )


def _lines(
    rows: list[dict[str, Any]],
    x: alt.X,
    title: str,
    kind: str,
    colours: Mapping[str, str],
    dashes: Mapping[str, Sequence[int]],
) -> alt.Chart:
    """A line of `score` over `x` for each value of `kind`, which differ in colour and dashes. `title`: of the scores."""
    chart: alt.Chart = (
        alt.Chart(rows_of(rows))
        .mark_line(strokeWidth=2.5, point=alt.OverlayMarkDef(filled=True, size=40))
        .encode(
            x=x,
            y=alt.Y("score:Q", title=title, scale=alt.Scale(domain=[0, 1])),
            color=alt.Color(f"{kind}:N", scale=scale(colours, {str(row[kind]) for row in rows})),
            strokeDash=alt.StrokeDash(
                f"{kind}:N", scale=alt.Scale(domain=list(dashes), range=list(dashes.values())), legend=None
            ),
        )
    )
    return chart


def _first_errors(report: ScoreAgreement) -> Section:
    tables = (subsets_table(report), methods_table(report), thresholds_table(report))
    return Section(
        anchor="first-errors",
        heading="First errors",
        intro="A step is called good if its score is above the threshold; the first other step is the error. Error accuracy: "
        "the same first error in chains where people find one. Correct accuracy: none in the others. F1 is their harmonic "
        "mean (ProcessBench, arXiv 2412.06559).",
        figures=_some(f1_figure(report)),
        tables=tuple(table for table in tables if table.rows),
    )


def _classes(report: ScoreAgreement) -> tuple[Section, ...]:
    if report.classes is None:
        return ()
    return (
        Section(
            anchor="classes",
            heading="Classes of errors",
            intro="PRMBench (arXiv 2501.03124): all steps count, also those after the first error. Dimensions are means "
            "of classes.",
            figures=_some(class_figure(report)),
            tables=(classes_table(report),),
        ),
    )


def _tiles(report: ScoreAgreement) -> tuple[Tile, ...]:
    main, steps, lowest = report.main, report.steps, report.lowest_on_last
    many = len(main.mean_of) > 1
    f1 = main.mean if many else main.total.f1
    tiles = [
        figure_tile("Mean F1" if many else "F1", f1, "not defined" if f1.low is None else None),
        figure_tile("AUC of steps", steps.auc),
        figure_tile("Brier score", steps.brier, "" if steps.ece is None else f"ECE {steps.ece:.2f}"),
        Tile(
            name="Lowest on last step",
            value="-" if lowest.share.value is None else format_percent(lowest.share.value),
            note="" if lowest.by_chance is None else f"{format_percent(lowest.by_chance)} by chance",
        ),
    ]
    if report.classes is not None:
        tiles.insert(1, figure_tile("PRMScore", report.classes.total.prm_score))
    right = main.right_answers
    if right.wrong_process:
        note = f"of {format_count(right.wrong_process, 'right answer')} with a wrong step found"
        tiles.append(Tile(name="Right answers", value=format_percent(right.found / right.wrong_process), note=note))
    return tuple(tiles)


def _best_baseline(report: ScoreAgreement) -> MethodResult:
    return max(
        (method for method in report.methods if method.how is How.baseline), key=lambda each: each.total.f1.value or 0.0
    )


def _some(*figures: Figure | None) -> tuple[Figure, ...]:
    return tuple(figure for figure in figures if figure is not None)
