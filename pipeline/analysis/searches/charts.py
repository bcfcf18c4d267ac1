"""The charts of the page of a run of `search`, each with a text on how to read it and with its numbers. A function returns None
if there is nothing to show."""

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

import altair as alt
import polars as pl

from pipeline.analysis.report.aggregates import OUTCOMES
from pipeline.analysis.report.figures import histogram
from pipeline.analysis.report.page import ACCENT, BY_OUTCOME, TEXT, Figure, Table, draw_svg, rows_of, scale
from pipeline.analysis.searches.coverage import Coverage
from pipeline.analysis.searches.curves import CurvePoint
from pipeline.analysis.searches.hacking import ScoreAgainstOutcome, ScorePoint
from pipeline.core.formatting import format_percent
from pipeline.core.statistics import Interval

BINS = 20
"""Bins of a histogram of confidences or tokens."""
_UNIT = alt.Scale(domain=[0, 1])
_CURVES = {"best of n": TEXT, "weighted vote": BY_OUTCOME["right"], "majority vote": BY_OUTCOME["wrong"]}
_SCORE_COLOURS = {"accuracy": BY_OUTCOME["right"], "mean score": BY_OUTCOME["wrong"]}
_DASHES = ([1, 0], [6, 3], [2, 2])
"""Dashes of lines, because colour alone does not distinguish them for every reader."""


_LEGEND = alt.Legend(symbolType="stroke", symbolSize=600, symbolOpacity=1, symbolStrokeWidth=2.5)
"""Its lines are long enough to show their dashes, and look like those of the chart, not like the intervals."""
_TITLED = alt.Axis(titlePadding=9)
_BESIDE = 10
"""Pixels between the axis and the first point, whose interval would otherwise cover the axis's labels."""


def confidences(searches: pl.DataFrame) -> Figure | None:
    """How sure the method was of its choices, by their outcome. `searches`: see `run_data`."""
    counts = confidence_counts(searches)
    return histogram(
        counts,
        title="Confidence of choices",
        reading="Problems by the confidence of their choice and by its outcome. A method that knows when it is right has its "
        "wrong choices at the left. Open: the right answer is not known, or the chosen one cannot be graded.",
        axis="confidence",
        what="problems",
    )


def confidence_counts(searches: pl.DataFrame) -> pl.DataFrame:
    """Problems per bin of their confidence: `low`, `high`, one column per outcome, `all`. Bins are [low, high), the last one is
    closed. Problems without a confidence are left out."""
    place = (pl.col("confidence") * BINS + 1e-9).floor().clip(0, BINS - 1).cast(pl.Int64)
    named = pl.when("outcome").then(pl.lit("right")).when(~pl.col("outcome")).then(pl.lit("wrong"))
    known = searches.drop_nulls("confidence").select(bin=place, outcome=named.otherwise(pl.lit("open")))
    counted = known.group_by("bin").agg(
        *((pl.col("outcome") == name).sum().cast(pl.Int64).alias(name) for name in OUTCOMES),
        all=pl.len().cast(pl.Int64),
    )
    bins = pl.DataFrame({"bin": range(BINS)}, schema={"bin": pl.Int64})
    return (
        bins.join(counted, on="bin", how="left")
        .fill_null(0)
        .sort("bin")
        .with_columns(low=pl.col("bin") / BINS, high=(pl.col("bin") + 1) / BINS)
        .select("low", "high", *OUTCOMES, "all")
    )


def coverage_curve(found: Coverage) -> Figure | None:
    """Accuracy of the most confident choices."""
    if not found.points:
        return None
    rows = [{"coverage": point.coverage, **_ends(point.accuracy)} for point in found.points]
    x = alt.X("coverage:Q", title="share of the graded choices, the most confident ones", axis=_percents(), scale=_UNIT)
    base = alt.Chart(rows_of(rows)).encode(x=x)
    band = base.mark_rule(strokeWidth=2, color=ACCENT).encode(
        y=alt.Y("low:Q", title="accuracy", scale=_UNIT, axis=_TITLED), y2="high:Q"
    )
    line = base.mark_line(
        strokeWidth=2, color=ACCENT, point=alt.OverlayMarkDef(filled=True, size=60, color=ACCENT)
    ).encode(y=alt.Y("value:Q", title="accuracy", scale=_UNIT, axis=_TITLED))
    return Figure(
        title="Accuracy by coverage",
        reading="Accuracy of the choices with the most confidence. A line that rises to the left means that confidence says "
        "which choices to trust, and which problems to leave to people. Bars are 95 % intervals over problems.",
        svg=draw_svg(band + line),
        numbers=Table(
            heads=("coverage", "choices", "accuracy", "interval", "confidence from"),
            rows=tuple(
                (
                    format_percent(point.coverage),
                    f"{point.used:,}",
                    _three(point.accuracy.value),
                    between(point.accuracy),
                    _three(point.least),
                )
                for point in found.points
            ),
            words=0,
        ),
    )


def curves(points: Sequence[CurvePoint]) -> Figure | None:
    """Accuracy of choices among n chains."""
    if len(points) < 2:
        return None
    by_name: dict[str, list[Interval | None]] = {
        "best of n": [point.best for point in points],
        "weighted vote": [point.weighted for point in points],
        "majority vote": [point.majority for point in points],
    }
    rows: list[dict[str, Any]] = [
        {"n": point.n, "how": name, **_ends(figure)}
        for name, found in by_name.items()
        for point, figure in zip(points, found, strict=True)
        if figure is not None and figure.value is not None
    ]
    if not rows:
        return None
    return Figure(
        title="Accuracy by number of chains",
        reading="What n of this run's chains achieve, on average over all choices of n of them. A curve that falls means that "
        "more chains only find what the scorer likes.",
        svg=_lines(rows, "how", _CURVES, "accuracy"),
        numbers=Table(
            heads=("n", *by_name, "policy tokens", "scorer tokens"),
            rows=tuple(
                (
                    f"{point.n:,}",
                    *("-" if found[at] is None else with_interval(found[at]) for found in by_name.values()),
                    f"{point.policy_tokens:,.0f}",
                    f"{point.scorer_tokens:,.0f}",
                )
                for at, point in enumerate(points)
            ),
            words=0,
        ),
    )


def score_and_accuracy(found: ScoreAgainstOutcome) -> Figure | None:
    """Mean score and accuracy of the choice, by n."""
    points = [point for point in found.points if point.score.value is not None and point.accuracy.value is not None]
    if len(points) < 2:
        return None
    rows: list[dict[str, Any]] = [
        {"n": point.n, "what": name, **_ends(figure)}
        for point in points
        for name, figure in (("accuracy", point.accuracy), ("mean score", point.score))
    ]
    return Figure(
        title="Score against outcome",
        reading="Mean score and accuracy of the best-scored of n chains. The score always rises with n. Where accuracy falls, "
        "the search finds what the scorer likes instead of what is right.",
        svg=_lines(rows, "what", _SCORE_COLOURS, "mean"),
        numbers=Table(heads=("n", "accuracy", "mean score"), rows=tuple(map(_score_row, points)), words=0),
    )


def tokens(searches: pl.DataFrame) -> Figure | None:
    """Tokens of a problem. `searches`: see `run_data`."""
    spent = (searches["policy_tokens"] + searches["scorer_computed"]).to_list()
    if not any(spent):
        return None
    width = _round_width((max(spent) - min(spent)) / BINS)
    counts = Counter(each // width for each in spent)
    rows = [{"low": at * width, "high": (at + 1) * width, "count": counts[at]} for at in sorted(counts)]
    chart = (
        alt.Chart(rows_of(rows))
        .mark_bar(binSpacing=1, color=ACCENT)
        .encode(
            x=alt.X("low:Q", bin="binned", title="tokens of a problem", axis=alt.Axis(tickCount=5, format="~s")),
            x2="high:Q",
            y=alt.Y("count:Q", title="problems", axis=alt.Axis(format="~s", tickMinStep=1)),
        )
    )
    return Figure(
        title="Tokens of a problem",
        reading="Tokens that the policy wrote, and those that the scorer computed, together. With search.accept, easy problems "
        "cost less.",
        svg=draw_svg(chart),
        numbers=Table(
            heads=("from", "to", "problems"),
            rows=tuple((f"{row['low']:,}", f"{row['high']:,}", f"{row['count']:,}") for row in rows),
            words=0,
        ),
    )


def with_interval(figure: Interval | None) -> str:
    """A figure with its interval in brackets."""
    if figure is None or figure.value is None:
        return "-"
    return f"{figure.value:.3f}" if figure.low is None else f"{figure.value:.3f} ({between(figure)})"


def between(figure: Interval) -> str:
    """The interval of a figure; empty if it has none."""
    return "" if figure.low is None else f"{figure.low:.3f} to {figure.high:.3f}"


def _score_row(point: ScorePoint) -> tuple[str, str, str]:
    return f"{point.n:,}", with_interval(point.accuracy), with_interval(point.score)


def _lines(rows: list[dict[str, Any]], kind: str, colours: dict[str, str], title: str) -> str:
    used = [name for name in colours if name in {row[kind] for row in rows}]
    x = alt.X(
        "n:Q",
        title="n",
        scale=alt.Scale(type="log", base=2, padding=_BESIDE, nice=False),
        axis=alt.Axis(values=sorted({row["n"] for row in rows}), labelOverlap="greedy", labelSeparation=3),
    )
    base = alt.Chart(rows_of(rows)).encode(
        x=x, color=alt.Color(f"{kind}:N", scale=scale(colours, set(used)), legend=_LEGEND)
    )
    dash = alt.StrokeDash(f"{kind}:N", scale=alt.Scale(domain=used, range=list(_DASHES[: len(used)])), legend=_LEGEND)
    rules = base.mark_rule(strokeWidth=1.5, opacity=0.5).encode(
        y=alt.Y("low:Q", title=title, scale=_UNIT, axis=_TITLED), y2="high:Q"
    )
    line = base.mark_line(strokeWidth=2.5, point=alt.OverlayMarkDef(filled=True, size=40)).encode(
        y=alt.Y("value:Q", title=title, scale=_UNIT, axis=_TITLED), strokeDash=dash
    )
    return draw_svg(rules + line)


def _ends(figure: Interval) -> dict[str, float | None]:
    return {
        "value": figure.value,
        "low": figure.value if figure.low is None else figure.low,
        "high": figure.value if figure.high is None else figure.high,
    }


def _round_width(least: float) -> int:
    """1, 2 or 5 times a power of ten, at least `least`."""
    if least <= 1:
        return 1
    power: int = 10 ** math.floor(math.log10(least))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= least)


def _percents() -> alt.Axis:
    return alt.Axis(format="~%", tickCount=5, labelColor=TEXT)


def _three(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"
